//! What a person says while a turn runs, and turns that news start.

use std::sync::Arc;

use agent_core::provider::scripted::{Answer, Scripted};
use agent_core::provider::{Model, Provider, ProviderError, Replies, Request};
use agent_core::session::{Journal, Memory, load};
use agent_core::{
    Agent, Ending, Event, Limit, Message, Prompt, Running, Session, SessionId, Steering, Waits, start, start_on_news,
};
use agent_tools::{Part, Place};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::turns::{Noon, agent};

/// A model that plays a script, and a person who speaks while it answers one of the requests.
struct Interrupted {
    model: Scripted,
    /// While which request, counted from 1.
    at: usize,
    words: Vec<String>,
    steering: Steering,
}

#[async_trait]
impl Provider for Interrupted {
    fn model(&self) -> &Model {
        self.model.model()
    }

    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError> {
        let replies = self.model.reply(request).await;
        if self.model.asked().len() == self.at {
            self.words.iter().for_each(|word| self.steering.inject(Prompt::text(word)));
        }
        replies
    }
}

struct World {
    _folder: tempfile::TempDir,
    model: Scripted,
    agent: Agent,
    log: Memory,
    session: Session,
}

impl World {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = Scripted::new(answers);
        let agent = agent(model.clone());
        let mut place = Place::new(folder.path());
        place.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        place.store = Some(folder.path().join("session"));
        let log = Memory::default();
        let journal = Journal::new(SessionId::named("s"), Box::new(log.clone()), Arc::new(Noon), "/w");
        let mut session = Session::new(place, journal);
        session.waits = Waits::Children;
        Self { _folder: folder, model, agent, log, session }
    }

    /// Words that a person says while this request is answered.
    fn saying(mut self, at: usize, words: &[&str]) -> Self {
        let words = words.iter().map(ToString::to_string).collect();
        let steering = self.session.steering();
        self.agent.provider = Arc::new(Interrupted { model: self.model.clone(), at, words, steering });
        self
    }

    async fn turn(&mut self, prompt: &str) -> (Ending, Vec<String>) {
        watch(start(self.agent.clone(), &mut self.session, Prompt::text(prompt), CancellationToken::new())).await
    }

    async fn on_news(&mut self) -> (Ending, Vec<String>) {
        watch(start_on_news(self.agent.clone(), &mut self.session, CancellationToken::new())).await
    }

    /// The last message of each request: what it was made for.
    fn last_of_requests(&self) -> Vec<String> {
        self.model.asked().iter().map(|asked| text(asked.messages.last().unwrap())).collect()
    }
}

/// How a turn ended, and the prompts that it showed.
async fn watch(mut running: Running<'_>) -> (Ending, Vec<String>) {
    let (mut ending, mut prompts) = (None, Vec::new());
    while let Some(stamped) = running.next().await {
        match stamped.event {
            Event::Prompt(prompt) => prompts.push(prompt.parts[0].as_text().to_owned()),
            Event::Ended(ended) => ending = Some(ended.unwrap()),
            _ => {}
        }
    }
    (ending.unwrap(), prompts)
}

fn text(message: &Message) -> String {
    match message {
        Message::User(parts) => parts.iter().map(Part::as_text).collect(),
        Message::Results(_) => "results".into(),
        Message::Assistant(_) => "answer".into(),
    }
}

fn command(command: &str) -> Answer {
    Answer::calls([("c1", "Bash", serde_json::json!({"command": command}).to_string().as_str())])
}

#[tokio::test]
async fn words_reach_the_model_at_the_next_boundary_or_where_the_turn_would_end() {
    for (at, words, expect) in [
        (1, &["use tabs"][..], &["go", "use tabs"][..]),
        (1, &["use tabs", "and no spaces"], &["go", "use tabs\n\nand no spaces"]),
        (2, &["one more thing"], &["go", "results", "one more thing"]),
        (0, &[], &["go", "results"]),
    ] {
        let answers = [command("echo hi"), Answer::text("done"), Answer::text("done, and that too")];
        let mut world = World::new(answers.into_iter().take(expect.len())).saying(at, words);
        let (ending, prompts) = world.turn("go").await;
        assert_eq!(ending, Ending::Done);
        assert_eq!(prompts[1..], *words, "{at}: each is shown");
        assert_eq!(world.last_of_requests(), expect, "{at}");
        let log = world.log.lines();
        let logged = |word: &&str| log.contains(&format!(r#""type":"user_input","content":"{word}""#));
        assert!(words.iter().all(logged), "{log}");
        let loaded = load(log.as_bytes());
        assert_eq!(loaded.repairs, [""; 0]);
        let texts = |messages: &[Message]| messages.iter().map(text).collect::<Vec<_>>();
        assert_eq!(texts(&loaded.messages), texts(world.session.messages()));
    }
}

#[tokio::test]
async fn what_came_too_late_comes_first_with_the_next_turn() {
    let mut world = World::new([Answer::text("one"), Answer::text("two")]);
    world.turn("first").await;
    world.session.steering().inject(Prompt::text("too late"));
    assert_eq!(world.turn("second").await.1, ["too late", "second"]);
    let texts: Vec<String> = world.model.asked()[1].messages.iter().map(text).collect();
    assert_eq!(texts, ["first", "answer", "too late", "second"]);
}

#[tokio::test]
async fn news_can_be_waited_for_and_have_a_turn_of_their_own() {
    let background = r#"{"command": "until [ -e go ]; do sleep 0.02; done; echo built", "background": true}"#;
    let mut world = World::new([
        Answer::calls([("c1", "Bash", background)]),
        Answer::text("it runs"),
        Answer::calls([("c2", "Bash", r#"{"command": "echo looked"}"#)]),
        Answer::text("it is built"),
        Answer::text("heard"),
    ]);
    // Each of the turns makes two requests: the second has a budget of its own.
    world.agent.limits.max_turns = 2;
    world.turn("build").await;
    // Nothing has come in: no request is made.
    assert_eq!(world.on_news().await.0, Ending::Done);
    assert_eq!(world.model.asked().len(), 2);
    std::fs::write(world.session.place.cwd.join("go"), "").unwrap();
    world.session.news().await;
    assert_eq!(world.on_news().await.0, Ending::Done);
    let told = &world.last_of_requests()[2];
    assert!(told.starts_with("[bg-bash ") && told.contains("built"), "{told}");
    // Words said between turns are news too.
    world.session.steering().inject(Prompt::text("hello?"));
    world.session.news().await;
    assert_eq!(world.on_news().await.1, ["hello?"]);
    assert_eq!(world.last_of_requests()[4], "hello?");
}

#[tokio::test]
async fn words_that_were_not_read_can_be_taken_back() {
    let mut world = World::new([command("echo hi"), Answer::text("on")]).saying(1, &["a", "b"]);
    world.agent.limits.max_turns = 1;
    assert_eq!(world.turn("go").await.0, Ending::Limit(Limit::Turns(1)));
    let back: Vec<String> = world.session.take_back().iter().map(|p| p.parts[0].as_text().to_owned()).collect();
    assert_eq!(back, ["a", "b"]);
    assert_eq!(world.turn("again").await.1, ["again"]);
}
