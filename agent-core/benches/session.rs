//! What a log costs beside the least that the same work could cost: `cargo bench -p agent-core --bench session`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot be set up has failed")]

#[path = "../../agent-tools/benches/beside/mod.rs"]
mod beside;
mod log;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

use agent_core::session::{JsonLines, Store, read};
use beside::beside;
use criterion::Criterion;

const SIZE: usize = 100 << 20;

/// Reads and splits the lines, and no more.
fn split(file: &File) -> usize {
    use std::io::Seek;
    let mut file = file;
    file.rewind().unwrap();
    let (mut reader, mut count) = (BufReader::with_capacity(1 << 18, file), 0);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).unwrap() > 0 {
        count += 1;
        line.clear();
    }
    count
}

fn load(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    for (what, compacted) in [("without a compaction", false), ("with a compaction in its middle", true)] {
        let path = directory.path().join("log.jsonl");
        let mut target = BufWriter::new(File::create(&path).unwrap());
        log::write(&mut target, SIZE, compacted).unwrap();
        target.flush().unwrap();
        let file = File::open(&path).unwrap();
        let name = format!("load a log of 100 MiB {what}, beside splitting its lines");
        let ours = || {
            let loaded = read(&file).unwrap();
            assert!(loaded.repairs.is_empty());
            loaded.messages.len()
        };
        beside(c, &name, ours, || split(&file));
    }
}

fn append(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("{{\"type\":\"text\",\"content\":\"{}\"}}\n", "some words ".repeat(20));
    let mut log = JsonLines::new(directory.path().join("log.jsonl"));
    let mut plain = File::create(directory.path().join("plain.jsonl")).unwrap();
    let append = || log.append(&line).unwrap();
    beside(c, "append a line without a sync, beside a plain write", append, || {
        plain.write_all(line.as_bytes()).unwrap();
    });
}

fn main() {
    let mut c = beside::quick();
    for group in [load, append] {
        group(&mut c);
    }
    c.final_summary();
}
