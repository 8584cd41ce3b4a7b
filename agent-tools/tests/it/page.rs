//! The page on permissions: what it says of paths and commands is what the gate does.

use agent_tools::policy::shell::judge;
use agent_tools::policy::zone::locate;
use agent_tools::policy::{Gate, Mode, Permissions, Policy, Unanswered, Verdict, zone_name};
use agent_tools::{CallKind, Needs, Outline, Place};

const PAGE: &str = include_str!("../../docs/permissions.md");

/// The place that the page's examples are about.
fn place() -> Place {
    let mut place = Place::new("/home/u/ws");
    place.home = Some("/home/u".into());
    place
}

/// The rows of all tables with this header; cells without the marks of code. `\|` is a bar.
fn table(header: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{1}");
        line.split('|').map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|")).collect()
    };
    let mut rows = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        if line.starts_with('|') && cells(line) == header {
            rows.extend(lines.by_ref().skip(1).take_while(|line| line.starts_with('|')).map(cells));
        }
    }
    assert!(!rows.is_empty(), "the page has no table {header:?}");
    rows
}

/// Compares each row's first cells with what is found for it.
fn check(header: &[&str], found: impl Fn(&str) -> String) {
    let wrong: Vec<String> = table(header)
        .iter()
        .map(|row| (row, found(&row[0])))
        .filter(|(row, found)| row[1] != *found)
        .map(|(row, found)| format!("{}: {found}, not {}", row[0], row[1]))
        .collect();
    assert!(wrong.is_empty(), "the page is wrong:\n{}", wrong.join("\n"));
}

#[test]
fn paths_lie_in_the_zones_that_the_page_names() {
    check(&["Path", "Zone"], |path| locate(path, &place()).zone.map_or("none", zone_name).into());
}

#[test]
fn commands_need_what_the_page_says() {
    check(&["Command", "Needs", "Why"], |command| {
        let needs = judge(command, &place());
        needs.unsure.map_or_else(|| needs.mode.to_string(), |_| "not judged".into())
    });
}

#[test]
fn lost_work_is_what_the_page_says() {
    check(&["Command", "What would be lost"], |command| judge(command, &place()).destroys.unwrap_or_default());
}

#[test]
fn the_table_of_permissions_is_the_gates() {
    let needing = |kind, mode: &str| Outline::new(kind, "").needing(Needs::mode(mode.parse().unwrap()));
    let mut destroying = needing(CallKind::Command, "0002");
    destroying.needs.destroys = Some("a tree".into());
    let mut unjudged = needing(CallKind::Command, "0004");
    unjudged.needs.unsure = Some("a variable".into());
    let calls = [
        needing(CallKind::Read, "0004"),
        needing(CallKind::Edit, "0006"),
        destroying,
        needing(CallKind::Read, "4000"),
        unjudged,
    ];
    let table = table(&["What the call does", "ask", "auto", "allow"]);
    assert_eq!(table.len(), calls.len());
    for (row, call) in table.iter().zip(calls) {
        for (cell, permissions) in row[1..].iter().zip(Permissions::ALL) {
            assert_eq!(cell, said(&Gate::new(Mode::DEFAULT, permissions).judge(&call)), "{} {permissions}", row[0]);
        }
    }
}

fn said(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "runs",
        Verdict::Ask { unanswered: Unanswered::Allow, .. } => "asks, else runs",
        Verdict::Ask { unanswered: Unanswered::Reject, .. } => "asks, else refused",
        Verdict::Ask { unanswered: Unanswered::Block(_), .. } => "asks, else blocked",
        Verdict::Deny(_) => "blocked",
    }
}

#[test]
fn the_settings_that_it_recommends_are_modes() {
    for row in table(&["Mode", "What it adds or takes", "When"]) {
        assert_eq!(row[0].parse::<Mode>().map(|mode| mode.to_string()), Ok(row[0].clone()));
    }
    assert_eq!(table(&["Mode", "What it adds or takes", "When"])[0][0], Mode::DEFAULT.to_string());
}

#[test]
fn what_a_check_prints_is_what_the_page_shows() {
    let (_, example) = PAGE.split_once("$ agent check '").unwrap();
    let (command, printed) = example.split_once("'\n").unwrap();
    let needs = judge(command, &place());
    let found = needs.findings.iter().map(|f| {
        let zone = f.zone.map_or("none", zone_name);
        format!("  {}: {} in zone {zone}\n", f.what, f.rights)
    });
    let lost = needs.destroys.iter().map(|lost| format!("  destroys work: {lost}\n"));
    let reasons: String = found.chain(lost).collect();
    let expect = format!("ask: needs {}, allowed {}\n{reasons}```\n", needs.mode, Mode::DEFAULT);
    assert!(printed.starts_with(&expect), "{expect}");
}
