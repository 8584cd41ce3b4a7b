//! Runs a fuzz target: inputs at random until time is up, the smallest one told that fails.

// All of it: it is no part of the program.
#![cfg(test)]

use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};

/// For how long a target runs, in seconds. `cargo xtask soak fuzz` sets it.
const SECONDS: &str = "FUZZ_SECONDS";

/// Runs a target for a second, or as long as is asked.
#[track_caller]
#[expect(clippy::print_stdout, reason = "whoever lets it run for minutes sees how much was tried")]
pub(crate) fn run<S: Strategy>(inputs: &S, target: impl Fn(S::Value) -> TestCaseResult) {
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    let mut runs = 0;
    while runs == 0 || Instant::now() < end {
        let mut runner = TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
        if let Err(failure) = runner.run(inputs, &target) {
            panic!("{failure}");
        }
        runs += 1;
    }
    println!("{} inputs", runs * 500);
}
