//! sluice_grammar_* and sluice_matcher_*: see include/sluice_bridge.h.

use crate::ffi::*;
use crate::grammar::{GrammarKind, Grammars, SluiceMatcherState, TokenMatcher};
use crate::tokenizer_ffi::SluiceTok;
use llguidance::api::ParserLimits;

pub const GRAMMAR_JSON_SCHEMA: u32 = 0;
pub const GRAMMAR_REGEX: u32 = 1;
pub const GRAMMAR_LARK: u32 = 2;

pub struct SluiceGrammar(Grammars);
pub struct SluiceMatcher(TokenMatcher);

/// Zero in a field: llguidance's default.
#[repr(C)]
pub struct SluiceGrammarLimits {
    pub max_grammar_size: u64,
    pub max_items_in_row: u64,
    pub max_lexer_states: u64,
    pub initial_lexer_fuel: u64,
    pub step_lexer_fuel: u64,
    pub step_max_items: u64,
}

impl SluiceGrammarLimits {
    fn to_parser_limits(&self) -> ParserLimits {
        let mut limits = ParserLimits::default();
        for (value, field) in [
            (self.max_grammar_size, &mut limits.max_grammar_size),
            (self.max_items_in_row, &mut limits.max_items_in_row),
            (self.max_lexer_states, &mut limits.max_lexer_states),
            (self.step_max_items, &mut limits.step_max_items),
        ] {
            if value != 0 {
                *field = value as usize;
            }
        }
        for (value, field) in [
            (self.initial_lexer_fuel, &mut limits.initial_lexer_fuel),
            (self.step_lexer_fuel, &mut limits.step_lexer_fuel),
        ] {
            if value != 0 {
                *field = value;
            }
        }
        limits
    }
}

#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_new(
    tok: *const SluiceTok,
    n_vocab: usize,
    eos_ids: *const u32,
    n_eos_ids: usize,
    limits: *const SluiceGrammarLimits,
    out: *mut *mut SluiceGrammar,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let tok = shared(tok, "tokenizer")?.tok.clone();
        let limits = limits.as_ref().map_or_else(ParserLimits::default, |l| l.to_parser_limits());
        give(out, SluiceGrammar(Grammars::new(tok, n_vocab, ids(eos_ids, n_eos_ids)?, limits)?))
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_free(grammar: *mut SluiceGrammar) {
    release(grammar);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_grammar_compile(
    grammar: *const SluiceGrammar,
    kind: u32,
    source: SluiceStr,
    out: *mut *mut SluiceMatcher,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let kind = match kind {
            GRAMMAR_JSON_SCHEMA => GrammarKind::JsonSchema,
            GRAMMAR_REGEX => GrammarKind::Regex,
            GRAMMAR_LARK => GrammarKind::Lark,
            other => return Err(bad_argument(format!("unknown grammar kind {other}"))),
        };
        let source = text(source, "the grammar")?;
        give(out, SluiceMatcher(shared(grammar, "grammar")?.0.compile(kind, source)?))
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_clone(
    matcher: *const SluiceMatcher,
    out: *mut *mut SluiceMatcher,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || give(out, SluiceMatcher(shared(matcher, "matcher")?.0.deep_clone())))
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_free(matcher: *mut SluiceMatcher) {
    release(matcher);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_mask(
    matcher: *mut SluiceMatcher,
    words: *mut u32,
    n_words: usize,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let matcher = exclusive(matcher, "matcher")?;
        if words.is_null() {
            return Err(bad_argument("the mask pointer is null"));
        }
        matcher.0.mask(std::slice::from_raw_parts_mut(words, n_words))
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_commit(
    matcher: *mut SluiceMatcher,
    id: u32,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || exclusive(matcher, "matcher")?.0.commit(id))
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_try_commit(
    matcher: *mut SluiceMatcher,
    token_ids: *const u32,
    n_ids: usize,
    n_taken: *mut usize,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let taken = exclusive(matcher, "matcher")?.0.try_commit(ids(token_ids, n_ids)?)?;
        store(n_taken, taken)
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_check(
    matcher: *mut SluiceMatcher,
    token_ids: *const u32,
    n_ids: usize,
    n_allowed: *mut usize,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let allowed = exclusive(matcher, "matcher")?.0.check(ids(token_ids, n_ids)?)?;
        store(n_allowed, allowed)
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_forced(
    matcher: *mut SluiceMatcher,
    out: *mut SluiceIds,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let forced = exclusive(matcher, "matcher")?.0.forced();
        fill(out, |list| {
            *list = forced;
            Ok(())
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_rollback(
    matcher: *mut SluiceMatcher,
    n_tokens: usize,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || exclusive(matcher, "matcher")?.0.rollback(n_tokens))
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_reset(
    matcher: *mut SluiceMatcher,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || exclusive(matcher, "matcher")?.0.reset())
}

#[no_mangle]
pub unsafe extern "C" fn sluice_matcher_state_get(
    matcher: *mut SluiceMatcher,
    out: *mut SluiceMatcherState,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let state = exclusive(matcher, "matcher")?.0.state()?;
        store(out, state)
    })
}
