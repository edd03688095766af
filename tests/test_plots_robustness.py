"""The robustness figures from small made-up tables: what is drawn, in whose colour, legible."""

from __future__ import annotations

from functools import partial

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes

from trustlab.plots import FAMILY_MARKERS
from trustlab.plots.robustness import (
    shifts,
    stability_and_discrimination,
)

FAMILIES = {
    "asp": "token",
    "poc": "consistency",
    "deg": "consistency",
    "ce": "verbalized",
    "medconf": "medconf",
}
LABELS = {
    "as_told": "as told",
    "small_talk": "small talk",
    "other_system": "another system denied",
    "instruction_100": "told 100",
}
KEY = {"model": "embedded", "dataset": "starter"}
NAN = float("nan")
WHY = "no row has a value in every condition"
pytestmark = pytest.mark.usefixtures("house_style")


def bounds(value: float, by: float) -> dict[str, object]:
    reason = WHY if np.isnan(value) else ""
    return {
        "value": value,
        "low": value - by,
        "high": value + by,
        "n": 0 if reason else 90,
        "n_cases": 30,
        "missing": reason,
    }


def scatter() -> pd.DataFrame:
    rows = []
    for i, method in enumerate(
        FAMILIES
    ):  # nearly one height, so that names would fall upon each other
        auroc = NAN if method == "deg" else 0.7 + 0.001 * i
        about = {**KEY, "method": method, "own_rows": method == "medconf"}
        rows.append({**about, "metric": "cv_group", **bounds(1.0, 0.1)})
        rows.append({**about, "metric": "cv_sample", **bounds(10.0 * i, i)})
        rows.append({**about, "metric": "auroc", **bounds(auroc, 0.1), "n": 84})
    return pd.DataFrame(rows)


def shift() -> pd.DataFrame:
    rows = []
    for i, method in enumerate(FAMILIES):
        for k, condition in enumerate(list(LABELS)[1:]):
            value = NAN if (method, condition) == ("ce", "small_talk") else 0.1 * k - 0.05 * i
            sure = 0.01 if abs(value) > 0.06 else 0.05  # 0.05 is not sure
            more = {
                "p_holm": NAN if np.isnan(value) else sure,
                "own_rows": (method, condition) == ("poc", "other_system"),
            }
            some = {**KEY, "condition": condition, "method": method, **bounds(value, 0.06), **more}
            rows += [
                {**some, "level": q, "among": a}
                for q in ("20", "all")
                for a in ("all answers", "same answer")
            ]
    return pd.DataFrame(rows)


DRAWINGS = {
    "scatter": (scatter, lambda t: stability_and_discrimination(t, FAMILIES)),
    "shifts": (shift, lambda t: shifts(t, FAMILIES, LABELS)),
}


def axes_of(name: str, table: pd.DataFrame) -> list[Axes]:
    """The figure of another table than its own."""
    axes = DRAWINGS[name][1](table)
    return axes if isinstance(axes, list) else [axes]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    own = {name: partial(axes_of, name, made()) for name, (made, _) in DRAWINGS.items()}
    told = {"model": "embedded", "dataset": "starter", "n_cases": 30, "n_rows": 90}
    return Drawn(own, **told, note="three paraphrased conditions")


def dots(ax: Axes) -> list:
    return [
        line
        for line in ax.lines
        if line.get_marker() in {*FAMILY_MARKERS.values()} and len(line.get_xdata()) == 1
    ]


def words(ax: Axes) -> list[str]:
    return [t.get_text() for t in ax.texts]


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


@each("name", DRAWINGS)
def test_what_is_not_one_run_or_lacks_columns_is_refused(name: str) -> None:
    table = DRAWINGS[name][0]()
    with pytest.raises(ValueError, match="one model and data set"):
        axes_of(name, pd.concat([table, table.assign(model="other")]))
    with pytest.raises(ValueError, match="the table is empty: there is nothing to draw"):
        axes_of(name, table.iloc[:0])
    with pytest.raises(ValueError, match="lacks the columns"):
        axes_of(name, table.drop(columns="method"))


def test_stability_is_across_and_discrimination_up(drawn: Drawn) -> None:
    (ax,) = drawn.axes("scatter")
    points = {(float(d.get_xdata()[0]), float(d.get_ydata()[0])) for d in dots(ax)}
    assert points == {(0, 0.7), (10, 0.701), (30, 0.703), (40, 0.704)}
    named = {f"{name} (n 84, 90)" for name in ("ASP", "PoC", "CE", "MedConf *")}
    assert named | {"chance 0.50", "without one of the two: Deg"} == set(words(ax))
    assert ax.get_xlim()[1] > 44 and ax.get_ylim()[1] > 0.804 and ax.get_ylim()[0] < 0.5


def test_a_scatter_without_points_still_names_who_is_missing() -> None:
    (ax,) = axes_of(
        "scatter", scatter().assign(value=lambda t: t["value"].mask(t["metric"].eq("auroc")))
    )
    assert not dots(ax) and any("ASP, PoC, Deg" in text for text in words(ax))


def test_shifts_are_signed_bold_where_sure_and_a_dash_where_missing(drawn: Drawn) -> None:
    (ax,) = drawn.axes("shifts")
    by_place = {(t.get_position()[1], t.get_position()[0]): t for t in ax.texts}
    assert (
        by_place[0, 0].get_text() == "0.00"
        and by_place[0, 2].get_text() == "+0.20"
        and by_place[4, 0].get_text() == "−0.20"
    )
    assert by_place[1, 1].get_text() == "+0.05*" and by_place[4, 1].get_text() == "−0.10"
    assert by_place[3, 0].get_text() == "–" and by_place[3, 0].get_weight() == "normal"
    assert {k for k, t in by_place.items() if t.get_weight() == "bold"} == {
        (y, x)
        for y in range(5)
        for x in range(3)
        if abs(0.1 * x - 0.05 * y) > 0.06 and (y, x) != (3, 0)
    }
    image = ax.images[0]
    assert (
        image.get_clim() == pytest.approx((-0.2, 0.2))
        and [t.get_text() for t in ax.get_xticklabels()][0] == "small talk"
    )
    low, high = (image.cmap(image.norm(v)) for v in (-0.2, 0.2))
    assert low[2] > low[0] and high[0] > high[2]  # less is violet, more is orange


def test_shifts_among_other_answers_than_the_table_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="among is 'no answers'"):
        shifts(shift(), FAMILIES, LABELS, "no answers")
