"""Disassembles a cubin to the machine code (SASS) of its kernels."""

from __future__ import annotations

import re
import tempfile

from kgen.cachedir import temporary_dir
from kgen.errors import MissingTool
from kgen.machine_trouble import require_no_trouble
from kgen.processes import run
from kgen.toolchain.binary import Binary
from kgen.toolchain.find import INSTALL_HINT, find_disassembler

# A kernel's code reaches from its label to the blank line before the next section, or to the end.
_CODE = re.compile(r"^\.text\.(\S+):\n(.*?)\s*(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
# Labels and nvcc's own functions, which are numbered through all of a cubin's kernels.
_NUMBERED = re.compile(r"(\.L_x_|\$__internal_)(\d+)")


def sass_by_kernel(binary: Binary) -> dict[str, str]:
    """Return each kernel's instructions and branch labels, a line each, in nvdisasm's form.

    The labels are numbered by kernel, so that the same code is the same text in any cubin.
    Raises MissingTool if there is no disassembler or it is too old for the binary's architecture.
    """
    text = _disassemble(binary)
    code = {found[1]: _renumbered(found[2]) for found in _CODE.finditer(text)}
    return {kernel.kernel: code[kernel.kernel] for kernel in binary.kernels}


def _renumbered(code: str) -> str:
    """Number a kernel's labels from 0, whatever else is in the cubin."""
    numbers: dict[str, int] = {}

    def renumber(found: re.Match[str]) -> str:
        return f"{found[1]}{numbers.setdefault(found[0], len(numbers))}"

    return _NUMBERED.sub(renumber, code)


def sass(binary: Binary) -> str:
    """Return the machine code of all kernels, each under a `Function : name` line.

    Raises MissingTool as `sass_by_kernel` does.
    """
    parts = [f"Function : {name}\n{code}\n" for name, code in sass_by_kernel(binary).items()]
    return "\n".join(parts)


def _disassemble(binary: Binary) -> str:
    tool = find_disassembler()
    with tempfile.NamedTemporaryFile(dir=temporary_dir(), suffix=".cubin") as cubin:
        cubin.write(binary.image)
        cubin.flush()
        ran = run([tool.path, "-c", cubin.name])
    if ran.returncode != 0:
        require_no_trouble("nvdisasm", ran.returncode, ran.stderr)
        raise MissingTool(
            f"nvdisasm {tool.version} at {tool.path} cannot read code for {binary.arch} "
            f"({ran.stderr.strip()}); get a newer one with {INSTALL_HINT}"
        )
    return ran.stdout
