"""The profile that needs no GPU."""

from __future__ import annotations

import pytest

from kgen.errors import MissingTool, UsageError
from kgen.profile import METRICS, ProfileTarget
from kgen.profile.counted import profile_on_cpu
from kgen.toolchain import find, find_nvcc

pytestmark = pytest.mark.usefixtures("cxx")


def test_counts_and_resources_of_all_kernels() -> None:
    try:
        find_nvcc()
    except MissingTool as missing:
        pytest.skip(str(missing))
    profile = profile_on_cpu(ProfileTarget("t1", 2, 1024), "sm_90")
    known = {key for key, value in profile.values.items() if value is not None}
    counted = {"global_loads", "global_stores"}
    assert known == {*counted, "registers", "theoretical_occupancy_percent"}
    assert len(profile.kernels) == 3
    for key in counted:
        assert profile.values[key] == sum(values[key] or 0 for _, values in profile.kernels) > 0
    assert profile.values["registers"] == max(
        values["registers"] or 0 for _, values in profile.kernels
    )
    assert profile.values["theoretical_occupancy_percent"] == 100


def test_without_a_compiler_for_gpus_the_counts_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGEN_NVCC", raising=False)
    monkeypatch.setattr(find, "_candidates", lambda name: iter(()))
    values = profile_on_cpu(ProfileTarget("v3", 2, 4096), "sm_90").values
    known = {key: value for key, value in values.items() if value is not None}
    assert known == {"global_loads": 256, "global_stores": 256}
    assert list(values) == [metric.key for metric in METRICS]


def test_the_host_has_no_warps() -> None:
    with pytest.raises(UsageError, match=r"cpu is plain C\+\+ for the host"):
        profile_on_cpu(ProfileTarget("cpu", 2, 8), "sm_90")
