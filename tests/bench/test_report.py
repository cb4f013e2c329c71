"""The page of results and its plots, from files of a machine that is made up."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kgen.store.export import read_json, write_json
from tests.bench.folder import OBJECTS, TUNED, write_benches, write_objects, write_studies

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib", reason="plots need matplotlib")
BENCH = Path(__file__).parents[2] / "bench"
PLOTS = {
    "percent_of_copy_cold.svg",
    "percent_of_copy_limit.svg",
    "percent_of_copy_warm.svg",
    "percent_of_copy_report.svg",
    "percent_of_copy_short.svg",
    "over_n_c1_t1_t2.svg",
    "over_n_v7_v8.svg",
}


@pytest.fixture(scope="module")
def report() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCH))
    yield importlib.import_module("report")
    sys.path.remove(str(BENCH))


@pytest.fixture(scope="module")
def full(report: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files, and what is made of them."""
    folder = tmp_path_factory.mktemp("results")
    write_benches(folder)
    write_objects(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        write_studies(folder, monkeypatch)
    assert report.main([str(folder)]) == 0
    return folder


@pytest.fixture
def some(report: ModuleType, tmp_path: Path) -> Path:
    """A folder with measurements alone, and what is made of them."""
    write_benches(tmp_path)
    assert report.main([str(tmp_path)]) == 0
    return tmp_path


def section(folder: Path, title: str) -> str:
    text = (folder / "RESULTS.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def cells(text: str, *starts: str) -> list[str]:
    """Return the cells of the first line of a table that has cells which start so."""
    for line in text.splitlines():
        found = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and found[: len(starts)] == list(starts):
            return found
    raise AssertionError(f"no row {starts}")


def test_every_file_has_a_section(full: Path, report: ModuleType) -> None:
    text = (full / "RESULTS.md").read_text(encoding="utf-8")
    files = [path.relative_to(full).as_posix() for path in full.rglob("*.json")]
    assert len(files) == len(report.SECTIONS) == text.count("\n## ")
    assert all(f"From [`{name}`]({name})." in text for name in files)
    assert {path.name for path in (full / "plots").iterdir()} == PLOTS
    assert all(f"(plots/{name})" in text for name in PLOTS)


def test_all_rows_of_a_table_are_as_wide_as_its_head(full: Path) -> None:
    text = (full / "RESULTS.md").read_text(encoding="utf-8")
    tables = [part for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) > 20
    for table in tables:
        assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1, table


def test_a_section_says_where_it_is_from(full: Path) -> None:
    cold = section(full, "Softmax from memory, L2 cold")
    assert (
        "Measured on an NVIDIA H200 (sm\\_90), driver 580.1, nvcc 13.0.88, kgen 0.1.0, templates "
        "c5d54bb2, commit 6f44f9b23c0e, 2026-11-30T08:00:00+00:00."
    ) in cold
    assert "L2 cold (calls rotate over inputs and outputs of four times the L2)" in cold
    assert "The file does not say where" in section(full, "Mutants")
    assert "gpu name NVIDIA H200, commit abc" in section(full, "What NVIDIA's tools say")
    assert "The file has no commit and no date" in section(full, "What kgen itself costs, 2 cores")


def test_a_rebuild_changes_no_byte(report: ModuleType, full: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in full.rglob("*") if path.is_file()}
    assert report.main([str(full)]) == 0
    assert {path: path.read_bytes() for path in full.rglob("*") if path.is_file()} == before
    # In another process, with other hashes and a user's settings of matplotlib.
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\nfont.size: 20\n")
    environment = {**os.environ, "PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path)}
    command = [sys.executable, str(BENCH / "report.py"), str(full), "--check"]
    subprocess.run(command, env=environment, check=True)


def test_check_names_what_differs(
    some: Path, report: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([str(some), "--check"]) == 0
    path = some / "h200/bench_warm.json"
    write_json(path, [row for row in read_json(path) if row.variant != TUNED])
    before = (some / "RESULTS.md").read_bytes()
    assert report.main([str(some), "--check"]) == 1
    told = capsys.readouterr().err
    assert "RESULTS.md, plots/percent_of_copy_warm.svg;" in told and "cold" not in told
    assert (some / "RESULTS.md").read_bytes() == before


def test_a_file_that_is_gone_takes_its_section_and_plot(
    some: Path, report: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    (some / "h200/bench_warm.json").unlink()
    assert report.main([str(some), "--check"]) == 1
    assert "plots/percent_of_copy_warm.svg" in capsys.readouterr().err
    assert report.main([str(some)]) == 0
    assert "## Softmax on the same matrix" not in (some / "RESULTS.md").read_text(encoding="utf-8")
    assert not (some / "plots/percent_of_copy_warm.svg").exists()
    assert (some / "plots/percent_of_copy_cold.svg").exists()


def test_a_folder_without_files_has_no_sections(report: ModuleType, tmp_path: Path) -> None:
    assert report.main([str(tmp_path)]) == 0
    assert "\n## " not in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert report.main([str(tmp_path / "missing")]) == 2


@pytest.mark.parametrize("name", ["h200/bench_cold.json", *OBJECTS])
def test_a_broken_file_is_named(
    name: str, report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("{")
    assert report.main([str(tmp_path)]) == 2
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "RESULTS.md").exists()


@pytest.mark.parametrize("name", ["mutants.json", "h200/agreement.json"])
def test_a_file_of_another_kind_is_named(
    name: str, report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h200").mkdir()
    (tmp_path / name).write_text("{}")
    assert report.main([str(tmp_path)]) == 2
    assert name in capsys.readouterr().err


def test_the_headline_tells_who_wins(full: Path) -> None:
    text = section(full, "Softmax from memory, L2 cold")
    assert "Shapes on which both have times: 3. Ours is faster on 1, the best peer on 1" in text
    first = cells(text, "1024 x 4096")
    assert first[1] == TUNED and first[3] == "liger" and first[6] == "ours"
    assert first[5] == "1.299 (1.297 - 1.302)" and first[8].startswith("90.")
    assert cells(text, "1025 x 257")[6] == "peer"
    tie = cells(text, "256 x 65536")
    assert (tie[1], tie[3], tie[6]) == ("v7", "torch", "tie")
    low, high = map(float, tie[5].split("(")[1].rstrip(")").split(" - "))
    assert low <= 1 <= high


def test_a_shapes_table_marks_ties(full: Path) -> None:
    text = section(full, "Softmax from memory, L2 cold")
    first, third = (
        next(part for part in text.split("<details>") if f"<summary>{shape}" in part)
        for shape in ("1024 x 4096", "256 x 65536")
    )
    assert cells(first, "1", TUNED)[2] == "ours"
    order = [line.split(" | ")[1] for line in first.splitlines() if line.startswith("| ")][1:]
    assert order == ["copy\\_one", "copy\\_driver", "v3", TUNED, "v7", "liger", "v5", "torch"]
    assert cells(first, "", "copy\\_one")[6] == "100.0"
    assert cells(first, "", "v3")[2] == "ours"  # it left early, and has no rank
    assert abs(float(cells(first, "2", "v7")[7]) - 20 / 12) < 0.02
    assert cells(third, "1 =", "v7")[7].endswith(" =")
    assert cells(third, "1 =", "torch")[7] == "1.000"


def test_what_has_no_times_has_its_reason(full: Path) -> None:
    text = section(full, "Softmax from memory, L2 cold")
    assert "- v9: failed, it hung \\| and was stopped\n" in text
    assert "- quack: skipped, no module named quack\n" in text
    assert "- cpu: refused, it runs on the CPU\n" in text
    sweep = section(full, "Sweep v7")
    assert sweep.count(": v9: failed, it hung") == 3 and "- 1025 x 257: v9: failed" in sweep
    assert "quack" not in sweep
    assert cells(sweep, "1024 x 4096")[1] == TUNED
    assert cells(sweep, "1025 x 257")[7] == ""  # a peer is faster, and alone
    assert "1 failed" in cells(sweep, "1024 x 4096")[-1]


def test_times_one_by_one_are_not_called_paired(full: Path) -> None:
    assert "one candidate was measured after the other" in section(
        full, "Launch by launch, as the report"
    )
    assert "after the other" not in section(full, "Softmax from memory, L2 cold")


def test_the_searches_and_tools_are_compared(full: Path) -> None:
    search = section(full, "Halving against the full search")
    assert cells(search, "1024 x 4096", "full")[2:4] == ["v7:threads=512", "120.5"]
    assert cells(search, "1024 x 4096", "halving")[3:] == ["30.25", "1.002 (0.999 - 1.004)"]
    tuner = section(full, "Beside Kernel Tuner")
    assert cells(tuner, "kernel\\_tuner") == ["kernel\\_tuner", "v7:threads=64", "10.50", "90.10"]
    assert cells(tuner, "kgen") == ["kgen", "v7:threads=128", "10.20", "12.30"]
    assert cells(tuner, "space")[-1] == "v5, v7"
    assert "The file does not say where" in tuner


def test_the_proofs_are_summed_up(full: Path) -> None:
    tools = section(full, "What NVIDIA's tools say")
    assert "equal in 1 of 2 cases" in tools and cells(tools, "v3")[-1] == "loads 5"
    assert cells(tools, "racecheck") == ["racecheck", "no verdict", "1 of 2", "softmax\\_v1"]
    assert "3 mutants: 2 caught (1 by result, 1 by fault), 1 equivalent" in section(full, "Mutants")


def test_plots_are_small_and_well_formed(full: Path) -> None:
    for path in (full / "plots").iterdir():
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert path.stat().st_size < 60_000, path
        assert "2026" not in path.read_text(encoding="utf-8").partition("</metadata>")[0]


def test_plots_have_their_words(full: Path) -> None:
    bars = words(full / "plots/percent_of_copy_cold.svg")
    assert {"our best", "best peer", "torch", "1024 x 4096", "90", "69", "45"} <= bars
    curves = words(full / "plots/over_n_v7_v8.svg")
    assert {"v7", "v8", "L2 warm", "L2 cold", "median time of a call, us"} <= curves
    marks = [word for word in curves if word.startswith("v8 = v7 at ")]
    assert marks and all(580 < float(mark.split()[-1]) < 620 for mark in marks)


def words(path: Path) -> set[str]:
    texts = ElementTree.parse(path).getroot().iter("{http://www.w3.org/2000/svg}text")
    return {"".join(text.itertext()).strip() for text in texts}
