"""Figures: a finished table goes in, axes come out.

Nothing is computed here; colour and marker mean the family of a method everywhere.
"""

from trustlab.plots.curves import curves as curves
from trustlab.plots.rows import rows as rows
from trustlab.plots.simplex import winners as winners
from trustlab.plots.style import FAMILY_COLOURS as FAMILY_COLOURS
from trustlab.plots.style import FAMILY_LABELS as FAMILY_LABELS
from trustlab.plots.style import FAMILY_MARKERS as FAMILY_MARKERS
from trustlab.plots.style import caption as caption
from trustlab.plots.style import file_ending as file_ending
from trustlab.plots.style import headline as headline
from trustlab.plots.style import label as label
from trustlab.plots.style import save_figure as save_figure
from trustlab.plots.style import use_style as use_style
