"""The kernels of a file: their phases and their arguments."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.specs.spec import Spec


@dataclass(frozen=True)
class Kernel:
    """One kernel of a file: the suffix of its symbol, its phases, its arguments by plan name."""

    suffix: str
    phases: tuple[str, ...]
    args: tuple[str, ...]

    @property
    def publishes(self) -> bool:
        """Whether it leaves something for kernels after it."""
        return self.phases[-1] != "write"


def phases(spec: Spec) -> tuple[str, ...]:
    """Return the phases of a row in order; a reduction stands after each but the last."""
    if spec.is_online or spec.merge.is_paired:
        return ("scan", "write")
    return ("max", "sum", "write")


def kernels(spec: Spec) -> tuple[Kernel, ...]:
    """Return the kernels of a spec: one, or one a phase where blocks share a row."""
    if not spec.row_split.kernel_per_phase:
        meeting = ("workspace", "launch") if spec.runs_at_once else ()
        return (Kernel("", phases(spec), ("x", "y", *meeting, *_sizes(spec))),)
    return tuple(
        Kernel(f"_{phase}", (phase,), (*_buffers(spec, phase), "workspace", *_sizes(spec)))
        for phase in phases(spec)
    )


def _sizes(spec: Spec) -> tuple[str, ...]:
    return ("rows",) if spec.static_cols else ("rows", "cols")


def _buffers(spec: Spec, phase: str) -> tuple[str, ...]:
    if phase == "write":
        return ("y",) if spec.parks else ("x", "y")
    return ("x", "y") if spec.parks and phase != "max" else ("x",)
