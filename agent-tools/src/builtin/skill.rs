//! Loads a skill.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_skills::{Catalogue, Skill as Found};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::builtin::disk::{Wanted, away, open_regular};
use crate::builtin::target;
use crate::call::{CallKind, GrantKey, Needs, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::place::Place;
use crate::policy::Rights;
use crate::policy::zone::{self, Ground};
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

    fn outline(&self, input: &D, cx: &ToolContext) -> Outline {
        let outline = Outline::new(CallKind::Skill, input.name());
        match self.skills.get(base_name(input.name())) {
            Some(skill) => outline.at(&skill.path, None).needing(located(skill, &cx.place).1),
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

    async fn run(&self, skill: Found, permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (name, cut) = (skill.name.clone(), self.cut);
        let (real, needs) = located(&skill, &cx.place);
        if !permit.mode().covers(needs.mode) {
            return Err(target::changed(&name));
        }
        let load = move |_: &Wanted| {
            let text = Found::load_from(open_regular(&real)?, LONGEST)?;
            Ok(D::loaded(&skill, text))
        };
        let text = away(load).await.and_then(|text| text);
        text.map(|text| ToolOutput::ok(cut.told(text))).map_err(|e| target::cannot("read skill", &name, e))
    }
}

/// Where a skill's file really lies, and what loading it needs: nothing as a rule, but a link must not hand out what
/// reading would not.
fn located(skill: &Found, place: &Place) -> (PathBuf, Needs) {
    let ground = Ground::new(place);
    let path = place.cwd.join(&skill.path);
    let found = ground.locate(&path);
    let mut needs = Needs::default();
    if !is_its_own(skill, &found.resolved, &ground) {
        needs.find(path.to_string_lossy(), found.zone, Rights::READ);
        needs.grants.push(GrantKey::new(format!("loading the skill {}", skill.name), needs.mode));
    }
    (found.resolved, needs)
}

/// Whether a skill's file is one of the directory that it was found in, and that one of the workspace where it seems so.
fn is_its_own(skill: &Found, real: &Path, ground: &Ground<'_>) -> bool {
    let place = ground.place();
    let found_in = place.cwd.join(&skill.found_in);
    let Some(directory) = zone::resolve(&found_in) else { return false };
    let seems_in = |root: &&Path| found_in.starts_with(root);
    let is_in = |root: &Path| zone::resolve(root).is_some_and(|root| directory.starts_with(root));
    let plain = skill.path.strip_prefix(&skill.found_in).is_ok_and(|below| directory.join(below) == real);
    real.starts_with(&directory) && place.workspace().filter(seems_in).all(is_in) && (plain || !ground.keeps_keys(real))
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
