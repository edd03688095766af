"""AUROC against cost, from a small made-up table: what is drawn where and what is named."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.colors import same_color

from trustlab.confidence import METHODS
from trustlab.plots import FAMILY_COLOURS, FAMILY_MARKERS, label
from trustlab.plots.costs import auroc_by_cost

FAMILIES = {name: m.family for name, m in METHODS.items()}
NAN = float("nan")
PRICES = {
    "token": 20.0,
    "baseline": 20.0,
    "consistency": 180.0,
    "verbalized": 60.0,
    "medconf": 900.0,
    "trust": 300.0,
}
FRONT = {"asp", "ce", "poc"}
pytestmark = pytest.mark.usefixtures("house_style")


def table(methods=tuple(METHODS), **columns) -> pd.DataFrame:
    """All methods at their family's price; those on the front rise with it."""
    best = {"asp": 0.7, "ce": 0.75, "poc": 0.8}
    values = [best.get(m, 0.5 + 0.002 * i) for i, m in enumerate(methods)]
    rows = pd.DataFrame(
        {
            "model": "embedded",
            "dataset": "starter",
            "method": list(methods),
            "level": "within",
            "unit": "tokens",
        }
    )
    rows = rows.assign(
        cost=[PRICES[FAMILIES[m]] for m in methods],
        value=values,
        on_front=[m in FRONT for m in methods],
    )
    return rows.assign(
        low=rows["value"] - 0.06, high=rows["value"] + 0.06, n=240, n_cases=40, missing=""
    ).assign(**columns)


DRAWINGS = {"all methods": lambda: auroc_by_cost(table(), FAMILIES)}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return Drawn(DRAWINGS, model="embedded", dataset="starter", n_cases=40, n_rows=240)


def names(ax) -> list[str]:
    return [t.get_text() for t in ax.texts]


def marks(ax) -> list:
    return [line for line in ax.lines if line.get_marker() not in ("None", None, "")]


def test_no_text_is_clipped_or_overlaps_with_all_methods(drawn):
    assert_legible(drawn.figure("all methods"), most=0)


def test_only_the_front_and_medconf_are_named_with_their_values(drawn):
    ax = drawn["all methods"]
    told = {words for words in names(ax) if not words.startswith(("chance", "side by side"))}
    at = table().set_index("method")["value"]
    assert told == {f"{label(m)} {at[m]:.2f} (n 240)" for m in (*FRONT, "medconf")}
    assert {
        w for w in names(auroc_by_cost(table(), FAMILIES, named=())) if w.startswith("MedConf")
    } == set()


def test_each_method_is_a_mark_of_its_family_and_the_named_ones_stand_out():
    rows = table(("asp", "msp", "poc", "medconf"))
    found = marks(auroc_by_cost(rows, FAMILIES))
    assert len(found) == 4
    in_order = rows.sort_values(["cost", "value"], ascending=[True, False])
    for line, row in zip(found, in_order.itertuples(), strict=True):
        assert (
            line.get_ydata() == [row.value]
            and line.get_marker() == FAMILY_MARKERS[FAMILIES[row.method]]
        )
        assert same_color(line.get_color(), FAMILY_COLOURS[FAMILIES[row.method]])
        assert (line.get_alpha() == 1) == (row.method != "msp")


def test_methods_of_one_cost_stand_side_by_side_around_it_the_best_in_the_middle():
    ax = auroc_by_cost(
        table(("asp", "msp", "entropy"), value=[0.7, 0.9, 0.8], on_front=[False, True, False]),
        FAMILIES,
    )
    places = {
        line.get_ydata()[0]: line.get_transform().transform((line.get_xdata()[0], 0.5))[0]
        for line in marks(ax)
    }
    centre = ax.transData.transform((20, 0.5))[0]
    assert places[0.9] == pytest.approx(centre)
    assert places[0.8] < places[0.9] < places[0.7]
    assert "side by side: of the same cost, the best in the middle" in names(ax)


def test_the_front_is_a_step_line_through_its_methods_to_the_edge(drawn):
    ax = drawn["all methods"]
    line = next(one for one in ax.lines if one.get_drawstyle() == "steps-post")
    assert list(line.get_xdata()) == [20, 60, 180, ax.get_xlim()[1]]
    assert list(line.get_ydata()) == [0.7, 0.75, 0.8, 0.8]


def test_every_interval_and_chance_lie_inside_the_axes(drawn):
    ax, rows = drawn["all methods"], table()
    low, high = ax.get_ylim()
    assert low <= min(0.5, rows["low"].min()) and rows["high"].max() <= high
    left, right = ax.get_xlim()
    assert left < rows["cost"].min() and rows["cost"].max() < right and ax.get_xscale() == "log"


@each(
    ("unit", "words"),
    [
        ("tokens", "tokens, in and out, for one answer"),
        ("replies", "replies for one"),
        ("usd", "US dollars"),
        ("seconds", "seconds"),
    ],
)
def test_the_axes_say_what_is_counted_and_at_which_level(unit, words):
    ax = auroc_by_cost(table(unit=unit), FAMILIES)
    assert words in ax.get_xlabel() and "(log scale)" in ax.get_xlabel()
    assert ax.get_ylabel() == "AUROC within level (mean over levels), 0 to 1"


def test_costs_of_nothing_are_drawn_on_a_plain_axis():
    ax = auroc_by_cost(table(("asp", "poc"), cost=[0.0, 3.0]), FAMILIES)
    assert ax.get_xscale() == "linear" and "log" not in ax.get_xlabel()
    assert ax.get_xlim()[0] < 0 < 3 < ax.get_xlim()[1]


def test_methods_without_value_or_cost_are_counted_not_drawn():
    ax = auroc_by_cost(
        table(("asp", "poc", "ce"), value=[0.7, NAN, 0.6], cost=[20.0, 30.0, NAN]), FAMILIES
    )
    assert len(marks(ax)) == 1
    assert "2 methods without AUROC or cost: not drawn" in names(ax)
    assert not any("side by side" in words for words in names(ax))


def test_without_any_value_the_reason_stands_in_the_axes():
    ax = auroc_by_cost(
        table(
            ("asp", "poc"),
            value=NAN,
            low=NAN,
            high=NAN,
            on_front=False,
            missing="fewer than 10 wrong",
        ),
        FAMILIES,
    )
    assert marks(ax) == [] and any("fewer than 10 wrong" in words for words in names(ax))


def test_a_value_without_interval_is_still_drawn():
    ax = auroc_by_cost(table(("asp",), low=NAN, high=NAN), FAMILIES)
    assert (
        len(marks(ax)) == 1
        and np.isfinite(ax.get_ylim()).all()
        and np.isfinite(ax.get_xlim()).all()
    )


def test_a_given_axes_is_drawn_on():
    _, ax = plt.subplots()
    assert auroc_by_cost(table(), FAMILIES, ax) is ax


@each(
    ("made", "families", "message"),
    [
        (
            lambda: pd.concat([table(), table(model="other")]),
            FAMILIES,
            "one figure shows one model and data set",
        ),
        (lambda: table().drop(columns="on_front"), FAMILIES, "on_front"),
        (lambda: pd.concat([table(), table()]), FAMILIES, "each method may come once"),
        (lambda: table(unit="hours"), FAMILIES, "unit is"),
        (lambda: table()[:0], FAMILIES, "needs rows"),
        (table, {"asp": "token"}, "families gives None"),
    ],
)
def test_what_cannot_be_drawn_is_refused(made, families, message):
    with pytest.raises(ValueError, match=message):
        auroc_by_cost(made(), families)
