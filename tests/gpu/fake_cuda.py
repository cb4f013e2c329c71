"""Stands for pycuda.driver: memory is numpy's, kernels are Python functions, launches are kept.

Pointers are offsets into one array, so a kernel can be made to write outside its buffers. What is
put on a stream happens at once, unless `FakeBindings`, which stand for cuda.bindings.driver, are
capturing the stream.
"""

from enum import IntEnum
from types import SimpleNamespace

import numpy as np


class Error(Exception):
    pass


class OutOfMemory(Error, MemoryError):
    pass


class FunctionAttribute(IntEnum):
    """What can be asked for a kernel, of which PyCUDA has no name for the second."""

    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14


class FakeCuda:
    """A GPU with 227 KiB of shared memory a block and 64 KiB of memory; `log` tells what it did.

    `kernels` maps names to functions of the GPU and the kernel's arguments. Once one sets `broken`,
    every synchronisation raises Error.
    """

    Error, MemoryError = Error, OutOfMemory
    device_attribute = SimpleNamespace(
        MAX_SHARED_MEMORY_PER_BLOCK=49152, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232448
    )
    function_attribute = FunctionAttribute

    def __init__(self, **kernels):
        self.memory = np.zeros(1 << 16, np.uint8)
        self.kernels, self.log, self.used, self.broken = kernels, [], 256, False
        self.Context = SimpleNamespace(pop=lambda: self.log.append("pop"), synchronize=self.check)
        self.capturing = None  # the operations of a stream that is captured, and its handle

    def Stream(self):
        return SimpleNamespace(synchronize=self.check, handle=7)

    def issue(self, stream, entry, operation):
        """Do an operation and log it, or keep it for a graph."""
        if self.capturing is not None:
            assert stream.handle == self.capturing.handle
            self.capturing.operations.append((entry, operation))
        else:
            self.log.append(entry)
            operation()

    def Device(self, number):
        context = SimpleNamespace(
            push=lambda: self.log.append("push"), detach=lambda: self.log.append("detach")
        )
        return SimpleNamespace(
            retain_primary_context=lambda: context, get_attribute=lambda attribute: attribute
        )

    def check(self):
        if self.broken:
            raise Error("an illegal memory access was encountered")

    def floats(self, address, count):
        return self.memory[address : address + 4 * count].view(np.float32)

    def mem_alloc(self, nbytes):
        address, self.used = self.used, self.used + -(-nbytes // 256) * 256
        if self.used > self.memory.size:
            raise OutOfMemory("out of memory")
        return FakeAllocation(address, lambda: self.log.append("free"))

    def memset_d8(self, address, value, nbytes):
        self.memory[address : address + nbytes] = value

    def memset_d8_async(self, address, value, nbytes, stream):
        self.issue(stream, "memset", lambda: self.memset_d8(address, value, nbytes))

    def memset_d32_async(self, address, value, count, stream):
        def fill():
            self.memory[address : address + 4 * count].view(np.uint32)[:] = value

        self.issue(stream, "fill", fill)

    def memcpy_dtod_async(self, target, source, nbytes, stream):
        def copy():
            self.memory[target : target + nbytes] = self.memory[source : source + nbytes]

        self.issue(stream, "copy", copy)

    def memcpy_htod(self, address, array):
        self.memory[address : address + array.nbytes] = array.view(np.uint8).ravel()

    def memcpy_dtoh(self, array, address):
        array.view(np.uint8)[...] = self.memory[address : address + array.nbytes].reshape(
            array.view(np.uint8).shape
        )

    def module_from_buffer(self, image):
        return SimpleNamespace(get_function=lambda name: FakeFunction(self, name))

    def Event(self):
        event = SimpleNamespace(synchronize=self.check, time_till=lambda other: 0.5)
        event.record = lambda stream: self.log.append("record")
        return event


class FakeAllocation(SimpleNamespace):
    def __init__(self, address, free):
        super().__init__(address=address, free=free)

    def __int__(self):
        return self.address


class FakeFunction:
    def __init__(self, cuda, name):
        self.cuda, self.name = cuda, name

    def prepare(self, formats):
        self.formats = formats

    def set_attribute(self, attribute, value):
        self.cuda.log.append((attribute, value))

    def prepared_async_call(self, grid, block, stream, *args, shared_size):
        assert len(args) == len(self.formats)
        kernel = self.cuda.kernels[self.name]
        entry = (self.name, grid, block, shared_size)
        self.cuda.issue(stream, entry, lambda: kernel(self.cuda, *args))


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901


class FakeBindings:
    """Graphs of a FakeCuda; `invalidated` makes captures fail at their end."""

    CUresult = CUresult
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed")

    def __init__(self, cuda, invalidated=False):
        self.cuda, self.invalidated = cuda, invalidated
        self.alive = 0  # graphs and executables that are not destroyed

    def CUstream(self, handle):
        return SimpleNamespace(handle=handle)

    def cuStreamBeginCapture(self, stream, mode):
        assert mode == "relaxed" and self.cuda.capturing is None
        self.cuda.capturing = SimpleNamespace(handle=stream.handle, operations=[])
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamEndCapture(self, stream):
        captured, self.cuda.capturing = self.cuda.capturing, None
        assert captured.handle == stream.handle
        if self.invalidated:
            return CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, None
        self.alive += 1
        return CUresult.CUDA_SUCCESS, captured.operations

    def cuGraphInstantiate(self, graph, flags):
        self.alive += 1
        return CUresult.CUDA_SUCCESS, list(graph)

    def cuGraphLaunch(self, executable, stream):
        for entry, operation in executable:
            self.cuda.issue(stream, entry, operation)
        return (CUresult.CUDA_SUCCESS,)

    def cuGraphDestroy(self, graph):
        self.alive -= 1
        return (CUresult.CUDA_SUCCESS,)

    cuGraphExecDestroy = cuGraphDestroy
