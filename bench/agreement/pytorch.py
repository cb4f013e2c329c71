"""Compares outputs with PyTorch's, element by element, on rows of every kind of input.

usage: python bench/agreement/pytorch.py FILE

Needs a GPU and PyTorch. For each operation and pair of types FILE gets how many elements are NaN or
infinite in one of the two outputs alone, how many differ, and by how many units in the last place
of the output's type at most; and, where some element is so different, the first one.
"""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kgen.evidence.check import mixed_rows
from kgen.evidence.inputs import ALL_INPUTS
from kgen.execute import run
from kgen.files import write_atomically
from kgen.numpy_types import finfo, numpy_dtype
from kgen.specs.variants import checked
from kgen.timing.provenance import this_run

VARIANT = "v11:items=auto"
ROWS, COLS = 20 * len(ALL_INPUTS), 1023
TYPES = (
    *(("float32", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16")),
    *(("float64", "float64"), ("float16", "float32"), ("bfloat16", "float32")),
)
OPS = ("softmax", "log_softmax")


def of_pytorch(x: Any, op: str, out_dtype: str) -> Any:
    """Return PyTorch's output for a NumPy matrix."""
    bits = torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}")).cuda()
    source, target = (getattr(torch, word) for word in (str(x.dtype), out_dtype))
    y = getattr(torch, op)(bits.view(source), 1, dtype=target)
    wanted = numpy_dtype(out_dtype)
    return y.view(getattr(torch, f"int{8 * wanted.itemsize}")).cpu().numpy().view(wanted)


def ulps(ours: Any, theirs: Any, element: str) -> Any:
    """Return by how many units in the last place of the larger one the finite elements differ."""
    limits = finfo(element)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    size = np.maximum(np.maximum(np.abs(a), np.abs(b)), float(limits.smallest_normal))
    unit = np.exp2(np.floor(np.log2(size))) * float(limits.eps)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b) / unit, 0.0)


def compared(op: str, dtype: str, out_dtype: str) -> dict[str, Any]:
    """Return how our output and PyTorch's differ."""
    spec = checked(f"{VARIANT},op={op},dtype={dtype},out_dtype={out_dtype}")
    x = mixed_rows(ALL_INPUTS, ROWS, COLS, spec.dtype)
    ours, theirs = run(spec, x, on="gpu"), of_pytorch(x, op, out_dtype)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    nan, infinite = np.isnan(a) != np.isnan(b), np.isinf(a) != np.isinf(b)
    apart = ulps(ours, theirs, out_dtype)
    worst = np.argmax(apart + 1e9 * (nan | infinite))
    row, col = (int(i) for i in np.unravel_index(worst, a.shape))
    return {
        "op": op,
        "dtype": dtype,
        "out_dtype": out_dtype,
        "elements": a.size,
        "nan_in_one": int(nan.sum()),
        "inf_in_one": int((infinite & ~nan).sum()),
        "differ": int(((a != b) & ~(np.isnan(a) & np.isnan(b))).sum()),
        "most_ulps": float(apart.max()),
        "worst": {
            "input": ALL_INPUTS[row % len(ALL_INPUTS)],
            "x": repr(float(x[row, col])),
            "ours": repr(float(a[row, col])),
            "theirs": repr(float(b[row, col])),
        },
    }


def main() -> None:
    """Compare all operations and types, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    asked = parser.parse_args()
    found = [compared(op, *types) for op, types in itertools.product(OPS, TYPES)]
    for row in found:
        print({name: value for name, value in row.items() if name != "worst"}, row["worst"])
    report = {
        "machine": asdict(this_run()),
        "pytorch": torch.__version__,
        "variant": VARIANT,
        "results": found,
    }
    write_atomically(asked.file, json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
