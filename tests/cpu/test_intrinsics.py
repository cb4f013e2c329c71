"""The CUDA intrinsics against what the CUDA guide says they compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

pytestmark = pytest.mark.slow

RunKernel = Callable[..., NDArray[np.float32]]

KERNEL = 'extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {{ {} }}'


def run_body(run_kernel: RunKernel, body: str, block: int = 32) -> list[float]:
    """Return y after `block` threads ran `body`; x holds 0, 1, 2, ..."""
    return run_kernel(KERNEL.format(body), block=block)[0].tolist()


@pytest.mark.parametrize("width", [32, 8, 1])
def test_shuffles(run_kernel: RunKernel, width: int) -> None:
    lanes = range(32)

    def segment(lane: int) -> range:
        return range(lane - lane % width, lane - lane % width + width)

    def shuffled(call: str) -> list[float]:
        return run_body(run_kernel, f"y[threadIdx.x] = __shfl_{call};")

    down = [i + 3 if i + 3 in segment(i) else i for i in lanes]
    up = [i - 3 if i - 3 in segment(i) else i for i in lanes]
    index = [segment(i)[5 % width] for i in lanes]
    xor = [i ^ 9 if i ^ 9 <= segment(i)[-1] else i for i in lanes]
    value = "x[threadIdx.x]"
    assert shuffled(f"down_sync(0xffffffffu, {value}, 3, {width})") == down
    assert shuffled(f"up_sync(0xffffffffu, {value}, 3, {width})") == up
    assert shuffled(f"sync(0xffffffffu, {value}, 5, {width})") == index
    assert shuffled(f"xor_sync(0xffffffffu, {value}, 9, {width})") == xor


@pytest.mark.parametrize("type_name", ["int", "unsigned", "float", "double", "long long"])
def test_shuffled_types(run_kernel: RunKernel, type_name: str) -> None:
    body = f"y[threadIdx.x] = __shfl_xor_sync(~0u, static_cast<{type_name}>(x[threadIdx.x]), 1);"
    assert run_body(run_kernel, body) == [i ^ 1 for i in range(32)]


def test_masks_let_parts_of_a_warp_work_apart(run_kernel: RunKernel) -> None:
    body = """
    const bool is_low = threadIdx.x < 16;
    float value = x[threadIdx.x];
    for (int i = 0; i < (is_low ? 2 : 5); ++i) {
        value += __shfl_xor_sync(is_low ? 0x0000ffffu : 0xffff0000u, value, 1);
    }
    y[threadIdx.x] = value;
    """
    pairs = [i + (i ^ 1) for i in range(32)]
    assert run_body(run_kernel, body) == [p * (2 if i < 16 else 16) for i, p in enumerate(pairs)]


def test_a_mask_of_the_lanes_that_exist(run_kernel: RunKernel) -> None:
    body = """
    const unsigned mask = threadIdx.x < 32 ? 0xffffffffu : 0x0000ffffu;
    y[threadIdx.x] = __shfl_sync(mask, x[threadIdx.x], 3);
    """
    assert run_body(run_kernel, body, block=48) == [3] * 32 + [35] * 16


def test_votes(run_kernel: RunKernel) -> None:
    body = """
    const int lane = threadIdx.x;
    const unsigned ballot = __ballot_sync(0xffffffffu, lane % 2 * 4);
    y[lane] = (ballot == 0xaaaaaaaau) + 2 * __any_sync(0xffffffffu, lane == 7)
        + 4 * __all_sync(0xffffffffu, lane < 31) + 8 * __all_sync(0xffffffffu, lane < 32);
    """
    assert run_body(run_kernel, body) == [1 + 2 + 8] * 32


def test_activemask_leaves_out_lanes_that_returned(run_kernel: RunKernel) -> None:
    body = """
    if (threadIdx.x < 8) return;
    y[threadIdx.x] = __activemask() == 0xffffff00u;
    __syncwarp(0xffffff00u);
    """
    assert run_body(run_kernel, body)[8:] == [1] * 24


def test_atomics(run_kernel: RunKernel) -> None:
    body = """
    __shared__ int sum, least, most, last, chosen;
    __shared__ unsigned count;
    __shared__ unsigned long long wide;
    __shared__ float total;
    if (threadIdx.x == 0) {
        sum = 0; least = 99; most = -99; chosen = -1; count = 0; wide = 1ull << 40; total = 0;
    }
    __syncthreads();
    const int i = threadIdx.x;
    atomicAdd(&sum, i);
    atomicAdd(&count, 1);
    atomicAdd(&wide, 1ull);
    atomicAdd(&total, 0.5f);
    atomicMin(&least, i - 7);
    atomicMax(&most, i - 7);
    atomicExch(&last, i);
    const int found = atomicCAS(&chosen, -1, i);
    __syncthreads();
    if (found == -1) {
        y[0] = sum; y[1] = count; y[2] = wide - (1ull << 40); y[3] = total;
        y[4] = least; y[5] = most; y[6] = last; y[7] = chosen == i;
    }
    """
    assert run_body(run_kernel, body)[:8] == [496, 32, 32, 16, -7, 24, 31, 1]


def test_vector_types_and_cache_hints(run_kernel: RunKernel) -> None:
    body = """
    const float4 v = __ldg(reinterpret_cast<const float4*>(x) + threadIdx.x);
    const float2 low = {v.x, v.y};
    const float2 high = make_float2(v.z, v.w);
    __stcs(reinterpret_cast<float4*>(y) + threadIdx.x, make_float4(high.y, high.x, low.y, low.x));
    if (threadIdx.x == 1) y[4] = __ldcs(x + 5) + make_int4(1, 2, 3, 4).w + sizeof(uint3);
    """
    y = run_kernel(KERNEL.format(body), np.arange(8, dtype=np.float32).reshape(1, 8), block=2)
    assert y.tolist() == [[3, 2, 1, 0, 5 + 4 + 12, 6, 5, 4]]


def test_math(run_kernel: RunKernel) -> None:
    body = """
    y[0] = __float_as_uint(1.0f) == 0x3f800000u && __uint_as_float(0x40000000u) == 2.0f;
    y[1] = __float_as_int(-0.0f) < 0 && __int_as_float(0x7f800000) == INFINITY;
    y[2] = min(3, 5) + max(2u, 7u) + min(1.5f, 2) + max(-1.0f, 0.5f);
    y[3] = __fdividef(6.0f, 3.0f);
    y[4] = __fdividef(1e38f, 1e38f);
    y[5] = isnan(__fdividef(INFINITY, 2e38f));
    y[6] = __expf(1.0f);
    y[7] = exp2f(3.0f);
    """
    y = run_body(run_kernel, body, block=8)
    assert y[:6] == [1, 1, 3 + 7 + 1.5 + 0.5, 2, 0, 1]
    assert y[6] == pytest.approx(np.e, rel=1e-6)
    assert y[7] == 8
