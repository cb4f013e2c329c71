"""Any measurement, for tests of properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kgen.store.columns import COLUMNS, Column, unflatten
from kgen.store.measurement import Measurement


def any_measurement() -> st.SearchStrategy[Measurement]:
    """Give every column any value that it can have."""
    return st.fixed_dictionaries({c.name: _values(c) for c in COLUMNS.values()}).map(unflatten)


def _values(column: Column) -> st.SearchStrategy[Any]:
    whole = st.integers(min_value=-(2**63), max_value=2**63 - 1)
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    values = {int: whole, float: numbers, tuple: st.lists(numbers).map(tuple)}.get(
        column.kind, st.from_type(column.kind)
    )
    return st.none() | values if column.optional else values
