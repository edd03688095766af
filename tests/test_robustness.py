"""Robustness: the whole pipeline on a model without weights, and every table worked out by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_model import NAMES, FakeEncoder, FakeModel, made_case, made_cases

from studies.robustness import (
    METHODS_SHOWN,
    Robustness,
    either_named,
    fate,
    robustness,
    two_at_once,
    variation_table,
)
from trustlab.changes.changes import ORIGINAL, named, picked, small_talk
from trustlab.confidence import select
from trustlab.graders import SynonymGrader
from trustlab.knowledge import load_knowledge
from trustlab.levels import view
from trustlab.metrics.estimate import TOO_FEW
from trustlab.models.base import Request
from trustlab.records import Case, Reply

TABLE = load_knowledge()
NAN = float("nan")
LEVELS = (20, 100)
METHODS = ["asp", "poc", "ce"]
KEY = {"dataset": "made", "model": "fake"}


class Voice:
    """Words a reply in the table's next phrasing; the question stays. ``turned`` findings are
    answered the other way."""

    name, revision, provides = "voice", "1", frozenset({"text"})

    taught = {"set": "embedded"}

    def __init__(
        self, turned: Sequence[str] = (), silent: Sequence[str] = (), question: str | None = None
    ) -> None:
        self.turned, self.silent, self.question, self.asked = set(turned), set(silent), question, []

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked += requests
        return [
            [Reply(f"[{words}]" if (words := self.say(r.messages[1][1])) else "cannot")]
            for r in requests
        ]

    def say(self, prompt: str) -> str:
        question, reply = (
            re.search(rf"<{tag}>\n(.+)\n</{tag}>", prompt) for tag in ("question", "reply")
        )
        if reply is None:
            return question[1] if self.question is None else self.question
        for f in TABLE.findings.values():
            for own, others in ((f.affirm, f.deny), (f.deny, f.affirm)):
                if reply[1] in own and f.question == question[1]:
                    new = others if f.id in self.turned else own
                    return "" if f.id in self.silent else new[(own.index(reply[1]) + 1) % len(new)]
        raise AssertionError(f"not in the table's words: {reply[1]}")


def told_cases(n: int = 4) -> list[Case]:
    """Cases in the table's words: eleven findings each, others for each case."""
    plain = [f.id for f in TABLE.findings.values() if f.form == "binary" and f.parent is None]
    return [
        replace(
            made_case(chr(97 + i), NAMES[i % 4]),
            statements=tuple(
                TABLE.statement(f, j % 2 == 0) for j, f in enumerate(plain[11 * i : 11 * i + 11])
            ),
        )
        for i in range(n)
    ]


def run(tmp_path, cases=None, model=None, **more) -> tuple[Robustness, list[Case], FakeModel]:
    cases, model = cases or told_cases(), model or FakeModel()
    asked = {
        "methods": METHODS,
        "levels": LEVELS,
        "samples": 3,
        "encoder": FakeEncoder(),
        "wording": Voice(),
    }
    return ask(robustness, cases, [model], run_dir=tmp_path, **(asked | more)), cases, model


# -- the pipeline
# --------------------------------------------------------------------------------------------------


def test_every_condition_holds_every_case_level_and_method_once(tmp_path) -> None:
    found, cases, _ = run(tmp_path)
    names = [
        "original",
        "paraphrase_1",
        "paraphrase_2",
        "paraphrase_3",
        "small_talk",
        "other_system",
        "reordered",
        "instruction_100",
    ]
    assert [c.name for c in found.conditions] == list(found.runs) == names
    assert list(dict.fromkeys(found.answers["condition"])) == names
    assert len(found.answers) == len(cases) * len(LEVELS) * len(names)
    assert len(found.confidence) == len(found.answers) * len(METHODS) and found.left_out == ""
    assert not found.confidence.duplicated(["case_id", "level", "condition", "method"]).any()
    assert sorted(p.parent.name for p in tmp_path.glob("runs/*/run.json")) == sorted(names)


def test_what_changed_is_what_the_model_was_shown(tmp_path) -> None:
    found, cases, model = run(tmp_path)
    shown = {r.messages[-1][1] for r in model.requests if r.purpose == "diagnosis"}
    for change in found.conditions:
        rows = found.answers[found.answers["condition"] == change.name].set_index(
            ["case_id", "level"]
        )
        for case in cases:
            for level in LEVELS:
                text = change.show(case, level).text
                assert any(text in prompt for prompt in shown)
                assert rows.loc[(case.case_id, level), "changed"] == (
                    text != view(case, level).text
                )
                assert (
                    rows.loc[(case.case_id, level), "n_statements"]
                    == change.show(case, level).n_statements
                )
    assert not found.answers.loc[found.answers["condition"] == "original", "changed"].any()


def test_the_run_as_told_is_the_benchmark_s_and_a_second_experiment_asks_nothing(tmp_path) -> None:
    first, cases, _ = run(tmp_path)
    again_model, again_voice = FakeModel(), Voice()
    again, *_ = run(tmp_path, cases, again_model, wording=again_voice)
    assert not again_model.requests and not again_voice.asked and again.calls["n_made"].sum() == 0
    pd.testing.assert_frame_equal(again.confidence, first.confidence)
    only = FakeModel()
    more, *_ = run(tmp_path, cases, only, changes=[small_talk(seed=9)], paraphrase_seeds=[])
    assert {r.purpose for r in only.requests} <= {"diagnosis", "samples", "ce"}
    assert more.calls.groupby("condition")["n_made"].sum().loc["original"] == 0


def test_each_statement_drawn_is_worded_once_and_calls_count_with_the_first_run(tmp_path) -> None:
    voice = Voice()
    found, cases, _ = run(tmp_path, wording=voice)
    drawn = [s.text for k in (1, 2, 3) for c in cases for q in LEVELS for s in picked(c, q, k)]
    assert sorted(found.paraphrases["text"]) == sorted(set(drawn)) and found.paraphrases[
        "n"
    ].sum() == len(drawn)
    assert len(voice.asked) == len(set(voice.asked)) == 2 * len(set(drawn))
    assert (
        pd.read_csv(tmp_path / "paraphrases.csv")["text"].tolist()
        == found.paraphrases["text"].tolist()
    )
    counted = json.loads((tmp_path / "runs" / "original" / "run.json").read_text())["calls_made"]
    others = found.calls[
        (found.calls["condition"] == "original")
        & ~found.calls["purpose"].str.startswith("rephrase")
    ]
    assert counted == others["n_made"].sum() + 2 * len(set(drawn))
    assert (
        not found.calls.loc[found.calls["condition"] != "original", "purpose"]
        .str.startswith("rephrase")
        .any()
    )


def test_a_turned_or_lost_paraphrase_is_not_appended_and_counted(tmp_path) -> None:
    cases = told_cases(2)
    drawn = [s for c in cases for q in LEVELS for k in (1, 2, 3) for s in picked(c, q, k)]
    turned, silent = (
        drawn[0].finding,
        next(s.finding for s in drawn if s.finding != drawn[0].finding),
    )
    found, *_ = run(tmp_path, cases, wording=Voice([turned], [silent]))
    table = found.paraphrases.set_index("text")
    by_finding = {s.finding: table.loc[s.text] for s in drawn}
    assert (
        by_finding[turned]["verdict"],
        by_finding[turned]["how"],
        by_finding[turned]["used"],
    ) == ("turns", "exact", False)
    assert by_finding[silent]["verdict"] == "no new words" and pd.isna(
        by_finding[silent]["wording"]
    )
    rest = [row for f, row in by_finding.items() if f not in (turned, silent)]
    assert rest and all(
        (row["verdict"], row["how"], row["used"]) == ("same", "exact", True) for row in rest
    )
    of = {s.finding: fate(cases[0], s.text, by_finding[s.finding]) for s in drawn}
    assert (of.pop(turned), of.pop(silent)) == ("caught", "no_words")
    assert set(of.values()) == {"appended"}
    names = {"used": True, "wording": f"It is {cases[0].diagnosis}."}
    assert fate(cases[0], "I am ill.", names) == "named"


@pytest.mark.parametrize("question", ["", TABLE.findings["muscle_aches"].question])
def test_a_question_that_is_unreadable_or_asks_something_else_stays_beside_the_new_answer(
    tmp_path, question: str
) -> None:
    found, *_ = run(tmp_path, told_cases(2), wording=Voice(question=question))
    assert found.paraphrases["used"].all() and set(found.paraphrases["verdict"]) == {"same"}
    for row in found.paraphrases.to_dict("records"):
        old, new = (text.partition("\n") for text in (row["text"], row["wording"]))
        assert old[0] == new[0] and old[2] != new[2]
        assert ("the question stays" in row["why"]) == bool(question)


def test_where_no_paraphrase_can_be_had_the_rest_runs_and_the_reason_is_told(tmp_path) -> None:
    found, *_ = run(tmp_path, wording=Voice(silent=list(TABLE.findings)))
    assert [c.name for c in found.conditions][:2] == ["original", "small_talk"]
    assert found.left_out.endswith("replies to 'rephrase_reply' could be read")
    assert variation_table(found.confidence).empty and not found.paraphrases["used"].any()


def test_where_every_paraphrase_is_caught_the_reasons_are_counted(tmp_path) -> None:
    found, *_ = run(tmp_path, told_cases(2), wording=Voice(turned=list(TABLE.findings)))
    n = len(found.paraphrases)
    assert found.left_out.startswith(f"voice gave no usable paraphrase of {n} statements: turns: ")


def test_the_first_model_words_for_all_where_no_other_is_named(tmp_path) -> None:
    speaker, listener = FakeModel("speaker"), FakeModel("listener")
    ask(
        robustness,
        made_cases(2),
        [speaker, listener],
        ["asp"],
        (100,),
        samples=3,
        run_dir=tmp_path,
        changes=[],
        encoder=FakeEncoder(),
    )
    assert any(r.purpose.startswith("rephrase") for r in speaker.requests)
    assert {r.purpose for r in listener.requests} == {"diagnosis"}
    prompts = [
        {r.messages for r in m.requests if r.purpose == "diagnosis"} for m in (speaker, listener)
    ]
    assert prompts[0] == prompts[1]


def test_statements_whose_finding_is_not_known_are_used_and_said_to_be_unchecked(tmp_path) -> None:
    found, *_ = run(tmp_path, made_cases(3), wording=FakeModel("writer"))
    told = found.paraphrases[found.paraphrases["verdict"] != "no new words"]
    assert set(told["verdict"]) == {"not checked"} and told["used"].all()


def test_a_condition_given_twice_is_refused(tmp_path) -> None:
    with pytest.raises(
        ValueError, match="each condition may be given once; given again: small_talk"
    ):
        run(tmp_path, changes=named(["small_talk", "small_talk"]))


def test_only_methods_on_a_ratio_scale_are_shown() -> None:
    shown = {m.name for m in select(METHODS_SHOWN)}
    assert "medconf" in shown and "entropy" not in shown


# -- tables
# --------------------------------------------------------------------------------------------------


def confidence(
    values: dict[str, list[float]], method: str = "poc", level: int = 100, **more
) -> pd.DataFrame:
    """A row for each condition and value; the cases are c0, c1, ..."""
    rows = [
        {
            **KEY,
            "case_id": f"c{i}",
            "level": level,
            "condition": name,
            "changed": name != ORIGINAL.name,
            "shown": name,
            "method": method,
            "confidence": v,
        }
        for name, vs in values.items()
        for i, v in enumerate(vs)
    ]
    return pd.DataFrame(rows).assign(**more)


def one(table: pd.DataFrame, **where: object) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1, f"{len(table)} rows for {where}"
    return table.iloc[0]


THREE = {
    "original": [0.9, 0.9],
    "paraphrase_1": [0.2, 0.6],
    "paraphrase_2": [0.4, 0.6],
    "paraphrase_3": [0.6, 0.6],
}


def test_variation_is_over_the_paraphrased_conditions_alone() -> None:
    found = variation_table(pd.concat([confidence(THREE), confidence({"small_talk": [0.0, 0.1]})]))
    # Means 0.4, 0.5, 0.6: sd 0.081650, 16.3299 %. Rows: 40.8248 % and 0 %, on average 20.4124 %.
    assert one(found, level="all", metric="cv_group")["value"] == pytest.approx(16.3299, abs=1e-4)
    assert one(found, level="100", metric="cv_sample")["value"] == pytest.approx(20.4124, abs=1e-4)
    row = one(found, level="all", metric="cv_sample")
    assert (row["n"], row["n_cases"], row["n_missing"], row["n_zero"], row["missing"]) == (
        2,
        2,
        0,
        0,
        TOO_FEW,
    )
    assert np.isnan(row["low"]) and list(found["level"].unique()) == ["100", "all"]


def test_unchanged_rows_are_missing_and_methods_without_a_nought_are_left_out() -> None:
    table = confidence(THREE)
    table.loc[(table["case_id"] == "c0") & (table["condition"] == "paraphrase_2"), "changed"] = (
        False
    )
    row = one(variation_table(table), level="all", metric="cv_sample")
    assert (row["value"], row["n"], row["n_missing"]) == (0, 1, 1)
    assert (
        variation_table(confidence(THREE, "entropy")).empty
        and variation_table(confidence({"paraphrase_1": [0.1]})).empty
    )


def test_variation_with_enough_cases_has_an_interval_around_it() -> None:
    values = np.random.default_rng(0).uniform(0.2, 0.9, (3, 30))
    found = variation_table(
        confidence({f"paraphrase_{k}": list(v) for k, v in enumerate(values)}), 500
    )
    for row in found.to_dict("records"):
        assert (
            row["low"] <= row["value"] <= row["high"]
            and row["low"] < row["high"]
            and row["missing"] == ""
        )


# -- two at once
# --------------------------------------------------------------------------------------------------


def test_every_pair_is_asked_about_and_either_diagnosis_is_right(tmp_path) -> None:
    cases = told_cases()
    how = {"encoder": FakeEncoder(), "samples": 3, "run_dir": tmp_path}
    two = ask(two_at_once, cases, [FakeModel()], METHODS, LEVELS, **how)
    of = {case.case_id: case.diagnosis for case in cases}
    merged = [name.split("+") for name in two.answers["case_id"].unique()]
    assert sorted(sum(merged, [])) == sorted(of) and len(merged) == 2
    for row in two.answers.to_dict("records"):
        assert row["correct"] == (row["answer"] in [of[one] for one in row["case_id"].split("+")])
    assert (tmp_path / "run.json").is_file()


def test_an_answer_that_was_not_had_names_nobody() -> None:
    pair = (made_case("a", "Influenza"), made_case("b", "Common cold"))
    rows = [("Common cold", 1.0), ("Influenza", 1.0), ("Croup", 0.0), (None, 0.0), (None, NAN)]
    table = pd.DataFrame([{"case_id": "a+b", "answer": a, "correct": c} for a, c in rows])
    found = either_named(table, {"a+b": pair}, SynonymGrader())
    assert found.tolist()[:4] == [1, 1, 0, 0] and np.isnan(found[4])


def test_cases_that_make_no_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="no two of 2 cases have different diagnoses"):
        two_at_once([made_case("a"), made_case("b")], [FakeModel()])
