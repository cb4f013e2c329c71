"""The named versions: each a parent and what it changes against it; nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgen.errors import UsageError
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
# What the versions come from: three studies, of which the one of a vector has two series.
SERIES = {
    "K series": "cpu and k1 to k4 are the softmax.cu study, which goes from serial code over a "
    "thread a row to a block a row.",
    "V series": "v1 to v9 are the steps of a report that was measured on a Tesla T4, from a plain "
    "kernel to wide loads, registers, a warp a row and a fixed grid; v10 to v14 go "
    "on from there to rows of every length, with clusters and without.",
    "C series": "c1 is the study of one long vector, with one block on all of it.",
    "T series": "t1 and t2 are the same study by tiles, shared by many blocks or walked by one.",
}


def _root(name: str, **axes: Any) -> Spec:
    VERSIONS[name] = Version(Spec(version=name).replace(**axes), None)
    return VERSIONS[name].spec


def _derive(name: str, parent: Spec, **changes: Any) -> Spec:
    VERSIONS[name] = Version(parent.replace(version=name, **changes), parent.version)
    return VERSIONS[name].spec


# The K series.
CPU = _root(
    "cpu",
    row_map="host",
    topology="none",
    cache="exps_output",
    threads_per_block=1,
)
K1 = _derive("k1", CPU, row_map="thread", threads_per_block=512, normalize="divide")
K2 = _derive("k2", K1, row_map="block", topology="tree")
K3 = _derive("k3", K2, topology="warp_down", threads_per_block=32)
K4 = _derive("k4", K2, topology="warps_thread0")

# The V series.
V1 = _root("v1")
V2 = _derive("v2", V1, topology="two_level")
V3 = _derive("v3", V2, cache="exps_registers")
V4 = _derive("v4", V2, update="online")
V4_OPT = _derive("v4_opt", V4, update="online_shared")
V5 = _derive("v5", V4_OPT, merge="paired")
V6 = _derive("v6", V5, vec_size=4, vec_scans="first")
V6_DOUBLE = _derive("v6_double", V6, vec_scans="both")
V6_FETCH = _derive("v6_fetch", V6_DOUBLE, prefetch=True)
V7 = _derive("v7", V6_DOUBLE, cache="inputs_registers", unaligned="scalar_groups")
V8 = _derive("v8", V5, row_map="warp", topology="warp")
V9 = _derive("v9", V6_DOUBLE, row_map="grid_stride", update="online", grid_blocks=256)

# Beyond the report: rows of any length at the memory limit, on GPUs with clusters.
V10 = _derive(
    "v10",
    V7,
    threads_per_row=16,
    topology="warp",
    items_per_thread=4,
)
V11 = _derive(
    "v11",
    V7,
    topology="all_warps",
    merge="by_warp",
    update="three_pass",
    cache="exps_registers",
    unaligned="shift",
    exp="exp2",
)
V12 = _derive(
    "v12",
    V10,
    row_io="chunk",
    merge="separate",
    update="three_pass",
    cache="exps_registers",
    vec_size=1,
    vec_scans="none",
    unaligned="scalar_row",
    items_per_thread=20,
    threads_per_block=128,
    exp="exp2",
)
V13 = _derive(
    "v13",
    V11,
    row_split="cluster_async",
    blocks_per_row=8,
    unaligned="scalar_row",
    threads_per_block=128,
)
V14 = _derive("v14", V13, row_split="co_resident", blocks_per_row=32)

# The C and T series.
C1 = _derive("c1", V2, cache="exps_output")
T1 = _derive(
    "t1",
    V2,
    row_map="grid",
    tile_size=1024,
    threads_per_block=128,
    normalize="divide",
)
T2 = _derive("t2", T1, row_map="block", update="online_tile")


def find_version(name: str) -> Version:
    """Return the version called `name`.

    Raises UsageError that offers the nearest names when there is none.
    """
    if name not in VERSIONS:
        raise UsageError(f"there is no version {name!r}{did_you_mean(name, VERSIONS)}")
    return VERSIONS[name]
