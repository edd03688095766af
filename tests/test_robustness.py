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
from each import each
from fake_model import NAMES, FakeEncoder, FakeModel, made_case, made_cases
from resampled import case_weights

from studies.robustness import (
    METHODS_SHOWN,
    NOT_SHARED,
    SAME,
    Robustness,
    compared_rows,
    cv_differences,
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
from trustlab.metrics.estimate import TOO_FEW, percentile_interval
from trustlab.metrics.stability import cv_group_by_chance
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

    def __init__(self, turned: Sequence[str] = (), silent: Sequence[str] = (), question=None):
        self.turned, self.silent, self.question, self.asked = set(turned), set(silent), question, []

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked += requests
        said = [self.say(r.messages[1][1]) for r in requests]
        return [[Reply(f"[{words}]" if words else "cannot")] for words in said]

    def say(self, prompt: str) -> str:
        tags = ("question", "reply")
        question, reply = (re.search(rf"<{tag}>\n(.+)\n</{tag}>", prompt) for tag in tags)
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
    made = []
    for i in range(n):
        findings = enumerate(plain[11 * i : 11 * i + 11])
        said = tuple(TABLE.statement(f, j % 2 == 0) for j, f in findings)
        made.append(replace(made_case(chr(97 + i), NAMES[i % 4]), statements=said))
    return made


def run(tmp_path, cases=None, model=None, **more) -> tuple[Robustness, list[Case], FakeModel]:
    cases, model = cases or told_cases(), model or FakeModel()
    asked = {"methods": METHODS, "levels": LEVELS, "samples": 3, "encoder": FakeEncoder()}
    asked |= {"wording": Voice(), "run_dir": tmp_path}
    return ask(robustness, cases, [model], **(asked | more)), cases, model


NAMED = ["original", "paraphrase_1", "paraphrase_2", "paraphrase_3", "small_talk", "other_system"]
NAMED += ["reordered", "instruction_100"]


def test_every_condition_holds_every_case_level_and_method_once_as_the_model_was_shown(tmp_path):
    found, cases, model = run(tmp_path)
    assert [c.name for c in found.conditions] == list(found.runs) == NAMED
    assert list(dict.fromkeys(found.answers["condition"])) == NAMED
    assert len(found.answers) == len(cases) * len(LEVELS) * len(NAMED)
    assert len(found.confidence) == len(found.answers) * len(METHODS) and found.left_out == ""
    assert not found.confidence.duplicated(["case_id", "level", "condition", "method"]).any()
    assert sorted(p.parent.name for p in tmp_path.glob("runs/*/run.json")) == sorted(NAMED)
    shown = {r.messages[-1][1] for r in model.requests if r.purpose == "diagnosis"}
    rows = found.answers.set_index(["condition", "case_id", "level"])
    for change in found.conditions:
        for case, level in ((case, level) for case in cases for level in LEVELS):
            view_of, line = change.show(case, level), rows.loc[(change.name, case.case_id, level)]
            assert any(view_of.text in prompt for prompt in shown)
            assert line["changed"] == (view_of.text != view(case, level).text)
            assert line["n_statements"] == view_of.n_statements
    assert not rows.loc["original", "changed"].any()


def test_a_second_experiment_asks_nothing_and_each_statement_is_worded_once(tmp_path) -> None:
    voice = Voice()
    first, cases, _ = run(tmp_path, wording=voice)
    drawn = [s.text for k in (1, 2, 3) for c in cases for q in LEVELS for s in picked(c, q, k)]
    assert sorted(first.paraphrases["text"]) == sorted(set(drawn))
    assert first.paraphrases["n"].sum() == len(drawn)
    assert len(voice.asked) == len(set(voice.asked)) == 2 * len(set(drawn))
    kept = pd.read_csv(tmp_path / "paraphrases.csv")["text"].tolist()
    assert kept == first.paraphrases["text"].tolist()
    counted = json.loads((tmp_path / "runs" / "original" / "run.json").read_text())["calls_made"]
    words = first.calls["purpose"].str.startswith("rephrase")
    own = first.calls["condition"].eq("original")  # calls for words count with the first run
    assert counted == first.calls.loc[own & ~words, "n_made"].sum() + 2 * len(set(drawn))
    assert not (words & ~own).any()
    again_model, again_voice = FakeModel(), Voice()
    again, *_ = run(tmp_path, cases, again_model, wording=again_voice)
    assert not again_model.requests and not again_voice.asked and again.calls["n_made"].sum() == 0
    pd.testing.assert_frame_equal(again.confidence, first.confidence)
    only = FakeModel()
    more, *_ = run(tmp_path, cases, only, changes=[small_talk(seed=9)], paraphrase_seeds=[])
    assert {r.purpose for r in only.requests} <= {"diagnosis", "samples", "ce"}
    assert more.calls.groupby("condition")["n_made"].sum().loc["original"] == 0


def test_a_turned_or_lost_paraphrase_is_not_appended_and_counted(tmp_path) -> None:
    cases = told_cases(2)
    drawn = [s for c in cases for q in LEVELS for k in (1, 2, 3) for s in picked(c, q, k)]
    turned = drawn[0].finding
    silent = next(s.finding for s in drawn if s.finding != turned)
    found, *_ = run(tmp_path, cases, wording=Voice([turned], [silent]))
    table = found.paraphrases.set_index("text")
    by_finding = {s.finding: table.loc[s.text] for s in drawn}
    of = {s.finding: fate(cases[0], s.text, by_finding[s.finding]) for s in drawn}
    lost = by_finding.pop(silent)
    assert lost["verdict"] == "no new words" and pd.isna(lost["wording"])
    judged = ["verdict", "how", "used"]
    assert by_finding.pop(turned)[judged].tolist() == ["turns", "exact", False]
    rest = [row[judged].tolist() for row in by_finding.values()]
    assert rest and rest == [["same", "exact", True]] * len(rest)
    assert (of.pop(turned), of.pop(silent)) == ("caught", "no_words")
    assert set(of.values()) == {"appended"}
    names = {"used": True, "wording": f"It is {cases[0].diagnosis}."}
    assert fate(cases[0], "I am ill.", names) == "named"


@each("question", ["", TABLE.findings["muscle_aches"].question])
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
    found, *_ = run(tmp_path, told_cases(2), wording=Voice(silent=list(TABLE.findings)))
    assert [c.name for c in found.conditions][:2] == ["original", "small_talk"]
    assert found.left_out.endswith("replies to 'rephrase_reply' could be read")
    assert variation_table(found.confidence).empty and not found.paraphrases["used"].any()
    found, *_ = run(None, told_cases(2), wording=Voice(turned=list(TABLE.findings)))
    caught = f"voice gave no usable paraphrase of {len(found.paraphrases)} statements: turns: "
    assert found.left_out.startswith(caught)
    found, *_ = run(None, made_cases(3), wording=FakeModel("writer"))  # findings are not known
    told = found.paraphrases[found.paraphrases["verdict"] != "no new words"]
    assert set(told["verdict"]) == {"not checked"} and told["used"].all()


def test_the_first_model_words_for_all_where_no_other_is_named() -> None:
    speaker, listener = FakeModel("speaker"), FakeModel("listener")
    how = {"samples": 3, "changes": [], "encoder": FakeEncoder()}
    ask(robustness, made_cases(2), [speaker, listener], ["asp"], (100,), **how)
    assert any(r.purpose.startswith("rephrase") for r in speaker.requests)
    assert {r.purpose for r in listener.requests} == {"diagnosis"}
    prompts = [
        {r.messages for r in m.requests if r.purpose == "diagnosis"} for m in (speaker, listener)
    ]
    assert prompts[0] == prompts[1]


def test_a_condition_given_twice_is_refused_and_only_methods_on_a_ratio_scale_are_shown() -> None:
    message = "each condition may be given once; given again: small_talk"
    with pytest.raises(ValueError, match=message):
        run(None, changes=named(["small_talk", "small_talk"]))
    shown = {m.name for m in select(METHODS_SHOWN)}
    assert "medconf" in shown and "entropy" not in shown


# Tables

CONDITIONS = ("original", "paraphrase_1", "paraphrase_2", "paraphrase_3")
ROWS = [[0.9, 0.2, 0.4, 0.6], [0.9, 0.6, 0.6, 0.6]]


def varied(rows, method: str = "poc", level: int = 100, names=CONDITIONS) -> pd.DataFrame:
    """A row of values (as told, three paraphrases) a case; the cases are c0, c1, ..."""
    key = {**KEY, "method": method, "level": level}
    return pd.DataFrame(
        key | {"case_id": f"c{i}", "condition": name, "confidence": value, "shown": name}
        for i, row in enumerate(rows)
        for name, value in zip(names, row, strict=True)
    ).assign(changed=lambda t: t["condition"] != ORIGINAL.name)


def one(table: pd.DataFrame, **where: object) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1, f"{len(table)} rows for {where}"
    return table.iloc[0]


def test_variation_is_over_the_paraphrased_conditions_alone() -> None:
    other = varied([[0.0], [0.1]], names=["small_talk"])
    found = variation_table(pd.concat([varied(ROWS), other]), 50, 7)
    # Means 0.4, 0.5, 0.6: sd 0.081650, 16.3299 %. Rows: 40.8248 % and 0 %, on average 20.4124 %.
    group, sample = (one(found, level="all", metric=m) for m in ("cv_group", "cv_sample"))
    assert [group["value"], sample["value"]] == pytest.approx([16.3299, 20.4124], abs=1e-4)
    counts = ["n", "n_cases", "n_missing", "n_zero", "missing"]
    assert sample[counts].tolist() == [2, 2, 0, 0, TOO_FEW] and np.isnan(sample["low"])
    chance = cv_group_by_chance([row[1:] for row in ROWS], 50, 7)
    assert group["chance"] == chance > 0 and np.isnan(sample["chance"])
    assert list(found["level"].unique()) == ["100", "all"]
    assert variation_table(varied(ROWS, "entropy")).empty  # no ratio scale
    assert variation_table(varied([[0.1]], names=["paraphrase_1"])).empty
    values = np.random.default_rng(0).uniform(0.2, 0.9, (30, 4))
    for row in variation_table(varied(values), 500).to_dict("records"):
        assert row["low"] <= row["value"] <= row["high"] and row["low"] < row["high"]
        assert row["missing"] == ""


def test_rows_that_did_not_change_or_show_one_text_twice_are_left_out_and_counted() -> None:
    table = varied(ROWS)
    twin = table["case_id"].eq("c0") & table["condition"].eq("paraphrase_2")
    counts = ["value", "n", "n_same", "n_missing"]
    same = table.assign(changed=table["changed"] & ~twin)
    row = one(variation_table(same, 50), level="all", metric="cv_sample")
    assert (row["value"], row["n"], row["n_missing"]) == (0, 1, 1)
    table.loc[twin, "shown"] = "paraphrase_1"
    row = one(variation_table(table, 50), level="all", metric="cv_sample")
    assert row[counts].tolist() == [0, 1, 1, 0]
    row = one(variation_table(table.assign(shown="one text"), 50), level="100", metric="cv_group")
    assert (row["n"], row["n_same"], row["missing"]) == (0, 2, SAME)
    assert np.isnan([row["value"], row["chance"]]).all()
    asked = {"encoder": FakeEncoder(), "samples": 3, "wording": Voice(), "changes": []}
    found = ask(robustness, told_cases(3), [FakeModel()], ["asp"], (1, 100), **asked)
    table = variation_table(found.confidence, 50)  # level 1 shows one statement
    first = table[table["level"] == "1"]
    assert set(first["missing"]) == {SAME} and set(first["n_same"]) == {3}


def used_and_own(whole: pd.DataFrame, possible: list[bool] | bool = True):
    """Of a table rows x methods: method -> which rows are used (0 or 1), and the methods on their
    own."""
    rows = whole.reset_index(drop=True).rename_axis("case_id").reset_index()
    long = rows.assign(possible=possible).melt(["case_id", "possible"], None, "method", "whole")
    found = compared_rows(long.assign(percent=100, level="all"), ["level"])
    used = found.groupby("method")["used"].apply(lambda column: column.astype(int).tolist())
    return used.to_dict(), set(found.loc[found["own"], "method"])


def test_methods_share_their_rows_and_one_with_fewer_than_half_keeps_its_own() -> None:
    rows = {"a": [1, 1, 1, 0], "b": [0, 1, 1, 1], "c": [1, 0, 0, 0], "d": [0, 0, 0, 0]}
    whole = pd.DataFrame(rows, dtype=bool)
    used, own = used_and_own(whole)
    assert own == {"c"} and used == {
        "a": [0, 1, 1, 0], "b": [0, 1, 1, 0], "c": [1, 0, 0, 0], "d": [0, 0, 0, 0]
    }  # fmt: skip
    half, alone = used_and_own(whole.iloc[[0, 1]])
    assert half["c"] == half["a"] == [0, 0] and not alone  # half is enough to be compared
    last = pd.DataFrame({"a": [1], "b": [0], "c": [0], "d": [1]}, dtype=bool)
    more, alone = used_and_own(pd.concat([whole, last]), [True] * 4 + [False])
    assert alone == {"c"} and more == {m: [*used[m], 0] for m in "abcd"}


def test_variation_is_taken_over_the_rows_that_all_methods_have() -> None:
    lacking = varied([[0.9, NAN, 0.4, 0.6], [0.9, 0.3, 0.3, 0.3]], "asp")
    found = variation_table(pd.concat([varied(ROWS), lacking]), 50)
    for method in ("poc", "asp"):
        row = one(found, method=method, level="all", metric="cv_sample")
        assert (row["value"], row["n"], row["n_missing"], row["own_rows"]) == (0, 1, 1, False)
    # the AUROC as told needs it too
    no_as_told = variation_table(varied([[NAN, 0.2, 0.4, 0.6], ROWS[1]]), 50)
    assert one(no_as_told, level="all", metric="cv_sample")["n"] == 1
    few = pd.concat([varied(ROWS * 2), varied([[0.5, 0.2, 0.4, 0.6], *[[NAN] * 4] * 3], "asp")])
    marked = variation_table(few, 50)
    for method, expected in (("asp", [1, True]), ("poc", [4, False])):
        row = one(marked, method=method, level="all", metric="cv_sample")
        assert row[["n", "own_rows"]].tolist() == expected
    apart = pd.concat([varied([ROWS[0], [NAN] * 4]), varied([[NAN] * 4, ROWS[0]], "asp")])
    assert set(variation_table(apart, 50)["missing"]) == {NOT_SHARED}
    alone = {"changes": [], "paraphrase_seeds": [], "samples": 3}
    bare = ask(robustness, made_cases(2), [FakeModel()], ["asp"], (100,), **alone)
    assert variation_table(bare.confidence).empty


# Differences

WOBBLE = {"medconf": 0.05, "asp": 0.01, "poc": 0.05, "semantic_poc": 0.12, "ce": 0.0}
"""Standard deviation of each method's confidence over the conditions."""


def wobbling(n: int = 24, **lost: int) -> pd.DataFrame:
    """``n`` views a method; of ``lost`` methods so many views have no value in one condition."""
    rng, parts = np.random.default_rng(0), []
    for method, wobble in WOBBLE.items():
        rows = rng.uniform(0.4, 0.8, (n, 1)) + rng.normal(0, wobble, (n, 4))
        rows = rows if wobble else np.ones((n, 4))
        rows[: lost.get(method, 0), 1] = NAN
        parts.append(varied(rows, method))
    return pd.concat(parts, ignore_index=True)


def cv_of(metric: str, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if metric == "cv_sample":
        return weights @ (100 * rows.std(axis=1) / rows.mean(axis=1)) / weights.sum(axis=1)
    means = weights @ rows / weights.sum(axis=1, keepdims=True)
    return 100 * means.std(axis=1) / means.mean(axis=1)


@each("metric", ["cv_group", "cv_sample"])
def test_the_difference_is_drawn_from_both_on_the_same_cases(metric):
    table = wobbling()
    row = one(cv_differences(table, n_draws=300, seed=2), method="asp", metric=metric, level="all")
    weights = case_weights(np.unique(table["case_id"]), 300, 2).astype(float)
    variation, drawn = variation_table(table, 10), []
    for name, column in (("asp", "value"), ("medconf", "reference")):
        mine = table[table["method"] == name]
        wide = mine.pivot(index="case_id", columns="condition", values="confidence")
        drawn.append(cv_of(metric, wide[list(CONDITIONS[1:])].to_numpy(), weights))
        expected = one(variation, method=name, metric=metric, level="all")["value"]
        assert row[column] == pytest.approx(expected)
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(drawn[0] - drawn[1]))
    assert row["difference"] == pytest.approx(row["value"] - row["reference"])


def test_a_more_stable_method_lies_below_0_and_a_less_stable_above():
    found = cv_differences(wobbling(), n_draws=300)
    assert list(found.columns[:6]) == ["model", "dataset", "method", "family", "against", "level"]
    assert set(found["level"]) == {"100", "all"}
    sample = found[found["metric"].eq("cv_sample") & found["level"].eq("100")].set_index("method")
    assert sample.loc["asp", "high"] < 0 < sample.loc["semantic_poc", "low"]
    assert sample.loc["poc", "p"] > 0.05 > sample.loc["asp", "p_holm"]
    assert sample.loc["asp", "family"] == "token" and sample.loc["ce", "value"] == 0
    assert sample.loc["ce", "difference"] == pytest.approx(-sample.loc["ce", "reference"])


def test_views_that_cannot_be_compared_are_left_out_or_stand_on_their_own():
    found = cv_differences(wobbling(asp=16), n_draws=50)
    few, usual = (one(found, method=m, metric="cv_sample", level="all") for m in ("asp", "poc"))
    assert (few["n"], few["n_missing"], usual["n"]) == (8, 16, 24) and few["missing"] == TOO_FEW
    assert few["reference"] != usual["reference"]
    assert np.isnan([few["low"], few["p"], few["p_holm"]]).all()
    table = wobbling()  # a view of mean 0 has no CV_sample
    zero = table["method"].eq("poc")
    for gone, n in ((zero & table["case_id"].eq("c0"), 23), (zero, 0)):
        table.loc[gone, "confidence"] = 0.0
        found = cv_differences(table, n_draws=50)
        group, sample = (
            one(found, method="poc", metric=m, level="all") for m in ("cv_group", "cv_sample")
        )
        assert (group["n"], sample["n"]) == (24, n)
        assert (sample["missing"] == NOT_SHARED) == (n == 0)
    assert group["missing"] == "the mean confidence is 0"
    nobody = cv_differences(wobbling(medconf=24), n_draws=20)
    assert nobody["difference"].isna().all() and set(nobody["missing"]) == {NOT_SHARED}
    with pytest.raises(ValueError, match="reference is 'entropy'; the run has"):
        cv_differences(wobbling(), "entropy", n_draws=10)
    single = wobbling()[lambda t: t["condition"].isin(["original", "paraphrase_1"])]
    assert cv_differences(single, n_draws=10).empty


# Two at once


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
