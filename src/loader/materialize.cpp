#include "loader/materialize.h"

#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "loader/ggml_repack.h"
#include "mlx/allocator.h"
#include "mlx/device.h"
#include "tensor/checks.h"

namespace sluice::loader {

namespace {

std::optional<mx::Dtype> mlx_dtype(const StoredTensor& tensor) {
  static const std::pair<const char*, mx::Dtype> kNames[] = {{"F32", mx::float32},
                                                             {"F16", mx::float16},
                                                             {"BF16", mx::bfloat16},
                                                             {"U32", mx::uint32},
                                                             {"U8", mx::uint8},
                                                             {"I8", mx::int8},
                                                             {"U16", mx::uint16},
                                                             {"I16", mx::int16},
                                                             {"I32", mx::int32},
                                                             {"U64", mx::uint64},
                                                             {"I64", mx::int64},
                                                             {"BOOL", mx::bool_}};
  const std::string name = tensor.dtype.empty() ? ggml_type_name(tensor.ggml_type) : tensor.dtype;
  for (const auto& [known, dtype] : kNames) {
    if (name == known) return dtype;
  }
  return std::nullopt;
}

Result<mx::Shape> mlx_shape(const StoredTensor& tensor) {
  mx::Shape shape;
  for (const int64_t size : tensor.shape) {
    if (size > std::numeric_limits<mx::ShapeElem>::max()) {
      return make_error(
          ErrorCode::kUnsupported, "{}: dimension {} is beyond MLX's limit", tensor.name, size);
    }
    shape.push_back(static_cast<mx::ShapeElem>(size));
  }
  return shape;
}

// MLX's CPU allocator hands out buffers whose payload begins sizeof(size_t) after the pointer, the
// size before it. A buffer over a mapping is made by the same rule; its "size" is then whatever
// bytes of the file come before the tensor, which MLX reads only to decide whether an op may reuse
// its input's memory, and the mapping is private and writable, so that even that is harmless.
// mx::array's pointer constructor is no use here: on CPU it copies.
mx::array share(const StoredTensor& tensor, mx::Shape shape, mx::Dtype dtype) {
  auto* payload = const_cast<std::byte*>(tensor.data);
  mx::allocator::Buffer buffer(payload - sizeof(size_t));
  return mx::array(mx::allocator::Data(buffer, [file = tensor.file](mx::allocator::Buffer) {}),
                   std::move(shape),
                   dtype);
}

mx::array copy(const StoredTensor& tensor, mx::Shape shape, mx::Dtype dtype) {
  mx::array result(mx::allocator::malloc(tensor.bytes), std::move(shape), dtype);
  auto* target = result.data<std::byte>();
  const int head = tensor.interleaved_head_rows;
  if (head == 0) {
    std::memcpy(target, tensor.data, tensor.bytes);
    return result;
  }
  const int64_t rows = tensor.shape.front();
  const size_t row_bytes = tensor.bytes / rows;
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(
        target + row * row_bytes, tensor.data + source_row(row, head) * row_bytes, row_bytes);
  }
  return result;
}

template <class Scale>
RepackOutcome repack_into(const RepackSource& source,
                          mx::Dtype scale_dtype,
                          std::optional<AffineMatrix>& result) {
  const int bits = repacked_bits(source.type);
  const auto rows = static_cast<mx::ShapeElem>(source.rows);
  const auto words = static_cast<mx::ShapeElem>(source.columns * bits / 32);
  const auto groups = static_cast<mx::ShapeElem>(source.columns / 32);
  const auto make = [rows](mx::ShapeElem columns, mx::Dtype dtype) {
    const size_t bytes = size_t(rows) * size_t(columns) * mx::size_of(dtype);
    return mx::array(mx::allocator::malloc(bytes), {rows, columns}, dtype);
  };
  result.emplace(AffineMatrix{
      make(words, mx::uint32), make(groups, scale_dtype), make(groups, scale_dtype), bits, 32});
  return repack(source,
                RepackTarget<Scale>{result->weight.data<uint32_t>(),
                                    reinterpret_cast<Scale*>(result->scales.data<std::byte>()),
                                    reinterpret_cast<Scale*>(result->biases.data<std::byte>())});
}

Error failed(const StoredTensor& tensor, const std::exception& cause) {
  return make_error(ErrorCode::kResourceExhausted,
                    "{}: cannot load {} ({} bytes): {}",
                    tensor.file->path().string(),
                    tensor.name,
                    tensor.bytes,
                    cause.what());
}

}  // namespace

bool shares_mapping() {
  static const bool result = [] {
    if (mx::is_available(mx::Device::gpu)) return false;
    mx::allocator::Data probe = mx::allocator::malloc(sizeof(size_t));
    mx::allocator::Buffer buffer = probe.buffer();
    return buffer.raw_ptr() == static_cast<std::byte*>(buffer.ptr()) + sizeof(size_t);
  }();
  return result;
}

bool is_float(const StoredTensor& tensor) {
  const auto dtype = mlx_dtype(tensor);
  return dtype && (*dtype == mx::float32 || *dtype == mx::float16 || *dtype == mx::bfloat16);
}

std::string element_kind(const StoredTensor& tensor) {
  if (const auto dtype = mlx_dtype(tensor)) return tensor::dtype_name(*dtype);
  return tensor.dtype.empty() ? ggml_type_name(tensor.ggml_type) : tensor.dtype;
}

Result<mx::array> materialize_dense(const StoredTensor& tensor) try {
  const auto dtype = mlx_dtype(tensor);
  if (!dtype) {
    return make_error(ErrorCode::kUnsupported,
                      "{}: tensor {} has dtype {}, which sluice cannot read",
                      tensor.file->path().string(),
                      tensor.name,
                      element_kind(tensor));
  }
  SLUICE_TRY(mx::Shape shape, mlx_shape(tensor));
  if (tensor.bytes == 0) return mx::array(mx::allocator::malloc(0), std::move(shape), *dtype);
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  const auto* file_begin = tensor.file->bytes().data();
  const bool can_share = tensor.interleaved_head_rows == 0 && address % mx::size_of(*dtype) == 0 &&
                         tensor.data - file_begin >= ptrdiff_t(sizeof(size_t)) && shares_mapping();
  return can_share ? share(tensor, std::move(shape), *dtype)
                   : copy(tensor, std::move(shape), *dtype);
} catch (const std::exception& cause) {
  return failed(tensor, cause);
}

Result<AffineMatrix> materialize_affine(const StoredTensor& tensor) try {
  SLUICE_CHECK(is_block_quantized(tensor.ggml_type) && tensor.shape.size() == 2,
               "{} is no block-quantized matrix",
               tensor.name);
  RepackSource source;
  source.type = tensor.ggml_type;
  source.blocks = tensor.data;
  source.rows = tensor.shape[0];
  source.columns = tensor.shape[1];
  source.interleaved_head_rows = tensor.interleaved_head_rows;
  std::optional<AffineMatrix> result;
  auto outcome = repack_into<uint16_t>(source, mx::float16, result);
  if (outcome == RepackOutcome::kOverflow) {
    outcome = repack_into<float>(source, mx::float32, result);
  }
  if (outcome == RepackOutcome::kNonFinite) {
    return make_error(ErrorCode::kCorruptFile,
                      "{}: {} ({}) has a scale that is infinite or not a number",
                      tensor.file->path().string(),
                      tensor.name,
                      tensor.source_name);
  }
  return std::move(*result);
} catch (const std::exception& cause) {
  return failed(tensor, cause);
}

}  // namespace sluice::loader
