//! A model server that says what a test wants, in the chat form of OpenAI.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

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

/// The server. It lives as long as the test's process; its thread waits for connections that no longer come.
#[derive(Clone)]
pub struct Model {
    pub url: String,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let model = Self { url, answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() };
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

    /// The bodies of the requests so far.
    /// More answers.
    pub fn add(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    fn serve(&self, mut socket: TcpStream) -> Option<()> {
        let body = request(&mut socket)?;
        self.asked.lock().unwrap().push(body);
        let next = self.answers.lock().unwrap().pop_front();
        let next = next.unwrap_or_else(|| Answer::Http("400 Bad Request", "text/plain", "no answer left".into()));
        self.answer(&mut socket, next)
    }

    fn answer(&self, socket: &mut TcpStream, answer: Answer) -> Option<()> {
        match answer {
            Answer::Http(status, kind, body) => {
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                socket.write_all((head + &body).as_bytes()).ok()
            }
            Answer::Says(words) => stream(socket, &words, &[], true),
            Answer::Calls(calls) => stream(socket, &[], &calls, true),
            Answer::SaysAndCalls(words, calls) => stream(socket, &[words], &calls, true),
            Answer::Stalls(words) => {
                stream(socket, &[words], &[], false)?;
                socket.read(&mut [0]).ok().map(|_| ())
            }
        }
    }
}

fn request(socket: &mut TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(socket);
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
    serde_json::from_slice(&body).ok()
}

fn stream(socket: &mut TcpStream, words: &[String], calls: &[(String, String)], ends: bool) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).ok()?;
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
    socket.flush().ok()
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
