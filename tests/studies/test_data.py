"""The studies as data: every variant exists, has the shape, and is spelt as measurements are."""

from __future__ import annotations

import pytest

from kgen.specs.rules import problems_for
from kgen.specs.variants import checked, spelling
from kgen.studies import counts, registers
from kgen.studies.claims import Timed, all_statements
from kgen.studies.crossover import SWEEPS
from kgen.studies.dissections import all_dissections
from kgen.studies.reproduce import ALL, needed, profiled
from kgen.studies.tables import TABLES, Study

JOBS = sorted(
    {(variant, *shape) for shape, variants in needed().items() for variant in variants}
    | set(profiled())
    | {(row.variant, row.rows, row.cols) for row in counts.REPORTED}
    | {(row.variant, 1, row.cols) for row in registers.REPORTED}
)


@pytest.mark.parametrize(("variant", "rows", "cols"), JOBS)
def test_variants_are_valid_and_canonical(variant: str, rows: int, cols: int) -> None:
    spec = checked(variant)
    assert spelling(spec) == variant
    assert problems_for(spec, rows, cols) == []
    assert spec.items_per_thread is None


def test_a_shape_has_all_its_variants_once() -> None:
    shapes = needed()
    for table in TABLES:
        for cell in table.cells:
            assert shapes[cell.rows, cell.cols].count(cell.variant) == 1
    for statement in all_statements():
        for part in statement.parts:
            if isinstance(part, Timed):
                assert {part.a, part.b} <= set(shapes[part.shape])
    for dissection in all_dissections():
        for pair in dissection.comparisons:
            assert {pair.a, pair.b} <= set(shapes[pair.shape])
    for sweep in SWEEPS:
        assert all({sweep.a, sweep.b} <= set(shapes[sweep.rows, cols]) for cols in sweep.lengths)


def test_studies_are_apart() -> None:
    assert list(needed(frozenset({Study.K}))) == [(256, 65536)]
    one_row = needed(frozenset({Study.ONE_ROW}))
    assert list(one_row) == [(1, 2**power) for power in range(10, 25)]
    assert all(variants == ["c1", "t1", "t2"] for variants in one_row.values())
    ours = needed(frozenset({Study.OURS}))
    assert set(ours) >= {(262144, 32), (65536, 127), (8192, 4097), (256, 65536), (1, 2**20)}
    theirs = needed(ALL - {Study.OURS})
    assert len({**ours, **theirs}) == len(needed(ALL))


def test_all_statements() -> None:
    assert [statement.number for statement in all_statements()] == list(range(1, 19))
    assert [s.number for s in all_statements() if s.study is Study.K] == [1]
    assert [s.number for s in all_statements() if s.study is Study.OURS] == list(range(11, 19))


def test_gains_become_ratios() -> None:
    (gain,) = [p for s in all_statements() for p in s.parts if "26.6%" in p.words]
    assert isinstance(gain, Timed) and (gain.a, gain.b) == ("v7", "v6_double")
    assert gain.ratio == pytest.approx(0.734)
    assert gain.ratio * (1 + gain.tolerance) == pytest.approx(1 - 0.133)


def test_dissections_change_one_thing() -> None:
    """A pair differs in one axis; the few that do not are named."""
    from kgen.specs.spec import differences

    several = set()
    for dissection in all_dissections():
        for pair in dissection.comparisons:
            found = differences(checked(pair.a), checked(pair.b))
            if len(found) > 1:
                several.add((pair.a, pair.b, *found))
    assert several == {
        # a vector width and what follows from it; v7 groups unaligned rows for its cache
        ("v6", "v5", "vec_size", "vec_scans"),
        ("v6:vec_scans=second", "v5", "vec_size", "vec_scans"),
        ("v7", "v6_double", "cache", "unaligned"),
    }
