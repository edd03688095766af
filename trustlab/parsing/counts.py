"""How many replies of a run were read, and how many of them only as chat models write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from trustlab.parsing.agents import read_opinion
from trustlab.parsing.medconf import read_evidence, read_profile, read_score
from trustlab.parsing.reply import Unreadable, diagnosis, no_answer
from trustlab.parsing.scores import guesses, score_0_100, true_or_false
from trustlab.records import Assessment, Generation, Opinion, Reading, Reply

Read = tuple[str, str, Callable[[Reading], Any]]
"""A reply: whose it is, in which step of :data:`STEPS`, and what a reading makes of it (``None``,
or :class:`Unreadable`, where that is nothing)."""
Counts = dict[str, dict[str, dict[str, int]]]
"""Model -> step -> replies "read", and those of them that are read as "chat" alone."""
STEPS = {
    "answer": "answers",
    "samples": "samples",
    "ce": "scores (CE)",
    "cot_ce": "scores (CoT-CE)",
    "topk_ce": "guesses of scores",
    "p_true": "judgements of true or false",
    "keyword": "keywords",
    "profile": "profiles",
    "evidence": "tables of evidence",
    "score": "scores (MedConf)",
    "opinion": "doctors' diagnoses",
    "plan": "plans",
    "review": "reviews",
}
"""Step -> what a sentence calls its replies."""


def tally(replies: Iterable[Read], reading: Reading, found: Counts | None = None) -> Counts:
    """The counts of these replies, read with ``reading``, added to ``found``."""
    found = {} if found is None else found
    for model, step, reads in replies:
        strict = _reads(reads, "strict")
        if strict or (reading == "chat" and _reads(reads, "chat")):
            n = found.setdefault(model, {}).setdefault(step, {"read": 0, "chat": 0})
            n["read"] += 1
            n["chat"] += not strict
    return found


def _reads(reads: Callable[[Reading], Any], reading: Reading) -> bool:
    try:
        return reads(reading) is not None
    except Unreadable:
        return False


def words(steps: Mapping[str, Mapping[str, int]]) -> str:
    """A model's counts as a part of a sentence; '' where strict reading gives the same."""
    told = [
        f"{n['chat']:,} of {n['read']:,} {STEPS[step]}" for step, n in steps.items() if n["chat"]
    ]
    why = 'read as chat models write them (reading="strict" refuses them)'
    return f"{', '.join(told)} {why}" if told else ""


def replies_of(
    generations: Iterable[Generation],
    importance: bool = True,
    structure: bool = True,
    known: set[tuple[str, str]] | None = None,
) -> Iterator[Read]:
    """What was read of these answers; ``importance`` and ``structure`` as in the procedure of
    MedConf. Keyword and profile of one diagnosis are one reply: those (model, diagnosis) in
    ``known`` are passed over, and others put there."""
    known = set() if known is None else known
    for g in generations:
        if g.answer and g.answer.text is not None:
            yield g.model, "answer", named(g.answer.raw)
        for sample in g.samples or ():
            yield g.model, "samples", named(sample.raw)
        for probe, replies in g.probes.items():
            for reply in replies:
                if not no_answer(reply):
                    yield g.model, probe, probed(probe, reply.text, g.told)
        if g.assessment:
            again = (g.model, g.assessment.diagnosis) in known
            known.add((g.model, g.assessment.diagnosis))
            steps = _assessed(g.assessment, g.told or "", importance, structure)
            for step, reads in steps.items():
                if not (again and step in ("keyword", "profile")):
                    yield g.model, step, reads
        if g.panel:
            yield from opinions_of(g.model, g.panel.opinions)


def opinions_of(model: str, opinions: Iterable[Opinion]) -> Iterator[Read]:
    """The readable opinions of a panel, under this name."""
    for opinion in opinions:
        if opinion.diagnosis is not None:
            yield model, "opinion", _opined(Reply(opinion.raw))


def _opined(reply: Reply) -> Callable[[Reading], Any]:
    return lambda reading: read_opinion(reply, reading)[1]


def named(raw: str | None) -> Callable[[Reading], Any]:
    """How an answer, a sample or a keyword is read."""
    return lambda reading: diagnosis(raw, reading)


def probed(probe: str, text: str | None, told: str | None) -> Callable[[Reading], Any]:
    """How a reply to a question about an answer is read; ``told`` are the patient's words."""
    if probe == "topk_ce":
        return lambda reading: guesses(text, patient=told, reading=reading)
    if probe == "p_true":
        return lambda reading: true_or_false(text, reading)
    return lambda reading: score_0_100(text, told, reading)


def _assessed(
    a: Assessment, told: str, importance: bool, structure: bool
) -> dict[str, Callable[[Reading], Any]]:
    """Each step of an assessment that gave something, and how it is read."""
    found: dict[str, Callable[[Reading], Any]] = {}
    if a.keyword is not None:
        found["keyword"] = named(a.replies["keyword"])
    if a.profile and structure:
        text = a.replies["profile"]
        found["profile"] = lambda how: read_profile(text, importance=importance, reading=how)
    if said := a.replies.get("evidence"):
        if a.evidence:
            found["evidence"] = lambda how: read_evidence(said, a.profile, told, how)
        if a.score is not None:
            found["score"] = lambda how: read_score(said, told, how)
    return found
