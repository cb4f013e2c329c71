"""What a kernel's arguments are, as far as its own text tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgen.adopted.body import Evidence, evidence, written
from kgen.adopted.sidecar import IN_PLACE, INPUT, OUTPUT
from kgen.adopted.syntax import CudaFile, Kernel, Parameter

ROW_NAMES = set(
    "rows row nrows n_rows num_rows numrows m batch b bs batch_size batches r height h outer "
    "outer_size".split()
)
COL_NAMES = set(
    "cols col ncols n_cols num_cols numcols n c d dim width w len length seq_len size features "
    "hidden classes vocab inner num_classes columns row_size row_length elements".split()
)
_INPUTS = ("in", "inp", "input", "x", "a", "src", "logits", "scores", "data", "i_data", "x_ptr")
_OUTPUTS = ("out", "output", "y", "b", "dst", "probs", "result", "res", "o_data", "y_ptr", "o")
_INTEGERS = {"int", "unsigned", "unsigned int", "size_t", "long", "long long", "int64_t", "int32_t",
             "uint32_t", "uint64_t", "unsigned long long", "std::size_t", "std::int64_t", "short",
             "uint", "unsigned long"}  # fmt: skip


@dataclass
class Roles:
    """What pointers and numbers are, with reasons; a number that is left out is not known.

    A pointer's role is '' for a buffer between kernels.
    """

    pointers: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    is_vector: bool = False


def roles_of(file: CudaFile, kernel: Kernel, answers: Mapping[str, str]) -> Roles:
    """Return what the arguments of a kernel are, those that the user named first."""
    roles = Roles(written=written(file, kernel))
    _pointers(kernel, roles)
    _numbers(kernel, roles)
    for parameter in kernel.parameters:
        if parameter.name in answers:
            own = roles.pointers if parameter.is_pointer else roles.numbers
            own[parameter.name] = answers[parameter.name]
            roles.reasons[parameter.name] = "as you said"
    return roles


def _pointers(kernel: Kernel, roles: Roles) -> None:
    for parameter in kernel.parameters:
        if parameter.is_pointer:
            roles.pointers[parameter.name] = ""
    pointers = [one for one in kernel.parameters if one.is_pointer and _may_be_matrix(one)]
    reads = [p.name for p in pointers if p.name not in roles.written]
    writes = [p.name for p in pointers if p.name in roles.written]
    source, target = _best(reads, _INPUTS), _best(writes, _OUTPUTS)
    if source:
        roles.pointers[source] = INPUT
        roles.reasons[source] = "it is only read"
    if target:
        roles.pointers[target] = OUTPUT if source else IN_PLACE
        roles.reasons[target] = "it is written" + ("" if source else ", and nothing else is read")


def _may_be_matrix(parameter: Parameter) -> bool:
    """Whether a pointer may be to floats, which files give names of their own."""
    return parameter.element not in {*_INTEGERS, "void", "bool", "char", "unsigned char", "int2"}


def _best(names: list[str], usual: tuple[str, ...]) -> str:
    """Return the name that is most like the usual ones; the first where none is."""
    plain = {name.lower().removeprefix("d_").removeprefix("g_"): name for name in names}
    for word in usual:
        if word in plain:
            return plain[word]
    return next(iter(names), "")


def _numbers(kernel: Kernel, roles: Roles) -> None:
    """Settle rows and cols by how the body uses them, then by their names, then by what is left."""
    seen = evidence(kernel)
    _one_vector(seen, roles)
    integers = [
        parameter.name
        for parameter in kernel.parameters
        if not parameter.is_pointer and parameter.element in _INTEGERS
    ]
    for name in integers:
        if roles.is_vector or name in roles.numbers:
            continue
        if name in seen.cols and (name not in seen.rows or not is_named(name, ROW_NAMES)):
            _settle(roles, name, "cols", seen.cols[name])
        elif name in seen.rows:
            _settle(roles, name, "rows", seen.rows[name])
    if roles.is_vector:
        return
    for names, role in ((COL_NAMES, "cols"), (ROW_NAMES, "rows")):
        for name in integers:
            free = name not in roles.numbers and role not in roles.numbers.values()
            if free and is_named(name, names):
                _settle(roles, name, role, "from its name")
    left = [name for name in integers if name not in roles.numbers]
    missing = {"rows", "cols"} - set(roles.numbers.values())
    if len(integers) == 2 and len(left) == 1 and len(missing) == 1:
        _settle(roles, left[0], missing.pop(), "the other one is taken")


def _one_vector(seen: Evidence, roles: Roles) -> None:
    """Where the whole grid walks one vector, its length is the columns of a single row."""
    for name, said in seen.elements.items():
        if is_named(name, ROW_NAMES) or seen.cols.get(name, "").count("*"):
            _settle(roles, name, "rows", said)
        elif not any("*" in why for why in seen.cols.values()):
            _settle(roles, name, "cols", f"{said}: all blocks share one row")
            roles.is_vector = True


def _settle(roles: Roles, name: str, role: str, why: str) -> None:
    roles.numbers[name] = role
    roles.reasons[name] = why


def is_named(name: str, names: set[str]) -> bool:
    return name.lower().removeprefix("d_").removeprefix("num_").removeprefix("n_") in names or (
        name.lower() in names
    )
