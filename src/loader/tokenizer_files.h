// The tokenizer's part of an MLX (Hugging Face) model folder: tokenizer.json,
// tokenizer_config.json, chat_template.jinja, and the special tokens that four files have a say in.
#pragma once

#include "base/result.h"
#include "loader/checkpoint.h"

namespace sluice::loader {

// Fills eos_token_ids and bos_token_id from checkpoint.config (and its text_config) and
// checkpoint.generation_config. kCorruptFile for ids that are no integers.
Status read_special_tokens(Checkpoint& checkpoint);

// Reads the folder checkpoint.path: tokenizer_json (kNotFound without it), tokenizer_config, the
// templates (chat_template.jinja before tokenizer_config's chat_template, a string or a list of
// {name, template}), and adds the ids of tokenizer_config's eos_token and bos_token.
Status read_tokenizer_files(Checkpoint& checkpoint);

}  // namespace sluice::loader
