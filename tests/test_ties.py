"""Near-ties are ties before anything is ranked, and only then: groups of one width, no chains."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from same.tables import read_file
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.records import random_records
from studies.calibration import reliability_table
from studies.trust_indices import weight_sweep
from trustlab.confidence import METHODS
from trustlab.folder.saved import table_in
from trustlab.measures import best_of_families, compare_methods, metrics_table
from trustlab.metrics import brier, ece, spearman_permutation_p, ties
from trustlab.metrics.calibration import cross_fitted
from trustlab.metrics.estimate import measure
from trustlab.metrics.paired import best_against, chosen_in
from trustlab.metrics.run_tables import rows_of_methods
from trustlab.metrics.selective import SELECTIVE
from trustlab.metrics.stopping import frontier, stop_turns
from trustlab.paths import FIGURES
from trustlab.records import PRODUCTS, Generation, Reply

pytestmark = pytest.mark.usefixtures("every_interval")


NOISE, ALLOWED = 1e-8, 1e-3
OF_SPREAD = 5e-7
DISCRETE = ("ecc", "eigv", "num_set")
NOT_RANKED = {"brier", "ece", "isotonic"}
LEVELS, N_CASES = (20, 60, 100), 48
KEYS = ["case_id", "dataset", "level", "model"]
SCALES = {name: method.scale for name, method in METHODS.items()}
MATRICES = ("similarity", "similarity_med", "entailment", "contradiction")
STATISTICS = ("logprobs", "prior_logprobs", "entropies", "renyi", "fisher_rao")


def shaken(made: Generation, noise: Callable[[Any], Any]) -> Generation:
    """A record with ``noise`` added to each probability, entropy and cosine."""

    def reply(of: Reply) -> Reply:
        parts = {name: getattr(of.trace, name) for name in STATISTICS}
        moved = {name: noise(part) for name, part in parts.items() if part is not None}
        return replace(of, trace=replace(of.trace, **moved)) if of.trace else of

    assert made.answer is not None and made.samples is not None
    parts = {name: noise(getattr(made, name)) for name in MATRICES}
    samples = tuple(map(reply, made.samples))
    return replace(made, answer=reply(made.answer), samples=samples, **parts)


def a_run(noise: Callable[[Any], Any]) -> SimpleNamespace:
    """Answers and every method's confidences on random records; two differ by ``noise`` alone."""
    rng, rows, answers = np.random.default_rng(0), [], []
    records = random_records(N_CASES * len(LEVELS), seed=5)
    for i, record in enumerate(records):
        made = shaken(record.generation, noise)
        label = {"case_id": f"c{i // 3:02d}", "dataset": "made", "level": LEVELS[i % 3]}
        right = int(rng.random() < 0.3 + 0.4 * METHODS["poc"].score(made))
        answers.append({**label, "answer": "Flu", "correct": right, "n_words": made.n_words})
        values = {name: float(method.score(made)) for name, method in METHODS.items()}
        rows += [{**label, "method": name, "confidence": x} for name, x in values.items()]
    confidence = pd.DataFrame(rows).assign(model="made", bound="", missing="")
    told = pd.DataFrame(answers).assign(model="made", missing="")
    return SimpleNamespace(answers=told, confidence=confidence)


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


def moved(one: pd.Series, other: pd.Series, allowed: float = ALLOWED) -> dict[Any, float]:
    """What ranks and differs by more than is allowed, and by how much; infinitely where only one
    is known."""
    one, other = one.align(other)
    apart: Any = (one - other).abs()
    apart[one.isna() ^ other.isna()] = np.inf
    far = apart[apart > allowed].to_dict()
    return {k: by for k, by in far.items() if not NOT_RANKED & set(k) and "bin" not in str(k)}


def test_noise_in_the_records_moves_no_metric_of_any_method() -> None:
    clean, rng = a_run(lambda values: values), np.random.default_rng(1)
    noisy = a_run(lambda values: values + rng.uniform(-NOISE, NOISE, np.shape(values)))
    assert not noisy.confidence["confidence"].equals(clean.confidence["confidence"])
    assert moved(every_metric(clean), every_metric(noisy)) == {}


def test_noise_in_the_published_confidences_moves_no_metric() -> None:
    """``1e-15`` is what another order of adding does, as in another processor's eigenvalues; the
    larger noise is held of discrete methods, whose values lie far apart."""
    folder = FIGURES / "reference" / "01_benchmark"
    one: dict[str, Any] = {n: read_file(table_in(folder, n)) for n in ("answers", "confidence")}
    one = {n: t[t["model"].eq("embedded") & t["dataset"].eq("starter")] for n, t in one.items()}
    run = SimpleNamespace(**one)
    given = run.confidence
    value, method = given["confidence"].to_numpy(float), given["method"]
    ends = given.groupby("method")["confidence"].quantile([0.05, 0.95]).unstack()
    spread = method.map(ends[0.95] - ends[0.05]).to_numpy(float)
    discrete = method.isin(DISCRETE).to_numpy()
    size = np.where(discrete, OF_SPREAD * spread, 1e-15 * np.maximum(1, np.abs(value)))
    shaken = value + size * np.random.default_rng(0).uniform(-1, 1, len(value))
    probable = method.map(SCALES).eq("probability").to_numpy()
    shaken = np.where(probable, np.clip(shaken, 0, 1), shaken)
    assert (shaken != value)[discrete].mean() > 0.9
    other = SimpleNamespace(answers=run.answers, confidence=given.assign(confidence=shaken))
    assert moved(every_metric(run), every_metric(other)) == {}


def test_noise_moves_no_threshold() -> None:
    sure = np.array([[0.6, 0.8, 1.0], [0.2, 0.8, 0.8]])
    less = sure - OF_SPREAD * np.array([[0, 1, 1], [1, 0, 1]])
    assert stop_turns(less, 0.8).tolist() == stop_turns(sure, 0.8).tolist() == [1, 1]
    assert stop_turns(less - 1e-5, 0.8).tolist() == [2, 2]
    found = [frontier(s, [[0, 1, 1], [1, 0, 1]], [[1, 3, 5]] * 2) for s in (sure, less)]
    np.testing.assert_allclose(found[1].thresholds, found[0].thresholds, atol=1e-6)
    np.testing.assert_array_equal(found[1].utterances, found[0].utterances)


def test_noise_chooses_no_best_and_orders_no_series() -> None:
    draws, cases, noise = np.full((3, 20), 0.7), np.arange(20), 1e-15
    draws[1] += noise
    found = best_against([0.7, 0.7 + noise, 0.6], draws, 0.5, np.full(20, 0.5), cases)
    assert (found["which"], found["tied"]) == (0, (1,))
    assert chosen_in(draws) == pytest.approx([1 / 3] * 3)
    accuracy = [0.2, 0.4, 0.5, 0.6, 0.7]
    equal, near = [0.1, 0.3, 0.3, 0.5, 0.6], [0.1, 0.3 + 2e-7, 0.3, 0.5, 0.6]
    assert spearman_permutation_p(accuracy, near) == spearman_permutation_p(accuracy, equal)


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


def a_law(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Right answers (n,) and a confidence in [0, 1] that knows of them, a third of it in steps."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, 2, n)
    sure = np.clip(rng.normal(0.45 + 0.1 * right, 0.15), 0.01, 0.99)
    return right, np.where(np.arange(n) % 3, sure, np.round(sure, 1))


def one_method(right: np.ndarray, sure: np.ndarray, method: str = "asp") -> Any:
    """A run of one method, three levels a case."""
    n = len(right)
    key = pd.DataFrame({"case_id": [f"c{i // 3:05d}" for i in range(n)], "dataset": "d"})
    key = key.assign(level=np.tile([20, 60, 100], n // 3), model="m")
    given = key.assign(method=method, confidence=sure, bound="", missing="")
    return SimpleNamespace(answers=key.assign(answer="Flu", correct=right), confidence=given)


def ranked_metrics(right: np.ndarray, sure: np.ndarray, method: str = "asp") -> Any:
    """Values and intervals of every rank metric."""
    run = one_method(right, sure, method)
    whole = metrics_table(run, {}, n_draws=40)
    whole = whole[whole["metric"].isin(["auroc", "auprc", "spearman"])]
    of_methods = rows_of_methods(run.answers, run.confidence, 40)
    area = pd.DataFrame(measure(((k, r) for k, r in of_methods if k["method"]), SELECTIVE))
    both = pd.concat([whole, area.assign(level="pooled")])
    assert len(both) == 2 * 5 + 1 + 2
    values: Any = both.set_index(["metric", "level"])[["value", "low", "high"]]
    return values.stack(future_stack=True)


@each("a, b", [(0, 1e-9), (0, 1e-3), (1, 1e-3), (0.3, 7.1), (1, 1e3)])
def test_every_rank_metric_is_unchanged_by_origin_and_unit(a: float, b: float) -> None:
    right, sure = a_law(300)
    sure[:40] += 3e-8 * np.arange(40)  # near-ties, alike in every unit
    assert moved(ranked_metrics(right, sure), ranked_metrics(right, a + b * sure), 1e-12) == {}


def test_one_far_value_ties_no_others() -> None:
    right, sure = a_law(300)
    far = np.where(np.arange(300) == right.argmax(), 1e9, sure)
    near = np.where(np.arange(300) == right.argmax(), 2.0, sure)
    before, after = (ranked_metrics(right, x).drop("spearman") for x in (near, far))  # of means
    assert moved(before, after, 1e-12) == {}


@each("flat", [False, True])
def test_noise_of_sixteen_units_in_the_last_place_moves_nothing(flat: bool) -> None:
    right, sure = a_law(300)
    sure = np.full(300, 0.7) if flat else 1 - 1e-9 * np.round(sure, 1)
    noisy = sure + np.spacing(0.7) * np.random.default_rng(1).integers(0, 17, 300)
    assert (noisy != sure).mean() > 0.9
    for method in ("asp", "ccp"):
        before, after = (ranked_metrics(right, x, method) for x in (sure, noisy))
        assert moved(before, after, 1e-12) == {}


def test_a_tie_is_of_one_width_and_never_a_chain() -> None:
    chain = 0.5 + 4e-7 * np.arange(50)
    values = np.concatenate([np.zeros(20), chain, np.ones(20), [np.nan]])
    found = ties.tied(values)
    assert np.isnan(found[-1]) and (found[:20] == 0).all() and (found[-21:-1] == 1).all()
    assert 0 < (values - found)[20:-1].max() <= 1e-6
    assert len(np.unique(found[20:70])) == 17  # of three each
    assert (ties.tied(found)[:-1] == found[:-1]).all()
    order = np.random.default_rng(0).permutation(len(values))
    np.testing.assert_array_equal(ties.tied(values[order]), found[order])


@each("method", ["sequence_probability", "ccp"])
def test_a_product_of_probabilities_is_compared_by_its_logarithm(method: str) -> None:
    rng = np.random.default_rng(2)
    right = rng.integers(0, 2, 300)
    sure = 10.0 ** -rng.uniform(0, 20 - 5 * right)
    found = ranked_metrics(right, sure, method)
    assert found["auroc", "pooled", "value"] == pytest.approx(roc_auc_score(right, sure), abs=1e-12)
    expected = average_precision_score(right, sure)
    assert found["auprc", "pooled", "value"] == pytest.approx(expected, abs=1e-12)
    sure[:5] = 0
    none = ranked_metrics(right, sure, method)
    assert none["auroc", "pooled", "value"] == pytest.approx(roc_auc_score(right, sure), abs=1e-12)


def test_products_are_what_squares_when_every_token_comes_twice() -> None:
    """Held against the register: a method whose confidence is a product must be named as one."""
    (made,) = (record.generation for record in random_records(1, seed=3))
    assert made.answer is not None and made.answer.trace is not None
    trace, kinds = made.answer.trace, made.alternative_entailment
    assert kinds is not None and trace.alternatives is not None
    tiled = {name: np.tile(getattr(trace, name), 2) for name in STATISTICS}
    alternatives = trace.alternatives * 2
    twice = replace(trace, tokens=trace.tokens * 2, alternatives=alternatives, **tiled)
    relevance = np.tile(np.asarray(made.relevance), 2)
    doubled = replace(
        made,
        answer=replace(made.answer, trace=twice),
        alternative_entailment=kinds * 2,
        relevance=relevance,
    )
    sure, again = ({n: m.score(g) for n, m in METHODS.items()} for g in (made, doubled))
    squared = {n for n, x in sure.items() if x**2 < x and np.isclose(again[n], x**2, atol=0)}
    assert squared == PRODUCTS


def test_nothing_is_tied_where_nothing_is_ranked() -> None:
    rng = np.random.default_rng(4)
    right, sure = rng.integers(0, 2, 200), 1e-7 * rng.random(200)
    assert brier(right, sure) == np.mean((sure - right) ** 2)
    found = cross_fitted(right, sure, np.arange(200), n_folds=2, seed=1)
    order = np.argsort(sure)
    assert len(np.unique(found)) > 3 and (np.diff(found[order]) != 0).any()
    bins = np.array_split(np.argsort(sure), 10)
    gaps = [abs((right[b] - sure[b]).sum()) for b in bins]
    assert ece(right, sure, bins=10) == pytest.approx(sum(gaps) / 200, abs=1e-12)


def test_a_comparison_ranks_each_method_as_its_own_table_does() -> None:
    """Ties are made once, whatever the levels and the rows that two methods share."""
    right, sure = a_law(300)
    level = np.tile([20, 60, 100], 100)
    sure = np.where(level == 60, sure * 1e-4, sure)  # its own spread would tie less
    near = sure + 4e-7 * np.random.default_rng(0).random(300)
    run, other = one_method(right, near, "asp"), one_method(right, 1 - sure, "msp")
    both = pd.concat([run.confidence, other.confidence])
    alone = metrics_table(run, {}, n_draws=20).query("metric == 'auroc'")
    pair = compare_methods(run.answers, both, "msp", n_draws=20)
    best = best_of_families(run.answers, both, "msp", n_draws=20)
    found = [dict(zip(t["level"], t["value"], strict=True)) for t in (alone, pair, best)]
    assert found[1] == {q: found[0][q] for q in ("pooled", "within")}
    assert found[2] == pytest.approx({"within": found[0]["within"]}, abs=1e-15)
