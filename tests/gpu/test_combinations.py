"""Versions and sampled combinations on a real GPU, at boundary shapes and in other alignments."""

import pytest

from kgen.errors import MissingTool
from kgen.evidence.check import check
from kgen.gpu import device_info
from kgen.specs.rules.shapes import most_rows
from kgen.specs.spec import Spec
from kgen.specs.variants import spelling
from kgen.specs.versions import VERSIONS
from tests.sources.test_compiles import sampled_specs

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True, scope="module")
def _gpu() -> None:
    try:
        device_info()
    except MissingTool as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", [name for name in VERSIONS if name != "cpu"])
def test_versions_at_their_boundaries(name: str) -> None:
    assert [row.reason for row in check(VERSIONS[name].spec, on="gpu") if not row.ok] == []


@pytest.mark.parametrize("spec", sampled_specs()[:40], ids=spelling)
def test_combinations(spec: Spec) -> None:
    lengths = [spec.static_cols] if spec.static_cols else [3, 257, 260, 1027]
    rows = min(45, most_rows(spec))
    fits = [(rows, cols) for cols in lengths if not spec.in_registers or cols <= spec.capacity]
    assert [row.reason for row in check(spec, "gpu", fits) if not row.ok] == []
