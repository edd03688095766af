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
from trustlab.plots import trust as drawn
from trustlab.plots.style import FEW, INK, paler
from trustlab.studies import trust_indices as trust_shown
from trustlab.studies import trust_indices as trust_tables
from trustlab.studies.trust_indices import NO_RULE, reviewer_table

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


def proxied() -> pd.DataFrame:
    """The same where a general encoder stands in."""
    made = first(reviews(cosine_med=0.6, cosine_med_missing="", cosine_med_proxy=PROXY))
    both = [trust_indices(made, f, draws=DRAWS) for f in FORMULATIONS]
    return trust_shown.in_percent(pd.concat(both, ignore_index=True))


def first(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["model"] == "m") & (table["dataset"] == "starter")]


def marks(n: int = 12) -> pd.DataFrame:
    """The reviewer objects to every third prescription, the rules to every second; to no test."""
    rows = []
    for i in range(n):
        for kind, verdicts in (("prescription", ("SAFE", "UNSAFE")), ("test", ("FINE", "RISKY"))):
            said, rule = verdicts[i % 3 == 0], verdicts[i % 2 == 0 and kind == "prescription"]
            row = {
                "case_id": f"c{i}",
                "kind": kind,
                "item": 1,
                "text": "x",
                "known": True,
                "verdict": said,
                "rule_verdict": rule,
            }
            rows.append(
                row
                | {
                    "quote": None,
                    "quote_occurs": said in ("UNSAFE", "RISKY") or None,
                    "reason": None,
                    "rule": None,
                }
            )
    one = pd.DataFrame(rows).assign(level=100, configuration="one doctor")
    return pd.concat(
        [one.assign(model=m, dataset=d) for m in ("m", "n") for d in ("starter", "other")],
        ignore_index=True,
    )


@cache
def agreed() -> pd.DataFrame:
    return trust_tables.agreement_table(kept(), draws=DRAWS).query("n_doctors > 1")


@cache
def weak() -> pd.DataFrame:
    return trust_tables.weak_points(first(kept()))


DRAWINGS = {
    "indices": lambda t: drawn.indices(first(t)),
    "indices by proxy": lambda t: drawn.indices(proxied()),
    "by set": lambda t: drawn.indices_by_set(t[t["formulation"] == "trust-x"]),
    "correlations": lambda t: drawn.correlations(
        trust_tables.component_correlations(kept(), draws=DRAWS).query("safety")
    ),
    "agreement": lambda t: drawn.agreement(agreed()),
    "reviewers": lambda t: drawn.reviewers(reviewer_table(marks(), draws=DRAWS)),
    "weak points": lambda t: drawn.weak_points(weak()),
}


@pytest.fixture(scope="module")
def made(table: pd.DataFrame) -> Drawn:
    drawings = {name: partial(draw, table) for name, draw in DRAWINGS.items()}
    told = {"model": ["m", "embedded-closed"], "dataset": ["starter"], "n_cases": 24, "n_rows": 96}
    return Drawn(drawings, **told, note="doctors at temperature 0.5")


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, made: Drawn) -> None:
    assert_legible(made.figure(name))


def dots(ax, filled: bool | None = None) -> list[tuple[float, int, str]]:
    """(x, row, colour) of each mark, rounded to whole rows.

    Of all, or of those in full colour or the paler ones.
    """
    lines = [line for line in ax.lines if line.get_marker() not in ("None", "", None)]
    full = {to_rgba(INK), to_rgba(FAMILY_COLOURS["trust"])}
    if filled is not None:
        lines = [line for line in lines if (to_rgba(line.get_color()) in full) == filled]
    return sorted(
        (
            float(np.ravel(x.get_xdata())[0]),
            round(float(np.ravel(x.get_ydata())[0])),
            str(x.get_color()),
        )
        for x in lines
    )


def said(ax) -> list[str]:
    return [t.get_text().replace("\n", " ") for t in ax.texts]


def missing(ax) -> list[str]:
    return [text for text in said(ax) if text.startswith("missing")]


def test_every_index_stands_in_its_row_in_percent(table, made: Drawn) -> None:
    left, _ = made["indices"]
    mine = first(table)[first(table)["formulation"] == "trust-x"]
    expected = []
    for row in (
        mine[mine["metric"].isin(list(drawn.INDICES))].dropna(subset="value").to_dict("records")
    ):
        colour = INK if row["configuration"] == "one doctor" else FAMILY_COLOURS["trust"]
        colour = colour if row["safety"] else paler(colour)
        if row["safety"] or row["metric"] in ("osi", "fti"):
            expected.append((row["value"], list(drawn.INDICES).index(row["metric"]), str(colour)))
    for got, want in zip(dots(left), sorted(expected), strict=True):
        assert got[0] == pytest.approx(want[0]) and got[1:] == want[1:]


def test_safety_off_is_paler_and_zero_in_trust_x_only(made: Drawn) -> None:
    left, right = made["indices"]
    rows = list(drawn.INDICES)
    paler_ones = [(x, rows[y]) for x, y, _ in dots(left, filled=False)]
    assert [x for x, name in paler_ones if name == "osi"] == [0, 0] and {
        name for _, name in paler_ones
    } == {"osi", "fti"}
    assert dots(right, filled=False) == []


def test_at_the_right_stand_the_cases_behind_a_row_and_few_of_them_are_hollow(table) -> None:
    mine = first(table)
    mine = mine.assign(n_cases=mine["n_cases"].mask(mine["metric"].eq("rdc"), 9))
    left, _ = drawn.indices(mine)
    counts = [t.get_text() for t in left.texts if t.get_text() == "n" or t.get_text()[0].isdigit()]
    assert counts[0] == "12" and "9" in counts and counts[-1] == "n"
    few = {round(float(line.get_ydata()[0])) for line in left.lines if line.get_label() == FEW}
    assert few == {list(drawn.INDICES).index("rdc")}


def test_by_set_the_title_counts_all_cases_and_a_row_those_behind_it(table) -> None:
    mine = table[table["formulation"] == "trust-x"]
    fewer = mine["metric"].eq("eti_percent")
    lost = mine["n"].where(~fewer, 10)
    ax = drawn.indices_by_set(mine.assign(n=lost, n_missing=mine["n"] + mine["n_missing"] - lost))[
        0
    ]
    counts = [t.get_text() for t in ax.texts if t.get_text()[0].isdigit()]
    assert "n 12 cases" in ax.get_title() and counts == ["12", "10", "12", "12"]


def test_an_index_without_a_value_says_why(made: Drawn) -> None:
    left, right = made["indices"]
    assert missing(left) == []
    # of FTI the reason with safety on: with it off OSI is missing too
    assert missing(right) == [
        f"missing: {NO_ENCODER}",
        "missing: without rdc",
        "missing: without eti",
    ]


def test_where_nothing_could_be_read_every_row_says_so() -> None:
    nothing = reviews(
        diagnosis=None,
        correct=np.nan,
        correct_share=np.nan,
        cosine=np.nan,
        cosine_missing="none",
        plan_missing="no JSON object",
    )
    zero = [c for c in nothing if c.startswith("n_") and c != "n_doctors"]
    nothing[zero] = 0
    nothing["tied"] = [()] * len(nothing)
    nothing["diagnoses"] = [(None,) * n for n in nothing["n_doctors"]]
    made = pd.concat([trust_indices(nothing, f, draws=0) for f in FORMULATIONS], ignore_index=True)
    left, right = drawn.indices(first(trust_shown.in_percent(made)))
    assert (
        len(missing(left)) == 6
        and len(missing(right)) == 7
        and {x for x, _, _ in dots(left)} == {0}
    )


def test_agreement_is_one_minus_cdr_with_its_interval_turned(made: Drawn) -> None:
    raw_row = first(agreed()).set_index("metric").loc["cdr"]
    ax = made["agreement"][0]
    assert [x for x, y, _ in dots(ax) if y == 0] == [pytest.approx(1 - raw_row["value"])]
    ends = sorted(np.asarray(ax.collections[0].get_segments()[0])[:, 0])
    assert ends == pytest.approx([1 - raw_row["high"], 1 - raw_row["low"]])


def test_reviewers_have_a_mark_a_kind_and_say_what_cannot_be_had(made: Drawn) -> None:
    ax = made["reviewers"][0]
    # of the six prescriptions that the rules object to two are objected to; of the other six four
    # pass; all quotations occur
    assert [(x, y) for x, y, c in dots(ax) if c == INK] == [
        (pytest.approx(1 / 3), 0),
        (pytest.approx(2 / 3), 1),
        (1, 2),
    ]
    assert said(ax) == [
        "6",
        "6",
        "12",
        "4",
        "4",
        "items",
    ]  # the rules object to no test: no sensitivity there
    alone = reviewer_table(marks()[marks()["kind"] == "test"], draws=DRAWS)
    assert f"missing: {NO_RULE}" in said(drawn.reviewers(alone[alone["kind"] == "test"])[0])


def test_an_arrow_leads_from_what_was_measured_to_what_it_would_be(made: Drawn) -> None:
    table = weak().reset_index(drop=True)
    eti, osi, _ = made["weak points"]
    rows = table[["what_if", "configuration", "safety"]].drop_duplicates()
    y = int(
        np.flatnonzero(
            (rows["what_if"] == "an empty plan") & (rows["configuration"] == "one doctor")
        )[0]
    )
    before = table[table["metric"].eq("osi")].iloc[y]["reference"]
    at = {
        line.get_marker(): float(np.ravel(line.get_xdata())[0])
        for line in osi.lines
        if np.ravel(line.get_ydata())[0] == y
    }
    assert (at["o"], at[">"]) == (pytest.approx(before), 100)
    # thinking is as it was
    assert {line.get_marker() for line in eti.lines if np.ravel(line.get_ydata())[0] == y} == {"o"}


@each(
    ("draw", "words"),
    [
        (lambda t: drawn.indices(t), "one figure shows one model"),
        (lambda t: drawn.indices_by_set(t), "one figure shows one formulation"),
        (lambda t: drawn.indices(first(t).query("metric != 'fti'")), "lacks \\['fti'\\]"),
        (lambda t: drawn.indices(t.drop(columns="proxy")), "lacks \\['proxy'\\]"),
        (
            lambda t: drawn.weak_points(pd.concat([weak(), weak().assign(model="n")])),
            "one figure shows one model",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, words, table) -> None:
    with pytest.raises(ValueError, match=words):
        draw(table)
