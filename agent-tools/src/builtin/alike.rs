//! Texts that look the same but are not: for hints, never for matching.

use unicode_normalization::UnicodeNormalization;

/// The text as it looks: letters composed, blanks, quotes and dashes of all kinds as the plain ones.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() { text.chars().map(plain).collect() } else { text.nfkc().map(plain).collect() }
}

/// The plain character for one that looks the same.
fn plain(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        c if c != '\n' && c != '\t' && c != '\r' && c.is_whitespace() => ' ',
        c => c,
    }
}

/// What two texts differ in, where they look the same; the first that explains it.
pub(super) fn difference(inside: &str, wanted: &str) -> Option<&'static str> {
    type Key = fn(&str) -> String;
    const REASONS: [(Key, &str); 7] = [
        (|t| t.replace('\r', ""), "line endings (\\r\\n against \\n)"),
        (|t| squeezed(t), "white space"),
        (|t| t.nfc().collect(), "the form of accented letters (one character, or letter and accent)"),
        (|t| folded(t), "characters that look alike (blanks, quotes, dashes)"),
        (|t| t.to_lowercase(), "upper and lower case"),
        (|t| squeezed(&folded(t)), "white space and characters that look alike"),
        (looks, "white space, case or characters that look alike"),
    ];
    REASONS.iter().find(|(key, _)| key(inside).contains(&key(wanted))).map(|(_, reason)| *reason)
}

/// The loosest likeness: white space, case and look-alikes make no difference.
pub(super) fn looks(text: &str) -> String {
    squeezed(&folded(text)).to_lowercase()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
