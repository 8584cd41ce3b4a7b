//! Sub-agents and background commands: what the parent is told, in which form, and what it waits for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_core::provider::scripted::Answer as Scripted;
use agent_core::provider::{Delta, ErrorKind, Model, Prices, Provider, ProviderError, Replies, Request, Stop, Usage};
use agent_core::session::{Journal, JsonLines, Sessions, load};
use agent_core::{
    Agent, Block, Ending, Event, Limit, Limits, Message, Notice, Prompt, Session, SessionId, Waits, start,
};
use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::{Answer, Call, Place};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use crate::turns::{Noon, agent};

/// What the model answers: a function of the conversation, so that it does not matter who asks first.
type Mind = Arc<dyn Fn(&[Message]) -> Vec<Block> + Send + Sync>;

struct Minded {
    model: Model,
    mind: Mind,
    asked: Arc<Mutex<Vec<Vec<Message>>>>,
}

#[async_trait]
impl Provider for Minded {
    fn model(&self) -> &Model {
        &self.model
    }

    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError> {
        self.asked.lock().unwrap().push(request.messages.to_vec());
        let blocks = (self.mind)(request.messages);
        if blocks.is_empty() {
            return Err(ProviderError::new(ErrorKind::Auth, "no such model"));
        }
        let Scripted::Deltas(deltas) = Scripted::blocks(blocks) else { unreachable!() };
        Ok(stream::iter(deltas).boxed())
    }
}

struct World {
    folder: tempfile::TempDir,
    agent: Agent,
    asked: Arc<Mutex<Vec<Vec<Message>>>>,
    session: Session,
    seen: Vec<String>,
    answer: Option<Answer>,
}

impl World {
    fn new(mind: impl Fn(&[Message]) -> Vec<Block> + Send + Sync + 'static) -> Self {
        Self::with(Limits::default(), Permissions::Allow, mind)
    }

    fn with(
        limits: Limits,
        permissions: Permissions,
        mind: impl Fn(&[Message]) -> Vec<Block> + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let asked = Arc::default();
        let mut model = Model::new("minded", "m");
        model.prices = limits.max_cost.map(|_| Prices::new(1e6, 0.0));
        let provider = Minded { model, mind: Arc::new(mind), asked: Arc::clone(&asked) };
        let mut agent = agent(provider);
        agent.policy = Arc::new(Gate::new(Mode::DEFAULT, permissions));
        agent.limits = limits;
        let mut place = Place::new(folder.path().join("work"));
        std::fs::create_dir(&place.cwd).unwrap();
        place.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        place.store = Some(folder.path().join("sessions/p/s"));
        let store = JsonLines::new(folder.path().join("sessions/p/s/log.jsonl"));
        let journal = Journal::new(SessionId::named("s"), Box::new(store), Arc::new(Noon), "/w");
        let session = Session::new(place, journal);
        Self { folder, agent, asked, session, seen: Vec::new(), answer: None }
    }

    /// Plays a turn to its end.
    async fn turn(&mut self, prompt: &str) -> Ending {
        self.turn_until(prompt, CancellationToken::new()).await
    }

    async fn turn_until(&mut self, prompt: &str, stop: CancellationToken) -> Ending {
        self.session.attended = self.answer.is_some();
        let mut running = start(self.agent.clone(), &mut self.session, Prompt::text(prompt), stop);
        let mut ending = None;
        while let Some(stamped) = running.next().await {
            match stamped.event {
                Event::Notice(
                    notice @ (Notice::ChildStarted { .. } | Notice::ChildEnded { .. } | Notice::TaskEnded(_)),
                ) => {
                    self.seen.push(notice.to_string());
                }
                Event::Ask(ask) => {
                    self.seen.push(format!("ask {} {}", stamped.session, ask.outline.title));
                    ask.answer(self.answer.unwrap());
                }
                Event::Ended(ended) => ending = Some(ended.unwrap()),
                _ => {}
            }
        }
        ending.unwrap()
    }

    /// What the program said to the model in a person's place, ids of children replaced.
    fn told(&self) -> Vec<String> {
        let texts = self.session.messages().iter().filter_map(|message| match message {
            Message::User(parts) => Some(parts[0].as_text().to_owned()),
            Message::Assistant(_) | Message::Results(_) => None,
        });
        texts.skip(1).map(|text| without_ids(&text)).collect()
    }

    fn logs(&self) -> Vec<String> {
        let mut logs: Vec<String> = std::fs::read_dir(self.folder.path().join("sessions/p"))
            .unwrap()
            .map(|entry| std::fs::read_to_string(Sessions::log(&entry.unwrap().path())).unwrap())
            .collect();
        logs.sort_by_key(String::len);
        logs
    }
}

fn without_ids(text: &str) -> String {
    let word = |word: &str| if word.starts_with("sub_") { "ID]".to_owned() } else { word.to_owned() };
    text.split('\n').map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
}

/// The text of the first message: whose conversation it is.
fn first(messages: &[Message]) -> &str {
    match &messages[0] {
        Message::User(parts) => parts[0].as_text(),
        Message::Assistant(_) | Message::Results(_) => "",
    }
}

fn last_user(messages: &[Message]) -> &str {
    match messages.last().unwrap() {
        Message::User(parts) => parts[0].as_text(),
        Message::Assistant(_) | Message::Results(_) => "",
    }
}

fn calls(all: &[(&str, &str)]) -> Vec<Block> {
    all.iter().enumerate().map(|(n, (name, args))| Block::call(Call::new(format!("c{n}"), *name, *args))).collect()
}

fn says(text: &str) -> Vec<Block> {
    vec![Block::text(text)]
}

#[tokio::test]
async fn a_result_comes_as_a_message_and_the_parent_goes_on() {
    let mut world = World::new(|messages| match (first(messages), messages.len()) {
        ("go", 1) => calls(&[("SubAgent", r#"{"prompt": "count", "description": "counts"}"#)]),
        ("go", 3) => says("started"),
        ("go", _) => says(&format!("heard: {}", last_user(messages).lines().last().unwrap())),
        ("count", 1) => calls(&[("Bash", r#"{"command": "seq 3 | tail -1"}"#)]),
        _ => says("three"),
    });
    assert_eq!(world.turn("go").await, Ending::Done);
    assert_eq!(world.told(), ["[sub-agent ID] ok (in=20, out=2)\nText: three"]);
    let Some(Message::Assistant(blocks)) = world.session.messages().last() else { panic!() };
    assert!(matches!(&blocks[..], [Block::Text { text }] if text == "heard: Text: three"), "{blocks:?}");
    assert_eq!((world.session.usage().requests, world.session.usage().total.input_tokens), (5, 50));
    let [child, parent] = &world.logs()[..] else { panic!() };
    assert!(child.contains(r#""role":"user""#) && child.contains("seq 3"));
    let order: Vec<usize> = [
        r#""type":"sub_agent_start""#,
        r#""kind":"sub_agent""#,
        r#""type":"sub_agent_result""#,
        r#""type":"sub_agent_end""#,
    ]
    .map(|part| parent.find(part).unwrap_or_else(|| panic!("{part} is in {parent}")))
    .into();
    assert!(order.is_sorted(), "{order:?}");
    let loaded = load(parent.as_bytes());
    assert_eq!((loaded.usage.requests, loaded.usage.total.input_tokens, loaded.repairs.len()), (5, 50, 0));
    assert_eq!(loaded.messages.len(), world.session.messages().len());
}

#[tokio::test]
async fn a_fork_knows_the_conversation_and_others_do_not() {
    for (fork, expect) in [(true, 3), (false, 1)] {
        let mut world = World::new(move |messages| match last_user(messages) {
            "earlier" => says("yes"),
            "go" => calls(&[("SubAgent", &format!(r#"{{"prompt": "look", "fork": {fork}}}"#))]),
            "look" => says("seen"),
            _ => says("end"),
        });
        world.turn("earlier").await;
        world.turn("go").await;
        let asked = world.asked.lock().unwrap();
        let child = asked.iter().find(|messages| last_user(messages) == "look").unwrap();
        // The prompt of before, its answer, the one that is being answered, and the child's own.
        assert_eq!(child.len(), expect + usize::from(fork), "{child:?}");
        assert_eq!(first(child), if fork { "earlier" } else { "look" });
    }
}

#[tokio::test]
async fn a_child_that_fails_or_says_nothing_is_told_as_such() {
    let blank = || vec![Block::text(" ")];
    for (answer, expect) in [
        (blank as fn() -> Vec<Block>, "[sub-agent ID] failed (in=10, out=1)\nText: (no answer)"),
        (Vec::new, "[sub-agent ID] failed (in=0, out=0)\nText: (no such model)"),
    ] {
        let mut world = World::new(move |messages| match (first(messages), messages.len()) {
            ("go", 1) => calls(&[("SubAgent", r#"{"prompt": "x"}"#)]),
            ("go", _) => says("end"),
            _ => answer(),
        });
        world.turn("go").await;
        assert_eq!(world.told(), [expect]);
    }
}

#[tokio::test]
async fn children_start_no_children_and_none_start_where_they_are_switched_off() {
    let mut world = World::new(|messages| match (first(messages), messages.len()) {
        ("go", 1) => calls(&[("SubAgent", r#"{"prompt": "deep"}"#)]),
        ("deep", 1) => calls(&[("SubAgent", r#"{"prompt": "deeper"}"#)]),
        ("deep", _) => match messages.last().unwrap() {
            Message::Results(results) => says(&results[0].text()),
            Message::User(_) | Message::Assistant(_) => says("?"),
        },
        _ => says("end"),
    });
    world.turn("go").await;
    let told = world.told().remove(0);
    assert!(told.ends_with("Error: sub-agent recursion limit reached; child agents cannot launch SubAgent"), "{told}");

    let mut limits = Limits::default();
    limits.max_sub_agents = 0;
    let mut world = World::with(limits, Permissions::Allow, |messages| match messages.len() {
        1 => calls(&[("SubAgent", r#"{"prompt": "x"}"#)]),
        _ => says("end"),
    });
    world.turn("go").await;
    assert_eq!(world.seen, [""; 0]);
}

#[tokio::test]
async fn no_more_run_than_may_and_all_are_heard() {
    let mut limits = Limits::default();
    limits.max_sub_agents = 2;
    let running = Arc::new(Mutex::new((0_usize, 0_usize)));
    let counted = running.clone();
    let mut world = World::with(limits, Permissions::Allow, move |messages| match (first(messages), messages.len()) {
        ("go", 1) => calls(&[("SubAgent", r#"{"prompt": "x"}"#); 6]),
        ("go", _) => says("on"),
        (_, 1) => {
            let mut now = counted.lock().unwrap();
            now.0 += 1;
            now.1 = now.1.max(now.0);
            calls(&[("Bash", r#"{"command": "sleep 0.1"}"#)])
        }
        _ => {
            counted.lock().unwrap().0 -= 1;
            says("done")
        }
    });
    assert_eq!(world.turn("go").await, Ending::Done);
    assert_eq!(running.lock().unwrap().1, 2);
    let told = world.told().join("\n\n");
    assert_eq!(told.matches("Text: done").count(), 6, "{told}");
}

#[tokio::test]
async fn whoever_stops_the_parent_stops_its_children_and_their_commands() {
    let mut world = World::new(|messages| match (first(messages), messages.len()) {
        ("go", 1) => calls(&[("SubAgent", r#"{"prompt": "x"}"#)]),
        ("go", _) => says("waiting"),
        _ => calls(&[("Bash", r#"{"command": "touch begun; sleep 60; touch finished"}"#)]),
    });
    let (stop, begun) = (CancellationToken::new(), world.session.place.cwd.join("begun"));
    let watch = tokio::spawn({
        let stop = stop.clone();
        async move {
            while !begun.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            stop.cancel();
        }
    });
    assert_eq!(world.turn_until("go", stop).await, Ending::Cancelled);
    watch.await.unwrap();
    // The next turn hears of it.
    world.agent.provider =
        Arc::new(Minded { model: Model::new("m", "m"), mind: Arc::new(|_| says("end")), asked: Arc::default() });
    world.turn("again").await;
    let told = world.told().join("\n");
    assert!(told.contains("[sub-agent ID] cancelled"), "{told}");
    assert!(!world.session.place.cwd.join("finished").exists());
}

#[tokio::test]
async fn a_childs_question_goes_to_whoever_watches_the_parent() {
    for (answer, expect) in [(Answer::Once, true), (Answer::Reject, false)] {
        let mut world =
            World::with(Limits::default(), Permissions::Ask, |messages| match (first(messages), messages.len()) {
                ("go", 1) => calls(&[("SubAgent", r#"{"prompt": "x"}"#)]),
                ("x", 1) => calls(&[("Bash", r#"{"command": "touch made"}"#)]),
                _ => says("end"),
            });
        world.answer = Some(answer);
        world.turn("go").await;
        let asked: Vec<&String> = world.seen.iter().filter(|seen| seen.starts_with("ask sub_")).collect();
        assert!(matches!(&asked[..], [only] if only.ends_with("touch made")), "{:?}", world.seen);
        assert_eq!(world.session.place.cwd.join("made").exists(), expect);
    }
}

#[tokio::test]
async fn a_background_command_is_told_of_when_it_ends() {
    let script = |messages: &[Message]| match messages.len() {
        1 => calls(&[("Bash", r#"{"command": "echo here; sleep 0.2; exit 3", "background": true}"#)]),
        3 => says("waiting"),
        _ => says("end"),
    };
    let mut world = World::new(script);
    assert_eq!(world.turn("go").await, Ending::Done);
    let told = world.told();
    assert!(told.len() == 1 && told[0].starts_with("[bg-bash task_1-"), "{told:?}");
    assert!(told[0].ends_with("] exit_code=3\nOutput: here\n"), "{told:?}");
    assert!(world.logs()[0].contains(r#""type":"async_task_result""#));

    // Where a person gives the next prompt nobody waits for it, and it comes with that prompt.
    let mut world = World::new(script);
    world.session.waits = Waits::Children;
    assert_eq!(world.turn("go").await, Ending::Done);
    assert_eq!(world.told(), [""; 0]);
    while world.session.jobs.running() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.turn("next").await;
    assert!(world.told().iter().any(|text| text.contains("exit_code=3")), "{:?}", world.told());
}

#[tokio::test]
async fn background_commands_are_listed_read_and_stopped_and_end_with_the_session() {
    let mut world = World::new(|messages| match messages.last().unwrap() {
        Message::User(_) if messages.len() == 1 => calls(&[
            ("Bash", r#"{"command": "echo one; sleep 60 & echo $! > pid; wait", "background": true, "timeout": 50}"#),
            ("Bash", r#"{"command": "echo limit; sleep 60", "background": true, "timeout": 1}"#),
            ("Bash", r#"{"command": "until [ -s pid ]; do sleep 0.02; done; touch seen"}"#),
        ]),
        Message::Results(results) if messages.len() == 3 => {
            let id = results[0].text().split("task_id=").nth(1).unwrap().to_owned();
            calls(&[
                ("Bash", r#"{"action": "list"}"#),
                ("Bash", &format!(r#"{{"action": "output", "task": "{id}"}}"#)),
                ("Bash", &format!(r#"{{"action": "stop", "task": "{id}"}}"#)),
                ("Bash", &format!(r#"{{"action": "stop", "task": "{id}"}}"#)),
                ("Bash", r#"{"action": "output", "task": "nope"}"#),
            ])
        }
        _ => says("end"),
    });
    assert_eq!(world.turn("go").await, Ending::Done);
    let results: Vec<String> = world
        .session
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Results(results) => Some(results.iter().map(agent_core::CallResult::text).collect::<Vec<_>>()),
            Message::User(_) | Message::Assistant(_) => None,
        })
        .flatten()
        .collect();
    let list: Vec<&str> = results[3].lines().collect();
    assert!(list[0].contains("(running for ") && list[0].contains("): echo one;") && list.len() == 2, "{list:?}");
    assert!(results[4].starts_with("one\n[task_1-") && results[4].contains("is running for"), "{}", results[4]);
    assert!(results[5].starts_with("Stopped task_1-"), "{}", results[5]);
    // Both may run at the same time.
    assert!(results[6].contains("is not running any more") || results[6] == results[5], "{}", results[6]);
    assert!(
        results[7].starts_with("Error: there is no background command \"nope\"; there are: task_1-"),
        "{}",
        results[7]
    );
    let told = world.told().join("\n\n");
    assert!(told.contains("exit_code=143\nOutput: one\n[stopped]"), "{told}");
    assert!(told.contains("exit_code=124\nOutput: limit\n[... command timed out after 1 seconds ...]"), "{told}");
    let pid = std::fs::read_to_string(world.session.place.cwd.join("pid")).unwrap();
    for _ in 0..500 {
        if !runs(pid.trim()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("what it started ended with it");
}

/// Whether a process runs; one that has ended and waits to be asked how does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

#[tokio::test]
async fn usage_of_the_scripted_answers_is_counted() {
    // Guards the numbers above: ten tokens in and one out a block.
    let Scripted::Deltas(deltas) = Scripted::text("x") else { panic!() };
    let usage = deltas.iter().find_map(|delta| match delta {
        Ok(Delta::Usage(usage)) => Some(*usage),
        _ => None,
    });
    assert_eq!(usage, Some(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() }));
    assert!(matches!(deltas.last(), Some(Ok(Delta::Stop(Stop::End)))));
}

/// A token that is sent costs a dollar: each block ten.
#[tokio::test]
async fn a_limit_of_money_holds_for_sub_agents_too() {
    let mut limits = Limits::default();
    limits.max_cost = Some(35.0);
    let mut world = World::with(limits, Permissions::Allow, |messages| match (first(messages), messages.len()) {
        ("go", 1) => calls(&[("SubAgent", r#"{"prompt": "a"}"#), ("SubAgent", r#"{"prompt": "b"}"#)]),
        ("go", _) => says("done"),
        _ => calls(&[("Bash", r#"{"command": "true"}"#)]),
    });
    assert_eq!(world.turn("go").await, Ending::Limit(Limit::Cost));
    let asked = world.asked.lock().unwrap().len();
    assert!(asked <= 5, "{asked} requests; alone each sub-agent could have made four");
}
