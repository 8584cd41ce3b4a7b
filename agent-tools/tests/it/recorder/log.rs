//! Reads what strace wrote: which files were read, changed and run, and which hosts were asked for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a process did that needs a right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    Read,
    Write,
    Run,
    Connect,
}

/// A deed, and what it was done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub deed: Deed,
    /// Links on the way are followed; a last one only where the call does.
    pub path: PathBuf,
    /// The program of the process.
    pub program: String,
    /// The process runs code that was given to it, or was started by one that does.
    pub code: bool,
}

/// A process as its log is read.
#[derive(Debug, Clone)]
struct Process {
    cwd: PathBuf,
    program: String,
    code: bool,
}

/// Everything that the logs `PREFIX.PID` tell, the first process working in `cwd`.
pub fn events(dir: &Path, prefix: &str, cwd: &Path) -> Vec<Event> {
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(pid) = name.strip_prefix(&format!("{prefix}.")).and_then(|pid| pid.parse::<u32>().ok()) {
            logs.insert(pid, String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned());
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let mut events = Vec::new();
    let first = logs.keys().next().copied();
    let process = Process { cwd: cwd.into(), program: "strace".into(), code: false };
    if let Some(pid) = first {
        follow(pid, process, &logs, &mut events);
    }
    events
}

fn follow(pid: u32, mut process: Process, logs: &BTreeMap<u32, String>, events: &mut Vec<Event>) {
    for line in logs.get(&pid).map_or("", String::as_str).lines() {
        let Some(call) = Call::read(line) else { continue };
        if matches!(call.name, "clone" | "clone3" | "fork" | "vfork") {
            if let Ok(child) = call.result.split(['<', ' ']).next().unwrap_or("").parse() {
                follow(child, process.clone(), logs, events);
            }
            continue;
        }
        call.happened(&mut process, events);
    }
}

/// A line of the log.
struct Call<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
    result: &'a str,
}

impl<'a> Call<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let open = line.find('(')?;
        let equals = line.rfind(") = ").or_else(|| line.rfind(")  "))?;
        let result = line[equals + 1..].trim_start().strip_prefix('=')?.trim_start();
        Some(Self { name: &line[..open], arguments: split(&line[open + 1..equals]), result })
    }

    fn failed(&self) -> bool {
        self.result.starts_with(['-', '?'])
    }

    /// The path of an argument, seen from the directory that the one before it names, or from the current one.
    fn path(&self, at: usize, dir: Option<usize>, process: &Process) -> Option<PathBuf> {
        let written = self.arguments.get(at)?.strip_prefix('"')?;
        let path = PathBuf::from(plain(written.rsplit_once('"')?.0));
        let from = dir.and_then(|dir| annotated(self.arguments.get(dir)?)).unwrap_or_else(|| process.cwd.clone());
        Some(from.join(path))
    }

    fn happened(&self, process: &mut Process, events: &mut Vec<Event>) {
        let mut tell = |deed, path: PathBuf, process: &Process| {
            let (program, code) = (process.program.clone(), process.code);
            events.push(Event { deed, path, program, code });
        };
        match self.name {
            "connect" | "sendto" | "sendmsg" if self.arguments.iter().any(|a| a.contains("sa_family=AF_INET")) => {
                tell(Deed::Connect, "host".into(), process);
            }
            _ if self.failed() => {}
            "chdir" => process.cwd = followed(&self.path(0, None, process).unwrap_or_default()),
            "fchdir" => process.cwd = annotated(self.arguments[0]).unwrap_or_default(),
            "execve" => {
                let path = followed(&self.path(0, None, process).unwrap_or_default());
                process.program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                process.code |= self.runs_code(&path);
                tell(Deed::Run, path, process);
            }
            "open" | "openat" | "openat2" | "creat" => {
                // What is no file has no path: pipes, sockets.
                let Some(path) = annotated(self.result) else { return };
                let flags = self.arguments[1..].join(" ");
                let writes =
                    self.name == "creat" || ["O_WRONLY", "O_RDWR", "O_TRUNC"].iter().any(|f| flags.contains(f));
                if !flags.contains("O_PATH") && !flags.contains("O_WRONLY") && self.name != "creat" {
                    tell(Deed::Read, path.clone(), process);
                }
                if writes {
                    tell(Deed::Write, path, process);
                }
            }
            name => {
                for (dir, at, follows) in changed(name, self.arguments.last().copied().unwrap_or("")) {
                    let path = match at {
                        Some(at) => self.path(at, dir, process),
                        None => None,
                    };
                    let path = path.or_else(|| annotated(self.arguments.first()?));
                    if let Some(path) = path {
                        tell(Deed::Write, if follows { followed(&path) } else { place(&path) }, process);
                    }
                }
            }
        }
    }

    /// Interpreters with something to run, and programs that do not come with the system.
    fn runs_code(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let words: Vec<&str> = self.arguments.get(1).map_or(vec![], |list| split(list.trim_matches(['[', ']'])));
        let shell = matches!(&*name, "bash" | "sh" | "dash");
        let given = words.get(1).is_some_and(|word| word.starts_with("\"-") && word.contains('c'));
        let interpreter = ["python", "perl", "make", "node"].iter().any(|start| name.starts_with(start));
        interpreter || (shell && !given) || !path.starts_with("/usr")
    }
}

/// The arguments of calls that change something: which one names the directory, which one the path, and whether a link
/// there is followed.
fn changed(name: &str, last: &str) -> Vec<(Option<usize>, Option<usize>, bool)> {
    let follows = !last.contains("NOFOLLOW");
    match name {
        "unlink" | "rmdir" | "mkdir" | "mknod" | "lchown" => vec![(None, Some(0), false)],
        "truncate" | "chmod" | "chown" | "utime" | "utimes" | "setxattr" => vec![(None, Some(0), true)],
        "unlinkat" | "mkdirat" | "mknodat" => vec![(Some(0), Some(1), false)],
        "fchmodat" | "fchmodat2" | "fchownat" | "utimensat" => vec![(Some(0), Some(1), follows)],
        "rename" | "link" => vec![(None, Some(0), false), (None, Some(1), false)],
        "renameat" | "renameat2" | "linkat" => vec![(Some(0), Some(1), false), (Some(2), Some(3), false)],
        "symlink" => vec![(None, Some(1), false)],
        "symlinkat" => vec![(Some(1), Some(2), false)],
        "fchmod" | "fchown" | "ftruncate" => vec![(None, None, true)],
        _ => Vec::new(),
    }
}

/// The arguments of a call, apart at the commas that no quote and no bracket holds.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The path that strace puts behind a descriptor: `3</a/b>`.
fn annotated(text: &str) -> Option<PathBuf> {
    let inside = text.split_once('<')?.1;
    let path = inside.rsplit_once('>')?.0.trim_end_matches(">(deleted)");
    path.starts_with('/').then(|| PathBuf::from(plain(path)))
}

/// Text with the escapes of C taken back.
fn plain(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first != b'\\' {
            bytes.push(first);
            rest = behind;
            continue;
        }
        let digits = behind.iter().take(3).take_while(|b| (b'0'..=b'7').contains(*b)).count();
        if digits > 0 {
            let octal = std::str::from_utf8(&behind[..digits]).unwrap();
            bytes.push(u8::from_str_radix(octal, 8).unwrap_or(b'?'));
            rest = &behind[digits..];
        } else {
            bytes.push(match behind.first() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(other) => *other,
                None => b'\\',
            });
            rest = behind.get(1..).unwrap_or_default();
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The path with all links followed, as far as it is there.
fn followed(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| place(path))
}

/// The path with links followed on the way to it, but not itself.
fn place(path: &Path) -> PathBuf {
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(std::path::Component::Normal(name))) => followed(parent).join(name),
        _ => path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
    }
}
