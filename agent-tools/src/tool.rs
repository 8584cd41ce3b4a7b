//! The trait that a tool implements, and a short way for small ones.

use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::{CallKind, Needs, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::{Change, ToolOutput};
use crate::policy::Mode;

/// What a tool is called, says of itself, and takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments: an object.
    pub schema: Value,
}

impl Declaration {
    /// A declaration whose schema is derived from the type of the arguments.
    pub fn of<I: JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), schema: schema::<I>() }
    }
}

/// The schema of a type without what is noise for a model: titles, formats, the schema's own address, and null as
/// another word for "left out".
fn schema<I: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let quiet = |schema: &mut Schema| {
        schema.remove("title");
        schema.remove("format");
        without_null(schema);
    };
    let mut schema = settings.with_transform(RecursiveTransform(quiet)).into_generator().into_root_schema_for::<I>();
    schema.remove("description");
    schema.to_value()
}

fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// A tool. Three steps, so that people are asked about what will happen and about nothing that would fail:
/// `outline` reads the arguments, `prepare` reads the world, `run` changes it.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The arguments as the model writes them.
    type Input: DeserializeOwned + Send + Sync + 'static;
    /// Worked out by `prepare`, carried out by `run`: what was shown is what is done.
    type Work: Send + 'static;

    /// What it is called and takes. Read once, when it is added to [`crate::Tools`].
    fn declaration(&self) -> Declaration;

    /// What the call is about and what it needs. May resolve paths, reads no contents.
    fn outline(&self, input: &Self::Input, cx: &ToolContext) -> Outline;

    /// Looks at the world and works out what is to be done.
    ///
    /// # Errors
    /// A call that would fail fails here: nobody is asked about it.
    async fn prepare(&self, input: Self::Input, cx: &ToolContext) -> Result<Prepared<Self::Work>, ToolError>;

    /// Does it, as far as the permit goes.
    ///
    /// # Errors
    /// The failure as the model reads it.
    async fn run(&self, work: Self::Work, permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError>;
}

/// Work that is ready to be carried out.
#[derive(Debug)]
pub struct Prepared<W> {
    /// What `run` gets.
    pub work: W,
    /// What would be written, for the person who is asked.
    pub change: Option<Change>,
    /// Nothing would change (a dry run, an identical write): nobody is asked. The rights to read are still needed.
    pub harmless: bool,
}

impl<W> Prepared<W> {
    /// Work that shows nothing.
    pub fn new(work: W) -> Self {
        Self { work, change: None, harmless: false }
    }
}

/// A small tool from a closure: `simple("name", "what it does", needs, |input, cx| async { … })`.
pub fn simple<I, F, Fut>(name: &str, description: &str, needs: Mode, run: F) -> Simple<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(I, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    Simple { declaration: Declaration::of::<I>(name, description), needs, run, input: PhantomData }
}

/// See [`simple`].
pub struct Simple<I, F> {
    declaration: Declaration,
    needs: Mode,
    run: F,
    input: PhantomData<fn() -> I>,
}

#[async_trait]
impl<I, F, Fut> Tool for Simple<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(I, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    type Input = I;
    type Work = I;

    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    fn outline(&self, _input: &I, _cx: &ToolContext) -> Outline {
        Outline::new(CallKind::Other, self.declaration.name.clone()).needing(Needs::mode(self.needs))
    }

    async fn prepare(&self, input: I, _cx: &ToolContext) -> Result<Prepared<I>, ToolError> {
        Ok(Prepared::new(input))
    }

    async fn run(&self, work: I, _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        (self.run)(work, cx.clone()).await.map(ToolOutput::ok)
    }
}
