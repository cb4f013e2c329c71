"""Launches become softmax calls; calls that cannot be profiled are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import kgen
from kgen.errors import CheckFailed, MissingTool, UsageError
from kgen.profile import ProfileTarget, profile_on_gpu, profiles_in, profiles_of_launches
from tests.profile.tables import asked, fake_ncu, table

LOADS = "smsp__sass_inst_executed_op_global_ld.sum"
T1 = kgen.render("t1").kernels
V5 = kgen.render("v5").kernels[0]


def loads(*kernels: tuple[str, int]) -> str:
    return table([(kernel, {LOADS: f"{number:,}"}) for kernel, number in kernels])


def test_kernels_of_a_variant_are_one_call() -> None:
    text = loads((V5, 7), *((kernel, 1000) for kernel in T1), ("a_kernel_of_the_driver", 9))
    for order in (["v5", "t1"], ["t1", "v5"]):
        profiles = profiles_in(text, [ProfileTarget(name, 4, 2048) for name in order])
        assert [profile.name for profile in profiles] == order
        by_name = {profile.name: profile for profile in profiles}
        assert by_name["v5"].values["global_loads"] == 7
        assert by_name["t1"].values["global_loads"] == 3000
        kernels = by_name["t1"].kernels
        assert [name for name, _ in kernels] == list(T1)
        assert all(values["global_loads"] == 1000 for _, values in kernels)


def test_same_variant_twice_takes_its_launches_in_order() -> None:
    jobs = [ProfileTarget("v5", 1024, 4096), ProfileTarget("v5", 1025, 257)]
    first, second = profiles_in(loads((V5, 1), (V5, 2)), jobs)
    assert (first.values["global_loads"], second.values["global_loads"]) == (1, 2)


@pytest.mark.parametrize(
    "ran", [(V5,), (V5, T1[0], T1[2], T1[1]), (V5, *T1[:2]), (V5, *T1, V5), ("other",)]
)
def test_other_launches_than_asked_for_are_told(ran: tuple[str, ...]) -> None:
    text = loads(*((kernel, 1) for kernel in ran))
    with pytest.raises(CheckFailed, match=rf"v5@4x2048, t1@4x2048 would launch {V5}, {T1[0]}"):
        profiles_in(text, [ProfileTarget("v5", 4, 2048), ProfileTarget("t1", 4, 2048)])


def test_without_jobs_every_launch_is_a_profile() -> None:
    found = profiles_of_launches(loads(*((kernel, 5) for kernel in T1)))
    assert [profile.name for profile in found] == list(T1)


@pytest.mark.usefixtures("no_ncu", "pretended_gpu")
def test_profile_on_gpu_runs_ncu(tmp_path: Path) -> None:
    text = loads((V5, 4))
    fake_ncu(tmp_path / "bin", text)
    profiles, printed = profile_on_gpu([ProfileTarget("v5", 4, 257)], "warm")
    assert profiles[0].values["global_loads"] == 4 and printed == text
    (line,) = asked(tmp_path / "bin")
    assert "--cache-control none" in line and line.endswith("v5@4x257")


@pytest.mark.usefixtures("no_ncu", "pretended_gpu")
@pytest.mark.parametrize(
    ("job", "cache", "words"),
    [
        (ProfileTarget("v5", 4, 257), "hot", "--cache hot: caches are cold or warm"),
        (ProfileTarget("v5", 0, 257), "cold", "0 x 257 has no elements"),
        (ProfileTarget("cpu", 4, 257), "cold", r"cpu is plain C\+\+ for the host"),
        (ProfileTarget("v9000", 4, 257), "cold", "v9000"),
        (ProfileTarget("v7:items=1", 4, 2048), "cold", "2048"),
    ],
)
def test_what_cannot_be_profiled_is_refused(job: ProfileTarget, cache: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        profile_on_gpu([job], cache)


@pytest.mark.usefixtures("no_ncu", "pretended_gpu")
def test_missing_ncu() -> None:
    with pytest.raises(MissingTool, match="no ncu"):
        profile_on_gpu([ProfileTarget("v5", 4, 257)])


@pytest.mark.gpu
def test_counts_are_those_of_the_cpu_executor() -> None:
    """On a GPU: ncu's loads and stores of the shapes where every access is active."""
    try:
        profiles, _ = profile_on_gpu(
            [ProfileTarget("v2", 128, 4096), ProfileTarget("v3", 128, 4096)]
        )
    except MissingTool as missing:
        pytest.skip(str(missing))
    counted = [(p.values["global_loads"], p.values["global_stores"]) for p in profiles]
    assert counted == [(49152, 16384), (16384, 16384)]
    assert all(value is not None for profile in profiles for value in profile.values.values())
