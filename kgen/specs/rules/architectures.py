"""What an older GPU lacks: no rule of a spec alone, since most say nothing of a GPU."""

from __future__ import annotations

from kgen.limits import arch_number
from kgen.specs.fields import CHOICE_AXES
from kgen.specs.rules.problem import Problem
from kgen.specs.spec import Spec


def problems_on(spec: Spec, arch: str) -> list[Problem]:
    """Return each choice of the spec that needs a newer architecture than `arch` (`sm_80`)."""
    return [
        Problem((axis,), f"{axis}={choice} needs {choice.requires} or newer, and {arch} lacks it")
        for axis, choice in ((axis, getattr(spec, axis)) for axis in sorted(CHOICE_AXES))
        if arch_number(choice.requires) > arch_number(arch)
    ]
