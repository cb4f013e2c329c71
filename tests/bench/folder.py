"""A folder of result files of a machine that is made up."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgen.store.export import write_json
from kgen.store.measurement import Kind, Measurement, Outcome, Provenance
from kgen.studies import registers
from kgen.studies import reproduce as reproduction
from kgen.studies.facts import Facts
from kgen.studies.result import write_result
from kgen.studies.tables import Study
from kgen.studies.verdicts import NotMeasured
from kgen.timing.protocol import Protocol, find_protocol
from kgen.timing.summary import Sensed, summarized
from tests.studies import fake

ROUNDS = 30
PROVENANCE = Provenance(
    run="r1", measured_at="2026-11-30T08:00:00+00:00", device="NVIDIA H200", arch="sm_90",
    driver="580.1", toolchain="nvcc 13.0.88", kgen="0.1.0", templates="c5d54bb2",
    commit="6f44f9b23c0e",
)  # fmt: skip
KINDS = {"torch": Kind.PEER, "liger": Kind.PEER, "copy_one": Kind.COPY, "copy_driver": Kind.COPY}
TUNED = "v7:items=4,threads=512"
# It left after a few rounds, in which it looked fastest.
EARLY = "v3"
# Medians in us. Ours is faster on the first shape, a peer on the second; the third is a tie.
TIMES: Mapping[tuple[int, int], Mapping[str, float]] = {
    (1024, 4096): {
        EARLY: 9.8, "v5": 15, "v7": 12, TUNED: 10, "torch": 20, "liger": 13,
        "copy_one": 9, "copy_driver": 9.5,
    },
    (1025, 257): {
        "v5": 4, "v7": 3.5, "torch": 3, "liger": 3.2, "copy_one": 2, "copy_driver": 2.5,
    },
    (256, 65536): {
        "v5": 60, "v7": 50, "torch": 50, "liger": 70, "copy_one": 45, "copy_driver": 44,
    },
}  # fmt: skip
ENDED = {
    "cpu": (Kind.VARIANT, Outcome.REFUSED, "it runs on the CPU"),
    "quack": (Kind.PEER, Outcome.SKIPPED, "no module named quack"),
    "cupy": (Kind.PEER, Outcome.SKIPPED, "no module named cupy"),
    "v9": (Kind.VARIANT, Outcome.FAILED, "it hung | and was stopped"),
}


def measurements(
    protocol: Protocol, times: Mapping[tuple[int, int], Mapping[str, float]] = TIMES
) -> list[Measurement]:
    """Return rows as a benchmark makes them, with a run of its own for each shape."""
    found: list[Measurement] = []
    for number, (shape, medians) in enumerate(times.items()):
        provenance = replace(PROVENANCE, run=f"r{number}")
        rows = [
            _row(provenance, protocol, shape, name, KINDS.get(name, Kind.VARIANT))
            for name in medians
        ]
        rows += [
            replace(_row(provenance, protocol, shape, name, kind), outcome=outcome, reason=reason)
            for name, (kind, outcome, reason) in ENDED.items()
        ]
        samples = {name: _samples(name, shape, us) for name, us in medians.items()}
        found += summarized(rows, samples, "torch", protocol, {}, Sensed())
    return found


def _row(
    provenance: Provenance, protocol: Protocol, shape: tuple[int, int], name: str, kind: Kind
) -> Measurement:
    return Measurement(
        provenance=provenance, kind=kind, variant=name, rows=shape[0], cols=shape[1],
        outcome=Outcome.OK, protocol_name=protocol.name, protocol=protocol.as_json(),
        l2=str(protocol.l2),
    )  # fmt: skip


def _samples(name: str, shape: tuple[int, int], us: float) -> list[float]:
    rng = np.random.default_rng(zlib.crc32(f"{name} {shape}".encode()))
    samples: list[float] = (us * rng.lognormal(0, 0.004, 6 if name == EARLY else ROUNDS)).tolist()
    return samples


def write_benches(folder: Path) -> None:
    """Write the files of measurements."""
    write_json(folder / "h200/bench_cold.json", measurements(find_protocol("rotated", "cold")))
    write_json(folder / "h200/bench_short.json", measurements(find_protocol("rotated")))
    write_json(folder / "h200/bench_limit.json", measurements(find_protocol("rotated")))
    write_json(folder / "h200/bench_warm.json", measurements(find_protocol("rotated", "warm")))
    write_json(folder / "h200/bench_report.json", measurements(find_protocol("report")))
    write_json(folder / "h200/sweep_v7.json", measurements(find_protocol("rotated")))


def write_studies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a reproduction's result, in which v8 falls behind v7 at about 600 elements."""

    def unknown(self: Facts, *asked: object) -> float:
        raise NotMeasured("nothing is counted here")

    known = fake.report_us

    def us(variant: str, rows: int, cols: int) -> float:
        one_row = {"c1": 6 + cols / 5e3, "t1": 3 + cols / 3e3, "t2": 14 + cols / 3e6}
        return one_row[variant] if rows == 1 and variant in one_row else known(variant, rows, cols)

    monkeypatch.setattr(Facts, "value", unknown)
    monkeypatch.setattr(reproduction, "compile_reported", lambda: registers.REPORTED)
    monkeypatch.setattr(fake, "report_us", us)
    result = reproduction.reproduce(fake.Machine(), frozenset({Study.ONE_ROW, Study.REPORT}))
    write_result(folder / "h200/studies.json", result)
    ours = reproduction.reproduce(fake.Machine(), frozenset({Study.OURS}))
    write_result(folder / "h200/studies_ours.json", ours)


OBJECTS: Mapping[str, Mapping[str, Any]] = {
    "h200/search.json": {
        "machine": {"device": "NVIDIA H200"},
        "shapes": [
            {
                "rows": 1024,
                "cols": 4096,
                "full": {"winner": "v7:threads=512", "gpu_s": 120.5},
                "halving": {"winner": "v7:threads=256", "gpu_s": 30.25},
                "ratio": {"median": 1.002, "low": 0.999, "high": 1.004},
            }
        ],
    },
    "h200/kernel_tuner.json": {
        "space": {"rows": 1024, "cols": 4096, "versions": ["v5", "v7"]},
        "kernel_tuner": {"winner": "v7:threads=64", "own_us": 10.5, "seconds": 90.1},
        "kgen": {"winner": "v7:threads=128", "own_us": 10.2, "seconds": 12.3},
    },
    "h200/revision.json": {
        "machine": {"device": "NVIDIA H200"},
        "revision": "abc",
        "ratios": [{"version": "v7", "rows": 1, "cols": 2, "ratio": [0.99, 0.98, 1.0]}],
    },
    "h200/pytorch.json": {
        "machine": {"device": "NVIDIA H200", "commit": "abc", "measured_at": "2026-12-01"},
        "pytorch": "2.11",
        "variant": "v11",
        "results": [{"op": "softmax", "dtype": "float16", "nan_in_one": 0, "most_ulps": 1.0}],
    },
    "h200/agreement.json": {
        "machine": {"gpu": {"name": "NVIDIA H200"}, "commit": "abc", "date": "2026-11-30"},
        "counts": [
            {"variant": "v2", "rows": 1, "cols": 2, "ncu": {"loads": 4}, "kgen": {"loads": 4}},
            {"variant": "v3", "rows": 1, "cols": 2, "ncu": {"loads": 4}, "kgen": {"loads": 5}},
        ],
        "clean": {
            "jobs": ["v1@1x2", "v2@1x2"],
            "errors": {"memcheck": 0, "racecheck": -1},
            "right_outputs": {"memcheck": 2, "racecheck": 1},
            "kernels_named": {"memcheck": [], "racecheck": ["softmax_v1"]},
        },
        "mutants": [
            {
                "mutant": "v1_barrier_removed_2",
                "shape": "5x1027",
                "tool": "racecheck",
                "tool_errors": 15,
                "output_on_gpu": "right",
                "kgen_found_by": "race",
            }
        ],
    },
    "mutants.json": {
        "mutants": 3,
        "caught": 2,
        "equivalent": 1,
        "survivors": 0,
        "results": [{"caught_by": "result"}, {"caught_by": "fault"}, {"caught_by": ""}],
    },
    "speed_2_cores.json": {
        "machine": {"system": "Linux", "processors": "2"},
        "figures": [{"what": "kgen list", "unit": "s", "median": 0.25, "target": "< 0.3 s"}],
    },
    "compile_speed_2_cores.json": {
        "machine": {"processors": "2"},
        "figures": [{"what": "one by one", "unit": "s", "median": 12.5}],
    },
}


def write_objects(folder: Path) -> None:
    """Write the files that hold an object."""
    for name, content in OBJECTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
