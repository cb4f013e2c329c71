"""What a launch usually is, of kernels whose file does not launch them."""

from __future__ import annotations

import re

from kgen.adopted.body import row_expression
from kgen.adopted.sidecar import Number, Size
from kgen.adopted.syntax import CudaFile, Kernel, text_of

DEFAULT_BLOCK = 256
_THREADS = re.compile(r"block|thread|tpb|num_t|\bB\b|\bBS\b", re.IGNORECASE)
_WARP_OF = re.compile(r"/ *(32|warpSize|\w*WARP\w*)|>> *5", re.IGNORECASE)
_DIVIDED = re.compile(r"/ *([A-Za-z_]\w*|\d+)")
UNSAID = "nothing in the file says it"
UNKNOWN = "is not known"


def usual_block(file: CudaFile, kernel: Kernel, template: dict[str, Number]) -> tuple[Size, str]:
    """Return a block and why: launch bounds, a constant of such a name, or what is common."""
    body = text_of(kernel.body)
    bounds = next((n for n in kernel.definition.children if n.type == "launch_bounds"), None)
    if bounds is not None:
        said = text_of(bounds.named_children[0])
        return as_size(str(template.get(said, said))), "from __launch_bounds__"
    for name in (*template, *file.constants):
        if _THREADS.search(name) and re.search(rf"\b{name}\b", body):
            return as_size(str(template.get(name, name))), f"from {name}"
    if "threadIdx.y" in body:
        return [32, 4], "a warp a row, four rows a block"
    is_warp = "shfl" in body and "__shared__" not in body and not _WARP_OF.search(body)
    return (32 if is_warp and "blockDim" not in body else DEFAULT_BLOCK), UNSAID


def usual_grid(file: CudaFile, kernel: Kernel, block: Size, is_vector: bool) -> tuple[Size, str]:
    """Return a grid and why: by how the kernel computes its row."""
    row = row_expression(kernel)
    rows_of_block = block[-1] if isinstance(block, list) else block
    if not row:
        return 1, "no blockIdx: one block"
    if "blockIdx.y" in row and "blockIdx.x" not in row:
        return [1, "rows"], row
    if "threadIdx.y" in row or "blockDim.y" in row:
        return f"ceil_div(rows, {rows_of_block})", f"{row}: a row for each threadIdx.y"
    if "threadIdx" in row and (divided := _DIVIDED.search(row)):
        lanes = divided[1] if divided[1] in file.constants or divided[1].isdigit() else "32"
        return f"ceil_div({lanes} * rows, block)", f"{row}: {lanes} threads for each row"
    if "threadIdx" not in row and re.search("warp", row, re.I):
        return "ceil_div(32 * rows, block)", f"{row}: a row for each warp"
    if "threadIdx" in row:
        return f"ceil_div({'cols' if is_vector else 'rows'}, block)", f"{row}: a thread for each"
    return "rows", f"{row}: a block for each row"


def as_size(text: str) -> Size:
    """Return a size as the sidecar has it: a number where it is one."""
    return int(text) if text.isdigit() else text


def names_threads(template: dict[str, Number], block: Size) -> Size:
    """Return a block by the template's name for it, if there is one: both then change together."""
    same = (name for name, value in template.items() if value == block and _THREADS.search(name))
    return next(same, block)
