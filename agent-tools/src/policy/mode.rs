//! The permission mode: four octal digits, one a zone.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The four places that rights are given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Zone {
    /// The machine itself, and what is sensitive wherever it lies.
    System,
    /// Any other path outside the workspace.
    External,
    /// Other hosts.
    Network,
    /// The working directory and what was added to it.
    Workspace,
}

/// Rights in one zone: 4 read, 2 write, 1 execute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// None.
    pub const NONE: Self = Self(0);
    /// Execute.
    pub const EXECUTE: Self = Self(1);
    /// Write.
    pub const WRITE: Self = Self(2);
    /// Read.
    pub const READ: Self = Self(4);
    /// Read and write.
    pub const READ_WRITE: Self = Self(6);
    /// All three.
    pub const ALL: Self = Self(7);

    /// Both together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of the two that both have.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether every one of `needed` is here.
    pub const fn covers(self, needed: Self) -> bool {
        needed.0 & !self.0 == 0
    }

    /// The digit.
    pub const fn digit(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(Self::READ, "read"), (Self::WRITE, "write"), (Self::EXECUTE, "execute")];
        let words: Vec<&str> = words.iter().filter(|(r, _)| self.covers(*r)).map(|(_, w)| *w).collect();
        f.write_str(if words.is_empty() { "nothing".into() } else { words.join(", ") }.as_str())
    }
}

impl Serialize for Rights {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Rights in all four zones, in the order system, external, network, workspace. Printed as four octal digits: `0467`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// Digit 1.
    pub system: Rights,
    /// Digit 2.
    pub external: Rights,
    /// Digit 3.
    pub network: Rights,
    /// Digit 4.
    pub workspace: Rights,
}

impl Mode {
    /// `0000`.
    pub const NONE: Self = Self::of(Rights::NONE, Rights::NONE, Rights::NONE, Rights::NONE);
    /// `7777`.
    pub const ALL: Self = Self::of(Rights::ALL, Rights::ALL, Rights::ALL, Rights::ALL);
    /// `0467`: external reading, the network without running code from it, all of the workspace.
    pub const DEFAULT: Self = Self::of(Rights::NONE, Rights::READ, Rights::READ_WRITE, Rights::ALL);

    const fn of(system: Rights, external: Rights, network: Rights, workspace: Rights) -> Self {
        Self { system, external, network, workspace }
    }

    /// The rights in a zone.
    pub const fn get(self, zone: Zone) -> Rights {
        match zone {
            Zone::System => self.system,
            Zone::External => self.external,
            Zone::Network => self.network,
            Zone::Workspace => self.workspace,
        }
    }

    /// This mode and `rights` in `zone`.
    #[must_use]
    pub fn with(mut self, zone: Zone, rights: Rights) -> Self {
        let place = match zone {
            Zone::System => &mut self.system,
            Zone::External => &mut self.external,
            Zone::Network => &mut self.network,
            Zone::Workspace => &mut self.workspace,
        };
        *place = place.union(rights);
        self
    }

    /// Both together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self::of(
            self.system.union(other.system),
            self.external.union(other.external),
            self.network.union(other.network),
            self.workspace.union(other.workspace),
        )
    }

    /// Whether every right of `needed` is here, zone by zone. Not a comparison of numbers.
    pub const fn covers(self, needed: Self) -> bool {
        self.system.covers(needed.system)
            && self.external.covers(needed.external)
            && self.network.covers(needed.network)
            && self.workspace.covers(needed.workspace)
    }

    /// Only the rights to read.
    #[must_use]
    pub const fn reading(self) -> Self {
        let r = Rights::READ;
        Self::of(
            self.system.intersection(r),
            self.external.intersection(r),
            self.network.intersection(r),
            self.workspace.intersection(r),
        )
    }

    /// Whether it reads and does nothing else.
    pub fn only_reads(self) -> bool {
        self == self.reading()
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}{}", self.system.0, self.external.0, self.network.0, self.workspace.0)
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is not four octal digits. Whoever gets this uses [`Mode::NONE`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a mode: four digits from 0 to 7 (system, external, network, workspace), each 4 read + 2 write + 1 execute"
)]
pub struct MalformedMode(pub String);

impl FromStr for Mode {
    type Err = MalformedMode;

    fn from_str(text: &str) -> Result<Self, MalformedMode> {
        let digit = |b: &u8| (b'0'..=b'7').contains(b).then(|| Rights(b - b'0'));
        match text.as_bytes() {
            [s, e, n, w] => {
                Option::zip(digit(s).zip(digit(e)), digit(n).zip(digit(w))).map(|((s, e), (n, w))| Self::of(s, e, n, w))
            }
            _ => None,
        }
        .ok_or_else(|| MalformedMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allow_test_table() {
        for (allowed, required, expect) in [
            ("0447", "0004", true),
            ("0447", "4000", false),
            ("0447", "0050", false),
            ("0447", "0020", false),
            ("0777", "0602", true),
            ("0000", "0004", false),
            ("bad", "0004", false),
            ("7777", "7777", true),
            ("0467", "4000", false),
            ("bad1", "0000", true),
            ("6677", "1000", false),
        ] {
            let mode = |t: &str| t.parse::<Mode>().unwrap_or(Mode::NONE);
            assert_eq!(mode(allowed).covers(mode(required)), expect, "{allowed} {required}");
        }
    }

    #[test]
    fn malformed_texts_are_no_modes() {
        for text in ["bad1", "046", "04670", "0487", " 0467", "0467 ", ""] {
            assert!(text.parse::<Mode>().is_err(), "{text:?}");
        }
        assert_eq!("0467".parse(), Ok(Mode::DEFAULT));
        assert_eq!(Mode::DEFAULT.to_string(), "0467");
    }
}
