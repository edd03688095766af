"""The graders' figures from small made-up tables: what is drawn, in whose colour, legible."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.colors import same_color

from trustlab.plots import FAMILY_COLOURS
from trustlab.plots.grading import auroc_under_noise

FAMILIES = {
    "asp": "token",
    "poc": "consistency",
    "semantic_entropy": "consistency",
    "ce": "verbalized",
    "medconf": "medconf",
}
GRADERS = ("exact", "synonym", "encoder", "judge some-model")
RATES = (0.0, 0.05, 0.1, 0.2)
KEY = {"model": "embedded", "dataset": "starter"}
WITHHELD = "fewer than 10 correct or wrong"
NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def noise() -> pd.DataFrame:
    rows = []
    for i, method in enumerate(FAMILIES):
        for rate in RATES:
            value = NAN if method == "ce" else 0.5 + (0.4 - 0.01 * i) * (1 - 2 * rate)
            row = {
                "method": method,
                "rate": rate,
                "value": value,
                "low": value - rate / 4,
                "high": value + rate / 4,
            }
            why = WITHHELD if method == "ce" else ""
            more = {"expected": value - 0.01, "n": 360, "n_cases": 60, "missing": why}
            rows += [{**KEY, **row, **more, "level": q} for q in ("pooled", "within")]
    return pd.DataFrame(rows)


DRAWINGS = {"noise": lambda **o: auroc_under_noise(noise(), FAMILIES, **o)}
TABLES = {"noise": (auroc_under_noise, noise)}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    told = {"model": "embedded", "dataset": "starter", "n_cases": 60, "n_rows": 360}
    return Drawn(DRAWINGS, **told, note="band: middle 95 % of 20 repeats")


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


def test_noise_shows_what_was_measured_and_what_the_formula_expects() -> None:
    ax = DRAWINGS["noise"](methods=["asp"])
    measured, expected = (line for line in ax.lines if len(line.get_xdata()) == len(RATES))
    rows = noise()[lambda t: (t["method"] == "asp") & (t["level"] == "within")]
    assert list(measured.get_xdata()) == pytest.approx([0, 5, 10, 20]) and list(
        measured.get_ydata()
    ) == list(rows["value"])
    assert list(expected.get_ydata()) == list(rows["expected"]) and expected.is_dashed()
    assert same_color(measured.get_color(), FAMILY_COLOURS["token"])


def test_noise_names_its_lines_and_those_that_have_no_value(drawn: Drawn) -> None:
    ax = drawn["noise"]
    named = {f"{name} (n 360)" for name in ("ASP", "PoC", "MedConf", "Semantic entropy")}
    assert named <= {t.get_text() for t in ax.texts}
    assert ax.get_legend().get_title().get_text() == "without a value: CE"


@each("name", DRAWINGS)
def test_axes_tell_the_quantity_and_the_level(name: str) -> None:
    for level, words in (
        ("within", "AUROC level-stratified (mean over levels), 0 to 1"),
        ("pooled", "AUROC pooled over levels, 0 to 1"),
    ):
        ax = DRAWINGS[name](level=level)
        assert words in (ax.get_xlabel(), ax.get_ylabel())


@each("name", DRAWINGS)
def test_a_given_axes_is_drawn_on(name: str) -> None:
    ax = plt.figure().add_subplot()
    assert DRAWINGS[name](ax=ax) is ax


@each("name", DRAWINGS)
def test_what_cannot_be_drawn_is_refused(name: str) -> None:
    draw, table = TABLES[name]
    with pytest.raises(ValueError, match="level is '40'"):
        draw(table(), FAMILIES, level="40")
    with pytest.raises(ValueError, match="methods must be some of.*'best'"):
        draw(table(), FAMILIES, ["best"])
    with pytest.raises(ValueError, match="one model and data set"):
        draw(pd.concat([table(), table().assign(model="other")]), FAMILIES)
    with pytest.raises(ValueError, match="lacks the columns"):
        draw(table().drop(columns="low"), FAMILIES)
