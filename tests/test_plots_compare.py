"""Figures of differences to a reference: what is drawn where, filled or hollow, legible."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from test_plots_ablations import markers

from trustlab.plots import FAMILY_COLOURS, FAMILY_MARKERS
from trustlab.plots.compare import best_of_families, compared
from trustlab.plots.style import INK

KEY = {
    "model": "embedded",
    "dataset": "starter",
    "against": "medconf",
    "metric": "auroc",
    "level": "within",
}
FAMILIES = {
    "asp": "token",
    "poc": "consistency",
    "ce": "verbalized",
    "random": "baseline",
    "semantic_similarity_med": "consistency",
}
NAN = float("nan")
GAPS = {"poc": 0.02, "ce": -0.2, "asp": 0.15, "semantic_similarity_med": NAN, "random": -0.1}
GONE = "no confidence: no medical encoder is named"
pytestmark = pytest.mark.usefixtures("house_style")


def every(**changes) -> pd.DataFrame:
    rows = [
        {
            **KEY,
            "method": m,
            "difference": gap,
            "low": gap - 0.1,
            "high": gap + 0.12,
            "p_holm": 0.01 if abs(gap) > 0.12 else 0.3,
        }
        | {
            "n": 235,
            "n_cases": 40,
            "cases_needed": 1e6 if m == "poc" else 67,
            "missing": GONE if np.isnan(gap) else "",
        }
        for m, gap in GAPS.items()
    ]
    return pd.DataFrame(rows).assign(**changes)


def best(**changes) -> pd.DataFrame:
    table = (
        every()
        .query("method != 'ce'")
        .assign(low_chosen=lambda t: t["low"] - 0.05, high_chosen=lambda t: t["high"] - 0.05)
    )
    table = table.assign(
        family=[FAMILIES[m] for m in table["method"]], chosen_in=[0.5, 0.781, NAN, 1.0]
    )
    table.loc[table["method"].eq("semantic_similarity_med"), ["family", "method"]] = [
        "verbalized",
        "",
    ]
    return table.assign(**changes)


DRAWINGS = {
    "every": lambda: compared(every(), FAMILIES),
    "best": lambda: best_of_families(best(), FAMILIES),
    "cv": lambda: compared(every(metric="cv_sample", level="100"), FAMILIES, "cv_sample", "100"),
    "nothing": lambda: compared(
        every(difference=NAN, low=NAN, high=NAN, p_holm=NAN, cases_needed=NAN, missing=GONE),
        FAMILIES,
    ),
}


def names(ax: Axes) -> list[str]:
    return [tick.get_text() for tick in ax.get_yticklabels()]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return Drawn(DRAWINGS, model="embedded", dataset="starter", n_cases=40, n_rows=240)


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


def test_the_best_is_on_top_and_what_has_no_value_at_the_bottom_with_its_reason(
    drawn: Drawn,
) -> None:
    ax = drawn["every"]
    assert names(ax) == ["ASP", "PoC", "Random", "CE", "Semantic similarity (medical)"]
    assert [float(m.get_xdata()[0]) for m in markers(ax)] == [0.15, 0.02, -0.1, -0.2]
    assert any(t.get_text() == "no medical encoder is named" for t in ax.texts)
    assert names(drawn["cv"]) == ["CE", "Random", "PoC", "ASP", "Semantic similarity (medical)"]


def test_a_dark_edge_is_what_holds_after_correction_and_hollow_has_fewer_than_ten_cases(
    drawn: Drawn,
) -> None:
    ax = drawn["every"]
    dark = {m.get_marker(): m.get_markeredgecolor() == INK for m in markers(ax)}
    assert dark == {
        FAMILY_MARKERS["token"]: True,
        FAMILY_MARKERS["consistency"]: False,
        FAMILY_MARKERS["baseline"]: False,
        FAMILY_MARKERS["verbalized"]: True,
    }
    first = markers(ax)[0]
    assert first.get_markerfacecolor() == FAMILY_COLOURS["token"]
    few = markers(compared(every(n_cases=9, low=NAN, high=NAN, p_holm=NAN), FAMILIES))
    assert {m.get_markerfacecolor() for m in few} == {"white"} and few[
        0
    ].get_markeredgecolor() == FAMILY_COLOURS["token"]


def test_n_and_the_cases_to_tell_apart_stand_at_the_right(drawn: Drawn) -> None:
    texts = [t.get_text() for t in drawn["every"].texts]
    assert texts.count("235") == 5 and texts.count("> 10,000") == 1 and texts.count("67") == 3
    assert {"n", "cases to\ntell apart"} <= set(texts)


def test_the_axis_names_the_reference_and_holds_0_and_every_interval() -> None:
    ax = compared(every(against="asp"), FAMILIES)
    assert ax.get_xlabel() == "AUROC within level minus that of ASP (right of 0: better)"
    low, high = ax.get_xlim()
    assert low < -0.3 and high > 0.27
    only = compared(every()[lambda t: t["method"] == "asp"].assign(low=0.1, high=0.2), FAMILIES)
    assert only.get_xlim()[0] < 0 < 0.2 < only.get_xlim()[1]


def test_the_best_of_each_family_has_two_intervals_and_the_share_of_draws(drawn: Drawn) -> None:
    ax = drawn["best"]
    assert names(ax) == ["consistency: PoC", "token: ASP", "self-verbalised", "baseline: Random"]
    spans = {
        tuple(np.round(path.vertices[:, 0], 3))
        for lines in ax.collections
        for path in lines.get_paths()
    }
    assert {(0.05, 0.27), (0.0, 0.22)} <= spans, "held fixed and chosen anew"
    texts = [t.get_text() for t in ax.texts]
    assert {"best in", "50 %", "78 %", "100 %", "no medical encoder is named"} <= set(texts)


@each("draw", [compared, best_of_families])
def test_what_cannot_be_one_figure_is_refused(draw) -> None:
    table = best()
    with pytest.raises(ValueError, match="one model and data set"):
        draw(pd.concat([table, table.assign(model="other")]), FAMILIES)
    with pytest.raises(ValueError, match="lacks the columns"):
        draw(table.drop(columns="p_holm"), FAMILIES)
    with pytest.raises(ValueError, match="family|None"):
        draw(table, {})
    with pytest.raises(ValueError, match="metric and level are|lacks"):
        draw(table.assign(metric="brier"), FAMILIES)
