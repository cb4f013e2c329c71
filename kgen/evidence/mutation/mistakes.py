"""The mistakes: each a pattern in a generated source and what a slip makes of it.

A mistake is made at one place at a time: a source with three barriers has three mutants in which
one of them is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kgen.sources.source import Source


@dataclass(frozen=True)
class Mistake:
    """Replaces a match of `pattern` (a regular expression) by `slip` (its template)."""

    name: str
    pattern: str
    slip: str


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
        return f"{self.mistake}, place {self.place}: {self.before} -> {self.after}"


MISTAKES = (
    Mistake("barrier removed", r"__sync(threads|warp)\(\);", r";"),
    Mistake("mask halved", r"0xffffffffu", r"0x0000ffffu"),
    Mistake("mask without lane 0", r"0xffffffffu", r"0xfffffffeu"),
    Mistake("first round skipped", r"offset = WARP_SIZE / 2", r"offset = WARP_SIZE / 4"),
    Mistake("last round skipped", r"(offset|half) > 0;", r"\1 > 1;"),
    Mistake("every other round skipped", r"(offset|half) /= 2", r"\1 /= 4"),
    Mistake("wrong lane broadcast", r"(value(?:\.\w)?), 0\)", r"\1, 31)"),
    Mistake("another lane's value", r"shuffle_down\(value, offset\)", r"shuffle_down(value, 1)"),
    Mistake("one column too few", r"c < cols;", r"c < cols - 1;"),
    Mistake("one column too many", r"c < cols;", r"c <= cols;"),
    Mistake("guard one column short", r"(c) < cols( \?|\))", r"\1 < cols - 1\2"),
    Mistake("guard one column long", r"(c) < cols( \?|\))", r"\1 <= cols\2"),
    Mistake("one group too few", r"g < (groups|cols / VEC_SIZE)(;|\))", r"g < \1 - 1\2"),
    Mistake("one group too many", r"g < (groups|cols / VEC_SIZE)(;|\))", r"g <= \1\2"),
    Mistake("one slot too few", r"([ik]) < ([A-Z_]*(?:ITEMS\w*|SLOTS));", r"\1 < \2 - 1;"),
    Mistake("one tile too few", r"start < cols;", r"start + TILE_SIZE < cols;"),
    Mistake("tile bound forgotten", r"cols - start < TILE_SIZE \? cols - start : ", r""),
    Mistake("one row too many", r"row >= rows", r"row > rows"),
    Mistake("one row too few", r"row >= rows", r"row >= rows - 1"),
    Mistake("one row of the walk too few", r"row < rows;", r"row < rows - 1;"),
    Mistake("one warp too few", r"(lane|warp) < WARPS_PER_BLOCK", r"\1 < WARPS_PER_BLOCK - 1"),
    Mistake("maximum starts at 0", r"(m = |return )-FLT_MAX;", r"\g<1>0.0f;"),
    Mistake("sum starts at 1", r"(float d = |return )0\.0f;", r"\g<1>1.0f;"),
    Mistake("empty state at 0", r"\{-FLT_MAX, 0\.0f\}", r"{0.0f, 0.0f}"),
    Mistake("empty state at -inf", r"\{-FLT_MAX, 0\.0f\}", r"{-INFINITY, 0.0f}"),
    Mistake("empty state counts 1", r"\{-FLT_MAX, 0\.0f\}", r"{-FLT_MAX, 1.0f}"),
    Mistake("padding counts", r": -INFINITY;", r": 0.0f;"),
    Mistake("vector guard dropped", r"% sizeof\(float([24])\) == 0", r"% sizeof(float) == 0"),
    Mistake("only one pointer's alignment", r" && is_vec_aligned\(y_row\)", r""),
    Mistake("index scaled twice", r"\(row\)\[g\]", r"(row)[g * VEC_SIZE]"),
    Mistake("tail forgotten", r"c = tail \+", r"c = cols +"),
    Mistake("tail one late", r"tail = cols - cols % VEC_SIZE;", r"tail = cols - cols % VEC_SIZE + 1;"),
    Mistake("scalar row skipped", r"int tail = 0;", r"int tail = cols;"),
    Mistake("rescale dropped", r"((?:state|a|b)\.d) \* \w+\((?:state|a|b)\.m - m\)", r"\1"),
    Mistake("rescale of the thread dropped", r"thread_state\.d \* rescale", r"thread_state.d"),
    Mistake("rescale dropped at the write", r"(values\[k\]|[xy]\[c\]) \* rescale", r"\1"),
    Mistake("rescale by the wrong sign", r"\(state\.m - (m|x)\)", r"(\1 - state.m)"),
    Mistake("maximum not updated", r"state\.m = (m|x|fmaxf\(state\.m, x\));", r";"),
    Mistake("minimum for maximum", r"fmaxf\(", r"fminf("),
    Mistake("maximum not subtracted", r"(\w+(?:\.\w|\[\w\])?) - row_max\)", r"\1)"),
    Mistake("sum not applied", r" \* inverse_sum;| / row_sum;", r";"),
    Mistake("maximum of the thread used", r"thread_sum\((.*), row_max\)\)", r"thread_sum(\1, 0.0f))"),
    Mistake("+inf forgotten", r"if \(state\.m == INFINITY\) state\.d = NAN;", r";"),
    Mistake("every thread's result in one slot", r"(warp_values|partial)\[(warp|thread)\] =", r"\1[0] ="),
    Mistake("slots aliased", r"(warp_values|partial)\[(warp|thread)\] = ", r"\1[\2 / 2] = "),
    Mistake("result not read back", r"value = (warp_values|partial)\[0\];", r";"),
    Mistake("result not stored", r"(if \(lane == 0\) )?warp_values\[0\] = value;", r";"),
    Mistake("only even lanes store", r"if \(lane == 0\) warp_values\[warp\]", r"if (lane == 1) warp_values[warp]"),
    Mistake("stride of a warp", r"(c|g) \+= THREADS_PER_BLOCK", r"\1 += THREADS_PER_BLOCK / 2"),
    Mistake("lane of another warp", r"threadIdx\.x % WARP_SIZE", r"threadIdx.x % (WARP_SIZE / 2)"),
    Mistake("two warps a row", r"threadIdx\.x / WARP_SIZE;", r"threadIdx.x / (2 * WARP_SIZE);"),
    Mistake("row offset forgotten", r"(x|y) \+ row_start", r"\1"),
    Mistake("offset computed in an int", r"static_cast<size_t>\(row\) \*", r"row *"),
    Mistake("offset widened too late", r"static_cast<size_t>\(row\) (\* \w+)", r"static_cast<size_t>(row \1)"),
    Mistake("offset kept in an unsigned", r"const size_t row_start", r"const unsigned row_start"),
    Mistake("atomic addition made plain", r"atomicAdd\(&(stats\[row\]\.sum), (\w+)\);", r"\1 += \2;"),
    Mistake("atomic maximum made plain", r"atomicMax\(&(\S+), (ordered_key\(\w+\))\);", r"\1 = max(\1, \2);"),
    Mistake("sign of keys forgotten", r"\? ~bits : bits \| 0x80000000u", r"? bits : bits"),
    Mistake("every thread contributes", r"if \(threadIdx\.x == 0\) (atomic|merge_into)", r"\1"),
    Mistake("a lost update kept", r"while \(seen != expected\)", r"while (false)"),
    Mistake("tiles overlap", r"% tiles_per_row \* TILE_SIZE", r"% tiles_per_row * (TILE_SIZE - 4)"),
    Mistake("prefetch of the same group", r"load_group\((\w), g \+ [A-Z_]+(.*)\);", r"load_group(\1, g\2);"),
    Mistake("last prefetch skipped", r"if \(g \+ ([A-Z_]+) < groups\)", r"if (g + 2 * \1 < groups)"),
    Mistake("output left unwritten", r"(y|x_cache)\[c\] = ", r"if (c) \1[c] = "),
)  # fmt: skip


def mutants(source: Source) -> Iterator[Mutant]:
    """Yield the source with each mistake at each place where it can be made outside comments."""
    seen = {source.text}
    places: Counter[tuple[str, str, str]] = Counter()
    start = source.text.index("#include")
    for mistake in MISTAKES:
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
