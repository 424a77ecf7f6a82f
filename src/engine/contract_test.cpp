// The exactness contract on the default model: a request's tokens do not depend on how its prompt
// is cut, on threads, on the instruction set variant, on a cached prefix, or on its neighbours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/test_model.h"
#include "kernels/context.h"
#include "loader/checkpoint.h"
#include "models/registry.h"

namespace sluice::engine {
namespace {

constexpr int kPrompt = 150;  // two whole pages of 64 and a tail
constexpr int kOutput = 12;

// A stream with its log-probabilities, which are the logits' witnesses.
struct Stream {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Stream&) const = default;
};

GenerateRequest request_of(bool sampled,
                           std::optional<int> chunk = std::nullopt,
                           int prompt = kPrompt,
                           int prompt_seed = 1) {
  GenerateRequest request;
  request.prompt = random_tokens(kPrompt, prompt_seed);
  request.prompt.resize(prompt);
  request.max_tokens = std::min(kOutput, prompt);
  request.ignore_eos = true;
  request.prefill_chunk = chunk;
  request.sampling.logprobs = 0;
  request.sampling.temperature = sampled ? 0.9 : 0.0;
  request.sampling.top_p = 0.95;
  request.sampling.repetition_penalty = 1.1;
  request.sampling.seed = 42;
  request.reuse_prefix = false;
  return request;
}

Stream stream_of(Engine& engine, const GenerateRequest& request) {
  auto pending = submit(engine, request);
  Stream stream;
  stream.tokens = pending->result().value().tokens;
  stream.logprobs = pending->logprobs;
  return stream;
}

struct BothStreams {
  Stream greedy, sampled;
  bool operator==(const BothStreams&) const = default;
};

BothStreams streams_of(Engine& engine, std::optional<int> chunk = std::nullopt) {
  return {stream_of(engine, request_of(false, chunk)), stream_of(engine, request_of(true, chunk))};
}

// Of the linear layers: "int8" or "f32".
class ContractEngine : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Engine> load(EngineOptions options = {}) {
    options.activations = GetParam();
    return load_engine(options);
  }
};
INSTANTIATE_TEST_SUITE_P(Activations, ContractEngine, testing::Values("int8", "f32"));

TEST_P(ContractEngine, PrefillCutsMoveNoBit) {
  auto engine = load();
  const auto expected = streams_of(*engine);
  EXPECT_NE(expected.greedy.tokens, expected.sampled.tokens);
  for (int chunk : {1, 7, 64, 512}) EXPECT_EQ(streams_of(*engine, chunk), expected) << chunk;
}

TEST_P(ContractEngine, ThreadsMoveNoBit) {
  EngineOptions options;
  options.threads = 1;
  const auto expected = streams_of(*load(options));
  for (int threads : {2, 5}) {
    options.threads = threads;
    EXPECT_EQ(streams_of(*load(options)), expected) << threads;
  }
}

TEST_P(ContractEngine, InstructionSetVariantsMoveNoBit) {
  // Few tokens: the generic variant, without hardware FMA, needs most of a second for each.
  constexpr int kFew = 9;
  auto few = [](Engine& engine) { return stream_of(engine, request_of(true, std::nullopt, kFew)); };
  const auto expected = few(*load());
  for (const auto isa : kernels::supported_isas()) {
    EngineOptions options;
    options.isa = kernels::isa_name(isa);
    EXPECT_EQ(few(*load(options)), expected) << options.isa;
  }
}

TEST_P(ContractEngine, ACachedPrefixMovesNoBit) {
  auto engine = load();
  for (const bool sampled : {false, true}) {
    const auto cold = stream_of(*engine, request_of(sampled));
    for (int prefix : {1, 63, 64, 65, kPrompt - 2}) {
      // An engine for each: what is left of a longer one would be taken.
      auto warm = load();
      auto request = request_of(false, std::nullopt, prefix);
      request.max_tokens = 1;
      ASSERT_TRUE(warm->generate(request).ok());
      request = request_of(sampled);
      request.reuse_prefix = true;
      auto pending = submit(*warm, request);
      const auto result = pending->result().value();
      EXPECT_EQ(result.usage.cached_tokens, prefix);
      EXPECT_EQ((Stream{result.tokens, pending->logprobs}), cold) << prefix;
    }
  }
}

TEST_P(ContractEngine, RowsThatShareThePassesMoveNoBit) {
  auto engine = load();
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(request_of(i % 2 == 1, std::nullopt, 5 + 29 * i, i));
    requests.back().max_tokens = 8 + 3 * i;  // they end at different passes
  }
  std::vector<Stream> alone;
  for (const auto& request : requests) alone.push_back(stream_of(*engine, request));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::shared_ptr<PendingRequest>> together;
    for (const auto& request : requests) {
      together.push_back(submit(*engine, request));
      // In the second round they arrive while others decode.
      if (round == 1) together.back()->wait_for_token();
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto tokens = together[i]->result().value().tokens;
      EXPECT_EQ((Stream{tokens, together[i]->logprobs}), alone[i]) << "row " << i;
    }
  }
}

// ---- rows that share a pass, on the model itself

class ContractPacking : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    kernels::ContextOptions for_context;
    for_context.activations = kernels::ActivationPlan::parse(GetParam()).value();
    context_ = kernels::Context::create(for_context).value();
    auto checkpoint = loader::open_checkpoint(test_model_path()).value();
    models::ModelOptions options;
    options.cache_tokens = 2048;
    model_ = models::load_model(checkpoint, *context_, options).value();
  }

  struct Part {
    cache::SequenceState* sequence;
    std::vector<int32_t> tokens;
  };

  // All parts as rows of one settled pass -> the logits of all their tokens, row by row.
  std::vector<std::vector<float>> logits_of(const std::vector<Part>& parts) {
    models::Pass pass;
    std::vector<int> keep;
    for (const auto& part : parts) {
      models::Row row;
      row.sequence = part.sequence;
      row.first_token = static_cast<int>(pass.tokens.size());
      row.count = static_cast<int>(part.tokens.size());
      row.first_position = part.sequence->length();
      row.logits = models::LogitsWanted::kAll;
      pass.tokens.insert(pass.tokens.end(), part.tokens.begin(), part.tokens.end());
      pass.rows.push_back(row);
      keep.push_back(row.count);
    }
    auto output = model_->forward(pass).value();
    models::evaluate(output);
    model_->commit(pass.rows, keep).or_throw();
    const int vocab = model_->traits().vocab_size;
    std::vector<std::vector<float>> logits;
    const float* data = output.logits->data<float>();
    for (int count : keep) {
      logits.emplace_back(data, data + static_cast<size_t>(count) * vocab);
      data += static_cast<size_t>(count) * vocab;
    }
    return logits;
  }

  std::unique_ptr<kernels::Context> context_;
  std::unique_ptr<models::Model> model_;
};

INSTANTIATE_TEST_SUITE_P(Activations, ContractPacking, testing::Values("int8", "f32"));

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(ContractPacking, MixedPrefillAndDecodeRowsEqualRowsAlone) {
  const std::vector<int> lengths = {1, 70, 5, 130, 64};
  const std::vector<int> next = {1, 1, 33, 1, 7};  // decode rows among prefill rows
  std::vector<std::vector<float>> alone_first, alone_next;
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto sequence = model_->new_sequence();
    const int seed = static_cast<int>(i);
    alone_first.push_back(logits_of({{sequence.get(), random_tokens(lengths[i], seed)}})[0]);
    alone_next.push_back(logits_of({{sequence.get(), random_tokens(next[i], 100 + seed)}})[0]);
  }

  std::vector<std::unique_ptr<cache::SequenceState>> sequences;
  std::vector<Part> first, second;
  for (size_t i = 0; i < lengths.size(); ++i) {
    sequences.push_back(model_->new_sequence());
    const int seed = static_cast<int>(i);
    first.push_back({sequences.back().get(), random_tokens(lengths[i], seed)});
    second.push_back({sequences.back().get(), random_tokens(next[i], 100 + seed)});
  }
  const auto together_first = logits_of(first);
  const auto together_next = logits_of(second);
  for (size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_TRUE(same_bits(together_first[i], alone_first[i])) << "prefill row " << i;
    EXPECT_TRUE(same_bits(together_next[i], alone_next[i])) << "second pass, row " << i;
  }
}

}  // namespace
}  // namespace sluice::engine
