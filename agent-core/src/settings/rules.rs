//! What a person has allowed for good: `rules.json` in the user's directory of settings, written by the program.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use agent_tools::GrantKey;
use agent_tools::policy::Mode;
use serde::{Deserialize, Serialize};

/// The file's name.
pub const FILE: &str = "rules.json";

#[derive(Default, Serialize, Deserialize)]
struct Rules {
    allow: Vec<Rule>,
}

#[derive(Serialize, Deserialize)]
struct Rule {
    /// What is allowed, in the words of the question.
    subject: String,
    /// As far as these rights.
    mode: String,
}

/// The rules of a file; none where there is no file.
///
/// # Errors
/// A file that is there and cannot be read or understood, in words for a person. Nothing is allowed then.
pub fn load(file: &Path) -> Result<Vec<GrantKey>, String> {
    let rules = read(file).map_err(|why| format!("the saved rules in {} are not used: {why}", file.display()))?;
    rules.allow.iter().map(|rule| grant(rule, file)).collect()
}

/// Adds rules to a file, whole or not at all.
///
/// # Errors
/// A file that cannot be read, understood or written, in words for a person. It is as it was.
pub fn add(file: &Path, grants: &[GrantKey]) -> Result<(), String> {
    let failed = |why: String| format!("the rule was not saved in {}: {why}", file.display());
    let mut rules = read(file).map_err(failed)?;
    for grant in grants {
        let rule = Rule { subject: grant.subject.clone(), mode: grant.mode.to_string() };
        if !rules.allow.iter().any(|known| known.subject == rule.subject && known.mode == rule.mode) {
            rules.allow.push(rule);
        }
    }
    write(file, &rules).map_err(|e| failed(e.to_string()))
}

fn read(file: &Path) -> Result<Rules, String> {
    match fs::read(file) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Rules::default()),
        Err(e) => Err(e.to_string()),
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| format!("{e}. Mend the file, or delete it")),
    }
}

fn grant(rule: &Rule, file: &Path) -> Result<GrantKey, String> {
    let mode: Mode = rule
        .mode
        .parse()
        .map_err(|_| format!("the saved rules in {} are not used: the mode {:?} is none", file.display(), rule.mode))?;
    Ok(GrantKey::new(&rule.subject, mode))
}

fn write(file: &Path, rules: &Rules) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let beside = file.with_extension(format!("json.{}", std::process::id()));
    let mut out = fs::File::create(&beside)?;
    out.write_all(&serde_json::to_vec_pretty(rules)?)?;
    out.sync_data()?;
    fs::rename(&beside, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_kept_once_and_a_file_that_is_not_understood_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep").join(FILE);
        assert_eq!(load(&file), Ok(vec![]));
        let grants = [GrantKey::new("the command `git push`", "0020".parse().unwrap()), GrantKey::new("x", Mode::NONE)];
        for _ in 0..2 {
            add(&file, &grants).unwrap();
        }
        assert_eq!(load(&file), Ok(grants.to_vec()));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
        for broken in ["{", r#"{"allow": [{"subject": "x"}]}"#, r#"{"allow": [{"subject": "x", "mode": "8888"}]}"#] {
            fs::write(&file, broken).unwrap();
            assert!(load(&file).unwrap_err().contains("are not used"), "{broken}");
            if !broken.contains("8888") {
                assert!(add(&file, &grants).unwrap_err().contains("was not saved"), "{broken}");
                assert_eq!(fs::read_to_string(&file).unwrap(), broken);
            }
        }
    }
}
