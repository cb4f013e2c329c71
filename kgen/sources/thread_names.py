"""How the code of a spec names the threads that share a row, their lanes and their warps."""

from __future__ import annotations

from kgen.limits import WARP_SIZE
from kgen.specs.spec import Spec


class ThreadNames:
    """Expressions for the threads of a resolved spec, as templates write them."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.has_many_rows = spec.rows_at_once > 1
        # A block of several rows that has barriers: who has no row goes along to them. Of several
        # rows at once some may be none.
        meets = spec.row_threads > WARP_SIZE or spec.in_chunks or self.has_many_rows
        self.has_idle_groups = spec.rows_per_block > 1 and meets and not spec.is_host
        self.may_leave = spec.rows_per_block > 1 and not self.has_idle_groups

    @property
    def function(self) -> str:
        """The qualifiers of a helper function."""
        return "static inline" if self.spec.is_host else "__device__ __forceinline__"

    @property
    def stride(self) -> str:
        """The number of threads that share a row."""
        threads = self.spec.row_threads
        if threads == 1 and self.spec.is_host:
            return "1"
        if threads == self.spec.threads_per_block:
            return "THREADS_PER_BLOCK" if threads > 1 else "1"
        return {1: "1", WARP_SIZE: "WARP_SIZE"}.get(threads, "THREADS_PER_ROW")

    @property
    def thread(self) -> str:
        """A thread's index among the threads of its row."""
        if self.stride == "1":
            return "0"
        whole = self.spec.row_threads == self.spec.threads_per_block
        return "threadIdx.x" if whole else f"threadIdx.x % {self.stride}"

    @property
    def group(self) -> str:
        """The index of a thread's row among the rows that its block has at a time."""
        return "threadIdx.x" if self.stride == "1" else f"threadIdx.x / {self.stride}"

    @property
    def step(self) -> str:
        """The threads that walk a row, or the block's part of it, side by side."""
        return "THREADS_PER_ROW" if self._walks_with_others else self.stride

    @property
    def _walks_with_others(self) -> bool:
        """Whether all blocks of a row walk it side by side."""
        return self.spec.blocks_per_row > 1 and not self.spec.has_parts

    @property
    def first_row(self) -> str:
        """The (first) row of a thread."""
        if self.spec.blocks_per_row > 1:
            return "blockIdx.x / BLOCKS_PER_ROW"
        if self.spec.rows_per_block == 1:
            return "blockIdx.x"
        return f"blockIdx.x * {self.block_rows} + {self.group}"

    @property
    def own_row(self) -> str:
        """The row of a thread among those that its block has at a time, from `first_row` on."""
        groups = [self.group] if self.spec.groups_per_block > 1 else []
        if self.has_many_rows:
            groups = [f"r * {self.groups}", *groups] if groups else ["r"]
        return " + ".join(["first_row", *groups])

    @property
    def groups(self) -> str:
        """The groups of threads in a block."""
        return "THREADS_PER_BLOCK" if self.stride == "1" else "GROUPS_PER_BLOCK"

    @property
    def block_rows(self) -> str:
        """The rows that a block has at a time."""
        is_thread_each = self.stride == "1" and not self.has_many_rows
        return "THREADS_PER_BLOCK" if is_thread_each else "ROWS_PER_BLOCK"

    def of_row(self, name: str) -> str:
        """Return a value of a row: of several at once, that of row `r`."""
        return f"{name}[r]" if self.has_many_rows else name

    def new(self, kind: str, name: str) -> str:
        """Return the left side of what gives a row a value; arrays are declared before."""
        return self.of_row(name) if self.has_many_rows else f"{kind} {name}"

    @property
    def lanes(self) -> str:
        """The lanes of the warp that share a row."""
        spec = self.spec
        none_leaves = self.has_idle_groups and spec.threads_per_block % WARP_SIZE == 0
        all_lanes = spec.row_threads >= WARP_SIZE or (none_leaves and not spec.is_tiled)
        return "WHOLE_WARP" if all_lanes else "row_lanes()"

    @property
    def barrier(self) -> str:
        """The barrier of the threads that share a row."""
        if self.spec.row_threads > WARP_SIZE:
            return "__syncthreads();"
        return "__syncwarp();" if self.lanes == "WHOLE_WARP" else "__syncwarp(row_lanes());"

    @property
    def warp(self) -> str:
        """A warp's index among the warps of its row."""
        row = " % WARPS_PER_ROW" if self.has_idle_groups else ""
        return f"threadIdx.x / WARP_SIZE{row}"

    @property
    def warps(self) -> str:
        """The number of warps that share a row."""
        is_block = not self.has_idle_groups and self.spec.blocks_per_row == 1
        return "WARPS_PER_BLOCK" if is_block else "WARPS_PER_ROW"

    @property
    def warps_width(self) -> str:
        """The power of two that covers the warps of a row."""
        warps = max(self.spec.row_threads // WARP_SIZE, 1)
        width = self.power_of_two(warps)
        return self.warps if width == warps else str(width)

    @staticmethod
    def power_of_two(number: int) -> int:
        """Return the least power of two that is no less than a number."""
        return 1 << (number - 1).bit_length()

    @property
    def first_warp(self) -> str:
        """The index in the block of the first warp of a row, if it is not 0."""
        return f"{self.group} * WARPS_PER_ROW" if self.has_idle_groups else ""

    @property
    def first_thread(self) -> str:
        """The index in the block of the first thread of a row, if it is not 0."""
        return f"{self.group} * {self.stride}" if self.spec.groups_per_block > 1 else ""

    def from_thread(self, first: str = "") -> str:
        """Return where a thread begins in an array, or behind its first elements."""
        if self.thread == "0":
            return first or "0"
        thread = "row_thread()" if self._walks_with_others else self.thread
        return f"{first} + {thread}" if first else thread

    def next(self, index: str) -> str:
        """Return the step to a thread's next element."""
        return f"++{index}" if self.step == "1" else f"{index} += {self.step}"
