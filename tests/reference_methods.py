"""Every confidence method a second time: plain loops written from the formulas alone, to compare the package with.

Nothing of ``trustlab.confidence`` is imported here. Slow on purpose: no array arithmetic, eigenvalues by Jacobi rotations.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from nltk.stem.porter import PorterStemmer


def mean(values) -> float:
    values = list(values)
    return math.fsum(values) / len(values)


# Token level


def tokens(g, name: str = "logprobs") -> list[float]:
    return [float(x) for x in getattr(g.answer.trace, name)]


def prior_of_uncertain(g) -> float:
    total = 0.0
    for h, prior in zip(tokens(g, "entropies"), tokens(g, "prior_logprobs"), strict=True):
        if h >= g.parameters.pmi_threshold:
            total += prior
    return g.parameters.pmi_weight / len(tokens(g)) * total


def weighted_logprob(logprobs, relevance) -> float:
    """Sum of log p weighted by relevance; below 1e-6 a relevance is nothing, and if all are, every token counts alike."""
    counted = [0.0 if r < 1e-6 else float(r) for r in relevance]
    if not any(counted):
        counted = [1.0] * len(counted)
    return math.fsum(
        r / math.fsum(counted) * float(lp) for r, lp in zip(counted, logprobs, strict=True)
    )


def kept_shares(g) -> list[float]:
    """Per token: probability of the alternatives that entail over that of those that entail or contradict."""
    shares = []
    for listed, classes in zip(g.answer.trace.alternatives, g.alternative_entailment, strict=True):
        entail = contradict = 0.0
        for position in range(min(len(listed), g.parameters.n_alternatives)):
            probability = math.exp(listed[position][1])
            if classes[position] == 1:
                entail += probability
            elif classes[position] == -1:
                contradict += probability
        shares.append(entail / (entail + contradict))
    return shares


# Consistency level


def texts(g) -> list[str]:
    return [str(s.text) for s in g.samples]


def sequence_logprob(sample) -> float:
    return math.fsum(float(lp) for lp in sample.trace.logprobs)


def plain_name(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def poc(g):
    names = [plain_name(t) for t in texts(g)]
    return max(names.count(n) for n in names) / len(names)


def rouge_words(text: str) -> list[str]:
    words = re.sub("[^a-z0-9]+", " ", text.lower()).split()
    return [PorterStemmer().stem(w) if len(w) > 3 else w for w in words]


def rouge_l(a: str, b: str) -> float:
    """F1 of the longest common subsequence of words."""
    if a == b:
        return 1.0
    x, y = rouge_words(a), rouge_words(b)

    def longest(i: int, j: int) -> int:
        if i == len(x) or j == len(y):
            return 0
        return (
            1 + longest(i + 1, j + 1) if x[i] == y[j] else max(longest(i + 1, j), longest(i, j + 1))
        )

    return 2 * longest(0, 0) / (len(x) + len(y)) if x and y else 0.0


def over_pairs(k: int, value: Callable[[int, int], float]) -> float:
    return mean(value(i, j) for i in range(k) for j in range(k) if i != j)


def lexical_similarity(g):
    t = texts(g)
    return over_pairs(len(t), lambda i, j: rouge_l(t[i], t[j]))


def meaning_sets(g) -> list[list[int]]:
    """Samples that can be reached from each other by steps between two that entail more than contradict, both ways."""
    left, sets = set(range(len(g.samples))), []
    while left:
        reached, edge = set(), {min(left)}
        while edge:
            i = edge.pop()
            reached.add(i)
            for j in left - reached:
                forward = g.entailment[i][j] > g.contradiction[i][j]
                backward = g.entailment[j][i] > g.contradiction[j][i]
                if forward and backward:
                    edge.add(j)
        sets.append(sorted(reached))
        left -= reached
    return sets


def jacobi(matrix: list[list[float]]) -> tuple[list[float], list[list[float]]]:
    """Eigenvalues and eigenvectors (row k belongs to value k) of a symmetric matrix, by cyclic Jacobi rotations."""
    n = len(matrix)
    a = [row[:] for row in matrix]
    v = [[float(i == j) for j in range(n)] for i in range(n)]
    for _ in range(100):
        if sum(a[i][j] ** 2 for i in range(n) for j in range(n) if i != j) < 1e-28:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p][q]) < 1e-300:
                    continue
                theta = (a[q][q] - a[p][p]) / (2 * a[p][q])
                t = math.copysign(1, theta) / (abs(theta) + math.hypot(theta, 1))
                c = 1 / math.hypot(t, 1)
                s = t * c
                for row in a:
                    row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
                a[p], a[q] = (
                    [c * x - s * y for x, y in zip(a[p], a[q], strict=True)],
                    [s * x + c * y for x, y in zip(a[p], a[q], strict=True)],
                )
                v[p], v[q] = (
                    [c * x - s * y for x, y in zip(v[p], v[q], strict=True)],
                    [s * x + c * y for x, y in zip(v[p], v[q], strict=True)],
                )
    return [a[i][i] for i in range(n)], v


def affinity(g) -> list[list[float]]:
    k = len(g.samples)
    return [
        [(float(g.entailment[i][j]) + float(g.entailment[j][i])) / 2 for j in range(k)]
        for i in range(k)
    ]


def laplacian(g) -> list[list[float]]:
    s = affinity(g)
    d = [math.fsum(row) for row in s]
    k = len(s)
    return [
        [(1.0 if i == j else 0.0) - s[i][j] / math.sqrt(d[i] * d[j]) for j in range(k)]
        for i in range(k)
    ]


def ecc(g):
    values, vectors = jacobi(laplacian(g))
    kept = [
        v for value, v in zip(values, vectors, strict=True) if value < g.parameters.eigenvalue_cut
    ]
    return 1 - math.sqrt(math.fsum((x - mean(v)) ** 2 for v in kept for x in v))


def semantic_entropy(g):
    value = 0.0
    for members in meaning_sets(g):
        together = math.fsum(math.exp(sequence_logprob(g.samples[i])) for i in members)
        value -= len(members) / len(g.samples) * math.log(together)
    return -value


def semantic_entropy_normalised(g):
    masses = []
    for members in meaning_sets(g):
        of_text = {g.samples[i].text: math.exp(sequence_logprob(g.samples[i])) for i in members}
        masses.append(math.fsum(of_text.values()))
    shares = [m / math.fsum(masses) for m in masses]
    return math.fsum(p * math.log(p) for p in shares)


def semantic_entropy_discrete(g):
    shares = [len(s) / len(g.samples) for s in meaning_sets(g)]
    return math.fsum(f * math.log(f) for f in shares)


def relevance_sums(g, probabilities: list[float]) -> list[float]:
    """Per sample: the others' probabilities, each weighted by its similarity to it."""
    k, sums = len(probabilities), []
    for i in range(k):
        similar = [min(max(float(g.similarity[i][j]), 0.0), 1.0) for j in range(k)]
        sums.append(math.fsum(similar[j] * probabilities[j] for j in range(k) if j != i))
    return sums


def sentence_sar(g):
    p = [math.exp(sequence_logprob(s)) for s in g.samples]
    t = g.parameters.sar_temperature
    return mean(math.log(pk + r / t) for pk, r in zip(p, relevance_sums(g, p), strict=True))


def sentence_sar_printed(g):
    p = [math.exp(sequence_logprob(s)) for s in g.samples]
    t = g.parameters.sar_temperature
    return mean(math.log(pk) + r / t for pk, r in zip(p, relevance_sums(g, p), strict=True))


def sar(g):
    p = [
        math.exp(weighted_logprob(s.trace.logprobs, r))
        for s, r in zip(g.samples, g.sample_relevance, strict=True)
    ]
    t = g.parameters.sar_temperature
    return mean(math.log(pk + r / t) for pk, r in zip(p, relevance_sums(g, p), strict=True))


# Self-verbalised, MedConf, baselines


def bracketed(reply) -> list[float]:
    return [float(x) for x in re.findall(r"\[(\d+)\]", reply.text)]


def p_true(g):
    said = [reply.text for reply in g.probes["p_true"] if reply.text in ("True", "False")]
    return said.count("True") / len(said)


def medconf_weighted(g):
    weight = {"strong": 3, "moderate": 2, "weak": 1}
    total = net = 0
    for e in g.assessment.evidence:
        w = weight[e.criterion.importance]
        total += w
        net += (
            w if e.support_level == "supported" else -w if e.support_level == "contradicted" else 0
        )
    return min(1.0, max(0.0, net / total))


def random(g):
    """First 53 bits of SHA-256 of the JSON list of seed, case and level, as a binary fraction."""
    digest = hashlib.sha256(json.dumps([g.seed, g.case_id, g.level]).encode()).hexdigest()
    bits = bin(int(digest, 16))[2:].zfill(256)[:53]
    return sum(2.0**-place for place, bit in enumerate(bits, 1) if bit == "1")


REFERENCE: dict[str, Callable[[Any], float]] = {
    "asp": lambda g: mean(math.exp(lp) for lp in tokens(g)),
    "msp": lambda g: max(math.exp(lp) for lp in tokens(g)),
    "sequence_probability": lambda g: math.prod(math.exp(lp) for lp in tokens(g)),
    "min_token_probability": lambda g: min(math.exp(lp) for lp in tokens(g)),
    "perplexity": lambda g: -(math.prod(math.exp(lp) for lp in tokens(g)) ** (-1 / len(tokens(g)))),
    "entropy": lambda g: -mean(tokens(g, "entropies")),
    "pmi": lambda g: (
        -mean(prior - lp for prior, lp in zip(tokens(g, "prior_logprobs"), tokens(g), strict=True))
    ),
    "conditional_pmi": lambda g: mean(tokens(g)) + prior_of_uncertain(g),
    "conditional_pmi_original": lambda g: mean(tokens(g)) - prior_of_uncertain(g),
    "renyi_divergence": lambda g: mean(tokens(g, "renyi")),
    "fisher_rao": lambda g: mean(tokens(g, "fisher_rao")),
    "token_sar": lambda g: weighted_logprob(tokens(g), g.relevance),
    "ccp": lambda g: math.prod(kept_shares(g)),
    "ccp_min": lambda g: min(kept_shares(g)),
    "ccp_mean": lambda g: mean(kept_shares(g)),
    "semantic_similarity": lambda g: over_pairs(
        len(g.samples), lambda i, j: float(g.similarity[i][j])
    ),
    "semantic_similarity_med": lambda g: over_pairs(
        len(g.samples), lambda i, j: float(g.similarity_med[i][j])
    ),
    "num_set": lambda g: 1 - len(meaning_sets(g)) / len(g.samples),
    "semantic_poc": lambda g: max(len(s) for s in meaning_sets(g)) / len(g.samples),
    "eigv": lambda g: 1 - math.fsum(max(0.0, 1 - value) for value in jacobi(laplacian(g))[0]),
    "deg": lambda g: math.fsum(math.fsum(row) for row in affinity(g)) / len(g.samples) ** 2,
    "mc_se": lambda g: mean(sequence_logprob(s) for s in g.samples),
    "mc_nse": lambda g: mean(sequence_logprob(s) / len(s.trace.logprobs) for s in g.samples),
    "ce": lambda g: bracketed(g.probes["ce"][0])[0] / 100,
    "cot_ce": lambda g: bracketed(g.probes["cot_ce"][0])[0] / 100,
    "topk_ce": lambda g: mean(bracketed(g.probes["topk_ce"][0])) / 100,
    "medconf": lambda g: g.assessment.score / 100,
    "information_level": lambda g: g.n_statements / g.n_total,
    "word_count": lambda g: g.n_words,
    "poc": poc,
    "lexical_similarity": lexical_similarity,
    "ecc": ecc,
    "semantic_entropy": semantic_entropy,
    "semantic_entropy_normalised": semantic_entropy_normalised,
    "semantic_entropy_discrete": semantic_entropy_discrete,
    "sentence_sar": sentence_sar,
    "sentence_sar_printed": sentence_sar_printed,
    "sar": sar,
    "p_true": p_true,
    "medconf_weighted": medconf_weighted,
    "random": random,
    "agreement": lambda g: (
        max(Counter(said := [v for v in g.panel.votes if v is not None]).values()) / len(said)
    ),
    "rdc": lambda g: mean(c for c in g.panel.cosines if not math.isnan(c)),
}
"""Method -> its value for a whole generation."""
