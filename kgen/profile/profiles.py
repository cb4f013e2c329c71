"""The profiles of softmax calls: from ncu on a GPU, or from what ncu printed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgen.errors import CheckFailed, UsageError
from kgen.profile.job import Job
from kgen.profile.metrics import METRICS, value_of
from kgen.profile.parse import Launch, parse


@dataclass(frozen=True)
class Profile:
    """What is known of one softmax call: `values` by the keys of `METRICS`, None when not known.

    `name` is the variant or file that ran; `kernels` has the name and values of every launch.
    """

    name: str
    values: dict[str, float | None]
    kernels: tuple[tuple[str, dict[str, float | None]], ...]


def profile_on_gpu(
    jobs: Sequence[Job], cache: str = "cold", timeout_s: float = 600.0
) -> tuple[list[Profile], str]:
    """Return a profile a job, measured by ncu on the GPU at hand, and all that ncu printed.

    `cache` is `cold` (caches are flushed before every pass over a kernel) or `warm`. The kernels
    are compiled first, so that ncu watches nothing else. Raises MissingTool without an ncu, a GPU,
    PyCUDA, nvcc or the permission to read the counters; CompileFailed; CheckFailed when ncu fails
    or a result is wrong; UsageError when a job cannot be run.
    """
    from kgen import gpu
    from kgen.profile.ncu import CACHES, find_ncu, measure
    from kgen.toolchain import compile_cubin

    if cache not in CACHES:
        raise UsageError(f"--cache {cache}: caches are {' or '.join(CACHES)}")
    sources = [job.source() for job in jobs]
    ncu, arch = find_ncu(), gpu.device_info().arch
    for source in sources:
        compile_cubin(source, arch)
    printed = measure(ncu, jobs, cache, timeout_s)
    return profiles_in(printed, jobs), printed


def profiles_in(printed: str, jobs: Sequence[Job]) -> list[Profile]:
    """Return a profile a job from what ncu printed when it watched these jobs, in this order.

    Launches of other kernels are passed over. Raises CheckFailed when the jobs' kernels are not
    those that ran, and what `parse` raises.
    """
    expected = [(job.variant, job.source().kernels) for job in jobs]
    ours = {kernel for _, kernels in expected for kernel in kernels}
    launches = [launch for launch in parse(printed) if launch.kernel in ours]
    ran = [launch.kernel for launch in launches]
    if ran != [kernel for _, kernels in expected for kernel in kernels]:
        raise CheckFailed(
            f"ncu measured the kernels {', '.join(ran) or 'of other variants only'}, and "
            f"{' '.join(map(str, jobs))} launches {', '.join(k for _, ks in expected for k in ks)}"
        )
    left = iter(launches)
    return [profile_of(name, [next(left) for _ in kernels]) for name, kernels in expected]


def profiles_of_launches(printed: str) -> list[Profile]:
    """Return a profile for every launch in what ncu printed, called as its kernel."""
    return [profile_of(launch.kernel, [launch]) for launch in parse(printed)]


def profile_of(name: str, launches: Sequence[Launch]) -> Profile:
    """Return the profile of the softmax call that these launches make."""
    return Profile(
        name, _values(launches), tuple((launch.kernel, _values([launch])) for launch in launches)
    )


def _values(launches: Sequence[Launch]) -> dict[str, float | None]:
    measured = [launch.measured for launch in launches]
    return {metric.key: value_of(metric, measured) for metric in METRICS}
