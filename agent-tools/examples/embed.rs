//! The tools in a program of one's own, without the agent: declare them, and answer calls.
//!
//! Run it in a directory of yours: `cargo run -p agent-tools --example embed`.

use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, ToolContext, dispatch};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = tools(Toolset::Full, &Parts::of(Toolset::Full));
    // What goes into your request to the model.
    for declaration in tools.declarations() {
        println!("{}: {}", declaration.name, declaration.schema);
    }
    // Whatever the default mode does not cover is refused, since nobody can be asked here.
    let cx = ToolContext::new(std::env::current_dir()?, Gate::new(Mode::DEFAULT, Permissions::Auto));
    // What came back from it.
    let calls = [
        Call::new("1", "Read", r#"{"path": "Cargo.toml", "limit": 3}"#),
        Call::new("2", "Grep", r#"{"pattern": "name", "glob": "*.toml"}"#),
        Call::new("3", "Read", r#"{"path": "/etc/shadow"}"#),
    ];
    for call in &calls {
        let output = dispatch(&tools, call, &cx).await;
        println!("\n{} {} -> {:?}\n{}", call.name, call.arguments, output.status, output.text());
    }
    Ok(())
}
