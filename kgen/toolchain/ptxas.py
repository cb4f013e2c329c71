"""Reads what `ptxas -v` says of each kernel, and tells it from what else the compiler says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgen.toolchain.binary import KernelResources

_ENTRY = re.compile(r"ptxas info\s*: Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"ptxas info\s*: Function properties for (\S+)")
_FRAME = re.compile(
    r"\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED = re.compile(r"ptxas info\s*: Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


@dataclass
class _Report:
    """The lines of one kernel's report, as far as they were read."""

    kernel: str
    function: str = ""
    frame: tuple[int, int, int] = (0, 0, 0)


def parse_resources(output: str) -> tuple[KernelResources, ...]:
    """Return the resources of every kernel in the output of `nvcc -Xptxas -v`, in its order.

    The report of a kernel is an `entry function` line, `function properties` with the stack frame
    (the same for device functions that were not inlined, which are passed over) and a `Used` line.
    """
    kernels = []
    report = _Report("")
    for line in output.splitlines():
        if entry := _ENTRY.match(line):
            report = _Report(entry[1])
        elif properties := _PROPERTIES.match(line):
            report.function = properties[1]
        elif (frame := _FRAME.match(line)) and report.function == report.kernel:
            report.frame = (int(frame[1]), int(frame[2]), int(frame[3]))
        elif used := _USED.match(line):
            shared = _SHARED.search(line)
            kernels.append(
                KernelResources(
                    report.kernel, int(used[1]), *report.frame, int(shared[1]) if shared else 0
                )
            )
    return tuple(kernels)


def warnings_of(output: str) -> str:
    """Return the compiler's output without the `ptxas -v` report: empty if it had no complaint."""
    lines = output.splitlines()
    kept = [line for line in lines if not line.startswith("ptxas info") and not _FRAME.match(line)]
    return "\n".join(kept).strip()
