//! Files of unusual kinds, modes and sizes, and files that others change, through the tools.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_tools::policy::{Gate, Mode, Permissions as Asking};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Answer, Call, Change, Details, Host, Outline, Status, ToolContext, ToolOutput, Tools, dispatch};
use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Workspace {
    dir: TempDir,
    tools: Tools,
    cx: ToolContext,
}

impl Workspace {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cx = ToolContext::new(dir.path(), Gate::new(Mode::ALL, Asking::Auto));
        Self { tools: tools(Toolset::Lean, &Parts::of(Toolset::Lean)), cx, dir }
    }

    /// One where a person is asked about each change.
    fn asking(answer: impl Fn(Option<&Change>) -> Answer + Send + Sync + 'static) -> (Self, Arc<Person>) {
        let mut workspace = Self::new();
        let person = Arc::new(Person { answer: Box::new(answer), questions: Mutex::default() });
        workspace.cx.policy = Arc::new(Gate::new(Mode::ALL, Asking::Ask));
        workspace.cx.host = person.clone();
        (workspace, person)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names in the directory, sorted: no temporary file may be left.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        dispatch(&self.tools, &Call::new("1", tool, arguments.to_string()), &self.cx).await
    }

    async fn read(&self, path: &str) -> ToolOutput {
        self.call("read_file", json!({ "path": path })).await
    }

    async fn write(&self, path: &str, content: &str) -> ToolOutput {
        self.call("write_file", json!({ "path": path, "content": content })).await
    }

    async fn edit(&self, path: &str, old: &str, new: &str) -> ToolOutput {
        self.call("edit_file", json!({ "path": path, "edits": [{ "old": old, "new": new }] })).await
    }
}

type Reply = dyn Fn(Option<&Change>) -> Answer + Send + Sync;

/// Somebody who answers, and the changes that they were shown.
struct Person {
    answer: Box<Reply>,
    questions: Mutex<Vec<Option<Change>>>,
}

#[async_trait]
impl Host for Person {
    fn attended(&self) -> bool {
        true
    }

    async fn ask(&self, _call: &Call, _outline: &Outline, _why: &str, change: Option<&Change>) -> Answer {
        self.questions.lock().unwrap().push(change.cloned());
        (self.answer)(change)
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn has_failed(output: &ToolOutput, with: &str) {
    assert_eq!((output.status, output.text().contains(with)), (Status::Failed, true), "{}", output.text());
}

#[tokio::test]
async fn check_080_the_mode_of_a_file_is_kept_and_a_new_file_has_the_usual_one() {
    let w = Workspace::new();
    for wanted in [0o755, 0o640, 0o600, 0o777] {
        let path = w.put("f", "one\n");
        fs::set_permissions(&path, Permissions::from_mode(wanted)).unwrap();
        assert_eq!(w.write("f", "two\n").await.status, Status::Ok);
        assert_eq!(w.edit("f", "two", "three").await.status, Status::Ok);
        assert_eq!((w.text("f").as_str(), mode(&path)), ("three\n", wanted));
    }
    w.write("new", "x").await;
    File::create(w.path("usual")).unwrap();
    assert_eq!(mode(&w.path("new")), mode(&w.path("usual")));
}

#[tokio::test]
async fn the_owner_is_kept_where_we_may_give_files_away() {
    let w = Workspace::new();
    let path = w.put("f", "a\n");
    if std::os::unix::fs::chown(&path, Some(12345), Some(23456)).is_err() {
        return; // Only root can.
    }
    assert_eq!(w.edit("f", "a", "b").await.status, Status::Ok);
    let about = fs::metadata(&path).unwrap();
    assert_eq!((w.text("f").as_str(), about.uid(), about.gid()), ("b\n", 12345, 23456));
}

#[tokio::test]
async fn links_stay_links_and_what_they_lead_to_is_written() {
    let w = Workspace::new();
    fs::create_dir(w.path("conf")).unwrap();
    w.put("conf/real", "on = 0\n");
    symlink("conf/real", w.path("link")).unwrap();
    symlink("link", w.path("link2")).unwrap();
    symlink("conf/planted", w.path("dangling")).unwrap();
    symlink("loop", w.path("loop")).unwrap();
    w.edit("link2", "on = 0", "on = 1").await;
    w.write("dangling", "x\n").await;
    assert_eq!((w.text("conf/real").as_str(), w.text("conf/planted").as_str()), ("on = 1\n", "x\n"));
    for name in ["link", "link2", "dangling"] {
        assert!(fs::symlink_metadata(w.path(name)).unwrap().is_symlink(), "{name}");
    }
    has_failed(&w.read("loop").await, "circle");
    has_failed(&w.write("loop", "x").await, "circle");
    assert_eq!(w.names(), ["conf", "dangling", "link", "link2", "loop"]);
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_at_once_and_stays() {
    let w = Workspace::new();
    let start = Instant::now();
    rustix::fs::mknodat(rustix::fs::CWD, w.path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = UnixListener::bind(w.path("socket")).unwrap();
    symlink("fifo", w.path("link")).unwrap();
    for (path, what) in [
        ("fifo", "a named pipe"),
        ("link", "a named pipe"),
        ("socket", "a socket"),
        ("/dev/zero", "a device"),
        ("/dev/null", "a device"),
    ] {
        has_failed(&w.read(path).await, what);
        has_failed(&w.write(path, "x").await, what);
        has_failed(&w.edit(path, "a", "b").await, what);
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(fs::metadata("/dev/null").unwrap().len() == 0 && !fs::metadata("/dev/null").unwrap().is_file());
    assert_eq!(w.names(), ["fifo", "link", "socket"]);
}

#[tokio::test]
async fn files_that_claim_to_be_empty_are_read() {
    let w = Workspace::new();
    let status = w.read("/proc/self/status").await;
    assert!(status.status == Status::Ok && status.text().contains("VmRSS"), "{}", status.text());
}

#[tokio::test]
async fn what_may_not_be_written_is_not_replaced() {
    let w = Workspace::new();
    fs::create_dir(w.path("ro")).unwrap();
    fs::set_permissions(w.path("ro"), Permissions::from_mode(0o555)).unwrap();
    let path = w.put("f", "a\n");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    if !rustix::process::geteuid().is_root() {
        has_failed(&w.write("ro/x", "x").await, "permission denied");
        has_failed(&w.edit("f", "a", "b").await, "permission denied");
        assert_eq!(w.text("f"), "a\n");
    }
    has_failed(&w.write("/proc/nope/x", "x").await, "cannot write /proc/nope/x: ");
    fs::set_permissions(w.path("ro"), Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_file_that_changed_while_a_person_thought_is_not_overwritten() {
    for tool in ["write_file", "edit_file"] {
        let theirs = Arc::new(Mutex::new(PathBuf::new()));
        let path = theirs.clone();
        let (w, person) = Workspace::asking(move |_| {
            fs::write(&*path.lock().unwrap(), "a=1\nb=77\n").unwrap();
            Answer::Once
        });
        *theirs.lock().unwrap() = w.put("t", "a=1\nb=1\n");
        let arguments = json!({"path": "t", "content": "x", "edits": [{"old": "a=1", "new": "a=2"}]});
        has_failed(&w.call(tool, arguments).await, "Read it again");
        assert_eq!((w.text("t").as_str(), w.names()), ("a=1\nb=77\n", vec!["t".to_owned()]));
        assert_eq!(person.questions.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_file_that_appeared_or_vanished_while_a_person_thought_is_a_changed_one() {
    let theirs = Arc::new(Mutex::new(PathBuf::new()));
    let path = theirs.clone();
    let (w, _) = Workspace::asking(move |change| {
        match change.unwrap().old {
            None => fs::write(&*path.lock().unwrap(), "theirs").unwrap(),
            Some(_) => fs::remove_file(&*path.lock().unwrap()).unwrap(),
        }
        Answer::Once
    });
    *theirs.lock().unwrap() = w.path("t");
    has_failed(&w.write("t", "ours").await, "Read it again");
    assert_eq!(w.text("t"), "theirs");
    has_failed(&w.write("t", "ours").await, "Read it again");
    assert!(w.names().is_empty());
}

#[tokio::test]
async fn people_see_the_whole_change_and_only_changes_that_would_happen() {
    let (w, person) = Workspace::asking(|_| Answer::Reject);
    let path = w.put("t", "one\ntwo\n");
    for (tool, arguments, status, text) in [
        ("write_file", json!({"path": "t", "content": "one\ntwo\n"}), Status::Ok, "nothing written"),
        (
            "edit_file",
            json!({"path": "t", "dry_run": true, "edits": [{"old": "two", "new": "2"}]}),
            Status::Ok,
            "dry run",
        ),
        ("edit_file", json!({"path": "t", "edits": [{"old": "two", "new": "two"}]}), Status::Ok, "change nothing"),
        ("edit_file", json!({"path": "t", "edits": [{"old": "zzz", "new": "2"}]}), Status::Failed, "not found"),
        ("write_file", json!({"path": ".", "content": "x"}), Status::Failed, "directory"),
        ("read_file", json!({"path": "t"}), Status::Ok, "one"),
    ] {
        let output = w.call(tool, arguments.clone()).await;
        assert_eq!((output.status, output.text().contains(text)), (status, true), "{arguments} {}", output.text());
        assert!(matches!(output.details, Details::None), "{arguments}");
    }
    assert!(person.questions.lock().unwrap().is_empty());
    assert_eq!(w.edit("t", "two", "2").await.text(), "[change rejected by the user]");
    assert_eq!(w.write("new", "x").await.text(), "[change rejected by the user]");
    let whole = Change::new(&path, Some(b"one\ntwo\n".to_vec()), Some("one\ntwo\n".into()), "one\n2\n");
    let created = Change::new(w.path("new"), None, None, "x");
    assert_eq!(*person.questions.lock().unwrap(), [Some(whole), Some(created)]);
    assert_eq!((w.text("t").as_str(), w.names()), ("one\ntwo\n", vec!["t".to_owned()]));
}

#[tokio::test]
async fn the_outline_has_the_absolute_path_the_line_and_one_grant_for_changes() {
    let w = Workspace::new();
    let outline = |tool: &str, arguments: Value| {
        let call = Call::new("1", tool, arguments.to_string());
        w.tools.open(&call, &w.cx).unwrap().outline().clone()
    };
    let read = outline("read_file", json!({"path": "F", "start": 3}));
    assert_eq!((read.title.as_str(), &read.locations[0].path, read.locations[0].line), ("F", &w.path("F"), Some(3)));
    assert_eq!(outline("read_file", json!({"path": "F"})).locations[0].line, None);
    let write = outline("write_file", json!({"path": "F", "content": ""}));
    let edit = outline("edit_file", json!({"path": "G", "edits": []}));
    assert_eq!(write.needs.grants, edit.needs.grants);
    assert_eq!(write.needs.grants.len(), 1);
}

/// In a process of its own, since its memory is measured.
#[tokio::test]
async fn the_end_of_a_huge_file_is_found_without_holding_it() {
    const ALONE: &str = "AGENT_TOOLS_TEST_ALONE";
    const NAME: &str = "files::the_end_of_a_huge_file_is_found_without_holding_it";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args([NAME, "--exact"]).env(ALONE, "1").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && told.contains("1 passed"), "{told}");
    }
    let w = Workspace::new();
    let mut file = File::create(w.path("big")).unwrap();
    let block: String = (0..10_000).map(|i| format!("a line of a big file {i:05}\n")).collect();
    (0..200).for_each(|_| file.write_all(block.as_bytes()).unwrap());
    drop((file, block));
    let before = peak();
    let output = w.call("read_file", json!({"path": "big", "start": 1_999_999, "numbered": true})).await;
    assert_eq!(output.text(), "1999999\ta line of a big file 09998\n2000000\ta line of a big file 09999\n");
    has_failed(&w.call("read_file", json!({"path": "big", "start": 2_000_001})).await, "big has only 2000000 lines");
    assert!(w.read("big").await.text().ends_with("[output truncated to 10000 characters] Continue with start=371."));
    assert!(peak() - before < 8_000, "{} kB more for a file of 54 MB", peak() - before);
}

#[tokio::test]
async fn one_endless_line_is_bounded() {
    let w = Workspace::new();
    File::create(w.path("hole")).unwrap().set_len(1 << 30).unwrap();
    has_failed(&w.read("hole").await, "binary");
    let mut file = File::create(w.path("line")).unwrap();
    let block = vec![b'x'; 1 << 20];
    (0..64).for_each(|_| file.write_all(&block).unwrap());
    let output = w.read("line").await.text();
    assert_eq!(
        output.len(),
        10_000 + "\n[output truncated to 10000 characters] Line 1 alone is longer than that.".len()
    );
    has_failed(&w.edit("hole", "a", "b").await, "larger than");
    has_failed(&w.write("hole", "b").await, "larger than");
}

/// The greatest memory so far, in kB.
fn peak() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_file_that_grows_is_read_to_the_length_it_had() {
    let w = Workspace::new();
    let path = w.put("log", "first\n");
    let opened = w.cx.files.open(&path).await.unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"second\n").unwrap();
    let mut text = String::new();
    let mut reader = opened.reader;
    reader.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), opened.len), ("first\n", 6));
}

#[tokio::test]
async fn working_out_a_long_diff_keeps_nobody_waiting() {
    let w = Workspace::new();
    w.put("t", "x\n".repeat(200_000));
    let ticks = async {
        let mut ticks = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            ticks += 1;
            if ticks == 5 {
                return;
            }
        }
    };
    let content = "y\n".repeat(200_000);
    let write = w.write("t", &content);
    tokio::pin!(write);
    // The timer gets its turns while the diff of two long texts is worked out.
    tokio::select! {
        biased;
        output = &mut write => panic!("five milliseconds passed first: {}", output.text().len()),
        () = ticks => {}
    }
    assert_eq!(write.await.status, Status::Ok);
}
