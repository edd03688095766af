"""The consultation's figures from small made-up tables: what is drawn, in whose colour."""

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

from trustlab.metrics.audit import published_table
from trustlab.plots import FAMILY_COLOURS, FAMILY_MARKERS
from trustlab.plots.consultation import (
    beside_published,
    confidence_by_turn,
    frontier,
    guarantee,
    stopping,
)

FAMILIES = {
    "medconf": "medconf",
    "asp": "token",
    "pmi": "token",
    "poc": "consistency",
    "ce": "verbalized",
}
NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def long(
    table: pd.DataFrame, metrics: tuple[str, ...] = ("accuracy", "utterances")
) -> pd.DataFrame:
    """A row a metric; the ends are accuracy's."""
    kept = table.assign(model="fake", n_cases=40)
    keys = [name for name in kept if name not in metrics]
    found = kept.melt(keys, list(metrics), "metric")
    return found.assign(
        **{end: found[end].where(found["metric"] == "accuracy") for end in ("low", "high")}
    )


def every() -> pd.DataFrame:
    """Three thresholds a method, strictest first."""
    rows = [
        {
            "method": m,
            "threshold": t,
            "accuracy": 0.3 + 0.1 * k + 0.02 * i,
            "utterances": 2 + 4 * k + 0.3 * i,
        }
        for i, m in enumerate(("medconf", "asp", "pmi", "poc"))
        for k, t in ((2, np.inf), (1, 0.8), (0, 0.2))
    ]
    return long(pd.DataFrame(rows).assign(low=NAN, high=NAN))


def chosen() -> pd.DataFrame:
    policies = (
        "medconf",
        "asp",
        "poc",
        "decides itself",
        "fixed 0",
        "fixed 2",
        "fixed 4",
        "oracle",
    )
    rows = []
    for i, policy in enumerate(policies):
        accuracy, said = 0.3 + 0.06 * i, 2.0 + 1.2 * i
        rows.append(
            {
                "policy": policy,
                "accuracy": accuracy,
                "low": accuracy - 0.1,
                "high": accuracy + 0.1,
                "utterances": said,
            }
        )
    return long(pd.DataFrame(rows))


def stops() -> pd.DataFrame:
    policies = ("medconf", "asp", "decides itself", "oracle")
    rows = [
        {
            "model": "fake",
            "policy": p,
            "questions": k,
            "metric": "share",
            "value": (k + 1) / 10,
            "n_cases": 40,
        }
        for p in policies
        for k in range(4)
    ]
    return pd.DataFrame(rows)


def one() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "level": [0, 1, 2, 3],
            "answer": ["a", "a", "b", "b"],
            "correct": [0, 0, 1, 1],
            "medconf": [0.1, 0.3, 0.2, 0.8],
            "asp": [0.5, 0.6, NAN, 0.9],
            "pmi": [-2.0, 1.0, 0.4, 0.2],
            "ce": [NAN] * 4,
        }
    )


def promised() -> pd.DataFrame:
    rows = []
    for i, m in enumerate(("medconf", "asp", "ce")):
        for a in (0.05, 0.1, 0.2):
            error = NAN if m == "ce" or a < 0.1 else a / 2 + 0.02 * i
            row = {
                "model": "fake",
                "method": m,
                "alpha": a,
                "metric": "error",
                "value": error,
                "low": error / 2,
                "high": error * 2,
                "n": 20,
                "missing": "",
            }
            rows.append(row)
    return pd.DataFrame(rows)


def theirs() -> pd.DataFrame:
    return published_table("consultation")


DRAWINGS = {
    "frontier": lambda **o: frontier(every(), chosen(), FAMILIES, **o),
    "stopping": lambda: stopping(stops(), FAMILIES),
    "one": lambda **o: confidence_by_turn(one(), FAMILIES, **o),
    "published": lambda: beside_published(chosen(), theirs(), FAMILIES),
    "guarantee": lambda **o: guarantee(promised(), FAMILIES, **o),
}
ON_ONE = ("frontier", "one", "guarantee")


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    told = {"model": "fake", "dataset": "starter-consultation", "n_cases": 40, "n_rows": 280}
    return Drawn(DRAWINGS, **told, note="patient: the model itself")


def marks(ax, marker: str) -> list:
    return [line for line in ax.lines if line.get_marker() == marker]


def names(ax) -> list[str]:
    return [t.get_text() for t in ax.get_legend().get_texts()]


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


def test_the_frontier_is_a_step_a_method_from_few_utterances_to_many(drawn: Drawn) -> None:
    ax = drawn["frontier"]
    steps = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert len(steps) == 4
    assert list(steps[0].get_xdata()) == [2, 6, 10] and list(steps[0].get_ydata()) == pytest.approx(
        [30, 40, 50]
    )
    assert same_color(steps[0].get_color(), FAMILY_COLOURS["medconf"])
    asp, pmi = steps[1], steps[2]
    assert same_color(asp.get_color(), pmi.get_color()) and not asp.is_dashed() and pmi.is_dashed()


def test_the_frontier_marks_the_thresholds_picked_on_other_cases_with_their_intervals(
    drawn: Drawn,
) -> None:
    ax = drawn["frontier"]
    (mark,) = marks(ax, FAMILY_MARKERS["medconf"])
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (2.0, pytest.approx(30))
    whiskers = [path.vertices for c in ax.collections for path in c.get_paths()]
    assert any(np.allclose(w, [[2.0, 20], [2.0, 40]]) for w in whiskers)


def test_fixed_lengths_are_one_grey_line_and_the_oracle_is_a_star(drawn: Drawn) -> None:
    ax = drawn["frontier"]
    (fixed,) = marks(ax, ".")
    assert len(fixed.get_xdata()) == 3 and len(marks(ax, "*")) == len(marks(ax, "P")) == 1
    assert names(ax)[-3:] == [
        "Fixed number of questions",
        "Model decides itself",
        "Oracle (no rule can follow it)",
    ]


def test_a_frontier_without_any_method_still_draws_the_other_policies() -> None:
    rest = chosen()[lambda t: ~t["policy"].isin(FAMILIES)]
    ax = frontier(every()[:0], rest, FAMILIES)
    assert names(ax) == [
        "Fixed number of questions",
        "Model decides itself",
        "Oracle (no rule can follow it)",
    ]


def test_without_intervals_or_values_nothing_fails() -> None:
    frontier(every(), chosen().assign(low=NAN, high=NAN), FAMILIES)
    frontier(every()[:0], chosen().assign(value=NAN, low=NAN, high=NAN), FAMILIES)
    ax = guarantee(promised().assign(value=NAN, low=NAN, high=NAN), FAMILIES)
    assert [t.get_text() for t in ax.texts] == ["no threshold can be vouched for"]


def test_each_rule_has_a_panel_of_bars_in_percent(drawn: Drawn) -> None:
    panels = drawn["stopping"]
    titles = ["MedConf", "ASP", "Model decides itself", "Oracle (no rule can\nfollow it)"]
    assert [ax.get_title() for ax in panels] == [f"{title}\nn 40" for title in titles]
    assert [bar.get_height() for bar in panels[0].patches] == pytest.approx([10, 20, 30, 40])
    assert same_color(panels[1].patches[0].get_facecolor(), FAMILY_COLOURS["token"])


def test_a_mark_is_filled_where_the_diagnosis_is_right(drawn: Drawn) -> None:
    ax = drawn["one"]
    full, hollow = marks(ax, FAMILY_MARKERS["medconf"])
    assert list(full.get_ydata()) == [0.2, 0.8] and list(hollow.get_ydata()) == [0.1, 0.3]
    assert same_color(full.get_markerfacecolor(), FAMILY_COLOURS["medconf"])
    assert same_color(hollow.get_markerfacecolor(), "white")
    assert names(ax) == ["MedConf", "ASP", "diagnosis right", "diagnosis wrong"]


def test_a_diagnosis_that_was_not_judged_is_neither_filled_nor_hollow() -> None:
    ax = confidence_by_turn(one().assign(correct=[0, NAN, 1, 1]), FAMILIES)
    full, hollow = marks(ax, FAMILY_MARKERS["medconf"])
    cross, *_ = marks(ax, "x")
    assert [list(m.get_ydata()) for m in (full, hollow, cross)] == [[0.2, 0.8], [0.1], [0.3]]
    assert names(ax)[-3:] == ["diagnosis right", "diagnosis wrong", "diagnosis not judged"]


def test_what_is_no_number_from_0_to_1_is_named_and_not_drawn(drawn: Drawn) -> None:
    (words,) = [t.get_text() for t in drawn["one"].texts]
    assert words == "Not drawn, no value between 0 and 1: PMI, CE"


def test_ours_and_theirs_have_a_panel_each_and_say_whose_they_are(drawn: Drawn) -> None:
    left, right = drawn["published"]
    assert left.get_title() == "Ours: fake, 40 cases" and right.get_title().startswith(
        "Published: large models, other cases"
    )
    assert (
        len(marks(left, FAMILY_MARKERS["verbalized"])) == 0
        and len(marks(right, FAMILY_MARKERS["verbalized"])) == 1
    )
    (mark,) = marks(right, FAMILY_MARKERS["medconf"])
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (17.84, 36)
    assert (marks(left, FAMILY_MARKERS["medconf"])[0].get_ydata()[0]) == pytest.approx(30)
    assert len(right.collections) == 0, "no intervals are published"


def test_the_guarantee_holds_the_observed_against_the_allowed_error(drawn: Drawn) -> None:
    ax = drawn["guarantee"]
    mark = np.array([line.get_xydata()[0] for line in marks(ax, FAMILY_MARKERS["token"])])
    assert mark[:, 1] == pytest.approx([7, 12]) and np.abs(mark[:, 0] - [10, 20]).max() < 2.5
    (diagonal,) = [line for line in ax.lines if line.is_dashed()]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    texts = [t.get_text() for t in ax.texts]
    # cases diagnosed early, beside each mark
    assert texts.count("20") == 4 and sum("CE" in text for text in texts) == 1
    assert names(ax) == ["MedConf", "ASP", "what was allowed"]


@each("name", ON_ONE)
def test_a_given_axes_is_drawn_on(name: str) -> None:
    ax = plt.figure().add_subplot()
    assert DRAWINGS[name](ax=ax) is ax


def test_what_cannot_be_drawn_is_refused() -> None:
    two = pd.concat([chosen(), chosen().assign(model="other")])
    for draw in (
        lambda: frontier(every(), two, FAMILIES),
        lambda: stopping(pd.concat([stops(), stops().assign(model="other")]), FAMILIES),
        lambda: beside_published(two, theirs(), FAMILIES),
        lambda: guarantee(pd.concat([promised(), promised().assign(model="other")]), FAMILIES),
    ):
        with pytest.raises(ValueError, match="one figure shows one model"):
            draw()
    for draw in (
        lambda: frontier(every(), chosen()[:0], FAMILIES),
        lambda: stopping(stops().drop(columns="value"), FAMILIES),
        lambda: confidence_by_turn(one()[:0], FAMILIES),
        lambda: guarantee(promised()[:0], FAMILIES),
    ):
        with pytest.raises(ValueError, match="needs rows and the columns"):
            draw()
    with pytest.raises(ValueError, match="families gives None for method 'medconf'"):
        frontier(every(), chosen(), {"asp": "token"})
