"""Commands that run kernels: run, check."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.console import (
    Items,
    Json,
    On,
    Threads,
    Variant,
    Variants,
    Vec,
    print_json,
    print_table,
    print_text,
    time_option,
    with_options,
)
from kgen.errors import CheckFailed, KernelFault, KernelTimeout, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kgen.evidence.check import CheckRow
    from kgen.evidence.failures import Finding
    from kgen.execute import Target
    from kgen.sources.source import Source
    from kgen.specs.choice import Element


def run(
    variant: Variant,
    items: Items = None,
    vec: Vec = None,
    threads: Threads = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="A .npy of the variant's dtype, 1-D or 2-D.")
    ] = None,
    output_file: Annotated[
        Path | None, typer.Option("--output", help="Where to write y.npy.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of a made input: 4.")] = None,
    cols: Annotated[int | None, typer.Option(help="Elements of its rows: 257.")] = None,
    dist: Annotated[str | None, typer.Option(help="Its distribution: uniform.")] = None,
    seed: Annotated[int | None, typer.Option(help="Its seed: 42.")] = None,
    timeout: Annotated[float, time_option(0.1, "Seconds that the kernels may take.")] = 120,
    on: On = "cpu",
    json: Json = False,
) -> None:
    """Compute the softmax of a matrix with a variant (or an edited .cu) and verify it."""
    from kgen.adopted.inputs import verdict_on
    from kgen.cli.targets import find_target
    from kgen.execute import as_matrix, source_for, target_name, target_spec
    from kgen.execute import run as run_target

    target = find_target(with_options(variant, items, vec, threads))
    element = target_spec(target).dtype
    x = _input(input_file, {"rows": rows, "cols": cols, "dist": dist, "seed": seed}, element)
    matrix = as_matrix(x, element)
    source = source_for(target, *matrix.shape)
    try:
        y = run_target(target, x, on, timeout_s=timeout)
    except KernelTimeout:
        raise
    except KernelFault as fault:
        raise CheckFailed(_cause(source, matrix, on, timeout) + str(fault)) from None
    if output_file:
        _save(output_file, y)
    verdict, told = verdict_on(source, y.reshape(matrix.shape), matrix)
    facts = {
        "variant": target_name(target),
        "on": on,
        "shape": list(x.shape),
        "output": str(output_file) if output_file else None,
        "ok": verdict.ok,
        "max_abs_error": verdict.max_abs_error,
        "max_rel_error": verdict.max_rel_error,
        "row_sum_error": verdict.row_sum_error,
        **({"told": told} if told else {}),
    }
    if json:
        print_json(facts)
    else:
        print_table("", ("", ""), list(facts.items()))
    if not verdict.ok:
        why = _cause(source, matrix, on, timeout) + verdict.reason
        raise CheckFailed(f"{target_name(target)} on {on} is wrong: {why}")


def _cause(source: Source, x: NDArray[Any], on: str, timeout: float) -> str:
    """Return what an observed run finds first in a kernel that is wrong, to stand before that."""
    from kgen.evidence.check import observed_rows
    from kgen.evidence.failures import causes

    if on != "cpu":
        return ""
    found = causes(source, x[: observed_rows(source.spec)], "in_order", timeout)
    return f"{found[0].message}; so " if found else ""


_DEFAULTS: dict[str, Any] = {"dist": "uniform", "rows": 4, "cols": 257, "seed": 42}


def _input(file: Path | None, options: dict[str, Any], element: Element) -> NDArray[Any]:
    """Return the matrix of a file, or one that is made. Raises UsageError when asked for both."""
    given = {name: value for name, value in options.items() if value is not None}
    if not file:
        return _made(**{**_DEFAULTS, **given}, element=element)
    if given:
        raise UsageError(f"--input {file} is a matrix already; leave --{next(iter(given))} out")
    from kgen.evidence.arrays import load

    return load(file, element)


def _made(dist: str, rows: int, cols: int, seed: int, element: Element) -> NDArray[Any]:
    from kgen.evidence.inputs import make

    try:
        return make(dist, rows, cols, seed, element)
    except ValueError as error:  # NumPy's, of a size or seed that it has no number for
        raise UsageError(f"no input of {rows} x {cols} with seed {seed}: {error}") from None


def _save(path: Path, y: NDArray[Any]) -> None:
    import io

    import numpy as np

    from kgen.files import write_atomically

    buffer = io.BytesIO()
    np.save(buffer, y)
    write_atomically(path, buffer.getvalue())


def check(
    variants: Variants = None,
    rows: Annotated[
        int | None, typer.Option(min=0, help="Check this shape instead of the usual.")
    ] = None,
    cols: Annotated[
        int | None, typer.Option(min=0, help="Check this shape instead of the usual.")
    ] = None,
    inputs: Annotated[list[str] | None, typer.Option("--input", help="Only these inputs.")] = None,
    schedule: Annotated[
        str | None, typer.Option(help="Only this order of threads on the CPU.")
    ] = None,
    timeout: Annotated[float, time_option(0.1, "Seconds that a kernel may take.")] = 60,
    memory: Annotated[
        bool, typer.Option("--memory", help="Observe on the CPU; fail on undefined accesses.")
    ] = False,
    races: Annotated[
        bool, typer.Option("--races", help="Observe on the CPU; fail on unordered accesses.")
    ] = False,
    on: On = "cpu",
    json: Json = False,
) -> None:
    """Verify variants against float64: all named ones by default, at boundary sizes."""
    from kgen.cli.targets import find_target
    from kgen.evidence.check import SCHEDULES
    from kgen.evidence.failures import findings
    from kgen.execute import require_place
    from kgen.specs.versions import VERSIONS

    require_place(on)
    if (rows is None) != (cols is None):
        raise UsageError("a shape needs both --rows and --cols")
    shapes = None if rows is None or cols is None else [(rows, cols)]
    targets = [find_target(variant) for variant in variants or VERSIONS]
    remarks: list[str] = []
    if on == "gpu":
        targets = [target for target in targets if not target.is_host]
        if not targets:
            raise UsageError("host versions do not run on a GPU; check them with --on cpu")
    verdicts = _check_all(
        targets,
        remarks,
        on=on,
        shapes=shapes,
        inputs=tuple(inputs or ()),
        schedules=(schedule,) if schedule else SCHEDULES,
        timeout_s=timeout,
        memory=memory,
        races=races,
    )
    checks = [row for group in verdicts for row in group]
    failed = findings(checks)
    if json:
        found = {"checks": [_facts(row) for row in checks], "failures": list(map(vars, failed))}
        print_json(found | ({"remarks": remarks} if remarks else {}))
    else:
        _print_verdicts(verdicts, on)
        for remark in remarks:
            print_text(remark)
        _print_failures(failed)
    if failed:
        raise CheckFailed(_failure_words(checks, failed))


def _facts(row: CheckRow) -> dict[str, Any]:
    """Return a row without its failures, which are told once for all shapes."""
    return {name: value for name, value in vars(row).items() if name != "failures"} | {"ok": row.ok}


def _check_all(
    targets: list[Target], remarks: list[str], on: str, **how: Any
) -> list[list[CheckRow]]:
    """Check the targets side by side on the CPU (each run is a process), in turn on the GPU.

    What is told of adopted files and fails nothing becomes `remarks`.
    """
    import os

    from kgen.processes import thread_pool

    workers = (os.cpu_count() or 1) if on == "cpu" else 1
    with thread_pool(workers) as pool:
        judged = list(pool.map(lambda target: _checked(target, on, how), targets))
    remarks += [remark for _, told in judged for remark in told]
    return [rows for rows, _ in judged]


def _checked(target: Target, on: str, how: dict[str, Any]) -> tuple[list[CheckRow], list[str]]:
    from kgen.adopted.check import check_adopted
    from kgen.evidence.check import check as check_target
    from kgen.evidence.inputs import ALL_INPUTS
    from kgen.execute import target_name
    from kgen.sources.source import Source

    if isinstance(target, Source) and target.contract:
        judged = check_adopted(target, on, **how)
        return judged.rows, [f"{target_name(target)}: {told}" for told in judged.remarks]
    usual = {**how, "inputs": how["inputs"] or ALL_INPUTS}
    return list(check_target(target, on, diagnose=True, **usual)), []


def _print_verdicts(verdicts: list[list[CheckRow]], on: str) -> None:
    rows = []
    for group in verdicts:
        bad = sum(not row.ok for row in group)
        rows.append(
            (
                group[0].variant if group else "?",
                len(group),
                f"{max((row.max_abs_error for row in group), default=0):.2e}",
                f"{max((row.max_rel_error for row in group), default=0):.2e}",
                "ok" if not bad else f"{bad} FAILED",
            )
        )
    columns = ("variant", "shapes>", "max abs error>", "max error / row max>", "verdict")
    print_table(f"on the {on.upper()}, against float64", columns, rows)


def _print_failures(failed: list[Finding]) -> None:
    """Print a table for each variant: what failed, and where."""
    for variant, found in groupby(failed, key=lambda finding: finding.variant):
        rows = [
            (one.kind, ", ".join(map(str, one.lines)), one.where, one.message.partition("\n")[0])
            for one in found
        ]
        print_table(f"what failed in {variant}", ("kind", "line>", "at", "the first"), rows)


def _failure_words(checks: list[CheckRow], failed: list[Finding]) -> str:
    first, bad = failed[0], sum(not row.ok for row in checks)
    others = f"; and {len(failed) - 1} more of what failed" if len(failed) > 1 else ""
    return (
        f"{bad} of {len(checks)} check{'s' * (len(checks) > 1)} failed: {first.variant} at "
        f"{first.where}: {first.message}{others}"
    )
