"""CUDA graphs: calls captured once and replayed, so that a time has no host in it.

cuda-bindings is imported at the first use; PyCUDA has no graphs of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgen.errors import KernelFault, MissingTool
from kgen.text import install_hint


def load_bindings() -> Any:
    """Return cuda.bindings.driver. Raises MissingTool when cuda-bindings is not installed."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise MissingTool(
            f"timing by CUDA graphs needs cuda-bindings ({error}): {install_hint('gpu')}, or "
            "use --protocol report, which does without"
        ) from None
    return driver


class Graph:
    """What `issue` puts on a stream, captured: replayed as one operation.

    `results` is what it returned, which may own memory that a replay writes to.
    """

    def __init__(self, stream: Any, issue: Callable[[], list[object]]) -> None:
        self._cuda = load_bindings()
        self._stream = self._cuda.CUstream(stream.handle)
        # Relaxed: a library under capture may allocate memory, which is no operation of the stream.
        mode = self._cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._ask(self._cuda.cuStreamBeginCapture, self._stream, mode)
        try:
            self.results = issue()
        except BaseException:
            self._cuda.cuStreamEndCapture(self._stream)  # whose error would hide the cause
            raise
        graph = self._ask(self._cuda.cuStreamEndCapture, self._stream)
        self._executable = self._ask(self._cuda.cuGraphInstantiate, graph, 0)
        self._ask(self._cuda.cuGraphDestroy, graph)

    def replay(self) -> None:
        """Queue all of it."""
        self._ask(self._cuda.cuGraphLaunch, self._executable, self._stream)

    def free(self) -> None:
        """Give the graph's memory back."""
        self.results.clear()
        self._ask(self._cuda.cuGraphExecDestroy, self._executable)

    def _ask(self, function: Any, *arguments: Any) -> Any:
        status, *results = function(*arguments)
        if status != self._cuda.CUresult.CUDA_SUCCESS:
            raise KernelFault(f"{function.__name__} failed: {status.name}")
        return results[0] if results else None
