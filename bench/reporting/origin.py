"""Says where, when and with what figures were measured, as far as their file knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kgen.store.measurement import Measurement, Provenance
from kgen.timing.protocol import Protocol

UNKNOWN = "The file does not say where, when and with what it was measured."
# Where a JSON object keeps its origin: under one of these keys, or spread over its own.
HOLDERS = ("provenance", "machine")
OWN_KEYS = (*(field.name for field in fields(Provenance)), "gpu", "toolkit", "date")


def of_measurements(measured: Iterable[Measurement]) -> str:
    """Return a sentence for each machine and build, and one on the way of measuring."""
    rows = list(measured)
    runs: dict[str, list[str]] = {}
    for row in rows:
        runs.setdefault(_where(row.provenance), []).append(row.provenance.measured_at)
    found = [f"{where}, {_period(times)}." for where, times in runs.items()]
    found += [f"Method: {words}." for words in dict.fromkeys(map(_method, rows))]
    return " ".join([*found, *_clocks(rows), *_gpus(rows)]) or UNKNOWN


def _gpus(rows: Iterable[Measurement]) -> list[str]:
    """Warn of figures from several GPUs of one model, which are not the same."""
    ids = sorted({row.provenance.device_uuid for row in rows if row.provenance.device_uuid})
    if len(ids) < 2:
        return []
    return [
        f"The rows come from {len(ids)} GPUs ({', '.join(name[:8] for name in ids)}...). Times of "
        "one run compare; between GPUs even of one model they can differ by more than any interval."
    ]


def _where(origin: Provenance) -> str:
    arch = f" ({origin.arch})" if origin.arch else ""
    device = "the CPU" if origin.device == "cpu" else f"an {origin.device}"
    known = [
        ("driver", origin.driver),
        ("", origin.toolchain),
        ("kgen", origin.kgen),
        ("templates", origin.templates),
        ("commit", origin.commit),
    ]
    words = [f"{name} {value}".strip() for name, value in known if value]
    return ", ".join([f"Measured on {device}{arch}", *words])


def _period(times: Sequence[str]) -> str:
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"


def _method(row: Measurement) -> str:
    try:
        return str(Protocol.from_json(row.protocol))
    except (ValueError, LookupError, TypeError):
        return f"protocol {row.protocol_name or 'not known'}, L2 {row.l2 or 'not known'}"


def _clocks(rows: Sequence[Measurement]) -> list[str]:
    sensors = {
        "MHz": [clock for row in rows for clock in (row.sm_mhz_before, row.sm_mhz_after)],
        "degrees Celsius": [t for row in rows for t in (row.celsius_before, row.celsius_after)],
    }
    found = []
    for unit, values in sensors.items():
        if known := [value for value in values if value is not None]:
            found.append(f"{min(known)} to {max(known)} {unit}")
    return [f"Multiprocessors before and after rounds: {', '.join(found)}."] if found else []


def of_object(content: Mapping[str, Any]) -> str:
    """Return what a JSON object says of its origin, in words."""
    held = [content[key] for key in HOLDERS if isinstance(content.get(key), Mapping)]
    own = {key: content[key] for key in OWN_KEYS if isinstance(content.get(key), str)}
    facts = [fact for mapping in (*held, own) for fact in _facts(mapping)]
    if not facts:
        return UNKNOWN
    missing = [
        words
        for words, keys in (("commit", {"commit"}), ("date", {"date", "measured_at"}))
        if not any(keys & mapping.keys() for mapping in (*held, own))
    ]
    unknown = f" The file has no {' and no '.join(missing)}." if missing else ""
    return f"Measured with: {', '.join(facts)}.{unknown}"


def _facts(mapping: Mapping[str, Any]) -> list[str]:
    found = []
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            found += [f"{key} {fact}" for fact in _facts(value)]
        elif value:
            found.append(f"{key.replace('_', ' ')} {value}")
    return found
