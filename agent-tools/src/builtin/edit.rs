//! Changes part of a file.

use std::borrow::Cow;
use std::fmt;
use std::io::ErrorKind;
use std::marker::PhantomData;

use async_trait::async_trait;
use memchr::memmem;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::builtin::disk::{Wanted, away};
use crate::builtin::encoding::{Encoding, shown};
use crate::builtin::target::Target;
use crate::builtin::write::{Planned, with_diff};
use crate::builtin::{nearest, target};
use crate::call::{CallKind, Outline};
use crate::context::{Opened, Permit, ToolContext};
use crate::diff::Diff;
use crate::error::ToolError;
use crate::output::{Change, ToolOutput};
use crate::text::Cut;
use crate::tool::{Declaration, Prepared, Tool};

/// How many places of a text are counted.
const COUNTED: usize = 1000;
/// How many of them are named by their lines.
const NAMED: usize = 10;
/// What to do where nothing in the file is near.
const AGAIN: &str = "Read the file again and copy the text exactly.";

/// How many texts that were not found get a hint.
const HINTS: usize = 5;

/// What one toolset calls it.
pub trait Dialect: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The most bytes that one new text may have.
    const MOST_NEW: usize = usize::MAX;
    /// Whether the model reads the diff, after the line that says what was done.
    const TELLS_DIFF: bool;

    /// What the model is told.
    fn declaration() -> Declaration;

    /// The path, as the model wrote it.
    fn path(&self) -> &str;

    /// What is to be replaced by what: `(old, new)`.
    fn edits(&self) -> Vec<(&str, &str)>;

    /// Whether nothing is to be written.
    fn dry_run(&self) -> bool {
        false
    }

    /// Whether each old text is replaced wherever it is, not in the one place where it must be.
    fn everywhere(&self) -> bool {
        false
    }

    /// There is no such file.
    fn missing(path: &str) -> String;

    /// What an edit is called in an answer.
    fn label(edit: usize) -> String;

    /// The old text of an edit is empty.
    fn empty(edit: usize) -> String {
        format!("{}: the old text is empty; give the text that is to be replaced.", Self::label(edit))
    }

    /// What to do about an old text that is in more than one place.
    fn ambiguous_hint() -> &'static str {
        "Add neighbouring text so that it occurs once."
    }

    /// The old text of an edit is nowhere in the file. What is near it follows.
    fn not_found(path: &str, edit: usize) -> String;

    /// Nothing was changed, for these reasons.
    fn refused(path: &str, problems: &[String]) -> String;

    /// The line that says what was done.
    fn applied(path: &str, applied: &Applied<'_>) -> String;

    /// The line that says what would be done.
    fn dry(path: &str, applied: &Applied<'_>) -> String;

    /// The edits leave the file as it is.
    fn unchanged(path: &str) -> String;
}

/// What was done. In words: `+3 -1 lines, first change at line 12`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Applied<'a> {
    /// How many edits.
    pub edits: usize,
    /// What they changed.
    pub diff: &'a Diff,
}

impl fmt::Display for Applied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diff { added, removed, first_changed, .. } = self.diff;
        write!(f, "+{added} -{removed} lines, first change at line {}", first_changed.unwrap_or(0))
    }
}

/// Why edits cannot be applied. Edits and lines of the text are numbered: edits from 0, lines from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// There are no edits.
    Nothing,
    /// The old text is empty.
    Empty {
        /// The edit.
        edit: usize,
    },
    /// The old text is nowhere.
    NotFound {
        /// The edit.
        edit: usize,
    },
    /// The old text is in more than one place, overlapping ones counted too.
    Ambiguous {
        /// The edit.
        edit: usize,
        /// In how many; no more than a thousand are counted.
        count: usize,
        /// The lines of the first of them.
        lines: Vec<u64>,
    },
    /// The text would become too long.
    Grows {
        /// The edit.
        edit: usize,
        /// How many bytes it would have.
        bytes: u128,
    },
    /// The old text is that of an earlier edit.
    Repeats {
        /// The edit.
        edit: usize,
        /// The earlier one.
        first: usize,
    },
    /// The old text has a part in common with that of another edit.
    Overlaps {
        /// The edit.
        edit: usize,
        /// The other one.
        other: usize,
        /// The line where they meet.
        line: u64,
    },
}

/// Replaces each old text by its new one: all of them or none, all found in the text as it was.
///
/// # Errors
/// All problems there are; each old text must be in the text exactly once, and no two may overlap.
pub fn replace(text: &[u8], edits: &[(&[u8], &[u8])]) -> Result<Vec<u8>, Vec<Problem>> {
    if edits.is_empty() {
        return Err(vec![Problem::Nothing]);
    }
    let (mut spans, mut problems) = (Vec::new(), Vec::new());
    for (edit, (old, _)) in edits.iter().enumerate() {
        match only_place(text, edits, edit) {
            Ok(start) => spans.push(Span { start, end: start + old.len(), edit }),
            Err(problem) => problems.push(problem),
        }
    }
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    problems.extend(overlaps(text, &spans));
    if problems.is_empty() { Ok(spliced(text, edits, &spans)) } else { Err(problems) }
}

/// Replaces one old text by the new one wherever it is, from the start on.
///
/// # Errors
/// The old text is empty, or nowhere; the new text would be longer than what is edited at all (128 MiB).
pub fn replace_everywhere(text: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, Problem> {
    if old.is_empty() {
        return Err(Problem::Empty { edit: 0 });
    }
    let count = memmem::find_iter(text, old).count() as u128;
    let bytes = (text.len() as u128 + count * new.len() as u128).saturating_sub(count * old.len() as u128);
    if bytes > u128::from(target::MOST) && new.len() > old.len() {
        return Err(Problem::Grows { edit: 0, bytes });
    }
    let (mut edited, mut at) = (Vec::with_capacity(text.len()), 0);
    for place in memmem::find_iter(text, old) {
        edited.extend_from_slice(&text[at..place]);
        edited.extend_from_slice(new);
        at = place + old.len();
    }
    if at == 0 {
        return Err(Problem::NotFound { edit: 0 });
    }
    edited.extend_from_slice(&text[at..]);
    Ok(edited)
}

/// Where an old text is.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    edit: usize,
}

fn only_place(text: &[u8], edits: &[(&[u8], &[u8])], edit: usize) -> Result<usize, Problem> {
    let old = edits[edit].0;
    if old.is_empty() {
        return Err(Problem::Empty { edit });
    }
    if let Some(first) = edits[..edit].iter().position(|(earlier, _)| *earlier == old) {
        return Err(Problem::Repeats { edit, first });
    }
    let places: Vec<usize> = places(text, old).take(COUNTED).collect();
    match places[..] {
        [] => Err(Problem::NotFound { edit }),
        [only] => Ok(only),
        [..] => {
            let lines = places.iter().take(NAMED).map(|at| line_at(text, *at)).collect();
            Err(Problem::Ambiguous { edit, count: places.len(), lines })
        }
    }
}

/// All places of a text, overlapping ones too.
fn places<'t>(text: &'t [u8], old: &'t [u8]) -> impl Iterator<Item = usize> + 't {
    let finder = memmem::Finder::new(old);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + finder.find(text.get(from..)?)?;
        from = at + 1;
        Some(at)
    })
}

fn line_at(text: &[u8], at: usize) -> u64 {
    1 + memchr::memchr_iter(b'\n', &text[..at]).count() as u64
}

fn overlaps(text: &[u8], spans: &[Span]) -> Vec<Problem> {
    let mut furthest: Option<Span> = None;
    let mut found = Vec::new();
    for span in spans {
        match furthest {
            Some(before) if before.end > span.start => {
                let (edit, other) = (before.edit.max(span.edit), before.edit.min(span.edit));
                found.push(Problem::Overlaps { edit, other, line: line_at(text, span.start) });
            }
            Some(_) | None => {}
        }
        if furthest.is_none_or(|before| span.end > before.end) {
            furthest = Some(*span);
        }
    }
    found
}

fn spliced(text: &[u8], edits: &[(&[u8], &[u8])], spans: &[Span]) -> Vec<u8> {
    let mut new = Vec::with_capacity(text.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut at = 0;
    for span in spans {
        new.extend_from_slice(&text[at..span.start]);
        new.extend_from_slice(edits[span.edit].1);
        at = span.end;
    }
    new.extend_from_slice(&text[at..]);
    new
}

/// Changes part of a file, as dialect `D` has it.
#[derive(Debug)]
pub struct Edit<D> {
    cut: Cut,
    dialect: PhantomData<fn() -> D>,
}

impl<D> Edit<D> {
    /// Shows of a diff what `cut` leaves.
    pub fn new(cut: Cut) -> Self {
        Self { cut, dialect: PhantomData }
    }
}

#[async_trait]
impl<D: Dialect> Tool for Edit<D> {
    type Input = D;
    type Work = Planned;

    fn declaration(&self) -> Declaration {
        D::declaration()
    }

    fn outline(&self, input: &D, cx: &ToolContext) -> Outline {
        target::changes(CallKind::Edit, input.path(), &cx.place)
    }

    async fn prepare(&self, input: D, cx: &ToolContext) -> Result<Prepared<Planned>, ToolError> {
        let target = Target::of(input.path(), cx)?;
        let written = input.path().to_owned();
        let opened = cx.files.open(&target.real).await.map_err(|e| match e.kind() {
            ErrorKind::NotFound => target::missing(D::missing(&written), e),
            _ => target::cannot("edit", &written, e),
        })?;
        let cut = self.cut;
        let planned = away(move |wanted| plan(&input, target, opened, cut, wanted)).await;
        planned.map_err(|e| target::cannot("edit", &written, e))?
    }

    async fn run(&self, work: Planned, _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        work.carry_out(cx).await
    }
}

fn plan<D: Dialect>(
    input: &D,
    target: Target,
    opened: Opened,
    cut: Cut,
    wanted: &Wanted,
) -> Result<Prepared<Planned>, ToolError> {
    let name = input.path();
    let before = target::contents(opened, wanted).map_err(|e| target::cannot("edit", name, e))?;
    let encoding = Encoding::of(&before);
    let text = encoding.text(&before).ok_or_else(|| {
        ToolError::new(format!("cannot edit {name}: it begins as UTF-16 but is not valid UTF-16; nothing was written"))
    })?;
    let edits = as_in_file(&text, encoding, input.edits());
    let pairs: Vec<(&[u8], &[u8])> = edits.iter().map(|(old, new)| (old.as_bytes(), new.as_bytes())).collect();
    too_long::<D>(&pairs)?;
    let edited = match pairs[..] {
        [(old, new)] if input.everywhere() => replace_everywhere(&text, old, new).map_err(|problem| vec![problem]),
        _ => replace(&text, &pairs),
    };
    let edited = edited.map_err(|problems| refusal::<D>(name, &text, &edits, &problems))?;
    if edited == *text {
        return Ok(Planned::nothing(D::unchanged(name)));
    }
    let after = encoding.bytes(&edited);
    let (old, new) = (shown(&before), shown(&after));
    let diff = Diff::between(&old, &new);
    let line = if input.dry_run() { D::dry } else { D::applied };
    let line = line(name, &Applied { edits: pairs.len(), diff: &diff });
    let answer = if D::TELLS_DIFF { with_diff(line, &diff, cut) } else { line };
    if input.dry_run() {
        return Ok(Planned::nothing(answer));
    }
    drop((text, edits));
    Ok(Planned::change(name, target.real, Change::new(target.path, Some(before), Some(old), new), after, answer))
}

fn too_long<D: Dialect>(edits: &[(&[u8], &[u8])]) -> Result<(), ToolError> {
    match edits.iter().position(|(_, new)| new.len() > D::MOST_NEW) {
        None => Ok(()),
        Some(edit) => Err(ToolError::new(format!(
            "{}: the new text has {} bytes; at most {} can be written at once",
            D::label(edit),
            edits[edit].1.len(),
            D::MOST_NEW
        ))),
    }
}

/// An old and a new text as the file writes its lines.
type Pair<'e> = (Cow<'e, str>, Cow<'e, str>);

/// The edits as the file writes its text: without a byte order mark of their own where the file has one, and with
/// `\r\n` for `\n` where all its lines end so.
fn as_in_file<'e>(text: &[u8], encoding: Encoding, edits: Vec<(&'e str, &'e str)>) -> Vec<Pair<'e>> {
    let crlf = only_crlf(text);
    let unmarked = |text: &'e str| if encoding.mark().is_empty() { text } else { text.trim_start_matches('\u{feff}') };
    let written = |text: &'e str| if crlf { with_crlf(unmarked(text)) } else { Cow::Borrowed(unmarked(text)) };
    edits.into_iter().map(|(old, new)| (written(old), written(new))).collect()
}

/// Whether all lines end in `\r\n`, and there is one.
fn only_crlf(text: &[u8]) -> bool {
    let mut ends = memchr::memchr_iter(b'\n', text).peekable();
    ends.peek().is_some() && ends.all(|at| at > 0 && text[at - 1] == b'\r')
}

fn with_crlf(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    let ends = |line: &str| line.strip_suffix('\n').is_some_and(|line| !line.ends_with('\r'));
    let line = |line: &str| if ends(line) { format!("{}\r\n", &line[..line.len() - 1]) } else { line.to_owned() };
    Cow::Owned(text.split_inclusive('\n').map(line).collect())
}

fn refusal<D: Dialect>(path: &str, text: &[u8], edits: &[Pair<'_>], problems: &[Problem]) -> ToolError {
    let readable = String::from_utf8_lossy(text);
    let mut hints = 0;
    let told: Vec<String> = problems
        .iter()
        .map(|problem| {
            let Problem::NotFound { edit } = problem else { return words::<D>(problem) };
            hints += 1;
            let hint = (hints <= HINTS).then(|| hint(&readable, &edits[*edit].0).unwrap_or_else(|| AGAIN.into()));
            hint.map_or_else(|| D::not_found(path, *edit), |hint| format!("{} {hint}", D::not_found(path, *edit)))
        })
        .collect();
    ToolError::new(D::refused(path, &told))
}

fn hint(text: &str, old: &str) -> Option<String> {
    if old.contains(char::REPLACEMENT_CHARACTER) && text.contains(char::REPLACEMENT_CHARACTER) {
        return Some("The file is not all UTF-8: what was shown as \u{fffd} cannot be matched; leave it out.".into());
    }
    nearest::hint(text, old)
}

fn words<D: Dialect>(problem: &Problem) -> String {
    let label = |edit: &usize| D::label(*edit);
    match problem {
        Problem::Nothing => "there are no edits; at least one edit is needed.".into(),
        Problem::Empty { edit } => D::empty(*edit),
        Problem::NotFound { edit } => format!("{}: the old text was not found.", label(edit)),
        Problem::Ambiguous { edit, count, lines } => format!(
            "{}: the old text is ambiguous: it occurs {} times, on {}. {}",
            label(edit),
            if *count < COUNTED { count.to_string() } else { format!("at least {COUNTED}") },
            on_lines(lines, *count),
            D::ambiguous_hint(),
        ),
        Problem::Grows { edit, bytes } => format!(
            "{}: the file would have {bytes} bytes afterwards, more than {} MiB; nothing was written.",
            label(edit),
            target::MOST >> 20
        ),
        Problem::Repeats { edit, first } => {
            format!("{}: repeats the old text of {}; give each old text once.", label(edit), label(first))
        }
        Problem::Overlaps { edit, other, line } => {
            format!("{}: overlaps {} at line {line}; make one edit of the two.", label(edit), label(other))
        }
    }
}

fn on_lines(lines: &[u64], count: usize) -> String {
    let mut numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    numbers.dedup();
    match &numbers[..] {
        [only] => format!("line {only}"),
        [all @ .., last] if count == lines.len() => format!("lines {} and {last}", all.join(", ")),
        all => format!("lines {} and more", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    fn bytes(edits: &[(String, String)]) -> Vec<(&[u8], &[u8])> {
        edits.iter().map(|(old, new)| (old.as_bytes(), new.as_bytes())).collect()
    }

    /// The rules, told as plainly as can be: every place of every old text, by trying each.
    fn model(text: &str, edits: &[(String, String)]) -> Option<String> {
        let starts = |old: &str| (0..text.len()).filter(|at| text[*at..].starts_with(old)).collect::<Vec<_>>();
        let mut taken: Vec<Option<usize>> = vec![None; text.len()];
        for (i, (old, _)) in edits.iter().enumerate() {
            let [start] = starts(old)[..] else { return None };
            if old.is_empty() || taken[start..start + old.len()].iter().any(Option::is_some) {
                return None;
            }
            taken[start..start + old.len()].fill(Some(i));
        }
        let mut new = String::new();
        for (at, c) in text.char_indices() {
            match taken[at] {
                None => new.push(c),
                Some(i) if at == 0 || taken[at - 1] != Some(i) => new.push_str(&edits[i].1),
                Some(_) => {}
            }
        }
        (!edits.is_empty()).then_some(new)
    }

    fn edits() -> impl Strategy<Value = Vec<(String, String)>> {
        prop::collection::vec(("[ab\\n]{0,4}", "[abc\\n]{0,3}"), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn all_or_nothing_as_the_plain_rules_say(text in "[ab\\n]{0,14}", edits in edits()) {
            let found = replace(text.as_bytes(), &bytes(&edits));
            let found = found.ok().map(|new| String::from_utf8(new).unwrap());
            prop_assert_eq!(found, model(&text, &edits));
        }

        #[test]
        fn every_place_is_replaced_as_the_standard_library_does(text in "[ab\\n]{0,14}", old in "[ab]{1,3}", new in "[abc]{0,3}") {
            let found = replace_everywhere(text.as_bytes(), old.as_bytes(), new.as_bytes());
            let expect = text.contains(&old).then(|| text.replace(&old, &new).into_bytes());
            prop_assert_eq!(found.ok(), expect);
        }

        #[test]
        fn order_makes_no_difference_and_the_rest_stays(
            lines in prop::collection::vec("[a-z]{0,3}", 3..10),
            chosen in subsequence((0_usize..10).collect::<Vec<_>>(), 1..4),
            bad in prop::collection::vec(any::<u8>().prop_filter("no newline", |b| *b != b'\n'), 0..4),
        ) {
            // Each line is made unique; bytes that are no UTF-8 stand at the end of each.
            let line = |i: usize, text: &str| [format!("<{i}>{text}").as_bytes(), &bad, b"\n"].concat();
            let text: Vec<u8> = lines.iter().enumerate().flat_map(|(i, l)| line(i, l)).collect();
            let chosen: Vec<usize> = chosen.into_iter().filter(|i| *i < lines.len()).collect();
            prop_assume!(!chosen.is_empty());
            let mut edits: Vec<(String, String)> = chosen.iter().map(|i| (format!("<{i}>"), format!("[{i}]"))).collect();
            let expect: Vec<u8> = lines.iter().enumerate().flat_map(|(i, l)| {
                let line = line(i, l);
                if chosen.contains(&i) { [format!("[{i}]").as_bytes(), &line[format!("<{i}>").len()..]].concat() } else { line }
            }).collect();
            prop_assert_eq!(replace(&text, &bytes(&edits)), Ok(expect.clone()));
            edits.reverse();
            prop_assert_eq!(replace(&text, &bytes(&edits)), Ok(expect));
        }

        #[test]
        fn line_ends_become_those_of_the_file_once(text in "[a\\r\\n]{0,10}") {
            let once = with_crlf(&text).into_owned();
            prop_assert_eq!(once.replace("\r\n", "").contains('\n'), false);
            prop_assert_eq!(with_crlf(&once).into_owned(), once.clone());
        }
    }

    #[test]
    fn each_problem_is_told() {
        let check = |text: &str, edits: &[(&str, &str)], expect: &[Problem]| {
            let edits: Vec<(&[u8], &[u8])> = edits.iter().map(|(o, n)| (o.as_bytes(), n.as_bytes())).collect();
            assert_eq!(replace(text.as_bytes(), &edits).unwrap_err(), expect, "{text:?}");
        };
        check("a", &[], &[Problem::Nothing]);
        check("a", &[("", "x"), ("z", "y")], &[Problem::Empty { edit: 0 }, Problem::NotFound { edit: 1 }]);
        check("aaa", &[("aa", "b")], &[Problem::Ambiguous { edit: 0, count: 2, lines: vec![1, 1] }]);
        check(
            "x\ny\nx",
            &[("x", "b"), ("x", "c")],
            &[Problem::Ambiguous { edit: 0, count: 2, lines: vec![1, 3] }, Problem::Repeats { edit: 1, first: 0 }],
        );
        check("1\n2\n3\n", &[("2\n3", "b"), ("1\n2", "c")], &[Problem::Overlaps { edit: 1, other: 0, line: 2 }]);
        check(
            "abcdef",
            &[("abcdef", ""), ("b", "c"), ("d", "e")],
            &[Problem::Overlaps { edit: 1, other: 0, line: 1 }, Problem::Overlaps { edit: 2, other: 0, line: 1 }],
        );
    }

    #[test]
    fn a_text_that_would_grow_without_measure_is_left_alone() {
        let (text, new) = (vec![b'a'; 1 << 12], vec![b'b'; 1 << 20]);
        assert_eq!(replace_everywhere(&text, b"a", &new), Err(Problem::Grows { edit: 0, bytes: 1 << 32 }));
    }

    #[test]
    fn very_many_places_are_not_all_counted() {
        let text = vec![b'a'; 1 << 20];
        let old = vec![b'a'; 1 << 16];
        let problems = replace(&text, &[(&old, b"b")]).unwrap_err();
        assert!(matches!(problems[..], [Problem::Ambiguous { count: COUNTED, .. }]), "{problems:?}");
    }
}
