//! `agent tool`: lists the tools, and calls them through the gate as a model's calls are.

use std::sync::Arc;

use agent_tools::builtin::{Disk, own_files};
use agent_tools::policy::Permissions;
use agent_tools::{Alone, Call, Jobs, Status, ToolContext, ToolOutput, Tools, dispatch};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use super::{print, print_json};
use crate::error::{CliError, Exit};
use crate::setup::Setup;

/// Prints the tools that would be declared.
///
/// # Errors
/// Output that cannot be written.
pub fn list(setup: &Setup, as_json: bool) -> Result<(), CliError> {
    let tools = setup.tools_alone();
    if as_json {
        return print_json(&json!(tools.declarations().collect::<Vec<_>>()));
    }
    let text: String = tools
        .declarations()
        .map(|d| format!("{}\n  {}\n  {}\n\n", d.name, d.description.replace('\n', "\n  "), d.schema))
        .collect();
    print(&text)
}

/// Calls one tool.
///
/// # Errors
/// Input that cannot be read, output that cannot be written.
pub async fn call(setup: &Setup, name: &str, input: &str, as_json: bool) -> Result<Exit, CliError> {
    let input = if input == "-" { stdin().await? } else { input.to_owned() };
    let bench = Bench::new(setup)?;
    let output = bench.call(&Call::new("1", name, input)).await;
    if as_json {
        print_json(&shown(&output))?;
    } else {
        let text = output.text();
        print(&if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" })?;
    }
    Ok(if output.status == Status::Ok { Exit::Done } else { Exit::Failed })
}

/// One call of a batch: a line of stdin.
#[derive(Deserialize)]
struct Line<'a> {
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// Calls the tools that stdin names, one JSON object a line, in one session.
///
/// # Errors
/// Input that cannot be read, output that cannot be written.
pub async fn batch(setup: &Setup) -> Result<Exit, CliError> {
    let bench = Bench::new(setup)?;
    let mut exit = Exit::Done;
    let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
    let mut number = 0;
    while let Some(line) = lines.next_segment().await.map_err(reading)? {
        number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let output = answer(&bench, number, &line).await;
        if output.status != Status::Ok {
            exit = Exit::Failed;
        }
        print_json(&shown(&output))?;
    }
    Ok(exit)
}

async fn answer(bench: &Bench, number: usize, line: &[u8]) -> ToolOutput {
    let no_call = |why: &str| {
        let text =
            format!("line {number} is no call: {why}. Write one JSON object a line: {{\"name\": …, \"input\": {{…}}}}");
        ToolOutput::new(Status::Failed, text)
    };
    if !line.trim_ascii().starts_with(b"{") {
        return no_call("it is no JSON object");
    }
    match serde_json::from_slice::<Line<'_>>(line) {
        Ok(Line { name, input }) => {
            let arguments = input.map_or("{}", RawValue::get);
            bench.call(&Call::new(number.to_string(), name, arguments)).await
        }
        Err(e) => no_call(&e.to_string()),
    }
}

async fn stdin() -> Result<String, CliError> {
    let mut text = String::new();
    tokio::io::stdin().read_to_string(&mut text).await.map_err(reading)?;
    Ok(text)
}

#[expect(clippy::needless_pass_by_value, reason = "this is how map_err hands it in")]
fn reading(error: std::io::Error) -> CliError {
    CliError::failed(format!("reading calls from stdin: {error}"))
}

fn shown(output: &ToolOutput) -> Value {
    json!({"status": output.status, "text": output.text(), "details": output.details})
}

/// The tools with nobody around, and a session directory that is removed at the end.
pub(super) struct Bench {
    tools: Tools,
    cx: ToolContext,
    // Dropped last, when no call writes there any more.
    _store: TempDir,
}

impl Bench {
    pub(super) fn new(setup: &Setup) -> Result<Self, CliError> {
        let store = setup.temporary_store()?;
        let cx = ToolContext {
            place: Arc::new(setup.place(Some(store.path().to_owned()))),
            files: Arc::new(Disk),
            policy: Arc::new(setup.gate(Permissions::Auto)),
            host: Arc::new(Alone),
            jobs: Arc::<Jobs>::default(),
            permitted: None,
        };
        Ok(Self { tools: setup.tools_alone(), cx, _store: store })
    }

    /// Without these tools.
    pub(super) fn without(mut self, names: &[&str]) -> Self {
        self.tools = names.iter().fold(self.tools.clone(), |tools, name| tools.without(name));
        self
    }

    /// The tools.
    pub(super) fn tools(&self) -> &Tools {
        &self.tools
    }

    pub(super) async fn call(&self, call: &Call) -> ToolOutput {
        self.cx.policy.planning(own_files::open_draft(&self.cx.place));
        dispatch(&self.tools, call, &self.cx).await
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.cx.jobs.end_all();
    }
}
