"""How data flows through the passes of a row: what each reads and keeps, who shares what.

Templates ask these facts instead of working them out.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.sources.kernels import Kernel, kernels
from kgen.sources.thread_names import ThreadNames
from kgen.specs.spec import Spec


@dataclass(frozen=True)
class Walk:
    """One walk over a thread's share of a row: the array it reads, the one it stores to, and how.

    `count` is the number of elements where the array is a thread's own (slots), '' elsewhere;
    `is_raw`: it has the matrix's elements, not yet what the operation takes of them.
    """

    source: str
    to: str = ""
    vectorised: bool = False
    count: str = ""
    is_raw: bool = False

    @property
    def in_slots(self) -> bool:
        """Whether the elements are a thread's own."""
        return bool(self.count)


class Dataflow(ThreadNames):
    """The facts about one resolved spec that templates ask for."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.kernels = kernels(spec)
        self.reduces = spec.row_threads > 1
        self.uses_state = spec.is_online or spec.merge.is_paired
        # Maximum and sum are reduced by one kernel, apart, and so use shared memory in turn.
        in_one = spec.is_online or not spec.row_split.kernel_per_phase
        self.reductions_share = in_one and not spec.merge.is_paired and self.reduces

    # --- Lengths ---

    @property
    def length(self) -> str:
        """The length of a whole row."""
        return "COLS" if self.spec.static_cols else "cols"

    @property
    def cols(self) -> str:
        """The length of what a thread group walks: the row, the block's part of it, or nothing."""
        if self.spec.row_split.kernel_per_phase:
            return "tile_cols"
        if self.spec.has_parts:
            return "part_cols"
        return self.of_row("row_cols") if self.has_idle_groups else self.length

    # --- Rows in turn ---

    @property
    def turn(self) -> str:
        """Which of two arrays a row has, where rows have them in turn."""
        return "[round % 2]" if self.spec.takes_turns else ""

    # --- Chunks ---

    @property
    def chunk_batch(self) -> int:
        """The vectors of a chunk that a thread has on their way at once: if few, all of its own."""
        spec = self.spec
        if not spec.static_cols:
            return 4
        vecs = -(-spec.rows_per_block * spec.static_cols // 4)
        return min(-(-vecs // spec.threads_per_block), 8)

    # --- Elements ---

    def input(self, element: str) -> str:
        """Return what the operation takes of an element of the matrix."""
        return self.spec.op.input.c({"x": element})

    def taken(self, walk: Walk, element: str) -> str:
        """Return an element that is walked over: of the matrix what the operation takes of it."""
        return self.input(element) if walk.is_raw else element

    @property
    def slots(self) -> str:
        """The number of a thread's slots for a row."""
        return "SLOTS" if self.spec.vectorises else "ITEMS_PER_THREAD"

    @property
    def tile_slots(self) -> str:
        """The number of a thread's slots for a tile."""
        return "TILE_SLOTS" if self.spec.vectorises else "TILE_ITEMS"

    @property
    def used(self) -> str:
        """The number of slots that a thread uses of a row."""
        return "used" if self.spec.trip.is_runtime else self.slots

    @property
    def values(self) -> str:
        """A thread's part of a row in registers."""
        return self.of_row("values")

    @property
    def loaded_rows(self) -> list[tuple[str, str]]:
        """The kinds and names of what is known of each row once it is loaded."""
        asked = [self.row_start] if self.load_asks or self.store_asks else []
        return [("float*", "y_row"), ("int", "row_cols"), *asked, ("float", "values")]

    # --- Passes ---

    @property
    def first_walk(self) -> Walk:
        """The pass that finds the maximum, or the online one."""
        if self.spec.in_registers:
            return Walk(self.values, count=self.used)
        keeps = "row_cache" if self.spec.in_shared and not self.spec.cache.is_copied else ""
        return Walk(self.first_source, keeps, self.spec.vec_first, is_raw=True)

    @property
    def first_source(self) -> str:
        """Where the first scan finds the row."""
        return "row_cache" if self.spec.cache.is_copied else "x_row"

    @property
    def sum_walk(self) -> Walk:
        """The pass that sums exponentials."""
        if self.spec.in_registers:
            return Walk(self.values, self.values if self.spec.keeps_exps else "", count=self.used)
        source = "row_cache" if self.spec.in_shared else "x_row"
        keeps = ("row_cache" if self.spec.in_shared else "y_row") if self.spec.keeps_exps else ""
        return Walk(source, keeps, self.spec.vec_first, is_raw=self._is_raw)

    @property
    def _is_raw(self) -> bool:
        """Whether scans after the first meet the matrix's elements as they are."""
        return self.spec.cache.is_copied or not self.spec.in_shared

    @property
    def tile_walk(self) -> Walk:
        """A pass over the slots of a tile."""
        return Walk("tile", count=self.tile_slots)

    @property
    def write_walk(self) -> Walk:
        """The pass that makes the output."""
        if self.spec.in_registers:
            return Walk(self.values, self.values, count=self.used)
        source = "y_row" if self.spec.parks else "row_cache" if self.spec.in_shared else "x_row"
        is_raw = self._is_raw and not self.spec.keeps_exps
        return Walk(source, "y_row", self.spec.vec_second, is_raw=is_raw)

    @property
    def row_max(self) -> str:
        """The maximum of the row where the output is made."""
        return self.of_row("row_state") + ".m" if self._has_row_state else self.of_row("row_max")

    @property
    def own_max(self) -> str:
        """The maximum that the exponentials of a paired merge refer to."""
        return "warp_max" if self.spec.merge.by_warp else self.of_row("thread_max")

    @property
    def row_sum(self) -> str:
        """The sum of the row where the output is made."""
        return self.of_row("row_state") + ".d" if self._has_row_state else self.of_row("row_sum")

    @property
    def _has_row_state(self) -> bool:
        spec = self.spec
        if not self.uses_state:
            return False
        in_one = spec.merge.is_paired or spec.is_tiled or spec.row_split.kernel_per_phase
        return in_one or not self.reduces

    @property
    def scan_name(self) -> str:
        """What the one pass that finds maximum and sum is called."""
        return "Online" if self.spec.in_registers else "Scan 1"

    @property
    def write_name(self) -> str:
        """What the pass that makes the output is called."""
        if not self.spec.is_online:
            return "Pass 3"
        return "Write" if self.spec.in_registers else "Scan 2"

    @property
    def kept_words(self) -> str:
        """What the output is made of, where that is not the input in global memory."""
        what = "exponentials" if self.spec.keeps_exps else "inputs"
        where = {
            "output": " parked in the chunk" if self.spec.in_chunks else " parked in y",
            "registers": " in registers",
            "shared": " in shared memory",
        }
        return f", from the {what}{where[self.spec.cache.place]}" if self.spec.cache.place else ""

    # --- Single accesses of rows on their way to registers and back ---

    def loaded(self, element: str) -> str:
        """Return the load of an element of the input."""
        call = self.spec.loads.call
        return f"{call}(&{element})" if call else element

    def stored(self, element: str, value: str) -> str:
        """Return the statement that stores an element of the output."""
        call = self.spec.stores.call
        return f"{call}(&{element}, {value});" if call else f"{element} = {value};"

    # --- Vectors ---

    @property
    def vec_way(self) -> str:
        """The argument that says how a vector is accessed, where there is a choice."""
        by_row = self.spec.unaligned.whole_row or self.spec.unaligned.is_shifted
        return "" if by_row else ", is_aligned"

    @property
    def strides_unaligned(self) -> bool:
        """Whether slots hold single columns on rows off a vector boundary."""
        spec = self.spec
        by_row = spec.vectorises and spec.unaligned.whole_row
        return by_row and (spec.in_registers or spec.vec_first)

    @property
    def stores_vecs(self) -> bool:
        """Whether store_row uses vectors: to y, or to the shared cache tile by tile."""
        return self.spec.vec_second if self.spec.in_registers else self.spec.vec_first

    @property
    def row_start(self) -> tuple[str, str]:
        """Type and name of what load_row and store_row are told of where the row starts."""
        return ("int", "shift") if self.spec.unaligned.is_shifted else ("bool", "is_aligned")

    @property
    def load_asks(self) -> bool:
        """Whether load_row needs to know if the row is aligned."""
        by_vec = self.spec.vec_first and not self.spec.unaligned.whole_row
        return by_vec or self.strides_unaligned

    @property
    def store_asks(self) -> bool:
        """Whether store_row needs to know if the row is aligned."""
        by_vec = self.stores_vecs and not self.spec.unaligned.whole_row
        return by_vec or self.strides_unaligned

    def walks_vecs(self, kernel: Kernel) -> bool:
        """Whether a kernel walks vectors in memory."""
        spec = self.spec
        if spec.in_registers:
            return False
        second = spec.vec_second and "write" in kernel.phases
        by_tiles = spec.is_tiled and not spec.cache.is_copied
        return second or (spec.vec_first and kernel.phases != ("write",) and not by_tiles)

    def aligned_rows(self, kernel: Kernel) -> list[str]:
        """Return the row pointers that must be aligned for the kernel to use vectors."""
        spec = self.spec
        if spec.unaligned.is_shifted:
            return []
        first = spec.vec_first and kernel.phases != ("write",)
        second = spec.vec_second and "write" in kernel.phases
        rows = []
        if first or (second and not spec.cache.place):
            rows.append("x_row")
        if second or (first and spec.parks and kernel.phases != ("max",)):
            rows.append(self.of_row("y_row"))
        return rows[:1] if spec.in_chunks else rows  # where the output takes the input's place

    # --- Order of memory ---

    @property
    def mapping_changes(self) -> bool:
        """Whether the writing scan meets elements that another thread kept."""
        spec = self.spec
        kept_elsewhere = spec.scans_shared or spec.parks
        changes = self.tiles_are_ragged or spec.vec_first != spec.vec_second
        return kept_elsewhere and self.reduces and changes

    @property
    def tiles_are_ragged(self) -> bool:
        """Whether a thread meets other elements tile by tile than along the row."""
        spec = self.spec
        return spec.is_tiled and spec.tile_cols % (spec.row_threads * spec.vec_size) != 0

    @property
    def needs_order(self) -> bool:
        """Whether kept elements change hands while the row's reduction orders no memory."""
        split, topology = self.spec.row_split, self.spec.topology
        ordered = topology.orders_memory and split.orders_memory
        return not split.kernel_per_phase and self.mapping_changes and not ordered

    @property
    def _copied_for_others(self) -> bool:
        """Whether a thread copies what others work on."""
        return self.spec.cache.is_bulk and self.reduces

    @property
    def shares_between_rows(self) -> bool:
        """Whether the next row of a block would overwrite shared memory that others still read."""
        spec = self.spec
        # Rows that are not aligned are walked differently, so the next row's threads may be others.
        by_row = spec.vectorises and spec.unaligned.whole_row
        changes = self.mapping_changes or (by_row and self.reduces) or self._copied_for_others
        cache = spec.in_shared and changes
        reused = not spec.topology.reusable and not spec.row_split.in_one_launch  # which alternates
        # Chunks have barriers of the block before and after they are copied, and a row that came in
        # bulk has one before the next is asked for.
        has_barriers = spec.in_chunks or spec.next_row.is_bulk
        return spec.row_loop.repeats and (cache or reused) and not has_barriers
