//! What a shell command needs: read by a real parser, judged by a table of programs, closed where it cannot be known.

mod arguments;
mod judge;
mod names;
mod parse;
mod patterns;
mod plan;
mod printed;
mod programs;
mod special;
mod table;
mod words;

use self::judge::Judge;
pub(super) use self::patterns::matches;
use self::plan::Dirs;
pub use self::table::programs_table;
use super::{Rights, Zone};
use crate::call::{GrantKey, Needs};
use crate::place::Place;

/// Says what a command needs, without running it. What cannot be judged says why in [`Needs::unsure`].
pub fn judge(command: &str, place: &Place) -> Needs {
    if command.trim().is_empty() {
        return Needs::default();
    }
    let mut judge = Judge::new(place);
    judge.text(command, &Dirs::at(&place.cwd));
    let Judge { mut needs, grants, .. } = judge;
    if needs.mode == super::Mode::NONE {
        // Whatever runs at least looks at the place that it runs in.
        needs.find("any command", Some(Zone::Workspace), Rights::READ);
    }
    if needs.unsure.is_none() && needs.destroys.is_none() {
        needs.grants = grants;
        if needs.grants.is_empty() {
            needs.grants.push(GrantKey::new(format!("the command `{command}`"), needs.mode));
        }
    }
    needs
}
