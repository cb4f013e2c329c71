"""What the hardware allows on every architecture that kgen supports, sm_75 to sm_121."""

from __future__ import annotations

WARP_SIZE = 32
MAX_THREADS_PER_BLOCK = 1024
MAX_CLUSTER_BLOCKS = 16
PORTABLE_CLUSTER_BLOCKS = 8  # above it a kernel has to opt in
MAX_THREADS_PER_SM = 2048
MAX_REGISTERS_PER_THREAD = 255
REGISTERS_PER_SM = 65536
H200_SMS = 132  # those of the GPU that has to hold blocks which wait for each other
MAX_GRID_BLOCKS = 2**31 - 1
# The most that any of them lets one block have (sm_90).
MAX_SHARED_BYTES = 227 * 1024


# The architecture to compile for where no GPU and no option names one.
DEFAULT_ARCH = "sm_90"


def arch_number(arch: str) -> int:
    """Return the number of an architecture, by which they compare: 90 of `sm_90`; 0 of ''."""
    return int(arch.removeprefix("sm_") or 0)
