"""What is kept of one measured candidate: the row of the database, of exports and of tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# What `device` is where kernels ran on the CPU.
CPU = "cpu"


class Outcome(StrEnum):
    """How a candidate ended; only an `ok` one has times.

    `refused`: the variant, the peer or the GPU cannot hold the shape; `skipped`: a peer is not
    installed; `pruned`: static facts made timing it pointless; `wrong`: it ran, and the output is
    not the softmax; `failed`: it did not compile, broke a rule of CUDA, crashed, hung or was
    stopped for taking too long; `machine trouble`: the machine lacked memory or the like, which
    says nothing of the candidate: such a row is never kept.
    """

    OK = "ok"
    REFUSED = "refused"
    SKIPPED = "skipped"
    PRUNED = "pruned"
    WRONG = "wrong"
    FAILED = "failed"
    MACHINE_TROUBLE = "machine trouble"


class Kind(StrEnum):
    """What a candidate is: ours, a user's file, someone else's softmax, or the copy yardstick."""

    VARIANT = "variant"
    FILE = "file"
    PEER = "peer"
    COPY = "copy"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where, when and with what a run measured; the same for all rows of the run.

    `run` identifies the run, `measured_at` is its start in UTC, in ISO 8601. `device` is where the
    kernels ran: the GPU's name, or CPU. `toolchain` is nvcc's version; `templates` the hash in
    the headers of the sources; `commit` that of kgen's repository ('' when not known).
    """

    run: str
    measured_at: str
    device: str
    device_uuid: str = ""
    arch: str = ""
    driver: str = ""
    toolchain: str = ""
    kgen: str = ""
    templates: str = ""
    commit: str = ""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One candidate on one shape. What was not measured, or means nothing there, is None or ''.

    `dtype` and `out_dtype` are the types of the matrices that it reads and writes.
    Times are microseconds of a softmax call: all of its launches and the clearing of its
    workspace. Each of `samples_us` is the mean of `calls_per_sample` calls in one of the run's
    rounds, and the statistics are of these samples; `low_us` and `high_us` bound the median with
    95% confidence. Rates count the matrix read once and written once, in 10^9 bytes a second.
    `copy_us` is the fastest copy of the same bytes in the same run. `speedup` is the time of
    `baseline` over this one's, from the rounds' paired samples. `is_tied` says whether the fastest
    of the run is not distinguishably faster, and `is_complete` is false where the run was ended
    before the rounds were. Registers and the like are a thread's or a block's,
    in the kernel that has most. Errors are absolute and relative to the row's largest value.
    `package` is a peer's, with its version. `spec` is every axis as JSON; `protocol` all settings
    of the measurement as JSON. Clocks are MHz of the multiprocessors, temperatures degrees Celsius,
    before the first and after the last round.
    Counts are instructions of warps on the whole matrix, sectors 32 bytes of global memory, read or
    written; they come from the CPU. `model_us` is a cost model's, never a time.
    """

    provenance: Provenance
    kind: Kind
    variant: str
    rows: int
    cols: int
    outcome: Outcome
    reason: str = ""
    dtype: str = "float32"
    out_dtype: str = "float32"
    spec: str = ""
    source_hash: str = ""
    flags: str = ""
    package: str = ""
    registers: int | None = None
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    shared_bytes: int | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    input_name: str = ""
    seed: int | None = None
    protocol_name: str = ""
    protocol: str = ""
    l2: str = ""
    samples_us: tuple[float, ...] = ()
    calls_per_sample: int | None = None
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    mean_us: float | None = None
    min_us: float | None = None
    max_us: float | None = None
    gb_per_s: float | None = None
    copy_us: float | None = None
    percent_of_copy: float | None = None
    baseline: str = ""
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    is_tied: bool | None = None
    is_complete: bool = True
    remark: str = ""
    sm_mhz_before: int | None = None
    sm_mhz_after: int | None = None
    celsius_before: int | None = None
    celsius_after: int | None = None
    global_loads: int | None = None
    global_stores: int | None = None
    global_sectors: int | None = None
    shared_accesses: int | None = None
    exponentials: int | None = None
    shuffles: int | None = None
    barriers: int | None = None
    model_us: float | None = None
