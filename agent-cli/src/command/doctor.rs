//! `agent doctor`: tries the model and what is needed here, and says what is wrong.

mod here;
mod hint;
mod remote;
mod tried;

use serde_json::{Value, json};

use super::{print, print_json};
use crate::error::{CliError, Exit};
use crate::setup::Setup;

/// Tries everything, a line each.
///
/// # Errors
/// Output that cannot be written.
pub async fn run(setup: &Setup, as_json: bool) -> Result<Exit, CliError> {
    let mut report = Report { checks: Vec::new(), as_json };
    here::settings(setup, &mut report)?;
    remote::model(setup, &mut report).await?;
    here::place(setup, &mut report)?;
    report.end()
}

/// What was tried so far.
struct Report {
    checks: Vec<Check>,
    as_json: bool,
}

/// What came of one thing that was tried.
struct Check {
    name: &'static str,
    status: Status,
    /// What was found, in plain words.
    text: String,
    /// What can be done about it.
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Warn,
    Fail,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Check {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, text: text.into(), hint: None }
    }

    fn warn(name: &'static str, text: impl Into<String>) -> Self {
        Self { status: Status::Warn, ..Self::ok(name, text) }
    }

    fn fail(name: &'static str, text: impl Into<String>) -> Self {
        Self { status: Status::Fail, ..Self::ok(name, text) }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        self
    }

    fn line(&self) -> String {
        let hint = self.hint.iter().map(|hint| format!("      hint: {hint}\n")).collect::<String>();
        format!("{:4}  {}: {}\n{hint}", self.status.word(), self.name, self.text)
    }

    fn json(&self) -> Value {
        json!({"check": self.name, "status": self.status.word(), "text": self.text, "hint": self.hint})
    }
}

impl Report {
    /// Takes down what came of something, and tells a person at once: some of it takes its time.
    fn add(&mut self, check: Check) -> Result<(), CliError> {
        let told = if self.as_json { Ok(()) } else { print(&check.line()) };
        self.checks.push(check);
        told
    }

    fn end(self) -> Result<Exit, CliError> {
        let count = |status| self.checks.iter().filter(|check| check.status == status).count();
        let (failed, warned) = (count(Status::Fail), count(Status::Warn));
        if self.as_json {
            let checks: Vec<Value> = self.checks.iter().map(Check::json).collect();
            print_json(&json!({"ok": failed == 0, "checks": checks}))?;
        } else {
            print(&format!("{} tried, {warned} to look at, {failed} failed\n", self.checks.len()))?;
        }
        Ok(if failed == 0 { Exit::Done } else { Exit::Failed })
    }
}
