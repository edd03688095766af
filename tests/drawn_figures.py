"""The figures of a test file, each drawn once for all that look at it; are they legible?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from trustlab.reports.plots import caption
from trustlab.reports.plots.style import DPI

PAD = 0.12
"""Inches of white around a saved figure, as ``save_figure`` leaves them."""


class Drawn:
    """Each of ``drawings``, drawn with a caption when first asked for: to look at alone."""

    def __init__(self, drawings: Mapping[str, Callable[[], Any]], **told: Any) -> None:
        self.drawings, self.told = drawings, told
        self.notes: dict[str, Text] = {}
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """What the drawing gave back: axes, or several of them."""
        if name not in self._made:
            self._made[name] = made = self.drawings[name]()
            self.notes[name] = caption(figure_of(made), **self.told)
        return self._made[name]

    def figure(self, name: str) -> Figure:
        return figure_of(self[name])

    def axes(self, name: str) -> list[Axes]:
        made = self[name]
        return [made] if isinstance(made, Axes) else list(made)


def figure_of(made: Any) -> Figure:
    """The figure on which axes, or the first of several, stand."""
    return (made if isinstance(made, Axes) else made[0]).figure


def seen(figure: Figure) -> list[Text]:
    """Every text a reader sees: no name of a tick beyond its axes' limits or of hidden axes."""
    hidden = set()
    for ax in figure.findobj(Axes):
        shown = ax.get_visible() and ax.axison
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not (shown and tick.get_visible() and low <= tick.get_loc() <= high):
                    hidden |= {tick.label1, tick.label2}
    texts = figure.findobj(Text)
    return [t for t in texts if t.get_visible() and t.get_text().strip() and t not in hidden]


def assert_legible(figure: Figure, most: float = 3) -> None:
    """No text leaves the figure or runs ``most`` pixels into another, and no ink is at an edge."""
    figure.draw_without_rendering()  # a legend's words get their places by it
    whole = whole_of(figure)
    box = whole.transformed(figure.dpi_scale_trans)
    extents = [(text, Text.get_window_extent(text)) for text in seen(figure)]  # no arrows
    assert len(extents) > 3
    for text, extent in extents:
        across = box.x0 <= extent.x0 and extent.x1 <= box.x1
        assert across and box.y0 <= extent.y0 and extent.y1 <= box.y1, f"{text} is cut off"
    for (one, a), (other, b) in combinations(extents, 2):
        shared = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(shared) <= most, f"{one.get_text()!r} overlaps {other.get_text()!r}"
    pixels = rendered(figure, whole)
    edges = (pixels[:4], pixels[-4:], pixels[:, :4], pixels[:, -4:])
    assert all((edge == 255).all() for edge in edges), "something is cut off"


def whole_of(figure: Figure) -> Any:
    """The part of a figure that is saved, in inches."""
    return figure.get_tightbbox().padded(PAD)


def rendered(figure: Figure, whole: Any) -> np.ndarray:
    """The image of ``whole_of(figure)`` that ``save_figure`` saves, (height, width, 3)."""
    image = BytesIO()
    raw: Any = {"format": "png", "pil_kwargs": {"compress_level": 0}}
    figure.savefig(image, dpi=DPI, bbox_inches=whole, facecolor="white", **raw)
    return pixels_of(image)


def pixels_of(image: Any) -> np.ndarray:
    """The colours of an image file, (height, width, 3)."""
    return np.asarray(Image.open(image).convert("RGB"))
