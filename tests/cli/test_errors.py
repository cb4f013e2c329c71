"""What a user can get wrong, or lacks: one clear sentence, an exit code, never a traceback."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kgen
from tests.cli.conftest import Ended

pytestmark = pytest.mark.slow

Call = Callable[..., Ended]

# arguments -> what the sentence says; FILES below are in the working directory.
USAGE_ERRORS = {
    "show v77": "there is no version 'v77'; did you mean 'v7'?",
    "show softmax": "there is no version 'softmax'; known are cpu, k1, ",
    "explain v77": "did you mean 'v7'?",
    "run v7:itmes=4": "there is no axis 'itmes'; did you mean 'items'",
    "check v5 v6:row_map=blok": "row_map=blok is not a choice; did you mean 'block'?",
    "build --variant v6:vec=four": "vec=four: a whole number is needed",
    "build --variant v7: --items x": "items=x: a whole number is needed",
    "diff v5 v6:vec": "'vec' sets nothing; write vec=VALUE: a number",
    "explain v7 --rows 3": "--rows 3 alone is no shape; give --cols too",
    "show v5.cu:vec=2": "v5.cu has no v5.kgen.toml beside it: kgen adopt v5.cu",
    "check v7 items=4": "there is no version 'items=4'; a variant is written VERSION:AXIS=VALUE",
    "bench v99": "there is no version 'v99'; did you mean 'v9'?",
    "run v8:topology=two_level": "topology=two_level with 32 threads a row",
    "run v5 --vec 3": "vec=3: the machine accesses 1, 2 or 4 elements of float32 at once; use vec=2",
    "run v5 --threads 0": "threads=0 is not a block size",
    "run v7:items=1 --cols 1028": "covers 1027 columns; cols=1028 needs items>=2",
    "check v7:items=1 --rows 1 --cols 1028": "covers 1027 columns; cols=1028 needs items>=2",
    "build --variant v7 --cols 90000": "more than its registers; cols=90000 needs cache=none",
    "run v5 --input absent.npy": "absent.npy cannot be read as a .npy array: No such file",
    "run v5 --input .": ". cannot be read as a .npy array: Is a directory",
    "run v5 --input empty.npy": "empty.npy cannot be read as a .npy array: EOF",
    "run v5 --input junk.npy": "junk.npy cannot be read as a .npy array: the magic string is not",
    "run v5 --input header.npy": "header.npy cannot be read as a .npy array: ",
    "run v5 --input short.npy": "short.npy cannot be read as a .npy array: ",
    "run v5 --input objects.npy": "objects.npy cannot be read as a .npy array: Object arrays",
    "run v5 --input truth.npy": "truth.npy cannot be read as a .npy array: an integer is required",
    "run v5 --input below.npy": "below.npy cannot be read as a .npy array: negative dimensions",
    "run v5 --input huge.npy": "huge.npy cannot be read as a .npy array: ",
    "run v5 --input endless.npy": "endless.npy cannot be read as a .npy array: Python int too large",
    "run v5 --input deep.npy": "deep.npy cannot be read as a .npy array: ",
    "run v5 --input doubles.npy": "doubles.npy holds float64, and the kernel takes float32; use dtype=float64",
    "run v5 --input archive.npz": "archive.npz is an archive; give one array",
    "run v5 --input torn.npz": "torn.npz is an archive; give one array",
    "run v5 --input cube.npy": "the input has 3 dimensions; kernels take 1 (one row) or 2",
    "run v5 --dist gauss": "no input is called 'gauss'; known are ",
    "run v5 --rows -1": "cannot have -1 rows and 257 columns",
    "run v5 --seed -1": "no input of 4 x 257 with seed -1: ",
    "run v5 --on banana": "'banana': kernels run on cpu or gpu",
    "check v5 --on banana": "'banana': kernels run on cpu or gpu",
    "bench v5 --on banana": "'banana': kernels run on cpu or gpu",
    "bench v5 --protocol raport": "there is no protocol 'raport'; did you mean 'report'",
    "bench v5 --l2 hot": "--l2 hot: the L2 cache is cold or warm",
    "bench v5 --dist gauss": "no input is called 'gauss'; known are ",
    "bench v5 --baseline v99": "there is no version 'v99'; did you mean 'v9'?",
    "bench v5 --baseline v6": "--baseline v6 is not among what is measured; name it there too",
    "bench v5 --baseline v5 --fail-if-slower much": "--fail-if-slower much: give a percentage such as 2%",
    "bench v5 --fail-if-slower 2%": "--fail-if-slower needs --baseline VARIANT to compare with",
    "bench v5 --on cpu --baseline v5 --fail-if-slower 2": "--fail-if-slower needs times, which --on cpu does not take",
    "bench v5 --on cpu --db junk.npy": "junk.npy is not ",
    "bench v5 --peer-dir absent": "there is no folder absent",
    **{f"{command} --timeout {value}": f"--timeout {value}: give 0.1 to 1000000 seconds" for command in ("run v5", "check v5", "bench v5", "profile v5", "sweep --variants v5") for value in ("inf", "nan", "0", "-1", "1e+300")},
    **{f"{command} --seconds {value}": f"--seconds {value}: give 0 to 1000000 seconds" for command in ("bench v5", "sweep --variants v5", "reproduce") for value in ("inf", "nan", "-1")},
    "check v5 --rows 3": "a shape needs both --rows and --cols",
    "check v5 --rows 3 --cols 3 --input unifrom": "no input is called 'unifrom'; did you mean 'uniform'?",
    "check v5 --rows 3 --cols 3 --schedule fifo": "schedule='fifo' is unknown: choose one of",
    **{f"{command} --on gpu": "cpu: plain C++ for the host, no kernel; name a kernel to time beside it, or verify it alone with --on cpu" for command in ("bench cpu", "sweep --variants cpu", "sweep --variants cpu --dry-run")},
    "explain cpu:threads=32 --rows 3": "--rows 3 alone is no shape; give --cols too",
    "--templates absent list": "there is no folder of templates absent; name one with templates or",
    "check cpu --on gpu": "host versions do not run on a GPU; check them with --on cpu",
    "run cpu --on gpu": "cpu is plain C++ for the host, not a kernel: run it on the CPU, with --on cpu",
    "run k1:row_map=host --on gpu": "is plain C++ for the host, not a kernel: run it on the CPU, ",
    "run cpu.cpp --on gpu": "cpu.cpp is plain C++ for the host, not a kernel: run it on the CPU, ",
    "bench cpu.cpp cpu": "cpu.cpp, cpu: plain C++ for the host, no kernel; name a kernel to time",
    "sass cpu": "softmax_cpu.cpp is plain C++ for the host, of which nvcc makes no cubin: compile it",
    "sass cpu.cpp": "cpu.cpp is plain C++ for the host, of which nvcc makes no cubin: compile it",
    "count cpu": "cpu is plain C++ for the host, not a kernel: it has no warps to count, so name",
    "count v5 cpu.cpp": "cpu.cpp is plain C++ for the host, not a kernel: it has no warps to count",
    "profile cpu": "cpu is plain C++ for the host, not a kernel: it has no warps to profile, so name",
    "profile v5 cpu --on cpu": "cpu is plain C++ for the host, not a kernel: it has no warps to",
    "export cpu.cpp": "is plain C++ for the host and has no kernel for PyCUDA to launch; write it with",
    "run absent.cu": "absent.cu cannot be read: No such file or directory",
    "check folder.cu": "folder.cu cannot be read: Is a directory",
    "diff v5 latin.cu": "latin.cu cannot be read: it is not UTF-8 text",
    "export bare.cu": "bare.cu has no kgen header",
    **{f"{command} narrow.cu": " makes THREADS_PER_BLOCK 128, but the header's spec says threads_per_block=256" for command in ("run", "check", "show", "explain", "diff v5", "count", "build --variant", "sass", "export", "bench", "profile")},
    "run v5.cu --items 4 --vec 2": "v5.cu is a file, whose header fixes its axes; leave items=4,vec=2 out",
    "show v5.cu --threads 64": "leave threads=64 out",
    "build": "name what to build: VARIANT or a .cu file, several of them, or --all",
    "build --all v5 --variant v6": "--all builds the versions as they are named; leave v5, v6 out",
    "build v5 --check": "use it with --all",
    "build --all --items 4 --cols 9": "as they are named; leave --items, --cols out",
    "build --all --check --arch sm_75 --json": "--check compares files and compiles none; leave --arch, --json out",
    "build v5 narrow.cu --items 4": "narrow.cu is a file, whose header fixes its axes; leave items=4 out",
    "diff v6": "diff compares two variants or files, and there is only v6: kgen diff v6 v7",
    "diff": "diff compares two variants or files, and there are none: kgen diff v6 v7",
    "diff ./. v5": "cannot be read: Is a directory",
    "build --all --check --out absent": "there is no folder absent to check; write it with",
    "build --variant v5 --maxrregcount 5": "maxrregcount=5 is outside 24 to 255",
    "build --variant v5 --out junk.npy": "junk.npy/softmax_v5.cu cannot be written: ",
    "build --all --out junk.npy/sub": "junk.npy/sub/softmax_cpu.cpp cannot be written: ",
    "export v5 --out junk.npy/sub": "junk.npy/sub/softmax_v5.cu cannot be written: ",
    "export cpu": "softmax_cpu.cpp is plain C++ for the host",
}  # fmt: skip


def with_shape(saved: bytes, shape: str) -> bytes:
    """Return a .npy of 3 x 50 elements whose header, of 128 bytes, claims another shape."""
    header = saved[:127].replace(b"(3, 50)", shape.encode()).rstrip()
    return header.ljust(127) + saved[127:]


@pytest.fixture
def files(tmp_path: Path) -> None:
    """Files that are not what a command needs, and one that is."""
    np.save(tmp_path / "doubles.npy", np.zeros((2, 3)))
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2), np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}, 1], dtype=object))
    np.savez(tmp_path / "archive.npz", x=np.zeros(3, np.float32))
    np.save(tmp_path / "good.npy", np.zeros((3, 50), np.float32))
    good = (tmp_path / "good.npy").read_bytes()
    contents = {
        "empty.npy": b"",
        "junk.npy": b"this is a letter, not an array",
        "header.npy": good.replace(b"}", b"{"),
        "short.npy": good[:300],
        "truth.npy": with_shape(good, "(True, 50)"),
        "below.npy": with_shape(good, "(-3, 50)"),
        "huge.npy": with_shape(good, "(3333333333333, 50)"),
        "endless.npy": with_shape(good, f"({'3' * 30}, 50)"),
        "deep.npy": with_shape(good, f"{'(' * 20}3{')' * 20}"),
        "torn.npz": (tmp_path / "archive.npz").read_bytes()[:100],
        "latin.cu": b"// caf\xe9\n",
        "bare.cu": b"int x;\n",
        "v5.cu": kgen.render("v5").text.encode(),
        "narrow.cu": kgen.render("v5").text.replace("BLOCK = 256", "BLOCK = 128").encode(),
        "cpu.cpp": kgen.render("cpu").text.encode(),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.cu").mkdir()


def assert_one_sentence(ended: Ended, code: int, sentence: str) -> None:
    assert ended.code == code
    assert ended.err.startswith("kgen: ") and ended.err.count("\n") == 1
    assert sentence in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(("arguments", "sentence"), USAGE_ERRORS.items(), ids=USAGE_ERRORS)
def test_a_wrong_request(
    call: Call, files: None, no_nvcc: None, arguments: str, sentence: str
) -> None:
    assert_one_sentence(call(*arguments.split()), 2, sentence)


def test_an_output_that_cannot_be_written(call: Call, files: None, cxx: None) -> None:
    for place in ("junk.npy/y.npy", "/proc/absent/y.npy"):
        refused = call("run", "v5", "--input", "good.npy", "--output", place)
        assert_one_sentence(refused, 2, f"{place} cannot be written: ")


@pytest.mark.parametrize(
    "arguments",
    ["frobnicate", "show", "list v5", "run v5 --rows many", "run v5 --colour", "check v5 --rows -1 --cols 3", "bench v5 --rows -1", "bench v5 --seed -1"],
)  # fmt: skip
def test_a_command_line_that_cannot_be_parsed(call: Call, arguments: str) -> None:
    refused = call(*arguments.split())
    assert refused.code == 2 and refused.out == ""
    assert "Usage:" in refused.err and "Error" in refused.err


def test_a_command_like_an_unknown_one_is_named_once(call: Call) -> None:
    assert call("shw").err.count("'show'") == 1


def test_an_unknown_architecture_lists_the_known(call: Call, nvcc: None) -> None:
    refused = call("build", "--variant", "v5", "--arch", "sm_90,sm_1")
    assert_one_sentence(refused, 2, "does not compile for 'sm_1'; choose one of sm_75, ")


@pytest.mark.parametrize("command", ["run v5", "check v5 --rows 3 --cols 3"])
def test_no_cxx_compiler(call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    sentence = "CXX names /nonexistent/c++, which is not a program: set it to a C++ compiler"
    assert_one_sentence(call(*command.split()), 3, sentence)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nonexistent")
    sentence = "no C++ compiler found: install g++ or clang++, or set CXX to one"
    assert_one_sentence(call(*command.split()), 3, sentence)


def test_a_cache_that_cannot_be_written(
    call: Call, files: None, cxx: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGEN_CACHE_DIR", "junk.npy")
    refused = call("run", "v5")
    assert_one_sentence(refused, 3, "set KGEN_CACHE_DIR to one that can")


@pytest.mark.parametrize("megabytes", [60, 90])
def test_too_little_memory_to_begin(megabytes: int) -> None:
    kgen = f"{sys.executable} -m kgen check v7 --rows 2 --cols 33"
    limited = f"ulimit -v {megabytes * 1000} && exec {kgen}"
    ran = subprocess.run(["sh", "-c", limited], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (3, "", 1), ran.stderr
    assert "free memory, or raise the limit (ulimit -v)" in ran.stderr


def test_no_place_for_temporary_files(spawn: Call, cxx: None, nvcc: None, tmp_path: Path) -> None:
    where = {"TMPDIR": "/nonexistent", "KGEN_CACHE_DIR": str(tmp_path / "cache")}
    sentence = "no temporary file can be made in /nonexistent (No such file or directory): set TMP"
    for command in ("build --variant v7", "run v7"):
        assert_one_sentence(spawn(*command.split(), **where), 3, sentence)


@pytest.mark.parametrize("command", ["bench v5", "run v5 --on gpu", "check v5 --on gpu"])
def test_no_gpu(spawn: Call, command: str) -> None:
    refused = spawn(*command.split(), CUDA_VISIBLE_DEVICES="")
    assert_one_sentence(refused, 3, "")
    assert re.search("PyCUDA|GPU|driver", refused.err)


def test_errors_of_a_process(spawn: Call) -> None:
    refused = spawn("run", "v5", "--input", "absent.npy")
    assert_one_sentence(refused, 2, "absent.npy cannot be read")


@pytest.mark.parametrize(
    "command",
    ["run v8", "check v8", "count v8", "bench v8 --on cpu", "sweep --variants v8 --on cpu"],
)
def test_more_memory_than_any_machine_has(
    call: Call, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The system would end the process, or one of another user's."""
    monkeypatch.setenv("KGEN_DB", "x.sqlite")
    refused = call(*command.split(), "--rows", 1 << 30, "--cols", 1 << 20)
    *progress, last = refused.err.splitlines(keepends=True)  # a sweep says how far it came
    assert not progress or command.startswith("sweep")
    assert_one_sentence(
        replace(refused, err=last), 3, "1073741824 x 1048576 takes about 27,021,632 GB of memory"
    )


def test_a_reader_that_has_gone_is_not_told(spawn: Call) -> None:
    for command in (("explain", "v5"), ("list", "--json")):
        reader, writer = os.pipe()
        os.close(reader)
        ended = spawn(*command, stdout=writer, PYTHONUNBUFFERED=None)
        os.close(writer)
        assert (ended.code, ended.err) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk(spawn: Call) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = spawn("explain", "v5", stdout=full.fileno(), PYTHONUNBUFFERED=None)
    assert_one_sentence(ended, 3, "No space left on device")


@pytest.mark.usefixtures("cxx")
def test_closed_streams(tmp_path: Path) -> None:
    """What else is opened then must not get their numbers, which started processes overwrite."""
    command = shlex.join([sys.executable, *"-m kgen count v5 --rows 3 --cols 5".split()])
    for closed in ("2>&-", ">&-", "<&- >&- 2>&-"):
        ran = subprocess.run(["sh", "-c", f"{command} {closed}"], cwd=tmp_path, timeout=120)
        assert ran.returncode == 0, closed


@pytest.mark.usefixtures("cxx")
def test_files_and_messages_beyond_ascii_where_all_is_ascii(spawn: Call, tmp_path: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    folder = tmp_path / os.fsdecode(b"\xff \xc3\xa9")
    folder.mkdir()
    text = kgen.render("v5").text
    (folder / "right.cu").write_text(text)
    (folder / "wrong.cu").write_text(
        text.replace("expf(", "/* \N{LATIN SMALL LETTER E WITH ACUTE} */ exqf(")
    )
    command = "bench --on cpu --rows 3 --cols 5 --db x.sqlite".split()
    assert spawn(*command, folder / "right.cu", **ascii_only).code == 0
    refused = spawn(*command, folder / "wrong.cu", **ascii_only)
    assert refused.code == 1 and "'exqf' was not declared" in refused.err


def test_an_interrupt_outside_of_a_command_has_no_traceback(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(prog_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgen.cli.app.app", interrupted)
    ended = call("list")
    assert (ended.code, ended.err) == (130, "")
