"""What a file says of all its launches together: constants, sizes that it takes, operation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from kgen.adopted.expressions import Translator, Unknown, expression
from kgen.adopted.piece import NUMBER, Piece
from kgen.adopted.syntax import CudaFile, text_of, walk

# What walks the columns that no vector covers.
_TAIL = re.compile(r"% *4|& *~?3\b|\* *4 *; *\w+ *<|\b\w+ *\* *4 *\+ *threadIdx")


def constants_of(file: CudaFile, pieces: Iterable[Piece]) -> dict[str, int | str]:
    """Return the whole numbers that the file names and uses, and what launches compute of them."""
    used = {text_of(node) for node in walk(file.root) if node.type == "identifier"}
    found: dict[str, int | str] = {
        name: int(constant.text, 0)
        for name, constant in file.constants.items()
        if NUMBER.fullmatch(constant.text) and name in used
    }
    for name in set().union(*map(_names_in, pieces)) & file.constants.keys() - found.keys():
        value = expression(file.constants[name].text)
        with suppress(Unknown):
            found[name] = Translator(file, None, {}).formula(value) if value else name
    return found


def _names_in(piece: Piece) -> set[str]:
    said = (piece.grid, piece.block, piece.shared, *piece.template.values())
    return set(re.findall(r"[A-Za-z_]\w*", " ".join(map(str, said))))


def sizes_of(file: CudaFile, pieces: list[Piece]) -> tuple[str | None, str]:
    """Return the sizes that the file itself restricts, and where; kgen finds the others."""
    if all("rows" not in " ".join(map(str, _everything(piece))) for piece in pieces):
        return "rows == 1", "nothing in its launch counts rows"
    conditions = [said for piece in pieces for said in piece.conditions()]
    if conditions:
        return " and ".join(dict.fromkeys(conditions)), "what the host asks before it launches"
    for piece in pieces:
        if said := _by_fours(piece):
            return "cols % 4 == 0", said
    return None, ""


def _by_fours(piece: Piece) -> str:
    """Return where a kernel takes a quarter of the columns and does nothing about the rest."""
    body = text_of(piece.kernel.body)
    if "float4" not in body:
        return ""
    for name, role in piece.roles.numbers.items():
        quarter = re.search(rf"\b{name} */ *4\b|\b{name} *>> *2\b", body)
        if role == "cols" and quarter and not _TAIL.search(body):
            line = piece.kernel.body.start_point[0] + 1 + body[: quarter.start()].count("\n")
            return f"line {line}: {quarter[0]}, and no columns behind"
    return ""


def _everything(piece: Piece) -> list[object]:
    return [piece.grid, piece.block, piece.shared, *piece.roles.numbers.values()]


def op_of(pieces: list[Piece]) -> tuple[str, str]:
    names = " ".join(piece.kernel.name for piece in pieces)
    if re.search(r"log_?softmax", names, re.IGNORECASE):
        return "log_softmax", "from the kernel's name"
    return "softmax", "log_softmax is the other one"
