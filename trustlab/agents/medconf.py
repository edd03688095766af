"""Asks for evidence and a score from it (MedConf; Ren et al. 2026, section 5).

Keyword of the diagnosis, passages of a library, symptom profile, each criterion supported, missing
or contradicted by the patient's words, a score. Prompts: ``keyword``, ``profile``, ``evidence``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

from pydantic import model_validator

from trustlab.agents.asking import fits, put, read_by, reply_room, request
from trustlab.choices import Count, Switch, choices
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.words import word_lists
from trustlab.models.base import About, Model, Request
from trustlab.parsing.medconf import read_evidence, read_profile, read_prose, read_score
from trustlab.parsing.reply import Unreadable, diagnosis, no_answer, unnamed, whole
from trustlab.prompts import json_rows, numbered, prompts_of
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


class Topic(NamedTuple):
    """A diagnosis; or an answer, and the question that a case asks instead."""

    answer: str
    question: str = ""


class Profiled(NamedTuple):
    """An assessment as far as it hangs on no patient, and the passages retrieved for it."""

    assessment: Assessment
    passages: list[Passage]


Profiles = dict[Topic, Profiled]
Drafts = dict[Topic, Assessment]
Library = dict[Topic, list[Passage]]
Read = Callable[..., Assessment]


def assess(  # noqa: PLR0913
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
    case's question (:class:`Topic`). Decoding is greedy; each step is one batch.

    - ``assessor``: if given, does every step after the diagnosis in the model's place.
    - If a step fails, only that assessment stops; it is missing, with its reason.
    - ``reading``: how replies are read (:mod:`trustlab.parsing`).
    - ``profiles``: those of earlier calls, not requested again; this call adds its own.
    - ``about``: the view behind each question; for a diagnosis's keyword and profile, the first.
    """
    parameters = parameters or MedConf()
    profiles = {} if profiles is None else profiles
    patients: list[str] = []
    topics: list[Topic] = []
    for patient, *topic in questions:
        patients.append(patient)
        topics.append(Topic(*topic))
    procedure = _Procedure(assessor or model, parameters, seed, reading, topics, about)
    drafts: Drafts = {}
    for topic in topics:
        if topic not in profiles:
            drafts[topic] = Assessment(topic.answer)
    library: Library = {}
    if parameters.retrieval:
        procedure.add_keywords(drafts)
        library = procedure.retrieve(drafts, retriever)
    if parameters.profile:
        procedure.add_profiles(drafts, library)
    for topic, draft in drafts.items():
        profiles[topic] = Profiled(draft, library.get(topic, []))
    return procedure.weigh(patients, profiles)


@dataclass(frozen=True)
class _Procedure:
    """Who assesses which topics, and how. ``about``: the view behind each topic."""

    model: Model
    parameters: MedConf
    seed: int
    reading: Reading
    topics: Sequence[Topic]
    about: Sequence[About] | None

    @cached_property
    def n_views(self) -> Counter[Topic]:
        """How many views have each topic."""
        return Counter(self.topics)

    def add_keywords(self, drafts: Drafts) -> None:
        """The keyword step: one request for each diagnosis, whose keyword its draft receives."""
        requests = []
        for topic, draft in drafts.items():
            keyword_request = request(
                "keyword",
                self.model,
                self.parameters.max_tokens_keyword,
                self.seed,
                self._about_all(topic, draft, _with_keyword),
                answer=topic.answer,
                asks=topic.question,
            )
            requests.append(keyword_request)
        replies = put(self.model, requests)
        for topic, reply in zip(drafts, replies, strict=True):
            drafts[topic] = _with_keyword(drafts[topic], reply, self.reading)

    def retrieve(self, drafts: Drafts, retriever: Retriever) -> Library:
        """The passages for each keyword; without one about it the draft is missing."""
        library: Library = {}
        is_gated = getattr(retriever, "gated", True)  # not so of a control
        for topic, draft in drafts.items():
            if not draft.keyword:
                continue
            passages = retriever.search(draft.keyword, self.parameters.n_passages)
            library[topic] = passages
            fitting = passages
            if is_gated:
                fitting = [
                    passage for passage in passages if is_about(passage, draft.keyword)
                ]
            if not fitting:
                missing = f"retrieval: no passage about {draft.keyword!r}"
                drafts[topic] = replace(draft, missing=missing)
        return library

    def add_profiles(self, drafts: Drafts, library: Library) -> None:
        """The profile step: one request for each diagnosis, whose profile its draft receives."""
        read = partial(_with_profile, parameters=self.parameters)
        requests: dict[Topic, Request] = {}
        for topic, draft in drafts.items():
            if draft.missing is not None:
                continue
            profile_request, drafts[topic] = self._fitted(
                draft,
                "profile",
                self.parameters.max_tokens_profile,
                library.get(topic, []),
                answer=topic.answer,
                asks=topic.question,
            )
            if profile_request is not None:
                about = self._about_all(topic, drafts[topic], read)
                requests[topic] = replace(profile_request, about=about)
        replies = put(self.model, list(requests.values()))
        for topic, reply in zip(requests, replies, strict=True):
            drafts[topic] = _with_profile(
                drafts[topic], reply, self.parameters, self.reading
            )

    def weigh(
        self, patients: Sequence[str], profiles: Mapping[Topic, Profiled]
    ) -> list[Assessment]:
        """The evidence step: each patient's words held against the profile, and a score."""
        assessments: list[Assessment] = []
        requests: dict[int, Request] = {}
        for place, (patient, topic) in enumerate(
            zip(patients, self.topics, strict=True)
        ):
            draft, passages = profiles[topic]
            evidence_request = None
            if draft.missing is None:
                evidence_request, draft = self._fitted(
                    draft,
                    "evidence",
                    self.parameters.max_tokens_evidence,
                    [] if self.parameters.profile else passages,
                    ids=tuple(criterion.id for criterion in draft.profile),
                    patient=patient,
                    profile=draft.prose or profile_text(draft.profile),
                    answer=topic.answer,
                    asks=topic.question,
                )
            assessments.append(draft)
            if evidence_request is not None:
                read = partial(
                    _with_evidence, patient=patient, parameters=self.parameters
                )
                about = self._about(place, draft, read)
                requests[place] = replace(evidence_request, about=about)
        replies = put(self.model, list(requests.values()))
        for place, reply in zip(requests, replies, strict=True):
            assessments[place] = _with_evidence(
                assessments[place],
                reply,
                patients[place],
                self.parameters,
                self.reading,
            )
        return assessments

    def _about(self, place: int, draft: Assessment, read: Read) -> About | None:
        """Whose a request is, and how its reply is read."""
        if not self.about:
            return None
        about = self.about[place]._replace(diagnosis=draft.diagnosis)
        return read_by(about, partial(_results_added, draft, read), self.reading)

    def _about_all(self, topic: Topic, draft: Assessment, read: Read) -> About | None:
        """The same of a request that all views with a topic share."""
        about = self._about(self.topics.index(topic), draft, read)
        if about is None:
            return None
        return about._replace(n_views=self.n_views[topic])

    def _fitted(
        self,
        draft: Assessment,
        name: str,
        max_tokens: int,
        passages: Sequence[Passage],
        **fill: Any,
    ) -> tuple[Request | None, Assessment]:
        """The request with as many worked examples, then passages, best first, as fit the model's
        window, and the assessment with these; ``None`` if it does not fit at all."""
        prompts = prompts_of(self.model)
        room = reply_room(self.model, max_tokens)
        options = self.parameters.options

        def with_passages(n: int) -> Request:
            text = library_text(passages[:n])
            return request(
                name, prompts, room, self.seed, passages=text, options=options, **fill
            )

        def is_too_long(n: int) -> bool:
            return not fits(self.model, with_passages(n))

        least = min(1, len(passages))
        n_fitting = len(passages)
        if is_too_long(n_fitting):
            while prompts.demonstrations and is_too_long(least):
                prompts = replace(prompts, demonstrations=prompts.demonstrations - 1)
            n_tried = range(least, len(passages))
            n_fitting = least - 1 + bisect_left(n_tried, True, key=is_too_long)
        if passages:
            shown = tuple(passage.id for passage in passages[: max(0, n_fitting)])
            draft = replace(draft, passages=shown, n_dropped=len(passages) - len(shown))
        if n_fitting < least:
            return None, replace(
                draft, missing="the prompt does not fit the model's window"
            )
        return with_passages(n_fitting), draft


def _results_added(
    before: Assessment, read: Read, reply: Reply, reading: Reading
) -> dict[str, Any]:
    """What a reply adds to an assessment; :class:`Unreadable` where a step fails."""
    draft = read(before, reply, reading=reading)
    if draft.missing is not None:
        raise Unreadable(draft.missing)
    if read is _with_keyword and not draft.keyword_read:
        raise Unreadable(unnamed(reply.text))
    earlier = _results(before)
    added: dict[str, Any] = {}
    for name, result in _results(draft).items():
        if result not in (None, ()) and result != earlier[name]:
            added[name] = result
    if draft.evidence:
        levels = {str(e.criterion.id): e.support_level for e in draft.evidence}
        added["evidence"] = levels
    return added


def _results(draft: Assessment) -> dict[str, Any]:
    return {
        "keyword": draft.keyword,
        "profile": draft.profile,
        "prose": draft.prose,
        "score": draft.score,
    }


def profile_text(profile: Sequence[Criterion]) -> str:
    """The profile as the next prompt shows it: a JSON list, one criterion a line."""
    rows = []
    for criterion in profile:
        row: dict[str, Any] = {"id": criterion.id}
        if criterion.importance is not None:
            row["importance"] = criterion.importance
        row["description"] = criterion.description
        rows.append(row)
    return json_rows(rows)


def library_text(passages: Sequence[Passage]) -> str:
    """Passages as a prompt shows them: numbered, one a line."""
    return numbered(passage.contents for passage in passages)


GENERIC = frozenset(word_lists("diagnoses")["generic"].split())
"""Words of a name that tell no disease from another."""


def is_about(passage: Passage, keyword: str) -> bool:
    """Whether a passage holds each telling word of the keyword, or of another of its names."""
    names = [keyword]
    condition = load_knowledge().condition_named(keyword)
    if condition is not None:
        names += condition.names
    passage_words = set(terms(passage.contents))
    for name in names:
        name_words = set(terms(name))
        telling_words = name_words - GENERIC or name_words
        if telling_words and telling_words <= passage_words:
            return True
    return False


def _with_keyword(draft: Assessment, reply: Reply, reading: Reading) -> Assessment:
    """The keyword of a reply, else the diagnosis itself: ``keyword_read`` says which."""
    draft = _with_reply(draft, "keyword", reply)
    why_none = no_answer(reply)
    if why_none:
        return replace(draft, missing=f"keyword: {why_none}")
    span = diagnosis(reply.text, reading)
    if span is None:
        return replace(draft, keyword=draft.diagnosis, keyword_read=False)
    return replace(draft, keyword=span.text, keyword_read=True)


def _with_profile(
    draft: Assessment, reply: Reply, parameters: MedConf, reading: Reading
) -> Assessment:
    """The profile of a reply: its criteria, or prose where they have no structure."""
    draft = _with_reply(draft, "profile", reply)
    try:
        text = whole(reply)
        if not parameters.structure:
            return replace(draft, prose=read_prose(text))
        profile = read_profile(text, importance=parameters.importance, reading=reading)
    except Unreadable as error:
        return replace(draft, missing=f"symptom profile: {error}")
    return replace(draft, profile=profile)


def _with_evidence(
    draft: Assessment, reply: Reply, patient: str, parameters: MedConf, reading: Reading
) -> Assessment:
    """The evidence of a reply, where the profile has criteria, and its score."""
    draft = _with_reply(draft, "evidence", reply)
    try:
        text = whole(reply)
        if parameters.profile and parameters.structure:
            evidence, agrees = read_evidence(text, draft.profile, patient, reading)
            draft = replace(draft, evidence=evidence, summary_agrees=agrees)
        score, reasoning = read_score(text, patient, reading)
    except Unreadable as error:
        return replace(draft, missing=f"confidence from evidence: {error}")
    return replace(draft, score=score, reasoning=reasoning)


def _with_reply(draft: Assessment, step: str, reply: Reply) -> Assessment:
    return replace(draft, replies={**draft.replies, step: reply.text or ""})
