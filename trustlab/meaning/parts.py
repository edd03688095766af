"""The parts of a generation that are about what its words mean: computed over a whole run at once,
from texts alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from trustlab.meaning.encoder import Encoder
from trustlab.meaning.entailment import STAND_IN, Entailment, StandInEntailment, matrices
from trustlab.meaning.relevance import alternative_classes, pieces_of, relevances, with_cosines
from trustlab.records import Generation, Reply, View

NEEDS = frozenset(
    {
        "similarity",
        "similarity_med",
        "entailment",
        "contradiction",
        "relevance",
        "sample_relevance",
        "alternative_entailment",
        "panel.cosines",
    }
)
"""The needs met here."""
NO_MEDICAL_ENCODER = "no medical encoder is named"


@dataclass(frozen=True)
class Readers:
    """Who reads meaning: a general and a medical sentence encoder (``None``: there is none) and a
    judge of entailment."""

    encoder: Encoder
    medical: Encoder | None
    entailment: Entailment

    @classmethod
    def of(
        cls,
        encoder: Encoder | None = None,
        medical: Encoder | None = None,
        entailment: Entailment | None = None,
    ) -> Readers:
        """The readers given, the packaged encoder and the stand-in judge where none is."""
        encoder = encoder or Encoder()
        return cls(encoder, medical, entailment or StandInEntailment(encoder))


def with_meaning(
    generations: Sequence[Generation],
    views: Sequence[View],
    needs: Collection[str],
    readers: Readers,
) -> list[Generation]:
    """The generations with those of :data:`NEEDS` that are asked for; ``ValueError`` where the
    stand-in is asked for too much."""
    done = list(generations)
    if not done:
        return done
    p = done[0].parameters
    told = [view.text for view in views]
    judging = {"entailment", "contradiction", "alternative_entailment"} & set(needs)
    if judging and p.entailment_context == "full" and readers.entailment.stand_in:
        raise ValueError(
            f"the {STAND_IN} compares bare diagnoses; entailment_context='full' needs an NLI model"
            " by name or path"
        )
    before = told if p.entailment_context == "full" else [""] * len(done)
    after = told if p.relevance_context == "full" else [""] * len(done)
    if "similarity" in needs:
        found = readers.encoder.similarities([_texts(g) for g in done])
        done = [replace(g, similarity=m) for g, m in zip(done, found, strict=True)]
    if "similarity_med" in needs and readers.medical is None:
        done = [
            replace(g, reasons={**g.reasons, "similarity_med": NO_MEDICAL_ENCODER}) for g in done
        ]
    elif "similarity_med" in needs and readers.medical is not None:
        found = readers.medical.similarities([_texts(g) for g in done])
        done = [replace(g, similarity_med=m) for g, m in zip(done, found, strict=True)]
    if {"entailment", "contradiction"} & set(needs):
        groups = [
            [f"{x}\n{t}" if x else t for t in _texts(g)] for g, x in zip(done, before, strict=True)
        ]
        pairs = matrices(readers.entailment, groups)
        done = [
            replace(g, entailment=e, contradiction=c) for g, (e, c) in zip(done, pairs, strict=True)
        ]
    if {"relevance", "sample_relevance"} & set(needs):
        done = _with_relevance(done, after, needs, readers.encoder)
    if "panel.cosines" in needs:
        at = [i for i, g in enumerate(done) if g.panel]
        panels = with_cosines(readers.encoder, [g.panel for g in done if g.panel])
        for i, panel in zip(at, panels, strict=True):
            done[i] = replace(done[i], panel=panel)
    if "alternative_entailment" in needs:
        classes = alternative_classes(
            readers.entailment,
            [(g.answer or Reply(None), x) for g, x in zip(done, before, strict=True)],
            p.n_alternatives,
        )
        done = [replace(g, alternative_entailment=c) for g, c in zip(done, classes, strict=True)]
    return done


def _with_relevance(
    done: list[Generation], after: list[str], needs: Collection[str], encoder: Encoder
) -> list[Generation]:
    """Token relevance of answers and samples, encoded together; none where a reply has no tokens to
    tell."""
    answers = [pieces_of(g.answer) if g.answer and "relevance" in needs else () for g in done]
    samples = [
        [pieces_of(s) for s in g.samples or ()] if "sample_relevance" in needs else [] for g in done
    ]
    asked = [(p, x) for a, ss, x in zip(answers, samples, after, strict=True) for p in (a, *ss)]
    distinct = list(dict.fromkeys(asked))
    found = dict(zip(distinct, relevances(encoder, distinct), strict=True))
    out = []
    for g, a, ss, x in zip(done, answers, samples, after, strict=True):
        of_samples = tuple(found[s, x] for s in ss)
        g = replace(g, relevance=found[a, x]) if a else g
        out.append(replace(g, sample_relevance=of_samples) if ss and all(ss) else g)
    return out


def _texts(generation: Generation) -> list[str]:
    return [s.text for s in generation.samples or () if s.text is not None]
