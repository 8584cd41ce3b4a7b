//! The system prompt: named sections in a fixed order, rendered once, so that its bytes stay the same for a session.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_skills::{Catalogue, Skill, leads_astray};
use agent_tools::Place;
use agent_tools::builtin::own_files;
use agent_tools::builtin::skill::placed;
use agent_tools::toolset::Toolset;

use crate::settings::file::head;

/// How much of a skill's file is read, in bytes.
const LONGEST_SKILL: u64 = 1 << 20;
/// How much of an instruction file is read, in bytes.
const LONGEST: u64 = 64 << 10;

/// A part of the system prompt. They stand in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Section {
    /// Who the model is and how it works.
    Rules,
    /// Where it is.
    Environment,
    /// What the person and the project want, from their files.
    Instructions,
    /// The skills that can be loaded.
    Skills,
    /// The skills that the person gave.
    Selected,
    /// What the frontend adds.
    Added,
}

/// The system prompt. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Sections {
    parts: BTreeMap<Section, Arc<str>>,
    text: Arc<str>,
    /// The toolset has plans: the session's own files are told.
    plans: bool,
}

impl Sections {
    /// The prompt of a toolset at a place, with these instructions.
    pub fn new(toolset: Toolset, facts: &Facts, instructions: &[Instruction]) -> Self {
        let rules = match toolset {
            Toolset::Lean => include_str!("prompt/lean.md"),
            Toolset::Full => include_str!("prompt/full.md"),
        };
        Self { plans: toolset == Toolset::Full, ..Self::default() }
            .with(Section::Rules, rules)
            .with(Section::Environment, &facts.text())
            .with(Section::Instructions, &instruct(instructions))
    }

    /// Adds the skills: which there are, where the toolset does not tell that with its tools, and those that the person
    /// gave.
    #[must_use]
    pub fn with_skills(self, toolset: Toolset, skills: &Catalogue, selected: &[(String, String)]) -> Self {
        let index = match toolset {
            Toolset::Lean => String::new(),
            Toolset::Full => index(skills),
        };
        let given = |(name, text): &(String, String)| format!("<skill name=\"{name}\">\n{}\n</skill>", text.trim());
        let given: Vec<String> = selected.iter().map(given).collect();
        self.with(Section::Skills, &index).with(Section::Selected, &given.join("\n\n"))
    }

    /// The prompt of one session: with the paths of its own files, and its confirmed plan, where the toolset has plans.
    /// The same bytes until the plan changes.
    pub fn in_session(&self, place: &Place, plan: Option<&str>) -> Arc<str> {
        let (Some(draft), true) = (own_files::path(own_files::DRAFT, place), self.plans) else {
            return self.text.clone();
        };
        let mut text = format!("{}\n\n# This session\n\nPlan draft: {}", self.text, draft.display());
        if let (Some(plan), Some(path)) = (plan, own_files::path(own_files::PLAN, place)) {
            // Writing into a String does not fail.
            let _ = write!(text, "\n\n<current-plan path=\"{}\">\n{}\n</current-plan>", path.display(), plan.trim());
        }
        text.into()
    }

    /// Sets a section; an empty one is left out.
    #[must_use]
    pub fn with(mut self, section: Section, text: &str) -> Self {
        match text.trim() {
            "" => self.parts.remove(&section),
            text => self.parts.insert(section, text.into()),
        };
        let parts: Vec<&str> = self.parts.values().map(|part| &**part).collect();
        self.text = parts.join("\n\n").into();
        self
    }

    /// The whole prompt.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One section.
    pub fn get(&self, section: Section) -> Option<&str> {
        self.parts.get(&section).map(|part| &**part)
    }
}

/// The skills, one a line.
fn index(skills: &Catalogue) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let line = |skill: &Skill| match skill.description.as_str() {
        "" => format!("- {}", skill.name),
        description => format!("- {}: {description}", skill.name),
    };
    let lines: Vec<String> = skills.iter().map(line).collect();
    format!("# Skills\n\nLoad one with the tool Skill as soon as it fits the task.\n\n{}", lines.join("\n"))
}

/// The texts of the skills that a person names.
///
/// # Errors
/// There is no such skill, or it cannot be read.
pub fn selected(skills: &Catalogue, names: &[String]) -> Result<Vec<(String, String)>, NoSkill> {
    let load = |name: &String| {
        let known = || skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>().join(", ");
        let skill = skills.get(name).ok_or_else(|| NoSkill::Unknown { name: name.clone(), known: known() })?;
        let text =
            skill.load(LONGEST_SKILL).map_err(|e| NoSkill::Unreadable { name: name.clone(), why: e.to_string() })?;
        Ok((name.clone(), placed(skill, &text)))
    };
    names.iter().map(load).collect()
}

/// Why a skill cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSkill {
    /// There is none of this name.
    #[error("there is no skill {name}; there are: {}", if known.is_empty() { "none" } else { known })]
    Unknown {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// It cannot be read.
    #[error("the skill {name} cannot be read: {why}")]
    Unreadable {
        /// The name.
        name: String,
        /// Why.
        why: String,
    },
}

/// What the model is told of the place where it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The working directory.
    pub cwd: PathBuf,
    /// The operating system.
    pub platform: String,
    /// Whether the working directory lies in a git repository.
    pub git: bool,
}

impl Facts {
    fn text(&self) -> String {
        let git = if self.git { "yes" } else { "no" };
        format!(
            "# Environment\n\nWorking directory: {}\nPlatform: {}\nGit repository: {git}",
            self.cwd.display(),
            self.platform
        )
    }
}

/// An instruction file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instruction {
    /// Where it is.
    pub path: PathBuf,
    /// What it says; nothing where it could not be read.
    pub text: String,
    /// What a person should know of it.
    pub notice: Option<String>,
}

/// The nearest directory from here upwards that holds a git repository.
pub fn project_root(cwd: &Path) -> Option<&Path> {
    cwd.ancestors().find(|dir| dir.join(".git").exists())
}

/// Reads `AGENTS.md`, else `CLAUDE.md`, of the user's directory and of each directory from the project's root down to
/// the working directory. Of each file at most the first 64 KiB are read.
pub fn instructions(cwd: &Path, config_dir: &Path) -> Vec<Instruction> {
    let root = project_root(cwd).unwrap_or(cwd);
    let mut dirs: Vec<&Path> = cwd.ancestors().take_while(|dir| dir.starts_with(root)).collect();
    dirs.retain(|dir| *dir != config_dir);
    dirs.reverse();
    let users = file_of(config_dir).map(|path| read(path, None));
    let projects = dirs.into_iter().filter_map(file_of).map(|path| read(path, Some(root)));
    users.into_iter().chain(projects).filter(|file| !file.text.is_empty() || file.notice.is_some()).collect()
}

fn file_of(dir: &Path) -> Option<PathBuf> {
    ["AGENTS.md", "CLAUDE.md"].iter().map(|name| dir.join(name)).find(|path| path.symlink_metadata().is_ok())
}

fn read(path: PathBuf, root: Option<&Path>) -> Instruction {
    let unread = |why: String| Some(format!("{} is not used: {why}", path.display()));
    if root.is_some_and(|root| leads_astray(&path, root)) {
        let notice = unread("it is a link to something else than a Markdown file, outside of the project".into());
        return Instruction { path, text: String::new(), notice };
    }
    match head(&path, LONGEST) {
        Err(e) => {
            let notice = unread(e.to_string());
            Instruction { path, text: String::new(), notice }
        }
        Ok(head) => {
            let cut = || format!("{} is long: only its first {} KiB are used", path.display(), LONGEST >> 10);
            let notice = head.longer.then(cut);
            Instruction { path, text: text(&head.bytes, head.longer), notice }
        }
    }
}

fn text(bytes: &[u8], cut: bool) -> String {
    let bytes = if cut { whole_characters(bytes) } else { bytes };
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
    if cut { format!("{text}\n[cut: the file is longer than {} KiB]", LONGEST >> 10) } else { text.trim().to_owned() }
}

/// Without the character that the cut went through.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last();
    match last.map(|chunk| chunk.invalid()) {
        Some(part) if part.len() < 4 && !part.is_empty() => &bytes[..bytes.len() - part.len()],
        Some(_) | None => bytes,
    }
}

fn instruct(files: &[Instruction]) -> String {
    let mut all = String::new();
    for file in files.iter().filter(|file| !file.text.is_empty()) {
        // Writing into a String does not fail.
        let _ = write!(all, "\n\n<file path=\"{}\">\n{}\n</file>", file.path.display(), file.text);
    }
    if all.is_empty() { all } else { format!("{}{all}", include_str!("prompt/instructions.md").trim()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn facts() -> Facts {
        Facts { cwd: "/home/ada/x".into(), platform: "linux".into(), git: true }
    }

    /// A directory with these files; a name that ends in a slash is a directory.
    fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(if name.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
            if !name.ends_with('/') {
                fs::write(path, bytes).unwrap();
            }
        }
        dir
    }

    /// Names and texts of the instructions for `cwd`, with `user` as the user's directory.
    fn found(dir: &tempfile::TempDir, cwd: &str) -> Vec<(String, String)> {
        let all = instructions(&dir.path().join(cwd), &dir.path().join("user"));
        let name = |i: &Instruction| i.path.strip_prefix(dir.path()).unwrap().display().to_string();
        all.iter().map(|i| (name(i), i.text.clone())).collect()
    }

    #[test]
    fn files_from_the_root_down() {
        let git = ("p/.git/", &b""[..]);
        for (files, cwd, expect) in [
            (
                &[git, ("p/AGENTS.md", b"1"), ("p/a/b/AGENTS.md", b"2"), ("AGENTS.md", b"0")][..],
                "p/a/b",
                &[("p/AGENTS.md", "1"), ("p/a/b/AGENTS.md", "2")][..],
            ),
            (&[git, ("p/AGENTS.md", b"1"), ("p/CLAUDE.md", b"2")], "p", &[("p/AGENTS.md", "1")]),
            (&[git, ("p/CLAUDE.md", b"2")], "p", &[("p/CLAUDE.md", "2")]),
            (
                &[git, ("user/AGENTS.md", b"u"), ("p/CLAUDE.md", b"2")],
                "p",
                &[("user/AGENTS.md", "u"), ("p/CLAUDE.md", "2")],
            ),
            (&[("q/AGENTS.md", b"1"), ("q/r/AGENTS.md", b"2")], "q/r", &[("q/r/AGENTS.md", "2")]),
            (&[("user/AGENTS.md", b"u")], "user", &[("user/AGENTS.md", "u")]),
            (&[("p/AGENTS.md", b" \n")], "p", &[]),
            (&[("p/", b"")], "p", &[]),
            (&[], "gone", &[]),
            (
                &[("p/AGENTS.md", b"\xef\xbb\xbf# R\r\nONE\r\n\xff\xfe\r\n")],
                "p",
                &[("p/AGENTS.md", "# R\nONE\n\u{fffd}\u{fffd}")],
            ),
        ] {
            let dir = tree(files);
            let expect: Vec<_> = expect.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect();
            assert_eq!(found(&dir, cwd), expect, "{files:?}");
        }
    }

    #[test]
    fn a_long_file_is_cut_between_characters_and_says_so() {
        for (before, kept) in [(65_536, 65_536), (65_535, 65_535), (65_534, 65_534), (65_533, 65_536)] {
            let mut long = vec![b'x'; before];
            long.extend("€".repeat(10_000).as_bytes());
            let dir = tree(&[("AGENTS.md", &long)]);
            let [file] = &instructions(dir.path(), Path::new("/nowhere"))[..] else { panic!() };
            let (body, end) = file.text.rsplit_once('\n').unwrap();
            assert_eq!((body.len(), end), (kept, "[cut: the file is longer than 64 KiB]"), "{before}");
            assert!(!body.contains('\u{fffd}'), "{before}");
            assert!(file.notice.as_ref().unwrap().ends_with("is long: only its first 64 KiB are used"));
        }
    }

    #[test]
    fn a_huge_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::File::create(dir.path().join("AGENTS.md")).unwrap().set_len(1 << 40).unwrap();
        let [file] = &instructions(dir.path(), Path::new("/nowhere"))[..] else { panic!() };
        assert!(file.text.len() < 70_000);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_does_not_hang() {
        let fifo = |path: &Path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        let dangling = |path: &Path| std::os::unix::fs::symlink("nowhere", path).unwrap();
        let device = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        let astray = |path: &Path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
        let folder = |path: &Path| fs::create_dir(path).unwrap();
        for (make, told) in [
            (&fifo as &dyn Fn(&Path), "it is not a regular file"),
            (&dangling, "No such file"),
            (&device, "outside of the project"),
            (&astray, "outside of the project"),
            (&folder, "it is not a regular file"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            make(&dir.path().join("AGENTS.md"));
            let [file] = &instructions(dir.path(), Path::new("/nowhere"))[..] else { panic!("{told}") };
            assert_eq!(file.text, "");
            assert!(file.notice.as_ref().unwrap().contains(told), "{:?}", file.notice);
            assert!(
                Sections::new(Toolset::Lean, &facts(), std::slice::from_ref(file)).get(Section::Instructions).is_none()
            );
        }
    }

    #[test]
    fn links_to_markdown_are_followed() {
        let shared = tree(&[("shared.md", b"S")]);
        let dir = tree(&[("CLAUDE.md", b"C")]);
        std::os::unix::fs::symlink(shared.path().join("shared.md"), dir.path().join("AGENTS.md")).unwrap();
        assert_eq!(found(&dir, ""), [("AGENTS.md".to_owned(), "S".to_owned())]);
    }

    #[test]
    fn sections_keep_their_order_whatever_the_order_of_setting() {
        let parts = [(Section::Instructions, "c"), (Section::Rules, "a"), (Section::Environment, " b\n")];
        let all = parts.iter().fold(Sections::default(), |all, (section, text)| all.with(*section, text));
        assert_eq!(all.text(), "a\n\nb\n\nc");
        assert_eq!(all.with(Section::Environment, "").text(), "a\n\nc");
    }

    #[test]
    fn the_prompt_is_short_and_the_same_each_time() {
        let file = Instruction { path: "/home/ada/x/AGENTS.md".into(), text: "Use tabs.".into(), notice: None };
        let prompt = || Sections::new(Toolset::Lean, &facts(), std::slice::from_ref(&file)).text().to_owned();
        assert_eq!(prompt(), prompt());
        assert!(Sections::new(Toolset::Lean, &facts(), &[]).text().len() < 1500);
        for part in [
            "Working directory: /home/ada/x\nPlatform: linux\nGit repository: yes",
            "<file path=\"/home/ada/x/AGENTS.md\">\nUse tabs.\n</file>",
        ] {
            assert!(prompt().contains(part), "{}", prompt());
        }
    }
}
