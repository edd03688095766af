"""The triangle of weightings from made-up winners: where each lies, who wins, and why none does."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from trustlab.plots.simplex import HEIGHT, WEIGHTS, winners
from trustlab.plots.style import FAMILY_COLOURS, FEW, INK

CORNERS = {"w_accuracy": (0.5, HEIGHT), "w_agreement": (0, 0), "w_rdc": (1, 0)}
WHY = "RDC is missing: no medical encoder is named"
pytestmark = pytest.mark.usefixtures("house_style")


def sweep(steps: int = 8) -> pd.DataFrame:
    """Two models on two data sets; one has too few cases, one lacks a part of the index."""
    grid = [(i / steps, j / steps) for i in range(steps + 1) for j in range(steps + 1 - i)]
    weights = pd.DataFrame([(*w, 1 - sum(w)) for w in grid], columns=WEIGHTS)
    won = np.where(weights["w_rdc"] > 0.5, "panel of 3", "one doctor")
    won = np.where(weights["w_accuracy"] == 1, "tie", won)
    whole = weights.assign(winner=won, n_cases=20, missing="")
    parts = {
        ("m", "starter"): whole,
        ("m", "starter-dialogue"): whole.assign(n_cases=9),
        ("n", "starter"): whole.assign(winner="", missing=WHY),
        ("n", "starter-dialogue"): whole.assign(winner="panel of 5, reviewed"),
    }
    made = [part.assign(model=model, dataset=dataset) for (model, dataset), part in parts.items()]
    return pd.concat(made, ignore_index=True)


@pytest.fixture(scope="module")
def made() -> Drawn:
    told = {"model": ["m", "n"], "dataset": ["starter"], "n_cases": 24, "n_rows": 96}
    return Drawn({"weights": lambda: winners(sweep())}, **told)


def colour_at(ax: Axes, place: tuple[float, float]) -> tuple[float, ...]:
    found: list[Any] = [
        collection.get_facecolor()[0]
        for collection in ax.collections
        if any(np.allclose(p, place) for p in np.asarray(collection.get_offsets()))
    ]
    (colour,) = found
    return tuple(colour)


def test_no_text_is_clipped_or_overlaps(made: Drawn) -> None:
    assert_legible(made.figure("weights"))


def test_a_weighting_lies_at_the_corner_of_its_part(made: Drawn) -> None:
    ax = made["weights"][0]
    assert colour_at(ax, CORNERS["w_agreement"]) == to_rgba(INK)
    assert colour_at(ax, CORNERS["w_rdc"]) == to_rgba(FAMILY_COLOURS["trust"])
    assert colour_at(ax, CORNERS["w_accuracy"]) not in [to_rgba(INK), to_rgba("white")]
    (star,) = [line for line in ax.lines if line.get_marker() == "*"]
    assert np.ravel(star.get_xydata()) == pytest.approx([0.3 + 0.4 / 2, 0.4 * HEIGHT])


def test_marks_of_few_cases_are_hollow(made: Drawn) -> None:
    few = made["weights"][1].collections
    assert {c.get_label() for c in few} == {FEW}
    assert all(np.allclose(c.get_facecolor(), 1) for c in few if len(np.asarray(c.get_offsets())))


def test_where_no_weighting_is_fair_the_panel_says_so(made: Drawn) -> None:
    said = [text.get_text().replace("\n", " ") for text in made["weights"][2].texts]
    assert WHY in said


@each(
    ("table", "said"),
    [
        (sweep().iloc[:0], "needs rows"),
        (sweep().query("model == 'm' or dataset == 'starter'"), "every model needs rows"),
        (sweep().drop(columns="winner"), "lacks the columns \\['winner'\\]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(table: pd.DataFrame, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        winners(table)
