"""What a sweep would do: `kgen sweep --dry-run`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kgen.cli.console import print_json, print_table
from kgen.cli.progress import duration

if TYPE_CHECKING:
    from kgen.sweep.measure import How
    from kgen.sweep.plan import Plan
    from kgen.sweep.point import Point


def print_plan(planned: Plan, how: How, db: Path | None, json: bool) -> None:
    """Print what a sweep would try, what is stored of it, and how long the rest takes."""
    from kgen.sweep.estimate import estimate
    from kgen.sweep.trial import try_some

    left = _unmeasured(planned, how, db)
    stored = len(planned.points) - len(left)
    measured = Counter((point.rows, point.cols) for point in planned.points)
    measured.subtract((point.rows, point.cols) for point in left)
    cost = estimate(left, how, try_some(left, how), measured)
    facts = {
        "combinations": planned.combinations,
        "excluded": dict(planned.refused.most_common()),
        "filtered": planned.filtered,
        "merged": planned.merged,
        "unlikely": planned.unlikely,
        "points": len(planned.points),
        "stored": stored if how.provenance.device else None,
        "to_measure": cost.candidates,
        "kernels": cost.kernels,
        "estimated_seconds": round(cost.total_s),
    }
    if json:
        print_json(facts)
        return
    rows = [("combinations", f"{planned.combinations:,}")]
    rows += [(f"  refused: {rule}", f"{n:,}") for rule, n in planned.refused.most_common()]
    rows += [("  left out by --where", f"{planned.filtered:,}")] if planned.filtered else []
    rows += [("  the same as another", f"{planned.merged:,}")] if planned.merged else []
    rows += [("  unlikely to be fast", f"{planned.unlikely:,}")] if planned.unlikely else []
    rows += [
        ("candidates", f"{len(planned.points):,}"),
        (
            "  stored already",
            f"{stored:,}" if how.provenance.device else "not known without the GPU",
        ),
        ("to measure", f"{cost.candidates:,}"),
        ("kernels to compile", f"{cost.kernels:,}"),
        ("estimated time", duration(cost.total_s) if left else "none"),
    ]
    print_table("", ("", ">"), rows)


def _unmeasured(planned: Plan, how: How, db: Path | None) -> list[Point]:
    """Return the points that the database has no row of; what is on no known device is none."""
    from kgen.store.database import default_path, open_store
    from kgen.sweep.jobs import unmeasured

    path = db or default_path()
    if not (how.provenance.device and path.exists()):
        return planned.points
    with open_store(path, read_only=True) as store:
        return unmeasured(planned, store, how.protocol, how.provenance, how.keep_all)
