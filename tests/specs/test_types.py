"""Types of input and output: read from words, told as words, and the same for all that compares."""

from __future__ import annotations

import pytest

from kgen.errors import UsageError
from kgen.specs.types import Types, common_types, find_types, types_of
from kgen.specs.variants import parse


@pytest.mark.parametrize(
    ("words", "told", "moved_bytes"),
    [
        ((), "float32", 8),
        (("float16",), "float16", 4),
        (("bfloat16", "float32"), "bfloat16 to float32", 6),
        ((None, "float16"), "float32 to float16", 6),
        (("float64",), "float64", 16),
    ],
)
def test_the_output_follows_the_input(
    words: tuple[str | None, ...], told: str, moved_bytes: int
) -> None:
    found = find_types(*words)
    assert (str(found), found.moved_bytes) == (told, moved_bytes)


def test_a_specs_types_are_those_of_its_axes() -> None:
    assert types_of(parse("v7")) == find_types()
    assert types_of(parse("v7:dtype=bfloat16,out_dtype=float32")) == find_types(
        "bfloat16", "float32"
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("float8",), "dtype=float8 is not a choice"),
        (("float64", "float32"), "dtype=float64 with out_dtype=float32"),
        ((None, "float64"), "dtype=float32 with out_dtype=float64"),
    ],
)
def test_types_that_no_kernel_has_are_refused(words: tuple[str | None, ...], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        find_types(*words)


def test_what_compares_has_one_type() -> None:
    half, mixed = find_types("float16"), find_types("float16", "float32")
    assert common_types({half: "a"}) == half and common_types({}) == Types()
    with pytest.raises(UsageError, match=r"^a of float16, b of float16 to float32: what differs"):
        common_types({half: "a", mixed: "b"})
