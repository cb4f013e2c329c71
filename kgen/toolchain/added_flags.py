"""Flags that a user adds to every call of nvcc, by variables of nvcc's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from kgen.errors import UsageError

VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")

# What decides the architecture, the registers, the optimization, the arithmetic, and what is made;
# and a file of further flags, which could decide it, too.
_DECIDES = """
    arch gpu-architecture gencode generate-code code gpu-code arch-list
    maxrregcount
    O optimize opt-level Ofc Ofast-compile dopt G device-debug
    use_fast_math ftz prec-div prec-sqrt fmad
    c compile cubin ptx fatbin optix-ir cuda dc device-c dw device-w dlink device-link lib run
    E preprocess M generate-dependencies MM generate-nonsystem-dependencies MF MT dependency-output
    o output-file rdc relocatable-device-code dlto dlink-time-opt
    optf options-file
""".split()
# nvcc takes words apart at blanks whatever quotes there are, and lists at commas. The value stands
# in the same word or the next one.
_SETTING = re.compile(
    rf"(?:^|[\s=,])--?(O(?=\d)|(?:{'|'.join(map(re.escape, _DECIDES))})(?![\w-]))"
    r"(?:[\s=]*([^\s-]\S*))?"
)
# The host compiler's own, and names for the preprocessor.
_HARMLESS = re.compile(r"(^|\s)-(Xcompiler[\s=]+|-compiler-options[\s=]+|[DIU]\s*)\S+")


def added_flags() -> tuple[str, ...]:
    """Return the flags that the variables add, in nvcc's order."""
    return tuple(flag for name in VARIABLES for flag in os.environ.get(name, "").split())


def require_no_contradiction(flags: Iterable[str]) -> None:
    """Raise UsageError when a variable decides other than `flags`, kgen's own, what is compiled."""
    asked = _settings(" ".join(flags))
    for name in VARIABLES:
        for setting in _settings(os.environ.get(name, "")):
            if setting not in asked:
                flag = " ".join(setting).strip()
                raise UsageError(
                    f"{name} has -{flag}, against what kgen asks of nvcc; take it out and give "
                    "architecture and flags to kgen"
                )


def _settings(text: str) -> list[tuple[str, str]]:
    return [(found[1], found[2] or "") for found in _SETTING.finditer(_HARMLESS.sub("", text))]
