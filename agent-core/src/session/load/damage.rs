//! What was wrong with a log, counted, and in words for a person: a few lines however much it was.

use agent_tools::text::counted;

/// Counts of what was mended or left out.
#[derive(Debug, Default)]
pub(super) struct Damage {
    pub(super) skipped: u64,
    /// The number of the first line that was skipped.
    pub(super) first_skipped: u64,
    pub(super) torn: bool,
    pub(super) too_long: u64,
    pub(super) mended: u64,
    pub(super) repeated: u64,
    /// Calls without a result of their own.
    pub(super) open_calls: u64,
    /// Results without a call.
    pub(super) orphans: u64,
    /// Prompts that only their `user_input` line still has.
    pub(super) prompts: u64,
    /// Answers without a prompt.
    pub(super) answers: u64,
}

impl Damage {
    /// What was done about it, a sentence each.
    pub(super) fn told(&self) -> Vec<String> {
        let plural = |count: u64| if count == 1 { "was" } else { "were" };
        let count = |count: u64, thing: &str| counted(usize::try_from(count).unwrap_or(usize::MAX), thing);
        let group = |number: u64, thing: &str, rest: &str| {
            (number > 0).then(|| format!("{} {} {rest}", count(number, thing), plural(number)))
        };
        let first = if self.skipped > 1 { "the first is " } else { "" };
        let limit = super::lines::LIMIT >> 20;
        let torn = "the last line was torn off and is damaged: it was left out".to_owned();
        [
            group(self.skipped, "damaged line", &format!("skipped ({first}line {})", self.first_skipped)),
            self.torn.then_some(torn),
            group(self.too_long, "line", &format!("longer than {limit} MiB and skipped")),
            group(self.mended, "damaged line", "mended: what was no text in them is gone or replaced"),
            group(self.repeated, "repeated line", "skipped"),
            group(self.open_calls, "call", "without a result: each has one now that says what is known"),
            group(self.orphans, "result", "without a call: left out"),
            group(self.prompts, "prompt", "taken from the line that echoes it, its own line being lost"),
            group(self.answers, "answer", "without a prompt: a note stands in its place"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
