// The MLX names that the rest of sluice uses, behind one alias. Only tensor/ and the layers above
// it may include MLX; only kernels/ may include its internals (mlx/backend/*, primitives.h).
#pragma once

#include "mlx/array.h"
#include "mlx/dtype.h"
#include "mlx/fast.h"
#include "mlx/memory.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace sluice {
namespace mx = mlx::core;
}  // namespace sluice
