"""Asks a model for exactly what the chosen methods need, each question once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Protocol

from trustlab.agents.asking import request
from trustlab.agents.medconf import MedConf, Profiles, assess
from trustlab.agents.panel import MAX_TOKENS as MAX_TOKENS_DOCTOR
from trustlab.agents.panel import convene, doctors_of
from trustlab.confidence import Method
from trustlab.confidence.registry import GIVEN_NEEDS
from trustlab.knowledge.chart import chart_of
from trustlab.knowledge.findings import load_knowledge
from trustlab.models.base import About, Model, Request
from trustlab.parsing.counts import both, named
from trustlab.parsing.reply import diagnosis_reply
from trustlab.parsing.scores import probed, probes_read
from trustlab.prompts import Prompts, prompts_of
from trustlab.records import GIVEN, PARAMETERS, Generation, Parameters, Reply, View, normalise
from trustlab.retrieval import Retriever

MEANING = frozenset({
    "similarity", "similarity_med", "entailment", "contradiction", "relevance", "sample_relevance",
    "alternative_entailment", "panel.cosines",
})  # fmt: skip
"""Needs that a reader of meaning meets."""
MATRICES = frozenset({"similarity", "similarity_med", "entailment", "contradiction"})
"""Needs that are matrices over the samples."""
TRACE_NEEDS = {
    "answer.logprobs": "logprobs",
    "answer.entropies": "distributions",
    "answer.renyi": "distributions",
    "answer.fisher_rao": "distributions",
    "answer.alternatives": "distributions",
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


class Meaning(Protocol):
    """Who reads what words mean: sentence encoders, a judge of entailment."""

    def read(
        self, generations: Sequence[Generation], views: Sequence[View], needs: Collection[str]
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
    return frozenset(need for m in methods for need in m.needs)


def reasons_missing(needs: Iterable[str], model: Model) -> dict[str, str]:
    """Need -> why this backend cannot meet it, in its own words (``lacks``) where it has some."""
    wants = {**TRACE_NEEDS, "samples.logprobs": "logprobs", "sample_relevance": "logprobs"}
    unmet = {n: s for n, s in wants.items() if n in needs and s not in model.provides}
    reasons = {n: f"the backend gives no {s}" for n, s in unmet.items()}
    if (given := GIVEN_NEEDS & set(needs)) and not model.scores_text:
        reasons |= dict.fromkeys(given, NO_TEXT)
    return reasons | {n: why for n, why in model.lacks.items() if n in needs}


def answer_requests(
    view: View,
    needs: frozenset[str],
    provides: frozenset[str],
    settings: Settings,
    prompts: Prompts,
) -> list[Request]:
    """The greedy diagnosis, and the K samples where needed: one prefill of the same messages."""
    wanted = {s for n, s in TRACE_NEEDS.items() if n in needs and s in provides}
    wanted |= {"logprobs"} if wanted & {"prior", "distributions"} else set()
    asked = partial(prompts.render, "diagnosis", asks=view.case.question)
    prior = asked(patient=None) if "prior" in wanted else None
    p, messages = settings.parameters, asked(patient=view.text)
    about = About.of(view, **both(named, p.reading))
    most = settings.max_tokens_answer or prompts.answer_tokens
    common: Any = {"messages": messages, "max_tokens": most, "seed": settings.seed, "about": about}
    extras: Any = {"renyi_alpha": p.renyi_alpha, "n_alternatives": p.n_alternatives}
    extras |= {"want": frozenset(wanted), "prior_messages": prior}
    requests = [Request(**common, **extras, purpose="diagnosis")]
    if needs & SAMPLE_NEEDS:
        traced = needs & {"samples.logprobs", "sample_relevance"}
        extras = {"n": p.n_samples, "temperature": p.sample_temperature}
        extras["want"] = frozenset({"logprobs"} & provides if traced else ())
        requests.append(Request(**common, **extras, purpose="samples"))
    return requests


def probe_requests(
    view: View, answer: str, needs: frozenset[str], settings: Settings, prompts: Prompts
) -> dict[str, Request]:
    """The questions about a given answer that methods need: probe name (and text) -> request."""
    p, asked, score = settings.parameters, {}, settings.max_tokens_score
    guesses, reasons = settings.max_tokens_guesses, settings.max_tokens_reasoning
    told: Any = {"patient": view.text, "answer": answer, "asks": view.case.question}
    for name, n in {"ce": score, "cot_ce": reasons, "topk_ce": guesses, "p_true": score}.items():
        if f"probes.{name}" in needs:
            read = both(partial(probed, name, view.text), p.reading)
            about = About.of(view, diagnosis=answer, **read)
            asked[name] = request(name, prompts, n, settings.seed, about, **told)
    if (judged := asked.get("p_true")) is not None:
        asked["p_true"] = replace(judged, n=p.n_samples, temperature=p.p_true_temperature)
    for name, (prompt, texts) in GIVEN.items():
        if f"probes.{name}" in needs:
            about = About.of(view, diagnosis=answer)
            how: Any = {"want": frozenset({"logprobs"}), "purpose": name, "about": about}
            messages = prompts.render(prompt, **told)
            asked |= {f"{name} {x}": Request(messages, continuation=x, **how) for x in texts}
    return asked


def collect(
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
      earlier calls of one run.
    - ``doctors``: of a panel (of that model without any).
    """
    settings, needs = settings or Settings(), needs_of(methods)
    p = settings.parameters
    beside = {"readers": (readers, MEANING), "retriever": (retriever, {"assessment"})}
    for name, (given, of) in beside.items():
        if given is None and (unmet := sorted(needs & of)):
            raise ValueError(f"{name} is None; what needs one is {', '.join(unmet)}")
    if "panel" in needs:  # a chart that cannot be read is refused before anything is spent
        for view in views:
            chart_of(view.case)
    reasons, prompts = reasons_missing(needs, model), prompts_of(model)
    for one in map(prompts_of, [model, *filter(None, [assessor]), *doctors]):
        one.check(next((v.case.question for v in views if v.case.question), ""))
    asked = [answer_requests(v, needs, model.provides, settings, prompts) for v in views]
    replies = iter(model.generate([r for rs in asked for r in rs]))
    generations = [
        _generation(model.name, v, list(islice(replies, len(rs))), settings, reasons, rs[0].want)
        for v, rs in zip(views, asked, strict=True)
    ]

    answers = [g.answer.text if g.answer else None for g in generations]
    there = needs - reasons.keys()
    probes = [
        probe_requests(v, answer, there, settings, prompts) if answer else {}
        for v, answer in zip(views, answers, strict=True)
    ]
    told = [r for asked in probes for r in asked.values()]
    replies = iter(model.generate(told) if told else [])
    for i, requests in enumerate(probes):
        came: dict[str, tuple[Reply, ...]] = {}
        for r, row in zip(requests.values(), islice(replies, len(requests)), strict=True):
            came[r.purpose] = (*came.get(r.purpose, ()), *row)
        generations[i] = probes_read(replace(generations[i], probes=came))

    how: Any = {"seed": settings.seed, "reading": p.reading}
    if "assessment" in needs:  # of every readable answer
        shown = {i: views[i] for i, answer in enumerate(answers) if answer}
        pairs = {i: (v.text, str(answers[i]), v.case.question) for i, v in shown.items()}
        whose: Any = {"assessor": assessor, "about": [About.of(views[i]) for i in pairs]}
        given: Any = (list(pairs.values()), retriever, settings.medconf)
        found = assess(model, *given, profiles=profiles, **whose, **how)
        for i, assessment in zip(pairs, found, strict=True):
            generations[i] = replace(generations[i], assessment=assessment)
    if "panel" in needs:
        team = doctors_of(doctors or [model], p.n_doctors)
        how |= {"temperature": p.panel_temperature, "max_tokens": settings.max_tokens_doctor}
        panels = convene(views, team, **how, reasoning_from=p.reasoning_from)
        pairs = zip(generations, panels, strict=True)
        generations = [replace(g, panel=panel) for g, panel in pairs]
    if readers is not None and needs & MEANING:
        generations = readers.read(generations, views, needs)
    return generations


def _generation(
    model: str,
    view: View,
    replies: list[list[Reply]],
    settings: Settings,
    reasons: dict[str, str],
    wanted: frozenset[str],
) -> Generation:
    """The record of the greedy answer, and of the samples where there are any."""
    reading = settings.parameters.reading
    answer, samples, texts = diagnosis_reply(replies[0][0], reading), None, []
    for drawn in replies[1:]:
        texts = [s.text for s in drawn if s.text]
        named = (diagnosis_reply(reply, reading) for reply in drawn)
        samples = tuple(s for s in named if s.text is not None)
    if wanted and answer.text is not None and answer.trace is None:
        why = "the backend gave no token statistics with this reply"
        reasons = reasons | {"answer": reasons.get("answer", why)}
    known, exact = view.posterior, None
    if known is not None and answer.text is not None:
        exact = chance_of(answer.text, known)
    held = {"answer": [answer], "samples": samples or ()}
    traces = [(part, one.trace) for part, each in held.items() for one in each if one.trace]
    lacks = {f"{part}.{name}": why for part, t in traces for name, why in t.lacks.items()}
    sizes = {name: getattr(view, name) for name in ("level", "n_statements", "n_total", "n_words")}
    return Generation(
        case_id=view.case.case_id,
        model=model,
        seed=settings.seed,
        **sizes,
        answer=answer,
        samples=samples,
        exact=exact,
        n_wordings=len(set(texts)) if len(texts) > 1 else None,
        reasons={"exact": NOT_KNOWN if known is None else NO_NAME, **lacks, **reasons},
        parameters=settings.parameters,
        told=view.text,
    )


def chance_of(answer: str, posterior: Mapping[str, float]) -> float | None:
    """The chance that a posterior gives to the diagnosis that an answer names, by any of its names.
    0 for a condition of the knowledge table that it does not list, ``None`` for an unknown name."""
    found = {normalise(name): chance for name, chance in posterior.items()}
    condition = load_knowledge().condition_named(answer)
    names = [answer, *(condition.names if condition else ())]
    listed = (found[n] for n in map(normalise, names) if n in found)
    return next(listed, None if condition is None else 0.0)
