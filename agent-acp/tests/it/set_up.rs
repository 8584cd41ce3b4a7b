//! `agent-acp --setup`: a model is set up at a terminal, and found by sessions.

use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn a_model_is_set_up_at_a_terminal_and_found_by_sessions() {
    let home = tempfile::tempdir().unwrap();
    let set_up = |typed: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-acp"));
        command.arg("--setup").current_dir(home.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("AGENT_HOME", home.path()).env("AGENT_NO_DISCOVERY", "1");
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (typed, code, part) in [
        ("", 2, "nothing was typed"),
        ("nobody\n", 2, "there is no provider nobody"),
        ("openai\n\n", 2, "that is no key"),
        ("openai\nsk-test 1\n", 2, "that is no key"),
        ("openai\nsk-test-1\n", 0, "The key is in"),
        ("openai\nsk-test-2\n", 0, "There is a model already: openai/"),
    ] {
        let (got, told) = set_up(typed);
        assert!(got == Some(code) && told.contains(part), "{typed:?}: {got:?} {told}");
        assert!(!told.contains("sk-test"), "{told}");
    }
    let key = home.path().join("keys/openai");
    assert_eq!(std::fs::read_to_string(&key).unwrap(), "sk-test-1");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.metadata().unwrap().permissions()) & 0o777, 0o600);
}
