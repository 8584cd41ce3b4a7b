//! Compaction: what takes the place of the conversation, when, and what happens where the summary fails.

use std::fs;
use std::sync::Arc;

use agent_core::provider::scripted::{Answer, Scripted};
use agent_core::provider::{ErrorKind, Model, Stop};
use agent_core::session::{Journal, Memory, load};
use agent_core::settings::Compact;
use agent_core::{
    Agent, Block, Ending, Event, Message, Notice, Prompt, Running, Session, SessionId, TurnError, start,
    start_compacting,
};
use agent_tools::{Part, Place};
use tokio_util::sync::CancellationToken;

use crate::turns::{Noon, agent};

struct World {
    folder: tempfile::TempDir,
    model: Scripted,
    agent: Agent,
    log: Memory,
    session: Session,
}

impl World {
    /// A session with a model of so many tokens.
    fn new(context: u64, answers: impl IntoIterator<Item = Answer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut model = Model::new("scripted", "m");
        model.context = context;
        let model = Scripted::new(answers).with_model(model);
        let agent = agent(model.clone());
        let mut place = Place::new(folder.path());
        place.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        place.store = Some(folder.path().join("session"));
        fs::create_dir(folder.path().join("session")).unwrap();
        let log = Memory::default();
        let journal = Journal::new(SessionId::named("s"), Box::new(log.clone()), Arc::new(Noon), "/w");
        Self { agent, log, session: Session::new(place, journal), folder, model }
    }

    async fn turn(&mut self, prompt: &str) -> (Result<Ending, TurnError>, Vec<String>) {
        let running = start(self.agent.clone(), &mut self.session, Prompt::text(prompt), CancellationToken::new());
        watch(running).await
    }

    async fn compact(&mut self) -> (Result<Ending, TurnError>, Vec<String>) {
        watch(start_compacting(self.agent.clone(), &mut self.session, CancellationToken::new())).await
    }

    /// What the model was asked, the last time.
    fn last_asked(&self) -> String {
        shown(&self.model.asked().last().unwrap().messages)
    }

    fn store(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join("session").join(name)).ok().filter(|text| !text.is_empty())
    }

    /// The log alone gives the same conversation.
    fn is_in_the_log(&self) {
        let loaded = load(self.log.lines().as_bytes());
        assert_eq!(loaded.repairs, Vec::<String>::new());
        assert_eq!(shown(&loaded.messages), shown(self.session.messages()));
    }
}

async fn watch(mut running: Running<'_>) -> (Result<Ending, TurnError>, Vec<String>) {
    let (mut ended, mut notices) = (None, Vec::new());
    while let Some(stamped) = running.next().await {
        match stamped.event {
            Event::Notice(Notice::Compacted(done)) => {
                notices.push(format!("compacted {} kept {}", done.trigger, done.kept));
            }
            Event::Notice(Notice::Text(text)) => notices.push(text),
            Event::Ended(how) => ended = Some(how),
            _ => {}
        }
    }
    (ended.unwrap(), notices)
}

/// Messages in short form, one a line.
fn shown(messages: &[Message]) -> String {
    let lines: Vec<String> = messages
        .iter()
        .map(|message| match message {
            Message::User(parts) => format!("user {}", parts.iter().map(Part::as_text).collect::<String>()),
            Message::Assistant(blocks) => {
                let block = |block: &Block| match block {
                    Block::Text { text } => text.clone(),
                    Block::Call { call } => format!("call {}", call.id),
                    Block::Opaque { .. } => "opaque".into(),
                };
                format!("model {}", blocks.iter().map(block).collect::<Vec<_>>().join(" "))
            }
            Message::Results(results) => {
                format!("results {}", results.iter().map(|r| r.id.clone()).collect::<Vec<_>>().join(" "))
            }
        })
        .collect();
    lines.join("\n")
}

fn bash(id: &str, command: &str) -> Answer {
    Answer::calls([(id, "Bash", format!("{{\"command\":\"{command}\"}}").as_str())])
}

#[tokio::test]
async fn what_is_too_long_is_summarised_once_and_the_turn_goes_on() {
    let answers = [
        bash("a", "seq 2000"),
        Answer::error(ErrorKind::TooLong, "too long"),
        Answer::text("ran seq"),
        Answer::text("done"),
    ];
    let mut world = World::new(200_000, answers);
    let (ended, notices) = world.turn("count for me").await;
    assert_eq!((ended.unwrap(), notices), (Ending::Done, vec!["compacted too_long kept 0".to_owned()]));
    assert_eq!(
        world.last_asked(),
        "user <context-snapshot>\nran seq\n</context-snapshot>\n\nWhat came before is summarised above. \
         The request that is being worked on, word for word:\n\ncount for me\n\n\
         (Go on with it from where the summary ends.)"
    );
    // Everything before it stands in the request for the summary, with the instruction behind it.
    let asked = shown(&world.model.asked()[2].messages);
    assert!(asked.starts_with("user count for me\nmodel call a\nresults a\nuser The conversation is getting long."));
    assert_eq!(world.store("summary.md").as_deref(), Some("ran seq"));
    world.is_in_the_log();
    assert!(world.log.lines().contains(r#""type":"context_update","kind":"compact","trigger":"too_long","kept":0"#));
    assert_eq!((world.session.usage().requests, world.session.usage().compactions), (3, 1));
}

#[tokio::test]
async fn what_stays_too_long_is_an_error_and_nothing_is_lost() {
    for (answers, expect) in [
        (vec![Answer::text("short"), Answer::error(ErrorKind::TooLong, "still too long")], "still too long"),
        (vec![Answer::error(ErrorKind::TooLong, "no"); 3], "too long. A summary to go on with failed: no"),
        (vec![Answer::text(" ")], "too long. A summary to go on with failed: the summary is empty"),
        (
            vec![Answer::stopped([Block::text("half")], Stop::MaxTokens)],
            "too long. A summary to go on with failed: the summary was cut at the size limit of an answer",
        ),
    ] {
        let first = [bash("a", "seq 2000"), Answer::error(ErrorKind::TooLong, "too long")];
        let mut world = World::new(200_000, first.into_iter().chain(answers));
        let (ended, _) = world.turn("go").await;
        assert_eq!(ended.unwrap_err().to_string(), expect);
        assert_eq!(world.model.left(), 0);
        world.is_in_the_log();
    }
}

#[tokio::test]
async fn a_request_for_a_summary_that_is_too_long_is_made_with_shorter_results() {
    let answers = [
        bash("a", "seq 9000"),
        Answer::error(ErrorKind::TooLong, "too long"),
        Answer::error(ErrorKind::TooLong, "too long"),
        Answer::text("ran seq"),
        Answer::text("done"),
    ];
    let mut world = World::new(200_000, answers);
    assert_eq!(world.turn("go").await.0.unwrap(), Ending::Done);
    let size = |at: usize| match &world.model.asked()[at].messages[2] {
        Message::Results(results) => results[0].text().len(),
        _ => 0,
    };
    assert!(size(2) > 40_000 && size(3) < 4500, "{} {}", size(2), size(3));
}

#[tokio::test]
async fn before_the_context_is_full_all_but_the_last_turns_is_summarised() {
    let long = "word ".repeat(700);
    let say = |text: &str| Answer::text(text);
    let mut world = World::new(12_000, [say(&long), say(&long), say("three"), say("the story so far"), say("four")]);
    // The scripted model counts few tokens: what it says is estimated only where it says nothing.
    for prompt in [&long, &long, "3"] {
        world.turn(prompt).await.0.unwrap();
    }
    world.agent.limits.compact = Compact::At(1);
    let (ended, notices) = world.turn("4").await;
    assert_eq!((ended.unwrap(), notices), (Ending::Done, vec![]), "eleven tokens are less than a percent");
    world.agent.provider = Arc::new(Scripted::new([say("the story so far"), say("five")]).with_model({
        let mut small = Model::new("scripted", "m");
        small.context = 100;
        small
    }));
    let (ended, notices) = world.turn("5").await;
    assert_eq!((ended.unwrap(), notices), (Ending::Done, vec!["compacted auto kept 1".to_owned()]));
    assert_eq!(
        shown(world.session.messages()),
        "user <context-snapshot>\nthe story so far\n</context-snapshot>\nuser 5\nmodel five"
    );
    world.is_in_the_log();
}

#[tokio::test]
async fn a_summary_that_fails_leaves_the_conversation_and_is_not_tried_again_in_the_turn() {
    let answers = [Answer::text("one"), Answer::text(""), bash("a", "true"), Answer::text("two")];
    let mut world = World::new(12, answers);
    world.turn("1").await.0.unwrap();
    let (ended, notices) = world.turn("2").await;
    assert_eq!(ended.unwrap(), Ending::Done);
    assert_eq!(notices, ["the context was not compacted, everything is still there: the summary is empty"]);
    assert_eq!(world.last_asked(), "user 1\nmodel one\nuser 2\nmodel call a\nresults a");
    world.is_in_the_log();
}

#[tokio::test]
async fn open_todos_survive_word_for_word() {
    let todos = r#"{"todos":[{"content":"ALPHA","status":"completed"},{"content":"BETA","status":"pending"}]}"#;
    let answers = [
        Answer::calls([("a", "TodoWrite", todos)]),
        Answer::error(ErrorKind::TooLong, "too long"),
        Answer::text("no list here"),
        Answer::text("ok"),
    ];
    let mut world = World::new(200_000, answers);
    world.turn("go").await.0.unwrap();
    assert!(world.last_asked().contains("<todos>\n- [x] ALPHA\n- [ ] BETA\n</todos>"), "{}", world.last_asked());
}

#[tokio::test]
async fn a_person_compacts_when_they_like() {
    let mut world =
        World::new(200_000, [Answer::text("one"), Answer::text("two"), Answer::text("both"), Answer::text("three")]);
    let nothing = world.compact().await;
    assert_eq!(nothing.1, ["the context was not compacted, everything is still there: there is nothing to summarise"]);
    world.turn("1").await.0.unwrap();
    world.turn("2").await.0.unwrap();
    let (ended, notices) = world.compact().await;
    assert_eq!((ended.unwrap(), notices), (Ending::Done, vec!["compacted manual kept 2".to_owned()]));
    world.turn("3").await.0.unwrap();
    let expect = "user <context-snapshot>\nboth\n</context-snapshot>\nuser 2\nmodel two\nuser 3";
    assert_eq!(world.last_asked(), expect);
    world.is_in_the_log();
}

#[tokio::test]
async fn plans_compact_and_a_summary_that_fails_leaves_plan_and_history() {
    for (summary, expect) in [("the plan was made", true), ("", false)] {
        let mut world = World::new(
            200_000,
            [
                Answer::text("here is the plan"),
                Answer::calls([("a", "PlanConfirm", "{}"), ("b", "Bash", r#"{"command":"echo on"}"#)]),
                Answer::text(summary),
                Answer::text("done"),
            ],
        );
        world.turn("make a plan of what is to be done here, step by step").await.0.unwrap();
        fs::write(world.folder.path().join("session/plan.draft"), "1. do it").unwrap();
        world.turn("confirmed").await.0.unwrap();
        let plan = world.store("plan.md");
        assert_eq!((plan.as_deref() == Some("1. do it"), world.store("plan.draft").is_none()), (expect, expect));
        let before = match expect {
            true => "user <context-snapshot>\nthe plan was made\n</context-snapshot>",
            false => "user make a plan of what is to be done here, step by step\nmodel here is the plan",
        };
        assert_eq!(world.last_asked(), format!("{before}\nuser confirmed\nmodel call a call b\nresults a b"));
        world.is_in_the_log();
    }
}

#[tokio::test]
async fn a_plan_that_is_the_first_thing_needs_no_summary() {
    let answers = [Answer::calls([("a", "PlanConfirm", "{}")]), Answer::text("done")];
    let mut world = World::new(200_000, answers);
    fs::write(world.folder.path().join("session/plan.draft"), "1. do it").unwrap();
    world.turn("confirmed").await.0.unwrap();
    assert_eq!(world.store("plan.md").as_deref(), Some("1. do it"));
}
