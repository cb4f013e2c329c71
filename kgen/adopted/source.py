"""An adopted file as a source: its device code, and the launches of its sidecar."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgen.adopted.device_text import device_text, shared_names
from kgen.adopted.fit import FORMATS, numbers_of, type_of, uses_of, with_settings
from kgen.adopted.sidecar import (
    IN_PLACE,
    INPUT,
    OUTPUT,
    KernelCall,
    Sidecar,
    as_formula,
    initial_float,
    listed,
    read_sidecar,
    sidecar_path,
)
from kgen.adopted.syntax import CudaFile, Parameter, line_of, text_of
from kgen.errors import KernelFault, LaunchRefused, UsageError
from kgen.launch import Buffer, Launch, LaunchPlan, Number
from kgen.sources.source import Source
from kgen.specs.versions import find_version

_SETTINGS = re.compile(r"^(.*\.cu):((?:\w+=[^,]*,?)+)$")
# A plain version, whose spec says what is computed, of which types.
_PLAIN = "v1"
_OWN_NAMES = ("x", "y", "workspace", "rows", "cols", "launch")


@dataclass(frozen=True)
class Adopted:
    """The contract of an adopted file: its sidecar with the constants in use, and its kernels.

    `called` are the kernels' C names and parameters, one a launch.
    """

    path: Path
    sidecar: Sidecar
    called: tuple[tuple[str, tuple[Parameter, ...]], ...]
    constants: Mapping[str, int]
    label: str
    shared_names: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash(self.label)

    def format_of(self, parameter: Parameter, call: KernelCall) -> str:
        """Return the letter by which struct packs a number that a kernel takes."""
        return FORMATS[type_of(parameter, call)]

    def takes(self, rows: int, cols: int) -> bool:
        """Whether the sidecar's sizes include a shape."""
        sizes = self.sidecar.sizes
        return not sizes or bool(as_formula(sizes).value(self._names(rows, cols)))

    def swaps(self, lines: tuple[int, ...]) -> bool:
        """Whether lines are of one function that updates by atomicCAS, as CUDA's guide has it.

        It begins with a plain read, and whatever that gets, the swap then finds out.
        """
        return any(
            "atomicCAS" in text_of(node)
            and all(line_of(node) <= line <= node.end_point[0] + 1 for line in lines)
            for node in read_cuda(self.path).functions.values()
        )

    def require(self, rows: int, cols: int) -> None:
        """Raise UsageError for a shape that the sidecar leaves out."""
        if rows > 0 and cols > 0 and not self.takes(rows, cols):
            raise UsageError(
                f"{self.label} takes sizes of which {self.sidecar.sizes}, as "
                f"{sidecar_path(self.path).name} says, and {rows} x {cols} is none of them"
            )

    def plan(self, rows: int, cols: int) -> LaunchPlan:
        """Return the launches on a shape.

        Raises UsageError as `require` does, and KernelFault where a number does not fit its type.
        """
        self.require(rows, cols)
        if rows <= 0 or cols <= 0:
            return LaunchPlan(rows, cols, ())
        names = self._names(rows, cols)
        try:
            launches = tuple(
                self._launch(call, *called, names)
                for call, called in zip(self.sidecar.kernel, self.called, strict=True)
            )
            spaces = tuple(
                Buffer(_buffer_name(name), _value(space.bytes, names), initial_float(space.initial))
                for name, space in self.sidecar.workspace.items()
            )
        except ArithmeticError as error:
            raise LaunchRefused(
                f"{self.label}: what {sidecar_path(self.path).name} says cannot be computed for "
                f"{rows} x {cols}: {error}"
            ) from None
        in_place = any(IN_PLACE in call.arguments.values() for call in self.sidecar.kernel)
        return LaunchPlan(rows, cols, launches, buffers=spaces, in_place=in_place)

    def _names(self, rows: int, cols: int) -> dict[str, int]:
        return {**self.constants, "rows": rows, "cols": cols}

    def _launch(
        self,
        call: KernelCall,
        symbol: str,
        parameters: tuple[Parameter, ...],
        names: Mapping[str, int],
    ) -> Launch:
        block = [_value(size, names) for size in listed(call.block)]
        threads = _product(block)
        known = {**names, "block": threads}
        grid = [_value(size, known) for size in listed(call.grid)]
        numbers = tuple(
            self._number(parameter, call, _value(role, known))
            for parameter, role in zip(parameters, call.arguments.values(), strict=True)
            if not parameter.is_pointer
        )
        return Launch(
            symbol,
            _product(grid),
            threads,
            _value(call.shared, known),
            tuple(map(_argument, parameters, call.arguments.values())),
            numbers=numbers,
            block_width=block[0] if len(block) > 1 else 0,
            grid_width=grid[0] if len(grid) > 1 else 0,
        )

    def _number(self, parameter: Parameter, call: KernelCall, value: float) -> Number:
        """Return a number that a kernel gets. Raises KernelFault where it is none of its type."""
        number = Number(f"{parameter.name}=", self.format_of(parameter, call), value)
        try:
            _ = number.bits
        except (struct.error, OverflowError):
            raise KernelFault(
                f"{self.label}: {value} does not fit {type_of(parameter, call)} "
                f"{parameter.name} of {call.name}"
            ) from None
        return number


def _product(sizes: list[int]) -> int:
    return sizes[0] * (sizes[1] if len(sizes) > 1 else 1)


def _value(number: float | str, names: Mapping[str, int]) -> Any:
    """Return a sidecar's number for a shape; a float stays one."""
    return number if isinstance(number, float) else int(as_formula(number).value(names))


def _argument(parameter: Parameter, role: float | str) -> str:
    matrices = {INPUT: "x", OUTPUT: "y", IN_PLACE: "y"}
    if parameter.is_pointer:
        return matrices.get(str(role)) or _buffer_name(str(role))
    return f"{parameter.name}="


def _buffer_name(name: str) -> str:
    return f"{name}_buffer" if name in _OWN_NAMES else name


def is_adopted(text: str) -> bool:
    """Whether a file (with constants set or not) has a sidecar."""
    found = _SETTINGS.match(text)
    return bool(found) or sidecar_path(Path(text)).is_file()


def read_adopted(text: str) -> Source:
    """Return the source of an adopted file; `softmax.cu:BLOCK=128` sets a constant of it.

    Raises UsageError for a file or a sidecar that cannot be read, and for one that does not fit
    the other.
    """
    found = _SETTINGS.match(text)
    path, settings = (Path(found[1]), found[2]) if found else (Path(text), "")
    if not (beside := sidecar_path(path)).is_file():
        raise UsageError(f"{path} has no {beside.name} beside it: kgen adopt {path}")
    sidecar = read_sidecar(beside)
    constants = dict(setting.split("=", 1) for setting in settings.split(",") if setting)
    return adopted_source(path, sidecar, constants)


def read_cuda(path: Path) -> CudaFile:
    """Return a file as the parser sees it. Raises UsageError when it cannot be read."""
    try:
        return _parsed(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"{path} cannot be read: {reason}") from None


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> CudaFile:
    return CudaFile(text)


def adopted_source(
    path: Path, sidecar: Sidecar, settings: Mapping[str, str] | None = None
) -> Source:
    """Return a file as its sidecar has it, with constants set to other values.

    Raises UsageError where the sidecar does not fit the file.
    """
    file, where = read_cuda(path), sidecar_path(path)
    try:
        uses_of(file, sidecar)
    except UsageError as error:
        raise UsageError(f"{where} does not fit {path.name}: {error}") from None
    sidecar = with_settings(path, sidecar, settings or {})
    uses = uses_of(file, sidecar, settings or {})
    changed = {
        name: str(value)
        for name, value in sidecar.constants.items()
        if name in file.constants and str(value) != file.constants[name].text
    }
    text = device_text(file, uses, changed, path.parent)
    set_here = ",".join(f"{name}={value}" for name, value in (settings or {}).items())
    contract = Adopted(
        path,
        sidecar,
        tuple((use.symbol, use.kernel.parameters) for use in uses),
        numbers_of(sidecar, where),
        f"{path}:{set_here}" if set_here else str(path),
        tuple(shared_names(text, uses)),
    )
    spec = find_version(_PLAIN).spec.replace(op=sidecar.op)
    symbols = tuple(dict.fromkeys(use.symbol for use in uses))
    return Source(spec, _stem(path), text, symbols, path, contract)


def _stem(path: Path) -> str:
    return re.sub(r"\W", "_", path.stem)
