//! The skills of some directories, found once, listed in order, looked up by name.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Skill;

/// How far below a skill's folder misplaced skills are looked for, in folders.
const NESTED_DEPTH: usize = 3;
/// How many entries below one folder are looked at for that.
const NESTED_ENTRIES: usize = 500;

/// The skills of some directories, sorted by name in the order of their bytes.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    skills: BTreeMap<String, Skill>,
    diagnostics: Vec<Diagnostic>,
}

/// What is to be said about a skill or a directory: it was left out, or it is listed with a doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file or directory it is about.
    pub path: PathBuf,
    /// The name of the skill it is about, if it is about one.
    pub skill: Option<String>,
    /// What is the matter, in plain words, without the path.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl Catalogue {
    /// Finds the skills of `dirs`, best given as absolute paths. Of two skills of one name, that of the earlier directory
    /// wins; within a directory, `<name>.md` wins over `<name>/SKILL.md`.
    ///
    /// It never fails. A directory that does not exist has no skills; what else goes wrong is in
    /// [`diagnostics`](Self::diagnostics). Links are followed, but out of `dirs` only to Markdown files.
    pub fn discover<P: AsRef<Path>>(dirs: &[P]) -> Self {
        let mut catalogue = Self::default();
        for dir in dirs {
            catalogue.add_directory(dir.as_ref());
        }
        catalogue
    }

    /// The skill of this name. The name is looked up here only, never on the disk.
    ///
    /// A skill is also found by the `name` of its front matter, unless two skills claim that one.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.get(name).or_else(|| {
            let mut claims = self.iter().filter(|skill| skill.declared_name.as_deref() == Some(name));
            claims.next().filter(|_| claims.next().is_none())
        })
    }

    /// The skills, sorted by name in the order of their bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.values()
    }

    /// Whether there is no skill.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// How many skills there are.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// What was left out or is listed with doubts, in the order it was found.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn add_directory(&mut self, dir: &Path) {
        match candidates(dir) {
            Ok(found) => found.into_iter().for_each(|candidate| self.add_candidate(candidate)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => self.tell(dir, None, format!("the skills in it are not listed: it cannot be read ({e})")),
        }
    }

    fn add_candidate(&mut self, candidate: Candidate) {
        if let Some(folder) = &candidate.folder {
            self.tell_nested(folder);
        }
        let Candidate { name, path, base, found_in, .. } = candidate;
        if name.chars().any(char::is_control) {
            return self.tell(
                &path,
                Some(&name),
                "it is not listed: its name has control characters. Rename it".to_owned(),
            );
        }
        if let Some(winner) = self.skills.get(&name).map(|skill| skill.path.clone()) {
            return self.tell_shadowed(&name, &path, &winner);
        }
        if leads_astray(&path, &found_in) {
            let message = "it is not listed: it is a link to something else than a Markdown file, outside of the skills directory";
            return self.tell(&path, Some(&name), message.to_owned());
        }
        match Skill::read(&name, path.clone(), base, found_in) {
            Ok((skill, doubts)) => {
                doubts.into_iter().for_each(|doubt| self.tell(&path, Some(&name), doubt));
                self.skills.insert(name, skill);
            }
            Err(e) => self.tell_unreadable(&name, &path, &e),
        }
    }

    /// A folder without `SKILL.md` is just a folder; a link that leads nowhere was meant to be something.
    fn tell_unreadable(&mut self, name: &str, path: &Path, error: &io::Error) {
        let entry = if path.ends_with("SKILL.md") { path.parent().unwrap_or(path) } else { path };
        let absent = error.kind() == io::ErrorKind::NotFound && !path.is_symlink() && entry.is_dir();
        if !absent {
            self.tell(path, Some(name), format!("it is not listed: it cannot be read ({error})"));
        }
    }

    fn tell_shadowed(&mut self, name: &str, path: &Path, winner: &Path) {
        let real = |path: &Path| fs::canonicalize(path).ok();
        let Some(own) = real(path) else { return };
        if Some(own) != real(winner) {
            self.tell(
                path,
                Some(name),
                format!("it is not listed: {} has the same name and comes first", winner.display()),
            );
        }
    }

    fn tell_nested(&mut self, folder: &Path) {
        for path in nested(folder) {
            let name = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            let message = "it is not listed: a nested skill, in a subfolder, is not looked for. Move its folder up into the skills directory";
            self.tell(&path, name.as_deref(), message.to_owned());
        }
    }

    fn tell(&mut self, path: &Path, skill: Option<&str>, message: String) {
        self.diagnostics.push(Diagnostic { path: path.to_owned(), skill: skill.map(str::to_owned), message });
    }
}

/// What by its place could be a skill.
#[derive(Debug)]
struct Candidate {
    name: String,
    path: PathBuf,
    base: PathBuf,
    found_in: PathBuf,
    /// The folder that is the skill's own.
    folder: Option<PathBuf>,
}

/// The candidates of a directory by name, of one name the flat file first.
fn candidates(dir: &Path) -> io::Result<Vec<Candidate>> {
    let entries: Vec<fs::DirEntry> = fs::read_dir(dir)?.collect::<Result<_, _>>()?;
    let mut found: Vec<Candidate> = entries.iter().filter_map(|entry| candidate(dir, entry)).collect();
    found.sort_by(|a, b| (&a.name, a.folder.is_some(), &a.path).cmp(&(&b.name, b.folder.is_some(), &b.path)));
    Ok(found)
}

fn candidate(dir: &Path, entry: &fs::DirEntry) -> Option<Candidate> {
    let path = entry.path();
    let name = entry.file_name().to_string_lossy().into_owned();
    if name.starts_with('.') {
        return None;
    }
    if path.is_dir() {
        let file = path.join("SKILL.md");
        return Some(Candidate { name, path: file, base: path.clone(), found_in: dir.to_owned(), folder: Some(path) });
    }
    let lost_link = path.is_symlink() && !path.exists();
    let name = name.strip_suffix(".md").map(str::to_owned).or_else(|| lost_link.then_some(name))?;
    Some(Candidate { name, path, base: dir.to_owned(), found_in: dir.to_owned(), folder: None })
}

/// Whether a path leads through links out of a directory, and to something else than a Markdown file.
///
/// A project that a stranger made must not get at a key through a link: not even the head of such a file is to be read.
pub fn leads_astray(path: &Path, directory: &Path) -> bool {
    let (Ok(target), Ok(directory)) = (path.canonicalize(), directory.canonicalize()) else { return false };
    !target.starts_with(directory) && target.extension().is_none_or(|ending| ending != "md")
}

/// The `SKILL.md` files below the subfolders of `folder`. Links are not followed here, so that a circle ends.
fn nested(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut level = subfolders(folder, &mut seen);
    for _ in 0..NESTED_DEPTH {
        found.extend(level.iter().map(|sub| sub.join("SKILL.md")).filter(|path| path.is_file()));
        level = level.iter().flat_map(|sub| subfolders(sub, &mut seen)).collect();
    }
    found.sort();
    found
}

fn subfolders(folder: &Path, seen: &mut usize) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let room = NESTED_ENTRIES.saturating_sub(*seen);
    let entries: Vec<fs::DirEntry> = entries.filter_map(Result::ok).take(room).collect();
    *seen += entries.len();
    let hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    let folders = entries.iter().filter(|entry| !hidden(entry) && entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(fs::DirEntry::path).collect()
}
