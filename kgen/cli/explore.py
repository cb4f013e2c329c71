"""Commands that look: list, show, explain, diff, doctor. None of them runs a kernel."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kgen.cli.console import (
    Items,
    Json,
    Threads,
    Vec,
    print_json,
    print_rich,
    print_table,
    with_options,
)
from kgen.specs.spec import AXES, Spec, format_value, short_name


def list_versions(json: Json = False) -> None:
    """List the named versions: parent, what changes against it, scans of the input."""
    from kgen.specs.describe import change_words
    from kgen.specs.versions import VERSIONS

    if json:
        print_json(
            [
                {
                    "name": name,
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
        ("version", "parent", "scans>", "what changes against the parent"),
        (
            (name, version.parent or "-", version.spec.scans, change_words(version.changes) or "-")
            for name, version in VERSIONS.items()
        ),
    )
    words = ", ".join(short_name(axis) for axis in AXES)
    print(f"\nAxes that can be set on any of them (kgen show VERSION explains): {words}")


def _axes(spec: Spec) -> dict[str, Any]:
    return {axis: getattr(spec, axis) for axis in AXES}


def show(
    variant: str,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    rows: Annotated[int, typer.Option(help="Rows of the matrix.")] = 1024,
    cols: Annotated[int, typer.Option(help="Elements of a row.")] = 4096,
    json: Json = False,
) -> None:
    """Show a variant: axes, launch, shared memory, what it requires, what to know of it."""
    from kgen.cli.targets import find_target
    from kgen.execute import source_for
    from kgen.launch import plan
    from kgen.specs import describe
    from kgen.specs.axes import choices
    from kgen.specs.notes import notes
    from kgen.specs.rules import static_shared_bytes
    from kgen.specs.variants import spelling

    target = find_target(with_options(variant, items, vec, threads))
    source = source_for(target, rows, cols)
    launches = plan(source, rows, cols)
    spec, note = source.spec, notes().get(source.spec.version)
    parent, changes = describe.lineage(spec)
    facts = {
        "variant": spelling(target) if isinstance(target, Spec) else str(target.path),
        "title": describe.title(spec),
        "parent": describe.parent_line(parent, changes),
        "requires": describe.requires(spec),
        "scans": spec.scans,
        "static_shared_bytes": static_shared_bytes(spec),
        "dynamic_shared_bytes": spec.shared_bytes(cols),
        "workspace_bytes": launches.workspace_bytes,
    }
    if json:
        runs = [vars(launch) for launch in launches.launches]
        why = {"why": note.why, "mistake": note.mistake} if note else {}
        print_json(
            {**facts, "rows": rows, "cols": cols, "axes": _axes(spec), "launches": runs} | why
        )
        return
    print_table(f"{facts['variant']}: {facts['title']}", ("", ""), list(facts.items())[2:])
    print_table(
        "\nAxes",
        ("axis", "value", "choices", "meaning"),
        (
            (
                short_name(axis),
                format_value(getattr(spec, axis)),
                choices(axis, spec.overlay),
                AXES[axis].metadata["help"],
            )
            for axis in AXES
        ),
    )
    print_table(
        f"\nLaunches on {rows} x {cols}",
        ("kernel", "grid>", "block>", "dynamic shared bytes>", "arguments"),
        ((k.kernel, k.grid, k.block, k.shared_bytes, ", ".join(k.args)) for k in launches.launches),
    )
    if note:
        print(f"\nWhy it is as it is: {note.why}\n\nThe usual mistake: {note.mistake}")


def explain_variant(
    variant: str,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    rows: Annotated[int, typer.Option(help="Rows of the matrix, to explain a shape.")] = 0,
    cols: Annotated[int, typer.Option(help="Elements of a row, to explain a shape.")] = 0,
    json: Json = False,
) -> None:
    """Say whether a combination is valid; if not, why, and the nearest one that is."""
    from pathlib import Path

    from kgen.cli.targets import overlay
    from kgen.sources.edited import read_source
    from kgen.specs.explain import explain
    from kgen.specs.rules import problems_for
    from kgen.specs.variants import parse, spelling
    from kgen.text import names_a_file

    text = with_options(variant, items, vec, threads)
    templates = overlay()
    is_file = names_a_file(text)
    spec = read_source(Path(text), templates).spec if is_file else parse(text, templates)
    found = explain(spec)
    on_shape = [] if found.problems else problems_for(spec, rows or 1, cols) if cols else []
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


def diff(
    old: Annotated[str, typer.Argument(help="A variant, or the path of a .cu file.")],
    new: Annotated[str, typer.Argument(help="A variant, or the path of a .cu file.")],
    body: Annotated[bool, typer.Option("--body", help="Leave the files' headers out.")] = False,
    json: Json = False,
) -> None:
    """Show what differs between two variants or files: as axes, and as sources."""
    from rich.text import Text

    from kgen.sources.diff import compare, styled

    difference = compare(_any_source(old), _any_source(new), body_only=body)
    if json:
        print_json({"fields": difference.fields, "diff": difference.text_diff})
        return
    for axis, (before, after) in difference.fields.items():
        print(f"{short_name(axis)}: {format_value(before)} -> {format_value(after)}")
    if not difference.fields:
        print("same axes")
    print()
    for line, style in styled(difference.text_diff):
        print_rich(Text(line, style=style))


def _any_source(text: str) -> Any:
    from kgen.cli.targets import find_target
    from kgen.sources.render import render

    target = find_target(text)
    return render(target) if isinstance(target, Spec) else target


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
