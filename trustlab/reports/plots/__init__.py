"""Figures: a finished table goes in, axes come out.

Nothing is computed here; colour and marker mean the family of a method everywhere.
"""

from trustlab.reports.plots.behind import Band as Band
from trustlab.reports.plots.behind import Line as Line
from trustlab.reports.plots.curves import curves as curves
from trustlab.reports.plots.grid import grid as grid
from trustlab.reports.plots.intervals import auroc_rows as auroc_rows
from trustlab.reports.plots.intervals import intervals as intervals
from trustlab.reports.plots.prepare import by_value as by_value
from trustlab.reports.plots.prepare import in_percent as in_percent
from trustlab.reports.plots.reliability import reliability as reliability
from trustlab.reports.plots.simplex import winners as winners
from trustlab.reports.plots.style import FAMILY_COLOURS as FAMILY_COLOURS
from trustlab.reports.plots.style import FAMILY_LABELS as FAMILY_LABELS
from trustlab.reports.plots.style import FAMILY_MARKERS as FAMILY_MARKERS
from trustlab.reports.plots.style import caption as caption
from trustlab.reports.plots.style import file_ending as file_ending
from trustlab.reports.plots.style import headline as headline
from trustlab.reports.plots.style import label as label
from trustlab.reports.plots.style import save_figure as save_figure
from trustlab.reports.plots.style import use_style as use_style
