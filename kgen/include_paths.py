"""Where compilers look for headers besides the source's own folder."""

from __future__ import annotations

import os
from pathlib import Path

_VARIABLES = ("CPATH", "CPLUS_INCLUDE_PATH")


def include_paths() -> dict[str, str]:
    """Return the variables that name such folders, as far as they are set.

    The folders are absolute: what is relative is meant from where the user is, and compilers run
    elsewhere. An empty entry is the folder where the user is, as compilers have it.
    """
    return {
        name: os.pathsep.join(str(Path(folder).absolute()) for folder in value.split(os.pathsep))
        for name in _VARIABLES
        if (value := os.environ.get(name))
    }
