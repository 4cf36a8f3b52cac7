//! The bytes of a transcript: a file, or what a transcript document would be as one.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use crate::error::Result;
use crate::store::disk::{FileId, failed};

/// Bytes in lines, and what they were read from.
pub enum Content {
    File(File),
    /// Made from the file with this identity.
    Memory(Vec<u8>, FileId),
}

impl Content {
    pub fn id(&self) -> Result<FileId> {
        match self {
            Self::File(file) => FileId::of(file),
            Self::Memory(bytes, of) => Ok(of.with_length(bytes.len() as u64)),
        }
    }

    /// Milliseconds since the epoch of the last append; none for what is no file of lines.
    pub fn written_ms(&self) -> Result<Option<u64>> {
        match self {
            Self::File(file) => Ok(Some(FileId::of(file)?.modified_ms())),
            Self::Memory(..) => Ok(None),
        }
    }

    /// Reads lines from an offset on.
    pub fn lines(&self, offset: u64) -> Result<Box<dyn BufRead + '_>> {
        match self {
            Self::File(file) => {
                let mut reader = BufReader::with_capacity(1 << 16, file);
                let sought = reader.seek(SeekFrom::Start(offset));
                sought.map_err(|error| failed("read a transcript", error))?;
                Ok(Box::new(reader))
            }
            Self::Memory(bytes, _) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                Ok(Box::new(bytes.get(start..).unwrap_or_default()))
            }
        }
    }

    /// Reads bytes that must be there.
    pub fn bytes(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self {
            Self::File(file) => {
                let mut bytes = vec![0; length];
                let read = file.read_exact_at(&mut bytes, offset);
                read.map_err(|error| failed("read a transcript", error))?;
                Ok(bytes)
            }
            Self::Memory(all, _) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let end = start.saturating_add(length);
                Ok(all.get(start..end).unwrap_or_default().to_vec())
            }
        }
    }
}
