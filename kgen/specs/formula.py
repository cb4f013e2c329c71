"""Formulas of declarations: one text that is computed, shown in a header and put into a script.

    blocks = Formula("ceil_div(rows, rows_per_block)")
    blocks.value({"rows": 1025, "rows_per_block": 8})   129
    blocks.known({"rows_per_block": 8}).words           "ceil(rows / 8)"

The language is Python's arithmetic, comparisons and the functions named here; nothing else.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any

from kgen.errors import UsageError
from kgen.text import did_you_mean

_NODES = (
    *(ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name),
    *(ast.Constant, ast.Load, ast.And, ast.Or, ast.operator, ast.unaryop, ast.cmpop),
)


def ceil_div(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)


def is_power_of_two(number: int) -> bool:
    """Whether a positive number is 1, 2, 4, 8, ..."""
    return number & (number - 1) == 0


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil_div": ceil_div,
    "is_power_of_two": is_power_of_two,
    "min": min,
    "max": max,
}
# What operations are written with beside arithmetic; whoever computes them brings the functions.
MATH_FUNCTIONS = ("exp", "log", "abs")


class Formula:
    """A formula, read once. Raises UsageError for a text that is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"{text!r} is not a formula: {error}") from None
        called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            _check(node, text)
        self._tree = tree.body
        self._code = compile(tree, "<formula>", "eval")
        self.names = frozenset(
            node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in called
        )

    def value(self, names: Mapping[str, Any], functions: Mapping[str, Any] = FUNCTIONS) -> Any:
        """Return the value for what the names stand for. Raises NameError for one that is missing.

        Names may stand for arrays where `functions` take them.
        """
        return eval(self._code, {"__builtins__": {}, **functions}, names)

    def of(self, facts: object, **names: Any) -> Any:
        """Return the value, names that are not given being attributes of `facts`."""
        asked = {name: getattr(facts, name) for name in self.names if name not in names}
        return self.value({**asked, **names})

    def known(self, names: Mapping[str, int | Formula]) -> Formula:
        """Return the formula with some names replaced by what they stand for, and simplified."""
        return Formula(ast.unparse(_Replaced(names).visit(ast.parse(self.text, mode="eval").body)))

    def c(self, names: Mapping[str, str]) -> str:
        """Return the formula as C++, names replaced by expressions that bind as tightly."""
        tree = ast.parse(self.text, mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = names.get(node.id, node.id)
        return ast.unparse(tree)

    @property
    def words(self) -> str:
        """The formula as a reader writes it: `ceil(rows / 8)`."""
        return ast.unparse(_Words().visit(ast.parse(self.text, mode="eval").body))

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return formula, (self.text,)


@functools.cache
def formula(text: str) -> Formula:
    """Return the formula of a text, read once."""
    return Formula(text)


def _check(node: ast.AST, text: str) -> None:
    known = (*FUNCTIONS, *MATH_FUNCTIONS)
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in known:
            raise UsageError(f"{text!r}: there is no function {name!r}{did_you_mean(name, known)}")
    elif not isinstance(node, _NODES):
        raise UsageError(f"{text!r}: {ast.unparse(node)} cannot stand in a formula")


class _Replaced(ast.NodeTransformer):
    """Puts in what names stand for, and leaves out what then computes nothing."""

    def __init__(self, names: Mapping[str, int | Formula]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            return node
        found = self.names[node.id]
        text = found.known(self.names).text if isinstance(found, Formula) else repr(found)
        return ast.parse(text, mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        assert isinstance(node.func, ast.Name)
        if len(values) == len(node.args) and node.func.id in FUNCTIONS:
            return ast.Constant(FUNCTIONS[node.func.id](*values))
        return node.args[0] if node.func.id == "ceil_div" and values[-1:] == [1] else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        sides = (node.left, node.right)
        if all(isinstance(side, ast.Constant) for side in sides):
            return ast.Constant(eval(ast.unparse(node)))
        if isinstance(node.op, ast.Mult):
            for side, other in (sides, sides[::-1]):
                if isinstance(side, ast.Constant) and side.value == 1:
                    return other
        return node


class _Words(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        if isinstance(node.func, ast.Name) and node.func.id == "ceil_div":
            quotient = ast.BinOp(node.args[0], ast.Div(), node.args[1])
            return ast.Call(ast.Name("ceil"), [quotient], [])
        return node
