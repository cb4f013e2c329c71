"""Where, when and with what a run measures."""

from __future__ import annotations

import subprocess
import uuid
from datetime import UTC, datetime
from pathlib import Path

from kgen import __version__
from kgen.gpu import device_info
from kgen.gpu.nvml import device_uuid
from kgen.sources.render import template_hash
from kgen.store.measurement import Provenance
from kgen.toolchain import find_nvcc


def this_run(commit: str | None = None) -> Provenance:
    """Describe a run on this machine's GPU that begins now; `commit` is git's by default.

    Raises MissingTool without a GPU or nvcc.
    """
    gpu = device_info()
    now = datetime.now(UTC)
    return Provenance(
        run=f"{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}",
        measured_at=now.isoformat(timespec="seconds"),
        device=gpu.name,
        device_uuid=device_uuid(),
        arch=gpu.arch,
        driver=gpu.driver,
        toolchain=f"nvcc {find_nvcc().version}",
        kgen=__version__,
        templates=template_hash(),
        commit=checkout_commit() if commit is None else commit,
    )


def checkout_commit() -> str:
    """Return the commit of the checkout that kgen runs from, or nothing."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
