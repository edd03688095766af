"""A run graded anew: who agrees with whom, and what a grader's errors do to AUROC."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

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
    rows = [
        {"case_id": i, **KEY, "answer": a, "truth": t, "correct": c, "n_words": 7}
        for i, a, t, c in SAID
    ]
    return pd.DataFrame(rows).assign(missing=["", "", "", "", "", "the server is gone"])


def cases(**accepted: tuple[str, ...]) -> list[Case]:
    return [Case(i, "toy", (), truth, (truth, *accepted.get(i, ()))) for i, _, truth, _ in SAID]


class Doubtful(ExactGrader):
    """Cannot tell what it has not heard of."""

    name = "doubtful"

    def grade(self, answers, cases):
        return [
            Grade(None, "never heard of it") if a == "Croup" else g
            for a, g in zip(answers, super().grade(answers, cases), strict=True)
        ]


@pytest.mark.parametrize(
    ("grader", "correct"),
    [("exact", [0, 1, 0, 0, 0]), ("synonym", [1, 1, 0, 0, 0]), ("encoder", [1, 1, 1, 0, 0])],
)
def test_each_grader_gives_its_own_verdicts_and_its_name(grader: str, correct: list[int]) -> None:
    graded = grade(answers(), grader, cases())
    assert graded["correct"].to_list()[:5] == correct
    assert set(graded["grader"]) == {grader}


def test_a_failed_answer_stays_failed_and_an_unreadable_one_wrong() -> None:
    graded = grade(answers(), "exact", cases()).set_index("case_id")
    assert (
        np.isnan(graded.loc["f", "correct"]) and graded.loc["f", "missing"] == "the server is gone"
    )
    assert graded.loc["e", "correct"] == 0 and graded.loc["e", "missing"] == ""


def test_everything_else_stays_as_it_was() -> None:
    given = answers()
    graded = grade(given, "synonym", cases())
    pd.testing.assert_frame_equal(
        graded[given.columns].drop(columns="correct"), given.drop(columns="correct")
    )
    pd.testing.assert_frame_equal(given, answers())


def test_what_cannot_be_graded_is_missing_with_its_reason_and_may_be_graded_later() -> None:
    doubtful = grade(answers(), Doubtful(), cases())
    row = doubtful.set_index("case_id").loc["d"]
    assert np.isnan(row["correct"]) and row["missing"] == "never heard of it"
    again = grade(doubtful, "exact", cases()).set_index("case_id").loc["d"]
    assert again["correct"] == 0 and again["missing"] == ""


def test_cases_bring_their_accepted_names() -> None:
    assert grade(answers(), "synonym", cases(d=("Croup",)))["correct"].to_list()[3] == 1


def test_a_case_that_is_lacking_or_has_another_truth_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks case 'f' of data set 'toy'"):
        grade(answers(), "exact", cases()[:-1])
    with pytest.raises(ValueError, match="'a' has the diagnosis 'Influenza', but.*'Croup'"):
        grade(answers().assign(truth="Croup"), "exact", cases())
    with pytest.raises(ValueError, match=r"lacks the columns \['truth'\]"):
        grade(answers().drop(columns="truth"), "exact", cases())


# Ungraded answers in the metrics


def a_run(n_cases: int = 60, levels=(20, 100), seed: int = 0) -> SimpleNamespace:
    """Answers of which half are right, half of the right ones under another name; "good" ranks
    better than "poor"."""
    rng = np.random.default_rng(seed)
    told, confidence = [], []
    for c in range(n_cases):
        for level in levels:
            key = {"case_id": f"c{c:03d}", "dataset": "toy", "level": level, "model": "m"}
            answer = ("Influenza", "Flu", "Croup", "Croup")[rng.integers(4)]
            told.append(
                {
                    **key,
                    "answer": answer,
                    "truth": "Influenza",
                    "correct": int(answer != "Croup"),
                    "missing": "",
                }
            )
            for method, lean in (("good", 0.8), ("fair", 0.4), ("poor", 0.1)):
                value = rng.random() + lean * (answer != "Croup")
                confidence.append(
                    {**key, "method": method, "confidence": value, "bound": "", "missing": ""}
                )
    return SimpleNamespace(answers=pd.DataFrame(told), confidence=pd.DataFrame(confidence))


def test_ungraded_answers_are_left_out_of_every_metric_and_counted() -> None:
    run = a_run()
    at = run.answers["case_id"].isin(["c000", "c001"])
    open_ = run.answers.assign(
        correct=run.answers["correct"].mask(at), missing=np.where(at, "never heard of it", "")
    )
    without = SimpleNamespace(
        answers=run.answers[~at],
        confidence=run.confidence[~run.confidence["case_id"].isin(["c000", "c001"])],
    )
    options = {"n_draws": 20, "scales": {}}
    found = metrics_table(SimpleNamespace(answers=open_, confidence=run.confidence), **options)
    pd.testing.assert_series_equal(found["value"], metrics_table(without, **options)["value"])
    pooled = found[found["level"] == "pooled"]
    assert (pooled["n_missing"] == 4).all() and pooled["missing"].str.contains(
        "4 answers ungraded"
    ).all()


def test_a_level_of_which_nothing_was_graded_says_so() -> None:
    run = a_run()
    at = run.answers["level"] == 20
    run.answers = run.answers.assign(
        correct=run.answers["correct"].mask(at), missing=np.where(at, "no reply", "")
    )
    table = metrics_table(run, n_draws=20, scales={}).set_index(["method", "metric", "level"])[
        "missing"
    ]
    assert table["", "accuracy", "20"] == "no graded answer; 60 answers ungraded"
    assert (
        table["good", "auroc", "20"].startswith("fewer than")
        or "ungraded answer" in table["good", "auroc", "20"]
    )


# Agreement


def test_graders_are_compared_in_pairs_on_what_both_graded() -> None:
    graded = verdicts(answers(), ["exact", "synonym", Doubtful()], cases())
    long = agreement_table(*graded, n_draws=100)
    assert list(dict.fromkeys(long["metric"])) == ["kappa", "agreement"]
    table = long[long["metric"] == "kappa"].set_index(["first", "second"])
    assert list(table.index) == [
        ("exact", "synonym"),
        ("exact", "doubtful"),
        ("synonym", "doubtful"),
    ]
    counts = ["n", "both_right", "only_first", "only_second", "both_wrong", "n_missing"]
    assert table.loc[("exact", "synonym"), counts].to_list() == [
        5,
        1,
        0,
        1,
        3,
        1,
    ]  # a failed answer is missing
    assert table.loc[("synonym", "doubtful"), counts].to_list() == [4, 1, 1, 0, 2, 2]
    assert table.loc[("exact", "doubtful"), "value"] == 1


@pytest.mark.parametrize("graders", [["exact"], ["exact", ExactGrader()]])
def test_agreement_takes_two_graders_of_different_names(graders) -> None:
    with pytest.raises(ValueError, match="two or more"):
        verdicts(answers(), graders, cases())
