"""The passages of ``data/corpus`` at their source: sentences, and which criteria each of them
states.

``python -m training.passages`` writes ``data/corpus/passages.jsonl`` (the same file each time);
``--check`` only checks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import yaml

from trustlab.knowledge.findings import Knowledge, load_knowledge
from trustlab.paths import DATA
from trustlab.records import IMPORTANCES, normalise

SOURCE = Path(__file__).parent / "passages"
TARGET = DATA / "corpus" / "passages.jsonl"
PARTS = {
    "presentation": "presentation",
    "tests": "examination and tests",
    "look_alikes": "look-alikes",
}
"""Key in the source -> what the title says."""
FITS = {
    "always": {"strong"},
    "usual": {"strong", "moderate"},
    "often": {"moderate", "weak"},
    "some": {"weak"},
    "rare": {"weak"},
}
"""Grade of a finding in the table -> the importance a passage may give it."""
MAX_CHARACTERS, MAX_CRITERIA = 200, 2


@dataclass(frozen=True)
class Criterion:
    """What a sentence says to look for: a finding, or (with ``places``) where the pain is."""

    finding: str
    name: str
    importance: str
    places: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sentence:
    """One sentence, and the criteria it states in that order."""

    text: str
    criteria: tuple[Criterion, ...] = ()


@dataclass(frozen=True)
class Passage:
    """One passage about one condition."""

    id: str
    condition: str
    title: str
    sentences: tuple[Sentence, ...]

    @cached_property
    def content(self) -> str:
        """The sentences as running text."""
        return " ".join(s.text for s in self.sentences)

    @property
    def contents(self) -> str:
        """Title and content together."""
        return f"{self.title}. {self.content}"

    def record(self) -> dict[str, str]:
        """The snippet form."""
        return {
            "id": self.id,
            "title": self.title,
            "content": self.content,
            "contents": self.contents,
        }


def _sentence(row: dict, knowledge: Knowledge) -> Sentence:
    found = [
        Criterion(f, knowledge.findings[f].name, grade)
        for f, grade in row.get("criteria", {}).items()
    ]
    if site := row.get("site"):
        found.append(
            Criterion("pain_site", site["name"], site["importance"], frozenset(site["places"]))
        )
    return Sentence(row["text"], tuple(found))


@lru_cache(maxsize=1)
def sources() -> dict[str, dict]:
    """The raw entries by condition id, in the table's order."""
    raw = {
        k: v
        for path in sorted(SOURCE.glob("*.yml"))
        for k, v in yaml.safe_load(path.read_text(encoding="utf-8")).items()
    }
    return {k: raw[k] for k in load_knowledge().conditions if k in raw}


@lru_cache(maxsize=1)
def passages() -> tuple[Passage, ...]:
    """All passages, condition by condition."""
    knowledge = load_knowledge()
    return tuple(
        Passage(
            f"{condition.replace('_', '-')}-{part.replace('_', '-')}",
            condition,
            f"{knowledge.conditions[condition].name}: {PARTS[part]}",
            tuple(_sentence(s, knowledge) for s in entry[part]),
        )
        for condition, entry in sources().items()
        for part in PARTS
    )


@lru_cache(maxsize=1)
def by_condition() -> dict[str, list[Passage]]:
    """Condition id -> its passages."""
    return {
        condition: [p for p in passages() if p.condition == condition] for condition in sources()
    }


@lru_cache(maxsize=1)
def keywords() -> dict[str, str]:
    """Condition id -> the keyword that finds its passages."""
    return {condition: entry["keyword"] for condition, entry in sources().items()}


def problems(knowledge: Knowledge) -> Iterator[str]:
    """What is wrong with the source, one line each."""
    seen: dict[str, str] = {}
    for path in sorted(SOURCE.glob("*.yml")):
        for condition, entry in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items():
            yield from (
                f"{path.name} {condition}: {p}"
                for p in _problems(condition, entry, knowledge, seen)
            )
    for condition in knowledge.conditions:
        if condition not in sources():
            yield f"{condition}: no passages yet"


def _problems(
    condition: str, entry: dict, knowledge: Knowledge, seen: dict[str, str]
) -> Iterator[str]:
    if condition not in knowledge.conditions:
        yield "unknown condition"
        return
    if set(entry) != {"keyword", *PARTS}:
        yield f"keys are {sorted(entry)}, needed are keyword, {', '.join(PARTS)}"
        return
    table, named, grades = knowledge.conditions[condition], [], []
    for part in PARTS:
        text = normalise(" ".join(s["text"] for s in entry[part]))
        if entry["keyword"] not in text and normalise(table.name) not in text:
            yield f"{part}: neither keyword nor name occurs"
        for row in entry[part]:
            yield from _sentence_problems(row, table, seen, named, grades)
    if len(named) != len(set(named)):
        yield "a criterion is stated twice"
    if "strong" not in grades or not 3 <= len(grades) <= 10:
        yield f"{len(grades)} criteria: {grades}"


def _sentence_problems(row, table, seen, named, grades) -> Iterator[str]:
    text = row["text"]
    if set(row) - {"text", "criteria", "site"}:
        yield f"unknown keys {set(row)}: {text}"
    if len(text) > MAX_CHARACTERS or any(c in text for c in '"[]\n;<>{}'):
        yield f"{len(text)} characters, or one that may not occur: {text}"
    if not text.endswith("."):
        yield f"no full stop: {text}"
    if text in seen:
        yield f"sentence occurs twice: {text}"
    seen[text] = table.id
    given = row.get("criteria", {})
    site = row.get("site")
    if len(given) + bool(site) > MAX_CRITERIA:
        yield f"more than {MAX_CRITERIA} criteria: {text}"
    for finding, importance in given.items():
        if finding not in table.grades or finding == "pain":
            yield f"finding {finding!r} is not one of the condition's"
        elif importance not in FITS[table.grades[finding]]:
            yield f"{finding} is {table.grades[finding]} in the table, {importance} here"
        named.append(finding)
        grades.append(importance)
    if site:
        if set(site) != {"name", "importance", "places"} or site["importance"] not in IMPORTANCES:
            yield f"site: {site}"
        elif stray := set(site["places"]) - set(table.values.get("pain_site", {})):
            yield f"site names {sorted(stray)}, unknown for this condition"
        named.append("pain_site")
        grades.append(site["importance"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="report problems and write nothing")
    args = parser.parse_args()
    found = list(problems(load_knowledge()))
    print("\n".join(found) or "no problems")
    if found or args.check:
        raise SystemExit(bool(found))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(p.record(), ensure_ascii=False) for p in passages()]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(
        f"{len(lines)} passages, {sum(len(p.sentences) for p in passages())} sentences -> {TARGET}"
    )


if __name__ == "__main__":
    main()
