//! Turns: a script of the model and a prompt in, events out. One text file a case in `tests/data/turns`.
//!
//! A file is the script, a line `=== events`, and the events. `INSTA_UPDATE=always` rewrites the events.
//! In a script: `set KEY VALUE` · `file PATH TEXT` · `answer a|s|r` (to the questions, in their order; none: nobody is
//! there) · `prompt TEXT` · and the model's answers, a reply each: `say TEXT` · `call NAME ARGUMENTS` (lines that follow
//! each other with `and NAME ARGUMENTS` are one reply) · `fail KIND` · `break TEXT` (the answer breaks off).

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_core::provider::scripted::{Answer as Reply, Scripted};
use agent_core::provider::{ErrorKind, Provider, Stop};
use agent_core::session::{Journal, Memory, load};
use agent_core::{Agent, Block, Clock, Event, Limits, Message, Prompt, Session, SessionId, start};
use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::toolset::{self, Parts, Toolset};
use agent_tools::{Answer, Call, Place};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

pub struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }
}

/// An agent with the toolset `full` that may do everything.
pub fn agent(provider: impl Provider + 'static) -> Agent {
    Agent {
        provider: Arc::new(provider),
        fallbacks: Vec::new(),
        tools: toolset::tools(Toolset::Full, &Parts::of(Toolset::Full)),
        policy: Arc::new(Gate::new(Mode::DEFAULT, Permissions::Allow)),
        prompt: Arc::default(),
        limits: Limits::default(),
    }
}

struct Script {
    replies: Vec<Vec<Block>>,
    order: Vec<Step>,
    prompts: Vec<String>,
    answers: Option<Vec<Answer>>,
    permissions: Permissions,
    mode: Mode,
    limits: Limits,
    toolset: Toolset,
    parts: Parts,
}

enum Step {
    Reply(usize),
    Fail(ErrorKind),
    Broken(String),
}

impl Script {
    fn read(text: &str, cwd: &Path) -> Self {
        let mut script = Self {
            replies: vec![],
            order: vec![],
            prompts: vec![],
            answers: None,
            permissions: Permissions::Allow,
            mode: Mode::DEFAULT,
            limits: Limits::default(),
            toolset: Toolset::Lean,
            parts: Parts::of(Toolset::Lean),
        };
        script.parts.timeout = Duration::from_secs(2);
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            script.line(word, rest, cwd);
        }
        script
    }

    fn line(&mut self, word: &str, rest: &str, cwd: &Path) {
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "set" => self.set(first, second),
            "file" => fs::write(cwd.join(first), second.replace("\\n", "\n")).unwrap(),
            "prompt" => self.prompts.push(rest.to_owned()),
            "answer" => self.answers.get_or_insert_default().push(match rest {
                "a" => Answer::Once,
                "s" => Answer::Session,
                _ => Answer::Reject,
            }),
            "say" => self.reply(Block::text(rest)),
            "call" => self.reply(call(self.replies.len(), 1, first, second)),
            "and" => {
                let (reply, last) = (self.replies.len() - 1, self.replies.last_mut().unwrap());
                last.push(call(reply, last.len() + 1, first, second));
            }
            "fail" => self.order.push(Step::Fail(kind(rest))),
            "break" => self.order.push(Step::Broken(rest.to_owned())),
            other => panic!("unknown word {other}"),
        }
    }

    fn reply(&mut self, block: Block) {
        self.order.push(Step::Reply(self.replies.len()));
        self.replies.push(vec![block]);
    }

    fn set(&mut self, key: &str, value: &str) {
        match key {
            "permissions" => self.permissions = value.parse().unwrap(),
            "mode" => self.mode = value.parse().unwrap(),
            "maxTurns" => self.limits.max_turns = value.parse().unwrap(),
            "loopLimit" => self.limits.loop_limit = value.parse().unwrap(),
            "toolset" => {
                self.toolset = value.parse().unwrap();
                let timeout = self.parts.timeout;
                self.parts = Parts::of(self.toolset);
                self.parts.timeout = timeout;
            }
            "maxOutput" => self.parts.max_output = value.parse().unwrap(),
            other => panic!("unknown setting {other}"),
        }
    }

    fn provider(&self) -> Scripted {
        Scripted::new(self.order.iter().map(|step| match step {
            Step::Reply(n) => Reply::stopped(self.replies[*n].clone(), Stop::End),
            Step::Fail(kind) => Reply::error(*kind, "it failed"),
            Step::Broken(text) => Reply::broken(text, ErrorKind::Cut),
        }))
    }
}

fn call(reply: usize, nth: usize, name: &str, arguments: &str) -> Block {
    Block::call(Call::new(format!("c{}.{nth}", reply + 1), name, arguments))
}

fn kind(word: &str) -> ErrorKind {
    match word {
        "auth" => ErrorKind::Auth,
        "server" => ErrorKind::Server,
        other => panic!("unknown failure {other}"),
    }
}

async fn play(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::read(text, folder.path());
    let provider = Arc::new(script.provider());
    let agent = Agent {
        fallbacks: Vec::new(),
        provider: provider.clone(),
        tools: toolset::tools(script.toolset, &script.parts),
        policy: Arc::new(Gate::new(script.mode, script.permissions)),
        prompt: Arc::default(),
        limits: script.limits,
    };
    let mut place = Place::new(folder.path());
    place.store = Some(folder.path().join("session"));
    place.env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    let log = Memory::default();
    let journal = Journal::new(SessionId::named("s"), Box::new(log.clone()), Arc::new(Noon), "/w");
    let mut session = Session::new(place, journal);
    session.attended = script.answers.is_some();
    let mut answers = script.answers.unwrap_or_default().into_iter();
    let mut shown = String::new();
    for prompt in &script.prompts.iter().map(|p| p.replace("@dir", folder.path().to_str().unwrap())).collect::<Vec<_>>()
    {
        let mut running = start(agent.clone(), &mut session, Prompt::text(prompt), CancellationToken::new());
        while let Some(stamped) = running.next().await {
            show(&mut shown, &stamped.event);
            if let Event::Ask(ask) = stamped.event {
                ask.answer(answers.next().expect("one answer a question"));
            }
        }
    }
    let shown = shown.replace(folder.path().to_str().unwrap(), "@dir");
    assert_eq!(provider.left(), 0, "all answers of the model were asked for\n{shown}");
    same_after_loading(&log.lines(), session.messages());
    shown
}

/// The log alone rebuilds the conversation.
fn same_after_loading(log: &str, messages: &[Message]) {
    let loaded = load(log.as_bytes());
    assert_eq!(loaded.repairs, Vec::<String>::new());
    assert_eq!(serde_json::to_string(&loaded.messages).unwrap(), serde_json::to_string(messages).unwrap());
    for (number, line) in log.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["seq"], number + 1, "lines are numbered without a gap");
        assert_eq!(line["ts"], "2027-01-15T08:00:00Z");
    }
}

fn show(out: &mut String, event: &Event) {
    match event {
        Event::Prompt(prompt) => writeln!(out, "prompt {}", prompt.parts[0].as_text()),
        Event::Text(text) => writeln!(out, "text {text:?}"),
        Event::Thinking(text) => writeln!(out, "thinking {text:?}"),
        Event::Called { call, outline } => writeln!(out, "called {} {} {:?}", call.id, call.name, outline.title),
        Event::Ask(ask) => {
            let change = ask.change.as_ref().map(|c| format!(" change to {:?}", c.new)).unwrap_or_default();
            writeln!(out, "ask {}: {}{change}", ask.call.id, ask.why)
        }
        Event::Started { id } => writeln!(out, "started {id}"),
        Event::Output { .. } => Ok(()),
        Event::Finished { call, output, .. } => {
            writeln!(out, "finished {} {:?} {:?}", call.id, output.status, output.text())
        }
        Event::Usage(report) => writeln!(out, "usage requests={}", report.requests),
        Event::Notice(agent_core::Notice::Retry { attempt, reason, .. }) => writeln!(out, "retry {attempt} {reason}"),
        Event::Notice(notice) => writeln!(out, "notice {notice}"),
        Event::Ended(ended) => writeln!(out, "ended {ended:?}"),
    }
    .unwrap();
}

#[tokio::test]
async fn turns() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/turns");
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|v| v == "always");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "the cases are there");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (script, expect) = text.split_once("=== events\n").unwrap_or((&text, ""));
        let got = play(script).await;
        if update {
            fs::write(&file, format!("{script}=== events\n{got}")).unwrap();
        } else {
            assert_eq!(got, expect, "{}", file.display());
        }
    }
}
