"""Asking: each question once, only what the methods need, and what is missing stays missing with
its reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from each import each
from fake_medconf import Shelf, profile_json
from fake_model import NAMES, TEXT_ONLY, FakeEncoder, FakeModel, made_cases

from trustlab.agents.medconf import MedConf
from trustlab.confidence import METHODS, select
from trustlab.levels import views
from trustlab.meaning.parts import Readers
from trustlab.prompts import ASKING, render
from trustlab.records import Generation, Parameters, Reply
from trustlab.retrieval import BM25
from trustlab.retrieval.corpora import load_corpus
from trustlab.runs.collect import Settings, collect

VIEWS = views(made_cases(3), [1, 100])
ALL, LIBRARY = select("all"), BM25(load_corpus())


class Chatty(FakeModel):
    taught = {}

    def reply(self, request, i):
        given = {"keyword": "[flu]", "profile": profile_json()}
        return Reply(given.get(request.purpose, "[Aspirin]"))


def asked_by(
    methods, model: FakeModel | None = None, settings: Settings | None = None
) -> tuple[FakeModel, list[Generation]]:
    model, how = model or FakeModel(), {"retriever": LIBRARY, "readers": Readers.of(FakeEncoder())}
    return model, collect(model, VIEWS, select(methods), settings, **how)


def unreadable_views(*texts: str):
    """The greedy answer about these patients comes without brackets; the samples are readable."""
    wanted = {render("diagnosis", patient=text) for text in texts}
    return lambda request, i: request.temperature == 0 and request.messages in wanted


def n_diagnoses(generations: list[Generation]) -> int:
    """How many different diagnoses were given."""
    return len({g.answer.text for g in generations if g.answer and g.answer.text})


def test_a_cases_own_question_reaches_every_prompt_and_is_refused_before_any() -> None:
    shown = views([replace(made_cases(1)[0], question="Which drug is best?")], [100])
    chat, taught = Chatty(), FakeModel()
    for model, doctors in (taught, ()), (chat, (taught,)):
        with pytest.raises(ValueError, match="'Which drug is best.'.*questions='diagnosis'"):
            collect(model, shown, select(["ce", "agreement"]), doctors=doctors)
    assert not chat.asked and not taught.asked
    methods = select(["ce", "cot_ce", "topk_ce", "p_true", "medconf", "agreement"])
    collect(chat, shown, methods, retriever=Shelf())
    assert {*ASKING} == {"judge", *(r.purpose for r in chat.requests)}
    assert all("\nWhich drug is best?\n" in r.messages[-1][1] for r in chat.requests)


def test_each_question_is_asked_once_whatever_number_of_methods_read_it():
    model, generations = asked_by("all")
    purposes = ("diagnosis", "samples", "ce", "cot_ce", "topk_ce", "p_true", "evidence", "doctor")
    once = dict.fromkeys(("keyword", "profile"), n_diagnoses(generations))
    assert 1 < once["keyword"] < len(VIEWS)
    assert Counter(r.purpose for r in model.requests) == dict.fromkeys(purposes, len(VIEWS)) | once
    drawn = {"samples": 90, "p_true": 90, "doctor": 18}
    assert model.n_replies == dict.fromkeys(purposes, 6) | drawn | once
    assert len(set(model.requests)) == len(model.requests)
    first = model.asked[0]
    for view, greedy, samples in zip(VIEWS, first[::2], first[1::2], strict=True):
        assert greedy.messages == samples.messages == render("diagnosis", patient=view.text)
        assert (greedy.n, greedy.temperature, samples.n, samples.temperature) == (1, 0.0, 15, 0.5)
    for view, g in zip(VIEWS, generations, strict=True):
        assert (g.case_id, g.level, g.model) == (view.case.case_id, view.level, "fake")
        assert (g.n_statements, g.n_total) == (view.n_statements, view.n_total)
        assert g.answer is not None and g.answer.trace is not None
        assert "".join(g.answer.trace.tokens) == g.answer.text


@each(
    ("methods", "asked"),
    [
        (["asp"], {"diagnosis": {"logprobs"}}),
        (["entropy"], {"diagnosis": {"logprobs", "distributions"}}),
        (["pmi"], {"diagnosis": {"logprobs", "prior"}}),
        (["poc"], {"diagnosis": set(), "samples": set()}),
        (["mc_nse", "asp"], {"diagnosis": {"logprobs"}, "samples": {"logprobs"}}),
        (["p_true", "poc"], {"diagnosis": set(), "samples": set(), "p_true": set()}),
        (["agreement", "rdc"], {"diagnosis": set(), "doctor": set()}),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_only_what_the_methods_need_is_asked(methods, asked):
    model, generations = asked_by(methods)
    assert {r.purpose: set(r.want) for r in model.requests} == asked
    assert len(model.requests) == len(VIEWS) * len(asked)
    for generation in generations:
        for method in select(methods):
            assert method.evaluate(generation).missing == ""


def test_settings_reach_the_requests():
    asking = Parameters(
        n_samples=4, sample_temperature=0.9, p_true_temperature=0.7, renyi_alpha=2.0,
        n_alternatives=3, n_doctors=2, doctor_temperature=0.6,
    )  # fmt: skip
    names = ("answer", "score", "reasoning", "guesses")
    lengths: Any = dict(zip((f"max_tokens_{n}" for n in names), (20, 5, 30, 40), strict=True))
    medconf = MedConf(max_tokens_keyword=50, max_tokens_profile=60, max_tokens_evidence=70)
    settings = Settings(asking, seed=11, **lengths, medconf=medconf)
    model, generations = asked_by("all", settings=settings)
    assert {(r.purpose, r.n, r.temperature, r.seed, r.max_tokens) for r in model.requests} == {
        ("diagnosis", 1, 0.0, 11, 20), ("samples", 4, 0.9, 11, 20),
        ("ce", 1, 0.0, 11, 5), ("p_true", 4, 0.7, 11, 5),
        ("cot_ce", 1, 0.0, 11, 30), ("topk_ce", 1, 0.0, 11, 40),
        ("keyword", 1, 0.0, 11, 50), ("profile", 1, 0.0, 11, 60), ("evidence", 1, 0.0, 11, 70),
        ("doctor", 2, 0.6, 11, 512),
    }  # fmt: skip
    assert {
        (r.renyi_alpha, r.n_alternatives) for r in model.requests if "distributions" in r.want
    } == {(2.0, 3)}
    assert {(g.seed, g.parameters) for g in generations} == {(11, asking)}


def test_the_probes_ask_about_the_answer_that_was_given():
    model, generations = asked_by(["ce", "cot_ce", "topk_ce", "p_true"])
    for view, generation in zip(VIEWS, generations, strict=True):
        assert generation.answer is not None and generation.answer.text in NAMES
        for purpose in ("ce", "cot_ce", "topk_ce", "p_true"):
            wanted = render(purpose, patient=view.text, answer=generation.answer.text)
            assert [r.purpose for r in model.requests if r.messages == wanted] == [purpose]
            assert len(generation.probes[purpose]) == (15 if purpose == "p_true" else 1)


def test_the_library_that_is_given_is_searched():
    shelf, two = Shelf(), Settings(medconf=MedConf(n_passages=2))
    given = collect(FakeModel(), VIEWS, select(["medconf"]), two, retriever=shelf)
    assert {g.assessment.passages for g in given if g.assessment} == {("p3", "p1")}
    assert {k for _, k in shelf.asked} == {2} and len(shelf.asked) == n_diagnoses(given)


def test_an_assessor_is_asked_about_the_answers_and_the_model_gives_them():
    model, assessor = FakeModel(), FakeModel("another")
    how = {"retriever": Shelf(), "assessor": assessor}
    generations = collect(model, VIEWS, select(["medconf", "ce"]), **how)
    assert [{r.purpose for r in call} for call in model.asked] == [{"diagnosis"}, {"ce"}]
    asked = [{r.purpose for r in call} for call in assessor.asked]
    assert asked == [{"keyword"}, {"profile"}, {"evidence"}]
    assert {g.model for g in generations} == {"fake"}


def test_no_probe_is_asked_about_an_unreadable_answer_and_it_is_missing_for_every_method():
    bad = VIEWS[1]
    model, generations = asked_by("all", FakeModel(unreadable=unreadable_views(bad.text)))
    probes = dict.fromkeys(("ce", "cot_ce", "topk_ce", "p_true", "evidence"), 5)
    once = dict.fromkeys(("keyword", "profile"), n_diagnoses(generations))
    every = dict.fromkeys(("diagnosis", "samples", "doctor"), 6)
    assert Counter(r.purpose for r in model.requests) == every | probes | once
    later = [r for call in model.asked[1:] for r in call if r.purpose != "doctor"]
    told = [r.messages[-1][1].partition("</patient>")[0] for r in later]
    assert f"<patient>\n{bad.text}\n" not in told
    assert [bool(g.probes) for g in generations] == [v is not bad for v in VIEWS]
    for view, generation in zip(VIEWS, generations, strict=True):
        missing = {m.name: m.evaluate(generation).missing for m in ALL}
        if view is bad:
            assert set(missing.values()) == {"unreadable answer"}
        else:
            assert "medical encoder" in missing.pop("semantic_similarity_med")
            assert set(missing.values()) == {""}


def test_unreadable_samples_are_dropped():
    model, generations = asked_by(
        "all", FakeModel(unreadable=lambda r, i: r.purpose == "samples" and i in (0, 7, 8))
    )
    samples = [r for r in model.requests if r.purpose == "samples"]
    for request, generation in zip(samples, generations, strict=True):
        kept = [model.reply(request, i) for i in range(15) if i not in (0, 7, 8)]
        assert [s.raw for s in generation.samples or ()] == [reply.text for reply in kept]
        assert generation.similarity is not None and generation.similarity.shape == (12, 12)
        most = Counter(reply.text for reply in kept).most_common(1)[0][1]
        assert METHODS["poc"].score(generation) == most / 12


def test_text_alone_leaves_black_box_methods_as_they_are_and_white_ones_missing_with_the_reason():
    whole, black = asked_by("all")[1], asked_by("all", FakeModel(provides=TEXT_ONLY))
    assert {r.want for r in black[0].requests} == {frozenset()}
    for a, b in zip(whole, black[1], strict=True):
        for method in ALL:
            found = method.evaluate(b)
            if method.access == "white":
                assert found.missing in {
                    f"the backend gives no {s}" for s in ("logprobs", "distributions", "prior")
                }
            else:
                assert found == method.evaluate(a)
