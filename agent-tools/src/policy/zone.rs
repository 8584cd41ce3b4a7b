//! Which zone a path lies in, seen through links.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::shell::matches;
use super::{Rights, Zone};
use crate::call::Needs;
use crate::place::{Place, Settled};

/// Where a path leads, and which rights it is a matter of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The absolute path with all links followed, as far as it exists.
    pub resolved: PathBuf,
    /// The zone; none for what needs nothing (`/dev/null`, a direct path below `/tmp`, the session's own directory).
    pub zone: Option<Zone>,
}

/// Finds the zone of a path as a model writes it: `~/` is the home directory, relative paths start at the working
/// directory.
pub fn locate(path: &str, place: &Place) -> Located {
    Ground::new(place).locate(&place.absolute(path))
}

/// What `rights` on this path need. Writing a file that an agent or a shell runs later is executing, too.
pub fn needs_for(path: &str, rights: Rights, place: &Place) -> Needs {
    let located = locate(path, place);
    let mut needs = Needs::default();
    needs.find(path, located.zone, rights_on(&located.resolved, rights));
    needs
}

/// `rights`, and execute where they write what is run later.
pub(crate) fn rights_on(resolved: &Path, rights: Rights) -> Rights {
    let writes = rights.covers(Rights::WRITE);
    if writes && runs_later(resolved) { rights.union(Rights::EXECUTE) } else { rights }
}

/// Which entries below a directory count, and as what.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Walk<'a> {
    /// Names with a dot in front are passed over.
    pub(crate) visible: bool,
    /// Links are followed: those count that lead out.
    pub(crate) follows: bool,
    /// A pattern for the names of files that count.
    pub(crate) name: Option<&'a str>,
    /// Only what names look like is asked.
    pub(crate) names: bool,
    /// All is looked at; otherwise what tools fetch or build is passed over, and the first key ends it.
    pub(crate) whole: bool,
}

impl Walk<'_> {
    fn passes(&self, name: &OsStr) -> bool {
        let passed = [".git", "target", "node_modules"].iter().any(|passed| name == *passed);
        (passed && !self.whole) || (self.visible && name.as_encoded_bytes().starts_with(b"."))
    }
}

/// What lies below a directory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Looked {
    /// Keys, or links that lead out and are followed.
    pub(crate) guarded: bool,
    /// Links that lead out and are followed.
    pub(crate) outside: bool,
    /// Names that a shell would take apart.
    pub(crate) odd: bool,
    /// A name in the directory itself that looks like an option.
    pub(crate) dashed: bool,
    /// Links.
    pub(crate) links: bool,
    /// Files that something runs later.
    pub(crate) later: bool,
    /// How many entries were looked at.
    pub(crate) entries: usize,
}

/// The session's directory, where it was at the first question.
pub(crate) fn own_store(place: &Place) -> Option<PathBuf> {
    Ground::new(place).store
}

/// A place made ready for many questions: its directories with their links followed once.
pub(crate) struct Ground<'a> {
    place: &'a Place,
    home: Option<PathBuf>,
    store: Option<PathBuf>,
    workspace: Vec<PathBuf>,
    private: Vec<PathBuf>,
    /// Directories with their links followed: most paths of a command lie in a few of them.
    followed: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(place: &'a Place) -> Self {
        let follow = |path: &Path| resolve(path).unwrap_or_else(|| path.to_path_buf());
        let home = place.home.as_deref().map(follow);
        let followed = resolve(&place.cwd);
        let settled = || {
            let roots = place.roots.iter().map(|root| follow(root));
            let mut workspace: Vec<PathBuf> =
                roots.filter(|root| Some(root) != home.as_ref() && !is_system(root)).collect();
            let cwd = followed.clone().unwrap_or_else(|| place.cwd.clone());
            if cwd.is_absolute() && (!is_system(&cwd) || keeps_work(&cwd)) {
                workspace.push(cwd);
            }
            Settled { workspace, store: place.store.as_deref().map(follow) }
        };
        let Settled { workspace, store } = place.settled.get_or_init(settled).clone();
        Self {
            place,
            home,
            store,
            workspace,
            private: place.private.iter().map(|path| follow(path)).collect(),
            followed: RefCell::new(HashMap::from([(place.cwd.clone(), followed)])),
        }
    }

    pub(crate) fn place(&self) -> &'a Place {
        self.place
    }

    /// Finds the zone of an absolute path.
    pub(crate) fn locate(&self, path: &Path) -> Located {
        if needs_nothing(path) {
            return Located { resolved: path.to_path_buf(), zone: None };
        }
        // Links there lead where the process that follows them stands: what this one sees says nothing.
        if path.starts_with("/proc") || path.starts_with("/dev/fd") {
            return Located { resolved: path.to_path_buf(), zone: Some(Zone::System) };
        }
        match self.resolve(path) {
            Some(resolved) => Located { zone: self.zone(path, &resolved), resolved },
            // Links that go in circles lead nowhere that could be judged.
            None => Located { resolved: path.to_path_buf(), zone: Some(Zone::System) },
        }
    }

    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return resolve(path) };
        let mut followed = self.followed.borrow_mut();
        if !followed.contains_key(parent) {
            followed.insert(parent.to_path_buf(), resolve(parent));
        }
        let plain = followed.get(parent).cloned().flatten()?.join(name);
        if std::fs::read_link(&plain).is_ok() { resolve(path) } else { Some(plain) }
    }

    fn zone(&self, path: &Path, resolved: &Path) -> Option<Zone> {
        if self.is_sensitive(path) || self.is_sensitive(resolved) {
            return Some(Zone::System);
        }
        let trusted = |p: &Path| is_below(p, Path::new("/tmp")) || self.store.iter().any(|store| is_below(p, store));
        if self.workspace.iter().any(|root| is_below(resolved, root)) && !self.in_own_store(resolved) {
            return Some(Zone::Workspace);
        }
        if is_keys_of_anyone(path) || is_keys_of_anyone(resolved) {
            return Some(Zone::System);
        }
        if trusted(resolved) || trusted(path) {
            if path.components().any(|c| c == Component::ParentDir) {
                return Some(Zone::System);
            }
            if trusted(resolved) {
                return None;
            }
        }
        Some(if is_system(resolved) { Zone::System } else { Zone::External })
    }

    /// The session's own directory counts as such even below the working directory.
    fn in_own_store(&self, resolved: &Path) -> bool {
        self.store
            .as_ref()
            .is_some_and(|store| is_below(resolved, store) && !self.workspace.iter().any(|root| is_below(root, store)))
    }

    /// Whether the workspace lies below this directory, and whether a place of keys does that is there.
    pub(crate) fn reaches(&self, dir: &Path) -> (bool, bool) {
        // Whoever may do something to `/` as a whole may do it to all below.
        if needs_nothing(dir) || dir == Path::new("/") {
            return (false, false);
        }
        let Some(start) = self.resolve(dir) else { return (false, true) };
        let below = |path: &Path| path != start && is_below(path, &start);
        let kept = self.home.iter().flat_map(|home| SENSITIVE_AT_HOME.map(|name| home.join(name)));
        let keys = kept.chain(self.private.iter().cloned()).any(|path| below(&path) && path.symlink_metadata().is_ok());
        (self.workspace.iter().any(|root| below(root)), keys)
    }

    /// Looks at what lies in this directory and below it; an error where `most` entries are not enough.
    pub(crate) fn look_below(&self, dir: &Path, walk: Walk<'_>, most: usize) -> Result<Looked, ()> {
        if needs_nothing(dir) {
            return Ok(Looked::default());
        }
        let Some(start) = self.resolve(dir) else {
            return Ok(Looked { guarded: true, entries: 1, ..Looked::default() });
        };
        let kept = |home: &PathBuf| SENSITIVE_AT_HOME.map(|name| home.join(name)).into_iter();
        let anchors = self.home.iter().flat_map(kept).chain(self.private.iter().cloned());
        let guarded = anchors.into_iter().any(|path| is_below(&path, &start));
        let mut looked = Looked { guarded, entries: 1, ..Looked::default() };
        if guarded && !walk.whole {
            return Ok(looked);
        }
        let mut left = vec![start.clone()];
        while let Some(dir) = left.pop() {
            looked.entries += 1;
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                looked.entries += 1;
                if looked.entries > most {
                    return Err(());
                }
                self.look_at(&entry, walk, &mut looked);
                looked.dashed |= dir == start && entry.file_name().as_encoded_bytes().starts_with(b"-");
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !walk.passes(&entry.file_name()) {
                    left.push(entry.path());
                }
            }
            if looked.guarded && !walk.whole {
                break;
            }
        }
        Ok(looked)
    }

    fn look_at(&self, entry: &std::fs::DirEntry, walk: Walk<'_>, looked: &mut Looked) {
        let name = entry.file_name();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        looked.links |= is_link;
        looked.odd |= name.as_encoded_bytes().iter().any(|b| b" \t\n\r'\"\\*?[".contains(b));
        let hidden = walk.visible && name.as_encoded_bytes().starts_with(b".");
        let meant = walk.name.is_none_or(|pattern| name.to_str().is_none_or(|name| matches(pattern, name)));
        if hidden || !meant || walk.names {
            return;
        }
        let path = entry.path();
        looked.later |= runs_later(&path);
        let leads_out = || is_link && walk.follows && self.locate(&path).zone != Some(Zone::Workspace);
        let leads_out = leads_out();
        // Whatever lies there is reached, too.
        looked.outside |= leads_out;
        looked.guarded |= is_sensitive_name(&name) || is_keys_of_anyone(Path::new(&name)) || leads_out;
    }

    /// Whether keys are kept there, whatever zone it is.
    pub(crate) fn keeps_keys(&self, path: &Path) -> bool {
        self.is_sensitive(path) || is_keys_of_anyone(path)
    }

    fn is_sensitive(&self, path: &Path) -> bool {
        let below = |dir: &Path| is_below(path, dir);
        let homes = self.home.iter().chain(&self.place.home);
        let kept = |home: &PathBuf| SENSITIVE_AT_HOME.iter().any(|name| below(&home.join(name)));
        homes.into_iter().any(kept)
            || (self.private.iter().chain(&self.place.private).any(|p| below(p)) && !self.in_own_store(path))
            || path.file_name().is_some_and(is_sensitive_name)
    }
}

const SENSITIVE_AT_HOME: [&str; 16] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".docker",
    ".kube",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".npmrc",
    ".netrc",
    ".pypirc",
    ".git-credentials",
    ".bash_history",
    ".zsh_history",
    ".password-store",
    ".cargo/credentials.toml",
];

/// The directories of keys in anyone's home.
fn is_keys_of_anyone(path: &Path) -> bool {
    let keys = [".ssh", ".gnupg", ".aws", ".docker", ".kube", ".password-store", ".azure"];
    path.components().any(|part| keys.iter().any(|name| part.as_os_str() == *name))
}

const SYSTEM: [&str; 12] =
    ["/etc", "/usr", "/var", "/bin", "/sbin", "/boot", "/dev", "/proc", "/sys", "/System", "/Library", "/run"];

/// `/` itself is the system's, and so is all below its own directories; `/lib` and its kin by their beginning.
fn is_system(path: &Path) -> bool {
    let mut parts = path.components().skip(1);
    let Some(first) = parts.next() else { return true };
    let name = first.as_os_str().to_string_lossy();
    name.starts_with("lib") || SYSTEM.iter().any(|dir| dir[1..].eq_ignore_ascii_case(&name))
}

/// Directories below system paths that people and containers keep work in: whoever starts an agent in one of them works
/// there. Anything else of the system's stays the system's, also where an agent was started in it.
fn keeps_work(dir: &Path) -> bool {
    const PLACES: [(&str, usize); 8] = [
        ("/usr/src", 1),
        ("/usr/local/src", 1),
        ("/var/www", 0),
        ("/var/lib", 2),
        ("/var/tmp", 1),
        ("/var/folders", 1),
        ("/run/user", 2),
        ("/dev/shm", 1),
    ];
    PLACES.iter().any(|(place, below)| dir.strip_prefix(place).is_ok_and(|rest| rest.components().count() >= *below))
}

fn is_below(path: &Path, dir: &Path) -> bool {
    path.starts_with(dir)
}

/// Devices that hold nothing. By their plain name only: `/dev/fd/../sda` is none of them.
///
/// Of the descriptors only the three that every program has: a higher one is the command's own, and to open it anew is
/// to open what lies behind it, perhaps to write what was only opened for reading.
fn needs_nothing(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    match text.strip_prefix(b"/dev/") {
        Some(b"null" | b"stdin" | b"stdout" | b"stderr" | b"tty") => true,
        Some(rest) => matches!(rest, b"fd/0" | b"fd/1" | b"fd/2"),
        None => false,
    }
}

/// Names of files that hold keys, whatever lies around them.
pub(crate) fn is_sensitive_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let env = name == ".env" || (name.starts_with(".env.") && name != ".env.example");
    let key = name.ends_with(".pem") || name.ends_with(".key");
    env || key || KEY_FILES.contains(&name.as_str()) || is_named_for_a_secret(&name)
}

const KEY_FILES: [&str; 11] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".htpasswd",
    "credentials",
];

/// Data files named for a token, a secret or a credential: `token.json`, `client_secret.yaml`. Not source files.
fn is_named_for_a_secret(name: &str) -> bool {
    const DATA: [&str; 12] =
        ["json", "yaml", "yml", "toml", "ini", "txt", "conf", "cfg", "xml", "properties", "dat", "env"];
    const WORDS: [&str; 5] = ["token", "secret", "secrets", "credential", "credentials"];
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let last = stem.rsplit(['-', '_', '.']).next().unwrap_or(stem);
    DATA.contains(&extension) && (WORDS.contains(&last) || stem == "tokens")
}

/// Names of such files, wherever they lie, and of directories that hold them.
const RUN_LATER: [&str; 56] = [
    ".mcp.json",
    ".claude",
    ".agents",
    ".cursor",
    ".vscode",
    ".devcontainer",
    ".devcontainer.json",
    ".git",
    ".husky",
    ".yarnrc",
    ".yarnrc.yml",
    ".npmrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    ".gdbinit",
    ".lldbinit",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".exrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".inputrc",
    ".zlogout",
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".envrc",
    ".gitconfig",
    "agent.yaml",
    // What an agent is told to do.
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "skill.md",
];

/// Files that a shell, git, an editor or this agent runs, or goes by, later without being asked.
pub(crate) fn runs_later(resolved: &Path) -> bool {
    let names: Vec<String> =
        resolved.components().map(|c| c.as_os_str().to_string_lossy().to_ascii_lowercase()).collect();
    let last = names.last().map_or("", String::as_str);
    let in_cargo = names.iter().rev().nth(1).is_some_and(|dir| dir == ".cargo");
    let cargo = last == ".cargo" || (in_cargo && matches!(last, "config" | "config.toml"));
    let below = |pair: &[String]| is_run_below(&pair[0], &pair[1]);
    RUN_LATER.contains(&last)
        || cargo
        || names.windows(2).any(below)
        || in_git_directory(&names)
        || in_bare_repository(resolved)
}

/// Whether what has this name, or lies below it, is run later in a directory of this name.
fn is_run_below(dir: &str, name: &str) -> bool {
    match dir {
        ".husky" | ".devcontainer" | ".cursor" => true,
        ".vscode" => matches!(name, "tasks.json" | "settings.json" | "launch.json" | "mcp.json"),
        ".claude" => {
            matches!(name, "settings.json" | "settings.local.json")
                || matches!(name, "hooks" | "skills" | "commands" | "agents" | "plugins" | "rules")
        }
        ".agents" => name == "skills",
        ".mise" | "mise" => matches!(name, "config.toml" | "tasks"),
        _ => false,
    }
}

/// Hooks and settings of a repository, and what says where they lie.
fn in_git_directory(names: &[String]) -> bool {
    let Some(git) = names.iter().position(|name| name == ".git") else { return false };
    let inside = &names[git + 1..];
    let kept = |name: &String| matches!(name.as_str(), "hooks" | "config" | "config.worktree" | "commondir" | "gitdir");
    inside.iter().any(kept)
        || inside.first().is_some_and(|name| matches!(name.as_str(), "worktrees" | "rebase-merge" | "rebase-apply"))
        || (inside.len() == 1 && matches!(inside[0].as_str(), "modules" | "remotes" | "branches"))
}

/// The same in a directory that is a repository by itself: no other has a file of this name.
fn in_bare_repository(resolved: &Path) -> bool {
    let beside_head = |path: &Path| path.with_file_name("HEAD").symlink_metadata().is_ok();
    match resolved.file_name().and_then(OsStr::to_str) {
        Some("HEAD") => !resolved.components().any(|part| part.as_os_str() == ".git"),
        Some("config" | "config.worktree" | "commondir" | "hooks") => beside_head(resolved),
        _ => resolved.parent().is_some_and(|dir| dir.file_name() == Some(OsStr::new("hooks")) && beside_head(dir)),
    }
}

/// Follows all links of an absolute path; what does not exist is taken as written. None where links go in circles.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    const LINKS: usize = 40;
    let mut left: VecDeque<std::ffi::OsString> = path.components().map(|c| c.as_os_str().to_owned()).collect();
    let mut done = PathBuf::new();
    let mut links = 0;
    // Below what does not exist there are no links: the disk is not asked.
    let mut missing: Option<usize> = None;
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                done.pop();
                missing = missing.filter(|length| *length <= done.as_os_str().len());
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(Component::RootDir | Component::Prefix(_)) => {
                done.push(&part);
                continue;
            }
            Some(Component::Normal(_)) => done.push(&part),
        }
        let Some(target) = target(&done, &mut missing) else { continue };
        links += 1;
        // A link of a process is another one for whoever follows it.
        if links > LINKS || done.starts_with("/proc") {
            return None;
        }
        done.pop();
        for step in target.components().rev() {
            left.push_front(step.as_os_str().to_owned());
        }
    }
    Some(done)
}

/// Where the link at this path leads; none where there is no link. `missing` is how long the path was where nothing
/// exists any more.
fn target(path: &Path, missing: &mut Option<usize>) -> Option<PathBuf> {
    if missing.is_some() {
        return None;
    }
    let nowhere = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename);
    let target = std::fs::read_link(path);
    *missing = target.as_ref().err().filter(|error| nowhere(error.kind())).map(|_| path.as_os_str().len());
    target.ok()
}
