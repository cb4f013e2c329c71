"""The mistakes: each a pattern in a generated source and what a slip makes of it.

A mistake is made at one place at a time: a source with three barriers has three mutants in which
one of them is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kgen.sources.source import Source


@dataclass(frozen=True)
class Mistake:
    """Replaces a match of `pattern` (a regular expression) by `slip` (its template).

    It is made in sources that have the text `needs`, which is what the slip calls.
    """

    name: str
    pattern: str
    slip: str
    needs: str = ""


@dataclass(frozen=True)
class Mutant:
    """A source with one mistake in it: what was done, in which line (from 1), to which text.

    `place` counts the places where this mistake makes the same change, from 1.
    """

    mistake: str
    place: int
    line: int
    before: str
    after: str
    source: Source

    @property
    def key(self) -> str:
        """A name that outlives changes elsewhere in the file: the mistake and what it changes."""
        return f"{self.mistake}, place {self.place}: {self.change}"

    @property
    def change(self) -> str:
        """The text that the mistake replaces, and what it makes of it."""
        return f"{self.before} -> {self.after}"


# What stands for the threads that share a row, for where a warp or thread stores its result, for
# an addition to a sum, and for a maximum that is subtracted.
_STRIDE = r"(THREADS_PER_\w+|WARP_SIZE)"
_SLOT = r"(warp_\w+|row_states|partial)\[(warp|thread|threadIdx\.x / WARP_SIZE)\] ="
_SUM = r"((thread_sum(?:\[r\])?(?= \+)|\bstate\.d(?= =)) \+?= .*);"
_MAX = r"(?:(?:row|tile|thread|warp)_max\b(?:\[r\])?|(?:\w*state(?:\[r\])?\.)?m\b)"

MISTAKES = (
    # How the threads of a row meet.
    Mistake("barrier removed", r"__sync(?:threads\(\)|warp\((?:row_lanes\(\))?\));", r";"),
    Mistake("mask halved", r"0xffffffffu", r"0x0000ffffu"),
    Mistake("mask without lane 0", r"0xffffffffu", r"0xfffffffeu"),
    Mistake("mask of the whole warp", r"(?<!unsigned )row_lanes\(\)", r"0xffffffffu"),
    Mistake("mask of half a row", r"1u << THREADS_PER_ROW\)", r"1u << THREADS_PER_ROW / 2)"),
    Mistake("mask of the first row", r"return lanes << .*;", r"return lanes;"),
    Mistake("mask shifted by a lane", r" / THREADS_PER_ROW \* THREADS_PER_ROW", r""),
    Mistake("first round skipped", r"(offset|half) = (\w+) / 2;", r"\1 = \2 / 4;"),
    Mistake("last round skipped", r"(offset|half) > 0;", r"\1 > 1;"),
    Mistake("every other round skipped", r"(offset|half) /= 2", r"\1 /= 4"),
    Mistake("width too small", r"(warp_reduce<(?:Op, )?\w+)>\(", r"\1 / 2>("),
    Mistake("another lane's value", r"(__shfl_(?:xor|down)_sync\(\w+, [\w.]+), offset", r"\1, 1"),
    Mistake("result in one lane", r"__shfl_xor_sync(?=[\s\S]*return warp_reduce)", r"__shfl_down_sync"),
    Mistake("result not handed on", r"return __shfl_sync\(lanes, (\w+), 0, WIDTH\)", r"return \1"),
    Mistake("handed on by another lane", r"(return __shfl_sync\(lanes, \w+), 0, WIDTH\)", r"\1, WIDTH / 2, WIDTH)"),
    Mistake("another thread's value", r"thread \+ half\]", r"thread + 1]"),
    Mistake("idle half takes part", r"if \(thread < half\) ", r""),
    Mistake("every thread's result in one slot", _SLOT, r"\1[0] ="),
    Mistake("slots aliased", _SLOT, r"\1[\2 / 2] ="),
    Mistake("slots of another row", r"(= \w+(?:\(\))?) \+ threadIdx\.x / \w+ \* .*;", r"\1;"),
    Mistake("only the first warp stores", r"if \((?:lane|threadIdx\.x % WARP_SIZE) == 0\) (\w+\[[^0])", r"if (threadIdx.x == 0) \1"),
    Mistake("another lane stores", r"if \(lane == 0\) (\w+\[0\])", r"if (lane == WARP_SIZE - 1) \1"),
    Mistake("result not stored", r"(?:if \(lane == 0\) )?warp_\w+\[0\] = \w+;", r";"),
    Mistake("result not read back", r"return warp_(value|state)s\[0\];", r"return \1;"),
    Mistake("result not read back", r"return partial\[0\];", r"return partial[thread];"),
    Mistake("one warp too few", r"(lane|warp) < (WARPS_PER_\w+)", r"\1 < \2 - 1"),
    Mistake("idle lanes not asked", r"lane < \w+ \? (\w+\[lane\]) : [\w:]+\(\);", r"\1;"),
    Mistake("maximum of the thread used", r"row_reduce<Max>\(([\w.]+)\)", r"\1"),
    Mistake("sum of the thread used", r"row_reduce<Sum>\(([\w.]+)\)", r"\1"),
    Mistake("state of the thread used", r"row_reduce\((\w+|\{.*?\})\)", r"\1"),
    # The row of a thread.
    Mistake("early return dropped", r"if \(row >= rows\) return;", r";"),
    Mistake("one row too many", r"row >= rows", r"row > rows"),
    Mistake("one row too few", r"row >= rows", r"row >= rows - 1"),
    Mistake("idle threads have a row", r"row < rows \? (\w+) : 0", r"\1"),
    Mistake("one row too many", r"row < rows \?", r"row <= rows ?"),
    Mistake("one row too few", r"row < rows \?", r"row < rows - 1 ?"),
    Mistake("one row of the walk too few", r"row < rows;", r"row < rows - 1;"),
    Mistake("one row of the walk too many", r"row < rows;", r"row <= rows;"),
    Mistake("every other step of the walk", r"\+= gridDim\.x", r"+= 2 * gridDim.x"),
    Mistake("walk by single rows", r"gridDim\.x \* ROWS_PER_BLOCK", r"gridDim.x"),
    Mistake("blocks share a row", r"(ROWS_PER_BLOCK = .*);", r"\1 - 1;"),
    Mistake("a row between blocks", r"(ROWS_PER_BLOCK = .*);", r"\1 + 1;"),
    Mistake("rows of a block forgotten", r"blockIdx\.x \* \w+", r"blockIdx.x"),
    Mistake("two warps a row", rf"threadIdx\.x / {_STRIDE}", r"threadIdx.x / (2 * \1)"),
    Mistake("warp of the block", r" % WARPS_PER_ROW", r""),
    Mistake("row offset forgotten", r"(x|y) \+ row_start", r"\1"),
    Mistake("offset computed in an int", r"static_cast<size_t>\((\w*row)\) \*", r"\1 *"),
    Mistake("offset widened too late", r"static_cast<size_t>\((\w*row)\) (\* \w+)", r"static_cast<size_t>(\1 \2)"),
    Mistake("offset kept in an unsigned", r"const size_t (\w+_start)", r"const unsigned \1"),
    # Several rows at once.
    Mistake("one row counted twice", r"first_row \+ r( \* \w+)?\b", r"first_row"),
    Mistake("rows of a group side by side", r"r \* (?:GROUPS|THREADS)_PER_BLOCK", r"r"),
    Mistake("guard of the second row dropped", r"(row_cols\[r\] = row < rows) \?", r"\1 || r > 0 ?"),
    Mistake("last row of a group forgotten", r"r < ROWS_AT_ONCE;", r"r < ROWS_AT_ONCE - 1;"),
    Mistake("result of the first row", r"(row_(?:max|sum|state))\[r\](?! =)", r"\1[0]"),
    # What a block copies at once.
    Mistake("chunk of another block", r"(x|y) \+ chunk_start", r"\1"),
    Mistake("chunk of too many rows", r"min\((\w+), rows - first_row\) \*", r"\1 *"),
    Mistake("row of another chunk", r"\(row - first_row\) \*", r"row *"),
    Mistake("only one side's boundaries", r"past_boundary\(to\) == past_boundary\(from\) \? (.*) : 0", r"\1"),
    Mistake("vectors from the start", r"\(WIDE - past_boundary\(chunk\)\) % WIDE", r"0"),
    Mistake("head counted twice", r"\(size - head_of\(from\)\)", r"size"),
    Mistake("head forgotten", r"e < head \? e : ", r""),
    Mistake("elements behind vectors forgotten", r"e < size - vecs \* WIDE;", r"e < head;"),
    Mistake("index not scaled", r"e \+ vecs \* WIDE;", r"e + vecs;"),
    Mistake("copy not waited for", r"__pipeline_wait_prior\(0\);", r";"),
    Mistake("copy not waited for", r"ptx::cp_async_bulk_wait_group_read\(.*\);", r";"),
    Mistake("copy never sent", r"__pipeline_commit\(\);|ptx::cp_async_bulk_commit_group\(\);", r";"),
    Mistake("copy finds older values", r"ptx::fence_proxy_async\(ptx::space_shared\);", r";"),
    Mistake("every thread copies all", r"threadIdx\.x == 0 && vecs > 0", r"vecs > 0"),
    Mistake("bytes of elements forgotten", r"vecs \* sizeof\((uint4|Vec|Packed\w*)\)", r"vecs"),
    Mistake("one element of a vector copied", r"(\+ v \* \w+), sizeof\(\w+\)\);", r"\1, sizeof(float));"),
    Mistake("part of the first block", r"rank \* part_size", r"0"),
    Mistake("parts overlap", r"rank \* part_size", r"rank * (part_size - VEC_SIZE)"),
    Mistake("part without an end", r"min\(part_size, .*\)", r"part_size"),
    Mistake("parts begin behind the row", r"min\((rank \* part_size), \w+\)", r"\1"),
    Mistake("cache of another row", r"row_caches \+ .* \* (?=\()", r"row_caches + 0 * "),
    Mistake("barrier of another row", r"(rows_came)\[thread[^]]*\]", r"\1[0]"),
    Mistake("every phase is the first", r"parity \^= 1;", r";"),
    Mistake("every other batch", r"(first \+= )BATCH", r"\g<1>2 * BATCH"),
    # Which of the row's elements a thread takes.
    Mistake("one column too few", r"c < (\w*cols);", r"c < \1 - 1;"),
    Mistake("one column too many", r"c < (\w*cols);", r"c <= \1;"),
    Mistake("guard one column short", r"c < (cols|part\.end)( \?|\))", r"c < \1 - 1\2"),
    Mistake("guard one column long", r"c < (cols|part\.end)( \?|\))", r"c <= \1\2"),
    Mistake("stride of a warp", rf"(c|v) \+= {_STRIDE}", r"\1 += \2 / 2"),
    Mistake("stride of the slots", rf"(= (?:part\.begin \+ )?threadIdx[^;]* \+ [ik] \*) {_STRIDE}", r"\1 \2 / 2"),
    Mistake("lane of another warp", rf"threadIdx\.x % {_STRIDE}", r"threadIdx.x % (\1 / 2)"),
    Mistake("one vector too few", r"v < (vecs|part\.end)(;| \?|\))", r"v < \1 - 1\2"),
    Mistake("one vector too many", r"v < (vecs|part\.end)(;| \?|\))", r"v <= \1\2"),
    Mistake("vectors rounded up", r"(vecs = .*?)(\w+) / VEC_SIZE", r"\1(\2 + VEC_SIZE - 1) / VEC_SIZE"),
    Mistake("one element of a vector too few", r"k < VEC_SIZE;", r"k < VEC_SIZE - 1;"),
    Mistake("vector guard dropped", r"% alignof\(\w+\) == 0", r"% 1 == 0"),
    Mistake("only one pointer's alignment", r" && is_vec_aligned\([\w[\]]+\)", r""),
    Mistake("only one pointer's alignment", r"is_vec_aligned\(\w+\) && ", r""),
    Mistake("alignment not asked", r"is_aligned \? (\w+ / VEC_SIZE) : 0", r"\1"),
    Mistake("alignment not asked", r"if \((!?)is_aligned\)", r"if (\1true)"),
    Mistake("index scaled twice", r"\(row\)\[v\]", r"(row)[v * VEC_SIZE]"),
    Mistake("index scaled twice", r"\(row\) \+ v", r"(row) + v * VEC_SIZE"),
    Mistake("elements of a vector swapped", r"packed\.at\[k\]", r"packed.at[k ^ 1]"),
    Mistake("index not scaled", r"\[v \* VEC_SIZE \+ k\]", r"[v + k]"),
    Mistake("tail forgotten", r"c = vecs \* VEC_SIZE \+", r"c = cols +"),
    Mistake("tail one late", r"c = vecs \* VEC_SIZE \+", r"c = vecs * VEC_SIZE + 1 +"),
    Mistake("scalar row skipped", r"int c = vecs (\* VEC_SIZE .* c < \w+;)", r"int c = cols / VEC_SIZE \1"),
    Mistake("one slot too few", r"([ik]) < ([A-Z_]*(?:ITEMS\w*|SLOTS)|used|items);", r"\1 < \2 - 1;"),
    Mistake("rounded down", r"\((\w+) \+ (\w+) - 1\) / (?=\2)", r"\1 / "),
    Mistake("one tile too few", r"start < (\w+); start \+= (\w+)", r"start + \2 < \1; start += \2"),
    Mistake("tile bound forgotten", r"(?:std::)?min\(TILE_SIZE, [^)]*\)", r"TILE_SIZE"),
    Mistake("tiles overlap", r"% tiles_per_row \* TILE_SIZE", r"% tiles_per_row * (TILE_SIZE - 4)"),
    Mistake("tiles overlap", r"start \+= (\w+)", r"start += \1 - 1"),
    Mistake(
        "place filled before it is read",
        r"(load_row\(values, x_row[^;]*;)(\s*(?:__syncthreads\(\);[^\n]*)?\s*)(const int next_row[^;]*;\s*//[^\n]*\n\s*if [^;]*;)",
        r"\3\2\1",
    ),
    Mistake("same row fetched", r"(int next_row = row) \+ [^;]*;", r"\1;"),
    Mistake("row after the next fetched", r"(int next_row = row \+) ([^;]*);", r"\1 2 * (\2);"),
    Mistake("last row not fetched", r"next_row < rows", r"next_row < rows - 1"),
    Mistake("row behind the last fetched", r"next_row < rows", r"true"),
    Mistake("first row not fetched", r"if \((blockIdx\.x[^<;]*) < rows\)", r"if (\1 < 0)"),
    Mistake("vectors fetched to another's place", r"(next_vecs \+ \(?i \* THREADS_PER_BLOCK) \+ threadIdx\.x", r"\1"),
    Mistake("fetched vectors of another", r"(load_vec\(next_vecs, i \* THREADS_PER_BLOCK) \+ threadIdx\.x", r"\1"),
    Mistake("fewer vectors fetched", r"(const int count = min\(max\(vecs - first), 0", r"\1 - 1, 0"),
    Mistake("prefetch of the same vector", r"(next = load_vec\(\w+, v) \+ \w+", r"\1"),
    Mistake("first prefetch skipped", r"if \(threadIdx[^)]*\) next = .*;", r";"),
    Mistake("last prefetch skipped", r"if \(v \+ (\w+) < vecs\)", r"if (v + 2 * \1 < vecs)"),
    Mistake("prefetch past the end", r"if \(v \+ \w+ < vecs\) ", r""),
    # What is computed of them.
    Mistake("maximum starts at 0", r"(thread_max(?:\[r\])? = |return )-\w+_MAX;", r"\g<1>0;"),
    Mistake("sum starts at 1", r"(thread_sum = |return )0\.0f?;", r"\g<1>1;"),
    Mistake("empty state at 0", r"\{-\w+_MAX, 0\.0f?\}", r"{0, 0}"),
    Mistake("empty state at -inf", r"\{-\w+_MAX, 0\.0f?\}", r"{-INFINITY, 0}"),
    Mistake("empty state counts 1", r"\{(-\w+_MAX), 0\.0f?\}", r"{\1, 1}"),
    Mistake("padding counts", r"(: |\] = )-INFINITY;", r"\g<1>0;"),
    Mistake("minimum for maximum", r"fmax(f?)\(", r"fmin\1("),
    Mistake("maximum not updated", r"state\.m = (?:m|x|fmaxf?\(state\.m, x\));", r";"),
    Mistake("maximum not subtracted", rf"([\w.]+(?:\[\w\])*\)?) - {_MAX}", r"\1"),
    Mistake("+inf forgotten", r"if \(\S+\.m == INFINITY\) \S+\.d = NAN;", r";"),
    Mistake("rescale dropped", r"((?:\w*state|a|b)\.d) \* (?:e\b|\w+\([\w.]+ - [mx]\))", r"\1"),
    Mistake("rescale of the thread dropped", r"(thread_state\.d) \* \w+\(.*\)", r"\1"),
    Mistake("rescale dropped at the write", r"([\w.]+(?:\[\w\])+) \* rescale", r"\1"),
    Mistake("rescale by the wrong sign", r"\((\w*state|a|b)\.m - ([mx])\)", r"(\2 - \1.m)"),
    Mistake("rescale of the smaller", r"x > state\.m", r"x < state.m"),
    Mistake("base of the exponent forgotten", r"t \* LOG2_E", r"t"),
    Mistake("sum not applied", r"(?: \* inverse_sum| / row_sum(?:\[r\])?| / row_state(?:\[r\])?\.d| - log_sum)(\)?;)", r"\1"),
    Mistake("sum not inverted", r"1\.0f? / ([\w.[\]]+);", r"\1;"),
    Mistake("logarithm forgotten", r"logf?\(([\w.[\]]+)\)", r"\1"),
    Mistake("output left unwritten", r"\b(y|y_row|row_cache)\[(c|v)\b([^]]*)\] = ", r"if (\2) \1[\2\3] = "),
    Mistake("output left unwritten", r"(__stcs\(&\w+\[(c|v)\b)", r"if (\2) \1"),
    Mistake("output left unwritten", r"store_vec\((\w+), v,", r"if (v) store_vec(\1, v,"),
    # Which types it is computed in.
    Mistake("cut off where it is rounded", r"(__float2\w+)_rn\(", r"\1_rz("),
    Mistake("sum kept in half", _SUM, r"\1, \2 = __half2float(__float2half_rn(\2));", "__float2half_rn"),
    Mistake("sum kept in bfloat16", _SUM, r"\1, \2 = __bfloat162float(__float2bfloat16_rn(\2));", "__float2bfloat16_rn"),
    Mistake("sum kept in a float", r"\bdouble ((?:\w+_sum|d)(?:\[\w+\])?(?: =|;))", r"float \1"),
    Mistake("function of floats", r"(?<![\w:])(exp2?|log|fmax)\(", r"\1f("),
    Mistake("maximum starts at half's lowest", r"(thread_max(?:\[r\])? = |return |\{)-FLT_MAX", r"\1-65504.0f"),
    Mistake("maximum starts at float's lowest", r"(thread_max(?:\[r\])? = |return |\{)-DBL_MAX", r"\1-FLT_MAX"),
    Mistake("vectors of floats", r"alignas\(VEC_SIZE \* sizeof\(__\w+\)", r"alignas(VEC_SIZE * sizeof(float)"),
    Mistake("half a vector's alignment asked", r"% alignof\((\w+)\) == 0", r"% (alignof(\1) / 2) == 0"),
    # What the warps and blocks of a row tell each other.
    Mistake("maximum of the thread used", r"(warp_max = )warp_reduce<Max, WARP_SIZE>\((\w+), WHOLE_WARP\)", r"\1\2"),
    Mistake("sum of the thread used", r"(warp_sum = )warp_reduce<Sum, WARP_SIZE>\((\w+), WHOLE_WARP\)", r"\1\2"),
    Mistake("half the states merged", r"threadIdx\.x % (WARPS_PER_\w+|BLOCKS_PER_ROW)", r"threadIdx.x % (\1 / 2)"),
    Mistake("the first states merged alone", r"k < (WARPS_PER_ROW|BLOCKS_PER_ROW);", r"k < 1;"),
    Mistake("rank of the block forgotten", r"blockIdx\.x % BLOCKS_PER_ROW \* THREADS_PER_BLOCK \+ ", r""),
    Mistake("every block on the first part", r"blockIdx\.x % BLOCKS_PER_ROW \* length", r"0"),
    Mistake("parts overlap", r"min\(begin \+ length, ", r"min(begin + length + 1, "),
    Mistake("a gap between parts", r"min\(begin \+ length, ", r"min(begin + length - 1, "),
    Mistake("end of the part forgotten", r"min\(begin \+ length, size\)", r"size"),
    Mistake("part one late", r"min\(begin, size\)", r"min(begin + 1, size)"),
    Mistake("two blocks on one part", r"(% BLOCKS_PER_ROW) \* THREADS", r"\1 / 2 * THREADS"),
    Mistake("every block a row of its own", r"blockIdx\.x / BLOCKS_PER_ROW", r"blockIdx.x"),
    Mistake("walk by blocks", r"gridDim\.x / BLOCKS_PER_ROW", r"gridDim.x"),
    Mistake("told one block too few", r"(lane|threadIdx\.x) < BLOCKS_PER_ROW\)", r"\1 < BLOCKS_PER_ROW - 1)"),
    Mistake("told the first block alone", r"map_shared_rank\((.*?), lane\)", r"map_shared_rank(\1, 0)"),
    Mistake("cluster not waited for", r"(?:if \(round == 0\) )?ptx::barrier_cluster_wait\(.*?\);", r";"),
    Mistake("not arrived at the cluster's barrier", r"ptx::barrier_cluster_arrive\(.*?\);", r";"),
    Mistake("barrier of the block alone", r"cg::this_cluster\(\)\.sync\(\);", r"__syncthreads();"),
    Mistake("barrier removed", r"cg::this_cluster\(\)\.sync\(\);", r";"),
    Mistake("states not waited for", r"while \(!ptx::mbarrier_try_wait_parity\([^;{]*\{\s*\}", r";"),
    Mistake("parity flipped", r"(&states_came), 0\)", r"\1, 1)"),
    Mistake("parity flipped", r"round / 2 % 2", r"(round / 2 + 1) % 2"),
    Mistake("half the bytes expected", r"sizeof\((row_states(?:\[0\])?)\)", r"sizeof(\1) / 2"),
    Mistake("twice the bytes expected", r"sizeof\((row_states(?:\[0\])?)\)", r"sizeof(\1) * 2"),
    Mistake("two arrivals expected", r"(mbarrier_init\(.*?), 1\)", r"\1, 2)"),
    Mistake("fence of the barrier removed", r"ptx::fence_mbarrier_init\(.*?\);", r";"),
    Mistake("barrier not armed", r"(?:if \(threadIdx\.x == 0\) )?expect_states\(&.*?\);", r";"),
    Mistake("one array for all rows", r"(row_states|states_came)\[round % 2\]", r"\1[0]"),
    Mistake("rows not counted", r"round\+\+", r"round"),
    Mistake("message not waited for", r"while \(word >> 32 != launch\)", r"while (false)"),
    Mistake("launch not asked", r"while \(word >> 32 != launch\)", r"while (word >> 32 == 0)"),
    Mistake("launch left out", r"static_cast<unsigned long long>\(launch\) << 32 \| ", r""),
    Mistake("message of the first sender", r"other \* BLOCKS_PER_ROW \+ rank", r"other * BLOCKS_PER_ROW"),
    Mistake("message of the first reader", r"blockIdx\.x - rank \+ threadIdx", r"rank + threadIdx"),
    Mistake("message of another block", r"(\(blockIdx\.x\) \* BLOCKS_PER_ROW \+ threadIdx\.x)", r"\1 / 2"),
    Mistake("message not cleared", r"Word\(slot\.words\[k\]\)\.store\(0, .*?\);", r";"),
    Mistake("sum not sent", r"k < STATE_WORDS;", r"k < STATE_WORDS / 2;"),
    # Rows that are read from the vector boundary below.
    Mistake("shift forgotten", r"(shift(?:\[r\])?) = vec_shift\(x_row\)", r"\1 = 0"),
    Mistake("shift in bytes", r"(% alignof\(\w+\)) / sizeof\(\w+\)", r"\1"),
    Mistake("alignment not asked", r"is_vec_aligned\(y - shift\)", r"true"),
    Mistake("mask one column late", r"(\+ k) >= shift", r"\1 > shift"),
    Mistake("mask one column early", r"(\+ k) >= shift", r"\1 >= shift - 1"),
    Mistake("mask forgotten", r"if \(i > 0 \|\| v \* VEC_SIZE \+ k >= shift\) ", r""),
    Mistake("mask forgotten", r"shift <= c && ", r""),
    Mistake("guard one column long", r"c < end", r"c <= end"),
    Mistake("guard one column short", r"c < end", r"c < end - 1"),
    Mistake("edge written whole", r" && \(i > 0 \|\| v \* VEC_SIZE >= shift\)", r""),
    Mistake("end without the shift", r"end = shift \+ cols", r"end = cols"),
    # What the blocks of a row share.
    Mistake("statistics of another row", r"stats\[row\]", r"stats[0]"),
    Mistake("atomic addition made plain", r"atomicAdd\(&(\S+), (\w+)\);", r"\1 += \2;"),
    Mistake("atomic maximum made plain", r"atomicMax\(&(\S+), (\w+\(\w+\))\);", r"\1 = max(\1, \2);"),
    Mistake("every thread contributes", r"if \(threadIdx\.x == 0\) (atomic|merge_into)", r"\1"),
    Mistake("sign of keys forgotten", r"\? ~bits : ", r"? bits : "),
    Mistake("sign of keys forgotten", r" : ~key\)", r" : key)"),
    Mistake("a lost update kept", r"while \(seen != expected\)", r"while (false)"),
    Mistake("zeroed memory is a state", r"if \(stats == 0\) return empty_state\(\);", r";"),
)  # fmt: skip


def mutants(source: Source) -> Iterator[Mutant]:
    """Yield the source with each mistake at each place where it can be made outside comments."""
    yield from mutants_of(source, MISTAKES, source.text.index("#include"))


def mutants_of(source: Source, mistakes: Iterable[Mistake], start: int) -> Iterator[Mutant]:
    """Yield the source with each of some mistakes at each place behind its first `start` letters."""
    seen = {source.text}
    places: Counter[tuple[str, str, str]] = Counter()
    for mistake in (one for one in mistakes if one.needs in source.text):
        for match in re.finditer(mistake.pattern, source.text[start:]):
            at = start + match.start()
            line_start = source.text.rfind("\n", 0, at) + 1
            if "//" in source.text[line_start:at]:
                continue
            after = match.expand(mistake.slip)
            text = source.text[:at] + after + source.text[start + match.end() :]
            if text not in seen:
                seen.add(text)
                line = source.text.count("\n", 0, at) + 1
                change = (mistake.name, match[0], after)
                places[change] += 1
                mutated = replace(source, text=text)
                yield Mutant(mistake.name, places[change], line, match[0], after, mutated)
