//! `--output json`: one object at the end.

use agent_core::context::hit_rate;
use agent_core::session::stop_reason;
use agent_core::{Ending, Event, Notice, Session, Tally, TurnError};
use serde_json::{Value, json};

use super::ending_text;

/// Collects what the object at the end has.
#[derive(Debug, Default)]
pub struct Summary {
    answer: String,
    tally: Tally,
    notices: Vec<String>,
    ended: Option<Result<Ending, TurnError>>,
}

impl Summary {
    /// Takes an event up.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Text(text) => self.answer.push_str(text),
            // Words before a call, before news, or of an answer that is asked for again, are no part of the answer.
            Event::Called { .. }
            | Event::Notice(Notice::Retry { .. } | Notice::ChildEnded { .. } | Notice::TaskEnded(_)) => {
                self.answer.clear();
                self.notice(event);
            }
            Event::Finished { kind, .. } => self.tally.count(*kind),
            Event::Notice(_) => self.notice(event),
            Event::Ended(ended) => {
                self.notices.extend(ended.as_ref().ok().and_then(ending_text));
                self.ended = Some(ended.clone());
            }
            // Nor are those before words that were said meanwhile.
            Event::Prompt(_) => self.answer.clear(),
            Event::Thinking(_) | Event::Ask(_) | Event::Started { .. } | Event::Output { .. } | Event::Usage(_) => {}
        }
    }

    fn notice(&mut self, event: &Event) {
        if let Event::Notice(notice) = event {
            self.notices.push(notice.to_string());
        }
    }

    /// The object.
    pub fn to_json(&self, session: &Session) -> Value {
        let usage = session.usage();
        let (reason, error) = match &self.ended {
            Some(Ok(ending)) => (stop_reason(ending), Value::Null),
            Some(Err(error)) => ("error", Value::String(error.to_string())),
            None => ("error", Value::Null),
        };
        json!({
            "answer": self.answer,
            "session_id": session.id.as_str(),
            "stop_reason": reason,
            "error": error,
            "usage": {
                "input_tokens": usage.total.input_tokens,
                "output_tokens": usage.total.output_tokens,
                "cache_read_input_tokens": usage.total.cache_read_input_tokens,
                "cache_creation_input_tokens": usage.total.cache_creation_input_tokens,
                "total_input_tokens": usage.total.input_tokens,
                "total_output_tokens": usage.total.output_tokens,
                "agent_request_count": usage.requests,
                "compact_request_count": usage.compactions,
                "current_context_tokens": usage.context,
                "cache_hit_rate": hit_rate(&usage.total),
                "total_cost": usage.cost,
            },
            "counters": {"commands": self.tally.commands, "file_ops": self.tally.files, "skills": self.tally.skills},
            "files_changed": session.files_changed().map(|p| p.to_string_lossy()).collect::<Vec<_>>(),
            "notices": self.notices,
        })
    }
}
