//! sluice_tok_* and sluice_stream_*: see include/sluice_bridge.h.

use crate::ffi::*;
use crate::stream::Stream;
use crate::tokenizer::Tok;
use std::sync::Arc;

pub const ENCODE_ADD_SPECIAL: u32 = 1;
pub const ENCODE_NO_PARSE_SPECIAL: u32 = 2;
pub const DECODE_SKIP_SPECIAL: u32 = 1;

pub struct SluiceTok {
    pub tok: Arc<Tok>,
}
pub struct SluiceStream(Stream);

fn check_flags(flags: u32, known: u32) -> Outcome {
    if flags & !known != 0 {
        return Err(bad_argument(format!("unknown flag bits {:#x}", flags & !known)));
    }
    Ok(())
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_new(
    tokenizer_json: SluiceStr,
    out: *mut *mut SluiceTok,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let tok = Tok::from_json(text(tokenizer_json, "tokenizer.json")?)?;
        give(out, SluiceTok { tok: Arc::new(tok) })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_free(tok: *mut SluiceTok) {
    release(tok);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_encode(
    tok: *const SluiceTok,
    input: SluiceStr,
    flags: u32,
    out: *mut SluiceIds,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let tok = shared(tok, "tokenizer")?;
        check_flags(flags, ENCODE_ADD_SPECIAL | ENCODE_NO_PARSE_SPECIAL)?;
        let input = text(input, "the text to encode")?;
        fill(out, |ids| {
            *ids = tok.tok.encode(
                input,
                flags & ENCODE_ADD_SPECIAL != 0,
                flags & ENCODE_NO_PARSE_SPECIAL == 0,
            )?;
            Ok(())
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_decode(
    tok: *const SluiceTok,
    token_ids: *const u32,
    n_ids: usize,
    flags: u32,
    out: *mut SluiceBytes,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let tok = shared(tok, "tokenizer")?;
        check_flags(flags, DECODE_SKIP_SPECIAL)?;
        let list = ids(token_ids, n_ids)?;
        fill(out, |bytes| {
            bytes.clear();
            tok.tok.decode(list, flags & DECODE_SKIP_SPECIAL != 0, bytes);
            Ok(())
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_token_to_id(
    tok: *const SluiceTok,
    token: SluiceStr,
    out: *mut i64,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let tok = shared(tok, "tokenizer")?;
        let id = tok.tok.hf.token_to_id(text(token, "the token")?);
        store(out, id.map_or(-1, i64::from))
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_id_to_token(
    tok: *const SluiceTok,
    id: u32,
    out: *mut SluiceBytes,
    found: *mut bool,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let token = shared(tok, "tokenizer")?.tok.hf.id_to_token(id);
        store(found, token.is_some())?;
        fill(out, |bytes| {
            *bytes = token.unwrap_or_default().into_bytes();
            Ok(())
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_token_bytes(
    tok: *const SluiceTok,
    id: u32,
    out: *mut SluiceBytes,
    found: *mut bool,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let table = &shared(tok, "tokenizer")?.tok.table;
        store(found, table.is_used(id))?;
        fill(out, |bytes| {
            bytes.clear();
            bytes.extend_from_slice(table.bytes(id));
            Ok(())
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_vocab_size(tok: *const SluiceTok) -> usize {
    tok.as_ref().map_or(0, |tok| tok.tok.table.len())
}

#[no_mangle]
pub unsafe extern "C" fn sluice_tok_added_tokens(
    tok: *const SluiceTok,
    out: *mut SluiceBytes,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let tok = shared(tok, "tokenizer")?;
        fill(out, |bytes| {
            *bytes = tok.tok.added_tokens_json().into_bytes();
            Ok(())
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_stream_new(
    tok: *const SluiceTok,
    flags: u32,
    prompt: *const u32,
    n_prompt: usize,
    out: *mut *mut SluiceStream,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let tok = shared(tok, "tokenizer")?;
        check_flags(flags, DECODE_SKIP_SPECIAL)?;
        let prompt = ids(prompt, n_prompt)?;
        let skip = flags & DECODE_SKIP_SPECIAL != 0;
        give(out, SluiceStream(Stream::new(tok.tok.clone(), skip, prompt)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_stream_free(stream: *mut SluiceStream) {
    release(stream);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_stream_step(
    stream: *mut SluiceStream,
    id: u32,
    out: *mut SluiceBytes,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let Stream { tok, state } = &mut exclusive(stream, "stream")?.0;
        fill(out, |bytes| {
            bytes.clear();
            state.step(tok, id, bytes);
            Ok(())
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_stream_finish(
    stream: *mut SluiceStream,
    out: *mut SluiceBytes,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let Stream { tok, state } = &mut exclusive(stream, "stream")?.0;
        fill(out, |bytes| {
            bytes.clear();
            state.finish(tok, bytes);
            Ok(())
        })
    })
}
