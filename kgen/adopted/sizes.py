"""Which sizes a kernel works for, as one formula: found by what it did with those tried."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kgen.specs.formula import formula

# At and around the limits that kernels have: warps, blocks, vectors, arrays of so many.
COLS = (
    *range(1, 9), 16, 31, 32, 33, 63, 64, 65, 96, 100, 127, 128, 129, 192, 255, 256, 257, 260, 384,
    511, 512, 513, 1000, 1023, 1024, 1025, 1028, 2048, 2052, 4096, 4100,
)  # fmt: skip
ROWS = (1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 128, 256, 257)
_MULTIPLES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ANY = ""


def limit_of(name: str, works: Mapping[int, bool], wrong: Collection[int]) -> str | None:
    """Return the formula of `name` (rows or cols) that is true of just what works.

    It is '' where everything does, and None where no simple limit says it. A kernel that computes
    all of a longer row, and computes it `wrong`, has a mistake and no limit.
    """
    good = [size for size, works_there in works.items() if works_there]
    if not good or any(size > min(good) for size in wrong):
        return None
    for text in _limits(name, max(good), min(good)):
        holds = formula(text or "True")
        if all(bool(holds.value({name: size})) == works[size] for size in works):
            return text
    return None


def _limits(name: str, most: int, fewest: int) -> Iterator[str]:
    yield ANY
    if most == fewest:
        yield f"{name} == {most}"
    multiples = [f"{name} % {number} == 0" for number in _MULTIPLES]
    yield from multiples
    yield f"is_power_of_two({name})"
    yield f"{name} >= {fewest}"
    if name == "rows":
        return  # a grid has as many blocks as rows need; where it has not, it is wrong
    yield f"{name} <= {most}"
    for text in (*multiples, f"is_power_of_two({name})", f"{name} >= {fewest}"):
        yield f"{text} and {name} <= {most}"


def together(*limits: str) -> str:
    """Return the formula of several limits."""
    said = [limit for limit in limits if limit]
    return " and ".join(said)


def words(limit: str) -> str:
    """Return a limit as a reader says it: `cols a multiple of 4, up to 1024`."""
    parts = []
    for part in limit.split(" and "):
        name, _, rest = part.partition(" ")
        if part.startswith("is_power_of_two"):
            parts.append(f"{part[16:-1]} a power of two")
        elif rest.startswith("%"):
            parts.append(f"{name} a multiple of {rest.split()[1]}")
        elif rest.startswith("<="):
            parts.append(f"{name} up to {rest.split()[1]}")
        elif rest.startswith(">="):
            parts.append(f"{name} from {rest.split()[1]}")
        else:
            parts.append(f"{name} {rest.split()[1]} only")
    return ", ".join(parts)
