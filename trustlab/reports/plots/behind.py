"""Names what stands behind the marks of a figure."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Line(NamedTuple):
    """A thin line at a number of the axis, dashed or ``dotted``; of :func:`curves` also
    "diagonal". ``panel``: the panel that has it; '' for all."""

    at: float | Literal["diagonal"]
    words: str = ""
    panel: str = ""
    dotted: bool = False


class Band(NamedTuple):
    """A grey band behind each row: what the legend calls it, the columns of its ends and middle."""

    words: str
    low: str = "chance_low"
    high: str = "chance_high"
    middle: str = ""
