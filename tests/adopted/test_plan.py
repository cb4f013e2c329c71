"""What the launches of an adopted file are, and which cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgen.adopted.source import adopted_source
from kgen.errors import KernelFault, LaunchRefused
from kgen.launch import LaunchPlan
from tests.adopted.files import adopted, guessed

KERNEL = """__global__ void softmax(const float* x, float* y, int total, float scale) {
    y[blockIdx.x] = expf(scale * x[blockIdx.x]);
}
"""


def planned(folder: Path, host: str, rows: int, cols: int) -> LaunchPlan:
    path = folder / "k.cu"
    path.write_text(
        KERNEL + f"void go(const float* x, float* y, int rows, int cols) {{ {host} }}\n"
    )
    source = adopted_source(path, guessed(path.read_text()).sidecar)
    return source.contract.plan(rows, cols)  # type: ignore[union-attr]


def test_numbers_have_the_types_of_their_parameters(tmp_path: Path) -> None:
    host = "softmax<<<rows, dim3(32, 2)>>>(x, y, rows * cols, 0.5f);"
    (launch,) = planned(tmp_path, host, 3, 7).launches
    assert launch.args == ("x", "y", "total=", "scale=")
    assert [(one.format, one.value) for one in launch.numbers] == [("i", 21), ("f", 0.5)]
    assert (launch.block, launch.block_shape, launch.grid_shape) == (64, (32, 2), (3, 1))


def test_a_number_that_is_too_large_is_a_fault(tmp_path: Path) -> None:
    host = "softmax<<<rows, 32>>>(x, y, rows * cols, 1.0f);"
    with pytest.raises(KernelFault, match="2147483648 does not fit int total of softmax"):
        planned(tmp_path, host, 1 << 20, 1 << 11)


def test_what_cannot_be_computed_is_no_launch(tmp_path: Path) -> None:
    host = "softmax<<<rows / (cols / 4), 32>>>(x, y, rows, 1.0f);"
    with pytest.raises(LaunchRefused, match="cannot be computed for 8 x 3"):
        planned(tmp_path, host, 8, 3)


def test_an_empty_matrix_has_no_launches() -> None:
    assert adopted("in_place").contract.plan(0, 5).launches == ()  # type: ignore[union-attr]


def test_buffers_between_kernels_grow_with_the_rows() -> None:
    made = adopted("three_kernels").contract.plan(6, 100)  # type: ignore[union-attr]
    assert {one.name: (one.nbytes, one.initial) for one in made.buffers} == {
        "d_max": (24, None),
        "d_sum": (24, None),
    }
    assert adopted("in_place").contract.plan(6, 100).in_place  # type: ignore[union-attr]
