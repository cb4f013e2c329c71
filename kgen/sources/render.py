"""Renders a spec into its source text; the only module that knows Jinja."""

from __future__ import annotations

import functools
import hashlib
import textwrap
import traceback
from pathlib import Path
from typing import Any

import jinja2

from kgen.errors import UsageError
from kgen.overlay import Overlay, template_dir
from kgen.sources.dataflow import Dataflow
from kgen.sources.layout import MAX_LINE, NOTHING, laid_out
from kgen.sources.source import Source
from kgen.specs import describe, notes
from kgen.specs.declared import CHOICES_FILE, choices
from kgen.specs.fields import AXES, CHOICE_AXES
from kgen.specs.rules import require_valid
from kgen.specs.spec import DEFAULT_COLS, Spec, differences
from kgen.specs.variants import spelling, stem
from kgen.specs.versions import find_version
from kgen.version import __version__

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


def render(spec: Spec) -> Source:
    """Render a spec, `auto` items resolved for DEFAULT_COLS, into its `.cu` (host: `.cpp`) source.

    Raises UsageError when the rules refuse the spec, or `auto` items cannot cover that length.
    """
    require_valid(spec)
    if spec.in_registers and spec.items_per_thread is None and not spec.static_cols:
        require_valid(spec, 1, DEFAULT_COLS)
    return _render(spec)


@functools.lru_cache(maxsize=4096)
def _render(spec: Spec) -> Source:
    resolved = spec.resolve()
    variant, flow = spelling(spec), Dataflow(resolved)
    name = stem(variant)
    symbols = tuple(name + kernel.suffix for kernel in flow.kernels)
    context = _header(spec, resolved, symbols)
    context |= {"s": resolved, "d": flow, "stem": name, "variant": variant, "symbols": symbols}
    context |= _types(resolved)
    text = laid_out(_filled("softmax.cu.j2", spec, context))
    return Source(resolved, name, text, symbols)


def _types(spec: Spec) -> dict[str, str]:
    """Return the names of types: of input, output, what is kept of a row, and what is computed."""
    return {
        "x_type": spec.dtype.c_type,
        "y_type": spec.out_dtype.c_type,
        "cached": spec.cache_type.c_type,
        "real": spec.compute.c_type,
        "f": spec.compute.suffix,  # of functions and literals: fmaxf, 1.0f
        "largest": spec.compute.largest,
    }


def _filled(name: str, spec: Spec, context: dict[str, Any]) -> str:
    """Return a filled template. Raises UsageError for what is wrong with a user's own templates."""
    folder = spec.overlay.folder
    try:
        return environment(spec.overlay).get_template(name).render(context)
    except _TEMPLATE_ERRORS as error:
        if folder is None:
            raise
        place = _place(error, folder)
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


def _header(spec: Spec, resolved: Spec, symbols: tuple[str, ...]) -> dict[str, Any]:
    parent, changes = describe.lineage(spec)
    return {
        "title": describe.title(resolved),
        "spec_line": describe.spec_line(resolved),
        "parent_line": describe.parent_line(parent, changes),
        "requires": describe.requires(resolved),
        "launch_lines": describe.launch_lines(resolved, symbols),
        "kgen_version": __version__,
        "template_hash": template_hash(spec.overlay),
        "formula_lines": describe.formula_lines(resolved),
        "note": _note(spec),
    }


def _note(spec: Spec) -> str:
    added = [
        f"{axis}={getattr(spec, axis)}"
        for axis in AXES
        if axis in CHOICE_AXES and getattr(spec, axis) not in choices(axis)
    ]
    if spec.overlay.folder and added:
        name = spec.overlay.folder.name
        return f"{' and '.join(added)}: from the templates in {name}; rebuild with --templates."
    is_version = not differences(find_version(spec.version).spec, spec)
    return notes.header_note(spec.version) if is_version else ""


@functools.lru_cache(maxsize=64)
def environment(overlay: Overlay) -> jinja2.Environment:
    """Return the Jinja environment: undefined names are errors, the user's templates come first.

    `kgen/NAME` is always kgen's.
    """
    ours = _Files(template_dir())
    loaders: list[jinja2.BaseLoader] = [ours, jinja2.PrefixLoader({"kgen": ours})]
    if overlay.folder:
        loaders.insert(0, _Files(overlay.folder))
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        auto_reload=False,
        finalize=_printed,
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


def _printed(value: Any) -> Any:
    # An `if` without `else` gives this very class, a misspelt name a strict one.
    return NOTHING if type(value) is jinja2.Undefined else value


def _comment(text: str, indent: int = 0) -> str:
    """Wrap text as the continuation of a `//` comment whose first line is already begun."""
    prefix = "//" + " " * max(indent - 2, 1)
    if len(text) <= MAX_LINE - len(prefix):
        return text
    lines = textwrap.wrap(
        text, MAX_LINE - len(prefix), break_on_hyphens=False, break_long_words=False
    )
    return f"\n{prefix}".join(lines)


@functools.cache
def template_hash(overlay: Overlay) -> str:
    """Return eight hex digits that change when any template of a kernel does."""
    digest = hashlib.sha256()
    for folder in overlay.folders:
        for path in sorted([*folder.rglob("*.j2"), *folder.glob(CHOICES_FILE)]):
            name = path.relative_to(folder)
            if _is_of_kernels(name) and path.is_file():
                digest.update(name.as_posix().encode() + b"\0")
                digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:8]


def _is_of_kernels(name: Path) -> bool:
    """Return whether a template is a kernel's, and not what an editor leaves beside it."""
    return not name.name.endswith(".py.j2") and not any(part.startswith(".") for part in name.parts)
