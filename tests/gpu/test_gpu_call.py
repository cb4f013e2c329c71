"""What a GPU call does with the driver, seen on a fake one; test_gpu.py has the real one."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kgen.errors import KernelFault, UsageError
from kgen.gpu import device, execute
from kgen.gpu.call import Kernels
from kgen.launch import Buffer, Launch, LaunchPlan, Number
from kgen.toolchain import Binary, KernelResources
from tests.gpu.fake_cuda import Error, FakeCuda, FunctionAttribute

ROWS, COLS = 3, 5
ARGS = ("x", "y", "rows", "cols")
X = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS)


def double(cuda, x, y, rows, cols):
    assert x % 256 == y % 256 == 0
    cuda.floats(y, rows * cols)[:] = 2 * cuda.floats(x, rows * cols)


def writer(offset):
    def kernel(cuda, x, y, rows, cols):
        cuda.floats(y + 4 * offset, 1)[:] = -0.0

    return kernel


def raise_error(cuda, *args):
    raise Error("cuLaunchKernel failed: invalid argument")


def break_context(cuda, *args):
    cuda.broken = True


def plan(*kernels, shared_bytes=0, args=ARGS, workspace_bytes=0):
    launches = tuple(Launch(name, 7, 32, shared_bytes, args) for name in kernels)
    return LaunchPlan(ROWS, COLS, launches, workspace_bytes)


@pytest.fixture
def on(monkeypatch):
    """Return a function that makes `cuda` the GPU of this process."""

    def use(cuda, static_shared_bytes=0):
        resources = tuple(
            KernelResources(name, 20 + len(name), 0, 0, 0, static_shared_bytes)
            for name in cuda.kernels
        )
        binary = Binary(Path("fake.cubin"), b"", "sm_90", resources, "")
        monkeypatch.setattr(device, "load_driver", lambda: cuda)
        fake_gpu = device.Gpu()
        monkeypatch.setattr(execute, "gpu", lambda: fake_gpu)
        monkeypatch.setattr(execute, "compile_cubin", lambda *args: binary)
        monkeypatch.setattr(execute, "device_info", lambda: binary)
        return cuda

    return use


SOURCE = SimpleNamespace(filename="fake.cu")


def test_input_and_output_travel(on):
    cuda = on(FakeCuda(double=double))
    np.testing.assert_array_equal(execute.run(SOURCE, plan("double"), X), 2 * X)
    launch = ("double", (7, 1), (32, 1, 1), 0)
    assert cuda.log == ["push", launch, "free", "free", "free", "pop"]


def test_guards_leave_the_alignment_of_an_allocation(on):
    on(FakeCuda(double=double))
    x = np.ones((1, 1025), np.float32)
    y = execute.run(SOURCE, replace(plan("double"), rows=1, cols=1025), x)
    assert (y == 2).all()


def test_what_is_not_written_and_what_surrounds_the_input_is_nan(on):
    def skip_and_overread(cuda, x, y, rows, cols):
        cuda.floats(y, 2)[:] = cuda.floats(x - 4, 1)[0], cuda.floats(x + 4 * rows * cols, 1)[0]
        cuda.floats(y + 8, 1)[:] = 1.0

    on(FakeCuda(skip_and_overread=skip_and_overread))
    y = execute.run(SOURCE, plan("skip_and_overread"), X).ravel()
    assert y[2] == 1 and np.isnan(np.delete(y, 2)).all()


@pytest.mark.parametrize(
    "offset, place",
    [(-1, "byte 1 before the start of y"), (ROWS * COLS + 2, "byte 9 behind the end of y")],
)
def test_a_write_outside_the_output_is_a_fault(on, offset, place):
    cuda = on(FakeCuda(writer=writer(offset)))
    with pytest.raises(KernelFault, match=rf"writer \(7 blocks of 32 threads\) wrote to {place}"):
        execute.run(SOURCE, plan("writer"), X)
    assert cuda.log[-1] == "pop"


def test_a_write_behind_the_workspace_is_a_fault(on):
    on(FakeCuda(writer=writer(2)))
    the_plan = plan("writer", args=("x", "workspace", "rows", "cols"), workspace_bytes=8)
    with pytest.raises(KernelFault, match="byte 1 behind the end of workspace"):
        execute.run(SOURCE, the_plan, X)


def test_every_call_clears_the_workspace(on):
    def count(cuda, workspace, cols):
        assert cuda.floats(workspace, 2).tolist() == [0, 0] and cols == COLS
        cuda.floats(workspace, 2)[:] = 7

    cuda = on(FakeCuda(count=count))
    the_plan = plan("count", args=("workspace", "cols"), workspace_bytes=8)
    for _ in range(2):
        execute.run(SOURCE, the_plan, X)
    assert cuda.log.count("memset") == 2


def test_blocks_that_run_together_find_what_the_call_before_left(on):
    """Their workspace is zeroed once, and their launches have the numbers of the plan."""
    numbers = []

    def count(cuda, workspace, launch):
        assert cuda.floats(workspace, 2).tolist() == [len(numbers)] * 2
        numbers.append(launch)
        cuda.floats(workspace, 2)[:] = len(numbers)

    cuda = on(FakeCuda(count=count))
    the_plan = plan("count", args=("workspace", "launch"), workspace_bytes=8)
    call = Kernels(execute.gpu(), execute.compile_cubin(), replace(the_plan, keeps_workspace=True))
    [step] = call.bind({"x": 0, "y": 0, "workspace": 1024}, cuda.Stream())
    step.issue()
    step.issue()
    assert numbers == [1, 1] and "memset" not in cuda.log


@pytest.mark.parametrize("blocks, asks", [(8, False), (16, True)])
def test_asks_for_clusters_that_not_every_gpu_takes(on, blocks, asks):
    cuda = on(FakeCuda(double=double))
    the_plan = plan("double")
    [launch] = the_plan.launches
    large = replace(the_plan, launches=(replace(launch, cluster_size=blocks),))
    execute.run(SOURCE, large, X)
    assert ((FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) in cuda.log) is asks


def test_a_binary_is_not_compiled_again(on, monkeypatch):
    on(FakeCuda(double=double))
    binary = execute.compile_cubin()
    monkeypatch.delattr(execute, "compile_cubin")
    np.testing.assert_array_equal(execute.run(SOURCE, plan("double"), X, binary=binary), 2 * X)


def test_bare_buffers_are_neither_guarded_nor_filled(on):
    cuda = on(FakeCuda(writer=writer(-1)))
    y = execute.run(SOURCE, plan("writer"), X, is_bare=True)
    assert not np.isnan(y).any() and cuda.used == 256 + 3 * 256


@pytest.mark.parametrize("dynamic, asks", [(0, False), (49152 - 100, False), (49152 - 99, True)])
def test_asks_for_much_shared_memory(on, dynamic, asks):
    cuda = on(FakeCuda(double=double), static_shared_bytes=100)
    execute.run(SOURCE, plan("double", shared_bytes=dynamic), X)
    assert ((FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic) in cuda.log) is asks
    assert ("double", (7, 1), (32, 1, 1), dynamic) in cuda.log


def test_refuses_more_shared_memory_than_a_block_can_have(on):
    cuda = on(FakeCuda(double=double), static_shared_bytes=100)
    execute.run(SOURCE, plan("double", shared_bytes=232348), X)
    with pytest.raises(UsageError, match=r"232449 bytes .*100 static, 232349 dynamic.* 232448;"):
        execute.run(SOURCE, plan("double", shared_bytes=232349), X)
    assert cuda.log[-1] == "pop"


def test_refuses_a_shape_that_the_memory_cannot_hold(on):
    on(FakeCuda(double=double))
    x = np.zeros((100, 100), np.float32)
    with pytest.raises(UsageError, match="100 x 100 takes 40000 bytes"):
        execute.run(SOURCE, replace(plan("double"), rows=100, cols=100), x)


def test_a_refused_launch_is_blamed_on_its_kernel_and_others_run(on):
    cuda = on(FakeCuda(double=double, refused=raise_error))
    with pytest.raises(KernelFault, match=r"^refused \(7 blocks.*invalid argument$"):
        execute.run(SOURCE, plan("double", "refused"), X)
    assert cuda.log[-4:] == ["free", "free", "free", "pop"]
    np.testing.assert_array_equal(execute.run(SOURCE, plan("double"), X), 2 * X)


def test_a_fault_that_ends_the_context_ends_the_use_of_the_gpu(on):
    cuda = on(FakeCuda(double=double, breaker=break_context))
    with pytest.raises(KernelFault, match=r"^breaker \(7 blocks.*illegal.*context is lost$"):
        execute.run(SOURCE, plan("double", "breaker", "double"), X)
    assert cuda.log[-1] == "detach" and not {"free", "pop"} & set(map(str, cuda.log))
    with pytest.raises(KernelFault, match=r"breaker.*start a new process"):
        execute.run(SOURCE, plan("double"), X)
    assert cuda.log[-1] == "detach"


def scaled(cuda, y, factors, columns, scale):
    cuda.floats(y, ROWS * COLS)[:] *= scale * cuda.floats(factors, 1)[0] + columns


def test_a_strangers_launch_has_buffers_numbers_and_two_dimensions(on):
    """In place, on a buffer that is filled before each call, with numbers of its own types."""
    cuda = on(FakeCuda(scaled=scaled))
    numbers = (Number("columns=", "Q", COLS), Number("scale=", "f", 0.5))
    args = ("y", "factors", "columns=", "scale=")
    launch = Launch("scaled", 6, 64, 0, args, numbers=numbers, block_width=32, grid_width=3)
    filled = (Buffer("factors", 8, 4.0), Buffer("anything", 4))
    launches = LaunchPlan(ROWS, COLS, (launch,), buffers=filled, in_place=True)
    y = execute.run(SOURCE, launches, X)
    assert (y == X * (0.5 * 4 + COLS)).all()
    assert ("scaled", (3, 2), (32, 2, 1), 0) in cuda.log
    assert cuda.log.count("fill") == 1
