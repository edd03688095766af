"""MedConf: confidence grounded in evidence (Ren et al. 2026, section 5).

Keyword of the diagnosis -> passages of a library -> symptom profile (what a patient with it would
have) -> each criterion supported, missing or contradicted by the patient's words -> a score. The
paper's four ablations are parameters of this one procedure; the prompts are
``prompts/keyword.txt``, ``profile.txt`` and ``evidence.txt``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from trustlab.knowledge import load_knowledge
from trustlab.models.base import About, Model, Request, most_tokens
from trustlab.parsing.counts import both
from trustlab.parsing.medconf import read_evidence, read_profile, read_prose, read_score
from trustlab.parsing.reply import Unreadable, diagnosis, no_answer, unnamed, whole
from trustlab.parsing.schemas import schema_of
from trustlab.prompts import Prompts, json_rows, prompts_of, render
from trustlab.records import Assessment, Criterion, Reading, Reply
from trustlab.retrieval import Passage, Retriever, terms
from trustlab.words import word_lists

Ask = Callable[[Model, list[Request], str], list[list[Reply]]]
"""Puts requests to a model: (model, requests, what for) -> replies."""


class Contents(Protocol):
    """A passage, as far as a prompt shows it."""

    @property
    def contents(self) -> str:
        """Title and content together."""
        ...


@dataclass(frozen=True)
class MedConf:
    """The procedure's parameters. Each of the first four, switched off, is one of the paper's
    ablations.

    ``retrieval`` off: the profile comes from the model's memory. ``profile`` off: the score comes
    straight from the passages. ``structure`` off: the profile is prose, and there is no table of
    evidence. ``importance`` off: criteria carry none.
    """

    retrieval: bool = True
    profile: bool = True
    structure: bool = True
    importance: bool = True
    n_passages: int = 15
    max_tokens_keyword: int = 32
    max_tokens_profile: int = 1024
    max_tokens_evidence: int = 2048

    def __post_init__(self) -> None:
        if not (self.retrieval or self.profile):
            raise ValueError(
                "retrieval and profile are both off: nothing is left to hold the patient's words"
                " against"
            )
        if self.n_passages < 1:
            raise ValueError(f"n_passages is {self.n_passages}; at least 1 is needed")

    @property
    def options(self) -> frozenset[str]:
        """The names of what is switched on, as the prompts know them."""
        return frozenset(
            name
            for name in ("retrieval", "profile", "structure", "importance")
            if getattr(self, name)
        )


Profiles = dict[str, tuple[Assessment, list[Passage]]]
"""Diagnosis -> its assessment as far as it hangs on no patient, and the passages found."""


def assess(
    model: Model,
    questions: Sequence[tuple[str, str]],
    retriever: Retriever,
    parameters: MedConf | None = None,
    *,
    assessor: Model | None = None,
    seed: int = 0,
    reading: Reading = "chat",
    ask: Ask | None = None,
    profiles: Profiles | None = None,
    about: Sequence[About] | None = None,
) -> list[Assessment]:
    """One :class:`Assessment` for each (patient information, diagnosis); greedy replies, every step
    in one batch.

    ``assessor``, where given, does all that follows the diagnosis in the model's place. A step that
    fails leaves the assessment missing with its reason and stops that assessment only. ``reading``
    is how replies are read (:mod:`trustlab.parsing`), ``ask`` how requests are put (default: at
    once). ``profiles`` holds what is known of diagnoses from earlier calls, which is not asked for
    again; this call's are added. ``about`` says whose each question is; keyword and profile of a
    diagnosis are the first's that has it.
    """
    judge, p = assessor or model, parameters or MedConf()
    put = ask or (lambda m, requests, _: m.generate(requests))

    def told(requests: list[Request], step: str) -> list[Reply]:
        return [r[0] for r in put(judge, requests, step)] if requests else []

    def own(i: int, of: Assessment, read: Read) -> About | None:
        how = both(partial(_step, of, read), reading)
        return about[i]._replace(diagnosis=of.diagnosis, **how) if about else None

    def shared(of: Assessment, read: Read) -> About | None:
        whose = own(first[of.diagnosis], of, read)
        return whose and whose._replace(n_views=n_asked[of.diagnosis])

    n_asked = Counter(answer for _, answer in questions)
    first = {answer: i for i, (_, answer) in reversed(list(enumerate(questions)))}
    profiles = {} if profiles is None else profiles
    answers = dict.fromkeys(answer for _, answer in questions)
    found = {answer: Assessment(answer) for answer in answers if answer not in profiles}
    library: dict[str, list[Passage]] = {}
    if p.retrieval:
        requests = [
            replace(
                _request(judge, "keyword", p.max_tokens_keyword, seed, answer=answer),
                about=shared(a, _with_keyword),
            )
            for answer, a in found.items()
        ]
        for answer, reply in zip(found, told(requests, "keywords"), strict=True):
            found[answer] = _with_keyword(found[answer], reply, reading)
        for answer, a in found.items():
            library[answer] = retriever.search(a.keyword, p.n_passages) if a.keyword else []
            about_it = partial(is_about, keyword=a.keyword or "") if is_gated(retriever) else bool
            if a.keyword and not any(map(about_it, library[answer])):
                found[answer] = replace(a, missing=f"retrieval: no passage about {a.keyword!r}")
    if p.profile:
        waiting: list[tuple[str, Request]] = []
        for answer, a in found.items():
            if a.missing is None:
                request, shown = _fitted(
                    judge,
                    "profile",
                    p.max_tokens_profile,
                    seed,
                    library.get(answer),
                    p.options,
                    answer=answer,
                )
                found[answer] = _with_passages(a, shown, library.get(answer), request)
                if request is not None:
                    whose = shared(found[answer], partial(_with_profile, p=p))
                    waiting.append((answer, replace(request, about=whose)))
        for (answer, _), reply in zip(
            waiting, told([r for _, r in waiting], "symptom profiles"), strict=True
        ):
            found[answer] = _with_profile(found[answer], reply, p, reading)

    profiles |= {answer: (a, library.get(answer, [])) for answer, a in found.items()}
    assessed = [profiles[answer][0] for _, answer in questions]
    asked: list[tuple[int, Request]] = []
    for i, (patient, answer) in enumerate(questions):
        a = assessed[i]
        if a.missing is None:
            passages = None if p.profile else profiles[answer][1]
            fill = {
                "patient": patient,
                "answer": answer,
                "profile": a.prose or profile_text(a.profile),
                "ids": tuple(c.id for c in a.profile),
            }
            request, shown = _fitted(
                judge, "evidence", p.max_tokens_evidence, seed, passages, p.options, **fill
            )
            assessed[i] = _with_passages(a, shown, passages, request)
            if request is not None:
                read = partial(_with_evidence, patient=patient, p=p)
                asked.append((i, replace(request, about=own(i, assessed[i], read))))
    for (i, _), reply in zip(
        asked, told([r for _, r in asked], "confidence from evidence"), strict=True
    ):
        assessed[i] = _with_evidence(assessed[i], reply, questions[i][0], p, reading)
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
    rows = [
        {"id": c.id}
        | ({"importance": c.importance} if c.importance else {})
        | {"description": c.description}
        for c in profile
    ]
    return json_rows(rows)


def library_text(passages: Sequence[Contents]) -> str:
    """Passages as a prompt shows them: numbered, one a line."""
    return "\n".join(f"{i}. {' '.join(p.contents.split())}" for i, p in enumerate(passages, 1))


def _request(
    to: Model | Prompts, name: str, max_tokens: int, seed: int, ids: Sequence[int] = (), **fill: Any
) -> Request:
    messages, schema = render(name, to=to, **fill), schema_of(name, fill.get("options", ()), ids)
    return Request(messages, max_tokens=max_tokens, seed=seed, purpose=name, schema=schema)


def _fitted(
    model: Model,
    name: str,
    max_tokens: int,
    seed: int,
    passages: Sequence[Passage] | None,
    options: frozenset[str],
    **fill: Any,
) -> tuple[Request | None, Sequence[Passage]]:
    """The request with as many worked examples, then passages, best first, as fit the model's
    window; ``None`` if it does not fit at all."""
    found, room = list(passages or ()), reply_room(model, max_tokens)
    prompts = prompts_of(model)

    def asked(n: int) -> Request:
        shown = library_text(found[:n])
        return _request(prompts, name, room, seed, passages=shown, options=options, **fill)

    least, most = min(1, len(found)), len(found)
    if not fits(model, asked(most)):
        while prompts.demonstrations and not fits(model, asked(least)):
            prompts = replace(prompts, demonstrations=prompts.demonstrations - 1)
        over = range(least, most)
        most = least - 1 + bisect_left(over, True, key=lambda n: not fits(model, asked(n)))
    return (asked(most), found[:most]) if most >= least else (None, [])


def reply_room(model: Model, max_tokens: int) -> int:
    """Tokens a reply may take: ``max_tokens``, but at most a quarter of the model's window."""
    window = getattr(model, "window", math.inf)
    return max_tokens if math.isinf(window) else min(max_tokens, int(window) // 4)


def fits(model: Model, request: Request) -> bool:
    """Whether prompt, thought and reply fit the model's window; true where the backend cannot count
    tokens."""
    count, window = getattr(model, "count_tokens", None), getattr(model, "window", math.inf)
    thought = getattr(getattr(model, "model", model), "thinking_tokens", 0)
    room = window - request.max_tokens - thought
    if count is None or most_tokens(request.messages) <= room:
        return True
    n_tokens = count(request.messages)
    return n_tokens is None or n_tokens <= room


GENERIC = frozenset(word_lists("diagnoses")["generic"].split())
"""Words of a name that tell no disease from another."""


def is_gated(retriever: Retriever) -> bool:
    """Whether passages must be about the keyword; not so of a control whose ``gated`` is false."""
    return getattr(retriever, "gated", True)


def is_about(passage: Contents, keyword: str) -> bool:
    """Whether a passage holds each telling word of the keyword, or of another name that the
    knowledge table has for it."""
    known = load_knowledge().condition_named(keyword)
    words = set(terms(passage.contents))
    names = (set(terms(name)) for name in (keyword, *(known.names if known else ())))
    return any((name - GENERIC or name) <= words for name in names if name)


def _with_keyword(a: Assessment, reply: Reply, reading: Reading) -> Assessment:
    """The keyword of a reply; of one that cannot be read the diagnosis stands in, and the record
    says so by its ``keyword_read``."""
    a = _noted(a, "keyword", reply)
    if why := no_answer(reply):
        return replace(a, missing=f"keyword: {why}")
    span = diagnosis(reply.text, reading)
    return replace(a, keyword=span.text if span else a.diagnosis, keyword_read=span is not None)


def _with_passages(
    a: Assessment,
    shown: Sequence[Passage],
    found: Sequence[Passage] | None,
    request: Request | None,
) -> Assessment:
    if found:
        a = replace(a, passages=tuple(p.id for p in shown), n_dropped=len(found) - len(shown))
    return (
        a
        if request is not None
        else replace(a, missing="the prompt does not fit the model's window")
    )


def _with_profile(a: Assessment, reply: Reply, p: MedConf, reading: Reading) -> Assessment:
    a = _noted(a, "profile", reply)
    try:
        text = whole(reply)
        if p.structure:
            profile = read_profile(text, importance=p.importance, reading=reading)
            return replace(a, profile=profile)
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
