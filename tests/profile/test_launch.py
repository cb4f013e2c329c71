"""The program that ncu watches."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from kgen import gpu
from kgen.profile import launch
from kgen.profile.job import ProfileTarget


@pytest.mark.parametrize(
    "job", [ProfileTarget("v7:items=4,threads=512", 1025, 257), ProfileTarget("a@b/my.cu", 1, 1)]
)
def test_a_job_is_read_as_it_is_spelled(job: ProfileTarget) -> None:
    assert ProfileTarget.read(str(job)) == job


def run(monkeypatch: pytest.MonkeyPatch, *jobs: str) -> int:
    monkeypatch.setattr(sys, "argv", ["launch", *jobs])
    try:
        launch.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_each_job_runs_once_and_bare(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = []

    def softmax(source, plan, x, *, is_bare):  # type: ignore[no-untyped-def]
        assert is_bare
        ran.append((source.stem, x.shape))
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    monkeypatch.setattr(gpu, "run", softmax)
    assert run(monkeypatch, "v2@3x17", "v3:items=2@2x300") == 0
    assert [shape for _, shape in ran] == [(3, 17), (2, 300)]
    assert "v3" in ran[1][0]
    assert capsys.readouterr() == ("", "")


def test_a_wrong_result_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "run", lambda source, plan, x, *, is_bare: x)
    assert run(monkeypatch, "v2@3x17", "v3@3x17") == 1
    assert capsys.readouterr().err.startswith("kgen: v2@3x17 is wrong: ")


def test_an_unknown_variant_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "v9000@3x17") == 2
    assert "kgen: " in capsys.readouterr().err
