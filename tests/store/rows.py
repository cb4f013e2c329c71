"""Measurements for tests: a plain one with changes, one with its fields set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kgen.store.measurement import Kind, Measurement, Outcome, Provenance

PLAIN = Measurement(
    provenance=Provenance(
        run="run-1", measured_at="2026-11-30T08:13:57+00:00", device="NVIDIA H200"
    ),
    kind=Kind.VARIANT,
    variant="v7",
    rows=1024,
    cols=4096,
    outcome=Outcome.OK,
)
FULL = Measurement(
    provenance=Provenance(
        run="run-2",
        measured_at="2026-12-01T10:00:00+00:00",
        device="NVIDIA H200",
        device_uuid="GPU-1f",
        arch="sm_90",
        driver="580.1",
        toolchain="13.0.88",
        kgen="0.1.0",
        templates="c5d54bb2",
        commit="6f44f9b23c0e",
    ),
    kind=Kind.VARIANT,
    variant="v7:items=4,threads=512",
    rows=1024,
    cols=4096,
    outcome=Outcome.OK,
    dtype="bfloat16",
    out_dtype="float32",
    spec='{"version": "v7", "vec_size": 1, "trip": null}',
    source_hash="ab12",
    flags='it\'s "fine",\nsays né',
    registers=32,
    stack_bytes=8,
    spill_store_bytes=4,
    spill_load_bytes=0,
    shared_bytes=128,
    max_abs_error=6.9e-8,
    max_rel_error=8.96e-7,
    input_name="uniform",
    seed=42,
    protocol_name="steady",
    protocol='{"rounds": 3, "l2": "warm"}',
    l2="warm",
    samples_us=(9.5, 10.0, 10.1),
    calls_per_sample=20,
    median_us=10.0,
    low_us=9.5,
    high_us=10.1,
    mean_us=9.866666666666667,
    min_us=9.5,
    max_us=10.1,
    gb_per_s=3355.4432,
    copy_us=9.0,
    percent_of_copy=90.0,
    baseline="v1",
    speedup=1.25,
    speedup_low=1.2,
    speedup_high=1.3,
    is_tied=True,
    remark="clocks fell",
    sm_mhz_before=1980,
    sm_mhz_after=1965,
    celsius_before=40,
    celsius_after=55,
    model_us=8.5,
)


def row(**changes: Any) -> Measurement:
    """Return the plain measurement with fields of it and of its provenance changed."""
    own = {name: value for name, value in changes.items() if hasattr(PLAIN, name)}
    provenance = {name: value for name, value in changes.items() if name not in own}
    return replace(PLAIN, provenance=replace(PLAIN.provenance, **provenance), **own)
