//! Two tools of one's own beside the built-in ones: a closure, and a type that implements `Tool`.
//!
//! `cargo run -p agent-tools --example custom_tool`

use agent_tools::policy::{Mode, Open, Rights, Zone, zone::locate};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{
    Call, CallKind, Declaration, Needs, Outline, Permit, Prepared, Tool, ToolContext, ToolError, ToolOutput, dispatch,
    simple,
};
use async_trait::async_trait;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    /// What is added up.
    numbers: Vec<f64>,
}

/// Counts the lines of a file of the working directory.
struct CountLines;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Which {
    /// The file.
    path: String,
}

#[async_trait]
impl Tool for CountLines {
    type Input = Which;
    type Work = usize;

    fn declaration(&self) -> Declaration {
        Declaration::of::<Which>("count_lines", "Counts the lines of a file.")
    }

    fn outline(&self, input: &Which, cx: &ToolContext) -> Outline {
        let needs = Needs::mode(Mode::NONE.with(Zone::Workspace, Rights::READ));
        Outline::new(CallKind::Read, &input.path).at(cx.place.absolute(&input.path), None).needing(needs)
    }

    async fn prepare(&self, input: Which, cx: &ToolContext) -> Result<Prepared<usize>, ToolError> {
        let mut opened =
            cx.files.open(&locate(&input.path, &cx.place).resolved).await.map_err(|e| cannot(&input.path, e))?;
        let mut text = String::new();
        opened.reader.read_to_string(&mut text).map_err(|e| cannot(&input.path, e))?;
        Ok(Prepared::new(text.lines().count()))
    }

    async fn run(&self, lines: usize, _permit: &Permit<'_>, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::ok(format!("{lines} lines")))
    }
}

fn cannot(path: &str, error: std::io::Error) -> ToolError {
    ToolError::new(format!("cannot read {path}")).because(error)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sum = simple("sum", "Adds numbers up.", Mode::NONE, |input: Sum, _cx| async move {
        Ok(input.numbers.iter().sum::<f64>().to_string())
    });
    let tools = tools(Toolset::Lean, &Parts::of(Toolset::Lean)).with(sum).with(CountLines);
    let cx = ToolContext::new(std::env::current_dir()?, Open);
    for (name, arguments) in [("sum", r#"{"numbers": [1, 2, 39]}"#), ("count_lines", r#"{"path": "Cargo.toml"}"#)] {
        println!("{}", dispatch(&tools, &Call::new("1", name, arguments), &cx).await.text());
    }
    Ok(())
}
