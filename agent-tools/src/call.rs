//! What the model asked for: the call, and its outline for people and policies.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::policy::{Mode, Rights, Zone};

/// One tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id of the call; its result carries the same.
    pub id: String,
    /// The tool's name as the model wrote it; it may be unknown.
    pub name: String,
    /// The arguments, verbatim: JSON as a rule, but it may be broken.
    pub arguments: String,
}

impl Call {
    /// A call from its three parts.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// What a tool does, for screens and rules. Frontends match on this, not on names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Runs a shell command.
    Command,
    /// Reads a file.
    Read,
    /// Writes a whole file.
    Write,
    /// Changes part of a file.
    Edit,
    /// Looks for files or text.
    Search,
    /// Loads a skill.
    Skill,
    /// Keeps the todo list.
    Todo,
    /// Keeps the plan.
    Plan,
    /// Starts another agent.
    Agent,
    /// Anything else, unknown tools among them.
    Other,
}

impl CallKind {
    /// Whether it writes files itself.
    pub const fn changes_files(self) -> bool {
        match self {
            Self::Write | Self::Edit => true,
            Self::Command
            | Self::Read
            | Self::Search
            | Self::Skill
            | Self::Todo
            | Self::Plan
            | Self::Agent
            | Self::Other => false,
        }
    }
}

/// A file that a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The absolute path.
    pub path: PathBuf,
    /// The line, counted from 1, where one is known.
    pub line: Option<u64>,
}

/// A call as people see it and policies judge it. Both read the same, so that they cannot drift apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// What kind of thing it does.
    pub kind: CallKind,
    /// What it is about, in the model's spelling: the command, the path, the skill.
    pub title: String,
    /// The files that it touches, where they are known.
    pub locations: Vec<Location>,
    /// What it needs.
    pub needs: Needs,
}

impl Outline {
    /// An outline of something that needs nothing and touches no file.
    pub fn new(kind: CallKind, title: impl Into<String>) -> Self {
        Self { kind, title: title.into(), locations: Vec::new(), needs: Needs::default() }
    }

    /// Adds a file.
    #[must_use]
    pub fn at(mut self, path: impl Into<PathBuf>, line: Option<u64>) -> Self {
        self.locations.push(Location { path: path.into(), line });
        self
    }

    /// Sets what it needs.
    #[must_use]
    pub fn needing(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }
}

/// The rights that a call needs, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Needs {
    /// The rights, as a mode.
    pub mode: Mode,
    /// Why the call could not be judged, where it could not.
    pub unsure: Option<String>,
    /// What work would be lost, where some would be.
    pub destroys: Option<String>,
    /// One finding a word or redirect: where the rights come from.
    pub findings: Vec<Finding>,
    /// What "for this session" would cover: all of these. Empty: it cannot be granted.
    pub grants: Vec<GrantKey>,
}

impl Needs {
    /// Needs just this mode, found nowhere in particular.
    pub fn mode(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Adds a finding, and its rights to the mode.
    pub fn find(&mut self, what: impl Into<String>, zone: Option<Zone>, rights: Rights) {
        if let Some(zone) = zone {
            self.mode = self.mode.with(zone, rights);
        }
        self.findings.push(Finding { what: what.into(), zone, rights });
    }
}

/// Where a right comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The word, redirect or argument.
    pub what: String,
    /// The zone that it leads to; none for what needs nothing.
    pub zone: Option<Zone>,
    /// The rights it takes there.
    pub rights: Rights,
}

/// What a person's "for this session" covers, in words that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantKey {
    /// The plain words: ``the command `git status` ``, `changes of files`.
    pub subject: String,
    /// As far as these rights; a call that needs others is asked about again.
    pub mode: Mode,
}

impl GrantKey {
    /// A grant of this subject, as far as this mode.
    pub fn new(subject: impl Into<String>, mode: Mode) -> Self {
        Self { subject: subject.into(), mode }
    }

    /// Tells whether this grant, once given, covers what `wanted` asks for.
    pub fn covers(&self, wanted: &GrantKey) -> bool {
        self.subject == wanted.subject && self.mode.covers(wanted.mode)
    }
}
