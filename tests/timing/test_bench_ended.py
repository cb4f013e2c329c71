"""Benches that are ended or lose their worker: what was measured stays, and nothing runs on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from subprocess import Popen
from typing import Any

import pytest

from kgen.errors import MissingTool
from kgen.processes import start
from kgen.store.measurement import Measurement, Outcome
from kgen.timing.bench import measure
from kgen.timing.candidates import Candidate
from kgen.timing.protocol import Protocol
from kgen.timing.rounds import rounds
from tests.timing.fakes import (
    PROVENANCE,
    ROUNDS,
    SIX_ROUNDS,
    FakeDevice,
    Heard,
    variant,
    without_gpu,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fake_nvcc")]
STARTED: list[Popen[bytes]] = []


@pytest.fixture(autouse=True, scope="module")
def _started() -> Iterator[None]:
    """Note the workers that are started."""

    def start_noted(*command: Any, **how: Any) -> Popen[bytes]:
        STARTED.append(start(*command, **how))
        return STARTED[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgen.timing.worker.start", start_noted)
        yield


def workers() -> list[Popen[bytes]]:
    return [worker for worker in STARTED if worker.poll() is None]


def test_without_a_gpu_nothing_is_measured() -> None:
    heard = Heard()
    with pytest.raises(MissingTool, match="no GPU"):
        measure([variant("a")], SIX_ROUNDS, PROVENANCE, open_device=without_gpu, record=heard)
    assert heard.finished == [] and workers() == []


class Killing(Heard):
    """Kills the worker after the second round."""

    def add_round(self, rows: Mapping[str, Measurement], taken: Mapping[str, float]) -> None:
        super().add_round(rows, taken)
        if len(self.rounds) == 2:
            (worker,) = workers()
            worker.kill()
            worker.wait()


def test_a_worker_that_is_killed_costs_one_row() -> None:
    heard = Killing()
    names = ["a", "b", "c"]
    candidates = [variant(name) for name in names]
    rows = measure(candidates, SIX_ROUNDS, PROVENANCE, open_device=FakeDevice, record=heard)
    (lost,) = [row for row in rows if row.outcome is not Outcome.OK]
    assert lost.outcome is Outcome.MACHINE_TROUBLE and "SIGKILL" in lost.reason
    assert all(len(row.samples_us) == ROUNDS for row in rows if row is not lost)
    assert sorted(heard.names) == names


def interrupted(*candidates: Candidate, protocol: Protocol = SIX_ROUNDS) -> Heard:
    heard, began = Heard(), time.monotonic()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("kgen.timing.worker.CLOSE_S", 0.1)
            measure(
                candidates,
                protocol,
                PROVENANCE,
                prepare_s=30,
                open_device=FakeDevice,
                record=heard,
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 30 and workers() == []
    return heard


def test_an_interrupt_keeps_the_rounds_before_it() -> None:
    heard = interrupted(variant("wrong"), variant("good"), variant("interrupt@4"))
    assert heard.names == ["wrong", "good", "interrupt@4"]
    for row in heard.finished[1:]:
        assert row.outcome is Outcome.OK and not row.is_complete
        assert len(row.samples_us) == 3 and row.median_us and row.baseline == "good"


def test_an_interrupt_of_the_first_round_keeps_nothing_but_failures() -> None:
    heard = interrupted(variant("wrong"), variant("good"), variant("interrupt@1"))
    assert heard.names == ["wrong"] and heard.rounds == []


def test_who_failed_in_the_interrupted_round_has_no_times() -> None:
    names = ["good", "too_big@3", "interrupt@3"]
    protocols = (replace(SIX_ROUNDS, seed=seed) for seed in range(100))
    protocol = next(
        protocol
        for protocol in protocols
        if list(rounds(names, protocol))[2] == ["good", "too_big@3", "interrupt@3"]
    )
    heard = interrupted(*map(variant, names), protocol=protocol)
    assert heard.names == ["too_big@3", "good", "interrupt@3"]
    failed, *right = heard.finished
    assert failed.outcome is Outcome.REFUSED and failed.samples_us == ()
    assert [len(row.samples_us) for row in right] == [2, 2]


def test_an_interrupt_of_one_after_the_other_keeps_what_was_sampled() -> None:
    protocol = replace(SIX_ROUNDS, interleaved=False)
    names = ["first", "second", "interrupt@5", "never"]
    heard = interrupted(*map(variant, names), protocol=protocol)
    assert heard.names == ["first", "second", "interrupt@5"]
    assert [len(row.samples_us) for row in heard.finished] == [ROUNDS, ROUNDS, 4]
    assert len(heard.rounds) == 2 * ROUNDS + 4
