//! Who may do what: the policy, its verdict, and the gate that both toolsets go through.
//!
//! The rules are those of the permission modes: a ceiling of four octal digits, and `ask`, `auto` or `allow` for what
//! lies within and beyond it. What follows is the page for the people who set them.
//!
#![doc = include_str!("../../docs/permissions.md")]

mod mode;
#[cfg(feature = "builtin")]
pub mod shell;
#[cfg(feature = "builtin")]
pub mod zone;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

pub use mode::{MalformedMode, Mode, Rights, Zone};

use crate::call::{CallKind, Outline};

/// Judges calls.
pub trait Policy: Send + Sync {
    /// What is to be done with this call.
    fn judge(&self, call: &Outline) -> Verdict;

    /// What may be done without asking, as a mode. Nothing by default: then a person is asked before anything is even
    /// looked at.
    fn ceiling(&self) -> Mode {
        Mode::NONE
    }

    /// The mode that a call runs with once it was let through: by default the ceiling and what the call needs.
    fn permits(&self, call: &Outline) -> Mode {
        self.ceiling().union(call.needs.mode)
    }

    /// Told between calls whether a plan draft is open, and in which directory: that of the session.
    fn planning(&self, _draft_in: Option<&Path>) {}
}

/// What a policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask {
        /// Why, for the person.
        why: String,
        /// What happens where nobody can answer.
        unanswered: Unanswered,
    },
    /// It does not run. The text is the model's.
    Deny(String),
}

/// What becomes of a question that nobody can answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// The call runs.
    Allow,
    /// It reads like a person's no.
    Reject,
    /// It is blocked; the text is the model's.
    Block(String),
}

/// Allows everything: for tests and examples, and for those who know what they do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open;

impl Policy for Open {
    fn judge(&self, _call: &Outline) -> Verdict {
        Verdict::Allow
    }

    fn ceiling(&self) -> Mode {
        Mode::ALL
    }
}

/// How much a person wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// Reading within the ceiling runs; all else asks.
    Ask,
    /// What lies within the ceiling runs; all else asks.
    Auto,
    /// Everything runs.
    Allow,
}

impl Permissions {
    /// The three, in the order of their leave.
    pub const ALL: [Self; 3] = [Self::Ask, Self::Auto, Self::Allow];

    /// The word for it in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Allow => "allow",
        }
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Permissions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|p| p.name() == text).ok_or_else(|| format!("`{text}` is none of ask, auto, allow"))
    }
}

/// The gate: a ceiling, and what happens within and beyond it.
pub struct Gate {
    // A lock, because frontends change the rules while a turn runs; held for a copy only.
    rules: Mutex<Rules>,
}

/// What a [`Gate`] goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The rights that need no asking.
    pub ceiling: Mode,
    /// How much is asked.
    pub permissions: Permissions,
    /// A plan draft is open in this directory: only reading runs, and changes there.
    pub planning: Option<PathBuf>,
    /// A person wants a plan first: the same holds before there is a draft, and it is shown before it is confirmed. Over
    /// when the draft is confirmed or emptied.
    pub plan_first: Option<PathBuf>,
}

impl Gate {
    /// A gate with this ceiling.
    pub fn new(ceiling: Mode, permissions: Permissions) -> Self {
        Self { rules: Mutex::new(Rules { ceiling, permissions, planning: None, plan_first: None }) }
    }

    /// The rules in force.
    pub fn rules(&self) -> Rules {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the rules, from the next call on.
    pub fn set(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Policy for Gate {
    fn judge(&self, call: &Outline) -> Verdict {
        self.rules().judge(call)
    }

    fn ceiling(&self) -> Mode {
        let rules = self.rules();
        if rules.permissions == Permissions::Allow { Mode::ALL } else { rules.ceiling }
    }

    fn permits(&self, call: &Outline) -> Mode {
        let rules = self.rules();
        // What was let through while a plan is open only reads: it is held to that.
        if rules.plans_in().is_some() {
            return rules.ceiling.reading().union(call.needs.mode);
        }
        self.ceiling().union(call.needs.mode)
    }

    fn planning(&self, draft_in: Option<&Path>) {
        self.set(|rules| {
            if rules.planning.as_deref() != draft_in {
                let before = std::mem::replace(&mut rules.planning, draft_in.map(Path::to_owned));
                rules.plan_first.take_if(|_| before.is_some() && draft_in.is_none());
            }
        });
    }
}

impl Rules {
    /// The table of the permission page, as one function.
    pub fn judge(&self, call: &Outline) -> Verdict {
        let needs = &call.needs;
        if self.plans_in().is_some_and(|store| !may_while_planning(call, store)) {
            return Verdict::Deny(if self.planning.is_some() { PLANNING } else { PLAN_FIRST }.into());
        }
        if self.plan_first.is_some() && call.kind == CallKind::Plan {
            return Verdict::Ask { why: "the plan is to be agreed to".into(), unanswered: Unanswered::Reject };
        }
        if self.plan_first.is_some() && call.kind.changes_files() {
            return Verdict::Allow;
        }
        if self.permissions == Permissions::Allow {
            return Verdict::Allow;
        }
        let lost = needs.destroys.as_ref().map(|lost| format!("this would destroy work: {lost}"));
        let with_loss = |why: String| lost.iter().fold(why, |why, lost| format!("{why}; {lost}"));
        let within = if self.permissions == Permissions::Ask { Unanswered::Reject } else { Unanswered::Allow };
        if let Some(reason) = &needs.unsure {
            let why = with_loss(format!("this could not be judged: {reason}"));
            // A ceiling without limits has room for whatever it is.
            let unanswered = if self.ceiling == Mode::ALL { within } else { Unanswered::Block(self.blocked(call)) };
            return Verdict::Ask { why, unanswered };
        }
        if !self.ceiling.covers(needs.mode) {
            let why = with_loss(self.beyond(call));
            return Verdict::Ask { why, unanswered: Unanswered::Block(self.blocked(call)) };
        }
        if self.permissions == Permissions::Ask && asks_within(call) {
            return Verdict::Ask { why: lost.unwrap_or_else(|| "permissions are `ask`".into()), unanswered: within };
        }
        match lost {
            Some(why) => Verdict::Ask { why, unanswered: within },
            None => Verdict::Allow,
        }
    }

    /// The directory of the plan that is worked out.
    fn plans_in(&self) -> Option<&Path> {
        self.planning.as_deref().or(self.plan_first.as_deref())
    }

    fn beyond(&self, call: &Outline) -> String {
        let missing = self.missing(call);
        let reason = if missing.is_empty() { String::new() } else { format!(" ({missing})") };
        format!("it needs mode {}, allowed is {}{reason}", call.needs.mode, self.ceiling)
    }

    /// The findings that the ceiling has no room for.
    fn missing(&self, call: &Outline) -> String {
        let missing: Vec<String> = call
            .needs
            .findings
            .iter()
            .filter_map(|f| f.zone.filter(|z| !self.ceiling.get(*z).covers(f.rights)).map(|z| (f, z)))
            .map(|(f, zone)| format!("`{}` needs {} in zone {}", f.what, f.rights, zone_name(zone)))
            .collect();
        missing.join("; ")
    }

    /// The exact text of the permission page, and on a line of its own what was too much or could not be judged.
    fn blocked(&self, call: &Outline) -> String {
        let text = blocked(call.needs.mode, self.ceiling);
        match &call.needs.unsure {
            None => match self.missing(call) {
                missing if missing.is_empty() => text,
                missing => format!("{text}\nBeyond what is allowed: {}.", missing.replace('\n', " ")),
            },
            Some(reason) => format!(
                "{text}\nIt could not be judged: {reason}. Use a simpler command: literal words, quotes, pipes, `&&` and redirections to literal paths."
            ),
        }
    }
}

/// While a plan draft is open in this directory reading runs, and changes of files in it. What needs nothing lies there or
/// below `/tmp`.
fn may_while_planning(call: &Outline, store: &Path) -> bool {
    let needs = &call.needs;
    let in_store = || call.locations.iter().all(|location| location.path.starts_with(store));
    needs.mode.only_reads() && needs.unsure.is_none() && (!call.kind.changes_files() || in_store())
}

/// Within the ceiling reading runs; commands and changes ask.
fn asks_within(call: &Outline) -> bool {
    call.kind == CallKind::Command || call.kind.changes_files() || !call.needs.mode.only_reads()
}

/// The zone's word, as `agent check` prints it.
pub const fn zone_name(zone: Zone) -> &'static str {
    match zone {
        Zone::System => "system",
        Zone::External => "external",
        Zone::Network => "network",
        Zone::Workspace => "workspace",
    }
}

/// What the model reads where a call is beyond the ceiling and nobody can be asked.
pub fn blocked(required: Mode, allowed: Mode) -> String {
    format!(
        "Error: command blocked by bash safety policy (required={required} allowed={allowed}; mode=system/external/network/workspace bits=4:read,2:write,1:execute)"
    )
}

/// What the model reads where a person said no.
pub fn rejected(kind: CallKind) -> &'static str {
    if kind == CallKind::Command {
        "[command rejected by the user]"
    } else if kind.changes_files() {
        "[change rejected by the user]"
    } else {
        "[call rejected by the user]"
    }
}

const PLANNING: &str =
    "Error: a plan draft is open: only reading and the session's plan files until PlanConfirm or an empty draft";

const PLAN_FIRST: &str =
    "Error: the person wants a plan first: only reading, and writing the plan draft, until PlanConfirm is agreed to";
