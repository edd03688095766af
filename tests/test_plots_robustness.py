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
from matplotlib.colors import same_color

from trustlab.metrics.audit import published_table
from trustlab.plots import FAMILY_COLOURS, FAMILY_MARKERS
from trustlab.plots.robustness import (
    accuracy_by_condition,
    stability_and_discrimination,
    two_at_once,
    variation,
    variation_beside_published,
)
from trustlab.plots.style import INK, paler

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


def cvs() -> pd.DataFrame:
    rows = []
    for i, method in enumerate(FAMILIES):
        for k, metric in enumerate(("cv_group", "cv_sample")):
            value = NAN if method == "deg" else 40 - 8.0 * i - 3 * (metric == "cv_group")
            more = {"chance": 6.0 if metric == "cv_group" else NAN, "own_rows": method == "asp"}
            rows += [
                {
                    **KEY,
                    "method": method,
                    "level": q,
                    "metric": metric,
                    **bounds(value + (q == "20"), k + 1),
                    **more,
                }
                for q in ("20", "all")
            ]
    return pd.DataFrame(rows)


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


def accuracy() -> pd.DataFrame:
    rows = [
        {**KEY, "condition": "as_told", "level": "all", "metric": "accuracy", **bounds(0.6, 0.1)}
    ]
    for k, condition in enumerate(list(LABELS)[1:]):
        for metric, value in (
            ("accuracy", 0.5),
            ("difference", -0.1 * k),
            ("other_answer", 0.2 + 0.1 * k),
        ):
            rows.append(
                {
                    **KEY,
                    "condition": condition,
                    "level": "all",
                    "metric": metric,
                    **bounds(value, 0.05),
                }
            )
    return pd.DataFrame(rows)


def merged() -> pd.DataFrame:
    rows = []
    for i, method in enumerate(["", *FAMILIES]):
        for told, value in (
            ("one patient", 0.5),
            ("two at once", 0.5 + 0.04 * i),
            ("difference", 0.04 * i),
        ):
            some = NAN if (method, told) == ("ce", "difference") else value
            metric = "mean_confidence" if method else "accuracy"
            rows.append(
                {**KEY, "method": method, "metric": metric, "told": told, **bounds(some, 0.09)}
            )
    return pd.DataFrame(rows)


DRAWINGS = {
    "variation": (cvs, lambda t: variation(t, FAMILIES)),
    "scatter": (scatter, lambda t: stability_and_discrimination(t, FAMILIES)),
    "accuracy": (accuracy, lambda t: accuracy_by_condition(t, LABELS)),
    "published": (
        cvs,
        lambda t: variation_beside_published(t, published_table("robustness"), FAMILIES),
    ),
    "two": (merged, lambda t: two_at_once(t, FAMILIES)),
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
        axes_of(name, table.drop(columns="method" if name != "accuracy" else "metric"))


def test_the_stablest_method_stands_on_top_and_one_without_a_value_says_why_at_the_bottom(
    drawn: Drawn,
) -> None:
    sample, group = drawn.axes("variation")
    assert [t.get_text() for t in sample.get_yticklabels()] == [
        "MedConf",
        "CE",
        "PoC",
        "ASP *",
        "Deg",
    ] and sample.yaxis_inverted()
    assert [float(d.get_xdata()[0]) for d in dots(sample)] == [8, 16, 32, 40]
    assert [float(d.get_xdata()[0]) for d in dots(group)] == [5, 13, 29, 37]
    assert [d.get_marker() for d in dots(sample)] == [
        FAMILY_MARKERS[f] for f in ("medconf", "verbalized", "consistency", "token")
    ]
    bars = [(b.get_width(), b.get_y() + b.get_height() / 2) for b in group.patches]
    # chance, for those with a value
    assert bars == [(6, 0), (6, 1), (6, 2), (6, 3)] and not sample.patches
    assert "exchangeable conditions, 95 %" in [
        t.get_text() for t in sample.get_legend().get_texts()
    ]
    assert WHY in words(sample) and sample.get_xlabel() == "CV sample, percent"
    assert sample.get_xlim()[1] > 42 and sample.get_xlim()[0] < 0  # the widest interval lies inside


def test_variation_at_a_level_shows_that_level() -> None:
    sample, _ = variation(cvs(), FAMILIES, "20")
    assert float(dots(sample)[0].get_xdata()[0]) == 9
    with pytest.raises(ValueError, match=r"level is '40'; the table holds \['20', 'all'\]"):
        variation(cvs(), FAMILIES, "40")


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


def test_accuracy_is_told_as_a_difference_in_points_with_the_share_of_other_answers_beside_it(
    drawn: Drawn,
) -> None:
    left, right = drawn.axes("accuracy")
    assert [(float(d.get_xdata()[0]), d.get_ydata()[0]) for d in dots(left)] == [
        (0, 1),
        (pytest.approx(-10), 2),
        (pytest.approx(-20), 3),
    ]
    assert [float(d.get_xdata()[0]) for d in dots(right)] == pytest.approx([20, 30, 40])
    assert [t.get_text() for t in left.get_yticklabels()] == list(LABELS.values())
    assert "−20" in words(left) and "60" in words(right)


def test_ours_and_theirs_stand_in_two_panels_that_say_whose_they_are(drawn: Drawn) -> None:
    ours, theirs = drawn.axes("published")
    assert ours.get_title() == "Ours: embedded,\nstarter"
    assert theirs.get_title() == "Printed by Ren et al. 2026:\nllama-3.1 (a large model), ddxplus"
    printed = published_table("robustness").sort_values("cv_sample")
    of_family = {FAMILY_COLOURS[family] for family in FAMILIES.values()}
    plain = [d.get_markerfacecolor() in of_family for d in dots(theirs)]  # CV group is paler
    values = [float(d.get_xdata()[0]) for d in dots(theirs)]
    assert [v for v, p in zip(values, plain, strict=True) if p] == list(printed["cv_sample"])
    assert [v for v, p in zip(values, plain, strict=True) if not p] == list(printed["cv_group"])
    assert [float(d.get_xdata()[0]) for d in dots(ours)][:4] == [8, 5, 40, 37]  # MedConf, ASP
    at_20 = variation_beside_published(cvs(), published_table("robustness"), FAMILIES, "20")
    assert [float(d.get_xdata()[0]) for d in dots(at_20[0])][:4] == [9, 6, 41, 38]
    with pytest.raises(ValueError, match="level is '40'"):
        variation_beside_published(cvs(), published_table("robustness"), FAMILIES, "40")
    without_ce = variation_beside_published(
        cvs()[lambda t: t["method"] != "ce"], published_table("robustness"), FAMILIES
    )
    assert [w for w in words(without_ce[0]) if w] == ["no value", "90", "90", "90", "n"]


def test_one_patient_is_paler_than_two_at_once_and_the_difference_bold_where_sure(
    drawn: Drawn,
) -> None:
    (ax,) = drawn.axes("two")
    marks = dots(ax)
    assert [float(d.get_xdata()[0]) for d in marks[:4]] == pytest.approx([50, 50, 50, 54])
    token = FAMILY_COLOURS["token"]
    wanted = [paler(INK), INK, paler(token), token]
    assert all(same_color(d.get_markerfacecolor(), c) for d, c in zip(marks, wanted, strict=False))
    assert same_color(marks[3].get_markerfacecolor(), FAMILY_COLOURS["token"])
    change = {t.get_text(): t.get_weight() for t in ax.texts}
    assert (
        change["+4"] == change["+8"] == "normal"
        and change["+12"] == change["+20"] == "bold"
        and change["–"] == "normal"
    )
    assert [t.get_text() for t in ax.get_yticklabels()][:2] == [
        "Accuracy (either diagnosis)",
        "ASP",
    ]
