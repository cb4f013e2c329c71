"""What follows from the choices of a spec alone, whatever its numbers are."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.specs.choice import Element
from kgen.specs.declared import chosen
from kgen.specs.fields import Axes

# The axes that say what an access tells the caches.
HINT_AXES = ("loads", "stores")


@dataclass(frozen=True, kw_only=True)
class ChoiceFacts(Axes):
    """The axes, and what their choices say together."""

    @property
    def is_host(self) -> bool:
        """Whether this is plain C++ for the host rather than a kernel."""
        return self.target.is_host

    @property
    def compute(self) -> Element:
        """The type that is computed with."""
        word = self.dtype.compute or str(self.dtype)
        return chosen("dtype", word, self.overlay)  # type: ignore[return-value]

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the input."""
        return self.dtype.bytes

    @property
    def narrow(self) -> Element:
        """The smaller of the types of input and output, of which a vector is one access."""
        return min(self.dtype, self.out_dtype, key=lambda element: element.bytes)

    @property
    def wide(self) -> Element:
        """The larger of the types of input and output."""
        return max(self.dtype, self.out_dtype, key=lambda element: element.bytes)

    @property
    def vec_bytes(self) -> int:
        """Bytes of a vector of the input."""
        return self.vec_size * self.element_bytes

    @property
    def compute_bytes(self) -> int:
        """Bytes of a value that is computed with."""
        return self.compute.bytes

    @property
    def cache_type(self) -> Element:
        """The type of a row that is kept in shared memory."""
        return self.dtype if self.cache.is_copied else self.compute

    @property
    def cache_bytes(self) -> int:
        """Bytes of an element that is kept in shared memory."""
        return self.cache_type.bytes

    @property
    def exp_call(self) -> str:
        """The function that is the exponential; '' if there is none of the type computed with."""
        return self.exp.call if self.compute.suffix else self.exp.double_call

    @property
    def is_online(self) -> bool:
        """Whether maximum and sum are found in the same scan."""
        return self.update.is_online

    @property
    def is_tiled(self) -> bool:
        """Whether the scan that reduces goes tile by tile."""
        return self.update.is_tiled

    @property
    def runs_at_once(self) -> bool:
        """Whether all blocks of a launch have to run at the same time."""
        return self.row_split.is_co_resident

    @property
    def in_registers(self) -> bool:
        """Whether a thread's part of the row stays in registers."""
        return self.cache.place == "registers"

    @property
    def keeps_exps(self) -> bool:
        """Whether the writing scan starts from exponentials instead of inputs."""
        return self.cache.keeps_exps

    @property
    def in_shared(self) -> bool:
        """Whether the row, or the block's part of it, stays in dynamic shared memory."""
        return self.cache.place == "shared"

    @property
    def comes_at_once(self) -> bool:
        """Whether a thread has all that it works on of a row on its way at the same time."""
        return self.in_registers or self.cache.is_copied

    @property
    def has_parts(self) -> bool:
        """Whether each block of a row has a part of it that lies together."""
        return self.in_shared and self.row_split.in_one_launch

    @property
    def in_chunks(self) -> bool:
        """Whether the rows of a block are in dynamic shared memory while they are worked on."""
        return self.row_io.in_chunks

    @property
    def takes_shared(self) -> bool:
        """Whether a block takes dynamic shared memory."""
        return self.scans_shared or self.waits_in_shared

    @property
    def scans_shared(self) -> bool:
        """Whether the scans find the row in dynamic shared memory."""
        return self.in_shared or self.in_chunks

    @property
    def waits_in_shared(self) -> bool:
        """Whether the next row waits in dynamic shared memory until registers are free for it."""
        return self.next_row.in_shared and self.in_registers

    @property
    def parks(self) -> bool:
        """Whether exponentials wait in the output for the writing scan."""
        return self.cache.place == "output"

    @property
    def vectorises(self) -> bool:
        """Whether any access is a vector."""
        return self.vec_size > 1

    @property
    def asks_alignment(self) -> bool:
        """Whether it matters how far behind a vector's boundary x and y are."""
        return self.vectorises or self.in_chunks

    @property
    def hints(self) -> dict[str, str]:
        """The axes of accesses that tell the caches something: axis -> choice."""
        return {name: of for name in HINT_AXES if (of := getattr(self, name)).call}

    @property
    def scans(self) -> int:
        """How many times the program reads the input from global memory."""
        if self.in_registers or self.scans_shared:
            return 1
        return 2 if self.is_online or self.keeps_exps else 3

    @property
    def vec_first(self) -> bool:
        """Whether the scans that reduce use vector accesses."""
        return self.vec_scans.reduces

    @property
    def vec_second(self) -> bool:
        """Whether the writing scan uses vector accesses."""
        return self.vec_scans.writes
