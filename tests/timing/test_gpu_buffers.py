"""The GPU as a benchmark uses it, on a fake one; tests/gpu/test_stage.py has the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kgen.errors import CheckFailed, KernelFault, UsageError
from kgen.gpu import device, execute, graph
from kgen.gpu.memory import Buffer, MatrixBuffer
from kgen.launch import Launch, LaunchPlan
from kgen.store.measurement import Kind
from kgen.timing import gpu_buffers
from kgen.timing import protocol as protocol_module
from kgen.timing.candidates import Candidate, copies
from kgen.timing.gpu_buffers import GpuBuffers
from kgen.timing.protocol import L2, REPORT, ROTATED
from kgen.toolchain import Binary, KernelResources
from kgen.toolchain.source import PlainSource
from tests.gpu.fake_cuda import FakeBindings, FakeCuda

X = np.arange(15, dtype=np.float32).reshape(3, 5)
L2_BYTES = 256
# ceil(4 * 256 / (2 * 60)) + 1
PAIRS = 10
WARM = replace(ROTATED, l2=L2.WARM)
ARGS = ("x", "y", "rows", "cols")


def double(cuda: Any, x: int, y: int, rows: int, cols: int) -> None:
    cuda.floats(y, rows * cols)[:] = 2 * cuda.floats(x, rows * cols)


class OnFake:
    """Makes stages on a fake GPU with these kernels."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **kernels: Callable[..., None]) -> None:
        self.cuda = FakeCuda(double=double, **kernels)
        self.bindings = FakeBindings(self.cuda)
        monkeypatch.setattr(device, "load_driver", lambda: self.cuda)
        monkeypatch.setattr(graph, "load_bindings", lambda: self.bindings)
        gpu = device.Gpu()
        monkeypatch.setattr(execute, "gpu", lambda: gpu)
        monkeypatch.setattr(gpu_buffers, "gpu", lambda: gpu)
        info = SimpleNamespace(l2_bytes=L2_BYTES)
        monkeypatch.setattr(gpu_buffers, "device_info", lambda: info)

    def kernel(
        self, name: str, args: tuple[str, ...] = ARGS, workspace_bytes: int = 0
    ) -> Candidate:
        resources = KernelResources(name, 32, 0, 0, 0, 0)
        launch = Launch(name, 7, 32, 0, args)
        return Candidate(
            kind=Kind.VARIANT,
            name=name,
            rows=3,
            cols=5,
            source=PlainSource(name, "", (name,)),
            plan=LaunchPlan(3, 5, (launch,), workspace_bytes),
            binary=Binary(Path("fake.cubin"), b"", "sm_90", (resources,), ""),
        )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> OnFake:
    return OnFake(monkeypatch)


def a_peer(bind: Callable[..., Callable[[], object]]) -> Candidate:
    plug_in: Any = SimpleNamespace(name="a_peer", load=lambda: bind, package=lambda: "a 1.0")
    return Candidate(kind=Kind.PEER, name="a_peer", rows=3, cols=5, peer=plug_in)


def test_cold_buffers_exceed_the_l2_and_warm_ones_are_one_pair(fake: OnFake) -> None:
    cold, warm = GpuBuffers(X, ROTATED), GpuBuffers(X, WARM)
    assert len(cold.rotation.pairs) == PAIRS and len(warm.rotation.pairs) == 1
    assert cold.rotation.nbytes >= 4 * L2_BYTES
    assert cold.remark == warm.remark == ""


def test_buffers_that_stay_in_the_l2_are_remarked(
    fake: OnFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol_module, "MAX_PAIRS", 5)
    timed = GpuBuffers(X, ROTATED).load(fake.kernel("double"))
    assert timed.remark == "not cold: 0 KiB of buffers stay in the L2"
    assert GpuBuffers(X, WARM).remark == ""


def test_a_shape_that_the_memory_cannot_hold_is_refused(fake: OnFake) -> None:
    with pytest.raises(UsageError, match="memory for 4 of them"):
        GpuBuffers(np.zeros((100, 50), np.float32), ROTATED)


def test_samples_are_of_whole_turns_through_the_pairs(fake: OnFake) -> None:
    stage = GpuBuffers(X, ROTATED)
    timed = stage.load(fake.kernel("double"))
    # The probe of a turn takes 500 us, 50 a call: two turns are nearest to a millisecond.
    assert timed.calls == 2 * PAIRS and fake.bindings.alive == 1
    fake.cuda.log.clear()
    sample = timed.sample()
    assert sample.us == pytest.approx(500 / timed.calls)
    names = [entry if isinstance(entry, str) else entry[0] for entry in fake.cuda.log]
    turns = ["double"] * timed.calls
    assert names == ["push", *turns, "record", *turns, "record", "pop"]


def test_consecutive_calls_use_consecutive_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[int, int]] = []
    fake = OnFake(monkeypatch, noting=lambda cuda, x, y, rows, cols: used.append((x, y)))
    stage = GpuBuffers(X, ROTATED)
    timed = stage.load(fake.kernel("noting"))
    used.clear()
    timed.sample()
    pairs = [(x.address, y.address) for x, y in stage.rotation.pairs]
    assert used == pairs * 4


def test_calls_one_by_one_after_warming_up(fake: OnFake) -> None:
    timed = GpuBuffers(X, replace(REPORT, calls=3, warmup=5)).load(fake.kernel("double"))
    assert timed.calls == 3 and fake.bindings.alive == 0
    fake.cuda.log.clear()
    timed.sample()
    names = [entry if isinstance(entry, str) else entry[0] for entry in fake.cuda.log]
    assert names == ["push", *["double"] * 5, "record", *["double"] * 3, "record", "pop"]


def test_outputs_are_of_the_first_and_last_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    last: list[int] = []

    def odd(cuda: Any, x: int, y: int, rows: int, cols: int) -> None:
        double(cuda, x, y, rows, cols)
        if y in last:
            cuda.floats(y, 1)[:] = 77

    fake = OnFake(monkeypatch, odd=odd)
    stage = GpuBuffers(X, ROTATED)
    last.append(stage.rotation.pairs[-1][1].address)
    first_output, last_output = stage.load(fake.kernel("odd")).outputs()
    np.testing.assert_array_equal(first_output, 2 * X)
    assert last_output[0, 0] == 77 and last_output[0, 1] == 2


def test_what_is_not_written_is_nan_in_the_timed_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def lazy(cuda: Any, x: int, y: int, rows: int, cols: int) -> None:
        calls.append(y)
        if calls.count(y) == 1:  # later calls find what it wrote before
            double(cuda, x, y, rows, cols)

    fake = OnFake(monkeypatch, lazy=lazy)
    for y in GpuBuffers(X, ROTATED).load(fake.kernel("lazy")).outputs():
        assert np.isnan(y).all()


def test_every_timed_call_clears_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[float]] = []

    def count(cuda: Any, workspace: int, y: int) -> None:
        seen.append(cuda.floats(workspace, 2).tolist())
        cuda.floats(workspace, 2)[:] = 7

    fake = OnFake(monkeypatch, count=count)
    timed = GpuBuffers(X, ROTATED).load(fake.kernel("count", ("workspace", "y"), workspace_bytes=8))
    timed.sample()
    assert len(seen) > 4 * PAIRS and seen == [[0, 0]] * len(seen)


def test_a_run_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def outside(cuda: Any, x: int, y: int, rows: int, cols: int) -> None:
        cuda.floats(y + 4 * rows * cols, 1)[:] = 1

    fake = OnFake(monkeypatch, outside=outside)
    stage = GpuBuffers(X, WARM)
    np.testing.assert_array_equal(stage.run(fake.kernel("double"), X), 2 * X)
    with pytest.raises(KernelFault, match="byte 1 behind the end of y"):
        stage.run(fake.kernel("outside"), X)


def test_the_drivers_copy(fake: OnFake) -> None:
    driver, *_ = copies(3, 5)
    stage = GpuBuffers(X, ROTATED)
    np.testing.assert_array_equal(stage.run(driver, X + 1), X + 1)
    timed = stage.load(driver)
    assert timed.sample().us > 0
    for y in timed.outputs():
        np.testing.assert_array_equal(y, X)


def test_peers_get_matrices_and_the_stream(fake: OnFake) -> None:
    streams: list[int] = []

    def bind(x: MatrixBuffer, y: MatrixBuffer, stream: int) -> Callable[[], object]:
        assert x.shape == y.shape == (3, 5)
        streams.append(stream)
        queue = SimpleNamespace(handle=stream)

        def issue() -> object:
            fake.cuda.issue(queue, "peer", lambda: double(fake.cuda, x.address, y.address, 3, 5))
            return y

        return issue

    stage = GpuBuffers(X, ROTATED)
    np.testing.assert_array_equal(stage.run(a_peer(bind), X + 1), 2 * X + 2)
    timed = stage.load(a_peer(bind))
    assert timed.sample().us > 0 and timed.package == "a 1.0"
    np.testing.assert_array_equal(timed.outputs()[-1], 2 * X)
    assert set(streams) == {stage.rotation.stream.handle} and len(streams) == 1 + PAIRS


def test_what_a_peer_returns_is_its_result(fake: OnFake) -> None:
    def bind(x: MatrixBuffer, y: MatrixBuffer, stream: int) -> Callable[[], object]:
        own = MatrixBuffer(Buffer(fake.cuda, X.nbytes, 0), (3, 5))
        own.fill(X + 5)
        return lambda: own

    stage = GpuBuffers(X, WARM)
    np.testing.assert_array_equal(stage.run(a_peer(bind), X), X + 5)
    np.testing.assert_array_equal(stage.load(a_peer(bind)).outputs()[0], X + 5)


def test_a_peer_that_writes_outside_is_told(fake: OnFake) -> None:
    def bind(x: MatrixBuffer, y: MatrixBuffer, stream: int) -> Callable[[], object]:
        return lambda: fake.cuda.floats(y.address - 4, 1).fill(1) or y

    with pytest.raises(CheckFailed, match="a_peer wrote to byte 1 before the start of y"):
        GpuBuffers(X, WARM).run(a_peer(bind), X)


def test_a_fault_in_the_middle_is_told_and_ends_the_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    def breaks_later(cuda: Any, x: int, y: int, rows: int, cols: int) -> None:
        calls.append(y)
        cuda.broken = len(calls) > 110

    fake = OnFake(monkeypatch, breaks_later=breaks_later)
    timed = GpuBuffers(X, ROTATED).load(fake.kernel("breaks_later"))
    timed.sample()
    timed.sample()
    with pytest.raises(KernelFault, match=r"its timed launches failed on the GPU.*context is lost"):
        timed.sample()
    assert fake.cuda.log[-1] == "detach"


def test_a_candidate_gives_back_its_graph(fake: OnFake) -> None:
    timed = GpuBuffers(X, ROTATED).load(fake.kernel("double"))
    timed.free()
    assert fake.bindings.alive == 0
