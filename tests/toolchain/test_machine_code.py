"""Which kernels count as having the same machine code."""

from __future__ import annotations

import dataclasses
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import kgen
from kgen.sources.source import Source
from kgen.toolchain import compile_cubin, machine_code_digest
from kgen.toolchain.machine_code import arch_of, is_whole, sections, stands_alone

pytestmark = pytest.mark.slow

MakeSource = Callable[..., Source]

# One kernel's code, and what keeps it from meaning the same in every module.
REFERENCES = {
    "constant": ("__constant__ float c[2];", "*y = c[i];"),
    "variable": ("__device__ float v[2];", "*y = v[i];"),
    "string": ("#include <cstdio>\n", 'printf("a");'),
}


def digests(source: Source, arch: str = "sm_90") -> list[str]:
    binary = compile_cubin(source, arch)
    return [machine_code_digest(binary, kernel) for kernel in source.kernels]


def renamed(source: Source, stem: str) -> Source:
    """The same code under another name."""
    text = source.text.replace(source.stem, stem)
    kernels = tuple(kernel.replace(source.stem, stem) for kernel in source.kernels)
    return dataclasses.replace(source, stem=stem, text=text, kernels=kernels)


@pytest.mark.parametrize(("variant", "arch"), [("v7", "sm_90"), ("t1", "sm_75"), ("v9", "sm_120")])
def test_name_does_not_count(nvcc: None, variant: str, arch: str) -> None:
    source = kgen.render(variant)
    found = digests(source, arch)
    assert digests(renamed(source, "other"), arch) == found
    assert len(set(found)) == len(source.kernels)


@pytest.mark.parametrize(
    ("one", "other"),
    [("v9:vec=1", "v9:vec=4"), ("v1", "v1:normalize=divide"), ("v1", "v1:threads=128")],
)
def test_different_code(nvcc: None, one: str, other: str) -> None:
    assert digests(kgen.render(one)) != digests(kgen.render(other))


def test_functions_of_the_kernel_are_part_of_it(nvcc: None, make_source: MakeSource) -> None:
    text = """
    __device__ __noinline__ int f(int i) { return i < 2 ? i : f(i - 1) FACTOR f(i - 2); }
    extern "C" __global__ void kernel(float* y, int i) { *y = f(i); }
    """
    product, total = (make_source(text.replace("FACTOR", sign), "kernel") for sign in "*+")
    assert digests(product) == digests(renamed(product, "other")) != digests(total)


def test_shared_memory_counts_where_the_code_does_not_show_it(
    nvcc: None, make_source: MakeSource
) -> None:
    text = 'extern "C" __global__ void k(int i) { volatile __shared__ float s[SIZE]; s[i] = 1; }'
    small, large = (make_source(text.replace("SIZE", size), "k") for size in ("64", "128"))
    code = [sections(compile_cubin(source, "sm_90").image)[".text.k"] for source in (small, large)]
    assert code[0] == code[1]
    assert digests(small) != digests(large)


@pytest.mark.parametrize("what", REFERENCES)
def test_code_that_refers_to_the_module_is_like_itself_alone(
    nvcc: None, make_source: MakeSource, what: str
) -> None:
    declaration, statement = REFERENCES[what]
    text = f'{declaration}\nextern "C" __global__ void kernel(float* y, int i) {{ {statement} }}'
    source = make_source(text, "kernel")
    assert not stands_alone(compile_cubin(source, "sm_90").image)
    assert digests(source) == digests(source) != digests(renamed(source, "other"))


def test_unknown_kernel(nvcc: None) -> None:
    with pytest.raises(KeyError, match="absent"):
        machine_code_digest(kgen.compile("v1"), "absent")


def test_what_a_full_disk_left_of_a_cubin_is_not_whole(nvcc: None) -> None:
    image = kgen.compile("v5", "sm_90").image
    assert is_whole(image)
    for kept in range(4, len(image), 5):
        assert not is_whole(image[:kept])


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_121"])
def test_a_cubin_says_its_architecture(nvcc: None, arch: str) -> None:
    assert arch_of(kgen.compile("v5", arch).image) == arch


def test_a_cubin_of_cuda_12_says_its_architecture_elsewhere() -> None:
    header = b"\x7fELF\2\1\1\x33\x07".ljust(16, b"\0") + struct.pack(
        "<HHI24xI12x", 2, 190, 1, 0x5A055A
    )
    assert arch_of(header) == "sm_90"


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"//ptx", Path(sys.executable).read_bytes()])
def test_what_is_no_cubin_has_no_architecture(image: bytes) -> None:
    assert arch_of(image) is None
