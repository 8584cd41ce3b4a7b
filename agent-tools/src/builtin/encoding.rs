//! How the bytes of a file are text: UTF-8 with or without a byte order mark, UTF-16 with one, or neither.

use std::borrow::Cow;
use std::io::{self, Read};

use encoding_rs::{CoderResult, Decoder, UTF_16BE, UTF_16LE};

/// How far into a file a NUL makes it binary.
pub(super) const SNIFF: usize = 8 << 10;

/// How the bytes of a file are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8, or something near it without a mark: the bytes stay as they are.
    Bytes,
    /// UTF-8 after a byte order mark.
    MarkedUtf8,
    /// UTF-16, the low byte first, after a byte order mark.
    Utf16Le,
    /// UTF-16, the high byte first, after a byte order mark.
    Utf16Be,
}

impl Encoding {
    /// What the start of a file says.
    pub(super) fn of(start: &[u8]) -> Self {
        match start {
            [0xef, 0xbb, 0xbf, ..] => Self::MarkedUtf8,
            // Four bytes a character, UTF-32: binary to us.
            [0xff, 0xfe, 0, 0, ..] => Self::Bytes,
            [0xff, 0xfe, ..] => Self::Utf16Le,
            [0xfe, 0xff, ..] => Self::Utf16Be,
            _ => Self::Bytes,
        }
    }

    /// The byte order mark.
    pub(super) const fn mark(self) -> &'static [u8] {
        match self {
            Self::Bytes => b"",
            Self::MarkedUtf8 => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
        }
    }

    /// Whether a file that starts thus is no text.
    pub(super) fn is_binary(self, start: &[u8]) -> bool {
        self.utf16().is_none() && memchr::memchr(0, &start[..start.len().min(SNIFF)]).is_some()
    }

    /// The text of a file without its mark; none where UTF-16 is damaged.
    pub(super) fn text(self, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
        let unmarked = &bytes[self.mark().len().min(bytes.len())..];
        match self.utf16() {
            None => Some(Cow::Borrowed(unmarked)),
            Some(utf16) => {
                let text = utf16.decode_without_bom_handling_and_without_replacement(unmarked)?;
                Some(Cow::Owned(text.into_owned().into_bytes()))
            }
        }
    }

    /// The bytes of a file with this text: the way back from [`Self::text`].
    pub(super) fn bytes(self, text: &[u8]) -> Vec<u8> {
        let units = || String::from_utf8_lossy(text).encode_utf16().collect::<Vec<u16>>();
        let mut bytes = self.mark().to_vec();
        match self {
            Self::Bytes | Self::MarkedUtf8 => bytes.extend_from_slice(text),
            Self::Utf16Le => bytes.extend(units().into_iter().flat_map(u16::to_le_bytes)),
            Self::Utf16Be => bytes.extend(units().into_iter().flat_map(u16::to_be_bytes)),
        }
        bytes
    }

    fn utf16(self) -> Option<&'static encoding_rs::Encoding> {
        match self {
            Self::Bytes | Self::MarkedUtf8 => None,
            Self::Utf16Le => Some(UTF_16LE),
            Self::Utf16Be => Some(UTF_16BE),
        }
    }
}

/// A file's text for people: what cannot be decoded is replaced.
pub(super) fn shown(bytes: &[u8]) -> String {
    match Encoding::of(bytes).utf16() {
        // Whole text, the usual case, is checked in far less time than damage is replaced.
        None => std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), str::to_owned),
        Some(utf16) => utf16.decode_with_bom_removal(bytes).0.into_owned(),
    }
}

/// The bytes of a reader without its byte order mark, and as UTF-8 where it is UTF-16.
pub(super) fn unmarked(start: Vec<u8>, rest: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    let encoding = Encoding::of(&start);
    let mut start = io::Cursor::new(start);
    start.set_position(encoding.mark().len() as u64);
    let all = start.chain(rest);
    match encoding.utf16() {
        None => Box::new(all),
        Some(utf16) => Box::new(AsUtf8 {
            inner: all,
            decoder: utf16.new_decoder_without_bom_handling(),
            held: Vec::new(),
            done: false,
        }),
    }
}

/// Decodes while it reads.
struct AsUtf8<R> {
    inner: R,
    decoder: Decoder,
    held: Vec<u8>,
    done: bool,
}

impl<R: Read> Read for AsUtf8<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.held.is_empty() && !self.done {
            self.refill()?;
        }
        let count = into.len().min(self.held.len());
        into[..count].copy_from_slice(&self.held[..count]);
        self.held.drain(..count);
        Ok(count)
    }
}

impl<R: Read> AsUtf8<R> {
    fn refill(&mut self) -> io::Result<()> {
        let mut raw = vec![0; 1 << 16];
        let count = self.inner.read(&mut raw)?;
        self.done = count == 0;
        let most = self.decoder.max_utf8_buffer_length(count).unwrap_or(count * 3 + 16);
        self.held.resize(most, 0);
        let (result, _, written, _) = self.decoder.decode_to_utf8(&raw[..count], &mut self.held, self.done);
        debug_assert_eq!(result, CoderResult::InputEmpty, "the buffer has the length that the decoder asked for");
        self.held.truncate(written);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(bytes: &[u8], split: usize) -> String {
        let (start, rest) = bytes.split_at(split.min(bytes.len()));
        let mut text = Vec::new();
        unmarked(start.to_vec(), io::Cursor::new(rest.to_vec())).read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn starts_tell_the_encoding() {
        for (start, encoding, binary) in [
            (&b"abc"[..], Encoding::Bytes, false),
            (b"", Encoding::Bytes, false),
            (b"\xef\xbb\xbfabc", Encoding::MarkedUtf8, false),
            (b"\xff\xfea\0", Encoding::Utf16Le, false),
            (b"\xfe\xff\0a", Encoding::Utf16Be, false),
            (b"\xff\xfe\0\0a\0\0\0", Encoding::Bytes, true),
            (b"a\0", Encoding::Bytes, true),
            (b"caf\xe9", Encoding::Bytes, false),
        ] {
            let found = Encoding::of(start);
            assert_eq!((found, found.is_binary(start)), (encoding, binary), "{start:?}");
        }
    }

    #[test]
    fn damaged_utf16_is_no_text_to_edit_but_can_be_shown() {
        let lone = b"\xff\xfea\0\x00\xd8b\0";
        assert_eq!(Encoding::of(lone).text(lone), None);
        assert_eq!(shown(lone), "a\u{fffd}b");
        assert_eq!(read_all(lone, 2), "a\u{fffd}b");
        assert_eq!(read_all(b"\xff\xfea\0b", 3), "a\u{fffd}");
    }

    proptest! {
        #[test]
        fn text_and_bytes_are_each_others_way_back(text in "\\PC{0,40}", split in 4_usize..60) {
            prop_assume!(!text.starts_with(['\u{feff}', '\0']));
            for encoding in [Encoding::Bytes, Encoding::MarkedUtf8, Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = encoding.bytes(text.as_bytes());
                prop_assert_eq!(Encoding::of(&bytes), encoding);
                let back = encoding.text(&bytes).unwrap();
                prop_assert_eq!(back.as_ref(), text.as_bytes());
                prop_assert_eq!(&read_all(&bytes, split), &text);
            }
        }
    }
}
