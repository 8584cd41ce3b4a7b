//! Finds lines in files by a regular expression.

use std::io;
use std::path::Path;

use async_trait::async_trait;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::disk::{Wanted, away};
use crate::builtin::fence::Fence;
use crate::builtin::first::First;
use crate::builtin::matching::{Line, Look, Matches, Searching};
use crate::builtin::walk::{self, Base, Filter, Found, Walk, Walked};
use crate::builtin::{direct, listing, target};
use crate::call::Outline;
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::place::Place;
use crate::policy::{Mode, Rights, zone};
use crate::text::{Cut, counted};
use crate::tool::{Declaration, Prepared, Tool};

/// The most lines of context on each side: they are held in memory.
const CONTEXT: i64 = 1000;

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// The regular expression (ripgrep's syntax); escape `( ) [ ] { } . * + ? ^ $ | \` to mean the characters.
    pattern: String,
    /// The directory or file to search; the working directory if left out.
    #[serde(default)]
    path: String,
    /// Search only files that this matches, as in Glob: `*.rs`, `src/**`, `!*.md`.
    #[serde(default)]
    glob: String,
    /// How many lines to show before and after each match.
    #[serde(default)]
    context: i64,
}

/// Finds lines in files, the same as `rg -n --heading -C CONTEXT -g GLOB -- PATTERN PATH`.
#[derive(Debug)]
pub struct Grep {
    cut: Cut,
}

impl Grep {
    /// Shows as many lines as `cut` has room for.
    pub fn new(cut: Cut) -> Self {
        Self { cut }
    }
}

/// What is looked for, and where.
pub struct Work {
    look: Look,
    base: Base,
    found: Found,
    filter: Filter,
}

#[async_trait]
impl Tool for Grep {
    type Input = Input;
    type Work = Work;

    fn declaration(&self) -> Declaration {
        Declaration::of::<Input>("Grep", include_str!("../toolset/full/grep.md").trim_end())
    }

    fn outline(&self, input: &Input, cx: &ToolContext) -> Outline {
        let needs = zone::needs_for(listing::place_name(&input.path), Rights::READ, &cx.place);
        walk::outline(&input.pattern, &input.path, needs, &cx.place)
    }

    async fn prepare(&self, input: Input, cx: &ToolContext) -> Result<Prepared<Work>, ToolError> {
        let look =
            Look { matcher: matcher(&input.pattern)?, context: context(input.context)?, room: self.cut.enough() };
        let base = Base::of(&input.path, &cx.place);
        let filter = Filter::of(&input.glob, &base, &cx.place)?;
        let found = base.look("path not found", cx).await?;
        Ok(Prepared::new(Work { look, base, found, filter }))
    }

    async fn run(&self, work: Work, permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (cut, mode, place) = (self.cut, permit.mode(), cx.place.clone());
        let name = work.base.name().to_owned();
        let search = away(move |wanted| work.search(mode, &place, wanted).map(|found| found.told(cut)));
        let told = walk::unless_cancelled(search, cx).await;
        told.map(ToolOutput::ok).map_err(|e| target::cannot("search", &name, e))
    }
}

fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::new("no pattern provided"));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).line_terminator(Some(b'\n')).ban_byte(Some(0));
    builder.build(pattern).map_err(|e| {
        let advice = if matches!(e.kind(), grep_regex::ErrorKind::NotAllowed(_)) {
            "Lines are searched one by one: search for what stands on one line, and set context to see its neighbours."
        } else {
            r"Escape characters that mean themselves with \, as in \( or \[."
        };
        ToolError::new(format!("bad pattern: {}\n{advice}", reason(pattern, &e))).because(e)
    })
}

/// What is wrong with it, and where. The matcher's own error is about a pattern that it has put in brackets.
fn reason(pattern: &str, error: &grep_regex::Error) -> String {
    match regex_syntax::Parser::new().parse(pattern) {
        Err(wrong) => wrong.to_string(),
        Ok(_) => error.to_string(),
    }
}

fn context(lines: i64) -> Result<usize, ToolError> {
    let fits = usize::try_from(lines).ok().filter(|_| lines <= CONTEXT);
    fits.ok_or_else(|| ToolError::new(format!("context is {lines}; it is a number of lines from 0 to {CONTEXT}")))
}

/// What was found.
struct Report {
    base: Base,
    /// The files come from a directory: each has its name above its lines.
    named: bool,
    /// A glob let nothing through.
    nothing_searched: bool,
    tally: Tally,
}

/// What one thread found, and in the end all of them.
struct Tally {
    first: First<Matches>,
    matches: u64,
    files: usize,
    secret: usize,
    overlong: usize,
    unreadable: usize,
}

impl Tally {
    fn new(room: usize) -> Self {
        Self { first: First::new(room), matches: 0, files: 0, secret: 0, overlong: 0, unreadable: 0 }
    }

    /// Takes what a file has; its lines only where they are `wanted`.
    fn add(&mut self, below: &Path, (found, ended): (Matches, io::Result<()>), wanted: bool) {
        match ended {
            Ok(()) => {}
            // The searcher's own error: its memory is limited.
            Err(e) if e.kind() == io::ErrorKind::Other => self.overlong += 1,
            Err(_) => self.unreadable += 1,
        }
        if found.count == 0 {
            return;
        }
        self.matches += found.count;
        self.files += 1;
        if wanted {
            let bytes = found.bytes() + below.as_os_str().len() + 2;
            self.first.add(below.to_owned(), bytes, found);
        }
    }

    fn merge(&mut self, other: Self) {
        self.first.merge(other.first);
        self.matches += other.matches;
        self.files += other.files;
        self.secret += other.secret;
        self.overlong += other.overlong;
        self.unreadable += other.unreadable;
    }
}

/// What one thread does.
struct Worker<'a> {
    searching: Searching<'a>,
    fence: Fence<'a>,
    tally: Tally,
}

impl Worker<'_> {
    fn see(&mut self, base: &Base, below: &Path) {
        let path = base.real(below);
        if !self.fence.lets_through(&path) {
            self.tally.secret += 1;
            return;
        }
        let wanted = self.tally.first.wants(below);
        // It was just seen as a file. If it is something else by now, it is not followed or waited for.
        match direct::open(&path) {
            Ok(file) => self.tally.add(below, self.searching.of(file, wanted), wanted),
            Err(_) => self.tally.unreadable += 1,
        }
    }
}

impl Work {
    fn search(self, mode: Mode, place: &Place, wanted: &Wanted) -> io::Result<Report> {
        let Self { look, base, found, filter } = self;
        match found {
            Found::File(opened) => {
                let mut tally = Tally::new(look.room);
                tally.add(Path::new(""), Searching::named(&look, wanted).of(opened.reader, true), true);
                wanted.check().map(|()| Report { base, named: false, nothing_searched: false, tally })
            }
            Found::Directory => {
                let walk = Walk { base: &base, filter: &filter, place, wanted };
                let Walked { workers, files, unreadable } = below(&walk, &look, mode)?;
                let mut tally = Tally { unreadable, ..Tally::new(look.room) };
                workers.into_iter().for_each(|worker| tally.merge(worker.tally));
                Ok(Report { base, named: true, nothing_searched: files == 0 && !filter.is_empty(), tally })
            }
        }
    }
}

/// Searches the files below a directory.
fn below<'a>(walk: &'a Walk<'_>, look: &'a Look, mode: Mode) -> io::Result<Walked<Worker<'a>>> {
    let new = || Worker {
        searching: Searching::found(look, walk.wanted),
        fence: Fence::new(mode, walk.place),
        tally: Tally::new(look.room),
    };
    walk.files(new, |worker, path| worker.see(walk.base, path.strip_prefix(&walk.base.path).unwrap_or(path)))
}

impl Report {
    /// The answer: the lines of the first files, as many as fit, and what is to be told besides.
    fn told(self, cut: Cut) -> String {
        let Self { base, named, nothing_searched, tally } = self;
        let Tally { first, matches, files, secret, overlong, unreadable } = tally;
        let mut rows = Rows::default();
        for (below, found) in first.into_sorted() {
            rows.add(named.then(|| base.shown(&below)), found);
        }
        listing::fitted(cut, &rows.texts, |shown| {
            let (matches, files) = (matches - rows.matches[shown], files - rows.files[shown]);
            let more = (matches > 0).then(|| {
                let matches = format!("{matches} more match{}", if matches == 1 { "" } else { "es" });
                let files = counted(files, "file");
                format!("[... {matches} in {files} not shown; narrow the pattern, or set path or glob ...]")
            });
            let secret = (secret > 0).then(|| {
                let files = counted(secret, "file");
                format!(
                    "[... skipped {files} that may hold keys or secrets; set path to one of them to ask for it ...]"
                )
            });
            let overlong = (overlong > 0).then(|| {
                format!("[... {} searched only up to a line longer than 32 MiB ...]", counted(overlong, "file"))
            });
            let nothing = nothing_searched
                .then(|| "[no file was searched: none that ignore rules leave matches the glob]".into());
            [more, secret, overlong, nothing, listing::unreadable(unreadable)].into_iter().flatten().collect()
        })
    }
}

/// What is shown, row by row: a row is not divided. After each number of rows: how many matches, and how many files
/// with all their matches, are shown.
struct Rows {
    texts: Vec<String>,
    matches: Vec<u64>,
    files: Vec<usize>,
}

impl Default for Rows {
    fn default() -> Self {
        Self { texts: Vec::new(), matches: vec![0], files: vec![0] }
    }
}

impl Rows {
    /// Adds a file with its name, where it is to be shown.
    fn add(&mut self, name: Option<String>, found: Matches) {
        let count = found.count;
        let note = found.binary.map(|at| Line { text: binary(at, name.as_deref()), matched: found.hidden });
        let gap = if self.texts.is_empty() { "" } else { "\n" };
        let mut heading = name.map(|name| format!("{gap}{name}\n")).unwrap_or_default();
        let mut shown = 0;
        for line in found.lines.into_iter().chain(note) {
            shown += u64::from(line.matched);
            let done = usize::from(line.matched && shown == count);
            self.push(std::mem::take(&mut heading) + &line.text, line.matched, done);
        }
    }

    fn push(&mut self, text: String, matched: bool, done: usize) {
        let last = |counts: &[u64]| counts.last().copied().unwrap_or(0);
        self.matches.push(last(&self.matches) + u64::from(matched));
        self.files.push(self.files.last().copied().unwrap_or(0) + done);
        self.texts.push(text);
    }
}

/// The line that tells of a binary file with its first zero byte there, as `rg` words it. One that was not named was
/// searched no further.
fn binary(at: u64, name: Option<&str>) -> String {
    let found = format!(r#"(found "\0" byte around offset {at})"#);
    match name {
        Some(name) => format!("{name}: WARNING: stopped searching binary file after match {found}"),
        None => format!("binary file matches {found}"),
    }
}
