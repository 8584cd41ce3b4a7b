//! Ids of sessions.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;

const CHILD: &str = "sub_";

/// A session's id: its time (UTC) and four hex digits, `20261130-201803-9f3a`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// A new id.
    pub fn new(now: Timestamp) -> Self {
        let random = RandomState::new().hash_one(now.as_nanosecond()) & 0xffff;
        Self(format!("{}-{random:04x}", now.strftime("%Y%m%d-%H%M%S")))
    }

    /// A new id for a sub-agent's session: `sub_` in front.
    pub fn of_child(now: Timestamp) -> Self {
        Self(format!("{CHILD}{}", Self::new(now)))
    }

    /// Whether it is a sub-agent's.
    pub fn is_child(&self) -> bool {
        self.0.starts_with(CHILD)
    }

    /// The id of a session that is there. It may be any name of one directory.
    pub fn named(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
