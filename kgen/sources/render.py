"""Renders a spec into its source text; the only module that knows Jinja."""

from __future__ import annotations

import functools
import hashlib
import re
import textwrap
import traceback
from pathlib import Path
from typing import Any

import jinja2

from kgen import __version__
from kgen.errors import UsageError
from kgen.overlay import template_dir, user_template_dir
from kgen.sources.dataflow import Dataflow
from kgen.sources.source import Source
from kgen.specs import describe, notes
from kgen.specs.choices import Exp, Merge, OwnChoice, RowMap, Topology
from kgen.specs.own import CHOICES_FILE
from kgen.specs.rules import require_valid
from kgen.specs.spec import DEFAULT_COLS, Spec
from kgen.specs.variants import spelling, stem
from kgen.specs.versions import find_version

MAX_LINE = 100
# What a template does when it is filled, and a user's may do wrong.
_TEMPLATE_ERRORS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_INDENTED_PRAGMA = re.compile(r"^ +#pragma", re.MULTILINE)


def render(spec: Spec) -> Source:
    """Render a spec, `auto` items resolved for DEFAULT_COLS, into its `.cu` (host: `.cpp`) source.

    Raises UsageError when the rules refuse the spec, or `auto` items cannot cover that length.
    """
    require_valid(spec)
    if spec.in_registers and spec.items_per_thread is None and not spec.static_cols:
        require_valid(spec, 1, DEFAULT_COLS)
    return _render(spec, user_template_dir())


@functools.lru_cache(maxsize=4096)
def _render(spec: Spec, user_folder: Path | None) -> Source:
    resolved = spec.resolve()
    variant, flow = spelling(spec), Dataflow(resolved)
    name = stem(variant)
    symbols = tuple(name + kernel.suffix for kernel in flow.kernels)
    context = _header(spec, resolved, symbols) | _facts(resolved, flow)
    context |= {"s": resolved, "d": flow, "stem": name, "variant": variant, "symbols": symbols}
    return Source(resolved, name, _tidy(_filled("softmax.cu.j2", spec, context)), symbols)


def _filled(name: str, spec: Spec, context: dict[str, Any]) -> str:
    """Return a filled template. Raises UsageError for what is wrong with a user's own templates."""
    user_folder = user_template_dir()
    try:
        return environment(user_folder, spec.own).get_template(name).render(context)
    except _TEMPLATE_ERRORS as error:
        if user_folder is None:
            raise
        place = _place(error, user_folder)
        raise UsageError(f"{place}: the templates cannot be filled: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "a template includes itself; kgen's own is kgen/NAME"
    if isinstance(error, jinja2.TemplateNotFound):
        return f"there is no template {error}"
    return str(error)


def _place(error: Exception, user_folder: Path) -> str:
    """Return the file and line of the innermost template that an error came through.

    A user's own is named if there is one: a fault in kgen's is of what it was given.
    """
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    for folder in (user_folder, template_dir()):
        for frame in reversed(frames):
            if Path(frame.filename).is_relative_to(folder):
                return f"{frame.filename}:{frame.lineno}"
    return str(user_folder)


def _tidy(text: str) -> str:
    """Put pragmas at the left edge and break lines of code that are too long after a comma."""
    lines = _INDENTED_PRAGMA.sub("#pragma", text.rstrip()).split("\n")
    return "\n".join(line if len(line) <= MAX_LINE else _broken(line) for line in lines) + "\n"


def _broken(line: str) -> str:
    cut = line.rfind(", ", 0, MAX_LINE) + 1
    if len(line) <= MAX_LINE or not cut or line.lstrip().startswith("//"):
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return f"{line[:cut]}\n{_broken(indent + line[cut + 1 :])}"


def _header(spec: Spec, resolved: Spec, symbols: tuple[str, ...]) -> dict[str, Any]:
    parent, changes = describe.lineage(spec)
    return {
        "title": describe.title(resolved),
        "spec_line": describe.spec_line(resolved),
        "parent_line": describe.parent_line(parent, changes),
        "requires": describe.requires(resolved),
        "launch_lines": describe.launch_lines(resolved, symbols),
        "kgen_version": __version__,
        "template_hash": template_hash(),
        "note": _note(spec),
    }


def _note(spec: Spec) -> str:
    folder = user_template_dir()
    if folder and spec.own:
        choices = " and ".join(f"{axis}={choice}" for axis, choice in spec.own)
        return f"{choices}: from the templates in {folder.name}; rebuild with --templates."
    return notes.header_note(spec.version) if spec == find_version(spec.version).spec else ""


def _facts(spec: Spec, flow: Dataflow) -> dict[str, Any]:
    shuffles = spec.topology in (Topology.WARP, Topology.TWO_LEVEL, Topology.WARPS_THREAD0)
    states = flow.reduces and spec.merge is Merge.PAIRED
    accesses = flow.vectorises
    return {
        "uses_shuffles": shuffles,
        "uses_warps": shuffles or spec.row_map is RowMap.WARP,
        "reduces_states": states,
        "reduces_floats": flow.reduces and not states,
        "loads_groups": accesses and _loads_groups(spec),
        "stores_groups": accesses and _stores_groups(spec),
        "sections": _sections(spec, flow),
    }


def _loads_groups(spec: Spec) -> bool:
    return spec.vec_first or (spec.vec_second and not spec.in_registers)


def _stores_groups(spec: Spec) -> bool:
    keeps = spec.in_shared or spec.cache == "exps_output"
    return spec.vec_second or (spec.vec_first and keeps)


def _sections(spec: Spec, flow: Dataflow) -> list[str]:
    """Return the templates that make the body, in order: one for each choice that adds code."""
    chosen = [
        ("constants.j2", True),
        ("exp/exp2.j2", spec.exp is Exp.EXP2),
        ("state.j2", flow.uses_state),
        (f"update/{spec.update}.j2", spec.is_online and not spec.is_tiled),
        ("merge.j2", _merges(spec, flow)),
        ("topology/ops.j2", flow.reduces),
        (f"topology/{spec.topology}.j2", flow.reduces),
        ("row_map/grid_stats.j2", spec.row_map is RowMap.GRID),
        (f"unaligned/{spec.unaligned}.j2", flow.vectorises),
        ("cache/values.j2", flow.uses_slots),
        ("cache/row_cache.j2", spec.in_shared),
        ("update/three_pass.j2", not spec.is_online),
        ("update/scan.j2", spec.is_online and not spec.is_tiled),
        ("update/online_tile.j2", spec.is_tiled),
        ("write.j2", True),
        ("kernels.j2", True),
    ]
    return [name for name, is_needed in chosen if is_needed]


def _merges(spec: Spec, flow: Dataflow) -> bool:
    return flow.is_paired or (flow.uses_state and spec.row_map is RowMap.GRID)


@functools.lru_cache(maxsize=64)
def environment(
    user_folder: Path | None = None, own: tuple[tuple[str, OwnChoice], ...] = ()
) -> jinja2.Environment:
    """Return the Jinja environment: undefined names are errors, the user's templates come first.

    The template of a choice of the user's own stands where that of the choice it is like would;
    `kgen/NAME` is always kgen's.
    """
    ours = _Files(template_dir())
    loaders: list[jinja2.BaseLoader] = [ours, jinja2.PrefixLoader({"kgen": ours})]
    if user_folder:
        users = _Files(user_folder)
        chosen = {f"{axis}/{choice.like}.j2": f"{axis}/{choice}.j2" for axis, choice in own}
        loaders = [_Renamed(users, chosen), users, *loaders]
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        auto_reload=False,
    )
    made.filters["comment"] = _comment
    return made


class _Files(jinja2.FileSystemLoader):
    """Loads the templates of a folder: UTF-8, with or without a byte order mark."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, encoding="utf-8-sig")

    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        """Return a template. Raises TemplateNotFound, and UsageError for one that is no text."""
        try:
            return super().get_source(environment, template)
        except UnicodeDecodeError as error:
            raise UsageError(f"{self.searchpath[0]}/{template} is not UTF-8: {error}") from None


class _Renamed(jinja2.BaseLoader):
    """Loads one template where another is asked for."""

    def __init__(self, loader: jinja2.BaseLoader, names: dict[str, str]) -> None:
        self.loader, self.names = loader, names

    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        """Return what the loader has under the other name. Raises TemplateNotFound."""
        if template not in self.names:
            raise jinja2.TemplateNotFound(template)
        return self.loader.get_source(environment, self.names[template])


def _comment(text: str, indent: int = 0) -> str:
    """Wrap text as the continuation of a `//` comment whose first line is already begun."""
    prefix = "//" + " " * max(indent - 2, 1)
    if len(text) <= MAX_LINE - len(prefix):
        return text
    return f"\n{prefix}".join(textwrap.wrap(text, MAX_LINE - len(prefix), break_on_hyphens=False))


def template_hash() -> str:
    """Return eight hex digits that change when any template of a kernel does."""
    return _hash(user_template_dir())


@functools.cache
def _hash(user_folder: Path | None) -> str:
    digest = hashlib.sha256()
    for folder in filter(None, (template_dir(), user_folder)):
        for path in sorted([*folder.rglob("*.j2"), *folder.glob(CHOICES_FILE)]):
            name = path.relative_to(folder)
            if _is_of_kernels(name) and path.is_file():
                digest.update(name.as_posix().encode() + b"\0")
                digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:8]


def _is_of_kernels(name: Path) -> bool:
    """Return whether a template is a kernel's, and not what an editor leaves beside it."""
    return not name.name.endswith(".py.j2") and not any(part.startswith(".") for part in name.parts)
