//! The table of programs: what they do with their operands and options. The rows stand in `programs.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::Rights;

/// What a program does.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    /// The kinds of operands, in order.
    pub(super) operands: Vec<Operand>,
    pub(super) effects: Effects,
    pub(super) options: HashMap<&'static str, Choice>,
    /// Options that are not listed do no harm.
    pub(super) any: bool,
    /// Options end at the first operand.
    pub(super) stop: bool,
    /// Long options have one dash.
    pub(super) single: bool,
    /// The first operand is a subcommand.
    pub(super) subs: bool,
    /// The function that looks at it.
    pub(super) judge: Option<&'static str>,
    /// That function says all there is to say: the table's operands do not count.
    pub(super) alone: bool,
    /// It reaches the other side by whatever program an address names.
    pub(super) remote: bool,
    /// Files are written beside the operands.
    pub(super) beside: bool,
    /// What is put into a directory keeps its name there.
    pub(super) keeps_names: bool,
}

impl Program {
    /// Whether its words are text and nothing else, however many there are.
    pub(super) fn takes_any_words(&self) -> bool {
        let only_text = self.operands.iter().all(|operand| operand.kind == Kind::Text && operand.many);
        self.options.is_empty() && self.judge.is_none() && !self.subs && only_text
    }
}

/// A place for operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) kind: Kind,
    pub(super) many: bool,
}

/// What an operand or the value of an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Read,
    Write,
    Change,
    Run,
    Code,
    Dir,
    Mention,
    Makes,
    Url,
    Send,
    Method,
    Wrap,
    Name,
    Filter,
    Refuse,
}

/// What an option does.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// The kind of its value.
    pub(super) value: Option<Kind>,
    /// A second value behind the first.
    pub(super) second: Option<Kind>,
    /// The value is glued on or missing.
    pub(super) glued: bool,
    pub(super) effects: Effects,
}

/// What a program or an option does besides reading and writing operands.
#[derive(Debug, Clone, Default)]
pub(super) struct Effects {
    pub(super) here: Rights,
    pub(super) network: Rights,
    pub(super) system: Rights,
    pub(super) reads_here: bool,
    pub(super) lists: bool,
    pub(super) skip: bool,
    /// What the program needs where it works it does not need with this option.
    pub(super) elsewhere: bool,
    pub(super) deep: bool,
    /// What lies below is reached by its name.
    pub(super) below: bool,
    /// Names with a dot in front are passed over, or are not.
    pub(super) visible: bool,
    pub(super) hidden: bool,
    /// Links are followed.
    pub(super) follows: bool,
    /// Links may come about.
    pub(super) links: bool,
    pub(super) operands: Option<Kind>,
    pub(super) destroys: Option<&'static str>,
}

/// Some programs that one line of the table is about.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Names, or names with subcommands.
    pub(super) names: Vec<String>,
    pub(super) program: Program,
    /// Options as they stand in the table, each line by itself.
    pub(super) options: Vec<(Vec<&'static str>, Choice)>,
}

/// Finds a program, or a subcommand by both names.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    static TABLE: LazyLock<HashMap<String, Program>> = LazyLock::new(|| {
        rows().into_iter().flat_map(|row| row.names.into_iter().map(move |n| (n, row.program.clone()))).collect()
    });
    TABLE.get(name)
}

/// The rows of the table, in its order.
pub(super) fn rows() -> Vec<Row> {
    read(include_str!("programs.txt"))
}

fn read(text: &'static str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    // Names that stand for subcommands below them.
    let mut above: HashMap<String, bool> = HashMap::new();
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    for line in lines {
        match rows.last_mut() {
            Some(row) if line.starts_with(' ') => {
                let (names, choice) = read_option(line);
                row.program.options.extend(names.iter().map(|name| (*name, choice.clone())));
                row.options.push((names, choice));
            }
            _ => {
                let (heads, rest) = split_head(line);
                let mut program = Program::default();
                read_program(rest, &mut program);
                let names = full_names(heads, &above);
                above.extend(names.iter().map(|name| (name.clone(), program.subs)));
                rows.push(Row { names, program, options: Vec::new() });
            }
        }
    }
    rows
}

/// The names end at the last `: ` or at the colon that ends the line.
fn split_head(line: &'static str) -> (&'static str, &'static str) {
    let at = line.rfind(": ").unwrap_or(line.len() - 1);
    (&line[..at], line.get(at + 1..).unwrap_or(""))
}

/// `git log show` names two subcommands; `ls dir` two programs.
fn full_names(heads: &str, above: &HashMap<String, bool>) -> Vec<String> {
    let parts: Vec<&str> = heads.split_whitespace().collect();
    let mut at = 0;
    let mut prefix = String::new();
    while at + 1 < parts.len() {
        let name = format!("{prefix}{}", parts[at]);
        let known = above.get(&name).is_some_and(|subs| *subs) || (at == 1 && above.contains_key(&name));
        if !known {
            break;
        }
        prefix = format!("{name} ");
        at += 1;
    }
    parts[at..].iter().map(|part| format!("{prefix}{part}")).collect()
}

fn read_program(line: &'static str, program: &mut Program) {
    let (words, destroys) = split_destroys(line);
    program.effects.destroys = destroys;
    for word in words.split_whitespace() {
        let (name, many) = word.strip_suffix('*').map_or((word, false), |name| (name, true));
        match (kind(name), word) {
            (Some(kind), _) => program.operands.push(Operand { kind, many }),
            (None, "any") => program.any = true,
            (None, "stop") => program.stop = true,
            (None, "single") => program.single = true,
            (None, "subs") => program.subs = true,
            (None, "remote") => program.remote = true,
            (None, "beside") => program.beside = true,
            (None, "names") => program.keeps_names = true,
            (None, word) => match word.split_once('=') {
                Some((how @ ("judge" | "also"), judge)) => {
                    program.judge = Some(judge);
                    program.alone = how == "judge";
                }
                _ => read_effect(word, &mut program.effects),
            },
        }
    }
}

fn read_option(line: &'static str) -> (Vec<&'static str>, Choice) {
    let (words, destroys) = split_destroys(line);
    let mut names = Vec::new();
    let mut choice = Choice::default();
    choice.effects.destroys = destroys;
    for word in words.split_whitespace() {
        if word.starts_with(['-', '+']) {
            names.push(word);
        } else if let Some(value) = kind(word.strip_prefix('=').unwrap_or(word)) {
            if choice.value.is_some() {
                choice.second = Some(value);
            } else {
                choice.value = Some(value);
                choice.glued = word.starts_with('=');
            }
        } else {
            read_effect(word, &mut choice.effects);
        }
    }
    (names, choice)
}

fn split_destroys(line: &'static str) -> (&'static str, Option<&'static str>) {
    line.split_once("destroys ").map_or((line, None), |(words, lost)| (words, Some(lost.trim())))
}

fn read_effect(word: &'static str, effects: &mut Effects) {
    match word.split_once('=') {
        Some(("here", digit)) => effects.here = rights(digit),
        Some(("net", digit)) => effects.network = rights(digit),
        Some(("sys", digit)) => effects.system = rights(digit),
        Some(("operands", name)) => effects.operands = kind(name),
        _ => match word {
            "." => effects.reads_here = true,
            "lists" => effects.lists = true,
            "skip" => effects.skip = true,
            "elsewhere" => effects.elsewhere = true,
            "deep" => effects.deep = true,
            "below" => effects.below = true,
            "visible" => effects.visible = true,
            "hidden" => effects.hidden = true,
            "follows" => effects.follows = true,
            "links" => effects.links = true,
            _ => {}
        },
    }
}

fn rights(digit: &str) -> Rights {
    let bits = [(4, Rights::READ), (2, Rights::WRITE), (1, Rights::EXECUTE)];
    let number: u8 = digit.parse().unwrap_or(7);
    bits.iter().filter(|(bit, _)| number & bit != 0).fold(Rights::NONE, |all, (_, right)| all.union(*right))
}

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "text" => Kind::Text,
        "read" => Kind::Read,
        "write" => Kind::Write,
        "change" => Kind::Change,
        "run" => Kind::Run,
        "code" => Kind::Code,
        "dir" => Kind::Dir,
        "mention" => Kind::Mention,
        "makes" => Kind::Makes,
        "url" => Kind::Url,
        "send" => Kind::Send,
        "method" => Kind::Method,
        "wrap" => Kind::Wrap,
        "name" => Kind::Name,
        "filter" => Kind::Filter,
        "refuse" => Kind::Refuse,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 17] = [
        "beside",
        "below",
        ".",
        "any",
        "stop",
        "single",
        "subs",
        "lists",
        "skip",
        "deep",
        "visible",
        "hidden",
        "follows",
        "links",
        "remote",
        "elsewhere",
        "names",
    ];
    const JUDGES: [&str; 24] = [
        "git-shows",
        "clone",
        "date",
        "ps",
        "ln",
        "curl",
        "scp",
        "rsync",
        "test",
        "find",
        "sed",
        "awk",
        "dd",
        "tar",
        "env",
        "xargs",
        "shell",
        "interpreter",
        "kill",
        "checkout",
        "push",
        "git-config",
        "git-remote",
        "git-remotes",
    ];

    fn is_known(word: &str) -> bool {
        let name = word.strip_suffix('*').unwrap_or(word);
        let bare = name.strip_prefix('=').unwrap_or(name);
        kind(bare).is_some()
            || WORDS.contains(&word)
            || word.starts_with(['-', '+'])
            || match word.split_once('=') {
                Some(("here" | "net" | "sys", digit)) => digit.parse::<u8>().is_ok_and(|n| (1..8).contains(&n)),
                Some(("operands", name)) => kind(name).is_some(),
                Some(("judge" | "also", name)) => JUDGES.contains(&name),
                _ => false,
            }
    }

    #[test]
    fn every_word_of_the_table_means_something() {
        for line in include_str!("programs.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words = if line.starts_with(' ') { line } else { split_head(line).1 };
            for word in split_destroys(words).0.split_whitespace() {
                assert!(is_known(word), "`{word}` in `{line}`");
            }
        }
    }

    #[test]
    fn subcommands_are_found_by_both_names() {
        for name in [
            "ls",
            "[",
            ":",
            "git",
            "git log",
            "git stash",
            "git stash list",
            "git remote show",
            "cargo test",
            "go mod tidy",
            "npm run",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("log").is_none());
        assert!(find("git frobnicate").is_none());
    }
}
