"""The text of an adopted file that compilers get: device code, on the lines where it stands.

Host code, other files' headers and kernels that are not launched become blanks. Kernels get C
names: in place where that is all it takes, and where they are templates or in a namespace by
functions of their own behind the last line, which call what the user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from kgen.adopted.syntax import (
    Constant,
    CudaFile,
    Kernel,
    function_declarator,
    function_name,
    has_qualifier,
    text_of,
    walk,
)

# What a namespace without a name is called, so that kernels in it have names outside.
UNNAMED = "kgen_unnamed"
_HEADERS = re.compile(
    r"c?(float|math|limits|stdint|stddef|assert)(\.h)?$|c?std(int|def|io)(\.h)?$|type_traits$|utility$"
    r"|(cooperative_groups|cuda|cub|thrust|cutlass|cute)/|cooperative_groups|cuda_(fp16|bf16|pipeline)"
    r"|math_constants|mma\.h"
)
_HOST_WORDS = re.compile(
    r"\bcuda[A-Z]\w*(_t\b|\s*\()|\bcublas|\bcudnn|\bstd::(vector|string|chrono|unique|function|map)"
)
_SHORT_FLOATS = re.compile(r"\b__half|\bhalf2?\b|bfloat16\b|__float2half|__half2float")
_CONTAINERS = (
    "translation_unit",
    "declaration_list",
    "preproc_if",
    "preproc_ifdef",
    "preproc_else",
    "preproc_elif",
)
_KEPT = (
    "comment",
    "preproc_def",
    "preproc_function_def",
    "preproc_call",
    "preproc_undef",
    "namespace_alias_definition",
    "alias_declaration",
    "type_definition",
    "static_assert_declaration",
    "concept_definition",
    ";",
)
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")


@dataclass(frozen=True)
class _Headers:
    """Which headers stay: CUDA's, those of small float types where such are used, neighbours."""

    folder: Path | None
    short_floats: bool

    def keep(self, said: str) -> bool:
        """Whether an #include stays."""
        name = said.split()[-1].strip('<>"')
        if self.folder is not None and '"' in said and (self.folder / name).is_file():
            return True
        is_known = bool(_HEADERS.match(name))
        return is_known and (self.short_floats or not re.match(r"cuda_(fp|bf)16", name))


@dataclass(frozen=True)
class Use:
    """A kernel with what its template parameters stand for, and the C name it gets."""

    kernel: Kernel
    template: Mapping[str, str]
    symbol: str

    @property
    def is_in_place(self) -> bool:
        """Whether the kernel itself can have the C name."""
        return not self.kernel.template


Edit = tuple[int, int, bytes]


def device_text(
    file: CudaFile,
    uses: Iterable[Use],
    values: Mapping[str, str],
    folder: Path | None = None,
) -> str:
    """Return what is compiled: device code with `values` where the file's constants have theirs.

    It has the file's lines and, for templates and namespaces, more of them behind the last.
    Headers in quotes stay where `folder` has them.
    """
    used = list(uses)
    needed = _needed(file, [use.kernel for use in used])
    headers = _Headers(folder, bool(_SHORT_FLOATS.search(file.text)))
    edits = list(_blanks(file.root, needed, headers))
    edits += [edit for use in _by_kernel(used) for edit in _named(use)]
    edits += [_value(file.constants[name], values[name]) for name in values]
    text = _edited(file.bytes, edits)
    entries = [_entry(use) for use in used if not use.is_in_place]
    outside = [
        f"using {'::'.join(_spelled(use.kernel.namespaces))}::{use.symbol};"
        for use in used
        if any(use.kernel.namespaces)
    ]
    return "\n".join([text.rstrip("\n"), *entries, *dict.fromkeys(outside)]) + "\n"


def _by_kernel(uses: list[Use]) -> list[Use]:
    return list({use.kernel.path: use for use in uses}.values())


def shared_names(text: str, uses: Iterable[Use]) -> list[str]:
    """Return how linkers call the dynamic shared arrays that kernels in namespaces declare."""
    arrays = set(re.findall(r"\bextern\s+__shared__[^;\[]*?(\w+)\s*\[\s*\]", text))
    spaces = {use.kernel.namespaces for use in uses if use.kernel.namespaces}
    return [
        "_ZN" + "".join(f"{len(part)}{part}" for part in (*_spelled(space), name)) + "E"
        for space in sorted(spaces)
        for name in sorted(arrays)
    ]


def _spelled(namespaces: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name or UNNAMED for name in namespaces)


def _needed(file: CudaFile, kernels: list[Kernel]) -> set[int]:
    """Return where the functions begin that the kernels call, directly or not, and they do."""
    device = {
        node.start_byte: (function_name(node), node)
        for node in walk(file.root)
        if node.type == "function_definition" and not has_qualifier(node, "__global__")
    }
    found = {kernel.definition.start_byte for kernel in kernels}
    # A macro may call anything.
    left = [kernel.node for kernel in kernels]
    left += [n for n in walk(file.root) if n.type in ("preproc_function_def", *_TYPES)]
    while left:
        words = set(re.findall(r"\w+", text_of(left.pop())))
        for start, (name, node) in device.items():
            if start not in found and name.split("::")[-1] in words:
                found.add(start)
                left.append(node)
    return found


def _blanks(node: Node, needed: set[int], headers: _Headers) -> Iterator[Edit]:
    for child in node.children:
        if child.type == "namespace_definition":
            yield from _of_namespace(child, needed, headers)
        elif child.type == "linkage_specification" and child.children[-1].type == _CONTAINERS[1]:
            yield from _blanks(child.children[-1], needed, headers)
        elif child.type in _CONTAINERS:
            yield from _blanks(child, needed, headers)
        elif child.is_named and not _is_kept(child, needed, headers) and not _is_part(child):
            yield child.start_byte, child.end_byte, b""


def _of_namespace(node: Node, needed: set[int], headers: _Headers) -> Iterator[Edit]:
    if node.child_by_field_name("name") is None:
        keyword = node.children[0]
        yield keyword.start_byte, keyword.end_byte, f"inline namespace {UNNAMED}".encode()
    yield from _blanks(node.children[-1], needed, headers)


def _is_part(node: Node) -> bool:
    """Whether a node is a condition of the preprocessor's rather than an item."""
    above = node.parent
    return (
        above is not None
        and above.type.startswith("preproc_")
        and node
        in (
            above.child_by_field_name("condition"),
            above.child_by_field_name("name"),
        )
    )


def _is_kept(node: Node, needed: set[int], headers: _Headers) -> bool:
    if node.type == "preproc_include":
        return headers.keep(text_of(node))
    if node.type == "function_definition":
        return node.start_byte in needed and has_qualifier(
            node, "__global__", "__device__", "constexpr"
        )
    if node.type in ("template_declaration", "linkage_specification"):
        return any(_is_kept(child, needed, headers) for child in node.children if child.is_named)
    if node.type == "declaration":
        return _is_kept_declaration(node)
    if node.type == "using_declaration":
        return "std::" not in text_of(node)
    if node.type in _TYPES:
        return not _HOST_WORDS.search(text_of(node))
    return node.type in _KEPT


def _is_kept_declaration(node: Node) -> bool:
    if function_declarator(node) is not None and has_qualifier(node, "__global__"):
        return False
    words = ("const", "constexpr", "__device__", "__constant__", "__shared__")
    return has_qualifier(node, *words) and not _HOST_WORDS.search(text_of(node))


def _named(use: Use) -> Iterator[Edit]:
    """Yield what gives a kernel its C name, or makes it a function that an entry can call."""
    definition = use.kernel.definition
    for child in definition.children:
        if child.type == "storage_class_specifier" and text_of(child) in ("static", "inline"):
            yield child.start_byte, child.end_byte, b""
    if use.is_in_place:
        linkage = definition.parent is not None and any(
            above.type == "linkage_specification" for above in _above(definition)
        )
        if not linkage:
            yield definition.start_byte, definition.start_byte, b'extern "C" '
        return
    for child in definition.children:
        if child.type == "__global__":
            yield child.start_byte, child.end_byte, b"__device__"
        elif child.type == "launch_bounds":
            yield child.start_byte, child.end_byte, b""
    declarator = function_declarator(definition)
    assert declarator is not None
    name = declarator.children[0]
    yield name.start_byte, name.end_byte, f"{use.kernel.name}_body".encode()


def _above(node: Node) -> Iterator[Node]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _entry(use: Use) -> str:
    """Return the kernel that calls a template as the sidecar has it instantiated."""
    kernel = use.kernel
    parameters = ", ".join(f"{_with(p.type, use.template)} {p.name}" for p in kernel.parameters)
    names = ", ".join(parameter.name for parameter in kernel.parameters)
    values = ", ".join(use.template[parameter.name] for parameter in kernel.template)
    bounds = next((n for n in kernel.definition.children if n.type == "launch_bounds"), None)
    said = _with(text_of(bounds), use.template) + " " if bounds else ""
    body = (
        f'extern "C" __global__ void {said}{use.symbol}({parameters}) '
        f"{{ {kernel.name}_body<{values}>({names}); }}"
    )
    for name in reversed(_spelled(kernel.namespaces)):
        body = f"namespace {name} {{ {body} }}"
    return body


def _with(text: str, template: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda word: template.get(word[0], word[0]), text)


def _value(constant: Constant, value: str) -> Edit:
    return constant.start, constant.end, value.encode()


def _edited(content: bytes, edits: list[Edit]) -> str:
    """Return the content with the edits made; what is blanked keeps its line ends."""
    parts, at = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        if start < at:
            continue  # within what is blanked
        old = content[start:end]
        parts += [content[at:start], new if new else re.sub(rb"[^\n]", b" ", old)]
        at = end
    return b"".join([*parts, content[at:]]).decode()
