"""Graders: is an answer the patient's diagnosis? 1, 0, or ungraded with a reason; never a guess.

Four graders, each with a name for tables: ``exact`` (the case's own name), ``synonym`` (accepted
names and the knowledge table), ``encoder`` (alike in a sentence encoder) and a judge (a model is
asked). Rules that all of them keep:

- An unreadable answer is wrong. So are what is no diagnosis ("Yes.", "Option C", a number, more
  than 200 characters), several ("A or B", "1. A 2. B"; an answer that is a true name whole may hold
  such signs) and a denial ("not A", "A ruled out", "unlikely A").
- A narrower name that entails the true one is right ("narrower"): "viral pneumonia" for
  "pneumonia", "A due to B" and "A with B" for "A". A broader one is wrong, and so is another cause,
  site, side, stage or kind: "acute" and "chronic" are kinds, numbers and single letters tell kinds
  apart ("type 2", "hepatitis A"), and a disease is not a syndrome. What only adds words to a true
  name is a judge's, where one is there.

All but the exact grader, which is strict:

- Words of certainty and degree ("likely", "unspecified", "mild") change nothing, but "mild A" for
  "severe A" is wrong; nor do accents, invisible characters, possessive 's, a leading "Diagnosis:",
  and words turned round ("A, acute"); nor, in brackets at the end, an ICD-10 code, a share of 1 to
  100 %, the name's abbreviation, or another true name. "A b c (ABC)" is two true names.
- Names are those of the knowledge table, of a list of abbreviations and everyday names, and of
  ICD-10-CM, whose hierarchy also says what is narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from trustlab.graders.graders import (
    EncoderGrader,
    ExactGrader,
    Grade,
    Grader,
    JudgeGrader,
    SynonymGrader,
    agreement_sentence,
    known_truths,
    unknown_truths_warning,
)
from trustlab.models import check_model_name, open_model
from trustlab.records import Reading

GRADERS: Mapping[str, Callable[[], Grader]] = {
    "synonym": SynonymGrader,
    "exact": ExactGrader,
    "encoder": EncoderGrader,
}
"""Graders that need nothing but the package, by name."""
JUDGE = "judge:"
"""What stands before a model's name where that model is to judge."""


def check_grader(grader: object) -> None:
    """``ValueError`` unless ``grader`` is one, or a name that :func:`open_grader` takes."""
    if isinstance(grader, Grader) or (isinstance(grader, str) and grader in GRADERS):
        return
    if not isinstance(grader, str) or not grader.startswith(JUDGE):
        allowed = f"{', '.join(GRADERS)}, {JUDGE}MODEL, or an object"
        raise ValueError(f"grader is {grader!r}; allowed are {allowed}")
    check_model_name(grader.removeprefix(JUDGE))


def open_grader(
    grader: str | Grader,
    *,
    cache: str | Path | None = None,
    reading: Reading = "chat",
    **options,
) -> Grader:
    """The grader given, or of that name: one of :data:`GRADERS`, or ``"judge:MODEL"``.

    MODEL and ``options`` are as :func:`trustlab.open_model` takes them; ``cache``: the SQLite file
    that keeps the judge's replies, beside which the encoder keeps its vectors; ``reading``: how
    replies are read. ``ValueError`` for an unknown name.
    """
    check_grader(grader)
    if not isinstance(grader, str):
        return grader
    if grader.startswith(JUDGE):
        model = open_model(grader.removeprefix(JUDGE), **options)
        return JudgeGrader(model, cache=cache, reading=reading)
    if grader == EncoderGrader.name and cache is not None:
        from trustlab.meaning.encoder import VECTORS, Encoder

        return EncoderGrader(Encoder(cache_path=Path(cache).with_name(VECTORS)))
    return GRADERS[grader]()


__all__ = [
    "GRADERS",
    "JUDGE",
    "EncoderGrader",
    "ExactGrader",
    "Grade",
    "Grader",
    "JudgeGrader",
    "SynonymGrader",
    "agreement_sentence",
    "known_truths",
    "open_grader",
    "unknown_truths_warning",
]
