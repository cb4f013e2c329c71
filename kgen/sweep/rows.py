"""What the answers to a sweep ask of its rows: what they are, what they cost, which is best.

A row's cost is the median of its times; where nothing was timed it is the cost model's. Rows that
left the search early have fewer samples, and all samples of a run are of the same rounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kgen.errors import UsageError
from kgen.specs.axes import parse_value
from kgen.specs.declared import RECORDS
from kgen.specs.fields import AXES, ROW_MAP, format_value
from kgen.specs.spec import Spec
from kgen.store.measurement import Kind, Measurement, Outcome
from kgen.timing.statistics import Ratio, paired_ratio

# Fewer do not bound a median.
ENOUGH_SAMPLES = 6


def spec_of(row: Measurement) -> Spec:
    """Return the resolved spec of a row. Raises ValueError when the row has none."""
    if not row.spec:
        raise ValueError(f"{row.variant} has no spec")
    values: dict[str, Any] = json.loads(row.spec)
    axes = {
        name: _value(name, format_value(values[name]))
        for name in (ROW_MAP, *AXES)  # older rows have the short word
        if name in values
    }
    return Spec(version=values["version"]).replace(**axes)


def _value(axis: str, text: str) -> Any:
    """Read a value; of a choice whose templates are not at hand only the word is known."""
    try:
        return parse_value(axis, text)
    except UsageError:
        if axis not in RECORDS:
            raise
        return RECORDS[axis](text)


def axes_of(row: Measurement) -> dict[str, str]:
    """Return a row's axes as `typed_axes` does. Raises ValueError when the row has no spec."""
    return typed_axes(spec_of(row), row.cols)


def typed_axes(spec: Spec, cols: int) -> dict[str, str]:
    """Return a spec's axes as a user types them; items that are the least for `cols` are `auto`.

    So threads can be compared: with twice as many, half the items are needed.
    """
    axes = {name: format_value(getattr(spec, name)) for name in AXES}
    if spec.in_registers and spec.items_per_thread == spec.items_for(spec.static_cols or cols):
        axes["items_per_thread"] = format_value(None)
    return axes


def version_of(row: Measurement) -> str:
    """Return the version that a row's variant is spelt from."""
    return row.variant.partition(":")[0]


def contenders(rows: Iterable[Measurement]) -> list[Measurement]:
    """Return the variants and files that came out right and have a cost, in order.

    Where there is a time, rows without one are left out: a model's figures are no times.
    """
    right = [
        row
        for row in rows
        if row.outcome is Outcome.OK and row.kind in (Kind.VARIANT, Kind.FILE) and has_cost(row)
    ]
    timed = [row for row in right if row.median_us is not None]
    return timed or right


def has_cost(row: Measurement) -> bool:
    """Tell whether a row was timed or modelled, so that it can be compared."""
    return row.median_us is not None or row.model_us is not None


def cost_us(row: Measurement) -> float:
    """Return a row's median time, or else its modelled one, in microseconds.

    Raises ValueError when it has neither.
    """
    cost = row.median_us if row.median_us is not None else row.model_us
    if cost is None:
        raise ValueError(f"{row.variant} was neither timed nor modelled")
    return cost


def finalists(rows: Iterable[Measurement]) -> list[Measurement]:
    """Return the contenders of one shape whose samples are enough to win by, in order.

    They stayed in the search for half of their run's rounds; and they have ENOUGH_SAMPLES, if any
    contender has, since of a run that was cut short only those that left early may be here.
    """
    found = contenders(rows)
    rounds: dict[str, int] = {}
    for row in found:
        run = row.provenance.run
        rounds[run] = max(rounds.get(run, 0), len(row.samples_us))
    enough = min(ENOUGH_SAMPLES, max(rounds.values(), default=0))
    return [
        row for row in found if len(row.samples_us) >= max(enough, rounds[row.provenance.run] / 2)
    ]


def best_first(rows: Iterable[Measurement]) -> list[Measurement]:
    """Return the contenders of one shape, the best first.

    The finalists come before those that left the search early, whose few samples may flatter them.
    """
    found = contenders(rows)
    last = {id(row) for row in finalists(found)}
    return sorted(found, key=lambda row: (id(row) not in last, cost_us(row)))


def ratio(a: Measurement, b: Measurement) -> Ratio:
    """Return the cost of `a` over that of `b`, rows of one shape.

    Of rows of one run it is taken round by round, as long as both were in the search. Rows of two
    runs share no rounds: there the intervals of the medians bound it. A model has no interval.
    """
    rounds = min(len(a.samples_us), len(b.samples_us))
    if rounds and a.provenance.run == b.provenance.run:
        return paired_ratio(a.samples_us[:rounds], b.samples_us[:rounds])
    (low_a, high_a), (low_b, high_b) = _bounds(a), _bounds(b)
    return Ratio(cost_us(a) / cost_us(b), low_a / high_b, high_a / low_b)


def _bounds(row: Measurement) -> tuple[float, float]:
    cost = cost_us(row)
    if row.median_us is None:
        return cost, cost
    return row.low_us or cost, row.high_us or cost


def is_tied(row: Measurement, best: Measurement) -> bool:
    """Whether the best is not distinguishably faster than a row."""
    return ratio(row, best).low <= 1
