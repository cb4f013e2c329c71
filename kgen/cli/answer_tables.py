"""The answer of a sweep as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from kgen.cli.console import print_table
from kgen.store.measurement import Measurement
from kgen.sweep.answer import Answer, ShapeAnswer
from kgen.sweep.crossover import Crossover, Stretch
from kgen.sweep.effects import Alternative, Effect
from kgen.sweep.model import RANKING
from kgen.sweep.model_gpu import REFERENCE_GPU
from kgen.sweep.rows import cost_us

# How many of the tied are named.
MAX_TIED = 3


def as_objects(answer: Answer) -> dict[str, Any]:
    """Return the answer for JSON; `cost_us` is a time, or the model's figure if `is_modelled`."""
    return {
        "is_modelled": answer.is_modelled,
        "model": str(RANKING) if answer.is_modelled else None,
        "shapes": [_shape_object(shape) for shape in answer.shapes],
        "stretches": [asdict(stretch) for stretch in answer.stretches],
        "crossovers": [asdict(crossover) for crossover in answer.crossovers],
        "refused": dict(answer.refused),
        "why_empty": answer.why_empty,
    }


def _shape_object(shape: ShapeAnswer) -> dict[str, Any]:
    return {
        "rows": shape.rows,
        "cols": shape.cols,
        "is_modelled": shape.is_modelled,
        "best": _row_object(shape.best) if shape.best else None,
        "tied": [_row_object(row) for row in shape.tied],
        "ranked": [row.variant for row in shape.ranked],
        "by_version": {name: _row_object(row) for name, row in shape.by_version.items()},
        "copy_us": shape.copy_us,
        "percent_of_copy": shape.percent_of_copy,
        "effects": [asdict(effect) for effect in shape.effects],
        "endings": [asdict(ending) for ending in shape.endings],
    }


def _row_object(row: Measurement) -> dict[str, Any]:
    times = {"cost_us": cost_us(row), "low_us": row.low_us, "high_us": row.high_us}
    return {"variant": row.variant, **times, "registers": row.registers, "remark": row.remark}


def print_answer(answer: Answer) -> None:
    """Print what is best on each shape, where versions overtake each other, and what axes did."""
    us, best = ("model us", "the model's best") if answer.is_modelled else ("us", "the best")
    if answer.is_modelled:
        print(f"Nothing was timed: the order is that of a cost model of an {REFERENCE_GPU.name}.")
        print(f"{RANKING}\n")
    winners = ("shape>", "best", f"{us}>", "+- %>", "% of copy>", "regs>", "tied with")
    print_table(best, winners, map(_winner_cells, answer.shapes))
    if any(len(shape.by_version) > 1 for shape in answer.shapes):
        columns = ("shape>", "version", "its best", f"{us}>", f"to {best}>")
        cells = (row for shape in answer.shapes for row in _version_cells(shape))
        print_table("\nversions", columns, cells)
    for line in _overtaking(answer):
        print(line)
    for shape in answer.shapes:
        if shape.effects:
            _print_effects(shape)
    _print_endings(answer)


def _winner_cells(shape: ShapeAnswer) -> tuple[Any, ...]:
    best = shape.best
    if best is None:
        return (_shape(shape), "nothing valid is left", *[""] * 5)
    spread = ""
    if best.median_us and best.low_us and best.high_us:
        spread = f"{50 * (best.high_us - best.low_us) / best.median_us:.1f}"
    named = ", ".join(row.variant for row in shape.tied[:MAX_TIED])
    more = len(shape.tied) - MAX_TIED
    return (
        _shape(shape),
        best.variant,
        f"{cost_us(best):.2f}",
        spread,
        f"{shape.percent_of_copy:.0f}" if shape.percent_of_copy else "",
        best.registers,
        named + (f" and {more} more" if more > 0 else ""),
    )


def _shape(shape: ShapeAnswer) -> str:
    return f"{shape.rows} x {shape.cols}"


def _version_cells(shape: ShapeAnswer) -> Iterator[tuple[str, ...]]:
    name = _shape(shape)
    for version, row in shape.by_version.items():
        best = shape.best or row
        to_best = f"{cost_us(row) / cost_us(best):.3f}"
        yield name, version, row.variant, f"{cost_us(row):.2f}", to_best
        name = ""


def _overtaking(answer: Answer) -> Iterator[str]:
    """Yield a line for each number of rows with more than one row length."""
    for rows in dict.fromkeys(stretch.rows for stretch in answer.stretches):
        stretches = [stretch for stretch in answer.stretches if stretch.rows == rows]
        if stretches[0].first_cols < stretches[-1].last_cols:
            crossings = [crossing for crossing in answer.crossovers if crossing.rows == rows]
            yield f"\n{rows} rows: {_words(stretches, crossings)}"


def _words(stretches: Sequence[Stretch], crossings: Sequence[Crossover]) -> str:
    first, last = stretches[0], stretches[-1]
    if first is last:
        return f"{first.version} is best {_span(first)}"
    words = [f"{first.version} is best up to N={first.last_cols}"]
    for stretch, crossing in zip(stretches[1:], crossings, strict=True):
        word = f"{stretch.version} from N={stretch.first_cols}"
        if stretch is not last:
            word = f"{stretch.version} {_span(stretch)}"
        if crossing.cols:
            word += f" (they cross near {crossing.cols:.0f})"
        words.append(word)
    return ", ".join(words)


def _span(stretch: Stretch) -> str:
    if stretch.first_cols == stretch.last_cols:
        return f"at N={stretch.first_cols}"
    return f"from N={stretch.first_cols} to {stretch.last_cols}"


def _print_effects(shape: ShapeAnswer) -> None:
    cost = "model>" if shape.is_modelled else "time>"
    columns = ("axis", "value", cost, "range>", "pairs>", "others as in the winner")
    rows = (cells for effect in _told_apart(shape.effects) for cells in _effect_cells(effect))
    print_table(f"\nwhat each axis was worth at {_shape(shape)}", columns, rows)


def _told_apart(effects: Sequence[Effect]) -> Iterator[Effect]:
    """Yield the effects without the second of two axes that are one change."""
    shown: dict[str, Effect] = {}
    for effect in effects:
        other = shown.get(effect.moves_with)
        if not (other and other.moves_with == effect.axis and _figures(other) == _figures(effect)):
            shown[effect.axis] = effect
            yield effect


def _figures(effect: Effect) -> list[tuple[float | None, int]]:
    return [(value.ratio, value.pairs) for value in effect.values]


def _effect_cells(effect: Effect) -> Iterator[tuple[Any, ...]]:
    """Yield a line a value: those that came out right, then those that did not."""
    name = effect.axis + (f" (with {effect.moves_with})" if effect.moves_with else "")
    others = {other.value: other for other in effect.alternatives}
    shown = {value: cells for value, *cells in _value_cells(effect)}
    shown |= {value: [""] * 3 for value in others if value not in shown}
    for value, cells in shown.items():
        yield name, value, *cells, _beside_winner(value, effect, others.get(value))
        name = ""


def _value_cells(effect: Effect) -> Iterator[tuple[str, ...]]:
    best, *others = effect.values
    yield best.value, "best" if best.pairs else "", "", ""
    for value in others:
        if value.ratio is None:
            yield value.value, "", "", "0"
        else:
            span = f"{value.least:.2f} to {value.most:.2f}"
            yield value.value, f"{value.ratio:.3f}", span, str(value.pairs)


def _beside_winner(value: str, effect: Effect, other: Alternative | None) -> str:
    if value == effect.winner:
        return "winner" if effect.alternatives else "winner; no other value was measured with it"
    if other is None:
        return ""
    if other.ratio is None:
        return other.reason
    return "tied" if other.tied else f"{other.ratio:.3f}"


def _print_endings(answer: Answer) -> None:
    print()
    for shape in answer.shapes:
        print(f"{_shape(shape)}: " + "; ".join(map(str, shape.endings)))
    for reason, count in answer.refused.items():
        print(f"{count} combinations refused: {reason}")
