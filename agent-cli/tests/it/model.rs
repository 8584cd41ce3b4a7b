//! A model server that says what a test wants, in the chat form of OpenAI or as Anthropic's messages.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::strict;

/// What the model answers to one request.
#[derive(Clone)]
pub enum Answer {
    /// Words, a delta each.
    Says(Vec<String>),
    /// Calls of tools: name and arguments.
    Calls(Vec<(String, String)>),
    /// Words before a call.
    SaysAndCalls(String, Vec<(String, String)>),
    /// Some words, and then nothing more until the connection is closed.
    Stalls(String),
    /// Another answer than a stream: status, type, body.
    Http(&'static str, &'static str, String),
    /// The same after so long.
    Late(Duration, Box<Answer>),
}

/// The model says this.
pub fn says(text: &str) -> Answer {
    Answer::Says(text.split_inclusive(' ').map(str::to_owned).collect())
}

/// The model calls `bash`.
pub fn bash(command: &str) -> Answer {
    calls("bash", &json!({"command": command}))
}

/// The model calls a tool.
pub fn calls(name: &str, arguments: &Value) -> Answer {
    Answer::Calls(vec![(name.into(), arguments.to_string())])
}

/// The model calls several tools at once.
pub fn all(calls: &[(&str, Value)]) -> Answer {
    Answer::Calls(calls.iter().map(|(name, arguments)| ((*name).to_owned(), arguments.to_string())).collect())
}

/// A model of toolset full that is told of the `main task` and hands on a task, in which this command is run.
#[allow(dead_code, reason = "for the tests of agent-acp")]
pub fn delegates(request: &Value, command: &str) -> Answer {
    let last = request["messages"].as_array().unwrap().last().unwrap().to_string();
    if last.contains("main task") {
        calls("SubAgent", &json!({"prompt": "sub task", "description": "helper"}))
    } else if last.contains("sub task") {
        calls("Bash", &json!({"command": command}))
    } else {
        says("done")
    }
}

/// What a model answers to a request, whatever came before.
type Mind = Arc<dyn Fn(&Value) -> Answer + Send + Sync>;

/// The server. It lives as long as the test's process; its thread waits for connections that no longer come.
#[derive(Clone)]
pub struct Model {
    pub url: String,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Value>>>,
    mind: Option<Mind>,
    faults: Arc<Mutex<Vec<String>>>,
    models: Arc<Mutex<Option<Vec<String>>>>,
}

impl Model {
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(answers.into_iter().collect(), None)
    }

    /// A model that answers each request by itself, and refuses one that a strict server would refuse.
    pub fn minded(mind: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(VecDeque::new(), Some(Arc::new(mind)))
    }

    fn with(answers: VecDeque<Answer>, mind: Option<Mind>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(answers));
        let model = Self { url, answers, asked: Arc::default(), mind, faults: Arc::default(), models: Arc::default() };
        let server = model.clone();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let server = server.clone();
                // A client that goes away in the middle is what some tests are about.
                thread::spawn(move || server.serve(socket));
            }
        });
        model
    }

    /// What was wrong with requests.
    pub fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap().clone()
    }

    /// The models that it says it has, beside its answers.
    #[allow(dead_code, reason = "for the tests of agent-acp")]
    pub fn has(&self, models: &[&str]) {
        *self.models.lock().unwrap() = Some(models.iter().map(|name| (*name).to_owned()).collect());
    }

    /// More answers.
    pub fn add(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// The bodies of the requests so far.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    fn serve(&self, mut socket: TcpStream) -> Option<()> {
        let (path, body) = request(&mut socket)?;
        let form = if path.ends_with("/messages") { Form::Messages } else { Form::Chat };
        // Who only asks what there is sends none.
        if !body.is_null() {
            self.asked.lock().unwrap().push(body.clone());
        } else if let Some(models) = &*self.models.lock().unwrap() {
            let list: Vec<Value> = models.iter().map(|name| json!({"id": name})).collect();
            let list = json!({"data": list}).to_string();
            return answer(&mut socket, Answer::Http("200 OK", "application/json", list), form);
        }
        let next = match &self.mind {
            Some(mind) => Some(self.refusal(form, &body).unwrap_or_else(|| mind(&body))),
            None => self.answers.lock().unwrap().pop_front(),
        };
        let next = next.unwrap_or_else(|| Answer::Http("400 Bad Request", "text/plain", "no answer left".into()));
        answer(&mut socket, next, form)
    }

    /// What a strict server says of a request that it does not take.
    fn refusal(&self, form: Form, body: &Value) -> Option<Answer> {
        let checked = match form {
            Form::Chat => strict::chat(body),
            Form::Messages => strict::messages(body),
        };
        let fault = checked.err()?;
        self.faults.lock().unwrap().push(fault.clone());
        Some(Answer::Http("400 Bad Request", "text/plain", fault))
    }
}

/// The form of a request and its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Chat,
    Messages,
}

fn answer(socket: &mut TcpStream, given: Answer, form: Form) -> Option<()> {
    match given {
        Answer::Http(status, kind, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            socket.write_all((head + &body).as_bytes()).ok()
        }
        Answer::Late(time, late) => {
            thread::sleep(time);
            answer(socket, *late, form)
        }
        Answer::Says(words) => stream(socket, form, &words, &[], true),
        Answer::Calls(calls) => stream(socket, form, &[], &calls, true),
        Answer::SaysAndCalls(words, calls) => stream(socket, form, &[words], &calls, true),
        Answer::Stalls(words) => {
            stream(socket, form, &[words], &[], false)?;
            socket.read(&mut [0]).ok().map(|_| ())
        }
    }
}
/// The path and the body of a request.
fn request(socket: &mut TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(socket);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).ok()? };
    Some((path, body))
}

fn stream(socket: &mut TcpStream, form: Form, words: &[String], calls: &[(String, String)], ends: bool) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).ok()?;
    match form {
        Form::Chat => chat(socket, words, calls, ends),
        Form::Messages => messages(socket, words, calls),
    }?;
    socket.flush().ok()
}

fn messages(socket: &mut TcpStream, words: &[String], calls: &[(String, String)]) -> Option<()> {
    let mut tell = |data: Value| {
        let name = data["type"].as_str().unwrap_or_default();
        socket.write_all(format!("event: {name}\ndata: {data}\n\n").as_bytes()).ok()
    };
    tell(json!({"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1}}}))?;
    let delta = |word: &String| json!({"type": "text_delta", "text": word});
    let text = (!words.is_empty()).then(|| (json!({"type": "text", "text": ""}), words.iter().map(delta).collect()));
    let uses = calls.iter().enumerate().map(|(at, (name, arguments))| {
        let start = json!({"type": "tool_use", "id": format!("call_{at}"), "name": name, "input": {}});
        (start, vec![json!({"type": "input_json_delta", "partial_json": arguments})])
    });
    for (index, (start, deltas)) in text.into_iter().chain(uses).enumerate() {
        tell(json!({"type": "content_block_start", "index": index, "content_block": start}))?;
        for delta in deltas {
            tell(json!({"type": "content_block_delta", "index": index, "delta": delta}))?;
        }
        tell(json!({"type": "content_block_stop", "index": index}))?;
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    tell(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}))?;
    tell(json!({"type": "message_stop"}))
}

fn chat(socket: &mut TcpStream, words: &[String], calls: &[(String, String)], ends: bool) -> Option<()> {
    for word in words {
        event(socket, &json!({"choices": [{"index": 0, "delta": {"content": word}}]}))?;
    }
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let call = json!({"index": index, "id": format!("call_{index}"), "type": "function",
            "function": {"name": name, "arguments": arguments}});
        event(socket, &json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))?;
    }
    if ends {
        let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        event(socket, &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))?;
        event(socket, &json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}))?;
        socket.write_all(b"data: [DONE]\n\n").ok()?;
    }
    Some(())
}

fn event(socket: &mut TcpStream, event: &Value) -> Option<()> {
    socket.write_all(format!("data: {event}\n\n").as_bytes()).ok()
}

/// The content of the last message of a request, which is what a call came to.
pub fn last_content(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    text(&messages.last().unwrap()["content"])
}

/// The roles and texts of a request's messages, without the system prompt.
pub fn conversation(request: &Value) -> Vec<(String, String)> {
    let messages = request["messages"].as_array().unwrap();
    let told = messages.iter().filter(|m| m["role"] != "system" && m["role"] != "developer");
    told.map(|m| (m["role"].as_str().unwrap().to_owned(), text(&m["content"]))).collect()
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
        _ => String::new(),
    }
}
