"""Asks whether one diagnosis entails another. A protocol, a real judge by name, a proxy without
download.

Over a run each distinct (premise, hypothesis) is judged once; two equal strings entail each other
and are never put to a judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, permutations
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
    by_words,
    is_same_disease,
    relation,
)
from trustlab.meaning.encoder import (
    LIBRARY,
    TABLE,
    ArrayStore,
    Encoder,
    SentenceModel,
    Source,
    pair_cosines,
    squares,
)
from trustlab.models.local.opening import need_local
from trustlab.paths import offline

ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2  # columns of the probabilities
STAND_IN = "rule-based proxy"
SCHEMA = TABLE.format("entailment")
BATCH = 64
DECIMALS = 3  # cosines are rounded to these before they are compared

Pair = tuple[str, str]
Row = tuple[float, float, float]
SAME: Row = (1.0, 0.0, 0.0)
# the premise says more: "acute appendicitis", "appendicitis"
SPECIFIC: Row = (0.99, 0.01, 0.0)
GENERAL: Row = (0.3, 0.6, 0.1)  # the hypothesis says more
# each does: "acute pancreatitis", "alcoholic pancreatitis"
BESIDE: Row = (0.1, 0.6, 0.3)
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


class CrossEncoderEntailment(SentenceModel):
    """A natural-language-inference cross-encoder of sentence-transformers, by folder or hub name;
    ``cache_path``: an SQLite file that keeps its answers. ``ValueError`` if its labels are not
    entailment, neutral and contradiction."""

    stand_in = False

    def __init__(
        self,
        name_or_path: Source,
        *,
        cache_path: Source | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(name_or_path, device, f"entailment must be {STAND_IN!r}")
        self.cache_path = cache_path
        self._probabilities: dict[Pair, np.ndarray] = {}

    @cached_property
    def model(self) -> Any:
        """The cross-encoder itself, loaded when first needed."""
        need_local(f"model {self.name!r}", LIBRARY)
        from sentence_transformers import CrossEncoder

        return self.load_model(CrossEncoder)

    @cached_property
    def columns(self) -> list[int]:
        """Where the model puts entailment, neutral and contradiction."""
        labels: list[str] = []
        columns: dict[str, int] = {}
        for column, label in self.model.config.id2label.items():
            labels.append(str(label).lower())
            for kind in ("entail", "neutral", "contradict"):
                if labels[-1].startswith(kind):
                    columns[kind] = int(column)
        if len(labels) != 3 or len(columns) != 3:
            raise ValueError(
                f"{self.name} has the labels {labels};"
                " entailment, neutral and contradiction are needed"
            )
        return [columns["entail"], columns["neutral"], columns["contradict"]]

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3)."""
        store = ArrayStore(self.cache_path, "entailment", "<f8")
        new_keys = self.load_arrays(pairs, self._probabilities, store, _pair_bytes)
        if new_keys and offline():
            lack = f"{len(new_keys)} pair(s) are not judged"
            first = next(iter(new_keys))
            raise LookupError(f"offline, and {lack}, the first: {first}")
        by_length = sorted(new_keys, key=lambda pair: (len("".join(pair)), pair))
        for part, rows in self.computed(by_length, 1):
            part_keys = [new_keys[pair] for pair in part]
            store.add(part_keys, rows)
            self._probabilities.update(zip(part, rows, strict=True))
        return _stack(self._probabilities, pairs)

    def compute(self, items: Sequence[Any]) -> np.ndarray:
        """The model's probabilities of the pairs, (n, 3)."""
        output = self.model.predict(
            [list(pair) for pair in items],
            batch_size=BATCH,
            apply_softmax=True,
            show_progress_bar=False,
        )
        rows = np.asarray(output, dtype=np.float64)
        if rows.shape != (len(items), 3) or not np.isfinite(rows).all():
            fault = f"probabilities of shape {rows.shape} or not finite for {len(items)} pairs"
            raise ValueError(f"{self.name} returned {fault}")
        return rows[:, self.columns]


def _pair_bytes(pair: Pair) -> bytes:
    return json.dumps(pair).encode()


def _stack(probabilities: dict[Pair, np.ndarray], pairs: Sequence[Pair]) -> np.ndarray:
    """The probabilities of the pairs, (n, 3)."""
    return np.array([probabilities[pair] for pair in pairs]).reshape(-1, 3)


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

    name = STAND_IN
    stand_in = True
    HALF, SLOPE = 0.8495, 0.03

    def __init__(
        self, encoder: Encoder | None = None, knowledge: Knowledge | None = None
    ) -> None:
        self.encoder = encoder or Encoder()
        self.knowledge = knowledge or load_knowledge()
        self._readings: dict[str, Reading] = {}
        self._kinds: dict[Pair, str] = {}
        self._probabilities: dict[Pair, np.ndarray] = {}

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{STAND_IN} (lists of names, knowledge table, ICD-10-CM, {self.encoder.revision})"

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3)."""
        new_pairs = [
            pair for pair in dict.fromkeys(pairs) if pair not in self._probabilities
        ]
        open_pairs = []
        for pair in new_pairs:
            row = self._row_by_rules(*pair)
            if row is None:
                open_pairs.append(pair)
            else:
                self._probabilities[pair] = np.array(row)
        for pair, cosine in pair_cosines(self.encoder, open_pairs).items():
            rounded = round(max(cosine, 0.0), DECIMALS)
            self._probabilities[pair] = self._row_by_cosine(pair, rounded)
        return _stack(self._probabilities, pairs)

    def _row_by_cosine(self, pair: Pair, cosine: float) -> np.ndarray:
        """The probabilities of a pair that no rule decides."""
        have_conditions = all(self._read_once(text).condition for text in pair)
        if have_conditions:
            entails = min(cosine, 0.99) / 2
        else:
            exponent = (self.HALF - cosine) / self.SLOPE
            entails = 1 / (1 + np.exp(exponent))
        return np.array([entails, 0.0, 1 - entails])

    def _row_by_rules(self, premise: str, hypothesis: str) -> Row | None:
        """The probabilities by the rules; ``None`` where they take a cosine."""
        if premise == hypothesis:
            return SAME
        denied_premise = self._denied_name(premise)
        denied_hypothesis = self._denied_name(hypothesis)
        name = premise if denied_premise is None else denied_premise
        other = hypothesis if denied_hypothesis is None else denied_hypothesis
        for text in (name, other):
            if not read_name(self._read_once(text).text).words:
                return UNRELATED
        if denied_premise is None and denied_hypothesis is None:
            return self._compare(name, other)
        if denied_premise is None:  # is what is affirmed a kind of what is denied?
            row = self._compare(name, other)
            return CONTRADICTS if row in (SAME, SPECIFIC) else UNRELATED
        row = self._compare(other, name)  # who has no appendicitis has no acute one
        if denied_hypothesis is None:
            return CONTRADICTS if row in (SAME, SPECIFIC) else UNRELATED
        return row if row in (SAME, SPECIFIC, GENERAL) else UNRELATED

    def _denied_name(self, text: str) -> str | None:
        """The X of "no X"; ``None`` if nothing is denied, as in a condition's own name."""
        if self.knowledge.condition_named(text):
            return None
        return undenied(text)

    def _compare(self, premise: str, hypothesis: str) -> Row | None:
        """The probabilities of two names without denial; ``None`` where no rule decides."""
        reading = self._read_once(premise)
        other = self._read_once(hypothesis)
        if (
            reading.condition
            and other.condition
            and reading.condition != other.condition
        ):
            return None
        forward = self._kind_once(premise, hypothesis)
        backward = self._kind_once(hypothesis, premise)
        kinds = {forward, backward}
        if same_or_narrower.SAME in kinds or kinds == {NARROWER}:
            return SAME
        if reading.several or other.several:
            return None
        if NARROWER in kinds:
            return SPECIFIC if forward == NARROWER else GENERAL
        return self._compare_words(reading, other, OTHER in kinds)

    def _compare_words(
        self, reading: Reading, other: Reading, are_two: bool
    ) -> Row | None:
        """The probabilities by the words of two names, which ``are_two`` diseases or may be one."""
        name = read_name(reading.text)
        other_name = read_name(other.text)
        if exclude(name.spoken, other_name.spoken):
            return CONTRADICTS
        if are_two:
            is_within = name.words <= other_name.words or other_name.words <= name.words
            own_words = name.words ^ other_name.words
            if not is_within and all(map(is_qualifier, own_words)):
                return BESIDE
            return CONTRADICTS
        if _adds_words(reading, other_name):
            return SPECIFIC
        return GENERAL if _adds_words(other, name) else None

    def _kind_once(self, text: str, other: str) -> str:
        """How a text stands to another one, found out once."""
        pair = (text, other)
        if pair not in self._kinds:
            self._kinds[pair] = self._kind(
                self._read_once(text), self._read_once(other)
            )
        return self._kinds[pair]

    def _kind(self, reading: Reading, other: Reading) -> str:
        """How a text stands to all names of what the other means, or else to the other alone."""
        own_name = (other.text,)
        to_names = relation(reading.text, other.names, self.knowledge)
        if to_names in RIGHT or other.names == own_name:
            return to_names
        to_text = relation(reading.text, own_name, self.knowledge)
        return to_text if to_text in RIGHT else to_names

    def _read_once(self, text: str) -> Reading:
        if text not in self._readings:
            self._readings[text] = self._read(text)
        return self._readings[text]

    def _read(self, text: str) -> Reading:
        plain = plain_name(text)
        parts = bracketed(plain)
        if parts and (
            is_acronym(parts[1], parts[0]) or is_same_disease(*map(read_name, parts))
        ):
            plain = parts[0]
        condition = self.knowledge.condition_named(text)
        if condition:
            return Reading(plain, (plain, *condition.names), condition.id)
        has_alternatives = ALTERNATIVES.search(plain) is not None
        is_list = has_alternatives or "," in plain
        condition_id = "" if is_list else self._condition_of(plain)
        return Reading(plain, (plain,), condition_id, has_alternatives)

    def _condition_of(self, text: str) -> str:
        """The id of the condition in the table that a name means, or is a kind of; '' for none."""
        words = read_name(text).words
        id_of_kind: dict[str, str] = {}
        for condition in self.knowledge.conditions.values():
            if any(read_name(name).words <= words for name in condition.names):
                kind = by_words(text, condition.names)
                id_of_kind.setdefault(kind, condition.id)
        for kind in RIGHT:
            if kind in id_of_kind:
                return id_of_kind[kind]
        return ""


def _adds_words(reading: Reading, shorter: Name) -> bool:
    """Whether a name of what a text means has all words of a ``shorter`` one, and its noun."""
    names = map(read_name, reading.names)
    return any(
        shorter.words < name.words and shorter.noun == name.noun for name in names
    )


def open_entailment(
    name: Source | None,
    *,
    encoder: Encoder | None = None,
    cache_path: Source | None = None,
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
    pairs: list[Pair] = []
    for texts in groups:
        pairs += permutations(dict.fromkeys(texts), 2)
    rows = probabilities_by_pair(judge, pairs)
    entailment = {pair: row[ENTAILMENT] for pair, row in rows.items()}
    contradiction = {pair: row[CONTRADICTION] for pair, row in rows.items()}
    entailed = squares(groups, entailment, 1.0)
    contradicted = squares(groups, contradiction, 0.0)
    return list(zip(entailed, contradicted, strict=True))


def both_ways(
    judge: Entailment, pairs_by_group: Sequence[Sequence[Pair]]
) -> list[np.ndarray]:
    """The probabilities of the n pairs of each group, forwards and backwards, (2, n, 3). Equal
    strings entail each other."""
    unlike = _unlike_both_ways(chain.from_iterable(pairs_by_group))
    rows = probabilities_by_pair(judge, unlike)
    results = []
    for pairs in pairs_by_group:
        forwards = [rows.get(pair, SAME) for pair in pairs]
        backwards = [rows.get((other, text), SAME) for text, other in pairs]
        results.append(np.array([forwards, backwards]).reshape(2, len(pairs), 3))
    return results


def classes(judge: Entailment, pairs: Sequence[Pair]) -> np.ndarray:
    """Of each (text, other), (n,): 1 if they entail each other, -1 if they contradict, else 0. The
    likeliest of the three counts, of each direction: where the two agree, that; where one is
    neutral, the other; where they are opposite, neutral. Equal strings are 1."""
    signs = {}
    for pair, row in probabilities_by_pair(judge, _unlike_both_ways(pairs)).items():
        signs[pair] = 1 - row.argmax()
    values = []
    for text, other in pairs:
        if text == other:
            values.append(1)
        else:
            values.append(np.sign(signs[text, other] + signs[other, text]))
    return np.array(values, dtype=np.int64)


def _unlike_both_ways(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs of two different texts, each also the other way."""
    both = []
    for text, other in pairs:
        if text != other:
            both += [(text, other), (other, text)]
    return both


def probabilities_by_pair(
    judge: Entailment, pairs: Iterable[Pair]
) -> dict[Pair, np.ndarray]:
    """Distinct pair -> its probabilities (3,), all judged at once."""
    distinct = list(dict.fromkeys(pairs))
    return dict(zip(distinct, judge.probabilities(distinct), strict=True))
