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

Stream stream_of(Engine& engine,
                 bool sampled,
                 std::optional<int> chunk = std::nullopt,
                 Session* session = nullptr,
                 int prompt = kPrompt) {
  GenerateRequest request;
  request.prompt = random_tokens(kPrompt, 1);
  request.prompt.resize(prompt);
  request.max_tokens = std::min(kOutput, prompt);
  request.ignore_eos = true;
  request.prefill_chunk = chunk;
  request.sampling.logprobs = 0;
  request.sampling.temperature = sampled ? 0.9 : 0.0;
  request.sampling.top_p = 0.95;
  request.sampling.repetition_penalty = 1.1;
  request.sampling.seed = 42;
  Stream stream;
  auto result = engine.generate(
      request,
      [&](const TokenEvent& event) {
        stream.logprobs.push_back(*event.logprob);
        return true;
      },
      session);
  stream.tokens = result.value().tokens;
  return stream;
}

struct BothStreams {
  Stream greedy, sampled;
  bool operator==(const BothStreams&) const = default;
};

BothStreams streams_of(Engine& engine, std::optional<int> chunk = std::nullopt) {
  return {stream_of(engine, false, chunk), stream_of(engine, true, chunk)};
}

TEST(ContractEngine, PrefillCutsMoveNoBit) {
  auto engine = load_engine();
  const auto expected = streams_of(*engine);
  EXPECT_NE(expected.greedy.tokens, expected.sampled.tokens);
  for (int chunk : {1, 7, 64, 512}) EXPECT_EQ(streams_of(*engine, chunk), expected) << chunk;
}

TEST(ContractEngine, ThreadsMoveNoBit) {
  EngineOptions options;
  options.threads = 1;
  const auto expected = streams_of(*load_engine(options));
  for (int threads : {2, 5}) {
    options.threads = threads;
    EXPECT_EQ(streams_of(*load_engine(options)), expected) << threads;
  }
}

TEST(ContractEngine, InstructionSetVariantsMoveNoBit) {
  // Few tokens: the generic variant, without hardware FMA, needs most of a second for each.
  constexpr int kFew = 9;
  auto few = [](Engine& engine) { return stream_of(engine, true, std::nullopt, nullptr, kFew); };
  const auto expected = few(*load_engine());
  for (const auto isa : kernels::supported_isas()) {
    EngineOptions options;
    options.isa = kernels::isa_name(isa);
    EXPECT_EQ(few(*load_engine(options)), expected) << options.isa;
  }
}

TEST(ContractEngine, ACachedPrefixMovesNoBit) {
  auto engine = load_engine();
  for (const bool sampled : {false, true}) {
    const auto cold = stream_of(*engine, sampled);
    for (int prefix : {1, 63, 64, 65, kPrompt - 2}) {
      auto session = engine->new_session();
      GenerateRequest request;
      request.prompt = random_tokens(kPrompt, 1);
      request.prompt.resize(prefix);
      request.max_tokens = 1;
      ASSERT_TRUE(engine->generate(request, {}, session.get()).ok());
      ASSERT_EQ(session->cached_tokens(), prefix);
      EXPECT_EQ(stream_of(*engine, sampled, std::nullopt, session.get()), cold) << prefix;
    }
  }
}

// ---- rows that share a pass, on the model itself

class ContractPacking : public testing::Test {
 protected:
  void SetUp() override {
    context_ = kernels::Context::create({}).value();
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

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_F(ContractPacking, MixedPrefillAndDecodeRowsEqualRowsAlone) {
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
