"""The CPU executor: compiles a generated `.cu` unmodified and runs it with CUDA's semantics."""

from kgen.cpu.compiler import find_cxx
from kgen.cpu.observation import Counts, MemoryFault, Observation, Race
from kgen.cpu.observe import observe
from kgen.cpu.run import SCHEDULES, run

__all__ = [
    "SCHEDULES",
    "Counts",
    "MemoryFault",
    "Observation",
    "Race",
    "find_cxx",
    "observe",
    "run",
]
