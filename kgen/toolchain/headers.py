"""The headers that nvcc read: where a user's are found, and which they were."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from kgen.text import with_name
from kgen.toolchain.source import Compilable

# A link in the folder where a copy of a user's file is compiled to the folder that it is from.
# Names of any kind may stand in that folder's path, and nvcc takes commas and quotes apart.
NEIGHBOURS = "neighbours"
_FILE = re.compile(r"(?:\\[\s#:]|\S)+")


def link_neighbours(source: Compilable, folder: Path) -> None:
    """Let the copy of a user's file in `folder` include what stands beside the file."""
    if source.path:
        with suppress(FileExistsError):
            (folder / NEIGHBOURS).symlink_to(source.path.absolute().parent)


def headers_of(rule: str, file: Path) -> list[str]:
    """Return the headers of a rule for make, `cubin : file header ...`, by absolute paths."""
    _, _, prerequisites = rule.replace("\\\n", " ").partition(" : ")
    names = [_unquoted(name) for name in _FILE.findall(prerequisites)]
    return [str(file.parent / name) for name in names if name != file.name]


def _unquoted(name: str) -> str:
    return re.sub(r"\\([\s#:])", r"\1", name).replace("$$", "$")


def with_users_names(output: str, file: Path, name: str) -> str:
    """Return nvcc's output with the file by the user's `name`, and its neighbours accordingly."""
    folder = "" if Path(name).name == name else f"{Path(name).parent}/"
    return with_name(with_name(output, f"{NEIGHBOURS}/", folder), file.name, name)
