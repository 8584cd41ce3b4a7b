//! What commands print, where that is known: a number, a name, a list of paths below a directory.

use super::parse::{self, Node, Redirect, Simple};
use super::special::{find_starts, is_find_test, only_name};
use super::words::{self, Below, Found, Scope, Word};

/// What a command prints.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Printed {
    /// Exactly this.
    Text(String),
    /// Digits.
    Number,
    /// Characters of a name: no slash, no blank, and never nothing.
    Name,
    /// A path that starts like this and did not exist before.
    New(String),
    /// Paths, one a line; or one a NUL, where each is [`Below::whole`].
    Names(Below),
}

/// What the text of a substitution prints.
pub(super) fn by_text(text: &str, scope: &Scope<'_>) -> Option<Printed> {
    const KNOWN: [&str; 15] = [
        "pwd", "git", "find", "rg", "grep", "ls", "seq", "nproc", "wc", "date", "mktemp", "basename", "dirname", "cat",
        "sort",
    ];
    let first = text.split_whitespace().next()?;
    if scope.plain || !KNOWN.contains(&first) && !text.contains("| wc") {
        return None;
    }
    let Ok(Node::List(items)) = parse::parse(text) else { return None };
    let [(node, _)] = items.as_slice() else { return None };
    by_node(node, scope)
}

/// What a simple command or a pipeline of such commands prints.
pub(super) fn by_node(node: &Node, scope: &Scope<'_>) -> Option<Printed> {
    match node {
        Node::List(items) => match items.as_slice() {
            [(node, _)] => by_node(node, scope),
            _ => None,
        },
        Node::Simple(simple) => by_simple(simple, None, scope),
        Node::Pipeline(stages) => stages.iter().fold(None, |fed, stage| match stage {
            Node::Simple(simple) => by_simple(simple, fed.as_ref(), scope),
            _ => None,
        }),
        _ => None,
    }
}

/// What a simple command prints that reads what is known, or anything.
pub(super) fn by_simple(simple: &Simple, fed: Option<&Printed>, scope: &Scope<'_>) -> Option<Printed> {
    if !simple.assignments.is_empty() {
        return None;
    }
    // Errors may be thrown away; what is printed must not go elsewhere.
    let quiet = |r: &Redirect| matches!(r, Redirect::File { op, target } if op == ">" && target == "/dev/null");
    let reads = |r: &Redirect| matches!(r, Redirect::File { op, .. } if op == "<");
    let reading = simple.redirects.iter().any(reads);
    if !simple.redirects.iter().all(|r| quiet(r) || reads(r)) {
        return None;
    }
    let mut found = Found::default();
    let scope = &Scope { plain: true, ..*scope };
    let words: Vec<Word> = simple.words.iter().flat_map(|raw| words::read(raw, scope, &mut found)).collect();
    let (head, rest) = words.split_first()?;
    let printed = by_words(head.literal()?, rest, fed.filter(|_| !reading), scope)?;
    // `2>/dev/null` and `>/dev/null` look alike here: a list may be empty, a text may not.
    let may_be_nothing = matches!(printed, Printed::Names(_) | Printed::Number);
    (may_be_nothing || !simple.redirects.iter().any(quiet)).then_some(printed)
}

fn by_words(name: &str, words: &[Word], fed: Option<&Printed>, scope: &Scope<'_>) -> Option<Printed> {
    match name {
        "pwd" if words.is_empty() => Some(Printed::Text(scope.dirs.only()?.to_str()?.to_owned())),
        "nproc" => Some(Printed::Number),
        "seq" => all_literal(words)?.iter().all(|w| w.parse::<i64>().is_ok()).then_some(Printed::Number),
        "wc" => match all_literal(words)?[..] {
            ["-l" | "-w" | "-c" | "-m"] => Some(Printed::Number),
            _ => None,
        },
        "date" => date(&all_literal(words)?),
        "mktemp" => mktemp(&all_literal(words)?, scope),
        "basename" | "dirname" => part_of(name, &all_literal(words)?),
        "git" => git(words),
        "find" => find(words),
        "rg" | "grep" => matching_files(name, words).or_else(|| filtered(name, words, fed)),
        "ls" => {
            let plain = |w: &&Word| w.literal().is_some_and(|o| o[1..].chars().all(|c| "1artShAcu".contains(c)));
            let (options, paths): (Vec<&Word>, Vec<&Word>) = words.iter().partition(|w| w.start().starts_with('-'));
            (options.iter().all(plain) && paths.iter().all(|w| is_plain_relative(w))).then(|| names("", None, false))
        }
        "head" | "tail" | "sort" | "uniq" | "shuf" | "tac" | "cat" => filtered(name, words, fed),
        "xargs" => chosen(words, fed),
        _ => None,
    }
}

fn names(dir: &str, name: Option<&str>, whole: bool) -> Printed {
    Printed::Names(Below { dir: dir.into(), name: name.map(str::to_owned), whole })
}

fn all_literal(words: &[Word]) -> Option<Vec<&str>> {
    words.iter().map(Word::literal).collect()
}

/// A relative path, or a pattern of some, that does not lead up.
fn is_plain_relative(word: &Word) -> bool {
    word.pattern().is_some_and(|text| !text.starts_with(['/', '-', '~']) && text.split('/').all(|part| part != ".."))
}

/// Only formats whose every part is digits, or letters of a name.
fn date(words: &[&str]) -> Option<Printed> {
    let [format] = words else { return None };
    let format = format.strip_prefix('+')?;
    let mut chars = format.chars();
    let mut number = !format.is_empty();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next()? {
                's' | 'Y' | 'm' | 'd' | 'H' | 'M' | 'S' | 'N' | 'y' | 'j' => {}
                'F' | 'T' => number = false,
                _ => return None,
            },
            c if c.is_ascii_alphanumeric() || "-_:.".contains(c) => number = false,
            _ => return None,
        }
    }
    if number { Some(Printed::Number) } else { Some(Printed::Name).filter(|_| format.contains('%')) }
}

/// A new file or directory directly below `/tmp`.
fn mktemp(words: &[&str], scope: &Scope<'_>) -> Option<Printed> {
    let elsewhere = scope.variables.is_set("TMPDIR")
        || scope.place.env.iter().any(|(name, value)| name == "TMPDIR" && value != "/tmp");
    if elsewhere {
        return None;
    }
    match words {
        [] | ["-d"] => Some(Printed::New("/tmp/tmp.".into())),
        ["-d", template] | [template] => {
            let start = template.strip_prefix("/tmp/").filter(|rest| !rest.contains('/'))?.trim_end_matches('X');
            let plain = !start.is_empty() && template.ends_with("XXX") && !start.contains([' ', '*', '?', '[']);
            plain.then(|| Printed::New(format!("/tmp/{start}")))
        }
        _ => None,
    }
}

fn part_of(program: &str, words: &[&str]) -> Option<Printed> {
    let [path] = words else { return None };
    let plain = !path.is_empty() && !path.starts_with('-') && !path.ends_with('/') && !path.contains("//");
    let (dir, base) = path.rsplit_once('/').unwrap_or((".", path));
    let part = if program == "basename" { base } else { dir };
    (plain && !part.is_empty()).then(|| Printed::Text(part.into()))
}

/// Subcommands of git that list names of files.
fn git(words: &[Word]) -> Option<Printed> {
    let (sub, rest) = words.split_first()?;
    let whole = rest.iter().any(|w| w.literal() == Some("-z"));
    let (options, paths): (Vec<&Word>, Vec<&Word>) =
        rest.iter().partition(|w| w.start().starts_with('-') && w.literal() != Some("--"));
    let options: Vec<&str> = options.iter().map(|w| w.literal()).collect::<Option<_>>()?;
    let only = |known: &str| options.iter().all(|o| known.split(' ').any(|k| k == *o));
    match sub.literal()? {
        "ls-files" => {
            let known = "-z -c -o -m -d --cached --others --modified --deleted --exclude-standard";
            let paths: Vec<&&Word> = paths.iter().filter(|w| w.literal() != Some("--")).collect();
            let name = match paths.as_slice() {
                [only] => only.literal().filter(|p| p.starts_with('*') && !p[1..].contains(['/', '*', '?', '['])),
                _ => None,
            };
            (only(known) && paths.iter().all(|w| is_plain_relative(w))).then(|| names("", name, whole))
        }
        "diff" | "show" => {
            let known = "--name-only --cached --staged -z --diff-filter=ACM --diff-filter=ACMR --diff-filter=AM --diff-filter=d --pretty= --format=";
            (only(known) && options.contains(&"--name-only")).then(|| names("", None, whole))
        }
        "grep" => {
            let known = "-l --name-only --files-with-matches -z -i -w -F -E -I";
            let lists = options.iter().any(|o| matches!(*o, "-l" | "--name-only" | "--files-with-matches"));
            (only(known) && lists).then(|| names("", None, whole))
        }
        _ => None,
    }
}

fn find(words: &[Word]) -> Option<Printed> {
    let (starts, expression) = find_starts(words);
    if !expression.iter().enumerate().all(|(at, _)| is_find_test(expression, at)) {
        return None;
    }
    let has = |names: &str| expression.iter().any(|w| names.split(' ').any(|name| w.literal() == Some(name)));
    let name = only_name(expression);
    let dir = match starts.as_slice() {
        [start] => start.literal()?,
        several => several.iter().all(is_plain_relative).then_some("")?,
    };
    Some(names(dir, name, has("-print0"))).filter(|_| !has("-print") || !has("-print0"))
}

/// `rg -l`, `grep -rl`: the names of files, each below what is searched.
fn matching_files(program: &str, words: &[Word]) -> Option<Printed> {
    let (options, operands): (Vec<&Word>, Vec<&Word>) = words.iter().partition(|w| w.start().starts_with('-'));
    let letters = if program == "rg" { "liFwvsSuN0" } else { "lLrRiEFwvsIhHZ" };
    let long = "--files --files-with-matches --null --hidden --type=rust --type=py --ignore-case --fixed-strings";
    let (mut lists, mut whole, mut pattern) = (false, false, true);
    for option in options {
        let option = option.literal()?;
        let short = !option.starts_with("--") && option[1..].chars().all(|c| letters.contains(c));
        if !short && !long.split(' ').any(|known| known == option) {
            return None;
        }
        pattern &= option != "--files";
        lists |= matches!(option, "--files" | "--files-with-matches") || short && option.contains(['l', 'L']);
        whole |= option == "--null" || short && option.contains(['0', 'Z']);
    }
    let paths = operands.get(usize::from(pattern)..)?;
    let dir = match paths {
        [start] if start.literal().is_some() => start.literal()?,
        several => several.iter().all(|w| is_plain_relative(w)).then_some("")?,
    };
    (lists && dir != "-").then(|| names(dir, None, whole))
}

/// `xargs grep -l`: some of the names that it reads.
fn chosen(words: &[Word], fed: Option<&Printed>) -> Option<Printed> {
    let Some(Printed::Names(below)) = fed else { return None };
    let words = all_literal(words)?;
    let at = words.iter().position(|word| !matches!(*word, "-0" | "-r"))?;
    let (searches, options) = (matches!(words[at], "grep" | "rg"), &words[at + 1..]);
    let letters = |o: &str| o.strip_prefix('-').is_some_and(|o| o.chars().all(|c| "lLiEFw".contains(c)));
    let lists = options.iter().any(|o| letters(o) && o.contains(['l', 'L']));
    let plain = options.iter().all(|o| letters(o) || !o.starts_with('-'))
        && options.iter().filter(|o| !letters(o)).count() == 1;
    (searches && lists && plain).then(|| Printed::Names(Below { whole: false, ..below.clone() }))
}

/// What passes lines on whole.
fn filtered(program: &str, words: &[Word], fed: Option<&Printed>) -> Option<Printed> {
    let fed = fed.filter(|fed| !matches!(fed, Printed::Names(Below { whole: true, .. })))?;
    let words = all_literal(words)?;
    let count = |w: &str| w.chars().all(|c| c.is_ascii_digit());
    let plain = match (program, words.as_slice()) {
        ("cat" | "tac" | "sort" | "uniq" | "head" | "tail" | "shuf", []) => true,
        ("sort", [option]) => matches!(*option, "-u" | "-r" | "-ru" | "-V" | "-n"),
        ("head" | "tail" | "shuf", ["-n", n]) => count(n.trim_start_matches('+')),
        ("head" | "tail" | "shuf", [n]) => n.strip_prefix("-n").or(n.strip_prefix('-')).is_some_and(count),
        ("grep" | "rg", [pattern]) => !pattern.starts_with('-'),
        ("grep" | "rg", [option, pattern]) => {
            option.strip_prefix('-').is_some_and(|o| o.chars().all(|c| "viEFwx".contains(c)))
                && !pattern.starts_with('-')
        }
        _ => false,
    };
    plain.then(|| fed.clone())
}
