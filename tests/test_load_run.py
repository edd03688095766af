"""A run comes back from its folder alone, field by field, and its replies with their words; what is
damaged or none is refused."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from asking import ask
from each import each
from fake_consultation import asked
from fake_model import TEXT_ONLY, FakeEncoder, FakeModel, made_cases
from generations import FULL, generation, said, without
from saying import saying

import trustlab as tl
from trustlab.confidence import METHODS
from trustlab.models.base import About, Request
from trustlab.models.cache import CachedModel, request_keys
from trustlab.parsing.reply import Unreadable
from trustlab.prompts import render
from trustlab.records import NO_DIAGNOSIS, Parameters, Reply
from trustlab.runs.folder.records_file import NAME, line_of, read_records, save_records
from trustlab.runs.folder.replies_log import NAME as REPLIES
from trustlab.runs.folder.replies_log import Replies, recording
from trustlab.runs.folder.saved import COLUMNS, load_run, of_answer, save_run
from trustlab.runs.run import Run

CASES = made_cases(2)
FIRST = CASES[0].case_id
VIEW = ("made", FIRST, 20)


def made(folder: Path | None, *models: FakeModel, **more: Any) -> Run:
    how = {"methods": "all", "samples": 3, "encoder": FakeEncoder(), "levels": [20, 100]}
    return ask(tl.benchmark, CASES, models or [FakeModel()], run_dir=folder, **how | more)


def same(a: Any, b: Any, where: str = "") -> None:
    """Every field alike, arrays with type and shape."""
    assert type(a) is type(b) or isinstance(a, dict), where
    if is_dataclass(a):
        for f in fields(a):
            same(getattr(a, f.name), getattr(b, f.name), f"{where}.{f.name}")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, where)
    elif isinstance(a, dict | tuple):
        assert len(a) == len(b), where
        pairs = [(k, a[k], b[k]) for k in a] if isinstance(a, dict) else zip(a, a, b, strict=True)
        for k, x, y in pairs:
            same(x, y, f"{where}[{str(k)[:20]}]")
    else:
        assert a == b or (a != a and b != b), where


def again(tmp_path: Path, *records: Any, kind: type[Any] = tl.Generation) -> tuple[Any, ...]:
    save_records(records, tmp_path / NAME)
    return read_records(tmp_path / NAME, kind)


TWO = (FakeModel(), FakeModel("second", TEXT_ONLY))
UNREADABLE = (FakeModel(unreadable=lambda r, i: r.temperature == 0),)


@pytest.mark.parametrize("models", [TWO, UNREADABLE], ids=["two", "unreadable"])
def test_tables_and_parameters_come_back_as_they_were(tmp_path, models):
    run = made(tmp_path, *models, keep_generations=len(models) == 2)
    back = load_run(str(tmp_path))
    for name in COLUMNS:
        mine, theirs = getattr(back, name), getattr(run, name)
        has_rows = len(theirs) > 0
        pd.testing.assert_frame_equal(
            mine, theirs, check_exact=True, check_dtype=has_rows, obj=name
        )
    assert back.parameters == json.loads(json.dumps(run.parameters))
    assert (back.families, back.folder) == (run.families, tmp_path)
    assert len(back.generations) == len(run.answers)
    assert len(run.generations) in (0, len(back.generations))
    for a, b in zip(run.generations, back.generations, strict=False):
        same(a, b)
        for method in METHODS.values():
            same(method.evaluate(a), method.evaluate(b))
    kept = load_run(tmp_path, records=False)
    for row in run.answers.head(2).to_dict("records"):
        key = row["model"], row["case_id"], row["level"]
        same(of_answer(kept, *key)[2], of_answer(back, *key)[2])
    assert of_answer(kept, "nobody", "c0", 1)[2] is None
    mine, theirs = (tl.metrics_table(of) for of in (back, run))
    pd.testing.assert_frame_equal(mine, theirs)


def test_replies_that_were_scored_come_back(tmp_path):
    table = pd.DataFrame({"case_id": ["007", "b"], "answer": ["Flu", "NA"], "truth": ["Flu", "x"]})
    run = ask(tl.score, table, ["exact_posterior"], run_dir=tmp_path)
    back = load_run(tmp_path)
    assert list(back.answers["case_id"]) == ["007", "b"]
    assert list(back.answers["answer"]) == ["Flu", "NA"]
    same(run.generations, back.generations)


ODD = {
    "everything": FULL,
    "nothing": generation(),
    "not numbers": generation(similarity=np.array([[np.nan, np.inf], [-np.inf, 0]]), exact=np.nan),
    "empty arrays": generation(similarity=np.zeros((0, 0)), relevance=np.zeros(0, np.float32)),
    "odd characters": generation(answer=said("\\ud800 \u2028 \x00 ü"), told='"}\n{'),
    "other choices": generation(parameters=Parameters(n_samples=3, reading="strict")),
    **{f"without {need}": without(FULL, need) for need in ("samples", "answer.entropies")},
}


@each("name", ODD)
def test_every_record_comes_back(tmp_path, name):
    (back,) = again(tmp_path, ODD[name])
    same(ODD[name], back)


def test_half_a_character_comes_back_as_one_that_is_unknown(tmp_path):
    (back,) = again(tmp_path, generation(answer=said("\ud800 \\ud800 \\\udfff")))
    assert back.answer.text == "\ufffd \\ud800 \\\ufffd"


def line(**changed: Any) -> dict[str, Any]:
    return json.loads(line_of(FULL)) | changed


def array(dtype: str, value: object) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [1], "values": [value]}


WRONG = {
    "unknown": (line(extra=1), "extra is 1: Unexpected"),
    "missing": ({k: v for k, v in line().items() if k != "level"}, "level: Field required"),
    "a text for a number": (line(level="20"), 'level is "20": Input should be a valid integer'),
    "True for a number": (line(level=True), "level is true"),
    "no list": (line(samples={"a": 1}), "samples is"),
    "a nested field": (line(answer=line()["answer"] | {"code": 1}), "answer.code is 1"),
    "an array of texts": (line(relevance=array("float64", "x")), "relevance is .*array of numbers"),
    "another type": (line(relevance=array("object", 1)), "relevance is .*dtype of an array must"),
    "another shape": (line(relevance=array("float64", 1.0) | {"shape": [3]}), "cannot reshape"),
    "NaN as a flag": (line(similarity=array("bool", "NaN")), "all bool"),
    "half a whole": (line(similarity=array("int64", 0.5)), "all int64"),
    "a choice": (line(parameters=line()["parameters"] | {"reading": "loose"}), "reading"),
}


@each("name", WRONG)
def test_a_wrong_line_is_refused_with_file_and_line(tmp_path, name):
    content, match = WRONG[name]
    lines = "\n".join(json.dumps(row) for row in (line(), content))
    (tmp_path / NAME).write_bytes(gzip.compress(lines.encode()))
    with pytest.raises(ValueError, match=rf"{NAME}, line 2: .*{match}"):
        read_records(tmp_path / NAME)


def test_a_folder_that_is_no_runs_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=saying("no folder", tmp_path / "nowhere")):
        load_run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"has no run\.json"):
        load_run(tmp_path)
    made(tmp_path / "below" / "a")
    with pytest.raises(ValueError, match="below/a"):
        load_run(tmp_path)
    (tmp_path / "below" / "a" / "answers.csv").unlink()
    with pytest.raises(ValueError, match=saying("answers.csv", "answers.parquet")):
        load_run(tmp_path / "below" / "a")
    (tmp_path / "run.json").write_text('{"trust": {}}')
    with pytest.raises(ValueError, match="benchmark"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text('{"benchmark": {}}')
    (tmp_path / "answers.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=saying("columns", "answers", "case_id")):
        load_run(tmp_path)


def test_a_run_saved_again_leaves_no_records_of_an_earlier_one(tmp_path):
    made(tmp_path)
    save_run(replace(made(None), generations=()), tmp_path)
    assert not (tmp_path / NAME).exists() and load_run(tmp_path).generations == ()


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.open(folder / REPLIES)]


def test_every_request_has_a_row_with_what_was_said_and_read(tmp_path):
    run = made(tmp_path / "a", FakeModel(unreadable=lambda r, i: i == 1), cache=tmp_path / "c")
    found = rows(tmp_path / "a")
    assert [r["purpose"] for r in found] == list(run.calls["purpose"])
    assert [len(r["replies"]) for r in found] == list(run.calls["n"])
    assert all(r["dataset"] == "made" and r["case_id"] and r["messages"] for r in found)
    whose = {(r["case_id"], r["level"]) for r in found if r["purpose"] == "diagnosis"}
    assert whose == set(zip(run.answers["case_id"], run.answers["level"], strict=True))
    kept = Replies(tmp_path / "a")
    for g in run.generations:
        told = {r["purpose"]: r for r in kept.of("made", g.case_id, g.level)}
        assert g.answer and g.samples is not None and g.assessment and g.panel
        assert told["diagnosis"]["replies"][0]["read"] == g.answer.text
        samples = told["samples"]["replies"]
        assert [r["read"] for r in samples if r["read"]] == [s.text for s in g.samples]
        assert [r["why"] for r in samples] == ["", NO_DIAGNOSIS, ""]
        assert [r["raw"] for r in told["p_true"]["replies"]] == [r.raw for r in g.probes["p_true"]]
        opinions = [o.diagnosis for o in g.panel.opinions]
        assert [r["read"] for r in told["doctor"]["replies"]] == opinions
        if g.assessment.missing is None:
            assert told["evidence"]["replies"][0]["read"]["score"] == g.assessment.score
        (keyword,) = kept.about(g.assessment.diagnosis, ["keyword"])
        assert keyword["replies"][0]["read"]["keyword"] == g.assessment.keyword
    answers = list(run.answers["answer"])
    for row in (r for r in found if r["purpose"] == "profile"):  # serves several views
        first = run.answers.iloc[answers.index(row["diagnosis"])]
        assert (row["case_id"], row["level"]) == (first["case_id"], first["level"])
        assert row["n_views"] == answers.count(row["diagnosis"])
    made(tmp_path / "b", FakeModel(unreadable=lambda r, i: i == 1), cache=tmp_path / "c")
    again = rows(tmp_path / "b")  # only counts and time are others
    assert sum(r["n_made"] for r in found) > 0 == sum(r["n_made"] for r in again)
    counted = ("n_cached", "n_made", "seconds")
    one, other = ([{k: r[k] for k in r if k not in counted} for r in of] for of in (found, again))
    assert one == other


def test_about_plays_no_part_in_keys_or_prompts_and_no_model_is_given_it():
    plain = Request(render("diagnosis", patient="a cough"), 2, 0.5)
    told = replace(plain, about=About(*VIEW))
    assert told == plain and hash(told) == hash(plain)
    assert request_keys(told, "m", "r") == request_keys(plain, "m", "r")
    model = FakeModel()
    CachedModel(model, None).generate([told])
    assert model.asked[0][0].about is None


def test_a_reply_keeps_its_thought_apart_and_says_why_it_was_not_read(tmp_path):
    def reads(reply: Reply) -> str:
        raise Unreadable(f"<b>{reply.text}</b>")

    class Thinks(FakeModel):
        def reply(self, request: Request, i: int) -> Reply:
            return Reply("\ud800 no", reasoning="so be it") if i else Reply(None, missing="gone")

    cached = CachedModel(Thinks(), None)
    with recording(tmp_path) as attach:
        attach(cached, cached, "no model")
        cached.generate([Request((("user", "q"),), 2, 1.0, about=About(*VIEW, reads=reads))])
    assert cached.recorder is None
    (row,) = rows(tmp_path)
    none, odd = row["replies"]
    assert (none["raw"], none["why"]) == (None, "gone")
    assert (odd["raw"], odd["thought"]) == ("\ud800 no", "so be it")
    assert odd["why"] == "<b>\ud800 no</b>" and odd["read"] is None


def test_nothing_is_recorded_without_a_folder_and_a_failed_run_leaves_no_file(tmp_path):
    with recording(None) as attach:
        attach(cached := CachedModel(FakeModel(), None))
        assert cached.recorder is None
    with pytest.raises(KeyError), recording(tmp_path) as attach:
        attach(cached)
        raise KeyError
    assert cached.recorder is None and not list(tmp_path.iterdir()) and not Replies(tmp_path)


def test_turns_of_a_consultation_have_their_level(tmp_path):
    run = asked(2, 2, run_dir=tmp_path, cache=":memory:")
    found = rows(tmp_path)
    assert {r["purpose"] for r in found} == {"ask", "enough", "patient"}
    assert {r["level"] for r in found} <= {0, 1} and 0 in {r["level"] for r in found}
    assert {r["dataset"] for r in found} == set(run.answers["dataset"])
    said = [r["replies"][0]["read"]["words"] for r in found if r["purpose"] == "patient"]
    assert said == list(run.turns.sort_values("turn", kind="stable")["reply"])
    below = next(tmp_path.glob(f"*/{REPLIES}"))
    assert {r["purpose"] for r in rows(below.parent)} == {"diagnosis", "samples", "ce"}


NO_ROW = gzip.compress(b'{"a": 1}\n')


@each(("content", "match"), [(b"?", "gzip"), (NO_ROW, "line 1")])
def test_a_damaged_file_is_named_with_its_line(tmp_path, content, match):
    (tmp_path / REPLIES).write_bytes(content)
    with pytest.raises(ValueError, match=saying(REPLIES, match)):
        Replies(tmp_path).of(*VIEW)
