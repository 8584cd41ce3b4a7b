//! The progress of a fetch on a screen: one line that is drawn again and again, or a line a tenth where it is a file.

use std::io::Write;
use std::time::{Duration, Instant};

use super::{Progress, Stage};

/// How often a terminal is drawn to.
const PACE: Duration = Duration::from_millis(100);
const WIDTH: usize = 24;

/// Draws progress. Dropping it ends the line.
pub struct Bar<W: Write> {
    out: W,
    terminal: bool,
    drawn: Option<(Progress, Instant)>,
}

impl<W: Write> Bar<W> {
    /// A bar on a terminal, or lines for a file or a pipe.
    pub fn new(out: W, terminal: bool) -> Self {
        Self { out, terminal, drawn: None }
    }

    /// Shows how far it is.
    pub fn show(&mut self, progress: Progress) {
        if !self.is_due(progress) {
            return;
        }
        let (begin, end) = if self.terminal { ("\r\x1b[K", "") } else { ("", "\n") };
        // A screen that is gone is no reason to stop.
        let _ = write!(self.out, "{begin}{}{end}", line(progress, self.terminal));
        let _ = self.out.flush();
        self.drawn = Some((progress, Instant::now()));
    }

    fn is_due(&self, progress: Progress) -> bool {
        let Some((last, when)) = self.drawn else { return true };
        if last.stage != progress.stage || (progress.done == progress.total && last.done != last.total) {
            return true;
        }
        if self.terminal { when.elapsed() >= PACE } else { tenth(progress) != tenth(last) }
    }
}

impl<W: Write> Drop for Bar<W> {
    fn drop(&mut self) {
        if self.terminal && self.drawn.is_some() {
            let _ = writeln!(self.out);
        }
    }
}

fn tenth(progress: Progress) -> u64 {
    progress.done * 10 / progress.total.max(1)
}

fn line(Progress { stage, done, total }: Progress, drawn: bool) -> String {
    let what = match stage {
        Stage::Hub => "fetching from its hub",
        Stage::Pip => "fetching with pip",
        Stage::Joining => "putting together",
        Stage::Checking => "checking",
    };
    let percent = done * 100 / total.max(1);
    let full = usize::try_from(percent).unwrap_or(0).min(100) * WIDTH / 100;
    let bar = if drawn { format!("[{}{}] ", "#".repeat(full), " ".repeat(WIDTH - full)) } else { String::new() };
    format!("model: {what} {bar}{percent}% ({} of {} MB)", done / 1_000_000, total / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(terminal: bool, steps: &[(Stage, u64)]) -> String {
        let mut out = Vec::new();
        let mut bar = Bar::new(&mut out, terminal);
        for (stage, done) in steps {
            bar.show(Progress { stage: *stage, done: *done * 1_000_000, total: 200_000_000 });
        }
        drop(bar);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_file_gets_a_line_a_tenth_and_a_terminal_one_line() {
        let steps = [(Stage::Hub, 0), (Stage::Hub, 1), (Stage::Hub, 30), (Stage::Hub, 200), (Stage::Checking, 200)];
        assert_eq!(
            drawn(false, &steps),
            "model: fetching from its hub 0% (0 of 200 MB)\nmodel: fetching from its hub 15% (30 of 200 MB)\n\
             model: fetching from its hub 100% (200 of 200 MB)\nmodel: checking 100% (200 of 200 MB)\n"
        );
        let screen = drawn(true, &steps[..1]);
        assert_eq!(screen, format!("\r\x1b[Kmodel: fetching from its hub [{}] 0% (0 of 200 MB)\n", " ".repeat(WIDTH)));
        assert_eq!(drawn(true, &[]), "");
    }
}
