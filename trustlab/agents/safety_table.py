"""Reads the safety table: drugs, tests, what speaks against them.

Sources of the facts, and what the table is not, stand on the card beside the files. No clinician
has reviewed it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from pydantic import TypeAdapter

from trustlab.files import DATA, read_yaml
from trustlab.knowledge.chart import ChartFact, by_phrase, chart_facts
from trustlab.records import Plan, normalise

RULE_KINDS = (
    "allergy", "medication", "condition", "pregnancy", "age_below", "age_from", "egfr_below", "sex",
    "done", "also",
)  # fmt: skip
"""What a rule may hang on: see :class:`Rule`."""
NUMBERS = ("age_below", "age_from", "egfr_below")
_DOSE = re.compile(r"\s*(?:[(\[,;]|\d).*", re.DOTALL)
_FORMS = re.compile(
    r"\b(?:tablets?|capsules?|caplets?|syrup|suspension|solution|inhalers?|nebuli[sz]ed|injections?"
    r"|infusion|spray|patch|gel|cream|ointment|drops|suppository|oral|intravenous|iv|po|im|sc"
    r"|modified release|slow release)\b"
)
"""Words for the form and way of a drug that may stand beside its name."""


@dataclass(frozen=True)
class Regimen:
    """A usual dose for an adult, and the way it is given."""

    dose: str
    route: str


@dataclass(frozen=True)
class Entry:
    """A drug or a test: its names, and the classes by which rules speak of it.

    - A drug: ``regimens``, the usual one first, and the ``finding`` that a patient takes it.
    - A test: the questions that it ``answers``; ``serial``: often done again to see a change.
    """

    id: str
    name: str
    synonyms: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    regimens: tuple[Regimen, ...] = ()
    answers: tuple[str, ...] = ()
    finding: str | None = None
    serial: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """What a rule may call it: its id and its classes."""
        return frozenset((self.id, *self.classes))


@dataclass(frozen=True)
class Rule:
    """What speaks against some drugs or tests (``items``: ids and classes).

    - ``kind``: one of :data:`RULE_KINDS`. ``medication`` is what the patient takes and, for a drug,
      the other drugs of the plan; ``done`` a test already done; ``also`` another test of the plan.
    - ``values``: the ids that it looks for; ``number``: the limit in years or ml/min.
    - ``verdict``: the rating or flag it leads to; ``source``: a key of ``Safety.sources``.
    """

    id: str
    items: frozenset[str]
    kind: str
    values: frozenset[str]
    number: float | None
    verdict: str
    reason: str
    source: str


@dataclass(frozen=True)
class Usual:
    """What is given and ordered for a condition: for each need the drugs that do, in order of
    preference; tests, best first."""

    prescriptions: tuple[tuple[str, ...], ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Safety:
    """The whole table, each part by id."""

    allergies: Mapping[str, ChartFact]
    illnesses: Mapping[str, ChartFact]
    pregnancy: Mapping[str, ChartFact]
    drugs: Mapping[str, Entry]
    tests: Mapping[str, Entry]
    drug_rules: Mapping[str, Rule]
    test_rules: Mapping[str, Rule]
    plans: Mapping[str, Usual]
    sources: Mapping[str, str] = field(default_factory=dict)

    def drug_named(self, name: str) -> Entry | None:
        """The drug that ``name`` means; see :func:`named`."""
        return named(self._names["drugs"], name)

    def test_named(self, name: str) -> Entry | None:
        """The test that ``name`` means; see :func:`named`."""
        return named(self._names["tests"], name)

    def fact_named(self, kind: str, phrase: str) -> ChartFact | None:
        """The allergy, illness or state of pregnancy (``kind``: allergies, illnesses, pregnancy)
        that ``phrase`` means."""
        return self._phrases[kind].get(normalise(phrase))

    def rules_for(self, entry: Entry) -> tuple[Rule, ...]:
        """The rules that speak of a drug or test, in the table's order."""
        kinds = entry.kinds
        rules = self.drug_rules if entry.id in self.drugs else self.test_rules
        return tuple(rule for rule in rules.values() if rule.items & kinds)

    @cached_property
    def _names(self) -> dict[str, dict[str, Entry]]:
        return {"drugs": _by_name(self.drugs), "tests": _by_name(self.tests)}

    @cached_property
    def _phrases(self) -> dict[str, dict[str, ChartFact]]:
        kinds = ("allergies", "illnesses", "pregnancy")
        return {kind: by_phrase(getattr(self, kind)) for kind in kinds}


def _by_name(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Normalised name or synonym -> its entry."""
    by_name = {}
    for entry in entries.values():
        for name in (entry.name, *entry.synonyms):
            by_name[normalise(name)] = entry
    return by_name


def named(entries: Mapping[str, Entry], name: str) -> Entry | None:
    """The entry whose name or synonym ``name`` is, without case and punctuation; failing that, up
    to its first digit, bracket or comma, then without words for a drug's form."""
    without_dose = _DOSE.sub("", name)
    without_form = _FORMS.sub(" ", without_dose.casefold())
    for text in (name, without_dose, without_form):
        entry = entries.get(normalise(text))
        if entry is not None:
            return entry
    return None


@lru_cache(maxsize=1)
def load_safety() -> Safety:
    """The table as its files in ``data/knowledge`` have it; ``ValueError`` for a rule of no known
    kind."""
    names = ("drugs", "drug_rules", "tests", "test_rules", "plans")
    drugs, drug_rules, tests, test_rules, plans = (
        read_yaml(DATA / "knowledge" / f"{name}.yml") for name in names
    )
    entries = TypeAdapter(list[Entry])
    return Safety(
        **chart_facts(),
        drugs={entry.id: entry for entry in entries.validate_python(drugs)},
        tests={entry.id: entry for entry in entries.validate_python(tests)},
        drug_rules={
            row["id"]: _rule(row, "drugs", "rating") for row in drug_rules["rules"]
        },
        test_rules={
            row["id"]: _rule(row, "tests", "flag") for row in test_rules["rules"]
        },
        plans=TypeAdapter(dict[str, Usual]).validate_python(plans),
        sources=drug_rules["sources"] | test_rules["sources"],
    )


def known_items(plan: Plan | None) -> tuple[list[bool], list[bool]]:
    """Whether the safety table knows each prescription's drug, and each test, of ``plan``."""
    if plan is None:
        return [], []
    safety = load_safety()
    drugs = [safety.drug_named(p.drug) is not None for p in plan.prescriptions]
    tests = [safety.test_named(test) is not None for test in plan.tests]
    return drugs, tests


def _rule(row: dict[str, Any], items: str, verdict: str) -> Rule:
    ((kind, value),) = row["when"].items()
    if kind not in RULE_KINDS:
        allowed = ", ".join(RULE_KINDS)
        raise ValueError(f"rule {row['id']!r} hangs on {kind!r}; allowed are {allowed}")
    number = None
    values = [value] if isinstance(value, str) else value
    if kind in NUMBERS:
        number = float(value)
        values = []
    return Rule(
        id=row["id"],
        items=frozenset(row[items]),
        kind=kind,
        values=frozenset(values),
        number=number,
        verdict=row[verdict],
        reason=row["reason"],
        source=row["source"],
    )
