"""Do the choices that sources leave open change which method looks best? Everything from replies that are there already.

Three kinds of choice: which *formula* a name stands for (variants are methods of their own, beside a base), what counts as the
*same meaning* (a judge of entailment), and the *context* in which SAR weighs a token. No model is asked.
"""

# pandas' types leave open what a selection gives.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata

from trustlab.confidence import METHODS, Method, select
from trustlab.entailment import Entailment, Pair
from trustlab.experiments.benchmark import Run, score
from trustlab.experiments.tables import JUDGED, KEYS
from trustlab.knowledge import normalise
from trustlab.meaning import Readers, with_meaning
from trustlab.metrics.estimate import TOO_FEW, case_weights, enough_cases, percentile_interval
from trustlab.metrics.paired import DIFFERENCE, MIN_COVERAGE, paired_differences, within_level
from trustlab.metrics.schema import LINE
from trustlab.metrics.ties import tied
from trustlab.records import View
from trustlab.semantics import Encoder

RELEVANT = {"relevance", "sample_relevance"}
"""Needs that are read in a context."""
CONTEXTS = ("answer", "full")
DEFAULT = "default"
RANKS = ["model", "dataset", "method", "auroc", "rank", "low", "high", "first", "lowest", "highest"]
RANKS += ["n", "n_cases", "n_rarer", "missing"]
CHANGES = ["model", "dataset", "choice", "method", "option", "tau", "moved", "by", "missing"]


class ExactEntailment:
    """Two diagnoses mean the same where their words are the same, without case and punctuation; else they contradict."""

    name, revision, stand_in = "exact strings", "exact strings", True

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3), each 0 or 1."""
        return _certain([normalise(a) == normalise(b) for a, b in pairs])


class CosineEntailment:
    """Two diagnoses mean the same where a sentence encoder puts them at ``threshold`` or closer (cosine); else they contradict.

    Raises ``ValueError`` for a threshold outside -1 to 1.
    """

    stand_in = True

    def __init__(self, encoder: Encoder | None = None, threshold: float = 0.85) -> None:
        if not -1 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold!r}; allowed is a cosine, -1 to 1")
        self.encoder, self.threshold, self.name = encoder or Encoder(), threshold, f"cosine {threshold:g}"

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{self.name} of {self.encoder.revision}"

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3), each 0 or 1."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        if not texts:
            return np.zeros((0, 3))
        vectors, at = self.encoder.encode(texts), {text: i for i, text in enumerate(texts)}
        return _certain([float(vectors[at[a]] @ vectors[at[b]]) >= self.threshold for a, b in pairs])


def _certain(same: Sequence[bool]) -> np.ndarray:
    return np.array([[yes, 0, not yes] for yes in same], dtype=np.float64).reshape(len(same), 3)


def forms(methods: Sequence[str]) -> dict[str, list[str]]:
    """Base method -> its variants, of those in ``methods``, by the equation that both are registered with."""
    equation = {m: METHODS[m].equation for m in methods}
    bases = {e: m for m, e in equation.items() if e and not e.endswith(" (variant)")}
    found: dict[str, list[str]] = {}
    for m, e in equation.items():
        if e.endswith(" (variant)") and (base := bases.get(e.removesuffix(" (variant)"))):
            found.setdefault(base, []).append(m)
    return found


def readings(
    run: Run,
    views: Sequence[View],
    rules: Sequence[Entailment],
    contexts: Sequence[str] = CONTEXTS,
    encoder: Encoder | None = None,
) -> pd.DataFrame:
    """The run's confidences, and again what reads meaning, under each rule for "same meaning" and each context of SAR.

    The columns of ``run.confidence`` and ``choice`` ('', "same meaning" or "context") and ``option`` ("default",
    a rule's name, or a context). ``views`` are those that the run showed. Raises ``ValueError`` for a case and level that
    it did not show, for rules of one name, or for an unknown context.
    """
    shown = {(v.case.case_id, v.level): v for v in views}
    if strange := [(g.case_id, g.level) for g in run.generations if (g.case_id, g.level) not in shown]:
        raise ValueError(f"views lack {strange[0]}; received {len(shown)} of them")
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names) or not set(contexts) <= set(CONTEXTS):
        raise ValueError(f"rules need a name each and contexts are {CONTEXTS}; received {names} and {list(contexts)}")
    of_run = [shown[g.case_id, g.level] for g in run.generations]
    methods, used = select(run.parameters["methods"]), run.parameters["entailment"]["name"]
    encoder = encoder or Encoder()
    parts = [run.confidence.assign(choice="", option=DEFAULT)]
    judged, weighed = ([m for m in methods if set(m.needs) & needs] for needs in (JUDGED, RELEVANT))
    for rule in rules if judged else ():
        if rule.name != used:
            parts.append(
                _read_again(run, of_run, judged, Readers(encoder, None, rule)).assign(choice="same meaning", option=rule.name)
            )
    for context in contexts if weighed else ():
        if context != run.parameters["relevance_context"]:
            made = _read_again(run, of_run, weighed, Readers.of(encoder), context)
            parts.append(made.assign(choice="context", option=context))
    return pd.concat(parts, ignore_index=True)


def _read_again(
    run: Run, views: Sequence[View], methods: Sequence[Method], readers: Readers, context: str | None = None
) -> pd.DataFrame:
    """The methods' confidences after other readers; a rule about bare diagnoses compares bare diagnoses."""
    values = replace(
        run.generations[0].parameters, **({"relevance_context": context} if context else {"entailment_context": "answer"})
    )
    changed = JUDGED if context is None else RELEVANT
    needs = {need for m in methods for need in m.needs} & changed
    blank = {need: None for need in needs}
    given = [replace(g, parameters=values, **blank) for g in run.generations]
    return score(views, with_meaning(given, views, needs, readers), methods)


def differences(
    answers: pd.DataFrame, read: pd.DataFrame, n_draws: int = 2000, seed: int = 0, min_per_class: int = 10
) -> pd.DataFrame:
    """AUROC within level under each choice against the default: the rows of ``paired_differences``, and ``choice``.

    A formula stands under its base's name with ``option`` its own; rules and contexts under the method that they change.
    """
    plain = read[read["option"] == DEFAULT]
    parts = [read]
    for base, variants in forms(list(dict.fromkeys(plain["method"]))).items():
        for name in variants:
            parts.append(plain[plain["method"] == name].assign(method=base, option=name, choice="formula"))
    table = pd.concat(parts, ignore_index=True).merge(answers[[*KEYS, "correct"]], on=KEYS, how="left", validate="many_to_one")
    varied = set(table.loc[table["option"] != DEFAULT, "method"])
    if not varied:
        return pd.DataFrame(columns=pd.Index(["model", "dataset", "method", "option", "level", *LINE, *DIFFERENCE, "n_rarer", "choice"]))
    settings = {"metrics": ["auroc"], "n_draws": n_draws, "seed": seed, "min_per_class": min_per_class}
    found = paired_differences(table[table["method"].isin(varied)], DEFAULT, by="option", **settings)
    choice = table.drop_duplicates("option").set_index("option")["choice"]
    return found[found["level"] == "within"].assign(choice=found["option"].map(choice)).reset_index(drop=True)


def rank_stability(
    answers: pd.DataFrame, read: pd.DataFrame, n_draws: int = 2000, seed: int = 0, min_per_class: int = 10
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How firm is the order of the methods? A table of ranks, a row a method, and one of choices, a row an option.

    Base methods are ranked by AUROC within level, 1 is best, ties share the mean rank, on the ``n``
    rows where everything compared has a value and whose level has both right and wrong answers,
    ``n_rarer`` of the rarer kind. ``low`` and ``high`` bound 95 % of a method's ranks, and
    ``first`` is its share of first places (ties shared), when cases are drawn anew; ``lowest`` and
    ``highest`` are its ranks over every combination of rule, context and formulas. In the second
    table ``tau`` is Kendall's between the default's ranking and that with one option changed, and
    ``moved`` the method that moves furthest, ``by`` so many ranks (negative: back); its last row,
    choice "all", has the lowest tau over the combinations. A method with values for less than
    ``MIN_COVERAGE`` of the graded answers is left out, else it would cost all the others their
    rows: it keeps a row without a rank, whose ``missing`` says so. So is a method's variant or
    reading by another rule or context, which ``missing`` of the second table names, with ``tau`` NaN
    where nothing of the option remains. Methods without any value have no row. Withheld below
    ``min_per_class`` correct or wrong answers, with the method that has fewest values named.
    """
    ranks, changes = [], []
    for (model, dataset), part in read.groupby(["model", "dataset"], sort=False):
        label = {"model": model, "dataset": dataset}
        mine = answers[(answers["model"] == model) & (answers["dataset"] == dataset)]
        of_ranks, of_changes = _stability(mine, part, n_draws, seed, max(min_per_class, 1))
        ranks += [{**label, **row} for row in of_ranks]
        changes += [{**label, **row} for row in of_changes]
    return pd.DataFrame(ranks, columns=pd.Index(RANKS)), pd.DataFrame(changes, columns=pd.Index(CHANGES))


def _stability(answers: pd.DataFrame, read: pd.DataFrame, n_draws: int, seed: int, least: int) -> tuple[list[dict], list[dict]]:
    known = read[read["confidence"].notna()]
    every_row = known.pivot(index=["case_id", "level"], columns=["method", "option"], values="confidence")
    right = answers.set_index(["case_id", "level"])["correct"].reindex(every_row.index).dropna()
    every_row = every_row.loc[right.index]
    wide, lost = _covered(every_row)
    correct = right.loc[wide.index].astype(float)
    if len(wide):  # a level of one kind alone is no part of an AUROC within level
        mixed = correct.groupby(level="level").transform("nunique") > 1
        wide, correct = wide[mixed], correct[mixed]
    correct = correct.to_numpy()
    rarer = int(min(correct.sum(), len(correct) - correct.sum()))
    plain = [m for m in dict.fromkeys(known["method"]) if (m, DEFAULT) in wide]
    of, of_all = forms(plain), forms([*plain, *(m for m, option in lost if option == DEFAULT)])
    bases = [m for m in plain if not any(m in variants for variants in of.values()) and METHODS[m].family != "baseline"]
    variants_of_bases = {v for m in bases for v in of_all.get(m, [])}
    gone = [m for m, o in lost if o == DEFAULT and m not in variants_of_bases and METHODS[m].family != "baseline"]
    case, level = (wide.index.get_level_values(name).to_numpy() for name in ("case_id", "level"))
    counts = {"n": len(wide), "n_cases": len(np.unique(case)), "n_rarer": rarer}
    left_out = [{"method": m, **counts, "missing": lost[m, DEFAULT]} for m in gone]
    if not bases:
        return left_out, []
    if rarer < least:
        why = f"fewer than {least} correct or wrong{_costliest(every_row[wide.columns])}"
        return [*({"method": m, **counts, "missing": why} for m in bases), *left_out], []
    every = np.unique(answers["case_id"])
    draws = np.ascontiguousarray(case_weights(every, n_draws, seed).T)[np.searchsorted(every, case)].T
    made = {key: within_level(level.astype(int), correct, wide[key].to_numpy(), draws) for key in wide.columns}
    value = {key: found[0] for key, found in made.items()}
    default = np.array([value[m, DEFAULT] for m in bases])
    rank = rankdata(-tied(default))
    options = {o: c for o, c in read[["option", "choice"]].drop_duplicates().itertuples(index=False) if c}
    held = {o: c for o, c in options.items() if o in wide.columns.get_level_values("option")}
    single = [(c, "", o, _chosen(bases, value, **{c.replace(" ", "_"): o})) for o, c in options.items()]
    single += [
        ("formula", m, v, _chosen(bases, value, formula={m: v})) for m, variants in of.items() if m in bases for v in variants
    ]
    changes = [{"choice": c, "method": m, "option": o, **_moved(bases, default, other)} for c, m, o, other in single]
    for change in changes:
        without = {m: why for (m, o), why in lost.items() if o == change["option"] and (m, DEFAULT) in wide}
        change["missing"] = "; ".join(f"without {m}: {why}" for m, why in without.items())
        if without and change["option"] not in held:
            change |= {"tau": float("nan"), "moved": "", "by": float("nan")}
    for m in bases:
        of_base = {v: lost[v, DEFAULT] for v in of_all.get(m, []) if (v, DEFAULT) in lost}
        changes += [{"choice": "formula", "method": m, "option": v, "missing": why} for v, why in of_base.items()]
    all_of = np.array(list(_combinations(bases, value, of, held)))
    ranked = rankdata(-tied(all_of), axis=1)
    taus = [_tau(default, other) for other in all_of]
    worst = int(np.argmin(taus))
    last = {"choice": "all", "method": "", "option": f"lowest of {len(taus)} combinations"}
    changes.append({**last, **_moved(bases, default, all_of[worst]), "missing": ""})
    drawn = np.stack([made[m, DEFAULT][1] for m in bases], axis=1)
    again = np.where(np.isnan(drawn).any(axis=1, keepdims=True), np.nan, rankdata(-tied(drawn), axis=1))
    best = again == np.nanmin(again, axis=1, keepdims=True)
    first = np.nanmean(np.where(np.isnan(again), np.nan, best / best.sum(axis=1, keepdims=True).clip(1)), axis=0)
    firm = enough_cases(case)
    rows = []
    for i, m in enumerate(bases):
        low, high = percentile_interval(again[:, i]) if firm else (np.nan, np.nan)
        row = {"method": m, "auroc": default[i], "rank": rank[i], "low": low, "high": high, "first": first[i] if firm else np.nan}
        row |= {"lowest": ranked[:, i].min(), "highest": ranked[:, i].max(), **counts, "missing": "" if firm else TOO_FEW}
        rows.append(row)
    return [*sorted(rows, key=lambda row: row["rank"]), *left_out], changes


def _covered(every_row: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple[str, str], str]]:
    """The rows that all columns with enough values have, and (method, option) -> why left out, of the columns with too few.

    ``every_row`` has a column a (method, option) and a row an answer that any has. With a method's default go its options.
    """
    n_values: dict[Any, int] = every_row.notna().sum().to_dict()
    n = len(every_row)
    few = {key: f"a value for only {k} of {n} answers" for key, k in n_values.items() if k < MIN_COVERAGE * n}
    kept = [key for key in every_row.columns if key not in few and (key[0], DEFAULT) not in few]
    wide = every_row.loc[:, pd.MultiIndex.from_tuples(kept, names=every_row.columns.names)] if kept else every_row.iloc[:0, :0]
    return wide.dropna(), few


def _costliest(every_row: pd.DataFrame) -> str:
    """The method with fewest values, where any lacks one: in words for the end of a reason."""
    n_values: dict[Any, int] = every_row.notna().sum().to_dict()
    fewest = min(n_values, key=lambda key: n_values[key], default=None)
    if fewest is None or n_values[fewest] == len(every_row):
        return ""
    return f"; fewest values: {fewest[0]} ({n_values[fewest]} of {len(every_row)})"


def _chosen(
    bases: Sequence[str],
    value: Mapping[tuple[str, str], float],
    same_meaning: str = DEFAULT,
    context: str = DEFAULT,
    formula: Mapping[str, str] | None = None,
) -> np.ndarray:
    """AUROC of each base under a rule, a context and formulas; what a choice does not touch keeps its default, (bases,)."""
    found = []
    for base in bases:
        name = (formula or {}).get(base, base)
        options = (o for o in (same_meaning, context) if o != DEFAULT and (name, o) in value)
        found.append(value[name, next(options, DEFAULT)])
    return np.array(found)


def _combinations(
    bases: Sequence[str], value: Mapping[tuple[str, str], float], of: Mapping[str, Sequence[str]], options: Mapping[str, str]
) -> Iterator[np.ndarray]:
    """AUROC of the bases under every combination of rule, context and formulas."""
    rules, contexts = ([DEFAULT, *(o for o, c in options.items() if c == kind)] for kind in ("same meaning", "context"))
    varied = [m for m in of if m in bases]
    for rule, context, *picked in product(rules, contexts, *([m, *of[m]] for m in varied)):
        yield _chosen(bases, value, rule, context, dict(zip(varied, picked, strict=True)))


def _moved(bases: Sequence[str], default: np.ndarray, other: np.ndarray) -> dict:
    """Kendall's tau of two rankings and the method whose rank changes most; ``by`` is negative where it falls back."""
    step = rankdata(-tied(default)) - rankdata(-tied(other))
    furthest = int(np.argmax(np.abs(step)))
    return {"tau": _tau(default, other), "moved": bases[furthest] if step[furthest] else "", "by": float(step[furthest])}


def _tau(a: np.ndarray, b: np.ndarray) -> float:
    """Kendall's tau-b; NaN for fewer than two methods or where one side ranks nothing."""
    return float(kendalltau(tied(a), tied(b)).statistic) if len(a) > 1 else float("nan")
