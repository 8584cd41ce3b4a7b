//! Writes a whole file.

use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::path::PathBuf;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::builtin::disk::{Wanted, away};
use crate::builtin::target::Target;
use crate::builtin::{encoding, target};
use crate::call::{CallKind, Outline};
use crate::context::{Opened, Permit, ToolContext, WriteError};
use crate::diff::Diff;
use crate::error::ToolError;
use crate::output::{Change, Details, ToolOutput};
use crate::text::{Cut, line_count};
use crate::tool::{Declaration, Prepared, Tool};

/// What one toolset calls it.
pub trait Dialect: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The most bytes that may be written.
    const MOST: usize = usize::MAX;
    /// Whether the model reads the diff, after the line that says what was done.
    const TELLS_DIFF: bool;

    /// What the model is told.
    fn declaration() -> Declaration;

    /// The path, as the model wrote it.
    fn path(&self) -> &str;

    /// All that the file is to hold.
    fn content(&self) -> &str;

    /// The line that says that a file was made.
    fn created(path: &str, written: &Written<'_>) -> String;

    /// The line that says that a file was replaced.
    fn replaced(path: &str, written: &Written<'_>) -> String;

    /// The file has this content already.
    fn identical(path: &str, content: &str) -> String;

    /// The content has so many bytes, which is more than [`Self::MOST`].
    fn too_long(bytes: usize) -> String {
        format!("the content has {bytes} bytes; at most {} can be written at once", Self::MOST)
    }
}

/// What was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Written<'a> {
    /// How many bytes the content has.
    pub bytes: usize,
    /// How many lines the content has.
    pub lines: usize,
    /// Against what was there.
    pub diff: &'a Diff,
}

/// Writes a whole file, as dialect `D` has it.
#[derive(Debug)]
pub struct Write<D> {
    cut: Cut,
    dialect: PhantomData<fn() -> D>,
}

impl<D> Write<D> {
    /// Shows of a diff what `cut` leaves.
    pub fn new(cut: Cut) -> Self {
        Self { cut, dialect: PhantomData }
    }
}

#[async_trait]
impl<D: Dialect> Tool for Write<D> {
    type Input = D;
    type Work = Planned;

    fn declaration(&self) -> Declaration {
        D::declaration()
    }

    fn outline(&self, input: &D, cx: &ToolContext) -> Outline {
        target::changes(CallKind::Write, input.path(), &cx.place)
    }

    async fn prepare(&self, input: D, cx: &ToolContext) -> Result<Prepared<Planned>, ToolError> {
        let target = Target::of(input.path(), cx)?;
        if input.content().len() > D::MOST {
            return Err(ToolError::new(D::too_long(input.content().len())));
        }
        let opened = match cx.files.open(&target.real).await {
            Ok(opened) => Some(opened),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(target::cannot("write", input.path(), e)),
        };
        let (written, cut) = (input.path().to_owned(), self.cut);
        let planned = away(move |wanted| plan(&input, target, opened, cut, wanted)).await.and_then(|planned| planned);
        planned.map_err(|e| target::cannot("write", &written, e))
    }

    async fn run(&self, work: Planned, _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        work.carry_out(cx).await
    }
}

fn plan<D: Dialect>(
    input: &D,
    target: Target,
    opened: Option<Opened>,
    cut: Cut,
    wanted: &Wanted,
) -> io::Result<Prepared<Planned>> {
    let content = input.content();
    let before = opened.map(|opened| target::contents(opened, wanted)).transpose()?;
    if before.as_deref() == Some(content.as_bytes()) {
        return Ok(Planned::nothing(D::identical(input.path(), content)));
    }
    let old = before.as_deref().map(encoding::shown);
    let diff = Diff::between(old.as_deref().unwrap_or_default(), content);
    let written = Written { bytes: content.len(), lines: line_count(content), diff: &diff };
    let line = if old.is_none() { D::created } else { D::replaced };
    let answer = line(input.path(), &written);
    let answer = if D::TELLS_DIFF { with_diff(answer, &diff, cut) } else { answer };
    let change = Change::new(target.path, before, old, content);
    Ok(Planned::change(input.path(), target.real, change, content.as_bytes().to_vec(), answer))
}

/// A line and the diff below it. The line is always whole, the diff may be cut.
pub(super) fn with_diff(line: String, diff: &Diff, cut: Cut) -> String {
    if diff.text.is_empty() { line } else { format!("{line}\n{}", cut.told(diff.text.clone())) }
}

/// A change that was worked out and not yet made, or none.
#[derive(Debug)]
pub struct Planned {
    answer: String,
    writing: Option<Writing>,
}

#[derive(Debug)]
struct Writing {
    path: String,
    real: PathBuf,
    change: Change,
    bytes: Vec<u8>,
}

impl Planned {
    /// Nothing is to be written; the answer says why.
    pub(super) fn nothing(answer: String) -> Prepared<Self> {
        Prepared { work: Self { answer, writing: None }, change: None, harmless: true }
    }

    /// These bytes are to be written there; `path` is as the model wrote it.
    pub(super) fn change(path: &str, real: PathBuf, change: Change, bytes: Vec<u8>, answer: String) -> Prepared<Self> {
        let writing = Writing { path: path.to_owned(), real, change: change.clone(), bytes };
        Prepared { work: Self { answer, writing: Some(writing) }, change: Some(change), harmless: false }
    }

    /// Writes what was worked out, if the file is still the one that it was worked out for.
    pub(super) async fn carry_out(self, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let output = ToolOutput::ok(self.answer);
        let Some(Writing { path, real, change, bytes }) = self.writing else {
            return Ok(output);
        };
        match cx.files.replace(&real, change.before.as_deref(), &bytes).await {
            Ok(()) => Ok(output.with(Details::Change(change))),
            Err(WriteError::Io(e)) => Err(target::cannot("write", &path, e)),
            Err(e @ WriteError::Changed) => Err(ToolError::new(format!(
                "{path} was changed by someone else meanwhile; nothing was written. Read it again, then repeat the change."
            ))
            .because(e)),
        }
    }
}
