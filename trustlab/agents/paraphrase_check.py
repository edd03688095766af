"""Checks whether a statement in new words still says the same. Held against the knowledge table's
phrasings of every finding. First by exact words: findings affirmed or denied, with which values.
The rest by likeness: a sentence encoder says which finding it is, and, with negation words, whether
it affirms or denies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trustlab.agents.patient import parts_of
from trustlab.knowledge.findings import Finding, Knowledge, Value
from trustlab.knowledge.words import word_lists
from trustlab.meaning.encoder import Encoder
from trustlab.records import Statement, normalise

CAUGHT = ("adds", "drops", "turns", "another finding")
"""Verdicts on new words that do not say the same: they must not be used as a paraphrase."""
MARGIN = 0.15
"""How much nearer (cosine) another finding must be than the own one before it counts as told."""
FLOOR = 0.3  # cosine below which a text is like nothing that the own finding's phrasings say
QUESTION_FLOOR = 0.45
"""The same for a question: higher, since short garbled questions are a little like many."""
NEGATION = 0.15
"""What negation words weigh beside the difference of two cosines, ways to affirm less ways to
deny."""
UNDECIDED = 0.1  # a weight of polarity nearer to 0 than this is no verdict
MIN_WORDS = 3  # shorter phrasings inside a longer text are chance

_WORDS = word_lists("paraphrases")
_NEGATIONS = _WORDS["negations"].replace(" ", "|").replace("_", " ")
_NEGATION = re.compile(rf"\b(?:{_NEGATIONS}|\w+n['’]t)\b", re.IGNORECASE)
_OUT_OF_TEN = re.compile(r"(?:/|\bout of|\bof)\s*10\b")
_YES_OR_NO = re.compile(r"^(?:yes|no), ", re.IGNORECASE)
_FILLERS = frozenset(_WORDS["fillers"].split())


@dataclass(frozen=True)
class Verdict:
    """``verdict``: same, adds, drops, turns, another finding, unclear or not checked; ``how``:
    exact, likeness or not checked."""

    verdict: str
    how: str = "exact"
    why: str = ""

    @property
    def caught(self) -> bool:
        """Whether the new words must not be used."""
        return self.verdict in CAUGHT


SAME = Verdict("same")


@dataclass(frozen=True)
class ParaphraseChecker:
    """Checks new words against the phrasings of ``knowledge``. Likeness is right about polarity for
    79 % of loose wordings, wrong for 9 %."""

    knowledge: Knowledge
    encoder: Encoder

    def check(self, statement: Statement, new_text: str) -> Verdict:
        """What ``new_text`` does to ``statement``; "not checked" where its finding is not known.
        The question, where there is one, must still be nearest to its finding's own. In the answer:
        values named before and not now are "drops", the reverse "adds", values replaced "another
        finding"; words of several findings "adds"."""
        finding = self.knowledge.findings.get(statement.finding or "")
        if finding is None or statement.affirmed is None:
            return Verdict("not checked", "not checked", "which finding it tells is not known")
        old, new = parts_of(statement), parts_of(Statement(new_text))
        if all(old) and not all(new):
            return Verdict("drops", why="half the exchange is gone")
        if all(new) and not all(old):
            return Verdict("adds", why="a question has come")
        if not all(old):
            return self._reply(finding, statement.affirmed, statement.text, new_text)
        asked = self._question(finding, new[0])
        answered = self._reply(finding, statement.affirmed, old[1], new[1])
        for found in (answered, asked):
            if found.caught:
                return found
        order = ("same", "unclear", "not checked")
        return max(asked, answered, key=lambda v: (order.index(v.verdict), v.how != "exact"))

    def _question(self, finding: Finding, new: str) -> Verdict:
        for own in self.knowledge.findings.values():
            if normalise(own.question) == normalise(new):
                return SAME if own.id == finding.id else _another(own, "exact", "asks about")
        names, vectors = self._questions
        like = vectors @ self.encoder.encode([new])[0]
        other = self._about(finding, names, like, "asks about", QUESTION_FLOOR)
        return other or Verdict("same", "likeness")

    def _reply(self, finding: Finding, affirmed: bool, old: str, new: str) -> Verdict:
        found = self._exactly(finding, affirmed, new) or self._by_likeness(finding, affirmed, new)
        if found.verdict != "same":
            return found
        before, now = self._values_in(finding, old), self._values_in(finding, new)
        gone, come = (", ".join(sorted(some)) for some in (before - now, now - before))
        if gone and come:
            return Verdict("another finding", found.how, f"{come} instead of {gone}")
        if gone:
            return Verdict("drops", found.how, f"without {gone}")
        return Verdict("adds", found.how, f"with {come}") if come else found

    def _exactly(self, finding: Finding, affirmed: bool, new: str) -> Verdict | None:
        """The verdict where the text is made of the table's phrasings, or holds one of another
        finding beside the own."""
        plain, told = f" {normalise(new)} ", []
        for pattern, name, affirms in self._patterns:
            if pattern.search(plain):
                told.append((name, affirms))
                plain = pattern.sub(" | ", plain)
        rest = set(plain.replace("|", " ").split()) - _FILLERS
        own = {affirms for name, affirms in told if name == finding.id}
        others = [self.knowledge.findings[name] for name, _ in told if name != finding.id]
        if others and own:
            return Verdict("adds", why=f"tells {others[0].name} too")
        if rest or not told:
            return None
        if not own:
            return _another(others[0], "exact")
        return SAME if own == {affirmed} else _turned(affirmed, "exact")

    @cached_property
    def _phrasings(self) -> list[tuple[Finding, bool, str]]:
        """Every way to affirm or to deny a finding."""
        return [
            (finding, affirmed, phrase)
            for finding in self.knowledge.findings.values()
            for affirmed, phrases in ((True, finding.affirm), (False, finding.deny))
            for phrase in phrases
        ]

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str, bool]]:
        """Every phrasing of three words or more, longest first; a slot takes values of its kind."""
        found, slots = [], {}
        for id, finding in self.knowledge.findings.items():
            names = sorted((normalise(v.phrase) for v in self._values(finding)), key=len)
            one = "|".join(reversed(names)) or r"\d+"
            slots[id] = f"(?:{one})(?: (?:and )?(?:{one}))*"
        for finding, affirmed, phrase in self._phrasings:
            before, gap, after = phrase.partition("{value}")
            parts = [normalise(_YES_OR_NO.sub("", before))]
            parts += [slots[finding.id], normalise(after)] if gap else []
            pattern = " ".join(part for part in parts if part)
            if len(pattern.split()) >= MIN_WORDS:
                found.append((re.compile(f"(?<= ){pattern}(?= )"), finding.id, affirmed))
        return sorted(found, key=lambda row: len(slots[row[1]]) - len(row[0].pattern))

    def _values(self, finding: Finding) -> list[Value]:
        """The values of the finding's kind, the longest first."""
        values = [v for v in self.knowledge.values.values() if v.kind == finding.values]
        return sorted(values, key=lambda v: -len(v.phrase))

    def _values_in(self, finding: Finding, text: str) -> set[str]:
        """The values of the finding's kind that the text names; of a scale the numbers in it."""
        if finding.form == "scale":
            return set(re.findall(r"\d+", _OUT_OF_TEN.sub(" ", text)))
        plain, told = f" {normalise(text)} ", set()
        for value in self._values(finding) if finding.values else []:
            words = f" {normalise(value.phrase)} "
            if words in plain:
                told.add(value.phrase)
                plain = plain.replace(words, " | ")
        return told

    def _by_likeness(self, finding: Finding, affirmed: bool, new: str) -> Verdict:
        names, said, vectors = self._replies
        clauses = [c.strip() for c in re.split(r"[.!?;]+", new) if len(c.split()) >= MIN_WORDS]
        like = self.encoder.encode([new, *clauses]) @ vectors.T
        if other := self._about(finding, names, like[0], "tells"):
            return other
        for clause in like[1:] if len(clauses) > 1 else []:
            if (other := self._about(finding, names, clause, "tells")) and other.caught:
                return Verdict("adds", "likeness", f"{other.why} too")
        own = names == finding.id
        sign = -1 if _NEGATION.search(new) else 1
        weight = like[0][own & said].max() - like[0][own & ~said].max() + sign * NEGATION
        if abs(weight) <= UNDECIDED:
            return Verdict("unclear", "likeness", "affirmed or denied?")
        same = (weight > 0) == affirmed
        return Verdict("same", "likeness") if same else _turned(affirmed, "likeness")

    def _about(
        self, finding: Finding, names: np.ndarray, like: np.ndarray, verb: str, floor: float = FLOOR
    ) -> Verdict | None:
        """The verdict where the text is about another finding than its own, or about none."""
        own = like[names == finding.id].max()
        others = np.where(names == finding.id, -1, like)
        if others.max() - own > MARGIN:
            return _another(self.knowledge.findings[str(names[others.argmax()])], "likeness", verb)
        return Verdict("unclear", "likeness", "like nothing in the table") if own < floor else None

    @cached_property
    def _questions(self) -> tuple[np.ndarray, np.ndarray]:
        findings = self.knowledge.findings.values()
        vectors = self.encoder.encode([f.question for f in findings])
        return np.array([f.id for f in findings]), vectors

    @cached_property
    def _replies(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of every phrasing: its finding's id, whether it affirms, and its vector."""
        findings, said, phrases = zip(*self._phrasings, strict=True)
        vectors = self.encoder.encode([phrase.replace("{value}", "it") for phrase in phrases])
        return np.array([f.id for f in findings]), np.array(said), vectors


def _another(finding: Finding, how: str, verb: str = "tells") -> Verdict:
    return Verdict("another finding", how, f"{verb} {finding.name}")


def _turned(affirmed: bool, how: str) -> Verdict:
    why = "denies what was affirmed" if affirmed else "affirms what was denied"
    return Verdict("turns", how, why)
