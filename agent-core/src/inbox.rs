//! What comes in while a session works or waits: results of sub-agents and of background commands.

use std::sync::Arc;

use agent_tools::Note;
use tokio::sync::mpsc;

use crate::children::ChildEnd;

/// Something that the model is told before its next request.
#[derive(Debug)]
pub(crate) enum News {
    /// What a tool has to tell.
    Note(Note),
    /// A sub-agent has ended.
    Child(Arc<ChildEnd>),
}

impl News {
    /// The text that the model reads.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Note(note) => note.text.clone(),
            Self::Child(end) => end.to_string(),
        }
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
}
