"""Robustness: the whole pipeline on a model without weights, and every table worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from each import each
from fake_model import NAMES, TEXT_ONLY, FakeEncoder, FakeModel, made_case
from resampled import jackknife
from resampled import one_row as one

from studies.robustness import (
    NOT_SHARED,
    SAME,
    Robustness,
    cv_differences,
    either_named,
    mean_of,
    robustness,
    variation_table,
)
from trustlab.agents.changes import ORIGINAL, picked
from trustlab.graders import SynonymGrader
from trustlab.knowledge.findings import load_knowledge
from trustlab.levels import view
from trustlab.metrics.coverage import NOT_HELD
from trustlab.metrics.estimate import TOO_FEW, Rows, estimate
from trustlab.metrics.stability import NO_MEAN, cv_group_by_chance
from trustlab.models.base import Request
from trustlab.records import Case, Reply

TABLE = load_knowledge()
NAN = float("nan")
LEVELS = (20, 100)
METHODS = ["asp", "poc", "ce"]
KEY = {"dataset": "made", "model": "fake"}


class Voice(FakeModel):
    """Words a reply in the table's next phrasing, ``turned`` findings the other way; the question
    stays."""

    def __init__(self, turned: Sequence[str] = (), silent: Sequence[str] = ()):
        super().__init__("voice", TEXT_ONLY)
        self.turned, self.silent = set(turned), set(silent)

    def reply(self, request: Request, i: int) -> Reply:
        words = self.say(request.messages[1][1])
        return Reply(f"[{words}]" if words else "cannot")

    def say(self, prompt: str) -> str:
        tags = ("question", "reply")
        question, reply = (re.search(rf"<{tag}>\n(.+)\n</{tag}>", prompt) for tag in tags)
        if reply is None:
            return question[1]
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
    voice = Voice()
    found, cases, model = run(tmp_path, wording=voice)
    assert [c.name for c in found.conditions] == list(found.runs) == NAMED
    assert len(found.answers) == len(cases) * len(LEVELS) * len(NAMED)
    assert len(found.confidence) == len(found.answers) * len(METHODS) and found.left_out == ""
    assert not found.confidence.duplicated(["case_id", "level", "condition", "method"]).any()
    shown = {r.messages[-1][1] for r in model.requests if r.purpose == "diagnosis"}
    rows = found.answers.set_index(["condition", "case_id", "level"])
    for change in found.conditions:
        for case, level in ((case, level) for case in cases for level in LEVELS):
            view_of, line = change.show(case, level), rows.loc[(change.name, case.case_id, level)]
            assert any(view_of.text in prompt for prompt in shown)
            assert line["changed"] == (view_of.text != view(case, level).text)
    drawn = {s.text for k in (1, 2, 3) for c in cases for q in LEVELS for s in picked(c, q, k)}
    assert sorted(found.paraphrases["text"]) == sorted(drawn)  # each is worded once
    assert len(voice.requests) == len(set(voice.requests)) == 2 * len(drawn)
    again_model, again_voice = FakeModel(), Voice()
    again, *_ = run(tmp_path, cases, again_model, wording=again_voice)
    assert not again_model.requests and not again_voice.requests
    pd.testing.assert_frame_equal(again.confidence, found.confidence)


def test_a_turned_or_lost_paraphrase_is_not_appended_and_counted(tmp_path) -> None:
    cases = told_cases(2)
    drawn = [s for c in cases for q in LEVELS for k in (1, 2, 3) for s in picked(c, q, k)]
    turned = drawn[0].finding
    silent = next(s.finding for s in drawn if s.finding != turned)
    found, *_ = run(tmp_path, cases, wording=Voice([turned], [silent]))
    table = found.paraphrases.set_index("text")
    by_finding = {s.finding: table.loc[s.text] for s in drawn}
    lost = by_finding.pop(silent)
    assert lost["verdict"] == "no new words" and pd.isna(lost["wording"])
    judged = ["verdict", "how", "used"]
    assert by_finding.pop(turned)[judged].tolist() == ["turns", "exact", False]
    rest = [row[judged].tolist() for row in by_finding.values()]
    assert rest and rest == [["same", "exact", True]] * len(rest)


CONDITIONS = ("original", "paraphrase_1", "paraphrase_2", "paraphrase_3")
ROWS = [[0.9, 0.2, 0.4, 0.6], [0.9, 0.6, 0.6, 0.6]]


def varied(rows, method: str = "poc", names=CONDITIONS) -> pd.DataFrame:
    """A row of values (as told, three paraphrases) a case; the cases are c0, c1, ..."""
    key = {**KEY, "method": method, "level": 100}
    return pd.DataFrame(
        key | {"case_id": f"c{i}", "condition": name, "confidence": value, "shown": name}
        for i, row in enumerate(rows)
        for name, value in zip(names, row, strict=True)
    ).assign(changed=lambda t: t["condition"] != ORIGINAL.name)


def answers_of(table: pd.DataFrame, correct: dict[str, float] | None = None) -> pd.DataFrame:
    """The answers behind confidences: all right, but for ``correct`` of a case."""
    keys = ["dataset", "model", "case_id", "level", "condition"]
    found = table[keys].drop_duplicates(ignore_index=True)
    return found.assign(answer="a", correct=found["case_id"].map(correct or {}).fillna(1.0))


def varied_table(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    return variation_table(answers_of(table), table, seed)


def test_variation_is_over_the_paraphrased_conditions_alone() -> None:
    other = varied([[0.0], [0.1]], names=["small_talk"])
    found = varied_table(pd.concat([varied(ROWS), other]), 7)
    # Means 0.4, 0.5, 0.6: sd 0.081650, 16.3299 %. Rows: 40.8248 % and 0 %, on average 20.4124 %.
    group, sample = (one(found, level="all", metric=m) for m in ("cv_group", "cv_sample"))
    assert [group["value"], sample["value"]] == pytest.approx([16.3299, 20.4124], abs=1e-4)
    counts = ["n", "n_cases", "n_missing", "n_zero", "missing"]
    assert sample[counts].tolist() == [2, 2, 0, 0, TOO_FEW] and np.isnan(sample["low"])
    chance = cv_group_by_chance([row[1:] for row in ROWS], seed=7)
    assert group["chance"] == chance > 0 and np.isnan(sample["chance"])
    assert list(found["level"].unique()) == ["100", "all"]
    assert varied_table(varied(ROWS, "entropy")).empty  # no ratio scale
    assert varied_table(varied([[0.1]], names=["paraphrase_1"])).empty


def test_rows_that_did_not_change_or_show_one_text_twice_are_left_out_and_counted() -> None:
    table = varied(ROWS)
    twin = table["case_id"].eq("c0") & table["condition"].eq("paraphrase_2")
    counts = ["value", "n", "n_same", "n_missing"]
    same = table.assign(changed=table["changed"] & ~twin)
    row = one(varied_table(same), level="all", metric="cv_sample")
    assert (row["value"], row["n"], row["n_missing"]) == (0, 1, 1)
    table.loc[twin, "shown"] = "paraphrase_1"
    row = one(varied_table(table), level="all", metric="cv_sample")
    assert row[counts].tolist() == [0, 1, 1, 0]
    row = one(varied_table(table.assign(shown="one text")), level="100", metric="cv_group")
    assert (row["n"], row["n_same"], row["missing"]) == (0, 2, SAME)
    assert np.isnan([row["value"], row["chance"]]).all()
    ungraded = answers_of(table).assign(correct=NAN)
    row = one(variation_table(ungraded, table), level="all", metric="cv_sample")
    assert row[["n", "n_missing"]].tolist() == [0, 1]


@each(
    ("lost", "wrong", "own"),
    [
        ([19], [0, 1], False),  # a tenth of the right ones may be lost
        ([18, 19], [0, 1], True),
        ([0], [0, 1], True),  # half of the wrong ones
        ([0], list(range(10)), False),
        ([], [], False),
    ],
)
def test_methods_share_views_by_the_rule_of_the_metrics_table(lost, wrong, own) -> None:
    whole = varied(ROWS * 10)
    rows = [[0.9, NAN, 0.4, 0.6] if i in lost else ROWS[i % 2] for i in range(20)]
    few = varied([row if i < 3 else [NAN] * 4 for i, row in enumerate(rows)], "ce")
    table = pd.concat([whole, varied(rows, "asp"), few])
    right = {f"c{i}": 0.0 for i in wrong}
    found = variation_table(answers_of(table, right), table).query("level == 'all'")
    n = found[found["metric"].eq("cv_sample")].set_index("method")[["n", "own_rows"]]
    shared = 20 if own else 20 - len(lost)
    assert n.loc["poc"].tolist() == [shared, False]
    assert n.loc["asp"].tolist() == [20 - len(lost), own]
    assert n.loc["ce", "own_rows"]


def test_a_view_of_mean_zero_has_no_variation_of_its_own_beside_other_methods() -> None:
    zeros = varied([[0.5, 0, 0, 0]] + ROWS * 10, "asp")
    table = pd.concat([varied([[0.5, 0.5, 0.5, 0.6]] + ROWS * 10), zeros])
    found = varied_table(table).query("level == 'all'").set_index(["metric", "method"])
    columns = ["n", "n_missing", "n_zero", "own_rows"]
    assert found.loc[("cv_sample", "asp"), columns].tolist() == [20, 1, 1, False]
    assert found.loc[("cv_sample", "poc"), columns].tolist() == [20, 1, 0, False]
    assert found.loc[("cv_group", "asp"), columns].tolist() == [21, 0, 1, False]
    nothing = varied_table(varied([[0.5, 0, 0, 0]] * 2)).set_index("metric")
    assert set(nothing["missing"]) == {NO_MEAN}


def test_a_pair_without_a_common_view_has_its_reason() -> None:
    apart = pd.concat([varied([ROWS[0], [NAN] * 4]), varied([[NAN] * 4, ROWS[0]], "asp")])
    assert varied_table(apart)["own_rows"].all()
    found = cv_differences(answers_of(apart), apart, "poc")
    assert set(found["missing"]) == {NOT_SHARED}


def wobbling() -> pd.DataFrame:
    """24 views a method, whose confidences differ by so much over the conditions."""
    rng, parts = np.random.default_rng(0), []
    for method, wobble in {"medconf": 0.05, "asp": 0.01, "semantic_poc": 0.12}.items():
        rows = rng.uniform(0.4, 0.8, (24, 1)) + rng.normal(0, wobble, (24, 4))
        parts.append(varied(rows, method))
    return pd.concat(parts, ignore_index=True)


def cv_of(metric: str, rows: np.ndarray) -> float:
    if metric == "cv_sample":
        return float((100 * rows.std(axis=1) / rows.mean(axis=1)).mean())
    means = rows.mean(axis=0)
    return float(100 * means.std() / means.mean())


@pytest.mark.usefixtures("every_interval")
@each("metric", ["cv_group", "cv_sample"])
def test_the_difference_is_of_both_on_the_same_cases(metric):
    table = wobbling()
    row = one(cv_differences(answers_of(table), table), method="asp", metric=metric, level="all")
    variation, leaves, largest = varied_table(table, 10), [], []
    for name, column in (("asp", "value"), ("medconf", "reference")):
        mine = table[table["method"] == name]
        wide = mine.pivot(index="case_id", columns="condition", values="confidence")
        rows = wide[list(CONDITIONS[1:])].to_numpy()
        leaves.append([cv_of(metric, np.delete(rows, i, axis=0)) for i in range(len(rows))])
        largest.append(max(cv_of("cv_sample", row[None]) for row in rows))
        expected = one(variation, method=name, metric=metric, level="all")["value"]
        assert row[column] == pytest.approx(expected)
    assert row["difference"] == pytest.approx(row["value"] - row["reference"])
    if metric == "cv_group":  # it has none that holds
        assert np.isnan([row["low"], row["p"]]).all() and row["missing"] == NOT_HELD
        return
    ends = jackknife(row["difference"], np.subtract(*leaves), (-max(largest), max(largest)))
    assert (row["low"], row["high"]) == pytest.approx(ends)


def test_an_answer_that_was_not_had_names_nobody() -> None:
    pair = (made_case("a", "Influenza"), made_case("b", "Common cold"))
    rows = [("Common cold", 1.0), ("Influenza", 1.0), ("Croup", 0.0), (None, 0.0), (None, NAN)]
    table = pd.DataFrame([{"case_id": "a+b", "answer": a, "correct": c} for a, c in rows])
    found = either_named(table, {"a+b": pair}, SynonymGrader())
    assert found.tolist()[:4] == [1, 1, 0, 0] and np.isnan(found[4])


@each(
    ("method", "low", "missing"),
    [("", True, ""), ("medconf", True, ""), ("perplexity", False, NOT_HELD)],
)
def test_a_mean_of_changes_may_lie_below_zero(method: str, low: bool, missing: str) -> None:
    table = pd.DataFrame({"case_id": range(100), "value": [-1.0] * 14 + [0.0] * 86})
    found = estimate(Rows.of(table, "value"), mean_of(method, change=True))
    assert found["value"] == pytest.approx(-0.14) and found["missing"] == missing
    assert (found["low"] < -0.14 < found["high"] < 0) == low
