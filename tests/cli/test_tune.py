"""kgen tune: the winners of a database, and a look-up."""

from pathlib import Path

import pytest

from kgen.errors import MissingTool
from kgen.gpu import device
from kgen.overlay import OURS
from kgen.sources.render import template_hash
from kgen.store.database import open_store
from kgen.sweep.tuned import read_table
from tests.sweep.made import made


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Two shapes measured with today's templates, one with a warm cache, too."""
    now = {"templates": template_hash(OURS), "l2": "cold"}
    with open_store(tmp_path / "r.sqlite") as store:
        for row in (
            made("v5", 12, **now),
            made("v7:threads=512", 10, **now),
            made("v8", 3, cols=257, **now),
            made("v1", 1, templates=template_hash(OURS), l2="warm"),
        ):
            store.add(row)
    return tmp_path / "r.sqlite"


def test_winners_are_kept_and_looked_up(call, db):
    ended = call("tune", "--db", db)
    assert ended.code == 0
    assert "wrote 2 winners to tuned.json" in ended.out
    assert [row for row in ended.rows() if "v7:threads=512" in row and "4096" in row]
    found = call("tune", "--lookup", "1500x4097", "--device", "NVIDIA H200")
    assert (found.code, found.out) == (0, "v7:threads=512\n")
    assert "won at 1024 x 4096: 10.00 us" in found.err
    evidence = call("tune", "--lookup", "1024x257", "--device", "NVIDIA H200", "--json").json
    assert (evidence["variant"], evidence["cols"], evidence["l2"]) == ("v8", 257, "cold")


def test_winners_are_looked_up_by_type(call, tmp_path):
    now = {"templates": template_hash(OURS), "l2": "cold"}
    with open_store(tmp_path / "r.sqlite") as store:
        store.add(made("v5", 12, **now))
        store.add(made("v6:dtype=bfloat16", 9, dtype="bfloat16", out_dtype="bfloat16", **now))
        store.add(made("v7:dtype=bfloat16,out_dtype=float32", 8, dtype="bfloat16", **now))
    kept = call("tune", "--db", tmp_path / "r.sqlite")
    assert "wrote 3 winners" in kept.out and "bfloat16 to float32" in kept.out
    asked = ("tune", "--lookup", "1024x4096", "--device", "NVIDIA H200")
    typed = [(), ("--dtype", "bfloat16"), ("--dtype", "bfloat16", "--out-dtype", "float32")]
    found = [call(*asked, *options).out for options in typed]
    assert found == ["v5\n", "v6:dtype=bfloat16\n", "v7:dtype=bfloat16,out_dtype=float32\n"]
    missing = call(*asked, "--dtype", "float16")
    assert missing.code == 2 and "no dtype 'float16', but bfloat16, float32" in missing.err
    useless = call("tune", "--db", tmp_path / "r.sqlite", "--dtype", "float16")
    assert useless.code == 2 and "are of a --lookup" in useless.err


def test_a_table_is_added_to(call, db, tmp_path):
    ended = call("tune", "--db", db, "--out", "t.json", "--json")
    assert [entry["variant"] for entry in ended.json] == ["v8", "v7:threads=512"]
    with open_store(tmp_path / "t4.sqlite") as store:
        store.add(made("v2", 5, device="Tesla T4", l2="cold"))
    assert call("tune", "--db", tmp_path / "t4.sqlite", "--out", "t.json").code == 0
    kept = read_table(tmp_path / "t.json")
    assert [winner.variant for winner in kept] == ["v8", "v7:threads=512", "v2"]


def test_a_warm_cache_has_winners_of_its_own(call, db):
    assert [it["variant"] for it in call("tune", "--db", db, "--l2", "warm", "--json").json] == [
        "v1"
    ]


def test_what_is_not_a_table_is_left_alone(call, db, tmp_path):
    (tmp_path / "tuned.json").write_text("my notes")
    ended = call("tune", "--db", db)
    assert ended.code == 2
    assert "tuned.json is no tuned table: JSON is malformed" in ended.err
    assert (tmp_path / "tuned.json").read_text() == "my notes"


def test_stale_and_foreign_winners_are_refused(call, db, tmp_path):
    with open_store(tmp_path / "old.sqlite") as store:
        store.add(made("v2", 5, l2="cold"))
    call("tune", "--db", tmp_path / "old.sqlite")
    stale = call("tune", "--lookup", "1024x4096", "--device", "NVIDIA H200")
    assert (stale.code, stale.out) == (1, "")
    assert (
        f"with the templates aaaaaaaa (2026-01-02), and this kgen has {template_hash(OURS)}"
        in stale.err
    )
    foreign = call("tune", "--lookup", "1024x4096", "--device", "Tesla T4")
    assert (foreign.code, foreign.out) == (2, "")
    assert "the table has no device 'Tesla T4', but NVIDIA H200" in foreign.err


def test_without_a_gpu_a_device_has_to_be_named(call, db, monkeypatch):
    def missing():
        raise MissingTool("no GPU found")

    call("tune", "--db", db)
    monkeypatch.setattr(device, "load_driver", missing)
    device.device_info.cache_clear()
    ended = call("tune", "--lookup", "1024x4096")
    assert ended.code == 3
    assert "no GPU found, or name a GPU with --device" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lookup", "4096"], "--lookup 4096: write a shape as ROWSxCOLS"),
        (["--lookup", "1x1"], "there is no tuned.json; run `kgen sweep`"),
        (["--l2", "hot"], "--l2 hot: the L2 cache is cold or warm"),
        (["--db", "none.sqlite"], "none.sqlite"),
    ],
)
def test_wrong_requests(call, arguments, words):
    ended = call("tune", *arguments)
    assert ended.code == 2
    assert words in ended.err


def test_a_database_without_times(call, tmp_path):
    open_store(tmp_path / "empty.sqlite").close()
    ended = call("tune", "--db", tmp_path / "empty.sqlite")
    assert ended.code == 2
    assert (
        "empty.sqlite has no times of variants with a cold L2 cache; run `kgen sweep`" in ended.err
    )
    assert not (tmp_path / "tuned.json").exists()
