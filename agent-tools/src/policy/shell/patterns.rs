//! Which files a pattern may match.

use std::path::{Path, PathBuf};

use super::words::{Piece, Word};

/// What a pattern comes to.
pub(super) struct Expanded {
    /// The files that it matches.
    pub(super) found: Vec<PathBuf>,
    /// The directories that are looked into for it and lie behind a link.
    pub(super) through: Vec<PathBuf>,
    /// How many entries were looked at.
    pub(super) looked: usize,
}

/// The files that a pattern matches. None where there are too many.
pub(super) fn expand(dir: &Path, parts: &[(String, bool)], budget: usize) -> Option<Expanded> {
    // Each with whether a link is on its way.
    let mut found = vec![(dir.to_path_buf(), false)];
    let (mut looked, mut through, mut varies) = (0, Vec::new(), false);
    for (at, (part, literal)) in parts.iter().enumerate() {
        if *literal {
            let root = at == 0 && part.is_empty() && parts.len() > 1;
            for (path, linked) in &mut found {
                if root {
                    *path = PathBuf::from("/");
                } else {
                    path.push(part);
                    *linked |= varies && path.is_symlink();
                }
            }
            continue;
        }
        let mut next = Vec::new();
        for (dir, linked) in &found {
            looked += 1;
            if looked > budget {
                return None;
            }
            if part.starts_with(['.', '[', '?']) && matches(part, "..") {
                next.push((dir.join(".."), *linked));
            }
            let Ok(entries) = std::fs::read_dir(dir) else { continue };
            through.extend(linked.then(|| dir.clone()));
            for entry in entries.flatten() {
                looked += 1;
                if looked > budget {
                    return None;
                }
                let name = entry.file_name();
                if name.to_str().is_none_or(|name| matches(part, name)) {
                    let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                    next.push((entry.path(), *linked || link));
                }
            }
        }
        found = next;
        varies = true;
    }
    Some(Expanded { found: found.into_iter().map(|(path, _)| path).collect(), through, looked })
}

/// Whether a pattern may match a name. Brackets are taken for any character: too much is found rather than too little.
pub(in crate::policy) fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with(['.', '[']) {
        return false;
    }
    let pattern: Vec<char> = simplified(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// From a bracket on, anything.
fn simplified(pattern: &str) -> Vec<char> {
    match pattern.split_once('[') {
        Some((start, _)) => start.chars().chain(['*']).collect(),
        None => pattern.chars().collect(),
    }
}

/// A pattern cut at its slashes, each part with whether it is literal.
pub(super) fn pattern_parts(word: &Word) -> Vec<(String, bool)> {
    let mut parts = vec![(String::new(), true)];
    for piece in &word.pieces {
        let (text, literal) = match piece {
            Piece::Text(text) => (text.as_str(), true),
            Piece::Glob(text) => (text.as_str(), false),
            Piece::Below(_) | Piece::Number | Piece::Job | Piece::Unknown => ("*", false),
        };
        for (i, part) in text.split('/').enumerate() {
            if i > 0 {
                parts.push((String::new(), true));
            }
            if let Some(last) = parts.last_mut() {
                last.0.push_str(part);
                last.1 &= literal;
            }
        }
    }
    parts
}
