"""The figures of ablations and open choices from small made-up tables."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.text import Annotation

from trustlab.metrics.audit import published_table
from trustlab.plots import FAMILY_COLOURS, FAMILY_MARKERS
from trustlab.plots.ablations import (
    differences,
    published_beside_ours,
    rank_ranges,
)
from trustlab.plots.style import GREY, paler
from trustlab.studies.ablations import PARTS

KEY = {"model": "embedded", "dataset": "starter"}
FAMILIES = {
    "medconf": "medconf",
    "medconf_weighted": "medconf",
    "poc": "consistency",
    "mc_se": "consistency",
    "asp": "token",
}
NAN = float("nan")
GONE = "no confidence: no table of evidence without a structured profile"
PAIRS = [("auroc", "within"), ("auprc", "within"), ("pearson", "across")]
COUNTS, TEMPERATURES = (2, 5, 15), (0.2, 1.0)
pytestmark = pytest.mark.usefixtures("house_style")


def paired() -> pd.DataFrame:
    rows = []
    for i, variant in enumerate(list(PARTS)[1:]):
        for k, method in enumerate(("medconf", "medconf_weighted")):
            for metric, level in PAIRS:
                value = NAN if method == "medconf_weighted" and i in (0, 2) else -0.1 * i + 0.02 * k
                row = {
                    "method": method,
                    "variant": variant,
                    "metric": metric,
                    "level": level,
                    "difference": value,
                }
                why = GONE if np.isnan(value) else ""
                n = 0 if why else 90 + i if k else 100
                rows.append(
                    {
                        **KEY,
                        **row,
                        "low": value - 0.1,
                        "high": value + 0.08,
                        "n": n,
                        "n_cases": 40,
                        "missing": why,
                    }
                )
    return pd.DataFrame(rows)


def measured(value: float, **settings) -> dict:
    span = {
        "value": value,
        "low": value - 0.06,
        "high": value + 0.05,
        "missing": GONE if np.isnan(value) else "",
        "n": 100,
    }
    span["n_cases"] = 40
    return {**KEY, "metric": "auroc", "level": "within", **span, **settings}


def ranks() -> pd.DataFrame:
    rows = []
    for i, method in enumerate(("poc", "mc_se", "asp", "medconf")):
        of_rank = {
            "value": i + 1.0,
            "low": max(i, 1),
            "high": min(i + 2, 4),
            "chosen_in": 0.5 - 0.1 * i,
        }
        of_rank |= {"lowest": 1, "highest": 4}
        for metric, row in (("rank", of_rank), ("auroc", {"value": 0.9 - 0.1 * i})):
            rows.append(
                {**KEY, "method": method, "metric": metric, **row, "n_cases": 40, "missing": ""}
            )
    return pd.DataFrame(rows)


def ours() -> pd.DataFrame:
    return pd.DataFrame(
        measured(0.7 - 0.03 * i, method="medconf", variant=name) for i, name in enumerate(PARTS)
    )


DRAWINGS = {
    "differences": lambda: differences(paired(), FAMILIES, PAIRS),
    "one panel": lambda: differences(paired(), FAMILIES, PAIRS[:1], against="the whole library"),
    "ranks": lambda: rank_ranges(ranks(), FAMILIES),
    "published": lambda: published_beside_ours(ours(), published_table("ablation"), FAMILIES),
}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    told = {"model": "embedded", "dataset": "starter", "n_cases": 40, "n_rows": 120}
    return Drawn(DRAWINGS, **told, note="paired")


def markers(ax: Axes) -> list:
    return [line for line in ax.lines if line.get_marker() in FAMILY_MARKERS.values()]


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


@each("name", DRAWINGS)
def test_every_mark_has_its_familys_colour_and_shape_or_is_not_ours(
    name: str, drawn: Drawn
) -> None:
    of = {FAMILY_COLOURS[f]: FAMILY_MARKERS[f] for f in set(FAMILIES.values())}
    allowed = {(m, c) for colour, m in of.items() for c in (colour, paler(colour))}
    panels = drawn.axes(name)[:1] if name == "published" else drawn.axes(name)  # theirs are black
    for ax in panels:
        for line in markers(ax):
            assert any(
                line.get_marker() == m and same_color(line.get_markerfacecolor(), c)
                for m, c in allowed
            )


def is_second(line) -> bool:
    """Whether the mark has the paler colour of MedConf with fixed weights."""
    return same_color(line.get_markerfacecolor(), paler(FAMILY_COLOURS["medconf"]))


def test_a_difference_stands_where_the_table_says_and_zero_is_marked(drawn: Drawn) -> None:
    first = drawn.axes("differences")[0]
    filled = [line for line in markers(first) if not is_second(line)]
    assert [float(line.get_xdata()[0]) for line in filled] == pytest.approx([0, -0.1, -0.2, -0.3])
    assert [round(float(line.get_ydata()[0])) for line in filled] == [0, 1, 2, 3]
    assert any(list(line.get_xdata()) == [0, 0] and line.is_dashed() for line in first.lines)
    assert [t.get_text() for t in first.get_yticklabels()][:2] == [
        "without symptom profile",
        "without retrieval",
    ]


def test_the_second_method_of_a_row_is_paler_and_one_without_a_value_says_why(drawn: Drawn) -> None:
    panels = drawn.axes("differences")
    assert [is_second(line) for line in markers(panels[1])].count(True) == 2
    assert [
        t.get_text() for t in panels[0].texts if t.get_color() == GREY and t.get_size() == 7
    ] == [GONE.removeprefix("no confidence: ")] * 2
    assert [t.get_text() for t in panels[0].get_legend().get_texts()] == [
        "MedConf",
        "MedConf (fixed weights)",
    ]


@each("name", ["differences", "one panel", "published"])
def test_every_interval_lies_inside_its_axes(name: str, drawn: Drawn) -> None:
    for ax in drawn.axes(name):
        low, high = ax.get_xlim()
        for bars in ax.collections:
            ends = np.concatenate([path.vertices[:, 0] for path in bars.get_paths()])
            assert low < np.nanmin(ends, initial=high) and np.nanmax(ends, initial=low) < high


def test_the_answers_compared_are_counted_at_the_right_of_a_row_once_where_its_marks_share_them(
    drawn: Drawn,
) -> None:
    table = paired()
    table.loc[table["variant"] == "without_importance", "n"] = 77
    for ax in differences(table, FAMILIES, PAIRS):
        beside = [t for t in ax.texts if isinstance(t, Annotation) and t.xyann[0] == 26]
        assert [(t.get_text(), round(t.xy[1], 2)) for t in beside] == [
            ("100", -0.15), ("0", 0.15), ("100", 0.85), ("91", 1.15),
            ("100", 1.85), ("0", 2.15), ("77", 3), ("n", 1),
        ]  # fmt: skip
    left, right = drawn.axes("published")
    assert [t.get_text() for t in left.texts] == ["100"] * 5 + ["n"] and "n" not in [
        t.get_text() for t in right.texts
    ]


def test_ranks_stand_in_the_order_of_the_table_with_their_shares_of_first_places(
    drawn: Drawn,
) -> None:
    (ax,) = drawn.axes("ranks")
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "PoC",
        "MC-SE",
        "ASP",
        "MedConf",
    ] and ax.yaxis_inverted()
    assert [float(line.get_xdata()[0]) for line in markers(ax)] == [1, 2, 3, 4]
    assert {"50 %", "20 %", "0.90", "0.60"} <= {t.get_text() for t in ax.texts}
    lines = [bars.get_paths()[0].vertices[:, 0] for bars in ax.collections]
    # the second method: over choices, then over cases
    np.testing.assert_allclose(lines[2:4], [[0.7, 4.3], [1, 3]])


def test_what_has_no_rank_says_why() -> None:
    gone = ranks().assign(
        value=NAN, low=NAN, high=NAN, chosen_in=NAN, missing="fewer than 10 correct or wrong"
    )
    ax = rank_ranges(gone, FAMILIES)
    assert sum(
        t.get_text() == "withheld: fewer than 10 correct or wrong" for t in ax.texts
    ) == 4 and not markers(ax)


def test_a_method_left_out_of_the_ranking_says_why_below_the_others_and_takes_no_rank() -> None:
    why = "a value for only 6 of 120 answers"
    gone = {**KEY, "method": "medconf_weighted", "metric": "rank", "value": NAN, "missing": why}
    ax = rank_ranges(pd.concat([ranks(), pd.DataFrame([gone])], ignore_index=True), FAMILIES)
    assert [t.xy[1] for t in ax.texts if t.get_text() == f"withheld: {why}"] == [4]
    assert ax.get_xlim() == pytest.approx((0.2, 4.8))


def test_ours_and_the_published_stand_in_panels_that_say_whose_they_are(drawn: Drawn) -> None:
    left, right = drawn.axes("published")
    assert (
        left.get_title() == "Ours: embedded, starter"
        and right.get_title() == "Published: llama-3.1, ddxplus"
    )
    assert [float(line.get_xdata()[0]) for line in markers(left)] == pytest.approx(
        [0.7, 0.67, 0.64, 0.61, 0.58]
    )
    theirs = [float(line.get_xdata()[0]) for line in right.lines]
    assert theirs == published_table("ablation")["auroc"].to_list() and not right.collections
    assert left.get_ylim() == right.get_ylim()


@each(
    ("draw", "message"),
    [
        (lambda: differences(paired(), FAMILIES, [("auroc", "pooled")]), "metrics must be some of"),
        (
            lambda: differences(pd.concat([paired(), paired().assign(model="b")]), FAMILIES, PAIRS),
            "one model and data set",
        ),
        (lambda: differences(paired().drop(columns="low"), FAMILIES, PAIRS), "lacks the columns"),
        (
            lambda: published_beside_ours(ours(), published_table("ablation"), FAMILIES, "pearson"),
            "metric is 'pearson'",
        ),
        (lambda: rank_ranges(ranks(), {}), "families gives None"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_more_than_two_methods_a_row_cannot_be_told_apart() -> None:
    three = pd.concat([paired(), paired().query("method == 'medconf'").assign(method="poc")])
    with pytest.raises(ValueError, match="at most two methods"):
        differences(three, FAMILIES, PAIRS)


def test_given_axes_are_drawn_on() -> None:
    ax = plt.figure().add_subplot()
    assert rank_ranges(ranks(), FAMILIES, ax=ax) is ax
    assert differences(paired(), FAMILIES, PAIRS[:1], axes=[ax]) == [ax]
