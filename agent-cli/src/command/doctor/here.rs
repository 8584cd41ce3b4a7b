//! What is tried on this machine: settings, shell, sandbox, sessions, skills.

use std::process::{Command, Stdio};
use std::{fs, io};

use agent_tools::builtin::sandbox;

use super::{Check, Report};
use crate::error::CliError;
use crate::setup::Setup;

/// The settings: which files were read, and what is to be said of them.
pub fn settings(setup: &Setup, report: &mut Report) -> Result<(), CliError> {
    let files = [setup.settings_file.clone(), setup.world.cwd.join("agent.yaml")];
    let read: Vec<String> = files.iter().filter(|file| file.exists()).map(|file| file.display().to_string()).collect();
    let text = match read.as_slice() {
        [] => format!("no file was read; yours would be {}", files[0].display()),
        read => format!("read from {}", read.join(", ")),
    };
    report.add(Check::ok("settings", text))?;
    setup.warnings.iter().try_for_each(|warning| report.add(Check::warn("settings", warning)))
}

/// What is needed on this machine.
pub fn place(setup: &Setup, report: &mut Report) -> Result<(), CliError> {
    report.add(shell())?;
    report.add(confined(setup))?;
    report.add(sessions(setup))?;
    skills(setup, report)
}

fn shell() -> Check {
    let output = Command::new("bash").args(["-c", "echo \"$BASH_VERSION\""]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            Check::ok("shell", format!("bash {}", String::from_utf8_lossy(&output.stdout).trim()))
        }
        Ok(output) => Check::fail("shell", format!("bash ended with {}", output.status)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Check::fail("shell", "there is no bash: no command can be run").hint("install bash, or put it on PATH")
        }
        Err(e) => Check::fail("shell", format!("bash cannot be run: {e}")),
    }
}

fn confined(setup: &Setup) -> Check {
    let wanted = setup.settings.sandbox;
    let found = sandbox::report(wanted);
    let text = found.to_string();
    match (found.holds, wanted) {
        (true, _) => Check::ok("sandbox", text),
        (false, agent_tools::Sandbox::Require) => Check::fail("sandbox", text)
            .hint("no command will run while the setting `sandbox` is `require`; set it to `auto`"),
        (false, agent_tools::Sandbox::Auto | agent_tools::Sandbox::Off) => Check::warn("sandbox", text),
    }
}

fn sessions(setup: &Setup) -> Check {
    if setup.args.no_session {
        return Check::ok("sessions", "none is kept (--no-session)");
    }
    let directory = setup.world.dirs.data.join("sessions");
    let tried = fs::create_dir_all(&directory).and_then(|()| tempfile::tempfile_in(&directory));
    match tried {
        Ok(_) => Check::ok("sessions", format!("{} can be written to", directory.display())),
        Err(e) => Check::fail("sessions", format!("{} cannot be written to: {e}", directory.display()))
            .hint("set AGENT_HOME to a directory that can be, or go without with --no-session"),
    }
}

fn skills(setup: &Setup, report: &mut Report) -> Result<(), CliError> {
    let catalogue = setup.catalogue_alone();
    report.add(Check::ok("skills", format!("{} can be loaded", catalogue.iter().count())))?;
    let faults = catalogue.diagnostics().iter();
    faults.map(|d| Check::warn("skills", d.to_string())).try_for_each(|check| report.add(check))
}
