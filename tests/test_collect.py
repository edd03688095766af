"""Asking: each question once, only what the methods need, and what is missing stays missing with
its reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from each import each
from fake_medconf import Shelf
from fake_model import EVERYTHING, NAMES, TEXT_ONLY, FakeEncoder, FakeModel, made_cases, prompt_of

from trustlab.agents.medconf import MedConf
from trustlab.collect import Settings, collect
from trustlab.confidence import METHODS, select
from trustlab.levels import views
from trustlab.meaning.parts import Readers
from trustlab.models.cache import CachedModel
from trustlab.prompts import render
from trustlab.records import Assessment, Generation, Parameters
from trustlab.retrieval import BM25, load_corpus

VIEWS = views(made_cases(3), [1, 100])
ALL = select("all")


def asked_by(
    methods, model: FakeModel | None = None, settings: Settings | None = None
) -> tuple[FakeModel, list[Generation]]:
    model = model or FakeModel()
    return model, collect(
        model, VIEWS, select(methods), settings, readers=Readers.of(FakeEncoder())
    )  # type: ignore[arg-type]


def unreadable_views(*texts: str):
    """The greedy answer about these patients comes without brackets; the samples are readable."""
    wanted = {render("diagnosis", patient=text) for text in texts}
    return lambda request, i: request.temperature == 0 and request.messages in wanted


def n_diagnoses(generations: list[Generation]) -> int:
    """How many different diagnoses were given."""
    return len({g.answer.text for g in generations if g.answer and g.answer.text})


# What is asked


def test_each_question_is_asked_once_whatever_number_of_methods_read_it():
    model, generations = asked_by("all")
    purposes = ("diagnosis", "samples", "ce", "cot_ce", "topk_ce", "p_true", "evidence", "doctor")
    once = dict.fromkeys(("keyword", "profile"), n_diagnoses(generations))
    assert 1 < once["keyword"] < len(VIEWS)
    assert Counter(r.purpose for r in model.requests) == dict.fromkeys(purposes, len(VIEWS)) | once
    assert (
        model.n_replies
        == dict.fromkeys(purposes, 6) | {"samples": 90, "p_true": 90, "doctor": 18} | once
    )
    assert len(set(model.requests)) == len(model.requests)


@each(
    ("methods", "asked"),
    [
        (["information_level"], {"diagnosis": set()}),
        (["asp"], {"diagnosis": {"logprobs"}}),
        (["asp", "perplexity", "msp"], {"diagnosis": {"logprobs"}}),
        (["entropy"], {"diagnosis": {"logprobs", "distributions"}}),
        (["fisher_rao", "renyi_divergence"], {"diagnosis": {"logprobs", "distributions"}}),
        (["pmi"], {"diagnosis": {"logprobs", "prior"}}),
        (["conditional_pmi"], {"diagnosis": {"logprobs", "distributions", "prior"}}),
        (["poc"], {"diagnosis": set(), "samples": set()}),
        (["semantic_similarity"], {"diagnosis": set(), "samples": set()}),
        (["mc_se"], {"diagnosis": set(), "samples": {"logprobs"}}),
        (["mc_nse", "asp"], {"diagnosis": {"logprobs"}, "samples": {"logprobs"}}),
        (["ce"], {"diagnosis": set(), "ce": set()}),
        (["cot_ce"], {"diagnosis": set(), "cot_ce": set()}),
        (["topk_ce", "ce"], {"diagnosis": set(), "topk_ce": set(), "ce": set()}),
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


def test_the_prior_is_the_same_question_without_the_patient():
    model, _ = asked_by(["pmi"])
    assert {r.prior_messages for r in model.requests} == {render("diagnosis", patient=None)}
    assert {r.prior_messages for r in asked_by(["entropy", "poc"])[0].requests} == {None}


def test_greedy_answer_and_samples_are_asked_together_about_the_same_messages():
    model, _ = asked_by("all")
    first = model.asked[0]
    for view, greedy, samples in zip(VIEWS, first[::2], first[1::2], strict=True):
        assert greedy.messages == samples.messages == render("diagnosis", patient=view.text)
        assert (greedy.n, greedy.temperature, samples.n, samples.temperature) == (1, 0.0, 15, 0.5)


def test_every_request_speaks_the_prompt_of_its_purpose():
    model, _ = asked_by("all")
    assert {(r.purpose, prompt_of(r)) for r in model.requests} == {
        ("diagnosis", "diagnosis"), ("samples", "diagnosis"),
        ("ce", "ce"), ("cot_ce", "cot_ce"), ("topk_ce", "topk_ce"), ("p_true", "p_true"),
        ("keyword", "keyword"), ("profile", "profile"), ("evidence", "evidence"),
        ("doctor", "doctor"),
    }  # fmt: skip


def test_settings_reach_the_requests():
    asking = Parameters(
        n_samples=4, sample_temperature=0.9, p_true_temperature=0.7, renyi_alpha=2.0,
        n_alternatives=3, n_doctors=2, doctor_temperature=0.6,
    )  # fmt: skip
    lengths = {
        "max_tokens_answer": 20,
        "max_tokens_score": 5,
        "max_tokens_reasoning": 30,
        "max_tokens_guesses": 40,
    }
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


def test_the_encoder_is_opened_only_for_a_method_that_reads_similarity():
    encoder = FakeEncoder()
    collect(
        FakeModel(),
        VIEWS,
        select(["poc", "lexical_similarity", "asp"]),
        readers=Readers.of(encoder),
    )  # type: ignore[arg-type]
    assert encoder.groups == []
    generations = collect(
        FakeModel(), VIEWS, select(["semantic_similarity"]), readers=Readers.of(encoder)
    )  # type: ignore[arg-type]
    assert encoder.groups == [[s.text for s in g.samples or ()] for g in generations]


# MedConf


@pytest.mark.parametrize(
    "methods", [["medconf"], ["medconf_weighted"], ["medconf", "medconf_weighted"]]
)
def test_an_assessment_is_asked_for_by_the_methods_that_read_it(methods):
    model, generations = asked_by(methods)
    assert [{r.purpose for r in call} for call in model.asked] == [
        {"diagnosis"},
        {"keyword"},
        {"profile"},
        {"evidence"},
    ]
    for view, generation, request in zip(VIEWS, generations, model.asked[3], strict=True):
        assert generation.answer is not None and generation.assessment is not None
        assert generation.assessment.diagnosis == generation.answer.text
        assert f"<patient>\n{view.text}\n</patient>\n" in request.messages[-1][1]
        assert [METHODS[name].evaluate(generation).missing for name in methods] == [""] * len(
            methods
        )


def test_no_assessment_where_no_method_reads_it():
    _, generations = asked_by([m.name for m in ALL if m.family != "medconf"])
    assert {g.assessment for g in generations} == {None}


def test_the_library_is_the_projects_own_unless_another_is_given():
    _, generations = asked_by(["medconf"])
    library = BM25(load_corpus())
    for generation in generations:
        assert (
            generation.assessment is not None
            and generation.assessment.keyword == generation.assessment.diagnosis
        )
        assert list(generation.assessment.passages) == [
            p.id for p in library.search(generation.assessment.diagnosis)
        ]
    shelf = Shelf()
    given = collect(
        FakeModel(),
        VIEWS,
        select(["medconf"]),
        Settings(medconf=MedConf(n_passages=2)),
        retriever=shelf,
    )
    assert {g.assessment.passages for g in given if g.assessment} == {("p3", "p1")}
    assert {k for _, k in shelf.asked} == {2} and len(shelf.asked) == n_diagnoses(given)


def test_an_assessor_is_asked_about_the_answers_and_the_model_gives_them():
    model, assessor = FakeModel(), FakeModel("another")
    generations = collect(
        model, VIEWS, select(["medconf", "ce"]), retriever=Shelf(), assessor=assessor
    )
    assert [{r.purpose for r in call} for call in model.asked] == [{"diagnosis"}, {"ce"}]
    assert [{r.purpose for r in call} for call in assessor.asked] == [
        {"keyword"},
        {"profile"},
        {"evidence"},
    ]
    assert {g.model for g in generations} == {"fake"}


def test_a_failed_assessment_leaves_other_methods_as_they_are():
    _, whole = asked_by(["medconf", "medconf_weighted", "ce"])
    lost = [
        replace(g, assessment=Assessment("Flu", missing="keyword: none in square brackets"))
        for g in whole
    ]
    for a, b in zip(whole, lost, strict=True):
        assert METHODS["ce"].evaluate(a) == METHODS["ce"].evaluate(b)
        for name in ("medconf", "medconf_weighted"):
            assert METHODS[name].evaluate(b).missing == "keyword: none in square brackets"


# What comes back


def test_a_generation_says_what_was_shown_and_by_whom():
    _, generations = asked_by(["asp"])
    found = [
        (g.case_id, g.level, g.model, g.n_statements, g.n_total, g.n_words) for g in generations
    ]
    assert found == [
        (v.case.case_id, v.level, "fake", v.n_statements, v.n_total, v.n_words) for v in VIEWS
    ]
    assert [(g.n_statements, g.n_total) for g in generations[:4]] == [
        (1, 11),
        (11, 11),
        (1, 12),
        (12, 12),
    ]


def test_the_answer_is_the_diagnosis_and_its_trace_the_diagnosis_tokens():
    _, generations = asked_by(["asp"])
    for generation in generations:
        assert generation.answer is not None and generation.answer.trace is not None
        assert generation.answer.raw == f"[{generation.answer.text}]"
        assert "".join(generation.answer.trace.tokens) == generation.answer.text


def test_no_probe_is_asked_about_an_unreadable_answer():
    bad = VIEWS[1]
    model, generations = asked_by("all", FakeModel(unreadable=unreadable_views(bad.text)))
    probes = dict.fromkeys(("ce", "cot_ce", "topk_ce", "p_true", "evidence"), 5)
    once = dict.fromkeys(("keyword", "profile"), n_diagnoses(generations))
    assert Counter(r.purpose for r in model.requests) == {
        "diagnosis": 6,
        "samples": 6,
        "doctor": 6,
        **probes,
        **once,
    }
    later = [r for call in model.asked[1:] for r in call if r.purpose != "doctor"]
    told = [r.messages[-1][1].partition("</patient>")[0] for r in later]
    assert f"<patient>\n{bad.text}\n" not in told
    assert [bool(g.probes) for g in generations] == [v is not bad for v in VIEWS]
    assert [g.assessment is not None for g in generations] == [v is not bad for v in VIEWS]


def test_an_unreadable_answer_is_missing_for_every_method():
    _, generations = asked_by("all", FakeModel(unreadable=unreadable_views(VIEWS[1].text)))
    for i, generation in enumerate(generations):
        missing = {m.name: m.evaluate(generation).missing for m in ALL}
        wanted = {name: "" if i != 1 else "unreadable answer" for name in missing}
        if i != 1:
            wanted["semantic_similarity_med"] = "no medical encoder is named"
        assert missing == wanted


def test_where_no_answer_can_be_read_no_probe_is_asked_at_all():
    model, _ = asked_by(["ce", "medconf"], FakeModel(unreadable=lambda request, i: True))
    assert len(model.asked) == 1


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


def test_one_readable_sample_is_too_few_for_agreement():
    model, generations = asked_by(
        "all", FakeModel(unreadable=lambda r, i: r.purpose == "samples" and i > 0)
    )
    for generation in generations:
        found = {m.name: m.evaluate(generation).missing for m in ALL}
        wanted = {
            m.name: "fewer than 2 readable samples" if m.family == "consistency" else ""
            for m in ALL
        }
        wanted |= (
            {"sar": "sample_relevance not collected"} if generation.sample_relevance is None else {}
        )
        assert found == wanted | {"semantic_similarity_med": "no medical encoder is named"}


# What a backend cannot give


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


@each(
    ("method", "given", "missing"),
    [
        ("asp", {"distributions", "prior"}, "the backend gives no logprobs"),
        ("mc_se", {"distributions", "prior"}, "the backend gives no logprobs"),
        ("entropy", {"logprobs", "prior"}, "the backend gives no distributions"),
        ("renyi_divergence", {"logprobs"}, "the backend gives no distributions"),
        ("pmi", {"logprobs", "distributions"}, "the backend gives no prior"),
        ("pmi", {"logprobs", "prior"}, ""),
        ("asp", {"logprobs"}, ""),
        ("mc_nse", {"logprobs"}, ""),
    ],
)
def test_each_statistic_is_missed_by_name(method, given, missing):
    _, generations = asked_by([method], FakeModel(provides=frozenset({"text", *given})))
    assert {METHODS[method].evaluate(g).missing for g in generations} == {missing}


def test_provided_statistics_are_not_asked_for_where_no_method_reads_them():
    model, generations = asked_by(["asp"], FakeModel(provides=EVERYTHING))
    assert generations[0].answer is not None and generations[0].answer.trace is not None
    assert (
        generations[0].answer.trace.entropies,
        generations[0].samples,
        dict(generations[0].probes),
    ) == (None, None, {})


# Progress


def test_progress_counts_the_requests_of_each_step():
    steps: dict[str, list[int]] = {}

    class Bar:
        def __init__(self, step: str, total: int) -> None:
            self.done = steps[step] = [total, 0]

        def update(self, n: int) -> None:
            self.done[1] += n

        def close(self) -> None:
            self.done.append(-1)

    model = CachedModel(FakeModel(), None, block=2)
    collect(model, VIEWS, select(["poc", "ce"]), progress=Bar)
    assert steps == {
        "diagnoses and samples": [12, 12, -1],
        "questions about the answers": [6, 6, -1],
    }
    steps.clear()
    n = n_diagnoses(collect(model, VIEWS, select(["medconf"]), retriever=Shelf(), progress=Bar))
    once = {step: [n, n, -1] for step in ("keywords", "symptom profiles")}
    assert steps == {
        "diagnoses and samples": [6, 6, -1],
        **once,
        "confidence from evidence": [6, 6, -1],
    }
