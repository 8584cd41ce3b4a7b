//! The sessions on the disk: which there are, which one a person means, renaming, copying and deleting them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use super::skim::{Skimmed, has_record, skim};
use super::store::{named, private_directories};
use super::{JsonLines, SessionId, Store};

const LOG: &str = "log.jsonl";

/// What a copy of a session has besides its log: what its plans and taking its changes back depend on.
const COPIED: &[&str] = &["todo.md", "plan.md", "plan.draft", "summary.md", "changes.jsonl", "before"];

/// The longest name of a session, in characters.
const LONGEST_NAME: usize = 100;

/// Fewer characters are no beginning of an id.
const SHORTEST_BEGINNING: usize = 4;

/// The sessions of a project: `<root>/<project key>/<session id>/log.jsonl`.
#[derive(Debug, Clone)]
pub struct Sessions {
    project: PathBuf,
    all: PathBuf,
}

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scope {
    /// Those of all projects.
    pub all_projects: bool,
    /// Those of sub-agents too.
    pub sub_agents: bool,
}

/// A session that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Its directory.
    pub directory: PathBuf,
    /// Its id.
    pub id: SessionId,
    /// The name that a person gave it.
    pub name: Option<String>,
    /// When it was last used.
    pub used: Timestamp,
    /// How many turns it has.
    pub turns: u64,
    /// How its first prompt begins, in one line.
    pub preview: String,
    /// What it has cost: tokens sent.
    pub total_input_tokens: u64,
    /// Tokens received.
    pub total_output_tokens: u64,
    /// Requests.
    pub agent_request_count: u64,
    /// How large its log is, in bytes.
    pub size: u64,
    /// The directory that it was begun in.
    pub cwd: Option<String>,
    children: Vec<String>,
}

/// Why no session was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// There is none.
    #[error("there is no session {0}")]
    Nothing(String),
    /// Several begin so.
    #[error("several sessions begin with {beginning}: {}", ids.join(", "))]
    Several {
        /// So.
        beginning: String,
        /// These.
        ids: Vec<String>,
    },
}

impl Sessions {
    /// The sessions of the project that lies in `cwd`, below `root`.
    pub fn of(root: &Path, cwd: &Path) -> Self {
        Self { project: root.join(project_key(cwd)), all: root.to_owned() }
    }

    /// The directory of a session.
    pub fn directory(&self, id: &SessionId) -> PathBuf {
        self.project.join(id.as_str())
    }

    /// The log of a session's directory.
    pub fn log(directory: &Path) -> PathBuf {
        directory.join(LOG)
    }

    /// The session that was used last, those of sub-agents aside.
    pub fn latest(&self) -> Option<PathBuf> {
        let own = directories(&self.project).into_iter().filter(|directory| !id(directory).is_child());
        let mut with_time: Vec<_> = own.filter_map(|directory| Some((used(&directory)?, directory))).collect();
        with_time.sort();
        with_time.into_iter().map(|(_, directory)| directory).rfind(|directory| has_record(directory))
    }

    /// The sessions, those first that were used last.
    pub fn list(&self, scope: Scope) -> Vec<Kept> {
        let mut kept: Vec<Kept> = self.directories(scope).iter().filter_map(|directory| Kept::of(directory)).collect();
        kept.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.directory.cmp(&b.directory)));
        kept
    }

    /// The sessions that were not used since `before`. A sub-agent's goes with the session that it belongs to, and is among
    /// these only where that is gone.
    pub fn unused_since(&self, before: Timestamp, scope: Scope) -> Vec<Kept> {
        let mut kept = self.list(Scope { sub_agents: true, ..scope });
        let owned: HashSet<PathBuf> = kept.iter().flat_map(Kept::children).collect();
        kept.retain(|session| session.used < before && !owned.contains(&session.directory));
        kept
    }

    /// The directory of the session that a person means: by the path of its log or directory, by its id, by its name (of
    /// several the one used last), or by a beginning of its id that no other has; in this project, else in any.
    ///
    /// # Errors
    /// There is none, or several begin so.
    pub fn find(&self, meant: &str) -> Result<PathBuf, FindError> {
        let path = Path::new(meant);
        let nothing = || FindError::Nothing(meant.to_owned());
        if meant.contains('/') || path.is_file() {
            let directory = if path.is_dir() { path } else { path.parent().ok_or_else(nothing)? };
            return path.exists().then(|| directory.to_owned()).ok_or_else(nothing);
        }
        let scopes = [false, true].map(|all_projects| Scope { all_projects, sub_agents: true });
        let directories = scopes.map(|scope| self.directories(scope));
        let by_id = directories.iter().flatten().find(|directory| id(directory).as_str() == meant).cloned();
        let by_name = || scopes.iter().find_map(|scope| self.by_name(meant, *scope));
        if let Some(directory) = by_id.or_else(by_name) {
            return Ok(directory);
        }
        directories.iter().find_map(|among| beginning(meant, among)).unwrap_or_else(|| Err(nothing()))
    }

    /// The directory of the session with exactly this id, in any project.
    pub fn by_id(&self, wanted: &SessionId) -> Option<PathBuf> {
        let scope = Scope { all_projects: true, sub_agents: true };
        let here = Some(self.directory(wanted)).filter(|directory| id(directory) == *wanted);
        let here = here.filter(|directory| Self::log(directory).is_file());
        here.or_else(|| self.directories(scope).into_iter().find(|directory| id(directory) == *wanted))
    }

    fn by_name(&self, name: &str, scope: Scope) -> Option<PathBuf> {
        let named = self.list(scope).into_iter().find(|kept| kept.name.as_deref() == Some(name));
        named.map(|kept| kept.directory)
    }

    /// Copies a session: so much of its log, and the files that its future depends on. A copy has none of what tools
    /// printed.
    ///
    /// # Errors
    /// Those of the disk, with the path.
    pub fn copy(from: &Path, bytes: u64, to: &Path) -> io::Result<()> {
        private_directories(to).map_err(|error| named(to, &error))?;
        copy_log(&Self::log(from), bytes, &Self::log(to))?;
        COPIED.iter().try_for_each(|name| copy_if_there(&from.join(name), &to.join(name)))
    }

    /// Gives a session a name. That is no use of it: it does not become the one used last.
    ///
    /// # Errors
    /// A name of no use, a session that another process has ([`io::ErrorKind::ResourceBusy`]), the disk.
    pub fn rename(directory: &Path, name: &str, now: Timestamp) -> io::Result<()> {
        let name = usable(name).map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let path = Self::log(directory);
        let mut log = JsonLines::open(&path, |_| {})?;
        let before = log.file()?.metadata()?.modified()?;
        let seq = skim(directory)?.seq + 1;
        let line = json!({"type": "session_name", "name": name, "ts": now.to_string(), "seq": seq});
        log.append(&format!("{line}\n"))?;
        log.sync()?;
        log.file()?.set_modified(before)
    }

    /// Deletes a session with those of its sub-agents. Gives the directories that are gone.
    ///
    /// # Errors
    /// One that does not lie where sessions are kept, that another process has ([`io::ErrorKind::ResourceBusy`]), or the
    /// disk.
    pub fn delete(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.owned(directory)?;
        let lock = JsonLines::open(Self::log(directory), |_| {})?;
        let children = Kept::of(directory).map(|kept| kept.children().collect::<Vec<_>>()).unwrap_or_default();
        drop(lock);
        let mut gone: Vec<PathBuf> = children.into_iter().filter(|child| self.owned(child).is_ok()).collect();
        gone.push(directory.to_owned());
        for directory in &gone {
            fs::remove_dir_all(directory).map_err(|error| named(directory, &error))?;
        }
        Ok(gone)
    }

    /// Whether a directory is that of a session of ours, and no way out of where they are kept.
    fn owned(&self, directory: &Path) -> io::Result<()> {
        let kept = directory.canonicalize().map_err(|error| named(directory, &error))?;
        let all = self.all.canonicalize().map_err(|error| named(&self.all, &error))?;
        let ours = kept.parent().and_then(Path::parent) == Some(all.as_path()) && Self::log(&kept).is_file();
        if ours && !directory.is_symlink() {
            return Ok(());
        }
        let problem = io::Error::new(io::ErrorKind::InvalidInput, "it is no session that is kept here");
        Err(named(directory, &problem))
    }

    fn directories(&self, scope: Scope) -> Vec<PathBuf> {
        let projects = if scope.all_projects { entries(&self.all) } else { vec![self.project.clone()] };
        let all = projects.iter().flat_map(|project| directories(project));
        all.filter(|directory| scope.sub_agents || !id(directory).is_child()).collect()
    }
}

impl Kept {
    /// What is kept in a directory; none where that cannot be read.
    pub fn of(directory: &Path) -> Option<Self> {
        let metadata = Sessions::log(directory).metadata().ok()?;
        let Skimmed { name, cwd, preview, turns, seq, usage, children } = skim(directory).ok()?;
        (seq > 0).then_some(Self {
            directory: directory.to_owned(),
            id: id(directory),
            name,
            used: metadata.modified().ok()?.try_into().ok()?,
            turns,
            preview,
            total_input_tokens: usage.total_input_tokens,
            total_output_tokens: usage.total_output_tokens,
            agent_request_count: usage.agent_request_count,
            size: metadata.len(),
            cwd,
            children,
        })
    }

    /// The directories of its sub-agents' sessions, whether they are still there or not.
    fn children(&self) -> impl Iterator<Item = PathBuf> {
        let project = self.directory.parent();
        let plain = |child: &&String| SessionId::named(child.as_str()).is_child() && !child.contains(['/', '\\']);
        self.children.iter().filter(plain).filter_map(move |child| Some(project?.join(child)))
    }
}

fn id(directory: &Path) -> SessionId {
    SessionId::named(directory.file_name().unwrap_or_default().to_string_lossy())
}

fn used(directory: &Path) -> Option<Timestamp> {
    Sessions::log(directory).metadata().ok()?.modified().ok()?.try_into().ok()
}

fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The directories of a project that have a log.
fn directories(project: &Path) -> Vec<PathBuf> {
    entries(project).into_iter().filter(|directory| Sessions::log(directory).is_file()).collect()
}

/// The session whose id begins so; none where no id does.
fn beginning(meant: &str, among: &[PathBuf]) -> Option<Result<PathBuf, FindError>> {
    let mut found: Vec<&PathBuf> = among.iter().filter(|directory| id(directory).as_str().starts_with(meant)).collect();
    found.sort();
    match found.as_slice() {
        _ if meant.len() < SHORTEST_BEGINNING => None,
        [] => None,
        [one] => Some(Ok((*one).clone())),
        several => {
            let ids = several.iter().map(|directory| id(directory).to_string()).collect();
            Some(Err(FindError::Several { beginning: meant.to_owned(), ids }))
        }
    }
}

/// A name that can be typed and shown: in one line, and no path.
fn usable(name: &str) -> Result<&str, String> {
    let name = name.trim();
    let odd = |c: char| c.is_control() || c == '/';
    if name.is_empty() || name.contains(odd) || name.chars().count() > LONGEST_NAME {
        return Err(format!("a name has 1 to {LONGEST_NAME} characters in one line, none of them a slash"));
    }
    Ok(name)
}

/// A directory's name for its sessions: its path with `-` for what is no letter, digit, dot or underscore.
pub fn project_key(cwd: &Path) -> String {
    let mut key = String::from("-");
    for c in cwd.to_string_lossy().chars() {
        let kept = if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '-' };
        if kept != '-' || !key.ends_with('-') {
            key.push(kept);
        }
    }
    if key.len() > 1 { key.trim_end_matches('-').to_owned() } else { key }
}

/// By streaming: a log may be larger than memory.
fn copy_log(from: &Path, bytes: u64, to: &Path) -> io::Result<()> {
    let source = File::open(from).map_err(|error| named(from, &error))?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let copied = options.open(to).and_then(|mut target| io::copy(&mut source.take(bytes), &mut target));
    copied.map(drop).map_err(|error| named(to, &error))
}

/// Copies a file or a directory of files, where there is one.
fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    let copied = if from.is_dir() { copy_directory(from, to) } else { fs::copy(from, to).map(drop) };
    match copied {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.exists() => Ok(()),
        copied => copied.map_err(|error| named(to, &error)),
    }
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    private_directories(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// A session with these lines, numbered, last used then.
    fn keep(sessions: &Sessions, id: &str, seconds: i64, lines: &[&str]) -> PathBuf {
        let directory = sessions.directory(&SessionId::named(id));
        fs::create_dir_all(&directory).unwrap();
        let numbered =
            |(seq, line): (usize, &&str)| format!("{},\"ts\":\"t\",\"seq\":{}}}\n", &line[..line.len() - 1], seq + 1);
        let text: String = lines.iter().enumerate().map(numbered).collect();
        fs::write(Sessions::log(&directory), text).unwrap();
        let file = File::options().append(true).open(Sessions::log(&directory)).unwrap();
        let used = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.unsigned_abs());
        file.set_modified(used).unwrap();
        directory
    }

    const START: &str = r#"{"type":"session_start","version":1,"cwd":"/w"}"#;
    const GO: &str = r#"{"type":"user_input","content":"Go  on\nand on"}"#;
    const NAMED: &str = r#"{"type":"session_name","name":"mine"}"#;

    fn two_projects() -> (tempfile::TempDir, Sessions, Sessions) {
        let root = tempfile::tempdir().unwrap();
        let (here, there) = (Sessions::of(root.path(), Path::new("/w")), Sessions::of(root.path(), Path::new("/v")));
        (root, here, there)
    }

    fn ids(kept: &[Kept]) -> String {
        kept.iter().map(|kept| kept.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn sessions_are_listed_by_last_use_with_what_tells_them_apart() {
        let (_root, here, there) = two_projects();
        let usage = r#"{"type":"usage","total_input_tokens":7,"total_output_tokens":3,"agent_request_count":2}"#;
        keep(&here, "a", 10, &[START, GO, usage, NAMED, GO, r#"{"type":"rewind","to_seq":5}"#]);
        keep(&here, "b", 30, &[START, r#"{"type":"message","role":"user","content":[]}"#]);
        keep(&here, "sub_c", 20, &[START]);
        keep(&there, "d", 40, &[START]);
        fs::create_dir_all(here.directory(&SessionId::named("empty"))).unwrap();
        fs::write(Sessions::log(&here.directory(&SessionId::named("empty"))), "poem\n").unwrap();
        let list = |all_projects, sub_agents| here.list(Scope { all_projects, sub_agents });
        assert_eq!(ids(&list(false, false)), "b a");
        assert_eq!(ids(&list(true, true)), "d b sub_c a");
        let a = &list(false, false)[1];
        let tokens = (a.total_input_tokens, a.total_output_tokens, a.agent_request_count);
        assert_eq!((a.name.as_deref(), a.used, a.turns, tokens), (Some("mine"), at(10), 1, (7, 3, 2)));
        assert_eq!((a.preview.as_str(), a.cwd.as_deref()), ("Go on and on", Some("/w")));
        assert_eq!(here.latest().unwrap(), list(false, false)[0].directory);
    }

    #[test]
    fn a_session_is_found_by_whatever_names_it() {
        let (_root, here, there) = two_projects();
        let one = keep(&here, "20260101-1111-aaaa", 10, &[START, NAMED]);
        let two = keep(&here, "20260101-2222-aaaa", 20, &[START, NAMED]);
        let other = keep(&there, "20250101-1111-aaaa", 30, &[START, r#"{"type":"session_name","name":"other"}"#]);
        let log = Sessions::log(&other);
        for (meant, expect) in [
            ("20260101-1111-aaaa", Ok(&one)),
            ("20260101-1", Ok(&one)),
            ("mine", Ok(&two)),
            ("other", Ok(&other)),
            ("2025", Ok(&other)),
            ("20250101-1111-aaaa", Ok(&other)),
            (log.to_str().unwrap(), Ok(&other)),
            (other.to_str().unwrap(), Ok(&other)),
            ("2026", Err("several sessions begin with 2026: 20260101-1111-aaaa, 20260101-2222-aaaa")),
            ("202", Err("there is no session 202")),
            ("nope", Err("there is no session nope")),
            ("no/where", Err("there is no session no/where")),
        ] {
            let found = here.find(meant).map_err(|error| error.to_string());
            assert_eq!(found.as_ref().map_err(String::as_str), expect, "{meant}");
        }
    }

    #[test]
    fn a_new_name_is_no_use_of_a_session() {
        let (_root, here, _) = two_projects();
        let directory = keep(&here, "a", 10, &[START, NAMED]);
        Sessions::rename(&directory, " yours ", at(50)).unwrap();
        let kept = Kept::of(&directory).unwrap();
        assert_eq!((kept.name.as_deref(), kept.used), (Some("yours"), at(10)));
        let log = fs::read_to_string(Sessions::log(&directory)).unwrap();
        let line = log.lines().last().unwrap();
        assert_eq!(line, r#"{"type":"session_name","name":"yours","ts":"1970-01-01T00:00:50Z","seq":3}"#);
        for bad in ["", " ", "a/b", "a\nb", &"x".repeat(101)] {
            assert_eq!(Sessions::rename(&directory, bad, at(50)).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        let _lock = JsonLines::open(Sessions::log(&directory), |_| {}).unwrap();
        let busy = Sessions::rename(&directory, "x", at(50)).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
    }

    #[test]
    fn a_session_is_deleted_with_its_sub_agents_and_nothing_else() {
        let (root, here, _) = two_projects();
        let start = |child: &str| format!(r#"{{"type":"sub_agent_start","session_id":"{child}"}}"#);
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join(LOG), "").unwrap();
        let lines = ["sub_1", "sub_gone", "sub_x/../../../outside", "b"].map(start);
        let a = keep(&here, "a", 10, &[START, &lines[0], &lines[1], &lines[2], &lines[3]]);
        let sub = keep(&here, "sub_1", 10, &[START]);
        let b = keep(&here, "b", 10, &[START]);
        assert_eq!(here.delete(&a).unwrap(), [sub, a]);
        assert_eq!(ids(&here.list(Scope { all_projects: true, sub_agents: true })), "b");
        for not_ours in [&outside, &root.path().to_owned(), &b.join("..")] {
            here.delete(not_ours).unwrap_err();
        }
        assert!(outside.join(LOG).exists());
        let _lock = JsonLines::open(Sessions::log(&b), |_| {}).unwrap();
        assert_eq!(here.delete(&b).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        assert!(b.exists());
    }

    #[test]
    fn what_was_not_used_for_long_is_found_with_orphans_of_sub_agents() {
        let (_root, here, there) = two_projects();
        keep(&here, "old", 10, &[START, r#"{"type":"sub_agent_start","session_id":"sub_old"}"#]);
        keep(&here, "sub_old", 10, &[START]);
        keep(&here, "sub_orphan", 10, &[START]);
        keep(&here, "new", 99, &[START]);
        keep(&there, "there", 10, &[START]);
        let mut found =
            ids(&here.unused_since(at(50), Scope::default())).split(' ').map(str::to_owned).collect::<Vec<_>>();
        found.sort();
        assert_eq!(found, ["old", "sub_orphan"]);
        assert_eq!(here.unused_since(at(50), Scope { all_projects: true, ..Scope::default() }).len(), 3);
    }

    #[test]
    fn a_copy_has_what_the_future_of_a_session_depends_on() {
        let (root, here, _) = two_projects();
        let from = keep(&here, "a", 10, &[START, GO]);
        fs::write(from.join("todo.md"), "- [ ] x").unwrap();
        fs::create_dir_all(from.join("before")).unwrap();
        fs::write(from.join("before/1"), "old").unwrap();
        fs::create_dir_all(from.join("outputs")).unwrap();
        let (log, to) = (fs::read(Sessions::log(&from)).unwrap(), root.path().join("p/copy"));
        Sessions::copy(&from, 20, &to).unwrap();
        assert_eq!(fs::read(Sessions::log(&to)).unwrap(), log[..20]);
        assert_eq!(fs::read_to_string(to.join("before/1")).unwrap(), "old");
        assert_eq!(fs::read_to_string(to.join("todo.md")).unwrap(), "- [ ] x");
        assert_eq!(fs::read_dir(&to).unwrap().count(), 3);
    }

    #[test]
    fn project_keys() {
        for (cwd, key) in [
            ("/home/me/code/app", "-home-me-code-app"),
            ("/tmp/a b/c:d", "-tmp-a-b-c-d"),
            ("///tmp///a--b///", "-tmp-a-b"),
            ("/", "-"),
        ] {
            assert_eq!(project_key(Path::new(cwd)), key);
        }
    }
}
