"""Compares every method that lm-polygraph 0.7.0 has too, on the same random arrays: ``python -m
benchmarks.parity``.

Install it beside the project, never in the project's own environment, since it pulls in some
hundred packages:

    python3 -m venv ../parity
    ../parity/bin/python -m pip install -e . lm-polygraph==0.7.0
    ../parity/bin/python -m benchmarks.parity

Each row tells how far its value is from minus ours (it gives uncertainties, ours are confidences),
the relation by which its value follows from ours where definitions differ, and how far off that
leaves it. Exit status: 0 where every row is accounted for to 1e-6, 1 where one is not, 2 where
lm-polygraph is absent.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.records import Made, random_records
from trustlab.confidence import METHODS
from trustlab.confidence.meaning_sets import meanings
from trustlab.models.local.logits import statistics_of
from trustlab.records import PARAMETERS, Generation

VERSION = "0.7.0"
INSTALL = f"python -m pip install -e . lm-polygraph=={VERSION}"
TOLERANCE = 1e-6
N_SAMPLES = 15
P = PARAMETERS

Relation = Callable[[np.ndarray, "list[Made]"], np.ndarray]
"""Our values (n,), the records -> what lm-polygraph should give, (n,)."""


@dataclass(frozen=True)
class Pair:
    """One of our methods and the estimator that measures the same: a class name, its options, and
    how its value follows."""

    ours: str
    theirs: str
    relation: Relation = lambda ours, made: -ours
    why: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    def open(self) -> Callable[[dict[str, Any]], np.ndarray]:
        """The estimator."""
        import lm_polygraph.estimators as estimators  # pyright: ignore[reportMissingImports]

        return getattr(estimators, self.theirs)(**dict(self.options))


def first_prior(
    made: list[Made], weight: float = 1.0, threshold: float = -np.inf
) -> np.ndarray:
    """The first token's log prior, by the number of tokens, where its entropy reaches the
    threshold: (n,)."""
    traces = [trace_of(m.generation) for m in made]
    return np.array(
        [
            weight * t.prior_logprobs[0] / len(t) * (t.entropies[0] >= threshold)
            for t in traces
        ]
    )


def tempered(
    name: str, statistic: str, temperature: float
) -> Callable[[list[Made]], np.ndarray]:
    """Our method's values where the distributions are those at a temperature, (n,)."""

    def values(made: list[Made]) -> np.ndarray:
        row, out = ("entropies", "renyi", "fisher_rao").index(statistic), []
        for m in made:
            found = statistics_of(m.log_distributions / temperature, P.renyi_alpha)[row]
            answer = m.generation.answer
            assert answer is not None and answer.trace is not None
            trace = replace(answer.trace, **{statistic: found})
            out.append(
                METHODS[name].score(
                    replace(m.generation, answer=replace(answer, trace=trace))
                )
            )
        return np.array(out)

    return values


def unread(made: list[Made]) -> np.ndarray:
    """Share of pairs of different samples that are the same text without a word that ROUGE reads,
    (n,)."""
    shares = []
    for m in made:
        texts = [str(s.text) for s in m.generation.samples or ()]
        n = sum(
            not text.isascii() for text in texts
        )  # of the names, only the Japanese one has no Latin letter
        shares.append(n * (n - 1) / (len(texts) * (len(texts) - 1)))
    return np.array(shares)


def two_log_n(made: list[Made]) -> np.ndarray:
    return np.array([2 * np.log(m.log_distributions.shape[1]) for m in made])


def by_string(name: str, relation: Relation | None = None) -> Relation:
    """The relation where two spellings are two names, as there: our values on renamed records."""

    def values(ours: np.ndarray, made: list[Made]) -> np.ndarray:
        found = np.array([METHODS[name].score(renamed(m.generation)) for m in made])
        return -found if relation is None else relation(found, made)

    return values


def renamed(g: Generation) -> Generation:
    """The record with a name of its own for each distinct string."""
    assert g.answer is not None and g.samples is not None
    texts = [g.answer.text, *(sample.text for sample in g.samples)]
    names = {text: f"name {i}" for i, text in enumerate(dict.fromkeys(texts))}
    samples = tuple(replace(sample, text=names[sample.text]) for sample in g.samples)
    return replace(
        g, answer=replace(g.answer, text=names[g.answer.text]), samples=samples
    )


def one_direction(ours: np.ndarray, made: list[Made]) -> np.ndarray:
    """Semantic density with distances from the answer to each distinct sample alone, and the answer
    once more beside them, (n,)."""
    values = []
    for m in made:
        g: Any = m.generation
        likely = {"the answer": (np.exp(g.answer.trace.logprobs.mean()), 1.0)}
        for k, sample in enumerate(g.samples):
            contradiction = g.answer_contradiction[0, k]
            neutral = 1 - g.answer_entailment[0, k] - contradiction
            near = 1 - contradiction - neutral / 2
            likely[sample.text] = (np.exp(sample.trace.logprobs.mean()), near)
        weights, nearness = np.array(list(likely.values())).T
        values.append(-np.average(nearness, weights=weights))
    return np.array(values)


RENYI, FISHER_RAO = (
    tempered("renyi_divergence", "renyi", 2.0),
    tempered("fisher_rao", "fisher_rao", 2.0),
)
CUT, SCALE = P.pmi_threshold, P.pmi_weight

PAIRS: tuple[Pair, ...] = (
    Pair(
        "sequence_probability",
        "MaximumSequenceProbability",
        lambda o, m: -np.log(o),
        "gives -log of it",
    ),
    Pair(
        "perplexity",
        "Perplexity",
        lambda o, m: np.log(-o),
        "mean -log p under that name: log of ours",
    ),
    Pair("entropy", "MeanTokenEntropy"),
    Pair(
        "pmi",
        "MeanPointwiseMutualInformation",
        lambda o, m: -o - first_prior(m),
        "leaves out the first token's prior",
    ),
    Pair(
        "conditional_pmi_original",
        "MeanConditionalPointwiseMutualInformation",
        lambda o, m: -o - first_prior(m, SCALE, CUT),
        "leaves out the first token's prior",
        (("tau", CUT), ("lambd", SCALE)),
    ),
    Pair(
        "conditional_pmi",
        "MeanConditionalPointwiseMutualInformation",
        lambda o, m: -o + first_prior(m, SCALE, CUT),
        "with its weight negative; leaves out the first token's prior",
        (("tau", CUT), ("lambd", -SCALE)),
    ),
    Pair(
        "renyi_divergence",
        "RenyiNeg",
        lambda o, m: o - two_log_n(m),
        "reversed: the divergence, less 2 log N (here at temperature 1)",
        (("temperature", 1),),
    ),
    Pair(
        "renyi_divergence",
        "RenyiNeg",
        lambda o, m: RENYI(m) - two_log_n(m),
        "as above, at its own temperature 2: ours at 2",
    ),
    Pair(
        "fisher_rao",
        "FisherRao",
        lambda o, m: o,
        "reversed: the distance (here at temperature 1)",
        (("temperature", 1),),
    ),
    Pair(
        "fisher_rao",
        "FisherRao",
        lambda o, m: FISHER_RAO(m),
        "as above, at its own temperature 2: ours at 2",
    ),
    Pair("token_sar", "TokenSAR"),
    Pair("ccp", "ClaimConditionedProbability"),
    Pair(
        "lexical_similarity",
        "LexicalSimilarity",
        lambda o, m: -(o - unread(m)),
        "gives equal texts 0 where ROUGE reads no word in them",
    ),
    Pair(
        "num_set",
        "NumSemSets",
        lambda o, m: N_SAMPLES * (1 - o),
        "a raw count: K (1 - ours)",
    ),
    Pair("eigv", "EigValLaplacian", lambda o, m: 1 - o, 'without "1 -"'),
    Pair("deg", "DegMat", lambda o, m: 1 - o, "1 - ours"),
    Pair(
        "ecc",
        "Eccentricity",
        lambda o, m: 1 - o,
        'without "1 -"',
        (("thres", P.eigenvalue_cut),),
    ),
    Pair("mc_se", "MonteCarloSequenceEntropy"),
    Pair("mc_nse", "MonteCarloNormalizedSequenceEntropy"),
    Pair("semantic_entropy", "SemanticEntropy"),
    Pair(
        "semantic_entropy_discrete",
        "SemanticEntropy",
        options=(("class_probability_estimation", "frequency"),),
    ),
    Pair("semantic_poc", "LabelProb", lambda o, m: 1 - o, "1 - ours"),
    Pair("sentence_sar", "SentenceSAR"),
    Pair("sar", "SAR"),
    Pair(
        "p_true",
        "PTrueEmpirical",
        lambda o, m: 1 - o,
        "1 - ours",
        (("num_samples", N_SAMPLES),),
    ),
    Pair(
        "kernel_language_entropy",
        "KernelLanguageEntropy",
        by_string("kernel_language_entropy"),
        "two spellings are two names (here without its division by ln K)",
        (("scale", False),),
    ),
    Pair(
        "semantic_density",
        "SemanticDensity",
        one_direction,
        "one direction, two spellings are two names, the answer twice",
        (("concat_input", False),),
    ),
    Pair(
        "cocoa_msp",
        "CocoaMSP",
        by_string("cocoa_msp"),
        "two spellings are two names",
    ),
    Pair(
        "cocoa_ppl",
        "CocoaPPL",
        by_string("cocoa_ppl"),
        "two spellings are two names",
    ),
    Pair(
        "luq",
        "LUQ",
        by_string("luq", lambda o, m: 1 - o),
        "1 - ours; two spellings are two names",
    ),
    Pair("self_certainty", "SelfCertainty"),
)


def trace_of(g: Generation) -> Any:
    assert g.answer is not None
    return g.answer.trace


COMBINED = {1: ("ee", "en", "ne"), -1: ("cc", "cn", "nc"), 0: ("nn", "ec", "ce")}
WORDS = {"e": "entail", "c": "contra", "n": "neutral"}
"""For each of our classes of an alternative, what the two directions may have said."""


def alternatives_nli(classes: np.ndarray) -> list[list[str]]:
    """Its square of classes (A, A) of one token's alternatives, of which it reads the first row and
    column."""
    n = len(classes)
    square = [["neutral"] * n for _ in range(n)]
    for i, kind in enumerate(classes):
        forward, backward = COMBINED[int(kind)][i % 3]
        square[0][i], square[i][0] = WORDS[forward], WORDS[backward]
    return square


def semantic_classes(made: Sequence[Made]) -> dict[str, dict[int, Any]]:
    """Our sets of meanings, as it writes them."""
    to_class, to_sample = {}, {}
    for i, m in enumerate(made):
        names, numbers = np.unique(meanings(m.generation), return_inverse=True)
        to_class[i] = {j: int(number) for j, number in enumerate(numbers)}
        to_sample[i] = [
            np.flatnonzero(numbers == number).tolist() for number in range(len(names))
        ]
    return {"sample_to_class": to_class, "class_to_sample": to_sample}


def statistics(made: Sequence[Made]) -> dict[str, Any]:
    """What the estimators read, from the same arrays. Relevances and cosines come as our methods
    take them: floored, clipped."""
    gs: list[Any] = [m.generation for m in made]
    kept = slice(P.n_alternatives)

    def alike(relevance: np.ndarray) -> np.ndarray:
        return 1 - np.where(relevance < 1e-6, 0.0, relevance)

    judged = cycle([[str(reply.text) for reply in g.probes["p_true"]] for g in gs])
    return {
        "greedy_log_probs": [m.log_distributions for m in made],
        "greedy_log_likelihoods": [g.answer.trace.logprobs for g in gs],
        "greedy_lm_log_likelihoods": [g.answer.trace.prior_logprobs for g in gs],
        "entropy": [
            -(np.exp(m.log_distributions) * m.log_distributions).sum(axis=1)
            for m in made
        ],
        "greedy_tokens": [list(g.answer.trace.tokens) for g in gs],
        "greedy_tokens_alternatives": [
            [list(row[kept]) for row in g.answer.trace.alternatives] for g in gs
        ],
        "greedy_tokens_alternatives_nli": [
            [alternatives_nli(row) for row in g.alternative_entailment] for g in gs
        ],
        "token_similarity": [alike(g.relevance) for g in gs],
        "sample_texts": [[s.text for s in g.samples] for g in gs],
        "sample_tokens": [[list(s.trace.tokens) for s in g.samples] for g in gs],
        "sample_log_probs": [
            [float(s.trace.logprobs.sum()) for s in g.samples] for g in gs
        ],
        "sample_log_likelihoods": [[s.trace.logprobs for s in g.samples] for g in gs],
        "sample_token_similarity": [[alike(r) for r in g.sample_relevance] for g in gs],
        "sample_sentence_similarity": [np.clip(g.similarity, 0, 1) for g in gs],
        "semantic_matrix_entail": np.stack([g.entailment for g in gs]),
        "semantic_matrix_contra": np.stack([g.contradiction for g in gs]),
        "semantic_classes_entail": semantic_classes(made),
        "semantic_matrix_entail_logits": logits_of(g.entailment for g in gs),
        "semantic_matrix_contra_logits": logits_of(g.contradiction for g in gs),
        "greedy_sentence_similarity": [np.clip(g.answer_similarity, 0, 1) for g in gs],
        "greedy_semantic_matrix_contra_forward": [
            g.answer_contradiction[0] for g in gs
        ],
        "greedy_semantic_matrix_neutral_forward": [
            1 - g.answer_entailment[0] - g.answer_contradiction[0] for g in gs
        ],
        "input_texts": [g.case_id for g in gs],
        "greedy_texts": [g.answer.text for g in gs],
        "model": SimpleNamespace(generate_texts=lambda inputs, **options: next(judged)),
    }


def logits_of(matrices: Iterable[np.ndarray]) -> np.ndarray:
    """Numbers whose exponentials are the probabilities."""
    with np.errstate(divide="ignore"):
        return np.log(np.stack(list(matrices)))


def semantic_classes_of(
    made: Sequence[Made],
) -> Callable[[], dict[int, list[list[int]]]]:
    """Its own way to sets of meanings: argmax of three, compared with a set's first member. Record
    -> sets of samples."""
    from lm_polygraph.stat_calculators import (
        semantic_classes as theirs,
    )  # pyright: ignore[reportMissingImports]

    gs: list[Any] = [m.generation for m in made]
    chances = np.stack(
        [
            np.stack(
                [g.entailment, g.contradiction, 1 - g.entailment - g.contradiction]
            )
            for g in gs
        ]
    )
    read = {
        "semantic_matrix_classes": chances.argmax(axis=1),
        "entailment_id": 0,
        "sample_texts": [[s.text for s in g.samples] for g in gs],
    }
    calculator: Any = theirs.SemanticClassesCalculator()
    return lambda: calculator(read, texts=[], model=None)["semantic_classes_entail"][
        "class_to_sample"
    ]


def other_partitions(made: Sequence[Made]) -> int:
    """On how many records its way finds other sets than ours."""
    theirs, ours = (
        semantic_classes_of(made)(),
        semantic_classes(made)["class_to_sample"],
    )
    return sum(
        sorted(map(sorted, theirs[i])) != sorted(map(sorted, ours[i])) for i in ours
    )


def available() -> bool:
    """Whether lm-polygraph can be imported; says how to install it where it cannot."""
    if importlib.util.find_spec("lm_polygraph") is not None:
        return True
    print(
        f"lm-polygraph is not installed here. In an environment beside the project's: {INSTALL}",
        file=sys.stderr,
    )
    return False


def compare(made: list[Made]) -> bool:
    """Print a row for every pair; whether all are accounted for."""
    print(
        f"{'ours':<27}{'lm-polygraph':<43}{'n':>4}{'from -ours':>12}{'left over':>11} "
        f" {'':<5}relation, if not minus ours"
    )
    good = True
    for pair in PAIRS:
        ours = np.array([METHODS[pair.ours].score(m.generation) for m in made])
        with np.errstate(invalid="ignore", divide="ignore"):
            theirs = np.asarray(pair.open()(statistics(made)), dtype=float)
        there = np.isfinite(theirs)
        apart, left = (
            np.abs(theirs - x)[there].max() for x in (-ours, pair.relation(ours, made))
        )
        good &= bool(left <= TOLERANCE)
        verdict = (
            "WRONG" if left > TOLERANCE else "same" if apart <= TOLERANCE else "holds"
        )
        print(
            f"{pair.ours:<27}{pair.theirs:<43}{there.sum():>4}{apart:>12.2g}{left:>11.1e} "
            f" {verdict:<6}{pair.why}"
        )
    alone = [name for name in METHODS if name not in {pair.ours for pair in PAIRS}]
    print(
        f"\nn: records of {len(made)} on which it gives a number; where no token is relevant it"
        " divides 0 by 0, we weigh alike.\nIts own way to sets of meanings (argmax of three, first"
        f" member only) finds others than ours on {other_partitions(made)} of {len(made)}"
        f" records;\nthe rows above use ours.\nIt has no counterpart of: {', '.join(alone)}."
    )
    return good


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.parity", description="Compare our methods with lm-polygraph's."
    )
    parser.add_argument(
        "--records",
        type=int,
        default=200,
        help="how many random records (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of the random records (default: %(default)s)",
    )
    options = parser.parse_args()
    if not available():
        raise SystemExit(2)
    version = importlib.metadata.version("lm-polygraph")
    print(
        f"lm-polygraph {version}, {options.records} random records with K = {N_SAMPLES}, seed"
        f" {options.seed}\n"
    )
    if version != VERSION:
        print(f"written for {VERSION}; its definitions may have changed\n")
    raise SystemExit(
        not compare(random_records(options.records, options.seed, n_samples=N_SAMPLES))
    )


if __name__ == "__main__":
    main()
