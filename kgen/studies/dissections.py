"""What the report could not isolate: pairs of variants that differ in one thing, and what it says.

Times of two variants say little while several things differ. Each comparison here leaves one thing
out; the ratio of its paired times is what that thing costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.studies.claims import Shape
from kgen.studies.facts import Profiled
from kgen.studies.tables import Study


@dataclass(frozen=True)
class Comparison:
    """Two variants on a shape, `differ` in words, and what a / b below and above 1 mean."""

    a: str
    b: str
    shape: Shape
    differ: str
    less: str
    more: str


@dataclass(frozen=True)
class Dissection:
    """A question, the comparisons that answer it, and profiled metrics that stand beside them."""

    study: Study
    title: str
    question: str
    comparisons: tuple[Comparison, ...]
    metrics: tuple[Profiled, ...] = ()

    @property
    def profiled(self) -> tuple[tuple[str, int, int], ...]:
        """The variants and shapes whose profiles stand beside the ratios, each once."""
        pairs = self.comparisons if self.metrics else ()
        jobs = [(variant, *pair.shape) for pair in pairs for variant in (pair.b, pair.a)]
        return tuple(dict.fromkeys(jobs))


_ODD: Shape = (1025, 257)
_MAIN: Shape = (1024, 4096)
_LONG: Shape = (128, 16384)


def _barrier(a: str, b: str, differ: str, less: str, more: str) -> Comparison:
    return Comparison(a, b, _ODD, differ, less, more)


# From v5 to v8 in single steps; the product of the first four ratios is v8 / v5.
_BARRIERS = Dissection(
    Study.REPORT,
    "The barrier's share in v8's lead",
    "How much of v8's lead over v5 is waiting at block barriers, how much less work?",
    (
        _barrier(
            "v5:threads=32",
            "v5",
            "one warp a row instead of eight; the same code, whose barriers wait for nobody",
            "fewer reductions a row and no waiting for other warps pay for longer walks",
            "spreading a row over eight warps pays, waiting included",
        ),
        _barrier(
            "v5:topology=warp,threads=32",
            "v5:threads=32",
            "no shared memory, no barrier and no second level; the same work a warp otherwise",
            "the barrier's instructions and the second level cost this, without any waiting",
            "shared memory and barriers of one warp are free",
        ),
        _barrier(
            "v8:threads=32",
            "v5:topology=warp,threads=32",
            "the row is found from the warp's number; the same work and no barrier on both sides",
            "nothing but the code around the row: expected to be 1",
            "nothing but the code around the row: expected to be 1",
        ),
        _barrier(
            "v8",
            "v8:threads=32",
            "eight rows a block instead of one: fewer blocks to start, more warps resident",
            "starting blocks and the limit on resident blocks cost this",
            "a block that ends with its slowest warp costs this",
        ),
        _barrier(
            "v8:topology=tree,threads=32",
            "v5:topology=tree,threads=32",
            "the same tree in shared memory by one warp, ordered by __syncwarp or __syncthreads",
            "a block barrier's instructions cost this, with nobody to wait for",
            "a block barrier of one warp costs no more than __syncwarp",
        ),
        _barrier(
            "v8:topology=tree",
            "v8",
            "a warp's tree in shared memory instead of shuffles; no block barrier on either side",
            "shared memory beats shuffles",
            "shared memory costs this without any block barrier",
        ),
    ),
    (Profiled.BARRIER, Profiled.INSTRUCTIONS, Profiled.OCCUPANCY),
)


def _recurrence(a: str, b: str, shape: Shape) -> Comparison:
    return Comparison(
        a,
        b,
        shape,
        "only the update: online against three passes over the same values in registers",
        "one pass with a longer recurrence beats two short passes over registers",
        "the recurrence (rescaling, and the wait for the last state) costs this",
    )


_RECURRENCE = Dissection(
    Study.REPORT,
    "The recurrence on long rows",
    "What does the online update cost where the row is in registers, so that every version reads "
    "memory once?",
    (
        _recurrence("v7", "v7:update=three_pass", _MAIN),
        _recurrence("v5:cache=inputs_registers", "v2:merge=paired,cache=inputs_registers", _MAIN),
        _recurrence("v4:cache=inputs_registers", "v2:cache=inputs_registers", _MAIN),
        _recurrence("v4_opt:cache=inputs_registers", "v2:cache=inputs_registers", _MAIN),
        _recurrence("v4_opt:cache=inputs_registers", "v2:cache=inputs_registers", _LONG),
        _recurrence(
            "v8:cache=inputs_registers", "v8:update=three_pass,cache=inputs_registers", _MAIN
        ),
        Comparison(
            "v4_opt:cache=inputs_registers",
            "v4:cache=inputs_registers",
            _MAIN,
            "one exponential an element instead of two; memory traffic is equal",
            "the second exponential costs this",
            "the select of the shared exponential costs more than it saves",
        ),
        Comparison(
            "v8",
            "v8:update=three_pass",
            _MAIN,
            "as they are: two scans with the recurrence against three without",
            "the third scan costs more than the recurrence",
            "the recurrence costs more than the third scan, which caches serve",
        ),
    ),
)


def _vectors(a: str, b: str, differ: str, less: str, more: str) -> Comparison:
    return Comparison(a, b, _MAIN, differ, less, more)


_VECTORS = Dissection(
    Study.REPORT,
    "Why v6_double is slower than v6",
    "Vector accesses in the writing scan cut its instructions by four. What do they cost?",
    (
        _vectors(
            "v6",
            "v5",
            "float4 in the scan that reduces",
            "vectors help the reducing scan",
            "vectors hurt already in the reducing scan",
        ),
        _vectors(
            "v6:vec_scans=second",
            "v5",
            "float4 in the writing scan alone",
            "vectors help the writing scan by itself",
            "vectors hurt the writing scan by itself",
        ),
        _vectors(
            "v6_double",
            "v6",
            "float4 also in the writing scan",
            "it helps here: the report's finding is its GPU's",
            "it hurts here as in the report",
        ),
        _vectors(
            "v6_double:vec=2",
            "v6:vec=2",
            "the same step with float2",
            "half the width helps the writing scan: if 16 bytes hurt it, that is their width",
            "half the width hurts as well: it is not the width of 16 bytes",
        ),
        _vectors(
            "v6_fetch",
            "v6_double",
            "the next vector is loaded before the current one is computed",
            "the writing scan waits for its loads",
            "the extra registers or instructions cost more than the waiting",
        ),
        _vectors(
            "v6_double:min_blocks=8",
            "v6_double",
            "registers limited so that eight blocks fit an SM of 2048 threads",
            "too few warps are resident to hide the wait for vectors",
            "residency is not the cause; fewer registers cost this",
        ),
        _vectors(
            "v6_double:static_cols=4096",
            "v6_double",
            "the trip counts are known at compile time",
            "loop control and address arithmetic are what it pays for",
            "unrolling does not help",
        ),
        _vectors(
            "v7",
            "v6_double",
            "the writing scan has its inputs in registers",
            "the second read of the input costs this",
            "the second read is free: caches serve it",
        ),
        Comparison(
            "v6_fetch",
            "v6_double",
            (1025, 257),
            "nothing to load early: a thread has at most one vector of the row",
            "a gain that prefetching cannot be the reason of",
            "the form of the loop costs this",
        ),
    ),
    (Profiled.LONG_SCOREBOARD, Profiled.OCCUPANCY, Profiled.INSTRUCTIONS),
)

DISSECTIONS = (_BARRIERS, _RECURRENCE, _VECTORS)


def dissections(studies: frozenset[Study]) -> tuple[Dissection, ...]:
    """Return the dissections that belong to some studies."""
    return tuple(dissection for dissection in DISSECTIONS if dissection.study in studies)
