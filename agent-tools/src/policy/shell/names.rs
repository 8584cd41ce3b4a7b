//! What names of variables mean to shells and programs.

use super::words::Word;

/// Variables after which words mean something else.
pub(super) fn changes_shell(name: &str) -> bool {
    matches!(
        name,
        "IFS" | "CDPATH" | "HOME" | "GLOBIGNORE" | "BASHOPTS" | "SHELLOPTS" | "POSIXLY_CORRECT" | "PWD" | "OLDPWD"
    )
}

const PROGRAM_NAMES: [&str; 47] = [
    // Tells our own commands apart.
    "AGENT_CALL",
    "PATH",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELL",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "CC",
    "CXX",
    "LD",
    "AR",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTUP_TOOLCHAIN",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    "GOFLAGS",
    "JAVA_TOOL_OPTIONS",
    "JAVA_OPTS",
    "MAVEN_OPTS",
    "CLASSPATH",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_PATH",
    "TERMINFO",
    "XDG_CONFIG_HOME",
    "RIPGREP_CONFIG_PATH",
    "CURL_HOME",
    "WGETRC",
    "GCONV_PATH",
    "HISTFILE",
];
const PROGRAM_STARTS: [&str; 12] = [
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_FUNC_",
    "PYTHON",
    "PERL",
    "NODE_",
    "npm_config_",
    "NPM_CONFIG_",
    "CARGO_",
    "GEM_HOME",
    "LUA_",
];
const TAME: [&str; 12] = [
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONHASHSEED",
    "PYTHONUTF8",
    "NODE_ENV",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "GIT_TERMINAL_PROMPT",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "CARGO_NET_OFFLINE",
];

/// Variables that name programs or code that other programs run.
pub(super) fn names_program(name: &str) -> bool {
    !TAME.contains(&name)
        && (PROGRAM_NAMES.contains(&name) || PROGRAM_STARTS.iter().any(|start| name.starts_with(start)))
}

/// Variables that change what runs and do nothing else; of others the values may be paths that are written, or worse.
pub(super) fn only_runs(name: &str) -> bool {
    let names = "PATH LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SSH_COMMAND GIT_SEQUENCE_EDITOR PYTHONPATH NODE_PATH RUBYLIB PERL5LIB CLASSPATH";
    names.split(' ').any(|known| known == name)
}

/// Whether what is unknown in a value is no more than what the variable held before.
pub(super) fn only_adds(name: &str, value: &Word) -> bool {
    let raw = value.raw.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).unwrap_or(&value.raw);
    let before = raw.matches(&format!("${name}")).count() + raw.matches(&format!("${{{name}}}")).count();
    let known = raw.matches('$').count() == before + raw.matches("$HOME").count();
    !value.is_unknown() || (before > 0 && known && !raw.contains(['=', '(', '`', '~', '*', '?', '[']))
}

/// Variables that only say how something is shown, or that are somebody's own: lower case, and names of examples.
pub(super) fn is_harmless(name: &str, value: &Word) -> bool {
    const SHOWN: &str = "RUST_BACKTRACE RUST_LOG RUST_LIB_BACKTRACE CARGO_TERM_COLOR CARGO_INCREMENTAL NO_COLOR CLICOLOR CLICOLOR_FORCE FORCE_COLOR LANG LANGUAGE TZ DEBUG CI NODE_ENV PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING TERM COLUMNS LINES VERBOSE GIT_TERMINAL_PROMPT GIT_AUTHOR_DATE GIT_COMMITTER_DATE CARGO_NET_OFFLINE GIT_PAGER_IN_USE FOO BAR BAZ";
    let shown = SHOWN.split(' ').any(|known| known == name) || name.starts_with("LC_");
    let leads_nowhere = |v: &str| !v.starts_with(['/', '.', ':', '~', '(']) && !v.contains("..");
    // Single letters are nobody's but the command's.
    let single = name.len() == 1 && name != "_";
    (shown && value.literal().is_some_and(leads_nowhere)) || single || is_own_name(name)
}

/// A variable of nobody's but the command's: no family of programs reads it, and its value names nothing.
pub(super) fn is_own_variable(name: &str, value: &Word) -> bool {
    let family = FAMILIES.split_whitespace().any(|start| name.starts_with(start));
    let kind = KINDS.split_whitespace().any(|part| name.contains(part));
    let value = value.literal().unwrap_or("/");
    let leads = value.starts_with(['/', '.', ':', '~', '(', '-', '@']) || value.contains("..") || value.contains('=');
    name.len() > 2 && !family && !kind && !leads && !means_something(name)
}

/// How names start that programs read which come with a system, with languages and their tools.
const FAMILIES: &str = "
    AR AS_ AUTO AWK AWS AZURE BASH BAT_ BLACK_ BLOCK BROWSER BUILDKIT BUN BUNDLE BZIP CARGO CC CDPATH CFLAGS CGO CLANG
    CLASSPATH CLOUDSDK CMAKE COLUMNS COMPOSE COMP_ CONAN CONDA CONFIG_ COREPACK CPATH CPP CTEST CURL CVS CXX CYPRESS DBUS
    DEBEMAIL DEBUGINFOD DENO DIFF DISPLAY DOCKER DOTNET DYLD EDITOR ELECTRON EMACS ENV ESLINT EMAIL EX_ FC FIGNORE FLASK FOP
    FTP FZF GCC GCLOUD GCONV GDB GEM GETCONF GH_ GITHUB GIT GLOB GNU GO GPG GRADLE GREP GROFF GTK GZIP HELM HG HIST HOME
    HOST HTTP IFS INFO INPUTRC INSTALL IPY JAVA JDK JEST JULIA JUPYTER KRB5 KUBE LANG LC_ LD LESS LIB LINES LLVM LOC
    LOGNAME LS_ LUA LV LYNX MAIL MAKE MAKEFILE MALLOC MAN MAVEN MERCURIAL MESA META_ METEOR MINIO MIX_ MOCHA MYPY NETRC
    NINJA NIX NLS NM NODE NOX NO_ NPM NSS NUGET NVM OBJC OLDPWD OMP OPENSSL OS_ P4 PAGER PAGE PARALLEL PASS PATCH PATH PERL
    PG PHP PIP PKG PLAYWRIGHT PNPM POETRY POSIX PRE_COMMIT PRETTIER PROMPT PS PUPPETEER PWD PY QT R_ RA_ RAILS RAKE RANDOM
    READLINE REQUESTS RES_ RIPGREP RSH RSYNC RUBY RUFF RUST SBT SCCACHE SCREEN SDK SED SHELL SIMPLE_ SNAP SQL SSH SSL STRACE
    STY SUDO SVN SWIFT SYSTEMD TAPE TAR TCL TEMP TERM TEXT TF_ TIME TK_ TMOUT TMP TMUX TOX TS_ TSC TYPE TZ UNIX UNZIP
    USER UV_ VAGRANT VCS VERSION_CONTROL VIM VIRTUAL VISUAL VSCODE WATCH WGET WORKON XAUTH XDG XML XZ YARN ZDOT ZIG ZIP
    ZSH ZSTD _
";
/// What names hold that lead programs to files, other programs or options of theirs.
const KINDS: &str =
    "PATH DIR HOME ROOT CONF CONFIG OPTS OPTIONS FLAGS ARGS COMMAND CMD EXEC PROXY PROGRAM WRAPPER EDITOR
    PAGER SHELL TOOLCHAIN PRELOAD PLUGIN HOOK SOCK CERT KEYLOG RC_ RCFILE";

/// Lower case and read by no program that we know of.
pub(super) fn is_own_name(name: &str) -> bool {
    let odd = ["proxy", "npm", "pip", "auto_resume", "histchars", "config"];
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.len() < 40 && name != "_" && name.chars().all(lower) && !odd.iter().any(|odd| name.contains(odd))
}

/// Variables that a shell or a program reads: none may be set to whatever comes.
pub(super) fn means_something(name: &str) -> bool {
    const STARTS: [&str; 12] =
        ["BASH", "HIST", "COMP_", "READLINE_", "MAIL", "COPROC", "PS", "LC_", "GIT_", "SSH", "TMP", "XDG_"];
    const NAMES: &str = "ENV FIGNORE EXECIGNORE FUNCNEST GROUPS INPUTRC TMOUT TIMEFORMAT TEMPDIR OPTIND OPTARG OPTERR RANDOM SECONDS LINENO UID EUID PPID REPLY MAPFILE SHLVL DIRSTACK LANG LANGUAGE TZ TERM USER LOGNAME _ auto_resume histchars";
    let odd = !is_own_name(name) && name.to_ascii_lowercase().contains("proxy");
    // Files that programs read when they start.
    let start_up = ["RC", "RCFILE", "RCPATH"].iter().any(|end| name.ends_with(end));
    odd || start_up
        || changes_shell(name)
        || names_program(name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || NAMES.split(' ').any(|known| known == name)
}

/// Variables that hold a whole command line, or text in which commands are put in.
pub(super) fn is_command_line(name: &str) -> bool {
    let ends = ["_COMMAND", "PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "ASKPASS"];
    ends.iter().any(|end| name.ends_with(end)) || name.starts_with("PS")
}
