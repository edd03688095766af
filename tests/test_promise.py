"""Thresholds with a promise, and sets of options: by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from long_table import check

import trustlab as tl
from benchmarks import promises
from studies.large_models import REPLY_KEYS, chosen_shares
from trustlab.metrics.promise import cases_needed, highest_risk, promised, thresholds
from trustlab.metrics.recalibration import MAX_KNOTS, knots_of
from trustlab.metrics.sets import DATA, LEVEL, LIKE, NO_CHANCES, NO_RIGHT, fitted, hashed_half


@each(("risk", "n"), [(0.1, 42), (0.2, 20), (0.05, 86)])
def test_cases_that_a_promise_needs_without_errors(risk: float, n: int) -> None:
    assert cases_needed(risk, 0.95) == n
    assert cases_needed(risk, 0.95, risk / 2) > n
    # without a wrong answer the bound is 1 - end^(1/n)
    assert highest_risk(0.0, n, 0.0125) == pytest.approx(1 - 0.0125 ** (1 / n))
    assert highest_risk(0.0, n, 0.0125) <= risk
    assert highest_risk(0.0, n - 1, 0.0125) > risk
    assert highest_risk(1.0, n, 0.0125) == pytest.approx(1)


def test_thresholds_by_hand() -> None:
    confidence = np.arange(100, 0, -1)
    correct = confidence > 20
    found = thresholds(correct, confidence, np.arange(100))
    assert [one.share for one in found] == pytest.approx([i / 20 for i in range(4, 21)], abs=0.011)
    assert found[0].confidence == 81 and found[-1].confidence == 1
    assert found[-1].risk == pytest.approx(0.2) and found[-1].n_cases == pytest.approx(100)
    # 20 and 40 answers are too few for 10 %; 60 to 80 pass; 5 wrong of 85 do not
    lowest = promised(found, 0.1, 0.95)
    assert lowest is not None and lowest.confidence == 21 and lowest.share == 0.8
    assert promised(found, 0.01, 0.95) is None


def test_six_answers_of_a_case_count_as_one_and_ties_are_given_together() -> None:
    case = np.repeat(np.arange(19), 6)
    right = np.ones(len(case))
    found = thresholds(right, np.full(len(case), 0.7), case)
    assert {one.share for one in found} == {1.0} and found[0].n_cases == pytest.approx(19)
    assert promised(found, 0.2, 0.95) is None
    assert promised(thresholds(right, right, np.arange(len(case))), 0.2, 0.95) is not None
    uneven = thresholds([1, 1, 1, 1], [1, 1, 1, 1], ["a", "a", "b", "c"])
    assert uneven[0].n_cases == pytest.approx(16 / 6)
    product = thresholds([1, 0, 1], [1e-9, 1e-9 * (1 + 1e-14), 1e-3], range(3), product=True)
    assert product[-1].share == 1 and product[8].confidence == product[-1].confidence == 1e-9


@each("arguments", [([2], [0.5], [1]), ([1], [np.nan], [1]), ([1, 0], [0.5], [1])])
def test_other_values_have_no_threshold(arguments: Any) -> None:
    with pytest.raises(ValueError, match="received"):
        thresholds(*arguments)


def test_curves_never_fall_and_are_short() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(150)
    hit = rng.random(150) < confidence
    at, chances = knots_of("logistic", True, confidence, hit)
    assert len(at) == MAX_KNOTS and (np.diff(at) > 0).all() and (np.diff(chances) > 0).all()
    assert at[0] == confidence.min() and at[-1] == confidence.max()
    assert chances.mean() == pytest.approx(hit.mean(), abs=0.03)
    _, of_scores = knots_of("logistic", False, 50 * confidence - 9, hit)
    assert (np.diff(of_scores) > 0).all() and 0 < of_scores[0] < of_scores[-1] < 1
    _, falling = knots_of("logistic", True, confidence, ~hit)
    assert falling == pytest.approx(np.full(MAX_KNOTS, 1 - hit.mean()))
    _, steps = knots_of("isotonic", True, confidence, hit)
    assert (np.diff(steps) >= 0).all()


def test_the_score_of_a_split_by_hand() -> None:
    largest, band = fitted([0.4, 0.1, 0.3, 0.2], 0.4)
    assert largest == 0.3 and band[0] == pytest.approx(0.6)  # the third of five, Beta(3, 2)
    assert band[1] == pytest.approx(0.1941, abs=1e-4) and band[2] == pytest.approx(0.9324, abs=1e-4)
    assert fitted([0.4, 0.1, 0.3, 0.2], 0.1) == (np.inf, [1.0, 1.0, 1.0])
    assert fitted(np.arange(9) / 10, 0.1)[0] == 0.8  # nine of ten, not the tenth by rounding


NAMES = np.array([f"case {i}" for i in range(60)])
FITTED, TRIED = NAMES[hashed_half(NAMES)], NAMES[~hashed_half(NAMES)]


def options(case: str, *chances: float, right: int = 0, **more: Any) -> list[dict[str, Any]]:
    about = {"case_id": case, "dataset": "d", "level": 100, "model": "m", "sex": "F"} | more
    return [
        about | {"option": str(i), "probability": chance, "right": i == right}
        for i, chance in enumerate(chances)
    ]


@pytest.fixture(scope="module")
def sets() -> tl.Sets:
    rows = []
    for case, chance in zip(FITTED, (0.9, 0.8, 0.7, 0.6), strict=False):
        rows += options(case, chance, 1 - chance, 0.0)
    rows += options(FITTED[0], 0.2, 0.8, 0.0, level=20)  # of a fitted case: not tried
    rows += options(TRIED[0], 0.75, 0.15, 0.1)
    rows += options(TRIED[1], 0.2, 0.7, 0.1, sex="M")
    rows += options(TRIED[2], 0.4, 0.3, 0.3)
    rows += options(TRIED[3], np.nan, np.nan, np.nan)
    rows += options(TRIED[4], 0.5, 0.4, 0.1, right=9)
    rows += options(TRIED[0], 0.1, 0.8, 0.1, level=20)
    rows += options("other", 0.7, 0.2, 0.1, dataset="e")
    return tl.conformal_sets(pd.DataFrame(rows), "d", 100, error=0.4, by=["sex"])


def test_sets_by_hand(sets: tl.Sets) -> None:
    """Four cases are fitted: every option of 0.7 or more is in a set."""
    like: Any = sets.answers.query("level == 100 and dataset == 'd'").set_index("case_id")
    assert like["fitted"].sum() == 4
    assert like.loc[TRIED[:3], "size"].tolist() == [1, 1, 0]
    assert like.loc[TRIED[:3], "covered"].tolist() == [1, 0, 0]
    assert like.loc[TRIED[:3], "confidence"].tolist() == [-1, -1, -4]
    assert like.loc[TRIED[:3], "correct"].tolist() == [1, 0, 1]
    assert like.loc[TRIED[3:5], "missing"].tolist() == [NO_CHANCES, NO_RIGHT]
    assert like.loc[TRIED[3:5], ["size", "covered", "confidence"]].isna().all(axis=None)


def test_the_table_says_where_the_promise_breaks(sets: tl.Sets) -> None:
    check(sets.table, ["model", "set", "dataset", "level"])
    table: Any = sets.table
    shown = table[table["metric"].eq("coverage")].set_index("set")
    assert shown["n"].to_dict() == {LIKE: 3, LEVEL: 1, DATA: 1, "sex: F": 2, "sex: M": 1}
    assert shown["value"].to_dict() == pytest.approx(
        {LIKE: 1 / 3, LEVEL: 0, DATA: 1, "sex: F": 0.5, "sex: M": 0}
    )
    assert shown["chance"].tolist() == pytest.approx([0.6] * 5)
    assert shown["low"].isna().all()  # fewer than twelve cases
    size = table[table["metric"].eq("size") & table["set"].eq(LIKE)]
    assert size["value"].tolist() == pytest.approx([2 / 3]) and size["chance"].isna().all()


def test_coverage_has_its_exact_interval() -> None:
    rows = []
    for i, case in enumerate([*FITTED, *TRIED[:20]]):
        rows += options(case, 0.8, 0.2) if i < len(FITTED) + 18 else options(case, 0.2, 0.8)
    table: Any = tl.conformal_sets(pd.DataFrame(rows), "d", 100).table
    line = table[table["metric"].eq("coverage")].iloc[0]
    assert line["value"] == 0.9
    assert [line["low"], line["high"]] == pytest.approx([0.6830, 0.9877], abs=1e-4)  # of 18 of 20


@each(
    ("change", "words"),
    [
        ({"probability": 0.9}, "sum to 1"),
        ({"probability": -1.0}, "at least 0"),
        ({"level": 20}, "column 'level' has no"),
        ({"dataset": "e"}, "column 'dataset' has no"),
    ],
)
def test_other_shares_are_refused(change: dict[str, Any], words: str) -> None:
    shares = pd.DataFrame(options("a", 0.4, 0.6)).assign(**change)
    with pytest.raises(ValueError, match=words):
        tl.conformal_sets(shares, "d", 100)
    with pytest.raises(ValueError, match="lacks the columns"):
        tl.conformal_sets(shares.drop(columns="right"), "d", 100)


def test_options_of_a_table_of_replies_are_shares() -> None:
    row = {"case_id": "a", "answer": "Flu", "truth": "Flu", "options": ["Flu", "Cold", "Gout"]}
    rows = [row | {"option_logprobs": list(np.log([0.4, 0.2, 0.2]))}, {**row, "case_id": "b"}]
    shares = tl.option_shares(pd.DataFrame(rows))
    assert shares["case_id"].unique().tolist() == ["a"]
    assert shares["probability"].tolist() == pytest.approx([0.5, 0.25, 0.25])
    assert shares["right"].tolist() == [True, False, False]


def test_candidates_and_five_choices_are_shares() -> None:
    about = {"case_id": "a", "dataset": "d", "level": 100, "model": "m", "without_patient": 0.0}
    rows = [
        about | {"candidate": name, "right": name == "Flu", "likelihood": np.log(p), "n_tokens": 1}
        for name, p in (("Flu", 0.6), ("Cold", 0.3), ("Gout", 0.1))
    ]
    scores = pd.DataFrame([*rows, *({**row, "case_id": "b", "likelihood": np.nan} for row in rows)])
    shares = tl.Choices(pd.DataFrame(), scores).shares()
    assert shares["probability"].tolist()[:3] == pytest.approx([0.6, 0.3, 0.1])
    assert shares["probability"].isna().tolist() == [False] * 3 + [True] * 3
    assert shares["option"].tolist()[:3] == ["Flu", "Cold", "Gout"]
    reply = dict.fromkeys(REPLY_KEYS, "x") | {"source": "s", "options": ["A", "B"], "option": "A"}
    replies = [reply | {"chosen": ["A", "A", "B", None, "A"]}, reply | {"chosen": ["A", None]}]
    chosen = chosen_shares(pd.DataFrame(replies))
    assert chosen["probability"].tolist()[:2] == [0.75, 0.25]
    assert chosen["probability"].isna().tolist() == [False, False, True, True]
    assert chosen["right"].tolist() == [True, False] * 2


def test_simulated_promises_are_kept() -> None:
    """The tables of ``python -m benchmarks.promises --keep``."""
    table: Any = pd.read_csv(promises.PROMISES)
    laws = [law.name for law in promises.promise_laws()]
    assert table["law"].unique().tolist() == laws and set(table["fits"]) == {1000}
    for law in laws:
        assert set(table[table["law"].eq(law)]["n_cases"]) == set(promises.SIZES)
    assert (table["broken"] <= promises.MOST_BROKEN).all()
    sets: Any = pd.read_csv(promises.SETS)
    error = np.sqrt(0.1 * 0.9 / sets["n_cases"] / sets["fits"])
    assert (sets["coverage"] >= sets["expected"] - 3 * error).all()
    exact = sets[sets["law"].eq("shares without ties")]
    assert (exact["coverage"] <= (sets["expected"] + 3 * error)[exact.index]).all()


def test_a_promise_of_a_confidence_that_knows_nothing_is_seldom_broken() -> None:
    law = promises.promise_laws()[0]
    broken = 0
    for fit in range(60):
        answers = law.answers(np.random.default_rng(fit), 60)
        candidates = promises._fit(answers)
        broken += promised(candidates, 0.2, 0.95) is not None
    assert broken <= 4
