//! An editor: it starts the server, sends lines, and keeps all that comes back in its order.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::{Answer, Model};

/// The longest that anything may take. Only a test that fails waits for so long.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must come where nothing may come.
const SILENCE: Duration = Duration::from_millis(150);

/// Repeats until it comes true.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what} did not come true");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A command that no other test and no other run of the tests has.
pub fn sleep(number: u32) -> String {
    format!("sleep 97.{number}{}", std::process::id())
}

/// Whether a process with this command line lives.
pub fn lives(command: &str) -> bool {
    let wanted: Vec<u8> = command.bytes().map(|b| if b == b' ' { 0 } else { b }).chain([0]).collect();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|p| fs::read(p.path().join("cmdline")).ok()).any(|line| line == wanted)
}

/// A directory of its own with a home, a workspace and a scripted model; several servers can follow each other in it.
pub struct Test {
    root: TempDir,
    pub model: Model,
    toolset: &'static str,
    args: Vec<OsString>,
    env: Vec<(&'static str, Option<OsString>)>,
    capabilities: Value,
}

impl Test {
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::of(Model::start(answers))
    }

    /// With a model that answers each request by itself.
    pub fn minded(mind: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Self {
        Self::of(Model::minded(mind))
    }

    fn of(model: Model) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for dir in ["home", "agent", "work", "elsewhere"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        model.has(&[]);
        Self { root, model, toolset: "lean", args: Vec::new(), env: Vec::new(), capabilities: json!({}) }
    }

    /// More answers of the model.
    pub fn answers(self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.model.add(answers);
        self
    }

    /// With the toolset that everybody has, not with `lean`.
    pub fn full(self) -> Self {
        Self { toolset: "full", ..self }
    }

    pub fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, Some(value.into())));
        self
    }

    pub fn unset(mut self, name: &'static str) -> Self {
        self.env.push((name, None));
        self
    }

    /// What the editor says that it can do.
    pub fn capable(self, capabilities: Value) -> Self {
        Self { capabilities, ..self }
    }

    /// A file in the workspace.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.as_ref()).unwrap();
        self
    }

    /// The user's settings.
    pub fn settings(self, yaml: &str) -> Self {
        fs::write(self.root.path().join("agent/config.yaml"), yaml).unwrap();
        self
    }

    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// Where sessions work.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Another directory; servers start here, and nothing may come of it.
    pub fn elsewhere(&self) -> PathBuf {
        self.root().join("elsewhere")
    }

    /// What a file of the workspace holds, where it is there.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work().join(path)).ok()
    }

    /// The directories of all sessions.
    pub fn stores(&self) -> Vec<PathBuf> {
        let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let stores = entries(self.root().join("agent/sessions")).flat_map(entries);
        stores.filter(|store| store.join("log.jsonl").is_file()).collect()
    }

    /// The server, not started yet.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-acp"));
        command.args(["--toolset", self.toolset]).args(&self.args).current_dir(self.elsewhere()).env_clear();
        for name in ["PATH", "TMPDIR", "LD_LIBRARY_PATH"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("HOME", self.root().join("home")).env("AGENT_HOME", self.root().join("agent"));
        command.env("LANG", "C.UTF-8").env("AGENT_NO_DISCOVERY", "1");
        command.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", &self.model.url);
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// An editor that has said hello.
    pub fn editor(&self) -> Editor {
        let mut editor = self.silent();
        let hello = json!({"protocolVersion": 1, "clientCapabilities": self.capabilities});
        editor.call("initialize", hello).unwrap();
        editor
    }

    /// An editor that has said nothing yet.
    pub fn silent(&self) -> Editor {
        Editor::start(self.command(), self.work())
    }

    /// An editor with a new session.
    pub fn session(&self) -> (Editor, String) {
        let mut editor = self.editor();
        let session = editor.begin();
        (editor, session)
    }
}

/// A line, in either direction.
#[derive(Debug, Clone)]
pub struct Frame {
    pub from_agent: bool,
    pub at: Instant,
    pub bytes: usize,
    pub message: Value,
}

impl Frame {
    /// The update in it, where it is one.
    pub fn update(&self) -> Option<&Value> {
        (self.message["method"] == "session/update").then(|| &self.message["params"]["update"])
    }

    fn is_answer(&self) -> bool {
        self.from_agent && self.message.get("method").is_none()
    }

    fn is_question(&self) -> bool {
        self.from_agent && self.message["method"] == "session/request_permission"
    }
}

/// A client of the server.
pub struct Editor {
    pub child: Child,
    /// All lines, in the order in which they were sent or taken up.
    pub frames: Vec<Frame>,
    /// The option that every question is answered by; none: the test answers.
    pub consent: Option<&'static str>,
    /// What its buffers hold that is not saved; none: it answers no request for a file.
    pub buffers: Option<BTreeMap<PathBuf, String>>,
    work: PathBuf,
    stdin: Option<ChildStdin>,
    lines: Receiver<(Instant, String)>,
    stderr: Option<JoinHandle<String>>,
    next: u64,
    answered: Vec<Value>,
    reading: Arc<AtomicU8>,
}

const READS: u8 = 0;
const PAUSES: u8 = 1;
const STOPPED: u8 = 2;

impl Editor {
    fn start(mut command: Command, work: PathBuf) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let (stdout, mut errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let reading = Arc::new(AtomicU8::new(READS));
        let reads = reading.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if sender.send((Instant::now(), line)).is_err() {
                    break;
                }
                while reads.load(Ordering::Relaxed) == PAUSES {
                    thread::sleep(Duration::from_millis(5));
                }
                if reads.load(Ordering::Relaxed) == STOPPED {
                    break;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        let (stdin, stderr) = (child.stdin.take(), Some(stderr));
        let (frames, answered) = (Vec::new(), Vec::new());
        Self { child, frames, consent: None, buffers: None, work, stdin, lines, stderr, next: 0, answered, reading }
    }

    /// Sends a line as it is.
    pub fn line(&mut self, line: &str) {
        let message = serde_json::from_str(line).unwrap_or_else(|_| json!({"no JSON": line}));
        self.frames.push(Frame { from_agent: false, at: Instant::now(), bytes: line.len(), message });
        let stdin = self.stdin.as_mut().unwrap();
        // A server that is gone is what some tests are about.
        let _ = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
    }

    pub fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    /// Sends a request, and gives its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: impl Borrow<Value>) -> Result<Value, Value> {
        let id = self.request(method, params.borrow());
        self.answer(id)
    }

    /// Sends a request that fails, and gives the code and the whole error.
    #[track_caller]
    pub fn fails(&mut self, method: &str, params: impl Borrow<Value>) -> (i64, Value) {
        let error = self.call(method, params).unwrap_err();
        (error["code"].as_i64().unwrap(), error)
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let frame = self.until(&format!("an answer to {id}"), |f| f.is_answer() && f.message["id"] == id);
        match frame.message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame.message["result"].clone()),
        }
    }

    /// Takes up the next line. None where none comes in time, or the server has closed the stream.
    fn next(&mut self, time: Duration) -> Result<(), RecvTimeoutError> {
        let (at, line) = self.lines.recv_timeout(time)?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "125: every line is a message: {line}");
        let frame = Frame { from_agent: true, at, bytes: line.len(), message };
        let question = frame.is_question().then(|| frame.message.clone());
        self.answers_for_file(&frame.message);
        self.frames.push(frame);
        if let (Some(question), Some(option)) = (question, self.consent) {
            self.choose(&question, option);
        }
        Ok(())
    }

    /// Reads and writes its buffers, where that is asked of it.
    fn answers_for_file(&mut self, request: &Value) {
        let Some(buffers) = &mut self.buffers else { return };
        let path = || PathBuf::from(request["params"]["path"].as_str().unwrap());
        let mut answer = match request["method"].as_str() {
            Some("fs/read_text_file") => match buffers.get(&path()) {
                Some(text) => json!({"result": {"content": text}}),
                None => json!({"error": {"code": -32002, "message": "no such buffer"}}),
            },
            Some("fs/write_text_file") => {
                let text = request["params"]["content"].as_str().unwrap();
                fs::write(path(), text).unwrap();
                buffers.insert(path(), text.to_owned());
                json!({"result": {}})
            }
            _ => return,
        };
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        self.send(&answer);
    }

    /// Waits for a line, from the first that ever came on.
    #[track_caller]
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        self.until_from(0, what, wanted)
    }

    /// Waits for a line, from this one on.
    #[track_caller]
    pub fn until_from(&mut self, from: usize, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        let (end, mut at) = (Instant::now() + PATIENCE, from);
        loop {
            while let Some(frame) = self.frames.get(at) {
                if wanted(frame) {
                    return frame.clone();
                }
                at += 1;
            }
            let left = end.saturating_duration_since(Instant::now());
            if let Err(why) = self.next(left) {
                let last = &self.frames[self.frames.len().saturating_sub(12)..];
                let last: Vec<String> = last.iter().map(|f| shortened(&f.message)).collect();
                panic!("waiting for {what}: {why}; the last lines:\n{}", last.join("\n"));
            }
        }
    }

    /// Waits for an update of this kind.
    #[track_caller]
    pub fn update(&mut self, kind: &str) -> Value {
        let frame = self.until(kind, |f| f.update().is_some_and(|update| update["sessionUpdate"] == kind));
        frame.update().unwrap().clone()
    }

    /// Nothing comes for a while.
    #[track_caller]
    pub fn hears_nothing(&mut self) {
        let before = self.frames.len();
        let came = self.next(SILENCE);
        assert!(came.is_err(), "{}", shortened(&self.frames[before].message));
    }

    /// Takes up what comes until this is true.
    #[track_caller]
    pub fn until_true(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < end, "{what} did not come true");
            let _ = self.next(Duration::from_millis(10));
        }
    }

    /// Takes up what comes until a command of this line runs.
    #[track_caller]
    pub fn runs(&mut self, command: &str) {
        self.until_true(command, || lives(command));
    }

    /// Whether a question was taken back.
    pub fn took_back(&self, question: &Value) -> bool {
        let id = &question["id"];
        self.frames.iter().any(|f| {
            f.from_agent && f.message["method"] == "$/cancel_request" && f.message["params"]["requestId"] == *id
        })
    }

    /// Takes up what comes until nothing comes for a while.
    pub fn settle(&mut self) {
        while self.next(SILENCE).is_ok() {}
    }

    // ---- Sessions and turns

    /// A new session in the workspace; its menu has come.
    #[track_caller]
    pub fn begin(&mut self) -> String {
        let work = self.work.clone();
        self.begin_in(&work)
    }

    #[track_caller]
    pub fn begin_in(&mut self, cwd: &Path) -> String {
        let new = self.call("session/new", json!({"cwd": cwd, "mcpServers": []})).unwrap();
        let session = new["sessionId"].as_str().unwrap().to_owned();
        let menu = |f: &Frame| {
            f.message["params"]["sessionId"] == *session
                && f.update().is_some_and(|update| update["sessionUpdate"] == "available_commands_update")
        };
        self.until("the menu", menu);
        session
    }

    /// The parameters of a request that opens this session again.
    pub fn again(&self, session: &str) -> Value {
        json!({"sessionId": session, "cwd": self.work, "mcpServers": []})
    }

    /// Sends a prompt, and gives its id.
    pub fn prompts(&mut self, session: &str, text: &str) -> u64 {
        self.prompts_blocks(session, &json!([{"type": "text", "text": text}]))
    }

    pub fn prompts_blocks(&mut self, session: &str, blocks: &Value) -> u64 {
        self.request("session/prompt", &json!({"sessionId": session, "prompt": blocks}))
    }

    /// A whole turn.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> Turn {
        let id = self.prompts(session, text);
        self.turn(id)
    }

    /// Waits for the end of a turn.
    #[track_caller]
    pub fn turn(&mut self, id: u64) -> Turn {
        let answer = self.answer(id);
        let sent =
            self.frames.iter().position(|f| !f.from_agent && f.message["id"] == id && f.message["method"].is_string());
        let (sent, end) =
            (sent.unwrap(), self.frames.iter().position(|f| f.is_answer() && f.message["id"] == id).unwrap());
        let session = self.frames[sent].message["params"]["sessionId"].clone();
        let own = self.frames[sent..end].iter().filter(|f| f.message["params"]["sessionId"] == session);
        let frames: Vec<Frame> = own.cloned().collect();
        let updates = frames.iter().filter_map(|f| f.update().cloned()).collect();
        let questions = frames.iter().filter(|f| f.is_question()).map(|f| f.message["params"].clone()).collect();
        Turn { answer, updates, questions, frames }
    }

    /// The next question that is not answered yet.
    #[track_caller]
    pub fn question(&mut self) -> Value {
        let answered = self.answered.clone();
        let frame = self.until("a question", |f| f.is_question() && !answered.contains(&f.message["id"]));
        self.answered.push(frame.message["id"].clone());
        frame.message
    }

    /// Answers a question by an option.
    pub fn choose(&mut self, question: &Value, option: &str) {
        self.reply(question, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    /// Answers a request of the server.
    pub fn reply(&mut self, question: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    }

    pub fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", &json!({"sessionId": session}));
    }

    // ---- The end

    /// Stops reading for a while.
    pub fn pauses_reading(&self, pauses: bool) {
        self.reading.store(if pauses { PAUSES } else { READS }, Ordering::Relaxed);
    }

    /// Closes its end of the server's stdout, behind the next line.
    pub fn stops_reading(&self) {
        self.reading.store(STOPPED, Ordering::Relaxed);
    }

    /// Closes the server's stdin.
    pub fn hangs_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the server, and gives how long it took and what it told on stderr.
    #[track_caller]
    pub fn ended(&mut self) -> (Duration, String) {
        let begun = Instant::now();
        let child = &mut self.child;
        until("the end of the server", || child.try_wait().unwrap().is_some());
        let took = begun.elapsed();
        (took, self.stderr.take().map(|text| text.join().unwrap()).unwrap_or_default())
    }

    /// Ends it, and gives what it told on stderr.
    #[track_caller]
    pub fn end(mut self) -> String {
        self.hangs_up();
        self.ended().1
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.stdin = None;
        for _ in 0..100 {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shortened(message: &Value) -> String {
    message.to_string().chars().take(400).collect()
}

/// What came between a prompt and its answer.
#[derive(Debug)]
pub struct Turn {
    pub answer: Result<Value, Value>,
    pub updates: Vec<Value>,
    /// The parameters of the questions.
    pub questions: Vec<Value>,
    pub frames: Vec<Frame>,
}

impl Turn {
    /// Why it ended.
    #[track_caller]
    pub fn stop(&self) -> &str {
        self.answer.as_ref().unwrap()["stopReason"].as_str().unwrap()
    }

    /// The updates of a kind.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// What the agent said, in one.
    pub fn said(&self) -> String {
        said(&self.updates, "agent_message_chunk")
    }

    /// The calls, as they were told first.
    pub fn calls(&self) -> Vec<&Value> {
        self.of("tool_call")
    }

    /// The states that a call went through.
    pub fn statuses(&self, call: &Value) -> Vec<&str> {
        let own = self.updates.iter().filter(|update| update["toolCallId"] == call["toolCallId"]);
        own.filter_map(|update| {
            update["status"].as_str().or((update["sessionUpdate"] == "tool_call").then_some("pending"))
        })
        .collect()
    }

    /// The last update of a call.
    #[track_caller]
    pub fn end_of(&self, call: &Value) -> &Value {
        let own = |update: &&Value| {
            update["sessionUpdate"] == "tool_call_update" && update["toolCallId"] == call["toolCallId"]
        };
        self.updates.iter().rev().find(own).unwrap()
    }

    /// The only call, and its end.
    #[track_caller]
    pub fn call(&self) -> (&Value, &Value) {
        let calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        (calls[0], self.end_of(calls[0]))
    }
}

/// What these updates say, in one.
pub fn said(updates: &[Value], kind: &str) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// The texts in what a call shows.
pub fn text_of(call: &Value) -> String {
    let content = call["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    content.iter().filter_map(|part| part["content"]["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The diffs in what a call shows.
pub fn diffs_of(call: &Value) -> Vec<&Value> {
    call["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "diff").collect()
}
