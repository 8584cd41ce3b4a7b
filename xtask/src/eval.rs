//! Twelve small tasks for the embedded model, each in a scratch git repository, done by the real program.
//!
//! `cargo xtask eval [--agent PATH] [--only N]`: the program is `target/release/agent` unless another is named. What
//! counts is what is on disk afterwards and what the answer says. Needs the weights (`agent model fetch`) and takes
//! some minutes; fails where fewer than ten of the tasks are done.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How many of the tasks must be done.
const ENOUGH: usize = 10;
/// How long one may take: a slow, busy machine reads the examples for a minute at the first one.
const LIMIT: Duration = Duration::from_secs(300);

/// Something to do, and how it is seen that it was done.
struct Task {
    name: &'static str,
    prompt: &'static str,
    done: &'static [Sign],
}

/// A sign that a task was done.
enum Sign {
    /// The answer has one of these, in upper or lower case.
    Says(&'static [&'static str]),
    /// The file has this text, and the line end that every text file may have.
    Is(&'static str, &'static str),
    /// The file has this in it.
    Has(&'static str, &'static str),
}

const FILES: [(&str, &str); 7] = [
    ("README.md", "# Demo\n\nThis tool converts CSV files to JSON.\n"),
    ("notes.txt", "eggs\nmilk\nbread\nbutter\n"),
    ("config.ini", "color = red\nsize = 10\n"),
    ("hello.sh", "echo the code is 4711\n"),
    ("src/main.py", "def add(a, b):\n    # TODO: handle None\n    return a + b\n"),
    (
        "skills/commit-message.md",
        "---\nname: commit-message\ndescription: writing a git commit message\n---\n\
         Begin every commit message with the word CHANGED, then say what is different.\n",
    ),
    (
        "skills/pdf-report.md",
        "---\nname: pdf-report\ndescription: making a PDF report\n---\nUse pandoc report.md -o report.pdf.\n",
    ),
];

const TASKS: [Task; 12] = [
    Task {
        name: "list files",
        prompt: "List the files in this folder.",
        done: &[Sign::Says(&["notes.txt"]), Sign::Says(&["config.ini"])],
    },
    Task {
        name: "read a file",
        prompt: "Read README.md and tell me what this tool does.",
        done: &[Sign::Says(&["csv"]), Sign::Says(&["json"])],
    },
    Task { name: "create a file", prompt: "Create hello.txt containing hi", done: &[Sign::Is("hello.txt", "hi")] },
    Task {
        name: "replace text",
        prompt: "Replace red with green in config.ini",
        done: &[Sign::Is("config.ini", "color = green\nsize = 10")],
    },
    Task { name: "count lines", prompt: "How many lines does notes.txt have?", done: &[Sign::Says(&["4", "four"])] },
    Task { name: "run a script", prompt: "Run hello.sh and tell me what it prints.", done: &[Sign::Says(&["4711"])] },
    Task { name: "git branch", prompt: "Which git branch am I on?", done: &[Sign::Says(&["trunk"])] },
    Task { name: "find a TODO", prompt: "Which file in src has a TODO comment?", done: &[Sign::Says(&["main.py"])] },
    Task {
        name: "load a skill",
        prompt: "Load the commit-message skill. Which word must a commit message begin with?",
        done: &[Sign::Says(&["changed"])],
    },
    Task {
        name: "append a line",
        prompt: "Append the line cheese to notes.txt",
        done: &[Sign::Is("notes.txt", "eggs\nmilk\nbread\nbutter\ncheese")],
    },
    Task {
        name: "folder and file",
        prompt: "Make a folder docs and in it a file index.md that says Welcome",
        done: &[Sign::Has("docs/index.md", "Welcome")],
    },
    Task { name: "no tool", prompt: "What is the capital of France?", done: &[Sign::Says(&["paris"])] },
];

/// Runs the tasks and prints a table. Whether enough of them were done.
///
/// # Errors
/// Wrong options, or a program that cannot be started.
pub fn run(options: &[String]) -> Outcome<bool> {
    let (agent, only) = parse(options)?;
    let chosen: Vec<(usize, &Task)> = (1..).zip(&TASKS).filter(|(i, _)| only.is_none_or(|n| n == *i)).collect();
    let mut done = 0;
    for (number, task) in &chosen {
        let begun = Instant::now();
        let missing = attempt(task, &agent)?;
        let verdict = if missing.is_none() { "ok" } else { "FAILED" };
        done += usize::from(missing.is_none());
        let seconds = begun.elapsed().as_secs_f32();
        println!("{number:2}  {:16} {verdict:7} {seconds:6.1} s  {}", task.name, missing.unwrap_or_default());
    }
    println!("{done} of {}", chosen.len());
    Ok(done >= ENOUGH.min(chosen.len()))
}

fn parse(options: &[String]) -> Outcome<(PathBuf, Option<usize>)> {
    let (mut agent, mut only) = (PathBuf::from("target/release/agent"), None);
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--agent" => agent = PathBuf::from(value),
            "--only" => only = Some(value.parse()?),
            other => return Err(format!("unknown option {other}; there are --agent PATH and --only N").into()),
        }
    }
    let found = fs::canonicalize(&agent).map_err(|e| {
        format!("there is no {}: {e}. Build it with `cargo build --release -p agent-cli`", agent.display())
    })?;
    Ok((found, only))
}

/// Does a task. Gives what is missing.
fn attempt(task: &Task, agent: &Path) -> Outcome<Option<String>> {
    let scratch = tempfile::tempdir()?;
    let work = scratch.path().join("work");
    repository(&work)?;
    let log = scratch.path().join("answer");
    let mut program = Command::new(agent);
    program.args(["--provider", "local", "--no-session", task.prompt]).current_dir(&work).stdin(Stdio::null());
    program.stdout(File::create(&log)?).stderr(File::create(scratch.path().join("log"))?);
    if !ends(program.spawn()?)? {
        return Ok(Some(format!("not done after {} s", LIMIT.as_secs())));
    }
    let answer = fs::read_to_string(&log)?;
    Ok(task.done.iter().find_map(|sign| sign.missing(&answer, &work)))
}

/// Waits for it; ends it after the limit. Whether it ended by itself.
fn ends(mut child: Child) -> Outcome<bool> {
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(true)
}

fn repository(work: &Path) -> Outcome<()> {
    for (name, contents) in FILES {
        let path = work.join(name);
        fs::create_dir_all(path.parent().unwrap_or(work))?;
        fs::write(path, contents)?;
    }
    for arguments in [
        &["init", "-q", "-b", "trunk"][..],
        &["add", "."],
        &["-c", "user.name=eval", "-c", "user.email=eval@localhost", "commit", "-q", "-m", "first"],
    ] {
        let status = Command::new("git").args(arguments).current_dir(work).status()?;
        if !status.success() {
            return Err(format!("git {arguments:?} failed").into());
        }
    }
    Ok(())
}

impl Sign {
    /// What is missing of it, for the table.
    fn missing(&self, answer: &str, work: &Path) -> Option<String> {
        let file = |name: &str| fs::read_to_string(work.join(name)).unwrap_or_default();
        let (there, what) = match self {
            Self::Says(words) => {
                let answer = answer.to_lowercase();
                (words.iter().any(|word| answer.contains(word)), format!("says {:?}, not {}", answer.trim(), words[0]))
            }
            Self::Is(name, text) => (file(name).trim_end() == *text, format!("{name} has {:?}", file(name))),
            Self::Has(name, text) => (file(name).contains(text), format!("{name} has {:?}", file(name))),
        };
        (!there).then_some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// An agent made of a shell script that gets the prompt as `$4`.
    fn evaluated(script: &str, only: usize) -> bool {
        let home = tempfile::tempdir().unwrap();
        let agent = home.path().join("agent");
        fs::write(&agent, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let options = ["--agent", agent.to_str().unwrap(), "--only", &only.to_string()].map(String::from);
        run(&options).unwrap()
    }

    #[test]
    fn what_counts_is_what_was_done() {
        for (script, only, expect) in [
            ("echo 'Paris, of course'", 12, true),
            ("echo 'I do not know'", 12, false),
            ("echo hi > hello.txt", 3, true),
            ("echo I created hello.txt", 3, false),
            ("git branch --show-current", 7, true),
            ("sh hello.sh", 6, true),
            ("sed -i s/red/green/ config.ini", 4, true),
            ("echo cheese > notes.txt", 10, false),
            ("[ \"$1 $2 $3\" = '--provider local --no-session' ] && echo \"$4\" | sed s/France/Paris/", 12, true),
        ] {
            assert_eq!(evaluated(script, only), expect, "{script}");
        }
    }

    #[test]
    fn wrong_options_are_named() {
        for (options, expect) in [
            (&["--agent"][..], "--agent needs a value"),
            (&["--all", "x"], "unknown option --all"),
            (&["--agent", "/nowhere/agent"], "there is no /nowhere/agent"),
        ] {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            assert!(run(&options).unwrap_err().to_string().contains(expect), "{options:?}");
        }
    }
}
