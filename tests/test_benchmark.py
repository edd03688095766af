"""The benchmark's tables: one observation a row, whatever the model, and what a run leaves on
disk."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar

import pandas as pd
import pytest
from asking import ask
from each import each
from fake_model import TEXT_ONLY, Cold, FakeEncoder, FakeModel, made_case, made_cases
from saying import saying, says

from trustlab.confidence import select
from trustlab.models.base import Request
from trustlab.records import Reply
from trustlab.runs.experiment import benchmark
from trustlab.runs.folder.saved import manifest
from trustlab.runs.run import Run

CASES = made_cases(4)


def made(*models: FakeModel, **options) -> Run:
    """A benchmark of four made cases with everything that could be slow replaced."""
    defaults = {"methods": "all", "samples": 5, "encoder": FakeEncoder()}
    return ask(benchmark, CASES, models or [FakeModel()], **{**defaults, **options})


def test_columns_keys_and_row_counts():
    run = made()
    keys = ["case_id", "dataset", "level", "model"]
    assert len(run.answers) == 4 * 6 and not run.answers.duplicated(keys).any()
    assert len(run.confidence) == 4 * 6 * len(select("all"))
    assert not run.confidence.duplicated([*keys, "method"]).any()
    told = run.confidence[keys].drop_duplicates(ignore_index=True)
    pd.testing.assert_frame_equal(told, run.answers[keys])
    right = run.answers["answer"] == run.answers["truth"]
    assert 0 < right.sum() < len(right) and (run.answers["correct"] == right).all()


def test_a_value_or_a_reason_never_both():
    def of_b(request: Request, i: int) -> bool:
        return request.temperature == 0 and "for b?" in request.messages[1][1]

    run = made(FakeModel(provides=TEXT_ONLY, unreadable=of_b))
    gone = run.confidence["confidence"].isna()
    assert (gone == (run.confidence["missing"] != "")).all()
    unreadable = run.answers[run.answers["answer"].isna()]
    assert unreadable[["case_id", "correct"]].to_numpy().tolist() == [["b", 0]] * 6
    reasons = manifest(run)["missing"]
    assert {"method": "asp", "reason": "the backend gives no logprobs", "n": 18} in reasons
    assert {"method": "poc", "reason": "unreadable answer", "n": 6} in reasons
    assert sum(row["n"] for row in reasons) == gone.sum()


def test_two_processes_score_as_one(monkeypatch):
    one = made().confidence
    # A part is scored while the next is asked.
    monkeypatch.setattr("trustlab.runs.experiment.PART", 6)
    pd.testing.assert_frame_equal(one, made(n_jobs=2).confidence)


@each(
    ("given", "message"),
    [
        ({"cases": []}, "no cases"),
        ({"levels": []}, "no levels"),
        ({"models": [FakeModel(), FakeModel()]}, ("model", "once", "fake")),
        ({"cases": [made_case("a")] * 2}, ("case", "once", "given again: a")),
    ],
    ids=lambda value: str(value) if isinstance(value, str | tuple) else None,
)
def test_what_cannot_be_run_is_refused_before_a_model_is_asked(given, message):
    options = {"cases": CASES, "models": [FakeModel()], "encoder": FakeEncoder()} | given
    with pytest.raises(ValueError, match=saying(message)):
        ask(benchmark, **options)
    assert all(model.asked == [] for model in options["models"])


def test_a_second_run_asks_nothing(tmp_path):
    model, counts = FakeModel(), ["n_made", "n_cached"]
    first, again = (made(model, run_dir=tmp_path) for _ in range(2))
    n = sum(model.n_replies.values())
    assert first.calls[counts].sum().tolist() == [n, 0]
    assert again.calls[counts].sum().tolist() == [0, n]
    assert (manifest(again)["calls_made"], manifest(again)["calls_from_cache"]) == (0, n)
    for table in ("answers", "confidence"):
        pd.testing.assert_frame_equal(getattr(again, table), getattr(first, table))


@each(("model", "alike"), [(Cold(), True), (FakeModel(), False)])
def test_samples_that_are_all_alike_are_told(model, alike):
    run = made(model, methods=["poc"], levels=[1, 60])
    assert run.parameters["samples_alike"] == ["fake"] * alike
    warned = [says(w, "fake", "samples alike", "temperature") for w in manifest(run)["warnings"]]
    assert any(warned) is alike


class Named(FakeModel):
    """Whose server calls itself A, and B where it scores an answer."""

    def reply(self, request: Request, i: int) -> Reply:
        named = "B" if request.purpose == "ce" else "A"
        return replace(super().reply(request, i), served_by=named)


def test_a_run_from_kept_replies_names_the_same_models(tmp_path):
    for n_asked in (8, 0):
        with pytest.warns(UserWarning, match="A 4, B 4 replies"):
            run = made(Named(), methods=["ce"], levels=[1], run_dir=tmp_path)
        assert run.calls["n_made"].sum() == n_asked
        assert run.parameters["served_by"] == {"fake": {"A": 4, "B": 4}}


class Failing(FakeModel):
    """Gives no diagnosis for one patient, and takes count."""

    usage: ClassVar = {"failures": 1.0}

    def reply(self, request: Request, i: int) -> Reply:
        if request.purpose == "diagnosis" and "Question 0 for b?" in request.messages[-1][1]:
            return Reply(None, missing="HTTP 500 after 3 tries", finish="error")
        return super().reply(request, i)


def test_an_answer_that_the_backend_failed_to_give_is_neither_right_nor_wrong(tmp_path):
    run = made(Failing(), run_dir=tmp_path, levels=[1, 60])
    lost = run.answers[run.answers["case_id"] == "b"]
    assert lost["correct"].isna().all() and set(lost["missing"]) == {"HTTP 500 after 3 tries"}
    rest = run.answers.drop(lost.index)
    assert rest["correct"].isin([0, 1]).all() and set(rest["missing"]) == {""}
    reasons = run.confidence[run.confidence["case_id"] == "b"].set_index("method")["missing"]
    reasons = reasons.drop(["information_level", "word_count", "random"])
    assert set(reasons) == {"HTTP 500 after 3 tries"}
    facts = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert {"method": "asp", "reason": "HTTP 500 after 3 tries", "n": 2} in facts["missing"]


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """The same without categories, times, or kinds of nothing."""
    told = table.drop(columns="seconds", errors="ignore").astype(object)
    return told.where(told.notna(), None)


def test_a_large_run_goes_in_parts_and_lets_its_records_go(tmp_path, monkeypatch):
    models = [FakeModel("a"), FakeModel("b", provides=TEXT_ONLY)]
    cases = made_cases(6)

    def run(**more: Any) -> Run:
        how = {"methods": ["asp", "poc", "ce"], "samples": 5, "cache": ":memory:"}
        return ask(benchmark, cases, models, **how | more)

    whole = run()
    # Two cases and a half: three go together.
    monkeypatch.setattr("trustlab.runs.experiment.PART", 15)
    parts = run()
    monkeypatch.setattr("trustlab.runs.experiment.KEPT_UP_TO", 6 * 6 * 2 - 1)
    large = run()
    files = run(run_dir=tmp_path)
    assert (len(parts.generations), len(large.generations)) == (6 * 6 * 2, 0)
    for name in ("answers", "confidence"):
        table = getattr(whole, name)
        pd.testing.assert_frame_equal(getattr(parts, name), table)
        for found in (getattr(large, name), getattr(files, name)):
            pd.testing.assert_frame_equal(plain(found), plain(table), check_dtype=False)
            pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / f"{name}.parquet"), found)
    assert not list(tmp_path.glob("*.csv")) and (tmp_path / "run.json").is_file()
