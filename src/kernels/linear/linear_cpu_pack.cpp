#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/linear/linear_cpu.h"
#include "kernels/weight_memory.h"

namespace sluice::kernels {

namespace {

// What a packed group takes: values, and scales and biases.
struct GroupBytes {
  int64_t values = 0;
  int64_t scales = 0;  // scales and biases together
};

GroupBytes group_bytes(const PackedView& view) {
  const int64_t lanes = int64_t{view.group} * kPanelRows;
  const int64_t scales = 2 * kPanelRows * (view.scale_format == ScaleFormat::kFloat32 ? 4 : 2);
  switch (view.format) {
    case WeightFormat::kNibble:
      return {lanes / 2, scales};
    case WeightFormat::kByte:
      return {lanes, scales};
    case WeightFormat::kFloat32:
      return {lanes * 4, 0};
    case WeightFormat::kFloat16:
    case WeightFormat::kBfloat16:
      return {lanes * 2, 0};
  }
  return {};
}

// Conversions that lose nothing, on the bits; the packer asks first whether they do.
bool exact_in_bfloat16(uint32_t bits) {
  return (bits & 0xffff) == 0;
}
bool exact_in_float16(uint32_t bits) {
  if ((bits & 0x7fffffff) == 0) return true;
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
  if (exponent > 15 || exponent < -24) return false;
  // A subnormal half has one mantissa bit less for each power of two below 2^-14.
  const int lost = 13 + std::max(0, -14 - exponent);
  return (bits & ((1u << std::min(lost, 23)) - 1)) == 0;
}
uint16_t to_float16_exactly(uint32_t bits) {
  const uint32_t sign = bits >> 16 & 0x8000;
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127;
  if ((bits & 0x7fffffff) == 0) return static_cast<uint16_t>(sign);
  const uint32_t mantissa = bits & 0x7fffff;
  if (exponent >= -14) {
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 15) << 10 |
                                 mantissa >> 13);
  }
  return static_cast<uint16_t>(sign | (mantissa | 0x800000) >> (-1 - exponent));
}

// Row-contiguous and evaluated, so that data<T>() may be read.
mx::array host_array(const mx::array& x) {
  mx::array copy = mx::contiguous(x);
  copy.eval();
  return copy;
}

// All-16-bit scales stay as they are. float32 scales that hold 16-bit values (GGUF's do) are
// narrowed back: it is a sixth of the bytes that a pass over a 4-bit weight reads.
ScaleFormat choose_scale_format(const mx::array& scales, const mx::array& biases) {
  if (scales.dtype() == mx::float16 && biases.dtype() == mx::float16) return ScaleFormat::kFloat16;
  if (scales.dtype() == mx::bfloat16 && biases.dtype() == mx::bfloat16) {
    return ScaleFormat::kBfloat16;
  }
  if (scales.dtype() != mx::float32 || biases.dtype() != mx::float32) return ScaleFormat::kFloat32;
  auto all = [&](bool (*exact)(uint32_t)) {
    for (const mx::array* array : {&scales, &biases}) {
      const uint32_t* bits = array->data<uint32_t>();
      if (!std::all_of(bits, bits + array->size(), exact)) return false;
    }
    return true;
  };
  if (all(exact_in_float16)) return ScaleFormat::kFloat16;
  if (all(exact_in_bfloat16)) return ScaleFormat::kBfloat16;
  return ScaleFormat::kFloat32;
}

// One row-major matrix [rows, columns] of scales to the packed format.
struct ScaleSource {
  mx::array array;
  ScaleFormat format;

  void copy(int row, int column, int columns, int lane, uint8_t* target) const {
    const int64_t index = int64_t{row} * columns + column;
    if (array.itemsize() == 2) {  // choose_scale_format kept it
      std::memcpy(target + lane * 2, array.data<uint16_t>() + index, 2);
      return;
    }
    const uint32_t bits = array.data<uint32_t>()[index];
    if (format == ScaleFormat::kFloat32) {
      std::memcpy(target + lane * 4, &bits, 4);
      return;
    }
    const uint16_t narrow = format == ScaleFormat::kFloat16 ? to_float16_exactly(bits)
                                                            : static_cast<uint16_t>(bits >> 16);
    std::memcpy(target + lane * 2, &narrow, 2);
  }
};

// Value k of a row of fields of any width, packed from the lowest bit up.
uint32_t field(const uint32_t* row, int bits, int k) {
  const int64_t bit = int64_t{k} * bits;
  const int64_t word = bit / 32;
  const int shift = static_cast<int>(bit % 32);
  uint64_t window = row[word];
  if (shift + bits > 32) window |= uint64_t{row[word + 1]} << 32;
  return static_cast<uint32_t>(window >> shift) & ((1u << bits) - 1);
}

std::shared_ptr<PackedLinear> allocate(PackedView view, bool with_bias) {
  const GroupBytes bytes = group_bytes(view);
  view.groups = (view.padded_k + view.group - 1) / view.group;
  view.num_panels = (view.n + kPanelRows - 1) / kPanelRows;
  view.prepared_row = view.activations == Activations::kInt8
                          ? int64_t{view.k / kInt8Group} * (kInt8Group / 4 + 2)
                          : int64_t{view.padded_k} + view.groups;
  // The last group of a dense weight may be short.
  view.panel_bytes = bytes.values / view.group * view.padded_k + bytes.scales * view.groups;
  const size_t panels = static_cast<size_t>(view.panel_bytes) * view.num_panels;
  const size_t padded_bias = with_bias ? sizeof(float) * kPanelRows * view.num_panels : 0;

  auto packed = std::make_shared<PackedLinear>();
  packed->nbytes = panels + padded_bias;
  packed->memory = allocate_weight_memory(packed->nbytes);
  view.panels = reinterpret_cast<const uint8_t*>(packed->memory.get());
  if (with_bias) view.bias = reinterpret_cast<const float*>(packed->memory.get() + panels);
  packed->view = view;
  return packed;
}

void copy_bias(const PackedView& view, const std::optional<mx::array>& bias) {
  if (!bias) return;
  const mx::array values = host_array(mx::astype(*bias, mx::float32));
  std::copy_n(values.data<float>(), view.n, const_cast<float*>(view.bias));
}

// Calls pack(row, lane, panel) for every row; the padding of the last panel is zero already.
template <class PackRow>
void pack_rows(ThreadPool& pool, const PackedView& view, PackRow&& pack) {
  pool.parallel_for(view.num_panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      auto* target = const_cast<uint8_t*>(view.panels) + panel * view.panel_bytes;
      const int first = static_cast<int>(panel) * kPanelRows;
      for (int row = first; row < std::min(view.n, first + kPanelRows); ++row) {
        pack(row, row - first, target);
      }
    }
  });
}

void pack_quantized_row(const PackedView& view, const uint32_t* source, int lane, uint8_t* panel) {
  const GroupBytes bytes = group_bytes(view);
  const int width = view.format == WeightFormat::kNibble ? 4 : 8;
  const int per_word = 32 / width;
  const int words = view.group / per_word;
  for (int g = 0; g < view.groups; ++g) {
    auto* target = reinterpret_cast<uint32_t*>(panel + g * (bytes.values + bytes.scales)) + lane;
    for (int w = 0; w < words; ++w) {
      uint32_t word = 0;
      if (view.bits == width) {  // the same word in both layouts
        word = source[g * words + w];
      } else {
        for (int j = 0; j < per_word; ++j) {
          word |= field(source, view.bits, g * view.group + w * per_word + j) << (width * j);
        }
      }
      target[w * kPanelRows] = word;
    }
  }
}

template <class Value>
void pack_dense_rows(ThreadPool& pool, const PackedView& view, const Value* source) {
  pack_rows(pool, view, [&](int row, int lane, uint8_t* panel) {
    Value* target = reinterpret_cast<Value*>(panel) + lane;
    const Value* values = source + int64_t{row} * view.k;
    for (int k = 0; k < view.k; ++k) target[int64_t{k} * kPanelRows] = values[k];
  });
}

float half_to_float(uint16_t half) {
  mx::float16_t value;
  std::memcpy(&value, &half, 2);
  return static_cast<float>(value);
}

float scale_at(const uint8_t* scales, ScaleFormat format, int index) {
  switch (format) {
    case ScaleFormat::kFloat16:
      return half_to_float(reinterpret_cast<const uint16_t*>(scales)[index]);
    case ScaleFormat::kBfloat16:
      return std::bit_cast<float>(uint32_t{reinterpret_cast<const uint16_t*>(scales)[index]} << 16);
    case ScaleFormat::kFloat32:
      break;
  }
  return reinterpret_cast<const float*>(scales)[index];
}

}  // namespace

std::shared_ptr<const PackedLinear> pack_affine(ThreadPool& pool,
                                                const AffineParts& parts,
                                                Activations activations,
                                                const std::optional<mx::array>& bias) {
  const mx::array words = host_array(parts.weight);
  mx::array scale_array = host_array(parts.scales), bias_array = host_array(parts.biases);
  PackedView view;
  view.scale_format = choose_scale_format(scale_array, bias_array);
  if (view.scale_format == ScaleFormat::kFloat32) {  // of mixed dtypes
    scale_array = host_array(mx::astype(scale_array, mx::float32));
    bias_array = host_array(mx::astype(bias_array, mx::float32));
  }
  view.n = parts.weight.shape(0);
  view.k = view.padded_k = parts.scales.shape(1) * parts.group_size;
  view.group = parts.group_size;
  view.bits = parts.bits;
  view.activations = activations;
  view.format = parts.bits <= 4 ? WeightFormat::kNibble : WeightFormat::kByte;
  auto packed = allocate(view, bias.has_value());
  view = packed->view;
  copy_bias(view, bias);

  const GroupBytes bytes = group_bytes(view);
  const ScaleSource scale_source{scale_array, view.scale_format};
  const ScaleSource bias_source{bias_array, view.scale_format};
  const int64_t row_words = parts.weight.shape(1);
  pack_rows(pool, view, [&](int row, int lane, uint8_t* panel) {
    pack_quantized_row(view, words.data<uint32_t>() + row * row_words, lane, panel);
    for (int g = 0; g < view.groups; ++g) {
      uint8_t* target = panel + g * (bytes.values + bytes.scales) + bytes.values;
      scale_source.copy(row, g, view.groups, lane, target);
      bias_source.copy(row, g, view.groups, lane, target + bytes.scales / 2);
    }
  });
  return packed;
}

std::shared_ptr<const PackedLinear> pack_dense(ThreadPool& pool,
                                               const mx::array& weight,
                                               const std::optional<mx::array>& bias) {
  const mx::array values = host_array(weight);
  PackedView view;
  view.n = weight.shape(0);
  view.k = weight.shape(1);
  view.padded_k = (view.k + 15) / 16 * 16;
  view.group = kDenseGroup;
  view.format = weight.dtype() == mx::float32   ? WeightFormat::kFloat32
                : weight.dtype() == mx::float16 ? WeightFormat::kFloat16
                                                : WeightFormat::kBfloat16;
  auto packed = allocate(view, bias.has_value());
  copy_bias(packed->view, bias);
  if (values.itemsize() == 4) {
    pack_dense_rows(pool, packed->view, values.data<uint32_t>());
  } else {
    pack_dense_rows(pool, packed->view, values.data<uint16_t>());
  }
  return packed;
}

void unpack_row(const PackedView& view, int row, float* values) {
  const GroupBytes bytes = group_bytes(view);
  const uint8_t* panel = view.panels + row / kPanelRows * view.panel_bytes;
  const int lane = row % kPanelRows;
  if (view.format == WeightFormat::kFloat32) {
    const float* source = reinterpret_cast<const float*>(panel) + lane;
    for (int k = 0; k < view.k; ++k) values[k] = source[int64_t{k} * kPanelRows];
    return;
  }
  if (view.format == WeightFormat::kFloat16 || view.format == WeightFormat::kBfloat16) {
    const auto format =
        view.format == WeightFormat::kFloat16 ? ScaleFormat::kFloat16 : ScaleFormat::kBfloat16;
    for (int k = 0; k < view.k; ++k) values[k] = scale_at(panel, format, k * kPanelRows + lane);
    return;
  }
  const int width = view.format == WeightFormat::kNibble ? 4 : 8;
  const int per_word = 32 / width;
  const uint32_t mask = (1u << width) - 1;
  for (int g = 0; g < view.groups; ++g) {
    const uint8_t* group = panel + g * (bytes.values + bytes.scales);
    const uint8_t* scales = group + bytes.values;
    const float scale = scale_at(scales, view.scale_format, lane);
    const float bias = scale_at(scales, view.scale_format, kPanelRows + lane);
    const uint32_t* words = reinterpret_cast<const uint32_t*>(group) + lane;
    for (int w = 0; w < view.group / per_word; ++w) {
      const uint32_t word = words[w * kPanelRows];
      for (int j = 0; j < per_word; ++j) {
        *values++ = static_cast<float>(word >> (width * j) & mask) * scale + bias;
      }
    }
  }
}

}  // namespace sluice::kernels
