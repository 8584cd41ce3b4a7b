//! `agent-acp --setup`: asks for a provider and its key at a terminal, and keeps them where sessions find them.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::provider::models::{ProviderEntry, providers};
use agent_core::setup::Setup;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::made::{House, choose};

/// Asks, and keeps the answers. `terminal`: where the key is typed, which is not shown.
///
/// # Errors
/// What was typed is of no use, or cannot be kept; in words for a person.
pub async fn ask(house: &House, input: &mut impl BufRead, terminal: impl AsFd) -> Result<String, String> {
    let tell: agent_core::setup::Tell = Arc::new(|_: &[String]| {});
    let here = house.setup(house.world.cwd.clone(), Vec::new(), tell).map_err(|e| e.to_string())?;
    if let Ok(chosen) = choose(&here).await {
        let model = chosen.provider.model();
        return Ok(format!("There is a model already: {}/{}. Nothing was changed.", model.provider, model.name));
    }
    let remote: Vec<&ProviderEntry> = providers().iter().filter(|entry| !entry.key_var.is_empty()).collect();
    for (number, entry) in remote.iter().enumerate() {
        (house.log)(&format!("{:>3}  {} ({})", number + 1, entry.name, entry.model));
    }
    (house.log)("Which provider? Its number or name:");
    let named = line(input)?;
    let number = named.parse::<usize>().ok().and_then(|number| remote.get(number.checked_sub(1)?));
    let entry = number.or_else(|| remote.iter().find(|entry| entry.name == named));
    let entry = entry.ok_or_else(|| format!("there is no provider {named}"))?;
    (house.log)(&format!("Its key (what {} would hold; it is not shown):", entry.key_var));
    let key = hidden(terminal, || line(input))?;
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err("that is no key; nothing was changed".into());
    }
    keep(&here, &house.settings_file, entry.name, &key)
}

fn line(input: &mut impl BufRead) -> Result<String, String> {
    let mut line = String::new();
    let read = input.read_line(&mut line).map_err(|e| format!("reading the terminal: {e}"))?;
    if read == 0 { Err("nothing was typed".into()) } else { Ok(line.trim().to_owned()) }
}

/// Reads what a terminal does not show meanwhile.
fn hidden(terminal: impl AsFd, read: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    let Ok(shown) = tcgetattr(&terminal) else { return read() };
    let mut quiet = shown.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    // A terminal that cannot be made quiet is typed on all the same.
    let _ = tcsetattr(&terminal, OptionalActions::Flush, &quiet);
    let typed = read();
    let _ = tcsetattr(&terminal, OptionalActions::Flush, &shown);
    typed
}

/// Puts the key into a file for its owner alone, and tells the settings where it is.
fn keep(setup: &Setup, settings: &Path, provider: &str, key: &str) -> Result<String, String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |e: io::Error| format!("writing {path}: {e}")
    };
    let taken = ["provider", "apiKeyCommand"].into_iter().find(|key| setup.settings.is_set(key));
    if let Some(taken) = taken {
        return Err(format!("your settings have `{taken}` already; change it in {}", settings.display()));
    }
    let keys = setup.world.dirs.config.join("keys");
    fs::create_dir_all(&keys).map_err(failed(&keys))?;
    fs::set_permissions(&keys, Permissions::from_mode(0o700)).map_err(failed(&keys))?;
    let file = keys.join(provider);
    replace(&file, key, 0o600).map_err(failed(&file))?;
    let before = match fs::read_to_string(settings) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|e| format!("reading {}: {e}", settings.display()))?,
    };
    let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let path = file.display().to_string().replace('\'', r"'\''");
    let command = serde_json::Value::String(format!("cat '{path}'"));
    let text = format!("{before}{end}provider: {provider}\napiKeyCommand: {command}\n");
    replace(settings, &text, 0o600).map_err(failed(settings))?;
    Ok(format!("The key is in {}, and {} says so.", file.display(), settings.display()))
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let new: PathBuf = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&new, path)
}
