//! Links that a stranger brings or somebody swaps in: what was judged is what is opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent_skills::Catalogue;
use agent_tools::policy::{Gate, Permissions};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, Place, Status, ToolContext, ToolOutput, Tools, dispatch};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace `ws` beside a home directory with keys.
struct World {
    dir: TempDir,
    cx: ToolContext,
    tools: Tools,
}

impl World {
    fn new(mode: &str, skills: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("home/.ssh/id_rsa", "PRIVATE"),
            ("home/.ssh/f", "PRIVATE one\n"),
            ("home/.agents/skills/own/SKILL.md", "# Own\nlearned"),
            ("home/.ssh/sk/plain/SKILL.md", "PRIVATE"),
            ("ws/p/f", "one\n"),
            ("ws/q", "plain\n"),
            ("ws/.env", "PRIVATE"),
            ("ws/notes/sk/SKILL.md", "# Notes\nlearned"),
            ("ws/.agents/skills/plain/SKILL.md", "# Plain\nlearned"),
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let cwd = dir.path().join("ws");
        let mut cx = ToolContext::new(&cwd, Gate::new(mode.parse().unwrap(), Permissions::Auto));
        let mut place = Place::new(&cwd);
        place.home = Some(dir.path().join("home"));
        cx.place = Arc::new(place);
        let mut parts = Parts::of(Toolset::Full);
        let skills: Vec<PathBuf> = skills.iter().map(|name| dir.path().join(name)).collect();
        parts.skills = Arc::new(Catalogue::discover(&skills));
        Self { tools: tools(Toolset::Full, &parts), cx, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        dispatch(&self.tools, &Call::new("1", tool, arguments.to_string()), &self.cx).await
    }
}

/// Swaps `p` with `pl` and `q` with `ql` until it is told to stop.
#[cfg(target_os = "linux")]
fn swap(dir: &Path, stop: &AtomicBool) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    while !stop.load(Ordering::Relaxed) {
        for (one, other) in [("p", "pl"), ("q", "ql")] {
            renameat_with(CWD, dir.join(one), CWD, dir.join(other), RenameFlags::EXCHANGE).unwrap();
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_swapped_in_meanwhile_leads_nowhere() {
    let w = World::new("0067", &[]);
    symlink(w.path("home/.ssh"), w.path("ws/pl")).unwrap();
    symlink(w.path("home/.ssh/id_rsa"), w.path("ws/ql")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (dir, stop) = (w.path("ws"), stop.clone());
        move || swap(&dir, &stop)
    });
    let (until, mut done) = (Instant::now() + Duration::from_secs(3), [0; 6]);
    let mut leaked = Vec::new();
    for round in 0..2000 {
        let (old, new) = if done[2] % 2 == 0 { ("one", "two") } else { ("two", "one") };
        for (n, (tool, arguments)) in [
            ("Write", json!({"path": format!("p/w{round}"), "content": "w"})),
            ("Read", json!({"path": "q"})),
            ("Edit", json!({"path": "p/f", "old_string": old, "new_string": new})),
            ("Grep", json!({"path": "q", "pattern": "."})),
            ("Grep", json!({"path": "p", "pattern": "PRIVATE|one|two"})),
            ("Glob", json!({"path": "p", "pattern": "id_*"})),
        ]
        .into_iter()
        .enumerate()
        {
            let output = w.call(tool, arguments).await;
            done[n] += usize::from(output.status == Status::Ok);
            let text = output.text();
            if text.contains("PRIVATE") || (n == 5 && text.contains("id_rsa")) {
                leaked.push(text);
            }
        }
        if Instant::now() > until {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(leaked, Vec::<String>::new());
    let names = |dir: &Path| -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let mut outside = names(&w.path("home/.ssh"));
    outside.sort();
    assert_eq!(outside, ["f", "id_rsa", "sk"]);
    assert_eq!(fs::read_to_string(w.path("home/.ssh/f")).unwrap(), "PRIVATE one\n");
    let inside = [w.path("ws/p"), w.path("ws/pl")].into_iter().find(|path| !path.is_symlink()).unwrap();
    assert!(names(&inside).iter().all(|name| !name.starts_with(".agent-")), "{:?}", names(&inside));
    assert!(done.iter().all(|n| *n > 0), "nothing was tried: {done:?}");
}

#[tokio::test]
async fn a_skill_behind_a_link_needs_what_reading_it_needs() {
    let dirs = ["ws/.agents/skills", "ws/skills", "home/.agents/skills"];
    for (link, target, skill, needs) in [
        ("ws/unused", "ws/p/f", "plain", "0000"),
        ("ws/unused", "ws/p/f", "own", "0000"),
        // The catalogue was made before; what counts is where it leads now.
        ("ws/.agents/skills/plain/SKILL.md", "home/.ssh/id_rsa", "plain", "4000"),
        ("ws/.agents/skills/plain/SKILL.md", "ws/.env", "plain", "4000"),
        ("ws/.agents/skills/plain", "ws/notes/sk", "plain", "0004"),
        ("ws/.agents/skills/plain/SKILL.md", "ws/.agents/skills/.env", "plain", "4000"),
        ("ws/.agents/skills", "home/.ssh/sk", "plain", "4000"),
    ] {
        let w = World::new("0003", &dirs);
        fs::write(w.path("ws/.agents/skills/.env"), "PRIVATE").unwrap();
        let at = w.path(link);
        if at.is_dir() {
            fs::remove_dir_all(&at).unwrap();
        } else {
            let _ = fs::remove_file(&at);
        }
        symlink(w.path(target), &at).unwrap();
        let call = Call::new("1", "Skill", json!({"name": skill}).to_string());
        assert_eq!(w.tools.open(&call, &w.cx).unwrap().outline().needs.mode.to_string(), needs, "{link} -> {target}");
        let output = w.call("Skill", json!({"name": skill})).await;
        let (loaded, text) = (output.status == Status::Ok, output.text());
        assert_eq!(loaded, needs == "0000", "{link} -> {target}: {text}");
        assert!(if loaded { text.contains("learned") } else { !text.contains("PRIVATE") }, "{text}");
    }
}
