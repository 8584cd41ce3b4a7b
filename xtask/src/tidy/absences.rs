//! Words that belong to one place and must be absent elsewhere.

use super::{Finding, Source, code};

/// Words, where they are looked for, where they are right all the same and why, and what to do about the others.
struct Absence {
    words: &'static [&'static str],
    within: &'static [&'static str],
    except: &'static [(&'static str, &'static str)],
    advice: &'static str,
}

const LIBRARIES: &[&str] = &["agent-skills/", "agent-tools/", "agent-core/"];
const BELOW_ACP: &[&str] = &["agent-skills/", "agent-tools/", "agent-core/", "agent-cli/"];
const NOT_THE_TERMINAL: &[&str] = &["agent-skills/", "agent-tools/", "agent-core/", "agent-acp/"];

const ABSENCES: &[Absence] = &[
    Absence {
        words: &[
            "env::var",
            "env::var_os",
            "env::vars",
            "env::vars_os",
            "env::current_dir",
            "env::home_dir",
            "env::temp_dir",
            "env::set_var",
        ],
        within: LIBRARIES,
        except: &[],
        advice: "a library is told where it is: take it as an argument from the frontend",
    },
    Absence {
        words: &["SystemTime::now", "Timestamp::now", "Zoned::now", "Utc::now", "Local::now"],
        within: LIBRARIES,
        except: &[],
        advice: "a library does not read the wall clock: take the time as an argument, or agent-core's Clock",
    },
    Absence {
        words: &["println!", "print!", "eprintln!", "eprint!", "dbg!", "io::stdout", "io::stderr", "io::stdin"],
        within: LIBRARIES,
        except: &[],
        advice: "a library never prints: return it, or make it an event",
    },
    Absence {
        words: &["jsonrpc", "JSON-RPC", "session/update"],
        within: BELOW_ACP,
        except: &[("agent-core/src/mcp", "the Model Context Protocol, too, is JSON-RPC")],
        advice: "words of the Agent Client Protocol belong to agent-acp: say it in an event's words here",
    },
    Absence {
        words: &[r"\x1b[", r"\u{1b}[", r"\u{1B}[", "crossterm", "rustyline"],
        within: NOT_THE_TERMINAL,
        except: &[],
        advice: "words of the terminal belong to agent-cli",
    },
    Absence {
        words: &["agent_core", "Message", "Provider", "SessionId", "Journal"],
        within: &["agent-tools/"],
        except: &[],
        advice: "agent-tools knows no model, no message and no session: pass what it needs through Host or ToolContext",
    },
    Absence {
        words: &["agent_tools", "agent_core"],
        within: &["agent-skills/"],
        except: &[],
        advice: "agent-skills knows no tool",
    },
    Absence {
        words: &["Permit::new"],
        within: LIBRARIES,
        except: &[("agent-tools/src/tools.rs", "the gate"), ("agent-tools/src/context.rs", "where it is defined")],
        advice: "only the gate makes a Permit: run the tool through dispatch",
    },
    Absence {
        words: &[".ask("],
        within: LIBRARIES,
        except: &[
            ("agent-tools/src/tools.rs", "the gate"),
            ("agent-core/src/turn", "where Host is implemented: it hands the question up"),
        ],
        advice: "only the gate asks a person: say in the Outline what the call needs, and let the policy judge",
    },
    Absence {
        words: &["serde_saphyr"],
        within: &["agent-skills/", "agent-tools/", "agent-core/", "agent-cli/", "agent-acp/"],
        except: &[("agent-skills/src/front_matter.rs", "front matter"), ("agent-core/src/settings", "settings files")],
        advice: "YAML is read in front_matter.rs and settings/ only",
    },
    Absence {
        words: &["similar::"],
        within: &["agent-skills/", "agent-tools/", "agent-core/", "agent-cli/", "agent-acp/"],
        except: &[("agent-tools/src/diff.rs", "diffs")],
        advice: "diffs are made in agent_tools::diff only",
    },
    Absence {
        words: &["process::Command", "tokio::process", "std::process::{", "use std::process;"],
        within: LIBRARIES,
        except: &[
            ("agent-tools/src/builtin/process.rs", "starts the commands of the model"),
            ("agent-tools/src/builtin/group.rs", "holds and ends what process.rs started"),
            ("agent-tools/src/builtin/watchdog.rs", "ends commands when the agent is gone"),
            ("agent-tools/src/builtin/companion.rs", "starts servers of tools, which end with the agent"),
            ("agent-core/src/setup/model.rs", "runs the person's own command for a key"),
        ],
        advice: "commands are started in agent-tools/src/builtin/process.rs only",
    },
];

/// Looks at the code of `sources` that is shipped: what lies in `src` and is no test.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().filter(|source| is_shipped(&source.path)).flat_map(check_source).collect()
}

fn is_shipped(path: &str) -> bool {
    path.ends_with(".rs") && path.contains("/src/") && !path.ends_with("/tests.rs") && !path.contains("/tests/")
}

fn check_source(source: &Source) -> Vec<Finding> {
    let concerns = |absence: &&Absence| {
        absence.within.iter().any(|floor| source.path.starts_with(floor))
            && !absence.except.iter().any(|(place, _)| is_at(&source.path, place))
    };
    let code = code::without_comments_and_tests(&source.text);
    ABSENCES.iter().filter(concerns).flat_map(|absence| absent(absence, source, &code)).collect()
}

/// `place` is a file, or a module without `.rs`: then its file and its folder.
fn is_at(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
}

fn absent(absence: &Absence, source: &Source, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in code.lines().enumerate() {
        if let Some(word) = absence.words.iter().find(|word| has_word(line, word)) {
            let message = format!("`{word}` does not belong here: {}", absence.advice);
            findings.push(Finding { path: source.path.clone(), line: at + 1, message });
        }
    }
    findings
}

/// Whether `line` has `word`, not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = word.starts_with(letter) && line[..at].ends_with(letter);
        let after = word.ends_with(letter) && line[at + word.len()..].starts_with(letter);
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&[Source { path: path.to_owned(), text: text.to_owned() }]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_word_is_found_where_it_does_not_belong_only() {
        for (path, text, wrong) in [
            ("agent-core/src/x.rs", "let a = std::env::var(\"HOME\");", true),
            ("agent-core/src/settings/env.rs", "env::vars()", true),
            ("agent-core/src/settings.rs", "env::variables()", false),
            ("agent-cli/src/run.rs", "std::env::var(\"HOME\")", false),
            ("agent-core/tests/it/main.rs", "std::env::var(\"HOME\")", false),
            ("agent-core/examples/x.rs", "println!()", false),
            ("agent-core/src/turn/tests.rs", "println!()", false),
            ("agent-core/src/x.rs", "#[cfg(test)]\nmod tests { fn f() { println!() } }", false),
            ("agent-core/src/x.rs", "/// println!()\n// println!()", false),
            ("agent-core/src/x.rs", "println!()", true),
            ("agent-skills/src/x.rs", "eprint!()", true),
            ("agent-core/src/x.rs", "my_println!()", false),
            ("agent-core/src/x.rs", "SystemTime::now()", true),
            ("agent-core/src/x.rs", "Instant::now()", false),
            ("agent-core/src/x.rs", "jiff::Timestamp::now()", true),
            ("agent-core/src/x.rs", "\"session/update\"", true),
            ("agent-cli/src/x.rs", "\"jsonrpc\"", true),
            ("agent-acp/src/x.rs", "\"jsonrpc\"", false),
            ("agent-core/src/mcp.rs", "\"jsonrpc\"", false),
            ("agent-tools/src/x.rs", r#"let red = "\x1b[31m";"#, true),
            ("agent-acp/src/x.rs", r#"let red = "\u{1b}[31m";"#, true),
            ("agent-cli/src/x.rs", r#"let red = "\x1b[31m";"#, false),
            ("agent-tools/src/x.rs", "use agent_core::Agent;", true),
            ("agent-tools/src/x.rs", "fn f(m: &Message)", true),
            ("agent-tools/src/x.rs", "fn f(m: &MessageText)", false),
            ("agent-tools/src/x.rs", "Answer::Session", false),
            ("agent-skills/src/x.rs", "use agent_tools::Tool;", true),
            ("agent-tools/src/builtin/bash.rs", "Permit::new(call, mode)", true),
            ("agent-tools/src/tools.rs", "Permit::new(call, mode)", false),
            ("agent-tools/src/builtin/edit.rs", "cx.host.ask(call)", true),
            ("agent-core/src/children.rs", "host.ask(call)", true),
            ("agent-core/src/turn.rs", "host.ask(call)", false),
            ("agent-core/src/turn/tools.rs", "host.ask(call)", false),
            ("agent-core/src/turnip.rs", "host.ask(call)", true),
            ("agent-core/src/x.rs", "serde_saphyr::from_str(x)", true),
            ("agent-core/src/settings/file.rs", "serde_saphyr::from_str(x)", false),
            ("agent-skills/src/front_matter.rs", "serde_saphyr::from_str(x)", false),
            ("agent-cli/src/x.rs", "use similar::TextDiff;", true),
            ("agent-tools/src/diff.rs", "use similar::TextDiff;", false),
            ("agent-tools/src/x.rs", "dissimilar::diff()", false),
            ("agent-tools/src/builtin/bash.rs", "tokio::process::Command::new(x)", true),
            ("agent-core/src/x.rs", "std::process::Command::new(x)", true),
            ("agent-core/src/x.rs", "use std::process::{Command, Stdio};", true),
            ("agent-tools/src/builtin/process.rs", "tokio::process::Command::new(x)", false),
            ("agent-cli/src/x.rs", "std::process::Command::new(x)", false),
            ("xtask/src/x.rs", "println!(\"jsonrpc\")", false),
        ] {
            assert_eq!(!found(path, text).is_empty(), wrong, "{path}: {text}");
        }
    }

    #[test]
    fn every_word_of_the_table_can_be_found() {
        for absence in ABSENCES {
            for (word, floor) in
                absence.words.iter().flat_map(|word| absence.within.iter().map(move |floor| (word, floor)))
            {
                let path = format!("{floor}src/somewhere.rs");
                assert!(
                    found(&path, &format!("x\n {word} x")).iter().any(|line| line.contains(":2: ")),
                    "{path}: {word}"
                );
            }
        }
    }

    #[test]
    fn a_finding_names_the_line_and_what_to_do() {
        assert_eq!(
            found("agent-tools/src/x.rs", "// one\n\nfn f() { println!() }"),
            [
                "agent-tools/src/x.rs:3: `println!` does not belong here: a library never prints: return it, or make it an event"
            ]
        );
    }
}
