"""The figures of selective prediction and of reliability's curves, from small made-up tables."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from matplotlib.colors import to_rgb

from trustlab.plots.reliability import reliability
from trustlab.plots.selective import risk_coverage
from trustlab.plots.style import FAMILY_COLOURS, FEW, text_colour

FAMILIES = {"asp": "token", "msp": "token", "poc": "consistency", "ce": "verbalized"}
NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def curves() -> pd.DataFrame:
    """Three methods and two references at four coverages, out of order; "ce" has no curve."""
    rows = []
    for i, name in enumerate(["oracle", "any order", "asp", "msp", "poc"]):
        for coverage in (1.0, 0.25, 0.5, 0.75):
            risk = 0.4 * coverage if name != "any order" else 0.4
            rows.append(
                (
                    name,
                    "reference" if i < 2 else "method",
                    coverage,
                    risk + 0.01 * i,
                    risk - 0.05,
                    risk + 0.1,
                    59,
                    30,
                    "",
                )
            )
    rows.append(("ce", "method", NAN, NAN, NAN, NAN, 0, 0, "no confidence: none"))
    columns = ["method", "role", "coverage", "value", "low", "high", "n", "n_cases", "missing"]
    return pd.DataFrame(rows, columns=columns).assign(model="x", dataset="d")


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    risk = {"risk": lambda: risk_coverage(curves(), FAMILIES)}
    return Drawn(risk, model="x", dataset="d", n_cases=30, n_rows=59)


def test_risk_is_drawn_against_coverage_in_percent_with_references_in_grey(drawn):
    ax = drawn["risk"]
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == [
        "Answers in any order",
        "Right answers first (oracle)",
        "ASP",
        "MSP (as printed: largest token)",
        "PoC",
    ]
    np.testing.assert_allclose(lines["ASP"].get_xdata(), [25, 50, 75, 100])
    np.testing.assert_allclose(lines["ASP"].get_ydata(), [12, 22, 32, 42])
    assert to_rgb(lines["ASP"].get_color()) == to_rgb(
        lines["MSP (as printed: largest token)"].get_color()
    )
    assert lines["ASP"].get_linestyle() != lines["MSP (as printed: largest token)"].get_linestyle()
    assert to_rgb(lines["PoC"].get_color()) == to_rgb(FAMILY_COLOURS["consistency"])
    assert len(ax.collections) == 3  # a band a method
    assert "percent" in ax.get_xlabel() and "percent" in ax.get_ylabel()
    assert [text.get_text() for text in ax.texts] == ["No curve: CE"]
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "at 100 %: n 59 answers,\n30 cases"
    assert to_rgb(legend.get_texts()[2].get_color()) == text_colour("token")


def test_where_the_answers_given_are_of_few_cases_the_point_is_hollow():
    table = curves()
    table.loc[
        table["method"].eq("poc") & table["coverage"].eq(0.25), ["n_cases", "low", "high"]
    ] = [9, NAN, NAN]
    (mark,) = (line for line in risk_coverage(table, FAMILIES).lines if line.get_label() == FEW)
    np.testing.assert_allclose(mark.get_xydata(), [[25, 14]])
    assert mark.get_mfc() == "white" and to_rgb(mark.get_mec()) == to_rgb(
        FAMILY_COLOURS["consistency"]
    )


def test_methods_are_drawn_in_the_order_given_and_unknown_ones_refused():
    ax = risk_coverage(curves(), FAMILIES, ["poc", "asp"])
    assert [line.get_label() for line in ax.lines][2:] == ["PoC", "ASP"] and not ax.texts
    with pytest.raises(ValueError, match="nothing_such"):
        risk_coverage(curves(), FAMILIES, ["nothing_such"])
    with pytest.raises(ValueError, match="one model and data set"):
        risk_coverage(pd.concat([curves(), curves().assign(model="y")]), FAMILIES)
    given = plt.subplots()[1]
    assert risk_coverage(curves(), FAMILIES, ax=given) is given


def test_a_run_without_any_curve_draws_none_and_names_the_methods():
    ax = risk_coverage(curves().query("method == 'ce'"), FAMILIES)
    assert not ax.lines and [text.get_text() for text in ax.texts] == [
        "no confidence: none",
        "No curve: CE",
    ]


def test_no_text_is_clipped_or_overlaps(drawn):
    assert_legible(drawn.figure("risk"))


# Reliability with a curve


def test_a_rising_curve_with_its_band_stands_behind_the_points_in_place_of_their_line():
    bins = pd.DataFrame({"confidence": [0.1, 0.9], "value": [0.2, 0.8], "low": NAN, "high": NAN})
    bins = bins.assign(n=[40, 50], n_cases=[9, 20])
    table = pd.concat([bins.assign(method=name) for name in ("asp", "poc")])
    fit = {
        "method": "asp",
        "confidence": [0.9, 0.05],
        "value": [0.8, 0.1],
        "low": [0.6, 0.0],
        "high": [1.0, 0.3],
    }
    with_curve, without = reliability(table, FAMILIES, curves=pd.DataFrame(fit))
    _, curve, few, points = with_curve.lines
    assert few.get_mfc() == "white" and points.get_mfc() == FAMILY_COLOURS["token"]
    np.testing.assert_allclose(curve.get_xdata(), [5, 90])
    np.testing.assert_allclose(curve.get_ydata(), [10, 80])
    band, _ = with_curve.collections
    assert sorted({round(float(y)) for x, y in band.get_paths()[0].vertices if x == 90}) == [
        60,
        100,
    ]
    assert band.get_zorder() < curve.get_zorder() < points.get_zorder()
    # that method has no curve
    assert len(without.lines) == 4 and len(without.lines[1].get_xdata()) == 0
