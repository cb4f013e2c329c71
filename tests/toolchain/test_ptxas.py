"""Reading the report of `ptxas -v`: recorded output of nvcc 13.0.88 and of older compilers."""

from __future__ import annotations

from kgen.toolchain import KernelResources
from kgen.toolchain.ptxas import parse_resources, warnings_of

# sm_75, -maxrregcount=64: static shared memory, a call of a device function, an array in local
# memory, and a kernel that spills.
RECORDED = """\
a.cu(21): warning #177-D: variable "unused" was declared but never referenced
  extern "C" __attribute__((global)) void calls(float* y, int n) { int unused; }
                                                                       ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

ptxas info    : Overriding maximum register limit 256 for 'shared_k' with  64 of maxrregcount option
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'shared_k' for 'sm_75'
ptxas info    : Function properties for shared_k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 272 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 1.599 ms
ptxas info    : Compiling entry function 'calls' for 'sm_75'
ptxas info    : Function properties for calls
    32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers, 32 bytes cumulative stack size, 364 bytes cmem[0]
ptxas info    : Compile time = 1.964 ms
ptxas info    : Function properties for _Z6helperPfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'stacky' for 'sm_75'
ptxas info    : Function properties for stacky
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 26 registers, used 0 barriers, 16 bytes cumulative stack size, 372 bytes cmem[0]
ptxas info    : Compile time = 7.962 ms
ptxas info    : Compiling entry function 'spills' for 'sm_75'
ptxas info    : Function properties for spills
    1304 bytes stack frame, 1564 bytes spill stores, 1800 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 1304 bytes cumulative stack size, 372 bytes cmem[0]
ptxas info    : Compile time = 112.896 ms
"""


def test_recorded_report() -> None:
    assert parse_resources(RECORDED) == (
        KernelResources("shared_k", 10, 0, 0, 0, 272),
        KernelResources("calls", 16, 32, 0, 0, 0),
        KernelResources("stacky", 26, 16, 0, 0, 0),
        KernelResources("spills", 64, 1304, 1564, 1800, 0),
    )


def test_device_function_reported_inside_a_kernel_is_not_the_kernel() -> None:
    report = """\
ptxas info    : Compiling entry function 'k' for 'sm_70'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Function properties for _Z6helperPfi
    96 bytes stack frame, 12 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 30 registers, 68+0 bytes smem, 380 bytes cmem[0], 4 bytes cmem[2]
"""
    assert parse_resources(report) == (KernelResources("k", 30, 8, 4, 4, 68),)


def test_warnings_are_what_remains() -> None:
    kept = warnings_of(RECORDED + "ptxas warning : Too big maxrregcount value specified 300\n")
    assert kept.startswith("a.cu(21): warning #177-D")
    assert kept.endswith("ptxas warning : Too big maxrregcount value specified 300")
    assert "ptxas info" not in kept and "stack frame" not in kept


def test_clean_compilation_has_no_warnings() -> None:
    report = RECORDED[RECORDED.index("ptxas info") :]
    assert warnings_of(report) == ""
