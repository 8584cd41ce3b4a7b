//! The loop detector: counts equal calls with equal results in a row.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// From this count on a result tells the model that it repeats itself.
pub(super) const TOLD_FROM: u32 = 3;

/// Equal calls in a row. A call is equal when tool, arguments (as understood) and result are.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<u64>,
    times: u32,
}

impl Repeats {
    /// Notes an answered call; says how often it was made in a row, this one included.
    pub(super) fn note(&mut self, name: &str, arguments: &str, output: &str) -> u32 {
        let call = BuildHasherDefault::<DefaultHasher>::default().hash_one((name, arguments, output));
        self.times = if self.last == Some(call) { self.times + 1 } else { 1 };
        self.last = Some(call);
        self.times
    }
}

/// The line that a repeated result ends with.
pub(super) fn told(name: &str, times: u32) -> String {
    format!(
        "[LOOP_DETECTED: {name} was called {times} times in a row with the same arguments and the same result; change the approach or answer the user]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_neighbours_count() {
        let mut repeats = Repeats::default();
        let calls = [
            ("bash", "a", "1", 1),
            ("bash", "a", "1", 2),
            ("bash", "a", "1", 3),
            ("bash", "a", "2", 1),
            ("bash", "b", "2", 1),
            ("read", "b", "2", 1),
            ("bash", "b", "2", 1),
            ("bash", "b", "2", 2),
        ];
        for (name, arguments, output, expect) in calls {
            assert_eq!(repeats.note(name, arguments, output), expect, "{name} {arguments} {output}");
        }
    }
}
