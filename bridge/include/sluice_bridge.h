/* The C header of sluice's Rust crate: tokenizer, chat template, grammar, terminal.
 *
 * Rules for all functions:
 * - The status says how a call ended; any but SLUICE_OK fills `err` (which may be null) with UTF-8
 *   text of what went wrong, and leaves the outputs empty or untouched.
 * - No panic and no exception crosses. SLUICE_PANIC is a bug in this library.
 * - A sluice_str is read during the call only. Text must be UTF-8; the error names the bad byte.
 * - Output buffers start as all zeros, may be reused by later calls (the storage is kept), and are
 *   freed by the caller with sluice_bytes_free or sluice_ids_free. The data has no final NUL.
 * - Handles are freed by their _free function, in any order; null is fine there.
 * - sluice_tok, sluice_template and sluice_grammar are immutable: any number of threads may use one
 *   at once. sluice_stream, sluice_matcher, sluice_line and sluice_progress belong to one thread
 *   at a time.
 *
 * tools/check_bridge_header.py compares this file with the Rust sources.
 */
#ifndef SLUICE_BRIDGE_H
#define SLUICE_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_OK 0             /* done */
#define SLUICE_ERROR 1          /* the input is well formed but cannot be used, or an I/O error */
#define SLUICE_PANIC 2          /* a caught panic: a bug */
#define SLUICE_BAD_ARGUMENT 3   /* null handle, bad UTF-8, bad JSON, unknown flag, over a limit */
#define SLUICE_TEMPLATE_RAISE 4 /* the template called raise_exception; err has its message */

typedef struct sluice_str {
  const char* data; /* may be null if len is 0 */
  size_t len;
} sluice_str;

typedef struct sluice_bytes {
  uint8_t* data;
  size_t len;
  size_t cap;
} sluice_bytes;

typedef struct sluice_ids {
  uint32_t* data;
  size_t len;
  size_t cap;
} sluice_ids;

void sluice_bytes_free(sluice_bytes* buffer);
void sluice_ids_free(sluice_ids* buffer);
/* Panics inside; for tests of the edge. Always gives SLUICE_PANIC. */
int32_t sluice_test_panic(sluice_bytes* err);

/* ---- Tokenizer: Hugging Face tokenizer.json ---------------------------------------------- */

typedef struct sluice_tok sluice_tok;

#define SLUICE_ENCODE_ADD_SPECIAL 1      /* add what the post-processor adds (BOS, EOS) */
#define SLUICE_ENCODE_NO_PARSE_SPECIAL 2 /* text spelled like a special token stays text */
#define SLUICE_DECODE_SKIP_SPECIAL 1     /* special tokens give no text */

/* `tokenizer_json` is the text of the file. Its truncation and padding settings are not used. */
int32_t sluice_tok_new(sluice_str tokenizer_json, sluice_tok** out, sluice_bytes* err);
void sluice_tok_free(sluice_tok* tok);
/* More than 500,000 white-space characters in a row are refused (SLUICE_BAD_ARGUMENT). */
int32_t sluice_tok_encode(const sluice_tok* tok, sluice_str input, uint32_t flags, sluice_ids* out,
                          sluice_bytes* err);
/* Always valid UTF-8: bad bytes become U+FFFD. Ids without a token give nothing. */
int32_t sluice_tok_decode(const sluice_tok* tok, const uint32_t* token_ids, size_t n_ids,
                          uint32_t flags, sluice_bytes* out, sluice_bytes* err);
/* *out = -1 if there is no such token. */
int32_t sluice_tok_token_to_id(const sluice_tok* tok, sluice_str token, int64_t* out,
                               sluice_bytes* err);
/* The token as the vocabulary spells it; *found = false and an empty text if there is none. */
int32_t sluice_tok_id_to_token(const sluice_tok* tok, uint32_t id, sluice_bytes* out, bool* found,
                               sluice_bytes* err);
/* The bytes that the token adds within a text, not UTF-8 in general. */
int32_t sluice_tok_token_bytes(const sluice_tok* tok, uint32_t id, sluice_bytes* out, bool* found,
                               sluice_bytes* err);
/* The highest id + 1, added tokens included; 0 for null. */
size_t sluice_tok_vocab_size(const sluice_tok* tok);
/* JSON: [{"id", "content", "special", "lstrip", "rstrip", "single_word", "normalized"}] by id. */
int32_t sluice_tok_added_tokens(const sluice_tok* tok, sluice_bytes* out, sluice_bytes* err);

/* ---- Incremental decoding ---------------------------------------------------------------- */

typedef struct sluice_stream sluice_stream;

/* `prompt` is what stands before the stream (its last 64 ids are enough; may be null with 0):
 * it decides whether a leading space is dropped, and the stream finishes a character that it left
 * unfinished. Keeps `tok` alive. flags: SLUICE_DECODE_SKIP_SPECIAL. */
int32_t sluice_stream_new(const sluice_tok* tok, uint32_t flags, const uint32_t* prompt,
                          size_t n_prompt, sluice_stream** out, sluice_bytes* err);
void sluice_stream_free(sluice_stream* stream);
/* Amortized O(1). The text that `id` completes: whole characters only, often empty. */
int32_t sluice_stream_step(sluice_stream* stream, uint32_t id, sluice_bytes* out,
                           sluice_bytes* err);
/* What is left at the end: U+FFFD for an unfinished character, or empty. */
int32_t sluice_stream_finish(sluice_stream* stream, sluice_bytes* out, sluice_bytes* err);

/* ---- Chat template: the Jinja dialect of Hugging Face transformers ------------------------ */

typedef struct sluice_template sluice_template;

typedef struct sluice_render_input {
  sluice_str messages; /* JSON array of objects; null-valued keys of a message are dropped */
  sluice_str tools;    /* JSON array, or null, or empty */
  sluice_str kwargs;   /* JSON object of further variables, or empty; overrides bos_token etc. */
  bool add_generation_prompt;
} sluice_render_input;

/* An empty `bos` or `eos` leaves the variable undefined. */
int32_t sluice_template_new(sluice_str source, sluice_str bos, sluice_str eos,
                            sluice_template** out, sluice_bytes* err);
void sluice_template_free(sluice_template* tmpl);
/* A template that runs away ends with SLUICE_ERROR ("fuel"). */
int32_t sluice_template_render(const sluice_template* tmpl, const sluice_render_input* input,
                               sluice_bytes* out, sluice_bytes* err);

/* ---- Grammar: llguidance ------------------------------------------------------------------ */

typedef struct sluice_grammar sluice_grammar; /* a tokenizer prepared for masks, once per model */
typedef struct sluice_matcher sluice_matcher; /* one generation's place in one grammar */

#define SLUICE_GRAMMAR_JSON_SCHEMA 0
#define SLUICE_GRAMMAR_REGEX 1 /* syntax of Rust's regex crate; the whole text must match */
#define SLUICE_GRAMMAR_LARK 2  /* llguidance's variant of Lark */

/* 0 means llguidance's default. What goes over a limit is an error, not a wrong mask. */
typedef struct sluice_grammar_limits {
  uint64_t max_grammar_size;   /* symbols in productions; 500,000 */
  uint64_t max_items_in_row;   /* branching; 2,000 */
  uint64_t max_lexer_states;   /* 1-2 kB each; 250,000 */
  uint64_t initial_lexer_fuel; /* at compile time; 1,000,000 */
  uint64_t step_lexer_fuel;    /* per mask; 200,000 */
  uint64_t step_max_items;     /* per mask; 50,000 */
} sluice_grammar_limits;

typedef struct sluice_matcher_state {
  bool accepting; /* the text so far is a complete match: EOS is allowed */
  bool stopped;   /* nothing but EOS can follow, or EOS was committed */
} sluice_matcher_state;

/* Takes 0.1 to 1 s. `n_vocab` is the width of the logits. At least one EOS id. `limits` may be
 * null. Keeps `tok` alive. */
int32_t sluice_grammar_new(const sluice_tok* tok, size_t n_vocab, const uint32_t* eos_ids,
                           size_t n_eos_ids, const sluice_grammar_limits* limits,
                           sluice_grammar** out, sluice_bytes* err);
void sluice_grammar_free(sluice_grammar* grammar);
int32_t sluice_grammar_compile(const sluice_grammar* grammar, uint32_t kind, sluice_str source,
                               sluice_matcher** out, sluice_bytes* err);
/* A copy with the same history that shares nothing, fit for another thread. */
int32_t sluice_matcher_clone(const sluice_matcher* matcher, sluice_matcher** out,
                             sluice_bytes* err);
void sluice_matcher_free(sluice_matcher* matcher);
/* Bit i % 32 of word i / 32 is 1 if token i may come next. At least ceil(n_vocab / 32) words;
 * those beyond are zeroed. Where text is forced only its own spelling is set (commit takes any).
 * After the end of the grammar only EOS is set. */
int32_t sluice_matcher_mask(sluice_matcher* matcher, uint32_t* words, size_t n_words,
                            sluice_bytes* err);
/* A token that is not allowed is SLUICE_ERROR and changes nothing. */
int32_t sluice_matcher_commit(sluice_matcher* matcher, uint32_t id, sluice_bytes* err);
/* Commits tokens until one is not allowed; *n_taken of them. */
int32_t sluice_matcher_try_commit(sluice_matcher* matcher, const uint32_t* token_ids, size_t n_ids,
                                  size_t* n_taken, sluice_bytes* err);
/* As try_commit, but changes nothing. */
int32_t sluice_matcher_check(sluice_matcher* matcher, const uint32_t* token_ids, size_t n_ids,
                             size_t* n_allowed, sluice_bytes* err);
/* The tokens that must come next, in the tokenizer's own spelling; often none. Not committed. */
int32_t sluice_matcher_forced(sluice_matcher* matcher, sluice_ids* out, sluice_bytes* err);
/* Takes back the last n committed tokens. */
int32_t sluice_matcher_rollback(sluice_matcher* matcher, size_t n_tokens, sluice_bytes* err);
int32_t sluice_matcher_reset(sluice_matcher* matcher, sluice_bytes* err);
int32_t sluice_matcher_state_get(sluice_matcher* matcher, sluice_matcher_state* out,
                                 sluice_bytes* err);

/* ---- Terminal ------------------------------------------------------------------------------ */

typedef struct sluice_line sluice_line; /* line editing and history, by rustyline */

#define SLUICE_LINE_TEXT 0        /* a line, without its newline */
#define SLUICE_LINE_INTERRUPTED 1 /* Ctrl-C */
#define SLUICE_LINE_EOF 2         /* Ctrl-D on an empty line, or the end of a pipe */

/* Reads the history file if it is there; an empty path means no file. 1,000 lines are kept. */
int32_t sluice_line_new(sluice_str history_path, sluice_line** out, sluice_bytes* err);
void sluice_line_free(sluice_line* line);
/* Reads one line from the terminal, or plainly from stdin if that is none, and adds it to the
 * history. Blocks. */
int32_t sluice_line_read(sluice_line* line, sluice_str prompt, sluice_bytes* out, int32_t* kind,
                         sluice_bytes* err);
/* Appends the new lines to the history file. */
int32_t sluice_line_save(sluice_line* line, sluice_bytes* err);

typedef struct sluice_progress sluice_progress; /* a bar on stderr, by indicatif */

#define SLUICE_PROGRESS_COUNT 0
#define SLUICE_PROGRESS_BYTES 1

/* Draws nothing if stderr is no terminal. */
int32_t sluice_progress_new(uint64_t total, uint32_t unit, sluice_str message,
                            sluice_progress** out, sluice_bytes* err);
int32_t sluice_progress_set(sluice_progress* progress, uint64_t position, sluice_bytes* err);
int32_t sluice_progress_message(sluice_progress* progress, sluice_str message, sluice_bytes* err);
/* Removes the bar from the terminal. */
void sluice_progress_free(sluice_progress* progress);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_BRIDGE_H */
