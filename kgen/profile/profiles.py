"""The profiles of softmax calls: from ncu on a GPU, or from what ncu printed elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgen.errors import CheckFailed, UsageError
from kgen.profile.job import ProfileTarget
from kgen.profile.metrics import METRICS, value_of
from kgen.profile.parse import MeasuredLaunch, launches_in


@dataclass(frozen=True)
class Profile:
    """What is known of one softmax call: `values` by the keys of `METRICS`, None when not known.

    `name` is the variant or file that ran; `kernels` has the name and values of every launch.
    """

    name: str
    values: dict[str, float | None]
    kernels: tuple[tuple[str, dict[str, float | None]], ...]


def profile_on_gpu(
    jobs: Sequence[ProfileTarget], cache: str = "cold", timeout_s: float = 600.0
) -> tuple[list[Profile], str]:
    """Return a profile a job, measured by ncu on the GPU at hand, and all that ncu printed.

    `cache` is `cold` (caches are flushed before every pass over a kernel) or `warm`. The kernels
    are compiled first, so that ncu watches nothing else. Raises MissingTool without an ncu, a GPU,
    PyCUDA, nvcc or the permission to read the counters; CompileFailed; CheckFailed when ncu fails
    or a result is wrong; UsageError when a job cannot be run.
    """
    from kgen import gpu
    from kgen.profile.ncu import CACHES, find_ncu, watched
    from kgen.toolchain import compile_cubin

    if cache not in CACHES:
        raise UsageError(f"--cache {cache}: caches are {' or '.join(CACHES)}")
    sources = [job.source() for job in jobs]
    ncu, arch = find_ncu(), gpu.device_info().arch
    for source in sources:
        compile_cubin(source, arch)
    printed = watched(ncu, jobs, cache, timeout_s)
    return profiles_in(printed, jobs), printed


def profiles_in(printed: str, jobs: Sequence[ProfileTarget]) -> list[Profile]:
    """Return a profile a job from what ncu printed when it watched them, in whatever order.

    Launches of other kernels are passed over. Raises CheckFailed when the jobs' kernels are not
    those that ran, and what `launches_in` raises.
    """
    kernels = [job.source().kernels for job in jobs]
    ours = {kernel for names in kernels for kernel in names}
    launches = [launch for launch in launches_in(printed) if launch.kernel in ours]
    left = list(launches)
    taken = [_take(left, names) for names in kernels]
    if left or not all(taken):
        raise CheckFailed(
            f"ncu measured {_names(launch.kernel for launch in launches)} where "
            f"{', '.join(map(str, jobs))} would launch {_names(n for ns in kernels for n in ns)}"
        )
    return [profile_of(job.variant, call) for job, call in zip(jobs, taken, strict=True)]


def _take(left: list[MeasuredLaunch], kernels: Sequence[str]) -> list[MeasuredLaunch]:
    """Remove the first launches of just these kernels, one after the other, and return them."""
    for start in range(len(left)):
        found = left[start : start + len(kernels)]
        if [launch.kernel for launch in found] == list(kernels):
            del left[start : start + len(kernels)]
            return found
    return []


def _names(kernels: Iterable[str]) -> str:
    return ", ".join(kernels) or "none of their kernels"


def profiles_of_launches(printed: str) -> list[Profile]:
    """Return a profile for every launch in what ncu printed, called as its kernel."""
    return [profile_of(launch.kernel, [launch]) for launch in launches_in(printed)]


def profile_of(name: str, launches: Sequence[MeasuredLaunch]) -> Profile:
    """Return the profile of the softmax call that these launches make."""
    return Profile(
        name, _values(launches), tuple((launch.kernel, _values([launch])) for launch in launches)
    )


def _values(launches: Sequence[MeasuredLaunch]) -> dict[str, float | None]:
    measured = [launch.measured for launch in launches]
    return {metric.key: value_of(metric, measured) for metric in METRICS}
