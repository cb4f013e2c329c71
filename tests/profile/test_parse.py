"""What ncu prints: its table among other lines, and its words when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgen.errors import CheckFailed, MissingTool
from kgen.profile.metrics import ncu_metrics
from kgen.profile.parse import launches_in
from tests.profile.tables import HEAD, row

LOADS = "smsp__sass_inst_executed_op_global_ld.sum"
DENIED = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0. For instructions see https://developer.nvidia.com"
)
RECORDED = Path(__file__).parent / "recorded"


def printed(*lines: str) -> str:
    return "\n".join(["==PROF== Connected to process 7 (python)", HEAD, *lines])


def test_recording_of_an_h200() -> None:
    """ncu 2025.3 watched v2, v3, v8 and t1: four columns' worth of launches, nothing missing."""
    launches = launches_in((RECORDED / "h200_cold.csv").read_text())
    kernels = ["v2", "v3_items16", "v8", "t1_max", "t1_sum", "t1_write"]
    assert [launch.kernel for launch in launches] == [f"softmax_{kernel}" for kernel in kernels]
    v2, v3, v8 = (launch.measured for launch in launches[:3])
    assert (v2[LOADS], v3[LOADS], v8[LOADS]) == (49152, 16384, 18450)
    assert v2["dram__bytes_read.sum"] == 2108928 and v2["gpu__time_duration.sum"] == 4288
    asked = {name for name in ncu_metrics() if "bytes_op" not in name}
    assert all(set(launch.measured) == asked for launch in launches)


def test_recording_of_a_metric_that_the_gpu_has_not() -> None:
    (launch,) = launches_in((RECORDED / "h200_unknown_metric.csv").read_text())
    assert (launch.kernel, launch.measured) == ("softmax_v2", {})


def test_recording_of_a_program_without_kernels() -> None:
    note = "==WARNING== Note: Running with unmodified GPU clocks.\n"
    with pytest.raises(CheckFailed, match=r"^ncu measured no kernel: No kernels were profiled\.$"):
        launches_in(note + (RECORDED / "no_kernel.csv").read_text())


def test_table_is_found_among_other_lines() -> None:
    text = printed(
        row(0, "softmax_v2", LOADS, "49,152", "inst"),
        "\"a program's own line, with a lone quote",
        "==PROF== Profiling",
        '"too","few"',
        '"' + "much" * 40_000,
        row(0, "softmax_v2", "dram__bytes_read.sum", "2,613,248", "byte"),
        row(1, "softmax_v3(const float *, float *, int, int)", LOADS, "16,384", "inst"),
    )
    v2, v3 = launches_in("warming up\n" + text + "\n==PROF== Disconnected from process 7\n")
    assert (v2.kernel, v2.measured) == (
        "softmax_v2",
        {LOADS: 49152, "dram__bytes_read.sum": 2613248},
    )
    assert (v3.kernel, v3.measured) == ("softmax_v3", {LOADS: 16384})


@pytest.mark.parametrize("value", ["n/a", "N/A", "nan", "", "(!) no data", "inf"])
def test_what_is_no_number_is_left_out(value: str) -> None:
    (launch,) = launches_in(printed(row(0, "k", LOADS, value), row(0, "k", "other", "0.5")))
    assert launch.measured == {"other": 0.5}


@pytest.mark.parametrize(
    ("value", "unit", "base"),
    [
        ("4.5", "us", 4500),
        ("4.5", "usecond", 4500),
        ("2", "msecond", 2e6),
        ("7", "ns", 7),
        ("7", "nsecond", 7),
        ("2.61", "Mbyte", 2.61e6),
        ("3", "Kbyte", 3e3),
        ("3", "byte", 3),
        ("55.81", "%", 55.81),
        ("30", "register/thread", 30),
    ],
)
def test_values_are_in_base_units(value: str, unit: str, base: float) -> None:
    (launch,) = launches_in(printed(row(0, "k", "m", value, unit)))
    assert launch.measured["m"] == pytest.approx(base)


def test_every_process_numbers_its_launches_from_zero() -> None:
    rows = [row(0, "k", LOADS, str(process), process=process) for process in (7, 8)]
    again = launches_in(printed(rows[0], HEAD, rows[1]))
    assert [launch.measured[LOADS] for launch in again] == [7, 8]


def test_newer_names_are_the_same_metrics() -> None:
    (launch,) = launches_in(printed(row(0, "k", "dram__bytes_op_read.sum", "64", "byte")))
    assert launch.measured == {"dram__bytes_read.sum": 64}


def test_denied_counters_say_what_to_do() -> None:
    text = f"==PROF== Connected to process 7\n{DENIED}\n==PROF== Disconnected from process 7\n"
    with pytest.raises(MissingTool, match=r"ERR_NVGPUCTRPERM.*root.*NVreg_Restrict.*--on cpu"):
        launches_in(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "==ERROR== Profiling failed because a driver resource was unavailable.\n"
            "==ERROR== Profiling failed because a driver resource was unavailable.\n"
            '==ERROR== Failed to profile "softmax_v2" in process 7',
            r"^ncu failed: .* was unavailable\.; Failed to profile \"softmax_v2\" in process 7$",
        ),
        (HEAD, "no kernel: its output has no table"),
        ("", "no kernel: its output has no table"),
    ],
)
def test_failures_are_told_in_ncus_words(text: str, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        launches_in(text)
