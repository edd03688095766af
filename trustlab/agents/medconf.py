"""Asks for evidence and a score from it (MedConf; Ren et al. 2026, section 5).

Keyword of the diagnosis, passages of a library, symptom profile, each criterion supported, missing
or contradicted by the patient's words, a score. Prompts: ``keyword``, ``profile``, ``evidence``."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from pydantic import model_validator

from trustlab.agents.asking import fits, put, read_by, reply_room, request
from trustlab.choices import Count, Switch, choices
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.words import word_lists
from trustlab.models.base import About, Model, Request
from trustlab.parsing.medconf import read_evidence, read_profile, read_prose, read_score
from trustlab.parsing.reply import Unreadable, diagnosis, no_answer, unnamed, whole
from trustlab.prompts import json_rows, prompts_of
from trustlab.records import Assessment, Criterion, Reading, Reply
from trustlab.retrieval import Passage, Retriever, terms

SWITCHES = ("retrieval", "profile", "structure", "importance")


@choices
class MedConf:
    """The procedure's parameters. Each of :data:`SWITCHES`, off, is one of the paper's ablations.

    - ``retrieval`` off: the profile comes from the model's memory.
    - ``profile`` off: the score comes straight from the passages.
    - ``structure`` off: the profile is prose, and there is no table of evidence.
    - ``importance`` off: criteria have no importance.
    """

    retrieval: Switch = True
    profile: Switch = True
    structure: Switch = True
    importance: Switch = True
    n_passages: Count = 15
    max_tokens_keyword: Count = 32
    max_tokens_profile: Count = 1024
    max_tokens_evidence: Count = 2048

    @model_validator(mode="after")
    def _something_left(self) -> Self:
        if not (self.retrieval or self.profile):
            none = "nothing is left to hold the patient's words against"
            raise ValueError(f"retrieval and profile are both off: {none}")
        return self

    @property
    def options(self) -> frozenset[str]:
        """The names of the switches that are on, as the prompts know them."""
        return frozenset(name for name in SWITCHES if getattr(self, name))


Topic = tuple[str, str]
"""A diagnosis and ''; or an answer, and the question that a case asks instead."""
Profiles = dict[Topic, tuple[Assessment, list[Passage]]]
"""Topic -> its assessment as far as it hangs on no patient, and the passages found."""


def assess(
    model: Model,
    questions: Sequence[tuple[str, ...]],
    retriever: Retriever,
    parameters: MedConf | None = None,
    *,
    assessor: Model | None = None,
    seed: int = 0,
    reading: Reading = "chat",
    profiles: Profiles | None = None,
    about: Sequence[About] | None = None,
) -> list[Assessment]:
    """One :class:`Assessment` for each (patient information, diagnosis); a third entry may be the
    case's question (:data:`Topic`). Decoding is greedy; each step is one batch.

    - ``assessor``: if given, does every step after the diagnosis in the model's place.
    - If a step fails, only that assessment stops; it is missing, with its reason.
    - ``reading``: how replies are read (:mod:`trustlab.parsing`).
    - ``profiles``: those of earlier calls, not requested again; this call adds its own.
    - ``about``: the view behind each question; for a diagnosis's keyword and profile, the first.
    """
    judge, p = assessor or model, parameters or MedConf()
    topics: list[Topic] = [(q[1], q[2] if len(q) > 2 else "") for q in questions]
    n_asked = Counter(topics)
    profiles = {} if profiles is None else profiles
    fitted, profiled = partial(_fitted, judge, seed, p), partial(_with_profile, p=p)

    def own(i: int, of: Assessment, read: Read) -> About | None:
        whose = about[i]._replace(diagnosis=of.diagnosis) if about else None
        return read_by(whose, partial(_step, of, read), reading)

    def shared(topic: Topic, read: Read) -> About | None:
        whose = own(topics.index(topic), found[topic], read)
        return whose and whose._replace(n_views=n_asked[topic])

    found = {topic: Assessment(topic[0]) for topic in n_asked if topic not in profiles}
    fills: Any = {topic: {"answer": topic[0], "asks": topic[1]} for topic in n_asked}
    library: dict[Topic, list[Passage]] = {}
    if p.retrieval:
        most, keywords = p.max_tokens_keyword, []
        for name in found:
            whose = shared(name, _with_keyword)
            keywords.append(request("keyword", judge, most, seed, whose, **fills[name]))
        for name, reply in zip(found, put(judge, keywords), strict=True):
            found[name] = a = _with_keyword(found[name], reply, reading)
            if not a.keyword:
                continue
            library[name] = retriever.search(a.keyword, p.n_passages)
            fitting = library[name]
            if getattr(retriever, "gated", True):  # not so of a control
                fitting = [one for one in fitting if is_about(one, a.keyword)]
            if not fitting:
                found[name] = replace(a, missing=f"retrieval: no passage about {a.keyword!r}")
    if p.profile:
        waiting: dict[Topic, Request] = {}
        for name, a in found.items():
            if a.missing is None:
                one, found[name] = fitted(a, "profile", library.get(name), **fills[name])
                if one is not None:
                    waiting[name] = replace(one, about=shared(name, profiled))
        replies = put(judge, list(waiting.values()))
        for name, reply in zip(waiting, replies, strict=True):
            found[name] = profiled(found[name], reply, reading=reading)

    profiles |= {name: (a, library.get(name, [])) for name, a in found.items()}
    assessed = [profiles[name][0] for name in topics]
    asked: dict[int, tuple[Request, Read]] = {}
    for i, (name, a) in enumerate(zip(topics, assessed, strict=True)):
        if a.missing is None:
            patient, shown = questions[i][0], a.prose or profile_text(a.profile)
            fill = {"patient": patient, "profile": shown, **fills[name]}
            passages, ids = None if p.profile else profiles[name][1], tuple(c.id for c in a.profile)
            one, assessed[i] = fitted(a, "evidence", passages, ids=ids, **fill)
            if one is not None:
                read = partial(_with_evidence, patient=patient, p=p)
                asked[i] = replace(one, about=own(i, assessed[i], read)), read
    replies = put(judge, [one for one, _ in asked.values()])
    for (i, (_, read)), reply in zip(asked.items(), replies, strict=True):
        assessed[i] = read(assessed[i], reply, reading=reading)
    return assessed


Read = Callable[..., Assessment]


def _step(before: Assessment, read: Read, reply: Reply, reading: Reading) -> dict[str, Any]:
    """What a reply adds to an assessment; :class:`Unreadable` where a step fails."""
    a = read(before, reply, reading=reading)
    if a.missing is not None:
        raise Unreadable(a.missing)
    if read is _with_keyword and not a.keyword_read:
        raise Unreadable(unnamed(reply.text))
    told = {"keyword": a.keyword, "profile": a.profile, "prose": a.prose, "score": a.score}
    new = {k: v for k, v in told.items() if v not in (None, ()) and v != getattr(before, k)}
    if a.evidence:
        new["evidence"] = {str(e.criterion.id): e.support_level for e in a.evidence}
    return new


def profile_text(profile: Sequence[Criterion]) -> str:
    """The profile as the next prompt shows it: a JSON list, one criterion a line."""
    each = ({"id": c.id, "importance": c.importance, "description": c.description} for c in profile)
    return json_rows({k: v for k, v in row.items() if v is not None} for row in each)


def library_text(passages: Sequence[Passage]) -> str:
    """Passages as a prompt shows them: numbered, one a line."""
    return "\n".join(f"{i}. {' '.join(p.contents.split())}" for i, p in enumerate(passages, 1))


def _fitted(
    model: Model,
    seed: int,
    p: MedConf,
    a: Assessment,
    name: str,
    passages: Sequence[Passage] | None,
    **fill: Any,
) -> tuple[Request | None, Assessment]:
    """The request with as many worked examples, then passages, best first, as fit the model's
    window, and the assessment with these; ``None`` if it does not fit at all."""
    found, prompts = list(passages or ()), prompts_of(model)
    room = reply_room(model, getattr(p, f"max_tokens_{name}"))

    def asked(n: int) -> Request:
        text = library_text(found[:n])
        return request(name, prompts, room, seed, passages=text, options=p.options, **fill)

    least, most = min(1, len(found)), len(found)
    if not fits(model, asked(most)):
        while prompts.demonstrations and not fits(model, asked(least)):
            prompts = replace(prompts, demonstrations=prompts.demonstrations - 1)
        over = range(least, most)
        most = least - 1 + bisect_left(over, True, key=lambda n: not fits(model, asked(n)))
    n = most if most >= least else 0
    if found:
        a = replace(a, passages=tuple(one.id for one in found[:n]), n_dropped=len(found) - n)
    if most < least:
        return None, replace(a, missing="the prompt does not fit the model's window")
    return asked(most), a


GENERIC = frozenset(word_lists("diagnoses")["generic"].split())
"""Words of a name that tell no disease from another."""


def is_about(passage: Passage, keyword: str) -> bool:
    """Whether a passage holds each telling word of the keyword, or of another of its names."""
    known = load_knowledge().condition_named(keyword)
    words = set(terms(passage.contents))
    names = (set(terms(name)) for name in (keyword, *(known.names if known else ())))
    return any((name - GENERIC or name) <= words for name in names if name)


def _with_keyword(a: Assessment, reply: Reply, reading: Reading) -> Assessment:
    """The keyword of a reply, else the diagnosis itself: ``keyword_read`` says which."""
    a = _noted(a, "keyword", reply)
    if why := no_answer(reply):
        return replace(a, missing=f"keyword: {why}")
    span = diagnosis(reply.text, reading)
    return replace(a, keyword=span.text if span else a.diagnosis, keyword_read=span is not None)


def _with_profile(a: Assessment, reply: Reply, p: MedConf, reading: Reading) -> Assessment:
    a = _noted(a, "profile", reply)
    try:
        text = whole(reply)
        if p.structure:
            return replace(a, profile=read_profile(text, importance=p.importance, reading=reading))
        return replace(a, prose=read_prose(text))
    except Unreadable as error:
        return replace(a, missing=f"symptom profile: {error}")


def _with_evidence(
    a: Assessment, reply: Reply, patient: str, p: MedConf, reading: Reading
) -> Assessment:
    a = _noted(a, "evidence", reply)
    try:
        text = whole(reply)
        if p.profile and p.structure:
            evidence, agrees = read_evidence(text, a.profile, patient, reading)
            a = replace(a, evidence=evidence, summary_agrees=agrees)
        score, reasoning = read_score(text, patient, reading)
        return replace(a, score=score, reasoning=reasoning)
    except Unreadable as error:
        return replace(a, missing=f"confidence from evidence: {error}")


def _noted(a: Assessment, step: str, reply: Reply) -> Assessment:
    return replace(a, replies={**a.replies, step: reply.text or ""})
