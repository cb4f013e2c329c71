"""The constants of an edited file, which its launch takes to be what the header's spec says."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from typing import NamedTuple

import simpleeval

from kgen.sources.render import render
from kgen.specs.fields import AXES, format_value
from kgen.specs.rules import problems
from kgen.specs.spec import Spec

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINITION = re.compile(
    r"\bconst(?:expr)?\s+(?:\w+\s+)*?(\w+)\s*(?:=|\{)\s*([^;{}]+?)\s*\}?\s*;"
    r"|^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)",
    re.MULTILINE,
)
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*([^,;(){}]+)[,)]")
_SUFFIX = re.compile(r"\b(\d\w*?)[uUlL]+\b")
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,  # of whole numbers, as in C++
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


class _Constant(NamedTuple):
    line: int
    name: str
    value: int


def disagreements(text: str, spec: Spec) -> list[str]:
    """Return where a source is not as its spec has it: the line, both numbers, what to change.

    What a constant should be, a source rendered anew says. Of constants that follow from each
    other the first is blamed. What is no number to us (a call, an unknown name) is not judged.
    """
    expected = {one.name: one.value for one in _constants(render(spec).text, {})}
    found = list(_constants(text, expected))
    right = {one.name for one in found if one.value == expected.get(one.name)}
    wrong = [
        _sentence(one.line, one.name, one.value, expected[one.name], spec)
        for one in found
        # Of several definitions the preprocessor chooses one.
        if one.name in expected and one.name not in right
    ]
    return wrong + list(_narrow_bounds(text, spec, expected))


def _constants(text: str, expected: dict[str, int]) -> Iterator[_Constant]:
    """Yield the numbers that a source names, those of `expected` taken as they should be."""
    known: dict[str, int] = {}
    code = _without_comments(text)
    for match in _DEFINITION.finditer(code):
        name = match[1] or match[3]
        value = _value(match[2] or match[4], known | expected)
        if value is not None:
            known[name] = value
            yield _Constant(_line(code, match), name, value)


def _narrow_bounds(text: str, spec: Spec, expected: dict[str, int]) -> Iterator[str]:
    """Yield what is wrong with launch bounds below the block that is launched."""
    known = {one.name: one.value for one in _constants(text, expected)} | expected
    code = _without_comments(text)
    for match in _BOUNDS.finditer(code):
        bound = _value(match[1], known)
        if bound is not None and bound < spec.threads_per_block:
            place = (_line(code, match), "__launch_bounds__")
            yield _sentence(*place, bound, spec.threads_per_block, spec, "threads_per_block")


def _sentence(
    line: int, name: str, value: int, expected: int, spec: Spec, axis: str | None = None
) -> str:
    axis = axis or next((axis for axis in AXES if axis.endswith(name.lower())), None)
    if axis is None:
        return f"line {line} makes {name} {value}, which has to be {expected}: write {expected}"
    said = f"{axis}={format_value(getattr(spec, axis))}"
    here = f"line {line} makes {name} {value}, but the header's spec says {said}"
    if problems(spec.replace(**{axis: value})):
        return f"{here}: write {expected} there"
    return f"{here}: write {expected} there, or {axis}={value} in the header"


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)


def _line(code: str, match: re.Match[str]) -> int:
    return code.count("\n", 0, match.start()) + 1


def _value(expression: str, names: dict[str, int]) -> int | None:
    """Return what a whole-number expression of C++ is, None for anything else."""
    evaluator = simpleeval.SimpleEval(operators=_OPERATORS, functions={}, names=names)
    plain = _SUFFIX.sub(r"\1", expression.replace("'", "")).strip()
    try:
        value = evaluator.eval(plain)
    except (ArithmeticError, SyntaxError, TypeError, ValueError, simpleeval.InvalidExpression):
        return None
    return value if type(value) is int else None
