//! Decoding under a rule: what the model writes is one JSON object of a known shape, whatever it would rather say.
//!
//! The skeleton is written for it, a name is chosen among those that exist, and a string may be anything that JSON
//! takes. All of it is greedy: of the tokens that are allowed, the likeliest.

use candle_core::Result;

/// How the model is asked for the next token.
pub(super) trait Mind {
    /// Reads these tokens, at least one, and says how likely each token is to come next.
    ///
    /// # Errors
    /// Nobody wants the answer any more, or the engine failed.
    fn read(&mut self, tokens: &[u32]) -> Result<Vec<f32>>;
}

/// What tokens mean.
pub(super) trait Words {
    /// The bytes of a token; none where it is a marker.
    fn bytes(&self, token: u32) -> &[u8];

    /// The tokens of a text.
    ///
    /// # Errors
    /// Those of the tokenizer.
    fn tokens(&self, text: &str) -> Result<Vec<u32>>;
}

/// Writes one answer.
pub(super) struct Pen<'a, M, W> {
    mind: &'a mut M,
    words: &'a W,
    // Decided, and not read by the model yet: read together with what comes next, which is several times faster.
    unread: Vec<u32>,
    // How many more tokens the model may choose.
    left: usize,
    written: usize,
}

/// The rule for one string.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'t> {
    /// How many tokens it may take.
    pub(super) tokens: usize,
    /// Whether it may be empty.
    pub(super) empty: bool,
    /// What follows its closing quote.
    pub(super) then: &'t str,
}

/// A string as the model wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// Its text.
    pub(super) text: String,
    /// Whether it came to its end.
    pub(super) whole: bool,
}

impl<'a, M: Mind, W: Words> Pen<'a, M, W> {
    /// Goes on after these tokens, with so many to choose.
    pub(super) fn new(mind: &'a mut M, words: &'a W, prompt: Vec<u32>, left: usize) -> Self {
        Self { mind, words, unread: prompt, left, written: 0 }
    }

    /// How many tokens the answer has.
    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// Writes what must stand there.
    pub(super) fn put(&mut self, text: &str) -> Result<()> {
        let tokens = if text.is_empty() { Vec::new() } else { self.words.tokens(text)? };
        self.written += tokens.len();
        self.unread.extend(tokens);
        Ok(())
    }

    /// Lets the model choose one of several texts, none of which begins another. Nothing where there are none, or no
    /// token spells a part of any.
    pub(super) fn choose(&mut self, among: &[String]) -> Result<Option<usize>> {
        let mut open: Vec<(usize, &[u8])> = among.iter().map(String::as_bytes).enumerate().collect();
        while open.len() > 1 {
            let fits = |bytes: &[u8]| open.iter().any(|(_, rest)| rest.starts_with(bytes));
            let Some(token) = self.next(|words, token| fits(words.bytes(token)))? else { return Ok(None) };
            let bytes = self.words.bytes(token);
            open = open.into_iter().filter_map(|(i, rest)| Some((i, rest.strip_prefix(bytes)?))).collect();
            if let Some((index, [])) = open.iter().find(|(_, rest)| rest.is_empty()) {
                return Ok(Some(*index));
            }
        }
        let Some((index, rest)) = open.first() else { return Ok(None) };
        self.put(&String::from_utf8_lossy(rest))?;
        Ok(Some(*index))
    }

    /// Lets the model write a JSON string, from behind its opening quote to what follows its closing one. `told` gets
    /// the text bit by bit.
    pub(super) fn string(&mut self, bounds: Bounds<'_>, mut told: impl FnMut(&str)) -> Result<Written> {
        let mut body = Body::default();
        for _ in 0..bounds.tokens {
            let allowed = |words: &W, token| body.spot.take(words.bytes(token), &bounds, body.raw.is_empty()).is_some();
            let Some(token) = self.next(allowed)? else { break };
            told(&body.push(self.words.bytes(token), &bounds));
            if let Spot::Closed(behind) = body.spot {
                self.put(&bounds.then[behind..])?;
                return Ok(Written { text: body.text, whole: true });
            }
        }
        Ok(Written { text: body.text, whole: false })
    }

    /// The likeliest token of those that are allowed.
    fn next(&mut self, allowed: impl Fn(&W, u32) -> bool) -> Result<Option<u32>> {
        if self.left == 0 || self.unread.is_empty() {
            return Ok(None);
        }
        let likely = self.mind.read(&self.unread)?;
        self.unread.clear();
        let mut best: Option<(u32, f32)> = None;
        for (token, &score) in (0u32..).zip(&likely) {
            // Asked only of what would win: a handful of the 150,000.
            let wins = best.is_none_or(|(_, top)| score > top);
            if wins && !self.words.bytes(token).is_empty() && allowed(self.words, token) {
                best = Some((token, score));
            }
        }
        let Some((token, _)) = best else { return Ok(None) };
        self.left -= 1;
        self.written += 1;
        self.unread.push(token);
        Ok(Some(token))
    }
}

/// A string that is being written.
#[derive(Default)]
struct Body {
    raw: Vec<u8>,
    // How much of it stands in `text`.
    read: usize,
    text: String,
    spot: Spot,
}

impl Body {
    /// Adds the bytes of a token that was allowed, and gives the text that became whole with it.
    fn push(&mut self, bytes: &[u8], bounds: &Bounds<'_>) -> String {
        for &byte in bytes {
            let Some(spot) = self.spot.after(byte, bounds, self.raw.is_empty()) else { break };
            self.spot = spot;
            if matches!(spot, Spot::Closed(_)) {
                continue;
            }
            self.raw.push(byte);
        }
        if !matches!(self.spot, Spot::Plain | Spot::Closed(_)) {
            return String::new();
        }
        let json = [b"\"", &self.raw[self.read..], b"\""].concat();
        let new: String = serde_json::from_slice(&json).unwrap_or_default();
        self.read = self.raw.len();
        self.text.push_str(&new);
        new
    }
}

/// Where in a string's JSON we are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Spot {
    /// Between characters.
    #[default]
    Plain,
    /// Behind a backslash.
    Escape,
    /// Within `\uXXXX`: how many digits are missing, and whether the next one must not make half a pair.
    Hex(u8, bool),
    /// Within a character of several bytes: how many are missing, and the range of the next one.
    Wide(u8, u8, u8),
    /// Behind the closing quote: how much of what follows is there.
    Closed(usize),
}

impl Spot {
    /// Where we are after several bytes; nothing where they break the rule.
    fn take(self, bytes: &[u8], bounds: &Bounds<'_>, first: bool) -> Option<Self> {
        let mut spot = self;
        for (i, &byte) in bytes.iter().enumerate() {
            spot = spot.after(byte, bounds, first && i == 0)?;
        }
        Some(spot)
    }

    fn after(self, byte: u8, bounds: &Bounds<'_>, first: bool) -> Option<Self> {
        match self {
            Self::Plain => Self::begin(byte, bounds, first),
            Self::Escape => match byte {
                b'u' => Some(Self::Hex(4, false)),
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(Self::Plain),
                _ => None,
            },
            Self::Hex(left, guarded) => {
                let half = guarded && !matches!(byte, b'0'..=b'7');
                let guard = left == 4 && byte.eq_ignore_ascii_case(&b'd');
                let next = if left == 1 { Self::Plain } else { Self::Hex(left - 1, guard) };
                (byte.is_ascii_hexdigit() && !half).then_some(next)
            }
            Self::Wide(left, low, high) => {
                let next = if left == 1 { Self::Plain } else { Self::Wide(left - 1, 0x80, 0xbf) };
                (low..=high).contains(&byte).then_some(next)
            }
            Self::Closed(behind) => {
                (bounds.then.as_bytes().get(behind) == Some(&byte)).then_some(Self::Closed(behind + 1))
            }
        }
    }

    /// The first byte of a character, by the table of well-formed UTF-8.
    fn begin(byte: u8, bounds: &Bounds<'_>, first: bool) -> Option<Self> {
        match byte {
            b'"' => (bounds.empty || !first).then_some(Self::Closed(0)),
            b'\\' => Some(Self::Escape),
            0x20..=0x7e => Some(Self::Plain),
            0xc2..=0xdf => Some(Self::Wide(1, 0x80, 0xbf)),
            0xe0 => Some(Self::Wide(2, 0xa0, 0xbf)),
            0xed => Some(Self::Wide(2, 0x80, 0x9f)),
            0xe1..=0xef => Some(Self::Wide(2, 0x80, 0xbf)),
            0xf0 => Some(Self::Wide(3, 0x90, 0xbf)),
            0xf1..=0xf3 => Some(Self::Wide(3, 0x80, 0xbf)),
            0xf4 => Some(Self::Wide(3, 0x80, 0x8f)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// A vocabulary of every byte, some longer tokens, and a marker at its end.
    struct Toy {
        tokens: Vec<Vec<u8>>,
    }

    const LONGER: [&str; 12] =
        ["ls", "\"}", "\", \"", "\n", "\\n", "\\\"", "bash", "read_", "é", "\"}\n", "\\ud8", " -la"];

    impl Toy {
        fn new() -> Self {
            let bytes = (0..=u8::MAX).map(|b| vec![b]);
            let longer = LONGER.iter().map(|t| t.as_bytes().to_vec());
            Self { tokens: bytes.chain(longer).chain([vec![]]).collect() }
        }

        fn find(&self, bytes: &[u8]) -> u32 {
            u32::try_from(self.tokens.iter().position(|t| t == bytes).unwrap()).unwrap()
        }

        fn text(&self, tokens: &[u32]) -> Vec<u8> {
            tokens.iter().flat_map(|t| self.bytes(*t)).copied().collect()
        }
    }

    impl Words for Toy {
        fn bytes(&self, token: u32) -> &[u8] {
            &self.tokens[token as usize]
        }

        fn tokens(&self, text: &str) -> Result<Vec<u32>> {
            Ok(text.bytes().map(u32::from).collect())
        }
    }

    /// A mind that would say these texts in turn, whatever is allowed; then all else alike.
    struct Wish<'t> {
        toy: &'t Toy,
        wishes: Vec<Vec<&'t str>>,
        read: Vec<u32>,
    }

    impl Mind for Wish<'_> {
        fn read(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
            self.read.extend_from_slice(tokens);
            let mut scores = vec![0.0; self.toy.tokens.len()];
            let wishes = if self.wishes.is_empty() { vec![] } else { self.wishes.remove(0) };
            for (wish, score) in wishes.into_iter().zip([9.0, 8.0, 7.0, 6.0]) {
                scores[self.toy.find(wish.as_bytes()) as usize] = score;
            }
            Ok(scores)
        }
    }

    /// What is written where the model wishes for these, first wish first.
    fn string(wishes: &[&[&str]], bounds: Bounds<'_>) -> (Written, String, String) {
        let toy = Toy::new();
        let mut mind = Wish { toy: &toy, wishes: wishes.iter().map(|w| w.to_vec()).collect(), read: vec![] };
        let mut pen = Pen::new(&mut mind, &toy, vec![u32::from(b'"')], 100);
        let mut told = String::new();
        let written = pen.string(bounds, |bit| told.push_str(bit)).unwrap();
        let unread = pen.unread.clone();
        let all = [toy.text(&mind.read), toy.text(&unread)].concat();
        (written, told, String::from_utf8_lossy(&all).into_owned())
    }

    const BOUNDS: Bounds<'_> = Bounds { tokens: 9, empty: false, then: "}" };

    #[test]
    fn a_string_is_what_json_takes() {
        let two: Bounds<'_> = Bounds { then: ", \"b\": \"", ..BOUNDS };
        for (wishes, bounds, text, all) in [
            (&[&["ls"][..], &["\"}"]][..], BOUNDS, "ls", "\"ls\"}"),
            // The quote alone, and what follows is written for it.
            (&[&["ls"], &["\""]], two, "ls", "\"ls\", \"b\": \""),
            (&[&["ls"], &["\", \""]], two, "ls", "\"ls\", \"b\": \""),
            // A token that ends the object where it goes on, or that says more than the object, is not taken.
            (&[&["ls"], &["\"}", "\""]], two, "ls", "\"ls\", \"b\": \""),
            (&[&["ls"], &["\"}\n", " -la"], &["\""]], BOUNDS, "ls -la", "\"ls -la\"}"),
            // A bare line end, half a pair, and a wrong escape are not taken; nothing at all neither.
            (&[&["\n", "\\n"], &["\""]], BOUNDS, "\n", "\"\\n\"}"),
            (&[&["\\ud8", "ls"], &["\""]], BOUNDS, "ls", "\"ls\"}"),
            (&[&["\\"], &["x", "t"], &["\""]], BOUNDS, "\t", "\"\\t\"}"),
            (&[&["\"}", "\"", "ls"], &["\\\""], &["\""]], BOUNDS, "ls\"", "\"ls\\\"\"}"),
            (&[&["\\"], &["u"], &["0"], &["0"], &["e"], &["x", "9"], &["\""]], BOUNDS, "é", "\"\\u00e9\"}"),
        ] {
            let (written, told, got) = string(wishes, bounds);
            assert_eq!((written.text.as_str(), written.whole), (text, true), "{wishes:?}");
            assert_eq!((told.as_str(), got.as_str()), (text, all), "{wishes:?}");
        }
    }

    #[test]
    fn a_string_may_be_empty_where_that_is_allowed() {
        let (written, _, all) = string(&[&["\"}"]], Bounds { empty: true, ..BOUNDS });
        assert_eq!((written.text.as_str(), written.whole, all.as_str()), ("", true, "\"\"}"));
    }

    #[test]
    fn a_string_ends_at_its_limit() {
        let (written, told, _) = string(&[&["ls"], &["ls"], &["ls"]], Bounds { tokens: 2, ..BOUNDS });
        assert_eq!((written, told.as_str()), (Written { text: "lsls".into(), whole: false }, "lsls"));
        let (written, told, _) = string(&[&["ls"], &["\\"]], Bounds { tokens: 2, ..BOUNDS });
        assert_eq!((written, told.as_str()), (Written { text: "ls".into(), whole: false }, "ls"));
    }

    #[test]
    fn one_of_several_is_chosen_and_nothing_else() {
        let toy = Toy::new();
        let names = ["bash\"", "read_file\"", "read_skill\""].map(String::from);
        for (wishes, among, expect, read) in [
            (&[&["bash"][..], &["\""]][..], &names[..], Some(0), "bash\""),
            (&[&["ls", "read_"], &["x", "s"]], &names, Some(2), "read_skill\""),
            (&[&["r"], &["e"], &["a"], &["d"], &["_"], &["f"]], &names, Some(1), "read_file\""),
            (&[], &names[1..2], Some(1 - 1), "read_file\""),
            (&[], &[], None, ""),
        ] {
            let mut mind = Wish { toy: &toy, wishes: wishes.iter().map(|w| w.to_vec()).collect(), read: vec![] };
            let mut pen = Pen::new(&mut mind, &toy, vec![u32::from(b'>')], 100);
            assert_eq!(pen.choose(among).unwrap(), expect, "{wishes:?}");
            let unread = pen.unread.clone();
            let all = [toy.text(&mind.read), toy.text(&unread)].concat();
            assert_eq!(String::from_utf8_lossy(&all), format!(">{read}"), "{wishes:?}");
        }
    }

    /// A mind without sense: scores from a generator that goes by what it has read.
    struct Noise {
        state: u64,
        tokens: usize,
        read: Vec<u32>,
    }

    impl Mind for Noise {
        fn read(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
            self.read.extend_from_slice(tokens);
            let mut next = || {
                self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                f32::from(u16::try_from(self.state >> 48).unwrap())
            };
            Ok((0..self.tokens).map(|_| next()).collect())
        }
    }

    proptest! {
        #[test]
        fn whatever_the_model_wants_it_writes_json(seed: u64, limit in 1usize..40, empty: bool) {
            let toy = Toy::new();
            let mut mind = Noise { state: seed, tokens: toy.tokens.len(), read: vec![] };
            let mut pen = Pen::new(&mut mind, &toy, vec![], 1000);
            pen.put("{\"a\": \"").unwrap();
            let mut told = String::new();
            let first = pen.string(Bounds { tokens: limit, empty, then: ", \"b\": \"" }, |bit| told.push_str(bit)).unwrap();
            prop_assert_eq!(&told, &first.text);
            if first.whole {
                let second = pen.string(Bounds { tokens: 2000, empty, then: "}" }, |_| {}).unwrap();
                let unread = pen.unread.clone();
                let all = [toy.text(&mind.read), toy.text(&unread)].concat();
                if second.whole {
                    let object: Value = serde_json::from_slice(&all).unwrap();
                    prop_assert_eq!(&object["a"], &Value::from(first.text));
                    prop_assert_eq!(&object["b"], &Value::from(second.text));
                    prop_assert_eq!(object.as_object().unwrap().len(), 2);
                }
            }
        }
    }
}
