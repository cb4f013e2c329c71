"""Device memory: guarded buffers for verifying, plain matrices for timing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import UsageError

Matrix = NDArray[np.float32]

# Four bytes of it make a NaN: an element that nobody wrote is one, and so is a value from a guard.
POISON = 0xFF
# What mem_alloc aligns to; guards are multiples of it, so that they do not change alignment.
ALIGNMENT = 256
MIN_GUARD_BYTES = 4096


class Buffer:
    """Device memory of `nbytes` at `address` between two guards, all of it poisoned.

    Without a guard it is left as it was allocated: then its ends and what nobody wrote are for a
    tool to see that watches memory. Raises the driver's MemoryError.
    """

    def __init__(self, driver: Any, nbytes: int, guard: int) -> None:
        self.driver, self.nbytes, self.guard = driver, nbytes, guard
        self.allocation = driver.mem_alloc(max(guard + nbytes + guard, 1))
        self.address = int(self.allocation) + guard
        if guard:
            driver.memset_d8(self.address - guard, POISON, guard + nbytes + guard)

    def damage(self) -> str:
        """Return where the nearest changed byte of the guards is, or an empty string."""
        if not self.guard:
            return ""
        before = self._changed(self.address - self.guard)
        behind = self._changed(self.address + self.nbytes)
        if before.size:
            return f"byte {self.guard - int(before[-1])} before the start of"
        return f"byte {int(behind[0]) + 1} behind the end of" if behind.size else ""

    def _changed(self, address: int) -> NDArray[np.intp]:
        guard = np.empty(self.guard, np.uint8)
        self.driver.memcpy_dtoh(guard, address)
        return np.flatnonzero(guard != POISON)


class MatrixBuffer:
    """A rows x cols matrix of float32 on the device, which other CUDA libraries can wrap."""

    def __init__(self, buffer: Buffer, shape: tuple[int, int]) -> None:
        self.buffer, self.shape = buffer, shape

    @property
    def address(self) -> int:
        """Where its first element is."""
        return self.buffer.address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f4", "data": (self.address, False), "version": 3}

    def fill(self, x: Matrix) -> None:
        """Copy a matrix of this shape to the device."""
        self.buffer.driver.memcpy_htod(self.address, np.ascontiguousarray(x))

    def poison(self) -> None:
        """Make every element NaN."""
        self.buffer.driver.memset_d8(self.address, POISON, self.buffer.nbytes)


def fetch(driver: Any, array: Any) -> Matrix:
    """Return a copy of a contiguous float32 array with a `__cuda_array_interface__`.

    Raises UsageError when it is not such an array.
    """
    y = np.empty(array.__cuda_array_interface__["shape"], np.float32)
    driver.memcpy_dtoh(y, address_of(array))
    return y


def address_of(array: Any) -> int:
    """Return where the first element of such an array is. Raises UsageError as `fetch` does."""
    interface = array.__cuda_array_interface__
    if interface["typestr"] != "<f4" or interface.get("strides"):
        raise UsageError(
            f"the result is {interface['typestr']} with strides {interface.get('strides')}; a "
            "contiguous array of float32 is needed"
        )
    return int(interface["data"][0])


def no_memory(rows: int, cols: int, matrices: int) -> UsageError:
    """Return the refusal of a shape that the GPU cannot hold."""
    return UsageError(
        f"a matrix of {rows} x {cols} takes {4 * rows * cols} bytes, and the GPU has not memory "
        f"for {matrices} of them; choose a smaller shape"
    )
