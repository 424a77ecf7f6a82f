// The own CPU kernel's weight and its packing; layout and order of the sums: linear_kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/linear/linear_kernels.h"
#include "kernels/simd/isa_tables.h"
#include "tensor/mx.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(LinearKernels, linear_kernels)
SLUICE_VNNI_ISA_TABLES(LinearKernels, linear_int8_kernels)

struct PackedLinear {
  PackedView view;                    // points into memory
  std::shared_ptr<std::byte> memory;  // panels, then the bias vector
  size_t nbytes = 0;
};

// An affine-quantized matrix as MLX stores it (linear.h).
struct AffineParts {
  const mx::array& weight;
  const mx::array& scales;
  const mx::array& biases;
  int bits;
  int group_size;
};

// Arguments as LinearWeight::affine and dense take them, already checked; evaluates them. Runs on
// the pool. Throws std::bad_alloc.
std::shared_ptr<const PackedLinear> pack_affine(ThreadPool& pool,
                                                const AffineParts& parts,
                                                Activations activations,
                                                const std::optional<mx::array>& bias);
std::shared_ptr<const PackedLinear> pack_dense(ThreadPool& pool,
                                               const mx::array& weight,
                                               const std::optional<mx::array>& bias);

// W[row, :] as float32 [k]: q * scale rounded, then + bias rounded, as mx::dequantize does it on
// the CPU with float32 scales.
void unpack_row(const PackedView& weight, int row, float* values);

}  // namespace sluice::kernels
