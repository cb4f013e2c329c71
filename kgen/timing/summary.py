"""Turns samples into rows: medians, rates, speed-ups, ties, and remarks on what looks odd."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kgen.errors import CompileFailed, KgenError, MachineTrouble, MissingTool, UsageError
from kgen.gpu.nvml import Sensors
from kgen.sources.source import Source
from kgen.specs.types import find_types
from kgen.store.measurement import CPU, Kind, Measurement, Outcome, Provenance
from kgen.timing.candidates import Candidate
from kgen.timing.protocol import Protocol
from kgen.timing.statistics import drift, paired_ratio, summarize, ties
from kgen.toolchain import Binary
from kgen.toolchain.added_flags import added_flags

# The GPU waits for the host when issuing a call takes all of the call's time, or nearly.
HOST_BOUND_SHARE = 0.9
# Nothing that reads and writes a matrix once is faster than copying it, up to the timer's error.
COPY_LIMIT = 102.0
DRIFT_LIMIT = 0.02
Samples = Mapping[str, Sequence[float]]


def blank(candidate: Candidate, protocol: Protocol, provenance: Provenance) -> Measurement:
    """Return a candidate's row before anything ran: what it is, and what compiling it gave.

    On the CPU, where nothing is timed, no state of the L2 and no flags of nvcc are part of it.
    """
    is_timed = provenance.device != CPU
    row = Measurement(
        provenance=provenance,
        kind=candidate.kind,
        variant=candidate.name,
        rows=candidate.rows,
        cols=candidate.cols,
        outcome=Outcome.OK,
        dtype=candidate.types.dtype,
        out_dtype=candidate.types.out_dtype,
        input_name=protocol.input_name,
        seed=protocol.seed,
        protocol_name=protocol.name,
        protocol=protocol.as_json(),
        l2=str(protocol.l2) if is_timed else "",
        flags=(
            " ".join((*protocol.options.flags(), *added_flags()))
            if candidate.is_kernel and is_timed
            else ""
        ),
    )
    if candidate.source:
        row = replace(row, source_hash=hashlib.sha256(candidate.source.text.encode()).hexdigest())
    if isinstance(candidate.source, Source) and not candidate.is_adopted:
        row = replace(row, spec=json.dumps(candidate.source.spec.axes))
    if candidate.reason:
        return replace(row, outcome=Outcome.REFUSED, reason=candidate.reason)
    if isinstance(candidate.binary, CompileFailed | MachineTrouble):
        return replace(row, outcome=outcome_of(candidate.binary), reason=str(candidate.binary))
    return _with_resources(row, candidate, candidate.binary) if candidate.binary else row


def outcome_of(error: KgenError) -> Outcome:
    """Return how a candidate ended that raised an error."""
    kinds = {
        MachineTrouble: Outcome.MACHINE_TROUBLE,
        MissingTool: Outcome.SKIPPED,
        UsageError: Outcome.REFUSED,
    }
    return next((kinds[kind] for kind in kinds if isinstance(error, kind)), Outcome.FAILED)


def _with_resources(row: Measurement, candidate: Candidate, binary: Binary) -> Measurement:
    launches = candidate.plan.launches if candidate.plan else ()
    dynamic = max((launch.shared_bytes for launch in launches), default=0)
    kernels = binary.kernels
    return replace(
        row,
        registers=max(kernel.registers for kernel in kernels),
        stack_bytes=max(kernel.stack_bytes for kernel in kernels),
        spill_store_bytes=max(kernel.spill_store_bytes for kernel in kernels),
        spill_load_bytes=max(kernel.spill_load_bytes for kernel in kernels),
        shared_bytes=dynamic + max(kernel.static_shared_bytes for kernel in kernels),
    )


class Sensed(NamedTuple):
    """The GPU's sensors before the first round and after the last."""

    before: Sensors = Sensors()
    after: Sensors = Sensors()


def summarized(
    rows: Sequence[Measurement],
    samples: Samples,
    baseline: str,
    protocol: Protocol,
    host_us: Mapping[str, float],
    sensed: Sensed,
) -> list[Measurement]:
    """Return the rows with what their samples say; rows without samples stay as they are.

    Samples are of the same rounds, of which some candidates may have left out the later ones; they
    are no ties of those that stayed.
    """
    copy_us = _fastest_copy(rows, samples)
    ranked = _stayed({row.variant: samples.get(row.variant, ()) for row in rows if _is_ranked(row)})
    tied = ties(ranked)
    finished = []
    for row in rows:
        if not (taken := samples.get(row.variant)):
            finished.append(row)
            continue
        row = _with_times(row, taken, copy_us, sensed)
        if base := samples.get(baseline):
            row = _with_speedup(row, taken, base, baseline)
        row = replace(row, is_tied=row.variant in tied if _is_ranked(row) else None)
        finished.append(replace(row, remark=_remark(row, host_us.get(row.variant, 0), protocol)))
    return finished


def _is_ranked(row: Measurement) -> bool:
    return row.kind is not Kind.COPY


def _stayed(samples: Samples) -> Samples:
    most = max(map(len, samples.values()), default=0)
    return {name: taken for name, taken in samples.items() if most and len(taken) == most}


def _fastest_copy(rows: Sequence[Measurement], samples: Samples) -> float | None:
    copies = [row.variant for row in rows if row.kind is Kind.COPY and samples.get(row.variant)]
    return min((summarize(samples[name]).median for name in copies), default=None)


def _with_times(
    row: Measurement, taken: Sequence[float], copy_us: float | None, sensed: Sensed
) -> Measurement:
    times = summarize(taken)
    moved_bytes = row.rows * row.cols * find_types(row.dtype, row.out_dtype).moved_bytes
    return replace(
        row,
        samples_us=tuple(taken),
        median_us=times.median,
        low_us=times.low,
        high_us=times.high,
        mean_us=times.mean,
        min_us=times.least,
        max_us=times.largest,
        gb_per_s=moved_bytes / times.median / 1e3,
        copy_us=copy_us,
        percent_of_copy=100 * copy_us / times.median if copy_us else None,
        sm_mhz_before=sensed.before.sm_mhz,
        sm_mhz_after=sensed.after.sm_mhz,
        celsius_before=sensed.before.celsius,
        celsius_after=sensed.after.celsius,
    )


def _with_speedup(
    row: Measurement, taken: Sequence[float], base: Sequence[float], baseline: str
) -> Measurement:
    common = min(len(base), len(taken))
    ratio = paired_ratio(base[:common], taken[:common])
    return replace(
        row,
        baseline=baseline,
        speedup=ratio.median,
        speedup_low=ratio.low,
        speedup_high=ratio.high,
    )


def _remark(row: Measurement, host_us: float, protocol: Protocol) -> str:
    """Return what a reader should know before believing the row's times."""
    assert row.median_us and row.low_us and row.high_us
    remarks = [row.remark] if row.remark else []
    if not protocol.graphs and host_us >= HOST_BOUND_SHARE * row.median_us:
        remarks.append(f"host-bound: issuing a call takes {host_us:.1f} us")
    if row.kind is not Kind.COPY and (row.percent_of_copy or 0) > COPY_LIMIT:
        remarks.append("faster than a copy of the same bytes")
    if protocol.interleaved and (row.high_us - row.low_us) / 2 / row.median_us > protocol.precision:
        remarks.append("not known as precisely as asked")
    if abs(change := drift(row.samples_us)) > DRIFT_LIMIT:
        remarks.append(f"drifted by {change:+.1%}")
    return "; ".join(remarks)
