"""The grader that asks a model: its verdicts, what it is shown, and what it is not asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_graders import NO_TABLE, PNEUMONIA, TABLE, SaysTrue, case

from trustlab.graders import JudgeGrader
from trustlab.models.cache import CachedModel


def judged(text: str | None, answer: str = "Lung inflammation", missing: str | None = None):
    return JudgeGrader(SaysTrue(text, missing), knowledge=NO_TABLE).grade([answer], [PNEUMONIA])[0]


@pytest.mark.parametrize(
    ("text", "right"), [("True", 1), ("false.", 0), ("**True**", 1), ('"False"', 0)]
)
def test_the_judges_one_word_is_the_verdict(text: str, right: int) -> None:
    assert judged(text).correct == right


@pytest.mark.parametrize(
    "text", ["", "True, because both are infections", "not true", "True False", "yes", "1"]
)
def test_any_other_reply_leaves_the_answer_ungraded_and_is_repeated(text: str) -> None:
    grade = judged(text)
    assert (
        grade.correct is None
        and "not the one word True or False" in grade.missing
        and text in grade.missing
    )


def test_a_call_that_failed_leaves_the_answer_ungraded_with_its_reason() -> None:
    grade = judged(None, missing="the server is gone")
    assert grade.correct is None and "the server is gone" in grade.missing


def test_the_single_verdict_of_a_judge_that_cannot_tell_is_an_error() -> None:
    with pytest.raises(ValueError, match="'Lung inflammation' could not be graded"):
        JudgeGrader(SaysTrue("perhaps"), knowledge=NO_TABLE).correct("Lung inflammation", PNEUMONIA)


def test_the_judge_sees_every_true_name_and_answer_delimited_and_nothing_of_the_patient() -> None:
    model = SaysTrue()
    JudgeGrader(model, knowledge=TABLE).grade(
        ["Winter <proposed> fever"], [case("Influenza", "Seasonal fever")]
    )
    (request,) = model.asked
    user = dict(request.messages)["user"]
    assert "<truth>\nInfluenza\nSeasonal fever\nFlu\nGrippe\n</truth>" in user
    assert "<proposed>\nWinter ‹proposed> fever\n</proposed>" in user and "Cough" not in user
    assert (request.temperature, request.purpose, request.want) == (0, "judge", frozenset())


def test_the_judge_is_asked_once_for_each_distinct_pair_and_not_for_what_rules_settle() -> None:
    model = SaysTrue("False")
    answers = [
        "Lung inflammation",
        "Lung inflammation",
        "Pneumonia",
        "not pneumonia",
        None,
        "Lung inflammation",
    ]
    cases = [PNEUMONIA] * 5 + [case("Croup")]
    grades = JudgeGrader(model, knowledge=NO_TABLE).grade(answers, cases)
    assert [g.correct for g in grades] == [0, 0, 1, 0, 0, 0] and len(model.asked) == 2


def test_the_judges_replies_are_kept(tmp_path: Path) -> None:
    for model in (first := SaysTrue(), second := SaysTrue("False")):
        grader = JudgeGrader(CachedModel(model, tmp_path / "replies.sqlite"), knowledge=NO_TABLE)
        assert grader.correct("Lung inflammation", PNEUMONIA) == 1
    assert (len(first.asked), len(second.asked)) == (1, 0)


@pytest.mark.parametrize(
    "answer", ["Option C", "C", "Pneumonia " * 21, "not pneumonia", "Pneumonia or croup"]
)
def test_a_judge_is_not_asked_about_a_trap(answer: str) -> None:
    model = SaysTrue()
    assert (
        JudgeGrader(model, knowledge=NO_TABLE).correct(answer, PNEUMONIA) == 0 and not model.asked
    )


@pytest.mark.parametrize(
    "answer", ["Viral pneumonia", "Interstitial pneumonia", "Pneumonia infection", "Pneumonia 2"]
)
def test_words_added_to_a_true_name_are_left_to_the_judge(answer: str) -> None:
    model = SaysTrue("False")
    assert JudgeGrader(model, knowledge=NO_TABLE).correct(answer, PNEUMONIA) == 0 and model.asked
