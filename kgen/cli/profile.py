"""The command that asks NVIDIA's profiler what kernels do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kgen.cli.console import Json, On, Variants, print_json, print_table, time_option
from kgen.errors import UsageError
from kgen.limits import DEFAULT_ARCH

if TYPE_CHECKING:
    from kgen.profile import Metric, Profile, ProfileTarget

# What --on cpu takes from the compiler, where there is one.
_COMPILER_TELLS = ("registers", "theoretical_occupancy_percent")


class Columns(NamedTuple):
    """The profiles of one origin: a title, and what JSON says of each besides its values."""

    title: str
    facts: dict[str, Any]
    profiles: list[Profile]


def profile(
    variants: Variants = None,
    rows: Annotated[int, typer.Option(help="Rows of the matrix.")] = 1024,
    cols: Annotated[int, typer.Option(help="Elements of a row.")] = 4096,
    cache: Annotated[
        str, typer.Option(help="cold: flush caches before every pass; warm: leave them.")
    ] = "cold",
    csv_files: Annotated[
        list[Path] | None,
        typer.Option("--csv-file", help="Read what ncu --csv printed instead of running ncu."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep what ncu printed in this file.")] = None,
    timeout: Annotated[float, time_option(0.1, "Seconds that ncu may take.")] = 600,
    on: On = "gpu",
    json: Json = False,
) -> None:
    """Profile variants with Nsight Compute, side by side; --on cpu tells what can be counted."""
    from kgen.execute import require_place
    from kgen.profile import ProfileTarget
    from kgen.profile.ncu import CACHES

    require_place(on)
    if cache not in CACHES:
        raise UsageError(f"--cache {cache}: caches are {' or '.join(CACHES)}")
    from kgen.cli.targets import used_overlay

    jobs = [ProfileTarget(variant, rows, cols, used_overlay()) for variant in variants or ()]
    if not jobs and not csv_files:
        raise UsageError("name variants or .cu files to profile, or output of ncu with --csv-file")
    if csv_files:
        found = [_recorded(path, jobs) for path in csv_files]
    else:
        found = [_measured(jobs, cache, timeout, out) if on == "gpu" else _counted(jobs)]
    if json:
        print_json([_as_json(profile, one.facts) for one in found for profile in one.profiles])
    else:
        _print_profiles(found, on == "cpu" and not csv_files)


def _recorded(path: Path, jobs: list[ProfileTarget]) -> Columns:
    """Return the profiles of the jobs, or without any those of all launches, in a file of ncu's."""
    from kgen.profile import profiles_in, profiles_of_launches

    try:
        printed = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    profiles = profiles_in(printed, jobs) if jobs else profiles_of_launches(printed)
    return Columns(path.name, {"file": str(path)}, profiles)


def _measured(jobs: list[ProfileTarget], cache: str, timeout: float, out: Path | None) -> Columns:
    from kgen.files import write_atomically
    from kgen.gpu import device_info
    from kgen.profile import profile_on_gpu

    profiles, printed = profile_on_gpu(jobs, cache, timeout)
    if out:
        write_atomically(out, printed)
    device = device_info().name
    title = f"{jobs[0].rows} x {jobs[0].cols} on {device}, {cache} caches, by ncu"
    return Columns(title, {**_shape(jobs), "on": "gpu", "device": device, "cache": cache}, profiles)


def _counted(jobs: list[ProfileTarget]) -> Columns:
    from kgen.profile.counted import profile_on_cpu

    title = f"{jobs[0].rows} x {jobs[0].cols} on the CPU"
    profiles = [profile_on_cpu(job, DEFAULT_ARCH) for job in jobs]
    return Columns(title, {**_shape(jobs), "on": "cpu", "arch": DEFAULT_ARCH}, profiles)


def _shape(jobs: list[ProfileTarget]) -> dict[str, Any]:
    return {"rows": jobs[0].rows, "cols": jobs[0].cols}


def _as_json(profile: Profile, facts: dict[str, Any]) -> dict[str, Any]:
    kernels = [{"kernel": kernel, **values} for kernel, values in profile.kernels]
    return {"variant": profile.name, **facts, **profile.values, "kernels": kernels}


def _print_profiles(found: list[Columns], is_counted: bool) -> None:
    from kgen.profile import METRICS

    # The same kernel in several files: its columns are told apart by the files' names.
    names = [
        f"{profile.name} in {one.title}>" if len(found) > 1 else f"{profile.name}>"
        for one in found
        for profile in one.profiles
    ]
    profiles = [profile for one in found for profile in one.profiles]
    table = [
        (_label(metric), *(_cell(metric, profile, is_counted) for profile in profiles))
        for metric in METRICS
    ]
    print_table(", ".join(one.title for one in found), ("metric", *names), table)
    if is_counted:
        print(
            "The CPU executor counts and does not time: ncu tells the rest on a GPU (--on gpu). "
            f"Registers and occupancy are those of {found[0].facts['arch']}."
        )


def _label(metric: Metric) -> str:
    return f"{metric.name} ({metric.unit})" if metric.unit else metric.name


def _cell(metric: Metric, profile: Profile, is_counted: bool) -> str:
    """Return a value with the separators of thousands, or what it would take to have it."""
    value = profile.values[metric.key]
    if value is not None:
        return f"{value:,.{metric.decimals}f}"
    if not is_counted:
        return "n/a"
    return "needs nvcc" if metric.key in _COMPILER_TELLS else "needs ncu"
