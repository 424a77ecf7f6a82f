#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "text/test_tokenizers.h"

namespace sluice::text {
namespace {

using testing::byte_level;
using testing::kBos;
using testing::kEnd;
using testing::kSpmA;
using testing::kSpmBos;
using testing::kSpmSpaceA;
using testing::sentencepiece;
using Ids = std::vector<int32_t>;

// Emoji with joiners and modifiers, CJK, Czech, combining marks, ASCII.
constexpr const char* kTexts[] = {"hello hel he",
                                  "👩‍👩‍👧‍👦👍🏽🏳️‍🌈",
                                  "你好，世界。日本語テスト 한국어",
                                  "Příliš žluťoučký kůň úpěl ďábelské ódy",
                                  "e\u0301 \t\r\n\n  x",
                                  ""};

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const Ids& ids, bool skip = true) {
  auto stream = DetokenizerStream::create(tokenizer, skip).value();
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.push_back(stream.step(id).value());
  pieces.push_back(stream.finish().value());
  return pieces;
}

std::string join(const std::vector<std::string>& pieces) {
  std::string text;
  for (const auto& piece : pieces) text += piece;
  return text;
}

bool starts_inside_a_character(const std::string& text) {
  return !text.empty() && (static_cast<unsigned char>(text[0]) & 0xc0) == 0x80;
}

TEST(Tokenizer, EncodesAndDecodesBothKinds) {
  for (const Tokenizer& tokenizer : {byte_level(), sentencepiece()}) {
    for (const char* text : kTexts) {
      const auto ids = tokenizer.encode(text, {.add_special = false}).value();
      EXPECT_EQ(tokenizer.decode(ids, true).value(), text);
    }
  }
  EXPECT_EQ(byte_level().encode("hello", {.add_special = false}).value(), (Ids{257, 'l', 'o'}));
}

TEST(Tokenizer, AddsAndParsesSpecialTokensAsAsked) {
  const Tokenizer tokenizer = byte_level();
  EXPECT_EQ(tokenizer.encode("a<|end|>").value(), (Ids{kBos, 'a', kEnd}));
  EXPECT_EQ(tokenizer.encode("a<|end|>", {.add_special = false}).value(), (Ids{'a', kEnd}));
  const auto plain =
      tokenizer.encode("a<|end|>", {.add_special = false, .parse_special = false}).value();
  EXPECT_EQ(plain.size(), 8u);
  EXPECT_EQ(tokenizer.decode(plain, true).value(), "a<|end|>");
  EXPECT_EQ(tokenizer.decode(Ids{kBos, 'a', kEnd}, true).value(), "a");
  EXPECT_EQ(tokenizer.decode(Ids{kBos, 'a', kEnd}, false).value(), "<|bos|>a<|end|>");
}

TEST(Tokenizer, LooksUpTokensAndTheirBytes) {
  const Tokenizer tokenizer = byte_level();
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.token_to_id("hel"), 257);
  EXPECT_EQ(tokenizer.token_to_id("no such"), std::nullopt);
  EXPECT_EQ(tokenizer.token_to_id("\xff"), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(' '), "Ġ");
  EXPECT_EQ(tokenizer.id_to_token(260), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(-1), std::nullopt);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(tokenizer.token_bytes(byte), std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(sentencepiece().token_bytes(byte), std::string(1, static_cast<char>(byte)));
    if (byte > 8) byte += 6;  // loading a tokenizer for each byte is slow
  }
  EXPECT_EQ(sentencepiece().token_bytes(kSpmSpaceA), " a");
  ASSERT_EQ(tokenizer.special_tokens().size(), 2u);
  EXPECT_EQ(tokenizer.special_tokens()[1].id, kEnd);
  EXPECT_EQ(tokenizer.special_tokens()[1].content, "<|end|>");
}

TEST(Tokenizer, RefusesBadInputsWithWhereAndWhy) {
  const Tokenizer tokenizer = byte_level();
  const auto bad = tokenizer.encode("ab\xc3(");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error().message, "the text to encode is not valid UTF-8 at byte 2");
  EXPECT_FALSE(tokenizer.encode(std::string(500'001, ' ') + "a").ok());
  EXPECT_TRUE(tokenizer.encode(std::string(1000, ' ') + "a").ok());
  EXPECT_FALSE(tokenizer.decode(Ids{'a', -1}, true).ok());
  EXPECT_EQ(tokenizer.decode(Ids{'a', 1'000'000, 'b'}, true).value(), "ab");
}

TEST(Tokenizer, RefusesFilesThatAreNoTokenizer) {
  for (const char* text : {"", "{", "[]", "{}", R"({"model": {"type": "none"}})"}) {
    const auto tokenizer = Tokenizer::from_json(text);
    ASSERT_FALSE(tokenizer.ok()) << text;
    EXPECT_EQ(tokenizer.error().code, ErrorCode::kCorruptFile);
  }
  auto json = testing::byte_level_json();
  json["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  const auto tokenizer = Tokenizer::from_json(json.dump());
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_NE(tokenizer.error().message.find("WordPiece"), std::string::npos);
}

TEST(Tokenizer, MayBeUsedByThreadsAtOnce) {
  const Tokenizer tokenizer = byte_level();
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        for (const char* text : kTexts) {
          equal += tokenizer.decode(tokenizer.encode(text).value(), true).value() == text;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, 4 * 50 * static_cast<int>(std::size(kTexts)));
}

TEST(DetokenizerStream, GivesWholeCharactersThatJoinToTheText) {
  const Tokenizer tokenizer = byte_level();
  for (const char* text : kTexts) {
    const auto ids = tokenizer.encode(text, {.add_special = false}).value();
    const auto pieces = pieces_of(tokenizer, ids);
    EXPECT_EQ(join(pieces), text);
    for (const auto& piece : pieces) EXPECT_FALSE(starts_inside_a_character(piece));
  }
  // "ž" is two tokens here: nothing, then all of it.
  EXPECT_EQ(pieces_of(tokenizer, {0xc5, 0xbe, 'x'}), (std::vector<std::string>{"", "ž", "x", ""}));
}

TEST(DetokenizerStream, JoinsToTheDecodedTextForAnyIds) {
  std::mt19937 random(3);
  for (const Tokenizer& tokenizer : {byte_level(), sentencepiece()}) {
    std::uniform_int_distribution<int32_t> any(0, tokenizer.vocab_size() + 2);
    for (int round = 0; round < 500; ++round) {
      Ids ids(random() % 30);
      for (int32_t& id : ids) id = any(random);
      for (const bool skip : {false, true}) {
        EXPECT_EQ(join(pieces_of(tokenizer, ids, skip)), tokenizer.decode(ids, skip).value());
      }
    }
    for (int32_t byte = 0; byte < 256; ++byte) {
      EXPECT_EQ(join(pieces_of(tokenizer, {byte})), tokenizer.decode(Ids{byte}, true).value());
    }
  }
}

TEST(DetokenizerStream, ReplacesBrokenBytes) {
  // As Rust's and Python's decoders: one U+FFFD per broken sequence; SentencePiece: per byte.
  EXPECT_EQ(join(pieces_of(byte_level(), {0xf0, 0x9f, 'x'})), "\ufffdx");
  EXPECT_EQ(join(pieces_of(byte_level(), {0xf0, 0x9f})), "\ufffd");
  EXPECT_EQ(join(pieces_of(sentencepiece(), {0xf0, 0x9f, kSpmA})), "\ufffd\ufffda");
  EXPECT_EQ(join(pieces_of(byte_level(), {0xff, 0xc5, 0xbe})), "\ufffdž");
}

TEST(DetokenizerStream, KnowsWhatStandsBeforeIt) {
  const Tokenizer tokenizer = sentencepiece();
  const auto first_piece = [&](const Ids& prompt, int32_t id) {
    auto stream = DetokenizerStream::create(tokenizer, true, prompt).value();
    return stream.step(id).value();
  };
  EXPECT_EQ(first_piece({}, kSpmSpaceA), "a");
  EXPECT_EQ(first_piece({kSpmBos}, kSpmSpaceA), "a");
  EXPECT_EQ(first_piece({kSpmBos, kSpmA}, kSpmSpaceA), " a");
  // A character that the prompt left unfinished comes out whole.
  EXPECT_EQ(first_piece({0xc5}, 0xbe), "ž");
  EXPECT_EQ(first_piece(Ids(1000, kSpmBos), kSpmSpaceA), " a");
}

TEST(DetokenizerStream, OutlivesItsTokenizerAndRefusesNegativeIds) {
  auto stream = [] { return DetokenizerStream::create(byte_level(), true).value(); }();
  EXPECT_EQ(stream.step('a').value(), "a");
  EXPECT_FALSE(stream.step(-5).ok());
  EXPECT_FALSE(DetokenizerStream::create(byte_level(), true, Ids{-1}).ok());
}

}  // namespace
}  // namespace sluice::text
