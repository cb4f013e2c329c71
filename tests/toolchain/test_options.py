"""The nvcc flags of compile options."""

from __future__ import annotations

import pytest

from kgen.errors import UsageError
from kgen.toolchain import CompileOptions


def test_default_flags() -> None:
    assert CompileOptions().flags() == ("--std=c++17", "-O3")


def test_every_option_adds_its_flag() -> None:
    options = CompileOptions(maxrregcount=64, use_fast_math=True, lineinfo=True)
    assert options.flags()[2:] == ("-maxrregcount=64", "--use_fast_math", "-lineinfo")


@pytest.mark.parametrize("limit", [24, 255])
def test_register_limits_at_the_ends_are_accepted(limit: int) -> None:
    assert f"-maxrregcount={limit}" in CompileOptions(maxrregcount=limit).flags()


@pytest.mark.parametrize("limit", [-1, 0, 23, 256])
def test_register_limit_that_ptxas_would_not_honour_is_refused(limit: int) -> None:
    with pytest.raises(UsageError, match=f"maxrregcount={limit} .* 24 to 255"):
        CompileOptions(maxrregcount=limit)
