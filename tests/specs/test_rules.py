"""Every refusal: what it says, which values it names, what it tells the user to change."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgen.errors import UsageError
from kgen.specs.explain import explain
from kgen.specs.rules import (
    NUMBER_RULES,
    RULES,
    SHAPE_READS,
    problems,
    problems_for,
    require_valid,
    static_shared_bytes,
)
from kgen.specs.spec import Spec
from kgen.specs.variants import parse
from tests.strategies import CHOICES, specs

# variant -> (rule, what its sentence must say)
REFUSED = {
    "v7:dtype=float16,out_dtype=float64": ("both_types_are_computed_alike", "computed in float32, and the output is not of that; use out_dtype=float16"),
    "v7:dtype=float64,exp=__expf": ("the_exponential_is_of_the_type", "no form for double; use exp=expf"),
    "v7:dtype=float16,vec=1,cache=inputs_shared_async": ("copies_are_of_some_bytes", "2 bytes are not copied past registers; use vec=8,vec_scans=both or cache=inputs_shared"),
    "v13:dtype=float16,next_row=async,unaligned=shift,vec=16": ("vectors_are_machine_words", "vec=16: the machine accesses 1, 2, 4 or 8 elements of float16 at once; use vec=8"),
    "v13:out_dtype=float16,next_row=async,vec=8": ("next_rows_come_by_some_bytes", "32 bytes are not copied past registers; use vec=4 or next_row=registers"),
    "v11:dtype=float16,cache=exps_shared_async": ("exponentials_fit_their_place", "no room where an input was; use cache=inputs_shared_async"),
    "v12:out_dtype=float16,row_io=chunk": ("chunks_are_of_one_type", "takes the input's place in shared memory; use row_io=direct"),
    "v7:dtype=float16,out_dtype=float32,vec=8,stores=streaming": ("hints_are_of_single_accesses", "32 bytes take two accesses; use stores=plain or vec=4"),
    "t1:dtype=float64,merge=paired": ("states_of_tiles_are_exchanged_at_once", "no atomic takes maximum and sum of float64 at once"),
    "cpu:threads=2": ("host_has_one_thread", "threads=2 with target=host.*use threads=1 or target=device"),
    "v1:threads=2048": ("threads_fit_a_block", "threads=2048 is not a block size; use 1 to 1024"),
    "v1:threads=0": ("threads_fit_a_block", "threads=0 is not a block size"),
    "v5:threads=48": ("reduction_connects_the_row", "two_level with 48 threads a row.*threads=32 or threads=64"),
    "v5:threads=100": ("reduction_connects_the_row", "threads=100 .*threads=96 or threads=128"),
    "k4:threads=180": ("reduction_connects_the_row", "warps_thread0 with 180.*threads=160 or threads=192"),
    "v8:threads=48": ("rows_divide_the_block", "threads=48 with threads_per_row=32.*threads=32 or 64"),
    "v1:threads=96": ("reduction_connects_the_row", "topology=tree with 96.*power of two; use topology=two_level"),
    "k3:threads=64": ("reduction_connects_the_row", "64 threads a row.*shuffles reach only the lanes of one warp"),
    "k1:topology=tree": ("reduction_connects_the_row", "one thread a row.*it has the whole row.*topology=none"),
    "v2:topology=none": ("reduction_connects_the_row", "256 threads a row.*their results never meet"),
    "v8:topology=two_level": ("reduction_connects_the_row", "32 threads a row, threads=256 a block: .*use topology=warp"),
    "k1:merge=paired": ("pairs_have_somewhere_to_meet", "no two threads share a row"),
    "v5:cache=exps_registers": ("online_keeps_inputs", "use cache=inputs_registers or update=three"),
    "v4:cache=exps_output": ("online_keeps_inputs", "maximum that they refer to changes"),
    "k2:merge=paired,vec=4,vec_scans=first": (
        "kept_pairs_keep_their_thread", "vec_scans=first with merge=paired.*vec_scans=both"
    ),
    "t1:merge=paired,cache=exps_output": (
        "kept_pairs_keep_their_thread", "the writing kernel no longer has"
    ),
    "v7:row_split=none,blocks_per_row=2": ("blocks_share_rows_in_one_launch", "row_split=none: blocks.*have to meet; use row_split=cluster"),
    "v13:blocks_per_row=3": ("blocks_of_a_row_are_a_power_of_two", "blocks_per_row=3: use a power of two from 1 to 128"),
    "v13:blocks_per_row=0,items=1": ("blocks_of_a_row_are_a_power_of_two", "blocks_per_row=0: use"),
    "cpu:blocks_per_row=4": ("host_has_one_thread", "blocks_per_row=4 with target=host.*use blocks_per_row=1 or target=device"),
    "v13:topology=two_level": ("reduction_connects_the_row", "1024 threads a row.*it does not reach other blocks; use topology=all_warps"),
    "v14:blocks_per_row=128,threads=64": ("every_message_has_a_thread", "a thread for the message of each block.*use threads=128 or more"),
    "v13:blocks_per_row=32": ("blocks_share_rows_in_one_launch", "from 2 to 16"),
    "v11:cache=exps_shared,vec_scans=first": ("kept_pairs_keep_their_thread", "merge=by_warp and cache=exps_shared: .*use vec_scans=both"),
    "v1:cache=inputs_shared_bulk": ("copies_are_of_whole_vectors", "vec=1,vec_scans=none.*brings 16 bytes or a multiple.*use vec=4,vec_scans=both"),
    "v6:cache=inputs_shared_bulk,vec_scans=second": ("copies_are_of_whole_vectors", "vec=4,vec_scans=second with"),
    "v6:cache=inputs_shared_async,unaligned=scalar_groups": ("copies_are_of_whole_vectors", "has no vectors; use unaligned=scalar_row"),
    "v5:cache=exps_shared": ("online_keeps_inputs", "use cache=inputs_shared or update=three"),
    "v5:cache=exps_shared_async": ("online_keeps_inputs", "use cache=inputs_shared_async or update=three"),
    "v1:op=log_softmax,cache=exps_shared_bulk,vec=4": ("exponentials_are_of_use", "use cache=inputs_shared_bulk"),
    "v13:cache=exps_shared,unaligned=shift": ("shifted_rows_are_in_registers", "cache=exps_shared and"),
    "v13:next_row=async,row_loop=once": ("a_next_row_is_loaded_to_registers", "row_loop=once: a block has no next row"),
    "v12:threads_per_row=auto,vec=4,items=4,next_row=async": ("a_chunk_has_no_next_row", "row_io=chunk: a chunk's place is taken.*or row_io=direct"),
    "v13:next_row=registers,items=40": ("values_fit_the_registers", "keeps 161 values of each of 2 rows a thread.*registers for 119; use items=29 or less"),
    "v11:next_row=async,items=58": ("a_next_row_fits_shared_memory", "items=58 x vec=4 x threads=256 elements = 237568 bytes a block, more than the 232448.*use next_row=none"),
    "v9:next_row=registers": ("a_next_row_is_loaded_to_registers", "cache=none.*into registers by vectors"),
    "v8:vec=4,cache=registers,row_loop=grid_stride,next_row=async": ("a_next_row_is_loaded_to_registers", "use next_row=none or threads_per_row=auto"),
    "v7:row_loop=grid_stride,next_row=async": ("next_rows_are_copied_by_vectors", "unaligned=shift or next_row=none"),
    "v11:row_loop=grid_stride,next_row=bulk,vec=2": ("next_rows_are_copied_by_vectors", "use vec=4 or next_row=async"),
    "v7:row_order=contiguous": ("parts_are_of_split_rows", "row_order=contiguous with row_split=none.*use row_order=interleaved or row_split=cluster"),
    "v13:row_order=contiguous,cache=none": ("parts_are_of_split_rows", "cache=none: a row has parts where"),
    "v13:merge=paired": ("warps_bring_pairs", "use topology=all_warps,merge=by_warp or neither"),
    "v13:update=online": ("warps_bring_pairs", "a warp sums against its maximum.*use update=three_pass"),
    "v11:row_map=grid,merge=by_warp,topology=all_warps,cache=none": ("warps_bring_pairs", "does not know a warp's maximum; use merge=separate"),
    "v11:unaligned=shift,cache=none": ("shifted_rows_are_in_registers", "on their way into registers; use cache=inputs_registers"),
    "v13:row_loop=grid_stride,grid=12": ("grid_belongs_to_a_row_loop", "grid=12 with blocks_per_row=8.*use grid=16"),
    "v4:vec=3": ("vectors_are_machine_words", "vec=3: the machine accesses 1, 2 or 4 elements of float32 at once; use vec=2"),
    "v4:vec=0": ("vectors_are_machine_words", "use vec=1"),
    "t1:tile=0": ("tiles_are_row_parts", "tile=0: use 1 to 262144"),
    "t1:tile=2147483644": ("tiles_are_row_parts", "use 1 to 262144"),
    "v1:vec_scans=both": ("vectors_are_used_somewhere", "vec=1 with vec_scans=both.*or vec=4"),
    "v6:vec_scans=none": ("vectors_are_used_somewhere", "vec=4 with vec_scans=none.*or vec=1"),
    "v1:unaligned=scalar_groups": ("unaligned_needs_vectors", "single elements are always aligned"),
    "v6:stores=streaming": ("streamed_rows_come_by_once", "stores=streaming with cache=none.*use stores=plain or cache=inputs_registers"),
    "v12:loads=streaming": ("streamed_rows_come_by_once", "loads=streaming.*row_io=chunk: only rows.*row_io=direct"),
    "v2:prefetch=true": ("prefetch_has_vectors_to_fetch", "vec_scans=none.*or vec=4,vec_scans=both"),
    "v6:prefetch=true": ("prefetch_has_vectors_to_fetch", "vec_scans=first: the writing scan loads"),
    "v7:prefetch=true": ("prefetch_has_vectors_to_fetch", "cache=inputs_registers.*prefetch=false"),
    "v5:items=4": ("items_need_a_register_cache", "items=4 with cache=none.*use items=auto or cache"),
    "v5:trip=runtime": ("items_need_a_register_cache", "trip=runtime with cache=none"),
    "v3:items=0": ("items_need_a_register_cache", "items=0 with vec=1 holds no element"),
    "v3:items=300": ("values_fit_the_registers", "items=300 x vec=1 keeps 300 values a thread"),
    "v3:items=64,threads=1024": ("values_fit_the_registers", "threads=1024.* registers for 48; use items=48 or less"),
    "t2:tile=100000": ("values_fit_the_registers", "tile=100000 x vec=1 keeps 782 values.*use tile=30592 or less"),
    "v5:tile=1024": ("tiles_have_a_use", "tile=1024 with update=online_shared.*leave tile out"),
    "t2:vec=4,tile=1022": ("tiles_have_a_use", "tile=1022 with vec=4.*use tile=1024"),
    "v5:grid=4": ("grid_belongs_to_a_row_loop", "grid=4 with row_loop=once"),
    "v9:grid=0": ("grid_belongs_to_a_row_loop", "grid=0: use 1 to"),
    "v5:min_blocks=9": ("blocks_fit_an_sm", "min_blocks=9 with threads=256.*min_blocks=8 or less"),
    "cpu:min_blocks=1": ("blocks_fit_an_sm", "target=host: there are no blocks"),
    "v10:rows_at_once=3": ("rows_at_once_are_few", "rows_at_once=3: use 1, 2 or 4"),
    "v10:rows_at_once=2,cache=none": ("rows_at_once_are_in_registers", "rows_at_once=2 with cache=none.*use rows_at_once=1 or cache=inputs_registers"),
    "v8:vec=4,cache=registers,threads=32,row_loop=grid_stride,next_row=registers,rows_at_once=2": ("rows_at_once_are_in_registers", "next_row=registers: rows at once have.*use rows_at_once=1 or next_row=none"),
    "v13:row_loop=grid_stride,next_row=async,loads=streaming": ("streamed_rows_come_by_once", "from shared memory, which has no such load; use loads=plain"),
    "v10:rows_at_once=2,trip=runtime": ("rows_at_once_are_in_registers", "trip=runtime and.*trip=static"),
    "v10:rows_at_once=4,row_io=chunk": ("rows_at_once_are_in_registers", "row_io=chunk.*row_io=direct"),
    "v10:rows_at_once=2,update=online_tile": ("rows_at_once_are_in_registers", "not by tiles"),
    "v7:rows_at_once=2": ("rows_at_once_need_no_barrier", "threads_per_row=256, topology=two_level.*rows_at_once=1 or threads_per_row=32,topology=warp"),
    "v10:rows_at_once=2,topology=tree": ("rows_at_once_need_no_barrier", "threads_per_row=16, topology=tree"),
    "v10:rows_at_once=4,items=16": ("values_fit_the_registers", "items=16 x vec=4 keeps 65 values of each of 4 rows.*use items=14 or less"),
    "v12:cache=inputs_shared": ("chunks_have_one_copy", "in shared memory already; use cache=none or"),
    "v12:cache=exps_registers,vec=4,unaligned=shift": ("chunks_have_one_copy", "neighbours' threads write; use unaligned=scalar_row or"),
    "cpu:row_io=chunk": ("chunks_have_whole_rows", "row_io=chunk with target=host.*use row_io=direct"),
    "t1:row_io=chunk": ("chunks_have_whole_rows", "row_io=chunk with row_split=tiles.*or row_split=none"),
    "v13:row_io=chunk": ("chunks_have_whole_rows", "a chunk has whole rows, and a block a part of one"),
    "v12:cache=none,prefetch=true": ("prefetch_has_vectors_to_fetch", "row_io=chunk: the writing scan reads nothing"),
    "t1:cache=registers": ("kernels_share_no_registers", "do not outlive a kernel"),
    "t1:cache=shared": ("kernels_share_no_registers", "use cache=none or cache=exps_output"),
    "cpu:cache=shared": ("host_has_no_device", "no register file or shared memory"),
    "cpu:vec=4": ("host_has_no_device", "plain C.. has no vectors of elements; use vec=1"),
    "cpu:exp=__expf": ("host_has_no_device", "exp=__expf with target=host: it is an instruction of the GPU"),
    "v5:threads_per_row=12": ("a_row_has_part_of_a_warp_or_whole_warps", "1, 2, 4, 8, 16 or 32 threads"),
    "v5:threads_per_row=96": ("rows_divide_the_block", "threads=256 with threads_per_row=96.*192"),
    "t1:threads_per_row=32": ("split_rows_have_whole_blocks", "threads_per_row=32 with row_split=tiles"),
    "t1:row_loop=grid_stride": ("split_rows_have_whole_blocks", "row_loop=grid_stride with row_split"),
    "t2:threads_per_row=64": ("tiles_are_reduced_by_all", "would miss the barriers of a tile"),
    "v3:op=log_softmax,cache=exps_registers": ("exponentials_are_of_use", "use cache=inputs_registers"),
    "k1:op=log_softmax,normalize=divide": ("there_is_something_to_divide", "its output is no quotient"),
    "v5:static_cols=0": ("static_cols_is_a_length", "static_cols=0: use 1 to"),
    "v7:items=1,static_cols=4096": ("static_cols_is_a_length", "covers 1024 columns; static_cols=4096"),
}  # fmt: skip

# Combinations that must never be refused.
VALID = [
    "v8:vec=4,cache=registers",
    "v3:trip=runtime,items=300",
    "cpu:update=online_tile,tile=1024",
    "v2:threads=512",
    "v9:update=online_shared",
    "v9:merge=separate",
    "v1:vec=4",
    "v2:vec=2,vec_scans=first",
    "v2:vec=4,vec_scans=second",
    "k2:vec=4",
    "k4:vec=2",
    "v4:vec=4",
    "v5:vec=2",
    "v2:cache=registers",
    "v2:cache=exps_registers",
    "k4:cache=registers",
    "k4:cache=exps_registers",
    "v4:cache=registers",
    "v5:cache=registers",
    "v8:cache=registers",
    "v9:cache=registers",
    "v8:vec=4",
    "v4:cache=shared",
    "k1:update=online",
    "v5:threads=96",
    "v5:threads=1024",
    "t2:threads=96",
    "k4:threads=64",
    "v8:update=three_pass,merge=separate",
    "v8:update=three_pass,merge=separate,cache=exps_registers",
    "v6:static_cols=257",
    "v3:static_cols=1000",
    "v5:exp=__expf",
    "v5:exp=exp2",
    "v7:vec=1",
    "v7:items=0",
    "v3:trip=runtime",
    "v7:trip=runtime",
    "v8:topology=tree",
    "t1:update=online",
    "t1:cache=exps_output",
    "t2:merge=paired",
    "t2:cache=registers",
    "cpu:update=online",
    "v1:update=three_pass,merge=paired",
    "v5:row_map=thread",
    "v5:row_map=warp",
    "v5:row_map=grid",
    "v5:row_map=grid_stride",
    "v5:row_map=host",
    "v3:update=online",
    "v3:row_map=grid",
    "k3:row_map=warp",
    "v9:grid=auto",
    "v5:min_blocks=8",
    "v5:normalize=divide",
    "v13:row_map=warp",
    "v13:cache=none",
    "v13:unaligned=shift",
    "v13:row_split=none",
    "v13:row_split=co_resident",
    "v13:row_map=grid",
    "v13:row_loop=grid_stride",
    "v13:op=log_softmax",
    "v13:target=host",
    "v7:blocks_per_row=4",
    "k1:blocks_per_row=2",
    "v14:row_split=cluster",
    "v14:blocks_per_row=1",
    "v11:threads=32",
    "v11:row_map=block",
    "v11:cache=none",
    "v11:cache=exps_shared_async",
    "v13:cache=inputs_shared,vec_scans=second",
    "v13:cache=exps_shared_bulk,row_loop=grid_stride",
    "v14:cache=exps_shared_bulk",
    "v12:cache=inputs_shared_async,row_io=direct",
    "t2:cache=inputs_shared_async,vec=4",
    "v1:cache=exps_shared,topology=tree",
    "v3:cache=exps_shared_async",
    "v11:vec=1",
    "v11:merge=paired",
    "v7:merge=by_warp",
    "v10:rows_at_once=4,threads_per_row=1,merge=separate",
    "v10:rows_at_once=2,threads_per_row=32,threads=32,topology=warp_down,row_loop=grid_stride",
    "v14:row_order=contiguous,vec=1,trip=runtime,items=40",
    "v12:stores=streaming,row_io=direct",
    "v13:stores=streaming,loads=streaming,unaligned=shift",
]


@pytest.mark.parametrize(("variant", "expected"), REFUSED.items(), ids=REFUSED)
def test_refusal(variant: str, expected: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=expected[1]):
        require_valid(parse(variant))
    spec = parse(variant)
    broken = [rule for rule in NUMBER_RULES if list(rule.check(spec))]
    broken = broken or [rule for rule in RULES if list(rule.check(spec))]
    assert [rule.check.__name__ for rule in broken] == [expected[0]]


def test_every_rule_is_shown_to_refuse() -> None:
    assert {rule for rule, _ in REFUSED.values()} == {
        rule.check.__name__ for rule in (*NUMBER_RULES, *RULES)
    }


@pytest.mark.parametrize("variant", VALID)
def test_valid(variant: str) -> None:
    assert problems(parse(variant)) == []


@pytest.mark.parametrize("variant", REFUSED)
def test_the_nearest_valid_one_is_offered(variant: str) -> None:
    nearest = explain(parse(variant)).nearest
    assert nearest is not None
    assert problems(nearest) == []


@pytest.mark.parametrize(
    ("variant", "nearest"),
    [
        ("v9:vec=8", "v9"),
        ("v7:dtype=float64,vec=4", "v7:dtype=float64"),
        ("v7:dtype=float64,exp=__expf", "v7:dtype=float64"),
        ("v7:dtype=float64,out_dtype=float32", "v7:dtype=float64"),
    ],
)
def test_the_types_are_changed_last(variant: str, nearest: str) -> None:
    assert explain(parse(variant)).nearest_variant == nearest


@given(specs())
def test_problems_come_with_their_axes_and_a_way_out(spec) -> None:  # type: ignore[no-untyped-def]
    for problem in problems(spec):
        assert problem.axes
        assert "use " in problem.message or "needs " in problem.message


@pytest.mark.parametrize(
    ("variant", "rows", "cols", "sentence"),
    [
        (
            "v7:items=4,threads=128", 1, 4096,
            "items=4 x vec=4 x threads=128 covers 2051 columns; cols=4096 needs items>=8 or threads>=256",
        ),
        ("v3:items=1", 1, 257, "items=1 x vec=1 x threads=256 covers 256 .*items>=2 or threads>=512"),
        ("v3", 256, 65536, "items=auto would keep 256 x vec=1 values.*needs cache=none"),
        ("v7", 256, 65536, "items=auto would keep 64 x vec=4 values.*needs cache=none"),
        ("v5:static_cols=257", 1, 256, "static_cols=257 was compiled for rows of that length only"),
        ("v5:cache=shared", 1, 60000, "240000 bytes a block, more than the 232448 bytes"),
        ("v11:next_row=async", 1, 57 * 1024, "next_row=async keeps items=57 x vec=4 x threads=256"),
        ("v11:next_row=async", 1, 2**17, "needs next_row=none,cache="),
        ("t1", 2**20, 2**22, "in tiles of 1024 needs 4294967296 blocks.*use a larger tile"),
        ("v13", 2**28, 67, "with 8 blocks a row needs 2147483648 blocks.*use fewer"),
        ("v13:items=1", 1, 5000, "items=1 x vec=4 x threads=128 x blocks_per_row=8 covers 4099 columns"),
        ("v13", 1, 2**20, "items=auto would keep .* needs cache=none"),
        ("v13:min_blocks=8", 1, 2**18, "items=auto would keep .* needs cache=inputs_shared"),
        ("v13:cache=inputs_shared_bulk", 1, 470_000, "1 x 470000 / 8 elements = 235008 bytes a block, .* use blocks_per_row=16 or cache=none"),
        ("v13:cache=inputs_shared_bulk", 1, 2**20, "524288 bytes a block, .* use cache=none"),
        ("v11:cache=exps_shared_async", 1, 60_000, "1 x 60000 elements = 240000 bytes a block, .* use cache=none"),
        ("v1", 1, 2**31, "cols=2147483648: use 0 to"),
        ("v1", -1, 4, "rows=-1: use 0 to"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(variant: str, rows: int, cols: int, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        require_valid(parse(variant), rows, cols)


def test_shared_memory_of_what_warps_and_blocks_send() -> None:
    """Eight bytes a state: of the warps of all blocks, or of the blocks and of a block's warps."""
    for variant, states in {
        "v11": 8,
        "v13:row_split=cluster": 8 * 4,
        "v13": 8 * 4 + 1,  # the barrier
        "v13:row_loop=grid_stride": 2 * (8 * 4 + 1),
        "v14:blocks_per_row=16,threads=256": 16 + 8,
    }.items():
        assert static_shared_bytes(parse(variant)) == 8 * states


def test_rows_up_to_the_memory_of_all_blocks_fit() -> None:
    """A block of sm_90 has 227 KB, of which the states of the row's warps take a little."""
    spec = parse("v13:cache=exps_shared_bulk,threads=512")
    taken = static_shared_bytes(spec)
    assert taken == 8 * (8 * 16 + 1 + 1)
    assert problems_for(spec, 16, 464_000 - 8 * 1024 // 4) == []
    longest = 8 * ((227 * 1024 - taken) // 16 * 4)
    assert problems_for(spec, 16, longest) == [] != problems_for(spec, 16, longest + 1)
    assert spec.shared_bytes(longest) + taken <= 227 * 1024


def test_shapes_at_the_limit_fit() -> None:
    assert problems_for(parse("v7:items=4"), 1, 4099) == []
    assert problems_for(parse("v7:items=4"), 1, 4100) != []
    assert problems_for(parse("v7:items=0"), 9, 3) == []
    assert problems_for(parse("v3"), 0, 10**6) == []


# Numbers on both sides of what the rules that compute with them allow.
NUMBERS = {
    "items_per_thread": st.sampled_from([None, 0, 1, 16, 300]),
    "tile_size": st.sampled_from([None, 64, 1022, 100_000]),
    "threads_per_block": st.sampled_from([1, 32, 48, 64, 256, 1024]),
    "grid_blocks": st.sampled_from([None, 0, 3]),
    "rows_at_once": st.sampled_from([1, 2, 3, 4]),
    "blocks_per_row": st.sampled_from([1, 2, 8, 32]),
    "min_blocks_per_sm": st.sampled_from([None, 1, 8, 33]),
    "static_cols": st.sampled_from([None, 0, 67, 16_384]),
}


def points_on_the_axes() -> st.SearchStrategy[Spec]:
    """Specs with every axis at random; hardly any is valid."""
    return st.builds(parse("v1").replace, **CHOICES | NUMBERS)


TILES = parse("v1").replace(row_split="tiles", tile_size=8)
WALKED_TILES = TILES.replace(row_loop="grid_stride", grid_blocks=3)


@settings(max_examples=300, deadline=None)
@given(one=points_on_the_axes(), other=points_on_the_axes())
@example(one=TILES, other=WALKED_TILES)  # whose grids differ
@example(one=WALKED_TILES, other=TILES)
def test_a_rule_reads_the_axes_that_it_says(one: Spec, other: Spec) -> None:
    for rule in (*NUMBER_RULES, *RULES):
        mixed = other.replace(**{axis: getattr(one, axis) for axis in rule.reads})
        assert bool(list(rule.check(mixed))) == bool(list(rule.check(one))), rule.name
    mixed = other.replace(**{axis: getattr(one, axis) for axis in SHAPE_READS})
    for shape in [(1, 67), (2**20, 16_384), (1, 2**22)]:
        assert bool(problems_for(mixed, *shape)) == bool(problems_for(one, *shape))


def test_rules_have_names_in_words() -> None:
    assert {rule.name for rule in RULES} >= {
        "reduction connects the row",
        "values fit the registers",
    }
