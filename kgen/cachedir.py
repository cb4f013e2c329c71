"""Where kgen keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir(kind: str) -> Path:
    """Return the folder for one kind of cached thing; $KGEN_CACHE_DIR moves all of them."""
    root = os.environ.get("KGEN_CACHE_DIR") or platformdirs.user_cache_dir("kgen")
    return Path(root) / kind
