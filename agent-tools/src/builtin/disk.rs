//! Files on the disk.

use std::io;
use std::path::Path;

use async_trait::async_trait;

use crate::context::{Files, Opened, WriteError};

/// Files on the disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

#[async_trait]
impl Files for Disk {
    async fn open(&self, _path: &Path) -> io::Result<Opened> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn replace(&self, _path: &Path, _expected: Option<&[u8]>, _contents: &[u8]) -> Result<(), WriteError> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }
}
