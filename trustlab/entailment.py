"""Does one diagnosis entail another? One protocol, a real judge by name, and a stand-in that needs no download.

A judge gives each (premise, hypothesis) pair the probabilities of entailment, neutrality and contradiction. Over a run, each
distinct pair is judged once; two equal strings entail each other and are never put to it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from trustlab.knowledge import Knowledge, load_knowledge, normalise
from trustlab.models.cache import connect, select
from trustlab.paths import offline
from trustlab.semantics import Encoder, model_fingerprint

ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2
"""Columns of the probabilities."""
STAND_IN = "stand-in"
SCHEMA = "CREATE TABLE IF NOT EXISTS entailment (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
BATCH, ROUND = 64, 1024

Pair = tuple[str, str]


@runtime_checkable
class Entailment(Protocol):
    """A judge. ``name`` is what tables show, ``revision`` what its answers depend on; ``stand_in`` if it is no NLI model."""

    name: str
    stand_in: bool

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        ...

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3), rows of sum 1."""
        ...


class CrossEncoderEntailment:
    """A natural-language-inference cross-encoder of sentence-transformers, by folder or hub name.

    ``cache_path``: an SQLite file that keeps its answers; where all are there, the model is not loaded. ``ValueError`` if its
    labels are not entailment, neutral and contradiction.
    """

    stand_in = False

    def __init__(
        self, name_or_path: str | os.PathLike[str], *, cache_path: str | os.PathLike[str] | None = None, device: str | None = None
    ) -> None:
        self.name, self.cache_path, self.device = str(name_or_path), cache_path, device
        folder = Path(name_or_path).expanduser()
        self._folder = folder if folder.is_dir() else None
        if self._folder is None and self.name[:1] in "./~":
            raise ValueError(f"entailment must be {STAND_IN!r}, a folder that exists or a hub name, got {self.name!r}")
        self._known: dict[Pair, np.ndarray] = {}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the model's files, or the hub's commit."""
        return model_fingerprint(self._folder, self.name)

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{self.name} {self.fingerprint[:16]}"

    @cached_property
    def model(self) -> Any:
        """The cross-encoder itself, loaded when first needed."""
        from sentence_transformers import CrossEncoder

        if self._folder is not None:
            return CrossEncoder(str(self._folder), device=self.device, local_files_only=True)
        return CrossEncoder(self.name, device=self.device, revision=self.fingerprint)

    @cached_property
    def columns(self) -> list[int]:
        """Where the model puts entailment, neutral and contradiction."""
        labels = {int(i): str(label).lower() for i, label in self.model.config.id2label.items()}
        found = [[i for i, label in labels.items() if label.startswith(kind)] for kind in ("entail", "neutral", "contradict")]
        if len(labels) != 3 or any(len(at) != 1 for at in found):
            raise ValueError(
                f"{self.name} has the labels {list(labels.values())}; entailment, neutral and contradiction are needed"
            )
        return [at[0] for at in found]

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3). Each distinct pair is judged once."""
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if unknown and self.cache_path is not None:
            with closing(connect(self.cache_path, SCHEMA)) as connection:
                keys = {self._key(pair): pair for pair in unknown}
                for key, blob in select(connection, "entailment", "value", keys):
                    self._known[keys[key]] = np.frombuffer(blob, dtype="<f8").copy()  # type: ignore[arg-type]
                self._judge([pair for pair in unknown if pair not in self._known], connection)
        else:
            self._judge(unknown)
        return np.stack([self._known[pair] for pair in pairs]) if pairs else np.zeros((0, 3))

    def _judge(self, pairs: list[Pair], connection: Any = None) -> None:
        """Judge by rising length, keeping what is finished after every :data:`ROUND` pairs."""
        if pairs and offline():
            what = f"{len(pairs)} pair(s) are not judged"
            raise LookupError(f"offline, and {what}, the first: {pairs[0]}")
        pairs = sorted(pairs, key=lambda pair: (len(pair[0]) + len(pair[1]), pair))
        for start in range(0, len(pairs), ROUND):
            part = pairs[start : start + ROUND]
            found = np.asarray(
                self.model.predict([list(p) for p in part], batch_size=BATCH, apply_softmax=True, show_progress_bar=False),
                dtype=np.float64,
            )
            if found.shape != (len(part), 3) or not np.isfinite(found).all():
                raise ValueError(f"{self.name} returned probabilities of shape {found.shape} or not finite for {len(part)} pairs")
            found = found[:, self.columns]
            if connection is not None:
                with connection:
                    rows = [(self._key(pair), row.astype("<f8").tobytes()) for pair, row in zip(part, found, strict=True)]
                    connection.executemany("INSERT OR IGNORE INTO entailment VALUES (?, ?)", rows)
            self._known.update(zip(part, found, strict=True))

    def _key(self, pair: Pair) -> str:
        text = json.dumps(pair).encode()
        return f"{self.fingerprint}:{hashlib.sha256(text).hexdigest()}"


class StandInEntailment:
    """A stand-in for an NLI model, for bare names of diseases: rules over the knowledge table, names and a sentence encoder.

    In this order, after "no", "not", "without", ... have been noted and taken out of both:

    1. The same words, or two names of one condition of the table: entailment; contradiction if one of them is negated.
    2. Either is negated, or nothing is left of it: neutral.
    3. Names of two different conditions of the table: contradiction 1 - c/2, entailment c/2, with c their cosine in [0, 1].
    4. All words of one are among the other's, with the same last word ("viral pneumonia", "pneumonia"): the longer entails the
       shorter, the shorter says nothing of the longer.
    5. Else entailment by a logistic curve of the cosine, contradiction the rest. Half lies at :attr:`HALF`: of all pairs of
       different conditions of the table, 999 in 1,000 have a smaller cosine (packaged encoder).
    """

    name, stand_in = STAND_IN, True
    NEGATIONS = frozenset({"no", "not", "without", "never", "denies", "excluded", "absent", "unlikely", "negative"})
    HALF, SLOPE = 0.85, 0.03

    def __init__(self, encoder: Encoder | None = None, knowledge: Knowledge | None = None) -> None:
        self.encoder, self.knowledge = encoder or Encoder(), knowledge or load_knowledge()
        self._read: dict[str, tuple[tuple[str, ...], bool, str | None]] = {}
        self._known: dict[Pair, np.ndarray] = {}

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{STAND_IN} (names, knowledge table, {self.encoder.revision})"

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3). Each distinct pair is judged once."""
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        by_rule = {pair: self._by_rule(*pair) for pair in unknown}
        self._known |= {pair: row for pair, row in by_rule.items() if row is not None}
        open_pairs = [pair for pair, row in by_rule.items() if row is None]
        texts = list(dict.fromkeys(text for pair in open_pairs for text in pair))
        vectors = self.encoder.encode(texts).astype(np.float64)
        at = {text: i for i, text in enumerate(texts)}
        for a, b in open_pairs:
            cosine = float(np.clip(vectors[at[a]] @ vectors[at[b]], 0.0, 1.0))
            if self._condition(a) and self._condition(b):
                entails = cosine / 2
            else:
                entails = 1 / (1 + np.exp((self.HALF - cosine) / self.SLOPE))
            self._known[a, b] = np.array([entails, 0.0, 1 - entails])
        return np.stack([self._known[pair] for pair in pairs]) if pairs else np.zeros((0, 3))

    def _by_rule(self, premise: str, hypothesis: str) -> np.ndarray | None:
        """The probabilities by rules 1, 2 and 4; ``None`` where a cosine is asked for."""
        (a, a_negated, a_is), (b, b_negated, b_is) = self._reading(premise), self._reading(hypothesis)
        if a and (a == b or (a_is is not None and a_is == b_is)):
            return np.eye(3)[ENTAILMENT if a_negated == b_negated else CONTRADICTION]
        if not a or not b or a_negated or b_negated:
            return np.eye(3)[NEUTRAL]
        if not (a_is and b_is) and a[-1] == b[-1] and (set(a) < set(b) or set(b) < set(a)):
            return np.eye(3)[ENTAILMENT if set(b) < set(a) else NEUTRAL]
        return None

    def _condition(self, text: str) -> str | None:
        return self._reading(text)[2]

    def _reading(self, text: str) -> tuple[tuple[str, ...], bool, str | None]:
        """The words without negations, whether there was one, and the condition of the table that they name."""
        if text not in self._read:
            said = normalise(text)
            whole = self.knowledge.condition_named(said)
            words = said.replace("ruled out", "excluded").split()
            kept = tuple(w for w in words if w not in self.NEGATIONS) if whole is None else tuple(words)
            condition = whole or self.knowledge.condition_named(" ".join(kept))
            self._read[text] = (kept, len(kept) < len(words), condition.id if condition else None)
        return self._read[text]


def open_entailment(
    name: str | os.PathLike[str] | None, *, encoder: Encoder | None = None, cache_path: str | os.PathLike[str] | None = None
) -> Entailment:
    """The judge called ``name``: ``None`` or ``"stand-in"``, else the folder or hub name of an NLI cross-encoder."""
    if name is None or str(name) == STAND_IN:
        return StandInEntailment(encoder)
    return CrossEncoderEntailment(name, cache_path=cache_path)


def matrices(judge: Entailment, groups: Sequence[Sequence[str]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Entailment and contradiction within each group of texts, each (K, K): row i is the premise, column j the hypothesis.

    Equal strings entail each other: 1 and 0. The distinct pairs of all groups are judged together.
    """
    distinct = [list(dict.fromkeys(group)) for group in groups]
    found = judged(judge, (pair for texts in distinct for pair in _ordered_pairs(texts)))
    out = []
    for group, texts in zip(groups, distinct, strict=True):
        entails, contradicts = np.eye(len(texts)), np.zeros((len(texts), len(texts)))
        for i, a in enumerate(texts):
            for j, b in enumerate(texts):
                if i != j:
                    entails[i, j], _, contradicts[i, j] = found[a, b]
        at = [texts.index(text) for text in group]
        out.append((entails[np.ix_(at, at)], contradicts[np.ix_(at, at)]))
    return out


def classes(judge: Entailment, pairs: Sequence[Pair]) -> np.ndarray:
    """Of each (text, other): 1 if they entail each other, -1 if they contradict, 0 if neither, (n,).

    The class of each direction is the likeliest of the three. Where the two agree, that; where one is neutral, the other; where
    they are opposite, neutral. Equal strings are 1.
    """
    both = [pair for a, b in pairs if a != b for pair in ((a, b), (b, a))]
    found = judged(judge, both)
    sign = np.array([1, 0, -1])
    return np.array(
        [1 if a == b else np.sign(sign[found[a, b].argmax()] + sign[found[b, a].argmax()]) for a, b in pairs], dtype=np.int64
    )


def judged(judge: Entailment, pairs: Iterable[Pair]) -> dict[Pair, np.ndarray]:
    """Distinct pair -> its probabilities (3,), all asked at once."""
    distinct = list(dict.fromkeys(pairs))
    return dict(zip(distinct, judge.probabilities(distinct), strict=True))


def _ordered_pairs(texts: Sequence[str]) -> list[Pair]:
    return [(a, b) for a in texts for b in texts if a != b]
