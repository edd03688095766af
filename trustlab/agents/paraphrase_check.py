"""Checks whether a statement in new words still says the same. Held against the knowledge table's
phrasings of every finding. First by exact words: findings affirmed or denied, with which values.
The rest by likeness: a sentence encoder says which finding it is, and, with negation words, whether
it affirms or denies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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
# cosine below which a text is like nothing that the own finding's phrasings say
FLOOR = 0.3
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


class _Phrasing(NamedTuple):
    """A way to affirm or to deny a finding."""

    finding: Finding
    affirms: bool
    text: str


class _Pattern(NamedTuple):
    """What finds a phrasing in normalised words between spaces."""

    phrase: re.Pattern[str]
    finding: Finding
    affirms: bool


class _Encoded(NamedTuple):
    """Of N phrasings: their findings' ids (N,), whether they affirm (N,), vectors (N, d)."""

    finding_ids: np.ndarray
    affirms: np.ndarray
    vectors: np.ndarray


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
            return Verdict(
                "not checked", "not checked", "which finding it tells is not known"
            )
        old = parts_of(statement)
        new = parts_of(Statement(new_text))
        if all(old) and not all(new):
            return Verdict("drops", why="half the exchange is gone")
        if all(new) and not all(old):
            return Verdict("adds", why="a question has come")
        if not all(old):
            return self._reply(finding, statement.affirmed, statement.text, new_text)
        question = self._question(finding, new.question)
        reply = self._reply(finding, statement.affirmed, old.answer, new.answer)
        for verdict in (reply, question):
            if verdict.caught:
                return verdict
        return max(question, reply, key=_doubt)

    def _question(self, finding: Finding, new: str) -> Verdict:
        for own in self.knowledge.findings.values():
            if normalise(own.question) == normalise(new):
                return (
                    SAME
                    if own.id == finding.id
                    else _another(own, "exact", "asks about")
                )
        finding_ids, vectors = self._questions
        similarities = vectors @ self.encoder.encode([new])[0]
        other = self._about(
            finding, finding_ids, similarities, "asks about", QUESTION_FLOOR
        )
        return other or Verdict("same", "likeness")

    def _reply(self, finding: Finding, affirmed: bool, old: str, new: str) -> Verdict:
        verdict = self._exactly(finding, affirmed, new)
        if verdict is None:
            verdict = self._by_likeness(finding, affirmed, new)
        if verdict.verdict != "same":
            return verdict
        old_values = self._values_in(finding, old)
        new_values = self._values_in(finding, new)
        dropped = ", ".join(sorted(old_values - new_values))
        added = ", ".join(sorted(new_values - old_values))
        if dropped and added:
            return Verdict(
                "another finding", verdict.how, f"{added} instead of {dropped}"
            )
        if dropped:
            return Verdict("drops", verdict.how, f"without {dropped}")
        if added:
            return Verdict("adds", verdict.how, f"with {added}")
        return verdict

    def _exactly(self, finding: Finding, affirmed: bool, new: str) -> Verdict | None:
        """The verdict where the text is made of the table's phrasings, or holds one of another
        finding beside the own."""
        words = f" {normalise(new)} "
        polarities: set[bool] = set()  # of the own finding's phrasings
        others: list[Finding] = []
        for pattern in self._patterns:
            if not pattern.phrase.search(words):
                continue
            words = pattern.phrase.sub(" | ", words)
            if pattern.finding.id == finding.id:
                polarities.add(pattern.affirms)
            else:
                others.append(pattern.finding)
        if others and polarities:
            return Verdict("adds", why=f"tells {others[0].name} too")
        is_rest = not _FILLERS.issuperset(words.replace("|", " ").split())
        if is_rest or not (others or polarities):
            return None
        if others:
            return _another(others[0], "exact")
        return SAME if polarities == {affirmed} else _turned(affirmed, "exact")

    @cached_property
    def _phrasings(self) -> list[_Phrasing]:
        """Every way to affirm or to deny a finding."""
        phrasings = []
        for finding in self.knowledge.findings.values():
            phrasings += [_Phrasing(finding, True, text) for text in finding.affirm]
            phrasings += [_Phrasing(finding, False, text) for text in finding.deny]
        return phrasings

    @cached_property
    def _patterns(self) -> list[_Pattern]:
        """Every phrasing of three words or more, longest first; a slot takes values of its kind."""
        findings = self.knowledge.findings
        slots = {id: self._slot(finding) for id, finding in findings.items()}
        patterns = []
        for finding, affirms, text in self._phrasings:
            before, gap, after = text.partition("{value}")
            parts = [normalise(_YES_OR_NO.sub("", before))]
            if gap:
                parts += [slots[finding.id], normalise(after)]
            words = " ".join(filter(None, parts))
            if len(words.split()) >= MIN_WORDS:
                phrase = re.compile(f"(?<= ){words}(?= )")
                patterns.append(_Pattern(phrase, finding, affirms))
        patterns.sort(key=lambda p: len(slots[p.finding.id]) - len(p.phrase.pattern))
        return patterns

    def _slot(self, finding: Finding) -> str:
        """The pattern of one or more values of the finding's kind, longest first; of numbers where
        it has none."""
        phrases = [normalise(value.phrase) for value in self._values(finding)]
        phrases.sort(key=len, reverse=True)
        value = "|".join(phrases) or r"\d+"
        return f"(?:{value})(?: (?:and )?(?:{value}))*"

    def _values(self, finding: Finding) -> list[Value]:
        """The values of the finding's kind, the longest first."""
        values = [v for v in self.knowledge.values.values() if v.kind == finding.values]
        return sorted(values, key=lambda v: -len(v.phrase))

    def _values_in(self, finding: Finding, text: str) -> set[str]:
        """The values of the finding's kind that the text names; of a scale the numbers in it."""
        if finding.form == "scale":
            return set(re.findall(r"\d+", _OUT_OF_TEN.sub(" ", text)))
        named_values: set[str] = set()
        if not finding.values:
            return named_values
        plain = f" {normalise(text)} "
        for value in self._values(finding):
            words = f" {normalise(value.phrase)} "
            if words in plain:
                named_values.add(value.phrase)
                plain = plain.replace(words, " | ")
        return named_values

    def _by_likeness(self, finding: Finding, affirmed: bool, new: str) -> Verdict:
        finding_ids, _, vectors = self._encoded
        clauses = []
        for part in re.split(r"[.!?;]+", new):
            if len(part.split()) >= MIN_WORDS:
                clauses.append(part.strip())
        whole, *of_clauses = self.encoder.encode([new, *clauses]) @ vectors.T
        other = self._about(finding, finding_ids, whole, "tells")
        if other is not None:
            return other
        if len(clauses) > 1:
            for similarities in of_clauses:
                other = self._about(finding, finding_ids, similarities, "tells")
                if other is not None and other.caught:
                    return Verdict("adds", "likeness", f"{other.why} too")
        polarity = self._polarity(finding, new, whole)
        if abs(polarity) <= UNDECIDED:
            return Verdict("unclear", "likeness", "affirmed or denied?")
        if (polarity > 0) == affirmed:
            return Verdict("same", "likeness")
        return _turned(affirmed, "likeness")

    def _polarity(self, finding: Finding, new: str, similarities: np.ndarray) -> float:
        """Above 0 where the text affirms the finding: how much nearer it is to phrasings that
        affirm, and :data:`NEGATION`."""
        encoded = self._encoded
        is_own = encoded.finding_ids == finding.id
        affirming = similarities[is_own & encoded.affirms].max()
        denying = similarities[is_own & ~encoded.affirms].max()
        nearer = affirming - denying
        if _NEGATION.search(new):
            return nearer - NEGATION
        return nearer + NEGATION

    def _about(
        self,
        finding: Finding,
        finding_ids: np.ndarray,
        similarities: np.ndarray,
        verb: str,
        floor: float = FLOOR,
    ) -> Verdict | None:
        """The verdict where the text is about another finding than its own, or about none."""
        is_own = finding_ids == finding.id
        own = similarities[is_own].max()
        others = np.where(is_own, -1, similarities)
        if others.max() - own > MARGIN:
            nearest = str(finding_ids[others.argmax()])
            return _another(self.knowledge.findings[nearest], "likeness", verb)
        if own < floor:
            return Verdict("unclear", "likeness", "like nothing in the table")
        return None

    @cached_property
    def _questions(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every finding: its id, and its question's vector."""
        findings = self.knowledge.findings.values()
        vectors = self.encoder.encode([finding.question for finding in findings])
        return np.array([finding.id for finding in findings]), vectors

    @cached_property
    def _encoded(self) -> _Encoded:
        finding_ids = []
        affirms = []
        texts = []
        for finding, is_affirming, text in self._phrasings:
            finding_ids.append(finding.id)
            affirms.append(is_affirming)
            texts.append(text.replace("{value}", "it"))
        vectors = self.encoder.encode(texts)
        return _Encoded(np.array(finding_ids), np.array(affirms), vectors)


def _doubt(verdict: Verdict) -> tuple[int, bool]:
    """The larger, the less sure is a verdict that is not caught."""
    order = ("same", "unclear", "not checked")
    return order.index(verdict.verdict), verdict.how != "exact"


def _another(finding: Finding, how: str, verb: str = "tells") -> Verdict:
    return Verdict("another finding", how, f"{verb} {finding.name}")


def _turned(affirmed: bool, how: str) -> Verdict:
    why = "denies what was affirmed" if affirmed else "affirms what was denied"
    return Verdict("turns", how, why)
