//! That every test file is a module of its `main.rs`: a file that nobody lists is never run.

use super::{Finding, Source, code};

pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().filter_map(|source| unlisted(source, sources)).collect()
}

fn unlisted(source: &Source, sources: &[Source]) -> Option<Finding> {
    let (_, inside) = source.path.split_once("/tests/it/")?;
    if !inside.ends_with(".rs") || inside == "main.rs" {
        return None;
    }
    let (name, parents) = place(&source.path)?;
    let parent = parents.iter().find_map(|path| sources.iter().find(|source| source.path == *path));
    if parent.is_some_and(|parent| lists(&parent.text, &name)) {
        return None;
    }
    let message = format!("these tests never run: add `mod {name};` to {}", parents[0]);
    Some(Finding { path: source.path.clone(), line: 1, message })
}

/// The module that a file is, and the files that may list it.
fn place(path: &str) -> Option<(String, Vec<String>)> {
    let module = path.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let (folder, name) = module.rsplit_once('/')?;
    let parents = if folder.ends_with("/tests/it") {
        vec![format!("{folder}/main.rs")]
    } else {
        vec![format!("{folder}.rs"), format!("{folder}/mod.rs")]
    };
    Some((name.to_owned(), parents))
}

fn lists(text: &str, name: &str) -> bool {
    let code = code::without_comments(text);
    code.lines().any(|line| {
        let line = line.trim();
        line.strip_suffix(';')
            .and_then(|line| line.rsplit_once("mod "))
            .is_some_and(|(before, module)| module.trim() == name && (before.is_empty() || before.ends_with(' ')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_lists_is_found() {
        for (main, files, found) in [
            ("mod a;\nmod b;", &["a.rs", "b.rs"][..], &[][..]),
            ("mod a;\n", &["a.rs", "b.rs"], &["b.rs"]),
            ("// mod a;\n", &["a.rs"], &["a.rs"]),
            ("mod aa;\n", &["a.rs"], &["a.rs"]),
            ("pub(crate) mod a;\n", &["a.rs"], &[]),
            ("#[cfg(unix)] mod a;\n", &["a.rs"], &[]),
            ("#![cfg(test)]\nmod a;\n", &["a.rs"], &[]),
            ("mod a;\n", &["a/mod.rs"], &[]),
            ("", &["a/mod.rs"], &["a/mod.rs"]),
            ("mod a;\n", &["a.rs", "a/x.rs"], &["a/x.rs"]),
        ] {
            let file = |path: &str, text: &str| Source { path: format!("c/tests/it/{path}"), text: text.to_owned() };
            let mut sources: Vec<Source> = files.iter().map(|path| file(path, "")).collect();
            sources.push(file("main.rs", main));
            let paths: Vec<String> = check(&sources).into_iter().map(|finding| finding.path).collect();
            let expect: Vec<String> = found.iter().map(|path| format!("c/tests/it/{path}")).collect();
            assert_eq!(paths, expect, "{main:?} {files:?}");
        }
    }

    #[test]
    fn other_files_are_not_looked_at() {
        let source = |path: &str| Source { path: path.to_owned(), text: String::new() };
        assert_eq!(check(&[source("c/src/a.rs"), source("c/tests/it/data.txt"), source("c/tests/it/main.rs")]), []);
    }
}
