//! The lines of a log one after the other, however long the log or a line is.

use std::io::{self, BufRead};

/// The longest line that is read, in bytes.
pub(in crate::session) const LIMIT: usize = 256 << 20;

/// How much room is kept for the next line that does not lie in the reader's buffer.
const ROOM: usize = 1 << 20;

/// Reads lines. Only a line feed ends one.
pub(in crate::session) struct Lines<R> {
    source: R,
    limit: usize,
    carry: Carry,
    // How much of the source's buffer the last line had.
    used: usize,
    number: u64,
    end: u64,
}

/// A line, valid until the next one is read.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct Line<'a> {
    /// Its number, from 1.
    pub(in crate::session) number: u64,
    /// Its bytes without the line feed; none where it is too long.
    pub(in crate::session) bytes: &'a [u8],
    /// How many bytes were read up to its end.
    pub(in crate::session) end: u64,
    /// Whether a line feed ended it.
    pub(in crate::session) ended: bool,
    /// It is longer than the limit.
    pub(in crate::session) too_long: bool,
}

/// What is kept of a line that does not lie whole in the source's buffer.
#[derive(Default)]
struct Carry {
    bytes: Vec<u8>,
    begun: bool,
    too_long: bool,
}

impl Carry {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(ROOM);
        (self.begun, self.too_long) = (false, false);
    }

    /// Pieces of nothing but NULs, which a power cut leaves by the megabyte, take no room.
    fn push(&mut self, piece: &[u8], limit: usize) {
        self.begun = true;
        self.too_long |= self.bytes.len() + piece.len() > limit;
        if self.too_long {
            self.bytes = Vec::new();
        } else if piece.iter().any(|byte| *byte != 0) {
            self.bytes.extend_from_slice(piece);
        }
    }
}

/// Where the next line is.
enum Found {
    /// In the source's buffer, so long.
    Buffered(usize),
    /// In the carry.
    Carried { ended: bool },
    /// There is none.
    Nothing,
}

impl<R: BufRead> Lines<R> {
    pub(in crate::session) fn new(source: R, limit: usize) -> Self {
        Self { source, limit, carry: Carry::default(), used: 0, number: 0, end: 0 }
    }

    /// The next line.
    ///
    /// # Errors
    /// Those of the source.
    pub(in crate::session) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.source.consume(std::mem::take(&mut self.used));
        self.carry.clear();
        let found = self.find()?;
        self.number += 1;
        let (number, end) = (self.number, self.end);
        Ok(match found {
            Found::Nothing => None,
            Found::Carried { ended } => {
                Some(Line { number, bytes: &self.carry.bytes, end, ended, too_long: self.carry.too_long })
            }
            Found::Buffered(length) => {
                self.used = length + 1;
                let too_long = length > self.limit;
                // It is there already: nothing is read now.
                let bytes = if too_long { &[] } else { &self.source.fill_buf()?[..length] };
                Some(Line { number, bytes, end, ended: true, too_long })
            }
        })
    }

    fn find(&mut self) -> io::Result<Found> {
        loop {
            let piece = match self.source.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if piece.is_empty() {
                return Ok(if self.carry.begun { Found::Carried { ended: false } } else { Found::Nothing });
            }
            let end = memchr::memchr(b'\n', piece);
            if let Some(end) = end.filter(|_| !self.carry.begun) {
                self.end += end as u64 + 1;
                return Ok(Found::Buffered(end));
            }
            self.carry.push(&piece[..end.unwrap_or(piece.len())], self.limit);
            let read = end.map_or(piece.len(), |end| end + 1);
            self.end += read as u64;
            self.source.consume(read);
            if end.is_some() {
                return Ok(Found::Carried { ended: true });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_are_the_same_whatever_the_buffer() {
        for (text, expect) in [
            ("", ""),
            ("a", "a-"),
            ("a\n", "a"),
            ("a\n\nbc\r\nd", "a||bc\r|d-"),
            ("aaaaaaaaaa\nb\naaaaaaaaaaaaa", "!|b|!-"),
            ("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\n", ""),
        ] {
            for buffer in [1, 2, 3, 7] {
                let mut lines = Lines::new(BufReader::with_capacity(buffer, text.as_bytes()), 9);
                let mut seen = Vec::new();
                while let Some(line) = lines.next().unwrap() {
                    let text = String::from_utf8_lossy(line.bytes).replace('\0', "");
                    let text = if line.too_long { "!".into() } else { text };
                    seen.push(text + if line.ended { "" } else { "-" });
                }
                assert_eq!(seen.join("|"), expect, "{text:?} {buffer}");
            }
        }
    }

    #[test]
    fn a_gap_of_nuls_takes_no_room() {
        let source = BufReader::with_capacity(1 << 12, io::Read::take(io::repeat(0), 1 << 24));
        let mut lines = Lines::new(source, 1 << 13);
        let line = lines.next().unwrap().unwrap();
        assert_eq!((line.bytes.len(), line.too_long, line.ended), (0, false, false));
        assert!(lines.next().unwrap().is_none());
    }
}
