"""Theoretical occupancy: how many blocks of a kernel one multiprocessor (SM) holds at once.

The limits are those of the CUDA programming guide's tables of compute capabilities, the allocation
rules those of NVIDIA's occupancy calculator. No GPU is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.errors import UsageError
from kgen.limits import (
    MAX_REGISTERS_PER_THREAD,
    MAX_THREADS_PER_BLOCK,
    REGISTERS_PER_SM,
    WARP_SIZE,
)

_REGISTER_UNIT = 256  # registers are given to a warp in units of this many
_NO_LIMIT = 1 << 30
_PARTITIONS = 4  # an SM's registers belong to its partitions, a warp to one of them


@dataclass(frozen=True, kw_only=True)
class SmLimits:
    """What one SM holds: resident warps and blocks, and bytes of shared memory.

    A block's shared memory, with `reserved_bytes` that the driver adds to each, is rounded up to
    `shared_unit` bytes. One block may take all of it, if the launch opts in above 48 KB.
    """

    warps: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int = 1024
    shared_unit: int = 128

    @property
    def block_shared_bytes(self) -> int:
        """The most shared memory of one block."""
        return self.shared_bytes - self.reserved_bytes


_TURING = SmLimits(warps=32, blocks=16, shared_bytes=64 * 1024, reserved_bytes=0, shared_unit=256)
_AMPERE = SmLimits(warps=64, blocks=32, shared_bytes=164 * 1024)
_AMPERE_SMALL = SmLimits(warps=48, blocks=16, shared_bytes=100 * 1024)
_ORIN = SmLimits(warps=48, blocks=16, shared_bytes=164 * 1024)
_ADA = SmLimits(warps=48, blocks=24, shared_bytes=100 * 1024)
_HOPPER = SmLimits(warps=64, blocks=32, shared_bytes=228 * 1024)
_THOR = SmLimits(warps=48, blocks=24, shared_bytes=228 * 1024)

SM_LIMITS = {
    "sm_75": _TURING,
    "sm_80": _AMPERE,
    "sm_86": _AMPERE_SMALL,
    "sm_87": _ORIN,
    "sm_88": _AMPERE_SMALL,
    "sm_89": _ADA,
    "sm_90": _HOPPER,
    "sm_100": _HOPPER,
    "sm_103": _HOPPER,
    "sm_110": _THOR,
    "sm_120": _ADA,
    "sm_121": _ADA,
}


@dataclass(frozen=True)
class Occupancy:
    """How full an SM can be: `fraction` is `warps_per_sm` over the most it holds (0 to 1).

    `limited_by` names what stops one more block: "registers", "shared memory", "warps", "blocks".
    With zero blocks the kernel cannot be launched at all.
    """

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limited_by: tuple[str, ...]


def sm_limits(arch: str) -> SmLimits:
    """Return the limits of `arch` (`sm_90`). Raises UsageError for an unknown one."""
    if arch not in SM_LIMITS:
        raise UsageError(
            f"the occupancy limits of {arch!r} are not known; choose one of {', '.join(SM_LIMITS)}"
        )
    return SM_LIMITS[arch]


def occupancy(arch: str, threads_per_block: int, registers: int, shared_bytes: int) -> Occupancy:
    """Return the occupancy of a kernel with `registers` a thread (as ptxas reports them) and
    `shared_bytes` a block (static and dynamic together, opted in where that is needed).

    Raises UsageError for an unknown architecture or a number no kernel can have.
    """
    limits = sm_limits(arch)
    _check(threads_per_block, registers, shared_bytes)
    warps = _ceil_to(threads_per_block, WARP_SIZE) // WARP_SIZE
    shared = _ceil_to(shared_bytes + limits.reserved_bytes, limits.shared_unit)
    most = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": _blocks_by_registers(warps, registers),
        "shared memory": limits.shared_bytes // shared if shared else _NO_LIMIT,
    }
    blocks = min(most.values())
    limited_by = tuple(name for name, limit in most.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / limits.warps, limited_by)


def _blocks_by_registers(warps: int, registers: int) -> int:
    if registers == 0:
        return _NO_LIMIT
    registers_per_warp = _ceil_to(registers * WARP_SIZE, _REGISTER_UNIT)
    warps_per_partition = REGISTERS_PER_SM // _PARTITIONS // registers_per_warp
    return warps_per_partition * _PARTITIONS // warps


def _ceil_to(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _check(threads_per_block: int, registers: int, shared_bytes: int) -> None:
    if not 1 <= threads_per_block <= MAX_THREADS_PER_BLOCK:
        raise UsageError(
            f"threads_per_block={threads_per_block} is outside 1 to {MAX_THREADS_PER_BLOCK}"
        )
    if not 0 <= registers <= MAX_REGISTERS_PER_THREAD:
        raise UsageError(f"registers={registers} is outside 0 to {MAX_REGISTERS_PER_THREAD}")
    if shared_bytes < 0:
        raise UsageError(f"shared_bytes={shared_bytes} is negative")
