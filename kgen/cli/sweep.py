"""The command that explores combinations: sweep."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli import INTERRUPTED
from kgen.cli.bench import Db, require_kernels, require_no_trouble
from kgen.cli.complete import complete_axis, complete_variants
from kgen.cli.console import Json, On, print_json, time_option
from kgen.cli.dry_run import print_plan
from kgen.cli.progress import SweepProgress
from kgen.errors import CheckFailed, MissingTool, UsageError

if TYPE_CHECKING:
    from kgen.store.measurement import Measurement, Provenance
    from kgen.sweep.jobs import Job
    from kgen.sweep.measure import How
    from kgen.sweep.plan import Plan
    from kgen.sweep.space import Space
    from kgen.timing.bench import Record

    # How to measure on each kind of machine, and what runs the jobs of each.
    Place = tuple[list[How], Callable[[list[list[Job]], Record, SweepProgress], None]]


_GO_ON = "the same command goes on from there"


def sweep(
    study: Annotated[
        Path | None, typer.Argument(help="A TOML file that describes a sweep.")
    ] = None,
    rows: Annotated[str | None, typer.Option(help="Rows of the matrices: 1,1024.")] = None,
    cols: Annotated[str | None, typer.Option(help="Elements of a row: 257,4096.")] = None,
    variants: Annotated[
        str | None,
        typer.Option(help="Versions or variants: v5,v7.", autocompletion=complete_variants),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            help="Values of an axis: threads=128,256; repeatable.", autocompletion=complete_axis
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every valid combination.")] = False,
    where: Annotated[str | None, typer.Option(help="Keep these: 'threads * vec <= cols'.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    no_prune: Annotated[
        bool, typer.Option("--no-prune", help="Time what would be left out untimed, too.")
    ] = False,
    search: Annotated[str, typer.Option(help="halving, full or model.")] = "halving",
    trials: Annotated[int, typer.Option(min=1, help="Candidates that `model` may try.")] = 100,
    protocol: Annotated[str, typer.Option(help="How to measure: rotated or report.")] = "rotated",
    l2: Annotated[str | None, typer.Option(help="The L2 cache: cold or warm.")] = None,
    seconds: Annotated[float | None, time_option(0, "Budget of the finals.")] = None,
    timeout: Annotated[
        float, time_option(0.1, "Seconds that preparing one candidate may take.")
    ] = 120,
    scheduler: Annotated[str | None, typer.Option(help="A Dask scheduler: tcp://...")] = None,
    local_workers: Annotated[
        int | None, typer.Option(min=1, help="Run on so many Dask workers here.")
    ] = None,
    db: Db = None,
    out: Annotated[Path | None, typer.Option(help="Also write the rows as JSON.")] = None,
    on: On = "gpu",
    json: Json = False,
) -> None:
    """Verify and time combinations, and say which is best per shape and what each axis is worth.

    The same command continues a sweep that was interrupted. With --on cpu the candidates are
    verified, counted, and ranked by a cost model. Without --variants all versions are swept.
    """
    from kgen.execute import require_place
    from kgen.sweep.halving import find_search
    from kgen.sweep.measure import How
    from kgen.sweep.plan import plan
    from kgen.timing.protocol import find_protocol

    spaces = _spaces(study, rows, cols, variants, axis, where, all_)
    planned = plan(*spaces)
    require_place(on)
    hosts = [point.variant for point in planned.points if point.spec.is_host]
    require_kernels(on, hosts, len(planned.points))
    how = How(
        on=on,
        protocol=find_protocol(protocol, l2, budget_s=seconds),
        search=find_search(search),
        keep_all=no_prune,
        prepare_s=timeout,
        trials=trials,
        # Last: it asks the GPU, and mistakes are told without one.
        provenance=_provenance(on, bool(scheduler or local_workers), not dry_run),
    )
    if dry_run:
        print_plan(planned, how, db, json)
        return
    if not planned.points:
        raise CheckFailed(
            f"nothing is left of {planned.combinations} combinations: {_why(planned)}"
        )
    try:
        measured, interrupted = _run(planned, how, db, scheduler, local_workers)
    except KeyboardInterrupt:  # before the first candidate, or for the second time
        print(f"kgen: ended by Ctrl-C; {_GO_ON}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    why_empty = _tell(planned, measured, out, json)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    require_no_trouble(measured)
    if why_empty:
        raise CheckFailed(why_empty)


def _spaces(
    study: Path | None,
    rows: str | None,
    cols: str | None,
    variants: str | None,
    axis: Sequence[str] | None,
    where: str | None,
    all_: bool,
) -> tuple[Space, ...]:
    from kgen.cli.targets import overlay
    from kgen.specs.versions import VERSIONS
    from kgen.sweep.default import default_variants
    from kgen.sweep.space import Space, everything
    from kgen.sweep.study import read_study

    axes = _axes(axis or ())
    lists = {"rows": _numbers("--rows", rows), "cols": _numbers("--cols", cols)}
    names = _words(variants)
    if all_:
        if names or axes or study:
            raise UsageError("--all is every combination; leave --variants, --axis and files out")
        return everything(
            lists["rows"] or (1024,), lists["cols"] or (4096,), where or "", overlay()
        )
    if study:
        space = read_study(study, overlay())
        return (space.changed(names, lists["rows"], lists["cols"], axes, where or ""),)
    if not (names or axes or where or rows or cols):
        raise UsageError("name what to sweep: --variants v5,v7, a study file, or --all")
    shapes = itertools.product(lists["rows"] or (1024,), lists["cols"] or (4096,))
    if not (names or axes or where):
        print("kgen: no --variants, so the versions and what is fast beside them", file=sys.stderr)
        return tuple(
            Space.make(default_variants(shape), shape[:1], shape[1:], overlay=overlay())
            for shape in shapes
        )
    if not names:
        print(f"kgen: no --variants, so all {len(VERSIONS)} versions", file=sys.stderr)
    return (
        Space.make(
            names or VERSIONS,
            lists["rows"] or (1024,),
            lists["cols"] or (4096,),
            axes,
            where or "",
            overlay(),
        ),
    )


def _axes(settings: Sequence[str]) -> dict[str, tuple[str, ...]]:
    from kgen.specs.spec import short_name
    from kgen.sweep.space import parse_setting

    axes: dict[str, tuple[str, ...]] = {}
    for name, values in map(parse_setting, settings):
        if name in axes:
            word = short_name(name)
            raise UsageError(f"--axis {word} is given twice; list all values: {word}=A,B")
        axes[name] = values
    return axes


def _words(text: str | None) -> tuple[str, ...]:
    """Split a list; the axes of a variant that follow its colon stay with it."""
    found: list[str] = []
    for word in filter(None, (part.strip() for part in (text or "").split(","))):
        if found and "=" in word and ":" not in word:
            found[-1] += "," + word
        else:
            found.append(word)
    return tuple(found)


def _numbers(option: str, text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",") if word.strip()]
    if wrong := [word for word in words or [text] if not word.isdecimal()]:
        raise UsageError(f"{option} {text}: {wrong[0]!r} is not a number; write it as 257,4096")
    return tuple(int(word) for word in words)


def _provenance(on: str, is_elsewhere: bool, needs_device: bool) -> Provenance:
    """Describe this machine's run; planning needs no GPU, and workers tell of theirs."""
    from kgen.cli.targets import overlay
    from kgen.store.measurement import Provenance
    from kgen.timing.provenance import checkout_commit, this_run

    if not is_elsewhere:
        try:
            return this_run(on, overlay=overlay())
        except MissingTool:
            if needs_device:
                raise
    return Provenance(run="", measured_at="", device="", commit=checkout_commit())


def _why(planned: Plan) -> str:
    reasons = [f"{n:,} by the rule '{rule}'" for rule, n in planned.refused.most_common()]
    reasons += [f"{planned.filtered:,} by --where"] if planned.filtered else []
    return ", ".join(reasons) or "there were none"


def _run(
    planned: Plan, how: How, db: Path | None, scheduler: str | None, local_workers: int | None
) -> tuple[list[Measurement], bool]:
    """Measure what is not measured yet; return the rows of all, and whether Ctrl-C ended it."""
    from kgen.store.database import open_store
    from kgen.store.journal import Journal
    from kgen.sweep.estimate import run_s
    from kgen.sweep.jobs import jobs_of
    from kgen.timing.recovery import finish_killed_runs

    with open_store(db) as store, _place(how, scheduler, local_workers) as (hows, run):
        finish_killed_runs(journal := Journal(store))
        jobs = [jobs_of(planned, store, one.protocol, one.provenance, how.keep_all) for one in hows]
        every = [job for of_one in jobs for job in of_one]
        done = [row for job in every for row in job.done]
        work = {(one.variant, one.rows, one.cols): run_s(one, how) for one in planned.points}
        for row in done:
            work.pop((row.variant, row.rows, row.cols), None)
        with SweepProgress(sum(map(how.count, every)), work) as progress:
            try:
                run(jobs, journal, progress)
                interrupted = False
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            print(f"kgen: ended by Ctrl-C: {progress.told}; {_GO_ON}", file=sys.stderr)
    return _in_order(planned, done + progress.rows), interrupted


def _in_order(planned: Plan, rows: list[Measurement]) -> list[Measurement]:
    """Return rows in the order of the plan, copies last: who measured what when is no matter."""
    points = ((point.variant, point.rows, point.cols) for point in planned.points)
    places = {point: place for place, point in enumerate(points)}
    return sorted(rows, key=lambda row: places.get((row.variant, row.rows, row.cols), len(places)))


@contextmanager
def _place(how: How, scheduler: str | None, local_workers: int | None) -> Iterator[Place]:
    """Give how to measure on each kind of machine there is, and what runs the jobs of each."""
    if not (scheduler or local_workers):
        from kgen.sweep.measure import run_jobs

        yield [how], lambda jobs, record, watcher: run_jobs(jobs[0], how, record, watcher)
        return
    from kgen.sweep.cluster.distribute import run_distributed
    from kgen.sweep.cluster.workers import open_pool

    with open_pool(how, scheduler, local_workers) as pool:
        yield list(pool.hows.values()), functools.partial(run_distributed, pool)


def _tell(planned: Plan, measured: list[Measurement], out: Path | None, json: bool) -> str:
    """Print what the rows say; return why nothing valid is left, if that is so."""
    from kgen.cli.answer_tables import as_objects, print_answer
    from kgen.sweep.answer import answer

    if out:
        from kgen.store.export import write_json

        write_json(out, measured)
    found = answer(measured, planned.refused)
    if json:
        print_json(as_objects(found))
    else:
        print_answer(found)
    return found.why_empty
