"""Reads the knowledge table: conditions, findings, and words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import TypeAdapter

from trustlab.files import DATA, read_yaml
from trustlab.records import Statement, normalise

GRADES = {"always": 0.92, "usual": 0.70, "often": 0.50, "some": 0.30, "rare": 0.12}
"""Chance that a patient with the condition has the finding."""


@dataclass(frozen=True)
class Value:
    """One thing a value-finding can be, such as a body site."""

    id: str
    kind: str
    phrase: str
    ddxplus: str | None = None
    sex: str | None = None


@dataclass(frozen=True)
class Finding:
    """Something a patient has, had or did, with the words to ask for it, affirm it and deny it.

    ``form``: ``binary``, ``several`` (any of ``values``), ``choice`` (one of them), ``scale`` (0 to
    10) or ``flag``. One with a ``parent`` is only asked where that was affirmed.
    """

    id: str
    name: str
    kind: str
    question: str
    affirm: tuple[str, ...]
    deny: tuple[str, ...]
    ddxplus: str | None = None
    parent: str | None = None
    sex: str | None = None
    background: float = 0.02
    form: str = "binary"
    values: str | None = None


@dataclass(frozen=True)
class Condition:
    """A disease: its names, how common it is here, and the chance of each finding and value."""

    id: str
    name: str
    synonyms: tuple[str, ...]
    prior: float
    sex: str
    age: tuple[int, int]
    system: str
    findings: Mapping[str, float]
    values: Mapping[str, Mapping[str, float]]
    grades: Mapping[str, str]
    ddxplus: str | None = None
    icd10: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that means this condition, ours first."""
        return (self.name, *(s for s in self.synonyms if s != self.name))


@dataclass(frozen=True)
class Knowledge:
    """The three tables, each by id, and their indexes."""

    findings: Mapping[str, Finding]
    conditions: Mapping[str, Condition]
    values: Mapping[str, Value]
    finding_of_code: Mapping[str, Finding] = field(default_factory=dict)
    value_of_code: Mapping[str, Value] = field(default_factory=dict)
    condition_of_ddxplus: Mapping[str, Condition] = field(default_factory=dict)
    condition_of_name: Mapping[str, Condition] = field(default_factory=dict)

    def condition_named(self, name: str) -> Condition | None:
        """The condition that ``name`` means, compared by :func:`normalise`; ``None`` if unknown."""
        return self.condition_of_name.get(normalise(name))

    def names_for(self, name: str) -> tuple[str, ...]:
        """``name`` and every name of the condition that it means, also for a DDXPlus condition."""
        condition = self.condition_of_ddxplus.get(name) or self.condition_named(name)
        if condition is None:
            return (name,)
        return tuple(dict.fromkeys((name, *condition.names)))

    def statement(
        self,
        finding: str,
        affirmed: bool = True,
        values: Sequence[str] = (),
        wording: int = 0,
    ) -> Statement:
        """The question for ``finding`` and an answer, with its value ids or numbers."""
        entry = self.findings[finding]
        phrases = [
            self.values[value].phrase if value in self.values else value
            for value in values
        ]
        answer = answer_text(entry, affirmed, phrases, wording)
        return Statement(say(entry, answer), finding, affirmed)


def phrase_list(phrases: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(phrases) == 1:
        return phrases[0]
    return ", ".join(phrases[:-1]) + " and " + phrases[-1]


def say(finding: Finding, answer: str) -> str:
    """One exchange: the doctor's question and the patient's answer, on a line each."""
    return f"Doctor: {finding.question}\nPatient: {answer}"


def answer_text(
    finding: Finding, affirmed: bool, phrases: Sequence[str] = (), wording: int = 0
) -> str:
    """The patient's words: ``phrases`` fill the ``{value}``, ``wording`` picks the phrasing."""
    if not affirmed:
        return finding.deny[wording % len(finding.deny)]
    words = finding.affirm[wording % len(finding.affirm)]
    return words.replace("{value}", phrase_list(list(phrases) or [""]))


@lru_cache(maxsize=1)
def load_knowledge() -> Knowledge:
    """Read the three files of ``data/knowledge`` (cached)."""
    folder = DATA / "knowledge"
    values = {
        name: Value(id=name, **columns)
        for name, columns in read_yaml(folder / "values.yml").items()
    }
    findings = TypeAdapter(list[Finding]).validate_python(
        read_yaml(folder / "findings.yml")
    )
    rows = read_yaml(folder / "conditions.yml")
    for row in rows:
        row["grades"] = row["findings"]
        row["findings"] = {name: GRADES[grade] for name, grade in row["grades"].items()}
    conditions = TypeAdapter(list[Condition]).validate_python(rows)
    condition_of_name = {
        normalise(name): condition
        for condition in conditions
        for name in condition.names
    }
    return Knowledge(
        findings={finding.id: finding for finding in findings},
        conditions={condition.id: condition for condition in conditions},
        values=values,
        finding_of_code={
            finding.ddxplus: finding for finding in findings if finding.ddxplus
        },
        value_of_code={
            value.ddxplus: value for value in values.values() if value.ddxplus
        },
        condition_of_ddxplus={c.ddxplus: c for c in conditions if c.ddxplus},
        condition_of_name=condition_of_name,
    )
