#include "models/qwen3_5/qwen3_5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "models/model_test_util.h"

namespace sluice::models {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT: the helpers of this folder

constexpr int kVocab = 97;
constexpr int kHidden = 64;
constexpr int kLayers = 4;
constexpr int kInner = 96;
constexpr int kKeySize = 2 * 32, kValueSize = 4 * 24;

json tiny_config() {
  json text = {{"model_type", "qwen3_5_text"},
               {"hidden_size", kHidden},
               {"num_hidden_layers", kLayers},
               {"intermediate_size", kInner},
               {"num_attention_heads", 4},
               {"num_key_value_heads", 2},
               {"head_dim", 16},
               {"vocab_size", kVocab},
               {"max_position_embeddings", 400},
               {"rms_norm_eps", 1e-6},
               {"full_attention_interval", 2},
               {"linear_num_key_heads", 2},
               {"linear_num_value_heads", 4},
               {"linear_key_head_dim", 32},
               {"linear_value_head_dim", 24},
               {"linear_conv_kernel_dim", 4},
               {"mtp_num_hidden_layers", 1},
               {"rope_parameters",
                {{"rope_type", "default"}, {"rope_theta", 1e4}, {"partial_rotary_factor", 0.5}}}};
  return {{"model_type", "qwen3_5"}, {"tie_word_embeddings", true}, {"text_config", text}};
}

class TinyCheckpoint : public RandomCheckpoint {
 public:
  explicit TinyCheckpoint(const json& config = tiny_config(), bool packed = false)
      : RandomCheckpoint("qwen3_5_test", config) {
    const std::string root = "language_model.model.";
    add_matrix(root + "embed_tokens", kVocab, kHidden);
    for (int i = 0; i < kLayers; ++i) {
      const std::string layer = root + "layers." + std::to_string(i);
      if (i % 2 == 0) {
        add_gated_delta(layer + ".linear_attn", packed);
      } else {
        add_attention(layer + ".self_attn");
      }
      add_rest(layer);
    }
    add_norm(root + "norm", kHidden);
    add_mtp("language_model.mtp.");
  }

 private:
  void add_rest(const std::string& layer) {
    add_norm(layer + ".input_layernorm", kHidden);
    add_norm(layer + ".post_attention_layernorm", kHidden);
    add_matrix(layer + ".mlp.gate_proj", kInner, kHidden);
    add_matrix(layer + ".mlp.up_proj", kInner, kHidden);
    add_matrix(layer + ".mlp.down_proj", kHidden, kInner);
  }
  void add_attention(const std::string& path) {
    add_matrix(path + ".q_proj", 2 * 64, kHidden);
    add_matrix(path + ".k_proj", 32, kHidden);
    add_matrix(path + ".v_proj", 32, kHidden);
    add_matrix(path + ".o_proj", kHidden, 64);
    add_norm(path + ".q_norm", 16);
    add_norm(path + ".k_norm", 16);
  }
  void add_gated_delta(const std::string& path, bool packed) {
    const int conv = 2 * kKeySize + kValueSize;
    if (packed) {
      add_matrix(path + ".in_proj_qkvz", conv + kValueSize, kHidden);
      add_matrix(path + ".in_proj_ba", 8, kHidden);
    } else {
      add_matrix(path + ".in_proj_qkv", conv, kHidden);
      add_matrix(path + ".in_proj_z", kValueSize, kHidden);
      add_matrix(path + ".in_proj_b", 4, kHidden);
      add_matrix(path + ".in_proj_a", 4, kHidden);
    }
    add(path + ".conv1d.weight", {conv, 4, 1}, 0.0f, 0.5f);
    add(path + ".A_log", {4}, 0.0f, 1.0f);
    add(path + ".dt_bias", {4}, 0.0f, 1.0f);
    add_norm(path + ".norm", 24);
    add_matrix(path + ".out_proj", kHidden, kValueSize);
  }
  void add_mtp(const std::string& path) {
    add_norm(path + "pre_fc_norm_embedding", kHidden);
    add_norm(path + "pre_fc_norm_hidden", kHidden);
    add_matrix(path + "fc", kHidden, 2 * kHidden);
    add_attention(path + "layers.0.self_attn");
    add_rest(path + "layers.0");
    add_norm(path + "norm", kHidden);
  }
};

Loaded load(const kernels::ContextOptions& options = {}, int cache_tokens = 2048) {
  TinyCheckpoint tiny;
  return testing::load(tiny, options, cache_tokens);
}

kernels::ContextOptions int8_activations() {
  kernels::ContextOptions options;
  options.activations = kernels::ActivationPlan::parse("int8").value();
  return options;
}

bool same_memory(const mx::array& a, const mx::array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data<float>(), b.data<float>(), a.nbytes()) == 0;
}

void expect_same_slots(const cache::SequenceState& a, const cache::SequenceState& b) {
  ASSERT_EQ(a.slots().size(), b.slots().size());
  for (size_t i = 0; i < a.slots().size(); ++i) {
    EXPECT_TRUE(same_memory(a.slots()[i].tail(), b.slots()[i].tail())) << "tail " << i;
    EXPECT_TRUE(same_memory(a.slots()[i].state(), b.slots()[i].state())) << "state " << i;
  }
}

// ---- the exactness contract

// A stream's part of a pass: true tokens, then wrong ones if it is tentative; what is kept of it.
struct Part {
  Stream* stream;
  std::vector<int32_t> tokens;
  bool settled;
  int keep;
};

Part random_part(std::mt19937& rng, Stream& stream) {
  const int done = stream.state->length(), left = static_cast<int>(stream.tokens.size()) - done;
  Part part{&stream, {}, rng() % 3 != 0, 0};
  const int limit = part.settled ? 40 : 5;
  const int right = std::min<int>(left, 1 + rng() % limit);
  part.tokens.assign(stream.tokens.begin() + done, stream.tokens.begin() + done + right);
  part.keep = right;
  if (part.settled) return part;
  for (int wrong = rng() % 4; wrong > 0; --wrong) part.tokens.push_back(rng() % kVocab);
  part.keep = rng() % (right + 1);
  return part;
}

void run_parts(Model& model, const std::vector<Part>& parts) {
  Pass pass;
  std::vector<int> keep;
  for (const auto& part : parts) {
    pass.rows.push_back({.sequence = part.stream->state.get(),
                         .first_token = static_cast<int>(pass.tokens.size()),
                         .count = static_cast<int>(part.tokens.size()),
                         .first_position = part.stream->state->length(),
                         .settlement = part.settled ? Settlement::kSettled : Settlement::kTentative,
                         .logits = LogitsWanted::kAll});
    pass.tokens.insert(pass.tokens.end(), part.tokens.begin(), part.tokens.end());
    keep.push_back(part.keep);
  }
  auto output = model.forward(pass).value();
  evaluate(output);
  const float* data = output.logits->data<float>();
  for (const auto& part : parts) {
    for (size_t i = 0; i < part.tokens.size(); ++i, data += kVocab) {
      if (static_cast<int>(i) < part.keep) part.stream->logits.emplace_back(data, data + kVocab);
    }
  }
  model.commit(pass.rows, keep).or_throw();
}

// Goes astray from where the stream is and comes back by a snapshot.
void detour(Model& model, std::mt19937& rng, Stream& stream) {
  const auto snapshot = stream.state->snapshot().value();
  Stream astray{std::move(stream.state), {}, {}};
  const auto tokens = random_tokens(rng, 1 + rng() % 70, kVocab);
  run_parts(model, {{&astray, tokens, true, static_cast<int>(tokens.size())}});
  stream.state = std::move(astray.state);
  stream.state->restore(snapshot).or_throw();
}

// Random rows of random lengths, in random order and cuts, settled or drafted with random keeps,
// joining late, leaving early, and led astray: each has the logits and the slots that it has alone,
// one token at a time.
void check_seed(Model& model, unsigned seed) {
  std::mt19937 rng(seed);
  const int lengths[] = {1, 2, 3, 4, 5, 17, 64, 65, 90};
  std::vector<Stream> streams;
  for (int i = 1 + rng() % 4; i > 0; --i) {
    streams.push_back(make_stream(model, random_tokens(rng, lengths[rng() % 9], kVocab)));
  }
  for (bool busy = true; busy;) {
    busy = false;
    std::vector<int> order(streams.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    std::vector<Part> parts;
    for (const int i : order) {
      auto& stream = streams[i];
      if (stream.state->length() == static_cast<int>(stream.tokens.size())) continue;
      busy = true;
      if (rng() % 8 == 0 && stream.state->length() > 0) detour(model, rng, stream);
      if (rng() % 4 != 0) parts.push_back(random_part(rng, stream));
    }
    if (!parts.empty()) run_parts(model, parts);
  }
  for (auto& stream : streams) {
    std::vector<Stream> alone;
    alone.push_back(make_stream(model, stream.tokens));
    for (size_t t = 0; t < stream.tokens.size(); ++t) run_pass(model, alone, {1});
    ASSERT_EQ(stream.logits, alone[0].logits) << "seed " << seed;
    expect_same_slots(*stream.state, *alone[0].state);
  }
}

// SLUICE_SEEDS: how many; 10,000 for a soak.
unsigned seeds() {
  const char* text = std::getenv("SLUICE_SEEDS");
  return text ? std::atoi(text) : 200;
}

TEST(ContractQwen35, RowsAreAloneWhateverSharesTheirPasses) {
  auto loaded = load();
  for (unsigned seed = 0; seed < seeds() && !HasFailure(); ++seed) {
    check_seed(*loaded.model, seed);
  }
  EXPECT_GT(loaded.context->kernel_runs(kernels::Op::kGatedDelta), 0);
  EXPECT_GT(loaded.context->kernel_runs(kernels::Op::kCausalConv), 0);
}

TEST(ContractQwen35, RowsAreAloneWithInt8Activations) {
  auto loaded = load(int8_activations());
  for (unsigned seed = 0; seed < seeds() && !HasFailure(); ++seed) {
    check_seed(*loaded.model, 1000000 + seed);
  }
}

TEST(ContractQwen35, ThreadsAndInstructionSetsMoveNoBit) {
  std::mt19937 rng(5);
  const auto tokens = random_tokens(rng, 100, kVocab);
  for (const bool int8 : {false, true}) {
    std::vector<std::vector<float>> first;
    for (auto isa : kernels::supported_isas()) {
      for (int threads : {1, 2, 5}) {
        auto options = int8 ? int8_activations() : kernels::ContextOptions{};
        options.isa = isa;
        options.threads = threads;
        auto loaded = load(options);
        std::vector<Stream> streams;
        streams.push_back(make_stream(*loaded.model, tokens));
        run_pass(*loaded.model, streams, {90});
        run_pass(*loaded.model, streams, {10});
        if (first.empty()) first = streams[0].logits;
        ASSERT_EQ(streams[0].logits, first) << kernels::isa_name(isa) << ", " << threads;
      }
    }
  }
}

// Rows of other lengths beside a row change nothing of it: mlx-lm's padded batches let the padding
// of shorter rows into their recurrent state (ml-explore/mlx-lm issue 1736).
TEST(ContractQwen35, ShorterRowsOfABatchKeepTheirState) {
  for (const auto kind : {kernels::Backend::kCpu, kernels::Backend::kReference}) {
    auto loaded = load(backend(kind));
    std::mt19937 rng(3);
    std::vector<Stream> together;
    for (const int length : {2, 31, 7}) {
      together.push_back(make_stream(*loaded.model, random_tokens(rng, length + 3, kVocab)));
    }
    run_pass(*loaded.model, together, {2, 31, 7});
    for (int i = 0; i < 3; ++i) run_pass(*loaded.model, together, {1, 1, 1});
    for (auto& stream : together) {
      const int first = static_cast<int>(stream.tokens.size()) - 3;
      std::vector<Stream> alone;
      alone.push_back(make_stream(*loaded.model, stream.tokens));
      run_pass(*loaded.model, alone, {first});
      for (int i = 0; i < 3; ++i) run_pass(*loaded.model, alone, {1});
      EXPECT_EQ(stream.logits, alone[0].logits);
      expect_same_slots(*stream.state, *alone[0].state);
    }
  }
}

// In reference mode too a rejected tail leaves what a pass over the accepted tokens alone leaves.
TEST(ContractQwen35, ReferenceVerifyRoundsLeaveTheAcceptedPrefix) {
  auto loaded = load(backend(kernels::Backend::kReference));
  std::mt19937 rng(4);
  const auto tokens = random_tokens(rng, 12, kVocab);
  for (int keep = 0; keep <= 4; ++keep) {
    std::vector<Stream> drafted, plain;
    drafted.push_back(make_stream(*loaded.model, tokens));
    plain.push_back(make_stream(*loaded.model, tokens));
    run_pass(*loaded.model, drafted, {8});
    run_pass(*loaded.model, plain, {8});
    const std::vector<int32_t> window(tokens.begin() + 8, tokens.end());
    run_parts(*loaded.model, {{&drafted[0], window, false, keep}});
    if (keep > 0) run_pass(*loaded.model, plain, {keep});
    EXPECT_EQ(drafted[0].state->length(), 8 + keep);
    // The tail holds inputs of matrix products over other numbers of rows, whose last bits may
    // differ; the recurrence adds none of its own.
    for (size_t i = 0; i < plain[0].state->slots().size(); ++i) {
      const auto& a = drafted[0].state->slots()[i];
      const auto& b = plain[0].state->slots()[i];
      EXPECT_TRUE(mx::allclose(a.tail(), b.tail(), 1e-5, 1e-5).item<bool>()) << keep;
      EXPECT_TRUE(mx::allclose(a.state(), b.state(), 1e-5, 1e-5).item<bool>()) << keep;
    }
  }
}

// ---- numbers, checks, weights

TEST(Qwen35, OwnKernelsAreNearTheReference) {
  auto own = load(), reference = load(backend(kernels::Backend::kReference));
  std::mt19937 rng(8);
  const auto tokens = random_tokens(rng, 90, kVocab);
  std::vector<Stream> a, b;
  a.push_back(make_stream(*own.model, tokens));
  b.push_back(make_stream(*reference.model, tokens));
  run_pass(*own.model, a, {90});
  run_pass(*reference.model, b, {90});
  for (int i = 0; i < 90; ++i) {
    for (int j = 0; j < kVocab; ++j) ASSERT_NEAR(a[0].logits[i][j], b[0].logits[i][j], 2e-4);
  }
}

TEST(Qwen35, CheckModeReportsEveryOp) {
  auto loaded = load(check_mode());
  std::mt19937 rng(9);
  std::vector<Stream> streams;
  streams.push_back(make_stream(*loaded.model, random_tokens(rng, 70, kVocab)));
  run_pass(*loaded.model, streams, {70});
  const auto records = loaded.context->check_records();
  EXPECT_EQ(records.size(), static_cast<size_t>(kernels::kNumOps));
  for (const auto& [op, record] : records) {
    EXPECT_GT(record.calls, 0) << kernels::op_name(op);
    EXPECT_LT(record.max_abs_error, 1e-4 * record.max_reference) << kernels::op_name(op);
  }
}

TEST(Qwen35, CommitsThatMakeNoSenseChangeNothing) {
  auto loaded = load();
  auto& model = *loaded.model;
  std::vector<Stream> streams;
  streams.push_back(make_stream(model, {1, 2, 3, 4, 5}));
  run_pass(model, streams, {3});
  auto& sequence = *streams[0].state;
  const auto before = sequence.snapshot().value();
  Row row{.sequence = &sequence,
          .count = 2,
          .first_position = 3,
          .settlement = Settlement::kTentative,
          .logits = LogitsWanted::kLast};
  EXPECT_FALSE(model.commit({&row, 1}, std::vector<int>{1}).ok());  // no pass
  Pass pass{{4, 5}, {row}};
  evaluate(model.forward(pass).value());
  EXPECT_THAT(model.forward(pass).error().message, HasSubstr("not been committed"));
  EXPECT_THAT(model.commit(pass.rows, std::vector<int>{3}).error().message, HasSubstr("keeps 3"));
  EXPECT_THAT(model.commit(pass.rows, std::vector<int>{-1}).error().message, HasSubstr("keeps -1"));
  EXPECT_FALSE(model.commit(pass.rows, std::vector<int>{1, 1}).ok());
  EXPECT_FALSE(sequence.snapshot().ok());
  ASSERT_TRUE(model.commit(pass.rows, std::vector<int>{0}).ok());
  EXPECT_EQ(sequence.length(), 3);
  for (size_t i = 0; i < before.slots.size(); ++i) {
    EXPECT_TRUE(same_memory(sequence.slots()[i].state(), before.slots[i].state));
    EXPECT_TRUE(same_memory(sequence.slots()[i].tail(), before.slots[i].tail));
  }
}

TEST(Qwen35, AFirstPassThatIsRejectedLeavesAnEmptySequence) {
  auto loaded = load();
  std::vector<Stream> streams, fresh;
  streams.push_back(make_stream(*loaded.model, {1, 2, 3, 4, 5}));
  fresh.push_back(make_stream(*loaded.model, {1, 2, 3, 4, 5}));
  run_parts(*loaded.model, {{&streams[0], {9, 9, 9}, false, 0}});
  EXPECT_EQ(streams[0].state->length(), 0);
  run_pass(*loaded.model, streams, {5});
  run_pass(*loaded.model, fresh, {5});
  EXPECT_EQ(streams[0].logits, fresh[0].logits);
}

TEST(Qwen35, SlotBytesAreCountedAndStated) {
  auto loaded = load();
  std::vector<Stream> streams;
  streams.push_back(make_stream(*loaded.model, {1, 2, 3}));
  EXPECT_EQ(streams[0].state->slot_bytes(), 0u);  // nothing is held before the first pass
  run_pass(*loaded.model, streams, {3});
  // Two layers: 4 heads of 24 value rows, in panels of 16, by 32 keys; 3 rows of the tail.
  const size_t expected = 2 * (4 * 32 * 32 + 3 * (2 * kKeySize + kValueSize)) * sizeof(float);
  EXPECT_EQ(streams[0].state->slot_bytes(), expected);
  EXPECT_EQ(loaded.model->traits().cache_bytes_per_sequence, expected);
  EXPECT_EQ(streams[0].state->snapshot()->nbytes(), expected);
}

TEST(Qwen35, HoldsTheMtpHeadForADrafter) {
  auto loaded = load();
  const auto* model = dynamic_cast<Qwen35Model*>(loaded.model.get());
  ASSERT_NE(model, nullptr);
  ASSERT_NE(model->mtp(), nullptr);
  EXPECT_EQ(model->mtp()->layers.size(), 1u);
  EXPECT_EQ(model->mtp()->fc.in_features(), 2 * kHidden);
}

TEST(Qwen35, PackedProjectionsAreCutByKeyHead) {
  // qwen3_next's layout of the same matrices: the rows of a key head's q, k, v and z together.
  json config = tiny_config()["text_config"];
  config["model_type"] = "qwen3_next";
  config["tie_word_embeddings"] = true;
  TinyCheckpoint packed(config, true), plain;
  auto rows = [](std::initializer_list<std::pair<int, int>> spans) {
    std::vector<int32_t> all;
    for (const auto& [first, count] : spans) {
      for (int i = 0; i < count; ++i) all.push_back(first + i);
    }
    return mx::array(all.data(), {static_cast<int>(all.size())}, mx::int32);
  };
  for (const int layer : {0, 2}) {
    const auto path = "language_model.model.layers." + std::to_string(layer) + ".linear_attn.";
    for (const char* part : {".weight", ".scales", ".biases"}) {
      auto& to = packed.weights();
      auto& from = plain.weights();
      // Of each of the 2 key heads: q 32, k 32, v 2 x 24, z 2 x 24; b 2, a 2.
      auto all = mx::concatenate(
          {from.at(path + "in_proj_qkv" + part), from.at(path + "in_proj_z" + part)}, 0);
      const int v = 2 * kKeySize, z = v + kValueSize;
      to.insert_or_assign(path + "in_proj_qkvz" + part,
                          mx::take(all,
                                   rows({{0, 32},
                                         {64, 32},
                                         {v, 48},
                                         {z, 48},
                                         {32, 32},
                                         {96, 32},
                                         {v + 48, 48},
                                         {z + 48, 48}}),
                                   0));
      auto gates = mx::concatenate(
          {from.at(path + "in_proj_b" + part), from.at(path + "in_proj_a" + part)}, 0);
      to.insert_or_assign(path + "in_proj_ba" + part,
                          mx::take(gates, rows({{0, 2}, {4, 2}, {2, 2}, {6, 2}}), 0));
    }
  }
  for (auto& [name, weight] : plain.weights()) {
    if (name.find("in_proj") == std::string::npos) packed.weights().insert_or_assign(name, weight);
  }
  auto a = testing::load(packed, {}, 512), b = testing::load(plain, {}, 512);
  std::mt19937 rng(2);
  std::vector<Stream> x, y;
  const auto tokens = random_tokens(rng, 20, kVocab);
  x.push_back(make_stream(*a.model, tokens));
  y.push_back(make_stream(*b.model, tokens));
  run_pass(*a.model, x, {20});
  run_pass(*b.model, y, {20});
  EXPECT_EQ(x[0].logits, y[0].logits);
}

TEST(Qwen35, MissingAndUnknownWeightsAreNamed) {
  auto context = kernels::Context::create({}).value();
  auto error_of = [&](TinyCheckpoint& tiny) {
    auto checkpoint = tiny.open().value();
    auto result = load_model(checkpoint, *context, {});
    return result.ok() ? std::string() : result.error().message;
  };
  TinyCheckpoint missing;
  missing.weights().erase("language_model.model.layers.2.linear_attn.A_log");
  EXPECT_THAT(error_of(missing), HasSubstr("layers.2.linear_attn.A_log"));
  TinyCheckpoint unknown;
  unknown.weights().insert_or_assign("language_model.model.layers.7.stray.weight", mx::ones({4}));
  EXPECT_THAT(error_of(unknown), HasSubstr("layers.7.stray.weight"));
}

TEST(Qwen35Config, RefusesWhatItCannotRun) {
  auto error_with = [&](const char* key, json value) {
    auto config = tiny_config();
    config["text_config"][key] = value;
    auto result = Qwen35Config::from_json(config);
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_THAT(error_with("linear_key_head_dim", 48), HasSubstr("multiple of 32"));
  EXPECT_THAT(error_with("linear_num_value_heads", 3), HasSubstr("linear_num_value_heads 3"));
  EXPECT_THAT(error_with("num_key_value_heads", 3), HasSubstr("num_key_value_heads 3"));
  EXPECT_THAT(error_with("hidden_act", "relu"), HasSubstr("relu"));
  EXPECT_THAT(error_with("attn_output_gate", false), HasSubstr("attn_output_gate"));
  EXPECT_THAT(error_with("layer_types", {"linear_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(error_with("layer_types", {"linear_attention", "x", "full_attention", "y"}),
              HasSubstr("layer_types[1]"));
  EXPECT_THAT(
      error_with("rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.05}}),
      HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(error_with("rope_parameters", {{"rope_type", "spiral"}}), HasSubstr("spiral"));
  EXPECT_EQ(error_with("rms_norm_eps", 1e-5), "");
}

}  // namespace
}  // namespace sluice::models
