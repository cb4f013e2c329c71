"""Stands for pycuda.driver: memory is numpy's, kernels are Python functions, launches are kept.

Pointers are offsets into one array, so a kernel can be made to write outside its buffers.
"""

from types import SimpleNamespace

import numpy as np


class Error(Exception):
    pass


class OutOfMemory(Error, MemoryError):
    pass


class FakeCuda:
    """A GPU with 227 KiB of shared memory a block and 64 KiB of memory; `log` tells what it did.

    `kernels` maps names to functions of the GPU and the kernel's arguments. Once one sets `broken`,
    every synchronisation raises Error.
    """

    Error, MemoryError = Error, OutOfMemory
    device_attribute = SimpleNamespace(
        MAX_SHARED_MEMORY_PER_BLOCK=49152, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232448
    )
    function_attribute = SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic")

    def __init__(self, **kernels):
        self.memory = np.zeros(1 << 16, np.uint8)
        self.kernels, self.log, self.used, self.broken = kernels, [], 256, False
        self.Context = SimpleNamespace(pop=lambda: self.log.append("pop"), synchronize=self.check)
        self.Stream = lambda: SimpleNamespace(synchronize=self.check)

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
        self.log.append("memset")
        self.memset_d8(address, value, nbytes)

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
        self.cuda.log.append((self.name, grid, block, shared_size))
        self.cuda.kernels[self.name](self.cuda, *args)
