"""Generated sources: stable to the byte, readable, and showing every choice that was made."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from kgen.errors import UsageError
from kgen.sources.edited import NEWER, read_source
from kgen.sources.render import MAX_LINE, render
from kgen.specs.declared import choices
from kgen.specs.fields import AXES, CHOICE_AXES, ROW_MAP
from kgen.specs.spec import Spec
from kgen.specs.variants import MAX_STEM, checked
from kgen.specs.versions import VERSIONS
from tests.sources.files import edited
from tests.strategies import CHOICES, resolved, valid_specs

GENERATED = Path(__file__).parents[2] / "generated"

# (axis, value) -> a variant that has it, and what its source must show.
MARKS = {
    ("op", "softmax"): ("v1", r"expf\(x_row\[c\] - row_max\) \* inverse_sum;"),
    ("op", "log_softmax"): ("v1:op=log_softmax", r"y_row\[c\] = x_row\[c\] - row_max - log_sum;"),
    ("dtype", "float32"): ("v7", r"load_vec\(const float\* row"),
    ("dtype", "float16"): ("v7:dtype=float16", r"vec.at\[k\] = __half2float\(packed.at\[k\]\);"),
    ("dtype", "bfloat16"): ("v7:dtype=bfloat16", r"values\[k\] = c < cols \? __bfloat162float\(x\[c\]\) : -INFINITY;"),
    ("dtype", "float64"): ("v7:dtype=float64", r"const double e = exp\(-fabs\(x - state.m\)\);"),
    ("out_dtype", "float32"): ("v1:dtype=float16,out_dtype=float32", r"float\* y_row = y \+ row_start;"),
    ("out_dtype", "float16"): ("v1:dtype=bfloat16,out_dtype=float16", r"y_row\[c\] = __float2half_rn\("),
    ("out_dtype", "bfloat16"): ("v1:out_dtype=bfloat16", r"y_row\[c\] = __float2bfloat16_rn\("),
    ("out_dtype", "float64"): ("v1:dtype=float64", r"double\* y_row = y \+ row_start;"),
    ("target", "host"): ("cpu", r"static inline|extern \"C\" void softmax_cpu"),
    ("target", "device"): ("v1", r"extern \"C\" __global__"),
    ("threads_per_row", 8): ("v8:threads_per_row=8", r"warp_reduce<THREADS_PER_ROW>\(state, row_lanes"),
    ("threads_per_row", 64): ("v5:threads_per_row=64", r"const int row_cols = row < rows \? cols : 0;"),
    ("rows_at_once", 2): ("v10:rows_at_once=2", r"const int row = first_row \+ r \* GROUPS_PER_BLOCK \+ threadIdx.x / THREADS_PER_ROW;"),
    ("row_split", "none"): ("v2", r"const int row = blockIdx.x;"),
    ("row_split", "tiles"): ("t1", r"tile_cols = min\(TILE_SIZE, cols - first_col\);"),
    ("row_split", "cluster"): ("v13:row_split=cluster", r"cluster\(\).sync\(\);"),
    ("row_split", "cluster_async"): ("v13", r"ptx::st_async\("),
    ("row_split", "co_resident"): ("v14", r"receive\(message, launch\)"),
    ("blocks_per_row", 4): ("v13:blocks_per_row=4", r"constexpr int BLOCKS_PER_ROW = 4;"),
    ("row_order", "interleaved"): ("v13", r"const int v = row_thread\(\) \+ i \* THREADS_PER_ROW;"),
    ("row_order", "contiguous"): ("v13:row_order=contiguous", r"v = part.begin \+ threadIdx.x \+ i \* THREADS_PER_BLOCK;"),
    ("row_loop", "once"): ("v8", r"if \(row >= rows\) return;  // all threads of a row leave together"),
    ("row_loop", "grid_stride"): ("v8:row_loop=grid_stride", r"row \+= gridDim.x \* ROWS_PER_BLOCK"),
    ("row_map", "host"): ("cpu", r"for \(int row = 0; row < rows; \+\+row\)"),
    ("row_map", "thread"): ("k1", r"row = blockIdx.x \* THREADS_PER_BLOCK \+ threadIdx.x;"),
    ("row_map", "warp"): ("v8", r"blockIdx.x \* ROWS_PER_BLOCK \+ threadIdx.x / WARP_SIZE;"),
    ("row_map", "block"): ("v1", r"const int row = blockIdx.x;"),
    ("row_map", "grid_stride"): ("v9", r"row = blockIdx.x; row < rows; row \+= gridDim.x"),
    ("row_map", "grid"): ("t1", r"row = blockIdx.x / tiles_per_row;"),
    ("row_map", "cluster"): ("v7:row_map=cluster", r"cluster\(\).sync\(\);"),
    ("next_row", "none"): ("v11", r"float values\[SLOTS\];\n    load_row"),
    ("next_row", "registers"): ("v11:row_loop=grid_stride,next_row=registers", r"values\[k\] = next_values\[k\];"),
    ("next_row", "async"): ("v11:row_loop=grid_stride,next_row=async", r"if \(next_row < rows\) fetch_row\("),
    ("next_row", "bulk"): ("v11:row_loop=grid_stride,next_row=bulk", r"try_wait_parity\(&next_came, parity\)"),
    ("row_io", "direct"): ("v12:row_io=direct", r"y_row = y \+ row_start;"),
    ("row_io", "chunk"): ("v12", r"if \(v < vecs\) to_vecs\[v\] = batch\[k\];"),
    ("row_io", "chunk_async"): ("v12:row_io=chunk_async", r"__pipeline_wait_prior\(0\);"),
    ("row_io", "chunk_bulk"): ("v12:row_io=chunk_bulk", r"ptx::cp_async_bulk\(ptx::space_global, "),
    ("topology", "none"): ("k1", r"row_max = thread_max;"),
    ("topology", "tree"): ("v1", r"half = THREADS_PER_BLOCK / 2"),
    ("topology", "warp"): ("v8", r"return warp_reduce<WARP_SIZE>"),
    ("topology", "warp_down"): ("k3", r"return __shfl_sync\(lanes, value, 0, WIDTH\);"),
    ("topology", "warps_thread0"): ("k4", r"if \(threadIdx.x == 0\) \{\n        for \(int warp = 1"),
    ("topology", "two_level"): ("v2", r"value = warp_reduce<Op, WARPS_PER_BLOCK>"),
    ("topology", "all_warps"): ("v11", r"__shared__ State row_states\[WARPS_PER_BLOCK\];"),
    ("merge", "separate"): ("v4", r"row_reduce<Max>\(thread_state.m\)"),
    ("merge", "paired"): ("v5", r"row_reduce\(thread_state\)"),
    ("merge", "by_warp"): ("v11", r"row_reduce\(\{warp_max, warp_sum\}\)"),
    ("update", "three_pass"): ("v1", r"row_sum = row_reduce<Sum>\(thread_sum\);"),
    ("update", "online"): ("v4", r"state.d = state.d \* expf\(state.m - m\) \+ expf\(x - m\);"),
    ("update", "online_shared"): ("v5", r"expf\(-fabsf\(x - state.m\)\)"),
    ("update", "online_branch"): ("v5:update=online_branch", r"if \(x > state.m\) \{"),
    ("update", "online_tile"): ("t2", r"start < cols; start \+= TILE_SIZE"),
    ("cache", "none"): ("v1", r"y_row\[c\] = expf\(x_row\[c\] - row_max\)"),
    ("cache", "inputs_registers"): ("v7", r"values\[k\] = expf\(values\[k\] - row_state.m\)"),
    ("cache", "exps_registers"): ("v3", r"values\[k\] = values\[k\] \* inverse_sum"),
    ("cache", "exps_output"): ("k2", r"y_row\[c\] = y_row\[c\] / row_sum;"),
    ("cache", "inputs_shared"): ("v5:cache=shared", r"row_cache\[c\] = element;"),
    ("cache", "exps_shared"): ("v11:cache=exps_shared", r"vec.at\[k\];\n +\}\n +store_vec\(row_cache, v, vec\);"),
    ("cache", "inputs_shared_async"): ("v5:cache=inputs_shared_async", r"thread_state, row_cache\[c\]"),
    ("cache", "exps_shared_async"): ("v11:cache=exps_shared_async", r"from \+ v \* VEC_SIZE, sizeof\(Vec"),
    ("cache", "inputs_shared_bulk"): ("v8:cache=inputs_shared_bulk,vec=4", r"& ?rows_came\[.*\], bytes\);"),
    ("cache", "exps_shared_bulk"): ("v11:cache=exps_shared_bulk", r"try_wait_parity\(&row_came, 0\)"),
    ("vec_size", 1): ("v5", r"update\(thread_state, x_row\[c\]\);"),
    ("vec_size", 2): ("v5:vec=2", r"VEC_SIZE = 2;"),
    ("vec_size", 4): ("v6", r"VEC_SIZE = 4;"),
    ("vec_scans", "none"): ("v5", r"c = threadIdx.x; c < cols;"),
    ("vec_scans", "first"): ("v6", r"is_vec_aligned\(x_row\);"),
    ("vec_scans", "second"): ("v6:vec_scans=second", r"store_vec\(y_row, v, vec\);"),
    ("vec_scans", "both"): ("v6_double", r"is_vec_aligned\(x_row\) && is_vec_aligned\(y_row\)"),
    ("unaligned", "scalar_row"): ("v6", r"vecs = is_aligned \? cols / VEC_SIZE : 0;"),
    ("unaligned", "scalar_groups"): ("v7", r"load_vec\(x, v, is_aligned\)"),
    ("unaligned", "shift"): ("v11", r"const int shift = vec_shift\(x_row\);"),
    ("loads", "plain"): ("v7", r"= c < cols \? x\[c\] : -INFINITY;"),
    ("loads", "streaming"): ("v7:loads=streaming", r"__ldcs\(reinterpret_cast<const uint4\*>\(row\) \+ v\);"),
    ("stores", "plain"): ("v7", r"if \(c < cols\) y\[c\] = values\[k\];"),
    ("stores", "streaming"): ("v7:stores=streaming", r"__stcs\(reinterpret_cast<uint4\*>\(row\) \+ v, reinterpret_cast<const uint4&>\(vec\)\);"),
    ("prefetch", True): ("v6_fetch", r"next = load_vec\(x_row, v \+ THREADS_PER_BLOCK\)"),
    ("prefetch", False): ("v6_double", r"Vec vec = load_vec\(x_row, v\);"),
    ("items_per_thread", 3): ("v7:items=3", r"ITEMS_PER_THREAD = 3;"),
    ("trip", "static"): ("v3", r"#pragma unroll\n    for \(int i = 0; i < ITEMS_PER_THREAD; \+\+i\)"),
    ("trip", "runtime"): ("v3:trip=runtime", r"for \(int k = 0; k < used; \+\+k\)"),
    ("tile_size", 96): ("t2:tile=96", r"TILE_SIZE = 96;"),
    ("threads_per_block", 64): ("v5:threads=64", r"THREADS_PER_BLOCK = 64;"),
    ("grid_blocks", 3): ("v9:grid=3", r"grid = min\(rows, 3\)"),
    ("min_blocks_per_sm", 2): ("v5:min_blocks=2", r"__launch_bounds__\(THREADS_PER_BLOCK, 2\)"),
    ("exp", "expf"): ("v1", r"thread_sum \+= expf\("),
    ("exp", "__expf"): ("v1:exp=__expf", r"thread_sum \+= __expf\("),
    ("exp", "exp2"): ("v1:exp=exp2", r"thread_sum \+= exp_as_exp2\("),
    ("normalize", "divide"): ("k1", r"/ row_sum;"),
    ("normalize", "reciprocal"): ("v1", r"\* inverse_sum;"),
    ("static_cols", 257): ("v5:static_cols=257", r"constexpr int COLS = 257;"),
}  # fmt: skip


@pytest.mark.parametrize(("choice", "shown"), MARKS.items(), ids=[f"{a}={v}" for a, v in MARKS])
def test_a_choice_is_rendered(choice: tuple[str, object], shown: tuple[str, str]) -> None:
    axis, value = choice
    variant, mark = shown
    source = render(checked(variant))
    assert getattr(source.spec, axis) == value
    assert re.search(mark, source.text)
    others = [v for (a, v), (_, m) in MARKS.items() if a == axis and v != value and m == mark]
    assert not others, "the mark does not tell this choice from the others"


def test_every_axis_and_choice_has_a_mark() -> None:
    assert {axis for axis, _ in MARKS} == {*AXES, ROW_MAP}
    for axis in (*CHOICE_AXES, ROW_MAP):
        assert {value for marked, value in MARKS if marked == axis} == set(choices(axis))


@pytest.mark.parametrize("name", VERSIONS)
def test_golden_files(name: str) -> None:
    source = render(VERSIONS[name].spec)
    assert (GENERATED / source.filename).read_bytes() == source.text.encode()


@settings(max_examples=150, deadline=None)
@given(valid_specs())
def test_any_source_is_tidy_and_reads_back(spec: Spec) -> None:
    source = render(resolved(spec))
    code = source.text.split("\n\n#include", 1)[1]
    assert "\n\n\n" not in code and not re.search(r"[ \t]\n", source.text)
    too_long = [line for line in code.splitlines() if len(line) > MAX_LINE]
    assert [line for line in too_long if source.stem not in line or not line.endswith("(")] == []
    assert "{%" not in code and "{{" not in code
    assert source.text.endswith("}\n")


@settings(max_examples=50, deadline=None)
@given(valid_specs())
def test_the_header_names_the_spec(spec: Spec) -> None:
    source = render(resolved(spec))
    with TemporaryDirectory() as folder:
        path = Path(folder) / source.filename
        path.write_text(source.text, encoding="utf-8")
        again = read_source(path)
    assert (again.spec, again.stem, again.kernels) == (source.spec, source.stem, source.kernels)


def test_the_longest_name_stays_whole(tmp_path: Path) -> None:
    words = "t1:vec=4,unaligned=scalar_groups,tile=2048,threads=256,min_blocks=2,exp=__expf"
    source = render(checked(f"{words},normalize=reciprocal,static_cols=100000"))
    assert MAX_LINE < len(source.stem) <= MAX_STEM
    (tmp_path / source.filename).write_text(source.text)
    assert read_source(tmp_path / source.filename).stem == source.stem
    name_alone, arguments = source.text.split(f"{source.stem}_sum(\n", 1)
    assert name_alone.endswith("\n    ")
    assert arguments.startswith(
        "        const float* __restrict__ x, RowStats* stats, int rows) {\n"
    )


def test_header_says_what_a_reader_needs() -> None:
    header = render(checked("v6")).text.split("#include")[0]
    for words in (
        "softmax_v6: one block per row",
        "parent    v5: vec_size 1 -> 4, vec_scans none -> first",
        "requires  rows >= 1, 1 <= cols",
        "launch    grid = rows, block = 256",
        "rebuild   kgen build --variant v6",
    ):
        assert words in header
    assert "v7: items_per_thread 4 -> 2" in render(checked("v7:items=2")).text
    assert "barrier" in render(checked("c1")).text.split("#include")[0]


def test_header_says_how_blocks_meet() -> None:
    words = {
        "v13": ("8 blocks per row, a cluster", "clusters of 8 blocks, which the kernel itself"),
        "v13:blocks_per_row=16": ("clusters of 16", "NonPortableClusterSizeAllowed = 1"),
        "v14:blocks_per_row=64": (
            "64 blocks per row, which meet in global memory",
            "all blocks have to run at the same time",
            "messages: 16 * rows * 64 * 64 bytes, zeroed once, before the first launch",
            "launch: not 0, nor the number of a launch before that was broken off",
        ),
        "v11": ("16-byte accesses in all scans from the vector boundary below a row",),
    }
    for variant, expected in words.items():
        header = render(checked(variant)).text.split("#include")[0].replace("\n// ", " ")
        assert [word for word in expected if word not in header] == []
    assert "NonPortable" not in render(checked("v13")).text


def test_auto_items_that_cannot_cover_the_default_length_say_so() -> None:
    with pytest.raises(UsageError, match="cols=4096 needs"):
        render(checked("k1:cache=registers"))
    assert render(checked("k1:cache=registers,items=8")).spec.items_per_thread == 8


def test_files_of_before_an_axis_are_read(tmp_path: Path) -> None:
    source = render(checked("v5"))
    path = tmp_path / source.filename
    before = re.sub(rf"\b({'|'.join(NEWER)})=\w+\s(//\s+)?", "", source.text)
    assert not any(f" {axis}=" in before for axis in NEWER)
    path.write_text(before)
    assert read_source(path).spec == source.spec


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("int main() {}\n", "has no kgen header"),
        (
            "// softmax_v1: x\n// variant   v1\n// spec      row_map=block\n// parent    none\n",
            "lacks",
        ),
        (
            "// softmax_v1: x\n// variant   v1\n// spec      colour=red\n// parent    none\n",
            "'colour'",
        ),
        ("// softmax_v1: x\n// variant   v99\n// spec      \n// parent    none\n", "lacks"),
    ],
)
def test_files_without_a_usable_header(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        read_source(path)


def test_a_header_may_stand_behind_a_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    path = edited(tmp_path, "v6", "// softmax_v6:", "\ufeff\n\n// softmax_v6:")
    assert read_source(path).spec == checked("v6")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("    softmax_v7(", "    my_softmax(", "defines no softmax_v7"),
        ("items_per_thread=4", "items_per_thread=auto", "write the code's number"),
    ],
)
def test_headers_that_do_not_fit_the_code(
    old: str, new: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_source(edited(tmp_path, "v7", old, new))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_source(tmp_path / "none.cu")
    (tmp_path / "bytes.cu").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_source(tmp_path / "bytes.cu")


def test_choices_of_the_strategy_cover_every_axis() -> None:
    assert set(CHOICES) == set(AXES)


def test_the_comment_of_a_long_line_stands_above_it() -> None:
    lines = render(checked("v5:threads_per_row=64")).text.splitlines()
    above = lines.index("    // those of this row")
    assert lines[above + 1].startswith("    State* warp_states = values + threadIdx.x / ")
