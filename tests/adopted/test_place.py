"""Where files of the folder belong among the named versions."""

from __future__ import annotations

import pytest

from kgen.adopted.place import place
from tests.adopted.files import adopted

# One of these is nearest: relatives differ in what is not compared.
NEAREST = {
    "naive_thread": ("k1",),
    "tree_shared": ("v1", "k2"),
    "block_two_level": ("v2", "k4"),
    "online_branch": ("v4", "v4_opt", "v5"),
    "float4_rows": ("v8", "v10"),
    "vector_one_block": ("v1", "k2", "c1"),
}


@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one == "tree_shared" else pytest.mark.slow) for one in NEAREST],
)
def test_nearest_version(name: str) -> None:
    found = place(adopted(name))
    assert found.version in NEAREST[name]
    assert all(own != theirs for _, own, theirs in found.differences)
