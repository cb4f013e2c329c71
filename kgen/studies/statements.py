"""The studies' ten statements as data."""

from __future__ import annotations

from kgen.studies.claims import Crossing, Fact, Shape, Statement, Timed
from kgen.studies.facts import Compiled, Counted, FromSpec, Profiled
from kgen.studies.tables import CROSSOVER_LENGTHS, Study

# "About" a factor, and "the same", mean this much either way.
ABOUT = 0.2
SAME = 0.03


def _faster(a: str, b: str, shape: Shape) -> Timed:
    return Timed(f"{a} is faster than {b}", "faster", a, b, shape)


def _fastest(a: str, others: str, shape: Shape) -> tuple[Timed, ...]:
    return tuple(_faster(a, b, shape) for b in others.split())


def _gain(a: str, b: str, percent: float, shape: Shape) -> Timed:
    """Return the part that a takes so many percent less than b: half of it to one and a half."""
    ratio = 1 - percent / 100
    words = f"{a} takes {percent:g}% less time than {b}"
    return Timed(words, "about", a, b, shape, ratio, (1 - ratio) / 2 / ratio)


def _factor(words: str, a: str, b: str, ratio: float, shape: Shape) -> Timed:
    return Timed(words, "about", a, b, shape, ratio, ABOUT)


_K: Shape = (256, 65536)
_MAIN: Shape = (1024, 4096)
_SHORT: Shape = (1024, 257)
_ODD: Shape = (1025, 257)
_FEW: Shape = (128, 4096)
_LONG: Shape = (128, 16384)
_BRANCH = "v4_opt:update=online_branch"
_WIDE = "v3:threads=512"

STATEMENTS = (
    Statement(
        1,
        Study.K,
        "k1 is about 50 times slower than k4; k3 is slower than k2; k4 is the fastest of the four",
        (
            _factor("k1 takes about 50 times k4's time", "k1", "k4", 50, _K),
            _faster("k2", "k3", _K),
            *_fastest("k4", "k1 k2 k3", _K),
        ),
    ),
    Statement(
        2,
        Study.REPORT,
        "v2 beats v1; v3 is the fastest of v1 to v4_opt; v4 is no faster than v2; v4_opt beats v4 "
        "by about 1.5%",
        (
            _faster("v2", "v1", _MAIN),
            *_fastest("v3", "v1 v2 v4 v4_opt", _MAIN),
            Timed("v4 is no faster than v2", "not_faster", "v4", "v2", _MAIN),
            _faster("v4_opt", "v4", _MAIN),
            _gain("v4_opt", "v4", 1.5, _MAIN),
        ),
    ),
    Statement(
        3,
        Study.REPORT,
        "v6 beats v5 by about 3%; v6_double is slower than v6 although it issues a third of the "
        "accesses; v6_fetch gains 1.9% on v6_double and still loses to v6; at N = 257 there is no "
        "next vector to load early",
        (
            _faster("v6", "v5", _MAIN),
            _gain("v6", "v5", 3, _MAIN),
            _faster("v6", "v6_double", _MAIN),
            Fact(
                "v6_double issues a third of v6's accesses",
                Counted.ACCESSES,
                "v6_double",
                "v6",
                _MAIN,
                "about",
                1 / 3,
                1e-9,
            ),
            _gain("v6_fetch", "v6_double", 1.9, _MAIN),
            _faster("v6", "v6_fetch", _MAIN),
            Fact(
                "at N = 257 no thread of v6_fetch has a second vector",
                FromSpec.VECTORS,
                "v6_fetch",
                "",
                _ODD,
                "<=",
                1,
            ),
        ),
    ),
    Statement(
        4,
        Study.REPORT,
        "v7 takes 26.6% less time than v6_double and 1.8% less than v3",
        (
            _faster("v7", "v6_double", _MAIN),
            _gain("v7", "v6_double", 26.6, _MAIN),
            _faster("v7", "v3", _MAIN),
            _gain("v7", "v3", 1.8, _MAIN),
        ),
    ),
    Statement(
        5,
        Study.REPORT,
        "v8 is about twice as fast as v7 at N = 257 and 1.7 times slower at N = 4096: there is a "
        "crossover between",
        (
            _factor("v8 takes about half of v7's time at N = 257", "v8", "v7", 0.5, _SHORT),
            _factor("v8 takes about 1.7 times v7's time at N = 4096", "v8", "v7", 1.7, _MAIN),
            Crossing(
                "v8 stops being faster than v7 between N = 257 and 4096",
                "v8",
                "v7",
                1024,
                CROSSOVER_LENGTHS,
                (257, 4096),
            ),
        ),
    ),
    Statement(
        6,
        Study.REPORT,
        "v9 with a smaller grid is slower, not faster",
        (
            _faster("v9:grid=1024", "v9", _SHORT),
            _faster("v9", "v9:grid=128", _SHORT),
        ),
    ),
    Statement(
        7,
        Study.REPORT,
        "v3 with 256 threads x 64 values and 512 x 32 take the same time although occupancy "
        "doubles",
        (
            Timed("both take the same time", "same", _WIDE, "v3", _LONG, 1, SAME),
            Fact(
                "registers allow twice the occupancy",
                Compiled.OCCUPANCY,
                _WIDE,
                "v3",
                _LONG,
                "about",
                2,
                0.05,
            ),
            Fact(
                "twice the occupancy is achieved",
                Profiled.OCCUPANCY,
                _WIDE,
                "v3",
                _LONG,
                "about",
                2,
                0.1,
            ),
        ),
    ),
    Statement(
        8,
        Study.REPORT,
        "v8 against v5: 74% fewer warp instructions, lower occupancy and issue rate, and still "
        "faster",
        (
            Fact(
                "v8 executes 74% fewer warp instructions",
                Profiled.INSTRUCTIONS,
                "v8",
                "v5",
                _ODD,
                "about",
                0.26,
                0.2,
            ),
            Fact("occupancy is lower", Profiled.OCCUPANCY, "v8", "v5", _ODD, "<", 1),
            Fact("the issue rate is lower", Profiled.ISSUE_RATE, "v8", "v5", _ODD, "<", 1),
            Fact(
                "v8 reduces once a row where v5 does nine times",
                Counted.REDUCTIONS,
                "v8",
                "v5",
                _ODD,
                "about",
                1 / 9,
                1e-9,
            ),
            _faster("v8", "v5", _ODD),
        ),
    ),
    Statement(
        9,
        Study.REPORT,
        "v3 against v2: a third of the load instructions, but DRAM reads fall by 8% only (L1 hits "
        "from 38.4% to 0%); stalls on long scoreboard fall from 55.8% to 35.1%",
        (
            Fact(
                "v3 issues a third of v2's loads",
                Counted.LOADS,
                "v3",
                "v2",
                _FEW,
                "about",
                1 / 3,
                1e-9,
            ),
            Fact(
                "v3 reads at most a tenth less from DRAM (8% in the report)",
                Profiled.DRAM_READ,
                "v3",
                "v2",
                _FEW,
                ">=",
                0.9,
            ),
            Fact("v2 finds a part in L1", Profiled.L1_HITS, "v2", "", _FEW, ">=", 10),
            Fact("v3 finds nothing in L1", Profiled.L1_HITS, "v3", "", _FEW, "<=", 1),
            Fact(
                "v3 stalls less on long scoreboard",
                Profiled.LONG_SCOREBOARD,
                "v3",
                "v2",
                _FEW,
                "<",
                1,
            ),
        ),
    ),
    Statement(
        10,
        Study.REPORT,
        "The branching form of v4_opt lowers branch uniformity to 85.5%, the shared exponential "
        "restores 100%",
        (
            Fact(
                "the branching form has 85.5% uniform branches",
                Profiled.UNIFORMITY,
                _BRANCH,
                "",
                _LONG,
                "about",
                85.54,
                0.02,
            ),
            Fact(
                "v4_opt has only uniform ones", Profiled.UNIFORMITY, "v4_opt", "", _LONG, "=", 100
            ),
            Fact("v4 has only uniform ones", Profiled.UNIFORMITY, "v4", "", _LONG, "=", 100),
        ),
    ),
)


def statements(studies: frozenset[Study]) -> tuple[Statement, ...]:
    """Return the statements of some studies, by their numbers."""
    return tuple(statement for statement in STATEMENTS if statement.study in studies)
