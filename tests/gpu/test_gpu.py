"""The GPU module: on a GPU where there is one, and its refusals everywhere."""

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from kgen import gpu
from kgen.errors import KernelFault, MissingTool, UsageError
from kgen.evidence import inputs
from kgen.evidence.measure import Case, Method, Outcome, measure
from kgen.evidence.reference import judge
from kgen.gpu.device import load_driver
from kgen.launch import Launch, LaunchPlan
from kgen.sources.source import Source
from kgen.toolchain import CompileOptions

BODY = """
    const float* row = x + static_cast<long long>(blockIdx.x) * cols;
    float m = -INFINITY, d = 0.0f;
    for (int c = 0; c < cols; ++c) m = fmaxf(m, row[c]);
    for (int c = 0; c < cols; ++c) d += expf(row[c] - m);
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        y[static_cast<long long>(blockIdx.x) * cols + c] = expf(row[c] - m) / d;
"""
ARGS = "const float* __restrict__ x, float* __restrict__ y"


def source(stem, text):
    return Source(SimpleNamespace(is_host=False), stem, text, (stem,))


def softmax_source(stem="softmax_tiny", *, before="", after=""):
    signature = f'extern "C" __global__ void {stem}({ARGS}, int rows, int cols)'
    return source(stem, f"#include <cmath>\n{signature} {{\n{before}{BODY}{after}}}\n")


def softmax_plan(rows, cols, stem="softmax_tiny", *, shared_bytes=0):
    launch = Launch(stem, rows, 128, shared_bytes, ("x", "y", "rows", "cols"))
    return LaunchPlan(rows, cols, (launch,))


@pytest.fixture
def device():
    try:
        return gpu.device_info()
    except MissingTool as missing:
        pytest.skip(str(missing))


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
        assert judge(y, x, cols).reason == ""

    @pytest.mark.parametrize("name", ["with_nan", "with_minus_inf", "all_minus_inf"])
    def test_special_values_pass_through(self, device, name):
        x = inputs.make(name, 6, 100)
        y = gpu.run(softmax_source(), softmax_plan(6, 100), x)
        assert judge(y, x, 100).reason == ""

    def test_an_input_that_is_not_contiguous(self, device):
        x = inputs.make("uniform", 100, 6).T
        y = gpu.run(softmax_source(), softmax_plan(6, 100), x)
        assert judge(y, x, 100).reason == ""

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
        assert judge(gpu.run(softmax_source(before=touch), plan, x), x, 50).reason == ""

    def test_static_and_dynamic_shared_memory_count_together(self, device):
        touch = (
            "__shared__ float s[4096]; s[threadIdx.x] = x[0]; if (s[threadIdx.x] != x[0]) return;"
        )
        x = inputs.make("uniform", 4, 50)
        limit = load_driver().device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        most = load_driver().Device(0).get_attribute(limit)
        fits, exceeds = most - 16384, most - 16384 + 1
        plan = softmax_plan(4, 50, shared_bytes=fits)
        assert judge(gpu.run(softmax_source(before=touch), plan, x), x, 50).reason == ""
        with pytest.raises(UsageError, match=rf"16384 static, {exceeds} dynamic.* {most};"):
            plan = softmax_plan(4, 50, shared_bytes=exceeds)
            gpu.run(softmax_source(before=touch), plan, x)

    def test_the_workspace_is_cleared_for_every_call(self, device):
        text = f"""extern "C" __global__ void counting({ARGS}, int* workspace, int cols) {{
            const int before = atomicAdd(workspace, 1);
            for (int c = 0; c < cols; ++c) y[c] = before == 0 ? 1.0f / cols : NAN;
            if (before > 0) __trap();
        }}"""
        launch = Launch("counting", 1, 1, 0, ("x", "y", "workspace", "cols"))
        plan = LaunchPlan(1, 10, (launch,), workspace_bytes=4)
        x = inputs.make("zeros", 1, 10)
        assert judge(gpu.run(source("counting", text), plan, x), x, 10).reason == ""
        gpu.time_launches(source("counting", text), plan, x, warmup=3, launches=5, batches=1)

    def test_a_shape_too_large_for_the_memory_is_refused(self, device):
        rows, cols = device.memory_bytes // 4 // 1024, 1024
        x = np.broadcast_to(np.float32(0), (rows, cols))
        with pytest.raises(UsageError, match=f"{rows} x {cols} takes {rows * cols * 4} bytes"):
            gpu.run(softmax_source(), softmax_plan(rows, cols), x)

    def test_times(self, device):
        rows, cols = 1024, 4096
        x = inputs.make("uniform", rows, cols)
        timing = gpu.time_launches(
            softmax_source(), softmax_plan(rows, cols), x, warmup=2, launches=10, batches=4
        )
        assert len(timing.batch_us) == 4
        assert min(timing.batch_us) <= timing.mean_us <= max(timing.batch_us)
        assert 8 * rows * cols / timing.mean_us < 2e7  # bytes per microsecond, below 20 TB/s
        assert 0 < timing.host_us < timing.mean_us
        assert 0 < timing.registers <= 255

    def test_source_module_gives_the_same_results(self, device):
        from pycuda.compiler import SourceModule

        from kgen.gpu.call import Call
        from kgen.gpu.device import gpu as the_gpu
        from kgen.toolchain import compile_cubin

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

    def test_a_bad_kernel_costs_only_its_own_row(self, device):
        def case(stem, **text):
            return Case(stem, 4, 50, softmax_source(stem, **text), softmax_plan(4, 50, stem), 50)

        cases = [
            case("good"),
            case("illegal", after="*reinterpret_cast<float*>(16) = 1.0f;"),
            case("good_again"),
            case("endless", before="while (clock64() != 0) {}"),
            case("wrong", after="if (threadIdx.x == 7) y[7] += 1.0f;"),
            case("last"),
        ]
        method = Method(warmup=2, launches=20, batches=2)
        rows = list(measure(cases, no_host, method=method, timeout_s=20))
        outcomes = [row.outcome for row in rows]
        good, failed = Outcome.OK, Outcome.FAILED
        assert outcomes == [good, failed, good, failed, Outcome.WRONG, good], rows
        assert "illegal" in rows[1].reason and "context is lost" in rows[1].reason
        assert "within 20 s" in rows[3].reason
        assert rows[0].registers and rows[0].launches_per_call == 1

    def test_a_lost_context_is_told_and_the_process_ends_in_order(self, device):
        script = f"from {__name__} import run_after_a_fault; run_after_a_fault()"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        assert "illegal" in ran.stdout and "start a new process" in ran.stdout


def run_after_a_fault():
    illegal = softmax_source(after="*reinterpret_cast<float*>(16) = 1.0f;")
    for the_source in (illegal, softmax_source()):
        try:
            gpu.run(the_source, softmax_plan(4, 50), inputs.make("uniform", 4, 50))
        except KernelFault as fault:
            print(fault)


def no_host(source, plan, x):
    raise AssertionError("there is no host version here")


@pytest.mark.parametrize("rows, cols", [(0, 0), (0, 7), (7, 0)])
def test_an_empty_matrix_needs_no_launch_and_no_gpu(rows, cols):
    x, plan = np.empty((rows, cols), np.float32), LaunchPlan(rows, cols, ())
    y = gpu.run(softmax_source(), plan, x)
    assert y.shape == (rows, cols) and y.dtype == np.float32
    with pytest.raises(UsageError, match=f"{rows} x {cols} has nothing to time"):
        gpu.time_launches(softmax_source(), plan, x)


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
        with pytest.raises(MissingTool, match=r'not installed.*pip install "kgen\[gpu\]"'):
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
