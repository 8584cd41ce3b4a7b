//! Prints the skills of the directories that are named: `cargo run -p agent-skills --example list -- .agents/skills`.

use agent_skills::Catalogue;

fn main() {
    let dirs: Vec<String> = std::env::args().skip(1).collect();
    let skills = Catalogue::discover(&dirs);
    for skill in skills.iter() {
        println!("{} — {}", skill.name, skill.description);
    }
    for diagnostic in skills.diagnostics() {
        eprintln!("{diagnostic}");
    }
}
