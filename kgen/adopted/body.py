"""What a kernel's body says of its arguments: which are written, what counts rows or columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from kgen.adopted.syntax import (
    CudaFile,
    Kernel,
    Parameter,
    has_qualifier,
    parameters_of,
    text_of,
    walk,
)

_STORES = ("__stcs", "__stcg", "__stwb", "__stwt")
_MAX_DEPTH = 4


def identifiers(node: Node) -> set[str]:
    """Return the names that an expression uses."""
    return {text_of(part) for part in walk(node) if part.type in ("identifier", "field_identifier")}


def declarations(body: Node) -> Iterator[tuple[str, Node]]:
    """Yield the variables of a body, each with the expression that it is made with."""
    for node in walk(body):
        if node.type == "init_declarator":
            name = node.children[0]
            while name.type in ("pointer_declarator", "reference_declarator", "array_declarator"):
                name = name.named_children[0 if name.type == "array_declarator" else -1]
            yield text_of(name), node.children[-1]


def written(file: CudaFile, kernel: Kernel) -> set[str]:
    """Return the pointers among a kernel's parameters that it writes through."""
    return _written(file, kernel.parameters, kernel.body, 0)


def _written(file: CudaFile, parameters: tuple[Parameter, ...], body: Node, depth: int) -> set[str]:
    found = set()
    for parameter in parameters:
        if parameter.is_pointer and not parameter.is_const:
            names = _aliases(body, parameter.name)
            if any(names & one for one in _targets(file, body, depth)):
                found.add(parameter.name)
    return found


def _aliases(body: Node, name: str) -> set[str]:
    """Return the pointers that are made of one: `y_row` of `float* y_row = y + row * cols`."""
    names = {name}
    for made, value in declarations(body):
        above = value.parent
        is_pointer = above is not None and above.children[0].type == "pointer_declarator"
        is_auto = above is not None and above.parent is not None and "auto" in text_of(above.parent)
        if (is_pointer or is_auto) and identifiers(value) & names and not _is_load(value):
            names.add(made)
    return names


def _is_load(value: Node) -> bool:
    return value.type == "subscript_expression"


def _targets(file: CudaFile, body: Node, depth: int) -> Iterator[set[str]]:
    """Yield the names in every expression that something is written to."""
    for node in walk(body):
        if node.type in ("assignment_expression", "update_expression"):
            left = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if left is not None:
                yield _base(left)
        elif node.type == "call_expression":
            yield from _targets_of_call(file, node, depth)


def _base(left: Node) -> set[str]:
    if left.type in ("subscript_expression", "field_expression"):
        return identifiers(left.children[0])
    return identifiers(left) if left.type == "pointer_expression" else set()


def _targets_of_call(file: CudaFile, call: Node, depth: int) -> Iterator[set[str]]:
    name = text_of(call.children[0]).partition("<")[0].rpartition("::")[2]
    arguments = call.children[-1].named_children
    if name.startswith("atomic") or name in _STORES:
        yield identifiers(arguments[0])
    elif name in file.functions and depth < _MAX_DEPTH:
        function = file.functions[name]
        inner = function.child_by_field_name("body")
        assert inner is not None
        listed = parameters_of(function)
        through = _written(file, listed, inner, depth + 1)
        for parameter, argument in zip(listed, arguments, strict=False):
            if parameter.name in through:
                yield identifiers(argument)


@dataclass
class Evidence:
    """What a body says of its integers, each with the expression that says it.

    They multiply a row's number or bound what its threads walk (columns), bound rows, or bound what
    is itself an index (elements of a vector).
    """

    rows: dict[str, str] = field(default_factory=dict)
    cols: dict[str, str] = field(default_factory=dict)
    elements: dict[str, str] = field(default_factory=dict)


def evidence(kernel: Kernel) -> Evidence:
    """Return which integers multiply a row or bound what threads walk (columns), or bound rows."""
    of_block, of_thread = _derived(kernel.body)
    found = Evidence()
    indices = _indices(kernel)
    names = {parameter.name for parameter in kernel.parameters if not parameter.is_pointer}
    for node in walk(kernel.body):
        if node.type != "binary_expression":
            continue
        left, operator, right = node.children[0], text_of(node.children[1]), node.children[2]
        said = f"line {node.start_point[0] + 1}: {' '.join(text_of(node).split())}"
        if operator == "*":
            for side, other in ((left, right), (right, left)):
                if _plain(side) in names and identifiers(other) & (of_block | {"blockIdx"}):
                    found.cols.setdefault(_plain(side), said)
        elif operator in ("<", "<=", ">=", ">") and (name := _plain(right)) in names:
            used = identifiers(left)
            if used & of_block or "blockIdx" in used:
                bounds = found.elements if _plain(left) in indices else found.rows
                bounds.setdefault(name, said)
            elif used & of_thread or "threadIdx" in used or _is_loop(node):
                found.cols.setdefault(name, said)
    return found


def _indices(kernel: Kernel) -> set[str]:
    """Return the names that are by themselves the index into a pointer that the kernel gets."""
    pointers = {parameter.name for parameter in kernel.parameters if parameter.is_pointer}
    return {
        text_of(node.children[1].named_children[0])
        for node in walk(kernel.body)
        if node.type == "subscript_expression"
        and text_of(node.children[0]) in pointers
        and node.children[1].named_children
    }


def _plain(node: Node) -> str:
    """Return the name that a node is, whatever casts and parentheses stand around it."""
    while node.type in ("parenthesized_expression", "cast_expression") or (
        node.type == "call_expression" and "cast<" in text_of(node.children[0])
    ):
        node = node.children[-1]
        if node.type in ("argument_list", "parenthesized_expression"):
            node = node.named_children[0]
        elif node.type == ")":
            node = node.parent.named_children[0] if node.parent else node
    return text_of(node) if node.type == "identifier" else ""


def _is_loop(node: Node) -> bool:
    above = node.parent
    return above is not None and above.type in ("for_statement", "while_statement")


def _derived(body: Node) -> tuple[set[str], set[str]]:
    """Return the variables that name a row (made of blockIdx) and those of a thread alone."""
    of_block: set[str] = set()
    of_thread: set[str] = set()
    for name, value in declarations(body):
        used = identifiers(value)
        if "blockIdx" in used or used & of_block or "group_index" in used:
            of_block.add(name)
        elif "threadIdx" in used or used & of_thread or "thread_rank" in used:
            of_thread.add(name)
    return of_block, of_thread


def row_expression(kernel: Kernel) -> str:
    """Return the first expression of blockIdx in a body: it says which row a thread works on."""
    for _, value in declarations(kernel.body):
        if "blockIdx" in text_of(value):
            return " ".join(text_of(value).split())
    return "blockIdx.x" if "blockIdx" in text_of(kernel.body) else ""


def declares_dynamic_shared(file: CudaFile) -> bool:
    """Whether a file's kernels, or what they call, have dynamic shared memory."""
    made = (node for node in walk(file.root) if node.type == "declaration")
    return any(has_qualifier(node, "extern") and "__shared__" in text_of(node) for node in made)
