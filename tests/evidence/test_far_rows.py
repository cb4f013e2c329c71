"""Rows far into a matrix: offsets that do not fit 32 bits are tried, and wrapped ones are found."""

from dataclasses import replace

import pytest

from kgen.evidence.check import CheckRow, boundary_cols, check, check_far_rows
from kgen.evidence.far_rows import far_rows, far_shape
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.rules import problems_for
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS

pytestmark = pytest.mark.slow

GPU_VERSIONS = [name for name in VERSIONS if name != "cpu"]
WIDE = "static_cast<size_t>(row) *"


# Where all blocks run at the same time, there are too few of them for such matrices.
WITH_FAR_ROWS = [name for name in GPU_VERSIONS if not VERSIONS[name].spec.row_split.is_co_resident]


def mutant(variant: str, old: str, new: str) -> Source:
    source = render(checked(variant).resolve(1025))
    assert old in source.text
    return replace(source, text=source.text.replace(old, new))


def far_row(source: Source) -> CheckRow:
    (row,) = check_far_rows(source)
    return row


@pytest.mark.parametrize("variant", [*WITH_FAR_ROWS, "v5:row_map=thread", "t1:tile=4096"])
def test_the_first_row_of_the_shape_is_past_even_an_unsigned_index_of_float4(variant: str) -> None:
    spec = checked(variant)
    shape = far_shape(spec, boundary_cols(spec))
    assert shape and not problems_for(spec, *shape)
    rows, cols = shape
    first_row = rows - far_rows(spec)
    assert first_row * cols >= 2**34 and first_row % spec.rows_per_block == 0
    assert rows % spec.rows_per_block == 1 % spec.rows_per_block


def test_where_there_are_no_more_rows_the_shape_is_past_an_unsigned_offset() -> None:
    spec = checked("v5:static_cols=4")
    rows, cols = far_shape(spec, boundary_cols(spec)) or (0, 0)
    assert cols == 4 and (rows - far_rows(spec)) * cols == 2**32


@pytest.mark.parametrize("variant", ["cpu", "v5:static_cols=1", "t1:tile=1"])
def test_what_runs_on_no_such_matrix_has_no_far_rows(variant: str) -> None:
    assert list(check_far_rows(checked(variant))) == []


def test_far_rows_are_checked_unless_shapes_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgen.evidence.check.boundary_shapes", lambda spec: [(2, 3)])
    near, far = check(checked("v5"))
    assert (near.rows, near.ok) == (2, True)
    assert far.rows * far.cols > 2**34 and far.ok and 0 < far.max_rel_error < 1e-6
    assert [row.rows for row in check(checked("v5"), shapes=[(2, 3)])] == [2]


@pytest.mark.parametrize("variant", ["k1", "v5", "v7", "v8", "v9", "t1", "v9:row_map=thread"])
@pytest.mark.parametrize(
    ("old", "new"),
    [(WIDE, "row *"), ("const size_t row_start", "const unsigned row_start")],
)
def test_a_narrow_offset_is_named_with_its_line(variant: str, old: str, new: str) -> None:
    row = far_row(mutant(variant, old, new))
    assert not row.ok and row.found_by == "fault"
    assert ": an offset overflows 32 bits: access to byte " in row.reason
    assert row.reason.startswith("softmax_") and ".cu:" in row.reason


@pytest.mark.parametrize("variant", ["v5", "v9", "t1"])
def test_a_narrow_offset_of_the_output_alone_is_seen(variant: str) -> None:
    row = far_row(mutant(variant, "y + row_start", "y + static_cast<int>(row_start)"))
    assert " of y instead of byte " in row.reason


def test_a_narrow_index_of_vectors_is_seen() -> None:
    index = "static_cast<unsigned>(row_start / 4)"
    vectors = f"reinterpret_cast<const float*>(reinterpret_cast<const float4*>(x) + {index})"
    row = far_row(mutant("v8:static_cols=1000", "x_row = x + row_start", f"x_row = {vectors}"))
    assert ": an offset overflows 32 bits: access to byte " in row.reason


def test_a_write_beside_the_chosen_rows_is_seen() -> None:
    row = far_row(mutant("v5", "y_row = y + row_start", "y_row = y + row_start - cols"))
    assert "wrote outside y, to element 171798" in row.reason


def test_a_wrong_far_row_is_told_to_be_one_of_the_last() -> None:
    row = far_row(mutant("v5", "* inverse_sum;", "* (blockIdx.x < 1000000 ? inverse_sum : 1.0f);"))
    assert row.found_by == "result"
    assert row.reason.startswith("of the last 5 rows, input zeros: element (row 0, column 0) is 1")
