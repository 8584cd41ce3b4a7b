//! What commands of git need where the repository itself has a say: remotes, other repositories, keys that it keeps.

use agent_tools::Place;
use agent_tools::policy::Rights;
use agent_tools::policy::shell::judge;

use crate::policy::verdict;

/// A repository with these settings, and what commands need in it.
#[test]
fn remotes_lead_where_the_repository_says() {
    let config = "[remote \"origin\"]\n\turl = https://h.example/r\n[remote \"scp\"]\n\turl = h:r\n
        [remote \"up\"]\n\turl = \"/home/u/other\"\n[remote \"file\"]\n\turl = file:///home/u/other\n
        [remote \"both\"]\n\turl = https://h.example/r\n\tpushurl = /home/u/other\n
        [remote \"run\"]\n\turl = ext::sh\n[url \"/home/u/\"]\n\tinsteadOf = x:\n
        [remote \"short\"]\n\turl = x:other\n[remotes]\n\tgroup = up\n";
    for (settings, command, expect) in [
        (config, "git push origin main", "0020"),
        (config, "git fetch origin", "0042"),
        (config, "git push scp main", "0020"),
        (config, "git push up HEAD:y", "0720"),
        (config, "git push file", "0720"),
        (config, "git push both", "0720"),
        (config, "git push short", "0720"),
        (config, "git fetch up", "0442"),
        (config, "git pull up main", "0442"),
        (config, "git ls-remote up", "0440"),
        (config, "git remote show up", "0440"),
        (config, "git remote update up", "0442"),
        (config, "git push run", "unsure"),
        (config, "git push", "unsure"),
        (config, "git fetch --all", "unsure"),
        (config, "git fetch group", "unsure"),
        ("[remote \"origin\"]\n\turl = git@h.example:r\n[branch \"main\"]\n\tremote = origin\n", "git push", "0020"),
        ("[remote \"up\"]\n\turl = /home/u/other\n", "git push", "0720"),
        ("[branch \"main\"]\n\tremote = /home/u/other\n", "git pull", "0442"),
    ] {
        let at = tempfile::tempdir().unwrap();
        std::fs::create_dir(at.path().join(".git")).unwrap();
        std::fs::write(at.path().join(".git/config"), settings).unwrap();
        let ours = verdict(&judge(command, &Place::new(at.path())));
        assert_eq!(ours, expect, "{command}");
    }
}

/// Settings of another repository than that of the working directory are not known where a command starts.
#[test]
fn git_in_another_repository_executes() {
    let at = tempfile::tempdir().unwrap();
    for dir in ["ws/.git", "ws/src", "ws/nested/.git", "ws/bare/objects", "other"] {
        std::fs::create_dir_all(at.path().join(dir)).unwrap();
    }
    std::fs::write(at.path().join("ws/bare/HEAD"), "ref: refs/heads/main").unwrap();
    let place = Place::new(at.path().join("ws"));
    for (command, expect) in [
        ("git status", "0004"),
        ("cd src && git status", "0004"),
        ("cd src && cd .. && git diff", "0004"),
        ("cd . && git diff --no-index a b", "0004"),
        ("cd nested && git status", "0005"),
        ("cd bare && git diff --no-index a b", "0005"),
        ("cd src && git status && cd ../nested && git status", "0005"),
        ("tar xf a.tar && cd src && git status", "unsure"),
        ("cd missing && git status", "0005"),
    ] {
        let ours = verdict(&judge(command, &place));
        assert_eq!(ours, expect, "{command}");
    }
    std::fs::write(at.path().join("ws/.git/index"), "no index").unwrap();
    assert_eq!(verdict(&judge("git status", &place)), "0001");
}

/// What git shows of a repository is as guarded as the keys that it keeps.
#[test]
fn git_shows_the_keys_that_a_repository_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let out = std::process::Command::new("git").args(args).current_dir(dir.path()).output().unwrap();
        assert!(out.status.success(), "{args:?}");
    };
    let place = Place::new(dir.path());
    let keys = |command: &str| {
        judge(command, &place).mode.system.covers(Rights::READ) || judge(command, &place).unsure.is_some()
    };
    let shows = [
        "git grep KEY",
        "git grep -n KEY HEAD",
        "git show",
        "git show HEAD~1",
        "git log -p",
        "git log --patch -3",
        "git diff",
        "git diff HEAD~1 HEAD",
        "git cat-file -p abc123",
        "git cat-file --batch",
        "git archive HEAD",
        "git log -u",
        "git stash show -p",
        "git diff-tree -p HEAD",
        "git format-patch -1",
        "git log -G KEY",
        "cd sub && git diff",
        "git -C sub show",
        "git log \"$X\"",
    ];
    let fine = [
        "git log --oneline",
        "git status",
        "git diff --stat",
        "git show --stat",
        "git diff --name-only",
        "git cat-file -t abc",
        "git log --stat -5",
        "git stash list",
        "git branch",
        "git commit -m 'fix .env'",
        "git ls-files",
    ];
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    std::fs::write(dir.path().join("sub/a.rs"), "x").unwrap();
    git(&["init", "-q"]);
    git(&["add", "."]);
    for command in shows.iter().filter(|command| !command.contains('$')).chain(&fine) {
        assert!(!keys(command), "{command}: nothing to guard");
    }
    assert!(keys("git grep --no-index KEY") && keys("git grep --untracked KEY"));
    std::fs::write(dir.path().join(".env"), "KEY=x").unwrap();
    assert!(!keys("git diff"), "a key that is not tracked is not shown");
    git(&["add", ".env"]);
    for command in shows {
        assert!(keys(command), "{command} shows keys");
    }
    for command in fine {
        assert!(!keys(command), "{command} shows none");
    }
}
