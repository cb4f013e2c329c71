"""Device memory: guarded buffers for verifying, plain matrices for timing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.errors import UsageError
from kgen.numpy_types import numpy_dtype
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32

Matrix = NDArray[Any]

# As many bytes as an element has make a NaN: an element that nobody wrote is one, and so is a value
# from a guard.
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
    """A rows x cols matrix of elements on the device, which other CUDA libraries can wrap."""

    def __init__(self, buffer: Buffer, shape: tuple[int, int], dtype: Element = FLOAT32) -> None:
        self.buffer, self.shape, self.dtype = buffer, shape, dtype

    @property
    def address(self) -> int:
        """Where its first element is."""
        return self.buffer.address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = f"<{_kind(self.dtype)}{self.dtype.bytes}"
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.address, False),
            "version": 3,
        }

    def fill(self, x: Matrix) -> None:
        """Copy a matrix of this shape to the device."""
        self.buffer.driver.memcpy_htod(self.address, np.ascontiguousarray(x).view(np.uint8))

    def poison(self) -> None:
        """Make every element NaN."""
        self.buffer.driver.memset_d8(self.address, POISON, self.buffer.nbytes)


def _kind(element: Element) -> str:
    """Return how the interface calls a type; of one that it lacks it has the bits."""
    return "f" if numpy_dtype(element).kind == "f" else "u"


def fetch(driver: Any, array: Any, element: Element = FLOAT32) -> Matrix:
    """Return a copy of a contiguous array of elements with a `__cuda_array_interface__`.

    Raises UsageError when it is not such an array.
    """
    y = np.empty(array.__cuda_array_interface__["shape"], numpy_dtype(element))
    driver.memcpy_dtoh(y.view(np.uint8), address_of(array, element))
    return y


def address_of(array: Any, element: Element = FLOAT32) -> int:
    """Return where the first element of such an array is. Raises UsageError as `fetch` does."""
    interface = array.__cuda_array_interface__
    kind, size = interface["typestr"][1], int(interface["typestr"][2:])
    is_other = size != element.bytes or (kind != _kind(element) and _kind(element) == "f")
    if is_other or interface.get("strides"):
        raise UsageError(
            f"the result is {interface['typestr']} with strides {interface.get('strides')}; a "
            f"contiguous array of {element} is needed"
        )
    return int(interface["data"][0])


def no_memory(x: Matrix, matrices: int) -> UsageError:
    """Return the refusal of a shape that the GPU cannot hold."""
    return UsageError(
        f"a matrix of {x.shape[0]} x {x.shape[1]} takes {x.nbytes} bytes, and the GPU has not "
        f"memory for {matrices} of them; choose a smaller shape"
    )
