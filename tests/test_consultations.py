"""The experiment from recorded talk to tables: hand-made consultations by hand, and a fake model
for the whole way."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_consultation import QUESTIONS, TOLD, Talker, asked, cases
from fake_model import TEXT_ONLY, FakeEncoder
from resampled import case_weights

from studies import consultation as tables
from studies.consultation import ConsultationRun, consultations
from trustlab import formatted
from trustlab.knowledge import load_knowledge
from trustlab.metrics.estimate import percentile_interval

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
        calls=pd.DataFrame(),
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
    for name in ("turns", "answers", "confidence"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(again, name))


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
    assert (tmp_path / "turns.csv").is_file() and (tmp_path / "enough.csv").is_file()


def test_where_every_question_is_unreadable_there_is_one_state_and_nothing_is_claimed() -> None:
    run = asked(12, model=Talker(QUESTIONS, replies={"ask": "Let me think about it first."}))
    assert len(run.turns) == 0 and set(run.ended["ended"]) == {"no readable question"}
    assert set(run.answers["n_utterances"]) == {2}
    made = run.calls[run.calls["purpose"] == "diagnosis"]
    assert made["n_made"].sum() == 12, "the same state is not asked about again"
    assert tables.frontier_table(run, "fake").empty
    chosen = tables.chosen_table(run, "fake")
    assert len(chosen) and chosen["value"].isna().all(), "nothing is claimed of replies not read"


def test_a_model_without_token_probabilities_lacks_those_methods_and_nothing_else() -> None:
    run = asked(10, model=Talker(QUESTIONS, provides=TEXT_ONLY), methods=("asp", "ce"))
    assert set(tables.frontier_table(run, "fake")["method"]) == {"ce"}
    assert "asp" not in set(tables.chosen_table(run, "fake")["policy"])


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


def test_what_is_not_so_is_denied() -> None:
    known = [replace(case, denies=frozenset(load_knowledge().findings)) for case in cases(2)]
    doctor = Talker([load_knowledge().findings["nausea"].question])
    run = ask(consultations, known, [doctor], ["ce"], 1, encoder=FakeEncoder(), patient="facts")
    assert run.turns["fact"].tolist() == run.turns["reference"].tolist() == ["not so"] * 2
    assert run.turns["reply"].isin(load_knowledge().findings["nausea"].deny).all()
    told = run.consultations[run.turns["model"][0]][0].statements[-1]
    assert (told.finding, told.affirmed) == ("nausea", False)


def test_two_models_consult_apart() -> None:
    talkers = [Talker(QUESTIONS), Talker(QUESTIONS, name="second")]
    run = ask(consultations, cases(2), talkers, ["ce"], 2, encoder=FakeEncoder())
    assert run.ended.groupby("model").size().to_dict() == {"fake": 2, "second": 2}


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
    at = tables.stops(tables.grid(FOUR, "fake"), {"ce": np.full(4, 0.9)})
    assert at["ce"].tolist() == [1, 3, 3, 0]
    assert at["decides itself"].tolist() == [1, 3, 3, 0]
    assert at["oracle"].tolist() == [1, 3, 3, 0]
    assert [p for p in at if p.startswith("fixed")] == ["fixed 0", "fixed 2", "fixed 3"] and set(
        at["fixed 2"]
    ) == {2}


def test_accuracy_and_utterances_of_policies_by_hand() -> None:
    table = values(tables.chosen_table(FOUR, "fake"))
    means = ["accuracy", "utterances", "early", "questions"]
    assert table.loc["decides itself", means].to_list() == [0.75, 4.5, 0.5, (1 + 3 + 1 + 0) / 4]
    assert table.loc["fixed 2", means].to_list() == [
        0.25,
        (6 + 6 + 4 + 6) / 4,
        1,
        (2 + 2 + 1 + 2) / 4,
    ]
    assert table.loc[["fixed 0", "fixed 3", "oracle"], "accuracy"].to_list() == [0.25, 0.5, 0.75]


def test_of_equal_thresholds_the_laxest_is_taken() -> None:
    run = handmade([[1] * 4] * 2, [[0.1, 0.9, 0.9, 0.9]] * 2, [3, 3], [[0] * 3] * 2)
    table = tables.chosen_table(run, "fake", price=0)
    assert values(table).loc["ce", "questions"] == 0  # always right, so it stops at once
    assert set(table.loc[table["policy"] == "ce", "threshold_low"]) == {0.1}
    late = handmade([[0, 1, 1, 1]] * 2, [[0.1, 0.9, 0.9, 0.9]] * 2, [3, 3], [[0] * 3] * 2)
    table = tables.chosen_table(late, "fake", price=0)
    ends = table.loc[table["policy"] == "ce", ["threshold_low", "threshold_high"]]
    assert (ends == 0.9).all(axis=None) and values(table).loc["ce", "questions"] == 1


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


@pytest.mark.usefixtures("every_interval")
def test_every_mean_has_an_interval() -> None:
    run = handmade(RIGHT * 3, SURE * 3, [3] * 12, [[0] * 3] * 12)
    table = tables.chosen_table(run, "fake", n_draws=500, seed=3)
    row = line(table, "accuracy", policy="fixed 0")
    draws = case_weights([f"c{i:02}" for i in range(12)], 500, 3) @ np.array([0, 0, 0, 1] * 3) / 12
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(draws))
    assert row["value"] == 0.25 and row["missing"] == ""
    asked_for = line(table, "questions", policy="ce")
    assert asked_for["low"] < asked_for["value"] < asked_for["high"]


def test_a_case_whose_answer_could_not_be_had_is_left_out_and_counted() -> None:
    run = handmade([[NAN, 1, 1, 1], *RIGHT[1:]], SURE, [3, 3, 1, 3], [[0] * 3] * 4)
    for make in (tables.chosen_table, tables.frontier_table):
        assert make(run, "fake")[
            ["n", "n_cases", "n_missing"]
        ].drop_duplicates().to_numpy().tolist() == [[3, 3, 1]]
    gone = handmade([[NAN] * 4] * 2, SURE[:2], [3, 3], [[0] * 3] * 2)
    table = tables.chosen_table(gone, "fake")
    assert (
        set(table["n_cases"]) == {0}
        and set(table["n_missing"]) == {2}
        and table["value"].isna().all()
    )
    assert set(table["missing"]) == {"no consultation could be judged throughout"}
    assert not len(tables.frontier_table(gone, "fake"))
