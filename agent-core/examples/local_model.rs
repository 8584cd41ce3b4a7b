//! One prompt to the embedded model, with five tools of its own: `local_model WEIGHTS CACHE PROMPT`, in a scratch
//! directory. A try-out of the provider alone; the real tools, and asking before they run, are in the program `agent`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use agent_core::provider::local::{Local, MAX_STEPS};
use agent_core::provider::{Delta, Provider, Request};
use agent_core::{Block, CallResult, Message};
use agent_tools::{Call, Declaration, Part};
use futures_util::StreamExt;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [weights, cache, prompts @ ..] = arguments.as_slice() else { return Err("WEIGHTS CACHE PROMPT".into()) };
    let local = Local::open(Path::new(weights), Some(Path::new(cache)));
    let tools = declarations();
    let tools: Vec<&Declaration> = tools.iter().collect();
    let mut messages = Vec::new();
    for prompt in prompts {
        messages.push(Message::user(prompt));
        turn(&local, &mut messages, &tools).await?;
    }
    Ok(())
}

async fn turn(local: &Local, messages: &mut Vec<Message>, tools: &[&Declaration]) -> Result<(), Box<dyn Error>> {
    for _ in 0..MAX_STEPS {
        let blocks = answer(local, messages, tools).await?;
        let calls: Vec<Arc<Call>> = blocks.iter().filter_map(Block::as_call).cloned().collect();
        messages.push(Message::Assistant(blocks));
        if calls.is_empty() {
            break;
        }
        messages.push(Message::Results(calls.iter().map(|call| run(call)).collect()));
    }
    Ok(())
}

async fn answer(local: &Local, messages: &[Message], tools: &[&Declaration]) -> Result<Vec<Block>, Box<dyn Error>> {
    let begun = Instant::now();
    let mut replies = local.reply(Request::new("", messages, tools)).await?;
    let mut blocks = Vec::new();
    while let Some(delta) = replies.next().await {
        match delta? {
            Delta::Text(text) => print!("{text}"),
            Delta::Block(Block::Call { call }) => {
                eprintln!("\n> {} {}", call.name, call.arguments);
                blocks.push(Block::Call { call });
            }
            Delta::Block(block) => blocks.push(block),
            Delta::Usage(usage) => eprintln!("\n[{usage:?} {:?}]", begun.elapsed()),
            Delta::Thinking(_) => {}
            Delta::Stop(stop) => eprintln!("[{stop:?}]"),
        }
    }
    Ok(blocks)
}

fn declarations() -> Vec<Declaration> {
    let skills = format!(
        "Available skills:{}",
        skills().iter().map(|(name, about)| format!("\n  {name} — {about}")).collect::<String>()
    );
    [("bash", ""), ("read_file", ""), ("write_file", ""), ("edit_file", ""), ("read_skill", skills.as_str())]
        .map(|(name, about)| Declaration { name: name.into(), description: about.into(), schema: Value::Null })
        .to_vec()
}

/// The skills in `./skills`, each with its first line.
fn skills() -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir("skills") else { return Vec::new() };
    let one = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        let about = text.lines().find_map(|l| l.strip_prefix("description: "))?.to_owned();
        Some((path.file_stem()?.to_str()?.to_owned(), about))
    };
    entries.flatten().filter_map(|e| one(e.path())).collect()
}

fn run(call: &Call) -> CallResult {
    let given: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let path = text(&given, "path");
    let outcome = match call.name.as_str() {
        "bash" => bash(&text(&given, "command")),
        "read_file" => {
            fs::read_to_string(&path).map_err(|_| format!("{path} does not exist. Create it with write_file"))
        }
        "write_file" => write(&path, &text(&given, "content")),
        "edit_file" => edit(&path, &text(&given["edits"][0], "old"), &text(&given["edits"][0], "new")),
        "read_skill" => fs::read_to_string(format!("skills/{}.md", text(&given, "name"))).map_err(|e| e.to_string()),
        other => Err(format!("Unknown tool \"{other}\"")),
    };
    let failed = outcome.is_err();
    let text = outcome.unwrap_or_else(|e| e);
    eprintln!("{text}");
    CallResult { id: call.id.clone(), name: call.name.clone(), failed, parts: vec![Part::text(text)] }
}

fn bash(command: &str) -> Result<String, String> {
    let output =
        Command::new("bash").args(["-c", &format!("exec 2>&1; {command}")]).output().map_err(|e| e.to_string())?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        agent_tools::text::append_line(&mut text, &format!("[exit code: exit status {code}]"));
    }
    Ok(text)
}

fn write(path: &str, content: &str) -> Result<String, String> {
    let parent = Path::new(path).parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).and_then(|()| fs::write(path, content)).map_err(|e| e.to_string())?;
    Ok(format!("Created {path} ({} lines)", content.lines().count()))
}

fn edit(path: &str, old: &str, new: &str) -> Result<String, String> {
    let before = fs::read_to_string(path).map_err(|_| format!("{path} does not exist. Create it with write_file"))?;
    match before.matches(old).count() {
        0 => Err(format!("edits[0]: old was not found in {path}; nothing was written")),
        1 => write(path, &before.replace(old, new)).map(|_| format!("{path}: 1 edit applied, +1 -1 lines")),
        n => Err(format!("edits[0]: old is ambiguous in {path}: found {n} times; nothing was written")),
    }
}
