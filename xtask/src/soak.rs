//! The recorder's test for longer: more commands than each change has time for, and others every time.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const COUNT: u64 = 10_000;

/// Runs the test, and says whether it passed. What it finds it tells with the seed that brings it back.
///
/// # Errors
/// An option is not known, or cargo does not start.
pub fn run(options: &[&str]) -> Result<bool, String> {
    let (count, seed) = asked(options)?;
    println!("soak: {count} commands, seed {seed}");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "-p", "agent-tools", "--test", "it", "--", "recorder::", "--nocapture"])
        .env("RECORDER_COUNT", count.to_string())
        .env("RECORDER_SEED", seed.to_string())
        .status()
        .map_err(|e| format!("cargo does not start: {e}"))?;
    Ok(status.success())
}

/// How many commands, and the seed of the first.
fn asked(options: &[&str]) -> Result<(u64, u64), String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut count, mut seed) = (COUNT, now.wrapping_mul(100_000));
    for pair in options.chunks(2) {
        let number = || {
            let text = pair.get(1).ok_or_else(|| format!("`{}` needs a number", pair[0]))?;
            text.parse().map_err(|_| format!("`{text}` is no number"))
        };
        match pair[0] {
            "--count" => count = number()?,
            "--seed" => seed = number()?,
            other => return Err(format!("`{other}` is neither --count nor --seed")),
        }
    }
    Ok((count, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_numbers() {
        assert_eq!(asked(&["--count", "5", "--seed", "7"]), Ok((5, 7)));
        assert_eq!(asked(&[]).unwrap().0, COUNT);
        for (options, fault) in [
            (&["--count"][..], "`--count` needs a number"),
            (&["--seed", "x"], "`x` is no number"),
            (&["--fast", "1"], "`--fast` is neither --count nor --seed"),
        ] {
            assert_eq!(asked(options).unwrap_err(), fault);
        }
    }
}
