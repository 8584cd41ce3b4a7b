//! Text to tokens and back to bytes, as the weights file defines them.

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use candle_core::{Error, Result, bail};
use tokenizers::Tokenizer;

use super::decode::Words;
use super::engine::value;
use super::protocol::Turn;

/// The vocabulary.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    bytes: Vec<Box<[u8]>>,
    start: u32,
    end: u32,
}

impl Vocabulary {
    /// Reads it.
    ///
    /// # Errors
    /// What the file lacks.
    pub(super) fn read(content: &Content) -> Result<Self> {
        let mut tokenizer = Tokenizer::from_gguf(content)?;
        // Text of files and people that looks like a marker is text.
        tokenizer.set_encode_special_tokens(true);
        let marker = |name: &str| tokenizer.token_to_id(name).ok_or_else(|| Error::msg(format!("no token {name}")));
        let (start, end) = (marker("<|im_start|>")?, marker("<|im_end|>")?);
        let kinds = value(content, "tokenizer.ggml.token_type")?.to_vec()?;
        let bytes = value(content, "tokenizer.ggml.tokens")?
            .to_vec()?
            .iter()
            .zip(kinds)
            .map(|(token, kind)| {
                Ok(if kind.to_i32()? == NORMAL { bytes_of(token.to_string()?) } else { Box::default() })
            })
            .collect::<Result<_>>()?;
        Ok(Self { tokenizer, bytes, start, end })
    }

    /// The tokens of a turn, closed.
    pub(super) fn turn(&self, turn: &Turn) -> Result<Vec<u32>> {
        let mut tokens = vec![self.start];
        tokens.extend(self.tokens(&format!("{}\n{}", turn.role.name(), turn.text))?);
        tokens.push(self.end);
        tokens.extend(self.tokens("\n")?);
        Ok(tokens)
    }

    /// The tokens that open the model's own turn.
    pub(super) fn opening(&self) -> Result<Vec<u32>> {
        let mut tokens = vec![self.start];
        tokens.extend(self.tokens("assistant\n")?);
        Ok(tokens)
    }
}

impl Words for Vocabulary {
    fn bytes(&self, token: u32) -> &[u8] {
        self.bytes.get(token as usize).map_or(&[], |b| b)
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>> {
        match self.tokenizer.encode_fast(text, false) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(e) => bail!("cannot split a text into tokens: {e}"),
        }
    }
}

/// The kind of tokens that stand for bytes, as the file counts kinds.
const NORMAL: i32 = 1;

/// The bytes of a token, which the file spells in letters that all can be seen: `Ġ` for a space.
fn bytes_of(spelled: &str) -> Box<[u8]> {
    spelled.chars().filter_map(byte_of).collect()
}

fn byte_of(letter: char) -> Option<u8> {
    let code = u32::from(letter);
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(code).ok(),
        // The others take the letters from U+0100 on, in their order.
        0x100..=0x143 => {
            let hidden = |b: &u8| !matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
            (0..=u8::MAX).filter(hidden).nth((code - 0x100) as usize)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_letter() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(char::from_u32).filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=u8::MAX).collect::<Vec<_>>());
    }

    #[test]
    fn tokens_are_spelled_in_letters() {
        for (spelled, expect) in [("Ġls", " ls"), ("Ċ", "\n"), ("ĉ", "\t"), ("Ã©", "é"), ("\"}", "\"}")] {
            assert_eq!(&*bytes_of(spelled), expect.as_bytes(), "{spelled}");
        }
    }
}
