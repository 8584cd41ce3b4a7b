//! Why a call failed, in words for the model.

use std::error::Error;
use std::fmt;

/// A failed call. `Display` is written for the model: what happened and what to do next; `source()` is for the log.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// A failure with the text that the model reads.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|e| &**e as &(dyn Error + 'static))
    }
}
