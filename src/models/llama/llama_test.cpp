#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "models/model_test_util.h"

namespace sluice::models {
namespace {

using nlohmann::json;
using namespace testing;  // NOLINT: the helpers of this folder

constexpr int kVocab = 97;
constexpr int kHidden = 64;
constexpr int kLayers = 2;
constexpr int kInner = 96;

json tiny_config() {
  return {{"model_type", "llama"},
          {"hidden_size", kHidden},
          {"num_hidden_layers", kLayers},
          {"intermediate_size", kInner},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"vocab_size", kVocab},
          {"max_position_embeddings", 400},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", true}};
}

// A seeded random 4-bit checkpoint of the plain family.
class TinyCheckpoint : public RandomCheckpoint {
 public:
  explicit TinyCheckpoint(json config = tiny_config()) : RandomCheckpoint("llama_test", config) {
    add_matrix("model.embed_tokens", kVocab, kHidden);
    for (int i = 0; i < kLayers; ++i) {
      const std::string layer = "model.layers." + std::to_string(i);
      add_matrix(layer + ".self_attn.q_proj", 64, kHidden);
      add_matrix(layer + ".self_attn.k_proj", 32, kHidden);
      add_matrix(layer + ".self_attn.v_proj", 32, kHidden);
      add_matrix(layer + ".self_attn.o_proj", kHidden, 64);
      add_matrix(layer + ".mlp.gate_proj", kInner, kHidden);
      add_matrix(layer + ".mlp.up_proj", kInner, kHidden);
      add_matrix(layer + ".mlp.down_proj", kHidden, kInner);
      add_norm(layer + ".input_layernorm", kHidden);
      add_norm(layer + ".post_attention_layernorm", kHidden);
    }
    add_norm("model.norm", kHidden);
  }
};

Loaded load(kernels::ContextOptions options = {}, int cache_tokens = 0) {
  TinyCheckpoint tiny;
  return testing::load(tiny, options, cache_tokens);
}

// Random rows in random groupings and chunkings must give each row the bits it has alone, one
// token at a time.
void check_grouping(Model& model, unsigned seed) {
  std::mt19937 rng(seed);
  const int lengths[] = {1, 2, 63, 64, 65, 130};
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(make_stream(model, random_tokens(rng, lengths[rng() % 6], kVocab)));
  }
  for (bool busy = true; busy;) {
    busy = false;
    std::vector<int> counts;
    for (auto& stream : streams) {
      const int left = static_cast<int>(stream.tokens.size()) - stream.state->length();
      counts.push_back(rng() % 3 == 0 ? 0 : std::min<int>(left, 1 + rng() % 40));
      busy |= left > 0;
    }
    run_pass(model, streams, counts);
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto alone = one_by_one(model, streams[i].tokens);
    ASSERT_EQ(streams[i].logits, alone) << "seed " << seed << ", stream " << i;
  }
}

TEST(ContractLlama, GroupingAndChunkingMoveNoBit) {
  auto loaded = load({}, 2048);
  for (unsigned seed = 0; seed < 25; ++seed) check_grouping(*loaded.model, seed);
  EXPECT_GT(loaded.context->kernel_runs(kernels::Op::kAttention), 0);
}

TEST(ContractLlama, ThreadsAndInstructionSetsMoveNoBit) {
  std::mt19937 rng(5);
  const auto tokens = random_tokens(rng, 100, kVocab);
  std::vector<std::vector<float>> first;
  for (auto isa : kernels::supported_isas()) {
    for (int threads : {1, 2, 5}) {
      kernels::ContextOptions options;
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

TEST(ContractLlama, RejectedDraftsLeaveNoTrace) {
  auto loaded = load();
  std::mt19937 rng(6);
  const auto tokens = random_tokens(rng, 80, kVocab);
  auto drafted = loaded.model->new_sequence();
  auto plain = one_by_one(*loaded.model, tokens);
  for (size_t done = 0; done < tokens.size();) {
    // One true token, then drafts of which a random number is right.
    const int right = std::min<int>(1 + rng() % 4, tokens.size() - done);
    auto pass_tokens = std::vector(tokens.begin() + done, tokens.begin() + done + right);
    for (int wrong = rng() % 3; wrong > 0; --wrong) pass_tokens.push_back(rng() % kVocab);
    const int count = pass_tokens.size();
    Pass pass{pass_tokens,
              {{.sequence = drafted.get(),
                .count = count,
                .first_position = drafted->length(),
                .settlement = Settlement::kTentative,
                .logits = LogitsWanted::kAll}}};
    auto output = loaded.model->forward(pass).value();
    evaluate(output);
    const float* data = output.logits->data<float>();
    for (int i = 0; i < right; ++i, data += kVocab) {
      ASSERT_TRUE(std::equal(data, data + kVocab, plain[done + i].begin())) << done + i;
    }
    ASSERT_TRUE(loaded.model->commit(pass.rows, std::vector<int>{right}).ok());
    done += right;
  }
}

TEST(Llama, ReferenceKeepsNeighboursApart) {
  auto loaded = load(backend(kernels::Backend::kReference));
  std::mt19937 rng(7);
  std::vector<Stream> together, alone;
  for (int i = 0; i < 3; ++i) {
    auto tokens = random_tokens(rng, 40, kVocab);
    together.push_back(make_stream(*loaded.model, tokens));
    alone.push_back(make_stream(*loaded.model, tokens));
  }
  run_pass(*loaded.model, together, {20, 1, 30});
  run_pass(*loaded.model, together, {1, 1, 1});
  const int firsts[] = {20, 1, 30};
  for (int i = 0; i < 3; ++i) {
    std::vector<int> counts(3, 0);
    counts[i] = firsts[i];
    run_pass(*loaded.model, alone, counts);
    counts[i] = 1;
    run_pass(*loaded.model, alone, counts);
    EXPECT_EQ(together[i].logits, alone[i].logits) << i;
  }
  EXPECT_EQ(loaded.context->kernel_runs(kernels::Op::kLinear), 0);
}

TEST(Llama, OwnKernelsAreNearTheReference) {
  auto own = load(), reference = load(backend(kernels::Backend::kReference));
  std::mt19937 rng(8);
  const auto tokens = random_tokens(rng, 90, kVocab);
  std::vector<Stream> a, b;
  a.push_back(make_stream(*own.model, tokens));
  b.push_back(make_stream(*reference.model, tokens));
  run_pass(*own.model, a, {90});
  run_pass(*reference.model, b, {90});
  for (int i = 0; i < 90; ++i) {
    for (int j = 0; j < kVocab; ++j) ASSERT_NEAR(a[0].logits[i][j], b[0].logits[i][j], 1e-4);
  }
}

TEST(Llama, CheckModeReportsEveryOpOfThisFamily) {
  auto loaded = load(check_mode());
  std::mt19937 rng(9);
  std::vector<Stream> streams;
  streams.push_back(make_stream(*loaded.model, random_tokens(rng, 70, kVocab)));
  run_pass(*loaded.model, streams, {70});
  const auto records = loaded.context->check_records();
  EXPECT_EQ(records.size(), 6u);  // linear, embedding, rms_norm, rope, swiglu, attention
  for (const auto& [op, record] : records) {
    EXPECT_GT(record.calls, 0) << kernels::op_name(op);
    EXPECT_GT(record.max_reference, 0) << kernels::op_name(op);
    EXPECT_LT(record.max_abs_error, 1e-4 * record.max_reference) << kernels::op_name(op);
  }
}

TEST(Llama, WrongPassesAreRefusedAndChangeNothing) {
  auto loaded = load({}, 128);
  auto& model = *loaded.model;
  auto a = model.new_sequence(), b = model.new_sequence();
  auto row = [&](cache::SequenceState& s, int first, int count, int position) {
    return Row{.sequence = &s, .first_token = first, .count = count, .first_position = position};
  };
  auto message = [&](Pass pass) {
    auto result = model.forward(pass);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(a->pending() + b->pending(), 0);
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_NE(message({{}, {}}).find("0 of the pass's 0"), std::string::npos);
  EXPECT_NE(message({{1, 2}, {row(*a, 0, 1, 0)}}).find("1 of the pass's 2"), std::string::npos);
  EXPECT_NE(message({{1, 2}, {row(*a, 0, 1, 0), row(*a, 1, 1, 0)}}).find("same sequence"),
            std::string::npos);
  EXPECT_NE(message({{1}, {row(*a, 0, 1, 3)}}).find("position 3"), std::string::npos);
  EXPECT_NE(message({{kVocab}, {row(*a, 0, 1, 0)}}).find("97"), std::string::npos);
  EXPECT_NE(message({{-1}, {row(*a, 0, 1, 0)}}).find("-1"), std::string::npos);
  EXPECT_NE(message({std::vector<int32_t>(401, 1), {row(*a, 0, 401, 0)}}).find("400"),
            std::string::npos);
  // 128 cached positions for two rows of 100: the first row's pages come back.
  EXPECT_NE(message({std::vector<int32_t>(200, 1), {row(*a, 0, 100, 0), row(*b, 100, 100, 0)}})
                .find("0 of 2 pages free"),
            std::string::npos);

  Pass pass{{1, 2, 3}, {row(*a, 0, 3, 0)}};
  auto output = model.forward(pass);
  ASSERT_TRUE(output.ok());
  evaluate(*output);
  EXPECT_FALSE(model.commit(pass.rows, std::vector<int>{2}).ok());  // settled rows keep all
  EXPECT_FALSE(model.commit(pass.rows, std::vector<int>{3, 3}).ok());
  EXPECT_FALSE(model.forward(pass).ok());  // not committed yet
  EXPECT_TRUE(model.commit(pass.rows, std::vector<int>{3}).ok());
  EXPECT_FALSE(model.commit(pass.rows, std::vector<int>{3}).ok());
}

TEST(Llama, MissingAndUnknownWeightsAreNamed) {
  auto context = kernels::Context::create({}).value();
  auto error_of = [&](TinyCheckpoint& tiny) {
    auto checkpoint = tiny.open().value();
    auto result = load_model(checkpoint, *context, {});
    return result.ok() ? std::string() : result.error().message;
  };
  TinyCheckpoint missing;
  missing.weights().erase("model.layers.1.input_layernorm.weight");
  EXPECT_NE(error_of(missing).find("model.layers.1.input_layernorm.weight"), std::string::npos);
  TinyCheckpoint unknown;
  unknown.weights().insert_or_assign("model.layers.2.stray.weight", mx::ones({4}));
  EXPECT_NE(error_of(unknown).find("model.layers.2.stray.weight"), std::string::npos);
}

TEST(LlamaConfig, RefusesWhatItCannotRun) {
  auto context = kernels::Context::create({}).value();
  auto error_with = [&](const char* key, json value) {
    auto config = tiny_config();
    config[key] = value;
    TinyCheckpoint tiny(config);
    auto checkpoint = tiny.open();
    if (!checkpoint.ok()) return checkpoint.error().message;
    auto result = load_model(*checkpoint, *context, {});
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_NE(error_with("model_type", "mamba9").find("mamba9"), std::string::npos);
  EXPECT_NE(error_with("hidden_size", "x").find("hidden_size"), std::string::npos);
  EXPECT_NE(error_with("num_key_value_heads", 3).find("3"), std::string::npos);
  EXPECT_NE(error_with("layer_types", {"sliding_attention", "full_attention"}).find("sliding"),
            std::string::npos);
  EXPECT_NE(error_with("rope_scaling", {{"rope_type", "spiral"}}).find("spiral"),
            std::string::npos);
  EXPECT_NE(error_with("rope_scaling", {{"rope_type", "linear"}}).find("factor"),
            std::string::npos);
  EXPECT_NE(error_with("hidden_act", "relu").find("relu"), std::string::npos);
}

}  // namespace
}  // namespace sluice::models
