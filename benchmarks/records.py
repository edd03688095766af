"""Random generations that hold every part a confidence method may read: shared by the benchmarks
and the tests.

What belongs together fits together: equal texts have equal tokens, probabilities, cosines and
entailments, token statistics come from the same next-token distributions, and the diagonals are
those of a text beside itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from trustlab.metrics.trust import majority
from trustlab.models.local.logits import statistics_of
from trustlab.parsing.scores import probes_read
from trustlab.records import (
    GIVEN,
    IMPORTANCES,
    PARAMETERS,
    SUPPORT_LEVELS,
    Assessment,
    Criterion,
    Evidence,
    Generation,
    Opinion,
    Panel,
    Parameters,
    Reply,
    TokenTrace,
)

NAMES = (
    "Pneumonia", "pneumonia.", "Viral pneumonia", "Bacterial pneumonia", "Acute bronchitis",
    "Bronchitis", "Influenza", "influenza", "Pulmonary embolism", "Acute pulmonary edema",
    "Stable angina", "Unstable angina", "GERD", "Pericarditis", "インフルエンザ",
)  # fmt: skip
"""Diagnoses: some are one name in two spellings, some share words, one has no word that ROUGE can
read."""

STATISTICS = ("entropies", "renyi", "fisher_rao", "certainty")


@dataclass(frozen=True)
class Made:
    """A generation, and the whole next-token distributions behind its answer: log-probabilities (L,
    N)."""

    generation: Generation
    log_distributions: np.ndarray


def random_records(n: int, seed: int = 0, **options) -> list[Made]:
    """``n`` records that depend on the seed and nothing else; ``options`` are those of
    :func:`random_record`."""
    rng = np.random.default_rng(seed)
    return [random_record(rng, case_id=f"case-{i}", **options) for i in range(n)]


def random_record(
    rng: np.random.Generator,
    n_samples: int | None = None,
    n_vocabulary: int = 60,
    case_id: str = "case",
    parameters: Parameters = PARAMETERS,
    own_names: bool = False,
) -> Made:
    """One record with K = ``n_samples`` samples (2 to 15 at random where ``None``) of 1 to 8
    different texts.

    ``own_names`` puts the case's id behind each, so that no text occurs in two records.
    """
    k = int(rng.integers(2, 16)) if n_samples is None else n_samples
    names = [
        str(name)
        for name in rng.choice(NAMES, size=int(rng.integers(1, 9)), replace=False)
    ]
    names = [f"{name} {case_id}" for name in names] if own_names else names
    of = rng.choice(len(names), size=k, p=rng.dirichlet(np.ones(len(names))))
    distinct = [_sample(rng, name) for name in names]
    relevances = [_relevance(rng, len(reply.trace or ())) for reply in distinct]
    entailment, contradiction = _entailments(rng, len(names))
    answer, classes, log_distributions = _answer(
        rng, names[of[0]], n_vocabulary, parameters
    )
    square = np.ix_(of, of)
    similarity = _cosines(rng, len(names))
    generation = Generation(
        case_id=case_id,
        level=int(rng.choice((1, 20, 40, 60, 80, 100))),
        model="random",
        seed=int(rng.integers(5)),
        n_statements=int(rng.integers(1, 13)),
        n_total=12,
        n_words=int(rng.integers(1, 200)),
        answer=answer,
        samples=tuple(distinct[i] for i in of),
        similarity=similarity[square],
        similarity_med=_cosines(rng, len(names))[square],
        entailment=entailment[square],
        contradiction=contradiction[square],
        answer_similarity=similarity[of[0], of],
        answer_entailment=_to_and_fro(entailment, of[0], of),
        answer_contradiction=_to_and_fro(contradiction, of[0], of),
        relevance=_relevance(rng, len(log_distributions)),
        sample_relevance=tuple(relevances[i] for i in of),
        alternative_entailment=classes,
        probes=_probes(rng, k),
        assessment=_assessment(rng, names[of[0]]),
        panel=_panel(rng.spawn(1)[0], names),
        exact=float((last := rng.spawn(1)[0]).random()),
        parameters=replace(parameters, n_samples=k),
    )
    probes = {**generation.probes, **_given(last)}
    return Made(probes_read(replace(generation, probes=probes)), log_distributions)


def _to_and_fro(matrix: np.ndarray, of_answer: int, of: np.ndarray) -> np.ndarray:
    """From the answer to each sample, and from each sample to the answer, (2, K)."""
    return np.stack([matrix[of_answer, of], matrix[of, of_answer]])


def _sample(rng: np.random.Generator, name: str) -> Reply:
    n_tokens = int(rng.integers(1, 7))
    return Reply(
        name, TokenTrace(("t",) * n_tokens, logprobs=np.log(rng.beta(3, 1, n_tokens)))
    )


def _relevance(rng: np.random.Generator, n_tokens: int) -> np.ndarray:
    """One in ten says that no token matters, and one token in ten matters less than what counts as
    nothing."""
    values = np.where(rng.random(n_tokens) < 0.1, 1e-8, rng.random(n_tokens))
    return np.zeros(n_tokens) if rng.random() < 0.1 else values


def _cosines(rng: np.random.Generator, n: int) -> np.ndarray:
    """Cosines (n, n) of vectors that lean the same way: most above 0, some below."""
    vectors = rng.normal(0.4, 1, size=(n, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = np.clip(vectors @ vectors.T, -1, 1)
    np.fill_diagonal(cosines, 1)
    return (cosines + cosines.T) / 2


def _entailments(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, n) that row entails and contradicts column: likelier to entail within one
    of three groups."""
    group = rng.integers(3, size=n)
    scores = rng.normal(0, 1.5, size=(n, n, 3))
    scores[..., 0] += np.where(group[:, None] == group, 1.5, -1.5)
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    entailment, contradiction = (
        probabilities[..., 0].copy(),
        probabilities[..., 1].copy(),
    )
    np.fill_diagonal(entailment, 1)
    np.fill_diagonal(contradiction, 0)
    return entailment, contradiction


def _answer(
    rng: np.random.Generator, name: str, n_vocabulary: int, parameters: Parameters
) -> tuple[Reply, tuple[np.ndarray, ...], np.ndarray]:
    """The greedy answer, the classes of its alternatives, and its distributions."""
    n_tokens, n_listed = (
        int(rng.integers(1, 7)),
        parameters.n_alternatives + int(rng.integers(3)),
    )
    logits = rng.normal(0, rng.uniform(0.5, 4), size=(n_tokens, n_vocabulary))
    log_distributions = logits - logsumexp(logits, axis=1, keepdims=True)
    best = np.argsort(-log_distributions, axis=1)[:, :n_listed]
    classes = rng.integers(
        -1, 2, size=(n_tokens, min(n_listed, parameters.n_alternatives))
    )
    classes[:, 0] = 1  # the token itself entails
    trace = TokenTrace(
        tuple(f"w{row[0]}" for row in best),
        logprobs=log_distributions.max(axis=1),
        prior_logprobs=np.log(rng.beta(1, 3, n_tokens)),
        alternatives=tuple(
            tuple((f"w{i}", float(log_distributions[position, i])) for i in row)
            for position, row in enumerate(best)
        ),
        **dict(
            zip(
                STATISTICS,
                statistics_of(logits, parameters.renyi_alpha),
                strict=True,
            )
        ),
    )
    return Reply(name, trace), tuple(classes), log_distributions


def _probes(rng: np.random.Generator, k: int) -> dict[str, tuple[Reply, ...]]:
    ce, cot_ce, *guesses = (int(score) for score in rng.integers(0, 101, size=7))
    verdicts = ["True", "False", *rng.choice(["True", "False"], size=k - 2)]
    return {
        "ce": (Reply(f"[{ce}]"),),
        "cot_ce": (Reply(f"The cough fits. [{cot_ce}]"),),
        "topk_ce": (
            Reply(" ".join(f"G{i}: [{score}]" for i, score in enumerate(guesses, 1))),
        ),
        "p_true": tuple(Reply(str(verdict)) for verdict in verdicts),
    }


def _given(rng: np.random.Generator) -> dict[str, tuple[Reply, ...]]:
    """The given texts, each as likely as chance has it."""
    each = {name: _sample(rng, name) for _, texts in GIVEN.values() for name in texts}
    return {
        probe: tuple(each[text] for text in texts)
        for probe, (_, texts) in GIVEN.items()
    }


def _assessment(rng: np.random.Generator, name: str) -> Assessment:
    evidence = tuple(
        Evidence(
            Criterion(i, f"criterion {i}", str(rng.choice(IMPORTANCES))),
            str(rng.choice(SUPPORT_LEVELS)),
        )
        for i in range(1, int(rng.integers(2, 9)))
    )
    return Assessment(name, score=float(rng.integers(0, 101)), evidence=evidence)


def _panel(rng: np.random.Generator, names: list[str]) -> Panel:
    """Two to five doctors, some unreadable, two at least not; a stream of its own, so that other
    parts do not move."""
    votes = [str(name) for name in rng.choice(names, size=int(rng.integers(2, 6)))]
    said = tuple(
        name if i < 2 or rng.random() < 0.8 else None for i, name in enumerate(votes)
    )
    opinions = tuple(
        Opinion("random", i, "It fits.", name) for i, name in enumerate(said)
    )
    cosines = tuple(float(rng.uniform(-1, 1)) if name else math.nan for name in said)
    return Panel(opinions, said, *majority(said, "case"), cosines)
