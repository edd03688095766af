"""Says what each token adds to the meaning of a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from trustlab.meaning.encoder import Encode, Encoder, read_off
from trustlab.meaning.entailment import Entailment, classes
from trustlab.records import Opinion, Panel, Reply, place_of

Pieces = tuple[str, ...]


def pieces_of(reply: Reply) -> Pieces:
    """The texts of a diagnosis's tokens, inside its brackets; () without a trace."""
    if reply.trace is None or not reply.trace.tokens:
        return ()
    first, *rest = reply.trace.tokens
    *between, last = (first.rpartition("[")[2], *rest)
    return (*between, last.partition("]")[0])


ROUND = 512  # replies whose relevances are found, and kept, at once

Asked = tuple[Pieces, str]


def relevances(encoder: Encoder, asked: Sequence[Asked]) -> list[np.ndarray]:
    """For each (pieces, context): 1 - g(text, text without piece l), (L,), with g the cosine
    clipped to [0, 1]. A context follows on a line of its own; '' is none."""
    return read_off(encoder, asked, _relevances, ROUND)


def _relevances(asked: Sequence[Asked], encode: Encode) -> list[np.ndarray]:
    wholes = [_placed(pieces, context) for pieces, context in asked]
    without = [
        [_placed(pieces[:i] + pieces[i + 1 :], context) for i in range(len(pieces))]
        for pieces, context in asked
    ]
    texts = list(dict.fromkeys([*wholes, *(text for row in without for text in row)]))
    vectors = encode(texts).astype(np.float64)
    at = {text: i for i, text in enumerate(texts)}
    found = []
    for whole, row in zip(wholes, without, strict=True):
        rows = vectors[np.array([at[text] for text in row], dtype=np.int64)]
        found.append(1 - np.clip(rows @ vectors[at[whole]], 0.0, 1.0))
    return found


def alternative_classes(
    judge: Entailment, asked: Sequence[tuple[Reply, str]], n_alternatives: int
) -> list[tuple[np.ndarray, ...] | None]:
    """For each (answer, context) and each of its tokens: the class (:func:`~trustlab.meaning
    .entailment.classes`) of the answer with each alternative in its place, L arrays (A,). The token
    itself is 1. An alternative that closes the bracket ends the answer. A context stands in front.
    ``None`` without alternatives."""
    pairs: list[tuple[str, str]] = []
    numbers: list[list[int] | None] = []  # of each answer, how many pairs each token has
    for answer, context in asked:
        trace, pieces = answer.trace, pieces_of(answer)
        if trace is None or trace.alternatives is None or trace.logprobs is None:
            numbers.append(None)
            continue
        whole = after_context(context, "".join(pieces))
        of_each = [listed[:n_alternatives] for listed in trace.alternatives]
        for at, listed in enumerate(of_each):
            own = place_of(trace.tokens[at], float(trace.logprobs[at]), listed)
            for i, (text, _) in enumerate(listed):
                other = whole if i == own else after_context(context, _put(pieces, at, text))
                pairs.append((whole, other))
        numbers.append([len(listed) for listed in of_each])
    found = iter(classes(judge, pairs))
    return [
        None if n is None else tuple(np.array([*islice(found, k)], dtype=np.int64) for k in n)
        for n in numbers
    ]


def _put(pieces: Pieces, at: int, text: str) -> str:
    """The diagnosis with ``text`` in the place of piece ``at``, up to a closing bracket."""
    text = text.rpartition("[")[2] if at == 0 else text
    return "".join((*pieces[:at], text, *pieces[at + 1 :])).partition("]")[0].strip()


def _placed(pieces: Pieces, context: str) -> str:
    text = "".join(pieces)
    return f"{text}\n{context}" if context else text


def after_context(context: str, text: str) -> str:
    """The text on a line of its own after the context; '' is none."""
    return f"{context}\n{text}" if context else text


def with_cosines(encoder: Encoder, panels: Sequence[Panel]) -> list[Panel]:
    """The panels with the :func:`cosines` of their opinions."""
    found = iter(cosines(encoder, [o for panel in panels for o in panel.opinions]))
    return [replace(panel, cosines=tuple(next(found) for _ in panel.opinions)) for panel in panels]


def cosines(encoder: Encoder, opinions: Sequence[Opinion]) -> list[float]:
    """cos(E(reasoning), E(diagnosis)) of each opinion, in [-1, 1]; NaN where a text is missing."""
    whole = [(o.thinking, o.diagnosis, WHOLE) for o in opinions]
    asked = list(dict.fromkeys(one for one in whole if one[0] and one[1]))
    made = read_off(encoder, asked, partial(_cosines, encoder), ROUND)
    found = dict(zip(asked, made, strict=True))
    return [float(found[one][0]) if one in found else math.nan for one in whole]


WHOLE = False  # third in the key of a kept cosine: its reasoning is not cut to the encoder's window


def _cosines(
    encoder: Encoder, asked: Sequence[tuple[str, str, bool]], encode: Encode
) -> list[np.ndarray]:
    """Of each (reasoning, diagnosis, :data:`WHOLE`), (1,); each distinct string is encoded once."""
    parts = {thinking: encoder.windows(thinking) for thinking, *_ in asked}
    texts = [part for of_one in parts.values() for part in of_one] + [d for _, d, _ in asked]
    texts = list(dict.fromkeys(texts))
    vectors = dict(zip(texts, encode(texts).astype(np.float64), strict=True))
    found = []
    for thinking, diagnosis, _ in asked:
        a, b = np.mean([vectors[part] for part in parts[thinking]], 0), vectors[diagnosis]
        found.append(np.clip([a @ b / (np.linalg.norm(a) * np.linalg.norm(b))], -1, 1))
    return found
