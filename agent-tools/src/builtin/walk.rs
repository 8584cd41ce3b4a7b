//! Goes through the files below a directory as `rg` does when it is run in the working directory, on several threads.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};

use crate::builtin::disk::{Wanted, away};
use crate::builtin::{direct, listing, target};
use crate::call::{CallKind, GrantKey, Needs, Outline};
use crate::context::{Opened, ToolContext};
use crate::error::ToolError;
use crate::place::Place;
use crate::policy::{Mode, Rights, zone};

/// The most threads: more only fight for the disk.
const THREADS: usize = 8;

/// Where a search starts, and how that is written in results.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// The absolute path.
    pub(super) path: PathBuf,
    /// The same with its links followed: what is found is opened below this, and no link is followed then.
    real: PathBuf,
    /// What reading there needs.
    needs: Mode,
    /// In front of what is found: as the model wrote it, nothing for the working directory.
    shown: PathBuf,
    /// The model's own words, for messages.
    pub(super) given: String,
}

impl Base {
    /// The place that a `path` argument means; an empty one is the working directory.
    pub(super) fn of(given: &str, place: &Place) -> Self {
        let absolute = place.absolute(given);
        let from_home = given == "~" || given.starts_with("~/");
        let shown = if from_home { absolute.clone() } else { given.into() };
        // Without `.` and slashes that are too many: globs are matched against what follows the working directory.
        let located = zone::locate(given, place);
        let needs = located.zone.map_or(Mode::NONE, |zone| Mode::NONE.with(zone, Rights::READ));
        Self { path: absolute.components().collect(), real: located.resolved, needs, shown, given: given.into() }
    }

    /// Where a file below it is opened.
    pub(super) fn real(&self, below: &Path) -> PathBuf {
        self.real.join(below)
    }

    /// How a path below it is written: as text on one line.
    pub(super) fn shown(&self, below: &Path) -> String {
        let path = if below.as_os_str().is_empty() { self.shown.clone() } else { self.shown.join(below) };
        listing::on_one_line(&path.to_string_lossy())
    }

    /// The path argument for a message: never empty.
    pub(super) fn name(&self) -> &str {
        listing::place_name(&self.given)
    }

    /// Looks what lies there.
    ///
    /// # Errors
    /// `missing` where there is nothing; what cannot be read; its links lead by now where the call may not go.
    pub(super) async fn look(&self, missing: &str, cx: &ToolContext) -> Result<Found, ToolError> {
        // Nobody moves the working directory itself.
        if !self.given.is_empty() && !target::may(self.needs, cx) {
            return Err(target::changed(&self.given));
        }
        let path = self.real.clone();
        let look = move |_: &Wanted| direct::look(&path)?.metadata().map(|m| m.is_dir());
        let is_directory = away(look).await.and_then(|found| found);
        if matches!(is_directory, Ok(true)) {
            return Ok(Found::Directory);
        }
        match cx.files.open(&self.real).await {
            Ok(opened) => Ok(Found::File(opened)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let advice = "Look for it with Glob, or leave `path` out to search the working directory.";
                Err(target::missing(format!("{missing}: {}. {advice}", self.name()), e))
            }
            Err(e) => Err(target::cannot("search", self.name(), e)),
        }
    }
}

/// What lies where a search starts.
pub(super) enum Found {
    File(Opened),
    Directory,
}

/// The outline of a search: it reads.
pub(super) fn outline(title: &str, path: &str, mut needs: Needs, place: &Place) -> Outline {
    needs.grants.push(GrantKey::new(format!("searching {}", listing::place_name(path)), needs.mode));
    Outline::new(CallKind::Search, title).at(place.absolute(path), None).needing(needs)
}

/// Waits for work that was sent away, but no longer than the call goes on: the work sees that nobody waits any more.
///
/// # Errors
/// Those of the work; [`io::ErrorKind::Interrupted`] where the call is to stop.
pub(super) async fn unless_cancelled<T>(
    work: impl Future<Output = io::Result<io::Result<T>>>,
    cx: &ToolContext,
) -> io::Result<T> {
    tokio::select! {
        biased;
        () = cx.host.cancelled() => Err(io::ErrorKind::Interrupted.into()),
        found = work => found.and_then(|found| found),
    }
}

/// Which files a glob lets through.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// As `rg -g` reads it: from the working directory.
    plain: Override,
    /// From the place where the search starts, where that is something else.
    from_base: Option<Override>,
    /// It asks for what lies in `.git`.
    in_git: bool,
}

impl Filter {
    /// The filter that a glob of the model means; an empty one lets everything through.
    ///
    /// # Errors
    /// The glob is none.
    pub(super) fn of(glob: &str, base: &Base, place: &Place) -> Result<Self, ToolError> {
        let plain = compiled(&plainly(glob), &place.cwd).map_err(|e| bad_glob(glob, e))?;
        let from_base = from_base(glob, base, place).and_then(|glob| compiled(&glob, &base.path).ok());
        let in_git = glob.split(['/', ',', '{', '}']).any(|name| name == ".git");
        Ok(Self { plain, from_base, in_git })
    }

    /// Whether it lets everything through.
    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty()
    }
}

fn compiled(glob: &str, root: &Path) -> Result<Override, ignore::Error> {
    let mut globs = OverrideBuilder::new(root);
    if !glob.is_empty() {
        globs.add(glob)?;
    }
    globs.build()
}

fn bad_glob(glob: &str, error: ignore::Error) -> ToolError {
    let reason = match &error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    };
    let advice = r"Write \[ \{ \* \? for these characters themselves.";
    ToolError::new(format!("bad glob \"{glob}\": {reason}. {advice}")).because(error)
}

/// A glob without what would make it mean something else than it says: `./` in front matches nothing, `#` begins a
/// comment.
fn plainly(glob: &str) -> String {
    match (glob.strip_prefix("./"), glob.starts_with('#')) {
        (Some(below), _) => format!("/{}", below.trim_start_matches('/')),
        (None, true) => format!("\\{glob}"),
        (None, false) => glob.into(),
    }
}

/// The glob read from where the search starts: for one with a slash, which `rg` reads from the working directory, and
/// for one that is the absolute path.
fn from_base(glob: &str, base: &Base, place: &Place) -> Option<String> {
    let absolute = base.path.to_str().and_then(|path| glob.strip_prefix(path)).filter(|rest| rest.starts_with('/'));
    if absolute.is_some() {
        return absolute.map(str::to_owned);
    }
    let anchored = glob.trim_end_matches('/').contains('/') && !glob.starts_with('!');
    (anchored && base.path != place.cwd).then(|| format!("/{}", plainly(glob).trim_start_matches('/')))
}

/// A walk below a directory.
pub(super) struct Walk<'a> {
    pub(super) base: &'a Base,
    pub(super) filter: &'a Filter,
    pub(super) place: &'a Place,
    pub(super) wanted: &'a Wanted,
}

/// What a walk came to.
pub(super) struct Walked<W> {
    /// The workers, one a thread.
    pub(super) workers: Vec<W>,
    /// How many files were seen.
    pub(super) files: usize,
    /// How many files and directories could not be looked at.
    pub(super) unreadable: usize,
}

impl Walk<'_> {
    /// Shows a worker each file that the filter lets through, in no order, by its absolute path. There is one worker a
    /// thread. Where the filter as `rg` reads it finds nothing, it is read from the base.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] once nobody waits for it any more.
    pub(super) fn files<W: Send>(
        &self,
        worker: impl Fn() -> W,
        see: impl Fn(&mut W, &Path) + Sync,
    ) -> io::Result<Walked<W>> {
        let walked = self.through(&self.filter.plain, &worker, &see);
        let walked = match &self.filter.from_base {
            Some(from_base) if walked.files == 0 => self.through(from_base, &worker, &see),
            Some(_) | None => walked,
        };
        self.wanted.check().map(|()| walked)
    }

    fn through<W: Send>(
        &self,
        globs: &Override,
        worker: &impl Fn() -> W,
        see: &(impl Fn(&mut W, &Path) + Sync),
    ) -> Walked<W> {
        // A lock, for each thread leaves here what it found when it is done.
        let all = Mutex::new(Walked { workers: Vec::new(), files: 0, unreadable: 0 });
        let mut crew = Crew { worker, see, wanted: self.wanted, all: &all };
        self.builder(globs).build_parallel().visit(&mut crew);
        all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn builder(&self, globs: &Override) -> WalkBuilder {
        let mut builder = WalkBuilder::new(&self.base.path);
        builder
            .current_dir(&self.place.cwd)
            .overrides(globs.clone())
            .add_custom_ignore_filename(".rgignore")
            // It would read the process's environment.
            .git_global(false)
            .threads(thread::available_parallelism().map_or(2, usize::from).clamp(2, THREADS));
        if !self.filter.in_git {
            builder.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
        }
        builder
    }
}

/// Makes a visitor for each thread.
struct Crew<'s, N, S, W> {
    worker: &'s N,
    see: &'s S,
    wanted: &'s Wanted,
    all: &'s Mutex<Walked<W>>,
}

impl<'s, W, N, S> ParallelVisitorBuilder<'s> for Crew<'s, N, S, W>
where
    W: Send,
    N: Fn() -> W,
    S: Fn(&mut W, &Path) + Sync,
{
    fn build(&mut self) -> Box<dyn ParallelVisitor + 's> {
        let own = Walked { workers: vec![(self.worker)()], files: 0, unreadable: 0 };
        Box::new(Visitor { own, see: self.see, wanted: self.wanted, all: self.all })
    }
}

/// What one thread does.
struct Visitor<'s, S, W> {
    own: Walked<W>,
    see: &'s S,
    wanted: &'s Wanted,
    all: &'s Mutex<Walked<W>>,
}

impl<W: Send, S: Fn(&mut W, &Path) + Sync> ParallelVisitor for Visitor<'_, S, W> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.wanted.check().is_err() {
            return WalkState::Quit;
        }
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                self.own.files += 1;
                self.own.workers.iter_mut().for_each(|worker| (self.see)(worker, entry.path()));
            }
            Ok(_) => {}
            Err(_) => self.own.unreadable += 1,
        }
        WalkState::Continue
    }
}

impl<S, W> Drop for Visitor<'_, S, W> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.workers.append(&mut self.own.workers);
        all.files += self.own.files;
        all.unreadable += self.own.unreadable;
    }
}
