//! Files as the editor has them: a buffer that is not saved yet is what a person sees, and is read and written through
//! the editor. All else is the disk's, and so is what a command of ours may have changed since.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use agent_client_protocol_schema::v1::{ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest};
use agent_tools::builtin::Disk;
use agent_tools::{Files, OpenedFile, WriteError};
use async_trait::async_trait;
use serde_json::Value;
use tokio::time::timeout;

use crate::client::Client;
use crate::connection::Connection;

/// Larger files are not open in an editor, in bytes.
const LARGEST: u64 = 1 << 20;
/// How long the editor may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// When the last command of a session began.
#[derive(Debug, Clone, Default)]
pub struct Commands(Arc<Mutex<Option<SystemTime>>>);

impl Commands {
    /// One begins now.
    pub fn begin(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(SystemTime::now());
    }

    /// Whether one may have changed a file: it was written since.
    fn may_have_changed(&self, path: &Path) -> bool {
        let Some(begun) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) else { return false };
        path.metadata().and_then(|about| about.modified()).is_ok_and(|written| written >= begun)
    }
}

/// The editor's buffers over the disk.
pub struct Buffers {
    connection: Arc<Connection>,
    client: Client,
    session: String,
    commands: Commands,
}

impl Buffers {
    /// The buffers of a client that shows them.
    pub fn new(connection: Arc<Connection>, client: Client, session: &str, commands: Commands) -> Self {
        Self { connection, client, session: session.to_owned(), commands }
    }

    /// What the editor has of a file that differs from the disk's `text`; none where it has nothing else.
    async fn unsaved(&self, path: &Path, text: &str) -> Option<String> {
        if !self.client.reads_files || self.commands.may_have_changed(path) {
            return None;
        }
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        let asked = self.connection.request::<ReadTextFileResponse>("fs/read_text_file", &request);
        let content = timeout(PATIENCE, asked).await.ok()?.ok()?.content;
        // Editors hold lines apart by `\n` alone, whatever the file has.
        let same = text == content || text.replace("\r\n", "\n") == content;
        (!same).then_some(content)
    }
}

/// The text of the disk's file; none where it is too large, or no text.
fn text_of(mut opened: OpenedFile) -> io::Result<(Vec<u8>, Option<String>)> {
    let mut bytes = Vec::new();
    opened.reader.read_to_end(&mut bytes)?;
    let text = std::str::from_utf8(&bytes).ok().map(str::to_owned);
    Ok((bytes, text))
}

fn opened(bytes: Vec<u8>) -> OpenedFile {
    OpenedFile { len: bytes.len() as u64, reader: Box::new(io::Cursor::new(bytes)) }
}

#[async_trait]
impl Files for Buffers {
    async fn open(&self, path: &Path) -> io::Result<OpenedFile> {
        match Disk.open(path).await {
            Ok(file) if file.len <= LARGEST => {
                let (bytes, text) = text_of(file)?;
                let Some(text) = text else { return Ok(opened(bytes)) };
                let unsaved = self.unsaved(path, &text).await;
                Ok(opened(unsaved.map_or(bytes, String::into_bytes)))
            }
            other => other,
        }
    }

    async fn replace(&self, path: &Path, expected: Option<&[u8]>, contents: &[u8]) -> Result<(), WriteError> {
        let (true, Ok(new)) = (self.client.writes_files, std::str::from_utf8(contents)) else {
            return Disk.replace(path, expected, contents).await;
        };
        let text = match Disk.open(path).await {
            Ok(file) if file.len <= LARGEST => text_of(file)?.1,
            Ok(_) | Err(_) => None,
        };
        let unsaved = match text {
            Some(text) => self.unsaved(path, &text).await,
            None => None,
        };
        let Some(unsaved) = unsaved else { return Disk.replace(path, expected, contents).await };
        if expected != Some(unsaved.as_bytes()) {
            return Err(WriteError::Changed);
        }
        let request = WriteTextFileRequest::new(self.session.clone(), path, new);
        let written = self.connection.request::<Value>("fs/write_text_file", &request);
        let failed = |why: String| WriteError::Io(io::Error::other(format!("the editor did not take it: {why}")));
        match timeout(PATIENCE, written).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(failed(error.message)),
            Err(_) => Err(failed("no answer in time".into())),
        }
    }
}
