"""Adds to each answer what its words mean."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from trustlab.confidence.registry import BY_ENCODER, BY_JUDGE
from trustlab.meaning.encoder import Encoder, Pair, pair_cosines
from trustlab.meaning.entailment import (
    CONTRADICTION,
    ENTAILMENT,
    STAND_IN,
    Entailment,
    StandInEntailment,
    both_ways,
    matrices,
)
from trustlab.meaning.relevance import (
    Pieces,
    after_context,
    alternative_classes,
    pieces_of,
    relevances,
    with_cosines,
)
from trustlab.records import Generation, Reply, View, with_each
from trustlab.tables import shortened

NO_MEDICAL_ENCODER = "no medical encoder is named"
ANSWER_ROW = frozenset(
    {"answer_similarity", "answer_entailment", "answer_contradiction"}
)
"""Needs that compare the answer with its samples."""


@dataclass(frozen=True)
class Readers:
    """Who reads meaning: a general and perhaps a medical encoder, a judge of entailment."""

    encoder: Encoder
    medical: Encoder | None
    entailment: Entailment

    @classmethod
    def of(
        cls, encoder: Encoder | None = None, medical: Encoder | None = None,
        entailment: Entailment | None = None,
    ) -> Readers:  # fmt: skip
        """Readers of meaning; the packaged encoder and the stand-in judge where none is named."""
        encoder = encoder or Encoder()
        return cls(encoder, medical, entailment or StandInEntailment(encoder))

    def lacking(self, needs: Collection[str]) -> dict[str, str]:
        """Those of the needs that cannot be met, as the encoder lacks a library, with the reason.
        The stand-in judge reads by the encoder, too."""
        encoder = self.encoder
        reason = encoder.lacks if isinstance(encoder, Encoder) else ""
        if not reason:
            return {}
        unmet = BY_ENCODER
        if isinstance(self.entailment, StandInEntailment):
            unmet |= BY_JUDGE
        return dict.fromkeys(unmet & set(needs), reason)

    def check(self, needs_by_name: Mapping[str, Collection[str]]) -> None:
        """``ImportError``, before anything is asked, where somebody's needs are :meth:`lacking`;
        ``needs_by_name``: those of methods, for example."""
        names = [name for name, needs in needs_by_name.items() if self.lacking(needs)]
        if names:
            raise ImportError(f"{shortened(', '.join(names))}: {self.encoder.lacks}")

    def read(
        self,
        generations: Sequence[Generation],
        views: Sequence[View],
        needs: Collection[str],
    ) -> list[Generation]:
        """The generations with the parts asked for (:data:`trustlab.runs.collect.MEANING`); those
        that are :meth:`lacking` stay absent, with the reason."""
        results = list(generations)
        if not results:
            return results
        unmet = self.lacking(needs)
        if self.medical is None and "similarity_med" in needs:
            unmet["similarity_med"] = NO_MEDICAL_ENCODER
        needs = set(needs) - unmet.keys()
        results = [replace(each, reasons={**each.reasons, **unmet}) for each in results]
        parameters = results[0].parameters
        patient_texts = [view.text for view in views]
        no_contexts = [""] * len(results)
        is_full = parameters.entailment_context == "full"
        if BY_JUDGE & needs and is_full and self.entailment.stand_in:
            needed = "entailment_context='full' needs an NLI model by name or path"
            raise ValueError(f"the {STAND_IN} compares bare diagnoses; {needed}")
        entailment_contexts = patient_texts if is_full else no_contexts
        in_full = parameters.relevance_context == "full"
        relevance_contexts = patient_texts if in_full else no_contexts
        results = self._with_similarity(results, needs)
        if "entailment" in needs or "contradiction" in needs:
            results = self._with_entailment(results, entailment_contexts)
        if "answer_similarity" in needs:
            results = self._with_answer_similarity(results)
        if BY_JUDGE & ANSWER_ROW & needs:
            results = self._with_answer_entailment(results, entailment_contexts)
        if "relevance" in needs or "sample_relevance" in needs:
            results = self._with_relevance(results, relevance_contexts, needs)
        if "panel.cosines" in needs:
            results = self._with_panel_cosines(results)
        if "alternative_entailment" in needs:
            n_alternatives = parameters.n_alternatives
            results = self._with_alternatives(
                results, entailment_contexts, n_alternatives
            )
        return results

    def _with_similarity(
        self, generations: list[Generation], needs: Collection[str]
    ) -> list[Generation]:
        """The cosines of samples, by the general and by the medical encoder."""
        groups = list(map(_sample_texts, generations))
        encoders = {"similarity": self.encoder, "similarity_med": self.medical}
        results = generations
        for need, encoder in encoders.items():
            if encoder is not None and need in needs:
                results = with_each(results, need, encoder.similarities(groups))
        return results

    def _with_entailment(
        self, generations: list[Generation], contexts: list[str]
    ) -> list[Generation]:
        """Entailment and contradiction of samples, each behind its context."""
        groups = []
        for generation, context in zip(generations, contexts, strict=True):
            texts = _sample_texts(generation)
            groups.append([after_context(context, text) for text in texts])
        squares = matrices(self.entailment, groups)
        entailed = [square for square, _ in squares]
        contradicted = [square for _, square in squares]
        results = with_each(generations, "entailment", entailed)
        return with_each(results, "contradiction", contradicted)

    def _with_answer_similarity(
        self, generations: list[Generation]
    ) -> list[Generation]:
        """The cosine of each answer and each of its samples."""
        pairs_by_answer = [_answer_pairs(generation, "") for generation in generations]
        cosines = pair_cosines(self.encoder, chain.from_iterable(pairs_by_answer))
        rows = [
            np.array([cosines[pair] for pair in pairs]) for pairs in pairs_by_answer
        ]
        return with_each(generations, "answer_similarity", rows)

    def _with_answer_entailment(
        self, generations: list[Generation], contexts: list[str]
    ) -> list[Generation]:
        """Entailment and contradiction of each answer and its samples, in both directions, each
        text behind its context."""
        in_context = zip(generations, contexts, strict=True)
        pairs_by_answer = [_answer_pairs(*pair) for pair in in_context]
        probabilities = both_ways(self.entailment, pairs_by_answer)
        entailed = [rows[..., ENTAILMENT] for rows in probabilities]
        contradicted = [rows[..., CONTRADICTION] for rows in probabilities]
        results = with_each(generations, "answer_entailment", entailed)
        return with_each(results, "answer_contradiction", contradicted)

    def _with_relevance(
        self, generations: list[Generation], contexts: list[str], needs: Collection[str]
    ) -> list[Generation]:
        """Token relevance of answers and samples, where a reply has tokens."""
        rows: list[_Tokens] = []
        for generation, context in zip(generations, contexts, strict=True):
            answer = generation.answer if "relevance" in needs else None
            samples = generation.samples if "sample_relevance" in needs else None
            answer_pieces = pieces_of(answer) if answer else ()
            sample_pieces = list(map(pieces_of, samples or ()))
            rows.append(_Tokens(generation, context, answer_pieces, sample_pieces))
        requests = []
        for row in rows:
            for pieces in (row.answer, *row.samples):
                if pieces:
                    requests.append((pieces, row.context))
        requests = list(dict.fromkeys(requests))
        arrays = dict(zip(requests, relevances(self.encoder, requests), strict=True))
        results = []
        for row in rows:
            result = row.generation
            if row.answer:
                result = replace(result, relevance=arrays[row.answer, row.context])
            if row.samples and all(row.samples):
                sample_arrays = tuple(
                    arrays[pieces, row.context] for pieces in row.samples
                )
                result = replace(result, sample_relevance=sample_arrays)
            results.append(result)
        return results

    def _with_panel_cosines(self, generations: list[Generation]) -> list[Generation]:
        """The cosines of each panel's reasonings and diagnoses."""
        panels = [generation.panel for generation in generations if generation.panel]
        with_values = iter(with_cosines(self.encoder, panels))
        results = []
        for generation in generations:
            results.append(next(with_values) if generation.panel else None)
        return with_each(generations, "panel", results)

    def _with_alternatives(
        self, generations: list[Generation], contexts: list[str], n_alternatives: int
    ) -> list[Generation]:
        """The class of each token's alternatives."""
        answers = [generation.answer or Reply(None) for generation in generations]
        requests = list(zip(answers, contexts, strict=True))
        classes = alternative_classes(self.entailment, requests, n_alternatives)
        return with_each(generations, "alternative_entailment", classes)


class _Tokens(NamedTuple):
    """The texts of the tokens of a generation's answer and samples, and their context."""

    generation: Generation
    context: str
    answer: Pieces
    samples: list[Pieces]


def _answer_pairs(generation: Generation, context: str) -> list[Pair]:
    """The answer with each of its samples, both behind a context; none without an answer."""
    answer = generation.answer
    if answer is None or answer.text is None:
        return []
    answer_text = after_context(context, answer.text)
    pairs = []
    for text in _sample_texts(generation):
        pairs.append((answer_text, after_context(context, text)))
    return pairs


def _sample_texts(generation: Generation) -> list[str]:
    return [
        sample.text for sample in generation.samples or () if sample.text is not None
    ]
