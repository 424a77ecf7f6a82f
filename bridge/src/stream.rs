//! Incremental detokenization: whole characters only, amortized O(1) per token, and the same text
//! as decoding all ids at once, since `decode` is this stream run to its end.

use crate::token_bytes::Joining;
use crate::tokenizer::Tok;
use std::sync::Arc;

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Bytes that no character ends yet, and where in the text we are.
pub struct Detokenizer {
    skip_special: bool,
    pending: Vec<u8>,
    /// Leading spaces that are still to be dropped.
    strip_left: usize,
}

impl Detokenizer {
    pub fn new(tok: &Tok, skip_special: bool) -> Detokenizer {
        Detokenizer { skip_special, pending: Vec::new(), strip_left: tok.plan.strip_left }
    }

    /// Appends the text that `id` completes. Ids without a token add nothing, as in HF.
    pub fn step(&mut self, tok: &Tok, id: u32, out: &mut Vec<u8>) {
        let table = &tok.table;
        if self.skip_special && table.is_special(id) {
            return;
        }
        let bytes = table.bytes(id);
        match tok.plan.joining {
            Joining::ByteLevel => self.push_bytes(bytes, false, out),
            Joining::ByteFallback if table.is_raw_byte(id) => self.push_bytes(bytes, true, out),
            Joining::ByteFallback => {
                if !bytes.is_empty() {
                    self.flush(true, out);
                    self.emit(bytes, out);
                }
            }
        }
    }

    /// Ends the text: bytes of an unfinished character become U+FFFD.
    pub fn finish(&mut self, tok: &Tok, out: &mut Vec<u8>) {
        self.flush(tok.plan.joining == Joining::ByteFallback, out);
    }

    /// `per_byte`: HF's ByteFallback replaces each bad byte, its ByteLevel each bad sequence.
    fn push_bytes(&mut self, bytes: &[u8], per_byte: bool, out: &mut Vec<u8>) {
        if self.pending.is_empty() && std::str::from_utf8(bytes).is_ok() {
            return self.emit(bytes, out);
        }
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        while let Err(e) = std::str::from_utf8(rest) {
            let (valid, bad) = rest.split_at(e.valid_up_to());
            self.emit(valid, out);
            rest = bad;
            let Some(len) = e.error_len() else { break };
            for _ in 0..if per_byte { len } else { 1 } {
                self.emit(REPLACEMENT, out);
            }
            rest = &rest[len..];
        }
        if std::str::from_utf8(rest).is_ok() {
            self.emit(rest, out);
        } else {
            self.pending.extend_from_slice(rest);
        }
    }

    fn flush(&mut self, per_byte: bool, out: &mut Vec<u8>) {
        let bad = std::mem::take(&mut self.pending);
        if !bad.is_empty() {
            for _ in 0..if per_byte { bad.len() } else { 1 } {
                self.emit(REPLACEMENT, out);
            }
        }
    }

    fn emit(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        while self.strip_left > 0 && !text.is_empty() {
            if text[0] == b' ' {
                text = &text[1..];
                self.strip_left -= 1;
            } else {
                self.strip_left = 0;
            }
        }
        out.extend_from_slice(text);
    }
}

/// The handle: keeps its tokenizer alive.
pub struct Stream {
    pub tok: Arc<Tok>,
    pub state: Detokenizer,
}

/// More of a prompt's end than any character or leading-space rule can reach back.
pub const PROMPT_TAIL: usize = 64;

impl Stream {
    /// Starts after `prompt` (its last ids are enough): characters that it left unfinished are
    /// finished by the stream, and its text, if any, means that no leading space is dropped.
    pub fn new(tok: Arc<Tok>, skip_special: bool, prompt: &[u32]) -> Stream {
        let mut state = Detokenizer::new(&tok, skip_special);
        let mut unused = Vec::new();
        let start = prompt.len().saturating_sub(PROMPT_TAIL);
        if start > 0 {
            state.strip_left = 0;
        }
        for &id in &prompt[start..] {
            state.step(&tok, id, &mut unused);
        }
        Stream { tok, state }
    }
}
