"""Asks whether one diagnosis entails another. A protocol, a real judge by name, a proxy without
download.

Over a run each distinct (premise, hypothesis) is judged once; two equal strings entail each other
and are never put to a judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from trustlab.knowledge import same_or_narrower
from trustlab.knowledge.disease_names import Name, read_name
from trustlab.knowledge.findings import Knowledge, load_knowledge
from trustlab.knowledge.same_diagnosis import (
    ALTERNATIVES,
    bracketed,
    exclude,
    is_acronym,
    is_qualifier,
    plain_name,
    undenied,
)
from trustlab.knowledge.same_or_narrower import (
    NARROWER,
    OTHER,
    RIGHT,
    are_one,
    by_words,
    relation,
)
from trustlab.meaning.encoder import TABLE, Encoder, Kept, Named, Source, pair_cosines, squares
from trustlab.paths import offline

ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2  # columns of the probabilities
STAND_IN = "rule-based proxy"
SCHEMA = TABLE.format("entailment")
BATCH, ROUND = 64, 1024
DECIMALS = 3  # cosines are rounded to these before they are compared

Pair = tuple[str, str]
Row = tuple[float, float, float]
SAME: Row = (1.0, 0.0, 0.0)
SPECIFIC: Row = (0.99, 0.01, 0.0)  # the premise says more: "acute appendicitis", "appendicitis"
GENERAL: Row = (0.3, 0.6, 0.1)  # the hypothesis says more
BESIDE: Row = (0.1, 0.6, 0.3)  # each does: "acute pancreatitis", "alcoholic pancreatitis"
UNRELATED: Row = (0.0, 1.0, 0.0)
CONTRADICTS: Row = (0.0, 0.0, 1.0)


@runtime_checkable
class Entailment(Protocol):
    """A judge. ``name`` is what tables show; ``stand_in``: it is no NLI model."""

    name: str
    stand_in: bool

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        ...

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3)."""
        ...


class CrossEncoderEntailment(Named):
    """A natural-language-inference cross-encoder of sentence-transformers, by folder or hub name;
    ``cache_path``: an SQLite file that keeps its answers. ``ValueError`` if its labels are not
    entailment, neutral and contradiction."""

    stand_in = False

    def __init__(
        self, name_or_path: Source, *, cache_path: Source | None = None, device: str | None = None
    ) -> None:
        super().__init__(name_or_path, device, f"entailment must be {STAND_IN!r}")
        self.cache_path = cache_path
        self._known: dict[Pair, np.ndarray] = {}

    @cached_property
    def model(self) -> Any:
        """The cross-encoder itself, loaded when first needed."""
        from sentence_transformers import CrossEncoder

        return self.opened(CrossEncoder)

    @cached_property
    def columns(self) -> list[int]:
        """Where the model puts entailment, neutral and contradiction."""
        labels = {int(i): str(label).lower() for i, label in self.model.config.id2label.items()}
        kinds = ("entail", "neutral", "contradict")
        found = [[i for i, label in labels.items() if label.startswith(kind)] for kind in kinds]
        if len(labels) != 3 or any(len(at) != 1 for at in found):
            has = f"{self.name} has the labels {list(labels.values())}"
            raise ValueError(f"{has}; entailment, neutral and contradiction are needed")
        return [at[0] for at in found]

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3)."""
        kept = Kept(self.cache_path, "entailment", "<f8")
        self._judge(self.left(pairs, self._known, kept, lambda p: json.dumps(p).encode()), kept)
        return np.stack([self._known[pair] for pair in pairs]) if pairs else np.zeros((0, 3))

    def _judge(self, keys: dict[Pair, str], kept: Kept) -> None:
        """Judge the pairs with these keys by rising length, keeping every :data:`ROUND`."""
        if keys and offline():
            what = f"{len(keys)} pair(s) are not judged"
            raise LookupError(f"offline, and {what}, the first: {next(iter(keys))}")
        pairs = sorted(keys, key=lambda pair: (len(pair[0]) + len(pair[1]), pair))
        how: Any = {"batch_size": BATCH, "apply_softmax": True, "show_progress_bar": False}
        for start in range(0, len(pairs), ROUND):
            part = pairs[start : start + ROUND]
            made = self.model.predict([list(pair) for pair in part], **how)
            found = np.asarray(made, dtype=np.float64)
            if found.shape != (len(part), 3) or not np.isfinite(found).all():
                what = f"probabilities of shape {found.shape} or not finite for {len(part)} pairs"
                raise ValueError(f"{self.name} returned {what}")
            found = found[:, self.columns]
            kept.add([keys[pair] for pair in part], found)
            self._known.update(zip(part, found, strict=True))


class Reading(NamedTuple):
    """A text without label, code and acronym in brackets, every name of what it means, and the
    condition in the table that it is, or is a kind of ('': none)."""

    text: str
    names: tuple[str, ...]
    condition: str
    several: bool = False  # a list of diagnoses, "A or B"


class StandInEntailment:
    """A rule-based proxy for an NLI model, for bare names of diseases. It reads a name as graders
    do (:func:`~trustlab.knowledge.same_or_narrower.relation`): case, accents, certainty
    ("probable"), word order and an acronym in brackets play no part. In this order:

    1. Two different conditions of the table, or kinds of them: contradiction 1 - c/2, entailment
       c/2, with c their cosine in [0, 0.99].
    2. Two names of one disease: entailment both ways.
    3. A disease and a kind of it: entailment (:data:`SPECIFIC`); the other way neutral, entailment
       above contradiction (:data:`GENERAL`), so that both are one set.
    4. Words that rule each other out (left and right, acute and chronic, disease and syndrome;
       :func:`~trustlab.knowledge.same_diagnosis.exclude`): contradiction.
    5. Two diseases: contradiction. Where each has but a qualifier of its own ("acute",
       "recurrent"), neutral, with contradiction above entailment (:data:`BESIDE`), so two sets.
    6. Else entailment by a logistic curve of the rounded cosine, contradiction the rest. Half lies
       at :attr:`HALF`, above 999 of 1,000 pairs of different conditions of the table.

    "No X" and "X ruled out" contradict X and its kinds, entail that there is no kind of X, and are
    neutral to the rest; so is what holds no word.
    """

    name, stand_in = STAND_IN, True
    HALF, SLOPE = 0.8495, 0.03

    def __init__(self, encoder: Encoder | None = None, knowledge: Knowledge | None = None) -> None:
        self.encoder, self.knowledge = encoder or Encoder(), knowledge or load_knowledge()
        self._readings: dict[str, Reading] = {}
        self._kinds: dict[Pair, str] = {}
        self._known: dict[Pair, np.ndarray] = {}

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{STAND_IN} (lists of names, knowledge table, ICD-10-CM, {self.encoder.revision})"

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3)."""
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        by_rule = {pair: self._by_rule(*pair) for pair in unknown}
        self._known |= {pair: np.array(row) for pair, row in by_rule.items() if row is not None}
        open_pairs = [pair for pair, row in by_rule.items() if row is None]
        for (a, b), cosine in pair_cosines(self.encoder, open_pairs).items():
            cosine = round(max(cosine, 0.0), DECIMALS)
            if self._reading(a).condition and self._reading(b).condition:
                entails = min(cosine, 0.99) / 2
            else:
                entails = 1 / (1 + np.exp((self.HALF - cosine) / self.SLOPE))
            self._known[a, b] = np.array([entails, 0.0, 1 - entails])
        return np.stack([self._known[pair] for pair in pairs]) if pairs else np.zeros((0, 3))

    def _by_rule(self, premise: str, hypothesis: str) -> Row | None:
        """The probabilities by the rules; ``None`` where a cosine is asked for."""
        if premise == hypothesis:
            return SAME
        both = (premise, hypothesis)
        table = self.knowledge
        not_a, not_b = (None if table.condition_named(t) else undenied(t) for t in both)
        a, b = premise if not_a is None else not_a, hypothesis if not_b is None else not_b
        if not all(read_name(self._reading(text).text).words for text in (a, b)):
            return UNRELATED
        if not_a is None and not_b is None:
            return self._compared(a, b)
        if not_a is None or not_b is None:  # is what is affirmed a kind of what is denied?
            follows = self._compared(*((a, b) if not_a is None else (b, a))) in (SAME, SPECIFIC)
            return CONTRADICTS if follows else UNRELATED
        row = self._compared(b, a)  # who has no appendicitis has no acute one
        return row if row in (SAME, SPECIFIC, GENERAL) else UNRELATED

    def _compared(self, premise: str, hypothesis: str) -> Row | None:
        a, b = self._reading(premise), self._reading(hypothesis)
        if a.condition and b.condition and a.condition != b.condition:
            return None
        for pair in ((premise, hypothesis), (hypothesis, premise)):
            if pair not in self._kinds:
                self._kinds[pair] = self._kind(*map(self._reading, pair))
        forward, backward = self._kinds[premise, hypothesis], self._kinds[hypothesis, premise]
        kinds = {forward, backward}
        if same_or_narrower.SAME in kinds or kinds == {NARROWER}:
            return SAME
        if a.several or b.several:
            return None
        if NARROWER in kinds:
            return SPECIFIC if forward == NARROWER else GENERAL
        here, there = read_name(a.text), read_name(b.text)
        if exclude(here.spoken, there.spoken):
            return CONTRADICTS
        if OTHER in kinds:
            apart = not (here.words <= there.words or there.words <= here.words)
            qualified = all(map(is_qualifier, here.words ^ there.words))
            return BESIDE if apart and qualified else CONTRADICTS
        if _adds_to(there, a):
            return SPECIFIC
        return GENERAL if _adds_to(here, b) else None

    def _kind(self, reading: Reading, other: Reading) -> str:
        """How a text stands to all names of what the other means, or else to the other alone."""
        to_all = relation(reading.text, other.names, self.knowledge)
        if other.names == (other.text,):
            return to_all
        to_text = relation(reading.text, (other.text,), self.knowledge)
        return to_text if to_text in RIGHT and to_all not in RIGHT else to_all

    def _reading(self, text: str) -> Reading:
        if text not in self._readings:
            self._readings[text] = self._read(text)
        return self._readings[text]

    def _read(self, text: str) -> Reading:
        plain = plain_name(text)
        parts = bracketed(plain)
        if parts and (is_acronym(parts[1], parts[0]) or are_one(*map(read_name, parts))):
            plain = parts[0]
        if condition := self.knowledge.condition_named(text):
            return Reading(plain, (plain, *condition.names), condition.id)
        several = bool(ALTERNATIVES.search(plain))
        is_list = several or "," in plain
        return Reading(plain, (plain,), "" if is_list else self._kind_of(plain), several)

    def _kind_of(self, text: str) -> str:
        """The id of the condition in the table that a name means, or is a kind of; '' for none."""
        words = read_name(text).words
        kinds = {
            condition.id: by_words(text, condition.names)
            for condition in self.knowledge.conditions.values()
            if any(read_name(name).words <= words for name in condition.names)
        }
        return next((i for right in RIGHT for i, kind in kinds.items() if kind == right), "")


def _adds_to(less: Name, more: Reading) -> bool:
    """Whether a name of what ``more`` means has all words of another, and the same noun."""
    names = map(read_name, more.names)
    return any(less.words < name.words and less.noun == name.noun for name in names)


def open_entailment(
    name: Source | None, *, encoder: Encoder | None = None, cache_path: Source | None = None
) -> Entailment:
    """The judge called ``name``: ``None`` or ``"rule-based proxy"``, else the folder or hub name of
    an NLI cross-encoder."""
    if name is None or str(name) == STAND_IN:
        return StandInEntailment(encoder)
    return CrossEncoderEntailment(name, cache_path=cache_path)


def matrices(
    judge: Entailment, groups: Sequence[Sequence[str]]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Entailment and contradiction within each group of texts, each (K, K): row i is the premise,
    column j the hypothesis. Equal strings entail each other: 1 and 0."""
    distinct = map(dict.fromkeys, groups)
    found = judged(judge, ((a, b) for texts in distinct for a in texts for b in texts if a != b))
    entails = squares(groups, {pair: row[ENTAILMENT] for pair, row in found.items()}, 1.0)
    contradicts = squares(groups, {pair: row[CONTRADICTION] for pair, row in found.items()}, 0.0)
    return list(zip(entails, contradicts, strict=True))


def classes(judge: Entailment, pairs: Sequence[Pair]) -> np.ndarray:
    """Of each (text, other), (n,): 1 if they entail each other, -1 if they contradict, else 0. The
    likeliest of the three counts, of each direction: where the two agree, that; where one is
    neutral, the other; where they are opposite, neutral. Equal strings are 1."""
    found = judged(judge, [pair for a, b in pairs if a != b for pair in ((a, b), (b, a))])
    sign = {pair: (1, 0, -1)[row.argmax()] for pair, row in found.items()}
    one = [1 if a == b else np.sign(sign[a, b] + sign[b, a]) for a, b in pairs]
    return np.array(one, dtype=np.int64)


def judged(judge: Entailment, pairs: Iterable[Pair]) -> dict[Pair, np.ndarray]:
    """Distinct pair -> its probabilities (3,), all asked at once."""
    distinct = list(dict.fromkeys(pairs))
    return dict(zip(distinct, judge.probabilities(distinct), strict=True))
