"""What a sweep shows while it runs: how far it is, how long it will take, and the best so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

    from kgen.store.measurement import Measurement

# Without a terminal a line is written after so many seconds, or so much of all candidates.
LINE_S, LINE_SHARE = 10.0, 0.1
# A variant on a shape, and what it is expected to take beside the others.
Work = Mapping[tuple[str, int, int], float]


class SweepProgress:
    """A bar on a terminal, plain lines now and then elsewhere; `rows` are those finished so far.

    What is left is told from the pace of what was measured so far, by the `work` of each.
    """

    def __init__(self, total: int, work: Work | None = None) -> None:
        self.rows: list[Measurement] = []
        self.total, self.done = total, 0
        self._left = dict(work or {})
        self._done_work = 0.0
        self._began: float | None = None  # when the first candidate was done
        self._told_at = time.monotonic()
        self._told_done = 0
        self._best: dict[tuple[int, int], tuple[float, str]] = {}
        self._bar = _bar(total) if total and sys.stderr.isatty() else None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        self._show("compiling", is_due=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def prepared(self, row: Measurement) -> None:
        """Show which candidate was verified."""
        self._show(f"verified {row.variant}", self._is_due())

    def sampled(self, name: str, samples_us: Sequence[float]) -> None:
        """Show which candidate was timed."""
        self._show(f"timed {name}", self._is_due())

    def finished(self, row: Measurement) -> None:
        """Count a candidate that has its row, and show the best so far."""
        self.rows.append(row)
        if row.kind == "copy":
            return
        self.done += 1
        work = self._left.pop((row.variant, row.rows, row.cols), 0.0)
        if self._began is not None:
            self._done_work += work
        elif row.outcome != "pruned":  # which takes no time, and comes before the others
            self._began = time.monotonic()
        self._note(row)
        self._show("sweep", self._is_due() or self.done == self.total)

    def _note(self, row: Measurement) -> None:
        us = row.median_us or row.model_us
        shape = (row.rows, row.cols)
        if us and us < self._best.get(shape, (us + 1, ""))[0]:
            self._best[shape] = (us, row.variant)

    def _is_due(self) -> bool:
        share = (self.done - self._told_done) / max(1, self.total)
        return share >= LINE_SHARE or time.monotonic() - self._told_at >= LINE_S

    def _show(self, what: str, is_due: bool) -> None:
        if self._bar:
            task = self._bar.task_ids[0]
            fields = {"left": self.left, "best": self.best}
            self._bar.update(task, completed=self.done, description=what, **fields)  # type: ignore[arg-type]
        elif is_due and self.total:
            self._told_at, self._told_done = time.monotonic(), self.done
            words = ", ".join(filter(None, (what, self.told, self.left, self.best)))
            print(f"kgen: {words}", file=sys.stderr, flush=True)

    @property
    def told(self) -> str:
        """How far it is, in words."""
        return f"{self.done} of {self.total} candidates are done"

    @property
    def left_s(self) -> float | None:
        """The seconds that are left at the pace so far; None before a second one was done."""
        if self._began is None or not self._done_work:
            return None
        pace = (time.monotonic() - self._began) / self._done_work
        share = min(1.0, (self.total - self.done) / max(1, len(self._left)))
        return pace * share * sum(self._left.values())

    @property
    def left(self) -> str:
        """The time that is left, in words."""
        left_s = self.left_s
        return "" if left_s is None else f"about {duration(left_s)} left"

    @property
    def best(self) -> str:
        """The best of the shape that was looked at last."""
        if not self.rows:
            return ""
        shape = (self.rows[-1].rows, self.rows[-1].cols)
        us, name = self._best.get(shape, (0.0, ""))
        return f"best: {name} {us:.2f} us" if name else ""


def duration(seconds: float) -> str:
    """Return a time for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar(total: int) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[best]}"),
        console=Console(stderr=True),
    )
    bar.add_task("sweep", total=total, left="", best="")
    return bar
