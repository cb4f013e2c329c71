"""From expressions of C++ to formulas of rows, cols and constants (kgen/specs/formula.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from kgen.adopted.syntax import CudaFile, function_name, parameters_of, text_of, walk

_SIZES = {
    "float": 4, "int": 4, "unsigned": 4, "float2": 8, "float4": 16, "double": 8, "size_t": 8,
    "unsigned int": 4, "char": 1, "unsigned long long": 8, "half": 2, "__half": 2,
}  # fmt: skip
_TRANSPARENT = ("static_cast", "int", "size_t", "unsigned", "float", "double", "dim3")
_DIVISIONS = re.compile(r"^\(?(.+?)\)?\s*/\s*(.+)$")
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MAX_DEPTH = 12


class Unknown(Exception):
    """An expression has a part whose value nobody can know; the message is that part."""


class Translator:
    """Writes expressions of one host function as formulas.

    `known` says what identifiers stand for (`{"M": "rows"}`); others are looked up among the
    function's variables, its callers' arguments, and the file's constants and macros.
    """

    def __init__(self, file: CudaFile, function: Node | None, known: Mapping[str, str]) -> None:
        self.file, self.function, self.known = file, function, dict(known)
        self._depth = 0

    def dimensions(self, node: Node) -> list[str]:
        """Return what a grid or block is: one formula, or one for each dimension of a dim3."""
        parts = self._dim3(node)
        formulas = [self.formula(part) for part in parts]
        while len(formulas) > 1 and formulas[-1] == "1":
            formulas.pop()
        return formulas

    def formula(self, node: Node) -> str:
        """Return an expression as a formula. Raises Unknown."""
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise Unknown(text_of(node))
            return self._made(node)
        finally:
            self._depth -= 1

    def _made(self, node: Node) -> str:
        make = _MAKERS.get(node.type)
        if make is None:
            raise Unknown(text_of(node))
        return make(self, node)

    def _dim3(self, node: Node) -> list[Node]:
        if node.type == "identifier":
            value = self._variable(text_of(node))
            if value is not None and value.type in ("argument_list", "initializer_list"):
                return list(value.named_children)
            return self._dim3(value) if value is not None and _makes_dim3(value) else [node]
        if _makes_dim3(node):
            listed = node.children[-1]
            return list(listed.named_children)
        return [node]

    def _number(self, node: Node) -> str:
        plain = re.sub(r"(?<=[0-9a-fA-F])[uUlLfF]+$", "", text_of(node).replace("'", ""))
        return str(int(plain, 0)) if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", plain) else plain

    def _identifier(self, node: Node) -> str:
        name = text_of(node)
        if name in self.known:
            return self.known[name]
        value = self._variable(name)
        if value is not None:
            if value.type in ("argument_list", "initializer_list"):
                return self.formula(value.named_children[0])
            return self.formula(value)
        if name in self.file.constants:
            return name
        return self._from_caller(name)

    def _variable(self, name: str) -> Node | None:
        """Return the value that a variable of the function is made with."""
        if self.function is None or name in self.known:
            return None
        for node in walk(self.function):
            if node.type == "init_declarator" and text_of(node.children[0]) == name:
                return node.children[-1]
        return None

    def _from_caller(self, name: str) -> str:
        """Return what a caller in the file gives for a parameter of the function."""
        if self.function is None:
            raise Unknown(name)
        names = [parameter.name for parameter in parameters_of(self.function)]
        own = function_name(self.function)
        if name in names:
            for call in walk(self.file.root):
                if call.type == "call_expression" and text_of(call.children[0]) == own:
                    arguments = call.children[-1].named_children
                    if len(arguments) > names.index(name):
                        return self._in_caller(call, arguments[names.index(name)], name)
            default = next(p.default for p in parameters_of(self.function) if p.name == name)
            if re.fullmatch(r"\w+", default):
                return default
        raise Unknown(name)

    def _in_caller(self, call: Node, argument: Node, name: str) -> str:
        from kgen.adopted.syntax import enclosing_function

        return Translator(self.file, enclosing_function(call), self.known).formula(argument)

    def _binary(self, node: Node) -> str:
        operator = text_of(node.children[1])
        if operator not in ("+", "-", "*", "/", "%", "<<", ">>"):
            raise Unknown(text_of(node))
        left, right = (self.formula(node.children[i]) for i in (0, 2))
        if operator == "/" and (up := _rounded_up(left, right)):
            return up
        return f"{_bound(left)} {'//' if operator == '/' else operator} {_bound(right)}"

    def _field(self, node: Node) -> str:
        """Return a dimension of a dim3 variable."""
        if not _is_dimension(node):
            raise Unknown(text_of(node))
        parts = self._dim3(node.children[0])
        at = ("x", "y").index(text_of(node).rpartition(".")[2])
        return self.formula(parts[at]) if at < len(parts) else "1"

    def condition(self, node: Node, is_true: bool = True) -> list[str]:
        """Return the comparisons of sizes that a condition says to be so, or to be not so.

        What else it says is left out.
        """
        while node.type in ("condition_clause", "parenthesized_expression"):
            node = node.named_children[0]
        if node.type != "binary_expression":
            return []
        operator = text_of(node.children[1])
        if operator == ("&&" if is_true else "||"):
            sides = (node.children[0], node.children[2])
            return [said for side in sides for said in self.condition(side, is_true)]
        if operator not in _OPPOSITE:
            return []
        try:
            left, right = (self.formula(node.children[i]) for i in (0, 2))
        except Unknown:
            return []
        return [f"{left} {operator if is_true else _OPPOSITE[operator]} {right}"]

    def _parenthesized(self, node: Node) -> str:
        return self.formula(node.named_children[0])

    def _cast(self, node: Node) -> str:
        return self.formula(node.children[-1])

    def _sizeof(self, node: Node) -> str:
        named = text_of(node)[len("sizeof") :].strip(" ()")
        if named in _SIZES:
            return str(_SIZES[named])
        raise Unknown(text_of(node))

    def _call(self, node: Node) -> str:
        name = re.sub(r"<.*", "", text_of(node.children[0])).rpartition("::")[2]
        arguments = node.children[-1].named_children
        if name in ("min", "max") and len(arguments) == 2:
            return f"{name}({self.formula(arguments[0])}, {self.formula(arguments[1])})"
        if name in ("ceil", "ceilf") and (found := self._ceiling(arguments[0])):
            return found
        if name in _TRANSPARENT and len(arguments) == 1:
            return self.formula(arguments[0])
        return self._expanded(name, [self.formula(argument) for argument in arguments])

    def _ceiling(self, node: Node) -> str:
        while node.type == "parenthesized_expression":
            node = node.named_children[0]
        if node.type != "binary_expression" or text_of(node.children[1]) != "/":
            return ""
        return f"ceil_div({self.formula(node.children[0])}, {self.formula(node.children[2])})"

    def _expanded(self, name: str, values: list[str]) -> str:
        """Return what a macro, or a function of one `return`, makes of its arguments."""
        if name in self.file.macros:
            names, body = self.file.macros[name]
            made = expression(body)
        elif name in self.file.functions:
            function = self.file.functions[name]
            names = tuple(parameter.name for parameter in parameters_of(function))
            returns = [node for node in walk(function) if node.type == "return_statement"]
            made = returns[0].named_children[0] if len(returns) == 1 else None
        else:
            raise Unknown(f"{name}()")
        if made is None or len(names) != len(values):
            raise Unknown(f"{name}()")
        known = dict(zip(names, values, strict=True))
        return Translator(self.file, None, known).formula(made)


def expression(text: str) -> Node | None:
    """Return a text of C++ as the node of its expression, None if it is none."""
    root = CudaFile(f"int f() {{ return {text}; }}").root
    found = next((node for node in walk(root) if node.type == "return_statement"), None)
    return found.named_children[0] if found and found.named_children else None


def _makes_dim3(node: Node) -> bool:
    return node.type in ("call_expression", "compound_literal_expression") and text_of(
        node.children[0]
    ) in ("dim3", "uint3")


def _rounded_up(left: str, right: str) -> str:
    """Return `(a + b - 1) / b` as the rounding up that it is; '' for another division."""
    up = re.escape(right)
    if found := re.fullmatch(rf"\(?(.+?)\)? \+ {up}\)? - 1", left):
        return f"ceil_div({found[1].lstrip('(')}, {right})"
    if found := re.fullmatch(rf"(.+?) \+ \({up} - 1\)", left):
        return f"ceil_div({found[1]}, {right})"
    if right.isdigit() and (found := re.fullmatch(rf"(.+?) \+ {int(right) - 1}", left)):
        return f"ceil_div({found[1]}, {right})"
    return ""


def _bound(text: str) -> str:
    """Return a formula that binds as tightly as a number."""
    return text if re.fullmatch(r"\w+|\w+\([^()]*\)", text) else f"({text})"


def _is_dimension(node: Node) -> bool:
    return text_of(node).rpartition(".")[2] in ("x", "y")


_MAKERS: dict[str, Callable[[Translator, Node], str]] = {
    "number_literal": Translator._number,
    "identifier": Translator._identifier,
    "binary_expression": Translator._binary,
    "parenthesized_expression": Translator._parenthesized,
    "cast_expression": Translator._cast,
    "sizeof_expression": Translator._sizeof,
    "field_expression": Translator._field,
    "call_expression": Translator._call,
}
