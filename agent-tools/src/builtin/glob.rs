//! Finds files by their names.

use std::io;
use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::disk::{Wanted, away};
use crate::builtin::first::First;
use crate::builtin::walk::{self, Base, Filter, Found, Walk, Walked};
use crate::builtin::{direct, listing, target};
use crate::call::{Needs, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::place::Place;
use crate::policy::{Rights, Zone, zone};
use crate::text::{Cut, counted};
use crate::tool::{Declaration, Prepared, Tool};

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// The pattern, as in a line of .gitignore: `*.rs` at any depth, `src/**/*.rs`, `*.{ts,tsx}`; `!` in front turns it round.
    pattern: String,
    /// The directory to search; the working directory if left out.
    #[serde(default)]
    path: String,
}

/// Finds files by their names, the same as `rg --files -g PATTERN PATH`.
#[derive(Debug)]
pub struct Glob {
    cut: Cut,
}

impl Glob {
    /// Lists as many files as `cut` has room for.
    pub fn new(cut: Cut) -> Self {
        Self { cut }
    }
}

/// A directory that is there, and a pattern that is one.
pub struct Work {
    pattern: String,
    base: Base,
    filter: Filter,
}

#[async_trait]
impl Tool for Glob {
    type Input = Input;
    type Work = Work;

    fn declaration(&self) -> Declaration {
        Declaration::of::<Input>("Glob", include_str!("../toolset/full/glob.md").trim_end())
    }

    fn outline(&self, input: &Input, cx: &ToolContext) -> Outline {
        let needs = needs(&input.pattern, &input.path, &cx.place);
        walk::outline(&input.pattern, &input.path, needs, &cx.place)
    }

    async fn prepare(&self, input: Input, cx: &ToolContext) -> Result<Prepared<Work>, ToolError> {
        if input.pattern.trim().is_empty() {
            return Err(ToolError::new("no pattern provided"));
        }
        let base = Base::of(&input.path, &cx.place);
        let filter = Filter::of(&input.pattern, &base, &cx.place)?;
        match base.look("directory not found", cx).await? {
            Found::Directory => Ok(Prepared::new(Work { pattern: input.pattern, base, filter })),
            Found::File(_) => Err(ToolError::new(format!(
                "directory not found: {}: it is a file. Use Read to see it, or Grep to search it.",
                base.name()
            ))),
        }
    }

    async fn run(&self, work: Work, _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (cut, place) = (self.cut, cx.place.clone());
        let name = work.base.name().to_owned();
        let list = away(move |wanted| work.list(cut, &place, wanted));
        let found = walk::unless_cancelled(list, cx).await;
        found.map(ToolOutput::ok).map_err(|e| target::cannot("search", &name, e))
    }
}

/// A pattern that leads anywhere is told by no path: closed. Below a path, the directory that it begins with counts, too.
fn needs(pattern: &str, path: &str, place: &Place) -> Needs {
    if path.is_empty() && (pattern.starts_with('/') || pattern.contains("..")) {
        let mut needs = Needs::default();
        needs.find(pattern, Some(Zone::System), Rights::READ);
        return needs;
    }
    let mut needs = zone::needs_for(listing::place_name(path), Rights::READ, place);
    let directory = fixed_directory(pattern);
    if !path.is_empty() && !directory.is_empty() {
        let start = Path::new(path).join(directory);
        let further = zone::needs_for(&start.to_string_lossy(), Rights::READ, place);
        further.findings.into_iter().for_each(|f| needs.find(f.what, f.zone, f.rights));
    }
    needs
}

/// The directory that the pattern begins with.
fn fixed_directory(pattern: &str) -> &str {
    let pattern = pattern.trim_start_matches('!');
    let literal = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    pattern[..literal].rfind('/').map_or("", |end| &pattern[..=end])
}

impl Work {
    fn list(&self, cut: Cut, place: &Place, wanted: &Wanted) -> io::Result<String> {
        let walk = Walk { base: &self.base, filter: &self.filter, place, wanted };
        let new = || First::new(cut.enough());
        let Walked { workers, files, unreadable } = walk.files(new, |first, path| {
            let below = path.strip_prefix(&self.base.path).unwrap_or(path);
            if first.wants(below) {
                first.add(below.to_owned(), below.as_os_str().len() + 1, ());
            }
        })?;
        let mut first = new();
        workers.into_iter().for_each(|one| first.merge(one));
        // The names in a directory that was swapped for a link are not told.
        let there = |below: &Path| direct::look(&self.base.real(below)).is_ok();
        let found = first.into_sorted().filter(|(below, ())| there(below));
        let lines: Vec<String> = found.map(|(below, ())| self.base.shown(&below)).collect();
        let hint = if files == 0 { self.nothing(place) } else { None };
        Ok(listing::fitted(cut, &lines, |shown| {
            let more = (shown < files).then(|| {
                format!("[... {} not shown; narrow the pattern or set path ...]", counted(files - shown, "more file"))
            });
            more.into_iter().chain(hint.clone()).chain(listing::unreadable(unreadable)).collect()
        }))
    }

    /// Why nothing was found, where that would surprise.
    fn nothing(&self, place: &Place) -> Option<String> {
        let pattern = self.pattern.trim_start_matches("./");
        if pattern.starts_with('/') || pattern.split('/').any(|name| name == "..") {
            return Some("[a pattern does not lead out of the directory that is searched; set path]".into());
        }
        let left_out = self.is_there(&self.base.path) || self.is_there(&place.cwd);
        left_out.then(|| {
            format!("[{pattern} exists, but ignore rules or a hidden directory leave it out; use its path with Read or Grep]")
        })
    }

    /// Whether a file of just this name is there. Not through links: what lies beyond them is not what was judged.
    fn is_there(&self, root: &Path) -> bool {
        let path = root.join(self.pattern.trim_start_matches("./"));
        let direct = zone::resolve(root).and_then(|root| Some(root.join(path.strip_prefix(&root).ok()?)));
        direct.is_some() && zone::resolve(&path) == direct && path.is_file()
    }
}
