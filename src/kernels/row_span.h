// A row's place in a packed pass: the tokens of one sequence, one after the other.
#pragma once

#include <vector>

namespace sluice::kernels {

struct RowSpan {
  int first_token = 0;     // index of the row's first token in the pass
  int count = 0;           // number of its tokens in the pass, >= 1
  int first_position = 0;  // absolute position of its first token in its sequence
};

}  // namespace sluice::kernels
