"""Mistakes that people make in these kernels: each one must be caught by the usual check."""

from dataclasses import replace

import pytest

from kgen.evidence.check import check
from kgen.sources.render import render
from kgen.specs.variants import checked

pytestmark = pytest.mark.slow

SYNC = "__syncthreads();"
# what is wrong -> (variant, text in the source, what the mistake makes of it)
MUTANTS = {
    "no barrier before the first halving": ("v1", f"{SYNC}  // every thread's value is visible", ";"),
    "no barrier between halvings": ("v1", f"{SYNC}  // this halving is complete", "; // this"),
    "no barrier before the first warp reads": ("v2", f"{SYNC}  // every warp's value is visible", ";"),
    "no barrier before the result is read": ("v5", f"{SYNC}  // the row's state is visible", ";"),
    "no barrier between two reductions": ("v2", f"{SYNC}  // all have read the result before the next reduction", "; //"),
    "no barrier between two rows": ("v9:grid=4", f"{SYNC}  // all have read before the next row", "; //"),
    "no barrier between two tiles": ("t2", f"{SYNC}  // all have read the result before the next tile", "; //"),
    "mask halved": ("v8", "WHOLE_WARP = 0xffffffffu", "WHOLE_WARP = 0x0000ffffu"),
    "mask of lanes that left": ("v8:threads_per_row=8", "(state, row_lanes())", "(state, 0xffffffffu)"),
    "first shuffle skipped": ("v5", "offset = WIDTH / 2", "offset = WIDTH / 4"),
    "a result that only one lane has": ("v8", "__shfl_xor_sync", "__shfl_down_sync"),
    "shuffles among too few lanes": ("v5", "warp_reduce<WARPS_PER_BLOCK>", "warp_reduce<WARPS_PER_BLOCK / 2>"),
    "tail skipped": ("v6_double", "c = vecs * VEC_SIZE + threadIdx.x", "c = cols + threadIdx.x"),
    "last vector skipped": ("v6", "v < vecs;", "v < vecs - 1;"),
    "thread index scaled twice": ("v6", "(row)[v];", "(row)[v * VEC_SIZE];"),
    "column bound one too many": ("v2", "c < cols", "c <= cols"),
    "maximum starts at zero": ("v1", "thread_max = -FLT_MAX;", "thread_max = 0.0f;"),
    "idle lanes contribute zero": ("v2:threads=96", "return -FLT_MAX;", "return 0.0f;"),
    "empty state at minus infinity": ("v8", "return {-FLT_MAX, 0.0f};", "return {-INFINITY, 0.0f};"),
    "rescale dropped on merging": ("v5", "a.d * expf(a.m - m)", "a.d"),
    "rescale dropped in the update": ("v4", "state.d * expf(state.m - m)", "state.d"),
    "rescale dropped between tiles": ("t2", "row_state.d * expf(row_state.m - m)", "row_state.d"),
    "plus infinity forgotten": ("v5:row_map=thread", "if (row_state.m == INFINITY)", "if (false)"),
    "stale output kept": ("v3", "if (c < cols) y[c]", "if (c < cols - 1) y[c]"),
    "only the first thread normalises with the row's sum": ("v1", "return partial[0];", "return partial[thread];"),
    "alignment ignored": ("v9", "% alignof(Vec) == 0", "% 1 == 0"),
    "rows share a warp's result": ("v8", "threadIdx.x / WARP_SIZE;", "threadIdx.x / 64;"),
    "atomic maximum of raw bits": ("t1", "? ~bits : bits | 0x80000000u", "? bits : bits"),
    "only x's alignment asked": ("v9", " && is_vec_aligned(y_row)", ""),
    "alignment taken from the row length": ("v7", "is_vec_aligned(x_row) && is_vec_aligned(y_row)", "cols % 4 == 0"),
    "items one short": ("v7:items=1", "i < ITEMS_PER_THREAD", "i < ITEMS_PER_THREAD - 1"),
    "the warp past the end stays": ("v8", "if (row >= rows) return;", "if (row > rows) return;"),
    "threads without a row read one": ("v5:threads_per_row=64", "row < rows ? cols : 0;", "cols;"),
    "one of two rows at once counted twice": ("v10:rows_at_once=2", "first_row + r * GROUPS_PER_BLOCK +", "first_row +"),
    "the guard of the second row dropped": ("v10:rows_at_once=2", "row < rows ?", "row < rows || r > 0 ?"),
    "rows of a block that overlap": ("v10:rows_at_once=2", "r * GROUPS_PER_BLOCK", "r"),
    "parts of a row that overlap": ("v13:row_order=contiguous", "min(begin + length,", "min(begin + length + 1,"),
    "a gap between parts of a row": ("v13:row_order=contiguous", "min(begin + length,", "min(begin + length - 1,"),
    "every block on the first part": ("v13:row_order=contiguous", "blockIdx.x % BLOCKS_PER_ROW * length", "0"),
    "a streamed vector in another place": ("v7:stores=streaming", "(row) + v, ", "(row) + v * VEC_SIZE, "),
    "half a vector's alignment asked": ("v11:dtype=float16", "% alignof(Packed)", "% (alignof(Packed) / 2)"),
    "a sum kept in bfloat16": ("v3:dtype=bfloat16", "thread_sum += values[k]", "thread_sum = __bfloat162float(__float2bfloat16_rn(thread_sum + values[k]))"),
    "a sum of doubles in a float": ("v1:dtype=float64", "double thread_sum", "float thread_sum"),
    "the lowest half among numbers of bfloat16": ("v1:dtype=bfloat16", "= -FLT_MAX", "= -65504.0f"),
    "numbers cut off": ("v7:dtype=float16", "__float2half_rn", "__float2half_rz"),
    "numbers cut off after they were parked": ("v1:dtype=bfloat16,cache=exps_output", "__float2bfloat16_rn", "__float2bfloat16_rz"),
    "half a state sent": ("v14:blocks_per_row=2", "k < STATE_WORDS", "k < STATE_WORDS / 2"),
    "a chunk read before it is there": ("v12", f"{SYNC}  // the chunk is complete", "; //"),
    "a chunk copied back too early": ("v12", f"{SYNC}  // all of the output is there", "; //"),
    "the next chunk copied too early": (
        "v12:row_loop=grid_stride,grid=2,threads=32", f"{SYNC}  // the next chunk takes", "; //"
    ),
    "the last chunk has all rows": ("v12", "min(ROWS_PER_BLOCK, rows - first_row)", "ROWS_PER_BLOCK"),
    "only the source's boundaries": ("v12", "past_boundary(to) == past_boundary(from) ?", "true ?"),
    "every other step of the walk": ("v8:row_loop=grid_stride", "+= gridDim.x", "+= 2 * gridDim.x"),
    "logarithm forgotten": ("v3:op=log_softmax", "logf(row_sum)", "row_sum"),
    "prefetch of the same vector": ("v6_fetch", "load_vec(x_row, v + THREADS_PER_BLOCK)", "load_vec(x_row, v)"),
}  # fmt: skip


@pytest.mark.parametrize(("variant", "old", "new"), MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_caught(variant: str, old: str, new: str) -> None:
    source = render(checked(variant).resolve(257))
    assert old in source.text
    mutant = replace(source, text=source.text.replace(old, new))
    shapes = [(45, cols) for cols in (3, 33, 257, 1000, 1027, 2500)]
    verdicts = check(mutant, shapes=_that_fit(source, shapes))
    assert not all(row.ok for row in verdicts)


def test_an_order_of_threads_that_hides_a_race_is_not_the_only_one() -> None:
    source = render(checked("v2"))
    barrier = f"{SYNC}  // all have read the result"
    mutant = replace(source, text=source.text.replace(barrier, "; //"))
    in_order = check(mutant, shapes=[(45, 1000)], schedules=("in_order",))
    assert all(row.ok for row in in_order)
    assert not all(row.ok for row in check(mutant, shapes=[(45, 1000)]))


def test_a_kernel_that_hangs_is_tried_once() -> None:
    source = render(checked("v1"))
    mutant = replace(source, text=source.text.replace("half /= 2", "half /= 1"))
    (row,) = check(mutant, shapes=[(45, 3), (45, 33)], timeout_s=1)
    assert "of 1 s" in row.reason


@pytest.mark.parametrize("variant", sorted({variant for variant, _, _ in MUTANTS.values()}))
def test_the_unchanged_source_passes(variant: str) -> None:
    source = render(checked(variant).resolve(257))
    shapes = [(45, cols) for cols in (3, 33, 257, 1000, 1027, 2500)]
    assert [
        row.reason for row in check(source, shapes=_that_fit(source, shapes)) if not row.ok
    ] == []


def _that_fit(source, shapes):  # type: ignore[no-untyped-def]
    from kgen.specs.rules import problems_for

    return [shape for shape in shapes if not problems_for(source.spec, *shape)]
