//! The options that both binaries share, on a command line that clap reads.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use super::flags::{OPTIONS, OptionSpec};

/// All of them, to be found behind any subcommand.
pub fn options() -> impl Iterator<Item = Arg> {
    OPTIONS.iter().map(option)
}

fn option(option: &OptionSpec) -> Arg {
    let arg = Arg::new(option.long).long(option.long).help(option.help).global(true);
    match option.value {
        None => arg.action(ArgAction::SetTrue),
        Some(name) if matches!(option.long, "cwd" | "config") => {
            arg.value_name(name).value_parser(value_parser!(PathBuf))
        }
        Some(name) if option.repeatable => arg.value_name(name).action(ArgAction::Append),
        // A number below 0 is wrong everywhere, and told by whoever knows the range.
        Some(name) => arg.value_name(name).allow_negative_numbers(true),
    }
}

/// The options that are settings, in the order of the command line.
pub fn settings(matches: &ArgMatches) -> Vec<(String, String)> {
    let mut found: Vec<(usize, String, String)> = Vec::new();
    for option in OPTIONS.iter().filter(|o| o.key.is_some() || o.long == "set") {
        let places = matches.indices_of(option.long).into_iter().flatten();
        if option.value.is_none() {
            let given = matches.get_flag(option.long);
            found.extend(places.filter(|_| given).map(|place| (place, option.long.to_owned(), String::new())));
            continue;
        }
        let values = matches.get_many::<String>(option.long).into_iter().flatten();
        found.extend(places.zip(values).map(|(place, value)| (place, option.long.to_owned(), value.clone())));
    }
    found.sort();
    found.into_iter().map(|(_, name, value)| (name, value)).collect()
}
