"""Rules on the types of input and output, and what can be done with them."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.specs.choice import MAX_ACCESS_BYTES
from kgen.specs.facts import HINT_AXES
from kgen.specs.rules.caches import cache_of_inputs
from kgen.specs.rules.problem import Problem, rule
from kgen.specs.spec import Spec

# What one thread can copy past its registers.
COPIED_BYTES = (4, 8, MAX_ACCESS_BYTES)
# What atomics of every architecture exchange at once.
MAX_ATOMIC_BYTES = 8


@rule("dtype", "out_dtype")
def both_types_are_computed_alike(spec: Spec) -> Iterator[Problem]:
    """A kernel computes in one type, which is that of its input and of its output."""
    if (spec.out_dtype.compute or spec.out_dtype) != spec.compute:
        yield Problem(
            ("dtype", "out_dtype"),
            f"dtype={spec.dtype} with out_dtype={spec.out_dtype}: it is computed in "
            f"{spec.compute}, and the output is not of that; use out_dtype={spec.dtype}",
        )


@rule("exp", "dtype")
def the_exponential_is_of_the_type(spec: Spec) -> Iterator[Problem]:
    """An approximation is of one type."""
    if not spec.exp_call:
        yield Problem(
            ("exp", "dtype"),
            f"exp={spec.exp} with dtype={spec.dtype}: it has no form for {spec.compute.c_type}; "
            "use exp=expf, which is exp there",
        )


@rule("dtype", "cache", "vec_size", "vec_scans")
def copies_are_of_some_bytes(spec: Spec) -> Iterator[Problem]:
    """A thread copies 4, 8 or 16 bytes past its registers."""
    in_vecs = spec.vec_bytes if spec.vec_first else spec.element_bytes
    if spec.cache.is_copied and in_vecs not in COPIED_BYTES:
        yield Problem(
            ("dtype", "cache", "vec_size"),
            f"cache={spec.cache} with dtype={spec.dtype} and vec={spec.vec_size}: "
            f"{in_vecs} bytes are not copied past registers; "
            f"use vec={spec.dtype.vec_sizes[-1]},vec_scans=both or cache=inputs_shared",
        )


@rule("dtype", "next_row", "vec_size")
def next_rows_come_by_some_bytes(spec: Spec) -> Iterator[Problem]:
    """As copies for a cache do."""
    if spec.next_row.in_shared and spec.vec_bytes not in COPIED_BYTES:
        yield Problem(
            ("dtype", "next_row", "vec_size"),
            f"next_row={spec.next_row} with dtype={spec.dtype} and vec={spec.vec_size}: "
            f"{spec.vec_bytes} bytes are not copied past registers; "
            f"use vec={spec.dtype.vec_sizes[-1]} or next_row=registers",
        )


@rule("dtype", "cache")
def exponentials_fit_their_place(spec: Spec) -> Iterator[Problem]:
    """Exponentials are of the type that is computed with, and take the place of the inputs."""
    if spec.cache.is_copied and spec.keeps_exps and spec.dtype != spec.compute:
        yield Problem(
            ("dtype", "cache"),
            f"cache={spec.cache} with dtype={spec.dtype}: an exponential of {spec.compute} has no "
            f"room where an input was; use cache={cache_of_inputs(spec)}",
        )


@rule("dtype", "out_dtype", "row_io")
def chunks_are_of_one_type(spec: Spec) -> Iterator[Problem]:
    """The output of a chunk takes the place of the input."""
    if spec.in_chunks and spec.dtype != spec.out_dtype:
        yield Problem(
            ("out_dtype", "row_io"),
            f"row_io={spec.row_io} with dtype={spec.dtype} and out_dtype={spec.out_dtype}: the "
            "output takes the input's place in shared memory; use row_io=direct",
        )


@rule(*HINT_AXES, "dtype", "out_dtype", "vec_size")
def hints_are_of_single_accesses(spec: Spec) -> Iterator[Problem]:
    """A vector of the wider type may take two accesses, which no call makes."""
    elements = {"loads": spec.dtype, "stores": spec.out_dtype}
    for axis, choice in spec.hints.items():
        element = elements[axis]
        if (size := spec.vec_size * element.bytes) > MAX_ACCESS_BYTES:
            yield Problem(
                (axis, "vec_size", "dtype", "out_dtype"),
                f"{axis}={choice} with vec={spec.vec_size} of {element}: {size} bytes take two "
                f"accesses; use {axis}=plain or vec={element.vec_sizes[-1]}",
            )


@rule("dtype", "row_split", "update", "merge")
def states_of_tiles_are_exchanged_at_once(spec: Spec) -> Iterator[Problem]:
    """Blocks of several launches merge maximum and sum as one atomic word."""
    as_pair = spec.is_online or spec.merge.is_paired
    if spec.row_split.kernel_per_phase and as_pair and 2 * spec.compute_bytes > MAX_ATOMIC_BYTES:
        yield Problem(
            ("dtype", "row_split", "update", "merge"),
            f"row_split={spec.row_split} with dtype={spec.dtype}, update={spec.update} and "
            f"merge={spec.merge}: no atomic takes maximum and sum of {spec.compute} at once; "
            "use update=three_pass,merge=separate",
        )
