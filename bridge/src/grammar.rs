//! llguidance over a sluice tokenizer: JSON schema, regex or Lark to token masks.
//! The factory is Send + Sync; a matcher is Send only.

use crate::ffi::{bad_argument, error, Outcome};
use crate::tokenizer::Tok;
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use std::sync::Arc;
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// toktrie's view of a tokenizer. Special tokens carry toktrie's marker byte, so that no grammar
/// text can match them.
struct Env {
    tok: Arc<Tok>,
    trie: TokTrie,
    canonical: bool,
}

impl Env {
    /// `n_vocab` is the width of the logits: ids without a token are never allowed, and tokens
    /// beyond it cannot be sampled, so they are left out.
    fn new(tok: Arc<Tok>, n_vocab: usize, eos: &[TokenId]) -> Outcome<Env> {
        let n = u32::try_from(n_vocab).map_err(|_| bad_argument("n_vocab is above 2^32 - 1"))?;
        let Some(&first_eos) = eos.first() else {
            return Err(bad_argument("a grammar needs at least one EOS token id"));
        };
        if let Some(id) = eos.iter().find(|&&id| id >= n) {
            return Err(bad_argument(format!("EOS token id {id} is not below n_vocab = {n}")));
        }
        let words: Vec<Vec<u8>> = (0..n)
            .map(|id| {
                let bytes = tok.table.bytes(id);
                if tok.table.is_special(id) {
                    [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
                } else {
                    bytes.to_vec()
                }
            })
            .collect();
        let trie = TokTrie::from(&TokRxInfo::new(n, first_eos), &words).with_eos_tokens(eos);
        let mut env = Env { tok, trie, canonical: true };
        // A tokenizer that puts a space in front of a text's first word cannot tell the ids of a
        // text that is continued; forced tokens are then off.
        env.canonical = env.encode("a").is_some();
        Ok(env)
    }

    /// The canonical ids of `text`, or None if they do not spell it byte by byte.
    fn encode(&self, text: &str) -> Option<Vec<TokenId>> {
        let ids = self.tok.encode(text, false, false).ok()?;
        let n = self.trie.vocab_size() as u32;
        if ids.iter().any(|&id| id >= n) || self.trie.decode_raw(&ids) != text.as_bytes() {
            return None;
        }
        Some(ids)
    }
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, s: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(s, |text| {
            self.encode(text).unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.canonical
    }
}

#[derive(Clone, Copy)]
pub enum GrammarKind {
    JsonSchema,
    Regex,
    Lark,
}

pub struct Grammars {
    factory: ParserFactory,
    n_vocab: usize,
    eos: Arc<[TokenId]>,
}

impl Grammars {
    pub fn new(
        tok: Arc<Tok>,
        n_vocab: usize,
        eos: &[TokenId],
        limits: ParserLimits,
    ) -> Outcome<Grammars> {
        let env: TokEnv = Arc::new(Env::new(tok, n_vocab, eos)?);
        let caps = InferenceCapabilities { ff_tokens: true, ..Default::default() };
        let mut factory =
            ParserFactory::new(&env, caps, &SlicedBiasComputer::general_slices()).map_err(error)?;
        factory.quiet();
        // Errors go to clients: the text generated so far has no place in them.
        *factory.limits_mut() = ParserLimits { verbose_errors: false, ..limits };
        Ok(Grammars { factory, n_vocab, eos: eos.into() })
    }

    pub fn compile(&self, kind: GrammarKind, text: &str) -> Outcome<TokenMatcher> {
        let grammar = match kind {
            GrammarKind::Regex => TopLevelGrammar::from_regex(text),
            GrammarKind::Lark => TopLevelGrammar::from_lark(text.to_string()),
            GrammarKind::JsonSchema => TopLevelGrammar::from_json_schema(
                serde_json::from_str(text)
                    .map_err(|e| bad_argument(format!("the schema is not valid JSON: {e}")))?,
            ),
        };
        let parser = self.factory.create_parser(grammar).map_err(|e| error(format!("{e:#}")))?;
        let inner = Matcher::new(Ok(parser));
        match inner.get_error() {
            Some(text) => Err(error(text)),
            None => Ok(TokenMatcher {
                inner,
                n_vocab: self.n_vocab,
                eos: self.eos.clone(),
                trailing_eos: 0,
            }),
        }
    }
}

/// Where a matcher stands.
#[repr(C)]
pub struct SluiceMatcherState {
    /// The text so far is a complete match: EOS is allowed.
    pub accepting: bool,
    /// Nothing but EOS can follow, or EOS was committed.
    pub stopped: bool,
}

pub struct TokenMatcher {
    inner: Matcher,
    n_vocab: usize,
    eos: Arc<[TokenId]>,
    /// EOS tokens committed after the grammar had ended. llguidance takes them for errors, and its
    /// errors are permanent, so they are counted here.
    trailing_eos: usize,
}

impl TokenMatcher {
    pub fn mask(&mut self, words: &mut [u32]) -> Outcome {
        let needed = self.n_vocab.div_ceil(32);
        if words.len() < needed {
            return Err(bad_argument(format!(
                "the mask has {} words; {} tokens need {needed}",
                words.len(),
                self.n_vocab
            )));
        }
        let mask = self.inner.compute_mask_or_eos().map_err(error)?;
        let bits = mask.as_slice();
        let n = needed.min(bits.len());
        words[..n].copy_from_slice(&bits[..n]);
        words[n..].fill(0);
        // toktrie's set may carry bits above its size.
        let tail = self.n_vocab % 32;
        if tail != 0 && n == needed {
            words[needed - 1] &= (1 << tail) - 1;
        }
        Ok(())
    }

    /// Takes as many of `ids` as the grammar allows, in order.
    pub fn try_commit(&mut self, ids: &[TokenId]) -> Outcome<usize> {
        for (index, id) in ids.iter().enumerate() {
            if self.inner.is_stopped() {
                if !self.eos.contains(id) || self.inner.is_error() {
                    return Ok(index);
                }
                self.trailing_eos += 1;
            } else if (*id as usize) >= self.n_vocab
                || self.inner.try_consume_tokens(&[*id]).map_err(error)? == 0
            {
                return Ok(index);
            }
        }
        Ok(ids.len())
    }

    pub fn commit(&mut self, id: TokenId) -> Outcome {
        match self.try_commit(&[id])? {
            1 => Ok(()),
            _ => Err(error(format!("token {id} is not allowed by the grammar here"))),
        }
    }

    /// How many of `ids` could be committed; changes nothing.
    pub fn check(&mut self, ids: &[TokenId]) -> Outcome<usize> {
        let taken = self.try_commit(ids)?;
        self.rollback(taken)?;
        Ok(taken)
    }

    pub fn forced(&mut self) -> Vec<TokenId> {
        if self.inner.is_stopped() {
            return Vec::new();
        }
        self.inner.compute_ff_tokens()
    }

    pub fn rollback(&mut self, n: usize) -> Outcome {
        let trailing = n.min(self.trailing_eos);
        if n > trailing {
            self.inner.rollback(n - trailing).map_err(error)?;
        }
        self.trailing_eos -= trailing;
        Ok(())
    }

    pub fn reset(&mut self) -> Outcome {
        self.inner.reset().map_err(error)?;
        self.trailing_eos = 0;
        Ok(())
    }

    /// For another thread: nothing is shared, since a shared lexer contends.
    pub fn deep_clone(&self) -> TokenMatcher {
        TokenMatcher {
            inner: self.inner.deep_clone(),
            n_vocab: self.n_vocab,
            eos: self.eos.clone(),
            trailing_eos: self.trailing_eos,
        }
    }

    pub fn state(&mut self) -> Outcome<SluiceMatcherState> {
        if let Some(text) = self.inner.get_error() {
            return Err(error(text));
        }
        let stopped = self.inner.is_stopped();
        let accepting = stopped || self.inner.is_accepting().map_err(error)?;
        Ok(SluiceMatcherState { accepting, stopped })
    }
}
