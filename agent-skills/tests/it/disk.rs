//! What only a real disk has: links, pipes, rights, sizes, bytes that are no text, changes between listing and loading.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agent_skills::Catalogue;
use tempfile::TempDir;

fn tree(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn discover(dir: &Path) -> Catalogue {
    Catalogue::discover(&[dir])
}

fn names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue.iter().map(|skill| skill.name.as_str()).collect()
}

/// The messages, each behind the skill's name.
fn told(catalogue: &Catalogue) -> String {
    let lines =
        catalogue.diagnostics().iter().map(|d| format!("{}: {}\n", d.skill.as_deref().unwrap_or("-"), d.message));
    lines.collect()
}

#[test]
fn bytes_of_all_kinds_are_read() {
    for (content, description, told_of) in [
        (&b"\xef\xbb\xbf---\nname: s\ndescription: After a mark\n---\nB\n"[..], "After a mark", ""),
        (b"---\r\nname: s\r\ndescription: Lines of Windows\r\n---\r\nB\r\n", "Lines of Windows", ""),
        (b"---\ndescription: caf\xe9\n---\nB\n", "caf\u{fffd}", "not valid UTF-8"),
        (b"\xff\xfe#\0x\0", "\u{fffd}\u{fffd}#x", "not valid UTF-8"),
        (b"", "", "it is empty"),
        (b" \n\n", "", "it is empty"),
    ] {
        let dir = tree(&[("s.md", content)]);
        let catalogue = discover(dir.path());
        assert_eq!(catalogue.get("s").unwrap().description, description);
        let told = told(&catalogue);
        assert!(told.contains(told_of) && told.is_empty() == told_of.is_empty(), "{content:?}: {told}");
    }
}

#[test]
fn the_text_is_the_file_as_it_is_now() {
    let dir = tree(&[("s/SKILL.md", b"\xef\xbb\xbf---\r\nname: s\r\n---\r\nOLD\r\n")]);
    let catalogue = discover(dir.path());
    let skill = catalogue.get("s").unwrap();
    assert_eq!(skill.load(1000).unwrap(), "\u{feff}---\r\nname: s\r\n---\r\nOLD\r\n");
    fs::write(&skill.path, "NEW\u{e9}").unwrap();
    assert_eq!(skill.load(1000).unwrap(), "NEW\u{e9}");
    assert_eq!(skill.load(4).unwrap(), "NEW", "a character is not cut in two");
    assert_eq!(skill.load(0).unwrap(), "");
    fs::remove_dir_all(dir.path().join("s")).unwrap();
    assert_eq!(skill.load(1000).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_huge_skill_is_listed_by_its_head_and_loaded_to_the_limit() {
    let dir = tree(&[("huge.md", b"---\ndescription: Very big\n---\n")]);
    let path = dir.path().join("huge.md");
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(20 << 30).unwrap();
    let catalogue = discover(dir.path());
    assert_eq!(catalogue.get("huge").unwrap().description, "Very big");
    assert_eq!(catalogue.get("huge").unwrap().load(50_000).unwrap().len(), 50_000);
}

#[test]
fn a_front_matter_longer_than_the_head_is_told() {
    let long = format!("---\ndescription: Begins well\nx: {}\n---\n", "y".repeat(100_000));
    let dir = tree(&[("long.md", long.as_bytes())]);
    let catalogue = discover(dir.path());
    assert_eq!(catalogue.get("long").unwrap().description, "Begins well");
    assert!(told(&catalogue).contains("no closing `---`"), "{}", told(&catalogue));
}

#[test]
fn links_are_followed_and_circles_end() {
    let lib = tree(&[("lk/SKILL.md", b"# linked"), ("flat.md", b"# linked file")]);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    symlink(lib.path().join("lk"), at("lk")).unwrap();
    symlink(lib.path().join("flat.md"), at("flat.md")).unwrap();
    symlink(dir.path(), at("self")).unwrap();
    symlink(at("loop.md"), at("loop.md")).unwrap();
    symlink(at("gone"), at("lost")).unwrap();
    let catalogue = discover(dir.path());
    assert_eq!(names(&catalogue), ["flat", "lk"]);
    let told = told(&catalogue);
    assert!(told.contains("lost: it is not listed") && told.contains("loop: it is not listed"), "{told}");

    let linked = tempfile::tempdir().unwrap();
    symlink(dir.path(), linked.path().join("skills")).unwrap();
    assert_eq!(names(&discover(&linked.path().join("skills"))), ["flat", "lk"]);
}

#[test]
fn a_link_out_of_the_directory_to_anything_but_markdown_is_not_read() {
    let lib = tree(&[("key", b"PRIVATE"), ("sk/SKILL.md", b"# shared"), (".env", b"PRIVATE"), ("note.md", b"# note")]);
    let dir = tree(&[("own/SKILL.md", b"# own"), ("own/notes", b"# kept beside")]);
    let (at, there) = (|name: &str| dir.path().join(name), |name: &str| lib.path().join(name));
    for (link, target, listed) in [
        ("lk/SKILL.md", there("key"), false),
        ("flat.md", there(".env"), false),
        ("pasted/SKILL.md", there("note.md"), true),
        ("linked", there("sk"), true),
        ("within/SKILL.md", at("own/notes"), true),
    ] {
        fs::create_dir_all(at(link).parent().unwrap()).unwrap();
        symlink(target, at(link)).unwrap();
        let catalogue = discover(dir.path());
        let name = link.split(['/', '.']).next().unwrap();
        assert_eq!(catalogue.get(name).is_some(), listed, "{link}");
        let told = told(&catalogue);
        assert_eq!(told.contains(&format!("{name}: it is not listed: it is a link")), !listed, "{link}: {told}");
        assert!(!format!("{catalogue:?}").contains("PRIVATE"), "{link}");
    }
    assert_eq!(discover(dir.path()).get("linked").unwrap().found_in, dir.path());
}

#[test]
fn one_directory_named_twice_is_no_clash() {
    let dir = tree(&[("a.md", b"# a")]);
    let link = tempfile::tempdir().unwrap();
    symlink(dir.path(), link.path().join("again")).unwrap();
    let catalogue = Catalogue::discover(&[dir.path(), &link.path().join("again")]);
    assert_eq!((catalogue.len(), told(&catalogue)), (1, String::new()));
}

#[test]
fn a_pipe_is_never_opened() {
    let dir = tree(&[("a.md", b"# a")]);
    for name in ["pipe.md", "folder/SKILL.md"] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    }
    let (send, done) = std::sync::mpsc::channel();
    let path = dir.path().to_owned();
    std::thread::spawn(move || {
        let catalogue = discover(&path);
        fs::remove_file(path.join("a.md")).unwrap();
        assert!(Command::new("mkfifo").arg(path.join("a.md")).status().unwrap().success());
        let load = catalogue.get("a").unwrap().load(10).map_err(|e| e.to_string());
        let _ = send.send((told(&catalogue), load));
    });
    let (told, load) = done.recv_timeout(Duration::from_secs(20)).expect("it hangs");
    assert_eq!(told.matches("not a regular file").count(), 2, "{told}");
    assert!(load.unwrap_err().contains("not a regular file"));
}

#[test]
fn what_is_no_directory_is_told_and_what_is_missing_is_not() {
    let dir = tree(&[("file", b"x")]);
    let catalogue = Catalogue::discover(&[dir.path().join("file"), dir.path().join("missing")]);
    assert!(catalogue.is_empty());
    assert_eq!(catalogue.diagnostics().len(), 1, "{}", told(&catalogue));
    assert_eq!(catalogue.diagnostics()[0].path, dir.path().join("file"));
}

#[test]
fn what_may_not_be_read_is_told() {
    let dir = tree(&[("shut.md", b"# x"), ("closed/SKILL.md", b"# x"), ("good.md", b"# good")]);
    let close =
        |name: &str, mode| fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    close("shut.md", 0o000);
    close("closed", 0o000);
    let may_read_all = fs::read(dir.path().join("shut.md")).is_ok();
    let catalogue = discover(dir.path());
    close("closed", 0o700);
    assert!(catalogue.get("good").is_some());
    if !may_read_all {
        assert_eq!(names(&catalogue), ["good"]);
        assert_eq!(told(&catalogue).matches("cannot be read").count(), 2, "{}", told(&catalogue));
    }
}

#[test]
fn names_that_break_a_list_are_left_out_and_odd_ones_told() {
    let dir = tree(&[("a\nb.md", b"# x"), ("c d.md", b"# x"), ("G\u{fc}te-1_2.3.md", b"# x")]);
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff.md")), "# x").unwrap();
    let catalogue = discover(dir.path());
    assert_eq!(names(&catalogue), ["G\u{fc}te-1_2.3", "c d", "\u{fffd}"]);
    assert_eq!(catalogue.diagnostics().len(), 3, "{}", told(&catalogue));
    assert!(told(&catalogue).contains("control characters"));
}

#[test]
fn a_declared_name_that_two_claim_is_nobodys() {
    let twin = b"---\nname: twin\n---\n";
    let dir = tree(&[("a.md", twin), ("b.md", twin), ("c.md", b"---\nname: a\n---\nC")]);
    let catalogue = discover(dir.path());
    assert!(catalogue.get("twin").is_none());
    assert_eq!(catalogue.get("a").unwrap().name, "a", "a real name comes before a declared one");
    assert_eq!(catalogue.get("c").unwrap().declared_name.as_deref(), Some("a"));
}

#[test]
fn hostile_skills_cost_little() {
    let bomb: String = std::iter::once("a: &a [l,l,l,l,l,l,l,l,l]\n".to_owned())
        .chain("abcdefghij".as_bytes().windows(2).map(|pair| {
            let (of, name) = (char::from(pair[0]), char::from(pair[1]));
            format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 9].join(","))
        }))
        .collect();
    let text = format!("---\nname: bomb\ndescription: x\n{bomb}license: *j\n---\nB\n");
    let dir = tree(&[("bomb.md", text.as_bytes()), ("good.md", b"# good")]);
    let start = Instant::now();
    let catalogue = discover(dir.path());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(names(&catalogue), ["bomb", "good"]);
    assert_eq!(catalogue.get("bomb").unwrap().description, "x");
    assert!(told(&catalogue).contains("bomb: its front matter cannot be read"));
}
