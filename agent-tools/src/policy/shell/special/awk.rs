//! awk: a little language on the line that can write files and run programs.

use super::super::judge::{Around, CODE, Judge};
use super::super::words::Word;
use crate::policy::Rights;

/// Judges the words behind `awk`.
pub(super) fn awk(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut at = 0;
    let mut from_file = false;
    while let Some(word) = words.get(at).filter(|w| w.start().starts_with('-') && w.literal() != Some("-")) {
        at += 1;
        match word.start() {
            "--" => break,
            "-F" | "-v" => at += 1,
            "-f" | "--file" => {
                from_file = true;
                words.get(at).into_iter().for_each(|file| judge.code_file(file, &[], Rights::EXECUTE, around));
                judge.doubt("the program of awk lies in a file");
                at += 1;
            }
            start if start.starts_with("-F") || start.starts_with("-v") => {}
            _ => return judge.doubt(format!("awk: its option `{}` is not known here", word.raw)),
        }
    }
    let mut operands = words.get(at..).unwrap_or_default();
    if let Some((program, files)) = operands.split_first().filter(|_| !from_file) {
        operands = files;
        match program.literal() {
            Some(text) => awk_program(judge, text),
            None => judge.doubt(format!("the program `{}` of awk is computed", program.raw)),
        }
    }
    for word in operands.iter().filter(|w| !w.start().contains('=')) {
        judge.path(word, Rights::READ, &around.dirs);
    }
    operands
        .iter()
        .filter(|w| w.start().contains('='))
        .for_each(|w| judge.mentions(std::slice::from_ref(w), &around.dirs));
}

/// A program that may write, read other files or run something is code that is not followed.
///
/// Only behind `print` does `>` or `|` lead to a file or a program; `||` and `>=` never do.
fn awk_program(judge: &mut Judge<'_>, program: &str) {
    let print = program.find("print").unwrap_or(program.len());
    let behind = program[print..].replace("||", "  ").replace(">=", "  ");
    let words = ["system", "getline", "@", "#", "ARG", "SYMTAB", "PROCINFO", "close", "\\\n", "ENVIRON"];
    if behind.contains(['>', '|']) || words.iter().any(|word| program.contains(word)) {
        judge.needs.find("awk", CODE.0, CODE.1);
        judge.doubt("this awk program may write, read other files or run something");
    }
}
