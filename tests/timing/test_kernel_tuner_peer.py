"""What bench/kernel_tuner_peer.py hands to Kernel Tuner: sources under one name, launches, points."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from kgen.specs.variants import parse

FILE = Path(__file__).parents[2] / "bench" / "kernel_tuner_peer.py"


@pytest.fixture(scope="module")
def peer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel_tuner_peer", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("variant", ["v5", "v7:threads=128", "v8:vec=4,threads=64"])
def test_source_is_the_variants_own_under_the_common_name(peer: ModuleType, variant: str) -> None:
    spec = parse(variant)
    point = {"version": spec.version, "block_size_x": spec.threads_per_block, "vec": spec.vec_size}
    text = peer.Space(5, 257, [], [], []).text(point)
    assert peer.spec_of(point) == spec
    assert re.findall(r"(\w+)\(const float\* __restrict__ x, float\* __restrict__ y, int rows", text) == ["softmax"]  # fmt: skip
    assert f"constexpr int THREADS_PER_BLOCK = {spec.threads_per_block};" in text


@pytest.mark.parametrize(("version", "threads", "blocks"), [("v5", 64, 1025), ("v8", 256, 129)])
def test_blocks_follow_the_row_map(
    peer: ModuleType, version: str, threads: int, blocks: int
) -> None:
    point = {"version": version, "block_size_x": threads, "vec": 1}
    assert peer.Space(1025, 257, [], [], []).blocks(point) == blocks


def test_space_has_the_valid_points_of_one_kernel(peer: ModuleType) -> None:
    space = peer.Space(5, 257, ["v5", "t1", "v8"], [32, 100, 256], [1, 3])
    assert list(space.specs()) == ["v5:threads=32", "v5", "v8:threads=32", "v8"]
