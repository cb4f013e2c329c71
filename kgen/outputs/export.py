"""Writes a kernel with a PyCUDA script that compiles, verifies and times it without kgen."""

from __future__ import annotations

import math
from bisect import bisect_right
from pathlib import Path

from kgen.errors import UsageError
from kgen.evidence.reference import criterion
from kgen.files import write_atomically
from kgen.limits import MAX_GRID_BLOCKS, MAX_SHARED_BYTES, PORTABLE_CLUSTER_BLOCKS
from kgen.numpy_types import numpy_dtype
from kgen.outputs.build import place, write
from kgen.sources.kernels import kernels
from kgen.sources.layout import NOTHING
from kgen.sources.render import environment
from kgen.sources.source import Source
from kgen.specs.choice import Element
from kgen.specs.formula import Formula
from kgen.specs.rules import MAX_DIMENSION, static_shared_bytes, usual_shape
from kgen.specs.rules.shapes import most_rows
from kgen.specs.spec import Spec
from kgen.toolchain import CompileOptions


def export(source: Source, directory: Path) -> tuple[Path, Path]:
    """Write the source into `directory`, and a script of the file's name; return both paths.

    The script needs numpy and PyCUDA, but not kgen. Raises UsageError when the source is for the
    host, which no script of this kind can run, and when a file cannot be written.
    """
    if source.spec.is_host:
        raise UsageError(
            f"{source.filename} is plain C++ for the host and has no kernel for PyCUDA to launch; "
            "write it with kgen build and compile it with g++"
        )
    cu_path = write(source, directory)
    script_path = cu_path.with_suffix(".py")
    write_atomically(script_path, script(source))
    return cu_path, script_path


def script(source: Source) -> str:
    """Return the text of the script for a source whose spec is resolved and not for the host."""
    spec = source.spec
    arguments = (kernel.args for kernel in kernels(spec))
    max_cols, max_cols_reason = _longest_row(spec)
    default_rows, default_cols = usual_shape(spec)
    template = environment(spec.overlay).get_template("export.py.j2")
    text = template.render(
        s=spec,
        script_name=place(source, Path()).with_suffix(".py"),
        kernels=list(zip(source.kernels, arguments, strict=True)),
        nvcc_options=CompileOptions().flags(),
        uses_workspace=spec.workspace_bytes(1) > 0,
        max_rows=most_rows(spec),
        portable_cluster=PORTABLE_CLUSTER_BLOCKS,
        max_cols=max_cols,
        max_cols_reason=max_cols_reason,
        max_grid_blocks=MAX_GRID_BLOCKS,
        default_rows=default_rows,
        default_cols=min(default_cols, max_cols),
        asked=criterion(spec, max_cols),
        in_numpy=_in_numpy,
        power_of_two=lambda number: f"2.0**{math.frexp(number)[1] - 1}",
        x_is_bits=_is_bits(spec.dtype),
        y_is_bits=_is_bits(spec.out_dtype),
    )
    return text.replace(NOTHING, "")


def _is_bits(element: Element) -> bool:
    """Whether NumPy lacks the type, so that the script has its bits and converts them."""
    return numpy_dtype(element).kind == "V"


def _in_numpy(of: Formula, **names: str) -> str:
    """Return a formula of an operation as the script computes it, with other names for some."""
    return of.c({"exp": "np.exp", "log": "np.log", "abs": "np.abs", **names})


def _longest_row(spec: Spec) -> tuple[int, str]:
    """Return the most columns that a kernel takes on any GPU, and what limits them."""
    if spec.static_cols:
        return spec.static_cols, "The row length that the kernel was compiled for"
    if spec.in_registers:
        return int(spec.capacity), "The longest row that the register cache holds"
    if spec.takes_shared:
        free = MAX_SHARED_BYTES - static_shared_bytes(spec)
        most = range(free * spec.blocks_per_row)
        longest = bisect_right(most, free, key=spec.shared_bytes) - 1
        return longest, "The longest row that any GPU's shared memory holds"
    return MAX_DIMENSION, "The longest row that the kernel can count"
