//! Random commands run where they can do no harm, while everything that they do is written down: all of it must be what
//! the classifier said they need.
//!
//! Each runs in a namespace of its own kind: all that is mounted can only be read, except two file systems in memory
//! that hold a made-up home. `RECORDER_COUNT` and `RECORDER_SEED` ask for more commands, or for others;
//! `cargo xtask soak` does.

mod grammar;
mod log;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agent_tools::policy::shell::judge;
use agent_tools::policy::zone::locate;
use agent_tools::policy::{Rights, Zone};
use agent_tools::{Needs, Place};
use grammar::Grammar;
use log::{Deed, Event};

/// Commands that are recorded, unless another number is asked for.
const COUNT: usize = 1_000;
const SEED: u64 = 20_261_130;
/// Processes at work: each has a namespace and a home of its own.
const PARTS: u64 = 2;
/// The made-up machine, in memory.
const ROOT: &str = "/mnt";

/// What is asked for by variables of the environment.
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn whatever_commands_do_they_were_said_to_need() {
    if let Some(part) = asked("RECORDER_PART") {
        return record(part);
    }
    for program in ["strace", "unshare"] {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        assert!(found.is_ok(), "`{program}` is missing: install it with the system's package manager");
    }
    let seed = asked("RECORDER_SEED").unwrap_or(SEED);
    let parts: Vec<_> = (0..PARTS).map(|part| start(part, seed)).collect();
    let mut told = String::new();
    for part in parts {
        let output = part.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "the recorder ended early:\n{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        told.push_str(&text);
    }
    let lines = |start: &str| -> Vec<String> {
        told.lines().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
    };
    lines("recorded: ").iter().for_each(|line| println!("{line}"));
    let found = lines("beyond: ");
    assert!(found.is_empty(), "{} commands did what they were not said to need:\n{}", found.len(), found.join("\n"));
}

/// Starts this test again, in a namespace where only what is made up can change.
fn start(part: u64, seed: u64) -> std::process::Child {
    let user = if rustix_is_root() { "-mnpf" } else { "-Urmnpf" };
    let count = asked("RECORDER_COUNT").unwrap_or(COUNT as u64).div_ceil(PARTS);
    Command::new("unshare")
        .args([user, "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "recorder::whatever_commands_do_they_were_said_to_need", "--nocapture"])
        .env("RECORDER_PART", part.to_string())
        .env("RECORDER_COUNT", count.to_string())
        .env("RECORDER_SEED", seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn rustix_is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// All that is mounted can only be read from here on, but for two file systems in memory and a handful of devices.
const SETTING: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs -o size=96m,mode=755 none "$ROOT"
mkdir "$ROOT/.dev"
for name in null zero full random urandom tty; do
    touch "$ROOT/.dev/$name"
    mount --bind "/dev/$name" "$ROOT/.dev/$name"
done
ln -s /proc/self/fd "$ROOT/.dev/fd"
for n in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${n%:*}" "$ROOT/.dev/${n#*:}"; done
mount --rbind "$ROOT/.dev" /dev
mount -t tmpfs -o size=32m,mode=1777 none /tmp
while read -r _ _ _ _ at _; do
    case $at in "$ROOT"*|/tmp|/tmp/*|/dev|/dev/*) ;; *) mount -o remount,bind,ro "$at" 2>/dev/null || true ;; esac
done < /proc/self/mountinfo
for at in / /usr /etc /root /home /var; do
    [ ! -d "$at" ] || ! touch "$at/.recorder" 2>/dev/null || { rm -f "$at/.recorder"; echo "$at can be written" >&2; exit 1; }
done
"#;

/// The made-up home, with all that a path can lead to.
const WORLD: &str = r#"
set -e
mkdir -p "$ROOT/.made" && cd "$ROOT/.made"
mkdir -p home/u/ws home/u/other home/u/ws2 home/u/.ssh out/dir tmp/t
cd home/u
echo note > notes.txt; echo o > other/x; echo z > ws2/z; echo k > .ssh/id_rsa; echo s > ../../out/s.txt
echo x > ../../out/dir/x.txt; echo t > ../../tmp/t/x; echo : > .bashrc
cd ws
mkdir -p src/deep sub d/e empty
printf 'a\nb.txt\n../notes.txt\n%s/out/s.txt\n.env\n' "$ROOT" > a.txt; echo b > b.txt; echo 'x,1' > data.csv; echo '{}' > conf.json
echo 'fn main() {}' > src/main.rs; echo 'fn lib() {}' > src/lib.rs; echo c > src/deep/c.txt; echo f > d/e/f.txt
printf 'all:\n\t@echo made\n' > Makefile; echo 'print(1)' > tool.py; printf '#!/bin/sh\necho run\n' > run.sh; chmod +x run.sh
echo KEY=1 > .env; echo pem > key.pem; echo '{}' > sub/token.json; echo odd > 'odd name.txt'
git init -q .; git add a.txt b.txt src data.csv; git -c user.name=u -c user.email=u@h.example commit -qm first; git config user.name u
git config user.email u@h.example
ln -s "$ROOT/out" l_out; ln -s ../notes.txt l_file; ln -s src l_in; ln -s /etc l_etc; ln -s ../.. d/l_up
tar cf a.tar l_out src/lib.rs; zip -q b.zip b.txt src/lib.rs 2>/dev/null || echo none > b.zip
"#;

/// The variables that commands get.
fn environment() -> Vec<(&'static str, String)> {
    vec![
        ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
        ("HOME", format!("{ROOT}/home/u")),
        ("LANG", "C.UTF-8".into()),
    ]
}

fn shell(script: &str) {
    let status = Command::new("bash")
        .args(["-c", script])
        .env_clear()
        .envs(environment())
        .env("ROOT", ROOT)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "the made-up machine cannot be set up");
}

fn fresh() {
    shell(
        r#"rm -rf "$ROOT/home" "$ROOT/out" /tmp/* /tmp/.[!.]*; cp -a "$ROOT/.made/home" "$ROOT/.made/out" "$ROOT/"; cp -a "$ROOT/.made/tmp/." /tmp/; rm -f "$ROOT"/log.*"#,
    );
}

fn record(part: u64) {
    shell(SETTING);
    shell(WORLD);
    let (seed, count) = (asked("RECORDER_SEED").unwrap(), asked("RECORDER_COUNT").unwrap());
    let mut place = Place::new(format!("{ROOT}/home/u/ws"));
    place.home = Some(format!("{ROOT}/home/u").into());
    place.env = environment().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let (mut recorded, mut unsure, mut deeds, mut at) = (0, 0, 0, seed.wrapping_add(part));
    let mut clean = false;
    while recorded < count {
        if !clean {
            fresh();
        }
        let command = Grammar::new(at, ROOT).command();
        let needs = judge(&command, &place);
        clean = needs.unsure.is_some();
        if clean {
            unsure += 1;
        } else {
            recorded += 1;
            let events = run(&command, &place.cwd);
            deeds += events.len();
            clean = !events.iter().any(|event| {
                event.deed == Deed::Write && event.path.starts_with(ROOT) || event.path.starts_with("/tmp")
            });
            if let Some(beyond) = beyond(&command, &needs, &events, &place) {
                println!("beyond: seed {at}: {command:?} was said to need {}: {beyond}", needs.mode);
            }
        }
        at = at.wrapping_add(PARTS);
    }
    println!(
        "recorded: {recorded} commands with {deeds} deeds, {unsure} more could not be judged, seeds from {seed} in part {part}"
    );
}

/// Runs a command and tells what it did.
fn run(command: &str, cwd: &Path) -> Vec<Event> {
    let calls = "trace=open,openat,openat2,creat,execve,chdir,fchdir,clone,clone3,fork,vfork,connect,sendto,sendmsg,unlink,rmdir,mkdir,mknod,lchown,truncate,chmod,chown,utime,utimes,setxattr,unlinkat,mkdirat,mknodat,fchmodat,fchownat,utimensat,rename,link,renameat,renameat2,linkat,symlink,symlinkat,fchmod,fchown";
    let log = format!("{ROOT}/log");
    // What a command leaves behind ends with it: each has processes of its own.
    let status = Command::new("timeout")
        .args(["-s", "KILL", "5", "unshare", "-pf", "--kill-child=KILL", "strace"])
        .args(["-ff", "-y", "--seccomp-bpf", "-qq", "-s", "200", "-e", calls, "-o", &log])
        .args(["bash", "-c", command])
        .current_dir(cwd)
        .env_clear()
        .envs(environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "the recorder does not start");
    log::events(Path::new(ROOT), "log", cwd)
}

/// What was done that the needs do not cover.
fn beyond(command: &str, needs: &Needs, events: &[Event], place: &Place) -> Option<String> {
    let mut told = String::new();
    for event in events.iter().filter(|event| !is_its_own(event) && !is_of_a_tree(command, event, place)) {
        let (zone, rights) = needed(event, place);
        let of_code = event.code && event.deed != Deed::Run && needs.mode.workspace.covers(Rights::EXECUTE);
        let had = zone.map_or(Rights::ALL, |zone| needs.mode.get(zone));
        // Who may run what lies there may read it.
        let had = if zone != Some(Zone::System) && had.covers(Rights::EXECUTE) { had.union(Rights::READ) } else { had };
        let given = event.deed == Deed::Run && event.path.starts_with("/usr") && runs_any(needs);
        if !had.covers(rights) && !of_code && !given {
            let _ = write!(told, "[{:?} {} by {}] ", event.deed, event.path.display(), event.program);
        }
    }
    (!told.is_empty()).then_some(told)
}

/// Whether code may run that lies anywhere.
fn runs_any(needs: &Needs) -> bool {
    let mode = needs.mode;
    [mode.system, mode.external, mode.network, mode.workspace].iter().any(|rights| rights.covers(Rights::EXECUTE))
}

/// The zone of what was done, and the right that it takes there.
fn needed(event: &Event, place: &Place) -> (Option<Zone>, Rights) {
    let zone = || {
        // A link that was changed is not what it leads to.
        let is_link = event.path.is_symlink();
        let path = if is_link { event.path.with_file_name("plain") } else { event.path.clone() };
        locate(&path.to_string_lossy(), place).zone
    };
    match event.deed {
        Deed::Read => (zone(), Rights::READ),
        Deed::Write => (zone(), Rights::WRITE),
        Deed::Run if event.code => {
            (zone().filter(|zone| *zone != Zone::System).or(Some(Zone::Workspace)), Rights::EXECUTE)
        }
        Deed::Run => (None, Rights::NONE),
        Deed::Connect => (Some(Zone::Network), Rights::READ),
    }
}

/// A key that goes with the tree that it lies in, where the tree was named: that is told as what is lost.
fn is_of_a_tree(command: &str, event: &Event, place: &Place) -> bool {
    let removes = matches!(event.program.as_str(), "rm" | "chmod") && event.deed == Deed::Write;
    let beside = locate(&event.path.with_file_name("plain").to_string_lossy(), place).zone;
    removes && command.contains("-rf") && beside != Some(Zone::System)
}

/// What programs do by themselves, whatever they are told to do.
fn is_its_own(event: &Event) -> bool {
    // Programs, libraries, what they come with, and what tells them of the machine.
    const DATA: [&str; 7] = ["/usr", "/lib", "/lib64", "/bin", "/proc", "/sys", "/dev"];
    const SETTINGS: [&str; 21] = [
        "ld.so.cache",
        "ld.so.preload",
        "passwd",
        "group",
        "nsswitch.conf",
        "localtime",
        "locale.alias",
        "magic",
        "ssl",
        "resolv.conf",
        "hosts",
        "host.conf",
        "gai.conf",
        "gitconfig",
        "wgetrc",
        "perl",
        "python3",
        "python3.11",
        "inputrc",
        "terminfo",
        "services",
    ];
    let path = &event.path;
    let settings = || SETTINGS.iter().any(|name| path.starts_with(PathBuf::from("/etc").join(name)));
    let reads = event.deed == Deed::Read && (DATA.iter().any(|dir| path.starts_with(dir)) || settings());
    let devices = event.deed == Deed::Write && path.starts_with("/dev");
    // git reads what it compares with its index, and writes down what it found.
    let compared = event.program == "git" && event.deed == Deed::Read && path.starts_with(format!("{ROOT}/home/u/ws"));
    let index = event.program == "git" && path.file_name().is_some_and(|name| name == "index" || name == "index.lock");
    // A walk keeps the directory at hand that it started in.
    let walks = matches!(event.program.as_str(), "find" | "rm" | "du" | "cp" | "chmod");
    let started = walks && event.deed == Deed::Read && *path == Path::new(ROOT).join("home/u/ws");
    reads || devices || compared || index || started
}

#[test]
fn logs_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    fs::create_dir(at("sub")).unwrap();
    let sub = at("sub").display().to_string();
    let lines = format!(
        "execve(\"/usr/bin/bash\", [\"bash\", \"-c\", \"x, y\"], 0x1 /* 3 vars */) = 0\n\
         openat(AT_FDCWD<{sub}>, \"a\\303\\251\", O_WRONLY|O_CREAT, 0666) = 3<{sub}/a\\303\\251>\n\
         openat(AT_FDCWD<{sub}>, \"gone\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
         chdir(\"{sub}\") = 0\nvfork() = 12\nrename(\"a\", \"b\") = 0\n\
         connect(3<socket:[1]>, {{sa_family=AF_INET, sin_port=htons(9)}}, 16) = -1 ECONNREFUSED (Connection refused)\n"
    );
    fs::write(at("log.11"), lines).unwrap();
    fs::write(at("log.12"), "execve(\"/usr/bin/python3\", [\"python3\"], 0x1) = 0\nunlink(\"q\") = 0\n").unwrap();
    let events = log::events(&at(""), "log", &at(""));
    let told: Vec<String> = events
        .iter()
        .map(|e| format!("{:?} {} {} {}", e.deed, e.path.display(), e.program, e.code).replace(&sub, "@"))
        .collect();
    assert_eq!(told[0], "Run /usr/bin/bash bash false");
    assert_eq!(told[1], "Write @/aé bash false");
    assert!(told[2].starts_with("Run /usr/bin/python3") && told[2].ends_with("true"), "{}", told[2]);
    assert!(told[3].starts_with("Write @/q python3") && told[3].ends_with("true"), "{}", told[3]);
    assert_eq!(told[4..], ["Write @/a bash false", "Write @/b bash false", "Connect host bash false"]);
}
