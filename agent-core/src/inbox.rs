//! What comes in while a session works or waits: results of sub-agents and of background commands, and what a person says.

use std::sync::Arc;

use agent_tools::{Note, Part};
use tokio::sync::mpsc;

use crate::children::ChildEnd;
use crate::event::Prompt;

/// Something that the model is told before its next request.
#[derive(Debug)]
pub(crate) enum News {
    /// What a tool has to tell.
    Note(Note),
    /// A sub-agent has ended.
    Child(Arc<ChildEnd>),
    /// A person has something to say while the turn runs.
    Prompt(Prompt),
}

impl News {
    /// What the model reads.
    fn parts(&self) -> Vec<Part> {
        match self {
            Self::Note(note) => vec![Part::text(&note.text)],
            Self::Child(end) => vec![Part::text(end.to_string())],
            Self::Prompt(prompt) => prompt.parts.clone(),
        }
    }
}

/// All news as the model reads them: texts that follow each other are one, with an empty line between them.
pub(crate) fn parts(news: &[News]) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in news.iter().flat_map(News::parts) {
        match (all.last_mut(), part) {
            (Some(Part::Text { text }), Part::Text { text: more }) => {
                text.push_str("\n\n");
                text.push_str(&more);
            }
            (_, part) => all.push(part),
        }
    }
    all
}

/// What somebody keeps who wants to say something while a turn has the session.
#[derive(Debug, Clone)]
pub struct Steering(mpsc::UnboundedSender<News>);

impl Steering {
    /// Says this to the model before its next request, or where the turn would end, which then goes on. What comes when
    /// the turn is over stays: it is said first in the next turn, and [`Session::news`](crate::Session::news) wakes
    /// whoever waits.
    pub fn inject(&self, prompt: Prompt) {
        // Nobody is there to hear it where the session is gone.
        let _ = self.0.send(News::Prompt(prompt));
    }
}

/// The news of a session, in the order of their arrival.
pub(crate) struct Inbox {
    // A channel, because sub-agents and background commands run beside the turn, which alone has the session. Unbounded,
    // but each of them sends once.
    sender: mpsc::UnboundedSender<News>,
    receiver: mpsc::UnboundedReceiver<News>,
    arrived: Vec<News>,
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver, arrived: Vec::new() }
    }
}

impl Inbox {
    /// Where news are put in.
    pub(crate) fn sender(&self) -> mpsc::UnboundedSender<News> {
        self.sender.clone()
    }

    /// Where a person's words are put in.
    pub(crate) fn steering(&self) -> Steering {
        Steering(self.sender())
    }

    /// Waits until there are some. Nothing is lost if it is dropped before.
    pub(crate) async fn wait(&mut self) {
        if self.arrived.is_empty() {
            // The channel stays open: one sender is ours.
            self.arrived.extend(self.receiver.recv().await);
        }
    }

    /// Takes all there are.
    pub(crate) fn take(&mut self) -> Vec<News> {
        let mut all = std::mem::take(&mut self.arrived);
        while let Ok(news) = self.receiver.try_recv() {
            all.push(news);
        }
        all
    }

    /// Takes back what a person said and the model has not read.
    pub(crate) fn take_prompts(&mut self) -> Vec<Prompt> {
        let mut prompts = Vec::new();
        for news in self.take() {
            match news {
                News::Prompt(prompt) => prompts.push(prompt),
                News::Note(_) | News::Child(_) => self.arrived.push(news),
            }
        }
        prompts
    }
}
