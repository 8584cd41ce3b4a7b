//! A fuzz target: streams that are put together from fields, line ends and anything else, read in any pieces.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// What a stream may be made of.
#[derive(Debug, Clone)]
enum Piece {
    Field(Field, bool),
    End(End),
    Text(Text),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    Comment,
    Unknown,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Lf,
    Cr,
    Crlf,
    Two,
}

#[derive(Debug, Clone, Copy)]
enum Text {
    Object,
    Done,
    Wide,
    Mark,
}

impl Piece {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Field(field, blank) => [field.name(), if *blank { b": " } else { b":" }].concat(),
            Self::End(End::Lf) => b"\n".to_vec(),
            Self::End(End::Cr) => b"\r".to_vec(),
            Self::End(End::Crlf) => b"\r\n".to_vec(),
            Self::End(End::Two) => b"\n\n".to_vec(),
            Self::Text(Text::Object) => br#"{"choices":[{"delta":{"content":"x"}}]}"#.to_vec(),
            Self::Text(Text::Done) => b"[DONE]".to_vec(),
            Self::Text(Text::Wide) => "日🙂\u{2028}".into(),
            Self::Text(Text::Mark) => BOM.to_vec(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl Field {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Data => b"data",
            Self::Event => b"event",
            Self::Id => b"id",
            Self::Retry => b"retry",
            Self::Comment => b"",
            Self::Unknown => b"unknown",
        }
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    const FIELDS: &[Field] =
        &[Field::Data, Field::Data, Field::Event, Field::Id, Field::Retry, Field::Comment, Field::Unknown];
    const ENDS: &[End] = &[End::Lf, End::Cr, End::Crlf, End::Two];
    const TEXTS: &[Text] = &[Text::Object, Text::Done, Text::Wide, Text::Mark];
    prop_oneof![
        3 => (prop::sample::select(FIELDS), any::<bool>()).prop_map(|(field, blank)| Piece::Field(field, blank)),
        3 => prop::sample::select(ENDS).prop_map(Piece::End),
        2 => prop::sample::select(TEXTS).prop_map(Piece::Text),
        1 => vec(any::<u8>(), 0..9).prop_map(Piece::Bytes),
    ]
}

/// What came out of the pieces: names and data, and where it was too large.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> (Vec<(String, String)>, bool) {
    let (mut parser, mut seen) = (Parser::with_limit(limit), Vec::new());
    let mut sink = |event: Event<'_>| seen.push((event.name.to_owned(), event.data.to_owned()));
    let read = pieces.into_iter().try_for_each(|piece| parser.push(piece, &mut sink));
    let too_large = read.and_then(|()| parser.finish(&mut sink)).is_err();
    (seen, too_large)
}

/// The stream in pieces of these lengths, again and again.
fn split<'a>(stream: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), stream);
    for length in lengths.iter().map(|length| usize::from(*length)).cycle().take(stream.len()) {
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[test]
fn fuzz_streams() {
    crate::fuzz::run(&(vec(piece(), 0..60), vec(0..20u8, 0..9)), |(pieces, lengths)| {
        let stream = pieces.iter().flat_map(Piece::bytes).collect::<Vec<u8>>();
        let (whole, too_large) = read([stream.as_slice()], LIMIT);
        prop_assert!(!too_large);
        prop_assert_eq!(&read(split(&stream, &lengths), LIMIT).0, &whole);
        prop_assert_eq!(&read(stream.chunks(1), LIMIT).0, &whole);
        // What is too large ends it, and what came before is the same.
        let (few, _) = read(split(&stream, &lengths), 40);
        prop_assert!(whole.starts_with(&few));
        Ok(())
    });
}
