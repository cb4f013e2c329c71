"""Constants of an edited file that its header's spec, by which it is launched, makes others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgen.errors import UsageError
from kgen.sources.edited import read_source
from kgen.specs.variants import checked
from tests.sources.files import edited

THREADS = "constexpr int THREADS_PER_BLOCK = 256;"
BOUNDS = "__launch_bounds__(THREADS_PER_BLOCK)"


@pytest.mark.parametrize(
    ("variant", "old", "new", "sentence"),
    [
        ("v7", THREADS, "constexpr int THREADS_PER_BLOCK = 128;", "THREADS_PER_BLOCK 128, but the header's spec says threads_per_block=256: write 256 there, or threads_per_block=128 in the header"),
        ("v7", THREADS, "static const unsigned THREADS_PER_BLOCK{0x80u};", "THREADS_PER_BLOCK 128, but"),
        ("v7", THREADS, "#define THREADS_PER_BLOCK 512", "THREADS_PER_BLOCK 512, but"),
        ("v7", THREADS, "constexpr int WARPS = 3; constexpr int THREADS_PER_BLOCK = 32 * WARPS;", "THREADS_PER_BLOCK 96, but"),
        ("v7", "threads_per_block=256", "threads_per_block=64", "THREADS_PER_BLOCK 256, but the header's spec says threads_per_block=64"),
        ("v7", THREADS, "constexpr int THREADS_PER_BLOCK = 100;", "threads_per_block=256: write 256 there"),
        ("v7", BOUNDS, "__launch_bounds__(128, 2)", "__launch_bounds__ 128, but the header's spec says threads_per_block=256"),
        ("v7", "WARP_SIZE = 32", "WARP_SIZE = 64", "WARP_SIZE 64, which has to be 32: write 32"),
        ("v7", "VEC_SIZE = 4", "VEC_SIZE = 2", "VEC_SIZE 2, but the header's spec says vec_size=4"),
        ("v7", "ITEMS_PER_THREAD = 4", "ITEMS_PER_THREAD = 8", "items_per_thread=4: write 4 there, or items_per_thread=8"),
        ("v8", "ROWS_PER_BLOCK = THREADS_PER_BLOCK / WARP_SIZE", "ROWS_PER_BLOCK = 4", "ROWS_PER_BLOCK 4, which has to be 8: write 8"),
        ("t1", "TILE_SIZE = 1024", "TILE_SIZE = 2048", "TILE_SIZE 2048, but the header's spec says tile_size=1024"),
        ("v5:static_cols=257", "COLS = 257", "COLS = 256", "static_cols=257: write 257 there, or static_cols=256"),
    ],
)  # fmt: skip
def test_a_number_that_is_not_the_headers(
    variant: str, old: str, new: str, sentence: str, tmp_path: Path
) -> None:
    path = edited(tmp_path, variant, old, new)
    with pytest.raises(UsageError) as refused:
        read_source(path)
    said = str(refused.value)
    assert said.startswith(f"{path}: line ") and sentence in said
    assert said.count(" makes ") == 1, "what follows from it is not blamed too"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (THREADS, "constexpr int THREADS_PER_BLOCK = 8 * 32;"),
        (THREADS, f"// constexpr int THREADS_PER_BLOCK = 128;\n{THREADS}"),
        (THREADS, f"#ifdef SMALL\nconstexpr int THREADS_PER_BLOCK = 128;\n#else\n{THREADS}\n#endif"),
        (THREADS, "constexpr int THREADS_PER_BLOCK = threads();"),
        ("= THREADS_PER_BLOCK / WARP_SIZE", "= (THREADS_PER_BLOCK + 31) / 32"),
        (BOUNDS, "__launch_bounds__(512, 2)"),
    ],
)  # fmt: skip
def test_what_agrees_or_is_no_number(old: str, new: str, tmp_path: Path) -> None:
    assert read_source(edited(tmp_path, "v7", old, new)).spec == checked("v7").resolve()


def test_the_line_is_told(tmp_path: Path) -> None:
    path = edited(tmp_path, "v7", THREADS, "/* two\nlines */ constexpr int THREADS_PER_BLOCK = 64;")
    line = path.read_text().partition("PER_BLOCK = 64")[0].count("\n") + 1
    with pytest.raises(UsageError, match=f": line {line} makes THREADS_PER_BLOCK 64"):
        read_source(path)


def test_every_constant_is_told(tmp_path: Path) -> None:
    path = edited(tmp_path, "v7", THREADS, "constexpr int THREADS_PER_BLOCK = 64;")
    path.write_text(path.read_text().replace("VEC_SIZE = 4", "VEC_SIZE = 1"))
    with pytest.raises(UsageError, match=r"THREADS_PER_BLOCK 64, .*; line \d+ makes VEC_SIZE 1"):
        read_source(path)
