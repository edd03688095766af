"""Figures: a finished long table in, Axes out.

Nothing is computed here; colour and marker mean the family of a method everywhere.
"""

from trustlab.plots.curves import curves
from trustlab.plots.rows import rows
from trustlab.plots.simplex import winners
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_LABELS,
    FAMILY_MARKERS,
    caption,
    file_ending,
    headline,
    label,
    save_figure,
    use_style,
)

__all__ = [
    "FAMILY_COLOURS",
    "FAMILY_LABELS",
    "FAMILY_MARKERS",
    "caption",
    "curves",
    "file_ending",
    "headline",
    "label",
    "rows",
    "save_figure",
    "use_style",
    "winners",
]
