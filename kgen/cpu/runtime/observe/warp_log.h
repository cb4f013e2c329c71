// Puts the accesses of a warp's lanes together. Here the lanes run one after the other; on a GPU
// their k-th executions of an instruction since they last met are one instruction of the warp.
#pragma once

#include <unordered_map>
#include <vector>

#include "counts.h"

namespace kgen_cpu::observing {

// Numbers instructions from 0 in the order in which they are met.
class InstructionNumbers {
  public:
    InstructionNumbers();
    size_t operator()(uint32_t program_counter) {
        int32_t& number = program_counter & LINE_FLAG
                              ? lines_.try_emplace(program_counter, -1).first->second
                              : numbers_[program_counter - first_];
        if (number < 0) number = count_++;
        return number;
    }

  private:
    std::vector<int32_t> numbers_;                 // of each address in the executable's code
    std::unordered_map<uint32_t, int32_t> lines_;  // what is known by its line alone
    uint32_t first_;
    int32_t count_ = 0;
};

class WarpLog {
  public:
    // `instruction` is the number of the access's program counter.
    void add(size_t instruction, int lane, const Access& access, bool is_shared);
    // Counts what the lanes did since they last met.
    void flush(Counts& counts);
    // Follows shuffles; returns true when one ends a reduction: distances that halve down to 1.
    bool ends_reduction(WarpOpKind kind, uint32_t distance);

  private:
    struct Instruction {
        uint32_t executions[WARP_SIZE] = {};
        std::vector<uint32_t> requests;  // in requests_, one for each k
    };

    std::vector<Instruction> instructions_;
    std::vector<size_t> executed_;
    std::vector<Request> requests_;
    uint32_t distance_ = 0;  // of the last shuffle
};

}  // namespace kgen_cpu::observing
