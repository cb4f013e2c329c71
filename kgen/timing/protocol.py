"""How times are taken: the settings of a measurement, and the two protocols that have a name."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

import msgspec

from kgen.errors import UsageError
from kgen.evidence.inputs import make
from kgen.text import did_you_mean
from kgen.toolchain import CompileOptions

# Inputs and outputs in turn exceed the L2 this many times, so that a call finds none of its own.
L2_MULTIPLE = 4
# A graph of more calls takes long to build; small matrices then rotate over less than the L2.
MAX_PAIRS = 1024
MAX_CALLS = 4096


class L2(StrEnum):
    """Whether a call finds its data in the L2 cache (as far as it fits) or has to fetch it."""

    COLD = "cold"
    WARM = "warm"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The settings of a measurement.

    Each round takes a sample of every candidate, in shuffled order if `interleaved`. A sample is
    the mean over calls that take about `sample_us` together, replayed as a CUDA graph if `graphs`,
    otherwise `calls` calls issued one by one after `warmup` untimed ones. Rounds end when the
    median of every candidate is known within `precision` (half its 95% interval, relative), at
    `max_rounds`, or when `budget_s` seconds are over; there are at least `min_rounds`.
    A candidate is stopped that takes `stop_multiple` times the baseline (and over ten seconds).
    """

    name: str = "rotated"
    l2: L2 = L2.COLD
    graphs: bool = True
    interleaved: bool = True
    sample_us: float = 1000.0
    calls: int | None = None
    warmup: int = 0
    min_rounds: int = 10
    max_rounds: int = 100
    precision: float = 0.005
    budget_s: float = 20.0
    stop_multiple: float = 1000.0
    input_name: str = "uniform"
    seed: int = 42
    options: CompileOptions = field(default_factory=CompileOptions)

    def pairs(self, matrix_bytes: int, l2_bytes: int) -> int:
        """Return how many pairs of input and output the calls go through in turn."""
        if self.l2 is L2.WARM:
            return 1
        wanted = -(-L2_MULTIPLE * l2_bytes // (2 * matrix_bytes)) + 1
        return max(2, min(wanted, MAX_PAIRS))

    def calls_per_sample(self, call_us: float, pairs: int) -> int:
        """Return the calls of a sample: whole turns through the pairs."""
        if self.calls:
            return self.calls
        turns = max(1, round(self.sample_us / max(call_us, 1e-3) / pairs))
        return pairs * max(1, min(turns, MAX_CALLS // pairs))

    def as_json(self) -> str:
        """Return all settings, for the database."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Protocol:
        """Return the protocol that `as_json` wrote; settings of other versions are left out."""
        return msgspec.json.decode(text, type=Protocol)

    def __str__(self) -> str:
        """Return the method in words, for tables and reports."""
        place = (
            "calls rotate over inputs and outputs of four times the L2"
            if self.l2 is L2.COLD
            else "every call has the same input and output"
        )
        issued = "replayed as a CUDA graph" if self.graphs else f"{self.calls} launches by PyCUDA"
        order = "all candidates in shuffled rounds" if self.interleaved else "one after the other"
        return f"L2 {self.l2} ({place}), {issued}, {order}, by CUDA events"


ROTATED = Protocol()
# As the report on V1 to V9 measured: 100 launches to warm up, 1000 timed, their mean.
REPORT = Protocol(
    name="report",
    l2=L2.WARM,
    graphs=False,
    interleaved=False,
    calls=100,
    warmup=100,
    min_rounds=10,
    max_rounds=10,
)
PROTOCOLS = {protocol.name: protocol for protocol in (ROTATED, REPORT)}


def find_l2(name: str) -> L2:
    """Return a state of the L2 cache by name. Raises UsageError for an unknown one."""
    if name not in list(L2):
        raise UsageError(f"--l2 {name}: the L2 cache is {' or '.join(L2)}")
    return L2(name)


def find_protocol(name: str, l2: str | None = None, **settings: object) -> Protocol:
    """Return a protocol by name with some settings changed; those that are None stay.

    Raises UsageError for an unknown name, state of the L2 or input.
    """
    if name not in PROTOCOLS:
        raise UsageError(f"there is no protocol {name!r}{did_you_mean(name, PROTOCOLS)}")
    changes = {key: value for key, value in settings.items() if value is not None}
    if l2 is not None:
        changes["l2"] = find_l2(l2)
    protocol = replace(PROTOCOLS[name], **changes)  # type: ignore[arg-type]
    make(protocol.input_name, 0, 0)  # of which every candidate's row would tell
    return protocol
