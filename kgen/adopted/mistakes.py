"""The mistakes that people make in kernels of their own: patterns of what such kernels hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kgen.adopted.source import Adopted
from kgen.evidence.mutation.mistakes import MISTAKES, Mistake, Mutant, mutants_of
from kgen.sources.source import Source

_LEAST = r"(?:INFINITY|FLT_MAX|CUDART_INF_F|\d+\.?\d*e\d+f?)"
_USUAL = (
    Mistake("barrier removed", r"\b(?:block|cta|tb|cg::this_thread_block\(\))\.sync\(\);", r";"),
    Mistake("mask halved", r"0x[fF]{8}\b|~0[uU]?\b", r"0x0000ffff"),
    Mistake("first round skipped", r"= (\w+(?:\.x)?) (?:/ 2|>> 1);", r"= \1 / 4;"),
    Mistake("first round skipped", r"= 16;", r"= 8;"),
    Mistake("last round skipped", r"(\b\w+) > 0;", r"\1 > 1;"),
    Mistake("maximum not subtracted", r"(\b_*exp\w*\([^;()]*?) - \w*max\w*\)", r"\1)"),
    Mistake("maximum not subtracted", r"(\b_*exp\w*\([^;]*?) - m\)", r"\1)"),
    Mistake("maximum starts at 0", rf"= -{_LEAST}", r"= 0.0f"),
    Mistake("walk starts one late", r"= (threadIdx\.x|tid|lane);", r"= \1 + 1;"),
    Mistake("stride one too far", r"\+= (blockDim\.x|32|[A-Z_]{4,})\)", r"+= \1 + 1)"),
    Mistake("offset in int", r"\((?:size_t|long long|long|int64_t)\)(?=\w)", r"(int)"),
    Mistake("offset in int", r"\bsize_t\((?=\w)", r"int("),
    Mistake("offset in int", r"static_cast<(?:std::)?(?:size_t|int64_t)>", r"static_cast<int>"),
    Mistake("row of another block", r"\bblockIdx\.x\b", r"(blockIdx.x / 2)"),
    Mistake("every lane stores", r"if \((?:lane|threadIdx\.x % 32) == 0\) ", r""),
    Mistake("shared array halved", r"(__shared__ [^;\[]*\[)(\w+)\]", r"\1(\2) / 2]"),
    Mistake("rows not guarded", r"if \(\w+ >= \w+\) return;", r";"),
    Mistake("atomic made plain", r"atomicAdd\(&?([^,;]+), ([^;]+)\);", r"\1 += \2;"),
    Mistake("sum not rescaled", r"\bd \*= [^;]+;", r";"),
)  # fmt: skip


def adopted_mutants(source: Source) -> Iterator[Mutant]:
    """Yield an adopted source with each mistake at each place where it can be made."""
    assert isinstance(source.contract, Adopted)
    yield from mutants_of(source, (*_USUAL, *_bounds(source.contract), *MISTAKES), 0)


def _bounds(contract: Adopted) -> Iterator[Mistake]:
    """Yield mistakes at the end of a row, which the file calls by names of its own."""
    names = {
        name
        for call in contract.sidecar.kernel
        for name, role in call.arguments.items()
        if role == "cols"
    }
    for name in sorted(map(re.escape, names)):
        yield Mistake("one column too far", rf"< {name}\b(?! *[*/])", f"<= {name}")
        yield Mistake("one column short", rf"< {name}\b(?! *[*/])", f"< {name} - 1")
