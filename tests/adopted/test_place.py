"""Where files of the folder belong among the named versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgen.adopted.check import check_adopted
from kgen.adopted.guess import guess
from kgen.adopted.piece import Answers
from kgen.adopted.place import place
from kgen.adopted.source import adopted_source, read_cuda
from kgen.sources.render import render
from kgen.specs.versions import VERSIONS
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


@pytest.mark.slow
@pytest.mark.usefixtures("cxx")
@pytest.mark.parametrize("version", ["k1", "k2", "v2", "v5", "v6", "v7", "v8", "v9", "c1"])
def test_versions_without_their_headers_are_themselves(version: str, tmp_path: Path) -> None:
    """A generated file that lost its header, and has no launch, is adopted, right, and placed."""
    path = tmp_path / f"{version}.cu"
    lines = render(VERSIONS[version].spec.resolve()).text.splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("//")))
    made = guess(read_cuda(path), path.name, Answers())
    source = adopted_source(path, made.sidecar)
    assert not made.questions and place(source).version == version
    assert all(row.ok for row in check_adopted(source).rows)
