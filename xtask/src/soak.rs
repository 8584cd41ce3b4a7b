//! Tests for longer than each change has time for, with other numbers every time: random commands, kills, broken input.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// A test that can run for longer.
struct Soak {
    name: &'static str,
    /// What cargo tests, and which tests of it.
    test: &'static [&'static str],
    /// The variable for how much, and how much that is unless something else is asked for.
    much: (&'static str, u64),
    /// What that counts, in words.
    unit: &'static str,
    /// The variable for the seed.
    seed: Option<&'static str>,
}

const SOAKS: [Soak; 3] = [
    Soak {
        name: "commands",
        test: &["-p", "agent-tools", "--test", "it", "--", "recorder::", "--nocapture"],
        much: ("RECORDER_COUNT", 10_000),
        unit: "commands",
        seed: Some("RECORDER_SEED"),
    },
    Soak {
        name: "crash",
        test: &["-p", "agent-cli", "--no-default-features", "--test", "it", "--", "crash::", "--nocapture"],
        much: ("CRASH_RUNS", 300),
        unit: "kills",
        seed: Some("CRASH_SEED"),
    },
    Soak {
        name: "fuzz",
        test: &["-p", "agent-core", "--lib", "--", "fuzz", "--nocapture"],
        much: ("FUZZ_SECONDS", 600),
        unit: "seconds a target",
        seed: None,
    },
];

/// Runs a test, and says whether it passed. What it finds it tells with the seed that brings it back.
///
/// # Errors
/// An option is not known, or cargo does not start.
pub fn run(options: &[&str]) -> Result<bool, String> {
    let (soak, count, seed) = asked(options)?;
    println!("soak: {count} {}, seed {seed}", soak.unit);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.arg("test").args(soak.test).env(soak.much.0, count.to_string());
    command.envs(soak.seed.map(|variable| (variable, seed.to_string())));
    let status = command.status().map_err(|e| format!("cargo does not start: {e}"))?;
    Ok(status.success())
}

/// Which test, how much of it, and the seed of the first.
fn asked<'o>(options: &[&'o str]) -> Result<(&'static Soak, u64, u64), String> {
    let named = options.first().and_then(|name| SOAKS.iter().find(|soak| soak.name == *name));
    let options: &[&'o str] = if named.is_some() { &options[1..] } else { options };
    let soak = named.unwrap_or(&SOAKS[0]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut count, mut seed) = (soak.much.1, now.wrapping_mul(100_000));
    for pair in options.chunks(2) {
        let number = || {
            let text = pair.get(1).ok_or_else(|| format!("`{}` needs a number", pair[0]))?;
            text.parse().map_err(|_| format!("`{text}` is no number"))
        };
        match pair[0] {
            "--count" => count = number()?,
            "--seed" => seed = number()?,
            other => {
                let names: Vec<&str> = SOAKS.iter().map(|soak| soak.name).collect();
                return Err(format!("`{other}` is neither --count nor --seed, nor one of {}", names.join(", ")));
            }
        }
    }
    Ok((soak, count, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_name_and_numbers() {
        for (options, name, count) in [
            (&[][..], "commands", 10_000),
            (&["--count", "5"], "commands", 5),
            (&["crash"], "crash", 300),
            (&["crash", "--seed", "7", "--count", "9"], "crash", 9),
            (&["fuzz", "--count", "60"], "fuzz", 60),
        ] {
            let (soak, much, _) = asked(options).unwrap();
            assert_eq!((soak.name, much), (name, count), "{options:?}");
        }
        for (options, fault) in [
            (&["--count"][..], "`--count` needs a number"),
            (&["--seed", "x"], "`x` is no number"),
            (&["--fast", "1"], "`--fast` is neither --count nor --seed, nor one of commands, crash, fuzz"),
        ] {
            assert_eq!(asked(options).err().unwrap(), fault);
        }
    }
}
