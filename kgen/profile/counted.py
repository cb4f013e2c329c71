"""The part of a profile that is known without a GPU: what the CPU executor counts, and what the
compiler says.
"""

from __future__ import annotations

from kgen.errors import MissingTool
from kgen.evidence.inputs import make
from kgen.execute import observe
from kgen.profile.job import ProfileTarget
from kgen.profile.metrics import METRICS
from kgen.profile.parse import MeasuredLaunch
from kgen.profile.profiles import Profile, profile_of
from kgen.sources.source import Source

# What is counted here goes by ncu's names, so that launches are put together in one way.
_NCU_NAMES = {metric.key: metric.ncu for metric in METRICS}


def profile_on_cpu(job: ProfileTarget, arch: str) -> Profile:
    """Return the loads and stores that the CPU executor counts, and where there is an nvcc the
    registers and occupancy on `arch`; all else is None.

    Raises UsageError when the job cannot be run, CompileFailed when a compiler refuses its source,
    KernelFault when it breaks CUDA's rules, MissingTool without GCC.
    """
    source = job.source()
    resources = _resources(source, job.cols, arch)
    launches = []
    for counts in observe(
        source, make("uniform", job.rows, job.cols, element=source.spec.dtype)
    ).counts:
        counted = {"global_loads": counts.global_loads, "global_stores": counts.global_stores}
        known = {**counted, **resources.get(counts.kernel, {})}
        measured = {_NCU_NAMES[key]: value for key, value in known.items()}
        launches.append(MeasuredLaunch(counts.kernel, measured))
    return profile_of(job.variant, launches)


def _resources(source: Source, cols: int, arch: str) -> dict[str, dict[str, float]]:
    """Return what each kernel takes; nothing where there is no nvcc."""
    from kgen.outputs.build import kernel_reports
    from kgen.toolchain import compile_cubin

    try:
        binary = compile_cubin(source, arch)
    except MissingTool:
        return {}
    return {
        row.kernel: {
            "registers": row.registers,
            "theoretical_occupancy_percent": 100 * row.occupancy,
        }
        for row in kernel_reports(source, binary, cols)
    }
