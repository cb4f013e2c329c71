"""Where written files end up: in a file's place, behind links, in devices and pipes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kgen.errors import MachineTrouble, UsageError
from kgen.files import write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_replaces_the_file_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        write_atomically(path, b"new")
        assert (reader.read(), path.read_bytes()) == (b"old", b"new")


def test_what_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(28, "no space")

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(MachineTrouble, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_obeys_the_umask(tmp_path: Path, umask: int, expected: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "file") == expected


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o755])
def test_a_file_keeps_its_mode(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(kept)
    write_atomically(path, b"new")
    assert mode(path) == kept and path.read_bytes() == b"new"


@pytest.mark.parametrize("target", ["there", "not there", "in/a/folder"])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, target: str) -> None:
    if target == "there":
        (tmp_path / target).write_bytes(b"old")
    link, other = tmp_path / "link", tmp_path / "link to it"
    link.symlink_to(target)
    other.symlink_to(link)
    write_atomically(other, b"new")
    assert link.is_symlink() and other.is_symlink()
    assert (tmp_path / target).read_bytes() == b"new"


def test_links_in_a_circle_are_told(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(UsageError, match="link cannot be written: Too many levels"):
        write_atomically(link, b"new")
    assert link.is_symlink()


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"new")
    reader.join(10)
    assert read == [b"new"] and pipe.is_fifo()


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_device_is_written_into(tmp_path: Path, through_a_link: bool) -> None:
    # A terminal, since nothing can be put in its place: a failing test leaves the machine whole.
    leader, terminal = os.openpty()
    device = Path(os.ttyname(terminal))
    if through_a_link:
        (tmp_path / "link").symlink_to(device)
        device = tmp_path / "link"
    write_atomically(device, b"new")
    assert os.read(leader, 9) == b"new" and device.is_char_device()
    os.close(leader)
    os.close(terminal)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        write_atomically(tmp_path, b"new")


@pytest.mark.parametrize("to", ["file", "pipe"])
def test_standard_output_is_written_into_where_it_is(tmp_path: Path, to: str) -> None:
    program = (
        "from pathlib import Path; from kgen.files import write_atomically; print('one'); "
        "write_atomically(Path('/dev/stdout'), 'two\\n'); print('three')"
    )
    with (tmp_path / "out").open("w+") as file:
        stdout = file if to == "file" else subprocess.PIPE
        ran = subprocess.run([sys.executable, "-c", program], stdout=stdout, check=True, text=True)
        file.seek(0)
        assert (file.read() if to == "file" else ran.stdout) == "one\ntwo\nthree\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
