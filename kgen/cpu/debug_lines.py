"""From an instruction of an executable to the line of the source that it was made from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from kgen.processes import run


def source_line(program_counter: int, executable: Path, filename: str) -> int:
    """Return the source's line for an instruction, 0 when unknown."""
    return source_lines([program_counter], executable, filename).get(program_counter, 0)


def source_lines(
    program_counters: Iterable[int], executable: Path, filename: str
) -> dict[int, int]:
    """Return the source's line for each instruction that has one; needs binutils' addr2line."""
    counters = [counter for counter in dict.fromkeys(program_counters) if counter]
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if not counters or not tool:
        return {}
    # With -i also the places into which the instruction was inlined, innermost first; with -a each
    # instruction's lines follow its address.
    command = [tool, "-a", "-i", "-e", str(executable), *map(hex, counters)]
    output = run(command).stdout
    answers = re.split(r"^0x[0-9a-f]+$", output, flags=re.MULTILINE)[1:]
    place = re.compile(rf"(?:^|/){re.escape(filename)}:(\d+)", re.MULTILINE)
    found = {
        counter: place.search(answer) for counter, answer in zip(counters, answers, strict=True)
    }
    return {counter: int(match[1]) for counter, match in found.items() if match}
