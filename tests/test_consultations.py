"""The experiment from recorded talk to tables: hand-made consultations by hand, and a fake model
for the whole way."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from fake_consultation import QUESTIONS, Talker, asked
from saying import saying

from studies import consultation as tables
from studies.consultation import ConsultationRun

NAN = float("nan")


def handmade(
    correct: list[list[float]],
    confidence: list[list[float]],
    length: list[int],
    enough: list[list[float]],
):
    """A run of four levels, 2 utterances at the opening and 2 a question, with one method,
    ``ce``."""
    ids = [f"c{i:02}" for i in range(len(correct))]
    cells = [(i, level) for i in range(len(correct)) for level in range(len(correct[0]))]
    base = pd.DataFrame({"case_id": [ids[i] for i, _ in cells], "level": [k for _, k in cells]})
    base = base.assign(dataset="made", model="fake")
    right = [correct[i][k] for i, k in cells]
    answers = base.assign(correct=right, n_utterances=[2 + 2 * min(k, length[i]) for i, k in cells])
    lost = answers["correct"].isna().map({True: "too long", False: ""})
    decided = [(ids[i], k, e) for i, row in enumerate(enough) for k, e in enumerate(row)]
    return ConsultationRun(
        turns=pd.DataFrame(),
        ended=pd.DataFrame({"model": "fake", "case_id": ids, "n_turns": length}),
        enough=pd.DataFrame(decided, columns=["case_id", "level", "enough"]).assign(model="fake"),
        answers=answers.assign(missing=lost),
        confidence=base.assign(method="ce", confidence=[confidence[i][k] for i, k in cells]),
        calls=pd.DataFrame(),
        patient="facts",
    )


RIGHT = [[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
SURE = [[0.1, 0.9, 0.9, 0.9], [0.2, 0.3, 0.4, 0.9], [0.1, 0.1, 0.1, 0.1], [0.95, 0.2, 0.2, 0.2]]
FOUR = handmade(RIGHT, SURE, [3, 3, 1, 3], [[0, 1, 1], [NAN, 0, 0], [0, 0], [1, 1, 1]])


def values(table: pd.DataFrame, key: str = "policy") -> pd.DataFrame:
    """A row for each of ``key``, a column for each metric."""
    return table.pivot(index=key, columns="metric", values="value")


def test_a_consultation_is_four_tables_with_a_row_for_each_level_and_a_manifest(tmp_path) -> None:
    run = asked(run_dir=tmp_path)
    assert (len(run.turns), len(run.answers), len(run.confidence)) == (4 * 3, 4 * 4, 2 * 4 * 4)
    assert set(run.answers["dataset"]) == {"made-consultation"}
    said = run.answers.groupby("level")["n_utterances"].unique().map(list).to_dict()
    assert said == {0: [2], 1: [4], 2: [6], 3: [8]}
    assert run.turns["n_utterances"].to_list() == [4, 6, 8] * 4
    assert (run.enough.groupby("case_id").size() == 3).all() and list(run.families) == ["ce", "poc"]
    found = json.loads((tmp_path / "fake" / "run.json").read_text())
    purposes = run.calls.groupby("purpose")["n"].sum().to_dict()
    talk = dict.fromkeys(["ask", "enough", "patient"], 12)
    assert purposes == {**talk, "diagnosis": 16, "samples": 48, "ce": 16}
    assert found["calls_made"] == sum(purposes.values()) and found["calls_from_cache"] == 0
    assert (tmp_path / "turns.csv").is_file() and (tmp_path / "enough.csv").is_file()


def purposes(model: Talker) -> set[str]:
    return {r.purpose for r in model.requests}


def test_the_patient_and_the_doctor_may_be_other_models() -> None:
    doctor, other = Talker(QUESTIONS), Talker(QUESTIONS, name="other")
    run = asked(model=doctor, patient=other)
    assert run.patient == "other" and purposes(other) == {"patient"}
    assert "patient" not in purposes(doctor)
    assert "patient" not in set(asked(patient="facts").calls["purpose"])


def test_policies_stop_four_cases_by_hand() -> None:
    at = tables.stops(tables.grid(FOUR, "fake"), {"ce": np.full(4, 0.9)})
    for policy in ("ce", "decides itself", "oracle"):
        assert at[policy].tolist() == [1, 3, 3, 0]
    assert [p for p in at if p.startswith("fixed")] == ["fixed 0", "fixed 2", "fixed 3"]
    assert set(at["fixed 2"]) == {2}
    table = values(tables.chosen_table(FOUR, "fake"))
    means = ["accuracy", "utterances", "early", "questions"]
    assert table.loc["decides itself", means].to_list() == [0.75, 4.5, 0.5, (1 + 3 + 1 + 0) / 4]
    assert table.loc["fixed 2", means].to_list() == [0.25, 22 / 4, 1, (2 + 2 + 1 + 2) / 4]
    assert table.loc[["fixed 0", "fixed 3", "oracle"], "accuracy"].to_list() == [0.25, 0.5, 0.75]
    for threshold in (0.9, {"ce": 0.9, "asp": 0.5}):  # of asp there is nothing
        given = tables.chosen_table(FOUR, "fake", threshold=threshold)
        rows = given[given["policy"].eq("ce at 0.9")]
        assert set(rows["threshold_low"]) == set(rows["threshold_high"]) == {0.9}
        stopped = values(given).loc["ce at 0.9", means]
        assert stopped.to_list() == table.loc["decides itself", means].to_list()
        assert set(given["policy"]) - set(table.index) == {"ce at 0.9"}
    with pytest.raises(ValueError, match="'apples'"):
        tables.Asked(max_turns=3, price=0.1, threshold={"apples": 1.0})
    with pytest.raises(ValueError, match=saying("max_turns", "not given")):
        tables.Asked(price=0.1)  # pyright: ignore[reportCallIssue]


def test_a_threshold_is_never_chosen_on_the_case_it_is_tried_on() -> None:
    """Changing a case's own truth and confidence leaves its own threshold as it was."""
    rng = np.random.default_rng(2)
    right, sure = (rng.random((12, 4)) < 0.5).astype(float), rng.random((12, 4)).tolist()

    def thresholds(correct: np.ndarray) -> np.ndarray:
        run = handmade(correct.tolist(), sure, [3] * 12, [[0] * 3] * 12)
        return tables.chosen_thresholds(tables.grid(run, "fake"), 12)["ce"]

    before, changed = thresholds(right), 0
    for i in range(12):
        other = right.copy()
        other[i] = 1 - other[i]
        after = thresholds(other)
        assert after[i] == before[i]
        changed += int((np.delete(after, i) != np.delete(before, i)).any())
    assert changed, "the truth changes no threshold at all: nothing is shown"


def test_a_case_whose_answer_could_not_be_had_is_left_out_and_counted() -> None:
    run = handmade([[NAN, 1, 1, 1], *RIGHT[1:]], SURE, [3, 3, 1, 3], [[0] * 3] * 4)
    for make in (tables.chosen_table, tables.frontier_table):
        counts = make(run, "fake")[["n", "n_cases", "n_missing"]].drop_duplicates()
        assert counts.to_numpy().tolist() == [[3, 3, 1]]
