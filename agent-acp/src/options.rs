//! What a person chooses in the client: the mode, the model, how hard it thinks, and what is on or off.

use std::str::FromStr;

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode, SessionModeState,
};
use agent_core::settings::Compact;
use agent_tools::policy::{Gate, Permissions};
use agent_tools::toolset::Toolset;

use crate::made::Made;

/// The option of modes.
pub const MODE: &str = "mode";
/// The option of models.
pub const MODEL: &str = "model";
/// The option of efforts.
pub const EFFORT: &str = "thought_level";
/// The option of automatic compaction.
pub const COMPACT: &str = "compact";
/// The effort that is the model's own.
pub const OWN_EFFORT: &str = "default";
/// The efforts that a model can be told.
pub const EFFORTS: [(&str, &str); 6] = [
    (OWN_EFFORT, "The model's own"),
    ("low", "Low"),
    ("medium", "Medium"),
    ("high", "High"),
    ("xhigh", "Very high"),
    ("max", "As high as it goes"),
];

/// How much may run without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Commands and changes are asked about.
    Ask,
    /// What lies within the permission mode runs.
    Auto,
    /// Only reading, until the person has agreed to a plan.
    Plan,
    /// Everything runs.
    Allow,
}

impl Mode {
    /// All of them, in the order of their leave.
    pub const ALL: [Self; 4] = [Self::Ask, Self::Auto, Self::Plan, Self::Allow];

    /// What the client calls it by.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Plan => "plan",
            Self::Allow => "allow",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ask => "Ask",
            Self::Auto => "Auto",
            Self::Plan => "Plan first",
            Self::Allow => "Allow everything",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Ask => "Reads by itself; asks before each command and each change",
            Self::Auto => "Works by itself within bashMode; asks beyond it",
            Self::Plan => "Only reads, until you have agreed to its plan",
            Self::Allow => "Runs everything without a question, whatever it destroys",
        }
    }

    /// The mode in force.
    pub fn of(gate: &Gate) -> Self {
        let rules = gate.rules();
        match (rules.plan_first, rules.permissions) {
            (Some(_), _) => Self::Plan,
            (None, Permissions::Ask) => Self::Ask,
            (None, Permissions::Auto) => Self::Auto,
            (None, Permissions::Allow) => Self::Allow,
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(id: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|mode| mode.id() == id).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|mode| mode.id()).collect();
            format!("there is no mode {id}; the modes are {}", all.join(", "))
        })
    }
}

/// The modes of a session: a toolset without plans has no mode for them.
pub fn offered(toolset: Toolset) -> impl Iterator<Item = Mode> {
    Mode::ALL.into_iter().filter(move |mode| *mode != Mode::Plan || toolset == Toolset::Full)
}

/// The modes, for clients that know no options.
pub fn modes(made: &Made) -> SessionModeState {
    let mode = |mode: Mode| SessionMode::new(mode.id(), mode.name()).description(mode.description().to_owned());
    SessionModeState::new(Mode::of(&made.gate).id(), offered(made.toolset()).map(mode).collect::<Vec<_>>())
}

/// All options, in the order of their weight. `booleans`: the client knows those that are on or off.
pub fn options(made: &Made, booleans: bool) -> Vec<SessionConfigOption> {
    let modes = offered(made.toolset())
        .map(|mode| SessionConfigSelectOption::new(mode.id(), mode.name()).description(mode.description().to_owned()));
    let models = made.models.iter().map(|id| SessionConfigSelectOption::new(id.clone(), model_name(id)));
    let mut options = vec![
        SessionConfigOption::select(MODE, "Mode", Mode::of(&made.gate).id(), modes.collect::<Vec<_>>())
            .description("What runs without a question".to_owned())
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(MODEL, "Model", made.model_id(), models.collect::<Vec<_>>())
            .description("Who does the work, from the next prompt on".to_owned())
            .category(SessionConfigOptionCategory::Model),
    ];
    if made.takes_effort() {
        let efforts = EFFORTS.map(|(id, name)| SessionConfigSelectOption::new(id, name));
        let now = made.agent.limits.effort.map_or(OWN_EFFORT, |effort| effort.name());
        options.push(
            SessionConfigOption::select(EFFORT, "Effort", now, efforts.to_vec())
                .description("How hard the model thinks".to_owned())
                .category(SessionConfigOptionCategory::ThoughtLevel),
        );
    }
    if booleans {
        let on = made.agent.limits.compact != Compact::Off;
        options.push(
            SessionConfigOption::boolean(COMPACT, "Compact by itself", on)
                .description("Replaces the older part of a long conversation by a summary".to_owned()),
        );
    }
    options
}

/// A model without its provider.
fn model_name(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, name)| name)
}
