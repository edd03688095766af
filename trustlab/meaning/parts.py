"""Adds to each answer what its words mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trustlab.meaning.encoder import Encoder
from trustlab.meaning.entailment import STAND_IN, Entailment, StandInEntailment, matrices
from trustlab.meaning.relevance import (
    after_context,
    alternative_classes,
    pieces_of,
    relevances,
    with_cosines,
)
from trustlab.records import Generation, Reply, View

NO_MEDICAL_ENCODER = "no medical encoder is named"


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
        """The readers given, the packaged encoder and the stand-in judge where none is."""
        encoder = encoder or Encoder()
        return cls(encoder, medical, entailment or StandInEntailment(encoder))

    def read(
        self, generations: Sequence[Generation], views: Sequence[View], needs: Collection[str]
    ) -> list[Generation]:
        """The generations with the parts asked for (:data:`trustlab.runs.collect.MEANING`)."""
        done = list(generations)
        if not done:
            return done
        p = done[0].parameters
        told = [view.text for view in views]
        judging = {"entailment", "contradiction", "alternative_entailment"} & set(needs)
        if judging and p.entailment_context == "full" and self.entailment.stand_in:
            needed = "entailment_context='full' needs an NLI model by name or path"
            raise ValueError(f"the {STAND_IN} compares bare diagnoses; {needed}")
        before = told if p.entailment_context == "full" else [""] * len(done)
        after = told if p.relevance_context == "full" else [""] * len(done)
        for name, encoder in (("similarity", self.encoder), ("similarity_med", self.medical)):
            if name in needs and encoder is not None:
                done = _put(done, name, encoder.similarities([_texts(g) for g in done]))
            elif name in needs:
                why = {name: NO_MEDICAL_ENCODER}
                done = _put(done, "reasons", [{**g.reasons, **why} for g in done])
        if {"entailment", "contradiction"} & set(needs):
            contexts = zip(done, before, strict=True)
            groups = [[after_context(x, text) for text in _texts(g)] for g, x in contexts]
            entailed, contradicted = zip(*matrices(self.entailment, groups), strict=True)
            done = _put(_put(done, "entailment", entailed), "contradiction", contradicted)
        if {"relevance", "sample_relevance"} & set(needs):
            done = _with_relevance(done, after, needs, self.encoder)
        if "panel.cosines" in needs:
            panels = iter(with_cosines(self.encoder, [g.panel for g in done if g.panel]))
            done = _put(done, "panel", [g.panel and next(panels) for g in done])
        if "alternative_entailment" in needs:
            asked = [(g.answer or Reply(None), x) for g, x in zip(done, before, strict=True)]
            found = alternative_classes(self.entailment, asked, p.n_alternatives)
            done = _put(done, "alternative_entailment", found)
        return done


def _with_relevance(
    done: list[Generation], after: list[str], needs: Collection[str], encoder: Encoder
) -> list[Generation]:
    """Token relevance of answers and samples, where a reply has tokens."""
    answers = [pieces_of(g.answer) if g.answer and "relevance" in needs else () for g in done]
    of_samples = "sample_relevance" in needs
    samples = [[pieces_of(s) for s in g.samples or ()] if of_samples else [] for g in done]
    asked = [(p, x) for a, ss, x in zip(answers, samples, after, strict=True) for p in (a, *ss)]
    distinct = [one for one in dict.fromkeys(asked) if one[0]]
    found = dict(zip(distinct, relevances(encoder, distinct), strict=True))
    out = []
    for g, a, ss, x in zip(done, answers, samples, after, strict=True):
        g = replace(g, relevance=found[a, x]) if a else g
        if ss and all(ss):
            g = replace(g, sample_relevance=tuple(found[s, x] for s in ss))
        out.append(g)
    return out


def _put(done: Sequence[Generation], part: str, values: Iterable[Any]) -> list[Generation]:
    """The generations, each with its value as ``part``."""
    return [replace(g, **{part: value}) for g, value in zip(done, values, strict=True)]


def _texts(generation: Generation) -> list[str]:
    return [s.text for s in generation.samples or () if s.text is not None]
