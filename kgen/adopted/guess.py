"""From a file to its sidecar: what names, types, bodies and the file's own launches say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from kgen.adopted.arguments import COL_NAMES, ROW_NAMES, Roles, is_named, roles_of
from kgen.adopted.body import declares_dynamic_shared, identifiers, row_expression, written
from kgen.adopted.expressions import Translator, Unknown
from kgen.adopted.sidecar import INPUT, MATRICES, OUTPUT, KernelCall, Sidecar, Size, Workspace
from kgen.adopted.syntax import (
    CudaFile,
    Kernel,
    Launch,
    conditions_before,
    paired,
    text_of,
    walk,
)
from kgen.errors import UsageError
from kgen.specs.formula import formula
from kgen.text import did_you_mean

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_THREADS = re.compile(r"block|thread|tpb|num_t|\bB\b|\bBS\b", re.IGNORECASE)
DEFAULT_BLOCK = 256


@dataclass
class Guess:
    """A sidecar with why each entry is so, and what nobody can know but the file's owner."""

    sidecar: Sidecar
    remarks: dict[str, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """What the user said: kernels by name, and entries by argument or key."""

    kernels: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    grid: str | None = None
    block: str | None = None
    shared: str | None = None


def guess(file: CudaFile, name: str, answers: Answers) -> Guess:
    """Return the sidecar of a file. Raises UsageError where it holds no kernel, or too many."""
    calls = _chosen(file, name, answers)
    pieces = [_Piece(file, kernel, launch, answers) for kernel, launch in calls]
    remarks: dict[str, str] = {}
    questions: dict[str, str] = {}
    spaces = _name_workspaces(file, pieces, remarks)
    for i, piece in enumerate(pieces):
        place = f"kernel[{i}]."
        remarks |= {place + key: said for key, said in piece.remarks.items()}
        questions |= {place + key: said for key, said in piece.questions.items()}
    constants = _constants(file, pieces)
    sizes, why = _sizes(file, pieces)
    if why:
        remarks["sizes"] = why
    op, why = _op(file, pieces)
    remarks["op"] = why
    made = Sidecar([piece.call() for piece in pieces], op, "float32", sizes, constants, spaces)
    return Guess(made, remarks, questions)


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
    groups = _groups(file, by_name) or [[(kernel, None)] for kernel in file.kernels]
    if len(groups) > 1:
        listed = ", ".join("+".join(kernel.name for kernel, _ in group) for group in groups)
        raise UsageError(
            f"{name} has several kernels ({listed}): choose one with --kernel NAME, or those of "
            "one softmax in their order with --kernel more than once"
        )
    return groups[0]


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
    has_exp = any(re.search(r"\bexp|__exp|ex2", one) for one in (text, *called))
    return has_exp and len(pointers) <= 2 and bool(written(file, kernel))


class _Piece:
    """One launch while it is being guessed."""

    def __init__(
        self, file: CudaFile, kernel: Kernel, launch: Launch | None, answers: Answers
    ) -> None:
        self.file, self.kernel, self.launch, self.answers = file, kernel, launch, answers
        self.remarks: dict[str, str] = {}
        self.questions: dict[str, str] = {}
        self.roles: Roles = roles_of(file, kernel, answers.arguments)
        self.remarks |= {f"arguments.{k}": v for k, v in self.roles.reasons.items()}
        self.template = self._template()
        self.translator = self._translator()
        self._other_numbers()
        self.block = self._block()
        self.grid = self._grid()
        self.shared = self._shared()

    @property
    def hosts(self) -> dict[str, str]:
        """What the host passes for each parameter, as text."""
        if not self.launch:
            return {}
        names = (parameter.name for parameter in self.kernel.parameters)
        return dict(zip(names, map(text_of, self.launch.arguments), strict=False))

    def _translator(self) -> Translator:
        known = {
            host: self.roles.numbers[name]
            for name, host in self.hosts.items()
            if self.roles.numbers.get(name) in ("rows", "cols") and not _NUMBER.fullmatch(host)
        }
        function = self.launch.function if self.launch else None
        free = {"rows", "cols"} - set(known.values())
        for name in identifiers(function) if function else ():
            for role, usual in (("rows", ROW_NAMES), ("cols", COL_NAMES)):
                if role in free and is_named(name, usual) and len(name) > 1:
                    known.setdefault(name, role)
        return Translator(self.file, self.launch.function if self.launch else None, known)

    def _other_numbers(self) -> None:
        """Settle the numbers that the body says nothing of by what the host passes."""
        for parameter in self.kernel.parameters:
            name = parameter.name
            if parameter.is_pointer or name in self.roles.numbers:
                continue
            value = self._passed(name)
            if value is None:
                self.questions[f"arguments.{name}"] = (
                    f"what is {parameter.type} {name} (line {self.kernel.line})? rows, cols, a "
                    "number, or a formula of them"
                )
            else:
                self.roles.numbers[name] = value
                self.remarks[f"arguments.{name}"] = "as the file's own launch has it"

    def _passed(self, name: str) -> str | None:
        node = self._argument(name)
        if node is None:
            return None
        if text_of(node) in ("true", "false"):
            return str(int(text_of(node) == "true"))
        try:
            return self.translator.formula(node)
        except Unknown:
            return None

    def _argument(self, name: str) -> Node | None:
        names = [parameter.name for parameter in self.kernel.parameters]
        at = names.index(name)
        arguments = self.launch.arguments if self.launch else ()
        return arguments[at] if at < len(arguments) else None

    def _template(self) -> dict[str, int | str]:
        given = paired(self.kernel.template, self.launch.template if self.launch else ())
        for parameter in self.kernel.template:
            value = given[parameter.name] or self._usual(parameter.name, parameter.type)
            if value in ("T", "scalar_t"):
                value = "float"
            given[parameter.name] = value
        return {name: int(v) if v.isdigit() else v for name, v in given.items()}

    def _usual(self, name: str, type: str) -> str:
        if type in ("typename", "class"):
            self.remarks["template"] = f"{name} is taken to be float"
            return "float"
        if type == "bool":
            return "false"
        value = "4" if "vec" in name.lower() else "32" if "warp" in name.lower() else "256"
        self.remarks["template"] = f"nothing instantiates it: {name} is tried as {value}"
        return value

    def _block(self) -> Size:
        if self.answers.block is not None:
            return _number(self.answers.block)
        if self.launch and len(self.launch.config) > 1:
            try:
                found = self.translator.dimensions(self.launch.config[1])
                self.remarks["block"] = f"line {self.launch.line}: the file's own launch"
                return _size(found)
            except Unknown as unknown:
                self.remarks["block"] = f"line {self.launch.line}: {unknown} is not known"
        return self._usual_block()

    def _usual_block(self) -> Size:
        body = text_of(self.kernel.body)
        bounds = next(
            (n for n in self.kernel.definition.children if n.type == "launch_bounds"), None
        )
        if bounds is not None:
            said = text_of(bounds.named_children[0])
            value = self.template.get(said, said)
            self.remarks.setdefault("block", "from __launch_bounds__")
            return _number(str(value))
        for name in (*self.template, *self.file.constants):
            if _THREADS.search(name) and re.search(rf"\b{name}\b", body):
                self.remarks.setdefault("block", f"from {name}")
                return _number(str(self.template.get(name, name)))
        if "threadIdx.y" in body:
            self.remarks.setdefault("block", "a warp a row, four rows a block")
            return [32, 4]
        is_warp = "shfl" in body and "__shared__" not in body and "/ 32" not in body
        value = 32 if is_warp and "blockDim" not in body else DEFAULT_BLOCK
        self.remarks.setdefault("block", "nothing in the file says it")
        return value

    def _grid(self) -> Size:
        if self.answers.grid is not None:
            return _number(self.answers.grid)
        if self.launch and self.launch.config:
            try:
                found = _size(self._dimensions(self.launch.config[0]))
                if isinstance(found, int) and found > 1 and not self._takes_rows():
                    self.remarks["grid"] = f"{found} in the file: a block for each row"
                    return "rows"
                self.remarks["grid"] = f"line {self.launch.line}: the file's own launch"
                return found
            except Unknown as unknown:
                self.remarks["grid"] = f"line {self.launch.line}: {unknown} is not known"
        return self._usual_grid()

    def _takes_rows(self) -> bool:
        """Whether anything but the grid may say how many rows there are."""
        said = " ".join(self.roles.numbers.values())
        return "rows" in said or row_expression(self.kernel) not in ("blockIdx.x", "")

    def _dimensions(self, node: Node) -> list[str]:
        """Return the grid; its one unknown name counts the rows where no argument does."""
        try:
            return self.translator.dimensions(node)
        except Unknown as unknown:
            name = str(unknown)
            if "rows" in self.roles.numbers.values() or not re.fullmatch(r"\w+", name):
                raise
            self.translator.known[name] = "rows"
            return self.translator.dimensions(node)

    def _usual_grid(self) -> Size:
        row = row_expression(self.kernel)
        block = self.block if not isinstance(self.block, list) else self.block[-1]
        if not row:
            said, value = "no blockIdx: one block", "1"
        elif "blockIdx.y" in row and "blockIdx.x" not in row:
            self.remarks.setdefault("grid", f"{row}")
            return [1, "rows"]
        elif "threadIdx.y" in row or "blockDim.y" in row:
            said, value = f"{row}: a row for each threadIdx.y", f"ceil_div(rows, {block})"
        elif re.search(r"/ *(32|warpSize|\w*WARP\w*)|>> *5", row, re.IGNORECASE) or (
            "threadIdx" not in row and re.search(r"warp", row, re.IGNORECASE)
        ):
            said, value = f"{row}: a row for each warp", "ceil_div(32 * rows, block)"
        elif "threadIdx" in row:
            of = "cols" if self.roles.is_vector else "rows"
            said, value = f"{row}: a thread for each", f"ceil_div({of}, block)"
        else:
            said, value = f"{row}: a block for each row", "rows"
        self.remarks.setdefault("grid", said)
        return value

    def _shared(self) -> int | str:
        if self.answers.shared is not None:
            return self.answers.shared
        if self.launch and len(self.launch.config) > 2:
            try:
                self.remarks["shared"] = f"line {self.launch.line}: the file's own launch"
                return _plain_number(self.translator.formula(self.launch.config[2]))
            except Unknown as unknown:
                self.remarks["shared"] = f"line {self.launch.line}: {unknown} is not known"
        if not declares_dynamic_shared(self.kernel) or self.launch:
            return 0
        self.remarks["shared"] = "nothing in the file says it: a float for each thread or column"
        return "4 * max(block, cols)"

    def conditions(self) -> list[str]:
        """Return what the host asks of rows and cols before it launches."""
        if not self.launch:
            return []
        found = [
            said
            for node, is_true in conditions_before(self.launch)
            for said in self.translator.condition(node, is_true)
        ]
        return [one for one in found if formula(one).names and formula(one).names <= _BOTH]

    def call(self) -> KernelCall:
        """Return the launch as the sidecar has it."""
        arguments: dict[str, int | float | str] = {}
        for parameter in self.kernel.parameters:
            role = self.roles.pointers.get(parameter.name) or self.roles.numbers.get(
                parameter.name, "cols"
            )
            arguments[parameter.name] = _plain_number(role)
        return KernelCall(
            self.kernel.path, self.grid, self.block, arguments, self.template, self.shared
        )


_BOTH = {"rows", "cols"}


def _plain_number(text: str) -> int | float | str:  # type: ignore[return]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _number(text: str) -> Size:
    return int(text) if text.isdigit() else text


def _size(formulas: list[str]) -> Size:
    values = [int(one) if one.isdigit() else one for one in formulas]
    if len(values) > 2:
        raise Unknown("a third dimension")
    return values if len(values) > 1 else values[0]


def _name_workspaces(
    file: CudaFile, pieces: list[_Piece], remarks: dict[str, str]
) -> dict[str, Workspace]:
    """Settle the pointers of all launches together: who passes what on to whom."""
    hosts: dict[str, str] = {}
    last = pieces[-1]
    for piece in pieces:
        for name, role in piece.roles.pointers.items():
            key = piece.hosts.get(name, name)
            if role in MATRICES and hosts.get(key) is None:
                hosts[key] = role
    if len(pieces) > 1:
        hosts = _chained(pieces, hosts)
    spaces: dict[str, Workspace] = {}
    for piece in pieces:
        for name in piece.roles.pointers:
            key = piece.hosts.get(name, name)
            role = hosts.get(key)
            if role is None:
                role = re.sub(r"\W", "_", key).strip("_")
                spaces.setdefault(role, _workspace(file, piece, name, key, role, remarks))
            piece.roles.pointers[name] = role
    if OUTPUT not in hosts.values() and "in_place" not in hosts.values():
        last.questions["arguments"] = f"which argument of {last.kernel.name} is the output?"
    return spaces


def _chained(pieces: list[_Piece], alone: dict[str, str]) -> dict[str, str]:
    """Return the matrices of several launches: the first's input, and what the last one writes."""
    reads = [name for piece in pieces for name in _pointers(piece, is_written=False)]
    writes = [name for piece in pieces for name in _pointers(piece, is_written=True)]
    inputs = [name for name in reads if name not in writes]
    last = _pointers(pieces[-1], is_written=True)
    found = {inputs[0]: INPUT} if inputs else {}
    if last:
        best = [name for name in last if alone.get(name) == OUTPUT] or last
        found[best[-1]] = OUTPUT if inputs else "in_place"
    return found


def _pointers(piece: _Piece, is_written: bool) -> list[str]:
    return [
        piece.hosts.get(name, name)
        for name in piece.roles.pointers
        if (name in piece.roles.written) == is_written
    ]


def _workspace(
    file: CudaFile,
    piece: _Piece,
    name: str,
    host: str,
    role: str,
    remarks: dict[str, str],
) -> Workspace:
    """Return a buffer between kernels, as the host allocates and clears it."""
    size: int | str = "4 * rows"
    initial: float | str | None = None
    place = f"workspace.{role}"
    remarks[f"{place}.bytes"] = "nothing in the file says it: a float for each row"
    for call in (node for node in walk(file.root) if node.type == "call_expression"):
        called = text_of(call.children[0])
        arguments = call.children[-1].named_children
        if not arguments or host not in identifiers(arguments[0]):
            continue
        if called in ("cudaMalloc", "cudaMallocAsync"):
            try:
                size = piece.translator.formula(arguments[1])
                remarks[f"{place}.bytes"] = f"line {call.start_point[0] + 1}: cudaMalloc"
            except Unknown:
                pass
        elif called in ("cudaMemset", "cudaMemsetAsync") and text_of(arguments[1]) == "0":
            initial = "zeros"
            remarks[f"{place}.initial"] = f"line {call.start_point[0] + 1}: {called}"
    is_made = "cudaMalloc" in remarks[f"{place}.bytes"]
    first = not is_made and re.search(
        rf"\batomic\w+\([^;]*\b{re.escape(name)}\b", text_of(piece.kernel.body)
    )
    if initial is None and first:
        initial = "zeros"
        remarks[f"{place}.initial"] = "it is updated by atomics, and nothing in the file fills it"
    return Workspace(size, initial)


def _constants(file: CudaFile, pieces: Iterable[_Piece]) -> dict[str, int | str]:
    """Return the whole numbers that the file names and its kernels or launches use."""
    pieces = list(pieces)
    found: dict[str, int | str] = {}
    device = {text_of(n) for n in walk(file.root) if n.type == "identifier"}
    for name, constant in file.constants.items():
        is_used = name in device
        if _NUMBER.fullmatch(constant.text) and is_used:
            found[name] = int(constant.text, 0)
    for name, constant in file.constants.items():
        used = {name for piece in pieces for name in _names_in(piece)}
        if name in used and name not in found:
            try:
                node = next(
                    n for n in walk(CudaFile(f"int v = {constant.text};").root)
                    if n.type == "init_declarator"
                ).children[-1]  # fmt: skip
                found[name] = Translator(file, None, {}).formula(node)
            except (Unknown, StopIteration):
                continue
    return found


def _names_in(piece: _Piece) -> set[str]:
    said = (piece.grid, piece.block, piece.shared, *piece.template.values())
    return set(re.findall(r"[A-Za-z_]\w*", " ".join(map(str, said))))


def _sizes(file: CudaFile, pieces: list[_Piece]) -> tuple[str | None, str]:
    """Return the sizes that the file itself restricts, and where; kgen finds the others."""
    if all("rows" not in " ".join(map(str, _everything(piece))) for piece in pieces):
        return "rows == 1", "nothing in its launch counts rows"
    conditions = [said for piece in pieces for said in piece.conditions()]
    if conditions:
        return " and ".join(dict.fromkeys(conditions)), "what the host asks before it launches"
    for piece in pieces:
        body = text_of(piece.kernel.body)
        for parameter, role in piece.roles.numbers.items():
            if role == "cols" and "float4" in body:
                quarter = re.search(rf"\b{parameter} */ *4\b|\b{parameter} *>> *2\b", body)
                tail = re.search(
                    r"% *4|& *~?3\b|\* *4 *; *\w+ *<|\b\w+ *\* *4 *\+ *threadIdx", body
                )
                if quarter and not tail:
                    line = (
                        piece.kernel.body.start_point[0] + 1 + body[: quarter.start()].count("\n")
                    )
                    return "cols % 4 == 0", f"line {line}: {quarter[0]}, and no columns behind"
    return None, ""


def _everything(piece: _Piece) -> list[object]:
    return [piece.grid, piece.block, piece.shared, *piece.roles.numbers.values()]


def _op(file: CudaFile, pieces: list[_Piece]) -> tuple[str, str]:
    names = " ".join(piece.kernel.name for piece in pieces)
    if re.search(r"log_?softmax", names, re.IGNORECASE):
        return "log_softmax", "from the kernel's name"
    return "softmax", "log_softmax is the other one"
