//! sed: a little language on the line that can write files and run programs.

use super::super::judge::{Around, Judge};
use super::super::words::Word;
use crate::policy::Rights;

/// Judges the words behind `sed`.
pub(super) fn sed(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut scripts: Vec<&Word> = Vec::new();
    let mut files: Vec<&Word> = Vec::new();
    let (mut in_place, mut ended) = (false, false);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.literal() {
            Some("--") if !ended => ended = true,
            Some("-e" | "--expression") if !ended => scripts.extend(rest.next()),
            Some("-f" | "--file") if !ended => judge.doubt("the script of sed lies in a file"),
            Some("-l") if !ended => {
                rest.next();
            }
            Some(text) if !ended && is_sed_flag(text) => {
                in_place |= text == "--in-place" || text.starts_with("--in-place=") || cluster_has_i(text);
            }
            _ if !ended && word.start().starts_with('-') && word.literal() != Some("-") => {
                judge.doubt(format!("sed: its option `{}` is not known here", word.raw));
            }
            _ => files.push(word),
        }
    }
    if scripts.is_empty() && !files.is_empty() {
        scripts.push(files.remove(0));
    }
    for script in scripts {
        match script.literal() {
            Some(text) => sed_script(judge, text, around),
            None => judge.doubt(format!("the script `{}` of sed is computed", script.raw)),
        }
    }
    let rights = if in_place { Rights::READ_WRITE } else { Rights::READ };
    for file in files {
        judge.path(file, rights, &around.dirs);
        if in_place {
            judge.beside(file, &around.dirs);
        }
    }
}

fn is_sed_flag(text: &str) -> bool {
    let long = [
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--separate",
        "--unbuffered",
        "--null-data",
        "--posix",
        "--debug",
        "--sandbox",
        "--in-place",
    ];
    let cluster = || {
        let letters = text.strip_prefix('-').filter(|l| !l.is_empty() && !l.starts_with('-'));
        letters.is_some_and(|l| {
            l.chars().take_while(|c| *c != 'i').all(|c| "nErsuz".contains(c)) && !suffix(l).contains('/')
        })
    };
    long.contains(&text) || text.strip_prefix("--in-place=").is_some_and(|s| !s.contains('/')) || cluster()
}

/// What stands behind the `i` of a cluster: the suffix of the copy that sed keeps.
fn suffix(letters: &str) -> &str {
    letters.split_once('i').map_or("", |(_, suffix)| suffix)
}

fn cluster_has_i(text: &str) -> bool {
    !text.starts_with("--") && text.contains('i')
}

/// A script on one line, command by command; what is not understood cannot be judged.
fn sed_script(judge: &mut Judge<'_>, script: &str, around: &Around<'_>) {
    let mut rest = script.trim_start_matches([' ', '\t', ';']);
    if script.contains(['\n', '\r', '{', '}']) && !is_substitution_only(script) {
        return judge.doubt("a script of sed of several lines, or with braces, is not understood");
    }
    while !rest.is_empty() {
        let Some(after) = sed_address(rest) else { return judge.doubt("an address of sed is not understood") };
        let Some(command) = after.chars().next() else { return judge.doubt("a script of sed is not understood") };
        let operand = &after[command.len_utf8()..];
        let behind = match command {
            'p' | 'P' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'x' | '=' | 'z' => operand,
            'q' | 'Q' => operand.trim_start_matches(|c: char| c.is_ascii_digit()),
            // Text to the end of the line, which is the end of the script.
            'a' | 'i' | 'c' if !operand.trim_end().ends_with('\\') => return,
            ':' | 'b' | 't' | 'T' => sed_label(operand),
            'y' => match sed_parts(operand) {
                Some((_, rest)) => rest,
                None => return judge.doubt("a script of sed is not understood"),
            },
            'w' | 'r' => return sed_file(judge, command, operand, around),
            's' => match sed_substitution(judge, operand, around) {
                Some(rest) => rest,
                None => return,
            },
            _ => return judge.doubt(format!("the command `{command}` of sed runs code or is not known here")),
        };
        rest = behind.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(';') {
            return judge.doubt("a script of sed is not understood");
        }
        rest = rest.trim_start_matches([' ', '\t', ';']);
    }
}

/// Behind a label: whether one ends at a semicolon is seen differently, so that both readings have to be harmless.
fn sed_label(operand: &str) -> &str {
    operand.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// One substitution, in whose pattern braces may stand.
fn is_substitution_only(script: &str) -> bool {
    let flags = |(_, flags): (char, &str)| flags.chars().all(|c| c.is_ascii_digit() || "gpI".contains(c));
    !script.contains(['\n', '\r']) && script.strip_prefix('s').and_then(sed_parts).is_some_and(flags)
}

/// The name of a file goes to the end of the line, which is the end of the script.
fn sed_file(judge: &mut Judge<'_>, command: char, operand: &str, around: &Around<'_>) {
    let rights = if command == 'w' { Rights::WRITE } else { Rights::READ };
    judge.path(&Word::text(operand.trim_start()), rights, &around.dirs);
}

/// Behind an address or two: numbers, `$`, patterns.
fn sed_address(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = match rest.chars().next()? {
            c if c.is_ascii_digit() || matches!(c, '$' | ',' | '~' | '+' | '!' | ' ') => &rest[1..],
            '/' => {
                let end = delimited(&rest[1..], '/')?;
                rest[1 + end + 1..].trim_start_matches(['I', 'M'])
            }
            '\\' => return None,
            _ => return Some(rest),
        };
    }
}

/// Where the text before a delimiter ends: backslashes hide it, and so do brackets.
fn delimited(text: &str, delimiter: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // Whether a delimiter in brackets ends the text is seen differently: not taken apart.
            '[' if text[at..].find(']').is_some_and(|end| text[at..at + end].contains(delimiter)) => return None,
            c if c == delimiter => return Some(at),
            _ => {}
        }
    }
    None
}

/// The delimiter, and what stands behind both parts.
fn sed_parts(text: &str) -> Option<(char, &str)> {
    let delimiter = text.chars().next().filter(|c| c.is_ascii() && !matches!(c, '\\' | '\n'))?;
    let first = delimited(&text[1..], delimiter)?;
    let behind = &text[1 + first + 1..];
    let second = delimited(behind, delimiter)?;
    Some((delimiter, &behind[second + 1..]))
}

fn sed_substitution<'t>(judge: &mut Judge<'_>, operand: &'t str, around: &Around<'_>) -> Option<&'t str> {
    let Some((_, flags)) = sed_parts(operand) else {
        judge.doubt("a script of sed is not understood");
        return None;
    };
    if operand.contains('\n') {
        judge.doubt("a script of sed is not understood");
    }
    let rest = flags.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiImM".contains(c));
    match rest.chars().next() {
        Some('e') => {
            judge.doubt("sed runs what it makes");
            None
        }
        Some('w') => {
            sed_file(judge, 'w', &rest[1..], around);
            None
        }
        _ => Some(rest),
    }
}
