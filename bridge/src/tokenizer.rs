//! A Hugging Face tokenizer made immutable, with its byte table. Send + Sync.

use crate::ffi::{bad_argument, error, Outcome};
use crate::stream::Detokenizer;
use crate::token_bytes::{DecoderPlan, TokenTable};
use serde_json::{json, Value};
use std::str::FromStr;
use tokenizers::tokenizer::{Model, PreTokenizedString, PreTokenizer};
use tokenizers::{AddedVocabulary, OffsetType, Tokenizer};

/// fancy-regex gives up silently, and so changes the ids, past 1,000,000 steps of backtracking, as
/// a longer run of white space needs.
const MAX_WHITESPACE_RUN: usize = 500_000;

pub struct Tok {
    pub hf: Tokenizer,
    pub plan: DecoderPlan,
    pub table: TokenTable,
    /// The added tokens, set to leave special ones alone: encodes text that must not be read as
    /// control tokens. A copy, because HF keeps this choice as state of the tokenizer.
    plain_added: AddedVocabulary,
}

impl Tok {
    pub fn from_json(text: &str) -> Outcome<Tok> {
        let value: Value = serde_json::from_str(text)
            .map_err(|e| error(format!("tokenizer.json is not valid JSON: {e}")))?;
        let plan = DecoderPlan::from_json(&value["decoder"])?;
        drop(value);
        let mut hf = Tokenizer::from_str(text)
            .map_err(|e| error(format!("tokenizer.json is not a tokenizer: {e}")))?;
        // Files saved after training carry these; a prompt is never cut or padded here.
        hf.with_truncation(None).map_err(error)?;
        hf.with_padding(None);
        hf.set_encode_special_tokens(false);
        let table = TokenTable::build(&hf, &plan)?;
        let mut plain_added = hf.get_added_vocabulary().clone();
        plain_added.set_encode_special_tokens(true);
        Ok(Tok { hf, plan, table, plain_added })
    }

    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Outcome<Vec<u32>> {
        check_whitespace(text)?;
        let added = if parse_special { self.hf.get_added_vocabulary() } else { &self.plain_added };
        let fail = |e| error(format!("encoding failed: {e}"));
        let mut pieces: PreTokenizedString =
            added.extract_and_normalize(self.hf.get_normalizer(), text);
        if let Some(pre_tokenizer) = self.hf.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(fail)?;
        }
        self.hf.get_model().tokenize_in_pretokenized(&mut pieces, None).map_err(fail)?;
        let encoding = pieces.into_encoding(None, 0, OffsetType::None).map_err(fail)?;
        let encoding = self.hf.post_process(encoding, None, add_special).map_err(fail)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Equal to a stream's pieces joined. Differs from HF only where `<0xXX>` tokens spell broken
    /// UTF-8: HF then replaces the whole run, which no stream can do.
    pub fn decode(&self, ids: &[u32], skip_special: bool, out: &mut Vec<u8>) {
        let mut state = Detokenizer::new(self, skip_special);
        for &id in ids {
            state.step(self, id, out);
        }
        state.finish(self, out);
    }

    /// `[{"id", "content", "special", "lstrip", "rstrip", "single_word", "normalized"}]` by id.
    pub fn added_tokens_json(&self) -> String {
        let mut tokens: Vec<_> = self.hf.get_added_tokens_decoder().into_iter().collect();
        tokens.sort_by_key(|(id, _)| *id);
        let list: Vec<Value> = tokens
            .into_iter()
            .map(|(id, t)| {
                json!({"id": id, "content": t.content, "special": t.special, "lstrip": t.lstrip,
                       "rstrip": t.rstrip, "single_word": t.single_word,
                       "normalized": t.normalized})
            })
            .collect();
        Value::Array(list).to_string()
    }
}

fn check_whitespace(text: &str) -> Outcome {
    let mut run = 0;
    for (at, c) in text.char_indices() {
        run = if c.is_whitespace() { run + 1 } else { 0 };
        if run > MAX_WHITESPACE_RUN {
            return Err(bad_argument(format!(
                "the text has more than {MAX_WHITESPACE_RUN} white-space characters in a row, up \
                 to byte {at}: shorten them"
            )));
        }
    }
    Ok(())
}
