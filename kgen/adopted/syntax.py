"""What a CUDA file holds, as a parser sees it: kernels, launches, constants, functions."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_QUALIFIERS = ("__global__", "__device__")
_UNREAD = re.compile(rb"\b__(?:align|cluster_dims)__\s*\(\s*[\w, ]+\s*\)")
_NAME_NODES = ("identifier", "field_identifier", "type_identifier")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, or of its template: `type` as written, without the name."""

    name: str
    type: str
    default: str = ""

    @property
    def is_pointer(self) -> bool:
        """Whether it is a pointer."""
        return "*" in self.type

    @property
    def is_const(self) -> bool:
        """Whether it is a pointer to what may not be written."""
        return self.is_pointer and "const" in self.type.partition("*")[0].split()

    @property
    def element(self) -> str:
        """The type without qualifiers and the `*`: `float` of `const float* __restrict__`."""
        words = self.type.replace("*", " ").replace("&", " ").split()
        return " ".join(word for word in words if word not in ("const", "volatile", "__restrict__"))


@dataclass(frozen=True)
class Kernel:
    """A `__global__` function with a body; `node` is its definition, template and all."""

    name: str
    namespaces: tuple[str, ...]
    template: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    line: int
    node: Node
    definition: Node
    body: Node

    @property
    def path(self) -> str:
        """Its name with its namespaces, as C++ spells it."""
        return "::".join((*filter(None, self.namespaces), self.name))


@dataclass(frozen=True)
class Launch:
    """A `kernel<<<grid, block, shared>>>(arguments)`, each as the node of its expression."""

    kernel: str
    template: tuple[str, ...]
    config: tuple[Node, ...]
    arguments: tuple[Node, ...]
    line: int
    function: Node | None
    node: Node


@dataclass(frozen=True)
class Constant:
    """A number that the file names: where its value stands (bytes), and what stands there."""

    name: str
    text: str
    start: int
    end: int
    line: int


class CudaFile:
    """A file that was parsed; what it holds is found when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bytes = text.encode()
        # The grammar takes `struct __align__(8) Name` for a function, for one.
        plain = _UNREAD.sub(lambda found: b" " * len(found[0]), self.bytes)
        self.root = _parser().parse(plain).root_node

    @functools.cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the file defines, in its order."""
        return tuple(_kernels(self.root, ()))

    @functools.cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches in the file's own host code, in its order."""
        calls = (node for node in walk(self.root) if node.type == "call_expression")
        return tuple(
            _launch(call)
            for call in calls
            if any(child.type == "kernel_call_syntax" for child in call.children)
        )

    @functools.cached_property
    def constants(self) -> dict[str, Constant]:
        """The numbers that the file names at its top (#define, constexpr, const), by name."""
        found = (
            constant
            for node in walk(self.root)
            if node.type in ("preproc_def", "declaration") and enclosing_function(node) is None
            for constant in _constants(node)
        )
        return {constant.name: constant for constant in found}

    @functools.cached_property
    def macros(self) -> dict[str, tuple[tuple[str, ...], str]]:
        """The macros with parameters: name -> parameters and what they stand for."""
        return {
            text_of(node.children[1]): (_names(node.children[2]), text_of(node.children[-1]))
            for node in walk(self.root)
            if node.type == "preproc_function_def"
        }

    @functools.cached_property
    def functions(self) -> dict[str, Node]:
        """The functions with a body, kernels among them: name -> definition."""
        return {
            name: node
            for node in walk(self.root)
            if node.type == "function_definition" and (name := function_name(node))
        }


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode()


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, in the order of the text."""
    yield node
    for child in node.children:
        yield from walk(child)


def line_of(node: Node) -> int:
    """Return the line, from 1, where a node begins."""
    return int(node.start_point[0]) + 1


def enclosing_function(node: Node) -> Node | None:
    """Return the definition of the function that a node stands in, in a lambda of it or not."""
    above = node.parent
    while above is not None and above.type != "function_definition":
        above = above.parent
    return above


def has_qualifier(node: Node, *names: str) -> bool:
    """Whether a declaration or definition says one of these words (`__global__`) about itself."""
    return any(
        child.type in names
        or (child.type in _SPECIFIERS and any(word in names for word in text_of(child).split()))
        for child in node.children
    )


_SPECIFIERS = ("type_qualifier", "storage_class_specifier")


def function_name(node: Node) -> str:
    """Return the name of a function's definition or declaration, '' if it has none."""
    declarator = function_declarator(node)
    return text_of(declarator.children[0]) if declarator else ""


def function_declarator(node: Node) -> Node | None:
    """Return the part of a definition with the function's name and parameters."""
    found = node.child_by_field_name("declarator")
    while found is not None and found.type != "function_declarator":
        found = found.child_by_field_name("declarator")
    return found


def parameters_of(node: Node) -> tuple[Parameter, ...]:
    """Return the parameters of a function's definition."""
    declarator = function_declarator(node)
    listed = declarator.child_by_field_name("parameters") if declarator else None
    return tuple(map(_parameter, listed.named_children)) if listed else ()


def _kernels(node: Node, namespaces: tuple[str, ...]) -> Iterator[Kernel]:
    for child in node.children:
        if child.type == "namespace_definition":
            name = child.child_by_field_name("name")
            inner = (*namespaces, *(text_of(name).split("::") if name else ("",)))
            yield from _kernels(child, inner)
        elif child.type == "template_declaration":
            yield from _kernels_of_template(child, namespaces)
        elif child.type == "function_definition":
            if has_qualifier(child, "__global__"):
                yield _kernel(child, child, (), namespaces)
        else:
            yield from _kernels(child, namespaces)


def _kernels_of_template(node: Node, namespaces: tuple[str, ...]) -> Iterator[Kernel]:
    listed = next(child for child in node.children if child.type == "template_parameter_list")
    for child in node.children:
        if child.type == "function_definition" and has_qualifier(child, "__global__"):
            template = tuple(map(_parameter, listed.named_children))
            yield _kernel(node, child, template, namespaces)


def _kernel(
    node: Node, definition: Node, template: tuple[Parameter, ...], namespaces: tuple[str, ...]
) -> Kernel:
    body = definition.child_by_field_name("body")
    assert body is not None
    name = function_name(definition)
    where = (line_of(definition), node, definition, body)
    return Kernel(name, namespaces, template, parameters_of(definition), *where)


def _parameter(node: Node) -> Parameter:
    default = node.child_by_field_name("default_value") or node.child_by_field_name("default_type")
    value = text_of(default) if default else ""
    names = [part for part in walk(node) if part.type in _NAME_NODES]
    if default:
        names = [part for part in names if part.end_byte <= default.start_byte]
    if not names or node.child_count < 2:
        return Parameter("", text_of(node))
    name = names[-1]
    said = text_of(node)
    before = said[: name.start_byte - node.start_byte].strip()
    return Parameter(text_of(name), before, value)


def _launch(call: Node) -> Launch:
    function = call.children[0]
    config = next(child for child in call.children if child.type == "kernel_call_syntax")
    arguments = call.child_by_field_name("arguments")
    template: tuple[str, ...] = ()
    listed = next((n for n in walk(function) if n.type == "template_argument_list"), None)
    if listed:
        template = tuple(map(text_of, listed.named_children))
    name = text_of(function).partition("<")[0].rpartition("::")[2].strip()
    return Launch(
        name,
        template,
        tuple(config.named_children),
        tuple(arguments.named_children) if arguments else (),
        line_of(call),
        enclosing_function(call),
        call,
    )


def _constants(node: Node) -> Iterator[Constant]:
    if node.type == "preproc_def":
        if node.child_count > 2:
            yield _constant(node.children[1], node.children[2])
    elif has_qualifier(node, "constexpr", "const"):
        for part in node.children:
            if part.type == "init_declarator":
                yield _constant(part.children[0], part.children[-1])


def _constant(name: Node, value: Node) -> Constant:
    said = text_of(value).partition("//")[0].partition("/*")[0]
    start = value.start_byte + len(said) - len(said.lstrip())
    text = said.strip()
    return Constant(text_of(name), text, start, start + len(text.encode()), line_of(name))


def _names(node: Node) -> tuple[str, ...]:
    return tuple(text_of(child) for child in node.named_children if child.type == "identifier")


def paired(names: tuple[Parameter, ...], values: tuple[str, ...]) -> dict[str, str]:
    """Return what each template parameter stands for: what is given, else its default."""
    pairs = itertools.zip_longest(names, values[: len(names)], fillvalue="")
    return {
        name.name: value or name.default for name, value in pairs if isinstance(name, Parameter)
    }
