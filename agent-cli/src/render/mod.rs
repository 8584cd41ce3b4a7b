//! What people see of a turn: one match over the events for each form of output.

mod hold;
mod json;
mod style;
mod terminal;

pub use hold::{Output, Outputs, Stream};
pub use json::Summary;
pub use style::{Style, plain};
pub use terminal::Screen;

use agent_core::{Ending, Limit};

/// What a person is told of an ending; nothing where the answer says it all.
fn ending_text(ending: &Ending) -> Option<String> {
    Some(match ending {
        Ending::Done => return None,
        Ending::Blocked(text) => format!("the last call was not allowed: {text}"),
        Ending::Cancelled => "stopped".into(),
        Ending::Limit(Limit::Turns(n)) => format!("stopped after {n} requests: the limit maxTurns was reached"),
        Ending::Limit(Limit::Cost) => "stopped: the limit maxCost was reached".into(),
        Ending::Limit(Limit::Loop(n)) => format!("stopped: the same call was made {n} times in a row (loopLimit)"),
        Ending::Truncated => "the answer was cut: it reached the limit of its size (maxTokens)".into(),
        Ending::Refused => "the model refused to answer".into(),
    })
}
