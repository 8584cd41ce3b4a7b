//! Programs and words that a table cannot tell of: each has a function of its own.

use std::path::{Path, PathBuf};

use super::judge::{Around, CODE, Fed, Judge, Reach};
use super::languages;
use super::plan::{Dirs, is_name};
use super::programs::{self, Program};
use super::words::Word;
use crate::policy::{Rights, Zone};

/// The name of an ordinary program: one from PATH, or named by its path where the system keeps them.
pub(super) fn ordinary(name: &str) -> Option<&str> {
    if !name.contains('/') {
        return Some(name);
    }
    let name = ["/usr/local/bin/", "/usr/bin/", "/bin/"].iter().find_map(|dir| name.strip_prefix(dir));
    name.filter(|name| !name.contains('/') && !matches!(*name, "" | "." | ".."))
}

pub(super) fn is_ordinary_dir(path: &str) -> bool {
    matches!(
        path.trim_end_matches('/'),
        "/usr/local/bin" | "/usr/bin" | "/bin" | "/usr/sbin" | "/sbin" | "/usr/local/sbin"
    )
}

pub(super) fn find_program(name: &str) -> Option<&'static Program> {
    let unversioned = || name.strip_prefix("python").filter(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.'));
    programs::find(family(name)).or_else(|| unversioned().and_then(|_| programs::find("python")))
}

/// Programs with the same subcommands.
pub(super) fn family(name: &str) -> &str {
    match name {
        "pnpm" | "yarn" => "npm",
        "pip3" | "uv" | "poetry" | "pipx" => "pip",
        name => name,
    }
}

/// Words that mean nothing by themselves.
pub(super) fn is_key_word(name: &str) -> bool {
    matches!(name, ":" | "{" | "}" | "!")
}

/// Variables after which words mean something else.
pub(super) fn changes_shell(name: &str) -> bool {
    matches!(
        name,
        "IFS" | "CDPATH" | "HOME" | "GLOBIGNORE" | "BASHOPTS" | "SHELLOPTS" | "POSIXLY_CORRECT" | "PWD" | "OLDPWD"
    )
}

const PROGRAM_NAMES: [&str; 46] = [
    "PATH",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELL",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "CC",
    "CXX",
    "LD",
    "AR",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTUP_TOOLCHAIN",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    "GOFLAGS",
    "JAVA_TOOL_OPTIONS",
    "JAVA_OPTS",
    "MAVEN_OPTS",
    "CLASSPATH",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_PATH",
    "TERMINFO",
    "XDG_CONFIG_HOME",
    "RIPGREP_CONFIG_PATH",
    "CURL_HOME",
    "WGETRC",
    "GCONV_PATH",
    "HISTFILE",
];
const PROGRAM_STARTS: [&str; 12] = [
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_FUNC_",
    "PYTHON",
    "PERL",
    "NODE_",
    "npm_config_",
    "NPM_CONFIG_",
    "CARGO_",
    "GEM_HOME",
    "LUA_",
];
const TAME: [&str; 12] = [
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONHASHSEED",
    "PYTHONUTF8",
    "NODE_ENV",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "GIT_TERMINAL_PROMPT",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "CARGO_NET_OFFLINE",
];

/// Variables that name programs or code that other programs run.
pub(super) fn names_program(name: &str) -> bool {
    !TAME.contains(&name)
        && (PROGRAM_NAMES.contains(&name) || PROGRAM_STARTS.iter().any(|start| name.starts_with(start)))
}

/// Variables that change what runs and do nothing else; of others the values may be paths that are written, or worse.
pub(super) fn only_runs(name: &str) -> bool {
    let names = "PATH LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SSH_COMMAND GIT_SEQUENCE_EDITOR";
    names.split(' ').any(|known| known == name)
}

/// Whether what is unknown in a value is no more than what the variable held before.
pub(super) fn only_adds(name: &str, value: &Word) -> bool {
    let raw = value.raw.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).unwrap_or(&value.raw);
    let before = raw.matches(&format!("${name}")).count() + raw.matches(&format!("${{{name}}}")).count();
    let known = raw.matches('$').count() == before + raw.matches("$HOME").count();
    !value.is_unknown() || (before > 0 && known && !raw.contains(['=', '(', '`', '~', '*', '?', '[']))
}

/// Commands of git that run whatever an address names to reach the other side.
pub(super) fn is_remote(name: &str) -> bool {
    matches!(name, "git fetch" | "git pull" | "git push" | "git ls-remote" | "git remote" | "git clone")
}

/// Variables that only say how something is shown, or that are somebody's own: lower case, and names of examples.
pub(super) fn is_harmless(name: &str, value: &Word) -> bool {
    const SHOWN: &str = "RUST_BACKTRACE RUST_LOG RUST_LIB_BACKTRACE CARGO_TERM_COLOR CARGO_INCREMENTAL NO_COLOR CLICOLOR CLICOLOR_FORCE FORCE_COLOR LANG LANGUAGE TZ DEBUG CI NODE_ENV PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING TERM COLUMNS LINES VERBOSE GIT_TERMINAL_PROMPT GIT_AUTHOR_DATE GIT_COMMITTER_DATE CARGO_NET_OFFLINE GIT_PAGER_IN_USE FOO BAR BAZ";
    let shown = SHOWN.split(' ').any(|known| known == name) || name.starts_with("LC_");
    let leads_nowhere = |v: &str| !v.starts_with(['/', '.', ':', '~', '(']) && !v.contains("..");
    // Single letters are nobody's but the command's.
    let single = name.len() == 1 && name != "_";
    (shown && value.literal().is_some_and(leads_nowhere)) || single || is_own_name(name)
}

/// Lower case and read by no program that we know of.
pub(super) fn is_own_name(name: &str) -> bool {
    let odd = ["proxy", "npm", "pip", "auto_resume", "histchars", "config"];
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.len() < 40 && name != "_" && name.chars().all(lower) && !odd.iter().any(|odd| name.contains(odd))
}

/// Variables that a shell or a program reads: none may be set to whatever comes.
pub(super) fn means_something(name: &str) -> bool {
    const STARTS: [&str; 12] =
        ["BASH", "HIST", "COMP_", "READLINE_", "MAIL", "COPROC", "PS", "LC_", "GIT_", "SSH", "TMP", "XDG_"];
    const NAMES: &str = "ENV FIGNORE EXECIGNORE FUNCNEST GROUPS INPUTRC TMOUT TIMEFORMAT TEMPDIR OPTIND OPTARG OPTERR RANDOM SECONDS LINENO UID EUID PPID REPLY MAPFILE SHLVL DIRSTACK LANG LANGUAGE TZ TERM USER LOGNAME _ auto_resume histchars";
    let odd = !is_own_name(name) && name.to_ascii_lowercase().contains("proxy");
    odd || changes_shell(name)
        || names_program(name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || NAMES.split(' ').any(|known| known == name)
}

/// Variables that hold a whole command line, or text in which commands are put in.
pub(super) fn is_command_line(name: &str) -> bool {
    let ends = ["_COMMAND", "PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "ASKPASS"];
    ends.iter().any(|end| name.ends_with(end)) || name.starts_with("PS")
}

/// Whether the function says all there is to say: the table's operands do not count then.
pub(super) fn judges_alone(name: &str) -> bool {
    !matches!(name, "checkout" | "push" | "curl")
}

/// Calls the function of this name.
pub(super) fn judge(which: &str, judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
    match which {
        "test" => test(judge, words, around),
        "find" => find(judge, words, around),
        "sed" => languages::sed(judge, words, around),
        "awk" => languages::awk(judge, words, around),
        "dd" => dd(judge, words, around),
        "tar" => tar(judge, words, around),
        "env" => env(judge, words, around),
        "xargs" => xargs(judge, words, around),
        "shell" => shell(judge, words, around),
        "interpreter" => interpreter(judge, name, words, around),
        "kill" => kill(judge, words),
        "checkout" => checkout(judge, words, around),
        "push" => push(judge, words),
        "date" => date(judge, words, around),
        "ps" => ps(judge, words),
        "ln" => ln(judge, words, around),
        "curl" => curl(judge, words, around),
        "scp" => between_hosts(judge, name, words, around),
        "rsync" => between_hosts(judge, name, words, around),
        "git-config" => git_config(judge, words, around),
        _ => judge.doubt(format!("`{name}` is not known here")),
    }
}

/// Questions about a file look at it; what is not known is a mere question.
fn test(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    for pair in words.windows(2) {
        let file = pair[0]
            .literal()
            .is_some_and(|op| op.len() == 2 && op.starts_with('-') && "abcdefghkprstuwxLOGSN".contains(&op[1..]));
        if file && pair[1].literal().is_some_and(|path| path != "]") {
            judge.path(&pair[1], Rights::READ, &around.dirs);
        }
    }
    if words.iter().any(|w| matches!(w.literal(), Some("-v" | "-R"))) {
        judge.doubt("it computes the name of a variable");
    }
}

fn find(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let is_expression = |w: &Word| w.start().starts_with(['-', '(', ')', '!', ',']);
    let flags = words.iter().take_while(|w| matches!(w.literal(), Some("-H" | "-P"))).count();
    let count = words[flags..].iter().take_while(|w| !is_expression(w)).count();
    let (mut starts, expression) = (words[flags..flags + count].to_vec(), &words[flags + count..]);
    if starts.is_empty() {
        starts.push(Word::text("."));
    }
    let deletes = expression.iter().any(|w| w.literal() == Some("-delete"));
    if deletes {
        judge.destroys("the files that find deletes");
    }
    let rights = if deletes { Rights::READ_WRITE } else { Rights::READ };
    starts.iter().for_each(|start| judge.path(start, rights, &around.dirs));
    find_expression(judge, &starts, expression, around);
}

fn find_expression(judge: &mut Judge<'_>, starts: &[Word], expression: &[Word], around: &Around<'_>) {
    let mut at = 0;
    while let Some(word) = expression.get(at) {
        at += 1;
        let value = expression.get(at);
        match word.literal() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                if word.start().ends_with("dir") {
                    judge.doubt("which directory find runs it in is not known");
                }
                let ends = |i: &usize| match expression[at + i].literal() {
                    Some(";") => true,
                    Some("+") => *i > 0 && expression[at + i - 1].literal() == Some("{}"),
                    _ => false,
                };
                let Some(end) = (0..expression.len() - at).find(ends) else {
                    return judge.doubt("a `-exec` does not end");
                };
                each_found(judge, starts, &expression[at..at + end], around);
                at += end + 1;
            }
            Some("-fprint" | "-fprint0" | "-fls") => {
                value.iter().for_each(|file| judge.path(file, Rights::WRITE, &around.dirs));
                at += 1;
            }
            Some("-fprintf") => {
                value.iter().for_each(|file| judge.path(file, Rights::WRITE, &around.dirs));
                at += 2;
            }
            Some("-newer" | "-anewer" | "-cnewer" | "-samefile") => {
                value.iter().for_each(|file| judge.path(file, Rights::READ, &around.dirs));
                at += 1;
            }
            Some(test) if FIND_VALUES.contains(&test) || test.starts_with("-newer") => at += 1,
            Some(test) if FIND_PLAIN.contains(&test) => {}
            _ => judge.doubt(format!("what `{}` means to find is not known here", word.raw)),
        }
    }
}

const FIND_VALUES: [&str; 31] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-maxdepth",
    "-mindepth",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-links",
    "-inum",
    "-fstype",
    "-printf",
    "-lname",
    "-ilname",
];
const FIND_PLAIN: [&str; 25] = [
    "-print",
    "-print0",
    "-ls",
    "-delete",
    "-prune",
    "-quit",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-empty",
    "-readable",
    "-writable",
    "-executable",
    "-true",
    "-false",
    "-o",
    "-or",
    "-a",
    "-and",
    "-not",
    "!",
    "(",
    ")",
    ",",
];

/// The command of `-exec`, for each place that find starts at: what it finds lies there.
fn each_found(judge: &mut Judge<'_>, starts: &[Word], command: &[Word], around: &Around<'_>) {
    if command.first().is_none_or(|head| head.pattern().is_none_or(|text| text.contains("{}"))) {
        return judge.doubt("find runs what it finds");
    }
    for start in starts {
        judge.tree(start, Rights::READ, Reach::ALL, &around.dirs);
        let found = |word: &Word| match word.literal() {
            Some("{}") => start.clone(),
            Some(text) if text.contains("{}") => Word::unknown(&word.raw),
            _ => word.clone(),
        };
        let command: Vec<Word> = command.iter().map(found).collect();
        judge.words(&command, &Around { wrappers: around.wrappers + 1, fed: Fed::Nobody, ..around.clone() });
    }
}

fn dd(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    for word in words {
        match word.start().split_once('=').map(|(key, _)| key) {
            Some("if") => judge.path(&word.after(3), Rights::READ, &around.dirs),
            Some("of") => judge.path(&word.after(3), Rights::WRITE, &around.dirs),
            Some("bs" | "ibs" | "obs" | "count" | "skip" | "seek" | "conv" | "status" | "iflag" | "oflag") => {}
            _ => judge.doubt(format!("what `{}` means to dd is not known here", word.raw)),
        }
    }
}

/// `tar xzf a.tgz -C dir`: letters first, then values in their order, then options.
fn tar(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let Some((first, rest)) = words.split_first() else { return };
    let letters = first.literal().unwrap_or("?").trim_start_matches('-').to_owned();
    if first.start().starts_with("--") || !letters.chars().all(|c| "xctfzvjJkpmC".contains(c)) {
        return judge.doubt("these options of tar are not known here");
    }
    let (extracts, creates) = (letters.contains('x'), letters.contains('c'));
    let mut dirs = around.dirs.clone();
    let mut values: Vec<char> = letters.chars().filter(|c| "fC".contains(*c)).rev().collect();
    let mut members: Vec<&Word> = Vec::new();
    for word in rest {
        match (values.pop(), word.literal()) {
            (Some('f'), _) if word.start().contains(':') => judge.doubt("tar reaches another host"),
            (Some('f'), _) => judge.path(word, if creates { Rights::WRITE } else { Rights::READ }, &around.dirs),
            (Some(_), path) => {
                judge.path(word, Rights::READ, &dirs);
                dirs = path.map_or(Dirs(None), |path| dirs.enter(path));
            }
            (None, Some("-C" | "--directory")) => values.push('C'),
            (None, Some("-f" | "--file")) => values.push('f'),
            (None, Some(text)) if text.starts_with("--exclude=") || text.starts_with("--strip-components=") => {}
            (None, _) if word.start().starts_with('-') => judge.doubt("these options of tar are not known here"),
            (None, _) => members.push(word),
        }
    }
    if extracts {
        judge.here("tar", Rights::READ_WRITE, &dirs);
    }
    if creates {
        members.iter().for_each(|word| judge.tree(word, Rights::READ, Reach::ALL, &dirs));
    }
    if extracts {
        judge.may_link("tar", &[], around);
    }
}

fn env(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut around = around.clone();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match (word.literal(), word.start().split_once('=')) {
            (Some("-i" | "-" | "-0" | "--ignore-environment" | "--null" | "-v" | "--debug" | "--"), _) => {}
            (Some("-u" | "--unset"), _) if words.get(at + 1).is_some_and(|w| w.literal() != Some("PATH")) => at += 1,
            (Some("-C" | "--chdir"), _) => {
                at += 1;
                let dir = words.get(at).and_then(Word::literal);
                around.dirs = dir.map_or(Dirs(None), |dir| around.dirs.enter(dir));
            }
            (_, Some((name, _))) if is_name(name) => {
                judge.assignment(name, &word.after(name.len() + 1), true, &around.dirs);
            }
            _ if word.start().starts_with('-') => {
                return judge.doubt(format!("env: its option `{}` is not known here", word.raw));
            }
            _ => break,
        }
        at += 1;
    }
    around.wrappers += 1;
    judge.words(words.get(at..).unwrap_or_default(), &around);
}

fn xargs(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut at = 0;
    let mut replaced = None;
    while let Some(text) = words.get(at).and_then(Word::literal).filter(|text| text.starts_with('-')) {
        match text {
            "-0" | "-r" | "-t" | "-x" | "--null" | "--no-run-if-empty" | "--verbose" => {}
            "-n" | "-P" | "-L" | "-d" | "-s" | "-E" => at += 1,
            "-I" => {
                at += 1;
                replaced = words.get(at).and_then(Word::literal);
            }
            _ if text.len() > 2 && ["-n", "-P", "-L", "-d", "-s"].iter().any(|o| text.starts_with(o)) => {}
            _ if text.len() > 2 && text.starts_with("-I") => replaced = Some(&text[2..]),
            _ => return judge.doubt(format!("xargs: its option `{text}` is not known here")),
        }
        at += 1;
    }
    let holds = |word: &Word| replaced.is_some_and(|mark| word.pattern().is_none_or(|text| text.contains(mark)));
    let mut command: Vec<Word> = words.get(at..).unwrap_or_default().to_vec();
    for word in &mut command {
        if holds(word) {
            *word = Word::unknown(&word.raw);
        }
    }
    if replaced.is_none() && !command.is_empty() {
        command.push(Word::unknown("what xargs reads"));
    }
    judge.words(&command, &Around { wrappers: around.wrappers + 1, fed: Fed::Nobody, ..around.clone() });
}

/// `sh -c 'text'`, `sh file`, or a shell that runs what it reads.
fn shell(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
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

fn interpreter(judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
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
    let in_place = matches!(name, "perl" | "ruby")
        && words.iter().any(|w| {
            w.start().starts_with('-')
                && !w.start().starts_with("--")
                && w.start()[1..].trim_start_matches(['p', 'n', 'l', 'a', '0', 'w']).starts_with('i')
        });
    let mut given = false;
    let mut at = 0;
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
        if long || (short && letters.ends_with(['c', 'e', 'E', 'm', 'p', 'r'])) {
            let Some(code) = words.get(at) else { break };
            if code.literal().is_none() && !requires {
                judge.doubt(format!("the code `{}` is computed", code.raw));
            }
            if letters.ends_with('m') && code.literal() == Some("pip") {
                let wrapped = Around { wrappers: around.wrappers + 1, ..around.clone() };
                return judge.words(&words[at..], &wrapped);
            }
            given |= !requires;
            at += 1;
            if matches!(name, "python" | "python3") {
                break;
            }
        }
    }
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
        operands.iter().for_each(|word| judge.path(word, Rights::READ_WRITE, &around.dirs));
    }
}

/// Only what the command itself started may be stopped for free.
fn kill(judge: &mut Judge<'_>, words: &[Word]) {
    let own = |w: &Word| w.literal().is_some_and(|t| t.starts_with('%')) || matches!(w.raw.as_str(), "$!" | "\"$!\"");
    let signals = |w: &Word| w.literal().is_some_and(|t| t.starts_with('-') && !matches!(t, "-s" | "-n" | "-q" | "--"));
    let skipped = usize::from(words.first().is_some_and(signals));
    let lists = matches!(words.first().and_then(Word::literal), Some("-l" | "-L"));
    if !lists && !words[skipped..].iter().all(own) {
        judge.needs.find("kill", Some(Zone::System), Rights::EXECUTE);
    }
}

/// Addresses of code, as interpreters fetch it themselves.
fn is_remote_code(word: &Word) -> bool {
    ["http:", "https:", "npm:", "jsr:"].iter().any(|start| word.start().starts_with(start))
}

/// Only `+format` and plain questions do not set the clock.
fn date(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.literal() {
            Some("-u" | "--utc" | "--universal" | "-R" | "--rfc-email" | "-I" | "--help" | "--version") => {}
            Some("-d" | "--date") => {
                rest.next();
            }
            Some("-r" | "--reference" | "-f" | "--file") => {
                rest.next().into_iter().for_each(|file| judge.path(file, Rights::READ, &around.dirs));
            }
            _ if ["+", "-I", "--iso-8601", "--rfc-3339=", "--date="].iter().any(|s| word.start().starts_with(s)) => {}
            _ => judge.needs.find(format!("date {}", word.raw), Some(Zone::System), Rights::WRITE),
        }
    }
}

/// Which processes there are is no secret; what they were started with is.
fn ps(judge: &mut Judge<'_>, words: &[Word]) {
    const PLAIN: &str = "aux auxw auxww axu ax a x u ux -e -f -ef -eF -A -a -aux -ax -fe -p -o -u -U -C -eo -axo --sort --no-headers --pid --forest f";
    let mut value = false;
    for word in words {
        let text = word.literal().unwrap_or("environ");
        let takes = matches!(text, "-p" | "-o" | "-u" | "-U" | "-C" | "-eo" | "-axo" | "--sort" | "--pid");
        let known = value && !text.contains("environ") && !text.starts_with('-')
            || PLAIN.split(' ').any(|plain| plain == text)
            || text.starts_with("--sort=")
            || text.chars().all(|c| c.is_ascii_digit() || c == ',');
        if !known {
            judge.needs.find(format!("ps {}", word.raw), Some(Zone::System), Rights::READ);
        }
        value = takes;
    }
}

/// A link gives what it leads to another name: it takes what direct access takes. Where it leads is seen from the
/// directory that it lies in, which may be the name itself.
fn ln(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut operands: Vec<&Word> = Vec::new();
    for word in words {
        match word.literal() {
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                let flags = text.strip_prefix("--").is_none() && text[1..].chars().all(|c| "sfnvTP".contains(c));
                if !flags && !matches!(text, "--symbolic" | "--force" | "--no-dereference" | "--verbose" | "--") {
                    return judge.doubt(format!("ln: its option `{text}` is not known here"));
                }
            }
            Some(_) => operands.push(word),
            None => return judge.doubt(format!("where `{}` leads is not known", word.raw)),
        }
    }
    let here = Word::text(".");
    let (targets, name) = match operands.as_slice() {
        [] => return,
        [target] => (vec![*target], &here),
        [targets @ .., name] => (targets.to_vec(), *name),
    };
    let name = name.literal().unwrap_or(".");
    let parent =
        name.trim_end_matches('/').rsplit_once('/').map_or(".", |(dir, _)| if dir.is_empty() { "/" } else { dir });
    let bases = [around.dirs.clone(), around.dirs.enter(parent), around.dirs.enter(name)];
    for target in targets {
        bases.iter().for_each(|dirs| judge.path(target, Rights::READ_WRITE, dirs));
        let base = target.literal().unwrap_or("").trim_end_matches('/').rsplit('/').next().unwrap_or("");
        judge.path(&Word::text(&format!("{name}/{base}")), Rights::READ_WRITE, &around.dirs);
    }
    judge.path(&Word::text(name), Rights::READ_WRITE, &around.dirs);
    judge.may_link("ln", &[], around);
}

/// What is copied into a directory keeps its name there.
pub(super) fn copied_names(judge: &mut Judge<'_>, operands: &[&Word], around: &Around<'_>) {
    let Some((dest, sources)) = operands.split_last() else { return };
    let Some(dest) = dest.literal() else { return };
    for source in sources {
        let path = source.start().trim_end_matches('/');
        let base = path.rsplit('/').next().unwrap_or("");
        if source.literal().is_some() && !matches!(base, "" | "." | "..") {
            judge.path(&Word::text(&format!("{dest}/{base}")), Rights::WRITE, &around.dirs);
        }
    }
}

/// What the table cannot say of curl's words: only plain addresses, and files by their plain names.
fn curl(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut option = "";
    let takes_name = |w: &Word| w.start() == "--remote-name" || (is_cluster(w) && w.start().contains('O'));
    let named = words.iter().any(takes_name);
    for word in words {
        let text = word.start();
        let taken = std::mem::take(&mut option);
        let is_address = text.contains("://") || text.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("file:"));
        match taken {
            "-w" | "--write-out" if text.starts_with('@') || text.contains("%output") || word.literal().is_none() => {
                judge.doubt("what curl writes out is not known");
            }
            "-o" | "--output" if text.contains('#') => judge.doubt("which file curl writes is not known"),
            "-T" | "--upload-file" if text.contains(['{', '[']) => judge.doubt("which files curl sends is not known"),
            "-b" | "--cookie" if !text.contains('=') || text.starts_with('@') => {
                judge.path(word, Rights::READ, &around.dirs);
            }
            "-F" | "--form" => curl_form(judge, word, around),
            "--data-urlencode" if text.contains('@') => {
                judge.doubt(format!("what `{}` sends is not known", word.raw));
            }
            "" if text.starts_with('-') && text.len() > 1 => {
                option = curl_option(judge, word);
            }
            "" | "--url" => curl_address(judge, word, named, around),
            _ if is_address
                && !matches!(
                    taken,
                    "-e" | "--referer" | "-d" | "--data" | "--data-raw" | "-H" | "--header" | "--json"
                ) =>
            {
                judge.doubt(format!("what the address `{}` does here is not known", word.raw));
            }
            _ => {}
        }
    }
}

/// A part of a form: text, or a file by its plain name.
fn curl_form(judge: &mut Judge<'_>, word: &Word, around: &Around<'_>) {
    let text = word.start();
    let value = text.find('=').map_or(0, |at| at + 1);
    let rest = word.after(value);
    if rest.start().starts_with(['@', '<']) {
        judge.file_sent(&rest.after(1), &around.dirs);
    } else if rest.start().contains([';', '@', '<']) || word.literal().is_none() {
        judge.doubt(format!("what the form `{}` sends is not known", word.raw));
    }
}

/// Only plain addresses; with `-O` the last part of one names a file.
fn curl_address(judge: &mut Judge<'_>, word: &Word, named: bool, around: &Around<'_>) {
    let text = word.start();
    let plain = ["http://", "https://", "localhost"].iter().any(|start| text.starts_with(start));
    let pattern = text.contains(['{', '}', '[', ']', '#']) || word.pattern().is_none() && !has_host(text);
    if !plain || pattern {
        judge.doubt(format!("which address `{}` is is not plain", word.raw));
    }
    let last = text.split('?').next().unwrap_or("").rsplit('/').next().unwrap_or("");
    if named && !last.is_empty() {
        judge.path(&Word::text(last), Rights::WRITE, &around.dirs);
    }
}

/// The option that takes the next word, as curl spells it in full or by its letter.
fn curl_option(judge: &mut Judge<'_>, word: &Word) -> &'static str {
    const VALUES: &str = "-w --write-out -o --output -T --upload-file -b --cookie -F --form --data-urlencode --url -d --data --data-raw --data-binary --data-ascii --json --form-string -X --request -H --header -A --user-agent -e --referer -u --user --oauth2-bearer -m --max-time --connect-timeout --retry --retry-delay --retry-max-time -r --range -C --continue-at --limit-rate --max-redirs --cacert --cert --key -E --etag-compare -c --cookie-jar -D --dump-header --trace --trace-ascii --stderr --etag-save";
    let text = word.literal().unwrap_or("-?");
    if let Some(known) = VALUES.split(' ').find(|known| *known == text) {
        return known;
    }
    if text.starts_with("--") {
        if text.contains('=') {
            judge.doubt(format!("curl: what `{text}` says is not plain"));
        }
        return "";
    }
    let valued = |c: char| VALUES.split(' ').find(|known| known.len() == 2 && known.ends_with(c));
    for (at, c) in text.char_indices().skip(1) {
        if let Some(known) = valued(c) {
            // Glued values are seen by nobody here: only where they can do no harm.
            if at + 1 < text.len() && !matches!(c, 'X' | 'm' | 'o' | 'H' | 'A' | 'r' | 'C' | 'u') {
                judge.doubt(format!("curl: what `{text}` says is not plain"));
            }
            if at + 1 < text.len() && text.contains('#') {
                judge.doubt("which file curl writes is not known");
            }
            return if at + 1 == text.len() { known } else { "" };
        }
    }
    ""
}

/// Options of one letter, perhaps several.
fn is_cluster(word: &Word) -> bool {
    word.start().starts_with('-') && !word.start().starts_with("--")
}

/// Whether the known start of an address holds all of its host.
fn has_host(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']))
}

/// `host:path` lies on another host; the last operand is written.
fn between_hosts(judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
    let letters = if name == "scp" { "rpqvC346" } else { "avrzhltpqPun" };
    let mut operands: Vec<&Word> = Vec::new();
    for word in words {
        match word.literal() {
            Some("--delete") if name == "rsync" => judge.destroys("what is not at the source"),
            Some("--archive" | "--verbose" | "--recursive" | "--progress" | "--dry-run" | "--stats" | "--update")
                if name == "rsync" => {}
            Some(text) if name == "rsync" && (text.starts_with("--exclude=") || text.starts_with("--include=")) => {}
            Some(text) if text.starts_with('-') && text[1..].chars().all(|c| letters.contains(c)) => {}
            _ if word.start().starts_with('-') || word.is_unknown() => {
                return judge.doubt(format!("{name}: what `{}` does is not known here", word.raw));
            }
            _ => operands.push(word),
        }
    }
    let Some((dest, sources)) = operands.split_last() else { return };
    let remote = |w: &Word| w.start().split('/').next().is_some_and(|first| first.contains(':'));
    for source in sources {
        match (remote(source), name) {
            (true, _) => judge.needs.find(&source.raw, Some(Zone::Network), Rights::READ),
            (false, "scp") => judge.mentions(std::slice::from_ref(*source), &around.dirs),
            (false, _) => judge.tree(source, Rights::READ, Reach::ALL, &around.dirs),
        }
        if !remote(source) && name == "scp" {
            judge.secrets(source, Reach::ALL, &around.dirs);
        }
    }
    if remote(dest) {
        judge.needs.find(&dest.raw, Some(Zone::Network), Rights::WRITE);
    } else {
        judge.path(dest, Rights::READ_WRITE, &around.dirs);
        copied_names(judge, &operands, around);
        judge.may_link(name, &[], around);
    }
}

/// A filter of jq or yq that reads no file of its own accord.
pub(super) fn filter(judge: &mut Judge<'_>, word: &Word) {
    let odd = ["import", "include", "__", "load", "input_filename", "get_search_list", "system", "eval"];
    let plain = |text: &str| !matches!(text, "e" | "ea" | "eval") && !odd.iter().any(|odd| text.contains(odd));
    if !word.literal().is_some_and(plain) {
        judge.doubt(format!("what the filter `{}` reads is not known", word.raw));
    }
}

/// Paths are put back to what is committed.
fn checkout(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let exists = |word: &&Word| {
        let path = word.literal().unwrap_or("");
        !path.is_empty() && !path.starts_with('-') && around.dirs.0.iter().flatten().any(|dir| dir.join(path).exists())
    };
    if words.iter().any(|w| matches!(w.literal(), Some("--" | "."))) || words.iter().any(|w| exists(&w)) {
        judge.destroys("changes that are not committed");
    }
}

fn push(judge: &mut Judge<'_>, words: &[Word]) {
    if words.iter().any(|w| w.start().starts_with(['+', ':'])) {
        judge.destroys("what others pushed");
    }
}

fn git_config(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let has = |names: &[&str]| words.iter().any(|w| w.literal().is_some_and(|text| names.contains(&text)));
    if has(&["--global", "--system", "-f", "--file", "--blob"])
        || words.iter().any(|w| w.is_unknown() || w.start().starts_with("--file="))
    {
        return judge.doubt("which settings of git it is about is not known here");
    }
    let reads = has(&["--get", "--get-all", "--get-regexp", "-l", "--list", "get", "list"]);
    let names = words.iter().filter(|w| !w.start().starts_with('-')).count();
    if !reads && names != 1 {
        judge.here("git config", Rights::WRITE.union(Rights::EXECUTE), &around.dirs);
    }
}

/// The files that a pattern matches, and how many entries were looked at. None where there are too many.
pub(super) fn expand(dir: &Path, parts: &[(String, bool)], budget: usize) -> Option<(Vec<PathBuf>, usize)> {
    let mut found = vec![dir.to_path_buf()];
    let mut looked = 0;
    for (at, (part, literal)) in parts.iter().enumerate() {
        if *literal {
            let root = at == 0 && part.is_empty() && parts.len() > 1;
            found.iter_mut().for_each(|path| if root { *path = PathBuf::from("/") } else { path.push(part) });
            continue;
        }
        let mut next = Vec::new();
        for dir in &found {
            looked += 1;
            if looked > budget {
                return None;
            }
            if part.starts_with(['.', '[', '?']) && matches(part, "..") {
                next.push(dir.join(".."));
            }
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                looked += 1;
                if looked > budget {
                    return None;
                }
                let name = entry.file_name();
                if name.to_str().is_none_or(|name| matches(part, name)) {
                    next.push(entry.path());
                }
            }
        }
        found = next;
    }
    Some((found, looked))
}

/// Whether a pattern may match a name. Brackets are taken for any character: too much is found rather than too little.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with(['.', '[']) {
        return false;
    }
    let pattern: Vec<char> = simplified(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// From a bracket on, anything.
fn simplified(pattern: &str) -> Vec<char> {
    match pattern.split_once('[') {
        Some((start, _)) => start.chars().chain(['*']).collect(),
        None => pattern.chars().collect(),
    }
}
