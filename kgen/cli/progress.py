"""What a sweep shows while it runs: how far it is, how fast, and the best so far."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from kgen.store.measurement import Measurement


class SweepProgress:
    """A progress bar on a terminal; elsewhere only the rows that were finished, in `rows`."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.rows: list[Measurement] = []
        self._best: dict[tuple[int, int], tuple[float, str]] = {}
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}"),
            console=Console(stderr=True),
            disable=not (total and sys.stderr.isatty()),
        )
        self._task = self._bar.add_task("sweep", total=total, rate="", best="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def prepared(self, row: Measurement) -> None:
        """Show which candidate was verified."""
        self._bar.update(self._task, description=f"verified {row.variant}")

    def sampled(self, name: str, samples_us: Sequence[float]) -> None:
        """Show which candidate was timed."""
        self._bar.update(self._task, description=f"timed {name}")

    def finished(self, row: Measurement) -> None:
        """Count a candidate that has its row, and show the best so far."""
        self.rows.append(row)
        if row.kind == "copy":
            return
        self._note(row)
        speed = self._bar.tasks[0].finished_speed or self._bar.tasks[0].speed
        rate = f"{speed:.1f}/s" if speed else ""
        self._bar.update(self._task, advance=1, rate=rate, best=self.best)

    def _note(self, row: Measurement) -> None:
        us = row.median_us or row.model_us
        shape = (row.rows, row.cols)
        if us and us < self._best.get(shape, (us + 1, ""))[0]:
            self._best[shape] = (us, row.variant)

    @property
    def best(self) -> str:
        """The best of the shape that was looked at last."""
        if not self.rows:
            return ""
        shape = (self.rows[-1].rows, self.rows[-1].cols)
        us, name = self._best.get(shape, (0.0, ""))
        return f"best: {name} {us:.2f} us" if name else ""
