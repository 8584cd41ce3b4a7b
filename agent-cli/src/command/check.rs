//! `agent check`: what a shell command needs, and whether it may run.

use agent_tools::policy::{Permissions, Verdict, shell, zone_name};
use agent_tools::{CallKind, Finding, Outline};
use serde_json::json;

use super::{print, print_json};
use crate::error::{CliError, Exit};
use crate::setup::Setup;

/// Judges a command and prints the findings. Exit 0: it may run.
///
/// # Errors
/// Output that cannot be written.
pub fn run(setup: &Setup, command: &str, as_json: bool) -> Result<Exit, CliError> {
    let needs = shell::judge(command, &setup.place(None));
    let rules = setup.gate(Permissions::Auto).rules();
    let outline = Outline::new(CallKind::Command, command).needing(needs);
    let decision = match rules.judge(&outline) {
        Verdict::Allow => "allow",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny(_) => "block",
    };
    let needs = &outline.needs;
    let mut reasons: Vec<String> = needs.findings.iter().map(reason).collect();
    reasons.extend(needs.unsure.iter().map(|why| format!("could not be judged: {why}")));
    reasons.extend(needs.destroys.iter().map(|what| format!("destroys work: {what}")));
    if as_json {
        print_json(&json!({
            "required": needs.mode, "allowed": rules.ceiling, "decision": decision,
            "unsure": needs.unsure.is_some(), "reasons": reasons,
        }))?;
    } else {
        let reasons: String = reasons.iter().map(|r| format!("  {r}\n")).collect();
        print(&format!("{decision}: needs {}, allowed {}\n{reasons}", needs.mode, rules.ceiling))?;
    }
    Ok(if decision == "allow" { Exit::Done } else { Exit::Failed })
}

fn reason(finding: &Finding) -> String {
    match finding.zone {
        Some(zone) => format!("{}: {} in zone {}", finding.what, finding.rights, zone_name(zone)),
        None => format!("{}: needs nothing", finding.what),
    }
}
