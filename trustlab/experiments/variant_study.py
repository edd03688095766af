"""Do the choices that sources leave open change which method looks best?

Three kinds, all read from replies that are there already; no model is asked:

- which *formula* a name stands for (variants are methods of their own, beside a base);
- what counts as the *same meaning* (a judge of entailment);
- the *context* in which SAR weighs a token.
"""

# pandas' types leave open what a selection gives.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from trustlab.metrics.best import chosen_in
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import Draws, Metric, Rows, at_least, estimate, within
from trustlab.metrics.paired import MIN_COVERAGE, corrected, paired_differences
from trustlab.metrics.schema import table
from trustlab.metrics.ties import tied
from trustlab.records import View
from trustlab.semantics import Encoder

RELEVANT = {"relevance", "sample_relevance"}
"""Needs that are read in a context."""
CONTEXTS = ("answer", "full")
DEFAULT = "default"
AUROC = within(RANKING["auroc"][0])


class ExactEntailment:
    """Two diagnoses mean the same where their words do, without case and punctuation."""

    name, revision, stand_in = "exact strings", "exact strings", True

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3), 0 or 1."""
        return _certain([normalise(a) == normalise(b) for a, b in pairs])


class CosineEntailment:
    """Two diagnoses mean the same where an encoder puts them at ``threshold`` (cosine) or closer.

    Else they contradict. ``ValueError`` for a threshold outside -1 to 1.
    """

    stand_in = True

    def __init__(self, encoder: Encoder | None = None, threshold: float = 0.85) -> None:
        if not -1 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold!r}; allowed is a cosine, -1 to 1")
        self.encoder, self.threshold = encoder or Encoder(), threshold
        self.name = f"cosine {threshold:g}"

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{self.name} of {self.encoder.revision}"

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3), 0 or 1."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        if not texts:
            return np.zeros((0, 3))
        vectors, at = self.encoder.encode(texts), {text: i for i, text in enumerate(texts)}
        return _certain(
            [float(vectors[at[a]] @ vectors[at[b]]) >= self.threshold for a, b in pairs]
        )


def _certain(same: Sequence[bool]) -> np.ndarray:
    return np.array([[yes, 0, not yes] for yes in same], dtype=np.float64).reshape(len(same), 3)


def forms(methods: Sequence[str]) -> dict[str, list[str]]:
    """Base method -> its variants in ``methods``, by the equation that both are registered with."""
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
    """The run's confidences, and again what reads meaning, under each rule and each context of SAR.

    - The columns of ``run.confidence`` and ``choice`` ('', "same meaning" or "context") and
      ``option`` ("default", a rule's name, or a context). ``views``: those that the run showed.
    - ``ValueError`` for a case and level that it did not show, for rules of one name, or for an
      unknown context.
    """
    shown = {(v.case.case_id, v.level): v for v in views}
    strange = [(g.case_id, g.level) for g in run.generations if (g.case_id, g.level) not in shown]
    if strange:
        raise ValueError(f"views lack {strange[0]}; received {len(shown)} of them")
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names) or not set(contexts) <= set(CONTEXTS):
        received = f"{names} and {list(contexts)}"
        raise ValueError(f"rules need a name each and contexts are {CONTEXTS}; received {received}")
    of_run = [shown[g.case_id, g.level] for g in run.generations]
    methods, used = select(run.parameters["methods"]), run.parameters["entailment"]["name"]
    judged, weighed = ([m for m in methods if set(m.needs) & n] for n in (JUDGED, RELEVANT))
    encoder = encoder or Encoder()
    parts = [run.confidence.assign(choice="", option=DEFAULT)]
    for rule in rules if judged else ():
        if rule.name != used:
            made = _read_again(run, of_run, judged, Readers(encoder, None, rule))
            parts.append(made.assign(choice="same meaning", option=rule.name))
    for context in contexts if weighed else ():
        if context != run.parameters["relevance_context"]:
            made = _read_again(run, of_run, weighed, Readers.of(encoder), context)
            parts.append(made.assign(choice="context", option=context))
    return pd.concat(parts, ignore_index=True)


def _read_again(
    run: Run,
    views: Sequence[View],
    methods: Sequence[Method],
    readers: Readers,
    context: str | None = None,
) -> pd.DataFrame:
    """The methods' confidences after other readers; a rule about bare diagnoses compares those."""
    changed = {"relevance_context": context} if context else {"entailment_context": "answer"}
    values = replace(run.generations[0].parameters, **changed)
    needs = {need for m in methods for need in m.needs} & (RELEVANT if context else JUDGED)
    blank = dict.fromkeys(needs)
    given = [replace(g, parameters=values, **blank) for g in run.generations]
    return score(views, with_meaning(given, views, needs, readers), methods)


def differences(answers: pd.DataFrame, read: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """AUROC within level under each choice against the default: ``paired_differences`` by choice.

    A formula stands under its base's name with ``option`` its own; rules and contexts under the
    method that they change. ``how``: n_draws, seed and min_per_class.
    """
    plain = read[read["option"] == DEFAULT]
    parts = [read]
    for base, variants in forms(list(dict.fromkeys(plain["method"]))).items():
        for name in variants:
            mine = plain[plain["method"] == name]
            parts.append(mine.assign(method=base, option=name, choice="formula"))
    every = pd.concat(parts, ignore_index=True)
    every = every.merge(answers[[*KEYS, "correct"]], on=KEYS, how="left", validate="many_to_one")
    varied = every[every["method"].isin(every.loc[every["option"] != DEFAULT, "method"])]
    found = corrected([], ["model", "dataset", "method", "option", "level"], ["n_rarer"])
    if len(varied):
        found = paired_differences(varied, DEFAULT, by="option", metrics=["auroc"], **how)
    choice = every.drop_duplicates("option").set_index("option")["choice"]
    found = found.assign(choice=found["option"].map(choice))
    return found.query("level == 'within'").reset_index(drop=True)


def rank_stability(
    answers: pd.DataFrame,
    read: pd.DataFrame,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How firm is the order of the methods? A table of ranks, and one of choices.

    Ranks, metrics ``rank`` and ``auroc`` of each base method:

    - By AUROC within level, 1 is best, ties share the mean rank, on the ``n`` answers where
      everything compared has a value and whose level has both right and wrong answers.
    - ``low`` and ``high`` bound 95 % of a method's ranks, and ``chosen_in`` is its share of first
      places (ties shared), when cases are drawn anew; ``lowest`` and ``highest`` are its ranks
      over every combination of rule, context and formulas.
    - A method with values for less than ``MIN_COVERAGE`` of the graded answers is left out, else
      it would cost all the others their rows: its ``missing`` says so. Methods without any value
      have no row. Withheld below ``min_per_class`` correct or wrong answers, with the method that
      has fewest values named.

    Choices, metric ``kendall_tau`` between the default's ranking and that with one option changed:

    - ``moved`` is the method that moves furthest, ``by`` so many ranks (negative: back); the last
      row, choice "all", has the lowest tau over the combinations.
    - A variant or reading with too few values is left out: ``missing`` names it, and there is no
      value where nothing of the option remains.
    """
    ranks, changes = [], []
    for key, part in read.groupby(["model", "dataset"], sort=False):
        label = dict(zip(["model", "dataset"], tuple(key), strict=True))
        mine = answers[answers[list(label)].eq(list(key)).all(axis=1)]
        draws = Draws.of(mine["case_id"].to_numpy(), n_draws, seed)
        of_ranks, of_changes = _stability(mine, part, draws, max(min_per_class, 1))
        ranks += [{**label, **row} for row in of_ranks]
        changes += [{**label, **row} for row in of_changes]
    more = ["chosen_in", "lowest", "highest", "n_rarer"]
    keys = ["model", "dataset", "choice", "method", "option"]
    return table(ranks, ["model", "dataset", "method"], more), table(changes, keys, ["moved", "by"])


Column = tuple[str, str]
"""A method and the option by which it was read."""


def _stability(
    answers: pd.DataFrame, read: pd.DataFrame, draws: Draws, least: int
) -> tuple[list[dict], list[dict]]:
    known = read[read["confidence"].notna()]
    row = ["case_id", "level"]
    every = known.pivot(index=row, columns=["method", "option"], values="confidence")
    right = answers.set_index(row)["correct"].reindex(every.index).dropna().astype(float)
    every = every.loc[right.index]
    kept, lost = _covered(every)
    shared = every[kept].notna().all(axis=1) & bool(kept)
    kinds = right[shared].groupby(level="level").transform("nunique")  # of one: no AUROC there
    shared = shared & kinds.reindex(shared.index, fill_value=0).gt(1)
    asked = right.to_frame("correct").reset_index()
    rows = Rows(asked, shared.to_numpy(bool), draws)
    plain = [m for m in dict.fromkeys(known["method"]) if (m, DEFAULT) in kept]
    of, of_all = forms(plain), forms([*plain, *(m for m, o in lost if o == DEFAULT)])
    bases = [m for m in _methods(plain) if not any(m in variants for variants in of.values())]
    of_bases = [(m, v) for m in bases for v in of_all.get(m, [])]
    gone = _methods(m for m, o in lost if o == DEFAULT and m not in {v for _, v in of_bases})
    left_out = [line for m in gone for line in _withheld(rows, m, lost[m, DEFAULT])]
    if (few := at_least(least)(rows)) or not bases:
        why = few + _costliest(every[kept])
        return [*(line for m in bases for line in _withheld(rows, m, why)), *left_out], []
    each = {c: replace(rows, asked=asked.assign(confidence=every[c].to_numpy())) for c in kept}
    value = {c: float(of_column.drawn(AUROC)[0]) for c, of_column in each.items()}
    order = _Order(bases, value, {m: of[m] for m in of if m in bases})
    options = {o: c for o, c in read[["option", "choice"]].drop_duplicates().to_numpy() if c}
    changes = list(_changes(order, options, lost))
    for m, v in of_bases:
        if why := lost.get((v, DEFAULT)):
            changes.append({"choice": "formula", "method": m, "option": v, "missing": why})
    combined = order.combinations(options)
    worst = min((order.moved(other) for other in combined), key=lambda moved: moved["value"])
    last = f"lowest of {len(combined)} combinations"
    changes.append({"choice": "all", "method": "", "option": last, "missing": "", **worst})
    counts = {"n": len(rows), "n_cases": rows.n_cases, "n_missing": len(asked) - len(rows)}
    ranks = _ranks({m: each[m, DEFAULT] for m in bases}, combined)
    return [*ranks, *left_out], [{"metric": "kendall_tau", **counts, **c} for c in changes]


@dataclass(frozen=True)
class _Order:
    """AUROC of the base methods' columns, and the ``variants`` of bases."""

    bases: list[str]
    value: Mapping[Column, float]
    variants: Mapping[str, Sequence[str]]

    def under(self, *options: str, formula: Mapping[str, str] | None = None) -> np.ndarray:
        """AUROC of each base by formulas and options; what these do not touch keeps its default."""
        found = []
        for name in ((formula or {}).get(base, base) for base in self.bases):
            read = [o for o in options if o != DEFAULT and (name, o) in self.value]
            found.append(self.value[name, (read or [DEFAULT])[0]])
        return np.array(found)

    def combinations(self, options: Mapping[str, str]) -> np.ndarray:
        """AUROC of the bases under every combination of rule, context and formulas."""
        held = {o for _, o in self.value}
        rules, contexts = (
            [DEFAULT, *(o for o, c in options.items() if c == kind and o in held)]
            for kind in ("same meaning", "context")
        )
        formulas = product(*([m, *variants] for m, variants in self.variants.items()))
        every = product(rules, contexts, formulas)
        names = list(self.variants)
        return np.array(
            [self.under(r, c, formula=dict(zip(names, f, strict=True))) for r, c, f in every]
        )

    def moved(self, other: np.ndarray) -> dict[str, Any]:
        """Kendall's tau-b with the default's ranking, and the method whose rank changes most."""
        default = tied(self.under())
        step = rankdata(-default) - rankdata(-tied(other))
        furthest = int(np.argmax(np.abs(step)))
        tau = kendalltau(default, tied(other)).statistic if len(step) > 1 else np.nan
        who = self.bases[furthest] if step[furthest] else ""
        return {"value": float(tau), "moved": who, "by": float(step[furthest])}


def _changes(
    order: _Order, options: Mapping[str, str], lost: Mapping[Column, str]
) -> Iterator[dict[str, Any]]:
    """One option or formula changed at a time."""
    for option, choice in options.items():
        without = [m for m, o in lost if o == option and (m, DEFAULT) in order.value]
        missing = "; ".join(f"without {m}: {lost[m, option]}" for m in without)
        held = not without or option in {o for _, o in order.value}
        moved = order.moved(order.under(option)) if held else {"moved": ""}
        yield {"choice": choice, "method": "", "option": option, "missing": missing, **moved}
    for m, variants in order.variants.items():
        for v in variants:
            moved = order.moved(order.under(formula={m: v}))
            yield {"choice": "formula", "method": m, "option": v, "missing": "", **moved}


def _ranks(each: Mapping[str, Rows], combined: np.ndarray) -> Iterator[dict[str, Any]]:
    """Rank and AUROC of each base, the best first; ``combined``: AUROC (combinations, bases)."""
    methods, rows = list(each), list(each.values())
    drawn = np.stack([of.drawn(AUROC) for of in rows])
    ranked, elsewhere = (rankdata(-tied(x), axis=1).T for x in (drawn.T, combined))
    first = chosen_in(drawn[:, 1:])
    for i in np.argsort(ranked[:, 0], kind="stable"):
        rank = estimate(rows[i], Metric(lambda _, i=i: ranked[i], widthless=True))
        rank["chosen_in"] = first[i] if rank["low"] == rank["low"] else np.nan
        ends = {"lowest": elsewhere[i].min(), "highest": elsewhere[i].max()}
        yield {"method": methods[i], "metric": "rank", **ends, **rank}
        yield {"method": methods[i], "metric": "auroc", **estimate(rows[i], AUROC)}


def _withheld(rows: Rows, method: str, why: str) -> Iterator[dict[str, Any]]:
    """A method's rank and AUROC, without a value."""
    found = estimate(replace(rows, none=why), Metric(AUROC, lambda _: why))
    yield from ({"method": method, "metric": metric, **found} for metric in ("rank", "auroc"))


def _methods(names: Iterable[str]) -> list[str]:
    """Those that are no baseline."""
    return [m for m in names if METHODS[m].family != "baseline"]


def _covered(every: pd.DataFrame) -> tuple[list[Column], dict[Column, str]]:
    """The columns with enough values, and why the others are left out.

    ``every`` has a row an answer that any has. With a method's default go its options.
    """
    n_values: dict[Any, int] = every.notna().sum().to_dict()
    least = MIN_COVERAGE * len(every)
    few = {
        column: f"a value for only {n} of {len(every)} answers"
        for column, n in n_values.items()
        if n < least
    }
    return [c for c in every.columns if c not in few and (c[0], DEFAULT) not in few], few


def _costliest(every: pd.DataFrame) -> str:
    """The method with fewest values, where any lacks one: in words for the end of a reason."""
    n_values = every.notna().sum()
    if not len(n_values) or n_values.min() == len(every):
        return ""
    fewest: Any = n_values.idxmin()
    return f"; fewest values: {fewest[0]} ({n_values.min()} of {len(every)})"
