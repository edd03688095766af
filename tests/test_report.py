"""The facts for a methods section are those of the run, and the costs stand beside them."""

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
from trustlab.costs import method_costs
from trustlab.paths import NOTICE
from trustlab.plots.figures import Figures
from trustlab.records import Parameters, Reply
from trustlab.reporting import CHOICES, report
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
"""Parameters that stand in other lines."""


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
    return report(run, **options).text


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
def test_every_run_has_its_facts_a_line_each(name):
    words = told(RUNS[name]())
    assert not re.findall(r"\n\n|\bnan\b|None|\{|\}|: *\n(?!  )|, *\n|, ,", words)
    assert words.startswith("- Models: ") and words.endswith(NOTICE)
    assert all(line.startswith(("- ", "  - ")) for line in words.splitlines())


def test_what_was_asked_of_whom_stands_first():
    run = made(1, levels=[100], methods=["asp"])
    assert told(run).splitlines()[:5] == [
        "- Models: fake (revision r1)",
        f"- Data: made (cases: 1); fingerprint {run.parameters['cases_sha256']}",
        "- Information levels: 100 % of a case's statements, at least one",
        "- Answers: 1 asked for; 0 not had or not graded, which count for nothing; 0 not read as a"
        " diagnosis, which count as wrong",
        "- Decoding: greedy; at most 64 tokens; seed 0",
    ]


def test_several_models_sets_and_levels_are_listed(twelve):
    sets = {
        name: table.assign(dataset=np.where(table["case_id"] < "c05", "one", "two"))
        for name, table in (("answers", twelve.answers), ("confidence", twelve.confidence))
    }
    words = told(replace(twelve, **sets))
    assert "- Models: fake (revision r1), embedded (revision r1)\n" in words
    assert "- Data: one (cases: 5), two (cases: 7); fingerprint" in words
    assert "- Information levels: 1, 100 %" in words and "- Answers: 48 asked for" in words
    assert "say nothing about large ones: embedded\n" in words


def test_samples_are_told_only_where_a_method_reads_them():
    assert "K = " not in told(made(1, methods=["asp", "ce", "random"]))
    assert "K = 4 from the same prompt, temperature 0.7" in told(
        made(1, methods=["poc"], samples=4, temperature=0.7)
    )
    assert "P(True): K = 4 replies, temperature 1" in told(made(1, methods=["p_true"], samples=4))
    assert "Panel: K = 3 doctors, temperature 0.5" in told(made(1, methods=["agreement"]))


def test_methods_stand_by_family_with_their_number():
    words = told(made(1, methods=["poc", "asp", "num_set", "random"]))
    assert "higher is more confident: 4\n" in words
    for line in ("token (1): asp", "consistency (2): poc, num_set", "baseline (1): random"):
        assert f"  - {line}\n" in words


def test_open_choices_are_told_where_a_method_of_the_run_reads_them():
    words = told(
        made(1, methods=["renyi_divergence", "ecc"], parameters=Parameters(renyi_alpha=2.0))
    )
    assert "renyi_alpha = 2.0, eigenvalue_cut = 0.9, entailment_context = answer\n" in words
    assert "renyi_alpha" not in told(made(1, methods=["asp"]))
    assert set(CHOICES) == {f.name for f in fields(Parameters)} - TOLD_ELSEWHERE


def test_how_replies_were_read_is_told_where_it_was_chosen():
    strict, thought = "Replies read: in the printed form alone", "thought stands in"
    assert strict in told(made(1, methods=["asp"], reading="strict"))
    panel = told(made(1, methods=["agreement"], reasoning_from="thought"))
    assert thought in panel and strict not in panel
    assert thought not in told(made(1, methods=["asp"], reasoning_from="thought"))


def test_the_judge_of_entailment_is_named_as_a_stand_in_where_it_is_one():
    run = made(1, methods=["num_set"])
    assert "Reader, entailment: rule-based proxy (word rules, knowledge table" in told(run)
    run.parameters["entailment"] = {"name": "nli", "stand_in": False, "revision": "nli 0123"}
    assert "Reader, entailment: nli 0123\n" in told(run)
    assert "entailment" not in told(made(1, methods=["asp"]))


def test_medconfs_library_assessor_and_ablations_are_told():
    run = made(1, methods=["medconf"])
    library = f"at most 15 passages of {run.parameters['retriever']}"
    assert f"- MedConf: assessed by the model itself; {library}\n" in told(run)
    parts = MedConf(retrieval=False, importance=False, structure=False)
    off = told(made(1, methods=["medconf"], medconf=parts))
    assert "; no library; switched off: structure, importance\n" in off
    other = told(made(1, methods=["medconf"], assessor=FakeModel("judge")))
    assert "assessed by judge (revision r1); at most" in other


def test_grader_encoder_and_versions_come_from_the_run():
    run = made(1, methods=["semantic_similarity"], grader="exact")
    words = told(run)
    assert "by the grader: exact\n" in words and "Reader, encoder: letters r1\n" in words
    versions = run.manifest()["versions"]
    (line,) = [line for line in words.splitlines() if line.startswith("- Computed with: ")]
    assert all(f"{name} {version}" in line for name, version in versions.items())


def test_intervals_are_told_with_their_draws_and_seed(twelve):
    words = report(twelve, n_draws=1000, seed=7).text
    assert "draws: 1,000, seed 7; none below 10 cases" in words


def test_what_is_missing_is_told_by_model_with_its_reason(twelve):
    gone = int(twelve.confidence["confidence"].isna().sum())
    assert f"- Confidences: 240, of which {gone} missing\n" in told(twelve)
    assert "embedded, no value: asp (the backend gives no logprobs)\n" in told(twelve)
    assert "of which 0 missing\n" in told(made(1, methods=["random", "poc"]))


def test_a_caution_is_told_of_samples_that_are_all_alike(tmp_path):
    run = made(3, FakeModel("other"), Cold(), methods=["poc", "ce"])
    alike = "fake: all samples alike (temperature ignored?)"
    assert f"- Caution: {alike}\n" in told(run)
    assert "Caution" not in told(made(3, methods=["poc", "ce"]))

    def caption(*methods: str, **how: Any) -> str:
        figure, axes = plt.subplots()
        table = pd.DataFrame({"method": methods} if methods else {"metric": ["accuracy"]})
        Figures("01", Setup(run_dir=tmp_path), run)(axes, table, "x", **how)
        plt.close(figure)
        return " ".join(text.get_text().replace("\n", " ") for text in figure.texts)

    shown = run.answers[run.answers["model"].eq("other")]
    assert alike in caption("poc") and alike in caption()
    assert alike not in caption("ce") + caption("poc", answers=shown)


def test_a_caution_is_told_of_a_server_that_changed_its_model():
    run = made(1, Served(FakeModel(), A=120, B=40), methods=["ce"])  # type: ignore[arg-type]
    words = "the server changed its model during the run: A 120, B 40 replies"
    assert f"- Caution: fake: {words}\n" in told(run)


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
    assert "- Answers: 3 asked for; 1 not had or not graded" in told(run)
    assert "; 1 not read as a diagnosis" in told(run)


def test_replies_made_and_taken_from_the_cache_are_counted(tmp_path):
    options = {"methods": ["poc"], "levels": [1], "cache": tmp_path / "replies.sqlite"}
    assert "- Replies used: 4 made in this run, 0 from a cache\n" in told(made(1, **options))
    assert "- Replies used: 0 made in this run, 4 from a cache\n" in told(made(1, **options))


# Costs


def test_generations_are_not_needed(twelve):
    bare = replace(twelve, generations=())
    assert report(bare).text == report(twelve).text


def test_plain_text_holds_the_facts_and_the_costs(twelve):
    found = report(twelve, usd_in=1, usd_out=2)
    pd.testing.assert_frame_equal(found.costs, method_costs(twelve, 1, 2))
    words = str(found)
    assert repr(found) == words and words.startswith(found.text)
    row = next(line for line in words.splitlines() if line.endswith("  poc"))
    assert row.split()[:5] == ["fake", "diagnosis,", "samples", "4", "80"]  # replies, tokens in
    assert "US dollars" in words and "US dollars" not in str(report(twelve))


def test_methods_that_cost_the_same_share_a_row(twelve):
    shown = report(twelve).shown
    alone = shown[shown["requests"].eq("diagnosis")]
    assert alone["methods"].tolist() == ["asp, random", "asp", "random"]
    assert "no value: the backend gives no logprobs" in alone["remarks"].iloc[1]
    assert (shown == shown.astype(str)).all(axis=None)


def test_html_escapes_every_name():
    run = made(1, FakeModel("<script>alert(1)</script>"), methods=["asp"])
    page = report(run)._repr_html_()
    assert "<script>" not in page and page.count("&lt;script&gt;") == 2 and NOTICE in page
