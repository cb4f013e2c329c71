import json

import pytest

from kgen.errors import UsageError
from kgen.evidence.measure import Outcome, Row
from kgen.evidence.results import Machine, read_results, write_results
from kgen.gpu import DeviceInfo

GPU = DeviceInfo("NVIDIA H200", "sm_90", 132, 60 << 20, 140 << 30, "580.65.06 (CUDA 13.0)")
MACHINE = Machine(GPU, "13.0.88", "0.1.0", "8de7ad52", "abc123", "2026-01-02T03:04:05+00:00")
ROWS = (
    Row("v1", 8, 9, Outcome.OK, mean_us=2.5, host_bound=True, max_abs_error=1e-9),
    Row("v3", 8, 9, Outcome.REFUSED, "9 columns; ≥ 10 are needed"),
)


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "h200.json"
    write_results(path, ROWS, MACHINE, "by events")
    results = read_results(path)
    assert results.machine == MACHINE and results.method == "by events" and results.rows == ROWS
    assert isinstance(results.rows[0].outcome, Outcome)
    assert [file.name for file in tmp_path.iterdir()] == ["h200.json"]


def test_the_file_names_its_origin(tmp_path):
    path = tmp_path / "h200.json"
    write_results(path, ROWS, MACHINE, "by events")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["machine"]["gpu"]["name"] == "NVIDIA H200"
    assert content["machine"]["toolkit"] == "13.0.88" and content["machine"]["commit"] == "abc123"
    assert content["rows"][1]["mean_us"] is None


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "h200.json"
    write_results(path, ROWS, MACHINE, "by events")
    with pytest.raises(ValueError):
        write_results(path, [Row("v1", 1, 1, Outcome.OK, mean_us=float("nan"))], MACHINE, "")
    assert read_results(path).rows == ROWS


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "rows": 3}'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"other\.json is not a results file"):
        read_results(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_results(tmp_path / "absent.json")
