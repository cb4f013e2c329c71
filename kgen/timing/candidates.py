"""What takes part in a benchmark: variants, edited files, other people's softmax, copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgen.errors import UsageError
from kgen.evidence.reference import Criterion, criterion_for, criterion_of
from kgen.execute import Target, require_shape, source_for, target_name, target_spec
from kgen.launch import Launch, LaunchPlan, plan
from kgen.limits import WARP_SIZE, arch_number
from kgen.sources.source import Source
from kgen.specs.choice import MAX_ACCESS_BYTES, Element
from kgen.specs.formula import ceil_div
from kgen.specs.types import BOTH_FLOAT32, Types, common_types, types_of
from kgen.store.measurement import Kind
from kgen.timing.peers import Peer
from kgen.toolchain import CompileOptions, compile_many
from kgen.toolchain.batch import Result
from kgen.toolchain.source import PlainSource

COPY_FILE = Path(__file__).parents[1] / "gpu" / "copy.cu"
COPY_THREADS = 256
# Kernels of the file, with the vectors that a thread of theirs copies.
COPY_KERNELS = {"copy_one": 1, "copy_four": 4}

# What is asked of what is not judged by it.
_ANY = Criterion(0)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Something to time on a rows x cols matrix, or the `reason` why it cannot be.

    It is a source with its plan or a peer; a copy without a source is the driver's own. `types` are
    those of the matrices that it reads and writes. `binary` is what compiling the source gave, once
    that was done. `criterion` is what is asked of its output.
    """

    kind: Kind
    name: str
    rows: int
    cols: int
    types: Types = BOTH_FLOAT32
    source: Source | PlainSource | None = None
    plan: LaunchPlan | None = None
    binary: Result | None = None
    peer: Peer | None = None
    criterion: Criterion = _ANY
    reason: str = ""

    @property
    def is_adopted(self) -> bool:
        """Whether it is somebody's kernel, which has to be right on ordinary numbers alone."""
        return isinstance(self.source, Source) and self.source.contract is not None

    @property
    def is_kernel(self) -> bool:
        """Whether it is a source for the GPU, which has to be compiled."""
        return self.source is not None and not self.source.is_host

    @property
    def is_host(self) -> bool:
        """Whether it runs on the CPU."""
        return self.source is not None and self.source.is_host


def of_targets(targets: Iterable[Target], rows: int, cols: int) -> list[Candidate]:
    """Return a candidate for each target, with a reason where the shape does not suit it.

    Raises UsageError for templates that cannot be filled.
    """
    return [_of_target(target, rows, cols) for target in targets]


def _of_target(target: Target, rows: int, cols: int) -> Candidate:
    kind = Kind.FILE if isinstance(target, Source) else Kind.VARIANT
    spec = target_spec(target)
    candidate = Candidate(
        kind=kind, name=target_name(target), rows=rows, cols=cols, types=types_of(spec)
    )
    try:
        require_shape(target, rows, cols)
    except UsageError as refusal:
        return replace(candidate, reason=str(refusal))
    if rows == 0 or cols == 0:
        return replace(candidate, reason=f"a matrix of {rows} x {cols} has nothing to time")
    return with_source(candidate, source_for(target, rows, cols))


def with_source(candidate: Candidate, source: Source) -> Candidate:
    """Return a candidate as what is compiled, verified and measured."""
    launches = plan(source, candidate.rows, candidate.cols)
    asked = criterion_for(source, candidate.cols)
    return replace(candidate, source=source, plan=launches, criterion=asked)


def of_peers(
    peers: Iterable[Peer], rows: int, cols: int, types: Types = BOTH_FLOAT32
) -> list[Candidate]:
    """Return a candidate for each peer.

    Nobody knows how a peer computes: a thread of its could have the row's 32nd part, and what waits
    for the sum could be of the output's type, and be rounded twice.
    """
    additions = ceil_div(cols, WARP_SIZE) + WARP_SIZE
    asked = criterion_of(types.out_dtype, additions)
    asked = replace(asked, roundings=2 * asked.roundings)
    any_peer = Candidate(
        kind=Kind.PEER, name="", rows=rows, cols=cols, types=types, criterion=asked
    )
    return [replace(any_peer, name=peer.name, peer=peer) for peer in peers]


def copies(rows: int, cols: int, types: Types = BOTH_FLOAT32) -> list[Candidate]:
    """Return the copies that a benchmark compares with: two kernels, and the driver's.

    A copy reads what a kernel has to read, and writes what it has to write. Where the output has
    another type, that is the input with every element converted, which the driver cannot do.
    """
    source, size = copy_source(types), copied_at_once(types)
    any_copy = Candidate(kind=Kind.COPY, name="copy_driver", rows=rows, cols=cols, types=types)
    found = [any_copy] if types.dtype == types.out_dtype else []
    for kernel, vectors in COPY_KERNELS.items():
        blocks = max(1, ceil_div(rows * cols, COPY_THREADS * vectors * size))
        launch = Launch(kernel, blocks, COPY_THREADS, 0, ("x", "y", "rows", "cols"))
        launches = LaunchPlan(rows, cols, (launch,), dtype=types.dtype, out_dtype=types.out_dtype)
        found.append(replace(any_copy, name=kernel, source=source, plan=launches))
    return found


def copied_at_once(types: Types) -> int:
    """Return the elements of a vector of a copy: an access of the wider type has 16 bytes."""
    return MAX_ACCESS_BYTES // max(element.bytes for element in types)


def copy_source(types: Types) -> PlainSource:
    """Return the kernels that copy a matrix of one type to one of another, or of the same."""
    of_x, of_y = types
    same = of_x == of_y
    defined = {
        "IN": of_x.c_type,
        "OUT": of_y.c_type,
        "VEC_SIZE": copied_at_once(types),
        "CONVERTED(x)": "x" if same else _converted(*types),
    }
    includes = dict.fromkeys(of.includes for of in types if of.includes)
    lines = [f"#include <{header}>\n" for header in includes]
    lines += [f"#define {name} {value}\n" for name, value in defined.items()]
    text = "".join(lines) + COPY_FILE.read_text(encoding="utf-8")
    return PlainSource("copy", text, tuple(COPY_KERNELS))


def _converted(of_x: Element, of_y: Element) -> str:
    """Return the conversion of `x` as C++; what is computed with needs no call."""
    calls = [name for name in (of_y.from_compute, of_x.to_compute) if name]
    return "(".join([*calls, "x"]) + ")" * len(calls)


def line_up(
    targets: Iterable[Target], peers: Iterable[Peer], rows: int, cols: int
) -> list[Candidate]:
    """Return who takes part on a shape, each once: targets, peers, and copies of what is there.

    Peers and copies have the targets' types. Raises UsageError as `of_targets` and `common_types`
    do.
    """
    found = of_targets(targets, rows, cols)
    types = common_types({one.types: one.name for one in found})
    found += of_peers(peers, rows, cols, types)
    found += copies(rows, cols, types) if rows > 0 and cols > 0 else []
    return list({one.name: one for one in found}.values())


def compiled(
    candidates: Sequence[Candidate], arch: str, options: CompileOptions
) -> list[Candidate]:
    """Return the candidates, kernels with their binaries, compiled together on all cores.

    One that needs a newer architecture is refused. Raises MissingTool when there is a kernel and no
    nvcc.
    """
    found = [_for_arch(one, arch) for one in candidates]
    sources = {
        one.source.text: one.source
        for one in found
        if one.source and one.is_kernel and not one.reason
    }
    if not sources:
        return found
    results = compile_many(list(sources.values()), arch, options)
    return with_binaries(found, dict(zip(sources, results, strict=True)))


def with_binaries(
    candidates: Iterable[Candidate], binaries: Mapping[str, Result]
) -> list[Candidate]:
    """Return the candidates, kernels with their binaries, which are by their sources' text."""
    return [
        replace(one, binary=binaries.get(one.source.text)) if one.source and one.is_kernel else one
        for one in candidates
    ]


def _for_arch(candidate: Candidate, arch: str) -> Candidate:
    least = candidate.source.requires if candidate.source else ""
    if candidate.reason or arch_number(least) <= arch_number(arch):
        return candidate
    return replace(candidate, reason=f"it needs {least} or newer, and this GPU is {arch}")
