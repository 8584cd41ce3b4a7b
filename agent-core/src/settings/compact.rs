//! When a conversation is summarised.

use std::fmt;
use std::str::FromStr;

/// When a conversation is summarised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compact {
    /// When that is cheaper than to go on, and before the context is full.
    #[default]
    Auto,
    /// Only when a person asks for it, or the server takes no more.
    Off,
    /// When so many percent of the context are used, from 1 to 99.
    At(u8),
}

impl FromStr for Compact {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = |text: &str| text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|n| (1..=99).contains(n));
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            text => percent(text).map(Self::At).ok_or_else(|| "takes auto, off or a percentage from 1 to 99".into()),
        }
    }
}

impl fmt::Display for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::At(percent) => percent.fmt(f),
        }
    }
}
