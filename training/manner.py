"""How people tell a case: in conversation, in the third person of a case report, or in the table's
words. Wordings are training's alone; the starter's conversations and reports share none of them.

A way of telling keeps each fact with the statement that tells it (two facts may share one), so that
evidence can be held against the patient's words whatever the manner.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import yaml

from trustlab.knowledge.chart import Chart
from trustlab.knowledge.findings import answer_text, phrase_list
from trustlab.records import Statement

from .charts import AGES, ANY_AGE
from .charts import posterior as with_chart
from .speech import FOLDER, told
from .talk import in_vain
from .world import Fact, Patient, World

MANNERS = ("table", "conversation", "report")
CHILD = 16
"""Years below which a report says boy or girl."""
LISTED = 0.5
"""Share of a report's facts that are told in lists, where they can be."""
ASIDE = 0.15
"""Chance that something beside the point follows a statement."""
SHARED_TURN = 0.12
"""Chance that a patient tells the next thing unasked, in the same turn."""


@lru_cache(maxsize=1)
def wordings() -> dict[str, dict[str, list[str]]]:
    """Finding id -> ``ask``, ``yes``, ``no`` (conversation), ``told``, ``noun``, ``not`` (report),
    those of all files together."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in [*sorted(FOLDER.glob("*.yml")), *sorted(FOLDER.glob("manner/manner-*.yml"))]:
        for finding, lists in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            mine = found.setdefault(finding, {})
            for kind, texts in lists.items():
                mine.setdefault(kind, []).extend(texts)
    return found


@lru_cache(maxsize=1)
def asides() -> dict[str, Any]:
    """What is said beside the point, and the frames of turns and reports."""
    return yaml.safe_load((FOLDER / "manner" / "asides.yml").read_text(encoding="utf-8"))


def one(texts: Sequence[Any], rng: np.random.Generator) -> Any:
    """One of them."""
    return texts[int(rng.integers(len(texts)))]


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".?!" else text + "."


def values_of(world: World, fact: Fact) -> str:
    """The fact's values in words."""
    known = world.knowledge.values
    return phrase_list([known[v].phrase if v in known else v for v in fact.values] or [""])


def answer(world: World, fact: Fact, rng: np.random.Generator) -> str:
    """What a patient says in conversation, or one of the table's phrasings."""
    f, said = world.knowledge.findings[fact.finding], wordings().get(fact.finding, {})
    texts = said.get("yes" if fact.affirmed else "no", [])
    texts = [t for t in texts if ("{value}" in t) == bool(fact.values)]
    if not texts or rng.random() < 0.15:
        phrases = [values_of(world, fact)] if fact.values else []
        return answer_text(f, fact.affirmed, phrases, int(rng.integers(1000)))
    text = one(texts, rng).replace("{value}", values_of(world, fact))
    if rng.random() < 0.3:
        before = one(asides()["hedge_before"], rng)
        goes_on = before.rstrip()[-1] not in ".?!" and not re.match(r"I\b", text)
        text = before + (text[0].lower() + text[1:] if goes_on else text)
    if rng.random() < 0.15:
        text += one(asides()["hedge_after"], rng)
    return sentence(text)


def question(world: World, finding: str, rng: np.random.Generator) -> str:
    """How a doctor asks for it."""
    asked = wordings().get(finding, {}).get("ask", [])
    if not asked or rng.random() < 0.25:
        return world.knowledge.findings[finding].question
    before = one(asides()["doctor_before"], rng) if rng.random() < 0.25 else ""
    return before + one(asked, rng)


def conversation(
    world: World, facts: Sequence[Fact], rng: np.random.Generator
) -> tuple[tuple[Statement, ...], str]:
    """The statement of each fact, and the whole text with what is beside the point."""
    turns: list[str] = []
    of_fact: list[Statement] = []
    k = 0
    while k < len(facts):
        n = 1 + int(k + 1 < len(facts) and rng.random() < SHARED_TURN)
        said = " ".join(answer(world, f, rng) for f in facts[k : k + n])
        opens = k == 0 and rng.random() < 0.6
        asked = one(asides()["opening"], rng) if opens else question(world, facts[k].finding, rng)
        turns.append(f"Doctor: {asked}\nPatient: {said}")
        of_fact += [Statement(turns[-1], f.finding, f.affirmed) for f in facts[k : k + n]]
        k += n
        if rng.random() < ASIDE:
            doctor, patient = one(asides()["talk"], rng)
            turns.append(f"Doctor: {doctor}\nPatient: {patient}")
    return tuple(of_fact), "\n".join(turns)


def report(
    world: World, patient: Patient, facts: Sequence[Fact], age: int, rng: np.random.Generator
) -> tuple[tuple[Statement, ...], str]:
    """The same for a case report, whose first sentence says age, sex and complaint."""
    female = patient.sex == "female"
    who = {"He": "She", "he": "she", "his": "her", "His": "Her", "him": "her"} if female else {}

    def filled(text: str, **others: str) -> str:
        slots = {w: who.get(w, w) for w in ("He", "he", "his", "His", "him")} | others
        return sentence(re.sub(r"\{(\w+)\}", lambda m: slots[m[1]], text))

    nouns = [wordings().get(f.finding, {}).get("noun", []) for f in facts]
    person = {True: ("girl", "woman"), False: ("boy", "man")}[female][age >= CHILD]
    lines: list[str] = []
    of_fact: list[Statement] = []

    def add(line: str, told_by: Sequence[Fact]) -> None:
        lines.append(line)
        of_fact.extend(Statement(line, f.finding, f.affirmed) for f in told_by)

    complaint = one(nouns[0], rng) if nouns[0] else world.knowledge.findings[facts[0].finding].name
    opening = one(asides()["report_opening"], rng)
    complaint = re.sub(r"\{(\w+)\}", lambda m: who.get(m[1], m[1]), complaint)
    add(filled(opening, age=str(age), person=person, complaint=complaint), facts[:1])
    k = 1
    while k < len(facts):
        n = 1
        while n < 4 and k + n < len(facts) and facts[k + n].affirmed == facts[k].affirmed:
            n += 1
        n = int(rng.integers(1, n + 1)) if rng.random() < LISTED else 1
        group = facts[k : k + n]
        if n > 1 and all(nouns[k : k + n]):
            listed = [one(nouns[k + j], rng) for j in range(n)]
            text = phrase_list(listed)
            if not group[0].affirmed:
                text = " or ".join(text.rsplit(" and ", 1))
            text = re.sub(r"\{(\w+)\}", lambda m: who.get(m[1], m[1]), text)
            frames = asides()["report_list"]["yes" if group[0].affirmed else "no"]
            add(filled(one(frames, rng), list=text), group)
        else:
            n = 1
            add(filled(_reported(world, facts[k], female, rng)), facts[k : k + 1])
        k += n
        if rng.random() < ASIDE:
            lines.append(filled(one(asides()["report_aside"], rng)))
    return tuple(of_fact), "\n".join(lines)


def _reported(world: World, fact: Fact, female: bool, rng: np.random.Generator) -> str:
    """A sentence for one fact, its slots for the patient open."""
    said, f = wordings().get(fact.finding, {}), world.knowledge.findings[fact.finding]
    texts = said.get("told" if fact.affirmed else "not", [])
    texts = [t for t in texts if ("{value}" in t) == bool(fact.values)]
    if not texts:
        return f"{{He}} {'has' if fact.affirmed else 'has no'} {f.name}"
    values = re.sub(r"\bmy\b", "her" if female else "his", values_of(world, fact))
    return one(texts, rng).replace("{value}", values)


def tell(
    world: World, patient: Patient, manner: str, rng: np.random.Generator
) -> tuple[tuple[Statement, ...], str, np.ndarray]:
    """The statement of each fact, the text, and the exact posterior of who reads it (a report says
    age and sex)."""
    if manner == "report":
        condition = world.knowledge.conditions[patient.condition]
        low, high = AGES if rng.random() < ANY_AGE else condition.age
        age = int(rng.integers(max(low, AGES[0]), min(high, AGES[1]) + 1))
        of_fact, text = report(world, patient, patient.facts, age, rng)
        return of_fact, text, with_chart(world, patient, Chart(age, patient.sex))
    if manner == "conversation":
        of_fact, text = conversation(world, patient.facts, rng)
    else:
        of_fact = told(world, patient, rng)
        text = "\n".join(s.text for s in in_vain(world, of_fact, rng))
    return of_fact, text, world.posterior(patient.facts)


def texts() -> Iterator[str]:
    """Everything above, for the vocabulary."""
    for lists in wordings().values():
        for listed in lists.values():
            yield from listed
    for value in asides().values():
        listed = [t for v in value.values() for t in v] if isinstance(value, dict) else value
        for text in listed:
            yield from [text] if isinstance(text, str) else text


def words(least: int) -> list[str]:
    """The words of all wordings as they stand, with the space before them or at a beginning, that
    occur often enough."""
    count: Counter[str] = Counter()
    for text in texts():
        for m in re.finditer(r"(^| )([A-Za-z]+(?:'[a-z]+)?|[0-9]+)", text):
            word = m[2]
            if m[1]:
                count[" " + word] += 1
            else:
                count[word[0].upper() + word[1:]] += 1
                count[" " + word[0].lower() + word[1:]] += 1
    return [w for w, n in sorted(count.items()) if n >= least]
