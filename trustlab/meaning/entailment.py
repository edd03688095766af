"""Asks whether one diagnosis entails another. A protocol, a real judge by name, a proxy without
download.

Over a run each distinct (premise, hypothesis) is judged once; two equal strings entail each other
and are never put to a judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from trustlab.agents.giveaway import LAY_NAMES
from trustlab.graders import same_diagnosis as names
from trustlab.knowledge import Condition, Knowledge, load_knowledge
from trustlab.meaning.encoder import TABLE, Encoder, Kept, Named, Source, pair_cosines, squares
from trustlab.paths import offline
from trustlab.records import normalise

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


class Phrase(NamedTuple):
    """A name as the rules see it: its words, degree included, and the noun that says what it is (''
    where qualifiers stand alone)."""

    words: frozenset[str]
    head: str

    def covers(self, other: Phrase) -> bool:
        """Whether it is the other name, or a kind of it: "viral pneumonia" and "pneumonia"."""
        if not other.words <= self.words:
            return False
        more = self.words - other.words
        kind = self.head == other.head or all(map(_adds, more))
        return not more or bool(other.head and kind)


class Reading(NamedTuple):
    """What the rules know of a text: what it means (ids), and what it says beside (``extra``)."""

    own: Phrase
    several: bool = False  # a list of diagnoses, "A or B"
    syndrome: frozenset[str] = frozenset()
    condition: str | None = None
    means: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()
    phrases: tuple[Phrase, ...] = ()
    main: frozenset[str] = frozenset()  # the words of the condition's first name

    @property
    def said(self) -> frozenset[str]:
        """All words that may rule another's out."""
        return self.own.words | self.syndrome


class StandInEntailment:
    """A rule-based proxy for an NLI model, for bare names of diseases. Case, accents, certainty
    ("probable"), word order and an acronym in brackets play no part. In this order:

    1. Two different conditions of the table, with or without qualifiers: contradiction 1 - c/2,
       entailment c/2, with c their cosine in [0, 0.99].
    2. Two names of one condition with the same qualifiers; a name and its everyday name (one that
       several diseases share is their general name): entailment.
    3. Qualifiers that rule each other out (left and right, acute and chronic, disease and syndrome;
       :func:`~trustlab.graders.same_diagnosis.exclude`): contradiction.
    4. The same words, or an acronym of three letters or more: entailment both ways.
    5. More qualifiers, or more words and the same noun: entailment (:data:`SPECIFIC`); the other
       way neutral, entailment above contradiction (:data:`GENERAL`), so that both are one set.
    6. The same noun, each with a qualifier of its own ("acute", "recurrent"): neutral, with
       contradiction above entailment (:data:`BESIDE`), so two sets.
    7. Else entailment by a logistic curve of the rounded cosine, contradiction the rest. Half lies
       at :attr:`HALF`, above 999 of 1,000 pairs of different conditions of the table.

    "No X" and "X ruled out" contradict X and its kinds, entail that there is no kind of X, and are
    neutral to the rest; so is what holds no word.
    """

    name, stand_in = STAND_IN, True
    HALF, SLOPE = 0.8495, 0.03

    def __init__(self, encoder: Encoder | None = None, knowledge: Knowledge | None = None) -> None:
        self.encoder, self.knowledge = encoder or Encoder(), knowledge or load_knowledge()
        self._read: dict[str, Reading] = {}
        self._known: dict[Pair, np.ndarray] = {}

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{STAND_IN} (word rules, knowledge table, lay names, {self.encoder.revision})"

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
        not_a, not_b = (None if self._known_name(t) else names.undenied(t) for t in both)
        a, b = premise if not_a is None else not_a, hypothesis if not_b is None else not_b
        if not self._reading(a).own.words or not self._reading(b).own.words:
            return UNRELATED
        if not_a is None and not_b is None:
            return self._compared(a, b)
        if not_a is None or not_b is None:  # is what is told a kind of what is denied?
            follows = self._compared(*((a, b) if not_a is None else (b, a))) in (SAME, SPECIFIC)
            return CONTRADICTS if follows else UNRELATED
        row = self._compared(b, a)  # who has no appendicitis has no acute one
        return row if row in (SAME, SPECIFIC, GENERAL) else UNRELATED

    def _compared(self, premise: str, hypothesis: str) -> Row | None:
        a, b = self._reading(premise), self._reading(hypothesis)
        same_condition = a.condition is not None and a.condition == b.condition
        if a.condition and b.condition and not same_condition:
            return None
        one_thing = same_condition or bool(a.means & b.means)
        if not (one_thing and not a.extra and not b.extra) and names.exclude(a.said, b.said):
            return CONTRADICTS
        if a.own.words == b.own.words and a.several == b.several:
            return SAME
        related = one_thing or a.own.covers(b.own) or b.own.covers(a.own)
        if not related and (names.exclude(a.said, b.main) or names.exclude(b.said, a.main)):
            return CONTRADICTS
        forward, backward = _follows(a, b, same_condition), _follows(b, a, same_condition)
        short = _is_short_for(premise, hypothesis) or _is_short_for(hypothesis, premise)
        if short or (forward and backward):
            return SAME
        if forward or backward:
            return SPECIFIC if forward else GENERAL
        return BESIDE if one_thing or (_core(a) and _core(a) == _core(b)) else None

    def _reading(self, text: str) -> Reading:
        if text not in self._read:
            self._read[text] = self._as_read(text)
        return self._read[text]

    def _as_read(self, text: str) -> Reading:
        plain = names.plain_name(text)
        parts = names.bracketed(plain)
        if parts and self._said_twice(*parts):
            plain = parts[0]
        own = _phrase(plain)
        syndrome = frozenset(normalise(plain).split()) & {"disease", "syndrome"}
        whole = self._known_name(text)
        if whole is None and names.ALTERNATIVES.search(plain):
            return Reading(own, True, syndrome)
        name = own.words if own.words in self._names else self._name_within(own.words)
        means, extra = self._names.get(name, frozenset()), own.words - name
        condition = self._conditions.get(name)
        if whole is not None:
            condition, extra = self.knowledge.condition_of_name[whole], frozenset()
        if condition is None:
            return Reading(own, False, syndrome, None, means, extra, (own,))
        known = (_phrase(n) for n in condition.names if not names.ALTERNATIVES.search(n))
        phrases = (own, *(Phrase(n.words | extra, n.head) for n in known))
        means, main = means | {condition.id}, self._main[condition.id]
        return Reading(own, False, syndrome, condition.id, means, extra, phrases, main)

    def _known_name(self, text: str) -> str | None:
        """The text, normalised, if it is whole a name in the table."""
        return said if (said := normalise(text)) in self.knowledge.condition_of_name else None

    def _said_twice(self, outside: str, inside: str) -> bool:
        """Whether in brackets stands the acronym of the name before, or another name of it."""
        one, other = (self._names.get(_phrase(part).words) for part in (outside, inside))
        return bool(one and other and one & other) or names.is_acronym(inside, outside)

    def _name_within(self, words: frozenset[str]) -> frozenset[str]:
        """The longest known name to which ``words`` only add qualifiers, none against it; or ()."""
        within = [n for n in self._names if n < words and all(map(_adds, words - n))]
        main = {n: [self._main[m] for m in self._names[n] if m in self._main] for n in within}
        found = [n for n in within if not any(names.exclude(words, of) for of in main[n])]
        return max(found, key=lambda name: (len(name), sorted(name)), default=frozenset())

    @cached_property
    def _main(self) -> dict[str, frozenset[str]]:
        return {c.id: _phrase(c.name).words for c in self.knowledge.conditions.values()}

    @cached_property
    def _conditions(self) -> dict[frozenset[str], Condition]:
        """Words of a name in the table -> its condition."""
        named = [(name, c) for c in self.knowledge.conditions.values() for name in c.names]
        one = [(name, c) for name, c in named if not names.ALTERNATIVES.search(name)]
        return {_phrase(names.plain_name(name)).words: c for name, c in one}

    @cached_property
    def _names(self) -> dict[frozenset[str], frozenset[str]]:
        """Words of a name -> ids of what it means; what the table lacks goes by its lay names."""
        found = {words: frozenset({condition.id}) for words, condition in self._conditions.items()}
        for name, lay in LAY_NAMES.items():
            condition = self.knowledge.condition_named(name)
            for one in (name, *lay):
                words = _phrase(one).words
                meaning = condition.id if condition else " / ".join(lay)
                found[words] = found.get(words, frozenset()) | {meaning}
        return found


def _phrase(name: str) -> Phrase:
    """The words of a :func:`~trustlab.graders.same_diagnosis.plain_name`."""
    name = normalise(name)
    for pattern, same in names.SAME_PHRASE.items():
        name = re.sub(rf"\b(?:{pattern})\b", same, name)
    degrees = frozenset(name.split()) & names.DEGREES
    first = re.split(r"\b(?:of|in|with|without|from|by|due to|secondary to)\b", name)[0]
    head = ""
    for part in reversed(first.split()):
        nouns = [word for word in names.content_words(part) if not names.is_qualifier(word)]
        if nouns:  # the last of what stands between two spaces
            head = max(nouns, key=lambda word: (part.rfind(word), word))
            break
    return Phrase(names.content_words(name) | degrees, head)


def _adds(word: str) -> bool:
    """Whether a word makes a name a kind of the name without it, whatever the name."""
    return names.is_qualifier(word) or word in names.DEGREES


def _core(reading: Reading) -> frozenset[str]:
    return frozenset(word for word in reading.own.words if not _adds(word))


def _follows(a: Reading, b: Reading, same_condition: bool) -> bool:
    """Whether a is b or a kind of it, by what they mean or by the words of any of their names."""
    named = same_condition or (bool(a.means) and a.means <= b.means)
    return (named and a.extra >= b.extra) or any(x.covers(y) for x in a.phrases for y in b.phrases)


def _is_short_for(short: str, long: str) -> bool:
    return 3 <= len(short) <= 8 and short.isalnum() and names.is_acronym(short, long)


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
