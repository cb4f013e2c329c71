"""From what the executable reports to the KernelFault that a user reads."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kgen.cpu.compiler import with_shown_name
from kgen.cpu.debug_lines import source_line
from kgen.cpu.process import ProcessEnd
from kgen.errors import KernelFault, KernelTimeout
from kgen.launch import LaunchPlan
from kgen.sources.source import Source

_REPORT_START = '{"kernel": '
_NO_THREAD = -1
# What wrong memory leads to; other signals come from outside.
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)


@dataclass(frozen=True)
class Report:
    """One fault: a line of JSON that the executable printed (runtime/report.h)."""

    kernel: str
    block: int
    thread: int
    file: str
    line: int  # 0 when only the program counter is known
    program_counter: int
    message: str


_REPORT = msgspec.json.Decoder(Report)


def fault_of(
    source: Source, plan: LaunchPlan, executable: Path, outcome: ProcessEnd, timeout_s: float
) -> KernelFault:
    """Return what to raise for a run that did not end well, or not in `timeout_s` seconds."""
    lines = outcome.messages.splitlines()
    reports = [_REPORT.decode(line) for line in lines if line.startswith(_REPORT_START)]
    limit = f" of {timeout_s:g} s" if outcome.timed_out else ""
    kind = KernelTimeout if outcome.timed_out else KernelFault
    if reports:
        # Which blocks run at the same time is chance; the lowest faulty one is always among them.
        first = min(reports, key=lambda report: report.block)
        line = first.line or source_line(first.program_counter, executable, source.filename)
        return kind(_describe(source, line, first) + limit, line)
    if outcome.messages:
        why = outcome.messages.strip()
    elif outcome.timed_out:
        why = f"killed at its time limit{limit}"
    elif -outcome.exit_code in _CRASHES:
        why = (
            f"crashed the CPU executor ({signal.Signals(-outcome.exit_code).name}), whose memory "
            "an access out of bounds has changed; kgen check --memory names the access"
        )
    else:
        why = f"ended the CPU executor with exit code {outcome.exit_code}"
    return kind(f"{source.shown_name}: {kernel_names(plan)}: {why}")


def kernel_names(plan: LaunchPlan) -> str:
    """Return the plan's kernels as a message names them."""
    names = list(dict.fromkeys(launch.kernel for launch in plan.launches))
    return f"kernel{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _describe(source: Source, line: int, report: Report) -> str:
    place = report.file or source.filename
    if line:
        place += f":{line}"
    who = f"kernel {report.kernel}, block {report.block}"
    if report.thread != _NO_THREAD:
        who += f", thread {report.thread}"
    return with_shown_name(source, f"{place}: {who}: {report.message}")
