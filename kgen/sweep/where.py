"""A user's condition on the points of a sweep: `threads_per_row >= 64 and cache == none`.

simpleeval evaluates the expression, with the nodes and operators that are named here and no others:
no calls, attributes or subscripts, so nothing of Python can be reached from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

import simpleeval

from kgen.errors import UsageError
from kgen.overlay import OURS, Overlay
from kgen.specs.axes import AXIS_NAMES, listed_values, parse_value
from kgen.specs.fields import format_value
from kgen.specs.versions import find_version
from kgen.text import did_you_mean

if TYPE_CHECKING:
    from kgen.sweep.point import Point

MAX_LENGTH = 2000
AUTO = "auto"
# What follows from a spec and can be asked as well.
_DERIVED = (
    "rows_per_block scans tile_cols is_host is_online is_tiled in_registers in_shared keeps_exps "
    "vec_first vec_second"
).split()
_NODES = (
    *(ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare),
    *(ast.Constant, ast.Name, ast.Tuple, ast.List, ast.And, ast.Or, ast.Load),
)
_ORDERINGS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.USub, ast.Not),
    *(ast.Eq, ast.NotEq, ast.In, ast.NotIn, *_ORDERINGS),
)


class Where:
    """A condition on points. Axes that are `auto` equal `auto`, and are neither less nor more.

    Names are the axes, short or in full, `rows`, `cols`, `version`, `variant`, and what follows
    from a spec (`threads_per_row`, `scans`, ...). An axis of words is compared with its choices,
    in quotes or without. Raises UsageError that shows what in the text it cannot read.
    """

    def __init__(self, text: str, overlay: Overlay = OURS) -> None:
        self.text = text
        try:
            self._tree = _parse(text, overlay)
        except UsageError as error:
            raise UsageError(f"where: {error}") from None
        self._evaluator = _evaluator()

    def __call__(self, point: Point) -> bool:
        """Whether the condition holds for a point. Raises UsageError when it has no value."""
        self._evaluator.names = _Names(point)
        try:
            return bool(self._evaluator.eval(self.text, self._tree.body))
        except (ArithmeticError, TypeError, RecursionError, simpleeval.InvalidExpression) as error:
            raise UsageError(
                f"where: {self._culprit()} has no value for {point.variant} at {point.rows} x "
                f"{point.cols}: {error}"
            ) from None

    def _culprit(self) -> str:
        """Return the innermost part of the expression that cannot be computed."""
        parts = [node for node in ast.walk(self._tree.body) if isinstance(node, ast.expr)]
        for part in reversed(parts):
            try:
                self._evaluator.eval(self.text, part)
            except Exception:
                return ast.unparse(part)
        return self.text


def _of_kernel(name: str) -> Callable[[_Names], Any]:
    return lambda at: getattr(at.kernel, name)


class _Names:
    """What names stand for at a point."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.kernel = point.resolved

    def __getitem__(self, word: str) -> Any:
        value = NAMES[word](self)
        return AUTO if value is None else value


NAMES: dict[str, Callable[[_Names], Any]] = {
    "rows": lambda at: at.point.rows,
    "cols": lambda at: at.point.cols,
    "version": lambda at: at.point.spec.version,
    "variant": lambda at: at.point.variant,
    **{word: _of_kernel(axis) for word, axis in AXIS_NAMES.items()},
    **{name: _of_kernel(name) for name in _DERIVED},
    "threads_per_row": lambda at: at.kernel.row_threads,
    AUTO: lambda at: AUTO,
    "true": lambda at: True,
    "false": lambda at: False,
}


def _evaluator() -> Any:
    operators = {kind: simpleeval.DEFAULT_OPERATORS[kind] for kind in _OPERATORS}
    for kind in _ORDERINGS:
        operators[kind] = _ordered(operators[kind])
    made = simpleeval.EvalWithCompoundTypes(operators, functions={})
    made.functions = {}
    made.nodes = {kind: evaluate for kind, evaluate in made.nodes.items() if kind in _NODES}
    return made


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: a != AUTO and b != AUTO and compare(a, b)


def _parse(text: str, overlay: Overlay) -> ast.Expression:
    if len(text) > MAX_LENGTH:
        raise UsageError(f"a condition has at most {MAX_LENGTH} characters")
    try:
        tree: ast.Expression = _WordChooser(overlay).visit(ast.parse(text.strip(), mode="eval"))
    except SyntaxError as error:
        near = (error.text or text).strip()
        raise UsageError(f"{near!r} is not an expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise UsageError(f"{text[:40]!r}... is not an expression that can be read") from None
    for node in ast.walk(tree):
        _check(node)
    return tree


class _WordChooser(ast.NodeTransformer):
    """Turns the words that an axis of words is compared with into its choices."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        axis = next((side.id for side in sides if _is_of_words(side)), None)
        if axis is not None:
            node.left, *node.comparators = (
                side if _is_of_words(side) else _chosen(axis, side, self.overlay) for side in sides
            )
        return node


def _is_of_words(node: ast.expr) -> TypeGuard[ast.Name]:
    if not isinstance(node, ast.Name):
        return False
    return node.id == "version" or bool(listed_values(AXIS_NAMES.get(node.id, "")))


def _chosen(axis: str, node: ast.expr, overlay: Overlay) -> ast.expr:
    match node:
        case ast.Name(id=str(word)) | ast.Constant(value=str(word)):
            return ast.Constant(_choice(axis, word, overlay))
        case ast.Constant(value=bool(value)):
            return ast.Constant(_choice(axis, format_value(value), overlay))
        case ast.Tuple(elts=entries) | ast.List(elts=entries):
            return ast.Tuple([_chosen(axis, entry, overlay) for entry in entries], ast.Load())
    raise UsageError(f"{axis} is compared with {ast.unparse(node)}; {axis} takes words")


def _choice(axis: str, word: str, overlay: Overlay) -> bool | str:
    if axis == "version":
        return find_version(word).name
    choice = parse_value(AXIS_NAMES[axis], word, overlay)
    return choice if isinstance(choice, bool) else str(choice)  # as messages are to show it


def _check(node: ast.AST) -> None:
    """Raise UsageError unless the node is of the language of conditions."""
    if isinstance(node, ast.Name) and node.id not in NAMES:
        raise UsageError(f"there is no name {node.id!r}{did_you_mean(node.id, NAMES)}")
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | str):
        raise UsageError(f"{ast.unparse(node)} is neither a number nor a word")
    if isinstance(node, ast.Compare):
        _check_lists(node)
    if not isinstance(node, (*_NODES, *_OPERATORS)):
        raise UsageError(
            f"{_shown(node)} cannot be used; a condition has names, numbers, words, "
            "+ - * / // %, comparisons, in, and, or, not"
        )


def _check_lists(node: ast.Compare) -> None:
    for comparison, side in zip(node.ops, node.comparators, strict=True):
        is_list = isinstance(side, ast.Tuple | ast.List)
        if is_list is not isinstance(comparison, ast.In | ast.NotIn):
            raise UsageError(
                f"{ast.unparse(node)}: a list stands after `in`, as in cols in (257, 4096), and "
                "only there"
            )


def _shown(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.expr) else f"operator {type(node).__name__}"
