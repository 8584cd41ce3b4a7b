//! What people see of a turn: one match over the events for each form of output.

mod json;
mod style;
mod terminal;

pub use json::Summary;
pub use style::{Style, plain};
pub use terminal::Screen;
