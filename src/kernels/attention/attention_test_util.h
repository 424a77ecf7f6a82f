// Random sequences, passes over them, and a double-precision model, for the attention tests.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/kernel_test_util.h"

namespace sluice::kernels::testing {

struct HeadShape {
  int heads;
  int kv_heads;
  int key_dim;
  int value_dim;
};

// How a pass hands its q, k and v to the op.
enum class Layout { kDense, kFused, kStrided };

// One sequence's queries, keys and values, [length, heads, dim] each, and its pages.
struct Sequence {
  Sequence(int length_in, const HeadShape& shape, uint32_t seed, float scale = 1.0f)
      : length(length_in),
        q(normal_values(size_t(length) * shape.heads * shape.key_dim, seed, scale)),
        k(normal_values(size_t(length) * shape.kv_heads * shape.key_dim, seed + 1, scale)),
        v(normal_values(size_t(length) * shape.kv_heads * shape.value_dim, seed + 2)) {}

  int num_pages() const { return (length + kPageSize - 1) / kPageSize; }

  int length;
  std::vector<float> q, k, v;
  std::vector<int32_t> pages;
};

// The part of one sequence that a pass computes.
struct Part {
  const Sequence* sequence;
  int first;
  int count;
};

// Storage full of NaN, which must never be read, and pages in random order for each sequence.
class World {
 public:
  World(const HeadShape& shape, std::vector<Sequence*> sequences, uint32_t page_seed = 1)
      : shape_(shape), storage_{mx::array(0.0f), mx::array(0.0f)} {
    int pages = 3;  // that belong to nobody
    for (const Sequence* sequence : sequences) pages += sequence->num_pages();
    storage_ = AttentionStorage::allocate(
        pages, shape.kv_heads, shape.key_dim, shape.value_dim, mx::float32);
    std::fill_n(storage_.keys.data<float>(), storage_.keys.size(), NAN);
    std::fill_n(storage_.values.data<float>(), storage_.values.size(), NAN);
    std::vector<int32_t> ids(pages);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(page_seed));
    for (Sequence* sequence : sequences) {
      sequence->pages.assign(ids.end() - sequence->num_pages(), ids.end());
      ids.resize(ids.size() - sequence->num_pages());
    }
  }

  // One pass; returns [count, heads, value_dim] per part. With a null context: the reference.
  std::vector<std::vector<float>> run(const Context* context,
                                      const std::vector<Part>& parts,
                                      Layout layout = Layout::kDense) {
    std::vector<AttentionRow> rows;
    int tokens = 0;
    for (const Part& part : parts) {
      rows.push_back({{tokens, part.count, part.first}, part.sequence->pages});
      tokens += part.count;
    }
    auto q = gather(parts, tokens, &Sequence::q, shape_.heads, shape_.key_dim);
    auto k = gather(parts, tokens, &Sequence::k, shape_.kv_heads, shape_.key_dim);
    auto v = gather(parts, tokens, &Sequence::v, shape_.kv_heads, shape_.value_dim);
    if (layout == Layout::kStrided) q = strided(q), k = strided(k), v = strided(v);
    if (layout == Layout::kFused) fuse(q, k, v);
    const AttentionOptions options{scale()};
    const auto out =
        to_values(context != nullptr ? attention(*context, q, k, v, storage_, rows, options)
                                     : attention_reference(q, k, v, storage_, rows, options));
    std::vector<std::vector<float>> result;
    auto begin = out.begin();
    for (const Part& part : parts) {
      const auto end = begin + part.count * shape_.heads * shape_.value_dim;
      result.emplace_back(begin, end);
      begin = end;
    }
    return result;
  }

  // A sequence's passes of the given sizes, one after the other.
  std::vector<float> run_chunks(const Context& context,
                                const Sequence& sequence,
                                const std::vector<int>& chunks) {
    std::vector<float> all;
    int first = 0;
    for (int count : chunks) {
      const auto part = run(&context, {{&sequence, first, count}})[0];
      all.insert(all.end(), part.begin(), part.end());
      first += count;
    }
    return all;
  }

  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.key_dim)); }

 private:
  mx::array gather(const std::vector<Part>& parts,
                   int tokens,
                   std::vector<float> Sequence::*field,
                   int heads,
                   int dim) const {
    std::vector<float> values;
    for (const Part& part : parts) {
      const auto& source = part.sequence->*field;
      const auto begin = source.begin() + size_t(part.first) * heads * dim;
      values.insert(values.end(), begin, begin + size_t(part.count) * heads * dim);
    }
    return to_array(values, {tokens, heads, dim});
  }

  // As slices of one projection [N, (Hq + Hkv) Dk + Hkv Dv].
  static void fuse(mx::array& q, mx::array& k, mx::array& v) {
    const int tokens = q.shape(0);
    auto flat = [&](const mx::array& x) { return mx::reshape(x, {tokens, -1}); };
    auto all = mx::concatenate({flat(q), flat(k), flat(v)}, 1);
    int begin = 0;
    for (mx::array* x : {&q, &k, &v}) {
      const int width = x->shape(1) * x->shape(2);
      *x = mx::unflatten(
          mx::slice(all, {0, begin}, {tokens, begin + width}), 1, {x->shape(1), x->shape(2)});
      begin += width;
    }
  }

  HeadShape shape_;
  AttentionStorage storage_;
};

// Output of one token in double precision, [heads, value_dim], and a bound of what float32 may
// differ from it by.
struct Modelled {
  std::vector<double> out;
  double bound;
};

inline Modelled model(const Sequence& s, const HeadShape& shape, int position, float scale) {
  Modelled result{std::vector<double>(size_t(shape.heads) * shape.value_dim), 0};
  const int group = shape.heads / shape.kv_heads;
  double largest_value = 0, largest_score = 0;
  for (int head = 0; head < shape.heads; ++head) {
    const int kv_head = head / group;
    const float* q = &s.q[(size_t(position) * shape.heads + head) * shape.key_dim];
    std::vector<double> scores(position + 1);
    for (int j = 0; j <= position; ++j) {
      const float* k = &s.k[(size_t(j) * shape.kv_heads + kv_head) * shape.key_dim];
      double magnitude = 0;
      for (int d = 0; d < shape.key_dim; ++d) {
        scores[j] += double{q[d]} * k[d] * scale;
        magnitude += std::abs(double{q[d]} * k[d] * scale);
      }
      largest_score = std::max(largest_score, magnitude);
    }
    const double max = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - max);
    for (int j = 0; j <= position; ++j) {
      const float* v = &s.v[(size_t(j) * shape.kv_heads + kv_head) * shape.value_dim];
      for (int d = 0; d < shape.value_dim; ++d) {
        result.out[size_t(head) * shape.value_dim + d] += scores[j] / sum * v[d];
        largest_value = std::max(largest_value, std::abs(double{v[d]}));
      }
    }
  }
  // A score is off by (Dk + 3) u of the sum of its magnitudes; twice that moves a weight
  // relatively; the sums over positions add at most u per term, exp and merging some more; and the
  // result is a weighted mean of values.
  result.bound =
      2 * largest_value * kUnit * ((shape.key_dim + 3) * 2 * largest_score + (position + 1) + 40);
  return result;
}

}  // namespace sluice::kernels::testing
