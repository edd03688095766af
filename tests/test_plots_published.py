"""The figures of the published tables from small made-up tables: what, where, which colour."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.patches import Rectangle

from trustlab.plots import FAMILY_COLOURS
from trustlab.plots import published as drawn

LLAMA, GPT = {"model": "llama-3.1"}, {"model": "gpt-4.1"}
pytestmark = pytest.mark.usefixtures("house_style")


@pytest.fixture(scope="module")
def made() -> Drawn:
    audit = coefficients()
    off = audit[audit["apart"] > 0].sort_values("apart", ascending=False)
    drawings = {
        "p_values": lambda: drawn.p_values(audit, off),
        "standings": lambda: drawn.standings(standing()),
    }
    told = {"model": "Llama-3.1", "dataset": "DDXPlus", "counts": "5 printed coefficients"}
    return Drawn(drawings, **told, interval="")


def points(ax: Axes, marker: str) -> list[tuple[float, float]]:
    """Where the axes hold marks of one shape."""
    lines = [line for line in ax.lines if line.get_marker() == marker]
    return [
        (float(x), float(y))
        for line in lines
        for x, y in zip(*np.atleast_2d(line.get_data()), strict=True)
    ]


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


def coefficients() -> pd.DataFrame:
    """Two pairs that fit, two that do not, and one with a threshold for its p."""
    rows = [
        ("llama-3.1", "ddxplus", "asp", "token", "pearson", "0.794", 0.059, 0.059, 0.0),
        ("llama-3.1", "medqa", "poc", "consistency", "spearman", "0.2", 0.704, 0.704, 0.0),
        ("llama-3.1", "meditod", "msp", "token", "pearson", "0.807", 0.137, 0.052, 0.084),
        ("gpt-4.1", "ddxplus", "ce", "verbalized", "spearman", "0.029", 0.623, 0.957, 0.332),
        ("gpt-4.1", "medqa", "ce", "verbalized", "pearson", "0.989", np.nan, 0.0002, 0.0),
    ]
    names = [
        "model",
        "dataset",
        "method",
        "family",
        "statistic",
        "value",
        "p_number",
        "p_t",
        "apart",
    ]
    return pd.DataFrame(rows, columns=names)


def test_pairs_that_fit_are_grey_and_the_others_coloured_and_listed(made: Drawn) -> None:
    left, right = made["p_values"]
    assert (0.052, 0.137) in points(left, "o") and (0.957, 0.623) in points(left, "^")
    marks = [line for line in left.lines if line.get_marker() != "None"]
    of = {
        (float(x), float(y)): line for line in marks for x, y in zip(*line.get_data(), strict=True)
    }
    assert len(of) == 4, "the one with a threshold has no p to draw"
    assert same_color(of[0.052, 0.137].get_color(), FAMILY_COLOURS["token"])
    assert not same_color(of[0.059, 0.059].get_color(), FAMILY_COLOURS["token"])
    assert [label.get_text() for label in right.get_yticklabels()] == [
        "CE, DDXPlus, GPT-4.1, Spearman 0.029", "MSP, MediTOD, Llama-3.1, Pearson 0.807",
    ]  # fmt: skip
    assert points(right, "D") == [(0.623, 0), (0.137, 1)] and points(right, "o") == [
        (0.957, 0),
        (0.052, 1),
    ]
    assert {"0.623  0.957", "0.137  0.052"} <= set(words(right))
    assert right.get_ylim() == (1.5, -0.5)


def test_a_table_in_which_all_fit_is_drawn_and_an_empty_one_refused() -> None:
    audit = coefficients().query("apart == 0")
    left, right = drawn.p_values(audit, audit.iloc[:0])
    assert len(points(left, "o")) == 1 and points(right, "D") == []
    with pytest.raises(ValueError, match="no rows"):
        drawn.p_values(audit.iloc[:0], audit.iloc[:0])


def standing() -> pd.DataFrame:
    rows = [
        ("llama-3.1", "ddxplus", "asp", "pearson", "0.794", "not significant"),
        ("llama-3.1", "ddxplus", "asp", "spearman", "0.943", "Benjamini–Hochberg"),
        ("llama-3.1", "ddxplus", "ce", "pearson", "0.870", "printed only"),
        ("llama-3.1", "ddxplus", "ce", "spearman", "1.000", "Holm"),
        ("gpt-4.1", "medqa", "ce", "pearson", "0.989", "Holm"),
    ]
    return pd.DataFrame(
        rows, columns=["model", "dataset", "method", "statistic", "value", "standing"]
    )


def test_each_coefficient_is_a_cell_in_the_colour_of_its_standing(made: Drawn) -> None:
    pearson, spearman = made["standings"]
    cells = {
        (
            round(box.get_x() + box.get_width() / 2),
            round(box.get_y() + box.get_height() / 2),
        ): box.get_facecolor()
        for box in pearson.patches
        if isinstance(box, Rectangle)
    }
    assert set(cells) == {(0, 0), (0, 1), (1, 1)}, "no cell where nothing was printed"
    assert same_color(cells[0, 0], drawn.STANDING_LOOK["not significant"][0])
    assert same_color(cells[0, 1], drawn.STANDING_LOOK["printed only"][0])
    assert same_color(cells[1, 1], drawn.STANDING_LOOK["Holm"][0])
    values = {text.get_position(): text.get_text() for text in pearson.texts}
    assert (values[0, 0], values[0, 1], values[1, 1]) == ("0.794", "0.870", "0.989")
    assert {"Llama-3.1", "GPT-4.1"} <= set(words(pearson))
    assert (pearson.get_title(), spearman.get_title()) == ("Pearson", "Spearman")
    assert [t.get_text() for t in pearson.get_yticklabels()] == ["ASP", "CE"]
    assert not any(t.get_text() for t in spearman.get_yticklabels())
    assert [t.get_text() for t in pearson.get_legend().get_texts()] == list(
        drawn.STANDING_WORDS.values()
    )


def test_darker_is_stricter() -> None:
    greys = [np.mean(matplotlib.colors.to_rgb(fill)) for fill, _ in drawn.STANDING_LOOK.values()]
    assert greys == sorted(greys, reverse=True) and min(-np.diff(greys)) > 0.1


def test_a_standing_without_a_colour_is_refused() -> None:
    with pytest.raises(ValueError, match=r"standing must be one of .*received \['best'\]"):
        drawn.standings(standing().assign(standing="best"))


def test_possible_values_are_dots_and_others_crosses() -> None:
    table = pd.DataFrame(
        [
            (0.571, 0.24, 0.24, 1, 0, "no"),
            (0.829, 0.042, 0.058, 7, 7, "yes"),
            (0.943, 0.005, 0.017, 0, 0, "yes"),
            (1.0, 0, 0.003, 2, 1, "yes"),
        ],
        columns=["rho", "p_t", "p_exact", "n_printed", "n_significant", "attainable"],
    )
    ax = drawn.spearman_steps(table)
    assert points(ax, "o") == [(0.829, 0.058), (0.943, 0.017), (1.0, 0.003)] and points(
        ax, "X"
    ) == [(0.571, 0.24)]
    (line,) = [line for line in ax.lines if str(line.get_label()).startswith("t approximation")]
    assert list(line.get_ydata()) == [0.042, 0.005], "a p of 0 has no place on a logarithmic axis"
    assert (
        ax.get_yscale() == "log"
        and {"1", "7\n(7)", "2\n(1)"} <= set(words(ax))
        and "0" not in words(ax)
    )


def test_every_pearson_stands_over_its_data_set_and_the_band_behind() -> None:
    rows = [
        {**who, "dataset": name, "method": "x", "family": family, "r": r}
        for who in (LLAMA, GPT)
        for name, family, r in [
            ("ddxplus", "token", 0.1),
            ("ddxplus", "medconf", 0.97),
            ("medqa", "token", 0.5),
            ("medqa", "token", 0.6),
        ]
    ]
    left, right = drawn.pearsons_over_band(
        pd.DataFrame(rows).assign(low=0.73, median=0.93, high=0.99)
    )
    assert [ax.get_title() for ax in (left, right)] == ["Llama-3.1", "GPT-4.1"]
    for ax in (left, right):
        marks = points(ax, "o") + points(ax, "D")
        assert sorted((round(x), y) for x, y in marks) == [(0, 0.1), (0, 0.97), (2, 0.5), (2, 0.6)]
        (band,) = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
        assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.73, 0.99))
        assert any(list(line.get_ydata()) == [0.93, 0.93] for line in ax.lines)


@each("name", ["p_values", "standings"])
def test_no_text_is_clipped_or_overlaps(name: str, made: Drawn) -> None:
    assert_legible(made.figure(name))


def test_the_names_of_the_right_panel_stay_off_the_left_one(made: Drawn) -> None:
    left, right = made["p_values"]
    names = [label.get_window_extent() for label in right.get_yticklabels()]
    assert min(box.x0 for box in names) > left.get_window_extent().x1
