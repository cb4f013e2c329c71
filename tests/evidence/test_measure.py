import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

from kgen.errors import KernelFault, MissingTool, UsageError
from kgen.evidence.measure import Case, Method, Outcome, measure
from kgen.evidence.reference import softmax64
from kgen.gpu import Timing
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source

ROWS, COLS = 8, 1000
LOST = []  # in a worker: what ended its CUDA context


def fake_run(source, plan, x, options):
    """Stands for the GPU: does what the source's stem says."""
    if LOST:
        raise KernelFault(f"the context is lost since {LOST}")
    y = softmax64(x).astype(np.float32)
    match source.stem:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(600)
        case "wrong":
            y[2, 3] += 1
        case "unwritten":
            y[5, 6] = np.nan
        case "fault":
            LOST.append(source.stem)
            raise KernelFault("fault failed on the GPU: an illegal memory access")
        case "too_big":
            raise UsageError("too_big needs 300000 bytes of shared memory")
        case "no_gpu":
            raise MissingTool("no GPU found")
    return y


def fake_time(source, plan, x, options, *, warmup, launches, batches):
    if source.stem in ("wrong", "unwritten"):
        os._exit(9)  # wrong results must not get here
    assert (warmup, launches, batches) == (7, 40, 4)
    return Timing((1.0, 2.0, 2.0, 5.0), host_us=float(source.text or 0), registers=32)


def fake_host(source, plan, x):
    y = softmax64(x).astype(np.float32)
    return (y if source.stem == "cpu" else y * 2), 100.0


METHOD = Method(warmup=7, launches=40, batches=4)


def case(stem, *, is_host=False, host_us="", launches=2):
    source = Source(SimpleNamespace(is_host=is_host), stem, host_us, (stem,))
    launch = Launch(stem, 1, 32, 0, ("x", "y", "rows", "cols"))
    plan = LaunchPlan(ROWS, COLS, (launch,) * launches)
    return Case(stem, ROWS, COLS, source, plan, serial_additions=32)


def measure_all(*cases, timeout_s=60.0):
    return list(
        measure(cases, fake_host, method=METHOD, timeout_s=timeout_s, run=fake_run, time=fake_time)
    )


def test_a_right_version_is_timed():
    (row,) = measure_all(case("good", host_us="1.5"))
    assert (row.variant, row.rows, row.cols) == ("good", ROWS, COLS)
    assert row.outcome is Outcome.OK and row.reason == ""
    assert (row.mean_us, row.min_us, row.median_us, row.max_us) == (2.5, 1.0, 2.0, 5.0)
    assert row.gb_per_s == pytest.approx(2 * ROWS * COLS * 4 / 2.5e-6 / 1e9)
    assert (row.launches_per_call, row.host_us_per_launch, row.host_bound) == (2, 0.75, False)
    assert row.registers == 32
    assert 0 < row.max_abs_error < row.max_rel_error < 1e-7


@pytest.mark.parametrize("host_us, bound", [("1.7", False), ("1.9", True), ("4", True)])
def test_a_time_near_the_hosts_own_is_marked(host_us, bound):
    (row,) = measure_all(case("good", host_us=host_us))
    assert row.host_bound is bound


def test_a_case_with_a_reason_is_refused():
    (row,) = measure_all(Case("v3", ROWS, COLS, reason="v3 covers 4096 columns"))
    assert row.outcome is Outcome.REFUSED and row.reason == "v3 covers 4096 columns"
    assert row.mean_us is None


def test_wrong_results_are_not_timed():
    wrong, unwritten = measure_all(case("wrong"), case("unwritten"))
    assert wrong.outcome is unwritten.outcome is Outcome.WRONG
    assert "row 2, column 3" in wrong.reason and wrong.max_abs_error == pytest.approx(1)
    assert "not written or NaN" in unwritten.reason and unwritten.max_abs_error is None
    assert wrong.mean_us is None


def test_a_bad_version_costs_only_its_own_row():
    names = ["good", "crash", "good", "fault", "too_big", "good"]
    rows = measure_all(*map(case, names))
    assert [row.variant for row in rows] == names
    assert [row.outcome for row in rows] == ["ok", "failed", "ok", "failed", "refused", "ok"]
    assert "SIGSEGV" in rows[1].reason
    assert "illegal memory access" in rows[3].reason
    assert "300000 bytes" in rows[4].reason


def test_a_version_that_hangs_is_stopped():
    hung, good = measure_all(case("hang"), case("good"), timeout_s=4.0)
    assert hung.outcome is Outcome.FAILED and "within 4 s" in hung.reason
    assert good.outcome is Outcome.OK


def test_rows_come_as_they_are_measured():
    rows = measure(
        [case("good"), case("hang")], fake_host, method=METHOD, run=fake_run, time=fake_time
    )
    assert next(rows).outcome is Outcome.OK
    rows.close()


def test_host_versions_are_timed_by_the_hook():
    cpu, wrong = measure_all(case("cpu", is_host=True), case("cpu_wrong", is_host=True))
    assert cpu.outcome is Outcome.OK
    assert (cpu.mean_us, cpu.min_us, cpu.max_us) == (100.0, 100.0, 100.0)
    assert cpu.registers is cpu.launches_per_call is cpu.host_us_per_launch is None
    assert wrong.outcome is Outcome.WRONG and wrong.mean_us is None


def test_an_empty_plan_is_refused():
    (row,) = measure_all(case("good", launches=0))
    assert row.outcome is Outcome.REFUSED and "nothing to time" in row.reason


def test_without_a_gpu_nothing_is_measured():
    with pytest.raises(MissingTool, match="no GPU"):
        measure_all(case("no_gpu"))


def test_the_method_is_told_in_words():
    text = str(Method(input_name="zeros", warmup=3))
    for word in ("zeros", "seed 42", "-O3", "3 to warm up", "1000 timed in 10 batches", "L2"):
        assert word in text
