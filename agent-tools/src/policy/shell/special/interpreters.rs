//! Shells and interpreters: code on the line, in a file, or from what they read.

use super::super::judge::{Around, CODE, Fed, Judge};
use super::super::words::Word;
use crate::policy::{Rights, Zone};

/// `sh -c 'text'`, `sh file`, or a shell that runs what it reads.
pub(super) fn shell(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut at = 0;
    while let Some(text) = words.get(at).and_then(Word::literal).filter(|text| text.starts_with('-') && text.len() > 1)
    {
        at += 1;
        match text {
            "--" => break,
            "--norc" | "--noprofile" | "--posix" | "--login" => {}
            "-o" | "-O" => at += 1,
            _ if text[1..].chars().all(|c| "euxvlins".contains(c)) => {}
            _ if text[1..].chars().all(|c| "euxvlinsc".contains(c)) => {
                if around.fed == Fed::Network {
                    judge.needs.find("code from the network", Some(Zone::Network), Rights::EXECUTE);
                }
                judge.needs.find("-c", CODE.0, CODE.1);
                let code = words.get(at).map(std::slice::from_ref).unwrap_or_default();
                judge.mentions(words.get(at + 1..).unwrap_or_default(), &around.dirs);
                return judge.code(code, around);
            }
            _ => return judge.doubt(format!("the option `{text}` of a shell is not known here")),
        }
    }
    match words.get(at) {
        Some(file) if file.literal() != Some("-") => judge.code_file(file, &words[at + 1..], Rights::EXECUTE, around),
        _ => from_input(judge, around, true),
    }
}

/// Code that comes in as input.
fn from_input(judge: &mut Judge<'_>, around: &Around<'_>, shell: bool) {
    if let (Some(text), true) = (&around.command.input, shell) {
        judge.code(std::slice::from_ref(text), around);
    }
    if around.command.input.as_ref().is_some_and(|text| text.literal().is_none()) {
        judge.doubt("the code that it reads is computed");
    }
    let from_file = around.command.files.iter().any(|(op, _)| op == "<");
    if around.command.files.iter().any(|(_, file)| file.raw.contains("<(")) {
        judge.doubt("it runs what another command prints");
    }
    match around.fed {
        Fed::Network => return judge.needs.find("code from the network", Some(Zone::Network), Rights::EXECUTE),
        Fed::Pipe if !from_file && around.command.input.is_none() => judge.doubt("it runs what another command prints"),
        Fed::Pipe | Fed::Nobody => {}
    }
    judge.needs.find("code from its input", CODE.0, CODE.1);
}

pub(super) fn interpreter(judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
    if let [word] = words
        && (matches!(word.literal(), Some("-V" | "--version" | "--help"))
            || (word.literal() == Some("-v") && matches!(name, "node" | "nodejs" | "php" | "perl")))
    {
        return;
    }
    if around.fed == Fed::Network || words.iter().any(is_remote_code) {
        judge.needs.find(
            "what comes from the network runs code",
            Some(Zone::Network),
            Rights::READ.union(Rights::EXECUTE),
        );
    }
    let edits = |w: &Word| {
        let letters = w.start().strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| letters.trim_start_matches(['p', 'n', 'l', 'a', '0', 'w']).starts_with('i'))
    };
    let in_place = matches!(name, "perl" | "ruby") && words.iter().any(edits);
    let Some((given, at)) = interpreter_options(judge, name, words, around) else { return };
    let operands = words.get(at..).unwrap_or_default();
    if given {
        judge.needs.find(name, CODE.0, CODE.1);
        judge.mentions(operands, &around.dirs);
    } else if let Some((file, operands)) = operands.split_first().filter(|(file, _)| file.literal() != Some("-")) {
        judge.code_file(file, operands, Rights::EXECUTE, around);
    } else {
        from_input(judge, around, false);
    }
    if in_place {
        for word in operands {
            judge.path(word, Rights::READ_WRITE, &around.dirs);
            judge.beside(word, &around.dirs);
        }
    }
}

/// Whether code is given on the line, and where the operands begin; none where all is judged.
fn interpreter_options(
    judge: &mut Judge<'_>,
    name: &str,
    words: &[Word],
    around: &Around<'_>,
) -> Option<(bool, usize)> {
    let (mut given, mut at) = (false, 0);
    while let Some(word) = words.get(at).filter(|w| w.start().starts_with('-') && w.literal() != Some("-")) {
        let letters = word.start();
        at += 1;
        let long = matches!(letters, "--eval" | "--print" | "--require" | "--import");
        let short = !letters.starts_with("--")
            && letters.len() < 7
            && letters[1..].chars().all(|c| "uBEIsSOqbnplawiecmrEvx0123456789".contains(c));
        let requires = matches!(letters, "-r" | "--require" | "--import");
        if word.literal() == Some("--") {
            break;
        }
        if !(long || short || letters == "--test") {
            judge.doubt(format!("{name}: its option `{}` is not known here", word.raw));
        }
        if requires {
            words.get(at).into_iter().for_each(|file| judge.code_file(file, &[], Rights::EXECUTE, around));
        }
        if !(long || (short && letters.ends_with(['c', 'e', 'E', 'm', 'p', 'r']))) {
            continue;
        }
        let Some(code) = words.get(at) else { break };
        if code.literal().is_none() && !requires {
            judge.doubt(format!("the code `{}` is computed", code.raw));
        }
        if letters.ends_with('m') && code.literal() == Some("pip") {
            judge.words(&words[at..], &Around { wrappers: around.wrappers + 1, ..around.clone() });
            return None;
        }
        given |= !requires;
        at += 1;
        if matches!(name, "python" | "python3") {
            break;
        }
    }
    Some((given, at))
}

/// Addresses of code, as interpreters fetch it themselves.
fn is_remote_code(word: &Word) -> bool {
    ["http:", "https:", "npm:", "jsr:"].iter().any(|start| word.start().starts_with(start))
}
