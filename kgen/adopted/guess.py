"""From a file to its sidecar: what names, types, bodies and the file's own launches say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgen.adopted.between import name_workspaces
from kgen.adopted.body import written
from kgen.adopted.device_text import Use, device_text
from kgen.adopted.piece import Answers, Piece
from kgen.adopted.restrictions import constants_of, op_of, sizes_of
from kgen.adopted.sidecar import Sidecar
from kgen.adopted.syntax import CudaFile, Kernel, Launch, text_of
from kgen.errors import UsageError
from kgen.text import did_you_mean

_EXPONENTIAL = re.compile(r"\b_*exp(2|10|m1)?f?\b|\bh?exp2?\b|\bex2\b")


_OTHER_TYPES = re.compile(r"(__)?(nv_)?(half|bfloat16|fp8\w*)2?|double\d?")


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_GROUPS = re.compile(r"__cluster_dims__|\bthis_cluster\b|\bthis_grid\b|\bthis_multi_grid\b")


@dataclass
class Guess:
    """A sidecar with why each entry is so, and what nobody can know but the file's owner."""

    sidecar: Sidecar
    remarks: dict[str, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)


class SeveralKernels(UsageError):
    """A file has kernels of several softmaxes: `choices`, each the names of one in their order."""

    def __init__(self, name: str, choices: list[tuple[str, ...]]) -> None:
        self.choices = choices
        super().__init__(
            f"{name} has several kernels ({', '.join(map('+'.join, choices))}): choose one with "
            "--kernel NAME, or those of one softmax in their order with --kernel more than once"
        )


def guess(file: CudaFile, name: str, answers: Answers) -> Guess:
    """Return the sidecar of a file. Raises UsageError where it holds no kernel, or too many."""
    calls = _chosen(file, name, answers)
    _require_softmax(file, [kernel for kernel, _ in calls], name)
    _require_floats([kernel for kernel, _ in calls], name)
    _require_single_blocks(file, name)
    pieces = [Piece(file, kernel, launch, answers) for kernel, launch in calls]
    remarks: dict[str, str] = {}
    spaces = name_workspaces(file, pieces, remarks)
    (sizes, remarks["sizes"]), (op, remarks["op"]) = sizes_of(file, pieces), op_of(pieces)
    constants = constants_of(file, pieces)
    made = Sidecar([piece.call() for piece in pieces], op, "float32", sizes, constants, spaces)
    questions: dict[str, str] = {}
    for i, piece in enumerate(pieces):
        place = f"kernel[{i}]."
        remarks |= {place + key: said for key, said in piece.remarks.items()}
        questions |= {place + key: said for key, said in piece.questions.items()}
    return Guess(made, remarks, questions)


def _require_floats(kernels: list[Kernel], name: str) -> None:
    """Raise UsageError for matrices of another type, which adopted files cannot have yet."""
    for parameter in (one for kernel in kernels for one in kernel.parameters):
        if parameter.is_pointer and _OTHER_TYPES.fullmatch(parameter.element):
            raise UsageError(
                f"{name}: {parameter.type} {parameter.name} is no matrix of float32, and adopted "
                "files are of float32"
            )


def _require_single_blocks(file: CudaFile, name: str) -> None:
    """Raise UsageError for blocks that wait for each other, whose launch a sidecar cannot say."""
    code = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), file.text)
    if found := _GROUPS.search(code):
        line = code.count("\n", 0, found.start()) + 1
        raise UsageError(
            f"{name}: line {line} has {found[0]}, and adopted files have neither clusters nor "
            "grids whose blocks wait for each other"
        )


def _require_softmax(file: CudaFile, kernels: list[Kernel], name: str) -> None:
    """Raise UsageError where no kernel, nor what it calls, computes an exponential."""
    uses = [Use(kernel, {one.name: "" for one in kernel.template}, "") for kernel in kernels]
    if not _EXPONENTIAL.search(device_text(file, uses, {})):
        listed = ", ".join(f"{kernel.name} (line {kernel.line})" for kernel in kernels)
        raise UsageError(
            f"{name}: {listed} computes no exponential, so it is no softmax; name another kernel "
            "with --kernel"
        )


def _chosen(file: CudaFile, name: str, answers: Answers) -> list[tuple[Kernel, Launch | None]]:
    """Return the kernels of one softmax in the order of their launches."""
    if not file.kernels:
        raise UsageError(f"{name} defines no kernel: a kernel is a __global__ function with a body")
    by_name = {kernel.name: kernel for kernel in file.kernels}
    if answers.kernels:
        for wanted in answers.kernels:
            if wanted.rpartition("::")[2] not in by_name:
                raise UsageError(f"{name} has no kernel {wanted!r}{did_you_mean(wanted, by_name)}")
        return [_with_launch(file, by_name[one.rpartition("::")[2]]) for one in answers.kernels]
    groups = _groups(file, by_name) or _unlaunched(file)
    if len(groups) > 1:
        raise SeveralKernels(name, [tuple(kernel.name for kernel, _ in group) for group in groups])
    return groups[0]


def _unlaunched(file: CudaFile) -> list[list[tuple[Kernel, Launch | None]]]:
    """Return the kernels of a file without launches: each by itself, or all as one chain."""
    chain: list[tuple[Kernel, Launch | None]] = [(kernel, None) for kernel in file.kernels]
    alone = [[pair] for pair in chain if _is_whole(file, pair[0])]
    return alone or [chain]


def _with_launch(file: CudaFile, kernel: Kernel) -> tuple[Kernel, Launch | None]:
    found = next((launch for launch in file.launches if launch.kernel == kernel.name), None)
    return kernel, found


def _groups(
    file: CudaFile, by_name: Mapping[str, Kernel]
) -> list[list[tuple[Kernel, Launch | None]]]:
    """Return what the file's host functions launch, each softmax by itself."""
    functions: dict[int, list[Launch]] = {}
    for launch in file.launches:
        if launch.kernel in by_name:
            start = launch.function.start_byte if launch.function else -1
            functions.setdefault(start, []).append(launch)
    groups: dict[tuple[str, ...], list[tuple[Kernel, Launch | None]]] = {}
    for launches in functions.values():
        firsts = list({launch.kernel: launch for launch in launches}.values())
        pairs: list[tuple[Kernel, Launch | None]] = [(by_name[one.kernel], one) for one in firsts]
        alone = [pair for pair in pairs if _is_whole(file, pair[0])]
        chained = [pair for pair in pairs if pair not in alone]
        for group in ([[pair] for pair in alone] if len(pairs) > 1 and alone else [pairs]):
            groups.setdefault(tuple(kernel.name for kernel, _ in group), group)
        if alone and chained:
            groups.setdefault(tuple(kernel.name for kernel, _ in chained), chained)
    return list(groups.values())


def _is_whole(file: CudaFile, kernel: Kernel) -> bool:
    """Whether a kernel may be a softmax by itself: it computes exponentials and writes a matrix."""
    pointers = [parameter for parameter in kernel.parameters if parameter.is_pointer]
    text = text_of(kernel.body)
    called = [text_of(node) for name, node in file.functions.items() if name in text]
    has_exp = any(_EXPONENTIAL.search(one) for one in (text, *called))
    return has_exp and len(pointers) <= 2 and bool(written(file, kernel))
