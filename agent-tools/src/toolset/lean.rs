//! Toolset `lean`: the first seed's five tools. A table, no logic.

use crate::tools::Tools;
use crate::toolset::Parts;

pub(super) fn tools(_parts: &Parts) -> Tools {
    Tools::default()
}
