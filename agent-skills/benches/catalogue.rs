//! What finding skills costs beside reading their files: `cargo bench -p agent-skills`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot be set up has failed")]

#[path = "../../agent-tools/benches/beside/mod.rs"]
mod beside;

use std::fs;
use std::path::Path;

use agent_skills::Catalogue;

const SKILLS: usize = 200;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let body = "Do this, and then that, and look at what came of it.\n".repeat(80);
    for i in 0..SKILLS {
        let folder = directory.path().join(format!("skill-{i}"));
        fs::create_dir(&folder).unwrap();
        let head =
            format!("---\nname: skill-{i}\ndescription: Does thing {i}; use it when thing {i} is wanted.\n---\n");
        fs::write(folder.join("SKILL.md"), head + &body).unwrap();
    }
    let find = || assert_eq!(Catalogue::discover(&[directory.path()]).len(), SKILLS);
    let mut c = beside::quick();
    beside::beside(&mut c, "discover 200 skills, beside reading their files", find, || read(directory.path()));
    c.final_summary();
}

fn read(directory: &Path) -> usize {
    let folders = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    folders.map(|folder| fs::read(folder.join("SKILL.md")).unwrap().len()).sum()
}
