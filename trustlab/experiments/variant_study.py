"""Do the choices that sources leave open change which method looks best?

Three kinds, all read from replies that are there already; no model is asked:

- which *formula* a name stands for (variants are methods of their own, beside a base);
- what counts as the *same meaning* (a judge of entailment);
- the *context* in which SAR weighs a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata

from trustlab.confidence import METHODS, select
from trustlab.entailment import Entailment, Pair
from trustlab.experiments.benchmark import Run, score
from trustlab.experiments.tables import JUDGED, KEYS
from trustlab.knowledge import normalise
from trustlab.meaning import Readers, with_meaning
from trustlab.metrics.best import chosen_in
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Draws,
    Metric,
    Rows,
    at_least,
    estimate,
    groups,
    measure,
    within,
)
from trustlab.metrics.paired import MIN_COVERAGE, corrected, paired_differences
from trustlab.metrics.schema import table
from trustlab.metrics.ties import tied
from trustlab.records import View
from trustlab.semantics import Encoder

RELEVANT = {"relevance", "sample_relevance"}
"""Needs that are read in a context."""
CONTEXTS = ("answer", "full")
DEFAULT = "default"
RULE, CONTEXT, FORMULA = "same meaning", "context", "formula"
AUROC = within(RANKING["auroc"][0])
Column = tuple[str, str]
"""A method and the option by which it was read."""


class Choice(NamedTuple):
    """An option that is chosen instead of the default: for all methods, or as one's formula."""

    choice: str
    option: str
    method: str = ""


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
      ``option`` ("default", a rule's name, or a context). Rules compare bare diagnoses.
    - ``views``: those that the run showed. ``ValueError`` where one is lacking, for rules of one
      name, or for an unknown context.
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
    methods, encoder = select(run.parameters["methods"]), encoder or Encoder()
    again: list[tuple[Choice, set[str], Readers, dict[str, Any]]] = [
        (Choice(RULE, r.name), JUDGED, Readers(encoder, None, r), {"entailment_context": "answer"})
        for r in rules
        if r.name != run.parameters["entailment"]["name"]
    ]
    again += [
        (Choice(CONTEXT, c), RELEVANT, Readers.of(encoder), {"relevance_context": c})
        for c in contexts
        if c != run.parameters["relevance_context"]
    ]
    parts = [run.confidence.assign(choice="", option=DEFAULT)]
    for choice, family, readers, changed in again:
        if changing := [m for m in methods if family.intersection(m.needs)]:
            needs = {need for m in changing for need in m.needs} & family
            fresh: Any = {"parameters": replace(run.generations[0].parameters, **changed)}
            given = [replace(g, **fresh, **dict.fromkeys(needs)) for g in run.generations]
            made = score(of_run, with_meaning(given, of_run, needs, readers), changing)
            parts.append(made.assign(choice=choice.choice, option=choice.option))
    return pd.concat(parts, ignore_index=True)


def differences(answers: pd.DataFrame, read: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """AUROC within level under each choice against the default: ``paired_differences`` by choice.

    A formula stands under its base's name with ``option`` its own; rules and contexts under the
    method that they change. ``how``: n_draws, seed and min_per_class.
    """
    plain: Any = read[read["option"] == DEFAULT]
    variants = forms(list(dict.fromkeys(plain["method"])))
    parts = [
        plain[plain["method"] == name].assign(method=base, option=name, choice=FORMULA)
        for base, names in variants.items()
        for name in names
    ]
    every = pd.concat([read, *parts], ignore_index=True)
    every = every.merge(answers[[*KEYS, "correct"]], on=KEYS, how="left", validate="many_to_one")
    varied: Any = every[every["method"].isin(every.loc[every["option"] != DEFAULT, "method"])]
    found = corrected([], ["model", "dataset", "method", "option", "level"], ["n_rarer"])
    if len(varied):
        found = paired_differences(varied, DEFAULT, by="option", metrics=["auroc"], **how)
    choice = dict(zip(every["option"], every["choice"], strict=True))
    found = found.assign(choice=[choice[option] for option in found["option"]])
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
    - A method with values for less than ``MIN_COVERAGE`` of the graded answers would cost all the
      others their rows and is left out: its ``missing`` says so; one without any has no row.
      Below ``min_per_class`` correct or wrong answers ``missing`` names who has fewest values.

    Choices, metric ``kendall_tau`` between the default's ranking and that with one option changed:

    - ``moved`` is the method that moves furthest, ``by`` so many ranks (negative: back); the last
      row, choice "all", has the lowest tau over the combinations.
    - A variant or reading with too few values is left out: ``missing`` names it, and there is no
      value where nothing of the option remains.
    """
    lines: tuple[list, list] = [], []
    for label, part in groups(read, ["model", "dataset"]):
        mine: Any = answers[answers[list(label)].eq(list(label.values())).all(axis=1)]
        draws = Draws.of(mine["case_id"].to_numpy(), n_draws, seed)
        for into, found in zip(lines, _stability(mine, part, draws, min_per_class), strict=True):
            into += [label | line for line in found]
    more, keys = ["chosen_in", "lowest", "highest", "n_rarer"], ["model", "dataset"]
    ranks = table(lines[0], [*keys, "method"], more)
    return ranks, table(lines[1], [*keys, "choice", "method", "option"], ["moved", "by"])


def _stability(
    answers: pd.DataFrame, read: pd.DataFrame, draws: Draws, least: int
) -> tuple[list[dict], list[dict]]:
    known: Any = read[read["confidence"].notna()]
    row = ["case_id", "level"]
    every = known.pivot(index=row, columns=["method", "option"], values="confidence")
    right: Any = answers.set_index(row)["correct"].reindex(every.index).dropna().astype(float)
    every = every.loc[right.index]  # a row an answer that any can score
    n_values: dict[Column, int] = every.notna().sum().to_dict()
    few = [c for c, n in n_values.items() if n < MIN_COVERAGE * len(every)]
    lost = {c: f"a value for only {n_values[c]} of {len(every)} answers" for c in few}
    kept = [c for c in n_values if c not in lost and (c[0], DEFAULT) not in lost]
    shared = every[kept].notna().all(axis=1) & bool(kept)
    kinds = right[shared].groupby(level="level").transform("nunique")  # of one: no AUROC there
    shared &= kinds.reindex(shared.index, fill_value=0).gt(1)
    asked = right.to_frame("correct").reset_index()
    rows = Rows(asked, shared.to_numpy(bool), draws)

    plain = [m for m in known["method"].unique() if (m, DEFAULT) in kept]
    gone = [m for m, option in lost if option == DEFAULT]
    of_all = forms([*plain, *gone])
    formulas = {v: m for m, variants in of_all.items() if m in plain for v in variants}
    own = [m for m in plain + gone if m not in formulas and METHODS[m].family != "baseline"]
    bases = [m for m in own if m in plain]
    left_out = {m: lost[m, DEFAULT] for m in own if m in gone}
    withheld = at_least(least)(rows)
    if withheld or not bases:
        fewest = min(kept, key=lambda c: n_values[c], default=None)
        if fewest and n_values[fewest] < len(every):
            withheld += f"; fewest values: {fewest[0]} ({n_values[fewest]} of {len(every)})"
        return list(_withheld(rows, dict.fromkeys(bases, withheld) | left_out)), []

    each = {c: replace(rows, asked=asked.assign(confidence=every[c].to_numpy())) for c in kept}
    order = _Order(bases, {c: float(column.drawn(AUROC)[0]) for c, column in each.items()})
    options = read.loc[read["choice"] != "", ["choice", "option"]].drop_duplicates()
    choices = [Choice(*map(str, pair)) for pair in options.to_numpy()]
    choices += [Choice(FORMULA, v, m) for v, m in formulas.items() if m in bases]
    names = {name for column in kept for name in column}
    held = [c for c in choices if c.option in names]
    changes = []
    for c in choices:
        without = [m for m, o in lost if o == c.option and (m, DEFAULT) in order.value]
        parts = "; ".join(f"without {m}: {lost[m, c.option]}" for m in without)
        missing = lost.get((c.option, DEFAULT), parts)
        moved = order.moved(order.under(c)) if c in held or not missing else {"moved": ""}
        changes.append({**c._asdict(), "missing": missing, **moved})
    combined = order.combinations(held)
    worst = min((order.moved(other) for other in combined), key=lambda moved: moved["value"])
    last = Choice("all", f"lowest of {len(combined)} combinations")
    changes.append({**last._asdict(), "missing": "", **worst})
    counts = {"n": len(rows), "n_cases": rows.n_cases, "n_missing": len(asked) - len(rows)}
    ranks = _ranks({m: each[m, DEFAULT] for m in bases}, combined)
    told = [{"metric": "kendall_tau", **counts, **change} for change in changes]
    return [*ranks, *_withheld(rows, left_out)], told


@dataclass(frozen=True)
class _Order:
    """AUROC of the columns, and the methods that are ordered by it."""

    bases: list[str]
    value: Mapping[Column, float]

    def under(self, *choices: Choice) -> np.ndarray:
        """AUROC of each base; what the choices do not touch keeps its default."""
        formula = {c.method: c.option for c in choices if c.method}
        options = [c.option for c in choices] + [DEFAULT]
        names = (formula.get(base, base) for base in self.bases)
        columns = (next((m, o) for o in options if (m, o) in self.value) for m in names)
        return np.array([self.value[column] for column in columns])

    def combinations(self, choices: Sequence[Choice]) -> np.ndarray:
        """AUROC of the bases under every combination of rule, context and formulas."""
        kinds = dict.fromkeys([(RULE, ""), (CONTEXT, ""), *((c.choice, c.method) for c in choices)])
        each = ([None, *(c for c in choices if (c.choice, c.method) == kind)] for kind in kinds)
        return np.array([self.under(*filter(None, one)) for one in product(*each)])

    def moved(self, other: np.ndarray) -> dict[str, Any]:
        """Kendall's tau-b with the default's ranking, and the method whose rank changes most."""
        default = tied(self.under())
        step = rankdata(-default) - rankdata(-tied(other))
        furthest = int(np.argmax(np.abs(step)))
        tau: Any = kendalltau(default, tied(other))[0] if len(step) > 1 else np.nan
        who = self.bases[furthest] if step[furthest] else ""
        return {"value": float(tau), "moved": who, "by": float(step[furthest])}


def _ranks(each: Mapping[str, Rows], combined: np.ndarray) -> Iterator[dict[str, Any]]:
    """Rank and AUROC of each base, the best first; ``combined``: AUROC (combinations, bases)."""
    drawn = np.stack([rows.drawn(AUROC) for rows in each.values()])
    ranked, elsewhere = (rankdata(-tied(x), axis=1).T for x in (drawn.T, combined))
    first = chosen_in(drawn[:, 1:])
    for i in np.argsort(ranked[:, 0], kind="stable"):
        method, rows = list(each.items())[i]
        rank = estimate(rows, Metric(lambda _, i=i: ranked[i], widthless=True))
        rank["chosen_in"] = first[i] if rank["low"] == rank["low"] else np.nan
        rank |= {"lowest": elsewhere[i].min(), "highest": elsewhere[i].max()}
        yield {"method": method, "metric": "rank", **rank}
        yield {"method": method, "metric": "auroc", **estimate(rows, AUROC)}


def _withheld(rows: Rows, why: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Methods' rank and AUROC, without a value."""
    for method, reason in why.items():
        metric = Metric(AUROC, lambda _, reason=reason: reason)
        both = {"rank": metric, "auroc": metric}
        yield from measure([({"method": method}, replace(rows, none=reason))], both)
