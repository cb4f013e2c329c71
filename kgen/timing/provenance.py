"""Where, when and with what a run measures."""

from __future__ import annotations

import os
import platform
import subprocess
import uuid
from datetime import UTC, datetime
from pathlib import Path

from kgen.cpu.compiler import describe_cxx, find_cxx
from kgen.execute import require_place
from kgen.gpu import device_info
from kgen.gpu.nvml import device_uuid
from kgen.overlay import OURS, Overlay
from kgen.processes import run
from kgen.sources.render import template_hash
from kgen.store.measurement import CPU, Provenance
from kgen.toolchain import find_nvcc
from kgen.version import __version__


def this_run(on: str = "gpu", commit: str | None = None, overlay: Overlay = OURS) -> Provenance:
    """Describe a run that begins now, on the GPU or the CPU, of `checkout_commit()` by default.

    Raises MissingTool without a GPU or nvcc, or on the CPU without a C++ compiler; UsageError for
    another place.
    """
    require_place(on)
    now = datetime.now(UTC)
    device = _gpu() if on == "gpu" else _cpu()
    return Provenance(
        run=f"{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}",
        measured_at=now.isoformat(timespec="seconds"),
        **device,
        kgen=__version__,
        templates=template_hash(overlay),
        commit=checkout_commit() if commit is None else commit,
    )


def _gpu() -> dict[str, str]:
    gpu = device_info()
    return {
        "device": gpu.name,
        "device_uuid": device_uuid(),
        "arch": gpu.arch,
        "driver": gpu.driver,
        "toolchain": f"nvcc {find_nvcc().version}",
    }


def _cpu() -> dict[str, str]:
    return {
        "device": CPU,
        "arch": platform.machine(),
        "toolchain": describe_cxx(find_cxx()).partition("\n")[0],
    }


def checkout_commit() -> str:
    """Return the commit of the checkout that kgen runs from: $KGEN_COMMIT, git's, or nothing."""
    if named := os.environ.get("KGEN_COMMIT"):
        return named
    try:
        # An installed kgen may lie in the checkout of something else, which does not track it.
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        return _git("rev-parse", "--short=12", "HEAD").strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    ran = run(command)
    ran.check_returncode()
    return ran.stdout
