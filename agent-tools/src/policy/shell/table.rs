//! The table of programs for people, made of the rows that the classifier goes by.

use std::fmt::Write as _;

use super::programs::{self, Choice, Effects, Kind, Row};
use crate::policy::Rights;

/// The programs that commands are judged by, as a table in Markdown: their names, what they do, and which options
/// change that.
pub fn programs_table() -> String {
    let mut table = String::from("| Programs | What they do | Options that change it |\n| --- | --- | --- |\n");
    for row in programs::rows() {
        let names: Vec<String> = row.names.iter().map(|name| format!("`{}`", bars(name))).collect();
        let _ = writeln!(table, "| {} | {} | {} |", names.join(", "), does(&row), options(&row));
    }
    table
}

/// A bar would end a cell.
fn bars(text: &str) -> String {
    text.replace('|', "\\|")
}

fn does(row: &Row) -> String {
    let program = &row.program;
    let mut parts: Vec<String> = Vec::new();
    if program.alone {
        parts.push("judged by rules of its own".into());
    }
    if program.subs {
        parts.push("by its subcommands".into());
    }
    for operand in &program.operands {
        let said = operand_does(operand.kind);
        if !said.is_empty() && !parts.iter().any(|part| part == said) {
            parts.push(said.into());
        }
    }
    effects(&program.effects, &mut parts);
    if parts.is_empty() { "nothing that needs a right".into() } else { parts.join("; ") }
}

const fn operand_does(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Name | Kind::Dir => "",
        Kind::Read => "reads its operands",
        Kind::Write => "writes its operand",
        Kind::Change => "reads and writes its operands",
        Kind::Run => "runs the code of its operand",
        Kind::Code => "runs the text of its operand",
        Kind::Mention => "may read paths that it is given",
        Kind::Makes => "a name makes it write where it works",
        Kind::Url => "gets the address",
        Kind::Send => "sends its operand",
        Kind::Method => "uses the method",
        Kind::Wrap => "runs the command behind it",
        Kind::Filter => "reads what its filter names",
        Kind::Refuse => "asked about",
    }
}

fn effects(effects: &Effects, parts: &mut Vec<String>) {
    for (rights, place) in
        [(effects.here, "where it works"), (effects.network, "in the network"), (effects.system, "on the machine")]
    {
        if rights != Rights::NONE {
            parts.push(format!("needs {rights} {place}"));
        }
    }
    let told = [
        (effects.reads_here, "without operands it reads where it works"),
        (effects.deep, "with all below"),
        (effects.below, "and names all below"),
        (effects.follows, "through links"),
        (effects.links, "may make links"),
        (effects.lists, "only lists"),
        (effects.elsewhere, "writes nothing where it works"),
    ];
    parts.extend(told.iter().filter(|(holds, _)| *holds).map(|(_, said)| (*said).to_owned()));
    parts.extend(
        effects.operands.map(|kind| operand_does(kind).replace("its", "then its")).filter(|said| !said.is_empty()),
    );
    parts.extend(effects.destroys.map(|lost| format!("destroys {lost}")));
}

/// Options that do more than show something in another way.
fn options(row: &Row) -> String {
    let told: Vec<String> = row.options.iter().filter_map(|(names, choice)| option(names, choice)).collect();
    told.join("; ")
}

fn option(names: &[&str], choice: &Choice) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    if let Some(kind) = choice.value {
        let said = if kind == Kind::Dir { "works there" } else { operand_does(kind) };
        let said = said.replace("its operands", "the path").replace("its operand", "the path");
        parts.extend(Some(said).filter(|said| !said.is_empty()));
    }
    effects(&choice.effects, &mut parts);
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", bars(name))).collect();
    (!parts.is_empty()).then(|| format!("{} {}", names.join(" "), parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_programs_do() {
        let table = programs_table();
        for row in [
            "| `git push` |",
            "| `true`, `false`, `:`, `pwd`",
            "| `sort` | reads its operands | `-o` `--output` writes the path",
            "needs read in the network",
            "`-r` `-R` `--recursive` and names all below, destroys the trees that it deletes",
        ] {
            assert!(table.contains(row), "{row}\n{table}");
        }
        assert!(table.lines().all(|line| line.matches(" | ").count() == 2), "a cell holds a bar");
    }
}
