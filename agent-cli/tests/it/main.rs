//! The program as a person or a script meets it: the real binary against a scripted model, on pipes and on a terminal.

// `cfg(test)` always holds here; it tells clippy that all of this is test code.
#![cfg(test)]

mod approvals;
mod batch;
mod beside;
mod commands;
mod crash;
mod doctor;
mod fallback;
mod full;
mod headless;
mod inputs;
mod model;
mod pty;
mod rewind;
mod run;
mod sessions;
mod signals;
mod slash;
mod strict;
mod terminal;
