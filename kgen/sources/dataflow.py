"""How data flows through the passes of a row: what each reads and keeps, who shares what.

Templates ask these facts instead of working them out.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.sources.accesses import Accesses
from kgen.specs.choice import MAX_ACCESS_BYTES, Element


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


class Dataflow(Accesses):
    """The facts about one resolved spec that templates ask for."""

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
        """The 16-byte accesses of a chunk that a thread has on their way at once: few, or all."""
        spec = self.spec
        if not spec.static_cols:
            return 4
        vecs = -(-spec.rows_per_block * spec.static_cols * spec.element_bytes // MAX_ACCESS_BYTES)
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
        output, value = self.spec.out_dtype.c_type, self.spec.compute.c_type
        return [(f"{output}*", "y_row"), ("int", "row_cols"), *asked, (value, "values")]

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
    def _vec_walks(self) -> list[Walk]:
        """The passes that walk vectors in memory."""
        spec = self.spec
        if spec.in_registers:
            return []
        reducing = [] if spec.is_tiled else [self.first_walk]
        if not spec.is_online:
            reducing.append(self.sum_walk)
        return [walk for walk in (*reducing, self.write_walk) if walk.vectorised]

    @property
    def vec_loads(self) -> list[Element]:
        """The types of which vectors are loaded."""
        by_slots = (self.spec.in_registers or self.spec.is_tiled) and self.spec.vec_first
        slots = [self.type_of(self.first_source)] if by_slots else []
        return list(dict.fromkeys([*slots, *(self.type_of(w.source) for w in self._vec_walks)]))

    @property
    def vec_stores(self) -> list[Element]:
        """The types of which vectors are stored."""
        by_tiles = self.spec.is_tiled and self.spec.in_shared and not self.spec.cache.is_copied
        slots = (
            [self.store_type] if self.stores_vecs and (self.spec.in_registers or by_tiles) else []
        )
        walked = (self.type_of(walk.to) for walk in self._vec_walks if walk.to)
        return list(dict.fromkeys([*slots, *walked]))

    @property
    def vec_types(self) -> list[Element]:
        """The types of vectors that lie in memory."""
        return list(dict.fromkeys((*self.vec_loads, *self.vec_stores)))

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
