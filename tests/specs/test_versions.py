"""The named versions are the points that the studies describe."""

import pytest

import kgen
from kgen.errors import UsageError
from kgen.specs.notes import notes
from kgen.specs.rules import problems
from kgen.specs.versions import VERSIONS, find_version

PARENTS = {
    "v2": "v1", "v3": "v2", "v4": "v2", "v4_opt": "v4", "v5": "v4_opt", "v6": "v5",
    "v6_double": "v6", "v6_fetch": "v6_double", "v7": "v6_double", "v8": "v5", "v9": "v6_double",
}  # fmt: skip
SCANS = {
    "v1": 3, "v2": 3, "v3": 1, "v4": 2, "v4_opt": 2, "v5": 2, "v6": 2, "v6_double": 2,
    "v6_fetch": 2, "v7": 1, "v8": 2, "v9": 2, "t1": 3,
}  # fmt: skip


def test_every_version_of_the_studies_is_there() -> None:
    named = [
        "cpu",
        "k1",
        "k2",
        "k3",
        "k4",
        "c1",
        "t1",
        "t2",
        "v1",
        "v10",
        "v11",
        "v12",
        "v13",
        "v14",
        "v2",
        "v3",
        "v4",
        "v4_opt",
        "v5",
        "v6",
        "v6_double",
        "v6_fetch",
        "v7",
        "v8",
        "v9",
    ]
    assert sorted(kgen.versions()) == sorted(named)


@pytest.mark.parametrize("name", VERSIONS)
def test_versions_are_valid_and_explained(name: str) -> None:
    assert problems(VERSIONS[name].spec) == []
    assert notes()[name].why and notes()[name].mistake


@pytest.mark.parametrize(("name", "parent"), PARENTS.items())
def test_parents(name: str, parent: str) -> None:
    assert VERSIONS[name].parent == parent


@pytest.mark.parametrize(("name", "scans"), SCANS.items())
def test_scans(name: str, scans: int) -> None:
    assert VERSIONS[name].spec.scans == scans


@pytest.mark.parametrize(
    ("name", "axes"),
    {
        "k1": {"row_map": "thread", "topology": "none", "cache": "exps_output"},
        "k2": {"topology": "tree", "normalize": "divide"},
        "k3": {"topology": "warp_down", "threads_per_block": 32},
        "k4": {"topology": "warps_thread0", "threads_per_block": 512},
        "c1": {"cache": "exps_output", "normalize": "reciprocal", "threads_per_block": 256},
        "t1": {"row_map": "grid", "tile_size": 1024, "normalize": "divide"},
        "t2": {"update": "online_tile", "tile_size": 1024, "threads_per_block": 128},
        "v3": {"cache": "exps_registers", "trip": "static"},
        "v4": {"update": "online", "merge": "separate"},
        "v5": {"merge": "paired", "update": "online_shared"},
        "v6": {"vec_size": 4, "vec_scans": "first", "unaligned": "scalar_row"},
        "v6_fetch": {"prefetch": True, "vec_scans": "both"},
        "v7": {"cache": "inputs_registers", "unaligned": "scalar_groups"},
        "v8": {"row_map": "warp", "topology": "warp", "merge": "paired"},
        "v9": {"row_map": "grid_stride", "update": "online", "grid_blocks": 256},
    }.items(),
)
def test_axes(name: str, axes: dict[str, object]) -> None:
    spec = VERSIONS[name].spec
    assert {axis: getattr(spec, axis) for axis in axes} == axes


def test_most_versions_change_one_axis() -> None:
    single = [name for name, version in VERSIONS.items() if len(version.changes) == 1]
    assert set(single) >= {"v2", "v3", "v4", "v4_opt", "v5", "v6_double", "v6_fetch", "c1", "k4"}


def test_items_that_the_report_names() -> None:
    v3, v7 = VERSIONS["v3"].spec, VERSIONS["v7"].spec
    assert v3.resolve(4096).items_per_thread == 16
    assert v7.resolve(4096).items_per_thread == 4
    assert v7.resolve(4096).capacity == 4099
    assert [v7.resolve(cols).items_per_thread for cols in (257, 3)] == [1, 0]


def test_unknown_version_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match="no version 'v6double'; did you mean 'v6_double'"):
        find_version("v6double")
