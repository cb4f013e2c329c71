"""The file beside an adopted `.cu` that says how it is launched: FILE.kgen.toml.

    op = "softmax"                 # or log_softmax
    element = "float32"
    sizes = "cols % 4 == 0"        # of what it is right for; left out, kgen finds it by trying
    [constants]                    # what may be swept, with the values in use
    BLOCK = 256
    [workspace.row_max]            # a buffer between kernels
    bytes = "4 * rows"
    initial = "-inf"               # zeros, a number, -inf; left out, it holds anything
    [[kernel]]                     # in the order of their launches
    name = "ns::softmax"
    template = { B = "BLOCK", T = "float" }
    grid = "ceil_div(rows, 8)"     # or ["cols", "rows"]; so is block
    block = "BLOCK"
    shared = "4 * block"
    [kernel.arguments]             # each by its name in the file
    x = "input"                    # input, output, in_place, a workspace, or a number
    y = "output"
    n = "cols"

Numbers are formulas (kgen/specs/formula.py) of rows, cols, the constants, and block.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kgen.errors import UsageError
from kgen.files import read_toml
from kgen.specs.formula import Formula, formula

SUFFIX = ".kgen.toml"
INPUT, OUTPUT, IN_PLACE = "input", "output", "in_place"
MATRICES = (INPUT, OUTPUT, IN_PLACE)
ELEMENTS = ("float32",)
OPS = ("softmax", "log_softmax")
_RESERVED = ("rows", "cols", "block", *MATRICES)

Number = int | str
Size = Number | list[Number]


class Workspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A buffer between kernels: its bytes, and the float it is filled with before each call."""

    bytes: Number
    initial: float | str | None = None


class KernelCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One launch: the kernel by its path, and everything that the host gives it."""

    name: str
    grid: Size
    block: Size
    arguments: dict[str, int | float | str]
    template: dict[str, Number] = {}
    shared: Number = 0


class Sidecar(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an adopted file computes, on which sizes, and by which launches."""

    kernel: list[KernelCall]
    op: str = "softmax"
    element: str = "float32"
    sizes: str | None = None
    constants: dict[str, Number] = {}
    workspace: dict[str, Workspace] = {}


def sidecar_path(path: Path) -> Path:
    """Return where the sidecar of a `.cu` lies."""
    return path.with_name(path.stem + SUFFIX)


def read_sidecar(path: Path) -> Sidecar:
    """Return what a sidecar says.

    Raises UsageError, with the file and the place in it, for what is missing, misspelt or no
    formula of what is known there.
    """
    table = read_toml(path)
    try:
        made = msgspec.convert(table, Sidecar)
        _check(made)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_words(str(error))}") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return made


def _words(message: str) -> str:
    """Return msgspec's message with the place as TOML's reader knows it."""
    said, _, place = message.partition(" - at `$")
    return f"{place.rstrip('`').lstrip('.') or 'the file'}: {said}" if place else said


def _check(made: Sidecar) -> None:
    for said, known, what in ((made.op, OPS, "op"), (made.element, ELEMENTS, "element")):
        if said not in known:
            raise UsageError(f"{what} = {said!r}: adopted files have {' or '.join(known)}")
    if not made.kernel:
        raise UsageError("there is no [[kernel]]: name the kernels in the order of their launches")
    for name in (*made.constants, *made.workspace):
        if name in _RESERVED:
            raise UsageError(f"{name!r} has a meaning of its own here; call it something else")
    names = {"rows", "cols", *made.constants}
    _formula(made.sizes, names, "sizes")
    for name, space in made.workspace.items():
        _formula(space.bytes, names, f"workspace.{name}.bytes")
        _initial(space.initial, name)
    for i, call in enumerate(made.kernel):
        _check_call(call, made, names, f"kernel[{i}]")


def _check_call(call: KernelCall, made: Sidecar, outer: set[str], place: str) -> None:
    names = outer | {name for name, value in call.template.items() if isinstance(value, int)}
    for key, values in (("block", call.block), ("grid", call.grid)):
        for size in listed(values):
            _formula(size, names if key == "block" else {*names, "block"}, f"{place}.{key}")
        if not 1 <= len(listed(values)) <= 2:
            raise UsageError(f"{place}.{key}: a {key} has one or two dimensions here")
    _formula(call.shared, {*names, "block"}, f"{place}.shared")
    for name, value in call.arguments.items():
        if value not in MATRICES and value not in made.workspace and not isinstance(value, float):
            _formula(value, {*names, "block"}, f"{place}.arguments.{name}")


def _formula(value: Number | None, names: set[str], place: str) -> None:
    if value is None:
        return
    try:
        unknown = formula(str(value)).names - names
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    if unknown:
        raise UsageError(
            f"{place} = {value!r} names {', '.join(sorted(unknown))}; known are "
            f"{', '.join(sorted(names))}"
        )


def _initial(value: float | str | None, name: str) -> None:
    try:
        initial_float(value)
    except ValueError:
        raise UsageError(
            f"workspace.{name}.initial = {value!r}: give zeros, a number, inf or -inf"
        ) from None


def initial_float(value: float | str | None) -> float | None:
    """Return the float that fills a workspace, None for whatever it holds."""
    return 0.0 if value == "zeros" else None if value is None else float(value)


def listed(value: Size) -> list[Number]:
    """Return the dimensions of a grid or block."""
    return list(value) if isinstance(value, list) else [value]


def written(made: Sidecar, remarks: dict[str, str]) -> str:
    """Return a sidecar as TOML, each entry with its remark: why it is so (by `kernel[0].grid`)."""
    head = {key: getattr(made, key) for key in ("op", "element", "sizes")}
    lines = _entries(head, "", remarks)
    if made.constants:
        lines += ["", "[constants]", *_entries(made.constants, "constants.", remarks)]
    for name, space in made.workspace.items():
        lines += ["", f"[workspace.{_key(name)}]"]
        lines += _entries(msgspec.structs.asdict(space), f"workspace.{name}.", remarks)
    for i, call in enumerate(made.kernel):
        entries = msgspec.structs.asdict(call)
        arguments, place = entries.pop("arguments"), f"kernel[{i}]."
        lines += ["", "[[kernel]]", *_entries(entries, place, remarks), "[kernel.arguments]"]
        lines += _entries(arguments, f"{place}arguments.", remarks)
    return "\n".join(lines) + "\n"


def _entries(values: dict[str, Any], place: str, remarks: dict[str, str]) -> list[str]:
    """Return a table's lines; what is left out has none."""
    return [
        f"{_key(key)} = {_toml(value)}"
        + (f"  # {why}" if (why := remarks.get(place + key)) else "")
        for key, value in values.items()
        if value is not None and value != {}
    ]


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {_toml(entry)}" for name, entry in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return msgspec.json.encode(value).decode() if isinstance(value, str) else repr(value)


def as_formula(value: Number) -> Formula:
    """Return a sidecar's number as a formula."""
    return formula(str(value))
