//! The conversation as this model reads it, and what its answers mean: one flat JSON object a turn. Pure.

use std::fmt::Write as _;

use agent_tools::text::{Cut, clipped};
use agent_tools::{Call, Declaration, Part};
use serde_json::{Map, Value, json};

use crate::message::{Block, CallResult, Message};

/// How much of a result the model is shown, and of each argument of its earlier calls.
const SHOWN: Cut = Cut::HeadChars(700);
/// How much of a skill's description stands in the prompt.
const DESCRIBED: usize = 80;
/// How many skills are offered.
const SKILLS: usize = 20;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The frame.
    System,
    /// A person, or the result of a call.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// As the model was trained on it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Something said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    /// By whom.
    pub(super) role: Role,
    /// What.
    pub(super) text: String,
    /// Whether a person said it, and not a tool.
    pub(super) asked: bool,
}

impl Turn {
    fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, text: text.into(), asked: true }
    }

    fn result(text: &str) -> Self {
        Self { role: Role::User, text: format!("Result:\n{text}"), asked: false }
    }

    fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, text: text.into(), asked: false }
    }
}

/// A tool in the flat form that this model can write: every argument is a string.
#[derive(Debug)]
pub(super) struct Form {
    /// What it is called here, and in the toolset `lean`.
    pub(super) name: &'static str,
    /// What it takes, in order.
    pub(super) arguments: &'static [Argument],
    purpose: &'static str,
}

/// An argument of a form.
#[derive(Debug)]
pub(super) struct Argument {
    /// What it is called.
    pub(super) name: &'static str,
    /// How many tokens it may take: a model of this size that goes on for longer goes round in circles.
    pub(super) tokens: usize,
    /// Whether it may be empty.
    pub(super) empty: bool,
}

const fn argument(name: &'static str, tokens: usize) -> Argument {
    Argument { name, tokens, empty: false }
}

const fn optional(name: &'static str, tokens: usize) -> Argument {
    Argument { name, tokens, empty: true }
}

const FORMS: [Form; 5] = [
    Form {
        name: "bash",
        arguments: &[argument("command", 256)],
        purpose: "runs a shell command: list or search files, run tests or programs, git, delete, make folders",
    },
    Form { name: "read_file", arguments: &[argument("path", 64)], purpose: "shows a file's contents" },
    Form {
        name: "write_file",
        arguments: &[argument("path", 64), optional("content", 1024)],
        purpose: "creates a new file",
    },
    Form {
        name: "edit_file",
        arguments: &[argument("path", 64), argument("old", 384), optional("new", 384)],
        purpose: "replaces text in an existing file",
    },
    Form { name: SKILL, arguments: &[argument("name", 32)], purpose: "loads a skill" },
];

/// The answer in words.
pub(super) const REPLY: Form = Form {
    name: "reply",
    arguments: &[argument("text", 512)],
    purpose: "answers the user in words, when no tool is needed or when the tool results are enough",
};

const SKILL: &str = "read_skill";

/// What stands for a result without text.
const NOTHING: &str = "(no output)";

/// What the model is offered.
#[derive(Debug)]
pub(super) struct Offer {
    forms: Vec<&'static Form>,
    skills: Vec<(String, String)>,
}

impl Offer {
    /// The tools among these that this model can call.
    pub(super) fn of(tools: &[&Declaration]) -> Self {
        let skills = tools.iter().find(|t| t.name == SKILL).map(|t| skills(&t.description)).unwrap_or_default();
        let declared = |form: &&Form| tools.iter().any(|t| t.name == form.name);
        let usable = |form: &&Form| form.name != SKILL || !skills.is_empty();
        Self { forms: FORMS.iter().filter(declared).filter(usable).collect(), skills }
    }

    /// What may be answered now: in words or by a call.
    pub(super) fn forms(&self, may_reply: bool) -> Vec<&'static Form> {
        let words = (may_reply || self.forms.is_empty()).then_some(&REPLY);
        self.forms.iter().copied().chain(words).collect()
    }

    /// The values that an argument may have, where they are known.
    pub(super) fn values(&self, form: &Form) -> Option<Vec<String>> {
        (form.name == SKILL).then(|| self.skills.iter().map(|(name, _)| name.clone()).collect())
    }

    /// The frame and the examples: what comes before every conversation.
    pub(super) fn opening(&self) -> Vec<Turn> {
        let frame = Turn { role: Role::System, text: self.frame(), asked: false };
        let all = |example: &&Example| example.steps.iter().all(|(tool, ..)| self.has(tool));
        let mut examples: Vec<Vec<Turn>> = EXAMPLES.iter().filter(all).map(Example::turns).collect();
        if let Some((name, _)) = self.skills.first() {
            let shown =
                vec![Turn::user(format!("load the skill {name}")), Turn::assistant(spelled(SKILL, &[("name", name)]))];
            // Not among the last: the model leans towards what it saw last.
            examples.insert(examples.len().min(4), shown);
        }
        std::iter::once(frame).chain(examples.into_iter().flatten()).collect()
    }

    fn has(&self, tool: &str) -> bool {
        self.forms.iter().any(|f| f.name == tool)
    }

    fn frame(&self) -> String {
        let mut text = String::from(
            "You are a coding agent in the user's current folder on Linux. \
             Answer every message with exactly one JSON object that calls one tool:",
        );
        for form in self.forms(true) {
            let arguments: Vec<(&str, &str)> = form.arguments.iter().map(|a| (a.name, "...")).collect();
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{} {}", spelled(form.name, &arguments), form.purpose);
            if form.name == SKILL {
                let _ = write!(text, ": {}", self.shelf());
            }
        }
        text
    }

    fn shelf(&self) -> String {
        let one = |(name, about): &(String, String)| format!("{name} ({})", clipped(about, DESCRIBED));
        self.skills.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The skills that a description lists, a line each: two spaces, the name, an em dash, what it is for.
fn skills(description: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (name, about) = line.strip_prefix("  ")?.split_once(" — ")?;
        Some((name.trim().to_owned(), about.trim().to_owned()))
    };
    description.lines().filter_map(line).take(SKILLS).collect()
}

/// A call of an example: the tool, its arguments, its result.
type Step = (&'static str, &'static [(&'static str, &'static str)], &'static str);

/// An example: what a person asks, the calls with their results, the answer. The wording was chosen by measuring.
struct Example {
    ask: &'static str,
    steps: &'static [Step],
    reply: &'static str,
}

impl Example {
    fn turns(&self) -> Vec<Turn> {
        let mut turns = vec![Turn::user(self.ask)];
        for (tool, arguments, result) in self.steps {
            turns.push(Turn::assistant(spelled(tool, arguments)));
            turns.push(Turn::result(result));
        }
        turns.push(Turn::assistant(spelled(REPLY.name, &[("text", self.reply)])));
        turns
    }
}

const EXAMPLES: [Example; 10] = [
    Example {
        ask: "show the file notes.md",
        steps: &[("read_file", &[("path", "notes.md")], "# Notes\nbuy a chair")],
        reply: "notes.md says: buy a chair.",
    },
    Example {
        ask: "which files are in src",
        steps: &[("bash", &[("command", "ls src")], "app.js\nutil.js")],
        reply: "src has app.js and util.js.",
    },
    Example {
        ask: "make a file todo.txt that says buy milk",
        steps: &[("write_file", &[("path", "todo.txt"), ("content", "buy milk\n")], "wrote todo.txt")],
        reply: "I created todo.txt.",
    },
    Example {
        ask: "change red to blue in style.css",
        steps: &[("edit_file", &[("path", "style.css"), ("old", "red"), ("new", "blue")], "edited style.css")],
        reply: "style.css now says blue instead of red.",
    },
    Example {
        ask: "count the words in notes.md",
        steps: &[("bash", &[("command", "wc -w notes.md")], "5 notes.md")],
        reply: "notes.md has 5 words.",
    },
    Example { ask: "who wrote Hamlet?", steps: &[], reply: "William Shakespeare wrote Hamlet." },
    Example {
        ask: "search for fixme in lib",
        steps: &[("bash", &[("command", "grep -rn fixme lib")], "lib/a.js:3: // fixme later")],
        reply: "lib/a.js line 3 says: fixme later",
    },
    Example {
        ask: "add the line call Bob to todo.txt",
        steps: &[("bash", &[("command", "echo 'call Bob' >> todo.txt")], NOTHING)],
        reply: "I added the line to todo.txt.",
    },
    Example { ask: "run make lint", steps: &[("bash", &[("command", "make lint")], "ok")], reply: "make lint passed." },
    Example {
        ask: "make run.sh that prints ok, then run it",
        steps: &[
            ("write_file", &[("path", "run.sh"), ("content", "echo ok\n")], "wrote run.sh"),
            ("bash", &[("command", "sh run.sh")], "ok"),
        ],
        reply: "I made run.sh and ran it; it printed ok.",
    },
];

/// An answer as JSON, spaced as the examples are.
fn spelled(tool: &str, arguments: &[(&str, &str)]) -> String {
    let mut json = format!("{{\"tool\": {}", Value::from(tool));
    for (name, value) in arguments {
        // Writing to a string cannot fail.
        let _ = write!(json, ", {}: {}", Value::from(*name), Value::from(*value));
    }
    json.push('}');
    json
}

/// The conversation, without the opening.
pub(super) fn turns(messages: &[Message]) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut open: Vec<(&str, String)> = Vec::new();
    for message in messages {
        match message {
            Message::User(parts) => turns.push(Turn::user(parts.iter().map(Part::as_text).collect::<String>())),
            Message::Assistant(blocks) => {
                open = message.calls().map(|call| (call.id.as_str(), written(call))).collect();
                let said: Vec<&str> = blocks.iter().filter_map(words).collect();
                if open.is_empty() {
                    turns.push(Turn::assistant(spelled(REPLY.name, &[("text", &said.join("\n"))])));
                }
            }
            Message::Results(results) => {
                for (id, call) in open.drain(..) {
                    turns.push(Turn::assistant(call));
                    turns.extend(results.iter().find(|r| r.id == id).map(|r| Turn::result(&shown(r))));
                }
            }
        }
    }
    turns
}

fn words(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        Block::Call { .. } | Block::Opaque { .. } => None,
    }
}

/// A call of the past, in the form of today.
fn written(call: &Call) -> String {
    let given: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    let edit = given.get("edits").and_then(|edits| edits.get(0));
    let text = |name: &str| given.get(name).or_else(|| edit?.get(name)).and_then(Value::as_str).map(cut);
    let arguments: Vec<(&str, String)> = match FORMS.iter().find(|f| f.name == call.name) {
        Some(form) => form.arguments.iter().map(|a| (a.name, text(a.name).unwrap_or_default())).collect(),
        None => given.keys().filter_map(|name| Some((name.as_str(), text(name)?))).collect(),
    };
    let arguments: Vec<(&str, &str)> = arguments.iter().map(|(name, value)| (*name, value.as_str())).collect();
    spelled(&call.name, &arguments)
}

fn cut(text: &str) -> String {
    SHOWN.told(text.to_owned())
}

/// A result as the model is shown it.
fn shown(result: &CallResult) -> String {
    let text = result.text();
    // The end of a command's output says how it ended.
    let ended = text.lines().last().filter(|line| line.starts_with("[e")).unwrap_or_default();
    let mut shown = cut(&text);
    if !shown.ends_with(ended) {
        agent_tools::text::append_line(&mut shown, ended);
    }
    if shown.is_empty() {
        shown.push_str(NOTHING);
    }
    if let Some(hint) = hint(result, ended) {
        agent_tools::text::append_line(&mut shown, hint);
    }
    shown
}

/// What to do after a failure: this model repeats itself unless it is told.
fn hint(result: &CallResult, ended: &str) -> Option<&'static str> {
    let went_wrong = result.failed || !ended.is_empty();
    (went_wrong && !refused(result)).then_some(match result.name.as_str() {
        "bash" => "The command failed. Run a different command.",
        "edit_file" => "Nothing was changed. Read the file first, then use text that is really in it as old.",
        "read_file" => "Run ls or find to see which files there are.",
        _ => "The call failed. Try it in another way.",
    })
}

/// Whether a person or a policy said no: nothing to try again.
fn refused(result: &CallResult) -> bool {
    let text = result.text();
    ["rejected by the user]", "blocked by bash safety policy"].iter().any(|word| text.contains(word))
}

/// Whether the model may answer in words. Not right after a first failure: it would report what it did not do.
pub(super) fn may_reply(messages: &[Message]) -> bool {
    let outcomes = messages.iter().rev().take_while(|m| !matches!(m, Message::User(_))).filter_map(outcome);
    outcomes.take_while(|failed| *failed).count() != 1
}

/// Whether the last of several results went wrong in a way that can be mended.
fn outcome(message: &Message) -> Option<bool> {
    match message {
        Message::Results(results) => {
            let last = results.last()?;
            let text = last.text();
            let ended = text.lines().last().is_some_and(|line| line.starts_with("[exit code:"));
            Some((last.failed || ended) && !refused(last))
        }
        Message::User(_) | Message::Assistant(_) => None,
    }
}

/// What an answer means: a call in the toolset's own form.
pub(super) fn call(form: &Form, values: Vec<String>, messages: &[Message]) -> Call {
    let mut given: Map<String, Value> =
        form.arguments.iter().map(|a| a.name.to_owned()).zip(values.into_iter().map(Value::from)).collect();
    if form.name == "edit_file" {
        let edit = json!({"old": given.remove("old"), "new": given.remove("new")});
        given.insert("edits".into(), json!([edit]));
    }
    Call::new(unused_id(messages), form.name, Value::Object(given).to_string())
}

fn unused_id(messages: &[Message]) -> String {
    let used: Vec<&str> = messages.iter().flat_map(Message::calls).map(|call| call.id.as_str()).collect();
    let numbers = used.len() + 1..;
    numbers.map(|n| format!("local_{n}")).find(|id| !used.contains(&id.as_str())).unwrap_or_default()
}

/// Which turns fit, given how long each is: always the last thing that a person asked, and of the rest the latest.
/// Nothing where even that is too much.
pub(super) fn fit(turns: &[Turn], lengths: &[usize], room: usize) -> Option<Vec<usize>> {
    if turns.is_empty() {
        return Some(Vec::new());
    }
    let cost = |range: std::ops::Range<usize>| lengths[range].iter().sum::<usize>();
    let end = turns.len();
    let asked = turns.iter().rposition(|t| t.asked).unwrap_or(0);
    let mut starts = (0..=asked).filter(|&i| turns[i].asked || i == asked);
    if let Some(start) = starts.find(|&i| cost(i..end) <= room) {
        return Some((start..end).collect());
    }
    let own = |i: &usize| turns[*i].role == Role::Assistant;
    let rest = (asked + 1..end).filter(own).find(|&i| lengths[asked] + cost(i..end) <= room)?;
    Some(std::iter::once(asked).chain(rest..end).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(name: &str, description: &str) -> Declaration {
        Declaration { name: name.into(), description: description.into(), schema: json!({"type": "object"}) }
    }

    fn offer(names: &[&str]) -> Offer {
        let all: Vec<Declaration> = names
            .iter()
            .map(|name| {
                declared(name, "Reads skills:\n  pdf — making a PDF\nmore\n  commit — writing a commit message")
            })
            .collect();
        Offer::of(&all.iter().collect::<Vec<_>>())
    }

    fn result(id: &str, name: &str, failed: bool, text: &str) -> CallResult {
        CallResult { id: id.into(), name: name.into(), failed, parts: vec![Part::text(text)] }
    }

    fn step(name: &str, arguments: &str, failed: bool, text: &str) -> [Message; 2] {
        let call = Block::call(Call::new("x", name, arguments));
        [Message::Assistant(vec![call]), Message::Results(vec![result("x", name, failed, text)])]
    }

    #[test]
    fn what_is_not_declared_is_not_offered() {
        for (tools, expect) in [
            (&["bash", "read_skill", "mcp__x"][..], &["bash", "read_skill", "reply"][..]),
            (&["write_file", "edit_file", "read_file"], &["read_file", "write_file", "edit_file", "reply"]),
            (&[], &["reply"]),
        ] {
            let offer = offer(tools);
            let names: Vec<&str> = offer.forms(true).iter().map(|f| f.name).collect();
            assert_eq!(names, expect);
            let opening: String = offer.opening().iter().map(|t| t.text.as_str()).collect();
            for form in &FORMS {
                let spelled = format!("\"tool\": \"{}\"", form.name);
                assert_eq!(opening.contains(&spelled), tools.contains(&form.name), "{} in {tools:?}", form.name);
            }
        }
    }

    #[test]
    fn skills_are_read_off_the_description() {
        let offer = offer(&["read_skill"]);
        assert_eq!(offer.shelf(), "pdf (making a PDF), commit (writing a commit message)");
        assert_eq!(offer.values(&FORMS[4]).unwrap(), ["pdf", "commit"]);
        assert!(offer.values(&FORMS[0]).is_none());
        let bare = declared("read_skill", "No skills yet.");
        assert_eq!(Offer::of(&[&bare]).forms(true).len(), 1);
    }

    #[test]
    fn the_conversation_is_one_object_a_turn() {
        let mut messages = vec![Message::user("list")];
        messages.extend(step("bash", r#"{"command":"ls"}"#, false, "a \"b\"\n"));
        messages.extend(step("edit_file", r#"{"path":"a","edits":[{"old":"x","new":"y"}]}"#, false, ""));
        messages.extend(step("odd", r#"{"n":1,"s":"é"}"#, false, "fine"));
        messages.extend(step("read_file", "{broken", false, "fine"));
        messages.push(Message::Assistant(vec![Block::text("one"), Block::text("two")]));
        let said: Vec<String> = turns(&messages).into_iter().map(|t| format!("{} {}", t.role.name(), t.text)).collect();
        assert_eq!(
            said,
            [
                "user list",
                r#"assistant {"tool": "bash", "command": "ls"}"#,
                "user Result:\na \"b\"\n",
                r#"assistant {"tool": "edit_file", "path": "a", "old": "x", "new": "y"}"#,
                "user Result:\n(no output)",
                r#"assistant {"tool": "odd", "s": "é"}"#,
                "user Result:\nfine",
                r#"assistant {"tool": "read_file", "path": ""}"#,
                "user Result:\nfine",
                r#"assistant {"tool": "reply", "text": "one\ntwo"}"#,
            ]
        );
    }

    #[test]
    fn results_are_short_and_failures_say_more() {
        let long = format!("{}[exit code: exit status 2]", "x\n".repeat(800));
        for (given, expect) in [
            (result("1", "bash", false, &"é".repeat(701)), "[output truncated to 700 characters]"),
            (
                result("1", "bash", false, &long),
                "[exit code: exit status 2]\nThe command failed. Run a different command.",
            ),
            (result("1", "edit_file", true, "not found"), "Read the file first"),
            (result("1", "bash", true, "[command rejected by the user]"), "[command rejected by the user]"),
        ] {
            let shown = shown(&given);
            assert!(shown.contains(expect) && shown.chars().count() < 900, "{shown}\n{expect}");
            assert_eq!(shown.ends_with("user]"), given.text().ends_with("user]"));
        }
    }

    #[test]
    fn words_are_not_offered_once_after_a_failure() {
        let failure = || step("bash", "{}", false, "no\n[exit code: exit status 1]");
        let success = || step("bash", "{}", false, "ok");
        let refusal = || step("bash", "{}", true, "[command rejected by the user]");
        for (steps, expect) in [
            (vec![], true),
            (vec![success()], true),
            (vec![failure()], false),
            (vec![failure(), failure()], true),
            (vec![failure(), success()], true),
            (vec![success(), failure()], false),
            (vec![failure(), success(), failure()], false),
            (vec![refusal()], true),
            (vec![step("edit_file", "{}", true, "not found")], false),
        ] {
            let mut messages = vec![Message::user("go")];
            let count = steps.len();
            messages.extend(steps.into_iter().flatten());
            assert_eq!(may_reply(&messages), expect, "{count} steps");
            messages.push(Message::user("and now?"));
            assert!(may_reply(&messages));
        }
    }

    #[test]
    fn calls_have_the_toolsets_own_form_and_an_id_of_their_own() {
        for (form, values, expect) in [
            (&FORMS[0], vec!["ls"], r#"{"command":"ls"}"#),
            (&FORMS[3], vec!["a", "x\n", ""], r#"{"path":"a","edits":[{"old":"x\n","new":""}]}"#),
        ] {
            let values = values.into_iter().map(String::from).collect();
            assert_eq!(call(form, values, &[]).arguments, expect);
        }
        let used = |id: &str| Message::Assistant(vec![Block::call(Call::new(id, "bash", "{}"))]);
        assert_eq!(call(&FORMS[0], vec![], &[used("a")]).id, "local_2");
        assert_eq!(call(&FORMS[0], vec![], &[used("local_2")]).id, "local_3");
    }

    #[test]
    fn old_turns_go_first_and_the_request_stays() {
        let turns = [
            Turn::user("old"),
            Turn::assistant("said"),
            Turn::user("new"),
            Turn::assistant("call"),
            Turn::result("r"),
            Turn::assistant("call"),
            Turn::result("r"),
        ];
        for (room, expect) in [
            (70, Some(vec![0, 1, 2, 3, 4, 5, 6])),
            (69, Some(vec![2, 3, 4, 5, 6])),
            (50, Some(vec![2, 3, 4, 5, 6])),
            (49, Some(vec![2, 5, 6])),
            (30, Some(vec![2, 5, 6])),
            (29, None),
        ] {
            assert_eq!(fit(&turns, &[10; 7], room), expect, "{room}");
        }
        assert_eq!(fit(&turns[..1], &[10], 9), None);
        assert_eq!(fit(&[], &[], 9), Some(vec![]));
    }
}
