"""Runs a source on a matrix, on the CPU or on a GPU: the same file, the same launch plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import UsageError
from kgen.launch import plan, plan_last_rows
from kgen.numpy_types import numpy_dtype
from kgen.overlay import OURS, Overlay
from kgen.sources.edited import read_source
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32, choices
from kgen.specs.rules import require_valid
from kgen.specs.spec import Spec
from kgen.specs.variants import checked, spelling
from kgen.text import names_a_file

if TYPE_CHECKING:
    from kgen.cpu.observation import Observation
    from kgen.toolchain import CompileOptions

Target = Spec | Source
PLACES = ("cpu", "gpu")


def require_place(on: str) -> None:
    """Raise UsageError for a place where no kernels run."""
    if on not in PLACES:
        raise UsageError(f"on={on!r}: kernels run on {' or '.join(PLACES)}")


def find_target(text: str, overlay: Overlay = OURS) -> Target:
    """Return what a user named: the spec of a variant, or the source in a `.cu` file.

    Raises UsageError for an unknown version or axis, an invalid spec or an unreadable file.
    """
    if not isinstance(text, str):
        raise UsageError(f"{text!r} names no kernel; give a variant such as 'v7:items=4' or a file")
    return read_file(text, overlay) if names_a_file(text) else checked(text, overlay)


def read_file(text: str, overlay: Overlay = OURS) -> Source:
    """Return the source in a file: an adopted one, or one that kgen generated.

    `softmax.cu:BLOCK=128` is an adopted file with a constant set. Raises UsageError.
    """
    from kgen.adopted.source import is_adopted, read_adopted

    return read_adopted(text) if is_adopted(text) else read_source(Path(text), overlay)


def target_name(target: Target) -> str:
    """Return what a user calls the target: the variant, or the path of an edited file."""
    if isinstance(target, Source):
        return target.contract.label if target.contract else target.shown_name
    return spelling(target)


def target_spec(target: Target) -> Spec:
    """Return the spec of a target; of an edited file it is the header's."""
    return target.spec if isinstance(target, Source) else target


def require_kernel(target: Target, instead: str) -> None:
    """Raise UsageError for plain C++ for the host, which says what to do `instead`."""
    if target.is_host:
        raise UsageError(
            f"{target_name(target)} is plain C++ for the host, not a kernel: {instead}"
        )


def source_for(target: Target, rows: int, cols: int) -> Source:
    """Return the source that runs on a rows x cols matrix, `auto` items resolved for its rows.

    Raises UsageError when the target cannot run on that shape.
    """
    require_shape(target, rows, cols)
    return target if isinstance(target, Source) else render(target.resolve(max(cols, 1)))


def require_shape(target: Target, rows: int, cols: int) -> None:
    """Raise UsageError for a shape that a target cannot run on."""
    if isinstance(target, Source) and target.contract:
        target.contract.require(rows, cols)
    else:
        require_valid(target_spec(target), rows, cols)


def run(
    target: Target,
    x: NDArray[Any],
    on: str = "cpu",
    options: CompileOptions | None = None,
    schedule: str = "in_order",
    timeout_s: float = 120.0,
    offsets: tuple[int, int] = (0, 0),
) -> NDArray[Any]:
    """Return the row-wise softmax of `x`, computed by the kernel.

    `x` is of the kernel's type, 1-D (one row) or 2-D, with any strides; the result has its shape.
    `options` are compiler flags of the GPU's side; `schedule` is the order of threads on the CPU's,
    where the kernels may take `timeout_s` seconds and x and y start `offsets` elements off an
    aligned address. Raises UsageError for an unsuitable array, shape or place, KernelFault when the
    kernel breaks CUDA's rules, MissingTool when a compiler or device is not on this machine.
    """
    require_place(on)
    if on == "gpu":
        require_kernel(target, "run it on the CPU, with --on cpu")
    matrix = as_matrix(x, target_spec(target).dtype)
    source = source_for(target, *matrix.shape)
    launches = plan(source, *matrix.shape)
    if on == "gpu":
        from kgen import gpu
        from kgen.toolchain import CompileOptions

        y = gpu.run(source, launches, matrix, options or CompileOptions())
    else:
        from kgen import cpu

        y = cpu.run(
            source, launches, matrix, schedule=schedule, timeout_s=timeout_s, offsets=offsets
        )
    return y.reshape(x.shape)


def run_last_rows(
    target: Target, x: NDArray[Any], rows: int, timeout_s: float = 120.0
) -> NDArray[Any]:
    """Return the softmax of `x` computed, on the CPU, as the last rows of a matrix of `rows` rows.

    The other rows have addresses and no memory; how many they are is a multiple of the rows of a
    block. The errors are those of `run`; a kernel that accesses other rows raises KernelFault.
    """
    from kgen import cpu

    count, cols = x.shape
    source = source_for(target, rows, cols)
    return cpu.run(source, plan_last_rows(source, rows, cols, count), x, timeout_s=timeout_s)


def observe(
    target: Target,
    x: NDArray[Any],
    schedule: str = "in_order",
    seed: int = 0,
    timeout_s: float = 120.0,
    offsets: tuple[int, int] = (0, 0),
) -> Observation:
    """Return what the kernel does with `x` on the CPU: every access, counted and checked.

    `x`, `offsets` and the errors are as for `run`; the observation's `y` has rows x cols. A fault
    that ends the run after something was found is an ObservedFault. Raises MissingTool when the
    compiler is not GCC.
    """
    from kgen import cpu

    matrix = as_matrix(x, target_spec(target).dtype)
    source = source_for(target, *matrix.shape)
    launches = plan(source, *matrix.shape)
    return cpu.observe(
        source, launches, matrix, schedule=schedule, seed=seed, timeout_s=timeout_s, offsets=offsets
    )


def as_matrix(x: NDArray[Any], element: Element = FLOAT32) -> NDArray[Any]:
    """Return `x` as a C-contiguous rows x cols matrix of elements.

    Raises UsageError if it cannot be one.
    """
    # Of what adds a mask or a unit to its numbers, a kernel would see the bare numbers.
    if type(x) not in (np.ndarray, np.memmap):
        hint = ": numpy.ma.filled(x, -numpy.inf)" if isinstance(x, np.ma.MaskedArray) else ""
        raise UsageError(
            f"the input is a {type(x).__name__}; kernels take a plain NumPy array{hint}"
        )
    if x.dtype != (wanted := numpy_dtype(element)):
        axis = f", or use dtype={x.dtype}" if str(x.dtype) in choices("dtype") else ""
        raise UsageError(
            f"the input is {x.dtype}, and the kernel takes {wanted}: convert the input{axis}"
        )
    if x.ndim not in (1, 2):
        raise UsageError(f"the input has {x.ndim} dimensions; kernels take 1 (one row) or 2")
    return np.ascontiguousarray(x.reshape(1, -1) if x.ndim == 1 else x)
