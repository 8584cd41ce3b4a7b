//! The caches of build tools, which commands may write where the mode has workspace execute.
//!
//! Without them nothing that fetches what it depends on can be built. Each holds what later builds take from it: a command
//! that puts something else there reaches the next build of another project. That is the price; what is listed is only
//! what a tool fills itself and reads again when it builds. Not listed, and so not writable, is what runs without a build:
//! directories of programs (`~/.cargo/bin`, `~/.local/bin`, `~/go/bin`), toolchains (`~/.rustup`), settings and keys of
//! the tools (`~/.cargo/config.toml`, `~/.npmrc`, `~/.m2/settings.xml`, `~/.gradle/init.d`), and `~/.cache` as a whole:
//! shells and git hooks run files from there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::builtin::process::find;
use crate::builtin::variables::lookup;
use crate::place::Place;
use crate::policy::Zone;
use crate::policy::zone::Ground;

/// A directory that one tool fills.
struct Cache {
    /// The tool; where it is not installed, nothing is made for it.
    tool: &'static str,
    /// The variable that names the directory.
    variable: &'static str,
    /// Where that lies below the home directory when the variable is not set.
    usual: &'static str,
    /// The parts of it that may be written; the whole, where none is named.
    parts: &'static [&'static str],
    /// Whether it holds programs that are fetched and run at once: only with network execute.
    runs: bool,
}

const fn cache(tool: &'static str, variable: &'static str, usual: &'static str) -> Cache {
    Cache { tool, variable, usual, parts: &[], runs: false }
}

const fn parts(mut of: Cache, parts: &'static [&'static str]) -> Cache {
    of.parts = parts;
    of
}

const CACHES: &[Cache] = &[
    parts(
        cache("cargo", "CARGO_HOME", ".cargo"),
        &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"],
    ),
    cache("go", "GOCACHE", ".cache/go-build"),
    cache("go", "GOMODCACHE", "go/pkg/mod"),
    parts(cache("go", "GOPATH", "go"), &["pkg"]),
    cache("golangci-lint", "GOLANGCI_LINT_CACHE", ".cache/golangci-lint"),
    parts(cache("npm", "npm_config_cache", ".npm"), &["_cacache", "_logs"]),
    Cache { tool: "npx", variable: "npm_config_cache", usual: ".npm", parts: &["_npx"], runs: true },
    cache("yarn", "YARN_CACHE_FOLDER", ".cache/yarn"),
    parts(cache("yarn", "YARN_GLOBAL_FOLDER", ".yarn/berry"), &["cache", "metadata"]),
    cache("pnpm", "", ".cache/pnpm"),
    parts(cache("pnpm", "PNPM_HOME", ".local/share/pnpm"), &["store"]),
    cache("bun", "BUN_INSTALL_CACHE_DIR", ".bun/install/cache"),
    cache("deno", "DENO_DIR", ".cache/deno"),
    cache("node-gyp", "", ".cache/node-gyp"),
    cache("pip", "PIP_CACHE_DIR", ".cache/pip"),
    cache("uv", "UV_CACHE_DIR", ".cache/uv"),
    parts(cache("poetry", "POETRY_CACHE_DIR", ".cache/pypoetry"), &["cache", "artifacts"]),
    parts(cache("gradle", "GRADLE_USER_HOME", ".gradle"), &["caches", "daemon", "native", "notifications", ".tmp"]),
    cache("mvn", "", ".m2/repository"),
    cache("composer", "COMPOSER_CACHE_DIR", ".cache/composer"),
    cache("dotnet", "NUGET_PACKAGES", ".nuget/packages"),
    cache("zig", "ZIG_GLOBAL_CACHE_DIR", ".cache/zig"),
    cache("ccache", "CCACHE_DIR", ".cache/ccache"),
    cache("sccache", "SCCACHE_DIR", ".cache/sccache"),
    // `just` writes the recipes that it is about to run there, and removes them.
    parts(cache("just", "XDG_RUNTIME_DIR", ".cache"), &["just"]),
];

/// The caches of the tools that are installed, made where they are missing: a tool could not make them itself.
/// `fetches_code`: whether what was fetched may be run at once. `open` tells what may be written already.
pub(super) fn directories(ground: &Ground<'_>, fetches_code: bool, open: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let place = ground.place();
    let Some(home) = home(place) else { return Vec::new() };
    let wanted = CACHES.iter().filter(|cache| fetches_code || !cache.runs);
    let all: Vec<_> = wanted.flat_map(|cache| cache.paths(place, &home).map(move |path| (cache, path))).collect();
    // One that lies in another one is that one's: a command could put a link in its place.
    let inner = |path: &Path| all.iter().any(|(_, other)| path != other && path.starts_with(other));
    let own = all.iter().filter(|(_, path)| !open(path) && !inner(path));
    own.filter(|(cache, path)| cache.is_there(path, ground)).map(|(_, path)| path.clone()).collect()
}

/// The home directory, as programs see it.
fn home(place: &Place) -> Option<PathBuf> {
    let named = lookup(place, "HOME").map(PathBuf::from).or_else(|| place.home.clone());
    named.filter(|home| home.is_absolute() && home.parent().is_some() && home.is_dir())
}

impl Cache {
    fn paths<'p>(&self, place: &'p Place, home: &Path) -> impl Iterator<Item = PathBuf> + use<'p> {
        let named = (!self.variable.is_empty()).then(|| lookup(place, self.variable)).flatten();
        let named = named.map(PathBuf::from).filter(|dir| dir.is_absolute() && dir.parent().is_some());
        let base = named.unwrap_or_else(|| home.join(self.usual));
        let parts: &[&str] = if self.parts.is_empty() { &[""] } else { self.parts };
        parts.iter().map(move |part| if part.is_empty() { base.clone() } else { base.join(part) })
    }

    /// Whether the cache exists, or can be made.
    fn is_there(&self, path: &Path, ground: &Ground<'_>) -> bool {
        match fs::symlink_metadata(path) {
            // A link may lead to another disk, not to what is the system's or sensitive.
            Ok(about) if about.is_symlink() => ground.locate(path).zone == Some(Zone::External),
            Ok(_) => true,
            Err(_) => is_made(path) && find(self.tool, ground.place()).is_some() && fs::create_dir_all(path).is_ok(),
        }
    }
}

/// Whether a missing cache is made: not a file (those have a dot in front), and nothing below a directory that is
/// missing itself.
fn is_made(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let there = path.ancestors().skip(1).find(|above| above.is_dir());
    !hidden && there.is_some_and(|above| above.parent().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home directory, and a directory with these programs.
    fn place(programs: &[&str]) -> (tempfile::TempDir, Place) {
        use std::os::unix::fs::PermissionsExt;
        let at = tempfile::tempdir().unwrap();
        for name in ["home", "bin"] {
            fs::create_dir(at.path().join(name)).unwrap();
        }
        for name in programs {
            let file = at.path().join("bin").join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut place = Place::new("/nowhere");
        place.env = vec![("HOME".into(), at.path().join("home").into()), ("PATH".into(), at.path().join("bin").into())];
        (at, place)
    }

    fn check(programs: &[&str], variables: &[(&str, &str)], there: &[&str], fetches_code: bool, expect: &[&str]) {
        let (at, mut place) = place(programs);
        let here = |text: &str| at.path().join(text);
        place.env.extend(variables.iter().map(|(name, value)| ((*name).into(), here(value).into())));
        there.iter().for_each(|dir| fs::create_dir_all(here(dir)).unwrap());
        let found = directories(&Ground::new(&place), fetches_code, |path| path.starts_with(here("open")));
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(at.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(found, expect, "{programs:?} {variables:?} {there:?}");
        assert!(found.iter().all(|path| here(path).exists()));
    }

    #[test]
    fn caches_of_the_tools_that_are_there_can_be_written() {
        check(&[], &[], &[], false, &[]);
        check(&[], &[], &["home/.cache/pip", "home/.cache/other"], false, &["home/.cache/pip"]);
        check(&["cargo"], &[], &[], false, &["home/.cargo/registry", "home/.cargo/git"]);
        check(&["npm", "npx"], &[], &[], false, &["home/.npm/_cacache", "home/.npm/_logs"]);
        check(&["npx"], &[], &[], true, &["home/.npm/_npx"]);
        check(&["cargo"], &[("CARGO_HOME", "set")], &[], false, &["set/registry", "set/git"]);
        check(&["cargo"], &[("CARGO_HOME", "open/c")], &[], false, &[]);
        check(&["go"], &[("GOCACHE", "x")], &[], false, &["x", "home/go/pkg"]);
    }

    #[test]
    fn a_link_must_not_lead_to_the_system() {
        let (at, place) = place(&["pip", "uv"]);
        fs::create_dir(at.path().join("home/.cache")).unwrap();
        std::os::unix::fs::symlink("/etc", at.path().join("home/.cache/pip")).unwrap();
        std::os::unix::fs::symlink("/srv", at.path().join("home/.cache/uv")).unwrap();
        let found = directories(&Ground::new(&place), false, |_| false);
        assert_eq!(found, [at.path().join("home/.cache/uv")]);
    }
}
