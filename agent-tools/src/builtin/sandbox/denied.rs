//! What a command's output says where the sandbox may have stopped it.

use crate::policy::{Mode, Rights};

/// What programs print when the system refused something.
const REFUSED: [&str; 7] = [
    "Permission denied",
    "permission denied",
    "Operation not permitted",
    "operation not permitted",
    "Read-only file system",
    "EACCES",
    "EPERM",
];

/// What they print besides when no socket can be had.
const UNREACHABLE: [&str; 6] = [
    "resolve host",
    "name resolution",
    "Name or service not known",
    "Network is unreachable",
    "connect to server",
    "ENOTFOUND",
];

/// What programs of another architecture end with.
const OTHER_NUMBERS: &str = "Bad system call";

/// The line for the model below the output of a command that ran with this mode and was confined; none where nothing
/// speaks for the sandbox having stopped it. The kernel does not say who refused, so neither does the line.
pub fn told(output: &str, failed: bool, mode: Mode) -> Option<String> {
    let closed = mode.network.intersection(Rights::READ_WRITE) == Rights::NONE;
    let has = |texts: &[&str]| texts.iter().any(|text| output.contains(text));
    let stopped = has(&REFUSED) || has(&[OTHER_NUMBERS]) || (closed && has(&UNREACHABLE));
    let network = if closed { ", and reach no network" } else { "" };
    (failed && stopped).then(|| {
        format!(
            "[if the system refused something: the sandbox lets this command write only where mode {mode} allows{network}; a person can allow more with --mode or --add-dir, or switch it off with sandbox: off]"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_failed_and_was_refused_something_is_told() {
        for (output, failed, mode, expect) in [
            ("bash: /x: Permission denied\n", true, "0467", Some("where mode 0467 allows; a person")),
            ("bash: /x: Permission denied\n", false, "0467", None),
            ("Error: EACCES: mkdir '/x'\n", true, "0447", Some("where mode 0447 allows; a person")),
            ("Could not resolve host: x\n", true, "0467", None),
            (
                "Could not resolve host: x\n",
                true,
                "0407",
                Some("where mode 0407 allows, and reach no network; a person"),
            ),
            ("Bad system call\n", true, "0467", Some("")),
            ("no such file\n", true, "0467", None),
        ] {
            let told = told(output, failed, mode.parse().unwrap());
            assert_eq!(told.is_some(), expect.is_some(), "{output} {told:?}");
            assert!(told.unwrap_or_default().contains(expect.unwrap_or_default()), "{output}");
        }
    }
}
