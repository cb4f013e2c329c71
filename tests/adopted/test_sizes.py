"""Limits that are found by what works, and what is no limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kgen.adopted.sizes import COLS, limit_of, words


@pytest.mark.parametrize(
    ("works", "limit", "said"),
    [
        (lambda n: True, "", None),
        (lambda n: n % 4 == 0, "cols % 4 == 0", "cols a multiple of 4"),
        (lambda n: n <= 1024, "cols <= 1024", "cols up to 1024"),
        (lambda n: n == 32, "cols == 32", "cols 32 only"),
        (lambda n: n % 2 == 0 and n <= 1024, "cols % 2 == 0 and cols <= 1024", "cols a multiple of 2, cols up to 1024"),
        (lambda n: n & (n - 1) == 0, "is_power_of_two(cols)", "cols a power of two"),
        (lambda n: n >= 256, "cols >= 256", "cols from 256"),
        (lambda n: n % 7 != 0, None, None),
        (lambda n: False, None, None),
    ],
)  # fmt: skip
def test_the_simplest_formula_of_what_works(
    works: Callable[[int], bool], limit: str | None, said: str | None
) -> None:
    assert limit_of("cols", {size: works(size) for size in COLS}, []) == limit
    if said:
        assert words(str(limit)) == said


def test_longer_rows_that_are_computed_wrong_are_a_mistake() -> None:
    works = {size: size <= 32 for size in COLS}
    assert limit_of("cols", works, [33, 64]) is None
    assert limit_of("cols", {size: size >= 32 for size in COLS}, [1, 31]) == "cols >= 32"
