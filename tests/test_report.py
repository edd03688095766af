"""The methods paragraph says what the run says, in correct English whatever the counts; the costs
stand beside it."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import matplotlib
from asking import ask

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from fake_model import (
    NAMES,
    TEXT_ONLY,
    Cold,
    FakeEncoder,
    FakeModel,
    Served,
    made_case,
    made_cases,
)

from trustlab.agents import MedConf
from trustlab.metrics import metrics_table
from trustlab.metrics.costs import pareto_table
from trustlab.paths import NOTICE
from trustlab.records import Parameters, Reply
from trustlab.reporting import CHOICES, Figures, Report, report
from trustlab.run import Run, benchmark
from trustlab.settings import Setup

TOLD_ELSEWHERE = {
    "n_samples",
    "sample_temperature",
    "p_true_temperature",
    "n_doctors",
    "doctor_temperature",
    "reading",
    "reasoning_from",
}
"""Parameters that have a sentence of their own."""


def made(cases=2, *models: FakeModel, **options: Any) -> Run:
    """A small run with everything that could be slow replaced."""
    defaults = {
        "methods": ["asp", "poc", "ce", "medconf", "random"],
        "samples": 3,
        "levels": [1, 100],
        "encoder": FakeEncoder(),
    }
    given = made_cases(cases) if isinstance(cases, int) else cases
    return ask(benchmark, given, models or [FakeModel()], **{**defaults, **options})


def told(run: Run, **options: Any) -> str:
    return report(run, n_draws=20, **options).paragraph


class Other(FakeModel):
    """Answers with a word that is no name of the knowledge table, so that it is always wrong."""

    def reply(self, request, i):
        reply = super().reply(request, i)
        return (
            replace(reply, text="[Nothing known]")
            if request.purpose in ("diagnosis", "samples")
            else reply
        )


@pytest.fixture(scope="module")
def twelve() -> Run:
    """Twelve cases at two levels, two models, one of them named as an embedded one that shows its
    words only."""
    cases = [made_case(f"c{i:02d}", NAMES[i % len(NAMES)], 11 + i) for i in range(12)]
    return made(cases, FakeModel(), FakeModel("embedded", provides=TEXT_ONLY))


RUNS = {
    "one of everything": lambda: made(1, levels=[100], methods=["asp"], samples=1),
    "one sample": lambda: made(1, levels=[1], methods=["poc"], samples=1),
    "two models": lambda: made(
        2, FakeModel(), FakeModel("other", provides=TEXT_ONLY), methods="all", levels=[1]
    ),
    "one embedded": lambda: made(1, FakeModel("embedded")),
    "two embedded": lambda: made(1, FakeModel("embedded"), FakeModel("embedded-closed")),
    "baselines alone": lambda: made(1, methods=["random"]),
    "a panel of one": lambda: made(1, methods=["agreement"], parameters=Parameters(n_doctors=1)),
    "nothing readable": lambda: made(2, FakeModel(unreadable=lambda r, i: True)),
    "one unreadable": lambda: made(
        2, FakeModel(unreadable=lambda r, i: "for b?" in r.messages[1][1]), levels=[1]
    ),
    "parts switched off": lambda: made(1, medconf=MedConf(retrieval=False, importance=False)),
    "one passage": lambda: made(1, medconf=MedConf(n_passages=1), assessor=FakeModel("judge")),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_english_is_correct_whatever_the_counts(name):
    words = told(RUNS[name]())
    assert not re.findall(
        r"\b1 (cases|answers|levels|models|methods|samples|replies|tokens|passages|doctors|draws"
        r"|data sets)\b",
        words,
    )
    assert not re.findall(
        r"\b1 information levels|\b1 confidence methods|\b1 model replies|\b1 confidences\b", words
    )
    assert not re.findall(
        r"\b(?!1\b)\d[\d,]* (case|answer|method|sample|reply|token|passage|doctor|draw)\b", words
    )
    assert not re.findall(r"(?<![\d,])1 (were|count|are)\b|\b(?!1 )\d+ (was|counts|is) ", words)
    assert not re.findall(r"  | [,;.]|,,|\.\.|;;|\(\)|\bnan\b|None|\{|\}", words)
    sentences = re.split(r"(?<=[a-z0-9)'])\. (?=[A-Z]|embedded)", words)
    assert len(sentences) > 6 and words.endswith(NOTICE)


def test_what_was_asked_of_whom_stands_first():
    run = made(1, levels=[100], methods=["asp"])
    assert told(run).startswith(
        "We asked the language model fake (revision r1) for a diagnosis in 1 case of the data set"
        " made, at 1 information level (100 % of a case's statements, at least one); the"
        f" fingerprint of the cases is {run.parameters['cases_sha256']}. 1 answer was asked for."
        " Answers were decoded greedily, with at most 64 tokens (seed 0). On each answer, 1"
        " confidence method was computed, higher meaning more confident (token, 1: asp)."
    )


def test_several_models_sets_and_levels_are_listed(twelve):
    both = replace(
        twelve,
        answers=twelve.answers.assign(
            dataset=np.where(twelve.answers["case_id"] < "c05", "one", "two")
        ),
    )
    both = replace(
        both,
        confidence=both.confidence.assign(
            dataset=np.where(both.confidence["case_id"] < "c05", "one", "two")
        ),
    )
    words = told(both)
    assert "the language models fake (revision r1) and embedded (revision r1)" in words
    assert (
        "5 cases of the data set one and 7 cases of the data set two, each at 2 information levels"
        " (1 and 100 %" in words
    )
    assert "48 answers were asked for" in words
    assert "with fewer than 10 cases in a data set, no intervals are given" in words


def test_embedded_models_are_named_as_very_small():
    assert "very small" not in told(made(1))
    one = told(made(1, FakeModel("embedded")))
    assert (
        "embedded is a very small model of the project's own, which knows one small world: results"
        " with it say nothing" in one
    )
    two = told(made(1, FakeModel("embedded"), FakeModel("embedded-closed")))
    assert (
        "embedded and embedded-closed are very small models of the project's own, which know one"
        " small world: results with them" in two
    )


def test_samples_are_told_only_where_a_method_reads_them():
    assert "K = " not in told(made(1, methods=["asp", "ce", "random"]))
    assert "K = 4 samples came from the same prompt at temperature 0.7" in told(
        made(1, methods=["poc"], samples=4, temperature=0.7)
    )
    assert "P(True) reads 4 replies at temperature 1" in told(
        made(1, methods=["p_true"], samples=4)
    )
    assert "a panel of 3 doctors replied at temperature 0.5" in told(made(1, methods=["agreement"]))


def test_methods_stand_by_family_with_their_number():
    words = told(made(1, methods=["poc", "asp", "num_set", "random"]))
    assert "4 confidence methods were computed, higher meaning more confident" in words
    assert "(token, 1: asp; consistency, 2: poc, num_set; baseline, 1: random)" in words


def test_open_choices_are_told_where_a_method_of_the_run_reads_them():
    words = told(
        made(1, methods=["renyi_divergence", "ecc"], parameters=Parameters(renyi_alpha=2.0))
    )
    assert "with renyi_alpha = 2.0, eigenvalue_cut = 0.9, entailment_context = answer." in words
    assert "renyi_alpha" not in told(made(1, methods=["asp"]))
    assert set(CHOICES) == {f.name for f in fields(Parameters)} - TOLD_ELSEWHERE


def test_how_replies_were_read_is_told_where_it_was_chosen():
    strict, thought = "in the form that was asked for alone.", "A doctor's thought stood in"
    assert strict in told(made(1, methods=["asp"], reading="strict"))
    panel = told(made(1, methods=["agreement"], reasoning_from="thought"))
    assert thought in panel and strict not in panel
    assert thought not in told(made(1, methods=["asp"], reasoning_from="thought"))


def test_the_judge_of_entailment_is_named_as_a_stand_in_where_it_is_one():
    words = told(made(1, methods=["num_set"]))
    assert (
        "Entailment was judged by a rule-based proxy, not by a model of natural language"
        " inference: "
        "rule-based proxy (word rules, knowledge table" in words
    )
    run = made(1, methods=["num_set"])
    run.parameters["entailment"] = {"name": "nli", "stand_in": False, "revision": "nli 0123"}
    assert "Entailment was judged by nli 0123." in told(run)
    assert "Entailment" not in told(made(1, methods=["asp"]))


def test_medconfs_library_assessor_and_ablations_are_told():
    run = made(1, methods=["medconf"])
    library = f"at most 15 passages of the library ({run.parameters['retriever']})"
    assert f"MedConf's evidence was assessed by the model itself from {library}." in told(run)
    off = told(
        made(
            1,
            methods=["medconf"],
            medconf=MedConf(retrieval=False, importance=False, structure=False),
        )
    )
    assert "from no library, with structure and importance switched off." in off
    other = told(made(1, methods=["medconf"], assessor=FakeModel("judge")))
    assert "was assessed by judge (revision r1) from at most" in other


def test_grader_encoder_and_versions_come_from_the_run():
    run = made(1, methods=["semantic_similarity"], grader="exact")
    words = told(run)
    assert (
        "decided by the grader 'exact'." in words and "compared by the encoder letters r1." in words
    )
    versions = run.manifest()["versions"]
    assert f"Computed with trustlab {versions['trustlab']} (numpy {versions['numpy']}, " in words


def test_intervals_are_told_with_their_draws_and_seed(twelve):
    words = report(twelve, n_draws=1, seed=7).paragraph
    assert (
        "95 % percentile bootstrap intervals (1 draw of cases with all their levels, seed 7)."
        in words
    )
    assert "(25 draws of cases" in report(twelve, n_draws=25).paragraph
    assert "with fewer than 10 cases in a data set, no intervals are given." in told(
        made(9, methods=["random"], levels=[1])
    )


def test_what_is_missing_is_told_by_model_with_its_reason(twelve):
    words = told(twelve)
    gone = int(twelve.confidence["confidence"].isna().sum())
    assert (
        f"Of 240 confidences, {gone} are missing; no value of embedded for asp: the backend gives"
        " no logprobs" in words
    )
    assert "No confidence is missing." in told(made(1, methods=["random", "poc"]))


def test_a_caution_is_told_of_samples_that_are_all_alike(tmp_path):
    run = made(3, FakeModel("other"), Cold(), methods=["poc", "ce"])
    alike = "fake: all samples alike (temperature ignored?)"
    assert f" A caution on {alike}. " in told(run)
    assert "A caution" not in told(made(3, methods=["poc", "ce"]))
    assert report(run, n_draws=20).note == alike

    def caption(*methods: str, **how: Any) -> str:
        figure, axes = plt.subplots()
        table = pd.DataFrame({"method": methods} if methods else {"metric": ["accuracy"]})
        Figures("01", Setup(run_dir=tmp_path), run)(axes, table, "x", **how)
        plt.close(figure)
        return " ".join(text.get_text().replace("\n", " ") for text in figure.texts)

    shown = run.answers[run.answers["model"].eq("other")]
    assert alike in caption("poc") and alike in caption()
    assert alike not in caption("ce") + caption("poc", answers=shown)


def test_a_figure_of_several_models_on_a_data_set_is_called_and_counted_by_the_data_set(tmp_path):
    answers = pd.DataFrame({"model": ["a", "b"] * 2, "dataset": ["d", "d", "e", "e"]})
    answers = answers.assign(case_id="c", level=100, correct=1.0)
    show = Figures("02", Setup(run_dir=tmp_path), answers=answers, models=["a", "b"], by_table=True)

    def caption(table: pd.DataFrame) -> str:
        figure, axes = plt.subplots()
        show(axes, table.assign(value=1.0), "x", message="What it shows.")
        plt.close(figure)
        return " ".join(text.get_text() for text in figure.texts)

    words = caption(answers[answers["dataset"].eq("e")])
    assert words.startswith("What it shows. models a, b · data e · 1 case, 2 answers")
    assert caption(answers[1:2]).startswith("What it shows. model b · data d · 1 case, 1 answer ")
    names = sorted(path.name for path in (tmp_path / "figures").glob("*.png"))
    assert names == ["02_x_b.png", "02_x_e.png"]


def test_a_caution_is_told_of_a_server_that_changed_its_model():
    run = made(1, Served(FakeModel(), A=120, B=40), methods=["ce"])  # type: ignore[arg-type]
    words = "the server changed its model during the run: A 120, B 40 replies"
    assert f" A caution on fake: {words}. " in told(run)
    assert report(run, n_draws=20).note == f"fake: {words}"


def test_unreadable_and_failed_answers_are_counted_apart():
    class Failing(FakeModel):
        def reply(self, request, i):
            if request.purpose == "diagnosis" and "Question 0 for a?" in request.messages[-1][1]:
                return Reply(None, missing="HTTP 500", finish="error")
            return super().reply(request, i)

    run = made(
        3,
        Failing(unreadable=lambda r, i: "for b?" in r.messages[1][1]),
        levels=[1],
        methods=["asp"],
    )
    assert (
        "3 answers were asked for; 1 could not be had or graded and counts for nothing; 1 could not"
        " be read as a diagnosis and" in told(run)
    )


def test_replies_made_and_taken_from_the_cache_are_counted(tmp_path):
    options = {"methods": ["poc"], "levels": [1], "cache": tmp_path / "replies.sqlite"}
    assert "4 model replies were used: 4 made in this run and 0 taken from a cache" in told(
        made(1, **options)
    )
    assert "4 model replies were used: 0 made in this run and 4 taken from a cache" in told(
        made(1, **options)
    )
    assert "1 model reply was used: 1 made" in told(made(1, methods=["asp"], levels=[1]))


# Costs and the figure


def test_costs_and_front_are_those_of_the_tables(twelve):
    metrics = metrics_table(twelve, n_draws=20, min_per_class=1)
    found = report(twelve, usd_in=1, usd_out=2, metrics=metrics, cost="replies")
    assert (
        list(found.costs["model"].unique()) == ["fake", "embedded"]
        and found.costs["usd"].notna().all()
    )
    assert found.pareto is not None
    pd.testing.assert_frame_equal(found.pareto, pareto_table(found.costs, metrics, cost="replies"))
    assert found.pareto["on_front"].any()


def test_generations_are_not_needed(twelve):
    bare = replace(twelve, generations=())
    assert report(bare, n_draws=20).paragraph == report(twelve, n_draws=20).paragraph


def test_plain_text_holds_the_paragraph_the_costs_and_the_notice(twelve):
    found = report(twelve, n_draws=20)
    words = str(found)
    assert repr(found) == words
    assert max(map(len, words.split("\n\n")[0].splitlines())) <= 100
    assert words.startswith("We asked the language models") and words.endswith(NOTICE)
    assert "\nfake, 24 answers\n" in words and "\nembedded, 24 answers\n" in words
    row = next(line for line in words.splitlines() if line.endswith(" poc"))
    assert row.split()[:4] == ["diagnosis,", "samples", "4", "80"]  # requests, replies, tokens in
    assert "US dollars" not in words and "a prompt is counted once a request." in " ".join(
        words.split()
    )


def test_methods_that_cost_the_same_share_a_row(twelve):
    lines = str(report(twelve, n_draws=20)).splitlines()
    assert [line.split()[-2:] for line in lines if line.endswith("random")] == [
        ["asp,", "random"],
        ["0", "random"],
    ]
    alone = next(
        line for line in lines if line.endswith(" asp")
    )  # the words-only model gives it no value
    assert "no value: the backend gives no logprobs" in alone


def test_rates_and_the_way_of_counting_stand_over_the_costs(twelve):
    words = " ".join(str(report(twelve, {"fake": 1}, 2.5, n_draws=20, prompts="each")).split())
    assert (
        "a prompt is counted for each of its replies; US dollars for a million tokens: fake 1 in,"
        " 2.5 out." in words
    )


def test_seconds_that_the_cache_does_not_know_are_explained_once(tmp_path):
    for _ in range(2):
        run = made(1, methods=["asp", "poc"], levels=[1], cache=tmp_path / "replies.sqlite")
    words = " ".join(str(report(run, n_draws=20)).split())
    assert words.count("replies came from the cache") == 1 and "remarks" not in words


def test_html_escapes_every_name():
    run = made(1, FakeModel("<script>alert(1)</script>"), methods=["asp"])
    page = report(run, n_draws=20)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and NOTICE in page


def test_the_figure_shows_one_model_and_data_set_with_its_caption(twelve):
    found = report(twelve, metrics=metrics_table(twelve, n_draws=20, min_per_class=1))
    ax = found.figure("embedded", "made")
    words = " ".join(text.get_text().replace("\n", " ") for text in ax.figure.texts)
    assert "model embedded (a very small model)" in words and "12 cases, 24 answers" in words
    assert ax.get_xlabel() == "level-stratified AUROC, 0 to 1"
    assert "tokens" in [text.get_text() for text in ax.texts]
    assert "The answer alone" in [name.get_text() for name in ax.get_yticklabels()]
    first = found.figure()
    assert "model fake" in " ".join(text.get_text() for text in first.figure.texts)
    plt.close("all")


def test_a_figure_of_what_the_run_does_not_have_is_refused(twelve):
    found = report(twelve, n_draws=20)
    with pytest.raises(ValueError, match="model is 'gpt'; this run has fake, embedded"):
        found.figure("gpt")
    with pytest.raises(ValueError, match="dataset is 'ddxplus'; this run has made"):
        found.figure(dataset="ddxplus")
    nothing = replace(found, pareto=None)
    with pytest.raises(ValueError, match="no level-stratified AUROC"):
        nothing.figure()


def test_metrics_without_auroc_leave_the_front_out(twelve):
    metrics = metrics_table(twelve, n_draws=20)
    found = report(twelve, metrics=metrics[metrics["metric"] != "auroc"])
    assert found.pareto is None and isinstance(found, Report) and len(found.costs) == 10
