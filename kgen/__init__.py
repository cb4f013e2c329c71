"""kgen generates, proves and measures CUDA softmax kernels from one family of templates.

kgen.versions()                      the names of the versions
kgen.spec("v7:items=4")              a validated spec
kgen.render("v7:items=4")            its source: `.text`, `.filename`, `.kernels`
kgen.compile("v7:items=4", "sm_90")  its binary: `.image`, registers and spills a kernel
kgen.run("v7", x, on="cpu")          the softmax of `x`, computed by that kernel
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgen.version import __version__ as __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kgen.sources.source import Source
    from kgen.specs.spec import Spec
    from kgen.toolchain import Binary, CompileOptions

__all__ = ["compile", "render", "run", "spec", "versions"]

# The functions import what they need when they are called: a command that lists names must not
# wait for NumPy and Jinja.


def versions() -> list[str]:
    """Return the names of the versions, in the order of the studies."""
    from kgen.specs.versions import VERSIONS

    return list(VERSIONS)


def spec(variant: str) -> Spec:
    """Return the spec of a variant such as `v7:items=4,threads=512`.

    Raises UsageError for an unknown version, axis or value, and for a combination that the rules
    refuse, with the reason.
    """
    from kgen.specs.variants import checked

    return checked(variant)


def render(spec: Spec | str) -> Source:
    """Return the source of a spec or variant; `auto` items cover rows of 4096.

    Raises UsageError when the rules refuse the spec.
    """
    from kgen.sources.render import render as render_spec
    from kgen.specs.variants import checked

    return render_spec(checked(spec) if isinstance(spec, str) else spec)


def compile(
    source: Source | Spec | str, arch: str = "sm_90", options: CompileOptions | None = None
) -> Binary:
    """Compile a source, spec or variant for an architecture with nvcc; no GPU is needed.

    The binary has the cubin (`.image`) and a row of resources for each kernel (`.kernels`).
    Raises CompileFailed with nvcc's message, MissingTool when there is no nvcc, UsageError for an
    architecture that it does not know.
    """
    from kgen.sources.source import Source
    from kgen.toolchain import CompileOptions, compile_cubin

    made = source if isinstance(source, Source) else render(source)
    return compile_cubin(made, arch, options or CompileOptions())


def run(variant: Spec | Source | str, x: NDArray[Any], on: str = "cpu") -> NDArray[Any]:
    """Return the row-wise softmax of `x`, computed by the kernel of a variant, spec or source.

    `x` is of the variant's dtype, 1-D or 2-D, with any strides; `auto` items are resolved from its
    row length; a string may also name a generated file. `on` is `cpu` (needs a C++ compiler) or
    `gpu` (needs PyCUDA). Raises UsageError, KernelFault, CompileFailed or MissingTool (see
    `kgen.errors`).
    """
    from kgen.execute import find_target
    from kgen.execute import run as run_target
    from kgen.sources.source import Source
    from kgen.specs.spec import Spec

    target = variant if isinstance(variant, Spec | Source) else find_target(variant)
    return run_target(target, x, on)
