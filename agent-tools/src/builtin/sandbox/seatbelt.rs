//! macOS: the profile with which a command is started. The text is tested; on a Mac it was never tried.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::Limits;

/// A program and its arguments that stand in front of a command.
pub(in crate::builtin) type Front = (PathBuf, Vec<OsString>);

/// The system's program that confines another one.
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "compiled and tested everywhere, used on macOS"))]
const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// `sandbox-exec` with the profile of these limits.
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "compiled and tested everywhere, used on macOS"))]
pub(super) fn front(limits: &Limits) -> Front {
    let profile = profile(limits.writable.as_deref(), limits.network);
    (PROGRAM.into(), vec!["-p".into(), profile.into()])
}

/// A profile that lets all be written that lies at or below these paths (everywhere, where there are none), and other
/// hosts be reached where `network` says so. Of two lines that apply the later one counts.
pub fn profile(writable: Option<&[PathBuf]>, network: bool) -> String {
    let mut text = String::from("(version 1)\n(allow default)\n");
    if let Some(paths) = writable {
        text.push_str("(deny file-write*)\n");
        for path in paths {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "(allow file-write* (subpath {}))", quoted(&seen(path)));
        }
    }
    if !network {
        text.push_str("(deny network*)\n(allow network* (remote unix-socket))\n(allow network* (local unix-socket))\n");
    }
    text.push_str("(deny signal)\n(allow signal (target same-sandbox))\n");
    text
}

/// The path as the kernel sees it: three directories of the root are links there.
fn seen(path: &Path) -> PathBuf {
    let linked = ["/tmp", "/var", "/etc"].iter().any(|link| path.starts_with(link));
    match path.strip_prefix("/") {
        Ok(below) if linked => Path::new("/private").join(below),
        _ => path.to_path_buf(),
    }
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_closes_first_and_opens_then() {
        let writable = ["/Users/ada/work", "/tmp", "/dev/null", "/odd \"name\"\\"].map(PathBuf::from);
        let expect = r#"(version 1)
(allow default)
(deny file-write*)
(allow file-write* (subpath "/Users/ada/work"))
(allow file-write* (subpath "/private/tmp"))
(allow file-write* (subpath "/dev/null"))
(allow file-write* (subpath "/odd \"name\"\\"))
(deny network*)
(allow network* (remote unix-socket))
(allow network* (local unix-socket))
(deny signal)
(allow signal (target same-sandbox))
"#;
        assert_eq!(profile(Some(&writable), false), expect);
    }

    #[test]
    fn what_is_open_is_not_mentioned() {
        let expect = "(version 1)\n(allow default)\n(deny signal)\n(allow signal (target same-sandbox))\n";
        assert_eq!(profile(None, true), expect);
    }

    #[test]
    fn the_profile_stands_in_front_of_the_command() {
        let limits = Limits { writable: None, network: true, required: false };
        let (program, arguments) = front(&limits);
        assert_eq!(program, Path::new("/usr/bin/sandbox-exec"));
        assert_eq!(arguments, ["-p".into(), OsString::from(profile(None, true))]);
    }
}
