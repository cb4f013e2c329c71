"""Asks NVIDIA's tools on a GPU what kgen's CPU executor says without one, and writes both down.

usage: python bench/agreement/agree.py FOLDER
Needs a GPU, PyCUDA, compute-sanitizer, ncu and GCC. Writes FOLDER/agreement.json:
  clean    every version and 40 combinations under memcheck, racecheck, initcheck and synccheck
  counts   ncu's global load and store instructions, and kgen's, for the report's shapes
  mutants  what the tool that should see a mistake says of it, and what kgen says
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jobs

from kgen.evidence.check import check
from kgen.evidence.inputs import make
from kgen.execute import find_target, observe, source_for
from kgen.files import write_atomically
from kgen.gpu import device_info
from kgen.profile import ProfileTarget, profile_on_gpu
from kgen.sources.source import Source
from kgen.timing.provenance import this_run
from kgen.toolchain import compile_many

LAUNCH = Path(__file__).parent / "launch.py"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")


def under(tool: str, launched: list[str]) -> tuple[int, str]:
    """Run jobs under one tool of compute-sanitizer; return its number of errors and all it said."""
    command = ["compute-sanitizer", "--tool", tool, sys.executable, str(LAUNCH), *launched]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    summary = SUMMARY.search(said)
    return (int(summary[1]) if summary else -1), said


def _source(job: str) -> Source:
    name, _, shape = job.rpartition("@")
    rows, cols = (int(size) for size in shape.split("x"))
    return source_for(find_target(name), rows, cols)


def clean() -> dict[str, Any]:
    """Return each tool's errors over right kernels, and what the reference says of them."""
    launched = jobs.clean_jobs()
    compile_many([_source(job) for job in launched], device_info().arch)  # for all tools, at once
    with ThreadPoolExecutor(len(TOOLS)) as pool:
        found = dict(zip(TOOLS, pool.map(lambda tool: under(tool, launched), TOOLS), strict=True))
    right = {tool: said.count(": right\n") for tool, (_, said) in found.items()}
    named = {
        tool: sorted(set(re.findall(r"at (softmax_\w+)", said)))
        for tool, (_, said) in found.items()
    }
    return {
        "jobs": launched,
        "errors": {tool: errors for tool, (errors, _) in found.items()},
        "right_outputs": right,
        "kernels_named": named,
    }


def counts() -> list[dict[str, Any]]:
    """Return ncu's and kgen's warp-level global loads and stores side by side."""
    asked = [ProfileTarget(*counted) for counted in jobs.COUNTED]
    profiles, _ = profile_on_gpu(asked)
    found = []
    for job, profile in zip(asked, profiles, strict=True):
        x = make("uniform", job.rows, job.cols)
        own = observe(find_target(job.variant), x).counts[0]
        ncu = profile.values
        found.append(
            {
                "variant": job.variant,
                "rows": job.rows,
                "cols": job.cols,
                "ncu": {"loads": ncu["global_loads"], "stores": ncu["global_stores"]},
                "kgen": {"loads": own.global_loads, "stores": own.global_stores},
            }
        )
    return found


def mutants() -> list[dict[str, Any]]:
    """Return what the tools and kgen say of each mutant."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        written = jobs.mutant_jobs(Path(folder))
        return list(pool.map(lambda job: _mutant(*job), written.items()))


def _mutant(job: str, tool: str) -> dict[str, Any]:
    errors, said = under(tool, [job])
    file, _, shape = job.rpartition("@")
    rows, cols = (int(size) for size in shape.split("x"))
    verdict = [line.rpartition(": ")[2] for line in said.splitlines() if line.startswith(job)]
    own = check(find_target(file), shapes=[(rows, cols)], memory=True, races=True)
    ours = next((row for row in own if not row.ok), None)
    return {
        "mutant": Path(file).stem,
        "shape": shape,
        "tool": tool,
        "tool_errors": errors,
        "output_on_gpu": (verdict or ["no verdict"])[0],
        "kgen_found_by": ours.found_by if ours else "",
        "kgen_says": ours.reason.replace(file, Path(file).name) if ours else "nothing",
    }


def main() -> None:
    """Ask, compare, write, and print a short table."""
    folder = Path(sys.argv[1])
    result = {
        "machine": asdict(this_run()),
        "counts": counts(),
        "mutants": mutants(),
        "clean": clean(),
    }
    write_atomically(folder / "agreement.json", json.dumps(result, indent=1) + "\n")
    for row in result["counts"]:
        print(row["variant"], row["rows"], row["cols"], row["ncu"], row["kgen"])
    for row in result["mutants"]:
        print(row["mutant"], row["tool"], row["tool_errors"], "|", row["kgen_found_by"])
    print({key: value for key, value in result["clean"].items() if key != "jobs"})
    print(len(result["clean"]["jobs"]), "jobs")


if __name__ == "__main__":
    main()
