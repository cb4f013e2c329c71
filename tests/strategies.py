"""Hypothesis strategies for specs."""

from __future__ import annotations

from hypothesis import strategies as st

from kgen.specs.declared import choices
from kgen.specs.fields import CHOICE_AXES
from kgen.specs.rules import problems, problems_for
from kgen.specs.spec import Spec
from kgen.specs.variants import apply
from kgen.specs.versions import VERSIONS

CHOICES = {
    **{axis: st.sampled_from(list(choices(axis).values())) for axis in CHOICE_AXES},
    "threads_per_row": st.sampled_from([None, 1, 2, 8, 16, 32, 64]),
    "rows_at_once": st.sampled_from([1, 2, 4]),
    "blocks_per_row": st.sampled_from([1, 2, 4]),
    "vec_size": st.sampled_from([1, 2, 4, 8]),
    "prefetch": st.booleans(),
    "items_per_thread": st.sampled_from([None, 0, 1, 2, 3]),
    "tile_size": st.sampled_from([None, 64, 96, 1024]),
    "threads_per_block": st.sampled_from([1, 2, 32, 64, 96, 128, 256]),
    "grid_blocks": st.sampled_from([None, 3]),
    "min_blocks_per_sm": st.sampled_from([None, 1, 2]),
    "static_cols": st.sampled_from([None, 1, 67, 257]),
}


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """A version with up to five axes set, valid or not; axes not named follow."""
    base = VERSIONS[draw(st.sampled_from(sorted(VERSIONS)))].spec
    axes = draw(st.lists(st.sampled_from(sorted(CHOICES)), max_size=5, unique=True))
    return apply(base, {axis: draw(CHOICES[axis]) for axis in axes})


def valid_specs() -> st.SearchStrategy[Spec]:
    """Specs that the rules accept, and that hold rows of 257 or of 3."""
    return specs().filter(lambda spec: not problems(spec) and _holds_a_row(spec))


def resolved(spec: Spec) -> Spec:
    """Return a valid spec with its `auto` items resolved for a row that they can hold."""
    fits = not problems_for(spec, 1, spec.static_cols or 257)
    return spec.resolve(257 if fits else 3)


def _holds_a_row(spec: Spec) -> bool:
    return any(not problems_for(spec, 1, spec.static_cols or cols) for cols in (257, 3))
