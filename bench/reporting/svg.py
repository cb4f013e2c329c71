"""Figures as SVG texts that are the same, byte for byte, whenever and wherever they are drawn."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kgen.errors import MissingTool

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of Okabe and Ito: told apart by the colour-blind, and in print by their lightness.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#666666"
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "kgen",
    "svg.fonttype": "none",  # text stays text: small, and read by screen readers
    "font.family": "DejaVu Sans",  # matplotlib brings it along, so that layouts are the same
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def draw(title: str, size: tuple[float, float], fill: Callable[[Figure], None]) -> str:
    """Return the figure that `fill` draws into, `size` in inches, on a white background.

    Raises MissingTool without matplotlib.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingTool(f"plots need {error.name}: pip install matplotlib") from None
    text = io.StringIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # nothing of the user's own settings
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        figure.suptitle(title)
        fill(figure)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    return "".join(f"{line.strip()}\n" for line in text.getvalue().splitlines())
