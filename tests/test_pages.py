"""The page of one answer from a run's folder, and answers.html with all of them: what they hold,
that words stay words, safe names, links that lead somewhere."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import zlib
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs

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
from trustlab.html.pages import (
    choose,
    figure_link,
    linked,
    method_of,
    page_path,
    safe_name,
    write_answers,
)
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
    run = made(tmp_path, Nasty(f"../{NASTY}"), cases=[odd])
    page = Page(run.show(odd.case_id, 20))
    assert not page.tags & {"script", "img", "iframe", "link", "form"} and NASTY in page.text
    before = set(tmp_path.parent.glob("*"))
    done = trustlab("show", tmp_path, "--all")
    assert done.exit_code == 0, done.output
    (script,) = (tmp_path / "answers").iterdir()
    for file in (script, tmp_path / "answers.html"):
        text = file.read_text(encoding="utf-8")
        assert "alert(" not in text and str(tmp_path) not in text
    assert re.fullmatch(r'take\("[a-z0-9._-]+", "[A-Za-z0-9+/=]+"\)\n', script.read_text())
    assert set(tmp_path.parent.glob("*")) == before
    facts, told = answers_in(tmp_path)
    assert [row[2] for row in facts["rows"]] == [odd.case_id] * 2
    (reply,) = told[odd.case_id][0]["asked"][0]["replies"]
    assert reply["thought"] == NASTY and told[odd.case_id][0]["diagnosis"] == NASTY


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no chromium")
def test_in_a_browser_an_answer_opens_from_the_disk_and_runs_none_of_its_words(tmp_path):
    class Nasty(FakeModel):
        def reply(self, request: Request, i: int) -> Reply:
            found = super().reply(request, i)
            return replace(found, reasoning="<img src=x onerror=document.title='run'>\u2028")

    made(tmp_path, Nasty())
    write_answers(tmp_path)

    def shown(state: str) -> str:
        return subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--virtual-time-budget=5000", "--dump-dom"]
            + [f"{(tmp_path / 'answers.html').as_uri()}#{state}"],
            capture_output=True, text=True, timeout=120, check=True,
        ).stdout  # fmt: skip

    page = shown(f"case={FIRST}&level=20&model=fake")
    assert "<h2>Every request, with its replies as they came</h2>" in page
    assert "&lt;img src=x onerror" in page and "<img" not in page
    assert f"<title>{FIRST} · 20 % · fake</title>" in page
    assert '<p role="status">3 answers: ' in shown("level=100&dataset=none")
    (tmp_path / "answers" / f"{FIRST}.js").unlink()
    assert f"⚠ answers/{FIRST}.js is not there" in shown(f"case={FIRST}&level=20")


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
    assert not {"..", "con"} & set(names)
    assert safe_name("starter-066") == "starter-066" and safe_name("embedded") == "embedded"
    for text in odd:
        path = PurePosixPath(page_path(text, 20, text))
        assert path.parts[0] == "answers" and len(path.parts) == 3 and ".." not in path.parts


# All answers of a folder


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def answers_in(folder: Path) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What the list of answers.html says, and case by case what its scripts hold."""
    page = (folder / "answers.html").read_text(encoding="utf-8")
    facts = unpacked(re.findall(r'id="packed">(.*?)</script>', page)[0])
    told: dict[str, list[Any]] = {}
    for case_id, name in facts["cases"].items():
        script = (folder / "answers" / f"{name}.js").read_text(encoding="utf-8")
        lines, told[case_id] = unpacked(script.split('"')[3])
        for answer in told[case_id]:
            for request in answer["asked"]:
                request["messages"] = [
                    [role, "\n".join(lines[n] for n in numbers)]
                    for role, numbers in request["messages"]
                ]
    return facts, told


def test_all_answers_are_listed_and_each_is_what_its_page_says(saved, tmp_path):
    run = load_run(saved)
    known = write_answers(saved, tmp_path)
    facts, told = answers_in(tmp_path)
    assert len(facts["rows"]) == len(run.answers) == sum(map(len, known.values()))
    places: dict[str, int] = {}
    for row, (_, mine) in zip(facts["rows"], run.answers.iterrows(), strict=True):
        where, dataset, case_id, level, model, truth, answer, correct, sure = row
        assert (where, dataset, case_id, level, model) == (
            ".", mine["dataset"], mine["case_id"], mine["level"], mine["model"],
        )  # fmt: skip
        assert (truth, answer, correct) == (mine["truth"], mine["answer"], mine["correct"])
        _, values, g = run.of_answer(model, case_id, level)
        for value, wanted in zip(sure, values["confidence"], strict=True):
            assert (value is None) == pd.isna(wanted)
            assert value is None or value == pytest.approx(wanted, rel=1e-3)
        one = told[case_id][places.setdefault(case_id, 0)]
        places[case_id] += 1
        text = Page(run.show(case_id, level, model)).text
        assert g and one["tokens"]["answer"] == g.answer.text == answer
        for part in (*one["facts"], *(r["raw"] for a in one["asked"] for r in a["replies"])):
            assert part in text
        assert [who for who, _ in one["dialogue"]] and all(w in text for _, w in one["dialogue"])
        assert all(words in text for a in one["asked"] for _, words in a["messages"])
        assert all(e["description"] in text for e in one["evidence"]["rows"])
    assert facts["method"] == "medconf" and facts["methods"]["perplexity"][1] == "score"
    assert NOTICE in (tmp_path / "answers.html").read_text(encoding="utf-8")


def test_several_runs_are_one_list_and_replies_without_tables_are_reached(tmp_path):
    made(tmp_path / "one")
    made(tmp_path / "two")
    for name in ("answers.csv", "run.json"):
        (tmp_path / "two" / name).unlink()
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "old.js").write_text("of an earlier run")
    write_answers(tmp_path)
    facts, told = answers_in(tmp_path)
    assert list(facts["runs"]) == ["one", "two"] and facts["runs"]["two"] == []
    assert [row[0] for row in facts["rows"]] == ["one"] * 6 + ["two"] * 6
    alone = told[FIRST][2:]
    assert [one["facts"][-1] for one in alone] == ["replies alone"] * 2
    assert alone[0]["asked"][0]["purpose"] == "answer" and "answer" not in alone[0]
    assert not (tmp_path / "answers" / "old.js").exists()
    write_answers(tmp_path, since=time.time() + 60)  # the replies are those of an earlier run
    assert {row[0] for row in answers_in(tmp_path)[0]["rows"]} == {"one"}
    assert write_answers(tmp_path / "answers") == {}


def test_a_missing_record_says_why(tmp_path):
    made(tmp_path, keep_generations=False)
    (tmp_path / RECORDS).unlink()
    write_answers(tmp_path)
    _, told = answers_in(tmp_path)
    one = told[FIRST][0]
    assert "without the records" in one["no_evidence"] and one["dialogue"] is None
    assert one["asked"] and one["no_replies"] == ""
    for file in (*tmp_path.glob("replies.jsonl.gz"), *tmp_path.glob("generations.jsonl.gz")):
        file.unlink()
    write_answers(tmp_path)
    assert answers_in(tmp_path)[1][FIRST][0]["no_replies"] == NO_REPLIES


def test_a_damaged_file_is_refused(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "run")
    (tmp_path / "run" / "replies.jsonl.gz").write_bytes(b"no gzip")
    done = trustlab("show", tmp_path / "run", "--all")
    assert done.exit_code == 2 and "not a whole gzip file" in " ".join(done.output.split())


TABLE = pd.DataFrame(
    {"case_id": [FIRST, "c9", FIRST], "level": [20, 20, 7], "model": "fake", "note": "<i>"}
)


def states(html: str) -> list[dict[str, list[str]]]:
    return [parse_qs(unescape(s)) for s in re.findall(r'href="answers\.html#([^"]*)"', html)]


def test_case_ids_of_a_table_are_links_where_there_is_such_an_answer(saved, tmp_path):
    known = write_answers(saved, tmp_path)
    page = linked(TABLE.to_html(), known)
    assert states(page) == [{"case": [FIRST], "level": ["20"], "model": ["fake"]}]
    assert f">{FIRST}</a>" in page and "&lt;i&gt;" in page
    assert states(linked(TABLE[["case_id"]].to_html(), known)) == [{"case": [FIRST]}] * 2
    assert linked(TABLE[["level"]].to_html(), known) == TABLE[["level"]].to_html()
    assert linked(page, {}) == TABLE.to_html()
    odd = '"><b>&'
    page = linked(pd.DataFrame({"case_id": [odd]}).to_html(), {odd: {("1", "m")}})
    assert states(page) == [{"case": [odd]}] and "<b>" not in page


def test_a_figures_line_leads_to_what_it_is_about_and_no_further(saved):
    answers = load_run(saved).answers
    (state,) = states(figure_link(answers[answers["model"].eq("other")]))
    assert state == {"dataset": [CASES[0].dataset], "model": ["other"]}
    assert linked(figure_link(answers), {}) == ""


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
