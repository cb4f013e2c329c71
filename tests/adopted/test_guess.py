"""What is guessed of a file, what is asked, and what is refused."""

from __future__ import annotations

import re

import pytest

from kgen.errors import UsageError
from tests.adopted.files import KERNELS, adopted, guessed

BODY = "{ y[(size_t)blockIdx.x * n] = expf(x[(size_t)blockIdx.x * n]); }"
KERNEL = f"__global__ void softmax(const float* x, float* y, int n) {BODY}\n"


def launched(host: str, kernel: str = KERNEL) -> object:
    """Return the first launch that is guessed of a kernel with host code behind it."""
    return guessed(kernel + host).sidecar.kernel[0]


@pytest.mark.parametrize(
    ("host", "grid", "block", "shared"),
    [
        ("void f(float* x, float* y, int M, int N) { softmax<<<M, 256>>>(x, y, N); }", "rows", 256, 0),
        ("void f(float* x, float* y, int M, int N) { dim3 g(M), b(32, 8); softmax<<<g, b>>>(x, y, N); }", "rows", [32, 8], 0),
        ("void f(float* x, float* y, int M, int N) { int t = 128; softmax<<<(M + t - 1) / t, t, t * sizeof(float)>>>(x, y, N); }", "ceil_div(rows, block)", 128, "block * 4"),
        ("#define T 64\n#define UP(a, b) (((a) + (b) - 1) / (b))\nvoid f(float* x, float* y, int M, int N) { softmax<<<UP(M, 8), T, 2 * T>>>(x, y, N); }", "ceil_div(rows, 8)", "T", "2 * T"),
        ("void f(float* x, float* y, int M, int N) { softmax<<<std::min(M, 1024), 1 << 7>>>(x, y, N); }", "min(rows, 1024)", "1 << 7", 0),
        ("void g(float* x, float* y, int M, int N, int size) { softmax<<<ceil((float)M / 4), size>>>(x, y, N); }\nint main() { g(0, 0, 8, 8, 512); }", "ceil_div(rows, 4)", 512, 0),
        ("int main() { float *x, *y; softmax<<<4096, 256>>>(x, y, 1024); }", "rows", 256, 0),
    ],
)  # fmt: skip
def test_a_launch_of_the_host_is_read(
    host: str, grid: object, block: object, shared: object
) -> None:
    call = launched(host)
    assert (call.grid, call.block, call.shared) == (grid, block, shared)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("parameters", "body", "roles"),
    [
        ("float* out, const float* in, int N, int C", "int r = blockIdx.x; if (r < N) out[r * C] = expf(in[r * C]);", ["output", "input", "rows", "cols"]),
        ("float* a, float* b, int m, int n", "for (int i = threadIdx.x; i < n; i += 32) b[blockIdx.x * n + i] = expf(a[i]);", ["input", "output", "rows", "cols"]),
        ("float* data, unsigned n, size_t batch", "float* p = data + blockIdx.x * (size_t)n; p[threadIdx.x] = expf(p[0]);", ["in_place", "cols", "rows"]),
        ("const float4* s, float4* d, int c", "d[blockIdx.x * c].x = expf(s[blockIdx.x * c].x);", ["input", "output", "cols"]),
        ("const float* x, float* y, int n", "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = expf(x[i]);", ["input", "output", "cols"]),
    ],
)  # fmt: skip
def test_arguments_are_what_the_body_does_with_them(
    parameters: str, body: str, roles: list[str]
) -> None:
    made = guessed(f"__global__ void softmax({parameters}) {{ {body} }}")
    assert not made.questions
    assert list(made.sidecar.kernel[0].arguments.values()) == roles


def test_constants_that_may_be_swept_are_listed_with_their_values() -> None:
    text = "#define A 4\nconstexpr int B = 0x20;\nconst float scale = 1.5f;\n" + KERNEL.replace(
        "expf(", "A * B * expf("
    )
    assert guessed(text).sidecar.constants == {"A": 4, "B": 32}


def test_template_arguments_are_those_of_the_launch() -> None:
    kernel = "template <typename T, int B, int V = 4>\n" + KERNEL.replace("float*", "T*")
    host = "constexpr int TPB = 64;\nvoid f(float* x, float* y, int M, int N) { softmax<float, TPB><<<M, TPB>>>(x, y, N); }"
    call = guessed(kernel + host).sidecar.kernel[0]
    assert call.template == {"T": "float", "B": "TPB", "V": 4}


def test_kernels_that_nobody_launches_are_a_chain_where_none_is_whole() -> None:
    first = "__global__ void top(const float* x, float* m, float* d, int rows, int cols) { m[blockIdx.x] = expf(x[blockIdx.x * cols]); d[blockIdx.x] = 1; }\n"
    second = "__global__ void out(const float* x, float* y, const float* m, const float* d, int rows, int cols) { y[blockIdx.x * cols] = expf(x[blockIdx.x * cols] - m[blockIdx.x]) / d[blockIdx.x]; }\n"
    sidecar = guessed(first + second).sidecar
    assert [call.name for call in sidecar.kernel] == ["top", "out"]
    assert sorted(sidecar.workspace) == ["d", "m"]
    assert list(sidecar.kernel[1].arguments.values())[:4] == ["input", "output", "m", "d"]


def test_words_in_comments_refuse_nothing() -> None:
    assert guessed("// no this_cluster, no\n/* this_grid */\n" + KERNEL).sidecar.kernel


def test_what_the_host_asks_before_it_launches_is_the_sizes() -> None:
    host = "void f(float* x, float* y, int M, int N) { if (N > 1024 || M == 0) return; if (N % 4 == 0 && fast) softmax<<<M, 32>>>(x, y, N); }"
    assert guessed(KERNEL + host).sidecar.sizes == "cols % 4 == 0 and cols <= 1024 and rows != 0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int main() {}", "defines no kernel"),
        ("__global__ void softmax(const float* x);", "defines no kernel"),
        ("__global__ void add(const float* a, float* b, int n) { b[n] = a[n]; }", r"add \(line 1\) computes no exponential, so it is no softmax"),
        (KERNEL + KERNEL.replace("softmax", "softmax2"), r"several kernels \(softmax, softmax2\): choose one with --kernel"),
        ("#include <cuda.h>\n" + KERNEL.replace("void", "void __cluster_dims__(4)"), "line 2 has __cluster_dims__, and adopted files have neither clusters"),
        (KERNEL.replace("float", "double"), r"const double\* x is no matrix of float32"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        guessed(text)


def test_an_unknown_kernel_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no kernel 'sofmax'; did you mean 'softmax'"):
        guessed(KERNEL, kernels=("sofmax",))


@pytest.mark.parametrize(
    ("parameter", "said"),
    [("const int* mask", "what is const int* mask"), ("Params p", "what is Params p"), ("float scale", "what is float scale")],
)  # fmt: skip
def test_who_cannot_be_known_is_asked_for(parameter: str, said: str) -> None:
    made = guessed(
        KERNEL.replace("int n)", f"int n, {parameter})").replace("expf(", "mask[0] * expf(")
    )
    assert [said in question for question in made.questions.values()] == [True]
    name = parameter.split()[-1]
    answered = guessed(KERNEL.replace("int n)", f"int n, {parameter})"), arguments={name: "1.5"})
    assert not answered.questions or "*" in parameter


def test_several_launches_pass_buffers_on() -> None:
    source = adopted("vector_grid")
    sidecar = source.contract.sidecar  # type: ignore[union-attr]
    assert {name: (space.bytes, space.initial) for name, space in sidecar.workspace.items()} == {
        "maxima": ("ceil_div(cols, 256) * 4", None),
        "sum": (4, "zeros"),
    }
    assert sidecar.kernel[1].arguments["blocks"] == "ceil_div(cols, 256)"


def test_host_code_is_blank_and_lines_stay() -> None:
    for path in KERNELS.glob("*.cu"):
        source, text = adopted(path.stem), path.read_text()
        own = source.text.splitlines()
        assert len(own) >= len(text.splitlines())
        for word in ("main(", "<<<", "cudaMalloc(", "cudaEvent_t", "torch::", "std::vector"):
            assert word not in re.sub(r"(?s)#define.*?[^\\]\n", "", source.text)
        for number, line in enumerate(text.splitlines()):
            if "__syncthreads" in line or "__shfl" in line:
                assert own[number] == line
