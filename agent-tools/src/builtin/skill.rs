//! Loads a skill.
