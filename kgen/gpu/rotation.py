"""The buffers of a benchmark: pairs of input and output that its calls go through in turn."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kgen.gpu.device import Gpu
from kgen.gpu.graph import Graph
from kgen.gpu.memory import Buffer, Matrix, MatrixBuffer, no_memory
from kgen.numpy_types import element_of
from kgen.specs.choice import Element
from kgen.specs.declared import FLOAT32

Issue = Callable[[], object]


class Rotation:
    """`count` pairs of x and y, every x filled with the same matrix, on one stream.

    The elements of y are of `out_dtype`.

    Made and used while the GPU's context is active. Raises UsageError without the memory for it.
    """

    def __init__(self, gpu: Gpu, x: Matrix, count: int, out_dtype: Element = FLOAT32) -> None:
        self.gpu, self.stream = gpu, gpu.driver.Stream()
        try:
            self.pairs = [
                (self._matrix(x, element_of(x)), self._matrix(x, out_dtype)) for _ in range(count)
            ]
        except gpu.driver.MemoryError:
            raise no_memory(x, 2 * count) from None
        for source, _ in self.pairs:
            source.fill(x)

    def _matrix(self, x: Matrix, element: Element) -> MatrixBuffer:
        buffer = Buffer(self.gpu.driver, x.size * element.bytes, 0)
        return MatrixBuffer(buffer, (x.shape[0], x.shape[1]), element)

    def poison(self) -> None:
        """Make every output NaN."""
        for _, y in self.pairs:
            y.poison()

    @property
    def nbytes(self) -> int:
        """Bytes of all the pairs."""
        return sum(x.buffer.nbytes + y.buffer.nbytes for x, y in self.pairs)


class Sample(NamedTuple):
    """Mean microseconds of a call by CUDA events, and of the host's issuing it."""

    us: float
    host_us: float


class ReplaySampler:
    """Times `calls` calls captured in a graph, so the host has no part in the time.

    The call's number picks its issue, so consecutive calls use consecutive buffers.
    """

    def __init__(self, gpu: Gpu, stream: object, issues: Sequence[Issue], calls: int) -> None:
        self.gpu, self.stream, self.calls = gpu, stream, calls
        turn = itertools.islice(itertools.cycle(issues), calls)
        self.graph = Graph(stream, lambda: [issue() for issue in turn])

    def outputs(self) -> tuple[object, object]:
        """Replay once, and return where the first and the last call put their results."""
        self.graph.replay()
        return self.graph.results[0], self.graph.results[-1]

    def sample(self) -> Sample:
        """Replay twice, and time the second: the first keeps the GPU busy meanwhile, and warm."""
        self.graph.replay()
        return _between_events(self.gpu, self.stream, self.graph.replay, self.calls)

    def free(self) -> None:
        """Give the graph back."""
        self.graph.free()


class LaunchSampler:
    """Times `calls` calls issued one by one, as a program without graphs would.

    The first sample is taken after `warmup` untimed calls.
    """

    def __init__(
        self, gpu: Gpu, stream: object, issues: Sequence[Issue], calls: int, warmup: int
    ) -> None:
        self.gpu, self.stream, self.calls, self.warmup = gpu, stream, calls, warmup
        self.issues, self.turn = issues, itertools.cycle(issues)

    def outputs(self) -> tuple[object, object]:
        """Issue a call of the first and of the last pair, and return where the results are."""
        return self.issues[0](), self.issues[-1]()

    def sample(self) -> Sample:
        """Issue the calls, behind one that keeps the GPU busy while the host issues the next."""
        self._issue(max(1, self.warmup))
        self.warmup = 0
        timed = functools.partial(self._issue, self.calls)
        return _between_events(self.gpu, self.stream, timed, self.calls)

    def _issue(self, calls: int) -> None:
        for issue in itertools.islice(self.turn, calls):
            issue()

    def free(self) -> None:
        """Nothing of its own is on the GPU."""


def _between_events(gpu: Gpu, stream: object, issue: Callable[[], None], calls: int) -> Sample:
    start, end = gpu.driver.Event(), gpu.driver.Event()
    start.record(stream)
    began = time.perf_counter()
    issue()
    issued = time.perf_counter() - began
    end.record(stream)
    end.synchronize()
    return Sample(start.time_till(end) * 1e3 / calls, issued * 1e6 / calls)
