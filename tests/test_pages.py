"""The page of one answer from a run's folder: what it holds, that all is escaped, safe names,
links that lead somewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pytest
from asking import ask
from fake_consultation import asked as consulted
from fake_model import FakeEncoder, FakeModel, made_cases
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli import app
from trustlab.folder.records_file import NAME as RECORDS
from trustlab.graders import JudgeGrader
from trustlab.html.answer import NO_REPLIES
from trustlab.html.pages import choose, method_of, page_links, page_path, safe_name, write_pages
from trustlab.models.base import Request
from trustlab.paths import NOTICE
from trustlab.records import Reply, Statement
from trustlab.run import Run, load_run

CASES = made_cases(3)
FIRST = CASES[0].case_id
NASTY = "<script>alert('x')</script> & \"pain\""
METHODS = ["asp", "poc", "ce", "p_true", "medconf", "agreement", "perplexity"]


def made(folder: Path | None, *models: FakeModel, cases=CASES, **more: Any) -> Run:
    how = {"samples": 3, "encoder": FakeEncoder(), "levels": [20, 100]}
    return ask(tl.benchmark, cases, models or [FakeModel()], METHODS, run_dir=folder, **how | more)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    made(folder, FakeModel(), FakeModel("other"))
    return folder


class Page(HTMLParser):
    """Its text, tags and links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.links = "", set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "action")]

    def handle_data(self, data):
        self.text += data


def trustlab(*words: object) -> Any:
    return CliRunner().invoke(app, [str(w) for w in words])


# One answer


def test_the_page_of_an_answer_works_from_the_folder_alone(saved):
    run = load_run(saved)
    g = run.generations[0]
    assert g.answer and g.samples and g.assessment and g.panel and g.told
    shown = run.show(g.case_id, g.level)
    text = Page(shown).text
    for part in (
        "The dialogue so far", "How sure, method by method", "The answer, token by token",
        "Samples and their votes", "Asked how sure it is", "MedConf's evidence",
        "A panel of doctors", "Every request, with its replies as they came",
    ):  # fmt: skip
        assert part in text
    assert f"Answer: {g.answer.text}" in text and CASES[0].diagnosis in text
    told = [*(s.raw or "" for s in g.samples), *g.assessment.replies.values()]
    told += [r.text or "" for r in g.probes["p_true"]] + [o.raw or "" for o in g.panel.opinions]
    assert all(words in text for words in told)
    assert "Which single diagnosis explains this best?" in text
    assert shown.count(NOTICE) == 1
    assert shown == saved_page(saved, g.case_id, g.level)


def saved_page(folder: Path, case_id: str, level: int) -> str:
    """The file's page without what is around it."""
    trustlab("show", folder, "--case", case_id, "--level", level, "--model", "fake")
    written = (folder / page_path(case_id, level, "fake")).read_text(encoding="utf-8")
    return written[written.index("<div") : written.rindex("</div>") + len("</div>")]


def test_a_page_is_the_same_before_and_after_the_run_was_saved(tmp_path):
    run = made(tmp_path)
    assert run.show(FIRST, 100) == load_run(tmp_path).show(FIRST, 100)


def test_another_models_requests_are_not_on_the_page(saved):
    run = load_run(saved)
    for model, other in (("fake", "other"), ("other", "fake")):
        text = Page(run.show(FIRST, 20, model)).text
        assert f"model {model}" in text and f"model {other} " not in text


def test_an_assessor_and_a_judge_are_on_the_page_of_every_answer(tmp_path):
    class Yes(FakeModel):
        def reply(self, request: Request, i: int) -> Reply:
            return Reply("False")

    judge = JudgeGrader(Yes("judge"))
    run = made(tmp_path, grader=judge, assessor=FakeModel("assessor"))
    asked = run.answers[run.answers["answer"] != run.answers["truth"]].reset_index(drop=True)
    assert len(asked) > 2
    for row in asked.to_dict("records"):
        text = Page(run.show(row["case_id"], row["level"])).text
        assert text.count("the grader's verdict") == 1 and "model judge" in text
        for step in ("keywords", "profiles", "tables of evidence"):
            assert len(re.findall(rf"{step} · 1 reply · model assessor", text)) == 1


def test_a_run_without_records_still_shows_tables_and_replies(tmp_path):
    made(tmp_path, keep_generations=False)
    (tmp_path / RECORDS).unlink()
    text = Page(load_run(tmp_path).show(FIRST, 20)).text
    assert "without the records" in text and "Its words stand in the prompts, below." in text
    assert "Every request" in text and "scores (CE)" in text


def test_a_run_that_was_not_saved_says_that_it_has_no_replies():
    text = Page(made(None, cache=":memory:").show(FIRST, 20)).text
    assert NO_REPLIES in text and "Every request" not in text


def test_an_answer_that_is_not_there_is_refused(saved):
    with pytest.raises(ValueError, match="no answer of 'fake' to case 'c9' at level 20"):
        load_run(saved).show("c9", 20)


def test_a_consultations_level_is_its_turn(tmp_path):
    consulted(2, 2, run_dir=tmp_path, cache=":memory:")
    run = load_run(tmp_path / "fake")
    text = Page(run.show(run.answers["case_id"].iloc[0], 1)).text
    assert "after 1 questions" in text and "Doctor:" in text and "% shown" not in text
    assert "the doctor's last question" in text and "what the patient said to it" in text
    opening = Page(run.show(run.answers["case_id"].iloc[0], 0)).text
    assert "the doctor's last question" not in opening


def test_everything_of_model_and_patient_is_escaped_and_nothing_is_loaded(tmp_path):
    class Nasty(FakeModel):
        def reply(self, request: Request, i: int) -> Reply:
            found = super().reply(request, i)
            return replace(found, text=f"{found.text}", reasoning=NASTY, raw=None)

    odd = replace(
        CASES[0], case_id=f"../../{NASTY}", diagnosis=NASTY, accepted=(NASTY,),
        statements=(Statement(f"Doctor: {NASTY}\nPatient: {NASTY}"),) * 3,
    )  # fmt: skip
    made(tmp_path, Nasty(f"../{NASTY}"), cases=[odd])
    done = trustlab("show", tmp_path, "--all")
    assert done.exit_code == 0, done.output
    files = list((tmp_path / "answers").rglob("*.html"))
    assert len(files) == 3 and not list(tmp_path.parent.glob("*.html"))
    for file in files:
        page = Page(file.read_text(encoding="utf-8"))
        assert not page.tags & {"script", "img", "iframe", "link", "form"}
        assert NASTY in page.text and NOTICE in page.text
        assert all((file.parent / link).resolve().is_file() for link in page.links)


# Names and links


def test_names_of_files_are_safe_and_unique():
    odd = [
        "", ".", "..", "../../etc/passwd", "/etc/passwd", "a/b", "a-b", "a\\b", "A-B", "a b", "con",
        "index.html", "ü", "模型", "\ud800", "x" * 300, "x" * 301, "a\x00b", "c:d", "-rf",
        ".hidden", safe_name("a/b"), "openai:gpt-4o", "<b>", "~", "a%2fb",
    ]  # fmt: skip
    names = [safe_name(text) for text in odd]
    assert len(set(names)) == len(odd)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,80}|x-[0-9a-f]{8}", n) for n in names)
    assert not {"..", "con", "index.html"} & set(names)
    assert safe_name("starter-066") == "starter-066" and safe_name("embedded") == "embedded"
    for text in odd:
        path = PurePosixPath(page_path(text, 20, text))
        assert path.parts[0] == "answers" and len(path.parts) == 3 and ".." not in path.parts


def test_each_row_of_a_table_that_names_an_answer_has_its_link(saved):
    run = load_run(saved)
    links = page_links(run.confidence)
    assert links.iloc[0] == f"answers/fake/{FIRST}-20.html" and links.index.equals(
        run.confidence.index
    )
    table = pd.DataFrame({"case_id": ["a"] * 3, "level": ["20", "pooled", None], "model": "m"})
    assert list(page_links(table, "../")) == ["../answers/m/a-20.html", "", ""]
    with pytest.raises(ValueError, match="no column level"):
        page_links(table.drop(columns="level"))


def test_all_pages_and_their_list_are_written(saved, tmp_path):
    run = load_run(saved)
    index = write_pages(run, tmp_path)
    page = Page(index.read_text(encoding="utf-8"))
    assert index == tmp_path / "answers" / "index.html" and NOTICE in page.text
    wanted = {str(tmp_path / link) for link in page_links(run.answers)}
    assert {str((index.parent / link).resolve()) for link in page.links} == wanted
    assert all(Path(file).is_file() for file in wanted)
    assert page.text.count("right") == int((run.answers["correct"] == 1).sum())
    assert page.text.count("wrong") == int((run.answers["correct"] == 0).sum())
    sure = run.confidence[run.confidence["method"] == "medconf"]["confidence"].dropna()
    assert all(f"{value:.2f}" in page.text for value in sure)


# What is shown by default


def test_the_surest_wrong_answer_is_shown_first_and_it_is_said(saved):
    run = load_run(saved)
    choice, why = choose(run, method="ce")
    wrong = run.answers[run.answers["correct"] == 0]
    sure = run.confidence[run.confidence["method"] == "ce"].merge(
        wrong, on=["case_id", "level", "model"]
    )
    top = sure.loc[sure["confidence"].idxmax()]
    assert (choice.case_id, choice.level, choice.model) == (
        top["case_id"], top["level"], top["model"],
    )  # fmt: skip
    assert why == f"of {len(wrong)} wrong answers the one of highest CE, {top['confidence']:.2f}"
    assert method_of(run, None) == "medconf"


def test_without_a_wrong_answer_or_a_confidence_the_first_is_shown(saved):
    run = load_run(saved)
    right = replace(run, answers=run.answers.assign(correct=1))
    assert choose(right)[0].case_id == FIRST and "none wrong" in choose(right)[1]
    none = replace(run, confidence=run.confidence.assign(confidence=float("nan")))
    assert "no value" in choose(none)[1]
    one, why = choose(run, FIRST, 20, "other")
    assert (one.case_id, one.level, one.model) == (FIRST, 20, "other") and "only one" in why


def test_one_id_in_two_data_sets_shows_no_answer_of_the_other(saved):
    """A table of one's own may have it; which record is whose is then not known."""
    run = load_run(saved)
    both = pd.concat([run.answers, run.answers.assign(dataset="another")], ignore_index=True)
    twice = replace(run, answers=both)
    for see in (lambda: twice.show(FIRST, 20), lambda: tl.explore(twice)):
        with pytest.raises(ValueError, match=f"the case id {FIRST!r} is in several data sets"):
            see()


def test_a_run_without_methods_has_a_page_for_each_answer_but_no_surest(saved):
    run = load_run(saved)
    bare = replace(
        run, confidence=run.confidence.iloc[:0], parameters=run.parameters | {"methods": []}
    )
    assert "The dialogue so far" in bare.show(FIRST, 20) and bare.families == {}
    with pytest.raises(ValueError, match="the run has no confidence method"):
        choose(bare)


def test_the_command_writes_a_page_and_says_where_and_why(saved, tmp_path):
    done = trustlab("show", saved)
    assert done.exit_code == 0 and "wrong answers the one of highest MedConf" in done.output
    assert NOTICE in done.output
    (written,) = re.findall(r"  (\S+\.html)", done.output)
    assert "<!doctype html>" in Path(written).read_text(encoding="utf-8")
    done = trustlab("show", saved, "--case", FIRST, "--level", 100, "--out", tmp_path / "one.html")
    assert done.exit_code == 0 and (tmp_path / "one.html").is_file()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "there is no folder"),
        (["--case", "c9"], "no answer with case_id 'c9'"),
        (["--level", 7], "no answer with level 7"),
        (["--method", "best"], "the run has no method 'best'"),
        (["--all", "--case", "c1"], "--all takes no"),
    ],
)
def test_a_wrong_choice_is_refused_in_a_line(saved, words, told):
    done = trustlab("show", *([] if words == ["nowhere"] else [saved]), *words)
    assert done.exit_code == 2 and told in " ".join(done.output.replace("│", " ").split())
