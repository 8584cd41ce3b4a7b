//! What a search answers: as many whole lines as fit, and a line that tells of the rest.

use crate::text::{Cut, append_line, counted};

/// A `path` argument for messages: the working directory has a name, too.
pub(super) fn place_name(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// Text that stays on its line: names of files may hold line breaks.
pub(super) fn on_one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// The line that tells of what could not be read.
pub(super) fn unreadable(count: usize) -> Option<String> {
    (count > 0).then(|| format!("[... {} could not be read ...]", counted(count, "file or directory")))
}

/// As many of the lines as fit into the cut together with what `notes` has to say when so many are shown.
pub(super) fn fitted(cut: Cut, lines: &[String], notes: impl Fn(usize) -> Vec<String>) -> String {
    let mut text = String::new();
    let mut ends = vec![0];
    for line in lines {
        append_line(&mut text, line);
        ends.push(text.len());
        text.push('\n');
    }
    let told = |shown: usize| {
        let mut told = text[..ends[shown]].to_owned();
        notes(shown).iter().for_each(|note| append_line(&mut told, note));
        told
    };
    let fits = |shown: usize| cut.fits(&told(shown));
    if fits(lines.len()) {
        return told(lines.len());
    }
    let (mut most, mut beyond) = (0, lines.len());
    while beyond - most > 1 {
        let middle = most.midpoint(beyond);
        if fits(middle) { most = middle } else { beyond = middle }
    }
    told(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_many_whole_lines_are_shown_as_fit(lines in prop::collection::vec("[a-zé]{1,9}", 0..30), limit in 20_usize..200) {
            let note = |shown: usize| (shown < lines.len()).then(|| format!("[{} more]", lines.len() - shown));
            let cut = Cut::HeadChars(limit);
            let found = fitted(cut, &lines, |shown| note(shown).into_iter().collect());
            prop_assert!(cut.fits(&found));
            let shown = found.lines().filter(|line| !line.starts_with('[')).count();
            let expect: Vec<String> = lines[..shown].iter().cloned().chain(note(shown)).collect();
            prop_assert_eq!(found, expect.join("\n"));
            if shown < lines.len() {
                let next: Vec<String> = lines[..=shown].iter().cloned().chain(note(shown + 1)).collect();
                prop_assert!(!cut.fits(&next.join("\n")));
            }
        }
    }
}
