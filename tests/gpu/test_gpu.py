"""The GPU module: on a GPU where there is one, and its refusals everywhere."""

import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from kgen import gpu
from kgen.errors import KernelFault, MissingTool, UsageError
from kgen.evidence import inputs
from kgen.evidence.reference import Criterion, judge
from kgen.gpu.call import Call
from kgen.gpu.device import gpu as the_gpu
from kgen.gpu.device import load_driver
from kgen.launch import Launch, LaunchPlan
from kgen.toolchain import CompileOptions, compile_cubin
from kgen.toolchain.source import PlainSource
from tests.gpu.kernels import ARGS, ILLEGAL, softmax_plan, softmax_source


def run_variant(rows, cols, **text):
    return gpu.run(
        softmax_source(**text), softmax_plan(rows, cols), inputs.make("uniform", rows, cols)
    )


@pytest.mark.gpu
class TestOnTheGpu:
    def test_device(self, device):
        assert device.arch.startswith("sm_") and device.sm_count > 0
        assert device.l2_bytes > 1 << 20 and device.memory_bytes > 1 << 30
        assert "CUDA" in device.driver

    @pytest.mark.parametrize("rows, cols", [(1, 1), (3, 257), (70000, 33), (2, 100000)])
    def test_right_results(self, device, rows, cols):
        x = inputs.make("uniform", rows, cols)
        y = gpu.run(softmax_source(), softmax_plan(rows, cols), x)
        assert judge(y, x, Criterion(cols)).reason == ""

    @pytest.mark.parametrize("name", ["with_nan", "with_minus_inf", "all_minus_inf"])
    def test_special_values_pass_through(self, device, name):
        x = inputs.make(name, 6, 100)
        y = gpu.run(softmax_source(), softmax_plan(6, 100), x)
        assert judge(y, x, Criterion(100)).reason == ""

    def test_an_input_that_is_not_contiguous(self, device):
        x = inputs.make("uniform", 100, 6).T
        y = gpu.run(softmax_source(), softmax_plan(6, 100), x)
        assert judge(y, x, Criterion(100)).reason == ""

    def test_an_element_that_is_not_written_is_nan(self, device):
        right = run_variant(4, 50)
        assert not np.isnan(right).any()
        y = run_variant(4, 50, before="if (blockIdx.x == 2) return;")
        assert np.isnan(y[2]).all() and (y[[0, 1, 3]] == right[[0, 1, 3]]).all()

    @pytest.mark.parametrize("index", ["-1", "static_cast<long long>(rows) * cols"])
    def test_a_value_from_outside_the_input_is_nan(self, device, index):
        y = run_variant(4, 50, after=f"if (threadIdx.x == 0) y[blockIdx.x * cols] += x[{index}];")
        assert np.isnan(y[:, 0]).all() and not np.isnan(y[:, 1:]).any()

    @pytest.mark.parametrize(
        "index, place",
        [("-2", "byte 5 before the start of y"), ("rows * cols + 1", "byte 5 behind the end of y")],
    )
    def test_a_write_outside_the_output_is_a_fault(self, device, index, place):
        with pytest.raises(KernelFault, match=rf"softmax_tiny \(4 blocks.*{place}"):
            run_variant(4, 50, after=f"y[{index}] = 1.0f;")
        assert not np.isnan(run_variant(4, 50)).any()

    def test_a_launch_that_is_refused_is_a_fault_and_spares_the_context(self, device):
        launch = Launch("softmax_tiny", 4, 2048, 0, ("x", "y", "rows", "cols"))
        x = inputs.make("uniform", 4, 50)
        with pytest.raises(KernelFault, match=r"softmax_tiny \(4 blocks of 2048 threads\)") as info:
            gpu.run(softmax_source(), LaunchPlan(4, 50, (launch,)), x)
        assert "lost" not in str(info.value)
        assert not np.isnan(run_variant(4, 50)).any()

    @pytest.mark.parametrize("shared_bytes", [1024, 48 * 1024, 64 * 1024])
    def test_dynamic_shared_memory_beyond_48_kib(self, device, shared_bytes):
        last = shared_bytes // 4 - 1
        touch = f"extern __shared__ float s[]; s[{last}] = x[0]; if (s[{last}] != x[0]) return;"
        x = inputs.make("uniform", 4, 50)
        plan = softmax_plan(4, 50, shared_bytes=shared_bytes)
        assert judge(gpu.run(softmax_source(before=touch), plan, x), x, Criterion(50)).reason == ""

    def test_static_and_dynamic_shared_memory_count_together(self, device):
        touch = (
            "__shared__ float s[4096]; s[threadIdx.x] = x[0]; if (s[threadIdx.x] != x[0]) return;"
        )
        x = inputs.make("uniform", 4, 50)
        limit = load_driver().device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        most = load_driver().Device(0).get_attribute(limit)
        fits, exceeds = most - 16384, most - 16384 + 1
        plan = softmax_plan(4, 50, shared_bytes=fits)
        assert judge(gpu.run(softmax_source(before=touch), plan, x), x, Criterion(50)).reason == ""
        with pytest.raises(UsageError, match=rf"16384 static, {exceeds} dynamic.* {most};"):
            plan = softmax_plan(4, 50, shared_bytes=exceeds)
            gpu.run(softmax_source(before=touch), plan, x)

    def test_the_workspace_is_cleared_for_every_call(self, device):
        text = f"""extern "C" __global__ void counting({ARGS}, int* workspace, int cols) {{
            const int before = atomicAdd(workspace, 1);
            for (int c = 0; c < cols; ++c) y[c] = before == 0 ? 1.0f / cols : NAN;
        }}"""
        launch = Launch("counting", 1, 1, 0, ("x", "y", "workspace", "cols"))
        plan = LaunchPlan(1, 10, (launch,), workspace_bytes=4)
        binary = compile_cubin(PlainSource("counting", text, ("counting",)), device.arch)
        x = inputs.make("zeros", 1, 10)
        with the_gpu().active():
            call = Call(the_gpu(), binary, plan, x)
            for _ in range(3):
                call.run_step_by_step()
                assert judge(call.output(), x, Criterion(10)).reason == ""
            call.free()

    def test_a_shape_too_large_for_the_memory_is_refused(self, device):
        rows, cols = device.memory_bytes // 4 // 1024, 1024
        x = np.broadcast_to(np.float32(0), (rows, cols))
        with pytest.raises(UsageError, match=f"{rows} x {cols} takes {rows * cols * 4} bytes"):
            gpu.run(softmax_source(), softmax_plan(rows, cols), x)

    def test_source_module_gives_the_same_results(self, device):
        from pycuda.compiler import SourceModule

        options = CompileOptions(use_fast_math=True)
        x = inputs.make("uniform", 8, 100)
        plan, the_source = softmax_plan(8, 100), softmax_source()
        with the_gpu().active():
            call = Call(the_gpu(), compile_cubin(the_source, device.arch, options), plan, x)
            module = SourceModule(the_source.text, **gpu.source_module_options(options))
            addresses = (np.uintp(call.buffers[name].address) for name in "xy")
            module.get_function("softmax_tiny")(
                *addresses, np.int32(8), np.int32(100), grid=(8, 1), block=(128, 1, 1)
            )
            y = call.output()
            call.free()
        np.testing.assert_array_equal(y, gpu.run(the_source, plan, x, options))

    def test_a_lost_context_is_told_and_the_process_ends_in_order(self, device):
        script = f"from {__name__} import run_after_a_fault; run_after_a_fault()"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        assert "illegal" in ran.stdout and "start a new process" in ran.stdout


def run_after_a_fault():
    illegal = softmax_source(after=ILLEGAL)
    for the_source in (illegal, softmax_source()):
        try:
            gpu.run(the_source, softmax_plan(4, 50), inputs.make("uniform", 4, 50))
        except KernelFault as fault:
            print(fault)


@pytest.mark.parametrize("rows, cols", [(0, 0), (0, 7), (7, 0)])
def test_an_empty_matrix_needs_no_launch_and_no_gpu(rows, cols):
    x, plan = np.empty((rows, cols), np.float32), LaunchPlan(rows, cols, ())
    y = gpu.run(softmax_source(), plan, x)
    assert y.shape == (rows, cols) and y.dtype == np.float32


@pytest.mark.parametrize("x", [np.zeros((3, 4), np.float32), np.zeros((4, 3))])
def test_the_input_must_be_what_the_plan_is_for(x):
    with pytest.raises(ValueError, match="float32 4 x 3"):
        gpu.run(softmax_source(), softmax_plan(4, 3), x)


def test_source_module_options():
    options = CompileOptions(use_fast_math=True)
    arguments = gpu.source_module_options(options)
    assert arguments["options"] == list(options.flags())
    assert arguments["no_extern_c"] is True and arguments["cache_dir"] is False


class FakeError(Exception):
    pass


def fake_driver(error):
    def init():
        raise FakeError(error)

    driver = ModuleType("pycuda.driver")
    driver.Error, driver.init = FakeError, init
    return driver


class TestWhatIsMissing:
    @pytest.fixture(autouse=True)
    def forget(self, monkeypatch):
        for function in (gpu.device_info, load_driver):
            function.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
            monkeypatch.delitem(sys.modules, name)
        yield
        for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
            del sys.modules[name]
        for function in (gpu.device_info, load_driver):
            function.cache_clear()

    def test_pycuda(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pycuda", None)
        with pytest.raises(MissingTool, match=r"not installed.*pip install '\.\[gpu\]'"):
            gpu.device_info()

    @pytest.mark.parametrize(
        "error, advice",
        [
            ("libcuda.so.1: cannot open shared object file", "^no NVIDIA driver: libcuda.so.1"),
            ("undefined symbol: cuThat", "cannot be imported.*undefined symbol.*reinstall"),
        ],
    )
    def test_driver(self, monkeypatch, tmp_path, error, advice):
        (tmp_path / "pycuda").mkdir()
        (tmp_path / "pycuda" / "__init__.py").touch()
        (tmp_path / "pycuda" / "driver.py").write_text(f"raise ImportError({error!r})")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(MissingTool, match=advice):
            gpu.device_info()

    def test_gpu(self, monkeypatch):
        driver = fake_driver("cuInit failed: no CUDA-capable device is detected")
        package = ModuleType("pycuda")
        package.driver = driver
        monkeypatch.setitem(sys.modules, "pycuda", package)
        monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
        with pytest.raises(MissingTool, match=r"^no GPU found \(cuInit.*CUDA_VISIBLE_DEVICES"):
            gpu.device_info()
