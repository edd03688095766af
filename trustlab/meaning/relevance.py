"""Says what each token adds to the meaning of a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

import numpy as np

from trustlab.meaning.encoder import Encode, Encoder, Pair, read_off, vectors_by_text
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


ROUND = 512  # replies whose relevances are computed, and stored, at once

PiecesInContext = tuple[Pieces, str]


def relevances(
    encoder: Encoder, requests: Sequence[PiecesInContext]
) -> list[np.ndarray]:
    """For each (pieces, context): 1 - g(text, text without piece l), (L,), with g the cosine
    clipped to [0, 1]. A context follows on a line of its own; '' is none."""
    return read_off(encoder, requests, _relevances, ROUND)


def _relevances(
    requests: Sequence[PiecesInContext], encode: Encode
) -> list[np.ndarray]:
    wholes: list[str] = []
    remainders: list[list[str]] = []  # each text without one of its pieces
    for pieces, context in requests:
        wholes.append(_before_context(pieces, context))
        own_remainders = []
        for place in range(len(pieces)):
            others = pieces[:place] + pieces[place + 1 :]
            own_remainders.append(_before_context(others, context))
        remainders.append(own_remainders)
    vectors = vectors_by_text([*wholes, *chain.from_iterable(remainders)], encode)
    results = []
    for whole, own_remainders in zip(wholes, remainders, strict=True):
        whole_vector = vectors[whole]
        own_vectors = np.array([vectors[text] for text in own_remainders])
        # a text without pieces has (0, d)
        own_cosines = own_vectors.reshape(-1, len(whole_vector)) @ whole_vector
        results.append(1 - np.clip(own_cosines, 0.0, 1.0))
    return results


def alternative_classes(
    judge: Entailment, requests: Sequence[tuple[Reply, str]], n_alternatives: int
) -> list[tuple[np.ndarray, ...] | None]:
    """For each (answer, context) and each of its tokens: the class (:func:`~trustlab.meaning
    .entailment.classes`) of the answer with each alternative in its place, L arrays (A,). The token
    itself is 1. An alternative that closes the bracket ends the answer. A context stands in front.
    ``None`` without alternatives."""
    pairs_by_answer = []
    pairs: list[Pair] = []
    for answer, context in requests:
        pairs_by_token = _alternative_pairs(answer, context, n_alternatives)
        pairs_by_answer.append(pairs_by_token)
        pairs += chain.from_iterable(pairs_by_token or ())
    values = iter(classes(judge, pairs))
    results: list[tuple[np.ndarray, ...] | None] = []
    for pairs_by_token in pairs_by_answer:
        if pairs_by_token is None:
            results.append(None)
            continue
        arrays = []
        for token_pairs in pairs_by_token:
            token_values = list(islice(values, len(token_pairs)))
            arrays.append(np.array(token_values, dtype=np.int64))
        results.append(tuple(arrays))
    return results


def _alternative_pairs(
    answer: Reply, context: str, n_alternatives: int
) -> list[list[Pair]] | None:
    """For each token the pairs of the answer and the answer with an alternative in its place."""
    trace = answer.trace
    if trace is None or trace.alternatives is None or trace.logprobs is None:
        return None
    pieces = pieces_of(answer)
    whole = after_context(context, "".join(pieces))
    pairs_by_token = []
    for place, all_alternatives in enumerate(trace.alternatives):
        alternatives = all_alternatives[:n_alternatives]
        logprob = float(trace.logprobs[place])
        own_place = place_of(trace.tokens[place], logprob, alternatives)
        token_pairs = []
        for i, (text, _) in enumerate(alternatives):
            other = whole
            if i != own_place:
                other = after_context(context, _put_alternative(pieces, place, text))
            token_pairs.append((whole, other))
        pairs_by_token.append(token_pairs)
    return pairs_by_token


def _put_alternative(pieces: Pieces, place: int, text: str) -> str:
    """The diagnosis with ``text`` instead of a piece, up to a closing bracket."""
    if place == 0:
        text = text.rpartition("[")[2]
    before = "".join(pieces[:place])
    after = "".join(pieces[place + 1 :])
    diagnosis, _, _ = f"{before}{text}{after}".partition("]")
    return diagnosis.strip()


def _before_context(pieces: Pieces, context: str) -> str:
    """The pieces as one text, and the context on a line of its own after it; '' is none."""
    text = "".join(pieces)
    return f"{text}\n{context}" if context else text


def after_context(context: str, text: str) -> str:
    """The text on a line of its own after the context; '' is none."""
    return f"{context}\n{text}" if context else text


def with_cosines(encoder: Encoder, panels: Sequence[Panel]) -> list[Panel]:
    """The panels with the :func:`cosines` of their opinions."""
    opinions = [opinion for panel in panels for opinion in panel.opinions]
    values = iter(cosines(encoder, opinions))
    results = []
    for panel in panels:
        own_values = tuple(islice(values, len(panel.opinions)))
        results.append(replace(panel, cosines=own_values))
    return results


def cosines(encoder: Encoder, opinions: Sequence[Opinion]) -> list[float]:
    """cos(E(reasoning), E(diagnosis)) of each opinion, in [-1, 1]; NaN where a text is missing."""
    texts = [(opinion.thinking, opinion.diagnosis) for opinion in opinions]
    requests = [(*pair, WHOLE) for pair in texts if all(pair)]
    compute = partial(_reasoning_cosines, encoder)
    arrays = iter(read_off(encoder, requests, compute, ROUND))
    values = []
    for pair in texts:
        values.append(float(next(arrays)[0]) if all(pair) else math.nan)
    return values


# third in a stored cosine's key: its reasoning is not cut to the encoder's window
WHOLE = False


def _reasoning_cosines(
    encoder: Encoder, requests: Sequence[tuple[str, str, bool]], encode: Encode
) -> list[np.ndarray]:
    """Of each (reasoning, diagnosis, :data:`WHOLE`), (1,); each distinct string is encoded once."""
    windows = {thinking: encoder.windows(thinking) for thinking, *_ in requests}
    texts = list(chain.from_iterable(windows.values()))
    texts += [diagnosis for _, diagnosis, _ in requests]
    vectors = vectors_by_text(texts, encode)
    results = []
    for thinking, diagnosis, _ in requests:
        part_vectors = [vectors[text] for text in windows[thinking]]
        reasoning_vector = np.mean(part_vectors, 0)
        name_vector = vectors[diagnosis]
        lengths = np.linalg.norm(reasoning_vector) * np.linalg.norm(name_vector)
        cosine = reasoning_vector @ name_vector / lengths
        results.append(np.clip([cosine], -1, 1))
    return results
