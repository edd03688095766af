"""The walkthrough's figures from small made-up tables: what is drawn, axes with units."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.text import Text

from trustlab.plots import (
    agreement_by_prior,
)

NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def agreement(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = [
        (
            f"c{i // 6}",
            i % 6,
            "m",
            "x",
            (0.007, 0.01, 0.015, 0.02, 0.028)[i % 5],
            rng.uniform(),
            i % 2,
        )
        for i in range(n)
    ]
    return pd.DataFrame(
        rows, columns=["case_id", "level", "model", "answer", "prior", "poc", "correct"]
    )


DRAWINGS = {
    "agreement": lambda: agreement_by_prior(agreement()),
    "agreement, one unknown": lambda: agreement_by_prior(
        agreement().replace({"prior": {0.007: NAN}})
    ),
}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    told = {"model": "embedded", "dataset": "starter", "n_cases": 20, "n_rows": 120}
    return Drawn(DRAWINGS, **told, note="one long remark " * 8)


def words_of(holder) -> str:
    return " ".join(
        t.get_text().replace("\n", " ") for t in holder.findobj(Text) if t.get_visible()
    )


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name, drawn):
    assert_legible(drawn.figure(name))


@each("name", DRAWINGS)
def test_every_panel_says_what_its_axes_show_in_which_unit(name, drawn):
    figure = drawn.figure(name)
    assert any("percent" in ax.get_xlabel() or "token" in ax.get_xlabel() for ax in figure.axes)
    assert any("percent" in ax.get_ylabel() for ax in figure.axes)


def test_agreement_by_prior_has_right_answers_left_and_hollow_means_of_few_cases(drawn):
    table = agreement()
    left, right = drawn["agreement"]
    assert (left.get_title(), right.get_title()) == ("Right answers (n 60)", "Wrong answers (n 60)")
    for ax, correct in ((left, 1), (right, 0)):
        line, *means = ax.lines
        np.testing.assert_allclose(line.get_xdata(), [0.7, 1, 1.5, 2, 2.8])
        assert len(means) == 5 and {mark.get_mfc() == "white" for mark in means} == {False}
        group = table[(table["correct"] == correct) & (table["prior"] == 0.01)]
        np.testing.assert_allclose(line.get_ydata()[1], 100 * group["poc"].mean())
        assert (
            ax.get_xscale() == "log"
            and ax.get_ylim() == left.get_ylim()
            and ax.get_xlim() == left.get_xlim()
        )
        assert "n 12" in words_of(ax)
    few_cases = agreement_by_prior(table.assign(case_id=[f"c{i % 9}" for i in range(len(table))]))[
        0
    ]
    assert {mark.get_mfc() for mark in few_cases.lines[1:]} == {"white"}
    unknown = words_of(drawn["agreement, one unknown"][0])
    assert "Answers not drawn, prior or PoC unknown: 24." in unknown
    few = agreement_by_prior(agreement(8))[1]
    assert "has 10 answers" in words_of(few) and not few.lines[0].get_xdata().size


def test_one_figure_shows_one_model():
    with pytest.raises(ValueError, match="one model"):
        agreement_by_prior(pd.concat([agreement(), agreement().assign(model="other")]))
    with pytest.raises(ValueError, match="lacks"):
        agreement_by_prior(agreement().drop(columns="model"))


def test_the_tables_are_not_changed():
    table = agreement()
    agreement_by_prior(table)
    pd.testing.assert_frame_equal(table, agreement())
