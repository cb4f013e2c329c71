"""The CPU executor: compiles a generated `.cu` unmodified and runs it with CUDA's semantics."""

from kgen.cpu.compiler import find_cxx
from kgen.cpu.run import SCHEDULES, run

__all__ = ["SCHEDULES", "find_cxx", "run"]
