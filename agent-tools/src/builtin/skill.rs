//! Loads a skill.

use std::marker::PhantomData;
use std::sync::Arc;

use agent_skills::{Catalogue, Skill as Found};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::builtin::disk::away;
use crate::builtin::target;
use crate::call::{CallKind, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::text::Cut;
use crate::tool::{Declaration, Prepared, Tool};

/// The most of a skill's file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// What one toolset calls it.
pub trait Dialect: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// What the model is told; the catalogue may be part of it.
    fn declaration(skills: &Catalogue) -> Declaration;

    /// The name, as the model wrote it.
    fn name(&self) -> &str;

    /// The answer: a skill and its text.
    fn loaded(skill: &Found, text: String) -> String;

    /// There is no skill of this name, but those.
    fn unknown(name: &str, known: &str) -> String;
}

/// A description with the catalogue below it, one line a skill.
pub fn with_catalogue(description: &str, skills: &Catalogue) -> String {
    let lines = skills.iter().map(|skill| format!("\n  {} — {}", skill.name, skill.description));
    std::iter::once(description.trim_end().to_owned()).chain(lines).collect()
}

/// A skill's text with its directory put in where it names it: `${SKILL_DIR}`, `${BASH_AGENT_SKILL_DIR}`.
pub fn placed(skill: &Found, text: &str) -> String {
    let base = skill.base.to_string_lossy();
    text.replace("${SKILL_DIR}", &base).replace("${BASH_AGENT_SKILL_DIR}", &base)
}

/// Loads a skill, as dialect `D` has it. Only what is in the catalogue can be read: a name is never used as a path.
#[derive(Debug)]
pub struct Skill<D> {
    skills: Arc<Catalogue>,
    cut: Cut,
    dialect: PhantomData<fn() -> D>,
}

impl<D> Skill<D> {
    /// Loads the skills of this catalogue and shows what `cut` leaves.
    pub fn new(skills: Arc<Catalogue>, cut: Cut) -> Self {
        Self { skills, cut, dialect: PhantomData }
    }
}

#[async_trait]
impl<D: Dialect> Tool for Skill<D> {
    type Input = D;
    type Work = Found;

    fn declaration(&self) -> Declaration {
        D::declaration(&self.skills)
    }

    fn outline(&self, input: &D, _cx: &ToolContext) -> Outline {
        let outline = Outline::new(CallKind::Skill, input.name());
        match self.skills.get(base_name(input.name())) {
            Some(skill) => outline.at(&skill.path, None),
            None => outline,
        }
    }

    async fn prepare(&self, input: D, _cx: &ToolContext) -> Result<Prepared<Found>, ToolError> {
        let name = base_name(input.name());
        self.skills.get(name).cloned().map(Prepared::new).ok_or_else(|| {
            let known: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
            ToolError::new(D::unknown(name, &known.join(", ")))
        })
    }

    async fn run(&self, skill: Found, _permit: &Permit<'_>, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (name, cut) = (skill.name.clone(), self.cut);
        let text = away(move |_| skill.load(LONGEST).map(|text| D::loaded(&skill, text))).await.and_then(|text| text);
        text.map(|text| ToolOutput::ok(cut.told(text))).map_err(|e| target::cannot("read skill", &name, e))
    }
}

/// The last part of a path; names that are none are left for the catalogue not to know.
fn base_name(name: &str) -> &str {
    name.trim_end_matches('/').rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_base_name_is_looked_up() {
        for (name, expect) in [
            ("a", "a"),
            ("sub/a", "a"),
            ("../../etc/passwd", "passwd"),
            ("a/", "a"),
            ("", ""),
            ("/", ""),
            ("..", ".."),
            ("x/..", ".."),
        ] {
            assert_eq!(base_name(name), expect, "{name:?}");
        }
    }
}
