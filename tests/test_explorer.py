"""The explorer: what a page holds, that the controls change it, and what is left where nothing
moves."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product

import nbformat
import pandas as pd
import pytest
from asking import ask
from fake_model import FakeModel, made_cases
from generations import FULL, said

import trustlab as tl
from trustlab.confidence import select
from trustlab.html.explorer import (
    NONE_PASSES,
    STILL,
    Choice,
    case_options,
    explore,
    page,
    passing,
    still,
)
from trustlab.html.notebook import write_html
from trustlab.levels import view
from trustlab.parsing import NO_DIAGNOSIS
from trustlab.paths import NOTICE
from trustlab.records import Assessment, Case, Criterion, Evidence, Statement
from trustlab.run import Run, confidence_table

WIDGET = "application/vnd.jupyter.widget-view+json"
LEVELS = (1, 20, 60, 100)
METHODS = (
    "asp",
    "msp",
    "entropy",
    "poc",
    "semantic_poc",
    "ce",
    "p_true",
    "medconf",
    "medconf_weighted",
    "random",
)
METHODS = tuple(m for m in METHODS if m in {known.name for known in select("all")})
NASTY = "<script>alert('x')</script> & \"pain\""


def case(case_id: str, dataset: str = "made", diagnosis: str = "Influenza") -> Case:
    words = [f"Doctor: Question {i}?\nPatient: Word{i} of {case_id}." for i in range(1, 11)]
    return Case(case_id, dataset, tuple(map(Statement, words)), diagnosis, (diagnosis,))


CASES = (case("c1"), case("c2", diagnosis="Croup"), case("d1", "other", "Gout"))
ASSESSED = Assessment(
    "Flu",
    keyword="flu",
    profile=(Criterion(1, "high fever", "strong"),),
    evidence=(Evidence(Criterion(1, "high fever", "strong"), "supported", "I am burning", True),),
    score=70.0,
)


def made(case_id: str, level: int, model: str, **parts):
    """A generation whose token probabilities rise with the level; right from 60 % on."""
    shown = view(next(c for c in CASES if c.case_id == case_id), level)
    answer = said(
        "Influenza" if level >= 60 else "Cold",
        (0.3 + level / 200, 0.9),
        entropies=[2 - level / 100, 0.1],
    )
    facts = {
        "case_id": case_id,
        "level": level,
        "model": model,
        "answer": answer,
        "assessment": ASSESSED,
    }
    return replace(FULL, **facts | {"n_statements": shown.n_statements, "n_total": 10} | parts)


def run_of(generations, cases=CASES, methods=METHODS) -> Run:
    known = {c.case_id: c for c in cases}
    shown = [view(known[g.case_id], g.level) for g in generations]
    answers = [
        {"case_id": g.case_id, "dataset": v.case.dataset, "level": g.level, "model": g.model}
        | {"answer": g.answer.text if g.answer else None, "truth": v.case.diagnosis}
        | {"correct": int(g.level >= 60), "n_statements": g.n_statements, "n_words": v.n_words}
        for g, v in zip(generations, shown, strict=True)
    ]
    chosen = select(methods)
    parameters = {"methods": [m.name for m in chosen], "levels": list(LEVELS)}
    return Run(
        pd.DataFrame(answers),
        confidence_table(shown, generations, chosen),
        pd.DataFrame(),
        parameters,
        tuple(generations),
    )


def whole_run(models=("one", "two"), **parts) -> Run:
    return run_of(
        [made(c.case_id, level, m, **parts) for m, c, level in product(models, CASES, LEVELS)]
    )


@pytest.fixture(scope="module")
def run() -> Run:
    return whole_run()


class Words(HTMLParser):
    """What a reader reads, and which tags are there."""

    VOID = {"br", "col"}

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.open = "", set(), []
        self.feed(html)
        assert self.open == [], "unclosed tags"

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def text(html: str) -> str:
    return re.sub(r"\s+", " ", Words(html).text)


# Pages


def test_a_page_shows_what_was_told_so_far_and_no_more(run):
    early = text(page(run, CASES, "one", "c1", 20))
    assert "Word2 of c1" in early and "Word3 of c1" not in early
    assert "2 of 10 statements" in early
    assert "Word10 of c1" in text(page(run, CASES, "one", "c1", 100))


def test_a_long_dialogue_scrolls_where_something_moves_and_is_whole_where_nothing_does(run):
    assert "overflow-y:auto" in page(run, CASES, "one", "c1", 100)
    unmoving = still(run, CASES, Choice("one", "c1", 100))
    assert "overflow-y" not in unmoving and "Word10 of c1" in text(unmoving)


def test_right_and_wrong_and_the_truth_are_said_when_asked(run):
    assert "Answer: Cold ✗ wrongTruth: Croup" in text(page(run, CASES, "one", "c2", 20, truth=True))
    assert "Answer: Influenza ✓ rightTruth: Croup" in text(
        page(run, CASES, "one", "c2", 60, truth=True)
    )


def opposite(run: Run) -> Run:
    """The same run with every verdict turned round."""
    return replace(run, answers=run.answers.assign(correct=1 - run.answers["correct"]))


@pytest.mark.parametrize("level", [20, 60], ids=["wrong", "right"])
def test_untold_neither_word_nor_colour_gives_the_truth_away(run, level):
    told, untold = (page(run, CASES, "one", "c2", level, truth) for truth in (True, False))
    assert "Croup" not in untold and not re.search(
        r"\b(right|wrong|truth)\b", text(untold), re.IGNORECASE
    )
    assert untold == page(opposite(run), CASES, "one", "c2", level) and untold != told
    assert told != page(opposite(run), CASES, "one", "c2", level, truth=True)


@pytest.mark.parametrize("level", [20, 60], ids=["wrong", "right"])
def test_on_a_still_page_all_of_the_truth_is_in_the_fold(run, level):
    fold = re.compile("<details>.*?</details>")
    whole, turned = (
        still(each, CASES, Choice("one", "c2", level)) for each in (run, opposite(run))
    )
    assert "Croup" in whole and "Croup" not in fold.sub("", whole)
    assert whole != turned and fold.sub("", whole) == fold.sub("", turned)


def test_every_method_stands_in_its_family_with_its_value(run):
    shown = text(page(run, CASES, "one", "c1", 20))
    places = [
        shown.index(words)
        for words in (
            "tokenASP",
            "consistencyPoC",
            "self-verbalisedCE",
            "MedConfMedConf",
            "baseline",
        )
    ]
    assert places == sorted(places)
    assert "CE0.85" in shown and "MedConf0.70" in shown
    assert shown.index("self-verbalised") < shown.index("CE0.85") < shown.index("MedConf0.70")


def widths(html: str, method: str) -> float:
    row = next(row for row in html.split("<tr") if f">{method}<" in row)
    found = re.search(r"width:([\d.]+)%;height:10px;box-sizing", row)
    assert found
    return float(found[1])


def test_probabilities_stand_on_zero_to_one_and_scores_on_the_runs_range(run):
    pages = {level: page(run, CASES, "one", "c1", level) for level in LEVELS}
    assert widths(pages[20], "CE") == 85
    assert [widths(pages[level], "Entropy †") for level in (1, 100)] == [0, 100]
    assert 0 < widths(pages[60], "Entropy †") < 100
    assert "hollow bars" in text(pages[20])


def test_a_score_that_never_changes_has_half_a_bar(run):
    assert widths(page(run, CASES, "one", "c1", 20), "MedConf (fixed weights) †") == 50


def test_missing_methods_are_listed_with_their_reason():
    run = whole_run(models=("one",), samples=None, reasons={"samples": "sampling <off>"})
    shown = page(run, CASES, "one", "c1", 20)
    missing = text(shown).partition("Missing")[2]
    assert re.search(r"PoC[^:]*: sampling <off>", missing)
    assert "<off>" not in shown
    assert "PoC<" not in shown.partition("<b>Missing</b>")[0]


def test_an_unreadable_answer_says_so():
    bad = replace(said("x"), text=None, missing=NO_DIAGNOSIS)
    shown = text(page(whole_run(models=("one",), answer=bad), CASES, "one", "c1", 20, truth=True))
    assert f"no readable answer ({NO_DIAGNOSIS}) ✗ wrong" in shown
    assert "unreadable answer" in shown


FAILED = replace(said("x"), text=None, trace=None, missing="the server said <no>", finish="error")


def failed_run() -> Run:
    """A run whose calls failed: neither right nor wrong."""
    run = whole_run(models=("one",), answer=FAILED)
    return replace(
        run, answers=run.answers.assign(correct=float("nan"), missing="the server said <no>")
    )


@pytest.mark.parametrize("generations", [True, False], ids=["with records", "tables only"])
def test_an_answer_that_could_not_be_had_is_neither_right_nor_wrong(generations):
    run = failed_run() if generations else replace(failed_run(), generations=())
    shown = page(run, CASES, "one", "c1", 20, truth=True)
    assert "no answer (the server said <no>) – neither right nor wrongTruth: Influenza" in text(
        shown
    )
    assert "<no>" not in shown and "✗" not in text(shown).partition("Truth:")[0]
    assert "no answer (the server said <no>)" in text(page(run, CASES, "one", "c1", 20))


def test_the_evidence_is_shown_and_its_absence_explained(run):
    assert "high fever" in text(page(run, CASES, "one", "c1", 20))
    without = whole_run(models=("one",), assessment=None, reasons={"assessment": "no library"})
    assert "None: no library." in text(page(without, CASES, "one", "c1", 20))
    failed = whole_run(
        models=("one",), assessment=Assessment("Flu", missing="keyword: none in square brackets")
    )
    assert "keyword: none in square brackets" in text(page(failed, CASES, "one", "c1", 20))


def test_a_run_of_tables_only_without_traces_still_has_pages(run):
    tables = replace(run, generations=())
    assert "without the records" in text(page(tables, CASES, "one", "c1", 20))
    untraced = whole_run(models=("one",), answer=replace(said("Cold"), trace=None))
    shown = text(page(untraced, CASES, "one", "c1", 20))
    assert "Answer: Cold" in shown and "ASP" in shown.partition("Missing")[2]
    none = replace(run, confidence=run.confidence.iloc[:0])
    assert "No method was asked for" in text(page(none, CASES, "one", "c1", 20))


@pytest.mark.parametrize("truth", [False, True])
def test_everything_from_a_model_or_a_patient_is_escaped(truth):
    odd = Case("c1", NASTY, (Statement(f"Doctor: {NASTY}\nPatient: {NASTY}"),) * 3, NASTY, (NASTY,))
    bad = Assessment(
        NASTY, evidence=(Evidence(Criterion(1, NASTY), "missing", NASTY, False),), missing=NASTY
    )
    run = run_of(
        [
            made(
                "c1",
                20,
                NASTY,
                answer=said(NASTY),
                assessment=bad,
                samples=None,
                reasons={"samples": NASTY},
            )
        ],
        (odd,),
    )
    for shown in (
        page(run, (odd,), NASTY, "c1", 20, truth),
        still(run, (odd,), Choice(NASTY, "c1", 20)),
    ):
        assert "script" not in Words(shown).tags and "<script" not in shown
        assert NASTY in Words(shown).text


@pytest.mark.parametrize("level", LEVELS)
def test_a_page_is_whole_has_its_own_colours_and_loads_nothing(run, level):
    shown = page(run, CASES, "one", "c1", level, truth=True)
    assert not Words(shown).tags & {"script", "link", "style", "img", "iframe"}
    assert "http" not in shown
    assert shown.startswith(
        "<div class='tex2jax_ignore mathjax_ignore' style='background:#FFFFFF;color:#222222"
    )
    assert shown.count(NOTICE) == 1
    assert not [w for w in re.findall(r"(?<!max-)(?<!min-)width:(\d+)px", shown) if int(w) > 300]


def test_a_choice_that_the_run_does_not_hold(run):
    assert "no answer of three" in text(page(run, CASES, "three", "c1", 20))
    with pytest.raises(ValueError, match="no case 'c9'"):
        page(run, CASES, "one", "c9", 20)
    with pytest.raises(ValueError, match="none of the 1 cases"):
        explore(run, [replace(CASES[0], case_id="c9")])


def test_the_choice_of_cases_gives_no_diagnosis_away():
    assert case_options(CASES, "made") == [("c1: Word1 of c1.", "c1"), ("c2: Word1 of c2.", "c2")]
    long = replace(CASES[0], statements=(Statement("word " * 50),))
    assert len(case_options([long], "made")[0][0]) < 70


# Controls


def test_the_controls_change_the_page(run):
    explorer = explore(run, CASES)
    assert explorer.default == Choice("one", "c1", 60)
    seen = [explorer.html.value]
    for control, value in (
        (explorer.level, 20),
        (explorer.case, "c2"),
        (explorer.truth, True),
        (explorer.model, "two"),
        (explorer.dataset, "other"),
    ):
        control.value = value
        assert explorer.html.value not in seen
        seen.append(explorer.html.value)
    assert seen[2] == page(run, CASES, "one", "c2", 20)
    assert seen[4] == page(run, CASES, "two", "c2", 20, truth=True)
    assert explorer.case.value == "d1" and seen[5] == explorer.page() == page(
        run, CASES, "two", "d1", 20, truth=True
    )


def test_only_what_can_be_chosen_is_offered(run):
    explorer = explore(run, CASES)
    assert (
        explorer.model in explorer.widget.children and explorer.dataset in explorer.widget.children
    )
    alone = explore(whole_run(models=("one",)), CASES[:2])
    assert alone.widget.children == (
        alone.filters, alone.case, alone.level, alone.truth, alone.html,
    )  # fmt: skip
    assert [value for _, value in alone.level.options] == list(LEVELS)


def test_the_bundle_holds_the_widget_and_a_still_page(run):
    explorer = explore(run, CASES)
    bundle = explorer._repr_mimebundle_(include=None, exclude=None)
    assert bundle[WIDGET]["model_id"] == explorer.widget.model_id
    assert bundle["text/html"] == still(run, CASES, explorer.default)
    assert STILL in text(bundle["text/html"]) and "Show the truth✓ right. Truth: Influenza" in text(
        bundle["text/html"]
    )
    assert (
        bundle["text/plain"] == "Explorer(cases=3, models=['one', 'two'], levels=[1, 20, 60, 100])"
    )


def test_without_ipywidgets_there_is_the_still_page(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    explorer = explore(run, CASES)
    bundle = explorer._repr_mimebundle_()
    assert explorer.widget is None and set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/html"] == explorer.page() == still(run, CASES, explorer.default)


# Any run, and filters


def test_a_saved_run_opens_without_its_cases_and_shows_its_replies(tmp_path):
    made_here = ask(
        tl.benchmark, made_cases(3), [FakeModel()], ["ce", "poc"], samples=3, run_dir=tmp_path
    )
    explorer = tl.explore(tl.load_run(tmp_path))
    assert len(explorer.listed) == 3 == len(explorer.case.options)
    first = explorer.case.options[0]
    assert first[0].startswith(f"{first[1]}: ") and made_here.answers["truth"][0] not in first[0]
    shown = text(explorer.html.value)
    assert "The dialogue so far" in shown and "Every request, with its replies" in shown
    bundle = explorer._repr_mimebundle_()
    assert STILL in text(bundle["text/html"]) and "the prompt" in text(bundle["text/html"])
    with pytest.raises(ValueError, match="holds no answer"):
        explore(replace(made_here, answers=made_here.answers.iloc[:0]))


def test_a_still_page_survives_the_copy_in_html(tmp_path):
    ask(tl.benchmark, made_cases(1), [FakeModel()], ["ce"], run_dir=tmp_path)
    code = f"import trustlab as tl\ntl.explore(tl.load_run({str(tmp_path)!r}))"
    bundle = tl.explore(tl.load_run(tmp_path))._repr_mimebundle_()
    cell = nbformat.v4.new_code_cell(code, outputs=[nbformat.v4.new_output("display_data", bundle)])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "look.ipynb")
    write_html(tmp_path / "look.ipynb")
    copy = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert STILL in copy and "How sure, method by method" in copy and "the prompt" in copy


@pytest.mark.parametrize("verdict", ["right", "wrong"])
def test_only_right_or_wrong_answers_are_offered(run, verdict):
    explorer = explore(run, CASES)
    explorer.verdict.value = verdict
    levels = [level for _, level in explorer.level.options]
    assert levels == [level for level in LEVELS if (level >= 60) == (verdict == "right")]
    explorer.truth.value = True
    for explorer.level.value in levels:
        assert f"{'✓' if verdict == 'right' else '✗'} {verdict}" in text(explorer.html.value)
    explorer.verdict.value = "not judged"
    assert list(explorer.case.options) == [] and NONE_PASSES in text(explorer.html.value)
    explorer.verdict.value = "all"
    assert [level for _, level in explorer.level.options] == list(LEVELS)


def test_only_answers_of_a_range_of_confidence_are_offered(run):
    explorer = explore(run, CASES)
    explorer.method.value = "entropy"
    low, high = run.spans["entropy"]
    assert (explorer.sure.min, explorer.sure.max) == (low, high) == explorer.sure.value
    explorer.sure.value = ((low + high) / 2, high)
    sure = passing(run, "one", method="entropy", between=explorer.sure.value)
    wanted = sorted(sure.loc[sure["case_id"] == "c1", "level"])
    assert [level for _, level in explorer.level.options] == wanted != list(LEVELS)
    explorer.method.value = "ce"  # its whole range
    assert [level for _, level in explorer.level.options] == list(LEVELS)


def test_a_missing_confidence_lies_in_no_range_but_passes_where_none_is_chosen():
    run = whole_run(models=("one",), samples=None)
    assert len(passing(run, "one")) == len(passing(run, "one", method="poc")) == len(run.answers)
    assert passing(run, "one", method="poc", between=(0, 1)).empty
    assert "poc" not in explore(run, CASES).methods
    none = replace(run, confidence=run.confidence.iloc[:0])
    assert len(explore(none, CASES).filters.children) == 1
