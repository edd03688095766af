"""The facts for a methods section are those of the run, and the costs stand beside them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import matplotlib
from asking import ask

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from fake_model import NAMES, TEXT_ONLY, Cold, FakeEncoder, FakeModel, made_case, made_cases

from trustlab.agents.medconf import MedConf
from trustlab.costs import method_costs
from trustlab.experiment import benchmark
from trustlab.paths import NOTICE
from trustlab.plots.figures import Figures
from trustlab.records import Parameters, Reply
from trustlab.reporting import report
from trustlab.run import Run
from trustlab.settings import Setup


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
