"""What differs by less than 1e-6 is equal before it is ranked: such noise moves no metric."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_medconf import table
from generations import array, generation, given, guesses, panel, said, told
from same.tables import read_file

from studies.calibration import reliability_table
from studies.trust_indices import weight_sweep
from trustlab.confidence import METHODS
from trustlab.confidence.registry import MissingValue
from trustlab.measures import metrics_table
from trustlab.metrics import spearman_permutation_p
from trustlab.metrics.calibration import cross_fitted
from trustlab.metrics.estimate import measure
from trustlab.metrics.paired import best_against, chosen_in
from trustlab.metrics.run_tables import rows_of_methods
from trustlab.metrics.selective import SELECTIVE
from trustlab.metrics.stopping import frontier, stop_turns
from trustlab.paths import FIGURES
from trustlab.records import Assessment, Generation
from trustlab.run import table_in

NOISE, ALLOWED = 5e-7, 1e-3
LEVELS, N_CASES = (20, 60, 100), 48
KEYS = ["case_id", "dataset", "level", "model"]
SURE = ("aaaaaaaa", "aaaaaaab", "aaaaaabb", "aaaabbcc")
UNSURE = ("aaaabbbb", "aabbccdd", "aaabbbcd", "abcdefgh")
"""Which of eight samples mean the same."""
SCALES = {name: method.scale for name, method in METHODS.items()}

Shake = Callable[[Any], np.ndarray]


def made(case: int, level: int, rng: np.random.Generator, shake: Shake) -> Generation:
    """A record with every part: its own token probabilities, and of the rest a few kinds.

    ``shake`` is applied to each probability, entropy and cosine.
    """
    sure = rng.integers(0, 2)

    def probs(n: int) -> np.ndarray:
        return shake(rng.uniform(0.2 + 0.3 * sure, 0.9, n))

    def logs(n: int) -> np.ndarray:
        return array(np.log(probs(n)))

    sets = (UNSURE, SURE)[sure][int(rng.integers(0, 4))]
    k, own = len(sets), np.eye(len(sets), dtype=bool)
    alike = np.equal.outer(list(sets), list(sets))

    def matrix(same: float, other: float, itself: float) -> np.ndarray:
        half = np.triu(shake(np.where(alike, same, other)), 1)
        return array(np.where(own, itself, half + half.T))

    chances = probs(3)
    rest = [(letter, 0.001) for letter in "abcdefgh"]
    others = [[("x", p), ("y", q), *rest] for p, q in zip(chances, probs(3) / 4, strict=True)]
    answer = said(
        "Flu", chances, entropies=shake(rng.uniform(0.1, 2, 3)), renyi=shake(rng.uniform(1, 4, 3)),
        fisher_rao=shake(rng.uniform(0.3, 0.9, 3)), prior_logprobs=logs(3),
    )  # fmt: skip
    assert answer.trace is not None
    listed = tuple(tuple((t, float(np.log(p))) for t, p in row) for row in others)
    support = ["supported"] * int(rng.integers(0, 3) + sure) + ["missing", "contradicted"]
    evidence = table(support, ["strong"] * len(support))
    votes = ("flu", "flu", "flu" if sure else "croup")
    shown = generation(
        answer=replace(answer, trace=replace(answer.trace, alternatives=listed)),
        samples=tuple(said(f"{name} {'i' * n}", probs(2)) for n, name in enumerate(sets, 1)),
        similarity=matrix(0.9, 0.2, 1), similarity_med=matrix(0.8, 0.4, 1),
        entailment=matrix(0.95, 0.02, 1), contradiction=matrix(0.02, 0.9, 0),
        relevance=array(shake([0.7, 0.3, 0.2])), sample_relevance=(array(shake([0.6, 0.4])),) * k,
        alternative_entailment=(np.array([1, -1, *[0] * 8]),) * 3,
        probes={
            "ce": told(f"[{60 + 20 * sure}]"), "cot_ce": told(f"So. [{70 + 10 * sure}]"),
            "topk_ce": guesses(*[60 + 10 * int(rng.integers(0, 3))] * 5),
            "p_true": told("True", *["True" if sure else "False"] * 2, "False"),
            **given("ce_expected", {"[80]": chances}, (0.01,)),
            **given("p_true_probability", {"True": chances}, (0.1,)),
        },
        assessment=Assessment("Flu", score=40.0 + 20 * sure, evidence=evidence),
        panel=panel(*votes, cosines=tuple(shake([0.4, 0.3, 0.1 + 0.1 * sure]))),
        exact=0.3 + 0.4 * sure,
    )  # fmt: skip
    words = 10 * LEVELS.index(level) + int(rng.integers(20, 30))
    told_so_far = {"n_statements": int(12 * level / 100), "n_words": words}
    return replace(shown, case_id=f"c{case:02d}", level=level, **told_so_far)


def a_run(shake: Shake) -> SimpleNamespace:
    """Answers and every method's confidences on made records; two differ by ``shake`` alone."""
    rng, rows, answers = np.random.default_rng(0), [], []
    for case in range(N_CASES):
        for level in LEVELS:
            shown = made(case, level, rng, shake)
            label = {"case_id": shown.case_id, "dataset": "made", "level": level, "model": "made"}
            agreed = shown.panel is not None and shown.panel.votes[2] == "flu"
            said_so = {"answer": "Flu", "correct": int(rng.random() < 0.35 + 0.3 * agreed)}
            answers.append({**label, **said_so, "missing": "", "n_words": shown.n_words})
            for name, method in METHODS.items():
                try:
                    rows.append({**label, "method": name, "confidence": float(method.score(shown))})
                except MissingValue as reason:
                    raise AssertionError(f"{name} has no value: {reason}") from reason
    confidence = pd.DataFrame(rows).assign(bound="", missing="")
    return SimpleNamespace(answers=pd.DataFrame(answers), confidence=confidence)


def noisy(seed: int) -> Shake:
    rng = np.random.default_rng(seed)
    return lambda values: np.asarray(values, float) + rng.uniform(-NOISE, NOISE, np.shape(values))


def every_metric(run: Any) -> pd.Series:
    """Each metric's value by model, data set, method and level; and bins."""
    a, c = run.answers, run.confidence
    keys = ["model", "dataset", "method"]
    whole = metrics_table(run, n_draws=1).set_index([*keys, "metric", "level"])["value"]
    of_methods = ((label, rows) for label, rows in rows_of_methods(a, c, 1) if label["method"])
    chosen = pd.DataFrame(measure(of_methods, SELECTIVE)).set_index([*keys, "metric"])["value"]
    found: dict[Any, float] = {}
    for part in (whole, chosen):
        values: dict[Any, float] = part.to_dict()
        found |= {tuple(map(str, key)): value for key, value in values.items()}
    judged = c.merge(a[[*KEYS, "correct"]], on=KEYS).dropna(subset=["confidence", "correct"])
    for key, part in judged.groupby(keys):
        correct, sure = (part[c].to_numpy() for c in ("correct", "confidence"))
        if len(set(correct)) == 2:
            once = cross_fitted(correct.astype(int), sure, part["case_id"])
            found[(*key, "isotonic")] = float(np.mean((once - correct) ** 2))
    for model, dataset in c[["model", "dataset"]].drop_duplicates().itertuples(index=False):
        mine = [t[(t["model"] == model) & (t["dataset"] == dataset)] for t in (a, c)]
        bins = reliability_table(*mine, SCALES, n_draws=1).dropna(subset="bin").to_dict("records")
        found |= {(model, dataset, r["method"], f"bin {r['bin']}"): r["value"] for r in bins}
    return pd.Series(found)


def moved(one: pd.Series, other: pd.Series) -> dict[Any, float]:
    """What differs by more than is allowed, and by how much; infinitely where only one is known."""
    one, other = one.align(other)
    apart: Any = (one - other).abs()
    apart[one.isna() ^ other.isna()] = np.inf
    return apart[apart > ALLOWED].to_dict()


@cache
def unshaken() -> tuple[SimpleNamespace, pd.Series]:
    """The made records as they are, and every metric of them."""
    clean = a_run(lambda values: np.asarray(values, float))
    assert clean.confidence["method"].nunique() == len(METHODS)
    return clean, every_metric(clean)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_noise_in_the_records_moves_no_metric_of_any_method(seed: int) -> None:
    clean, before = unshaken()
    shaken = a_run(noisy(seed))
    assert not shaken.confidence["confidence"].equals(clean.confidence["confidence"])
    assert moved(before, every_metric(shaken)) == {}


@cache
def published() -> tuple[SimpleNamespace, pd.Series]:
    """The first model on the first set of the reference run, and every metric of it."""
    folder = FIGURES / "reference" / "01_benchmark"
    one: dict[str, Any] = {n: read_file(table_in(folder, n)) for n in ("answers", "confidence")}
    one = {n: t[t["model"].eq("embedded") & t["dataset"].eq("starter")] for n, t in one.items()}
    run = SimpleNamespace(**one)
    return run, every_metric(run)


@pytest.mark.parametrize("noise", [1e-15, NOISE])
def test_noise_in_the_published_confidences_moves_no_metric(noise: float) -> None:
    """``1e-15`` is what another order of adding does, as in another processor's eigenvalues.

    At the larger one only what stands on all answers is held: in a level one pair that changes its
    order weighs more; and not MSP and the mean
    CCP, which lie near to 1 with gaps of just 1e-6, so that noise of half of that joins and parts
    their chains.
    """
    run, before = published()
    answers, given = run.answers, run.confidence
    value = given["confidence"].to_numpy(float)
    shift = np.random.default_rng(0).uniform(-noise, noise, len(value))
    shaken = value + shift * np.maximum(1, np.abs(value))
    probable = given["method"].map(SCALES).eq("probability").to_numpy()
    shaken = np.where(probable, np.clip(shaken, 0, 1), shaken)
    assert not np.array_equal(shaken, value)
    other = SimpleNamespace(answers=answers, confidence=given.assign(confidence=shaken))
    far = moved(before, every_metric(other))
    small = {"within", *map(str, answers["level"].unique())}
    crowded = {"msp", "ccp_mean"}
    held = {k: by for k, by in far.items() if k[-1] not in small and not crowded & set(k)}
    assert (far if noise < 1e-9 else held) == {}


def test_noise_moves_no_threshold() -> None:
    sure = np.array([[0.6, 0.8, 1.0], [0.2, 0.8, 0.8]])
    less = sure - NOISE * np.array([[0, 1, 1], [1, 0, 1]])
    assert stop_turns(less, 0.8).tolist() == stop_turns(sure, 0.8).tolist() == [1, 1]
    assert stop_turns(less - 1e-5, 0.8).tolist() == [2, 2]
    found = [frontier(s, [[0, 1, 1], [1, 0, 1]], [[1, 3, 5]] * 2) for s in (sure, less)]
    np.testing.assert_allclose(found[1].thresholds, found[0].thresholds, atol=1e-6)
    np.testing.assert_array_equal(found[1].utterances, found[0].utterances)


def test_noise_chooses_no_best_and_orders_no_series() -> None:
    draws, cases = np.full((3, 20), 0.7), np.arange(20)
    draws[1] += NOISE
    found = best_against([0.7, 0.7 + NOISE, 0.6], draws, 0.5, np.full(20, 0.5), cases)
    assert (found.which, found.tied) == (0, (1,))
    assert chosen_in(draws) == pytest.approx([1 / 3] * 3)
    accuracy = [0.2, 0.4, 0.5, 0.6, 0.7]
    ties, near = [0.1, 0.3, 0.3, 0.5, 0.6], [0.1, 0.3 + NOISE, 0.3, 0.5, 0.6]
    assert spearman_permutation_p(accuracy, near) == spearman_permutation_p(accuracy, ties)


def test_noise_makes_no_winner_of_equal_etis() -> None:
    shown: dict[str, Any] = {"model": "m", "dataset": "d", "level": 100, "safety": False}
    shown |= {"formulation": "trust-x", "n": 20}
    parts = {"accuracy": 0.5, "cdr": 0.2, "rdc": 0.4, "eti": 0.56}
    rows = [
        {**shown, "configuration": c, "metric": m, "value": v}
        for c in ("x", "y")
        for m, v in parts.items()
    ]
    indices = pd.DataFrame(rows)
    indices.loc[indices["configuration"].eq("y") & indices["metric"].eq("rdc"), "value"] += 1e-8
    assert set(weight_sweep(indices)["winner"]) == {"tie"}
