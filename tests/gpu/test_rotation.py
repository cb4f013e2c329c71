"""Graphs, samplers and rotating buffers on a fake GPU."""

import sys

import numpy as np
import pytest

from kgen.errors import KernelFault, MissingTool, UsageError
from kgen.gpu import device, graph
from kgen.gpu.graph import Graph, load_bindings
from kgen.gpu.memory import fetch
from kgen.gpu.rotation import LaunchSampler, ReplaySampler, Rotation
from tests.gpu.fake_cuda import Error, FakeBindings, FakeCuda

X = np.arange(15, dtype=np.float32).reshape(3, 5)


class OnFake:
    """A fake GPU, its stream, and issues `a`, `b` ... that only log."""

    def __init__(self, monkeypatch, invalidated=False):
        self.cuda = FakeCuda()
        self.bindings = FakeBindings(self.cuda, invalidated)
        monkeypatch.setattr(device, "load_driver", lambda: self.cuda)
        monkeypatch.setattr(graph, "load_bindings", lambda: self.bindings)
        self.gpu, self.stream = device.Gpu(), self.cuda.Stream()

    def issues(self, names):
        return [
            lambda name=name: self.cuda.issue(self.stream, name, lambda: None) for name in names
        ]

    @property
    def log(self):
        """What happened, a letter an issue and `|` an event."""
        return "".join("|" if entry == "record" else entry for entry in self.cuda.log)


@pytest.fixture
def fake(monkeypatch):
    return OnFake(monkeypatch)


class TestGraph:
    def test_captures_now_and_does_it_when_it_is_replayed(self, fake):
        (issue,) = fake.issues("a")
        captured = Graph(fake.stream, lambda: [issue()])
        assert fake.log == "" and fake.bindings.alive == 1
        captured.replay()
        captured.replay()
        assert fake.log == "aa"
        captured.free()
        assert fake.bindings.alive == 0

    def test_keeps_what_the_issue_returns(self, fake):
        result = []
        kept = Graph(fake.stream, lambda: result)
        assert kept.results is result

    def test_an_error_of_the_issue_is_the_one_that_is_told(self, monkeypatch):
        fake = OnFake(monkeypatch, invalidated=True)

        def issue():
            raise Error("not while a stream is captured")

        with pytest.raises(Error, match="not while"):
            Graph(fake.stream, issue)
        assert fake.cuda.capturing is None

    def test_a_failed_capture_is_a_fault(self, monkeypatch):
        fake = OnFake(monkeypatch, invalidated=True)
        words = "cuStreamEndCapture failed: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
        with pytest.raises(KernelFault, match=words):
            Graph(fake.stream, lambda: None)

    def test_needs_cuda_bindings(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        with pytest.raises(MissingTool, match=r"pip install '\.\[gpu\]'.*--protocol report"):
            load_bindings()


class TestReplaySampler:
    def test_replays_twice_and_times_the_second(self, fake):
        sampler = ReplaySampler(fake.gpu, fake.stream, fake.issues("abc"), 5)
        assert sampler.calls == 5 and fake.log == ""
        sample = sampler.sample()
        assert fake.log == "abcab" + "|abcab|"
        assert sample.us == pytest.approx(500 / 5) and 0 < sample.host_us < 1e5
        sampler.sample()
        assert fake.log == "abcab|abcab|" * 2
        sampler.free()
        assert fake.bindings.alive == 0


class TestLaunchSampler:
    def test_warms_up_once_and_then_keeps_the_gpu_busy(self, fake):
        sampler = LaunchSampler(fake.gpu, fake.stream, fake.issues("abc"), 4, warmup=3)
        assert fake.log == ""
        assert sampler.sample().us == pytest.approx(500 / 4)
        assert fake.log == "abc" + "|abca|"
        sampler.sample()
        assert fake.log == "abc|abca|" + "b" + "|cabc|"

    def test_without_warming_up_one_call_is_not_timed(self, fake):
        LaunchSampler(fake.gpu, fake.stream, fake.issues("a"), 2, warmup=0).sample()
        assert fake.log == "a|aa|"


class TestRotation:
    def test_every_pair_has_the_input_and_memory_of_its_own(self, fake):
        rotation = Rotation(fake.gpu, X, 4)
        assert len(rotation.pairs) == 4 and rotation.nbytes == 4 * 2 * X.nbytes
        addresses = [matrix.address for pair in rotation.pairs for matrix in pair]
        assert len(set(addresses)) == 8
        for x, _ in rotation.pairs:
            np.testing.assert_array_equal(fetch(fake.cuda, x), X)

    def test_poison_reaches_outputs_only(self, fake):
        rotation = Rotation(fake.gpu, X, 2)
        rotation.poison()
        for x, y in rotation.pairs:
            assert np.isnan(fetch(fake.cuda, y)).all()
            np.testing.assert_array_equal(fetch(fake.cuda, x), X)

    def test_refuses_more_than_the_memory_holds(self, fake):
        with pytest.raises(UsageError, match=r"3 x 5 takes 60 bytes.* 400 of them"):
            Rotation(fake.gpu, X, 200)
