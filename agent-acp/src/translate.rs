//! From the agent's words to the protocol's: kinds, titles, calls, results, endings. Pure.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    Content, ContentBlock, Cost, Diff, Error, ErrorCode, ImageContent, PermissionOption, PermissionOptionKind, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, StopReason, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind, Usage as ProtocolUsage, UsageUpdate,
};
use agent_core::provider::{ErrorKind, Usage};
use agent_core::setup::{SetupError, SetupErrorKind};
use agent_core::{Ask, Ending, Limit, TurnError, UsageReport};
use agent_tools::text::clipped;
use agent_tools::{Answer, Call, CallKind, Change, Details, Outline, Part, Status, Todo, ToolOutput};
use serde_json::{Value, json};

/// The largest side of a diff, in bytes: more than an editor shows of one.
const LARGEST_DIFF: usize = 256 << 10;
/// The longest title, in characters.
const LONGEST_TITLE: usize = 500;
/// How much of a call's arguments is sent, in bytes; where there is more the call's own parts say what matters.
const LARGEST_INPUT: usize = 256 << 10;

/// What the answers to a question are called.
pub const ALLOW: &str = "allow";
/// For the rest of the session.
pub const ALLOW_ALWAYS: &str = "allow_always";
/// No.
pub const REJECT: &str = "reject";

/// What kind of thing a call does.
pub fn kind(kind: CallKind) -> ToolKind {
    match kind {
        CallKind::Command => ToolKind::Execute,
        CallKind::Read | CallKind::Skill => ToolKind::Read,
        CallKind::Write | CallKind::Edit => ToolKind::Edit,
        CallKind::Search => ToolKind::Search,
        CallKind::Todo => ToolKind::Think,
        CallKind::Plan => ToolKind::SwitchMode,
        CallKind::Agent | CallKind::Other => ToolKind::Other,
    }
}

/// What a call is called.
pub fn title(name: &str, outline: &Outline) -> String {
    let about = outline.title.trim();
    let title = match outline.kind {
        CallKind::Command if !about.is_empty() => about.to_owned(),
        CallKind::Skill => format!("{name}: {about}"),
        _ if about.is_empty() || about == name => name.to_owned(),
        _ => format!("{name} {about}"),
    };
    clipped(&title, LONGEST_TITLE)
}

/// A text as a block.
pub fn text(text: impl Into<String>) -> ContentBlock {
    ContentBlock::from(text.into())
}

/// A text as a part of what a call shows.
pub fn shown(words: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text(words)))
}

/// A call that was found and has not run yet.
pub fn called(id: &str, call: &Call, outline: &Outline) -> ToolCall {
    ToolCall::new(id.to_owned(), title(&call.name, outline))
        .name(call.name.clone())
        .kind(kind(outline.kind))
        .status(ToolCallStatus::Pending)
        .locations(locations(outline))
        .raw_input(raw_input(call))
}

fn locations(outline: &Outline) -> Vec<ToolCallLocation> {
    let absolute = outline.locations.iter().filter(|location| location.path.is_absolute());
    absolute
        .map(|location| {
            let line = location.line.filter(|line| *line > 0).and_then(|line| u32::try_from(line).ok());
            ToolCallLocation::new(location.path.clone()).line(line)
        })
        .collect()
}

fn raw_input(call: &Call) -> Option<Value> {
    let fits = call.arguments.len() <= LARGEST_INPUT;
    fits.then(|| serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone())))
}

/// A change as a diff, where an editor would show one.
pub fn diff(change: &Change) -> Option<ToolCallContent> {
    let fits = change.new.len().max(change.old.as_ref().map_or(0, String::len)) <= LARGEST_DIFF;
    // A file that is no text has no old text, and would look like a new one.
    let readable = change.old.is_some() || change.before.is_none();
    (fits && readable && change.path.is_absolute())
        .then(|| ToolCallContent::Diff(Diff::new(change.path.clone(), change.new.clone()).old_text(change.old.clone())))
}

/// What a call came to.
pub fn finished(id: &str, output: &ToolOutput) -> ToolCallUpdate {
    let done = if output.status == Status::Ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let mut content: Vec<ToolCallContent> = Vec::new();
    if let (Status::Ok, Details::Change(change)) = (output.status, &output.details) {
        content.extend(diff(change));
    }
    content.extend(parts(&output.parts));
    let mut fields = ToolCallUpdateFields::new().status(done).content(content).raw_output(raw_output(output));
    if let (Status::Ok, Details::Change(change)) = (output.status, &output.details) {
        fields = fields.locations(changed_at(change));
    }
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// Where a file was changed: at its first changed line.
fn changed_at(change: &Change) -> Vec<ToolCallLocation> {
    let old = change.old.as_deref().unwrap_or_default();
    let same = old.lines().zip(change.new.lines()).take_while(|(old, new)| old == new).count();
    let line = u32::try_from(same + 1).ok();
    vec![ToolCallLocation::new(change.path.clone()).line(line)]
}

/// Parts as a call shows them.
pub fn parts(parts: &[Part]) -> impl Iterator<Item = ToolCallContent> + '_ {
    parts.iter().filter_map(|part| {
        Some(match part {
            Part::Text { text } if text.is_empty() => return None,
            Part::Text { text } => shown(text.clone()),
            Part::Image { media_type, data } => {
                let image = ImageContent::new(data.clone(), media_type.clone());
                ToolCallContent::Content(Content::new(ContentBlock::Image(image)))
            }
            _ => return None,
        })
    })
}

/// How a command ended, for programs.
fn raw_output(output: &ToolOutput) -> Option<Value> {
    match &output.details {
        Details::Shell(exit) => serde_json::to_value(exit).ok(),
        Details::Change(_) | Details::None | Details::Todos(_) => None,
        Details::Structured(value) => serde_json::from_str(value.get()).ok(),
        _ => None,
    }
}

/// The todo list as the client's plan.
pub fn plan(todos: &[Todo]) -> Plan {
    let entry = |todo: &Todo| {
        let status = match todo.status.as_str() {
            "completed" => PlanEntryStatus::Completed,
            "in_progress" => PlanEntryStatus::InProgress,
            _ => PlanEntryStatus::Pending,
        };
        PlanEntry::new(todo.content.clone(), PlanEntryPriority::Medium, status)
    };
    Plan::new(todos.iter().map(entry).collect())
}

/// A question's call, with all that a person judges by: the whole command or diff, where it would run, why it is asked.
pub fn question(id: &str, ask: &Ask, cwd: &Path, plan: Option<&str>) -> ToolCallUpdate {
    let mut content = Vec::new();
    content.extend(ask.change.as_deref().and_then(diff));
    if ask.outline.kind == CallKind::Command {
        content.push(shown(format!("```sh\n{}\n```", ask.outline.title)));
    }
    content.extend(plan.map(shown));
    content.push(shown(reasons(ask, cwd)));
    let fields = ToolCallUpdateFields::new()
        .title(title(&ask.call.name, &ask.outline))
        .kind(kind(ask.outline.kind))
        .status(ToolCallStatus::Pending)
        .locations(locations(&ask.outline))
        .raw_input(raw_input(&ask.call))
        .content(content);
    ToolCallUpdate::new(id.to_owned(), fields)
}

fn reasons(ask: &Ask, cwd: &Path) -> String {
    let mut lines = vec![format!("Asked because {}.", ask.why.trim_end_matches('.'))];
    let findings = ask.outline.needs.findings.iter().filter(|finding| finding.zone.is_some()).take(20);
    lines.extend(findings.map(|finding| {
        let zone = finding.zone.map(|zone| format!("{zone:?}").to_lowercase()).unwrap_or_default();
        format!("- `{}` needs {} in zone {zone}", finding.what, finding.rights)
    }));
    lines.push(format!("In {}", cwd.display()));
    lines.join("\n")
}

/// The answers that a person can give.
pub fn answers(ask: &Ask) -> Vec<PermissionOption> {
    let grants: Vec<&str> = ask.outline.needs.grants.iter().map(|grant| grant.subject.as_str()).collect();
    let always = (!grants.is_empty()).then(|| {
        let name = format!("Allow {} for this session", grants.join(", "));
        PermissionOption::new(ALLOW_ALWAYS, name, PermissionOptionKind::AllowAlways)
    });
    std::iter::once(PermissionOption::new(ALLOW, "Allow once", PermissionOptionKind::AllowOnce))
        .chain(always)
        .chain([PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce)])
        .collect()
}

/// The person's answer. What is none of ours is a no.
pub fn answer(chosen: &str) -> Answer {
    match chosen {
        ALLOW => Answer::Once,
        ALLOW_ALWAYS => Answer::Session,
        _ => Answer::Reject,
    }
}

/// How full the context is, and what the session has cost.
pub fn usage(report: &UsageReport, size: u64) -> UsageUpdate {
    // A millionth of a dollar is finer than any price; what is beyond it is noise.
    let rounded = |cost: f64| (cost * 1e6).round() / 1e6;
    UsageUpdate::new(report.context, size).cost(report.cost.map(|cost| Cost::new(rounded(cost), "USD")))
}

/// What a turn used.
pub fn spent(before: &Usage, after: &Usage) -> ProtocolUsage {
    let cached = after.cache_read_input_tokens - before.cache_read_input_tokens;
    let written = after.cache_creation_input_tokens - before.cache_creation_input_tokens;
    let input = after.input_tokens - before.input_tokens;
    let output = after.output_tokens - before.output_tokens;
    ProtocolUsage::new(input + output + cached + written, input, output)
        .cached_read_tokens(cached)
        .cached_write_tokens(written)
}

/// Why a turn is over.
pub fn stop_reason(ending: &Ending) -> StopReason {
    match ending {
        Ending::Done | Ending::Blocked(_) => StopReason::EndTurn,
        Ending::Cancelled => StopReason::Cancelled,
        Ending::Limit(_) => StopReason::MaxTurnRequests,
        Ending::Truncated => StopReason::MaxTokens,
        Ending::Refused => StopReason::Refusal,
    }
}

/// What a person should read where a limit ended a turn.
pub fn limit(limit: Limit) -> String {
    match limit {
        Limit::Turns(requests) => format!("Stopped after {requests} requests (maxTurns)."),
        Limit::Cost => "Stopped: the session has cost what it may (maxCost).".into(),
        Limit::Loop(times) => format!("Stopped: the same call was made {times} times in a row (loopLimit)."),
    }
}

/// A turn that failed, as the protocol's error.
pub fn turn_error(error: &TurnError) -> Error {
    let (code, kind) = match error {
        TurnError::Provider(error) => match error.kind {
            ErrorKind::Auth => (ErrorCode::AuthRequired, "auth"),
            ErrorKind::NotFound => (ErrorCode::InternalError, "not_found"),
            ErrorKind::TooLong => (ErrorCode::InternalError, "too_long"),
            ErrorKind::Invalid => (ErrorCode::InternalError, "invalid"),
            ErrorKind::RateLimited => (ErrorCode::InternalError, "rate_limited"),
            ErrorKind::Server => (ErrorCode::InternalError, "server"),
            ErrorKind::Network => (ErrorCode::InternalError, "network"),
            ErrorKind::Cut => (ErrorCode::InternalError, "cut"),
            ErrorKind::Idle => (ErrorCode::InternalError, "idle"),
        },
        _ => (ErrorCode::InternalError, "store"),
    };
    Error::new(code.into(), error.to_string()).data(json!({"errorKind": kind}))
}

/// What stands in the way of a session, as the protocol's error.
pub fn setup_error(error: &SetupError) -> Error {
    let (code, kind) = match error.kind {
        SetupErrorKind::Usage => (ErrorCode::InvalidParams, "usage"),
        SetupErrorKind::NoModel => (ErrorCode::AuthRequired, "no_model"),
        SetupErrorKind::NoSession => (ErrorCode::ResourceNotFound, "no_session"),
        SetupErrorKind::InUse => (ErrorCode::InvalidRequest, "in_use"),
        SetupErrorKind::Failed => (ErrorCode::InternalError, "failed"),
    };
    let message = std::iter::once(&error.message).chain(&error.hints).cloned().collect::<Vec<_>>().join("\n");
    Error::new(code.into(), message).data(json!({"errorKind": kind, "hints": error.hints}))
}
