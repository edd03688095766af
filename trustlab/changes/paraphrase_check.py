"""Does a statement in new words still say the same? Held against the knowledge table's phrasings of
every finding.

First by exact words: which findings' phrasings the new text is made of, affirmed or denied, with
which values. What is not made of them is judged by likeness: a sentence encoder says which finding
it is about; since it hardly sees negation, the polarity is read from its nearness to the ways to
affirm and to deny together with negation words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from trustlab.knowledge import Finding, Knowledge
from trustlab.records import Statement, normalise
from trustlab.words import word_lists

CAUGHT = ("adds", "drops", "turns", "another finding")
"""Verdicts on new words that do not say the same: they must not be used as a paraphrase."""
MARGIN = 0.15
"""How much nearer (cosine) another finding must be than the own one before it counts as told."""
FLOOR = 0.3
"""Cosine below which a text is like nothing that the own finding's phrasings say."""
QUESTION_FLOOR = 0.45
"""The same for a question: higher, since short garbled questions are a little like many."""
NEGATION = 0.15
"""What negation words weigh beside the difference of two cosines, ways to affirm less ways to
deny."""
UNDECIDED = 0.1
"""A weight of polarity nearer to 0 than this is no verdict."""
MIN_WORDS = 3
"""Shorter phrasings inside a longer text are chance."""

_WORDS = word_lists("paraphrases")
_NEGATION = re.compile(
    rf"\b(?:{_WORDS['negations'].replace(' ', '|').replace('_', ' ')}|\w+n['’]t)\b", re.IGNORECASE
)
_EXCHANGE = re.compile(r"Doctor: (.+)\nPatient: (.+)", re.DOTALL)
_OUT_OF_TEN = re.compile(r"(?:/|\bout of|\bof)\s*10\b")
_YES_OR_NO = re.compile(r"^(?:yes|no), ", re.IGNORECASE)
_FILLERS = frozenset(_WORDS["fillers"].split())


class Likeness(Protocol):
    """Anything that gives unit vectors, such as :class:`trustlab.meaning.encoder.Encoder`."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d)."""
        ...


@dataclass(frozen=True)
class Verdict:
    """``verdict``: same, adds, drops, turns, another finding, unclear or not checked; ``how``:
    exact, likeness or not checked."""

    verdict: str
    how: str
    why: str = ""

    @property
    def caught(self) -> bool:
        """Whether the new words must not be used."""
        return self.verdict in CAUGHT


@dataclass(frozen=True)
class ParaphraseChecker:
    """Checks new words against the phrasings of ``knowledge``; without an ``encoder`` by exact
    words alone.

    How sure likeness is was measured on the loose wordings in ``training/wordings`` (1,792 replies
    and 538 questions in everyday talk that the table does not hold) with all-MiniLM-L6-v2 and the
    constants above. Which finding: 2.3 % of replies and 3.0 % of questions are called another
    finding and are not; of replies about another finding, picked at random, 98.5 % are called so;
    6.9 % of questions are unclear. Polarity: 79 % are read right, 12 % are unclear, 9 % are read as
    turned and are not, or are turned and not seen. Replies in the table's own words are decided
    exactly.
    """

    knowledge: Knowledge
    encoder: Likeness | None = None

    def check(self, statement: Statement, new_text: str) -> Verdict:
        """What ``new_text`` does to ``statement``; "not checked" where the statement's finding is
        not known.

        The question, where there is one, must still be nearest to its finding's own. In the answer:
        values named before and not now are "drops", the reverse "adds", values replaced "another
        finding"; words of several findings "adds".
        """
        finding = self.knowledge.findings.get(statement.finding or "")
        if finding is None or statement.affirmed is None:
            return Verdict("not checked", "not checked", "which finding it tells is not known")
        old, new = _EXCHANGE.fullmatch(statement.text), _EXCHANGE.fullmatch(new_text)
        if bool(old) != bool(new):
            if old:
                return Verdict("drops", "exact", "half the exchange is gone")
            return Verdict("adds", "exact", "a question has come")
        if not (old and new):
            return self._reply(finding, statement.affirmed, statement.text, new_text)
        asked = self._question(finding, new[1])
        answered = self._reply(finding, statement.affirmed, old[2], new[2])
        for found in (answered, asked):
            if found.caught:
                return found
        order = ("same", "unclear", "not checked")
        return max(asked, answered, key=lambda v: (order.index(v.verdict), v.how != "exact"))

    def _question(self, finding: Finding, new: str) -> Verdict:
        for own in self.knowledge.findings.values():
            if normalise(own.question) == normalise(new):
                same = own.id == finding.id
                return Verdict("same", "exact") if same else _another(own, "exact", "asks about")
        if self.encoder is None:
            return Verdict("not checked", "not checked", "the question is not in the table's words")
        names, vectors = self._questions
        like = vectors @ self.encoder.encode([new])[0]
        other = self._about(finding, names, like, "asks about", QUESTION_FLOOR)
        return other or Verdict("same", "likeness")

    def _reply(self, finding: Finding, affirmed: bool, old: str, new: str) -> Verdict:
        found = self._exactly(finding, affirmed, new) or self._by_likeness(finding, affirmed, new)
        if found.verdict != "same":
            return found
        return _values_kept(self._values(finding, old), self._values(finding, new), found.how)

    def _exactly(self, finding: Finding, affirmed: bool, new: str) -> Verdict | None:
        """The verdict where the text is made of the table's phrasings, or holds one of another
        finding beside the own."""
        told, rest = self._phrasings_in(new)
        own = {said for name, said in told if name == finding.id}
        others = [self.knowledge.findings[name] for name, _ in told if name != finding.id]
        if others and own:
            return Verdict("adds", "exact", f"tells {others[0].name} too")
        if rest or not told:
            return None
        if not own:
            return _another(others[0], "exact")
        return Verdict("same", "exact") if own == {affirmed} else _turned(affirmed, "exact")

    def _phrasings_in(self, text: str) -> tuple[list[tuple[str, bool]], list[str]]:
        """The findings (id, affirmed) whose phrasings stand in the text, the longest first, and the
        words between them."""
        plain, told = f" {normalise(text)} ", []
        for pattern, name, affirmed in self._patterns:
            if pattern.search(plain):
                told.append((name, affirmed))
                plain = pattern.sub(" | ", plain)
        return told, [word for word in plain.replace("|", " ").split() if word not in _FILLERS]

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str, bool]]:
        """Every phrasing of three words or more, longest first; a slot takes any values of its
        kind."""
        found = []
        for finding in self.knowledge.findings.values():
            slot = self._slot(finding)
            for affirmed, phrases in ((True, finding.affirm), (False, finding.deny)):
                for phrase in phrases:
                    before, gap, after = phrase.partition("{value}")
                    parts = [normalise(_YES_OR_NO.sub("", before))]
                    parts += [slot, normalise(after)] if gap else []
                    pattern = " ".join(part for part in parts if part)
                    if len(pattern.split()) >= MIN_WORDS:
                        found.append((re.compile(f"(?<= ){pattern}(?= )"), finding.id, affirmed))
        slots = {f.id: len(self._slot(f)) for f in self.knowledge.findings.values()}
        return sorted(found, key=lambda row: slots[row[1]] - len(row[0].pattern))

    def _slot(self, finding: Finding) -> str:
        values = [v for v in self.knowledge.values.values() if v.kind == finding.values]
        names = sorted((normalise(v.phrase) for v in values), key=len)
        one = "|".join(reversed(names)) or r"\d+"
        return f"(?:{one})(?: (?:and )?(?:{one}))*"

    def _values(self, finding: Finding, text: str) -> set[str]:
        """The values of the finding's kind that the text names, or the numbers in it for a
        scale."""
        if finding.form == "scale":
            return set(re.findall(r"\d+", _OUT_OF_TEN.sub(" ", text)))
        plain, told = f" {normalise(text)} ", set()
        values = [
            v for v in self.knowledge.values.values() if finding.values and v.kind == finding.values
        ]
        for value in sorted(values, key=lambda v: -len(v.phrase)):
            words = f" {normalise(value.phrase)} "
            if words in plain:
                told.add(value.phrase)
                plain = plain.replace(words, " | ")
        return told

    def _by_likeness(self, finding: Finding, affirmed: bool, new: str) -> Verdict:
        if self.encoder is None:
            return Verdict("not checked", "not checked", "the answer is not in the table's words")
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
        assert self.encoder is not None
        findings = self.knowledge.findings.values()
        vectors = self.encoder.encode([f.question for f in findings])
        return np.array([f.id for f in findings]), vectors

    @cached_property
    def _replies(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of every phrasing: its finding's id, whether it affirms, and its vector."""
        assert self.encoder is not None
        rows = [
            (f.id, affirmed, phrase.replace("{value}", "it"))
            for f in self.knowledge.findings.values()
            for affirmed, phrases in ((True, f.affirm), (False, f.deny))
            for phrase in phrases
        ]
        names, said, texts = zip(*rows, strict=True)
        return np.array(names), np.array(said), self.encoder.encode(list(texts))


def _values_kept(old: set[str], new: set[str], how: str) -> Verdict:
    gone, come = sorted(old - new), sorted(new - old)
    if gone and come:
        return Verdict("another finding", how, f"{', '.join(come)} instead of {', '.join(gone)}")
    if gone:
        return Verdict("drops", how, f"without {', '.join(gone)}")
    return Verdict("adds", how, f"with {', '.join(come)}") if come else Verdict("same", how)


def _another(finding: Finding, how: str, verb: str = "tells") -> Verdict:
    return Verdict("another finding", how, f"{verb} {finding.name}")


def _turned(affirmed: bool, how: str) -> Verdict:
    why = "denies what was affirmed" if affirmed else "affirms what was denied"
    return Verdict("turns", how, why)
