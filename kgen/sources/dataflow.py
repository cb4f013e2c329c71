"""How data flows through the scans of a row: what each reads, keeps and takes as arguments.

The templates ask these facts instead of working them out, so that a scan's parameters and the
arguments it is called with cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.sources.kernels import Kernel, kernels
from kgen.specs.choices import Cache, Exp, Merge, RowMap, Topology, Trip, Unaligned
from kgen.specs.spec import Spec


@dataclass(frozen=True)
class Param:
    """One parameter of a generated function, and the argument that the kernel passes for it."""

    declaration: str
    argument: str


@dataclass(frozen=True)
class Scan:
    """One walk over a row.

    `source` is the array it reads (`x`, `y` or `values`), `keeps` the array that it stores each
    element to (`x_cache`, `y` or none), `vectorised` whether it uses vector accesses.
    """

    source: str
    keeps: str | None
    vectorised: bool
    params: tuple[Param, ...]

    def declare(self, *more: Param) -> str:
        """The parameter list of the scan's function."""
        return ", ".join(p.declaration for p in (*self.params, *more))

    def call(self, function: str, *more: str, first: tuple[str, ...] = ()) -> str:
        """The call of the scan's function with the kernel's arguments."""
        return f"{function}({', '.join((*first, *(p.argument for p in self.params), *more))})"


class Dataflow:
    """The facts about one resolved spec that templates ask for."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.kernels = kernels(spec)
        self.is_paired = spec.merge is Merge.PAIRED
        self.is_runtime_trip = spec.trip is Trip.RUNTIME
        self.reduces = spec.topology is not Topology.NONE
        # A thread's slots live in `values`; tile by tile the array is a tile's and short-lived.
        self.uses_slots = spec.in_registers or spec.is_tiled
        self.uses_state = spec.is_online or self.is_paired
        # Pairs of thread-local maximum and sum, each found in a pass of its thread_state.
        self.is_local_pair = self.is_paired and not spec.is_online
        self.vectorises = spec.vec_size > 1

    @property
    def function(self) -> str:
        """The qualifiers of a helper function."""
        return "static inline" if self.spec.is_host else "__device__ __forceinline__"

    @property
    def thread(self) -> str:
        """The expression for a thread's index among the threads of its row."""
        if self.spec.row_map is RowMap.WARP:
            return "lane_id()"
        return "0" if self.spec.threads_per_row == 1 else "threadIdx.x"

    @property
    def stride(self) -> str:
        """The expression for the number of threads that share a row."""
        if self.spec.row_map is RowMap.WARP:
            return "WARP_SIZE"
        return "1" if self.spec.threads_per_row == 1 else "THREADS_PER_BLOCK"

    @property
    def cols(self) -> str:
        """The kernel's expression for the length of the row (or of the block's tile of it)."""
        if self.spec.row_map is RowMap.GRID:
            return "tile_cols"
        return self.row_cols

    @property
    def row_cols(self) -> str:
        """The kernel's expression for the length of the whole row."""
        return "COLS" if self.spec.static_cols else "cols"

    @property
    def exp(self) -> str:
        """The function that computes e^t."""
        return "exp_as_exp2" if self.spec.exp is Exp.EXP2 else str(self.spec.exp)

    @property
    def group(self) -> str:
        """The vector type."""
        return f"float{self.spec.vec_size}"

    @property
    def lanes(self) -> str:
        """The members of the vector type."""
        return "xyzw"[: self.spec.vec_size]

    @property
    def slots(self) -> str:
        """The number of elements in `values`."""
        if self.spec.in_registers:
            return "SLOTS" if self.vectorises else "ITEMS_PER_THREAD"
        return self.tile_slots

    @property
    def tile_slots(self) -> str:
        """The number of elements that a thread holds of a tile."""
        return "TILE_SLOTS" if self.vectorises else "TILE_ITEMS"

    @property
    def items(self) -> str:
        """The number of accesses that fill `values`."""
        return "ITEMS_PER_THREAD" if self.spec.in_registers else "TILE_ITEMS"

    @property
    def keeps_in(self) -> str | None:
        """The array that the first scan stores inputs to."""
        return "x_cache" if self.spec.in_shared else None

    @property
    def strides_unaligned(self) -> bool:
        """Whether `values` hold single strided columns on rows off a vector boundary."""
        by_row = self.vectorises and self.spec.unaligned is Unaligned.SCALAR_ROW
        return by_row and (self.spec.in_registers or self.spec.vec_first)

    @property
    def stores_slots_as_groups(self) -> bool:
        """Whether store_values uses vector accesses: to y, or to the shared cache tile by tile."""
        return self.spec.vec_second if self.spec.in_registers else self.spec.vec_first

    @property
    def load(self) -> Scan:
        """The step that fills `values` from the row (or from a tile of it)."""
        asks = self.spec.vec_first or self.strides_unaligned
        return Scan("x", None, self.spec.vec_first, self._params("x", None, asks))

    @property
    def store(self) -> Scan:
        """The step that puts `values` back where `load` found them."""
        vectorised = self.stores_slots_as_groups
        asks = vectorised or self.strides_unaligned
        return Scan("values", "y", vectorised, self._params(None, "y", asks))

    @property
    def max(self) -> Scan:
        """Pass 1: the thread's maximum."""
        return self._first_scan("x", self.keeps_in)

    @property
    def sum(self) -> Scan:
        """Pass 2: the thread's sum of exponentials; needs the maximum as a last argument."""
        parks = self.spec.cache is Cache.EXPS_OUTPUT
        scan = self._first_scan("x", "y" if parks else None)
        if not self.spec.in_shared:
            return scan
        cached = Param(scan.params[0].declaration, "x_cache")
        return Scan("x", scan.keeps, scan.vectorised, (cached, *scan.params[1:]))

    @property
    def scan(self) -> Scan:
        """The online scan: the thread's (or, tile by tile, the row's) state."""
        if self.spec.is_tiled and not self.spec.in_registers:
            vectorised = self.spec.vec_first
            params = self._params("x", self.keeps_in, vectorised)
            return Scan("x", self.keeps_in, vectorised, params)
        return self._first_scan("x", self.keeps_in)

    @property
    def write(self) -> Scan:
        """The writing scan; needs the row's results as last arguments."""
        spec = self.spec
        vectorised = spec.vec_second
        if spec.in_registers:
            return Scan("values", "y", vectorised, (*self._values(const=False), *self.store.params))
        if spec.cache is Cache.EXPS_OUTPUT:
            return Scan("y", "y", vectorised, self._params(None, "y", vectorised))
        params = self._params("x", "y", vectorised)
        if spec.in_shared:
            params = (Param(params[0].declaration, "x_cache"), *params[1:])
        return Scan("x", "y", vectorised, params)

    @property
    def results(self) -> tuple[Param, ...]:
        """What the writing scan needs to know of the row beside its elements."""
        in_pair = self.is_paired or self.spec.is_tiled or self.spec.row_map is RowMap.GRID
        in_state = in_pair and self.uses_state
        row_max, row_sum = ("row_state.m", "row_state.d") if in_state else ("row_max", "row_sum")
        if not self.spec.keeps_exps:
            first: tuple[Param, ...] = (Param("float row_max", row_max),)
        elif self.is_paired:
            first = (Param("float rescale", f"{self.exp}(thread_state.m - {row_max})"),)
        else:
            first = ()
        return (*first, Param("float row_sum", row_sum))

    def aligned_rows(self, kernel: Kernel) -> list[str]:
        """Return the row pointers that must be aligned for the kernel to use vectors."""
        spec = self.spec
        first = spec.vec_first and kernel.phases != ("write",)
        second = spec.vec_second and "write" in kernel.phases
        parks = spec.cache is Cache.EXPS_OUTPUT
        rows = []
        if first or (second and spec.cache is Cache.NONE):
            rows.append("x_row")
        if second or (first and parks and kernel.phases != ("max",)):
            rows.append("y_row")
        return rows

    @property
    def mapping_changes(self) -> bool:
        """Whether the writing scan meets elements that another thread kept."""
        spec = self.spec
        kept_elsewhere = spec.in_shared or spec.cache is Cache.EXPS_OUTPUT
        per_tile = spec.threads_per_row * spec.vec_size
        ragged = spec.is_tiled and spec.tile_cols % per_tile != 0
        return (
            kept_elsewhere
            and spec.threads_per_row > 1
            and (ragged or spec.vec_first != spec.vec_second)
        )

    @property
    def needs_warp_order(self) -> bool:
        """Whether kept elements change hands in a warp whose reduction orders no memory."""
        one_kernel = self.spec.row_map is not RowMap.GRID
        return one_kernel and self.mapping_changes and self.spec.topology is Topology.WARP

    @property
    def needs_loop_order(self) -> bool:
        """Whether the next row of a block would overwrite a cache that others still read."""
        spec = self.spec
        # Rows that are not aligned are walked differently, so the next row's threads may be others.
        by_row = self.vectorises and spec.unaligned is Unaligned.SCALAR_ROW
        changes = self.mapping_changes or (by_row and spec.threads_per_row > 1)
        return spec.row_map is RowMap.GRID_STRIDE and spec.in_shared and changes

    @property
    def row_barrier(self) -> str:
        """The barrier of the threads that share a row."""
        one_warp = self.spec.row_map is RowMap.WARP or self.spec.topology is Topology.WARP
        return "__syncwarp();" if one_warp else "__syncthreads();"

    def _first_scan(self, source: str, keeps: str | None) -> Scan:
        if self.spec.in_registers:
            return Scan("values", None, False, self._values(const=not self.spec.keeps_exps))
        vectorised = self.spec.vec_first
        return Scan(source, keeps, vectorised, self._params(source, keeps, vectorised))

    def _values(self, const: bool) -> tuple[Param, ...]:
        kind = "const float" if const else "float"
        values = Param(f"{kind} (&values)[{self.slots}]", "values")
        if self.is_runtime_trip:
            return (values, Param("int used", "used"))
        return (values,)

    def _params(self, source: str | None, keeps: str | None, vec: bool) -> tuple[Param, ...]:
        restrict = "" if self.spec.is_host else " __restrict__"
        arguments = {"x_cache": "x_cache", "y": "y_row"}
        params = []
        if source:
            params.append(Param(f"const float*{restrict} {source}", f"{source}_row"))
        if keeps:
            params.append(Param(f"float*{restrict} {keeps}", arguments[keeps]))
        params.append(Param("int cols", self.cols))
        if vec:
            params.append(Param("bool is_aligned", "is_aligned"))
        return tuple(params)
