"""The command that gives the studies' statements their verdicts on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgen.cli.bench import Db
from kgen.cli.console import Json, On, print_json, print_table, time_option
from kgen.errors import CheckFailed, MachineTrouble, UsageError

if TYPE_CHECKING:
    from kgen.store.database import Store
    from kgen.store.measurement import Measurement
    from kgen.studies.facts import Profiles
    from kgen.studies.reproduce import MeasureShape
    from kgen.studies.result import StudyResult
    from kgen.studies.tables import Study


def reproduce(
    on: On = "gpu",
    l2: Annotated[str, typer.Option(help="State of the L2 cache: warm, cold or both.")] = "both",
    study: Annotated[str, typer.Option(help="The study: k, 1d, report, ours or all.")] = "all",
    profile: Annotated[
        bool, typer.Option("--profile", help="Also ask Nsight Compute, for verdicts on causes.")
    ] = False,
    seconds: Annotated[float | None, time_option(0, "Budget of the rounds of a shape.")] = None,
    db: Db = None,
    out: Annotated[Path | None, typer.Option(help="Write the result to this JSON file.")] = None,
    json: Json = False,
) -> None:
    """Measure what the studies measured and judge their statements; --on cpu counts only."""
    import msgspec

    from kgen.studies.grids import grids
    from kgen.studies.result import write_result

    result = reproduced(on, l2, study, profile, seconds, db)
    if out:
        write_result(out, result)
    if json:
        print_json(msgspec.to_builtins(result))
    else:
        for grid in grids(result):
            print_table(grid.title, grid.columns, grid.rows)
            print("".join(f"{note}\n" for note in grid.notes))
    require_sound(result)


def reproduced(
    on: str = "gpu",
    l2: str = "both",
    study: str = "all",
    profile: bool = False,
    seconds: float | None = None,
    db: Path | None = None,
) -> StudyResult:
    """Return the result of a reproduction, telling on standard error how far it is.

    The rounds of a shape may take `seconds`; what was measured is kept in the database at `db`.

    Raises UsageError for an unknown choice, MissingTool without a GPU (`on` is gpu) or a
    C++ compiler (cpu) or, with `profile`, without Nsight Compute.
    """
    from kgen.execute import require_place
    from kgen.studies.reproduce import reproduce as run

    require_place(on)
    if profile and on != "gpu":
        raise UsageError(f"--profile with --on {on}: only kernels on a GPU are profiled")
    studies, states = _studies(study), _l2_states(l2)
    if on == "cpu":
        from kgen.cpu import find_cxx

        find_cxx()  # without which nothing at all can be said
        return run(None, studies, states, tell=_tell)
    from kgen.gpu import device_info
    from kgen.store.database import open_store

    arch = device_info().arch
    profiles = _profiles(studies) if profile else {}
    with open_store(db) as store:
        return run(_timing(store, seconds), studies, states, arch, profiles, _tell)


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _studies(study: str) -> frozenset[Study]:
    from kgen.studies.tables import Study

    if study == "all":
        return frozenset(Study)
    if study not in list(Study):
        raise UsageError(f"--study {study}: the studies are {', '.join(Study)} or all")
    return frozenset({Study(study)})


def _l2_states(l2: str) -> tuple[str, ...]:
    from kgen.studies.times import L2_STATES
    from kgen.timing.protocol import find_l2

    return L2_STATES if l2 == "both" else (find_l2(l2),)


def _timing(store: Store, seconds: float | None) -> MeasureShape:
    """Return what measures a shape; the store has its rounds at once, whatever becomes of it."""
    from kgen.store.journal import Journal
    from kgen.timing import bench
    from kgen.timing.protocol import find_protocol
    from kgen.timing.provenance import this_run
    from kgen.timing.recovery import finish_killed_runs

    finish_killed_runs(journal := Journal(store))
    provenance = this_run()

    def measure_shape(variants: list[str], rows: int, cols: int, l2: str) -> list[Measurement]:
        protocol = find_protocol("rotated", l2, budget_s=seconds)
        return bench.measure_shape(variants, rows, cols, protocol, provenance, record=journal)

    return measure_shape


def _profiles(studies: frozenset[Study]) -> Profiles:
    """Return what Nsight Compute says, with cold caches, of the variants that verdicts are on."""
    from kgen.profile import ProfileTarget, profile_on_gpu
    from kgen.studies.reproduce import profiled

    jobs = profiled(studies)
    _tell(f"profiling {len(jobs)} variants")
    found, _ = profile_on_gpu([ProfileTarget(*job) for job in jobs]) if jobs else ([], "")
    return {job: profile.values for job, profile in zip(jobs, found, strict=True)}


def require_sound(result: StudyResult) -> None:
    """Raise CheckFailed if counts are not the report's, or a variant is wrong or failed.

    Raises MachineTrouble if the machine lacked something for one.
    """
    from kgen.store.measurement import Outcome

    timings = [
        (timing.outcome, f"{cell.variant} at {cell.rows} x {cell.cols}: {timing.reason}")
        for table in result.tables
        for cell in table.cells
        for timing in cell.timings
    ]
    broken = [why for outcome, why in timings if outcome in (Outcome.WRONG, Outcome.FAILED)]
    stopped = [why for outcome, why in timings if outcome is Outcome.MACHINE_TROUBLE]
    broken += [
        f"{row.variant} at {row.rows} x {row.cols} has {row.own_loads} loads and {row.own_stores} "
        f"stores, not {row.loads} and {row.stores}"
        for row in result.counts
        if row.own_loads is not None and not row.agrees
    ]
    if broken:
        raise CheckFailed("; ".join(dict.fromkeys(broken)))
    if stopped:
        raise MachineTrouble(
            f"{stopped[0]}; {len(stopped)} met machine trouble: run the same again"
        )
