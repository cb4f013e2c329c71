"""Theoretical occupancy: known values, and some of NVIDIA's calculator (cuda_occupancy.h 13.0)."""

from __future__ import annotations

import pytest

from kgen.errors import UsageError
from kgen.limits import DEFAULT_ARCH
from kgen.toolchain.occupancy import SM_LIMITS, occupancy, sm_limits

KIB = 1024


@pytest.mark.parametrize(
    ("threads_per_block", "registers", "shared_bytes", "blocks", "fraction"),
    [(256, 161, 0, 1, 0.25), (512, 89, 0, 1, 0.5), (256, 20, 272, 4, 1.0)],
)
def test_figures_measured_with_nsight_on_a_t4(
    threads_per_block: int, registers: int, shared_bytes: int, blocks: int, fraction: float
) -> None:
    found = occupancy("sm_75", threads_per_block, registers, shared_bytes)
    assert (found.blocks_per_sm, found.fraction) == (blocks, fraction)
    assert found.warps_per_sm == blocks * threads_per_block // 32


# What cuda_occupancy.h answers; a random comparison of 60,000 cases agreed with it in full.
@pytest.mark.parametrize(
    ("arch", "threads_per_block", "registers", "shared_bytes", "blocks", "limited_by"),
    [
        ("sm_75", 64, 16, 4990, 12, {"shared memory"}),
        ("sm_90", 32, 16, 10500, 20, {"shared memory"}),
        ("sm_120", 64, 16, 5600, 15, {"shared memory"}),
        ("sm_90", 100, 64, 0, 8, {"registers"}),
        ("sm_80", 33, 32, 0, 32, {"warps", "registers", "blocks"}),
        ("sm_110", 768, 16, 0, 2, {"warps"}),
        ("sm_110", 256, 40, 0, 6, {"warps", "registers"}),
        ("sm_75", 1024, 64, 0, 1, {"warps", "registers"}),
        ("sm_75", 96, 40, 3000, 10, {"warps"}),
        ("sm_75", 32, 16, 0, 16, {"blocks"}),
        ("sm_75", 160, 37, 8001, 6, {"warps"}),
        ("sm_75", 1024, 65, 0, 0, {"registers"}),
        ("sm_80", 128, 33, 5120, 12, {"registers"}),
        ("sm_80", 288, 80, 0, 2, {"registers"}),
        ("sm_80", 64, 20, 900, 32, {"warps", "blocks"}),
        ("sm_86", 256, 40, 20000, 4, {"shared memory"}),
        ("sm_86", 64, 24, 0, 16, {"blocks"}),
        ("sm_87", 512, 48, 70000, 2, {"registers", "shared memory"}),
        ("sm_88", 128, 40, 5900, 12, {"warps", "registers"}),
        ("sm_89", 32, 200, 0, 8, {"registers"}),
        ("sm_89", 128, 40, 3000, 12, {"warps", "registers"}),
        ("sm_90", 256, 31, 64, 8, {"warps", "registers"}),
        ("sm_90", 1024, 32, 0, 2, {"warps", "registers"}),
        ("sm_90", 544, 100, 0, 0, {"registers"}),
        ("sm_90", 736, 88, 10, 0, {"registers"}),
        ("sm_90", 32, 24, 0, 32, {"blocks"}),
        ("sm_90", 640, 255, 0, 0, {"registers"}),
        ("sm_100", 256, 64, 40000, 4, {"registers"}),
        ("sm_103", 512, 41, 1, 2, {"registers"}),
        ("sm_110", 192, 60, 0, 5, {"registers"}),
        ("sm_110", 384, 24, 110000, 2, {"shared memory"}),
        ("sm_120", 128, 48, 3000, 10, {"registers"}),
        ("sm_121", 1000, 40, 0, 1, {"warps", "registers"}),
        ("sm_121", 32, 24, 100, 24, {"blocks"}),
    ],
)
def test_nvidias_calculator(
    arch: str,
    threads_per_block: int,
    registers: int,
    shared_bytes: int,
    blocks: int,
    limited_by: set[str],
) -> None:
    found = occupancy(arch, threads_per_block, registers, shared_bytes)
    assert (found.blocks_per_sm, set(found.limited_by)) == (blocks, limited_by)


@pytest.mark.parametrize("arch", SM_LIMITS)
def test_one_block_may_take_all_shared_memory_but_what_is_reserved(arch: str) -> None:
    limits = sm_limits(arch)
    most = limits.shared_bytes - limits.reserved_bytes
    assert occupancy(arch, 32, 16, most).blocks_per_sm == 1
    too_much = occupancy(arch, 32, 16, most + 1)
    assert (too_much.blocks_per_sm, too_much.limited_by) == (0, ("shared memory",))


def test_every_limiter_is_named_when_several_are_equal() -> None:
    assert occupancy("sm_90", 1024, 32, 113 * KIB).limited_by == (
        "warps",
        "registers",
        "shared memory",
    )


def test_default_arch_is_known() -> None:
    assert DEFAULT_ARCH in SM_LIMITS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sm_12", 256, 32, 0), r"'sm_12' are not known; choose one of sm_75, .*sm_121"),
        (("sm_90", 0, 32, 0), "threads_per_block=0 is outside 1 to 1024"),
        (("sm_90", 1025, 32, 0), "threads_per_block=1025 is outside 1 to 1024"),
        (("sm_90", 256, 256, 0), "registers=256 is outside 0 to 255"),
        (("sm_90", 256, -1, 0), "registers=-1 is outside 0 to 255"),
        (("sm_90", 256, 32, -1), "shared_bytes=-1 is negative"),
    ],
)
def test_impossible_requests(arguments: tuple[str, int, int, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        occupancy(*arguments)
