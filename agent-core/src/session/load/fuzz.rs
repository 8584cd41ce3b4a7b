//! A fuzz target: logs that are put together from records, pieces of records, and anything else.

use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{line, log, strict, texts};
use super::*;

/// What a log may be made of.
#[derive(Debug, Clone)]
enum Piece {
    /// A record with this number.
    Record(Short, u8),
    /// The beginning of one.
    Torn(Short, u8, u8),
    /// What stands between and around records.
    Between(Between),
    /// Anything.
    Bytes(Vec<u8>),
    /// All so far, from this part of it on, once more.
    Repeat(u8),
    /// All so far, with a byte changed.
    Changed(u8, u8),
}

#[derive(Debug, Clone, Copy)]
enum Short {
    Start,
    Input(bool),
    User(bool),
    Says,
    Calls(u8),
    Results(u8),
    Line(u8),
    Compact(u8),
    Rewind(u8),
    Name,
    Usage,
    Text,
}

#[derive(Debug, Clone, Copy)]
enum Between {
    LineFeed,
    Crlf,
    Cr,
    Nuls(u8),
    Mark,
    Separator,
}

impl Short {
    fn text(self) -> String {
        let ids = |n: u8| ["a", "b", "a a", "a b", "b c a"][usize::from(n % 5)];
        let word = |other: bool| if other { "go on" } else { "go" };
        match self {
            Self::Start => r#"{"type":"session_start","version":1,"cwd":"c"}"#.into(),
            Self::Input(other) => format!("input {}", word(other)),
            Self::User(other) => format!("user {}", word(other)),
            Self::Says => "says \u{2028}é".into(),
            Self::Calls(n) => format!("calls {}", ids(n)),
            Self::Results(n) => format!("results {}", ids(n)),
            Self::Line(n) => format!("line {}", &ids(n)[..1]),
            Self::Compact(n) => format!("compact {} sum", n % 8),
            Self::Rewind(n) => format!("rewind {n}"),
            Self::Name => r#"{"type":"session_name","name":"n"}"#.into(),
            Self::Usage => r#"{"type":"usage","kind":"agent","input_tokens":1,"total_input_tokens":2}"#.into(),
            Self::Text => r#"{"type":"text","content":"[{\"type\":\"x\"}]"}"#.into(),
        }
    }
}

impl Between {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::LineFeed => b"\n".to_vec(),
            Self::Crlf => b"\r\n".to_vec(),
            Self::Cr => b"\r".to_vec(),
            Self::Nuls(count) => vec![0; usize::from(count)],
            Self::Mark => b"\xef\xbb\xbf".to_vec(),
            Self::Separator => "\u{2028}".into(),
        }
    }
}

fn built(pieces: &[Piece]) -> Vec<u8> {
    let mut log = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Record(short, seq) => log.extend((line(&short.text(), (*seq).into()) + "\n").bytes()),
            Piece::Torn(short, seq, length) => {
                log.extend(line(&short.text(), (*seq).into()).bytes().take((*length).into()));
            }
            Piece::Between(between) => log.extend(between.bytes()),
            Piece::Bytes(bytes) => log.extend(bytes),
            Piece::Repeat(from) => log.extend_from_within(log.len() * usize::from(*from) / 256..),
            Piece::Changed(at, to) => {
                let at = log.len() * usize::from(*at) / 256;
                log.iter_mut().skip(at).take(1).for_each(|byte| *byte = *to);
            }
        }
        // Repeats double it.
        log.truncate(1 << 14);
    }
    log
}

fn short() -> impl Strategy<Value = Short> {
    prop_oneof![
        Just(Short::Start),
        any::<bool>().prop_map(Short::Input),
        any::<bool>().prop_map(Short::User),
        Just(Short::Says),
        any::<u8>().prop_map(Short::Calls),
        any::<u8>().prop_map(Short::Results),
        any::<u8>().prop_map(Short::Line),
        any::<u8>().prop_map(Short::Compact),
        any::<u8>().prop_map(Short::Rewind),
        Just(Short::Name),
        Just(Short::Usage),
        Just(Short::Text),
    ]
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        Just(Between::LineFeed),
        Just(Between::Crlf),
        Just(Between::Cr),
        any::<u8>().prop_map(Between::Nuls),
        Just(Between::Mark),
        Just(Between::Separator),
    ]
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        8 => (short(), any::<u8>()).prop_map(|(short, seq)| Piece::Record(short, seq)),
        2 => (short(), any::<u8>(), any::<u8>()).prop_map(|(short, seq, length)| Piece::Torn(short, seq, length)),
        2 => between().prop_map(Piece::Between),
        1 => vec(any::<u8>(), 0..30).prop_map(Piece::Bytes),
        1 => any::<u8>().prop_map(Piece::Repeat),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(at, to)| Piece::Changed(at, to)),
    ]
}

#[test]
fn fuzz_logs() {
    crate::fuzz::run(&vec(piece(), 0..40), |pieces| {
        let mut bytes = built(&pieces);
        let loaded = load(&bytes);
        prop_assert_eq!(strict(&loaded.messages), Ok(()));
        prop_assert!(loaded.repairs.len() < 10);
        if let Ok(all) = read_all(Cursor::new(&bytes)) {
            prop_assert_eq!(strict(&all.messages), Ok(()));
        }
        if loaded.seq == 0 || loaded.seq > u64::MAX / 2 {
            return Ok(());
        }
        // What goes on from it finds the same again.
        bytes.push(b'\n');
        let more = ["input new", "user new", "says done"];
        for (seq, short) in (loaded.seq + 1..).zip(more) {
            bytes.extend((line(short, seq) + "\n").bytes());
        }
        let later = load(&bytes);
        let expect = [texts(&loaded.messages), texts(&load(log(&more).as_bytes()).messages)].concat();
        prop_assert_eq!(texts(&later.messages), expect);
        Ok(())
    });
}
