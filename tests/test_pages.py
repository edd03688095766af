"""The page of one answer from a run's folder, and answers.html with all of them: what they hold,
that words stay words, safe names, links that lead somewhere."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest
from asking import ask
from each import each
from fake_consultation import asked as consulted
from fake_model import FakeEncoder, FakeModel, made_cases
from saying import saying, says
from test_cli import trustlab
from test_run_pages import NASTY, Page

import trustlab as tl
from trustlab.confidence.registry import label
from trustlab.models.base import Request
from trustlab.paths import NOTICE
from trustlab.records import NO_DIAGNOSIS, Reply, Statement
from trustlab.reports.html import pages
from trustlab.reports.html.pages import Choice, choose, page_path, safe_name, show, write_answers
from trustlab.runs.folder.records_file import NAME as RECORDS
from trustlab.runs.folder.saved import load_run, of_answer
from trustlab.runs.run import Run

CASES = made_cases(3)
FIRST = CASES[0].case_id
METHODS = ["asp", "poc", "ce", "p_true", "medconf", "agreement"]


def made(folder: Path | None, *models: FakeModel, cases=CASES, **more: Any) -> Run:
    how = {"samples": 2, "encoder": FakeEncoder(), "levels": [20, 100]}
    return ask(tl.benchmark, cases, models or [FakeModel()], METHODS, run_dir=folder, **how | more)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    made(folder, FakeModel(), FakeModel("other"))
    return folder


# One answer


def test_the_page_of_an_answer_works_from_the_folder_alone(saved):
    run = load_run(saved)
    g = run.generations[0]
    assert g.answer and g.samples and g.assessment and g.panel and g.told
    shown = show(run, g.case_id, g.level)
    text = Page(shown).text
    for part in (
        "The dialogue so far", "How sure, method by method", "The answer, token by token",
        "Samples and their votes", "Asked how sure it is", "MedConf's evidence",
        "Every request, with its replies as they came", f"Answer: {g.answer.text}",
        CASES[0].diagnosis, "Which single diagnosis explains this best?", NOTICE,
    ):  # fmt: skip
        assert part in text
    sure = of_answer(run, "fake", g.case_id, g.level)[1]
    for name, value in zip(sure["method"], sure["confidence"], strict=True):
        if not pd.isna(value):
            assert re.search(rf"{re.escape(label(name))} .{{0,40}}{value:.2g}"[:-1], text), name
    told = [*(s.raw or "" for s in g.samples), *g.assessment.replies.values()]
    told += [r.raw or "" for r in g.probes["p_true"]] + [o.raw or "" for o in g.panel.opinions]
    assert all(words in text for words in told)
    for model, other in (("fake", "other"), ("other", "fake")):
        text = Page(show(run, FIRST, 20, model)).text
        assert f"asked of {model} " in text and f"asked of {other} " not in text
    with pytest.raises(ValueError, match=saying("'fake'", "'c9'", "level 20")):
        show(run, "c9", 20)
    trustlab("show", saved, "--case", g.case_id, "--level", g.level, "--model", "fake")
    written = (saved / page_path(Choice(g.case_id, g.level, "fake"))).read_text(encoding="utf-8")
    assert shown in written and "default-src 'none'" in written and "script-src" not in written


def test_values_that_are_missing_for_one_reason_are_folded(saved):
    run = load_run(saved)
    g = run.generations[0]
    reasons = {"asp": "no token probabilities", "p_true": "no token probabilities",
               "ce": "no number in the reply"}  # fmt: skip
    for method, reason in reasons.items():
        rows = run.confidence["method"] == method
        run.confidence.loc[rows, ["confidence", "missing"]] = [float("nan"), reason]
    text = Page(show(run, g.case_id, g.level)).text
    names = ", ".join(label(name) for name in ("asp", "p_true"))
    assert f"2 methods missing: no token probabilities{names}" in text
    assert text.count("no token probabilities") == 1
    assert text.count("missing: no number in the reply") == 1 and "1 methods" not in text


def test_what_was_not_kept_is_said(tmp_path):
    made(tmp_path, keep_generations=False)
    (tmp_path / RECORDS).unlink()
    text = Page(show(load_run(tmp_path), FIRST, 20)).text
    assert pages.NO_RECORD in text and "ce 1 asked of fake" in text


def test_a_consultations_level_is_its_turn(tmp_path):
    consulted(2, 2, run_dir=tmp_path, cache=":memory:")
    run = load_run(tmp_path / "fake")
    text = Page(show(run, run.answers["case_id"].iloc[0], 1)).text
    assert "after 1 questions" in text and "Doctor:" in text and "% shown" not in text
    assert "ask 1 asked of" in text and "patient 1 asked of" in text


def test_everything_of_model_and_patient_is_escaped_and_nothing_is_loaded(tmp_path):
    class Nasty(FakeModel):
        def reply(self, request: Request, i: int) -> Reply:
            return replace(super().reply(request, i), reasoning=NASTY, raw=None)

    odd = replace(
        CASES[0], case_id=f"../../{NASTY}", diagnosis=NASTY, accepted=(NASTY,),
        statements=(Statement(f"Doctor: {NASTY}\nPatient: {NASTY}"),) * 3,
    )  # fmt: skip
    run = made(tmp_path, Nasty(f"../{NASTY}"), cases=[odd])
    page = Page(show(run, odd.case_id, 20))
    assert not page.tags & {"script", "img", "iframe", "link", "form"} and NASTY in page.text
    before = set(tmp_path.parent.glob("*"))
    trustlab("show", tmp_path, "--all")
    for file in (*tmp_path.glob("answers/*/*.html"), tmp_path / "answers.html"):
        text = file.read_text(encoding="utf-8")
        assert "<script>alert" not in text and str(tmp_path) not in text
        assert NASTY in Page(text).text
    assert set(tmp_path.parent.glob("*")) == before
    assert [row["case"] for row in listed(tmp_path)] == [odd.case_id] * 2


def test_names_of_files_are_safe_and_unique():
    odd = [
        "", ".", "..", "../../etc/passwd", "/etc/passwd", "a/b", "a-b", "a\\b", "A-B", "a b", "con",
        "ü", "模型", "\ud800", "x" * 300, "x" * 301, "a\x00b", "c:d", "-rf", ".hidden", "<b>", "~",
        safe_name("a/b"), "openai:gpt-4o", "a%2fb",
    ]  # fmt: skip
    names = [safe_name(text) for text in odd]
    assert len(set(names)) == len(odd)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,80}|x-[0-9a-f]{8}", n) for n in names)
    assert not {"..", "con"} & set(names)
    assert safe_name("starter-066") == "starter-066" and safe_name("embedded") == "embedded"
    for text in odd:
        path = PurePosixPath(page_path(Choice(text, 20, text)))
        assert path.parts[0] == "answers" and len(path.parts) == 3 and ".." not in path.parts


# All answers of a folder


def listed(folder: Path) -> list[dict[str, Any]]:
    """The rows of answers.html: a cell a heading, every method's confidence, where a link goes."""
    page = (folder / "answers.html").read_text(encoding="utf-8")
    heads = [head.lower() for head in re.findall('<th scope="col">(.*?)</th>', page)]
    found = []
    for sure, body in re.findall('<tr data-sure="(.*?)">(.*?)</tr>', page):
        cells = re.findall("<td[^>]*>(.*?)</td>", body)
        words = [unescape(re.sub("</?a[^>]*>", "", cell)) for cell in cells]
        href = re.findall('href="(.*?)"', body)
        row = dict(zip(heads, words, strict=True))
        found.append(row | {"sure": sure.split(" "), "href": unquote(href[0]) if href else ""})
    return found


def test_all_answers_are_listed_and_each_link_is_the_page_of_its_answer(saved, tmp_path):
    run = load_run(saved)
    assert write_answers(saved, tmp_path) == len(run.answers)
    rows = listed(tmp_path)
    for row, (_, mine) in zip(rows, run.answers.iterrows(), strict=True):
        key = mine["case_id"], mine["level"], mine["model"]
        assert (row["case"], row["level"], row["model"]) == tuple(map(str, key))
        assert (row["truth"], row["answer"]) == (mine["truth"], mine["answer"])
        assert row["verdict"] == ("✓ right" if mine["correct"] == 1 else "✗ wrong")
        _, values, g = of_answer(run, mine["model"], mine["case_id"], mine["level"])
        shown = dict(zip(run.methods, row["sure"], strict=True))
        for name, wanted in zip(values["method"], values["confidence"], strict=True):
            assert (shown[name] == "") == pd.isna(wanted)
            assert not shown[name] or float(shown[name]) == pytest.approx(wanted, rel=6e-3)
        assert row["confidence"] == shown["medconf"]
        page = (tmp_path / row["href"]).read_text(encoding="utf-8")
        assert g and show(run, *key) in page
    text = (tmp_path / "answers.html").read_text(encoding="utf-8")
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    policy = unescape(re.findall('Content-Security-Policy\' content="(.*?)"', text)[0])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.endswith(f"; script-src 'sha256-{digest}'")
    assert NOTICE in text and not re.search(r"<[^>]* on\w+=", text)


def test_pages_are_made_again_where_what_they_are_made_from_changed(saved, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    write_answers(folder)
    (page, *others) = sorted(folder.glob("answers/*/*.html"))
    first = page.read_text(encoding="utf-8")

    page.write_text("kept", encoding="utf-8")
    write_answers(folder)
    assert page.read_text(encoding="utf-8") == "kept"  # the sources are the same

    others[0].unlink()
    write_answers(folder)
    assert others[0].is_file() and page.read_text(encoding="utf-8") == first

    file = folder / "answers.csv"
    answers = pd.read_csv(file, dtype=str)
    answers.assign(truth="another truth").to_csv(file, index=False)
    page.write_text("kept", encoding="utf-8")
    write_answers(folder)
    assert "another truth" in page.read_text(encoding="utf-8")


def test_an_unread_answer_says_why_and_several_runs_are_one_list(tmp_path):
    class Silent(FakeModel):
        def reply(self, request: Request, i: int) -> Reply:
            found = super().reply(request, i)
            asked = request.purpose == "diagnosis" and "for a?" in request.messages[-1][1]
            return replace(found, text="I <b>cannot</b> say") if asked else found

    made(tmp_path / "one", Silent())
    made(tmp_path / "two")
    assert write_answers(tmp_path) == 12
    rows = listed(tmp_path)
    assert [row["run"] for row in rows] == ["one"] * 6 + ["two"] * 6
    mine = [row for row in rows[:6] if row["case"] == FIRST]
    assert {row["verdict"] for row in mine} == {"? unread"} and not any(r["answer"] for r in mine)
    page = Page((tmp_path / mine[0]["href"]).read_text(encoding="utf-8"))
    assert f"Answer: none ({NO_DIAGNOSIS})" in page.text
    assert "I <b>cannot</b> say" in page.text


# What is shown by default


def test_the_surest_wrong_answer_is_shown_first_and_else_the_least_sure_right_one(saved):
    run = load_run(saved)
    choice, why = choose(run)
    wrong = run.answers[run.answers["correct"] == 0]
    keys = ["case_id", "level", "model"]
    sure = run.confidence[run.confidence["method"] == "medconf"].merge(wrong, on=keys)
    top = sure.loc[sure["confidence"].idxmax()]
    assert choice == (top["case_id"], top["level"], top["model"])
    assert why == f"wrong (confidence {top['confidence']:.2f}), of {len(run.answers)} that fit"
    sure = run.confidence[run.confidence["method"] == "asp"]
    facts = run.parameters | {"methods": ["asp"]}
    right = replace(run, answers=run.answers.assign(correct=1), confidence=sure, parameters=facts)
    choice, why = choose(right)
    least = sure.loc[sure["confidence"].idxmin()]
    assert choice == (least["case_id"], least["level"], least["model"]) and "right (" in why


@each(
    ("words", "told"),
    [
        (["--case", "c9"], ("case_id", "'c9'")),
        (["--all", "--case", "c1"], "--all takes no"),
    ],
)
def test_a_wrong_choice_is_refused(saved, words, told):
    assert says(trustlab("show", saved, *words, status=2), told)


def test_what_is_no_whole_run_is_refused(saved, tmp_path):
    assert says(trustlab("show", tmp_path / "none", status=2), "no folder", tmp_path / "none")
    shutil.copytree(saved, tmp_path / "run")
    (tmp_path / "run" / "replies.jsonl.gz").write_bytes(b"no gzip")
    refused = trustlab("show", tmp_path / "run", "--all", status=2)
    assert says(refused, "replies.jsonl.gz", "gzip")
