//! The tools of an agent, and the one way through which every call goes: open, judge, prepare, ask, run.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::call::{Call, CallKind, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::host::Answer;
use crate::lenient;
use crate::output::{Change, Status, ToolOutput};
use crate::policy::{Unanswered, Verdict, rejected};
use crate::tool::{Declaration, Prepared, Tool};

/// The tools that an agent has, in the order of their declaration. Cheap to clone.
#[derive(Clone)]
pub struct Tools {
    list: Arc<Vec<Arc<dyn AnyTool>>>,
    wording: fn(&ToolError) -> String,
    masked: Option<Arc<[String]>>,
}

impl Default for Tools {
    fn default() -> Self {
        Self::wording(ToString::to_string)
    }
}

impl Tools {
    /// No tools yet; failures are worded by this function.
    pub fn wording(failure: fn(&ToolError) -> String) -> Self {
        Self { list: Arc::default(), wording: failure, masked: None }
    }

    /// Masks keys in results: those of known kinds, and the agent's `own`.
    #[must_use]
    pub fn masking(mut self, own: &[String]) -> Self {
        self.masked = Some(own.iter().filter(|key| !key.is_empty()).cloned().collect());
        self
    }

    /// Adds a tool; one of the same name is replaced.
    #[must_use]
    pub fn with(self, tool: impl Tool) -> Self {
        let added: Arc<dyn AnyTool> = Arc::new(Registered { declaration: tool.declaration(), tool });
        let mut all = self.without(&added.declaration().name);
        Arc::make_mut(&mut all.list).push(added);
        all
    }

    /// Takes a tool out.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        Arc::make_mut(&mut self.list).retain(|t| t.declaration().name != name);
        self
    }

    /// What the model is told of them, in a stable order.
    pub fn declarations(&self) -> impl ExactSizeIterator<Item = &Declaration> {
        self.list.iter().map(|t| t.declaration())
    }

    /// Finds the tool of a call, mends and decodes the arguments, and outlines it.
    ///
    /// # Errors
    /// The answer to a call that cannot be opened: an unknown tool, arguments that are no JSON or of the wrong type.
    pub fn open<'t>(&'t self, call: &'t Call, cx: &ToolContext) -> Result<Opened<'t>, Box<ToolOutput>> {
        let opened = self.find(call).and_then(|tool| tool.open(call, cx));
        let (outline, arguments, ready) = opened.map_err(|e| Box::new(self.failed(&e)))?;
        Ok(Opened { call, outline, arguments, ready, wording: self.wording, masked: self.masked.clone() })
    }

    fn find(&self, call: &Call) -> Result<&dyn AnyTool, ToolError> {
        let known = self.list.iter().find(|t| t.declaration().name == call.name);
        known.map(|t| &**t).ok_or_else(|| {
            let names: Vec<&str> = self.declarations().map(|d| d.name.as_str()).collect();
            ToolError::new(format!("Unknown tool \"{}\". Available tools: {}", call.name, names.join(", ")))
        })
    }

    fn failed(&self, error: &ToolError) -> ToolOutput {
        ToolOutput::new(Status::Failed, (self.wording)(error))
    }
}

/// Opens a call and finishes it. Never fails: a failure is an answer.
pub async fn dispatch(tools: &Tools, call: &Call, cx: &ToolContext) -> ToolOutput {
    match tools.open(call, cx) {
        Err(answer) => *answer,
        Ok(opened) => {
            cx.host.called(call, opened.outline()).await;
            opened.finish(cx).await
        }
    }
}

/// A call that was found, decoded and outlined. Nothing has happened yet.
pub struct Opened<'t> {
    call: &'t Call,
    outline: Outline,
    arguments: String,
    ready: Box<dyn Decoded + 't>,
    wording: fn(&ToolError) -> String,
    masked: Option<Arc<[String]>>,
}

impl Opened<'_> {
    /// What it is about and needs.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// The arguments as they were understood: mended, keys sorted, defaults filled in. Two calls that mean the same
    /// have the same.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Whether it may run beside others: it reads and does nothing else.
    pub fn only_reads(&self) -> bool {
        let needs = &self.outline.needs;
        let changes = matches!(self.outline.kind, CallKind::Write | CallKind::Edit | CallKind::Todo | CallKind::Plan);
        needs.mode.only_reads() && needs.unsure.is_none() && !changes
    }

    /// Judges, prepares, asks where that is to be done, and runs. Keys in the result are masked, where that is wanted.
    pub async fn finish(self, cx: &ToolContext) -> ToolOutput {
        let masked = self.masked.clone();
        let mut output = self.carry_out(cx).await;
        if let Some(own) = masked {
            output.mask(&own);
        }
        output
    }

    async fn carry_out(self, cx: &ToolContext) -> ToolOutput {
        let Self { call, outline, ready, wording, .. } = self;
        let failed = |error: &ToolError| ToolOutput::new(Status::Failed, wording(error));
        let gate = Question { call, outline: &outline, cx };
        let verdict = cx.policy.judge(&outline);
        let mut asked = false;
        match &verdict {
            Verdict::Deny(text) => return ToolOutput::new(Status::Blocked, text),
            Verdict::Ask { why, unanswered } if !gate.may_look() => {
                if let Err(refusal) = gate.ask(why, unanswered, None).await {
                    return *refusal;
                }
                asked = true;
            }
            Verdict::Ask { .. } | Verdict::Allow => {}
        }
        let within = ToolContext { permitted: Some(cx.policy.permits(&outline)), ..cx.clone() };
        let ready = match ready.prepare(&within).await {
            Ok(ready) => ready,
            Err(error) => return failed(&error),
        };
        if let Verdict::Ask { why, unanswered } = &verdict
            && !asked
            && !ready.harmless()
            && let Err(refusal) = gate.ask(why, unanswered, ready.change()).await
        {
            return *refusal;
        }
        if let Err(error) = cx.host.started(call, ready.change()).await {
            return failed(&error);
        }
        let permit = Permit::new(call, cx.policy.permits(&outline));
        ready.run(&permit, cx).await.unwrap_or_else(|error| failed(&error))
    }
}

/// A question about one call.
struct Question<'a> {
    call: &'a Call,
    outline: &'a Outline,
    cx: &'a ToolContext,
}

impl Question<'_> {
    /// Looking is reading: what the ceiling does not let the model read is not looked at before a person said yes.
    fn may_look(&self) -> bool {
        self.cx.policy.ceiling().covers(self.outline.needs.mode.reading())
    }

    async fn ask(&self, why: &str, unanswered: &Unanswered, change: Option<&Change>) -> Result<(), Box<ToolOutput>> {
        if self.cx.host.granted(self.call, self.outline).await {
            return Ok(());
        }
        let rejection = || Box::new(ToolOutput::new(Status::Rejected, rejected(self.outline.kind)));
        if self.cx.host.attended() {
            return match self.cx.host.ask(self.call, self.outline, why, change).await {
                Answer::Once | Answer::Session => Ok(()),
                Answer::Reject => Err(rejection()),
            };
        }
        match unanswered {
            Unanswered::Allow => Ok(()),
            Unanswered::Reject => Err(rejection()),
            Unanswered::Block(text) => Err(Box::new(ToolOutput::new(Status::Blocked, text))),
        }
    }
}

type Pending<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;
type Found<'t> = (Outline, String, Box<dyn Decoded + 't>);

/// A tool without its types.
trait AnyTool: Send + Sync {
    fn declaration(&self) -> &Declaration;
    fn open<'t>(&'t self, call: &Call, cx: &ToolContext) -> Result<Found<'t>, ToolError>;
}

struct Registered<T> {
    declaration: Declaration,
    tool: T,
}

impl<T: Tool> AnyTool for Registered<T> {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn open<'t>(&'t self, call: &Call, cx: &ToolContext) -> Result<Found<'t>, ToolError> {
        let Declaration { name, schema, .. } = &self.declaration;
        let value = lenient::mend(name, schema, &call.arguments)?;
        let input = T::Input::deserialize_mended(name, &value)?;
        let outline = self.tool.outline(&input, cx);
        Ok((outline, value.to_string(), Box::new(Typed { tool: &self.tool, input })))
    }
}

/// Decoding, worded for the model.
trait DeserializeMended: Sized {
    fn deserialize_mended(tool: &str, value: &Value) -> Result<Self, ToolError>;
}

impl<I: serde::de::DeserializeOwned> DeserializeMended for I {
    fn deserialize_mended(tool: &str, value: &Value) -> Result<Self, ToolError> {
        serde_json::from_value(value.clone())
            .map_err(|e| ToolError::new(format!("invalid arguments for {tool}: {e}")).because(e))
    }
}

/// A decoded call without its types.
trait Decoded: Send + Sync {
    fn prepare<'c>(self: Box<Self>, cx: &'c ToolContext) -> Pending<'c, Result<Box<dyn Ready + 'c>, ToolError>>
    where
        Self: 'c;
}

struct Typed<'t, T: Tool> {
    tool: &'t T,
    input: T::Input,
}

impl<T: Tool> Decoded for Typed<'_, T> {
    fn prepare<'c>(self: Box<Self>, cx: &'c ToolContext) -> Pending<'c, Result<Box<dyn Ready + 'c>, ToolError>>
    where
        Self: 'c,
    {
        Box::pin(async move {
            let prepared = self.tool.prepare(self.input, cx).await?;
            Ok(Box::new(TypedReady { tool: self.tool, prepared }) as Box<dyn Ready + 'c>)
        })
    }
}

/// Prepared work without its type.
trait Ready: Send {
    fn change(&self) -> Option<&Change>;
    fn harmless(&self) -> bool;
    fn run<'c>(
        self: Box<Self>,
        permit: &'c Permit<'c>,
        cx: &'c ToolContext,
    ) -> Pending<'c, Result<ToolOutput, ToolError>>
    where
        Self: 'c;
}

struct TypedReady<'t, T: Tool> {
    tool: &'t T,
    prepared: Prepared<T::Work>,
}

impl<T: Tool> Ready for TypedReady<'_, T> {
    fn change(&self) -> Option<&Change> {
        self.prepared.change.as_ref()
    }

    fn harmless(&self) -> bool {
        self.prepared.harmless
    }

    fn run<'c>(
        self: Box<Self>,
        permit: &'c Permit<'c>,
        cx: &'c ToolContext,
    ) -> Pending<'c, Result<ToolOutput, ToolError>>
    where
        Self: 'c,
    {
        Box::pin(async move { self.tool.run(self.prepared.work, permit, cx).await })
    }
}
