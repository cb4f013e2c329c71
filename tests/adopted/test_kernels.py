"""The files of the folder, each adopted without an option and judged as the table has it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kgen.adopted.check import check_adopted
from kgen.evidence.failures import findings
from tests.adopted.files import KERNELS, adopted


@dataclass(frozen=True)
class Expected:
    """What a file is judged: right (on the sizes that it is found or said to take), or wrong.

    `found` are kinds of failures with a line of each (0: none is named), of which the first that
    is reported has to be one.
    """

    sizes: str | None = None
    limit: str = ""
    found: tuple[tuple[str, int], ...] = ()


EXPECTED = {
    "aliased_slots": Expected(found=(("race", 17),)),
    "any_order": Expected(),
    "block_small_shared": Expected(found=(("memory", 28),)),
    "block_two_level": Expected(),
    "block_unsaid": Expected(),
    "cg_missing_sync": Expected(found=(("race", 21),)),
    "cg_tiles": Expected(),
    "early_return": Expected(limit="cols >= 256", found=(("fault", 10),)),
    "float4_misaligned": Expected(found=(("fault", 10),)),
    "float4_rows": Expected(sizes="cols % 4 == 0"),
    "grid_of_two_dimensions": Expected(),
    "in_place": Expected(),
    "log_softmax": Expected(),
    "naive_int_overflow": Expected(found=(("fault", 5),)),
    "naive_thread": Expected(),
    "no_max_subtraction": Expected(found=(("result", 0),)),
    "online_branch": Expected(),
    "online_branchless": Expected(),
    "online_max_zero": Expected(found=(("result", 0),)),
    "online_no_rescale": Expected(found=(("result", 0),)),
    "registers_too_few": Expected(limit="cols <= 1024", found=(("fault", 9),)),
    "templated_off_by_one": Expected(found=(("memory", 21),)),
    "templated_registers": Expected(sizes="cols <= 1024 and cols % 2 == 0"),
    "thread_per_column": Expected(limit="cols <= 1024"),
    "three_kernels": Expected(),
    "tiles_of_eight": Expected(),
    "tree_missing_barrier": Expected(found=(("race", 17),)),
    "tree_shared": Expected(),
    "two_kernels_uninitialised": Expected(found=(("memory", 18),)),
    "vector_grid": Expected(sizes="rows == 1"),
    "vector_lost_tail": Expected(sizes="rows == 1", found=(("result", 0),)),
    "vector_one_block": Expected(sizes="rows == 1"),
    "warp_32_columns": Expected(limit="cols == 32"),
    "warp_rows": Expected(),
    "warp_wrong_mask": Expected(found=(("fault", 16),)),
}
# A few of each sort; the others take a minute together.
QUICK = ("warp_rows", "templated_off_by_one")


def test_the_table_has_every_file() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in KERNELS.glob("*.cu"))
    assert sum(bool(one.found) for one in EXPECTED.values()) >= 14


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow, id=name)
        for name in EXPECTED
    ],
)
def test_adopted_and_judged(name: str) -> None:
    expected, source = EXPECTED[name], adopted(name)
    judged = check_adopted(source, memory=True, races=True)
    found = findings(judged.rows)
    assert source.contract.sidecar.sizes == expected.sizes  # type: ignore[union-attr]
    assert judged.limit == expected.limit
    assert bool(found) == bool(expected.found), [one.message for one in found]
    if found:
        first = found[0]
        assert any(
            first.kind == kind and (not line or line in first.lines)
            for kind, line in expected.found
        ), first
    if expected.limit:
        assert any(remark.startswith("right for ") for remark in judged.remarks)
