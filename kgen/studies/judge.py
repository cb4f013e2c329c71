"""Judges the parts of the studies' statements by what was measured, counted and compiled."""

from __future__ import annotations

from kgen.errors import KgenError
from kgen.studies import verdicts
from kgen.studies.claims import Crossing, Fact, Part, Timed
from kgen.studies.crossover import CrossoverPoint, crossings_of
from kgen.studies.facts import Facts
from kgen.studies.times import Times
from kgen.studies.verdicts import Conclusion, Judgement, unknown
from kgen.timing.statistics import Ratio


def judge_part(part: Part, times: Times, facts: Facts, l2: str) -> Judgement:
    """Return the verdict on a part with the L2 cache in a state, which facts do not depend on.

    Whatever could not be measured makes the verdict UNKNOWN, with the reason.
    """
    try:
        if isinstance(part, Timed):
            return judge_ratio(part, times.ratio(part.a, part.b, *part.shape, l2))
        if isinstance(part, Fact):
            value = facts.quotient(part.metric, part.a, part.b, *part.shape)
            return verdicts.judge_fact(value, part.relation, part.value, part.tolerance)
        return judge_crossing(part, times.ratios(part.a, part.b, part.rows, part.lengths, l2))
    except KgenError as missing:
        return unknown(str(missing))


def judge_ratio(part: Timed, ratio: Ratio) -> Judgement:
    """Return the verdict on a part about times from the paired ratio a / b."""
    if part.rule == "faster":
        return verdicts.faster(ratio)
    if part.rule == "not_faster":
        return verdicts.not_faster(ratio)
    if part.rule == "same":
        return verdicts.same(ratio, part.tolerance)
    return verdicts.about(ratio, part.ratio, part.tolerance)


def judge_crossing(part: Crossing, ratios: dict[int, Ratio]) -> Judgement:
    """Return the verdict on a crossover from the ratios a / b by row length.

    It holds if all of a crossing's interval is between the two lengths, and falls if none has any
    part of its interval there. The figure is the row length.
    """
    rising = [c for c in crossings_of(part.a, part.b, ratios) if c.faster_below == part.a]
    bounds = [_bounds(crossing, ratios) for crossing in rising]
    least, most = part.between
    inside = [b for b in bounds if least <= b.low and b.high <= most]
    touching = [b for b in bounds if b.low <= most and b.high >= least]
    if inside:
        return Judgement(Conclusion.HOLDS, inside[0])
    if touching:
        return Judgement(Conclusion.NOISE, touching[0])
    return Judgement(Conclusion.FAILS, reason=f"{part.a} overtakes {part.b} nowhere between")


def _bounds(crossing: CrossoverPoint, ratios: dict[int, Ratio]) -> Ratio:
    """Return the crossing's row length with its interval; an open end is that of the lengths."""
    low = min(ratios) if crossing.low is None else crossing.low
    high = max(ratios) if crossing.high is None else crossing.high
    return Ratio(crossing.at, low, high)
