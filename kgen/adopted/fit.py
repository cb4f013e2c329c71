"""Whether a sidecar fits its file: kernels, arguments and constants are those that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import structs

from kgen.adopted.device_text import Use
from kgen.adopted.sidecar import MATRICES, KernelCall, Number, Sidecar, as_formula
from kgen.adopted.syntax import CudaFile, Kernel, Parameter
from kgen.errors import UsageError
from kgen.text import did_you_mean

# How struct packs the numbers that kernels take, by their types.
FORMATS = {
    "int": "i", "unsigned": "I", "unsigned int": "I", "uint": "I", "size_t": "Q",
    "std::size_t": "Q",
    "long": "q", "long long": "q", "unsigned long": "Q", "unsigned long long": "Q", "float": "f",
    "double": "d", "bool": "?", "short": "h", "int32_t": "i", "uint32_t": "I", "int64_t": "q",
    "uint64_t": "Q", "std::int64_t": "q",
}  # fmt: skip


def with_settings(path: Path, sidecar: Sidecar, settings: Mapping[str, str]) -> Sidecar:
    """Return a sidecar with constants, or template arguments, set to whole numbers.

    Raises UsageError for a constant that it does not list.
    """
    known = {*sidecar.constants, *(name for call in sidecar.kernel for name in call.template)}
    for name, value in settings.items():
        if name not in known:
            raise UsageError(f"{path} has no constant {name!r} to set{did_you_mean(name, known)}")
        if not value.isdigit():
            raise UsageError(f"{path}:{name}={value}: a constant is a whole number")
    new = {name: int(value) for name, value in settings.items()}
    calls = [
        structs.replace(call, template={k: new.get(k, v) for k, v in call.template.items()})
        for call in sidecar.kernel
    ]
    constants = {name: new.get(name, value) for name, value in sidecar.constants.items()}
    return structs.replace(sidecar, constants=constants, kernel=calls)


def numbers_of(sidecar: Sidecar, where: Path) -> dict[str, int]:
    """Return what the constants are, those that are computed of others too."""
    known: dict[str, int] = {}
    for call in sidecar.kernel:
        known |= {name: value for name, value in call.template.items() if isinstance(value, int)}
    known |= {name: value for name, value in sidecar.constants.items() if isinstance(value, int)}
    left = {name: value for name, value in sidecar.constants.items() if name not in known}
    for _ in left:
        for name, value in left.items():
            if as_formula(value).names <= known.keys():
                known[name] = int(as_formula(value).value(known))
    if missing := left.keys() - known.keys():
        raise UsageError(f"{where}: constants.{min(missing)} names what is no constant there")
    return known


def uses_of(
    file: CudaFile, sidecar: Sidecar, settings: Mapping[str, str] | None = None
) -> tuple[Use, ...]:
    """Return the kernels of a sidecar as the file has them.

    Raises UsageError where it has no such ones, or other values of constants that are not set.
    """
    by_path = {kernel.path: kernel for kernel in file.kernels}
    by_path |= {kernel.name: kernel for kernel in file.kernels if kernel.name not in by_path}
    for name, value in sidecar.constants.items():
        if name not in (settings or {}):
            _check_constant(file, name, value)
    uses: list[Use] = []
    for call in sidecar.kernel:
        if call.name not in by_path:
            raise UsageError(
                f"the file has no kernel {call.name}{did_you_mean(call.name, by_path)}"
            )
        kernel = by_path[call.name]
        _check_names(kernel, call)
        template = {name: str(call.template[name]) for name in (p.name for p in kernel.template)}
        uses.append(Use(kernel, template, _symbol(kernel, template, uses)))
    return tuple(uses)


def _check_constant(file: CudaFile, name: str, value: Number) -> None:
    """Refuse a constant that the file has no longer, or has another value of."""
    if name not in file.constants:
        raise UsageError(f"the file names no constant {name}")
    found = file.constants[name]
    is_number = re.fullmatch(r"0[xX][0-9a-fA-F]+|[1-9][0-9]*|0", found.text)
    if isinstance(value, int) and is_number and int(found.text, 0) != value:
        raise UsageError(
            f"its line {found.line} has {name} = {found.text}, and the sidecar {value}; adopt it "
            "again, or change the sidecar"
        )


def _check_names(kernel: Kernel, call: KernelCall) -> None:
    for what, declared, given in (
        ("argument", kernel.parameters, call.arguments),
        ("template argument", kernel.template, call.template),
    ):
        names = [parameter.name for parameter in declared]
        if list(given) != names:
            raise UsageError(
                f"kernel {call.name} (line {kernel.line}) has the {what}s {', '.join(names) or '-'}"
                f", and the sidecar gives {', '.join(given) or 'none'}; adopt it again, or change "
                "the sidecar"
            )
    for parameter in kernel.parameters:
        role = call.arguments[parameter.name]
        is_buffer = role in MATRICES or (isinstance(role, str) and parameter.is_pointer)
        if parameter.is_pointer != is_buffer or not (
            parameter.is_pointer or type_of(parameter, call) in FORMATS
        ):
            raise UsageError(
                f"{parameter.type} {parameter.name} of {call.name} (line {kernel.line}) cannot be "
                f"{role!r}"
            )


def type_of(parameter: Parameter, call: KernelCall) -> str:
    """Return the type of a number that a kernel takes, where that is a template's the real one."""
    return str(call.template.get(parameter.element, parameter.element))


def _symbol(kernel: Kernel, template: Mapping[str, str], before: list[Use]) -> str:
    """Return the C name of a kernel: its own, and a number behind it for further instances."""
    same = [use for use in before if use.kernel.name == kernel.name]
    for use in same:
        if use.kernel.path == kernel.path and use.template == template:
            return use.symbol
    return f"{kernel.name}_{len({use.symbol for use in same}) + 1}" if same else kernel.name
