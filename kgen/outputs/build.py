"""Writes sources to files, compiles them, and keeps `generated/` in step with the templates."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgen.errors import UsageError
from kgen.files import write_atomically
from kgen.overlay import OURS
from kgen.sources.render import render, template_hash
from kgen.sources.source import Source
from kgen.specs.spec import DEFAULT_COLS
from kgen.specs.versions import VERSIONS
from kgen.toolchain.binary import KernelResources
from kgen.version import __version__

if TYPE_CHECKING:
    from kgen.toolchain import Binary

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class KernelReport(KernelResources):
    """What one kernel takes on one architecture, and how full an SM can be with it.

    `dynamic_shared_bytes` are those of a launch, on rows of the length that was asked for.
    `occupancy` is the fraction of an SM's warps (0 to 1); `limited_by` says what stops more.
    """

    dynamic_shared_bytes: int
    occupancy: float
    limited_by: tuple[str, ...]


def place(source: Source, folder: Path) -> Path:
    """Return where `write` puts a source: under its own name, an edited file under the file's."""
    return folder / (source.path or Path(source.filename)).name


def write(source: Source, folder: Path, force: bool = False) -> Path:
    """Write a source into `folder` and return its path.

    Raises UsageError when that cannot be done, and, unless `force` is set, when the file there was
    edited by hand: it names the templates that are in use, and yet differs from what they give.
    """
    path = place(source, folder)
    if not force and path.is_file() and _is_edited(path.read_bytes(), source):
        raise UsageError(
            f"{path} was edited by hand and would be lost; move it, or build with --force"
        )
    write_atomically(path, source.text)
    return path


def _is_edited(found: bytes, source: Source) -> bool:
    if source.contract:
        return found != source.text.encode()
    origin = f"(kgen {__version__}, templates {template_hash(source.spec.overlay)})".encode()
    return origin in found and found != source.text.encode()


def kernel_reports(source: Source, binary: Binary, cols: int = DEFAULT_COLS) -> list[KernelReport]:
    """Return what the compiled kernels take; a shared cache counts with rows of `cols`."""
    from kgen.toolchain.occupancy import occupancy

    rows = []
    for kernel in binary.kernels:
        block, dynamic = _block(source, kernel.kernel, cols)
        shared = kernel.static_shared_bytes + dynamic
        full = occupancy(binary.arch, block, kernel.registers, shared)
        rows.append(
            KernelReport(
                **asdict(kernel),
                dynamic_shared_bytes=dynamic,
                occupancy=full.fraction,
                limited_by=full.limited_by,
            )
        )
    return rows


def _block(source: Source, kernel: str, cols: int) -> tuple[int, int]:
    """Return the threads and the dynamic shared bytes of a kernel's blocks on rows of `cols`."""
    spec = source.spec
    if not source.contract:
        return spec.threads_per_block, spec.shared_bytes(spec.static_cols or cols)
    launches = source.contract.plan(1, cols).launches
    launch = next(each for each in launches if each.kernel == kernel)
    return launch.block, launch.shared_bytes


def named_sources() -> dict[str, Source]:
    """Return the sources of all named versions by name."""
    return {name: render(version.spec) for name, version in VERSIONS.items()}


def manifest(sources: dict[str, Source]) -> str:
    """Return the manifest of a folder of sources: variant, kernels and SHA-256 of every file."""
    files = {
        source.filename: {
            "variant": name,
            "kernels": list(source.kernels),
            "sha256": hashlib.sha256(source.text.encode()).hexdigest(),
        }
        for name, source in sources.items()
    }
    content: dict[str, Any] = {
        "kgen": __version__,
        "templates": template_hash(OURS),
        "files": files,
    }
    return json.dumps(content, indent=2) + "\n"


def write_all(folder: Path, force: bool = False) -> list[Path]:
    """Write every named version and the manifest into `folder`, as `write` does."""
    sources = named_sources()
    paths = [write(source, folder, force) for source in sources.values()]
    write_atomically(folder / MANIFEST, manifest(sources))
    return [*paths, folder / MANIFEST]


def drifted(folder: Path) -> list[str]:
    """Return what differs between `folder` and what the templates give now, one phrase a file.

    Files that neither a version nor the folder's manifest names are a user's own.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder} to check; write it with kgen build --all")
    sources = named_sources()
    expected = {source.filename: source.text for source in sources.values()}
    expected[MANIFEST] = manifest(sources)
    changed = [
        f"{name} {'differs' if (folder / name).exists() else 'is missing'}"
        for name, text in expected.items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != text.encode()
    ]
    left = [name for name in _listed(folder) if name not in expected and (folder / name).exists()]
    return sorted([*changed, *(f"{name} belongs to no version" for name in left)])


def _listed(folder: Path) -> list[str]:
    """Return the files that the folder's manifest names; a damaged manifest differs anyway."""
    try:
        return list(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, LookupError, TypeError):
        return []
