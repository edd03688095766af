"""The trust indices' figures from made-up reviews: what is drawn, and reasons where nothing is."""

from __future__ import annotations

from functools import cache, partial

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from made_reviews import SAFETY_OFF, many_cases
from matplotlib.colors import to_rgba

from trustlab.metrics.trust import FORMULATIONS
from trustlab.metrics.trust_table import trust_indices
from trustlab.plots import FAMILY_COLOURS
from trustlab.plots.rows import rows
from trustlab.plots.simplex import HEIGHT, rank_stability, winners
from trustlab.plots.style import INK
from trustlab.studies import trust_indices as trust_shown
from trustlab.studies import trust_indices as trust_tables

DRAWS = 60
PROXY = "proxy: all-MiniLM-L6-v2, no biomedical encoder"
NO_ENCODER = "no medical encoder is named"
pytestmark = pytest.mark.usefixtures("house_style")


def reviews(n: int = 12, **changes) -> pd.DataFrame:
    """One doctor and a panel of three, safety on and off, two models on two data sets.

    The biomedical encoder is missing.
    """
    parts = []
    for k, (model, dataset) in enumerate(
        (m, d) for m in ("m", "embedded-closed") for d in ("starter", "starter-dialogue")
    ):
        panel = many_cases(n, seed=k)
        alone = many_cases(n, seed=k + 9, configuration="one doctor", n_doctors=1)
        alone["diagnoses"] = [d[:1] for d in alone["diagnoses"]]
        parts += [
            t.assign(model=model, dataset=dataset, **off)
            for t in (alone, panel)
            for off in ({}, SAFETY_OFF)
        ]
    more = {"cosine_med": np.nan, "cosine_med_missing": NO_ENCODER}
    return pd.concat(parts, ignore_index=True).assign(**more | changes)


@cache
def kept() -> pd.DataFrame:
    """The reviews of all tests that do not change them."""
    return reviews()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    made = kept()
    both = [trust_indices(made, f, draws=DRAWS) for f in FORMULATIONS]
    return trust_shown.in_percent(pd.concat(both, ignore_index=True))


def first(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["model"] == "m") & (table["dataset"] == "starter")]


DRAWINGS = {
    "indices": lambda t: index_rows(first(t)),
    "weights": lambda t: winners(trust_tables.weight_sweep(raw(t), steps=8)),
    "ranks": lambda t: rank_stability(trust_tables.rank_stability(raw(t), steps=8)),
}


def index_rows(percent: pd.DataFrame):
    """The indices as the notebook draws them."""
    shown = trust_shown.in_rows(percent)
    return rows(
        shown,
        row="metric",
        series="team",
        panels="formulation",
        groups="about",
        pale=[name for name in dict.fromkeys(shown["team"]) if name.endswith("off")],
        names=trust_shown.INDEX_NAMES,
        limits=(0, 100),
        columns={"n": "{n:,.0f}"},
        xlabel="percent",
    )


def raw(table: pd.DataFrame) -> pd.DataFrame:
    """The indices in their own units again."""
    made = table[table["formulation"] == "trust-x"].copy()
    made.loc[made["metric"].isin(["accuracy", "cdr", "rdc"]), "value"] /= 100
    return made


@pytest.fixture(scope="module")
def made(table: pd.DataFrame) -> Drawn:
    drawings = {name: partial(draw, table) for name, draw in DRAWINGS.items()}
    told = {"model": ["m", "embedded-closed"], "dataset": ["starter"], "n_cases": 24, "n_rows": 96}
    return Drawn(drawings, **told, note="doctors at temperature 0.5")


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, made: Drawn) -> None:
    assert_legible(made.figure(name))


def test_rows_of_indices_stand_in_groups_and_safety_off_only_where_it_matters(table) -> None:
    shown = trust_shown.in_rows(first(table))
    assert list(dict.fromkeys(shown["about"])) == list(trust_shown.GROUPS)
    order = [name for names in trust_shown.GROUPS.values() for name in names]
    assert list(dict.fromkeys(shown["metric"])) == order
    off = shown[~shown["safety"].astype(bool)]
    assert set(off["metric"]) == {"osi", "fti"} and off["team"].str.endswith(", safety off").all()
    teams = ["one doctor, safety on", "panel of 3, safety on"]
    assert list(dict.fromkeys(shown["team"]))[:2] == teams
    assert "place" not in shown and set(shown["formulation"]) == set(FORMULATIONS)


def test_a_weighting_lies_at_the_corner_of_its_part(table) -> None:
    sweep = trust_tables.weight_sweep(raw(table), steps=4)
    ax = winners(sweep)[0]
    own = first(sweep)
    for weight, place in (
        ("w_accuracy", (0.5, HEIGHT)),
        ("w_agreement", (0, 0)),
        ("w_rdc", (1, 0)),
    ):
        (winner,) = own.loc[own[weight] == 1, "winner"]
        colour = {"one doctor": INK, "panel of 3": FAMILY_COLOURS["trust"]}[winner]
        found = [
            c.get_facecolor()[0]
            for c in ax.collections
            if any(np.allclose(p, place) for p in np.asarray(c.get_offsets()))
        ]
        assert [tuple(f) for f in found] == [to_rgba(colour)]
    (star,) = [line for line in ax.lines if line.get_marker() == "*"]
    assert np.ravel(star.get_xydata()) == pytest.approx([0.3 + 0.4 / 2, 0.4 * HEIGHT])


def test_the_triangle_of_ranks_is_coloured_by_tau_and_a_cross_without() -> None:
    weights = {"w_accuracy": [1.0, 0, 0], "w_agreement": [0.0, 1, 0], "w_rdc": [0.0, 0, 1]}
    made = pd.DataFrame(weights | {"value": [1.0, -1.0, np.nan]})
    made["n_cases"] = 20
    ax = rank_stability(
        made.assign(dataset="starter", n=4, missing=["", "", "all rows have the same ETI"])
    )[0]
    known, crosses = (c for c in ax.collections)
    high, low = known.get_facecolors()
    assert high[2] > high[1] and low[0] > low[2]  # purple at 1, orange at -1
    assert np.allclose(crosses.get_offsets(), [[1, 0]])
    few = made.assign(dataset="starter", n=4, n_cases=9, missing="")
    assert np.allclose(rank_stability(few)[0].collections[0].get_facecolors(), 1)


@each(
    ("draw", "words"),
    [
        (lambda t: index_rows(t), "a mark has several lines"),
        (lambda t: winners(trust_tables.weight_sweep(raw(t), steps=2).iloc[:0]), "needs rows"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, words, table) -> None:
    with pytest.raises(ValueError, match=words):
        draw(table)
