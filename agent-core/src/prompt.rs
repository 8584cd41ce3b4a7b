//! The system prompt.

/// The sections of the system prompt.
#[derive(Debug, Clone, Default)]
pub struct Sections {
    text: String,
}

impl Sections {
    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }
}
