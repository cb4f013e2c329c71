"""Folders that take no file: what the user has to change, and what only the machine lacks now."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pytest

from kgen.cachedir import temporary_dir, writing_cache
from kgen.errors import Hindered, MissingTool


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EACCES, MissingTool), (errno.ENOSPC, Hindered), (errno.EMFILE, Hindered)],
)
def test_what_the_machine_lacks_is_no_fault_of_the_folder(
    number: int, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(number, "refused")

    words = r"the cache folder .* cannot be written.*refused"
    with pytest.raises(kind, match=words), writing_cache(tmp_path):
        refuse()
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(kind, match=r"no temporary file can be made in .*refused"):
        temporary_dir()
