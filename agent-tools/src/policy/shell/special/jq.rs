//! Filters of jq and yq.

use super::super::judge::Judge;
use super::super::words::Word;

/// A filter of jq or yq that reads no file of its own accord.
pub(super) fn filter(judge: &mut Judge<'_>, word: &Word) {
    let odd = ["import", "include", "__", "load", "input_filename", "get_search_list", "system", "eval"];
    let plain = |text: &str| !matches!(text, "e" | "ea" | "eval") && !odd.iter().any(|odd| text.contains(odd));
    if !word.literal().is_some_and(plain) {
        judge.doubt(format!("what the filter `{}` reads is not known", word.raw));
    }
}
