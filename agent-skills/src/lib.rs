//! Finds, lists and loads skills: Markdown files that tell a model how to do a kind of task.
//!
//! A skill is `<dir>/<name>.md` or `<dir>/<name>/SKILL.md`. Its name is that of the file or folder; its description comes
//! from the YAML front matter, or else from the text:
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let dir = tempfile::tempdir()?;
//! std::fs::write(dir.path().join("review.md"), "---\ndescription: How we review\n---\nLook for tests first.\n")?;
//!
//! let skills = agent_skills::Catalogue::discover(&[dir.path()]);
//! let lines: Vec<String> = skills.iter().map(|skill| format!("{} — {}", skill.name, skill.description)).collect();
//! assert_eq!(lines, ["review — How we review"]);
//!
//! let review = skills.get("review").ok_or(std::io::ErrorKind::NotFound)?;
//! assert!(review.load(100_000)?.ends_with("Look for tests first.\n"));
//! assert!(skills.get("../review").is_none(), "only names of the catalogue load");
//! # Ok(())
//! # }
//! ```
//!
//! What is wrong with a skill is said, never raised: [`Catalogue::discover`] does not fail, [`Catalogue::diagnostics`]
//! tells what was left out or read with doubts.
//!
//! What it will not do: look for directories by itself (no environment, no home), run anything that a skill holds, give a
//! skill any right (`allowed-tools` is text here), list skills in subfolders of a skill's folder (a diagnostic names
//! them), follow a name that is not in the catalogue, remember a text (each [`Skill::load`] reads the file anew), print.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod catalogue;
mod front_matter;
mod skill;

pub use catalogue::{Catalogue, Diagnostic, leads_astray};
pub use skill::Skill;
