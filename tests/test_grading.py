"""A run graded anew: who agrees with whom, and what a grader's errors do to AUROC."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each

from studies.graders import agreement_table, grade, verdicts
from trustlab.graders import ExactGrader, Grade
from trustlab.measures import metrics_table
from trustlab.records import Case

KEY = {"dataset": "toy", "level": 100, "model": "m"}
SAID = [
    # case, answer, truth, correct as it was
    ("a", "Flu", "Influenza", 0),
    ("b", "influenza", "Influenza", 1),
    ("c", "Acute ottitis media", "Acute otitis media", 0),
    ("d", "Croup", "Influenza", 0),
    ("e", None, "Influenza", 0),
    ("f", None, "Influenza", np.nan),
]


def answers() -> pd.DataFrame:
    rows = pd.DataFrame(SAID, columns=["case_id", "answer", "truth", "correct"])
    return rows.assign(n_words=7, missing=[*[""] * 5, "the server is gone"], **KEY)


def cases(**accepted: tuple[str, ...]) -> list[Case]:
    return [Case(i, "toy", (), truth, (truth, *accepted.get(i, ()))) for i, _, truth, _ in SAID]


class Doubtful(ExactGrader):
    """Cannot tell what it has not heard of."""

    name = "doubtful"

    def grade(self, answers, cases):
        pairs, unheard = zip(answers, super().grade(answers, cases), strict=True), "never heard of"
        return [Grade(None, unheard) if a == "Croup" else g for a, g in pairs]


@each(
    ("grader", "accepted", "correct"),
    [
        ("exact", {}, [0, 1, 0, 0, 0, np.nan]),  # a failed answer stays failed
        ("synonym", {}, [1, 1, 0, 0, 0, np.nan]),
        ("encoder", {}, [1, 1, 1, 0, 0, np.nan]),
        ("synonym", {"d": ("Croup",)}, [1, 1, 0, 1, 0, np.nan]),  # cases bring accepted names
    ],
)
def test_each_grader_gives_its_own_verdicts_and_leaves_the_rest(grader: str, accepted, correct):
    given = answers()
    graded = grade(given, grader, cases(**accepted))
    assert graded["correct"].to_list() == pytest.approx(correct, nan_ok=True)
    assert set(graded["grader"]) == {grader}
    kept = [t.drop(columns="correct") for t in (graded[given.columns], given)]
    pd.testing.assert_frame_equal(*kept)
    pd.testing.assert_frame_equal(given, answers())


def test_what_cannot_be_graded_is_missing_with_its_reason_and_may_be_graded_later() -> None:
    doubtful = grade(answers(), Doubtful(), cases())
    row = doubtful.set_index("case_id").loc["d"]
    assert np.isnan(row["correct"]) and row["missing"] == "never heard of"
    again = grade(doubtful, "exact", cases()).set_index("case_id").loc["d"]
    assert again["correct"] == 0 and again["missing"] == ""


@each(
    ("table", "given", "message"),
    [
        (answers(), cases()[:-1], "lacks case 'f' of data set 'toy'"),
        (answers().assign(truth="Croup"), cases(), "has the diagnosis 'Influenza', but.*'Croup"),
        (answers().drop(columns="truth"), cases(), r"lacks the columns \['truth'\]"),
    ],
)
def test_a_case_that_is_lacking_or_has_another_truth_is_refused(table, given, message) -> None:
    with pytest.raises(ValueError, match=message):
        grade(table, "exact", given)


# Ungraded answers in the metrics


def a_run(at: Any) -> tuple[pd.DataFrame, SimpleNamespace]:
    """The metrics of 60 cases at two levels, half of the answers right, where those ``at`` (of the
    answers) are ungraded; and the whole run."""
    rng = np.random.default_rng(0)
    keys = pd.DataFrame([(f"c{c:03d}", q) for c in range(60) for q in (20, 100)])
    keys = keys.set_axis(["case_id", "level"], axis=1).assign(dataset="toy", model="m")
    right = rng.integers(0, 2, len(keys))
    told = keys.assign(answer="x", truth="y", correct=right.astype(float), missing="")
    sure = [
        keys.assign(method=method, confidence=rng.random(len(keys)) + lean * right)
        for method, lean in (("good", 0.8), ("fair", 0.4), ("poor", 0.1))
    ]
    run = SimpleNamespace(answers=told, confidence=pd.concat(sure).assign(bound="", missing=""))
    lost = at(told)
    why = np.where(lost, "never heard of it", "")
    ungraded = told.assign(correct=told["correct"].mask(lost), missing=why)
    found = SimpleNamespace(answers=ungraded, confidence=run.confidence)
    return metrics_table(found, n_draws=20, scales={}), run


def test_ungraded_answers_are_left_out_of_every_metric_and_counted() -> None:
    found, run = a_run(lambda t: t["case_id"] <= "c001")
    kept = [t[t["case_id"] > "c001"] for t in (run.answers, run.confidence)]
    without = SimpleNamespace(answers=kept[0], confidence=kept[1])
    expected = metrics_table(without, n_draws=20, scales={})
    pd.testing.assert_series_equal(found["value"], expected["value"])
    pooled = found[found["level"] == "pooled"]
    assert (pooled["n_missing"] == 4).all()
    assert pooled["missing"].str.contains("4 answers ungraded").all()
    found, _ = a_run(lambda t: t["level"] == 20)
    told = found.set_index(["method", "metric", "level"])["missing"]
    assert told["", "accuracy", "20"] == "no graded answer; 60 answers ungraded"
    assert "ungraded" in told["good", "auroc", "20"]


# Agreement


def test_graders_are_compared_in_pairs_on_what_both_graded() -> None:
    graded = verdicts(answers(), ["exact", "synonym", Doubtful()], cases())
    long = agreement_table(*graded, n_draws=100)
    assert list(dict.fromkeys(long["metric"])) == ["kappa", "agreement"]
    table = long[long["metric"] == "kappa"].set_index(["first", "second"])
    pairs = [("exact", "synonym"), ("exact", "doubtful"), ("synonym", "doubtful")]
    assert list(table.index) == pairs
    counts = ["n", "both_right", "only_first", "only_second", "both_wrong", "n_missing"]
    # a failed answer is missing
    assert table.loc[pairs[0], counts].to_list() == [5, 1, 0, 1, 3, 1]
    assert table.loc[pairs[2], counts].to_list() == [4, 1, 1, 0, 2, 2]
    assert table.loc[pairs[1], "value"] == 1
    for graders in (["exact"], ["exact", ExactGrader()]):
        with pytest.raises(ValueError, match="two or more"):
            verdicts(answers(), graders, cases())
