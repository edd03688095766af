"""The experiment from recorded talk to tables: hand-made consultations by hand, and a fake model
for the whole way."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_consultation import QUESTIONS, TOLD, Talker, asked, cases
from fake_model import TEXT_ONLY, FakeEncoder
from scipy.stats import beta

from studies import consultation
from studies import consultation as tables
from studies.consultation import (
    SPENT,
    ConsultationRun,
    consultations,
    purposes_of,
    worth_reading,
)
from trustlab.knowledge import load_knowledge
from trustlab.metrics import formatted
from trustlab.metrics.estimate import case_weights, percentile_interval

NAN = float("nan")


def handmade(
    correct: list[list[float]],
    confidence: list[list[float]],
    length: list[int],
    enough: list[list[float]],
):
    """A run of four levels, 2 utterances at the opening and 2 a question, with one method,
    ``ce``."""
    rows = [(i, level) for i in range(len(correct)) for level in range(len(correct[0]))]
    ids = [f"c{i:02}" for i, _ in rows]
    base = pd.DataFrame(
        {"case_id": ids, "dataset": "made", "level": [k for _, k in rows], "model": "fake"}
    )
    said = [2 + 2 * min(k, length[i]) for i, k in rows]
    spent = [
        ("fake", f"c{i:02}", k, p, 1, n, 10, 1)
        for i, k in rows
        if k <= length[i]
        for p, n in (("diagnosis", 1), ("ce", 15))
    ]
    spent += [
        ("fake", f"c{i:02}", k, p, 1, 1, 100, 5)
        for i, k in rows
        if k <= length[i] and k < 3
        for p in ("ask", "enough")
    ]
    spent += [("fake", f"c{i:02}", k, "patient", 1, 1, 1000, 0) for i, k in rows if k < length[i]]
    decided = [
        ("fake", f"c{i:02}", k, e) for i, row in enumerate(enough) for k, e in enumerate(row)
    ]
    return ConsultationRun(
        turns=pd.DataFrame(),
        ended=pd.DataFrame(
            {
                "model": "fake",
                "case_id": [f"c{i:02}" for i in range(len(length))],
                "n_turns": length,
            }
        ),
        enough=pd.DataFrame(decided, columns=["model", "case_id", "level", "enough"]),
        answers=base.assign(correct=[correct[i][k] for i, k in rows], n_utterances=said).assign(
            missing=["too long" if np.isnan(correct[i][k]) else "" for i, k in rows]
        ),
        confidence=base.assign(method="ce", confidence=[confidence[i][k] for i, k in rows]),
        spent=pd.DataFrame(spent, columns=SPENT),
        calls=pd.DataFrame(),
        max_turns=len(correct[0]) - 1,
        patient="facts",
    )


RIGHT = [[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
SURE = [[0.1, 0.9, 0.9, 0.9], [0.2, 0.3, 0.4, 0.9], [0.1, 0.1, 0.1, 0.1], [0.95, 0.2, 0.2, 0.2]]
FOUR = handmade(RIGHT, SURE, [3, 3, 1, 3], [[0, 1, 1], [NAN, 0, 0], [0, 0], [1, 1, 1]])


def values(table: pd.DataFrame, key: str = "policy") -> pd.DataFrame:
    """A row for each of ``key``, a column for each metric."""
    return table.pivot(index=key, columns="metric", values="value")


def line(table: pd.DataFrame, metric: str, **where: object) -> pd.Series:
    """The only row of a metric."""
    for column, value in (("metric", metric), *where.items()):
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return pd.Series(row)


def test_a_consultation_is_four_tables_with_a_row_for_each_level() -> None:
    run = asked()
    assert (
        len(run.turns) == 4 * 3 and len(run.answers) == 4 * 4 and len(run.confidence) == 2 * 4 * 4
    )
    assert set(run.answers["dataset"]) == {"made-consultation"}
    assert run.answers.groupby("level")["n_utterances"].unique().map(list).to_dict() == {
        0: [2],
        1: [4],
        2: [6],
        3: [8],
    }
    assert run.turns["n_utterances"].to_list() == [4, 6, 8] * 4
    assert (run.enough.groupby("case_id").size() == 3).all() and list(run.families) == ["ce", "poc"]


def test_what_the_rule_patient_would_have_said_stands_beside_each_turn() -> None:
    turns = asked().turns
    known = turns[turns["question"].isin([q for _, q, _ in TOLD])]
    assert len(known) and (known["fact"] == known["reference"]).all()
    assert set(turns[turns["question"].isin(QUESTIONS[4:])]["reference"]) == {
        "not a known question"
    }


def test_a_second_run_over_the_same_cache_asks_nothing_and_gives_the_same(tmp_path) -> None:
    first = asked(cache=tmp_path / "replies.sqlite", run_dir=tmp_path / "a")
    model = Talker(QUESTIONS)
    again = asked(model=model, cache=tmp_path / "replies.sqlite", run_dir=tmp_path / "b")
    assert model.asked == [] and again.calls["n_made"].sum() == 0
    for name in ("turns", "answers", "confidence", "spent"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(again, name))


def test_captions_are_told_what_the_benchmarks_of_all_models_hold_of_them() -> None:
    run = asked()
    (parameters,) = (one.parameters for one in run.runs.values())
    assert run.parameters == parameters
    held = {"models": {"b": "r2"}, "samples_alike": ["b"], "served_by": {"b": {"B": 1}}}
    two = SimpleNamespace(parameters=held)
    both = replace(run, runs={**run.runs, "b": two}).parameters  # type: ignore[dict-item]
    assert both["models"] == {"fake": "r1", "b": "r2"}
    assert (both["samples_alike"], both["served_by"]) == (["b"], {"b": {"B": 1}})
    assert replace(run, runs={}).parameters == {}


def test_the_manifest_counts_the_talk_and_the_diagnoses(tmp_path) -> None:
    run = asked(run_dir=tmp_path)
    found = json.loads((tmp_path / "fake" / "run.json").read_text())
    purposes = run.calls.groupby("purpose")["n"].sum().to_dict()
    assert purposes == {
        "ask": 12,
        "enough": 12,
        "patient": 12,
        "diagnosis": 16,
        "samples": 48,
        "ce": 16,
    }
    assert found["calls_made"] == sum(purposes.values()) and found["calls_from_cache"] == 0
    assert (tmp_path / "turns.csv").is_file() and (tmp_path / "spent.csv").is_file()


def test_where_every_question_is_unreadable_there_is_one_state_and_all_tables_stand() -> None:
    run = asked(12, model=Talker(QUESTIONS, replies={"ask": "What now?"}))
    assert len(run.turns) == 0 and set(run.ended["ended"]) == {"no readable question"}
    assert set(run.answers["n_utterances"]) == {2}
    made = run.calls[run.calls["purpose"] == "diagnosis"]
    assert made["n_made"].sum() == 12, "the same state is not asked about again"
    for table in (
        tables.frontier_table,
        tables.chosen_table,
        tables.stops_table,
        tables.guarantee_table,
    ):
        assert len(table(run, "fake"))
    assert set(values(tables.chosen_table(run, "fake"))["utterances"]) == {2.0}
    assert (
        consultation.patient_table(run)["n"].sum() == 0
        and consultation.ended_table(run)["ended"].nunique() == 3
    )


def test_a_model_without_token_probabilities_lacks_those_methods_and_nothing_else() -> None:
    run = asked(10, model=Talker(QUESTIONS, provides=TEXT_ONLY), methods=("asp", "ce"))
    assert set(tables.frontier_table(run, "fake")["method"]) == {"ce"}
    assert "asp" not in set(tables.chosen_table(run, "fake")["policy"])
    assert tables.chosen_table(run, "fake", against="asp")["against"].unique().tolist() == [
        "fixed 3"
    ]


def test_the_patient_may_be_another_model_or_the_facts() -> None:
    other = Talker(QUESTIONS, name="other")
    doctor = Talker(QUESTIONS)
    run = asked(model=doctor, patient=other)
    assert run.patient == "other" and {r.purpose for r in other.requests} == {"patient"}
    assert "patient" not in {r.purpose for r in doctor.requests}
    assert "patient" not in set(asked(patient="facts").calls["purpose"])
    with pytest.raises(ValueError, match="model is 'nobody'"):
        asked(patient="nobody")


def test_the_doctor_may_be_another_model_who_answers_for_the_patient_too() -> None:
    doctor, model = Talker(QUESTIONS, name="doctor"), Talker(QUESTIONS)
    run = asked(model=model, doctor=doctor)
    assert {r.purpose for r in doctor.requests} == {"ask", "enough", "patient"}
    assert not {"ask", "enough", "patient"} & {r.purpose for r in model.requests}
    assert set(run.answers["model"]) == {"fake"} and run.patient == "doctor"
    assert run.parameters["doctor"] == {"doctor": doctor.revision}
    assert "asked by doctor" in formatted.run_notes(run.parameters)
    patient = Talker(QUESTIONS, name="patient")
    run = asked(doctor=Talker(QUESTIONS, name="doctor"), patient=patient)
    assert {r.purpose for r in patient.requests} == {"patient"} and run.patient == "patient"


def test_what_is_not_so_is_denied_and_counts_as_found() -> None:
    known = [replace(case, denies=frozenset(load_knowledge().findings)) for case in cases(2)]
    doctor = Talker([load_knowledge().findings["nausea"].question])
    run = ask(consultations, known, [doctor], ["ce"], 1, encoder=FakeEncoder(), patient="facts")
    assert run.turns["fact"].tolist() == run.turns["reference"].tolist() == ["not so"] * 2
    assert run.turns["reply"].isin(load_knowledge().findings["nausea"].deny).all()
    told = run.consultations[run.turns["model"][0]][0].statements[-1]
    assert (told.finding, told.affirmed) == ("nausea", False)
    shares = tables.patient_table(run, 10).set_index("metric")["value"]
    assert shares["found"] == 1 and shares["missed"] == 0


def test_two_models_consult_apart() -> None:
    talkers = [Talker(QUESTIONS), Talker(QUESTIONS, name="second")]
    run = ask(consultations, cases(2), talkers, ["ce"], 2, encoder=FakeEncoder())
    assert run.ended.groupby("model").size().to_dict() == {"fake": 2, "second": 2}
    assert run.spent.groupby("model").size().nunique() == 1
    with pytest.raises(ValueError, match="model is 'third'"):
        tables.grid(run, "third")


def test_each_request_is_spent_where_the_loop_would_have_made_it() -> None:
    run = asked(3, max_turns=2, methods=("ce", "poc", "medconf"))
    counted = run.spent.groupby(["purpose", "level"])["n_requests"].sum()
    for purpose, levels in {
        "ask": 2,
        "enough": 2,
        "patient": 2,
        "diagnosis": 3,
        "samples": 3,
        "ce": 3,
        "evidence": 3,
    }.items():
        assert counted[purpose].to_dict() == dict.fromkeys(range(levels), 3), purpose
    distinct = run.answers.groupby("case_id")["answer"].nunique().sum()
    replies = run.spent.groupby("purpose")["n_replies"].sum()
    assert (
        replies["samples"] == 3 * counted["samples"].sum() and replies["ce"] == counted["ce"].sum()
    )
    assert replies[["ask", "enough", "patient"]].to_list() == [6, 6, 6]
    assert counted["keyword"].sum() == counted["profile"].sum() == distinct
    for purpose in ("diagnosis", "samples", "ce", "evidence", "ask", "patient"):
        mine, calls = (
            run.spent[run.spent["purpose"] == purpose],
            run.calls[run.calls["purpose"] == purpose],
        )
        assert mine["n_tokens_out"].sum() == calls["n_tokens_out"].sum(), purpose


def test_a_state_after_the_end_spends_nothing() -> None:
    run = asked(2, model=Talker(QUESTIONS, replies={"ask": "[Do you swim?]"}), tries=1)
    assert run.ended["n_turns"].to_list() == [1, 1] and run.spent["level"].max() == 1


@pytest.mark.parametrize(
    ("method", "purposes"),
    [
        ("asp", {"diagnosis"}),
        ("poc", {"diagnosis", "samples"}),
        ("ce", {"diagnosis", "ce"}),
        ("medconf", {"diagnosis", "keyword", "profile", "evidence"}),
        ("semantic_entropy", {"diagnosis", "samples"}),
    ],
)
def test_what_a_method_takes(method: str, purposes: set[str]) -> None:
    assert purposes_of(method) == purposes


def test_the_frontier_of_four_by_hand() -> None:
    table = tables.frontier_table(FOUR, "fake")
    found = values(table, "threshold")[["accuracy", "utterances", "early"]]
    assert found.loc[math.inf].to_list() == [0.5, (8 + 8 + 4 + 8) / 4, 0]
    assert found.loc[0.95].to_list() == [0.75, (8 + 8 + 4 + 2) / 4, 0.25]
    assert found.loc[0.9].to_list() == [0.75, (4 + 8 + 4 + 2) / 4, 0.5]
    assert table["threshold"].iloc[0] == math.inf and set(table["n"]) == set(table["n_cases"]) == {
        4
    }


def test_policies_stop_four_cases_by_hand() -> None:
    at = tables.stops(FOUR, "fake")
    assert at["decides itself"].tolist() == [1, 3, 3, 0]
    assert at["oracle"].tolist() == [1, 3, 3, 0]
    assert [p for p in at if p.startswith("fixed")] == ["fixed 0", "fixed 2", "fixed 3"] and set(
        at["fixed 2"]
    ) == {2}


def test_marks_have_accuracy_beside_utterances_and_one_rule_of_all_fixed_lengths() -> None:
    marks = tables.chosen_marks(tables.chosen_table(FOUR, "fake", against=None))
    of = marks.set_index("policy")
    assert of.loc["decides itself", ["value", "utterances"]].to_list() == [0.75, 4.5]
    assert of.loc[["fixed 0", "fixed 3", "oracle"], "rule"].to_list() == [
        "fixed",
        "fixed",
        "oracle",
    ]
    assert {"utterances_low", "utterances_high"} <= set(marks) and of.index.is_unique


def test_accuracy_utterances_and_cost_of_policies_by_hand() -> None:
    long = tables.chosen_table(FOUR, "fake", against=None)
    table = values(long)
    assert table.loc["decides itself", ["accuracy", "utterances", "questions"]].to_list() == [
        0.75,
        4.5,
        (1 + 3 + 1 + 0) / 4,
    ]
    assert table.loc["decides itself", "early"] == 0.5
    assert table.loc["fixed 2", ["accuracy", "utterances", "questions"]].to_list() == [
        0.25,
        (6 + 6 + 4 + 6) / 4,
        (2 + 2 + 1 + 2) / 4,
    ]
    # two questions with their answers and a diagnosis; the third case's second question is asked
    # for in vain
    assert table.loc["fixed 2", ["calls", "tokens"]].to_list() == [
        (5 + 5 + 4 + 5) / 4,
        (3 * 2221 + 1221) / 4,
    ]
    # the first case: two decisions, a question, an answer, a diagnosis; the last: a decision and a
    # diagnosis
    assert (
        table.loc["decides itself", "calls"]
        == ((2 + 2 + 1) + (3 + 6 + 1) + (2 + 2 + 1 + 1) - 0 + (1 + 1)) / 4
    )
    assert table.loc["oracle", ["calls", "tokens"]].isna().all()
    assert line(long, "calls", policy="oracle")["missing"] == "nobody could follow this rule"
    assert table.loc["fixed 0", "difference"] == pytest.approx(0.25 - 0.5) and set(
        long["against"]
    ) == {"fixed 3"}
    assert math.isnan(table.loc["fixed 3", "difference"])


def test_a_method_pays_for_its_confidence_at_every_turn_up_to_its_stop() -> None:
    run = handmade([[1] * 4] * 2, [[0.1, 0.9, 0.9, 0.9]] * 2, [3, 3], [[0] * 3] * 2)
    table = tables.chosen_table(run, "fake", price=0)
    # always right: of equal thresholds the laxest, so it stops at once, with a diagnosis and a
    # score
    assert values(table).loc["ce", ["questions", "calls", "replies", "tokens"]].to_list() == [
        0,
        2,
        1 + 15,
        22,
    ]
    assert set(table.loc[table["policy"] == "ce", "threshold_low"]) == {0.1}
    late = handmade([[0, 1, 1, 1]] * 2, [[0.1, 0.9, 0.9, 0.9]] * 2, [3, 3], [[0] * 3] * 2)
    table = tables.chosen_table(late, "fake", price=0)
    assert (table.loc[table["policy"] == "ce", ["threshold_low", "threshold_high"]] == 0.9).all(
        axis=None
    )
    found = values(table).loc["ce", ["questions", "calls", "replies", "tokens"]].to_list()
    assert found == [1, 2 + 2 + 2, 2 * 16 + 2, 105 + 1000 + 44]


def test_a_threshold_is_never_chosen_on_the_case_it_is_tried_on() -> None:
    """Changing a case's own truth and confidence leaves its own threshold as it was."""
    rng = np.random.default_rng(2)
    right, sure = (rng.random((12, 4)) < 0.5).astype(float).tolist(), rng.random((12, 4)).tolist()
    run = handmade(right, sure, [3] * 12, [[0] * 3] * 12)
    before = tables.chosen_thresholds(tables.grid(run, "fake"), 12)["ce"]
    changed = 0
    for i in range(12):
        other = [list(row) for row in right]
        other[i] = [1 - x for x in other[i]]
        after = tables.chosen_thresholds(
            tables.grid(handmade(other, sure, [3] * 12, [[0] * 3] * 12), "fake"), 12
        )["ce"]
        assert after[i] == before[i]
        changed += int((np.delete(after, i) != np.delete(before, i)).any())
    assert changed, "the truth changes no threshold at all: nothing is shown"


def test_a_higher_price_asks_less() -> None:
    run = handmade(RIGHT * 3, SURE * 3, [3] * 12, [[0] * 3] * 12)
    said = [
        values(tables.chosen_table(run, "fake", price=p)).loc["ce", "utterances"]
        for p in (0, 0.05, 1)
    ]
    assert said == sorted(said, reverse=True) and said[-1] == 2 < said[0]


def test_every_mean_and_the_paired_difference_have_an_interval() -> None:
    run = handmade(RIGHT * 3, SURE * 3, [3] * 12, [[0] * 3] * 12)
    table = tables.chosen_table(run, "fake", against="ce", n_draws=500, seed=3)
    row = line(table, "accuracy", policy="fixed 0")
    draws = case_weights([f"c{i:02}" for i in range(12)], 500, 3) @ np.array([0, 0, 0, 1] * 3) / 12
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(draws)) and row[
        "value"
    ] == 0.25
    gap = line(table, "difference", policy="fixed 0")
    assert gap["low"] <= gap["value"] <= gap["high"] and row["missing"] == ""
    asked_for = line(table, "questions", policy="ce")
    assert asked_for["low"] < asked_for["value"] < asked_for["high"]
    shown = tables.chosen_shown(table).set_index("stops by")
    assert (
        shown.loc["fixed 0", "utterances"] == "2.0"
        and shown.loc["ce", "accuracy minus ce's"] == "–"
    )
    assert shown.loc["fixed 0", "early, %"] == "100" and shown.loc["ce", "tokens"].isdigit()
    assert (
        shown.loc["fixed 0", "accuracy, %"].startswith("25 [")
        and shown.loc["oracle", "tokens"] == "–"
    )
    assert shown.loc["ce", "questions"] == f"{asked_for['value']:.1f}", "a cost stands alone"


def test_a_threshold_is_shown_from_the_lowest_to_the_highest_of_the_folds() -> None:
    inf = math.inf
    table = tables.chosen_table(FOUR, "fake")
    policies = list(dict.fromkeys(table["policy"]))[:4]
    low, high = (
        dict(zip(policies, x, strict=True)) for x in ((0.5, 0.5, inf, NAN), (inf, 0.5, inf, NAN))
    )
    told = table[table["policy"].isin(policies)]
    told = told.assign(
        threshold_low=told["policy"].map(low), threshold_high=told["policy"].map(high)
    )
    assert tables.chosen_shown(told)["threshold"].to_list() == [
        "0.50 to never",
        "0.50",
        "never",
        "–",
    ]
    table = tables.chosen_table(FOUR, "fake", n_folds=4)
    each = tables.chosen_thresholds(tables.grid(FOUR, "fake"), 4)["ce"]
    ends = table.loc[table["policy"] == "ce", ["threshold_low", "threshold_high"]].iloc[0].to_list()
    assert ends == [min(each), max(each)] and min(each) < max(each)


def test_a_case_whose_answer_could_not_be_had_is_left_out_and_counted() -> None:
    run = handmade([[NAN, 1, 1, 1], *RIGHT[1:]], SURE, [3, 3, 1, 3], [[0] * 3] * 4)
    for make in (tables.chosen_table, tables.frontier_table, tables.stops_table):
        assert make(run, "fake")[
            ["n", "n_cases", "n_missing"]
        ].drop_duplicates().to_numpy().tolist() == [[3, 3, 1]]
    assert consultation.left_out_table(run).to_dict("records") == [
        {"model": "fake", "case_id": "c00", "level": 0, "missing": "too long"}
    ]
    assert not len(consultation.left_out_table(FOUR))
    gone = handmade([[NAN] * 4] * 2, SURE[:2], [3, 3], [[0] * 3] * 2)
    table = tables.chosen_table(gone, "fake")
    assert (
        set(table["n_cases"]) == {0}
        and set(table["n_missing"]) == {2}
        and table["value"].isna().all()
    )
    assert set(table["missing"]) == {"no consultation could be judged throughout"}
    assert not len(tables.frontier_table(gone, "fake")) and len(
        tables.guarantee_table(gone, "fake")
    )
    assert (tables.stops_table(gone, "fake")["n_hits"] == 0).all()


def test_when_they_stop_counts_every_case_once() -> None:
    table = tables.stops_table(FOUR, "fake")
    assert (
        set(table.groupby("policy")["n_hits"].sum()) == {4}
        and not table["policy"].str.startswith("fixed").any()
    )
    itself = table[table["policy"] == "decides itself"].set_index("questions")
    assert itself["n_hits"].to_dict() == {
        0: 1,
        1: 2,
        2: 0,
        3: 1,
    }, "the third consultation ended after one question"
    assert itself["value"].to_list() == [0.25, 0.5, 0, 0.25]


def test_the_guarantee_is_calibrated_on_one_half_and_tried_on_the_other() -> None:
    n = 120
    run = handmade([[1, 1, 1, 1]] * n, [[0.65, 0.9, 0.9, 0.9]] * n, [3] * n, [[0] * 3] * n)
    table = tables.guarantee_table(run, "fake", alphas=(0.05, 0.2)).set_index("alpha")
    counts = table.loc[0.2, ["threshold", "n_calibration", "n", "n_missing", "n_hits", "value"]]
    assert counts.to_list() == [0.5, 60, 60, 0, 0, 0] and set(table["delta"]) == {0.1}
    assert table.loc[0.05, ["n", "n_missing"]].to_list() == [0, 60]
    assert table.loc[0.2, "high"] == pytest.approx(1 - 0.025 ** (1 / 60))
    # 77 early cases without an error would be needed for 5 %
    assert math.isnan(table.loc[0.05, "threshold"]) and "77 cases" in table.loc[0.05, "missing"]


def test_errors_of_fewer_than_ten_cases_have_no_interval() -> None:
    n = 18
    run = handmade([[1, 1, 1, 1]] * n, [[0.65, 0.9, 0.9, 0.9]] * n, [3] * n, [[0] * 3] * n)
    (row,) = tables.guarantee_table(run, "fake", alphas=(0.4,)).to_dict("records")
    assert (row["n"], row["value"]) == (9, 0) and math.isnan(row["low"]) and math.isnan(row["high"])
    assert row["missing"] == "no interval: fewer than 10 cases"


def test_scores_beyond_0_to_1_are_outside_the_thresholds() -> None:
    run = handmade([[1, 1, 1, 1]] * 120, [[0.65, 1.9, 0.9, 0.9]] * 120, [3] * 120, [[0] * 3] * 120)
    table = tables.guarantee_table(run, "fake", alphas=(0.2,))
    assert table["threshold"].isna().all() and table["missing"].item().startswith(
        "outside the thresholds"
    )
    assert tables.guarantee_shown(table).loc["ce", "20 % allowed"] == "no confidence from 0 to 1"


def test_errors_on_the_other_half_are_counted() -> None:
    run = handmade(
        ([[1, 1, 1, 1]] * 9 + [[0, 1, 1, 1]]) * 20, [[0.9] * 4] * 200, [3] * 200, [[0] * 3] * 200
    )
    row = tables.guarantee_table(run, "fake", alphas=(0.3,)).iloc[0]
    test = tables.fold_of(run.ended["case_id"], 2, 0) == 1
    wrong = sum(1 for i in range(200) if i % 10 == 9 and test[i])
    assert (row["n"], row["n_hits"]) == (100, wrong) and row["low"] < row[
        "value"
    ] == wrong / 100 < row["high"]
    assert (row["low"], row["high"]) == pytest.approx(tuple(beta_ends(wrong, 100)))


def test_the_guarantee_reads_a_row_a_method() -> None:
    n = 120
    run = handmade([[1, 1, 1, 1]] * n, [[0.65, 0.9, 0.9, 0.9]] * n, [3] * n, [[0] * 3] * n)
    shown = tables.guarantee_shown(tables.guarantee_table(run, "fake", alphas=(0.05, 0.2)))
    assert shown.loc["ce"].to_dict() == {
        "5 % allowed": "none",
        "20 % allowed": "from 0.5: 0 of 60 wrong",
    }


def beta_ends(hits: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson's interval as quantiles of beta distributions."""
    return beta.ppf(0.025, hits, n - hits + 1), beta.ppf(0.975, hits + 1, n - hits)


def turns_of(*rows: tuple[str, str, str]) -> ConsultationRun:
    turns = pd.DataFrame(rows, columns=["outcome", "fact", "reference"]).assign(
        model="fake", case_id="c00"
    )
    return replace(FOUR, turns=turns)


def test_the_model_patient_is_held_against_the_rule_patient() -> None:
    run = turns_of(
        ("answered", "1", "1"), ("does not know", "", "2"), ("invented", "", "3"),
        ("answered", "4", "5"), ("does not know", "", "not told"), ("answered", "2", "not told"),
        ("leaked", "", "findings not marked"),
    )  # fmt: skip
    table = consultation.patient_table(run).set_index("metric")
    assert table["n_hits"].to_dict() == {
        "answered": 3, "does not know": 2, "volunteered": 0, "invented": 1, "leaked": 1,
        "out of place": 0, "unreadable": 0, "found": 1, "missed": 2, "another fact": 1,
        "rightly not known": 1, "spoke though not told": 1,
    }  # fmt: skip
    assert set(table.loc[:"unreadable", "n"]) == {7} and table.loc[
        "missed", ["n", "value"]
    ].to_list() == [4, 0.5]
    none = consultation.patient_table(turns_of(("answered", "1", "1"))).set_index("metric")
    assert (
        none.loc["rightly not known", "missing"] == "no such question"
        and none.loc["rightly not known", "n"] == 0
    )


def test_tries_are_counted() -> None:
    run = replace(
        FOUR, turns=pd.DataFrame({"model": "fake", "case_id": list("aabc"), "tries": [1, 3, 1, 1]})
    )
    table = consultation.tries_table(run)
    assert table[["tries", "n_hits", "value"]].to_numpy().tolist() == [
        [1, 3, 0.75],
        [2, 0, 0],
        [3, 1, 0.25],
    ]
    assert set(table["n"]) == {4} and set(table["n_cases"]) == {3}
    assert not len(consultation.tries_table(replace(FOUR, turns=run.turns[:0])))


def test_how_they_ended_is_a_share_and_a_length() -> None:
    ends = pd.DataFrame({"model": "fake", "case_id": list("abcd"), "n_turns": [3, 3, 1, 2]})
    run = replace(FOUR, ended=ends.assign(ended=["turn limit"] * 2 + ["repeats itself"] * 2))
    table = consultation.ended_table(run).set_index(["ended", "metric"])
    assert table.loc[("repeats itself", "share"), ["value", "n_hits", "n"]].to_list() == [0.5, 2, 4]
    assert table.loc[("repeats itself", "questions"), ["value", "n"]].to_list() == [1.5, 2]
    assert table.loc[("no readable question", "questions"), "missing"] == "none of them"


def test_the_one_worth_reading_turns_from_wrong_to_right() -> None:
    run = asked(6)
    wide = run.answers.pivot(index="case_id", columns="level", values="correct")
    turned = wide.index[(wide[0] == 0) & (wide[3] == 1)]
    assert worth_reading(run, "fake").case.case_id == (turned[0] if len(turned) else "c00")


def test_of_those_that_turn_the_longest_is_read() -> None:
    answers = [(f"c{i}", k, "fake", float(k == 1 and i != 2)) for i in range(3) for k in range(2)]
    table = pd.DataFrame(answers, columns=["case_id", "level", "model", "correct"])
    talks = tuple(
        SimpleNamespace(case=SimpleNamespace(case_id=f"c{i}"), turns=(None,) * n)
        for i, n in enumerate((1, 2, 3))
    )
    run = SimpleNamespace(answers=table, consultations={"fake": talks})
    assert worth_reading(run, "fake") is talks[1]  # type: ignore[arg-type]


def early_run(n: int, n_wrong: int) -> ConsultationRun:
    """``n`` cases that every threshold stops at once, the first ``n_wrong`` of them wrongly."""
    right = [[int(i >= n_wrong), 1] for i in range(n)]
    return handmade(right, [[0.95, 0.95]] * n, [1] * n, [[0, 1]] * n)


def test_what_a_guarantee_would_take_at_the_errors_seen() -> None:
    run = early_run(20, 2)
    needs = tables.guarantee_needs(run, "fake", [0.05, 0.2]).set_index("alpha")
    assert needs.loc[0.2, ["n", "n_hits", "value", "threshold"]].tolist() == [20, 2, 0.1, 0.5]
    # all stop early, so that both halves are twice what the test needs
    assert needs.loc[0.2, "cases_needed"] == 2 * 109
    assert math.isnan(needs.loc[0.05, "cases_needed"])
    told = tables.guarantee_told(
        tables.guarantee_table(run, "fake", [0.05, 0.2]), needs.reset_index()
    )
    assert " ".join(told.split()) == (
        "- CE, errors allowed: 5 % none (no threshold has so few errors); 20 % would take"
        " about 220 cases like these (from 0.5: 2 of 20 wrong)."
    )


def test_a_rate_that_is_certified_says_so_and_few_early_ones_give_no_rate() -> None:
    run = early_run(60, 0)
    found = tables.guarantee_table(run, "fake", [0.2])
    assert "20 % certified from 0.5" in tables.guarantee_told(
        found, tables.guarantee_needs(run, "fake", [0.2])
    )
    needs = tables.guarantee_needs(early_run(9, 0), "fake", [0.2])
    assert needs["cases_needed"].isna().all()
    assert needs["missing"].eq("at most 9 of 9 stop early: too few for a rate of errors").all()


@pytest.mark.parametrize(
    "correct, words",
    [
        ([0, 1, 0, 1], "right for good after 3 questions; there the confidence goes: CE from 0.30"),
        ([1, 1, 1, 1], "right from the opening on"),
        ([0, 1, 1, 0], "wrong to the end"),
        ([0, NAN, 1, NAN], "right for good after 2 questions"),
        ([NAN, NAN, NAN, NAN], ""),
    ],
)
def test_the_message_of_one_consultation(correct, words) -> None:
    rows = pd.DataFrame({"level": range(4), "correct": correct, "ce": [0.1, 0.2, 0.3, 0.4]})
    assert words in (said := tables.talk_message(rows, ["ce"]))
    assert bool(said) == bool(words)
    assert "confidence" not in tables.talk_message(rows.assign(ce=NAN), ["ce"])


def test_the_message_of_the_frontier_counts_the_rules_and_says_nothing_without_values() -> None:
    run = early_run(12, 6)
    how = {"against": "fixed 1", "n_draws": 500}
    picked = tables.chosen_table(run, "fake", **how)
    gaps = tables.rules_compared(run, "fake", **how)
    said = tables.frontier_message(picked, gaps)
    assert said.startswith(
        "All asked alike: 50 % right after 2.0 utterances, 100 % right after 4.0"
    )
    assert "Right less often than 1 question to all: 1 of 1 (no questions to all, -50 [" in said
    none = picked.assign(value=NAN)
    assert tables.frontier_message(none, gaps) == ""
    few = tables.rules_compared(early_run(4, 2), "fake", **how)
    assert "Not told" not in tables.frontier_message(picked, few)
