"""The buffers of several launches: who passes what on to whom."""

from __future__ import annotations

import re
from contextlib import suppress

from tree_sitter import Node

from kgen.adopted.body import identifiers
from kgen.adopted.expressions import Unknown
from kgen.adopted.piece import Piece, as_number
from kgen.adopted.sidecar import IN_PLACE, INPUT, MATRICES, OUTPUT, Workspace
from kgen.adopted.syntax import CudaFile, text_of, walk


def name_workspaces(
    file: CudaFile, pieces: list[Piece], remarks: dict[str, str]
) -> dict[str, Workspace]:
    """Settle the pointers of all launches together: who passes what on to whom."""
    matrices = _alone(pieces)
    if len(pieces) > 1:
        matrices = _chained(pieces, matrices)
    spaces: dict[str, Workspace] = {}
    for piece in pieces:
        for name in piece.roles.pointers:
            host = piece.hosts.get(name, name)
            role = matrices.get(host) or re.sub(r"\W", "_", host).strip("_")
            if host not in matrices:
                piece.remarks[f"arguments.{name}"] = "a buffer between kernels"
                if role not in spaces:
                    spaces[role] = _workspace(file, piece, name, role, remarks)
            piece.roles.pointers[name] = role
    _ask_of_unwritten(pieces, matrices)
    if not {OUTPUT, IN_PLACE} & set(matrices.values()):
        last = pieces[-1].kernel
        names = [one.name for one in last.parameters if one.is_pointer]
        pieces[-1].questions[f"arguments.{names[-1] if names else 'y'}"] = (
            f"{last.name} (line {last.line}) seems to write through none of its arguments; which "
            "is its output?"
        )
    return spaces


def _ask_of_unwritten(pieces: list[Piece], matrices: dict[str, str]) -> None:
    """Ask of a buffer that every kernel reads and none writes: who else could fill it?"""
    written = {name for piece in pieces for name in _pointers(piece, is_written=True)}
    for piece in pieces:
        for parameter in piece.kernel.parameters:
            host = piece.hosts.get(parameter.name, parameter.name)
            if parameter.is_pointer and host not in matrices and host not in written:
                piece.questions[f"arguments.{parameter.name}"] = (
                    f"what is {parameter.type} {parameter.name} (line {piece.kernel.line})? The "
                    "kernels read it, and none writes it. Roles are input, output and in_place."
                )


def _alone(pieces: list[Piece]) -> dict[str, str]:
    """Return the matrices that launches have by themselves, by the host's names."""
    found: dict[str, str] = {}
    for piece in pieces:
        for name, role in piece.roles.pointers.items():
            if role in MATRICES:
                found.setdefault(piece.hosts.get(name, name), role)
    return found


def _chained(pieces: list[Piece], alone: dict[str, str]) -> dict[str, str]:
    """Return the matrices of several launches: the first's input, and what the last one writes."""
    reads = [name for piece in pieces for name in _pointers(piece, is_written=False)]
    writes = [name for piece in pieces for name in _pointers(piece, is_written=True)]
    inputs = [name for name in reads if name not in writes]
    last = _pointers(pieces[-1], is_written=True)
    found = {inputs[0]: INPUT} if inputs else {}
    if last:
        best = [name for name in last if alone.get(name) == OUTPUT] or last
        found[best[-1]] = OUTPUT if inputs else IN_PLACE
    return found


def _pointers(piece: Piece, is_written: bool) -> list[str]:
    return [
        piece.hosts.get(name, name)
        for name in piece.roles.pointers
        if (name in piece.roles.written) == is_written
    ]


def _workspace(
    file: CudaFile, piece: Piece, name: str, role: str, remarks: dict[str, str]
) -> Workspace:
    """Return a buffer between kernels, as the host allocates and clears it."""
    host, place = piece.hosts.get(name, name), f"workspace.{role}"
    size: int | str = "4 * rows"
    initial: float | str | None = None
    remarks[f"{place}.bytes"] = "nothing in the file says it: a float for each row"
    for called, arguments, line in _calls_with(file, host):
        if called.startswith("cudaMalloc"):
            with suppress(Unknown):
                size = as_number(piece.translator.formula(arguments[1]))
                remarks[f"{place}.bytes"] = f"line {line}: {called}"
        elif called.startswith("cudaMemset") and text_of(arguments[1]) == "0":
            initial = "zeros"
            remarks[f"{place}.initial"] = f"line {line}: {called}"
    if initial is None and not _calls_with(file, host) and _is_updated(piece, name):
        initial = "zeros"
        remarks[f"{place}.initial"] = "it is updated by atomics, and no host code says more"
    return Workspace(size, initial)


def _calls_with(file: CudaFile, host: str) -> list[tuple[str, list[Node], int]]:
    """Return the runtime calls about one of the host's buffers: name, arguments, line."""
    return [
        (text_of(call.children[0]), arguments, call.start_point[0] + 1)
        for call in walk(file.root)
        if call.type == "call_expression"
        and (arguments := call.children[-1].named_children)
        and text_of(call.children[0]).startswith(("cudaMalloc", "cudaMemset"))
        and host in identifiers(arguments[0])
    ]


def _is_updated(piece: Piece, name: str) -> bool:
    pattern = rf"\batomic\w+\([^;]*\b{re.escape(name)}\b"
    return re.search(pattern, text_of(piece.kernel.body)) is not None
