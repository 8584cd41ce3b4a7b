//! Locks a plan draft in, and puts a plan away.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::own_files::{self, DRAFT, PLAN};
use crate::call::{CallKind, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::host::Compaction;
use crate::output::ToolOutput;
use crate::tool::{Declaration, Prepared, Tool};

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Nothing {}

/// Makes the session's `plan.draft` its `plan.md`, and compacts the conversation.
#[derive(Debug)]
pub struct PlanConfirm;

#[async_trait]
impl Tool for PlanConfirm {
    type Input = Nothing;
    type Work = String;

    fn declaration(&self) -> Declaration {
        Declaration::of::<Nothing>("PlanConfirm", include_str!("../toolset/full/plan_confirm.md").trim_end())
    }

    fn outline(&self, _input: &Nothing, _cx: &ToolContext) -> Outline {
        Outline::new(CallKind::Plan, "confirm the plan")
    }

    async fn prepare(&self, _input: Nothing, cx: &ToolContext) -> Result<Prepared<String>, ToolError> {
        let draft = own_files::text(DRAFT, &cx.place);
        draft.map(Prepared::new).ok_or_else(|| {
            let hint = own_files::path(DRAFT, &cx.place).map(|path| format!(" Write it to {} first.", path.display()));
            ToolError::new(format!("no plan draft found to confirm.{}", hint.unwrap_or_default()))
        })
    }

    async fn run(&self, draft: String, _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        // First: where the summary fails, plan and history stay as they were.
        let compacted = cx.host.compact("plan_confirm").await?;
        own_files::save(PLAN, &draft, &cx.place).await?;
        own_files::save(DRAFT, "", &cx.place).await?;
        Ok(ToolOutput::ok(told("Plan confirmed and locked in.", compacted)))
    }
}

/// Empties the session's `plan.md`, and compacts the conversation.
#[derive(Debug)]
pub struct PlanClear;

#[async_trait]
impl Tool for PlanClear {
    type Input = Nothing;
    type Work = ();

    fn declaration(&self) -> Declaration {
        Declaration::of::<Nothing>("PlanClear", include_str!("../toolset/full/plan_clear.md").trim_end())
    }

    fn outline(&self, _input: &Nothing, _cx: &ToolContext) -> Outline {
        Outline::new(CallKind::Plan, "put the plan away")
    }

    async fn prepare(&self, _input: Nothing, _cx: &ToolContext) -> Result<Prepared<()>, ToolError> {
        Ok(Prepared::new(()))
    }

    async fn run(&self, (): (), _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if own_files::text(PLAN, &cx.place).is_none() {
            return Ok(ToolOutput::ok("Plan cleared."));
        }
        let compacted = cx.host.compact("plan_clear").await?;
        own_files::save(PLAN, "", &cx.place).await?;
        Ok(ToolOutput::ok(told("Plan cleared.", compacted)))
    }
}

fn told(done: &str, compacted: Compaction) -> String {
    match compacted {
        Compaction::Done => done.to_owned(),
        Compaction::NotHere => format!("{done} The context was not compacted."),
    }
}
