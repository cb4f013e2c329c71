"""bench/limit.py: what it asks of kgen for a type, and where the rows go."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kgen.store.export import write_json
from kgen.store.measurement import Kind
from tests.store.rows import row

FILE = Path(__file__).parents[2] / "bench" / "limit.py"


@pytest.fixture
def limit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("limit", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("options", "name", "typed"),
    [
        ((), "3x5", ""),
        (("--dtype", "float32"), "3x5", ""),
        (("--dtype", "bfloat16"), "3x5-bfloat16", "--dtype bfloat16"),
        (
            ("--dtype", "bfloat16", "--out-dtype", "float32"),
            "3x5-bfloat16-float32",
            "--dtype bfloat16 --out-dtype float32",
        ),
        (
            ("--out-dtype", "float16"),
            "3x5-float32-float16",
            "--dtype float32 --out-dtype float16",
        ),
    ],
)
def test_files_carry_the_type(
    limit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    name: str,
    typed: str,
) -> None:
    asked: list[str] = []

    def kgen(*arguments: str) -> None:
        asked.append(" ".join(arguments))
        kinds = {"v7": Kind.VARIANT, "torch": Kind.PEER, "copy": Kind.COPY}
        rows = [row(variant=name, kind=kind, median_us=2.0) for name, kind in kinds.items()]
        write_json(Path(arguments[-1]), rows)

    write_json(tmp_path / "bench-9x9-float64.json", [])  # of another type, and not summed up
    monkeypatch.setattr(limit, "kgen", kgen)
    monkeypatch.setattr(sys, "argv", ["limit.py", str(tmp_path), "--shapes", "3x5", *options])
    limit.main()
    swept, benched = asked
    assert swept.endswith(f"sweep-{name}.json") and benched.endswith(f"bench-{name}.json")
    assert (f" {typed} " in swept) if typed else "dtype" not in swept
    assert benched.startswith("bench v7 --rows 3 --cols 5") and "--peers" in benched
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 shapes; best peer / ours: ")
