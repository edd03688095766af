"""What a model's reply says, by written rules, all in one place: what they do not read is refused,
and nothing is guessed.

``reply``: groups in square brackets, and the diagnosis among them. ``scores``: numbers in square
brackets, and True or False. ``medconf``: MedConf's JSON. ``agents``: what doctors, reviewers and
patients reply. ``chat``: the same as chat models write it, tried by every reader with
``reading="chat"`` (the default) on what it refuses in the form that was asked for; with "strict"
that form is all. Each file's head states its rules. These hold for every reply:

- Nothing is stripped or set aside first: reasoning between ``<think>`` tags, a quotation and an
  aside count as the reply.
- A reply that ran out of tokens is no answer, whatever stands in it: missing, neither right nor
  wrong. Every reader of a :class:`~trustlab.records.Reply` asks ``whole.no_answer`` first; those
  that take a text are given that of a whole reply.
- Of two answers none is chosen (save the diagnosis: the last counts).
- A number, a name, a criterion or a support level is returned only if the reply spells it out.
"""

from trustlab.parsing.medconf import read_evidence, read_profile, read_prose, read_score
from trustlab.parsing.reply import (
    MAX_CHARACTERS,
    Span,
    Unreadable,
    diagnosis,
    diagnosis_reply,
    no_answer,
    whole,
)
from trustlab.parsing.scores import (
    guesses,
    probe_reply,
    probed,
    probes_read,
    score_0_100,
    true_or_false,
)
from trustlab.records import CUT, NO_DIAGNOSIS, PLACEHOLDER

__all__ = [
    "CUT",
    "MAX_CHARACTERS",
    "NO_DIAGNOSIS",
    "PLACEHOLDER",
    "Span",
    "Unreadable",
    "diagnosis",
    "diagnosis_reply",
    "guesses",
    "no_answer",
    "probe_reply",
    "probed",
    "probes_read",
    "read_evidence",
    "read_profile",
    "read_prose",
    "read_score",
    "score_0_100",
    "true_or_false",
    "whole",
]
