//! Random shell commands: every construct of the shell that is judged, over the programs that the table knows.

/// Numbers that depend on nothing but the seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n).unwrap()).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Paths that a command may name. `@` is the directory that holds everything there is to write to.
const INSIDE: [&str; 24] = [
    "a.txt",
    "b.txt",
    "data.csv",
    "conf.json",
    "src/main.rs",
    "src/lib.rs",
    "src",
    "sub",
    "d/e",
    "d/e/f.txt",
    ".",
    "./a.txt",
    "sub/../a.txt",
    "src/deep/c.txt",
    "src/deep",
    "Makefile",
    "tool.py",
    "run.sh",
    "a.tar",
    "b.zip",
    "empty",
    "odd name.txt",
    "l_in/lib.rs",
    "l_in",
];
const NEW: [&str; 10] =
    ["new.txt", "new", "src/new.rs", "sub/new", "d/new.txt", "out.log", "sub/../new2", "l_in/new.rs", "./n", "x.bak"];
const BEYOND: [&str; 18] = [
    "../notes.txt",
    "../other/x",
    "src/../../other/x",
    "~/notes.txt",
    "~/other/x",
    "$HOME/notes.txt",
    "@/out/s.txt",
    "@/out",
    "@/out/dir/x.txt",
    "l_out/s.txt",
    "l_out",
    "l_file",
    "l_out/dir/x.txt",
    "d/l_up/other/x",
    "..",
    "~",
    "../ws2/z",
    "@/out/new",
];
const GUARDED: [&str; 9] = [
    ".env",
    "key.pem",
    "~/.ssh/id_rsa",
    "sub/token.json",
    "/etc/hostname",
    "/etc/shells",
    "/etc/fstab",
    "l_etc/shells",
    "/etc/skel",
];
const FREE: [&str; 5] = ["/tmp/t/x", "/tmp/new", "/tmp/t", "/tmp", "/dev/null"];
const PATTERNS: [&str; 18] = [
    "*.txt",
    "*",
    "src/*",
    "src/*.rs",
    "[ab].txt",
    "?.txt",
    "l_*",
    "l_*/*",
    "../*",
    "d/*/f.txt",
    "*/",
    "@/out/*",
    "~/*.txt",
    ".e*",
    "k*.pem",
    "/etc/host*",
    "d/l_*/other/*",
    "{a,b}.txt",
];
const TEXTS: [&str; 14] =
    ["x", "hello", "fn", "a b", "-n", "1", "foo.*bar", "s/a/b/", "main", "''", "%s\\n", "3", "TODO", "é"];

pub struct Grammar {
    dice: Dice,
    root: String,
    deep: usize,
}

impl Grammar {
    pub fn new(seed: u64, root: &str) -> Self {
        Self { dice: Dice::new(seed), root: root.into(), deep: 0 }
    }

    /// A whole command.
    pub fn command(&mut self) -> String {
        self.deep = 0;
        let text = self.list();
        if self.dice.one_in(4) { self.broken(&text) } else { text }
    }

    /// The same text with something put in or taken out: most is still a command, and another one than it seems.
    fn broken(&mut self, text: &str) -> String {
        const PIECES: [&str; 26] = [
            "'", "\"", "\\", "$(", ")", "`", "${x:-", "}", " ", "\n", ";", "&&", "|", "&", "<", ">", "<<E\n", "#",
            "$'", "((", "))", "{", "$x", "*", "~", "=",
        ];
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=self.dice.below(2) {
            let at = self.dice.below(chars.len() + 1);
            let end = (at + self.dice.below(3)).min(chars.len());
            chars.splice(at..end, self.dice.pick(&PIECES).chars());
        }
        chars.into_iter().collect()
    }

    fn list(&mut self) -> String {
        let mut text = self.pipeline();
        for _ in 0..self.dice.below(3) {
            let joint = self.dice.pick(&[" && ", "; ", " || ", "\n", " & "]);
            text = format!("{text}{joint}{}", self.pipeline());
        }
        text
    }

    fn pipeline(&mut self) -> String {
        let mut text = self.construct();
        for _ in 0..[0, 0, 0, 1, 1, 2][self.dice.below(6)] {
            let stage = self.filter();
            text = format!("{text} | {stage}");
        }
        text
    }

    /// Mostly a plain command; now and then one that holds others.
    fn construct(&mut self) -> String {
        self.deep += 1;
        let text = if self.deep > 3 || !self.dice.one_in(3) { self.simple() } else { self.compound() };
        self.deep -= 1;
        text
    }

    fn compound(&mut self) -> String {
        let (body, other) = (self.list(), self.simple());
        let path = self.path();
        let name = self.dice.pick(&["f", "x", "i", "v1"]);
        match self.dice.below(28) {
            21 => format!("for ((i=0; i<2; i++)); do {body}; done"),
            22 => format!("{name}={path}; trap 'cat \"${name}\"' EXIT; {name}={}; {body}", self.path()),
            23 => format!(
                "f() {{ local {name}={path}; {}; }}; {name}={}; f; {}",
                self.using(name),
                self.path(),
                self.using(name)
            ),
            24 => format!("f() {{ \"$@\"; }}; f cat {path}; {other}"),
            25 => format!("for {name} in $(ls {path}); do {}; done", self.using(name)),
            26 => format!("{other} && until [ -e {path} ]; do {body}; break; done"),
            0 => format!("({body})"),
            1 => format!("{{ {body}; }}"),
            2 => format!("if {other}; then {body}; fi"),
            3 => format!("if [ -e {path} ]; then {body}; else {other}; fi"),
            4 => format!("for {name} in {path} {}; do {}; done", self.path(), self.using(name)),
            5 => format!("for {name} in 1 2; do {body}; break; done"),
            6 => format!("while {other}; do {body}; break; done"),
            7 => format!("f() {{ {body}; }}; f"),
            8 => format!("f() {{ {}; }}; f {path} {}", self.using("1"), self.path()),
            9 => format!("case {path} in *.txt) {body};; *) {other};; esac"),
            10 => format!("{name}={path}; {}", self.using(name)),
            11 => format!("{name}=\"{}\" {other}", self.text()),
            12 => format!("cd {path} && {body}"),
            13 => format!("cd {path}; {body}"),
            14 => format!("(cd {path} && {body}); {other}"),
            15 => format!("bash -c '{}'", body.replace('\'', "\"")),
            16 => format!("eval '{}'", body.replace('\'', "")),
            17 => format!("trap '{}' EXIT; {body}", other.replace('\'', "")),
            18 => format!("cat <<E | {}\n{path} $({other})\nE\n", self.filter()),
            19 => format!("pushd {path} >/dev/null && {body}; popd"),
            20 => format!(
                "{name}={}; while :; do {}; {name}={path}; break; done; {}",
                self.path(),
                self.using(name),
                self.using(name)
            ),
            _ => format!("find {path} -maxdepth 2 -type f | while read -r {name}; do {}; done", self.using(name)),
        }
    }

    /// A command that looks at what a variable holds.
    fn using(&mut self, name: &str) -> String {
        let new = self.dice.pick(&NEW);
        match self.dice.below(8) {
            0 => format!("cat \"${name}\""),
            1 => format!("cat ${name}"),
            2 => format!("cp \"${name}\" {new}"),
            3 => format!("echo \"${name}\" > {new}"),
            4 => format!("echo x > \"${name}.bak\""),
            5 => format!("ls -d ${{{name}}}"),
            6 => format!("cat \"sub/${name}\""),
            _ => format!("grep -r x \"${name}\" | head -3"),
        }
    }

    fn filter(&mut self) -> String {
        match self.dice.below(14) {
            0 => "head -3".into(),
            1 => "sort".into(),
            2 => format!("grep {}", self.text()),
            3 => "wc -l".into(),
            4 => format!("tee {}", self.target()),
            5 => format!("xargs {}", self.dice.pick(&["cat", "ls -d", "wc -l", "touch", "rm -f"])),
            6 => format!("xargs -I{{}} cp {{}} {}", self.target()),
            7 => "sed 's/a/b/g'".into(),
            8 => "awk '{print $1}'".into(),
            9 => "while read -r l; do echo \"$l\"; done".into(),
            10 => "while read -r l; do cat \"$l\"; done".into(),
            11 => format!("cat - {}", self.path()),
            12 => format!("sort -o {}", self.target()),
            _ => "xargs -0 cat".into(),
        }
    }

    /// A command with its redirections and wrappers.
    fn simple(&mut self) -> String {
        let mut text = self.program();
        if self.dice.one_in(4) {
            text = format!("{text} {}", self.redirect());
        }
        if self.dice.one_in(12) {
            text = format!("{} {text}", self.redirect());
        }
        if self.dice.one_in(8) {
            let wrapper = self.dice.pick(&[
                "env A=1",
                "timeout 3",
                "nice -n 5",
                "command",
                "time",
                "nohup",
                "!",
                "env -u A",
                "stdbuf -oL",
                "setsid -w",
                "timeout -k 1 3",
                "env -C sub",
                "xargs -r -n1",
            ]);
            text = format!("{wrapper} {text}");
        }
        text
    }

    fn redirect(&mut self) -> String {
        let (target, path) = (self.target(), self.path());
        match self.dice.below(12) {
            0 | 1 => format!("> {target}"),
            2 => format!(">> {target}"),
            3 => format!("2> {target}"),
            4 => format!("&> {target}"),
            5 => format!(">| {target}"),
            6 => format!("< {path}"),
            7 => format!("3<> {target}"),
            8 => format!("<<< {}", self.path()),
            9 => "2>&1".into(),
            10 => format!("< <(cat {path})"),
            _ => format!("> >(cat > {target})"),
        }
    }

    fn program(&mut self) -> String {
        match self.dice.below(10) {
            0..=3 => self.reader(),
            4..=6 => self.writer(),
            7 => self.searcher(),
            8 => self.git(),
            _ => self.odd(),
        }
    }

    fn reader(&mut self) -> String {
        let (path, other) = (self.path(), self.path());
        let text = self.text();
        match self.dice.below(28) {
            0..=3 => format!("cat {path}"),
            4 => format!("ls -la {path}"),
            5 => format!("head -2 {path} {other}"),
            6 => format!("wc -l {path}"),
            7 => format!("diff {path} {other}"),
            8 => format!("sort {path}"),
            9 => format!("echo {path} $(cat {other})"),
            10 => format!("printf '%s\\n' {path}"),
            11 => format!("cut -c1-3 {path}"),
            12 => format!("sed -n '1,2p' {path}"),
            13 => format!("awk '{{print}}' {path}"),
            14 => format!("jq . {path}"),
            15 => format!("test -f {path} && cat {other}"),
            16 => format!("[[ -d {path} && {text} == x ]]"),
            17 => format!("du -a {path}"),
            18 => format!("stat {path}"),
            19 => format!("file {path}"),
            20 => format!("md5sum {path}"),
            21 => format!("cmp {path} {other}"),
            22 => format!("xxd {path}"),
            23 => format!("cat <(cat {path}) {other}"),
            24 => format!("tail -n +2 {path}"),
            25 => format!("echo `cat {path}`"),
            26 => format!("comm {path} {other}"),
            _ => format!("ls {path} {other}"),
        }
    }

    fn writer(&mut self) -> String {
        let (target, path) = (self.target(), self.path());
        match self.dice.below(31) {
            0 | 1 => format!("echo {} > {target}", self.text()),
            2 => format!("cp {path} {target}"),
            3 => format!("cp -r {path} {target}"),
            4 => format!("cp -a {path} {target}"),
            5 => format!("mv {path} {target}"),
            6 => format!("rm -f {target}"),
            7 => format!("rm -rf {target}"),
            8 => format!("mkdir -p {target}"),
            9 => format!("touch {target}"),
            10 => format!("ln -s {path} {target}"),
            11 => format!("ln {path} {target}"),
            12 => format!("chmod u+w {target}"),
            13 => format!("sed -i 's/a/b/' {target}"),
            14 => format!("sed -n 'w {target}' {path}"),
            15 => format!("tee {target} < {path}"),
            16 => format!("dd if={path} of={target} status=none"),
            17 => format!("tar cf {target} {path}"),
            18 => format!("tar xf a.tar -C {target}"),
            19 => "tar xf a.tar".into(),
            20 => format!("truncate -s 3 {target}"),
            21 => format!("sort {path} -o {target}"),
            22 => format!("split -l 1 {path} {target}"),
            23 => format!("unzip -qo b.zip -d {target}"),
            24 => format!("zip -qr {target} {path}"),
            25 => format!("install -m 644 {path} {target}"),
            26 => format!("rmdir {target}"),
            27 => format!("cat > {target} <<'E'\n$(cat .env) {path}\nE\n"),
            28 => format!("cat > {target} <<E\n$(cat {path})\nE\n"),
            29 => format!("gzip -kf {path}"),
            _ => format!("mktemp {}XXXXXX", self.target()),
        }
    }

    fn searcher(&mut self) -> String {
        let (path, text) = (self.path(), self.text());
        match self.dice.below(17) {
            0 => format!("grep -n {text} {path}"),
            1 => format!("grep -rn {text} {path}"),
            2 => format!("grep -rl a {path} | xargs cat"),
            3 => format!("rg -n {text} {path}"),
            4 => format!("rg -l a {path} | xargs wc -l"),
            5 => format!("rg --hidden {text} {path}"),
            6 => format!("find {path} -name '*.txt'"),
            7 => format!("find {path} -type f -exec cat {{}} +"),
            8 => format!("find {path} -name '*.txt' -exec cp {{}} {} \\;", self.target()),
            9 => format!("find {path} -maxdepth 1 -name '*.bak' -delete"),
            10 => format!("find {path} -print0 | xargs -0 ls -d"),
            11 => format!("find {path} -name '*.txt' | xargs cat"),
            12 => format!("find {path} -fprint {}", self.target()),
            13 => format!("for f in $(find {path} -name '*.rs'); do cat $f; done"),
            14 => format!("grep -f {path} a.txt"),
            15 => format!("find -L {path} -type f -exec cat {{}} +"),
            _ => format!("grep -R {text} {path}"),
        }
    }

    fn git(&mut self) -> String {
        let (path, target) = (self.path(), self.target());
        match self.dice.below(18) {
            0 => "git status --short".into(),
            1 => format!("git log --oneline -- {path}"),
            2 => format!("git diff {path}"),
            3 => format!("git diff --no-index a.txt {path}"),
            4 => format!("git diff --output={target}"),
            5 => format!("git add {path}"),
            6 => "git commit -qam x".into(),
            7 => format!("git mv a.txt {target}"),
            8 => format!("git rm -qf {path}"),
            9 => format!("git show HEAD:{path}"),
            10 => format!("git -C {path} status"),
            11 => format!("git archive -o {target} HEAD"),
            12 => format!("git checkout -q -- {path}"),
            13 => format!("git clone -q . {target}"),
            14 => format!("git init -q {target}"),
            15 => format!("git ls-files | xargs cat; git grep -n a {path}"),
            16 => format!("git worktree add -q {target}"),
            _ => format!("git stash -q; git apply {path}"),
        }
    }

    /// Code, the network, and what the shell computes.
    fn odd(&mut self) -> String {
        let (path, target) = (self.path(), self.target());
        match self.dice.below(24) {
            0 => format!("python3 -c 'print(open(\"{path}\").read())'"),
            1 => format!("bash {path}"),
            2 => "./run.sh".into(),
            3 => format!("source {path}"),
            4 => "make".into(),
            5 => "curl -s -m1 http://127.0.0.1:9/x".into(),
            6 => format!("curl -s -m1 -o {target} http://127.0.0.1:9/x"),
            7 => format!("curl -s -m1 file://{path}"),
            8 => format!("exec 4>{target}; echo x >&4"),
            9 => format!("echo x > /dev/tcp/127.0.0.1/{}", self.dice.below(9) + 1),
            10 => format!("d=$(mktemp -d); cp {path} \"$d/\"; ls \"$d\""),
            11 => format!("i=0; i=$((i+1)); echo $i > \"{target}\""),
            12 => format!("x=$(basename {path}); cat \"$x\""),
            13 => format!("cat \"$(pwd)/a.txt\" \"$PWD/{path}\""),
            14 => format!("echo \"cat {path}\" | bash"),
            15 => format!("bash <<'E'\ncat {path}\nE\n"),
            16 => format!("read -r l < {path}; cat \"$l\""),
            17 => format!("perl -ne print {path}"),
            18 => format!("printf 'x' | tee {target} | cat"),
            19 => "wget -qO- -T1 -t1 http://127.0.0.1:9/".into(),
            20 => format!("export OUT={target}; echo x > $OUT"),
            21 => format!("a=({path} {target}); cat \"${{a[0]}}\""),
            22 => format!("cat ${{x:-{path}}}"),
            _ => format!("ls -d \"$(dirname {path})\""),
        }
    }

    fn text(&mut self) -> String {
        match self.dice.pick(&TEXTS) {
            text if text.contains([' ', '*']) => format!("'{text}'"),
            text => text.into(),
        }
    }

    /// A path that is read.
    fn path(&mut self) -> String {
        let plain = match self.dice.below(24) {
            0..=9 => self.dice.pick(&INSIDE),
            10 | 11 => self.dice.pick(&NEW),
            12..=15 => self.dice.pick(&BEYOND),
            16 | 17 => self.dice.pick(&GUARDED),
            18 => self.dice.pick(&FREE),
            _ => return self.dice.pick(&PATTERNS).replace('@', &self.root),
        };
        self.quoted(plain)
    }

    /// A path that is written.
    fn target(&mut self) -> String {
        let plain = match self.dice.below(20) {
            0..=7 => self.dice.pick(&NEW),
            8..=12 => self.dice.pick(&INSIDE),
            13..=16 => self.dice.pick(&BEYOND),
            17 => {
                self.dice.pick(&[".env", "key.pem", "~/.ssh/new", ".git/hooks/x", ".git/config", "~/.bashrc", ".envrc"])
            }
            _ => self.dice.pick(&FREE),
        };
        self.quoted(plain)
    }

    /// The same path as a shell may be told of it.
    fn quoted(&mut self, path: &str) -> String {
        let path = path.replace('@', &self.root);
        let expands = path.starts_with(['~', '$']);
        match self.dice.below(8) {
            0 if !expands => format!("'{path}'"),
            1 if !path.starts_with('~') => format!("\"{path}\""),
            2 if !expands && !path.contains(' ') => path.replacen('t', "\\t", 1),
            3 if !expands && !path.contains(' ') => format!("{}''{}", &path[..1], &path[1..]),
            _ if path.contains(' ') => format!("'{path}'"),
            _ => path,
        }
    }
}
