"""The named versions: each a parent and what it changes against it; nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgen.errors import UsageError
from kgen.specs.choices import (
    Cache,
    Merge,
    Normalize,
    RowMap,
    Topology,
    Unaligned,
    Update,
    VecScans,
)
from kgen.specs.spec import Spec, differences
from kgen.text import did_you_mean


@dataclass(frozen=True)
class Version:
    """A named point on the axes, and the version it was derived from (None for a root)."""

    spec: Spec
    parent: str | None

    @property
    def name(self) -> str:
        """The version's name."""
        return self.spec.version

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """The axes that differ from the parent: name -> (parent's value, own value)."""
        return differences(VERSIONS[self.parent].spec, self.spec) if self.parent else {}


VERSIONS: dict[str, Version] = {}


def _root(name: str, **axes: Any) -> Spec:
    VERSIONS[name] = Version(Spec(version=name, **axes), None)
    return VERSIONS[name].spec


def _derive(name: str, parent: Spec, **changes: Any) -> Spec:
    VERSIONS[name] = Version(parent.replace(version=name, **changes), parent.version)
    return VERSIONS[name].spec


# The softmax.cu study: from one thread a row to a block a row.
CPU = _root(
    "cpu",
    row_map=RowMap.HOST,
    topology=Topology.NONE,
    cache=Cache.EXPS_OUTPUT,
    threads_per_block=1,
)
K1 = _derive("k1", CPU, row_map=RowMap.THREAD, threads_per_block=512, normalize=Normalize.DIVIDE)
K2 = _derive("k2", K1, row_map=RowMap.BLOCK, topology=Topology.TREE)
K3 = _derive("k3", K2, topology=Topology.WARP, threads_per_block=32)
K4 = _derive("k4", K2, topology=Topology.WARPS_THREAD0)

# The V1-V9 report.
V1 = _root("v1")
V2 = _derive("v2", V1, topology=Topology.TWO_LEVEL)
V3 = _derive("v3", V2, cache=Cache.EXPS_REGISTERS)
V4 = _derive("v4", V2, update=Update.ONLINE)
V4_OPT = _derive("v4_opt", V4, update=Update.ONLINE_SHARED)
V5 = _derive("v5", V4_OPT, merge=Merge.PAIRED)
V6 = _derive("v6", V5, vec_size=4, vec_scans=VecScans.FIRST)
V6_DOUBLE = _derive("v6_double", V6, vec_scans=VecScans.BOTH)
V6_FETCH = _derive("v6_fetch", V6_DOUBLE, prefetch=True)
V7 = _derive("v7", V6_DOUBLE, cache=Cache.INPUTS_REGISTERS, unaligned=Unaligned.SCALAR_GROUPS)
V8 = _derive("v8", V5, row_map=RowMap.WARP, topology=Topology.WARP)
V9 = _derive("v9", V6_DOUBLE, row_map=RowMap.GRID_STRIDE, update=Update.ONLINE, grid_blocks=256)

# The 1-D vector study.
C1 = _derive("c1", V2, cache=Cache.EXPS_OUTPUT)
T1 = _derive(
    "t1",
    V2,
    row_map=RowMap.GRID,
    tile_size=1024,
    threads_per_block=128,
    normalize=Normalize.DIVIDE,
)
T2 = _derive("t2", T1, row_map=RowMap.BLOCK, update=Update.ONLINE_TILE)


def find_version(name: str) -> Version:
    """Return the version called `name`.

    Raises UsageError that offers the nearest names when there is none.
    """
    if name not in VERSIONS:
        raise UsageError(f"there is no version {name!r}{did_you_mean(name, VERSIONS)}")
    return VERSIONS[name]
