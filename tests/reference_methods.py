"""Every confidence method a second time: plain loops written from the formulas alone, to compare
the package with.

Nothing of ``trustlab.confidence`` is imported here. Slow on purpose: no array arithmetic,
eigenvalues by another solver. Then for each method a value worked out by hand, and which of them
are chances.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from generations import FULL, array, cosines, generation, meant, said, told
from nltk.stem.porter import PorterStemmer

from trustlab.records import PARAMETERS, Generation


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
    """Sum of log p weighted by relevance; below 1e-6 a relevance is nothing, and if all are, every
    token counts alike."""
    counted = [0.0 if r < 1e-6 else float(r) for r in relevance]
    if not any(counted):
        counted = [1.0] * len(counted)
    pairs = zip(counted, logprobs, strict=True)
    return math.fsum(r / math.fsum(counted) * float(lp) for r, lp in pairs)


def kept_shares(g) -> list[float]:
    """Per token: probability of the alternatives that entail over that of those that entail or
    contradict."""
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


def expected(texts, scores) -> float:
    likely = [math.exp(sequence_logprob(text)) for text in texts]
    return math.fsum(p * s for p, s in zip(likely, scores, strict=True)) / math.fsum(likely) / 100


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
        if x[i] == y[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return 2 * longest(0, 0) / (len(x) + len(y)) if x and y else 0.0


def over_pairs(k: int, value: Callable[[int, int], float]) -> float:
    return mean(value(i, j) for i in range(k) for j in range(k) if i != j)


def lexical_similarity(g):
    t = texts(g)
    return over_pairs(len(t), lambda i, j: rouge_l(t[i], t[j]))


def meaning_sets(g) -> list[list[int]]:
    """Samples that can be reached from each other by steps between two that entail more than
    contradict, both ways."""
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


def spectrum(matrix: list[list[float]]) -> tuple[list[float], list[list[float]]]:
    """Eigenvalues and eigenvectors (row k belongs to value k), by the solver for any matrix."""
    values, vectors = np.linalg.eig(np.array(matrix))
    order = np.argsort(values.real)
    basis, _ = np.linalg.qr(vectors.real[:, order])  # equal values have vectors that slant
    return values.real[order].tolist(), basis.T.tolist()


def affinity(g) -> list[list[float]]:
    both, k = g.entailment, range(len(g.samples))
    return [[(float(both[i][j]) + float(both[j][i])) / 2 for j in k] for i in k]


def laplacian(g) -> list[list[float]]:
    s = affinity(g)
    d, k = [math.fsum(row) for row in s], range(len(s))
    return [[float(i == j) - s[i][j] / math.sqrt(d[i] * d[j]) for j in k] for i in k]


def ecc(g):
    pairs = zip(*spectrum(laplacian(g)), strict=True)
    kept = [v for value, v in pairs if value < g.parameters.eigenvalue_cut]
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


def sar_of(g, probabilities: list[float]) -> float:
    t, sums = g.parameters.sar_temperature, relevance_sums(g, probabilities)
    return mean(math.log(p + r / t) for p, r in zip(probabilities, sums, strict=True))


def sentence_sar(g):
    return sar_of(g, [math.exp(sequence_logprob(s)) for s in g.samples])


def sentence_sar_printed(g):
    p, t = [math.exp(sequence_logprob(s)) for s in g.samples], g.parameters.sar_temperature
    return mean(math.log(pk) + r / t for pk, r in zip(p, relevance_sums(g, p), strict=True))


def sar(g):
    pairs = zip(g.samples, g.sample_relevance, strict=True)
    return sar_of(g, [math.exp(weighted_logprob(s.trace.logprobs, r)) for s, r in pairs])


# Later methods: two texts of one name entail each other, contradict by 0, and have a cosine of 1


def one_name(a: str, b: str) -> bool:
    return plain_name(a) == plain_name(b)


def pair_of(g, matrix, i: int, j: int, same: float) -> float:
    """A number of two samples."""
    t = texts(g)
    return same if one_name(t[i], t[j]) else float(matrix[i][j])


def beside_answer(g, row, k: int, same: float) -> float:
    """A number of the answer and a sample."""
    return same if one_name(g.answer.text, texts(g)[k]) else float(row[k])


def agrees(g, k: int) -> float:
    return 1.0 if one_name(g.answer.text, texts(g)[k]) else 0.0


def not_contradicted(g, k: int) -> float:
    there, back = (beside_answer(g, row, k, 0.0) for row in g.answer_contradiction)
    return 1 - (there + back) / 2


def bsdetector(g):
    k = range(len(g.samples))
    observed = mean(0.8 * not_contradicted(g, i) + 0.2 * agrees(g, i) for i in k)
    return 0.7 * observed + 0.3 * p_true(g)


def heat(g, t: float) -> list[list[float]]:
    """E to the power -t L by its series, of a part that is small, squared until it is whole."""
    k = len(g.samples)
    flow = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            if i == j:
                continue
            for a, b in ((i, j), (j, i)):
                entails = pair_of(g, g.entailment, a, b, 1.0)
                flow[i][j] += entails + (1 - entails - pair_of(g, g.contradiction, a, b, 0.0)) / 2
    for i in range(k):
        flow[i][i] = -math.fsum(flow[i])
    term = total = np.eye(k)
    for n in range(1, 30):
        term = term @ (flow * t / 1024) / n
        total = total + term
    for _ in range(10):
        total = total @ total
    return total.tolist()


def kernel_entropy(g, t: float) -> float:
    h, k = heat(g, t), len(g.samples)
    density = [[h[i][j] / math.sqrt(h[i][i] * h[j][j]) / k for j in range(k)] for i in range(k)]
    values = [value for value in spectrum(density)[0] if value >= 1e-8]
    return math.fsum(value * math.log(value) for value in values)


def semantic_density(g):
    """Of each name the likeliest tokens, wherever they stand."""
    likely = {plain_name(g.answer.text): (math.exp(mean(tokens(g))), 0.0)}
    for k, sample in enumerate(g.samples):
        distances = []
        for entails, contradicts in zip(g.answer_entailment, g.answer_contradiction, strict=True):
            p, c = beside_answer(g, entails, k, 1.0), beside_answer(g, contradicts, k, 0.0)
            distances.append(c + 0.5 * (1 - p - c))
        found = math.exp(mean(sample.trace.logprobs)), mean(distances)
        before = likely.setdefault(plain_name(sample.text), found)
        if found[0] > before[0]:
            likely[plain_name(sample.text)] = found
    pairs = likely.values()
    return math.fsum(p * (1 - d) for p, d in pairs) / math.fsum(p for p, _ in pairs)


def distance(g) -> float:
    near = [beside_answer(g, g.answer_similarity, k, 1.0) for k in range(len(g.samples))]
    return mean(1 - min(max(c, 0.0), 1.0) for c in near)


def entails_of_two(g, i: int, j: int) -> float:
    entails, contradicts = (
        pair_of(g, g.entailment, i, j, 1.0), pair_of(g, g.contradiction, i, j, 0.0),
    )  # fmt: skip
    return entails / (entails + contradicts) if entails + contradicts else 0.5


def snne(g):
    k, logs = len(g.samples), []
    for i in range(k):
        near = [min(max(pair_of(g, g.similarity, i, j, 1.0), 0.0), 1.0) for j in range(k)]
        logs.append(math.log(math.fsum(math.exp(c) for c in near)))
    return mean(logs) - 1 - math.log(k)


def deepconf_lowest(g):
    n, width = g.parameters.n_alternatives, g.parameters.deepconf_window
    peaks = [-mean(lp for _, lp in sorted(listed, key=lambda pair: -pair[1])[:n])
             for listed in g.answer.trace.alternatives]  # fmt: skip
    width = min(width, len(peaks))
    return min(mean(peaks[i : i + width]) for i in range(len(peaks) - width + 1))


# Self-verbalised, MedConf, baselines


def bracketed(reply) -> list[float]:
    return [float(x) for x in re.findall(r"\[(\d+)\]", reply.raw)]


def p_true(g):
    said = [reply.raw for reply in g.probes["p_true"] if reply.raw in ("True", "False")]
    return said.count("True") / len(said)


def medconf_weighted(g):
    weight, sign = {"strong": 3, "moderate": 2, "weak": 1}, {"supported": 1, "contradicted": -1}
    total = net = 0
    for e in g.assessment.evidence:
        w = weight[e.criterion.importance]
        total, net = total + w, net + w * sign.get(e.support_level, 0)
    return min(1.0, max(0.0, net / total))


def agreement(g):
    said = [vote for vote in g.panel.votes if vote is not None]
    return max(Counter(said).values()) / len(said)


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
    "eigv": lambda g: 1 - math.fsum(max(0.0, 1 - value) for value in spectrum(laplacian(g))[0]),
    "deg": lambda g: math.fsum(math.fsum(row) for row in affinity(g)) / len(g.samples) ** 2,
    "mc_se": lambda g: mean(sequence_logprob(s) for s in g.samples),
    "mc_nse": lambda g: mean(sequence_logprob(s) / len(s.trace.logprobs) for s in g.samples),
    "ce": lambda g: bracketed(g.probes["ce"][0])[0] / 100,
    "cot_ce": lambda g: bracketed(g.probes["cot_ce"][0])[0] / 100,
    "topk_ce": lambda g: mean(bracketed(g.probes["topk_ce"][0])) / 100,
    "ce_expected": lambda g: expected(g.probes["ce_expected"], range(0, 101, 5)),
    "p_true_probability": lambda g: expected(g.probes["p_true_probability"], (100, 0)),
    "medconf": lambda g: g.assessment.score / 100,
    "information_level": lambda g: g.n_statements / g.n_total,
    "word_count": lambda g: g.n_words,
    "exact_posterior": lambda g: g.exact,
    "answer_agreement": lambda g: mean(agrees(g, k) for k in range(len(g.samples))),
    "noncontradiction": lambda g: mean(not_contradicted(g, k) for k in range(len(g.samples))),
    "bsdetector": bsdetector,
    "kernel_language_entropy": lambda g: kernel_entropy(g, 0.3),
    "kernel_language_entropy_rescaled": lambda g: kernel_entropy(
        g, 0.3 * g.parameters.n_samples / len(g.samples)
    ),
    "semantic_density": semantic_density,
    "cocoa_msp": lambda g: math.fsum(tokens(g)) * distance(g),
    "cocoa_ppl": lambda g: mean(tokens(g)) * distance(g),
    "luq": lambda g: over_pairs(len(g.samples), lambda i, j: entails_of_two(g, i, j)),
    "snne": snne,
    "deepconf_lowest": deepconf_lowest,
    "self_certainty": lambda g: mean(tokens(g, "certainty")),
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
    "agreement": agreement,
    "rdc": lambda g: mean(c for c in g.panel.cosines if not math.isnan(c)),
}
"""Method -> its value for a whole generation."""


# Worked out by hand

log, sqrt, exp = math.log, math.sqrt, math.exp

RANDOM_C1 = 0.36057109133365406
"""First 53 bits of sha256sum's digest of '[0, "c1", 20]', over 2**53."""

GRAPH = replace(FULL, entailment=array([[1, 1, 0.9], [1, 1, 0.4], [0.1, 0.6, 1]]))
"""S has 1 between the first two and (0.9 + 0.1)/2 = (0.4 + 0.6)/2 = 0.5 to the third, so D = 2.5,
2.5, 2."""
CLOSE = replace(FULL, entailment=cosines(1, 0.8, 0.8))
"""D = 2.8, 2.8, 2.6."""
ALIKE = (said("Flu"), said("Flu"), said("flu.", (0.5, 0.5)))
TWICE = meant(0, 0, 0, 1, samples=(*ALIKE, said("Croup", (0.5, 0.25))))
"""P = 1/8, 1/8 (the same string), 1/4 in one set, and 1/8 in another."""

TWINS = replace(
    meant(0, 0, samples=(said("Flu"), said("flu."))), parameters=replace(PARAMETERS, n_samples=2)
)


def entropy_of_two(h: float) -> float:
    """Sum of value times log of the two values (1 +- (1 - h) / (1 + h)) / 2, which sum to 1."""
    values = (1 / (1 + h), h / (1 + h))
    return math.fsum(value * log(value) for value in values)


# P = 0.5^0.7 x 0.25^0.3 = A; 0.5^0.5 x 0.5^0.5 = 1/2; and 0.4^0.2 x 0.2^0.5 x 0.1^0.3 = B.
A, B = 2**-1.3, 0.4**0.2 * sqrt(0.2) * 0.1**0.3
SAR = log(A + (0.9 * 0.5 + 0.2 * B) / 0.001) + log(0.5 + (0.9 * A + 0.1 * B) / 0.001)
SAR += log(B + (0.2 * A + 0.1 * 0.5) / 0.001)

NAMES = (0, 0, 0, 1, 2)
"""Of METHODS' toy: the answer A, and the samples A, A, A, B, C."""
OF_NAMES = np.ix_(NAMES, NAMES)
TOY_TOKENS = ((0.5, 0.9, 0.8), (0.2, 0.9), (0.1, 0.8, 0.9, 0.5))
TOY_LISTED = ((0.5, 0.3, 0.1), (0.9, 0.05, 0.02), (0.8, 0.1, 0.05))
TOY_ENTAILS = array([[1, 0.2, 0.05], [0.1, 1, 0.3], [0.05, 0.3, 1]])
TOY_CONTRADICTS = array([[0, 0.7, 0.9], [0.8, 0, 0.5], [0.9, 0.5, 0]])
TOY_COSINES = cosines(0.6, 0.4, 0.5)


def listing(*rows: tuple[float, ...]) -> tuple[tuple[tuple[str, float], ...], ...]:
    return tuple(tuple((f"t{i}", math.log(p)) for i, p in enumerate(row)) for row in rows)


TOY = generation(
    answer=said("A", TOY_TOKENS[0], certainty=[6.0, 7.0, 8.0]),
    samples=tuple(said("ABC"[i], TOY_TOKENS[i]) for i in NAMES),
    similarity=TOY_COSINES[OF_NAMES],
    entailment=TOY_ENTAILS[OF_NAMES],
    contradiction=TOY_CONTRADICTS[OF_NAMES],
    answer_similarity=TOY_COSINES[0, NAMES],
    answer_entailment=np.stack([TOY_ENTAILS[0, NAMES], TOY_ENTAILS[NAMES, 0]]),
    answer_contradiction=np.stack([TOY_CONTRADICTS[0, NAMES], TOY_CONTRADICTS[NAMES, 0]]),
    probes={"p_true": told("True", "True", "True", "False", "False")},
    parameters=replace(PARAMETERS, n_samples=5, n_alternatives=3),
)
assert TOY.answer is not None and TOY.answer.trace is not None
TOY = replace(
    TOY,
    answer=replace(TOY.answer, trace=replace(TOY.answer.trace, alternatives=listing(*TOY_LISTED))),
)
# exp of the mean log p of A, B and C, and A's log-probability
P_A, P_B, P_C = 0.36 ** (1 / 3), sqrt(0.18), 0.036 ** (1 / 4)

WORKED: dict[str, tuple[Generation, float]] = {
    # The answer's tokens have p = 1/2 and 1/4, so log p = -log 2 and -2 log 2.
    "asp": (FULL, (0.5 + 0.25) / 2),
    "msp": (FULL, 0.5),
    "sequence_probability": (FULL, 0.125),
    "min_token_probability": (FULL, 0.25),
    "perplexity": (FULL, -sqrt(8)),  # (1/8) to the power -1/2
    "entropy": (FULL, -(1.5 + 0.5) / 2),
    "pmi": (FULL, log(5)),  # both tokens became five times as probable
    # only the first token's entropy reaches 1 nat
    "conditional_pmi": (FULL, -1.5 * log(2) + 0.5 / 2 * log(0.1)),
    "conditional_pmi_original": (FULL, -1.5 * log(2) - 0.5 / 2 * log(0.1)),
    "renyi_divergence": (FULL, (2 + 4) / 2),
    "fisher_rao": (FULL, (0.6 + 0.8) / 2),
    "token_sar": (FULL, 0.7 * log(0.5) + 0.3 * log(0.25)),
    # 0.5 entails against 0.3, 0.2 is neutral: 5/8. Then 0.5 + 0.25 entail against 0.25: 3/4.
    "ccp": (FULL, 5 / 8 * 3 / 4),
    "ccp_min": (FULL, 5 / 8),
    "ccp_mean": (FULL, (5 / 8 + 3 / 4) / 2),
    "poc": (FULL, 2 / 3),
    # "Flu" and "flu." are one word to ROUGE; neither shares a word with "Acute croup".
    "lexical_similarity": (FULL, 1 / 3),
    "semantic_similarity": (FULL, (0.9 + 0.2 + 0.1) / 3),
    "semantic_similarity_med": (FULL, (0.8 + 0.4 + 0.3) / 3),
    # 0.9 > 0.05 joins the first two; 0.1 < 0.7 and 0.2 < 0.6 leave the third alone.
    "num_set": (FULL, 1 - 2 / 3),
    "semantic_poc": (FULL, 2 / 3),
    # D^-1/2 S D^-1/2 on (1, -1, 0) is 0; on (1, 1, 0)/sqrt 2 and (0, 0, 1) it is [[0.8, sqrt 0.1],
    # [sqrt 0.1, 0.5]], whose trace is 1.3 and whose one value is 1, so the other is 0.3: the sum is
    # 1 + 0.3 + 0.
    "eigv": (GRAPH, 1 - 1.3),
    "deg": (GRAPH, (3 + 2 * (1 + 0.5 + 0.5)) / 9),
    # As above with trace 2/2.8 + 1/2.6 = 1.0989: Laplacian eigenvalues 0, 0.9011 and 1. Below 0.9
    # only the first, whose vector is sqrt(D / 8.2); centred, its squared length is 1 - (sum of its
    # entries)^2 / 3.
    "ecc": (CLOSE, 1 - sqrt(1 - (2 * sqrt(2.8) + sqrt(2.6)) ** 2 / (3 * 8.2))),
    # The samples have P = 1/8, 1/4 and 0.4 x 0.2 x 0.1 = 0.008, and 2, 2 and 3 tokens.
    "mc_se": (FULL, (log(0.125) + log(0.25) + log(0.008)) / 3),
    "mc_nse": (FULL, (log(0.125) / 2 + log(0.25) / 2 + log(0.008) / 3) / 3),
    "semantic_entropy": (TWICE, 3 / 4 * log(1 / 8 + 1 / 8 + 1 / 4) + 1 / 4 * log(1 / 8)),
    # Distinct strings: 1/8 + 1/4 = 3/8 against 1/8, so 3/4 against 1/4.
    "semantic_entropy_normalised": (TWICE, 3 / 4 * log(3 / 4) + 1 / 4 * log(1 / 4)),
    "semantic_entropy_discrete": (FULL, 2 / 3 * log(2 / 3) + 1 / 3 * log(1 / 3)),
    # R = 0.9/4 + 0.2 x 0.008 = 0.2266; 0.9/8 + 0.1 x 0.008 = 0.1133; 0.2/8 + 0.1/4 = 0.05; each by
    # t = 0.001.
    "sentence_sar": (FULL, (log(0.125 + 226.6) + log(0.25 + 113.3) + log(0.008 + 50)) / 3),
    "sentence_sar_printed": (FULL, (log(0.125) + 226.6 + log(0.25) + 113.3 + log(0.008) + 50) / 3),
    "sar": (FULL, SAR / 3),
    "ce": (FULL, 0.85),
    "cot_ce": (FULL, 0.8),
    "topk_ce": (FULL, (80 + 85 + 90 + 75 + 80) / 500),
    "p_true": (FULL, 2 / 3),
    # 0.5 x 0.4 = 0.2 for 80 against 0.5 x 0.2 = 0.1 for 95, and nothing for all others.
    "ce_expected": (FULL, (2 * 80 + 95) / 300),
    "p_true_probability": (FULL, 0.6 / (0.6 + 0.5 * 0.4)),
    "medconf": (FULL, 0.35),
    # Weights: 3 strong 9, 3 moderate 6, 2 weak 2; a strong and a moderate are supported.
    "medconf_weighted": (FULL, 5 / 17),
    "answer_agreement": (TOY, 3 / 5),
    # 1 three times, 1 - (0.7 + 0.8)/2 and 1 - 0.9
    "noncontradiction": (TOY, (3 + 0.25 + 0.1) / 5),
    "bsdetector": (TOY, 0.7 * (0.8 * 0.67 + 0.2 * 0.6) + 0.3 * 0.6),
    # Two samples of one name: W = 2 between them, so L has the values 0 and 4, and H has
    # (1 + h) / 2 and (1 - h) / 2 with h = e^-1.2; the density has (1 +- (1 - h) / (1 + h)) / 2.
    "kernel_language_entropy": (TWINS, entropy_of_two(exp(-1.2))),
    "kernel_language_entropy_rescaled": (
        replace(TWINS, parameters=replace(PARAMETERS, n_samples=6)),
        entropy_of_two(exp(-3.6)),
    ),
    # of B 1 - (0.7 + 0.05 + 0.8 + 0.05)/2, of C 1 - (0.9 + 0.025)
    "semantic_density": (TOY, (P_A + 0.2 * P_B + 0.075 * P_C) / (P_A + P_B + P_C)),
    "cocoa_msp": (TOY, log(0.36) * (0.4 + 0.6) / 5),
    "cocoa_ppl": (TOY, log(0.36) / 3 * (0.4 + 0.6) / 5),
    # six pairs of A with A, three times A and B, A and C both ways, B and C both ways
    "luq": (
        TOY,
        (6 + 3 * (0.2 / 0.9 + 0.1 / 0.9) + 6 * 0.05 / 0.95 + 2 * 0.3 / 0.8) / 20,
    ),
    "snne": (
        TOY,
        (
            3 * log(3 * exp(1) + exp(0.6) + exp(0.4))
            + log(3 * exp(0.6) + exp(1) + exp(0.5))
            + log(3 * exp(0.4) + exp(0.5) + exp(1))
        )
        / 5
        - 1
        - log(5),
    ),
    "deepconf_lowest": (TOY, -log(0.5 * 0.3 * 0.1) / 3),
    "self_certainty": (TOY, 7.0),
    "information_level": (FULL, 3 / 12),
    "word_count": (FULL, 40),
    "random": (FULL, RANDOM_C1),
    "exact_posterior": (FULL, 0.62),
    "agreement": (FULL, 2 / 3),  # flu, flu, croup
    "rdc": (FULL, (0.4 + 0.1 + 0.3) / 3),
}

CHANCES = {
    "asp", "msp", "sequence_probability", "min_token_probability", "ccp", "poc", "semantic_poc",
    "ce", "ce_expected", "cot_ce", "topk_ce", "p_true", "p_true_probability", "medconf",
    "exact_posterior", "answer_agreement",
}  # fmt: skip
"""The methods whose value is meant as a chance."""
TRUE_ZERO = CHANCES | {"medconf_weighted", "deg", "lexical_similarity", "num_set"}
"""The methods with a true zero."""


def n_samples(g: Generation) -> int:
    return len(g.samples or ())
