"""The command that measures: bench."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgen.cli.complete import complete_variant
from kgen.cli.console import (
    Dtype,
    Json,
    On,
    OutDtype,
    Variants,
    print_json,
    print_table,
    time_option,
    type_words,
)
from kgen.errors import CheckFailed, MachineTrouble, UsageError

if TYPE_CHECKING:
    from kgen.store.measurement import Measurement, Provenance
    from kgen.timing.candidates import Candidate
    from kgen.timing.protocol import Protocol

Db = Annotated[
    Path | None, typer.Option("--db", help="The database that keeps the rows; $KGEN_DB, or yours.")
]


def bench(
    variants: Variants = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows of the matrix.")] = 1024,
    cols: Annotated[int, typer.Option(min=0, help="Elements of a row.")] = 4096,
    dtype: Dtype = None,
    out_dtype: OutDtype = None,
    protocol: Annotated[str, typer.Option(help="How to measure: rotated or report.")] = "rotated",
    l2: Annotated[str | None, typer.Option(help="The L2 cache: cold or warm.")] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="What speed-ups compare with; the first by default.",
            autocompletion=complete_variant,
        ),
    ] = None,
    fail_if_slower: Annotated[
        str | None, typer.Option(help="Exit 1 if a variant is slower than the baseline by 2%, say.")
    ] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Other people's softmax, too.")] = False,
    peer_dir: Annotated[Path | None, typer.Option(help="Folder of the peers' plug-ins.")] = None,
    seconds: Annotated[float | None, time_option(0, "Budget of the rounds.")] = None,
    timeout: Annotated[
        float, time_option(0.1, "Seconds that preparing one candidate may take.")
    ] = 120,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the input and of the order.")] = 42,
    dist: Annotated[str, typer.Option(help="Distribution of the input.")] = "uniform",
    out: Annotated[Path | None, typer.Option(help="Also write this run's rows as JSON.")] = None,
    db: Db = None,
    on: On = "gpu",
    json: Json = False,
) -> None:
    """Measure variants, edited files and peers on a GPU, each verified first.

    All named versions by default. With --on cpu they are verified and counted, not timed. All
    candidates of a run have the same types: --dtype and --out-dtype are those of variants that
    name none.
    """
    from kgen.cli.targets import used_overlay
    from kgen.timing.protocol import find_protocol
    from kgen.timing.provenance import this_run

    limit = _percentage(fail_if_slower)
    how = find_protocol(protocol, l2, budget_s=seconds, seed=seed, input_name=dist)
    typed = {"dtype": dtype, "out_dtype": out_dtype}
    candidates = _candidates(variants, rows, cols, typed, peers, peer_dir)
    ours = [candidate for candidate in candidates if candidate.kind != "copy"]
    require_kernels(on, [candidate.name for candidate in ours if candidate.is_host], len(ours))
    if limit is not None and baseline is None:
        raise UsageError("--fail-if-slower needs --baseline VARIANT to compare with")
    if limit is not None and on == "cpu":
        raise UsageError("--fail-if-slower needs times, which --on cpu does not take")
    base = _baseline(baseline, typed, candidates)
    provenance = this_run(on, overlay=used_overlay())
    measured = measured_rows(candidates, how, provenance, on, base, timeout, db)
    if out:
        from kgen.store.export import write_json

        write_json(out, measured)
    if json:
        from kgen.store.export import objects

        print_json(objects(measured))
    else:
        method = str(how) if on == "gpu" else "verified and counted, not timed"
        types = type_words(*candidates[0].types)
        of_types = f" of {types}" if types else ""
        print_rows(f"{rows} x {cols}{of_types} on {provenance.device}; {method}", measured)
    _judge(measured, limit)


def _candidates(
    variants: Sequence[str] | None,
    rows: int,
    cols: int,
    typed: Mapping[str, str | None],
    peers: bool,
    peer_dir: Path | None,
) -> list[Candidate]:
    from kgen.cli.targets import find_typed
    from kgen.specs.versions import VERSIONS
    from kgen.timing.candidates import line_up
    from kgen.timing.peers import find_peers

    targets = [find_typed(variant, typed) for variant in variants or VERSIONS]
    return line_up(targets, find_peers(peer_dir) if peers or peer_dir else [], rows, cols)


def require_kernels(on: str, hosts: Sequence[str], among: int) -> None:
    """Raise UsageError when a GPU is asked for, and all `among` candidates are for the host."""
    if on == "gpu" and hosts and len(hosts) == among:
        raise UsageError(
            f"{', '.join(dict.fromkeys(hosts))}: plain C++ for the host, no kernel; name a kernel "
            "to time beside it, or verify it alone with --on cpu"
        )


def _baseline(
    baseline: str | None, typed: Mapping[str, str | None], candidates: Sequence[Candidate]
) -> str | None:
    """Return the candidate's name for what the user calls it."""
    from kgen.cli.targets import find_typed
    from kgen.execute import target_name

    names = [candidate.name for candidate in candidates]
    if baseline is None or baseline in names:
        return baseline
    name = target_name(find_typed(baseline, typed))
    if name not in names:
        raise UsageError(f"--baseline {baseline} is not among what is measured; name it there too")
    return name


def _percentage(text: str | None) -> float | None:
    """Read `2%` or `2` as 0.02. Raises UsageError for anything else."""
    if text is None:
        return None
    if not (found := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%?", text.strip())):
        raise UsageError(f"--fail-if-slower {text}: give a percentage such as 2%")
    return float(found[1]) / 100


def measured_rows(
    candidates: Sequence[Candidate],
    how: Protocol,
    provenance: Provenance,
    on: str,
    baseline: str | None,
    timeout: float,
    db: Path | None,
) -> list[Measurement]:
    """Return the rows of candidates, which the database gets as well."""
    from kgen.store.database import open_store
    from kgen.store.journal import Journal
    from kgen.timing.bench import measure
    from kgen.timing.on_cpu import measure_on_cpu
    from kgen.timing.recovery import finish_killed_runs

    with open_store(db) as store:
        finish_killed_runs(journal := Journal(store))
        if on == "cpu":
            return measure_on_cpu(
                candidates, how, provenance, timeout_s=timeout, keep=journal.finish
            )
        return measure(
            candidates, how, provenance, baseline=baseline, prepare_s=timeout, record=journal
        )


def _judge(measured: Sequence[Measurement], limit: float | None) -> None:
    """Raise CheckFailed when a row failed or is slower than it may be."""
    bad = [row for row in measured if row.outcome in ("wrong", "failed")]
    if bad:
        words = "; ".join(f"{row.variant}: {row.reason}" for row in bad)
        raise CheckFailed(f"{len(bad)} of {len(measured)} could not be measured: {words}")
    require_undisturbed(measured)
    if limit is None:
        return
    ours = [row for row in measured if row.kind in ("variant", "file")]
    compared = [row for row in ours if row.speedup_high and row.variant != row.baseline]
    if not compared:
        raise CheckFailed("--fail-if-slower: no variant was timed beside the baseline")
    # Slower for certain: the whole interval of the ratio is.
    slow = [row for row in compared if 1 / (row.speedup_high or 1) > 1 + limit]
    if slow:
        words = ", ".join(f"{row.variant} by {1 / (row.speedup or 1) - 1:.1%}" for row in slow)
        raise CheckFailed(f"slower than {slow[0].baseline} by more than {limit:.1%}: {words}")


def require_undisturbed(measured: Sequence[Measurement]) -> None:
    """Raise MachineTrouble when this machine lacked something for one of the rows' candidates."""
    if stopped := [row for row in measured if row.outcome == "machine trouble"]:
        first = stopped[0]
        raise MachineTrouble(
            f"{len(stopped)} of {len(measured)} met machine trouble and are tried again next time: "
            f"{first.variant} at {first.rows} x {first.cols}: {first.reason}"
        )


def print_rows(title: str, rows: Sequence[Measurement]) -> None:
    """Print measurements as a table: times where there are some, else counts."""
    if any(row.median_us for row in rows):
        columns = (
            "variant", "us>", "+- %>", "GB/s>", "% copy>", "speed-up>", "tied", "regs>",
            "max error>", "remark",
        )  # fmt: skip
        print_table(title, columns, map(_time_cells, rows))
    else:
        columns = (
            "variant", "verdict", "max error>", "loads>", "stores>", "sectors>", "exps>",
            "shuffles>", "barriers>", "remark",
        )  # fmt: skip
        print_table(title, columns, map(_count_cells, rows))


def _time_cells(row: Measurement) -> tuple[Any, ...]:
    if not row.median_us or row.low_us is None or row.high_us is None:
        return (row.variant, *[""] * 8, f"{row.outcome}: {row.reason}")
    spread = 50 * (row.high_us - row.low_us) / row.median_us
    return (
        row.variant,
        f"{row.median_us:.2f}",
        f"{spread:.1f}",
        f"{row.gb_per_s:.0f}",
        f"{row.percent_of_copy:.0f}" if row.percent_of_copy else "",
        f"{row.speedup:.3f}" if row.speedup else "",
        {True: "fastest", False: "", None: ""}[row.is_tied],
        row.registers,
        f"{row.max_abs_error:.1e}" if row.max_abs_error is not None else "",
        row.remark,
    )


def _count_cells(row: Measurement) -> tuple[Any, ...]:
    counts = (
        row.global_loads,
        row.global_stores,
        row.global_sectors,
        row.exponentials,
        row.shuffles,
        row.barriers,
    )
    return (
        row.variant,
        row.outcome,
        f"{row.max_abs_error:.1e}" if row.max_abs_error is not None else "",
        *(f"{count:,}" if count is not None else "" for count in counts),
        row.reason or row.remark,
    )
