"""The benchmark's tables: one observation a row, whatever the model, and what a run leaves on
disk."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from dataclasses import asdict, replace
from typing import Any, ClassVar

import pandas as pd
import pytest
from asking import ask
from each import each
from fake_model import NAMES, TEXT_ONLY, Cold, FakeEncoder, FakeModel, Served, made_case, made_cases

from trustlab.agents.medconf import MedConf
from trustlab.collect import ROWS_ALIKE, samples_alike
from trustlab.confidence import select
from trustlab.experiment import benchmark, cases_hash
from trustlab.folder.saved import LIBRARIES, manifest
from trustlab.graders import JudgeGrader
from trustlab.levels import views
from trustlab.measures import metrics_table
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.paths import NOTICE
from trustlab.prompts import EMBEDDED
from trustlab.records import LEVELS, Parameters, Reply, Statement
from trustlab.run import Run, confidence_table

ANSWERS = [
    "case_id",
    "dataset",
    "level",
    "model",
    "answer",
    "truth",
    "correct",
    "n_statements",
    "n_words",
    "n_samples",
    "missing",
]
CONFIDENCE = ["case_id", "dataset", "level", "model", "method", "confidence", "bound", "missing"]
CALLS = ["purpose", "n", "n_tokens_in", "n_tokens_out", "seconds", "n_made", "n_cached", "model"]
ALL_READ = {"asked": 8, "cut": 0, "read": 8, "chat": 0, "example": 0, "placeholder": 0, "unread": 0}
CASES = made_cases(4)


def made(*models: FakeModel, **options) -> Run:
    """A benchmark of four made cases with everything that could be slow replaced."""
    defaults = {"methods": "all", "samples": 5, "encoder": FakeEncoder()}
    return ask(benchmark, CASES, models or [FakeModel()], **{**defaults, **options})


# Tables


class Yes(FakeModel):
    """Calls every answer the same as the truth."""

    def generate(self, requests):
        return [[Reply("True")] * r.n for r in requests]


def test_what_a_judge_and_a_model_of_new_words_were_asked_is_counted():
    voice = CachedModel(Yes(), None)
    voice.generate([Request((("user", "Word this anew."),), purpose="rephrase_reply")])
    run = made(methods=["random"], grader=JudgeGrader(Yes()), asked_before=[voice])
    calls = run.calls.set_index("purpose")
    assert calls.at["rephrase_reply", "n_made"] == 1
    n_asked = calls.loc[["judge"], "n_made"].sum()
    assert n_asked > 0
    assert (
        manifest(run)["calls_made"] == run.calls["n_made"].sum() == len(run.answers) + 1 + n_asked
    )
    assert run.parameters["grader"] == "judge fake"


def test_columns_keys_and_row_counts():
    run = made()
    assert (list(run.answers.columns), list(run.confidence.columns), list(run.calls.columns)) == (
        ANSWERS,
        CONFIDENCE,
        CALLS,
    )
    assert len(run.answers) == 4 * 6
    assert len(run.confidence) == 4 * 6 * len(select("all"))
    assert not run.answers.duplicated(ANSWERS[:4]).any()
    assert not run.confidence.duplicated(CONFIDENCE[:5]).any()
    answered = run.answers["answer"].nunique()  # keyword and profile depend on the diagnosis alone
    assert run.calls["purpose"].value_counts().to_dict() == {
        **dict.fromkeys(
            ["diagnosis", "samples", "ce", "cot_ce", "topk_ce", "p_true", "evidence", "doctor"],
            4 * 6,
        ),
        **dict.fromkeys(["keyword", "profile"], answered),
    }
    assert len(run.generations) == 4 * 6
    assert set(run.answers["level"]) == set(LEVELS)


def test_confidence_follows_answers_in_order():
    run = made()
    keys = run.confidence[ANSWERS[:4]].drop_duplicates(ignore_index=True)
    pd.testing.assert_frame_equal(keys, run.answers[ANSWERS[:4]])
    assert (
        run.confidence["method"].head(len(select("all"))).tolist()
        == [m.name for m in select("all")]
        == list(run.families)
    )


def test_an_answer_is_right_where_it_is_the_cases_diagnosis():
    run = made()
    right = run.answers["answer"] == run.answers["truth"]
    assert 0 < right.sum() < len(right)
    assert (run.answers["correct"] == right).all()
    assert set(run.answers["answer"]) <= set(NAMES)
    assert run.answers.groupby("case_id")["truth"].unique().map(list).to_dict() == {
        c.case_id: [c.diagnosis] for c in CASES
    }


def test_a_value_or_a_reason_never_both():
    run = made(
        FakeModel(
            provides=TEXT_ONLY,
            unreadable=lambda r, i: r.temperature == 0 and "for b?" in r.messages[1][1],
        )
    )
    gone = run.confidence["confidence"].isna()
    assert (gone == (run.confidence["missing"] != "")).all()
    unreadable = run.answers["answer"].isna()
    assert run.answers.loc[
        unreadable, ["case_id", "correct"]
    ].drop_duplicates().to_numpy().tolist() == [["b", 0]]
    assert unreadable.sum() == 6
    reasons = manifest(run)["missing"]
    assert {"method": "asp", "reason": "the backend gives no logprobs", "n": 18} in reasons
    assert {"method": "poc", "reason": "unreadable answer", "n": 6} in reasons
    assert sum(row["n"] for row in reasons) == gone.sum()


def test_two_models_are_judged_one_after_the_other_on_the_same_cases():
    run = made(FakeModel("a"), FakeModel("b", provides=TEXT_ONLY))
    for name in ("a", "b"):
        alone = made(FakeModel(name) if name == "a" else FakeModel(name, provides=TEXT_ONLY))
        for table in ("answers", "confidence"):
            mine = getattr(run, table).query("model == @name").reset_index(drop=True)
            pd.testing.assert_frame_equal(mine, getattr(alone, table), check_dtype=False)
        assert (run.calls["model"] == name).sum() == len(alone.calls)
    assert list(dict.fromkeys(run.answers["model"])) == ["a", "b"]
    assert run.parameters["models"] == {"a": "r1", "b": "r1"}


def test_two_processes_score_as_one(monkeypatch):
    run, chosen = made(), select("all")
    one = confidence_table(views(CASES), run.generations, chosen)
    pd.testing.assert_frame_equal(one, run.confidence)
    monkeypatch.setattr("trustlab.experiment.PART", 6)  # a part is scored while the next is asked
    pd.testing.assert_frame_equal(one, made(n_jobs=2).confidence)


@each(
    ("given", "message"),
    [
        ({"cases": []}, "no cases"),
        ({"models": []}, "no models"),
        ({"levels": []}, "no levels"),
        ({"models": [FakeModel(), FakeModel()]}, "each model may be given once; given again: fake"),
        (
            {"cases": [made_case("a"), made_case("a")]},
            "each case may be given once; given again: a",
        ),
        ({"levels": [20, 20]}, "each level may be given once; given again: 20"),
        ({"levels": [0]}, "level is 0"),
        ({"samples": 0}, "samples is 0; it must be a whole number, at least 1"),
        ({"methods": ["apples"]}, "no method 'apples'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_run_is_refused_before_a_model_is_asked(given, message):
    options = {
        "cases": CASES,
        "models": [FakeModel()],
        "methods": "all",
        "encoder": FakeEncoder(),
    } | given
    with pytest.raises(ValueError, match=message):
        ask(benchmark, **options)
    assert all(model.asked == [] for model in options["models"])


# On disk


def test_a_second_run_asks_nothing(tmp_path):
    model = FakeModel()
    first = made(model, run_dir=tmp_path)
    n_replies = sum(model.n_replies.values())
    again = made(model, run_dir=tmp_path)
    assert (
        sum(model.n_replies.values())
        == n_replies
        == first.calls["n_made"].sum()
        == again.calls["n_cached"].sum()
    )
    assert (first.calls["n_cached"].sum(), again.calls["n_made"].sum()) == (0, 0)
    assert (manifest(again)["calls_made"], manifest(again)["calls_from_cache"]) == (0, n_replies)
    for table in ("answers", "confidence"):
        pd.testing.assert_frame_equal(getattr(again, table), getattr(first, table))


def test_more_methods_later_ask_only_what_is_new(tmp_path):
    model = FakeModel()
    made(model, run_dir=tmp_path, methods=["asp", "poc"])
    before = model.n_replies
    made(model, run_dir=tmp_path, methods=["asp", "poc", "ce"])
    assert model.n_replies - before == {"ce": 24}


def test_a_model_with_a_cache_of_its_own_keeps_it(tmp_path):
    cached = CachedModel(FakeModel(), tmp_path / "own.sqlite", block=3)
    made(cached, run_dir=tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run" / "replies.sqlite").exists()
    assert cached.generate([]) == []  # still open


def test_tables_reread_from_csv_in_full_precision(tmp_path):
    run = made(
        FakeModel(unreadable=lambda r, i: r.temperature == 0 and "for b?" in r.messages[1][1]),
        run_dir=tmp_path,
    )
    assert {p.name for p in tmp_path.iterdir()} - {"replies.sqlite-wal", "replies.sqlite-shm"} == {
        "answers.csv", "confidence.csv", "calls.csv", "run.json", "replies.sqlite",
        "replies.jsonl.gz", "generations.jsonl.gz",
    }  # fmt: skip
    for name in ("answers", "confidence", "calls"):
        table = getattr(run, name)
        reread = pd.read_csv(tmp_path / f"{name}.csv")
        texts = [c for c in ("bound", "missing") if c in table]
        reread[texts] = reread[texts].astype(object).fillna("")
        pd.testing.assert_frame_equal(reread, table, check_exact=True, check_dtype=False)


def test_run_json_says_what_made_the_run(tmp_path):
    made(
        FakeModel(),
        run_dir=tmp_path,
        methods=["ce", "random"],
        levels=[1, 60],
        samples=3,
        temperature=0.7,
        seed=5,
    )
    found = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert found["notice"] == NOTICE
    assert (found["calls_made"], found["calls_from_cache"], found["missing"]) == (16, 0, [])
    benchmarked = found["benchmark"]
    assert benchmarked.pop("collect_s")["fake"] >= 0
    assert benchmarked == {
        "models": {"fake": "r1"}, "dataset": ["made"], "cases": 4,
        "cases_sha256": cases_hash(CASES), "methods": ["ce", "random"], "levels": [1, 60],
        **asdict(Parameters(n_samples=3, sample_temperature=0.7)), "seed": 5,
        "max_tokens_answer": 64, "max_tokens_score": 16, "max_tokens_reasoning": 256,
        "max_tokens_guesses": 64, "medconf": asdict(MedConf()), "encoder": "letters r1",
        "grader": "synonym", "retriever": None, "assessor": None, "panel": None,
        "medical_encoder": None, "usage": {}, "samples_alike": [], "passages_dropped": 0,
        "own_temperature": [], "unstructured": [], "nearly_greedy": [], "model_options": {},
        "max_tokens_doctor": 512, "baseless_assessments": 0, "keywords_unread": 0,
        "small_library": [], "agreement": None, "prompts": {"fake": EMBEDDED.facts},
        "held_to_a_form": {},
        "replies_read": {"fake": dict.fromkeys(["diagnosis", "ce"], ALL_READ)},
        "served_by": {},
        "entailment": {
            "name": "rule-based proxy", "stand_in": True,
            "revision": "rule-based proxy (word rules, knowledge table, lay names, letters r1)",
        },
    }  # fmt: skip
    assert set(found["versions"]) == {*LIBRARIES, "trustlab"}
    assert all(v and "+" not in v for v in found["versions"].values())


@pytest.mark.parametrize(
    "changed",
    [
        lambda c: replace(
            c, statements=(*c.statements[:-1], Statement("Doctor: And now?\nPatient: Better."))
        ),
        lambda c: replace(c, statements=c.statements[::-1]),
        lambda c: replace(c, statements=c.statements[:-1]),
        lambda c: replace(c, diagnosis="Croup"),
        lambda c: replace(c, case_id="z"),
    ],
    ids=["statement", "order", "fewer", "diagnosis", "id"],
)
def test_the_hash_of_the_cases_changes_with_what_is_shown_and_what_is_true(changed):
    first, *rest = CASES
    assert cases_hash([changed(first), *rest]) != cases_hash(CASES)


def test_the_hash_of_the_cases_is_of_what_the_model_sees():
    first, *rest = CASES
    labelled = replace(
        first,
        statements=tuple(replace(s, finding="fever") for s in first.statements),
        patient={"age": 3},
    )
    assert cases_hash([labelled, *rest]) == cases_hash(CASES) == cases_hash(made_cases(4))
    assert len(cases_hash(CASES)) == 16 and int(cases_hash(CASES), 16) >= 0


# A server that ignores the temperature

ALIKE = "fake: all samples alike (temperature ignored?)"


def test_samples_that_are_all_alike_are_said_and_nothing_is_dropped(tmp_path):
    how: dict[str, Any] = {"methods": ["poc", "ce"], "levels": [1, 100], "run_dir": tmp_path}
    for n_asked in (4 * 2 * 2 * 7, 0):  # the second time from kept replies
        with pytest.warns(UserWarning, match=re.escape(ALIKE)):
            run = made(Cold(), FakeModel("warm"), **how)
        assert run.calls["n_made"].sum() == n_asked
        assert run.parameters["samples_alike"] == ["fake"]
        written = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
        assert written["benchmark"]["samples_alike"] == ["fake"]
        assert written["warnings"] == manifest(run)["warnings"] == [ALIKE]
        sure = run.confidence.query("model == 'fake' and method == 'poc'")["confidence"]
        assert len(sure) == 8 and (sure == 1).all()


class Thinking(Cold):
    """Thinks otherwise before each of its samples, which all name one diagnosis."""

    def reply(self, request: Request, i: int) -> Reply:
        return replace(reply := super().reply(request, i), text=f"Thought {i}. {reply.text}")


@each(
    ("model", "said"),
    [
        (Cold(), True),
        (Cold(unreadable=lambda r, i: True), True),
        (Cold(unreadable=lambda r, i: i == 1), False),
        (Thinking(provides=TEXT_ONLY), False),
        (FakeModel(), False),
    ],
)
def test_samples_are_alike_word_for_word_readable_or_not(model, said):
    found = made(model, methods=["poc"], levels=[1, 60]).parameters["samples_alike"]
    assert found == ["fake"] * said


def test_of_one_sample_or_few_rows_or_one_row_that_differs_nothing_is_said():
    how: dict[str, Any] = {"methods": ["poc"], "levels": [1, 60]}
    assert made(Cold(), methods=["poc"], levels=[1]).parameters["samples_alike"] == []
    assert made(Cold(), **how, samples=1).parameters["samples_alike"] == []
    one = Cold()
    one.warm = lambda request, i: "Question 6 for a?" in request.messages[-1][1]
    assert made(one, **how).parameters["samples_alike"] == []
    assert made(Cold(), methods=["ce"], levels=[1, 60]).parameters["samples_alike"] == []


@each(("n_rows", "said"), [(ROWS_ALIKE, ["fake"]), (ROWS_ALIKE - 1, [])])
def test_five_rows_are_needed_that_have_two_samples(n_rows, said):
    rows = made(Cold(), methods=["poc"], levels=[1, 60]).generations[:n_rows]
    wordings = Counter((g.model, g.n_wordings) for g in rows)
    assert samples_alike(wordings) == samples_alike(wordings | {("fake", None): 3}) == said


# What the server calls its model

CHANGED = "fake: the server changed its model during the run: A 1,200, B 40 replies"


def test_the_names_that_servers_give_are_counted_and_more_than_one_is_said(tmp_path):
    models: Any = [Served(FakeModel(), A=1200, B=40), Served(FakeModel("other"), C=3)]
    with pytest.warns(UserWarning, match=CHANGED):
        run = made(*models, methods=["ce"], levels=[1], run_dir=tmp_path)
    assert run.parameters["served_by"] == {"fake": {"A": 1200, "B": 40}, "other": {"C": 3}}
    written = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert written["benchmark"]["served_by"] == run.parameters["served_by"]
    assert written["warnings"] == [CHANGED]


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


def test_one_name_and_none_are_not_warned_of():
    judge: Any = Served(Yes("judge"), J=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = made(Served(FakeModel(), A=5), methods=["ce"], levels=[1], grader=JudgeGrader(judge))
        assert made(methods=["ce"], levels=[1]).parameters["served_by"] == {}
    assert run.parameters["served_by"] == {"fake": {"A": 5}, "judge": {"J": 2}}


def test_who_words_and_judges_under_the_model_s_own_name_is_counted_with_it():
    model: Any = Served(FakeModel(), A=5)
    voice: Any = Served(Yes(), A=1, B=2)
    voice.generate([Request((("user", "Word this anew."),))])
    with pytest.warns(UserWarning, match="A 6, B 2 replies"):
        run = made(model, methods=["ce"], levels=[1], asked_before=[voice, model])
    assert run.parameters["served_by"] == {"fake": {"A": 6, "B": 2}}


# Where the backend fails


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
    assert set(reasons.drop(["information_level", "word_count", "random"])) == {
        "HTTP 500 after 3 tries"
    }
    accuracy = (
        metrics_table(run, n_draws=10).query("metric == 'accuracy' and level == 'pooled'").iloc[0]
    )
    assert (accuracy["n"], accuracy["value"]) == (len(rest), rest["correct"].mean())
    facts = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert facts["benchmark"]["usage"] == {"fake": {"failures": 1.0}}
    assert {"method": "asp", "reason": "HTTP 500 after 3 tries", "n": 2} in facts["missing"]


# Any size


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """The same without categories, times, or kinds of nothing."""
    told = table.drop(columns="seconds", errors="ignore").astype(object)
    return told.where(told.notna(), None)


def test_a_large_run_goes_in_parts_and_lets_its_records_go(tmp_path, monkeypatch):
    models = [FakeModel("a"), FakeModel("b", provides=TEXT_ONLY)]
    cases = made_cases(12)

    def run(**more: Any) -> Run:
        how = {"methods": "all", "samples": 5, "encoder": FakeEncoder(), "cache": ":memory:"}
        return ask(benchmark, cases, models, **how | more)

    whole = run()
    monkeypatch.setattr("trustlab.experiment.PART", 15)  # two cases and a half: three go together
    parts = run()
    monkeypatch.setattr("trustlab.experiment.KEPT_UP_TO", 12 * 6 * 2 - 1)
    large = run()
    files = run(run_dir=tmp_path)
    assert (len(parts.generations), len(large.generations)) == (12 * 6 * 2, 0)
    for name in ("answers", "confidence"):
        table = getattr(whole, name)
        pd.testing.assert_frame_equal(getattr(parts, name), table)
        for found in (getattr(large, name), getattr(files, name)):
            pd.testing.assert_frame_equal(plain(found), plain(table), check_dtype=False)
            pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / f"{name}.parquet"), found)
    pd.testing.assert_frame_equal(metrics_table(large), metrics_table(whole))
    for made_so in (parts, large, files):
        counts = (
            made_so.calls.groupby(["model", "purpose"], observed=True)["n_made"].sum().to_dict()
        )
        assert counts == whole.calls.groupby(["model", "purpose"])["n_made"].sum().to_dict()
        facts, expected = manifest(made_so), manifest(whole)
        assert facts.pop("benchmark") | {"collect_s": 0} == expected.pop("benchmark") | {
            "collect_s": 0
        }
        assert facts == expected
    assert not list(tmp_path.glob("*.csv")) and (tmp_path / "run.json").is_file()
