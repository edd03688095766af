"""Asks a model for exactly what the chosen methods need, each question once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Protocol

from trustlab.agents.asking import read_by, request
from trustlab.agents.medconf import MedConf, Profiles, assess
from trustlab.agents.panel import MAX_TOKENS as MAX_TOKENS_DOCTOR
from trustlab.agents.panel import convene, doctors_of
from trustlab.confidence import Method
from trustlab.confidence.registry import BY_ENCODER, BY_JUDGE, GIVEN_NEEDS
from trustlab.knowledge.chart import chart_of
from trustlab.knowledge.findings import load_knowledge
from trustlab.models.base import About, Model, Request
from trustlab.parsing.counts import named
from trustlab.parsing.reply import diagnosis_reply
from trustlab.parsing.scores import probed, probes_read
from trustlab.prompts import Prompts, prompts_of
from trustlab.records import (
    GIVEN,
    PARAMETERS,
    Generation,
    Parameters,
    Reply,
    View,
    normalise,
    with_each,
)
from trustlab.retrieval import Retriever

MEANING = BY_ENCODER | BY_JUDGE | {"similarity_med"}
"""Needs that a reader of meaning meets."""
MATRICES = frozenset({
    "similarity", "similarity_med", "entailment", "contradiction", "answer_similarity",
    "answer_entailment", "answer_contradiction",
})  # fmt: skip
"""Needs that are matrices over the samples, or rows of the answer beside them."""
TRACE_NEEDS = {
    "answer.logprobs": "logprobs",
    "answer.entropies": "distributions",
    "answer.renyi": "distributions",
    "answer.fisher_rao": "distributions",
    "answer.alternatives": "distributions",
    "answer.certainty": "distributions",
    "answer.prior_logprobs": "prior",
    "relevance": "logprobs",
    "alternative_entailment": "distributions",
}
"""Needs of the greedy answer's trace, and the statistic that a request wants for each."""
SAMPLE_NEEDS = frozenset({"samples", "samples.logprobs", "sample_relevance", *MATRICES})
"""Needs of the samples; the second and third of their traces."""
NOT_KNOWN = "the data set does not tell the chance of a diagnosis given what was shown"
NO_NAME = "the answer is no name that the knowledge table knows"
NO_TEXT = "the backend scores no given text"
NOT_WHOLE = "the reply has no self-certainty: made of a short list, or kept by an earlier version"


class Meaning(Protocol):
    """Who reads what words mean: sentence encoders, a judge of entailment."""

    def read(
        self,
        generations: Sequence[Generation],
        views: Sequence[View],
        needs: Collection[str],
    ) -> list[Generation]:
        """The generations with those of :data:`MEANING` that are asked for."""
        ...


@dataclass(frozen=True)
class Settings:
    """How a model is asked: greedily for the answer, and as ``parameters`` say for the rest."""

    parameters: Parameters = PARAMETERS
    seed: int = 0
    max_tokens_answer: int | None = None
    """``None``: as the model's prompts have it, 64 or 128."""
    max_tokens_score: int = 16
    max_tokens_reasoning: int = 256
    max_tokens_guesses: int = 64
    max_tokens_doctor: int = MAX_TOKENS_DOCTOR
    medconf: MedConf = field(default_factory=MedConf)


def needs_of(methods: Iterable[Method]) -> frozenset[str]:
    """Everything the methods read."""
    return frozenset(need for method in methods for need in method.needs)


def reasons_missing(needs: Iterable[str], model: Model) -> dict[str, str]:
    """Need -> why this backend cannot meet it, in its own words (``lacks``) where it has some."""
    needs = set(needs)
    statistics = {
        **TRACE_NEEDS,
        "samples.logprobs": "logprobs",
        "sample_relevance": "logprobs",
    }
    reasons = {}
    for need, statistic in statistics.items():
        if need in needs and statistic not in model.provides:
            reasons[need] = f"the backend gives no {statistic}"
    if not model.scores_text:
        reasons |= dict.fromkeys(GIVEN_NEEDS & needs, NO_TEXT)
    for need, why in model.lacks.items():
        if need in needs:
            reasons[need] = why
    return reasons


def answer_requests(
    model: Model, view: View, needs: frozenset[str], settings: Settings
) -> list[Request]:
    """The greedy diagnosis, and the K samples where needed: one prefill of the same messages."""
    parameters = settings.parameters
    prompts = prompts_of(model)
    statistics = set()
    for need, statistic in TRACE_NEEDS.items():
        if need in needs and statistic in model.provides:
            statistics.add(statistic)
    if not statistics.isdisjoint({"prior", "distributions"}):
        statistics.add("logprobs")
    render = partial(prompts.render, "diagnosis", asks=view.case.question)
    diagnosis = Request(
        render(patient=view.text),
        max_tokens=settings.max_tokens_answer or prompts.answer_tokens,
        seed=settings.seed,
        want=frozenset(statistics),
        prior_messages=render(patient=None) if "prior" in statistics else None,
        renyi_alpha=parameters.renyi_alpha,
        n_alternatives=parameters.n_alternatives,
        about=read_by(About.of(view), named, parameters.reading),
        purpose="diagnosis",
    )
    if not needs & SAMPLE_NEEDS:
        return [diagnosis]
    sample_statistics: frozenset[str] = frozenset()
    if needs & {"samples.logprobs", "sample_relevance"}:
        sample_statistics = model.provides & {"logprobs"}
    samples = Request(
        diagnosis.messages,
        n=parameters.n_samples,
        temperature=parameters.sample_temperature,
        max_tokens=diagnosis.max_tokens,
        seed=settings.seed,
        want=sample_statistics,
        about=diagnosis.about,
        purpose="samples",
    )
    return [diagnosis, samples]


def probe_requests(
    view: View, answer: str, needs: frozenset[str], settings: Settings, prompts: Prompts
) -> list[Request]:
    """The questions about an answer that methods need."""
    parameters = settings.parameters
    about = About.of(view, diagnosis=answer)
    slots = {"patient": view.text, "answer": answer, "asks": view.case.question}
    most_tokens = {
        "ce": settings.max_tokens_score,
        "cot_ce": settings.max_tokens_reasoning,
        "topk_ce": settings.max_tokens_guesses,
        "p_true": settings.max_tokens_score,
    }
    requests = []
    for name, most in most_tokens.items():
        if f"probes.{name}" in needs:
            reads = read_by(about, partial(probed, name, view.text), parameters.reading)
            probe = request(name, prompts, most, settings.seed, reads, (), **slots)
            if name == "p_true":
                probe = replace(
                    probe,
                    n=parameters.n_samples,
                    temperature=parameters.p_true_temperature,
                )
            requests.append(probe)
    for name, (prompt, texts) in GIVEN.items():
        if f"probes.{name}" not in needs:
            continue
        messages = prompts.render(prompt, **slots)
        for text in texts:
            scoring = Request(
                messages,
                continuation=text,
                want=frozenset({"logprobs"}),
                purpose=name,
                about=about,
            )
            requests.append(scoring)
    return requests


def collect(  # noqa: PLR0913
    model: Model,
    views: Sequence[View],
    methods: Sequence[Method],
    settings: Settings | None = None,
    *,
    readers: Meaning | None = None,
    retriever: Retriever | None = None,
    assessor: Model | None = None,
    doctors: Sequence[Model] = (),
    profiles: Profiles | None = None,
) -> list[Generation]:
    """One :class:`Generation` a view, holding what ``methods`` need and no more.

    - ``readers`` of similarities and entailment, and ``retriever``, which searches MedConf's
      library: ``ValueError`` where methods need one and there is none.
    - ``assessor``: the model that MedConf asks (``None``: the one that answered); ``profiles``: of
      earlier calls of one run; ``doctors``: of a panel (of that model without any).
    """
    settings = settings or Settings()
    needs = needs_of(methods)
    refuse_unmet(needs, views, readers, retriever)
    reasons = reasons_missing(needs, model)
    for replier in filter(None, [model, assessor, *doctors]):
        prompts_of(replier).check(view.case.question for view in views)
    requests = [answer_requests(model, view, needs, settings) for view in views]
    replies = fetch_replies(model, requests)
    generations = [
        read_answer(model, view, diagnosis, rows, settings, reasons)
        for view, (diagnosis, *_), rows in zip(views, requests, replies, strict=True)
    ]
    generations = probe_answers(
        model, views, generations, needs - reasons.keys(), settings
    )
    if "assessment" in needs and retriever is not None:
        generations = assess_answers(
            assessor or model, views, generations, settings, retriever, profiles
        )
    if "panel" in needs:
        parameters = settings.parameters
        panels = convene(
            views,
            doctors_of(doctors or [model], parameters.n_doctors),
            temperature=parameters.panel_temperature,
            seed=settings.seed,
            max_tokens=settings.max_tokens_doctor,
            reading=parameters.reading,
            reasoning_from=parameters.reasoning_from,
        )
        generations = with_each(generations, "panel", panels)
    if readers is not None and needs & MEANING:
        generations = readers.read(generations, views, needs)
    return generations


def refuse_unmet(
    needs: frozenset[str], views: Sequence[View], readers: object, retriever: object
) -> None:
    """``ValueError``, before anything is spent, where a helper that methods need is not there, or a
    chart cannot be read."""
    helpers = {"readers": (readers, MEANING), "retriever": (retriever, {"assessment"})}
    for name, (helper, met_needs) in helpers.items():
        unmet = needs & met_needs
        if helper is None and unmet:
            which = ", ".join(sorted(unmet))
            raise ValueError(f"{name} is None; what needs one is {which}")
    if "panel" in needs:
        for view in views:
            chart_of(view.case)


def fetch_replies(
    model: Model, requests: Sequence[Sequence[Request]]
) -> list[list[list[Reply]]]:
    """The replies to each view's requests; all are put in one call, and none without a request."""
    batch = list(chain.from_iterable(requests))
    replies = iter(model.generate(batch) if batch else [])
    replies_by_view = []
    for of_view in requests:
        replies_by_view.append(list(islice(replies, len(of_view))))
    return replies_by_view


def answer_texts(generations: Iterable[Generation]) -> list[str | None]:
    """The diagnosis of each record; ``None`` where it could not be read."""
    return [
        generation.answer.text if generation.answer else None
        for generation in generations
    ]


def probe_answers(
    model: Model,
    views: Sequence[View],
    generations: Sequence[Generation],
    needs: frozenset[str],
    settings: Settings,
) -> list[Generation]:
    """The records with the replies to what is asked about each readable answer."""
    prompts = prompts_of(model)
    requests: list[list[Request]] = []
    for view, answer in zip(views, answer_texts(generations), strict=True):
        if answer:
            requests.append(probe_requests(view, answer, needs, settings, prompts))
        else:
            requests.append([])
    replies = fetch_replies(model, requests)
    records = []
    for generation, of_view, replies_of_view in zip(
        generations, requests, replies, strict=True
    ):
        probes: dict[str, tuple[Reply, ...]] = {}
        for probe, probe_replies in zip(of_view, replies_of_view, strict=True):
            earlier = probes.get(probe.purpose, ())
            probes[probe.purpose] = (*earlier, *probe_replies)
        records.append(probes_read(replace(generation, probes=probes)))
    return records


def assess_answers(
    assessor: Model,
    views: Sequence[View],
    generations: Sequence[Generation],
    settings: Settings,
    retriever: Retriever,
    profiles: Profiles | None,
) -> list[Generation]:
    """The records with MedConf's evidence for each readable answer."""
    questions = {}
    for i, answer in enumerate(answer_texts(generations)):
        if answer:
            questions[i] = (views[i].text, answer, views[i].case.question)
    assessments = assess(
        assessor,
        list(questions.values()),
        retriever,
        settings.medconf,
        seed=settings.seed,
        reading=settings.parameters.reading,
        profiles=profiles,
        about=[About.of(views[i]) for i in questions],
    )
    of_place = dict(zip(questions, assessments, strict=True))
    return with_each(generations, "assessment", map(of_place.get, range(len(views))))


def read_answer(
    model: Model,
    view: View,
    diagnosis: Request,
    replies: list[list[Reply]],
    settings: Settings,
    reasons: dict[str, str],
) -> Generation:
    """The record of the greedy answer, and of the samples where there are any."""
    reading = settings.parameters.reading
    greedy_replies, *drawn = replies
    answer = diagnosis_reply(greedy_replies[0], reading)
    samples = None
    texts: list[str] = []
    for sample_replies in drawn:
        texts = [reply.text for reply in sample_replies if reply.text]
        readings = [diagnosis_reply(reply, reading) for reply in sample_replies]
        samples = tuple(sample for sample in readings if sample.text is not None)
    if diagnosis.want and answer.text is not None and answer.trace is None:
        why = "the backend gave no token statistics with this reply"
        reasons = reasons | {"answer": reasons.get("answer", why)}
    exact = None
    lacks = {"exact": NOT_KNOWN}
    if view.posterior is not None:
        lacks["exact"] = NO_NAME
        if answer.text is not None:
            exact = chance_of(answer.text, view.posterior)
    if answer.trace is not None:
        lacks["answer.certainty"] = NOT_WHOLE
    lacks |= _trace_lacks("answer", [answer])
    lacks |= _trace_lacks("samples", samples or ())
    n_wordings = len(set(texts)) if len(texts) > 1 else None
    return Generation(
        case_id=view.case.case_id,
        model=model.name,
        seed=settings.seed,
        level=view.level,
        n_statements=view.n_statements,
        n_total=view.n_total,
        n_words=view.n_words,
        answer=answer,
        samples=samples,
        exact=exact,
        n_wordings=n_wordings,
        reasons=lacks | reasons,
        parameters=settings.parameters,
        told=view.text,
    )


def _trace_lacks(part: str, replies: Iterable[Reply]) -> dict[str, str]:
    """Need -> why the traces of this part of a record lack it."""
    lacks = {}
    for reply in replies:
        if reply.trace:
            for statistic, why in reply.trace.lacks.items():
                lacks[f"{part}.{statistic}"] = why
    return lacks


def chance_of(answer: str, posterior: Mapping[str, float]) -> float | None:
    """The chance that a posterior gives to the diagnosis that an answer names, by any of its names.
    0 for a condition of the knowledge table that it does not list, ``None`` for an unknown name."""
    chance_by_name = {normalise(name): chance for name, chance in posterior.items()}
    condition = load_knowledge().condition_named(answer)
    names = [answer]
    if condition:
        names += condition.names
    for name in names:
        if normalise(name) in chance_by_name:
            return chance_by_name[normalise(name)]
    return 0.0 if condition else None
