"""The types of a problem: those of its input and of its output."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from kgen.errors import UsageError
from kgen.overlay import OURS, Overlay
from kgen.specs.axes import parse_value
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32
from kgen.specs.rules import require_valid
from kgen.specs.spec import Spec
from kgen.specs.variants import apply
from kgen.specs.versions import V1


class Types(NamedTuple):
    """The types of input and output. Kernels of different ones have different answers.

    As words it is `bfloat16`, or `bfloat16 to float32` where they differ.
    """

    dtype: Element = FLOAT32
    out_dtype: Element = FLOAT32

    def __str__(self) -> str:
        """Return it as words."""
        return " to ".join(dict.fromkeys(self))

    @property
    def moved_bytes(self) -> int:
        """Bytes of an element that is read once and written once."""
        return self.dtype.bytes + self.out_dtype.bytes


BOTH_FLOAT32 = Types()


def types_of(spec: Spec) -> Types:
    """Return the types that a spec reads and writes."""
    return Types(spec.dtype, spec.out_dtype)


def common_types(of_each: Mapping[Types, str]) -> Types:
    """Return the only types there are; of nothing they are float32's.

    `of_each` has the name of somebody for all that there are. Raises UsageError that names them
    where they are several: what has different answers is not compared.
    """
    if len(of_each) > 1:
        named = ", ".join(f"{name} of {types}" for types, name in of_each.items())
        raise UsageError(f"{named}: what differs in type is not compared; measure one type a run")
    return next(iter(of_each), BOTH_FLOAT32)


@functools.cache
def find_types(
    dtype: str | None = None, out_dtype: str | None = None, overlay: Overlay = OURS
) -> Types:
    """Return the types of two words; the output's follows the input's, which is float32.

    Raises UsageError for a type that is unknown, and for two that no kernel has together.
    """
    given = {"dtype": dtype, "out_dtype": out_dtype}
    named = {axis: parse_value(axis, word, overlay) for axis, word in given.items() if word}
    spec = apply(V1.replace(overlay=overlay), named)
    require_valid(spec)
    return types_of(spec)
