//! The bytes that each token of a vocabulary stands for, read off the tokenizer's decoder once, so
//! that decoding a token is a table look-up.

use crate::ffi::{error, Outcome};
use serde_json::Value;
use std::collections::HashMap;
use tokenizers::Tokenizer;

/// How a decoder joins tokens into text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// All bytes are concatenated and then read as UTF-8 (GPT-2's byte alphabet).
    ByteLevel,
    /// Tokens are text, but for the `<0xXX>` tokens, whose runs are read as UTF-8 (SentencePiece).
    ByteFallback,
}

/// What a decoder does, as far as incremental decoding needs to know.
#[derive(Clone, Debug)]
pub struct DecoderPlan {
    pub joining: Joining,
    /// The character that stands for a space, if any.
    pub space: Option<String>,
    /// Whether `<0xXX>` tokens are bytes.
    pub byte_fallback: bool,
    /// How many leading spaces of the whole text are dropped.
    pub strip_left: usize,
}

impl DecoderPlan {
    /// From the `decoder` object of tokenizer.json; an error names a kind that has no byte table.
    pub fn from_json(decoder: &Value) -> Outcome<DecoderPlan> {
        let mut plan = DecoderPlan {
            joining: Joining::ByteFallback,
            space: None,
            byte_fallback: false,
            strip_left: 0,
        };
        let single = std::slice::from_ref(decoder);
        let steps = match decoder["type"].as_str() {
            Some("Sequence") => decoder["decoders"].as_array().map_or(&[][..], |v| v.as_slice()),
            _ => single,
        };
        for step in steps {
            plan.add_step(step)?;
        }
        Ok(plan)
    }

    fn add_step(&mut self, step: &Value) -> Outcome {
        match step["type"].as_str().unwrap_or("null") {
            "ByteLevel" => self.joining = Joining::ByteLevel,
            "ByteFallback" => self.byte_fallback = true,
            "Fuse" => {}
            "Replace" if step["content"] == " " && step["pattern"]["String"].is_string() => {
                self.space = step["pattern"]["String"].as_str().map(str::to_string);
            }
            "Strip" if step["content"] == " " && step["stop"] == 0 => {
                self.strip_left = step["start"].as_u64().unwrap_or(0) as usize;
            }
            "Metaspace" => {
                self.space = Some(step["replacement"].as_str().unwrap_or("\u{2581}").to_string());
                let scheme = step["prepend_scheme"].as_str().unwrap_or("always");
                self.strip_left = usize::from(scheme != "never");
            }
            other => {
                return Err(error(format!(
                    "the tokenizer's decoder has a step of type {other} that sluice cannot decode \
                     with; known are ByteLevel, ByteFallback, Fuse, Metaspace, Replace and Strip \
                     of spaces"
                )))
            }
        }
        Ok(())
    }
}

const SPECIAL: u8 = 1;
const RAW_BYTE: u8 = 2;
const USED: u8 = 4;

/// Bytes and kind of every id from 0 to len() - 1. Immutable.
pub struct TokenTable {
    data: Vec<u8>,
    ends: Vec<u32>,
    flags: Vec<u8>,
}

impl TokenTable {
    pub fn build(tokenizer: &Tokenizer, plan: &DecoderPlan) -> Outcome<TokenTable> {
        let vocab = tokenizer.get_vocab(true);
        let len = vocab.values().max().map_or(0, |&id| id as usize + 1);
        // Ids are dense but for a few holes; a file that says otherwise would cost memory for it.
        if len > vocab.len().saturating_mul(4) + 65_536 {
            return Err(error(format!(
                "the vocabulary has {} tokens but ids up to {}",
                vocab.len(),
                len - 1
            )));
        }
        let alphabet = byte_alphabet();
        let added = tokenizer.get_added_vocabulary();
        let mut table = TokenTable {
            data: Vec::new(),
            ends: Vec::with_capacity(len),
            flags: Vec::with_capacity(len),
        };
        for id in 0..len as u32 {
            let mut flags = 0;
            if let Some(token) = tokenizer.id_to_token(id) {
                flags |= USED;
                // HF asks by the token's text, so that a model token spelled like a special one is
                // special too.
                if added.is_special_token(&token) {
                    flags |= SPECIAL;
                }
                if plan.joining == Joining::ByteLevel {
                    push_byte_level(&token, &alphabet, &mut table.data);
                } else if let Some(byte) = raw_byte(&token).filter(|_| plan.byte_fallback) {
                    flags |= RAW_BYTE;
                    table.data.push(byte);
                } else if let Some(space) = &plan.space {
                    table.data.extend_from_slice(token.replace(space.as_str(), " ").as_bytes());
                } else {
                    table.data.extend_from_slice(token.as_bytes());
                }
            }
            table.flags.push(flags);
            let end = u32::try_from(table.data.len());
            table.ends.push(end.map_err(|_| error("the vocabulary is larger than 4 GiB"))?);
        }
        Ok(table)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Empty for an id that no token has.
    pub fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        if id >= self.ends.len() {
            return &[];
        }
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.data[start as usize..self.ends[id] as usize]
    }

    pub fn is_used(&self, id: u32) -> bool {
        self.flag(id, USED)
    }
    pub fn is_special(&self, id: u32) -> bool {
        self.flag(id, SPECIAL)
    }
    /// A `<0xXX>` token of a ByteFallback vocabulary.
    pub fn is_raw_byte(&self, id: u32) -> bool {
        self.flag(id, RAW_BYTE)
    }

    fn flag(&self, id: u32, flag: u8) -> bool {
        self.flags.get(id as usize).is_some_and(|flags| flags & flag != 0)
    }
}

/// `<0xXX>` as HF's ByteFallback decoder reads it: six bytes, any hexadecimal case.
fn raw_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if token.len() != 6 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// A token with a character outside of the alphabet (an added token) stands for its own text.
fn push_byte_level(token: &str, alphabet: &HashMap<char, u8>, data: &mut Vec<u8>) {
    let start = data.len();
    for c in token.chars() {
        match alphabet.get(&c) {
            Some(&byte) => data.push(byte),
            None => {
                data.truncate(start);
                data.extend_from_slice(token.as_bytes());
                return;
            }
        }
    }
}

/// GPT-2's printable stand-ins for the 256 byte values: printable Latin-1 is itself, the rest are
/// numbered up from U+0100 (openai/gpt-2, encoder.py, bytes_to_unicode).
fn byte_alphabet() -> HashMap<char, u8> {
    let mut next = 0x100;
    (0..=255u8)
        .map(|byte| match byte {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => (byte as char, byte),
            _ => {
                next += 1;
                (char::from_u32(next - 1).expect("below the surrogates"), byte)
            }
        })
        .collect()
}
