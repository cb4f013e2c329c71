"""Finds NVIDIA's Nsight Compute (ncu) and has it watch softmax calls."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from kgen.errors import CheckFailed, MissingTool
from kgen.machine_trouble import require_no_trouble
from kgen.processes import python, run
from kgen.profile.job import TEMPLATES, ProfileTarget
from kgen.profile.metrics import ncu_metrics
from kgen.profile.parse import words_of
from kgen.toolchain.find import Tool, named_by_user, probe

# What --cache-control is for each: flush all caches before every pass over a kernel, or leave them
# as the pass before left them.
CACHES = {"cold": "all", "warm": "none"}

_VARIABLE = "KGEN_NCU"
_VERSION_LINE = r"^Version (\d+[\d.]*)"
_INSTALLED = (
    (Path("/usr/local"), "cuda*/bin/ncu"),
    (Path("/opt/nvidia/nsight-compute"), "*/ncu"),
)
_TARGET_FAILED = "kgen: "


def find_ncu() -> Tool:
    """Return the first ncu that runs: $KGEN_NCU, PATH, $CUDA_HOME, $CUDA_PATH, then the newest of
    the toolkits and of Nsight Compute's own folders. Raises MissingTool if there is none.
    """
    if named := os.environ.get(_VARIABLE):
        if tool := probe(Path(named), f"${_VARIABLE}", _VERSION_LINE):
            return tool
        raise MissingTool(
            f"{_VARIABLE}={named} is not an ncu that runs; correct or unset the variable"
        )
    for path, found_by in _candidates():
        if tool := probe(path, found_by, _VERSION_LINE):
            return tool
    raise MissingTool(
        "no ncu on PATH, under $CUDA_HOME, /usr/local/cuda* or /opt/nvidia/nsight-compute: install "
        "NVIDIA Nsight Compute (the CUDA toolkit has it, and so does the package "
        f"cuda-nsight-compute) or name it in {_VARIABLE}; kgen profile --on cpu counts without it"
    )


def _candidates() -> Iterator[tuple[Path, str]]:
    yield from named_by_user("ncu")
    for folder, pattern in _INSTALLED:
        for path in sorted(folder.glob(pattern), key=_version_in, reverse=True):
            yield path, str(folder)


def _version_in(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def command(ncu: Tool, jobs: Sequence[ProfileTarget], cache: str) -> list[str]:
    """Return the command line that measures all metrics of every launch of the jobs.

    Clocks stay as they are, as when kernels are timed; `cache` is a key of `CACHES`.
    """
    options = {
        "--clock-control": "none",
        "--cache-control": CACHES[cache],
        "--replay-mode": "kernel",
        "--print-units": "base",
        "--metrics": ",".join(ncu_metrics()),
    }
    told = [word for option in options.items() for word in option]
    folders = {f"{TEMPLATES}{job.overlay.folder}" for job in jobs if job.overlay.folder}
    target = python("kgen.profile.launch", *folders, *jobs)
    return [str(ncu.path), "--csv", *told, *target]


def watched(ncu: Tool, jobs: Sequence[ProfileTarget], cache: str, timeout_s: float) -> str:
    """Return what ncu prints for the jobs, each run once.

    Raises CheckFailed with the words of the launched program, or of an ncu that fails without
    naming an error (those that it names are the parser's), or when it takes longer than `timeout_s`
    seconds.
    """
    printed, code = _run(command(ncu, jobs, cache), timeout_s)
    _require_success(printed, code)
    return printed


def _require_success(printed: str, code: int) -> None:
    for line in printed.splitlines():
        if line.startswith(_TARGET_FAILED):
            raise CheckFailed(line.removeprefix(_TARGET_FAILED))
    if code != 0 and not words_of(printed):
        require_no_trouble("ncu", code, printed)
        last = printed.strip().splitlines()[-1:] or ["it said nothing"]
        raise CheckFailed(f"ncu ended with exit code {code}: {last[0]}")


def _run(command: list[str], timeout_s: float) -> tuple[str, int]:
    """Return what the command prints, on both streams, and its exit code."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}  # numbers with a decimal point everywhere
    try:
        ran = run(command, stderr=subprocess.STDOUT, env=environment, timeout_s=timeout_s)
    except subprocess.TimeoutExpired:
        raise CheckFailed(
            f"ncu took longer than {timeout_s:g} s and was stopped; give it more with "
            "--timeout, or see with kgen check whether a kernel hangs"
        ) from None
    return ran.stdout, ran.returncode
