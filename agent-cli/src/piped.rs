//! The prompt that comes through a pipe: of bounded size, and told about where it has to be waited for.

use std::time::Duration;

use tokio::io::{self, AsyncReadExt};

use crate::error::CliError;
use crate::view::tell;

/// The largest prompt, in bytes.
const MOST: u64 = 16 << 20;

/// How long nobody wonders what the program does.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads stdin to its end.
///
/// # Errors
/// It cannot be read, or is too long.
pub async fn prompt() -> Result<String, CliError> {
    let reading = read();
    tokio::pin!(reading);
    let bytes = tokio::select! {
        bytes = &mut reading => bytes?,
        () = tokio::time::sleep(PATIENCE) => {
            tell(&["reading the prompt from stdin…".into()]);
            reading.await?
        }
    };
    if bytes.len() as u64 > MOST {
        return Err(CliError::usage(format!("the prompt on stdin is longer than {} MiB", MOST >> 20))
            .hint("write it to a file, and name the file in the prompt"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn read() -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = io::stdin().take(MOST + 1).read_to_end(&mut bytes).await;
    read.map_err(|e| CliError::failed(format!("reading the prompt from stdin: {e}")))?;
    Ok(bytes)
}
