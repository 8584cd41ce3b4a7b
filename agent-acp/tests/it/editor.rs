//! The one helper: an editor that starts the server and talks to it.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::{Answer, Model, says};

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the person at the editor answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Allow,
    Always,
    Reject,
    Cancelled,
    /// An option that was not offered.
    Bogus,
    /// The editor itself fails.
    Error,
    /// Not yet.
    Hold,
}

/// A server that runs, and the editor's end of it.
pub struct Editor {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// The editor reads no more while this is set.
    deaf: Arc<AtomicBool>,
    /// All that came in, in its order.
    pub log: Vec<Value>,
    /// Questions that wait: their ids and parameters.
    pub asked: VecDeque<(Value, Value)>,
    pub policy: Policy,
    /// What the editor has of files, by their paths: unsaved buffers.
    pub buffers: HashMap<String, String>,
    pub model: Model,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    pub home: Arc<TempDir>,
    pub work: Arc<TempDir>,
    pub caps: Value,
    next: u64,
    pub session: String,
}

/// What is started.
pub struct Start {
    pub toolset: &'static str,
    pub args: Vec<String>,
    pub env: Vec<(&'static str, String)>,
    pub caps: Value,
    pub home: Arc<TempDir>,
    pub work: Arc<TempDir>,
    pub key: bool,
}

impl Default for Start {
    fn default() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("config.yaml"), "editTools: true\n").unwrap();
        Self {
            toolset: "full",
            args: Vec::new(),
            env: Vec::new(),
            caps: json!({}),
            home: Arc::new(home),
            work: Arc::new(tempfile::tempdir().unwrap()),
            key: true,
        }
    }
}

impl Start {
    pub fn toolset(toolset: &'static str) -> Self {
        Self { toolset, ..Self::default() }
    }

    pub fn caps(self, caps: Value) -> Self {
        Self { caps, ..self }
    }

    pub fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.args.extend(args.map(str::to_owned));
        self
    }

    pub fn settings(self, text: &str) -> Self {
        fs::write(self.home.path().join("config.yaml"), text).unwrap();
        self
    }

    /// Starts it without a word.
    pub fn silent(self, answers: impl IntoIterator<Item = Answer>) -> Editor {
        let answers: Arc<Mutex<VecDeque<Answer>>> = Arc::new(Mutex::new(answers.into_iter().collect()));
        let given = answers.clone();
        let model = Model::minded(move |_| given.lock().unwrap().pop_front().unwrap_or_else(|| says("Nothing more.")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-acp"));
        command
            .args(["--provider", "openai", "--model", "m", "--toolset", self.toolset])
            .args(&self.args)
            .current_dir("/")
            .env("AGENT_HOME", self.home.path())
            .env_remove("OPENAI_BASE_URL")
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("OPENAI_API_KEY")
            .env("AGENT_NO_DISCOVERY", "1")
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if self.key {
            command.env("OPENAI_BASE_URL", &model.url).env("OPENAI_API_KEY", "test-key-0123456789");
        }
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (tell, lines) = channel();
        let deaf = Arc::new(AtomicBool::new(false));
        let is_deaf = deaf.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                while is_deaf.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(10));
                }
                let Ok(line) = line else { break };
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"no_json": line}));
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Editor {
            child,
            stdin,
            lines,
            deaf,
            log: Vec::new(),
            asked: VecDeque::new(),
            policy: Policy::Allow,
            buffers: HashMap::new(),
            model,
            answers,
            home: self.home,
            work: self.work,
            caps: self.caps,
            next: 1,
            session: String::new(),
        }
    }

    /// Starts it and says hello.
    pub fn ready(self, answers: impl IntoIterator<Item = Answer>) -> Editor {
        let mut editor = self.silent(answers);
        editor.hello();
        editor
    }

    /// Starts it, says hello, and opens a session.
    pub fn session(self, answers: impl IntoIterator<Item = Answer>) -> Editor {
        let mut editor = self.ready(answers);
        editor.open();
        editor
    }
}

impl Editor {
    pub fn hello(&mut self) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": self.caps});
        self.call("initialize", params)
    }

    /// A new session in the editor's directory.
    pub fn open(&mut self) -> Value {
        let opened = self.call("session/new", json!({"cwd": self.work.path(), "mcpServers": []}));
        self.session = opened["result"]["sessionId"].as_str().unwrap_or_default().to_owned();
        opened
    }

    /// The model says this next.
    pub fn model_says(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn raw(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        // A server that is gone is what some tests are about.
        let _ = stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush());
    }

    pub fn send(&mut self, message: &Value) {
        self.raw(&format!("{message}\n"));
    }

    pub fn stop_reading(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Sends a request, and gives its id.
    pub fn start(&mut self, method: &str, params: impl Borrow<Value>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params.borrow()}));
        id
    }

    pub fn notify(&mut self, method: &str, params: impl Borrow<Value>) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params.borrow()}));
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: impl Borrow<Value>) -> Value {
        let id = self.start(method, params);
        self.answer(id)
    }

    pub fn prompt_params(&self, text: &str) -> Value {
        json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})
    }

    /// Says something in the session and waits for the end of the turn.
    #[track_caller]
    pub fn prompt(&mut self, text: &str) -> Value {
        self.call("session/prompt", self.prompt_params(text))
    }

    pub fn start_prompt(&mut self, text: &str) -> u64 {
        self.start("session/prompt", self.prompt_params(text))
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        self.until("the answer", |message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for a message; what comes before it is taken up.
    #[track_caller]
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(message) => {
                    self.take(&message);
                    if wanted(&message) {
                        return message;
                    }
                }
                Err(error) => panic!("{what} did not come ({error}): {:#?}", self.log),
            }
        }
    }

    /// Waits for an update of this kind.
    #[track_caller]
    pub fn update(&mut self, kind: &str) -> Value {
        let message = self.until(kind, |message| message["params"]["update"]["sessionUpdate"] == kind);
        message["params"]["update"].clone()
    }

    /// Takes up what comes within this time.
    pub fn wait(&mut self, time: Duration) {
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed()) {
            match self.lines.recv_timeout(left) {
                Ok(message) => self.take(&message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, message: &Value) {
        assert!(message.get("no_json").is_none(), "what is no JSON on stdout: {message}");
        self.log.push(message.clone());
        if message["method"] == "session/request_permission" {
            self.asked.push_back((message["id"].clone(), message["params"].clone()));
            if self.policy != Policy::Hold {
                self.decide(self.policy);
            }
        } else if message["method"] == "fs/read_text_file" {
            let path = message["params"]["path"].as_str().unwrap();
            let content = self.buffers.get(path).cloned().or_else(|| fs::read_to_string(path).ok());
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}});
            self.send(&answer);
        } else if message["method"] == "fs/write_text_file" {
            let (path, content) = (&message["params"]["path"], &message["params"]["content"]);
            let (path, content) = (path.as_str().unwrap().to_owned(), content.as_str().unwrap().to_owned());
            fs::write(&path, &content).unwrap();
            self.buffers.insert(path, content);
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": null}));
        } else if message.get("method").is_some() && message.get("id").is_some() {
            let error = json!({"code": -32601, "message": "no"});
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
    }

    /// Answers the question that has waited longest.
    pub fn decide(&mut self, policy: Policy) -> Value {
        let (id, params) = self.asked.pop_front().unwrap();
        let kind = match policy {
            Policy::Always => "allow_always",
            Policy::Reject => "reject_once",
            _ => "allow_once",
        };
        let options = params["options"].as_array().unwrap();
        let option =
            options.iter().find(|option| option["kind"] == kind).map_or("none", |o| o["optionId"].as_str().unwrap());
        let answer = match policy {
            Policy::Allow | Policy::Always | Policy::Reject => {
                json!({"outcome": {"outcome": "selected", "optionId": option}})
            }
            Policy::Bogus => json!({"outcome": {"outcome": "selected", "optionId": "no-such"}}),
            Policy::Cancelled => json!({"outcome": {"outcome": "cancelled"}}),
            Policy::Error | Policy::Hold => {
                let error = json!({"code": -32603, "message": "the editor failed"});
                self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                return params;
            }
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": answer}));
        params
    }

    /// The updates of the session so far, or those of a kind.
    pub fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.log.iter().filter(|message| message["method"] == "session/update");
        let updates = updates.map(|message| message["params"]["update"].clone());
        updates.filter(|update| kind.is_empty() || update["sessionUpdate"] == kind).collect()
    }

    pub fn said(&self) -> String {
        let chunks = self.updates("agent_message_chunk");
        chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// The states of the calls, in their order.
    pub fn states(&self) -> Vec<String> {
        let all = self.updates("").into_iter();
        let calls = all.filter(|update| update["toolCallId"].is_string() && update["status"].is_string());
        calls.map(|update| update["status"].as_str().unwrap().to_owned()).collect()
    }

    /// The last result that the model was told.
    pub fn told(&self) -> String {
        let asked = self.model.asked();
        let last = asked.iter().rev().find_map(|request| {
            let messages = request["messages"].as_array()?;
            messages.iter().rfind(|message| message["role"] == "tool").cloned()
        });
        last.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
    }

    /// Waits for the end of the server.
    pub fn ends_within(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// The resident memory of the server, in MiB.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.stdin = None;
        if !self.ends_within(Duration::from_secs(3)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The processes that work in a directory and whose command line has this.
pub fn processes(mark: &str, cwd: &Path) -> usize {
    let cwd = cwd.canonicalize().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let state = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let dead = state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
            line.contains(mark) && !dead && fs::read_link(entry.path().join("cwd")).is_ok_and(|dir| dir == cwd)
        })
        .count()
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}
