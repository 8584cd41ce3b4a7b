//! Loading a log takes less than three times the memory of the conversation that it comes to. A process of its own:
//! the peak is that of the whole process. `LOG_MIB` sets how large the log is.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot be set up has failed")]
#![allow(clippy::print_stdout, reason = "its figures are what it is run for")]

#[path = "../benches/log/mod.rs"]
mod log;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::time::Instant;

use agent_core::Message;
use agent_core::session::read;

/// The most memory that the process has had so far, in bytes.
fn peak() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

/// How many bytes of JSON the conversation is.
fn live(messages: &[Message]) -> usize {
    messages.iter().map(|message| serde_json::to_vec(message).unwrap().len()).sum()
}

fn main() {
    let size = std::env::var("LOG_MIB").map_or(20, |size| size.parse::<usize>().unwrap()) << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    let Some(before) = peak() else { return };
    // The compacted one first: a peak never sinks.
    for compacted in [true, false] {
        let mut target = BufWriter::new(File::create(&path).unwrap());
        log::write(&mut target, size, compacted).unwrap();
        target.flush().unwrap();
        let start = Instant::now();
        let loaded = read(File::open(&path).unwrap()).unwrap();
        let took = start.elapsed();
        let (grown, live) = (peak().unwrap() - before, live(&loaded.messages));
        let what = if compacted { "with" } else { "without" };
        println!(
            "a log of {} MiB {what} a compaction: {} messages, {} KiB live, {} KiB more at the peak, {took:.2?}",
            size >> 20,
            loaded.messages.len(),
            live >> 10,
            grown >> 10
        );
        assert!(grown < 3 * live, "{grown} bytes for {live}");
        assert_eq!(loaded.repairs, [""; 0]);
    }
}
