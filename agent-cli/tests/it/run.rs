//! One run of the program: where, with what, and what came out of it.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::model::{Answer, Model};
use crate::pty::Terminal;

/// The longest that anything may take. Only a test that fails waits for so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats until it comes true.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what} did not come true");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A directory of its own with a home, a workspace and a scripted model; several runs can follow each other in it.
pub struct Test {
    root: TempDir,
    pub model: Model,
    toolset: Option<&'static str>,
    args: Vec<OsString>,
    env: Vec<(String, Option<OsString>)>,
    stdin: Vec<u8>,
}

impl Test {
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for dir in ["home", "agent", "work"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        Self {
            root,
            model: Model::start(answers),
            toolset: Some("lean"),
            args: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
        }
    }

    /// With the toolset that everybody has, not with `lean`.
    pub fn full(self) -> Self {
        Self { toolset: None, ..self }
    }

    /// More answers of the model.
    pub fn answers(self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.model.add(answers);
        self
    }

    pub fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    pub fn unset(mut self, name: &str) -> Self {
        self.env.push((name.into(), None));
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// A file in the workspace.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        write(&self.work().join(path), content.as_ref());
        self
    }

    /// The user's settings.
    pub fn settings(self, yaml: impl AsRef<[u8]>) -> Self {
        write(&self.settings_file(), yaml.as_ref());
        self
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub fn settings_file(&self) -> PathBuf {
        self.root.path().join("agent/config.yaml")
    }

    /// Where all sessions lie.
    pub fn sessions(&self) -> PathBuf {
        self.root.path().join("agent/sessions")
    }

    /// The logs of all sessions, the oldest first.
    pub fn logs(&self) -> Vec<PathBuf> {
        let mut logs = Vec::new();
        for project in entries(&self.sessions()) {
            logs.extend(entries(&project).into_iter().map(|session| session.join("log.jsonl")).filter(|l| l.is_file()));
        }
        logs.sort();
        logs
    }

    /// The only log.
    pub fn log(&self) -> PathBuf {
        let logs = self.logs();
        assert_eq!(logs.len(), 1, "{logs:?}");
        logs[0].clone()
    }

    /// Starts over with other arguments and no input.
    pub fn again<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.clear();
        self.stdin.clear();
        self.args(args)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
        command.args(self.toolset.iter().flat_map(|name| ["--toolset", name]));
        command.args(&self.args).current_dir(self.work()).env_clear();
        for name in ["PATH", "TMPDIR", "LD_LIBRARY_PATH"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("HOME", self.root.path().join("home")).env("AGENT_HOME", self.root.path().join("agent"));
        command.env("TERM", "xterm").env("LANG", "C.UTF-8").env("AGENT_NO_DISCOVERY", "1");
        command.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", &self.model.url);
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs it on pipes to its end.
    pub fn run(&self) -> Outcome {
        self.start().wait()
    }

    /// Starts it on pipes; everything is on stdin.
    pub fn start(&self) -> Piped {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), self.stdin.clone());
        // On a thread: who does not read its input must not hold us up. It may also be gone before it has read all.
        thread::spawn(move || stdin.write_all(&input));
        Piped { stdout: reader(child.stdout.take().unwrap()), stderr: reader(child.stderr.take().unwrap()), child }
    }

    /// Starts it on a terminal.
    pub fn terminal(&self) -> Terminal {
        Terminal::start(self.command())
    }
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).map(|entries| entries.flatten().map(|e| e.path()).collect()).unwrap_or_default()
}

fn reader(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes).unwrap_or_default()
    })
}

/// A run on pipes.
pub struct Piped {
    pub child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

impl Piped {
    pub fn wait(mut self) -> Outcome {
        let code = ended(&mut self.child);
        let (stdout, stderr) = (self.stdout.join().unwrap(), self.stderr.join().unwrap());
        let text = |bytes| String::from_utf8(bytes).expect("all output is UTF-8");
        Outcome { code, stdout: text(stdout), stderr: text(stderr) }
    }
}

/// Waits for the end of a process that was started here. Gives its code; none where a signal ended it.
pub fn ended(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("the program did not end");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What came out of a run.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn stdout(self, text: &str) -> Self {
        assert_eq!(self.stdout, text, "{self:#?}");
        self
    }

    /// stderr has each of these.
    #[track_caller]
    pub fn tells(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "{text:?} is not on stderr of {self:#?}");
        }
        self
    }

    /// stderr has none of these.
    #[track_caller]
    pub fn conceals(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(!self.stderr.contains(text), "{text:?} is on stderr of {self:#?}");
        }
        self
    }

    /// stdout as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e} in {self:#?}"))
    }
}
