#include "loader/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

namespace sluice::loader {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint32_t kMaxDims = 4;            // GGML_MAX_DIMS
constexpr uint64_t kMaxKeyLength = 65535;   // docs/gguf.md
constexpr uint64_t kMaxTensorName = 65535;  // ggml itself allows 63
// The least that a metadata pair and a tensor entry take: they bound the counts by the file's size.
constexpr uint64_t kMinPairBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

// Bytes of one element, 0 for types without a fixed size.
uint64_t fixed_size(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

struct TensorEntry {
  GgufTensor tensor;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {
    file_.metadata = GgufMetadata(name);
  }

  Result<GgufFile> run() {
    SLUICE_TRY_STATUS(read_header());
    for (uint64_t i = 0; i < pair_count_; ++i) SLUICE_TRY_STATUS(read_pair());
    SLUICE_TRY_STATUS(check_split());
    SLUICE_TRY(const uint64_t alignment, read_alignment());
    std::vector<TensorEntry> entries(tensor_count_);
    for (auto& entry : entries) SLUICE_TRY_STATUS(read_tensor(alignment, entry));
    SLUICE_TRY_STATUS(place_tensors(alignment, entries));
    for (auto& entry : entries) file_.tensors.push_back(std::move(entry.tensor));
    return std::move(file_);
  }

 private:
  template <class... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kCorruptFile,
                      "{}: not a sound GGUF file: {}",
                      name_,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  uint64_t left() const { return bytes_.size() - position_; }

  template <class T>
  Result<T> read(const char* what) {
    if (left() < sizeof(T)) {
      return corrupt("it ends at byte {} inside {}", bytes_.size(), what);
    }
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof value);
    position_ += sizeof value;
    return value;
  }

  Result<std::string_view> read_string(const char* what, uint64_t max_length) {
    SLUICE_TRY(const auto length, read<uint64_t>(what));
    if (length > max_length || length > left()) {
      return corrupt("the length of {} before byte {} is {}, with {} bytes left",
                     what,
                     position_,
                     length,
                     left());
    }
    const auto* text = reinterpret_cast<const char*>(bytes_.data() + position_);
    position_ += length;
    return std::string_view(text, length);
  }

  Status read_header() {
    SLUICE_TRY(const auto magic, read<uint32_t>("the magic number"));
    if (magic != kMagic) return corrupt("it does not begin with 'GGUF'");
    SLUICE_TRY(file_.version, read<uint32_t>("the version"));
    if (file_.version != 0 && (file_.version & 0xffff) == 0) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: is a big-endian GGUF file; convert it with gguf_convert_endian.py",
                        name_);
    }
    if (file_.version != 2 && file_.version != 3) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: has GGUF version {}; sluice reads 2 and 3",
                        name_,
                        file_.version);
    }
    SLUICE_TRY(tensor_count_, read<uint64_t>("the tensor count"));
    SLUICE_TRY(pair_count_, read<uint64_t>("the metadata count"));
    if (pair_count_ > left() / kMinPairBytes) {
      return corrupt("{} metadata pairs cannot be in {} bytes", pair_count_, left());
    }
    if (tensor_count_ > left() / kMinTensorBytes) {
      return corrupt("{} tensors cannot be in {} bytes", tensor_count_, left());
    }
    return {};
  }

  Status read_pair() {
    SLUICE_TRY(const auto key, read_string("a metadata key", kMaxKeyLength));
    SLUICE_TRY(const auto type, read<uint32_t>("a metadata type"));
    SLUICE_TRY(auto value, read_value(key, static_cast<GgufType>(type)));
    if (!file_.metadata.insert(key, std::move(value))) {
      return corrupt("metadata '{}' is there twice", key);
    }
    return {};
  }

  Result<GgufValue> read_value(std::string_view key, GgufType type) {
    switch (type) {
      case GgufType::kUint8:
        return read_as<uint8_t, uint64_t>();
      case GgufType::kInt8:
        return read_as<int8_t, int64_t>();
      case GgufType::kUint16:
        return read_as<uint16_t, uint64_t>();
      case GgufType::kInt16:
        return read_as<int16_t, int64_t>();
      case GgufType::kUint32:
        return read_as<uint32_t, uint64_t>();
      case GgufType::kInt32:
        return read_as<int32_t, int64_t>();
      case GgufType::kUint64:
        return read_as<uint64_t, uint64_t>();
      case GgufType::kInt64:
        return read_as<int64_t, int64_t>();
      case GgufType::kFloat32:
        return read_as<float, float>();
      case GgufType::kFloat64:
        return read_as<double, double>();
      case GgufType::kBool: {
        SLUICE_TRY(const auto value, read<uint8_t>("a bool"));
        return GgufValue(value != 0);
      }
      case GgufType::kString: {
        SLUICE_TRY(const auto text, read_string("a metadata string", bytes_.size()));
        return GgufValue(text);
      }
      case GgufType::kArray:
        return read_array(key);
    }
    return corrupt(
        "metadata '{}' has type {}, which does not exist", key, static_cast<uint32_t>(type));
  }

  template <class Stored, class Wide>
  Result<GgufValue> read_as() {
    SLUICE_TRY(const auto value, read<Stored>("a metadata value"));
    return GgufValue(static_cast<Wide>(value));
  }

  Result<GgufValue> read_array(std::string_view key) {
    SLUICE_TRY(const auto number, read<uint32_t>("an array's type"));
    SLUICE_TRY(const auto count, read<uint64_t>("an array's length"));
    GgufArray array;
    array.type = static_cast<GgufType>(number);
    array.count = count;
    const uint64_t begin = position_;
    if (array.type == GgufType::kString) {
      if (count > left() / sizeof(uint64_t)) {
        return corrupt("metadata '{}' is said to have {} strings in {} bytes", key, count, left());
      }
      for (uint64_t i = 0; i < count; ++i) {
        SLUICE_TRY(const auto text, read_string("a string of an array", bytes_.size()));
        (void)text;
      }
    } else {
      const uint64_t size = fixed_size(array.type);
      if (size == 0) {
        return corrupt(
            "metadata '{}' is an array of {} ({})", key, gguf_type_name(array.type), number);
      }
      if (count > left() / size) {
        return corrupt("metadata '{}' is said to have {} values in {} bytes", key, count, left());
      }
      position_ += count * size;
    }
    array.bytes = bytes_.subspan(begin, position_ - begin);
    return GgufValue(array);
  }

  Status check_split() const {
    SLUICE_TRY(const auto parts, file_.metadata.integer("split.count"));
    if (parts && *parts > 1) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: is one of {} parts of a split model; join them with "
                        "llama-gguf-split --merge",
                        name_,
                        *parts);
    }
    return {};
  }

  Result<uint64_t> read_alignment() const {
    SLUICE_TRY(const auto value, file_.metadata.integer("general.alignment"));
    if (!value) return kDefaultAlignment;
    const auto alignment = static_cast<uint64_t>(*value);
    if (*value <= 0 || alignment > kMaxAlignment || !std::has_single_bit(alignment)) {
      return corrupt("general.alignment is {}", *value);
    }
    return alignment;
  }

  Status read_tensor(uint64_t alignment, TensorEntry& entry) {
    GgufTensor& tensor = entry.tensor;
    SLUICE_TRY(tensor.name, read_string("a tensor name", kMaxTensorName));
    if (!tensor_names_.insert(tensor.name).second) {
      return corrupt("tensor '{}' is there twice", tensor.name);
    }
    SLUICE_TRY(const auto dims, read<uint32_t>("a tensor's number of dimensions"));
    if (dims == 0 || dims > kMaxDims) {
      return corrupt("tensor '{}' has {} dimensions", tensor.name, dims);
    }
    for (uint32_t i = 0; i < dims; ++i) {
      SLUICE_TRY(const auto size, read<uint64_t>("a tensor's shape"));
      if (size == 0 || size > std::numeric_limits<int32_t>::max()) {
        return corrupt("tensor '{}' has a dimension of {}", tensor.name, size);
      }
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    SLUICE_TRY(const auto number, read<uint32_t>("a tensor's type"));
    SLUICE_TRY(entry.offset, read<uint64_t>("a tensor's offset"));
    tensor.type = ggml_type_of(number);
    if (tensor.type == GgmlType::kUnknown) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: tensor '{}' has type {}; sluice reads F32, F16, BF16, Q4_0, Q4_1 and "
                        "Q8_0. Take such a file of the same model, or requantize it "
                        "(llama-quantize --pure with one of these types)",
                        name_,
                        tensor.name,
                        ggml_type_name(number));
    }
    if (entry.offset % alignment != 0) {
      return corrupt("tensor '{}' lies at offset {}, which is no multiple of {}",
                     tensor.name,
                     entry.offset,
                     alignment);
    }
    return measure(entry);
  }

  // Sets entry.bytes from shape and type.
  Status measure(TensorEntry& entry) const {
    const GgufTensor& tensor = entry.tensor;
    const GgmlBlock block = ggml_block(tensor.type);
    if (tensor.shape.back() % block.values != 0) {
      return corrupt("tensor '{}' of type {} has rows of {} values",
                     tensor.name,
                     ggml_type_name(tensor.type),
                     tensor.shape.back());
    }
    uint64_t blocks = 1;
    for (const int64_t size : tensor.shape) {
      // A value takes half a byte or more, so a product beyond twice the file cannot be right; the
      // bound also keeps the next product from overflowing.
      if (blocks > 2 * bytes_.size()) return corrupt("tensor '{}' is too large", tensor.name);
      blocks *= static_cast<uint64_t>(size);
    }
    blocks /= block.values;
    if (blocks > bytes_.size() / block.bytes) {
      return corrupt("tensor '{}' is larger than the file", tensor.name);
    }
    entry.bytes = blocks * block.bytes;
    return {};
  }

  Status place_tensors(uint64_t alignment, std::vector<TensorEntry>& entries) {
    const uint64_t begin = (position_ + alignment - 1) / alignment * alignment;
    const uint64_t size = begin < bytes_.size() ? bytes_.size() - begin : 0;
    std::vector<const TensorEntry*> order;
    for (auto& entry : entries) {
      if (entry.offset > size || entry.bytes > size - entry.offset) {
        return corrupt(
            "tensor '{}' ({} bytes at offset {}) reaches past the end; is the download "
            "complete?",
            entry.tensor.name,
            entry.bytes,
            entry.offset);
      }
      entry.tensor.data = bytes_.subspan(begin + entry.offset, entry.bytes);
      order.push_back(&entry);
    }
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return a->offset < b->offset;
    });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
        return corrupt(
            "tensors '{}' and '{}' overlap", order[i - 1]->tensor.name, order[i]->tensor.name);
      }
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  uint64_t position_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t pair_count_ = 0;
  std::unordered_set<std::string_view> tensor_names_;
  GgufFile file_;
};

}  // namespace

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  return Parser(bytes, name).run();
}

}  // namespace sluice::loader
