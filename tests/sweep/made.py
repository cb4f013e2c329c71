"""Rows as a sweep yields them, made up."""

import json

from kgen.specs.variants import parse
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from kgen.timing.statistics import summarize

ROUNDS = 12


def made(
    variant,
    us=None,
    *,
    rows=1024,
    cols=4096,
    samples=None,
    outcome=Outcome.OK,
    kind=Kind.VARIANT,
    run="a",
    device="NVIDIA H200",
    templates="aaaaaaaa",
    measured_at="2026-01-02T03:04:05+00:00",
    **fields,
):
    """A row with `us` in every round, or with the samples that are given."""
    if us is not None:
        samples = [us] * ROUNDS
    if samples is not None:
        times = summarize(samples)
        fields |= {
            "samples_us": tuple(samples),
            "median_us": times.median,
            "low_us": times.low,
            "high_us": times.high,
        }
    if kind is Kind.VARIANT:
        fields["spec"] = json.dumps(parse(variant).resolve(cols).axes)
    return Measurement(
        provenance=Provenance(
            run=run, measured_at=measured_at, device=device, arch="sm_90", templates=templates
        ),
        kind=kind,
        variant=variant,
        rows=rows,
        cols=cols,
        outcome=outcome,
        **fields,
    )


def modelled(variant, us, **fields):
    """A row of a sweep on the CPU."""
    return made(variant, model_us=us, device="cpu", **fields)
