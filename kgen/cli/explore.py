"""Commands that look: list, show, explain, diff, doctor. None of them runs a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.console import (
    Items,
    Json,
    Threads,
    Variant,
    Vec,
    print_json,
    print_table,
    print_text,
    with_options,
)
from kgen.errors import UsageError
from kgen.specs.fields import AXES, ROW_MAP, format_value, short_name
from kgen.specs.spec import DEFAULT_COLS, DEFAULT_ROWS, Spec

if TYPE_CHECKING:
    from kgen.launch import Launch
    from kgen.sources.source import Source
    from kgen.specs.notes import Note
    from kgen.specs.versions import Version


def list_versions(json: Json = False) -> None:
    """List the named versions: scans of the input, what each is, and its parent with axes set."""
    from kgen.specs.notes import notes
    from kgen.specs.versions import SERIES, VERSIONS

    if json:
        print_json(
            [
                {
                    "name": name,
                    "what": notes()[name].what,
                    "parent": version.parent,
                    "changes": {axis: list(pair) for axis, pair in version.changes.items()},
                    "scans": version.spec.scans,
                    "axes": _axes(version.spec),
                }
                for name, version in VERSIONS.items()
            ]
        )
        return
    print_table(
        "",
        ("version", "scans>", "what it is", "parent: what is set on it"),
        (
            (name, version.spec.scans, notes()[name].what, _of_parent(version))
            for name, version in VERSIONS.items()
        ),
    )
    for series, words in SERIES.items():
        print_text(f"\n{series}: {words}")
    words = ", ".join(short_name(axis) for axis in AXES)
    print_text(f"\nAxes that can be set on any of them (kgen show VERSION explains): {words}")


def _of_parent(version: Version) -> str:
    """Return the version as its parent with axes set, spaced so that lines can be broken."""
    from kgen.specs.variants import spelling

    if not version.parent:
        return "-"
    return (
        spelling(version.spec.replace(version=version.parent)).replace(":", ": ").replace(",", ", ")
    )


def _axes(spec: Spec) -> dict[str, Any]:
    return {axis: getattr(spec, axis) for axis in AXES}


def show(
    variant: Variant,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    rows: Annotated[int | None, typer.Option(help="Rows of the matrix: 1024, or fewer.")] = None,
    cols: Annotated[int | None, typer.Option(help="Elements of a row: 4096, or fewer.")] = None,
    json: Json = False,
) -> None:
    """Show a variant: why it is as it is, the usual mistake; axes, launch, what it requires."""
    from kgen.cli.targets import find_target
    from kgen.execute import source_for, target_spec
    from kgen.launch import plan
    from kgen.specs import describe
    from kgen.specs.notes import notes
    from kgen.specs.rules import static_shared_bytes, usual_shape
    from kgen.specs.variants import spelling

    target = find_target(with_options(variant, items, vec, threads))
    if not isinstance(target, Spec) and target.contract:
        _show_adopted(target, rows or DEFAULT_ROWS, cols or DEFAULT_COLS, json)
        return
    usual_rows, usual_cols = usual_shape(target_spec(target))
    rows, cols = usual_rows if rows is None else rows, usual_cols if cols is None else cols
    source = source_for(target, rows, cols)
    launches = plan(source, rows, cols)
    spec, note = source.spec, notes()[source.spec.version]
    facts = {
        "variant": spelling(target) if isinstance(target, Spec) else str(target.path),
        "title": describe.title(spec),
        "parent": describe.parent_line(*describe.lineage(spec)),
        "requires": describe.requires(spec),
        "scans": spec.scans,
        "static_shared_bytes": static_shared_bytes(spec),
        "dynamic_shared_bytes": spec.shared_bytes(cols),
        "workspace_bytes": launches.workspace_bytes,
    }
    if json:
        runs = [vars(launch) for launch in launches.launches]
        shape = {"rows": rows, "cols": cols, "axes": _axes(spec), "launches": runs}
        why = {"why": note.why, "mistake": note.mistake, "why_changes": note.changes}
        print_json({**facts, **shape, **why})
        return
    print_text(f"{facts['variant']}: {facts['title']}\n")
    _print_note(spec.version, note)
    print_table("", ("", ""), list(facts.items())[2:])
    _print_axes(spec)
    _print_launches(launches.launches, rows, cols)


def _show_adopted(source: Source, rows: int, cols: int, json: bool) -> None:
    """Print the launches of an adopted file; its sidecar has the rest."""
    from kgen.execute import target_name
    from kgen.launch import plan

    launches = plan(source, rows, cols).launches
    if json:
        runs = [{**vars(one), "args": _told(one), "numbers": ()} for one in launches]
        shape = {"rows": rows, "cols": cols}
        print_json({"file": target_name(source), **shape, "launches": runs})
        return
    print_text(f"{target_name(source)}: an adopted file")
    _print_launches(launches, rows, cols)


def _print_launches(launches: Sequence[Launch], rows: int, cols: int) -> None:
    print_table(
        f"\nLaunches on {rows} x {cols}",
        ("kernel", "grid>", "block>", "dynamic shared bytes>", "arguments"),
        (
            (one.kernel, one.grid, one.block, one.shared_bytes, ", ".join(_told(one)))
            for one in launches
        ),
    )


def _told(launch: Launch) -> list[str]:
    """Return a launch's arguments, numbers with their values."""
    values = {number.name: f"{number.name}{number.value}" for number in launch.numbers}
    return [values.get(name, name) for name in launch.args]


def _print_note(version: str, note: Note) -> None:
    """Print what a learner should know of a version; of each of several changes, why it is made."""
    from kgen.specs.describe import change_words
    from kgen.specs.versions import VERSIONS

    print_text(f"Why it is as it is: {note.why}\n")
    if note.changes:
        print_text(f"What changes against {VERSIONS[version].parent}:\n")
    for axis, why in note.changes.items():
        print_text(f"- {change_words({axis: VERSIONS[version].changes[axis]})}: {why}\n")
    print_text(f"The usual mistake: {note.mistake}\n")


def _print_axes(spec: Spec) -> None:
    """Print every axis with its value, and below it what each of its choices is."""
    from kgen.specs.declared import choices

    rows: list[tuple[str, str, str]] = []
    for axis in (*AXES, ROW_MAP):
        help = AXES[axis].metadata["help"] if axis in AXES else "a short word for several of these"
        rows.append((short_name(axis), format_value(getattr(spec, axis)) or "-", help))
        rows += [("", f"- {word}", each.help) for word, each in choices(axis, spec.overlay).items()]
    print_table("\nAxes, and the choices of each", ("axis", "value", "meaning"), rows)


def explain_variant(
    variant: Variant,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of the matrix, to explain a shape: 1.")
    ] = None,
    cols: Annotated[int | None, typer.Option(help="Elements of a row, to explain a shape.")] = None,
    arch: Annotated[
        str | None, typer.Option(help="An architecture that it is for, as in sm_80.")
    ] = None,
    json: Json = False,
) -> None:
    """Say whether a combination is valid; if not, why, and the nearest one that is."""
    from pathlib import Path

    from kgen.adopted.source import is_adopted
    from kgen.cli.targets import used_overlay
    from kgen.sources.edited import read_source
    from kgen.specs.explain import explain
    from kgen.specs.rules import problems_for
    from kgen.specs.rules.shapes import shared_memory_problems
    from kgen.specs.variants import parse, spelling
    from kgen.text import names_a_file
    from kgen.toolchain.occupancy import sm_limits

    shape = _shape(rows, cols)
    text = with_options(variant, items, vec, threads)
    templates = used_overlay()
    is_file = names_a_file(text)
    if is_file and is_adopted(text):
        raise UsageError(
            f"{text} is an adopted file, which has no axes; kgen check says what it is"
        )
    spec = read_source(Path(text), templates).spec if is_file else parse(text, templates)
    limits = None if arch is None else sm_limits(arch)
    found = explain(spec, arch or "")
    on_shape = problems_for(spec, *shape) if shape and not found.problems else []
    if limits and shape and arch and not (found.problems or on_shape):
        on_shape += shared_memory_problems(spec, shape[1], limits.block_shared_bytes, arch)
    reasons = [problem.message for problem in (*found.problems, *on_shape)]
    if json:
        print_json(
            {
                "variant": spelling(spec),
                "valid": not reasons,
                "reasons": reasons,
                "nearest": found.nearest_variant if found.problems else None,
            }
        )
    elif reasons:
        print(f"{spelling(spec)} is refused:")
        for reason in reasons:
            print(f"  - {reason}")
        if found.problems and found.nearest:
            print(f"The nearest valid one is {found.nearest_variant} ({found.nearest_changes}).")
    else:
        print(f"{spelling(spec)} is valid.")
    raise typer.Exit(1 if reasons else 0)


def _shape(rows: int | None, cols: int | None) -> tuple[int, int] | None:
    if cols is not None:
        return (1 if rows is None else rows), cols
    if rows is not None:
        raise UsageError(f"--rows {rows} alone is no shape; give --cols too")
    return None


def doctor(json: Json = False) -> None:
    """Say which compilers, libraries and devices were found, where, and how to get the others."""
    from dataclasses import asdict

    from kgen.doctor import inspect_machine

    findings = inspect_machine()
    if json:
        print_json([asdict(finding) for finding in findings])
        return
    print_table(
        "",
        ("what", "found", "version", "where", "needed for"),
        ((f.what, "yes" if f.found else "no", f.version, f.where, f.needed_for) for f in findings),
    )
    missing = [finding for finding in findings if not finding.found]
    for finding in missing:
        print(f"{finding.what}: {finding.install}")
