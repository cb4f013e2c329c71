"""The CUDA toolchain: finds nvcc and nvdisasm, compiles sources to cubins, reads what came out."""

from kgen.toolchain.batch import compile_many
from kgen.toolchain.binary import Binary, KernelResources
from kgen.toolchain.find import Tool, find_disassembler, find_nvcc
from kgen.toolchain.machine_code import machine_code_digest
from kgen.toolchain.nvcc import compile_cubin, supported_archs
from kgen.toolchain.options import CompileOptions
from kgen.toolchain.sass import sass, sass_by_kernel

__all__ = [
    "Binary",
    "CompileOptions",
    "KernelResources",
    "Tool",
    "compile_cubin",
    "compile_many",
    "find_disassembler",
    "find_nvcc",
    "machine_code_digest",
    "sass",
    "sass_by_kernel",
    "supported_archs",
]
