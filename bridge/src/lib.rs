//! sluice's Rust side: tokenizers, minijinja, llguidance, rustyline and indicatif behind the C
//! header include/sluice_bridge.h, where ownership, threads and errors of every function are said.
//! One crate, since two Rust staticlibs cannot be linked into one program.

mod ffi;
mod grammar;
mod grammar_ffi;
mod pyjson;
mod pystr;
mod stream;
mod template;
mod template_ffi;
mod terminal;
mod token_bytes;
mod tokenizer;
mod tokenizer_ffi;
