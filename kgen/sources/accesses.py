"""How code accesses rows: by vectors or by elements, with hints, and in which order of memory.

Templates ask these facts instead of working them out.
"""

from __future__ import annotations

from kgen.sources.kernels import Kernel, kernels
from kgen.sources.thread_names import ThreadNames
from kgen.specs.choice import MAX_ACCESS_BYTES, Element
from kgen.specs.spec import Spec


class Accesses(ThreadNames):
    """The facts about the accesses of one resolved spec that templates ask for."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.kernels = kernels(spec)
        self.reduces = spec.row_threads > 1
        self.uses_state = spec.is_online or spec.merge.is_paired
        # Maximum and sum are reduced by one kernel, apart, and so use shared memory in turn.
        in_one = spec.is_online or not spec.row_split.kernel_per_phase
        self.reductions_share = in_one and not spec.merge.is_paired and self.reduces

    # --- Single elements ---

    def type_of(self, array: str) -> Element:
        """Return the type of an array's elements."""
        spec = self.spec
        types = {"x_row": spec.dtype, "y_row": spec.out_dtype, "row_cache": spec.cache_type}
        return types.get(array, spec.compute)

    @staticmethod
    def converted(value: str, element: Element) -> str:
        """Return an element of memory as what is computed with."""
        return f"{element.to_compute}({value})" if element.to_compute else value

    @staticmethod
    def rounded(value: str, element: Element) -> str:
        """Return what was computed as an element of memory."""
        return f"{element.from_compute}({value})" if element.from_compute else value

    def loaded(self, place: str, element: Element) -> str:
        """Return the load of an element of the input."""
        call = self.spec.loads.call
        return self.converted(f"{call}(&{place})" if call else place, element)

    def stored(self, place: str, value: str, element: Element) -> str:
        """Return the statement that stores an element of the output."""
        call, value = self.spec.stores.call, self.rounded(value, element)
        return f"{call}(&{place}, {value});" if call else f"{place} = {value};"

    # --- Vectors ---

    def vec_of(self, element: Element) -> str:
        """Return the name of a vector as it lies in memory."""
        spec = self.spec
        if element == spec.compute:
            return "Vec"
        if spec.compute in (spec.dtype, spec.out_dtype) or spec.dtype == spec.out_dtype:
            return "Packed"
        return "PackedInput" if element == spec.dtype else "PackedOutput"

    def vec_alignment(self, element: Element) -> str:
        """Return the boundary on which a vector lies: it takes two accesses where it is wide."""
        if self.spec.vec_size * element.bytes > MAX_ACCESS_BYTES:
            return str(MAX_ACCESS_BYTES)
        return f"VEC_SIZE * sizeof({element.c_type})"

    @staticmethod
    def word(size: int) -> str:
        """Return the machine's type of so many bytes."""
        return {2: "unsigned short", 4: "unsigned", 8: "uint2", MAX_ACCESS_BYTES: "uint4"}[size]

    @property
    def store_type(self) -> Element:
        """The type that store_row leaves: in y, or tile by tile in the shared cache."""
        return self.spec.out_dtype if self.spec.in_registers else self.spec.cache_type

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

    @property
    def aligned_types(self) -> list[Element]:
        """The types of the rows that are asked whether they are aligned."""
        if self.spec.unaligned.is_shifted:
            return [self.spec.out_dtype]  # the input has a shift
        rows = (row for kernel in self.kernels for row in self.aligned_rows(kernel))
        return list(dict.fromkeys(self.type_of(row.removesuffix("[r]")) for row in rows))

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
