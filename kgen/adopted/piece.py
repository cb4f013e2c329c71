"""One launch of a file while it is being guessed: its arguments, grid, block and shared bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from kgen.adopted.arguments import COL_NAMES, ROW_NAMES, Roles, is_named, roles_of
from kgen.adopted.body import declares_dynamic_shared, identifiers, row_expression
from kgen.adopted.conditions import conditions_before
from kgen.adopted.expressions import Translator, Unknown, expression
from kgen.adopted.sidecar import KernelCall, Number, Size
from kgen.adopted.syntax import CudaFile, Kernel, Launch, paired, text_of
from kgen.adopted.usual import UNKNOWN, as_size, names_threads, usual_block, usual_grid
from kgen.specs.formula import formula

NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_BOTH = {"rows", "cols"}


@dataclass(frozen=True)
class Answers:
    """What the user said: kernels by name, and entries by argument or key."""

    kernels: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    grid: str | None = None
    block: str | None = None
    shared: str | None = None


class Piece:
    """One launch while it is being guessed."""

    def __init__(
        self, file: CudaFile, kernel: Kernel, launch: Launch | None, answers: Answers
    ) -> None:
        self.file, self.kernel, self.launch, self.answers = file, kernel, launch, answers
        self.remarks: dict[str, str] = {}
        self.questions: dict[str, str] = {}
        self.roles: Roles = roles_of(file, kernel, answers.arguments)
        self.remarks |= {f"arguments.{k}": v for k, v in self.roles.reasons.items()}
        self.translator = self._translator()
        self.template = self._template()
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
            if self.roles.numbers.get(name) in ("rows", "cols") and host.isidentifier()
        }
        function = self.launch.function if self.launch else None
        free = {"rows", "cols"} - set(known.values())
        for name in identifiers(function) if function else ():
            for role, usual in (("rows", ROW_NAMES), ("cols", COL_NAMES)):
                is_said = len(name) > 1 or name in ("M", "N")
                if role in free and is_said and is_named(name, usual):
                    known.setdefault(name, role)
        return Translator(self.file, self.launch.function if self.launch else None, known)

    def _other_numbers(self) -> None:
        """Settle the numbers that the body says nothing of by what the host passes."""
        for parameter in self.kernel.parameters:
            name = parameter.name
            settled = name in self.roles.numbers and not self._is_computed(name)
            if parameter.is_pointer or settled or name in self.answers.arguments:
                continue
            value = self._passed(name)
            if value is None and name not in self.roles.numbers:
                self.questions[f"arguments.{name}"] = (
                    f"what is {parameter.type} {name} (line {self.kernel.line})? It may be rows, "
                    "cols, a number, or a formula of them."
                )
            elif value is not None:
                self.roles.numbers[name] = value
                self.remarks[f"arguments.{name}"] = "as the file's own launch has it"

    def _is_computed(self, name: str) -> bool:
        """Whether the host passes an expression, which says more than the kernel's use of it."""
        node = self._argument(name)
        return node is not None and node.type == "binary_expression"

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
            given[parameter.name] = self._template_value(value, parameter.type)
        return {name: int(v) if v.isdigit() else v for name, v in given.items()}

    def _template_value(self, value: str, type: str) -> str:
        """Return what a template argument is where the host has a name of its own for it."""
        if type in ("typename", "class"):
            return "float" if value in ("T", "scalar_t") else value
        node = expression(value)
        if node is None or value in self.file.constants:
            return value
        try:
            return self.translator.formula(node)
        except Unknown:
            return value

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
            return as_size(self.answers.block)
        if self.launch and len(self.launch.config) > 1:
            try:
                size = sized(self.translator.dimensions(self.launch.config[1]))
                self.remarks["block"] = f"line {self.launch.line}: the file's own launch"
                return names_threads(self.template, size)
            except Unknown as unknown:
                self.remarks["block"] = f"line {self.launch.line}: {unknown} {UNKNOWN}"
        found, why = usual_block(self.file, self.kernel, self.template)
        self.remarks.setdefault("block", why)
        return found

    def _grid(self) -> Size:
        if self.answers.grid is not None:
            return as_size(self.answers.grid)
        if self.launch and self.launch.config:
            try:
                found = sized(self._dimensions(self.launch.config[0]))
                if isinstance(found, int) and found > 1 and not self._takes_rows():
                    self.remarks["grid"] = f"{found} in the file: a block for each row"
                    return "rows"
                self.remarks["grid"] = f"line {self.launch.line}: the file's own launch"
                return self._in_blocks(found) if isinstance(found, str) else found
            except Unknown as unknown:
                self.remarks["grid"] = f"line {self.launch.line}: {unknown} {UNKNOWN}"
        usual, why = usual_grid(self.file, self.kernel, self.block, self.roles.is_vector)
        self.remarks.setdefault("grid", why)
        return usual

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

    def _shared(self) -> int | str:
        if self.answers.shared is not None:
            return self.answers.shared
        if self.launch and len(self.launch.config) > 2:
            try:
                self.remarks["shared"] = f"line {self.launch.line}: the file's own launch"
                return as_number(self._in_blocks(self.translator.formula(self.launch.config[2])))
            except Unknown as unknown:
                self.remarks["shared"] = f"line {self.launch.line}: {unknown} {UNKNOWN}"
        if not declares_dynamic_shared(self.file) or self.launch:
            return 0
        self.remarks["shared"] = "nothing in the file says it: a float for each thread or column"
        return "4 * max(block, cols)"

    def _in_blocks(self, text: str) -> str:
        """Return a formula with `block` where the host's variable of its threads stood."""
        if not isinstance(self.block, int) or self.block < 32:
            return text
        return re.sub(
            rf"(?<![\w(]){self.block}\b(?= \*)|(?<=, ){self.block}\b(?=\))", "block", text
        )

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
            arguments[parameter.name] = plain_number(role)
        return KernelCall(
            self.kernel.path, self.grid, self.block, arguments, self.template, self.shared
        )


def as_number(text: str) -> Number:
    """Return a formula as the sidecar has it: a number where it is one."""
    return int(text) if text.isdigit() else text


def plain_number(text: str) -> Number | float:
    """Return an argument as the sidecar has it: a number, with a fraction or without, or words."""
    try:
        return float(text) if "." in text else as_number(text)
    except ValueError:
        return text


def sized(formulas: list[str]) -> Size:
    """Return a grid or block as the sidecar has it. Raises Unknown for three dimensions."""
    values = [as_number(one) for one in formulas]
    if len(values) > 2:
        raise Unknown("a third dimension")
    return values if len(values) > 1 else values[0]
