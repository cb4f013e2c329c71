"""What takes part in a benchmark: variants, edited files, other people's softmax, copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgen.errors import UsageError
from kgen.evidence.reference import SOFTMAX
from kgen.execute import Target, require_shape, source_for, target_name
from kgen.launch import Launch, LaunchPlan, additions_of, plan
from kgen.limits import WARP_SIZE, arch_number
from kgen.sources.source import Source
from kgen.specs.choice import Op
from kgen.specs.formula import ceil_div
from kgen.store.measurement import Kind
from kgen.timing.peers import Peer
from kgen.toolchain import CompileOptions, compile_many
from kgen.toolchain.batch import Result
from kgen.toolchain.source import PlainSource

COPY_FILE = Path(__file__).parents[1] / "gpu" / "copy.cu"
COPY_THREADS = 256
# Kernels of the file, with the elements that a thread of theirs copies.
COPY_KERNELS = {"copy_one": 4, "copy_four": 16}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Something to time on a rows x cols matrix, or the `reason` why it cannot be.

    It is a source with its plan or a peer; a copy without a source is the driver's own. `binary` is
    what compiling the source gave, once that was done. `serial_additions` is how many values one of
    its threads adds up one after the other.
    """

    kind: Kind
    name: str
    rows: int
    cols: int
    source: Source | PlainSource | None = None
    plan: LaunchPlan | None = None
    binary: Result | None = None
    peer: Peer | None = None
    serial_additions: int = 0
    reason: str = ""

    @property
    def op(self) -> Op:
        """What it computes; a peer is a softmax."""
        return self.source.spec.op if isinstance(self.source, Source) else SOFTMAX

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
    candidate = Candidate(kind=kind, name=target_name(target), rows=rows, cols=cols)
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
    additions = additions_of(source, candidate.cols)
    return replace(candidate, source=source, plan=launches, serial_additions=additions)


def of_peers(peers: Iterable[Peer], rows: int, cols: int) -> list[Candidate]:
    """Return a candidate for each peer.

    Nobody knows how a peer adds up; a thread of its could have the row's 32nd part.
    """
    additions = ceil_div(cols, WARP_SIZE) + WARP_SIZE
    any_peer = Candidate(kind=Kind.PEER, name="", rows=rows, cols=cols, serial_additions=additions)
    return [replace(any_peer, name=peer.name, peer=peer) for peer in peers]


def copies(rows: int, cols: int) -> list[Candidate]:
    """Return the copies that a benchmark compares with: two kernels and the driver's."""
    source = PlainSource("copy", COPY_FILE.read_text(encoding="utf-8"), tuple(COPY_KERNELS))
    driver = Candidate(kind=Kind.COPY, name="copy_driver", rows=rows, cols=cols)
    found = [driver]
    for kernel, elements in COPY_KERNELS.items():
        blocks = max(1, ceil_div(rows * cols, COPY_THREADS * elements))
        launch = Launch(kernel, blocks, COPY_THREADS, 0, ("x", "y", "rows", "cols"))
        launches = LaunchPlan(rows, cols, (launch,))
        found.append(replace(driver, name=kernel, source=source, plan=launches))
    return found


def line_up(
    targets: Iterable[Target], peers: Iterable[Peer], rows: int, cols: int
) -> list[Candidate]:
    """Return who takes part on a shape, each once: targets, peers, and copies of what is there.

    Raises UsageError as `of_targets` does.
    """
    found = of_targets(targets, rows, cols) + of_peers(peers, rows, cols)
    found += copies(rows, cols) if rows > 0 and cols > 0 else []
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
