"""The command that explores combinations: sweep."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli import INTERRUPTED
from kgen.cli.bench import Db, require_kernels, require_undisturbed
from kgen.cli.complete import complete_axis, complete_variants
from kgen.cli.console import Dtype, Json, On, OutDtype, print_json, time_option
from kgen.cli.dry_run import print_plan
from kgen.cli.progress import SweepProgress
from kgen.errors import CheckFailed, MissingTool, UsageError
from kgen.text import names_a_file

if TYPE_CHECKING:
    from kgen.store.measurement import Measurement, Provenance
    from kgen.sweep.jobs import Job
    from kgen.sweep.measure import How
    from kgen.sweep.plan import Plan
    from kgen.timing.bench import Record

    # How to measure on each kind of machine, and what runs the jobs of each.
    Place = tuple[list[How], Callable[[list[list[Job]], Record, SweepProgress], None]]


_GO_ON = "the same command goes on from there"


def sweep(
    study: Annotated[
        Path | None,
        typer.Argument(help="A TOML file that describes a sweep, or an adopted .cu file."),
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
    dtype: Dtype = None,
    out_dtype: OutDtype = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(help="Values of an adopted file's constant: BLOCK=64,128; repeatable."),
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
    verified, counted, and ranked by a cost model. With shapes alone, what is likely to be fast is
    swept: the first by a cost model of what the newer versions and their axes combine to.
    All candidates are of one type, which --dtype and --out-dtype set.
    """
    from kgen.cli.adopt import sweep_file
    from kgen.cli.spaces import spaces
    from kgen.execute import require_place
    from kgen.sweep.halving import find_search
    from kgen.sweep.measure import How
    from kgen.sweep.plan import plan
    from kgen.timing.protocol import find_protocol

    typed = {"dtype": dtype, "out_dtype": out_dtype}
    is_file = bool(study and names_a_file(str(study)))
    if bool(constant) > is_file or (is_file and (axis or variants or where or all_ or dry_run)):
        raise UsageError(
            "an adopted file is swept by its constants: kgen sweep FILE.cu --constant NAME=VALUES, "
            "with --rows and --cols"
        )
    if study and is_file:
        sweep_file(study, constant or [], rows, cols, protocol, l2, seconds, timeout, db, on, json)
        return
    planned = plan(*spaces(study, rows, cols, variants, axis, where, all_, typed))
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
    if not (study or variants or axis or where or all_):
        planned = _likeliest(planned, how)
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
    require_undisturbed(measured)
    if why_empty:
        raise CheckFailed(why_empty)


def _likeliest(planned: Plan, how: How) -> Plan:
    """Return the plan of what is likely to be fast, and tell how much that is of what there is."""
    from kgen.cli.progress import duration
    from kgen.sweep.estimate import run_s
    from kgen.sweep.likely import likeliest

    chosen = likeliest(planned, lambda point: run_s(point, how))
    takes_s = sum(run_s(point, how) for point in chosen.points)
    told = f", about {duration(takes_s)} on the GPU" if how.on == "gpu" else ""
    print(
        f"kgen: no --variants, so the {len(chosen.points):,} likeliest of "
        f"{len(planned.points):,} candidates{told}",
        file=sys.stderr,
    )
    return chosen


def _provenance(on: str, is_elsewhere: bool, needs_device: bool) -> Provenance:
    """Describe this machine's run; planning needs no GPU, and workers tell of theirs."""
    from kgen.cli.targets import used_overlay
    from kgen.store.measurement import Provenance
    from kgen.timing.provenance import checkout_commit, this_run

    if not is_elsewhere:
        try:
            return this_run(on, overlay=used_overlay())
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
