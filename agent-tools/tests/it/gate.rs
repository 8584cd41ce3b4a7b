//! The gate: what runs, what is asked, what is blocked.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent_tools::policy::shell::judge;
use agent_tools::policy::{Gate, Mode, Permissions, Policy, Verdict};
use agent_tools::{
    Answer, Call, CallKind, Change, Declaration, Host, Needs, Outline, Permit, Prepared, Tool, ToolContext, ToolError,
    ToolOutput, Tools, dispatch,
};

use crate::policy::{CWD, mode, place};

/// A tool that needs what it is told and says `done`.
struct Told {
    kind: CallKind,
    needs: Needs,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait::async_trait]
impl Tool for Told {
    type Input = Nothing;
    type Work = ();

    fn declaration(&self) -> Declaration {
        Declaration::of::<Nothing>("told", "Does as told.")
    }

    fn outline(&self, _input: &Nothing, _cx: &ToolContext) -> Outline {
        Outline::new(self.kind, "told").needing(self.needs.clone())
    }

    async fn prepare(&self, _input: Nothing, _cx: &ToolContext) -> Result<Prepared<()>, ToolError> {
        Ok(Prepared::new(()))
    }

    async fn run(&self, _work: (), _permit: &Permit<'_>, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::ok("done"))
    }
}

/// A person who answers the same to all, or nobody.
struct Person {
    answer: Option<Answer>,
    asked: AtomicUsize,
    why: Mutex<String>,
}

#[async_trait::async_trait]
impl Host for Person {
    fn attended(&self) -> bool {
        self.answer.is_some()
    }

    async fn ask(&self, _call: &Call, _outline: &Outline, why: &str, _change: Option<&Change>) -> Answer {
        self.asked.fetch_add(1, Ordering::Relaxed);
        *self.why.lock().unwrap() = why.to_owned();
        self.answer.unwrap_or(Answer::Reject)
    }
}

/// What becomes of a call: the text, and the question if there was one.
fn call(gate: Gate, kind: CallKind, needs: Needs, answer: Option<Answer>) -> (String, Option<String>) {
    let person = Arc::new(Person { answer, asked: AtomicUsize::new(0), why: Mutex::default() });
    let mut cx = ToolContext::new(CWD, gate);
    cx.host = person.clone();
    let tools = Tools::default().with(Told { kind, needs });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let output = runtime.block_on(dispatch(&tools, &Call::new("1", "told", "{}"), &cx));
    let why = person.why.lock().unwrap().clone();
    (output.text(), (person.asked.load(Ordering::Relaxed) > 0).then_some(why))
}

const BLOCKED: &str = "Error: command blocked by bash safety policy (required=4004 allowed=0467; mode=system/external/network/workspace bits=4:read,2:write,1:execute)";

fn needs(kind: &str) -> Needs {
    let mut needs = Needs::mode(mode(match kind {
        "beyond" => "4004",
        "reads" => "0004",
        _ => "0006",
    }));
    needs.unsure = (kind == "unsure").then(|| "it is odd".into());
    needs.destroys = (kind == "destroys").then(|| "all of it".into());
    needs
}

#[test]
fn the_gate_with_nobody_to_ask() {
    let unsure = "required=0006 allowed=0467";
    for (permissions, kind, expect) in [
        (Permissions::Ask, "reads", "[command rejected by the user]"),
        (Permissions::Ask, "within", "[command rejected by the user]"),
        (Permissions::Ask, "beyond", BLOCKED),
        (Permissions::Ask, "unsure", unsure),
        (Permissions::Ask, "destroys", "[command rejected by the user]"),
        (Permissions::Auto, "reads", "done"),
        (Permissions::Auto, "within", "done"),
        (Permissions::Auto, "beyond", BLOCKED),
        (Permissions::Auto, "unsure", unsure),
        (Permissions::Auto, "destroys", "done"),
        (Permissions::Allow, "within", "done"),
        (Permissions::Allow, "beyond", "done"),
        (Permissions::Allow, "unsure", "done"),
        (Permissions::Allow, "destroys", "done"),
    ] {
        let (text, asked) = call(Gate::new(Mode::DEFAULT, permissions), CallKind::Command, needs(kind), None);
        let holds = if expect == unsure { text.contains(unsure) && text.contains("it is odd") } else { text == expect };
        assert!(holds, "{permissions} {kind}: {text}");
        assert_eq!(asked, None, "{permissions} {kind}");
    }
}

#[test]
fn what_is_beyond_is_named_below_the_exact_line() {
    let needs = judge("cat /etc/hosts src/a.rs > ../out", &place());
    let (text, _) = call(Gate::new(Mode::DEFAULT, Permissions::Auto), CallKind::Command, needs, None);
    let lines: Vec<&str> = text.lines().collect();
    let exact = BLOCKED.replace("4004", "4204");
    let named =
        "Beyond what is allowed: `>../out` needs write in zone external; `/etc/hosts` needs read in zone system.";
    assert_eq!(lines, [exact.as_str(), named]);
}

#[test]
fn the_gate_with_a_person() {
    for (permissions, kind, why) in [
        (Permissions::Ask, "reads", Some("permissions are `ask`")),
        (Permissions::Ask, "within", Some("permissions are `ask`")),
        (Permissions::Ask, "beyond", Some("it needs mode 4004, allowed is 0467")),
        (Permissions::Ask, "unsure", Some("this could not be judged: it is odd")),
        (Permissions::Ask, "destroys", Some("this would destroy work: all of it")),
        (Permissions::Auto, "reads", None),
        (Permissions::Auto, "within", None),
        (Permissions::Auto, "beyond", Some("it needs mode 4004, allowed is 0467")),
        (Permissions::Auto, "unsure", Some("this could not be judged: it is odd")),
        (Permissions::Auto, "destroys", Some("this would destroy work: all of it")),
        (Permissions::Allow, "beyond", None),
        (Permissions::Allow, "unsure", None),
        (Permissions::Allow, "destroys", None),
    ] {
        let gate = || Gate::new(Mode::DEFAULT, permissions);
        let (text, asked) = call(gate(), CallKind::Command, needs(kind), Some(Answer::Once));
        assert_eq!((text.as_str(), asked.as_deref()), ("done", why), "{permissions} {kind}");
        let (text, _) = call(gate(), CallKind::Command, needs(kind), Some(Answer::Reject));
        let expect = if why.is_some() { "[command rejected by the user]" } else { "done" };
        assert_eq!(text, expect, "{permissions} {kind}");
    }
}

#[test]
fn a_refusal_names_what_was_refused() {
    for (kind, text) in [
        (CallKind::Command, "[command rejected by the user]"),
        (CallKind::Write, "[change rejected by the user]"),
        (CallKind::Edit, "[change rejected by the user]"),
        (CallKind::Read, "[call rejected by the user]"),
        (CallKind::Search, "[call rejected by the user]"),
        (CallKind::Other, "[call rejected by the user]"),
    ] {
        let gate = Gate::new(Mode::DEFAULT, Permissions::Ask);
        assert_eq!(call(gate, kind, needs("beyond"), Some(Answer::Reject)).0, text);
    }
}

#[test]
fn reading_runs_under_ask() {
    for answer in [None, Some(Answer::Reject)] {
        for kind in [CallKind::Read, CallKind::Search] {
            let gate = Gate::new(Mode::DEFAULT, Permissions::Ask);
            assert_eq!(call(gate, kind, needs("reads"), answer), ("done".into(), None));
        }
    }
}

#[test]
fn what_could_not_be_judged_has_room_under_a_ceiling_without_limits() {
    for (permissions, answer, expect) in [
        (Permissions::Auto, None, ("done", None)),
        (Permissions::Ask, None, ("[command rejected by the user]", None)),
        (Permissions::Auto, Some(Answer::Once), ("done", Some("this could not be judged: it is odd"))),
    ] {
        let (text, asked) = call(Gate::new(Mode::ALL, permissions), CallKind::Command, needs("unsure"), answer);
        assert_eq!((text.as_str(), asked.as_deref()), expect, "{permissions}");
    }
}

#[test]
fn a_question_says_all_that_speaks_against_it() {
    let mut both = needs("beyond");
    both.destroys = Some("all of it".into());
    let (_, why) = call(Gate::new(Mode::DEFAULT, Permissions::Auto), CallKind::Command, both, Some(Answer::Once));
    assert_eq!(why.as_deref(), Some("it needs mode 4004, allowed is 0467; this would destroy work: all of it"));
}

#[test]
fn only_reading_while_a_plan_is_open() {
    for permissions in Permissions::ALL {
        for (kind, expect) in [("within", false), ("unsure", false), ("reads", true)] {
            let gate = Gate::new(Mode::DEFAULT, permissions);
            gate.set(|rules| rules.planning = Some("/session".into()));
            let (text, _) = call(gate, CallKind::Read, needs(kind), Some(Answer::Once));
            let denied = "Error: a plan draft is open: only reading and the session's plan files until PlanConfirm or an empty draft";
            assert_eq!(text, if expect { "done" } else { denied }, "{permissions} {kind}");
        }
    }
}

#[test]
fn a_plan_that_comes_first_is_held_to_until_it_is_agreed_to() {
    let store = Path::new("/store");
    let gate = Gate::new(Mode::DEFAULT, Permissions::Allow);
    gate.set(|rules| rules.plan_first = Some(store.to_owned()));
    let command = |needs: Needs| Outline::new(CallKind::Command, "x").needing(needs);
    let draft = Outline::new(CallKind::Write, "plan.draft").at("/store/plan.draft", None);
    let file = Outline::new(CallKind::Write, "f").at("/ws/f", None).needing(Needs::mode(mode("0006")));
    let confirm = Outline::new(CallKind::Plan, "confirm the plan");
    let judged = |outline: &Outline| match gate.judge(outline) {
        Verdict::Allow => "runs",
        Verdict::Ask { .. } => "asks",
        Verdict::Deny(why) if why.contains("wants a plan first") => "plan first",
        Verdict::Deny(_) => "draft open",
    };
    let all = |expect: [&str; 5]| {
        let outlines = [&command(needs("reads")), &command(needs("within")), &draft, &file, &confirm];
        assert_eq!(outlines.map(judged), expect);
    };
    all(["runs", "plan first", "runs", "plan first", "asks"]);
    gate.planning(Some(store));
    all(["runs", "draft open", "runs", "draft open", "asks"]);
    // The draft was confirmed, or emptied.
    gate.planning(None);
    all(["runs", "runs", "runs", "runs", "runs"]);
    assert_eq!(gate.rules().plan_first, None);
}
