//! Skills.

/// The skills of some directories.
#[derive(Debug, Default)]
pub struct Catalogue;
