"""Draws reliability: how often answers are right, against the confidence that they have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from trustlab.metrics.schema import need, rows_where
from trustlab.reports.plots.behind import Line
from trustlab.reports.plots.curves import Columns, draw
from trustlab.reports.plots.prepare import in_percent

GROUPS, ISOTONIC = "groups of answers", "isotonic fit"
DIAGONAL = Line("diagonal", "confidence = accuracy")


def reliability(
    table: pd.DataFrame,
    *,
    by: str = "model",
    panels: str = "method",
    families: Mapping[str, str] | None = None,
) -> list[Axes]:
    """Accuracy against mean confidence in groups of answers, beside the diagonal; the axes.

    - ``table``: ``studies.calibration.reliability_table``, whose shares are drawn in percent; it
      may be followed by ``recalibration_curves``, whose rows have no ``bin``.
    - ``by``, ``panels``: columns that name the lines and the panels. Where ``by`` has one value,
      the groups have bars and stand beside the isotonic curve; where it has several, each is a
      line, and the curves are left out.
    - ``families``: the family of each method, shown by colour and marker.
    - ``ValueError`` as for :func:`curves`.
    """
    need(table, ["bin", "confidence", "value", "low", "high", by, panels])
    drawn = in_percent(table, ["confidence", "value", "low", "high"])
    is_group = drawn["bin"].notna()
    is_single = len(set(drawn[by])) == 1
    if is_single:
        drawn["kind"] = np.where(is_group, GROUPS, ISOTONIC)
    else:
        drawn = rows_where(drawn, is_group)
    axes = draw(
        drawn,
        Columns("confidence", "value", "kind" if is_single else by, panels),
        families or {},
        [DIAGONAL],
        [GROUPS] if is_single and GROUPS in set(drawn["kind"]) else [],
        ("Mean confidence (percent)", "Accuracy (percent)"),
        alone=GROUPS,
    )
    axes[0].set(xlim=(-5, 105), ylim=(-5, 105))
    return axes
