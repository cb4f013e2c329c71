"""A sampler that chooses what to try: that it learns, and what it leaves behind."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kgen import cpu
from kgen.errors import MissingTool
from kgen.sources.source import Source
from kgen.specs.rules import problems
from kgen.specs.spec import Spec
from kgen.specs.variants import parse
from kgen.store.measurement import Kind, Outcome, Provenance
from kgen.sweep.cluster.tasks import Kept
from kgen.sweep.guided import BATCH, explore
from kgen.sweep.halving import Search
from kgen.sweep.jobs import Job
from kgen.sweep.measure import How, run_jobs
from kgen.timing.candidates import Candidate, of_targets
from kgen.timing.protocol import Protocol
from kgen.timing.provenance import this_run
from kgen.timing.summary import blank
from tests.sweep.fake_gpus import FakeGpu, compile_fakes

pytestmark = pytest.mark.slow

pytest.importorskip("optuna")

ROWS, COLS = 4, 64
PROTOCOL = Protocol(min_rounds=4, max_rounds=4)
PLACE = Provenance(run="a run", measured_at="", device="a fake", arch="sm_90")


def candidate(variant: str) -> Candidate:
    """Return a candidate with a spec; nobody compiles its text."""
    spec = parse(variant).resolve(COLS)
    source = Source(spec, "softmax", f"// {variant}", ())
    return Candidate(kind=Kind.VARIANT, name=variant, rows=ROWS, cols=COLS, source=source)


@pytest.fixture(scope="module")
def space() -> list[Candidate]:
    """What the rules leave of some thousand combinations."""
    axes = {
        "threads": (32, 64, 96, 128, 192, 256, 512, 1024),
        "vec": (1, 2, 4),
        "cache": ("none", "inputs_registers", "exps_registers", "inputs_shared"),
        "update": ("three_pass", "online", "online_tile"),
        "merge": ("separate", "paired"),
        "exp": ("expf", "__expf", "exp2"),
        "normalize": ("divide", "reciprocal"),
    }
    variants = [
        "v5:" + ",".join(f"{axis}={value}" for axis, value in zip(axes, values, strict=True))
        for values in itertools.product(*axes.values())
    ]
    return [candidate(variant) for variant in variants if not problems(parse(variant))]


def cost(one: Candidate) -> float:
    """Return microseconds that prefer some values of each axis, and some pairs of values."""
    assert isinstance(one.source, Source)
    spec: Spec = one.source.spec
    us = 10 + abs(spec.threads_per_block - 192) / 64 + 2 * (spec.exp != "exp2")
    us += (spec.normalize == "divide") + 3 * (spec.cache != "inputs_registers")
    return us + (spec.update != "online") + (4 - spec.vec_size) * (1 if spec.in_registers else -0.2)


class Tried:
    """Tries candidates by their cost; those in `wrong` come out wrong."""

    def __init__(self, wrong: Sequence[str] = ()) -> None:
        self.batches: list[list[Candidate]] = []
        self.wrong = wrong

    def __call__(self, chosen: Sequence[Candidate]) -> Mapping[str, float]:
        self.batches.append(list(chosen))
        return {one.name: cost(one) for one in chosen if one.name not in self.wrong}

    @property
    def names(self) -> list[str]:
        return [one.name for batch in self.batches for one in batch]

    @property
    def best(self) -> float:
        return min(cost(one) for batch in self.batches for one in batch)


def test_it_tries_what_it_may_and_nothing_twice(space: list[Candidate]) -> None:
    tried = Tried()
    explore(space, 50, 1, tried)
    assert [len(batch) for batch in tried.batches] == [BATCH, BATCH, BATCH, 50 - 3 * BATCH]
    assert len(set(tried.names)) == 50


def test_it_learns_what_is_fast(space: list[Candidate]) -> None:
    assert len(space) > 500
    for seed in (1, 2, 3):
        tried = Tried()
        explore(space, 60, seed, tried)
        by_chance = min(map(cost, random.Random(seed).sample(space, 60)))
        first, *_, last = (sum(map(cost, batch)) / len(batch) for batch in tried.batches)
        assert last < first - 2 and tried.best <= by_chance
        assert tried.best <= min(map(cost, space)) + 3


def test_the_same_seed_makes_the_same_choices(space: list[Candidate]) -> None:
    runs = [Tried() for _ in range(3)]
    for tried, seed in zip(runs, (7, 7, 8), strict=True):
        explore(space, 40, seed, tried)
    assert runs[0].names == runs[1].names != runs[2].names


def test_everything_is_tried_if_it_may_be(space: list[Candidate]) -> None:
    tried = Tried(wrong=[one.name for one in space[:20]])
    explore(space[:40], 40, 1, tried)
    assert sorted(tried.names) == sorted(one.name for one in space[:40])
    single = Tried()
    explore(space[:1], 1, 1, single)
    assert single.names == [space[0].name]


def test_what_is_wrong_is_avoided(space: list[Candidate]) -> None:
    wrong = [one.name for one in space if "cache=inputs_registers" in one.name]
    tried = Tried(wrong)
    explore(space, 80, 1, tried)
    late = tried.names[2 * BATCH :]
    assert sum(name in wrong for name in late) / len(late) < len(wrong) / len(space)


def test_it_knows_what_was_tried_before(space: list[Candidate]) -> None:
    some = random.Random(1).sample(space, 60)
    known = [replace(blank(one, PROTOCOL, PLACE), median_us=cost(one)) for one in some]
    others = [one for one in space if one not in some]
    fresh, informed = Tried(), Tried()
    explore(others, BATCH, 1, fresh)
    explore(others, BATCH, 1, informed, known)
    mean = [sum(map(cost, tried.batches[0])) / BATCH for tried in (fresh, informed)]
    assert mean[1] < mean[0] - 2


def test_the_extra_is_named_where_optuna_is_missing(
    space: list[Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingTool, match=r"\.\[search\]"):
        explore(space, 1, 1, Tried())


def a_job() -> Job:
    threads = (32, 64, 128, 256, 512, 1024)
    names = [f"v5:threads={n},exp={exp}" for n in threads for exp in ("expf", "__expf", "exp2")]
    return Job(ROWS, COLS, of_targets([parse(name) for name in names], ROWS, COLS))


def test_on_a_gpu_the_best_of_the_trials_are_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgen.timing.candidates.compile_many", compile_fakes)
    how = How(on="gpu", protocol=PROTOCOL, provenance=PLACE, search=Search.MODEL, trials=8)
    how = replace(how, keep_all=True, open_device=FakeGpu(tmp_path))
    how = replace(how, halving=replace(how.halving, finalists=2))
    kept = Kept()
    run_jobs([a_job()], how, kept, kept)
    rows = {row.variant: row for row in kept.rows}
    assert len(rows) == len(kept.rows) == 8 + 3
    ours = [row for row in kept.rows if row.kind is not Kind.COPY]
    best = min(ours, key=lambda row: row.median_us or 0)
    assert best.is_tied and best.copy_us and len(best.samples_us) >= 4
    assert min(len(row.samples_us) for row in ours) == how.halving.first_rounds
    assert all(row.outcome is Outcome.OK and row.registers == 32 for row in ours)


def test_an_earlier_run_counts(tmp_path: Path) -> None:
    how = How(on="gpu", protocol=PROTOCOL, provenance=PLACE, search=Search.MODEL, trials=3)
    job, kept = a_job(), Kept()
    done = [replace(blank(one, PROTOCOL, PLACE), median_us=1.0) for one in job.candidates[:3]]
    run_jobs([Job(ROWS, COLS, job.candidates[3:], done)], how, kept, kept)
    assert kept.rows == []


def test_on_the_cpu_the_cost_model_is_asked() -> None:
    try:
        provenance = this_run("cpu")
        cpu.find_cxx()
    except MissingTool as missing:
        pytest.skip(str(missing))
    how = How(on="cpu", protocol=PROTOCOL, provenance=provenance, search=Search.MODEL, trials=2)
    job, kept = a_job(), Kept()
    job.candidates = job.candidates[:3]
    run_jobs([job], how, kept, kept)
    assert len(kept.rows) == 2 and all(row.model_us for row in kept.rows)
