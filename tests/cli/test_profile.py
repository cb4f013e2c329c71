"""`kgen profile`: ncu's figures side by side, from a run, from a file, or counted on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended
from tests.profile.conftest import no_ncu, pretended_gpu
from tests.profile.tables import asked, fake_ncu

Call = Callable[..., Ended]
RECORDED = Path(__file__).parents[1] / "profile/recorded/h200_cold.csv"
__all__ = ["no_ncu", "pretended_gpu"]


def table_of(ended: Ended) -> dict[str, list[str]]:
    """The cells of every row of the printed table by the row's label."""
    lines = [line.strip() for line in ended.out.splitlines() if "  " in line.strip()]
    split = [[cell for cell in line.split("  ") if cell] for line in lines]
    return {cells[0]: [cell.strip() for cell in cells[1:]] for cells in split}


def test_variants_of_a_recording_side_by_side(call: Call) -> None:
    ended = call("profile", "v3", "t1", "v2", "v8", "--csv-file", RECORDED)
    table = table_of(ended)
    assert ended.code == 0
    assert table["metric"] == ["v3", "t1", "v2", "v8"]
    assert table["duration (us)"] == ["3.78", "13.25", "4.29", "3.97"]
    assert table["global loads"] == ["16,384", "27,648", "49,152", "18,450"]
    assert table["DRAM reads (bytes)"] == ["2,108,160", "3,168,000", "2,108,928", "1,063,424"]
    assert table["L1 hits (%)"] == ["0.00", "1.90", "50.00", "56.91"]
    assert table["stalled on barrier (%)"] == ["11.95", "3.51", "10.08", "0.00"]
    assert table["registers (a thread)"] == ["32", "32", "30", "30"]
    assert table["uniform branches (%)"] == ["100.00", "100.00", "100.00", "81.82"]


def test_launches_of_recordings_without_variants(call: Call, tmp_path: Path) -> None:
    again = tmp_path / "again.csv"
    again.write_text(RECORDED.read_text())
    ended = call("profile", "--csv-file", RECORDED, "--csv-file", again, "--json")
    kernels = ["v2", "v3_items16", "v8", "t1_max", "t1_sum", "t1_write"]
    assert [row["variant"] for row in ended.json] == [f"softmax_{name}" for name in kernels] * 2
    assert [row["file"] for row in ended.json] == [str(RECORDED)] * 6 + [str(again)] * 6
    columns = table_of(call("profile", "v3", "--csv-file", RECORDED, "--csv-file", again))
    assert columns["metric"] == ["v3 in h200_cold.csv", "v3 in again.csv"]


@pytest.mark.usefixtures("no_ncu", "pretended_gpu")
def test_ncu_is_run(call: Call, tmp_path: Path) -> None:
    fake_ncu(tmp_path / "bin", RECORDED.read_text())
    shape = ("--rows", 128, "--cols", 4096)
    ended = call("profile", "v2", "v3", "v8", "t1", *shape, "--json", "--out", "kept/ncu.csv")
    v2, v3, _, t1 = ended.json
    assert ended.code == 0
    facts = {"rows": 128, "cols": 4096, "on": "gpu", "device": "NVIDIA H200", "cache": "cold"}
    assert {**v2, **facts} == v2
    assert (v3["variant"], v3["global_loads"], v3["duration_us"]) == ("v3", 16384, 3.776)
    assert t1["kernels"][0]["kernel"] == "softmax_t1_max"
    assert t1["warp_instructions"] == sum(row["warp_instructions"] for row in t1["kernels"])
    (line,) = asked(tmp_path / "bin")
    assert line.endswith("v2@128x4096 v3@128x4096 v8@128x4096 t1@128x4096")
    assert (tmp_path / "kept/ncu.csv").read_text() == RECORDED.read_text()
    printed = call("profile", "v2", "v3", "v8", "t1", *shape, "--cache", "warm")
    assert "128 x 4096 on NVIDIA H200, warm caches, by ncu" in printed.out
    assert table_of(printed)["global stores"] == ["16,384", "16,384", "9,225", "8,192"]


@pytest.mark.usefixtures("no_ncu", "pretended_gpu")
def test_failures_of_ncu(call: Call, tmp_path: Path) -> None:
    fake_ncu(tmp_path / "bin", "==ERROR== ERR_NVGPUCTRPERM - no permission", code=1)
    denied = call("profile", "v2")
    assert denied.code == 3 and "NVreg_RestrictProfilingToAdminUsers=0" in denied.err
    fake_ncu(tmp_path / "bin", "==ERROR== The driver is busy", code=1)
    failed = call("profile", "v2")
    assert (failed.code, failed.err) == (1, "kgen: ncu failed: The driver is busy\n")


@pytest.mark.usefixtures("no_ncu")
def test_missing_ncu_is_told(call: Call) -> None:
    ended = call("profile", "v2")
    assert ended.code == 3 and ended.out == ""
    assert "no ncu on PATH" in ended.err and "Nsight Compute" in ended.err


@pytest.mark.usefixtures("cxx", "no_ncu", "no_nvcc")
def test_on_the_cpu_it_says_what_needs_ncu(call: Call) -> None:
    ended = call("profile", "v2", "v3", "--on", "cpu", "--rows", 1, "--cols", 4096)
    table = table_of(ended)
    assert ended.code == 0
    assert table["global loads"] == ["384", "128"]
    assert table["duration (us)"] == ["needs ncu", "needs ncu"]
    assert table["registers (a thread)"] == ["needs nvcc", "needs nvcc"]
    assert "does not time" in ended.out


@pytest.mark.usefixtures("cxx", "nvcc")
def test_on_the_cpu_the_compiler_tells_registers(call: Call) -> None:
    ended = call("profile", "v2", "--on", "cpu", "--rows", 1, "--cols", 64, "--json")
    (v2,) = ended.json
    assert (v2["on"], v2["arch"], v2["duration_us"]) == ("cpu", "sm_90", None)
    assert 16 <= v2["registers"] <= 64 and v2["theoretical_occupancy_percent"] == 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name variants or .cu files"),
        (("v2", "--on", "tpu"), "'tpu': kernels run on cpu or gpu"),
        (("--csv-file", "none.csv"), "none.csv cannot be read"),
        (("v2", "--on", "cpu", "--rows", "0"), "0 x 4096 has no elements"),
        (("cpu", "--on", "cpu"), "cpu is plain C++ for the host"),
    ],
)
def test_wrong_requests(call: Call, arguments: tuple[str, ...], words: str) -> None:
    ended = call("profile", *arguments)
    assert ended.code == 2 and words in ended.err
