//! Calls cannot be filtered on this architecture.

use std::io;

pub(super) const AVAILABLE: bool = false;

/// Never works here.
pub(super) fn filter(_system: bool, _network: bool) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "calls cannot be filtered on this architecture"))
}
