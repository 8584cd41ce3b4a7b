//! Back to before a turn: conversation and files, what strangers changed, after a compaction and after a restart.

use std::fs;
use std::sync::Arc;

use agent_core::provider::scripted::{Answer, Scripted};
use agent_core::session::{Back, Journal, JsonLines, Sessions, load};
use agent_core::{Agent, Event, Prompt, Session, SessionId, UndoState, start, start_compacting};
use agent_tools::Place;
use tokio_util::sync::CancellationToken;

use crate::turns::{Noon, agent};

struct World {
    folder: tempfile::TempDir,
    model: Scripted,
    agent: Agent,
    session: Session,
}

fn open(folder: &tempfile::TempDir) -> Session {
    let store = folder.path().join("sessions/p/s");
    let mut place = Place::new(folder.path());
    place.store = Some(store.clone());
    let log = Sessions::log(&store);
    let lines = JsonLines::new(&log);
    let loaded = fs::read(&log).map(|log| load(&log)).unwrap_or_default();
    let journal = Journal::new(SessionId::named("s"), Box::new(lines), Arc::new(Noon), "/w").after(loaded.seq);
    Session::resumed(place, journal, loaded)
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = Scripted::new([]);
        let agent = agent(model.clone());
        Self { session: open(&folder), folder, model, agent }
    }

    /// A turn that writes these files (`name=text`) and says `done`.
    async fn writes(&mut self, files: &[&str]) {
        let call = |(at, file): (usize, &&str)| {
            let (name, text) = file.split_once('=').unwrap();
            (format!("c{at}"), format!(r#"{{"path":"{name}","content":"{text}"}}"#))
        };
        let calls: Vec<(String, String)> = files.iter().enumerate().map(call).collect();
        self.model.push(Answer::calls(calls.iter().map(|(id, input)| (id.as_str(), "Write", input.as_str()))));
        self.model.push(Answer::text("done"));
        let prompt = Prompt::text(format!("write {}", files.join(" ")));
        let mut running = start(self.agent.clone(), &mut self.session, prompt, CancellationToken::new());
        while let Some(stamped) = running.next().await {
            if let Event::Ended(ended) = stamped.event {
                ended.unwrap();
            }
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(name)).ok()
    }

    fn prompts(&self) -> Vec<String> {
        self.session.turns().iter().map(|turn| turn.preview.clone()).collect()
    }
}

#[tokio::test]
async fn conversation_and_files_go_back_each_or_both() {
    for (back, text, prompts) in [(Back::Both, "0", 1), (Back::Conversation, "2", 1), (Back::Files, "0", 3)] {
        let mut world = World::new();
        fs::write(world.folder.path().join("a"), "0").unwrap();
        world.writes(&["b=1"]).await;
        world.writes(&["a=1", "c=1"]).await;
        world.writes(&["a=2"]).await;
        let plan = world.session.files_before(2).unwrap();
        let shown: Vec<String> = plan.iter().map(ToString::to_string).collect();
        let dir = world.folder.path().display();
        assert_eq!(shown, [format!("{dir}/a is put back"), format!("{dir}/c is removed: it was made since")]);
        world.session.rewind(2, back, false).await.unwrap();
        assert_eq!(world.text("a").as_deref(), Some(text), "{back:?}");
        assert_eq!((world.prompts().len(), world.session.usage().requests), (prompts, 6), "{back:?}");
        assert_eq!(world.session.messages().len(), prompts * 4);
        // Another process finds the same, and goes on from there.
        let before = serde_json::to_string(world.session.messages()).unwrap();
        world.session = open(&world.folder);
        assert_eq!(serde_json::to_string(world.session.messages()).unwrap(), before);
        world.writes(&["d=1"]).await;
        let turn = world.prompts().len();
        world.session.rewind(turn, Back::Both, false).await.unwrap();
        assert_eq!((world.text("d"), world.text("a").as_deref()), (None, Some(text)));
        assert_eq!(world.prompts().len(), prompts);
    }
}

#[tokio::test]
async fn what_somebody_else_changed_is_overwritten_only_when_told_and_is_kept() {
    let mut world = World::new();
    world.writes(&["a=1", "b=1"]).await;
    fs::write(world.folder.path().join("a"), "mine").unwrap();
    let error = world.session.rewind(1, Back::Both, false).await.unwrap_err();
    assert_eq!(error.to_string(), "1 of the files were changed by somebody else since, so nothing was put back");
    assert_eq!(
        (world.text("a").unwrap(), world.text("b").unwrap(), world.prompts().len()),
        ("mine".into(), "1".into(), 1)
    );
    let undos = world.session.rewind(1, Back::Both, true).await.unwrap();
    assert_eq!(undos.iter().map(|undo| undo.state).collect::<Vec<_>>(), [UndoState::Changed, UndoState::Undoable]);
    assert_eq!((world.text("a"), world.text("b"), world.session.messages().len()), (None, None, 0));
    let kept = fs::read_dir(world.folder.path().join("sessions/p/s/before")).unwrap();
    assert!(kept.flatten().any(|file| fs::read_to_string(file.path()).unwrap() == "mine"));
}

#[tokio::test]
async fn a_rewind_goes_back_behind_a_compaction() {
    let mut world = World::new();
    world.writes(&["a=1"]).await;
    let before = serde_json::to_string(world.session.messages()).unwrap();
    world.writes(&["a=2"]).await;
    world.model.push(Answer::text("a summary"));
    let mut running = start_compacting(world.agent.clone(), &mut world.session, CancellationToken::new());
    while running.next().await.is_some() {}
    drop(running);
    assert!(world.session.messages().len() < 6);
    world.session.rewind(2, Back::Both, false).await.unwrap();
    assert_eq!(serde_json::to_string(world.session.messages()).unwrap(), before);
    assert_eq!(world.text("a").as_deref(), Some("1"));
}

#[tokio::test]
async fn turns_that_are_not_there_are_told() {
    let mut world = World::new();
    world.writes(&["a=1"]).await;
    for turn in [0, 2, 99] {
        let error = world.session.rewind(turn, Back::Both, true).await.unwrap_err();
        assert_eq!(error.to_string(), format!("there is no turn {turn}: this session has 1"));
    }
    assert_eq!(world.text("a").as_deref(), Some("1"));
}
