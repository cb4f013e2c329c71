"""The compile options that change a kernel's machine code, as nvcc flags."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.errors import UsageError

# ptxas moves a limit outside this range to one of its ends, with no more than a warning.
MIN_REGISTER_LIMIT = 24
MAX_REGISTER_LIMIT = 255


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """How to compile; the same flags for everyone who calls nvcc, so that results are comparable.

    `maxrregcount` limits the registers of a thread (24 to 255, None: no limit), `use_fast_math`
    allows approximate division and exponentials and flushes denormals to zero, `lineinfo` keeps
    the source lines for profilers. Raises UsageError for a register limit ptxas would not honour.
    """

    maxrregcount: int | None = None
    use_fast_math: bool = False
    lineinfo: bool = False

    def __post_init__(self) -> None:
        limit = self.maxrregcount
        if limit is not None and not MIN_REGISTER_LIMIT <= limit <= MAX_REGISTER_LIMIT:
            raise UsageError(
                f"maxrregcount={limit} is outside {MIN_REGISTER_LIMIT} to {MAX_REGISTER_LIMIT}, "
                "the register limits that ptxas honours; choose one of these or leave it out"
            )

    def flags(self) -> tuple[str, ...]:
        """Return the nvcc flags in a fixed order, without architecture, input and output."""
        flags = ["--std=c++17", "-O3"]
        if self.maxrregcount is not None:
            flags.append(f"-maxrregcount={self.maxrregcount}")
        if self.use_fast_math:
            flags.append("--use_fast_math")
        if self.lineinfo:
            flags.append("-lineinfo")
        return tuple(flags)
