//! What a person grants for the rest of a session: a part of a command, by its program and subcommand.

use super::super::arguments;
use super::super::plan::Command;
use super::super::programs::{Kind, Program};
use super::super::special;
use super::super::words::Word;
use super::Judge;
use crate::call::GrantKey;
use crate::policy::{Mode, Rights, Zone};

impl Judge<'_> {
    /// Adds the part that was just judged, with what it needed by itself.
    pub(super) fn granted(&mut self, command: &Command) {
        let mode = self.needs.mode.union(self.loose);
        let Some(subject) = subject(command) else {
            self.loose = mode;
            return;
        };
        self.loose = Mode::NONE;
        // Whatever runs at least looks at the place that it runs in.
        let mode = if mode == Mode::NONE { mode.with(Zone::Workspace, Rights::READ) } else { mode };
        let key = GrantKey::new(subject, mode);
        if !self.grants.contains(&key) {
            self.grants.push(key);
        }
    }
}

/// The part in plain words; none where nothing runs and nothing is opened.
fn subject(command: &Command) -> Option<String> {
    let mut operators: Vec<String> = command.files.iter().map(|(op, _)| format!("`{op}`")).collect();
    operators.extend(command.assignments.iter().map(|(name, _)| format!("`{name}=`")));
    operators.dedup();
    let with = if operators.is_empty() { String::new() } else { format!(" with {}", operators.join(", ")) };
    let Some((head, rest)) = command.words.split_first() else {
        return (!operators.is_empty()).then(|| operators.join(", "));
    };
    let name = head.literal().and_then(special::ordinary);
    let words = match name.and_then(special::find_program) {
        Some(program) => granted_words(name.unwrap_or(""), program, rest),
        // A file that is run, by its path; whatever it is given.
        None => Some(Vec::new()),
    };
    let text = match words {
        Some(words) => std::iter::once(head.raw.as_str()).chain(words).collect::<Vec<_>>().join(" "),
        None => command.words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" "),
    };
    Some(format!("the command `{text}`{with}"))
}

/// The words behind a program that say what it does; none: only all of them do.
fn granted_words<'w>(name: &str, program: &'static Program, words: &'w [Word]) -> Option<Vec<&'w str>> {
    if program.subs {
        return subcommands(name, program, words);
    }
    let runs = |kind| matches!(kind, Kind::Wrap | Kind::Code | Kind::Run);
    let wraps = program.operands.iter().any(|operand| runs(operand.kind));
    let rules = matches!(program.judge, Some("interpreter" | "shell" | "env" | "xargs" | "find"));
    let reaches = program.effects.system != Rights::NONE || program.effects.network.covers(Rights::EXECUTE);
    if name == "find" && !words.iter().any(|w| w.start().starts_with("-exec") || w.start().starts_with("-ok")) {
        return Some(Vec::new());
    }
    (!(wraps || rules || reaches || name == "eval")).then(Vec::new)
}

fn subcommands<'w>(name: &str, program: &'static Program, words: &'w [Word]) -> Option<Vec<&'w str>> {
    let rest = arguments::take(program, words).rest;
    // Options before the subcommand say where it works, or whose code it runs.
    if rest.len() < words.len() {
        return None;
    }
    let (sub, operands) = rest.split_first()?;
    let (full, program) = special::find_subcommand(name, sub)?;
    let mut said = vec![sub.raw.as_str()];
    let deeper = operands.first().and_then(|word| special::find_subcommand(&full, word));
    match deeper {
        Some((full, program)) => {
            said.push(operands[0].raw.as_str());
            said.extend(granted_words(&full, program, &operands[1..])?);
        }
        // The name of a script says what runs.
        None if matches!(full.as_str(), "npm run" | "npm run-script" | "npm exec" | "npm dlx" | "npm x") => {
            said.push(operands.first()?.raw.as_str());
        }
        None => said.extend(granted_words(&full, program, operands)?),
    }
    Some(said)
}
