"""Where kgen keeps what it can make again, and what it needs for a moment."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from kgen.errors import MissingTool
from kgen.files import named_path
from kgen.hindered import telling_hindrances


def cache_dir(kind: str) -> Path:
    """Return the absolute folder of one kind of cached thing; $KGEN_CACHE_DIR moves all."""
    root = os.environ.get("KGEN_CACHE_DIR") or platformdirs.user_cache_dir("kgen")
    return named_path(root).absolute() / kind


@contextmanager
def writing_cache(folder: Path) -> Iterator[None]:
    """Make a folder of the cache for what writes into it.

    Raises MissingTool for what the system refuses there, Hindered for lack of space and the like.
    """
    try:
        with telling_hindrances(f"the cache folder {folder} cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
            yield
    except OSError as error:
        raise MissingTool(
            f"the cache folder {folder} cannot be written ({error.strerror}): "
            "set KGEN_CACHE_DIR to one that can"
        ) from None


def temporary_dir() -> Path:
    """Return the absolute folder for temporary files, $TMPDIR or the system's.

    Python and GCC pass over a TMPDIR that is of no use, nvcc does not. Raises MissingTool when no
    file can be made there, Hindered when that is for lack of space or the like.
    """
    folder = Path(os.environ.get("TMPDIR") or "/tmp").absolute()
    try:
        with (
            telling_hindrances(f"no temporary file can be made in {folder}"),
            tempfile.TemporaryFile(dir=folder),
        ):
            return folder
    except OSError as error:
        raise MissingTool(
            f"no temporary file can be made in {folder} ({error.strerror}): "
            "set TMPDIR to a folder that can be written"
        ) from None
