"""A small right softmax, with text that makes it wrong where a test wants that."""

from kgen.launch import Launch, LaunchPlan
from kgen.toolchain.source import PlainSource

BODY = """
    const float* row = x + static_cast<long long>(blockIdx.x) * cols;
    float m = -INFINITY, d = 0.0f;
    for (int c = 0; c < cols; ++c) m = fmaxf(m, row[c]);
    for (int c = 0; c < cols; ++c) d += expf(row[c] - m);
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        y[static_cast<long long>(blockIdx.x) * cols + c] = expf(row[c] - m) / d;
"""
ARGS = "const float* __restrict__ x, float* __restrict__ y"
ILLEGAL = "*reinterpret_cast<float*>(16) = 1.0f;"


def softmax_source(stem="softmax_tiny", *, outside="", before="", after=""):
    signature = f'extern "C" __global__ void {stem}({ARGS}, int rows, int cols)'
    text = f"#include <cmath>\n{outside}\n{signature} {{\n{before}{BODY}{after}}}\n"
    return PlainSource(stem, text, (stem,))


def softmax_plan(rows, cols, stem="softmax_tiny", *, shared_bytes=0):
    launch = Launch(stem, rows, 128, shared_bytes, ("x", "y", "rows", "cols"))
    return LaunchPlan(rows, cols, (launch,))
