"""00: why confidence methods mislead, on a run's own answers, and beyond a model's world."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from trustlab import formatted
from trustlab.confidence import METHODS, PAPER
from trustlab.confidence.registry import label
from trustlab.datasets import load_cases
from trustlab.formatted import counted, plural
from trustlab.knowledge import Knowledge
from trustlab.metrics.estimate import NAN, Draws, Rows, grouped, groups, mean, measure
from trustlab.metrics.schema import table
from trustlab.metrics.ties import reaches
from trustlab.paths import DATA
from trustlab.records import SUPPORT_LEVELS, Case
from trustlab.run import Run, benchmark

KEYS = ["case_id", "level", "model"]
MIN_ANSWERS = 10
"""A mean of fewer answers is left out of a figure of means."""


def token_table(run: Run) -> pd.DataFrame:
    """One row a token of each greedy diagnosis whose token probabilities are known."""
    correct = run.answers.set_index(KEYS)["correct"].to_dict()
    rows = []
    for g in run.generations:
        trace = g.answer.trace if g.answer is not None else None
        if trace is not None and trace.logprobs is not None:
            key = (g.case_id, g.level, g.model)
            each = enumerate(np.exp(trace.logprobs), start=1)
            rows += [(*key, len(trace), i, float(p), correct[key]) for i, p in each]
    columns = [*KEYS, "n_tokens", "position", "probability", "correct"]
    return pd.DataFrame(rows, columns=columns).assign(n=1)


def wrong_by_length(tokens: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Of wrong answers, by number of tokens: mean probability of all (asp) and of the first."""
    wrong = tokens[tokens["correct"] == 0].groupby([*KEYS, "n_tokens"])["probability"]
    answers = wrong.agg(asp="mean", first="first").reset_index()
    return _group_means(answers, ["n_tokens"], ["asp", "first"], n_draws, seed)


def _group_means(
    rows: Any, by: list[str], columns: list[str], n_draws: int, seed: int
) -> pd.DataFrame:
    """The means of ``columns`` by group, ascending, of groups of at least 10 answers."""
    draws = Draws.of(rows["case_id"].to_numpy(), n_draws, seed)
    enough = rows.groupby(by)[columns[0]].transform("size") >= MIN_ANSWERS
    held = grouped(rows[enough].sort_values(by), by, columns[0], n_draws=draws)
    return table(measure(held, {name: mean(name) for name in columns}), by)


def _under_one_another(tables: dict[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """The tables with a column ``name`` saying which; those without rows add no columns' types."""
    columns = [name, *dict.fromkeys(c for part in tables.values() for c in part)]
    held = [part.assign(**{name: key}) for key, part in tables.items() if len(part)]
    found = pd.concat(held, ignore_index=True) if held else pd.DataFrame()
    return found.reindex(columns=columns)


def agreement_table(run: Run, knowledge: Knowledge) -> pd.DataFrame:
    """One row an answer: how common the answered condition is, and how far the samples agree.

    - ``prior``: the condition's share of all priors in ``knowledge``, NaN where the answer names
      none of its conditions; ``n``: 1 where there is a PoC, else 0.
    - ``ValueError`` for a run without PoC.
    """
    if "poc" not in set(run.confidence["method"]):
        raise ValueError("the run has no method 'poc', so its samples' agreement is unknown")
    whole = sum(c.prior for c in knowledge.conditions.values())
    found: Any = _with_confidence(run, ["poc"])
    said = found["answer"]
    named = [knowledge.condition_named(a) if isinstance(a, str) else None for a in said]
    found["prior"] = [NAN if c is None else c.prior / whole for c in named]
    found["n"] = found["poc"].notna().astype(int)
    return found[[*KEYS, "answer", "prior", "poc", "correct", "n"]].reset_index(drop=True)


def prior_means(
    table: pd.DataFrame, bins: int = 5, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Mean ``poc`` by fifths of the answers' prior, right and wrong answers apart.

    ``prior`` is the bin's mean over right and wrong, whose limits are the same. Equal priors share
    a bin; with no more than ``bins`` different priors each is one. From 10 answers on.
    """
    known: Any = table.dropna(subset=["prior", "poc"]).copy()
    if known["prior"].nunique() <= bins:
        place = known["prior"].rank(method="dense") - 1
    else:
        place = np.minimum(bins * (known["prior"].rank() - 0.5) / len(known), bins - 1)
    known["bin"] = place.astype(int)
    known["prior"] = known.groupby("bin")["prior"].transform("mean")
    found = _group_means(known, ["correct", "bin", "prior"], ["poc"], n_draws, seed)
    return found.sort_values("correct", ascending=False, kind="stable", ignore_index=True)


def consistent_table(
    run: Run, threshold: float = 0.8, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """By level, of the answers whose PoC reaches ``threshold``: four means, 0 to 1.

    ``shown``: the share of the case's statements told. ``n_answers``: all that could be had.
    """
    total = {(g.case_id, g.level, g.model): g.n_total for g in run.generations}
    answers = _with_confidence(run, ["poc", "medconf"]).rename(columns={"correct": "accuracy"})
    whole = [total[key] for key in answers[KEYS].itertuples(index=False, name=None)]
    answers["shown"] = answers["n_statements"] / whole
    columns, lines = ["accuracy", "poc", "medconf", "shown"], []
    for about, part in groups(answers, ["model"]):
        draws = Draws.of(part["case_id"].to_numpy(), n_draws, seed)
        for level, every in part.groupby("level"):
            had = every[every["accuracy"].notna()]
            chosen = had.loc[reaches(had["poc"], threshold), ["case_id", *columns]]
            about |= {"level": level, "threshold": threshold, "n_answers": len(had)}
            for name in columns:
                rows = Rows.of(chosen, name, draws, none="" if len(chosen) else "no answer")
                lines += measure([(about, rows)], {name: mean(name)})
    return table(lines, ["model", "level", "threshold"], ["n_answers"])


def moves_table(run: Run, case_id: str) -> pd.DataFrame:
    """Every method's confidence at every level for one case; ``ValueError`` for an unknown one."""
    mine = run.confidence[run.confidence["case_id"] == case_id]
    if not len(mine):
        known = ", ".join(run.answers["case_id"].unique()[:10])
        raise ValueError(f"the run has no case {case_id!r}; it has {known} ...")
    said = run.answers[[*KEYS, "answer", "correct"]]
    found: Any = mine.merge(said, on=KEYS, how="left", validate="many_to_one")
    found["family"] = [METHODS[m].family for m in found["method"]]
    found["scale"] = [METHODS[m].scale for m in found["method"]]
    found["n"] = found["confidence"].notna().astype(int)
    found["place"] = pd.factorize(found["method"])[0]
    found = found.sort_values(["model", "place", "level"], kind="stable", ignore_index=True)
    columns = ["case_id", "model", "level", "method", "family", "scale", "confidence", "n"]
    return found[[*columns, "missing", "answer", "correct"]]


def _with_confidence(run: Run, methods: list[str]) -> pd.DataFrame:
    """The answers, each of these methods' confidence beside them, NaN where missing."""
    wide = run.confidence.pivot(index=KEYS, columns="method", values="confidence")
    return run.answers.join(wide.reindex(columns=methods), on=KEYS)


def out_of_distribution_table(
    runs: Mapping[str, Run], methods: Sequence[str], n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """By ``set`` of cases: accuracy (``method`` ''), and each method's mean confidence, 0 to 1.

    One model and one level a run; each value counts the answers behind itself.
    """
    lines = []
    for name, run in runs.items():
        right = run.answers.assign(method="", confidence=run.answers["correct"].astype(float))
        columns = ["case_id", "method", "confidence", "missing"]
        values = pd.concat([right.assign(missing="no answer")[columns], run.confidence[columns]])
        for method in ("", *methods):
            held: Any = values[values["method"] == method]
            metric = {"mean_confidence" if method else "accuracy": mean("confidence")}
            about = {"set": name, "method": method}
            lines += measure([(about, Rows.of(held, "confidence", n_draws, seed))], metric)
    return table(lines, ["set", "method"])


def evidence_message(table: pd.DataFrame) -> str:
    """How many criteria of a table of evidence the patient's words support, and which quotations
    were never spoken."""
    if table.empty:
        return ""
    n = table["support_level"].value_counts()
    kinds = ", ".join(f"{n.get(kind, 0)} {kind}" for kind in SUPPORT_LEVELS)
    invented = int(table["quotation_occurs"].eq(False).sum())
    told = f"; {invented} of the quotations {plural(invented, 'was', 'were')} never spoken"
    return f"Of {counted(len(table), 'criterion', 'criteria')}: {kinds}{told if invented else ''}"


def moves_message(table: pd.DataFrame) -> str:
    """From which level on the answer about one patient is right, and which chances were highest
    while it was wrong."""
    right = table.dropna(subset="correct").drop_duplicates("level").set_index("level")["correct"]
    right = right.sort_index().eq(1)
    if right.empty:
        return ""
    last = right[~right].index.max() if not right.all() else 0
    if right.all() or not right.any():
        word = "right" if right.all() else "wrong"
        told = f"The answer is {word} at {'every' if len(right) > 1 else 'the one'} level shown"
    elif right[right.index > last].any():
        told = f"The answer is right from {right[right.index > last].index.min()} % on"
        told += ", and not always before" if (right[right.index < last]).any() else ""
    else:
        told = f"The answer is right at some levels, and wrong at {last} % of the statements"
    wrong: Any = table[table["correct"].eq(0) & table["scale"].eq("probability")]
    most = wrong.groupby("method")["confidence"].max().dropna().sort_values(ascending=False)
    if len(most):
        names = [f"{label(str(m))} {100 * p:.0f} %" for m, p in most.items()]
        told += f"\nHighest confidence in a wrong answer: {', '.join(names[:3])}"
        told += f"; lowest: {names[-1]}" if len(names) > 3 else ""
    return told


def consistent_message(table: pd.DataFrame) -> str:
    """At how many levels the samples agree more than the answers are right, beyond the interval."""
    wide: Any = table.pivot(index="level", columns="metric", values=["value", "low", "high"])
    agree, right = wide["value", "poc"], wide["value", "accuracy"]
    high = wide["high", "accuracy"].dropna()
    if agree.dropna().empty:
        return ""
    first = (
        f"Answers on which at least {100 * table['threshold'].iloc[0]:.0f} % of the samples agree"
    )
    if high.empty:
        return f"{first}: no level has an accuracy with an interval to hold agreement against"
    above = agree[high.index] > high
    told = f"{first} are right less often than they agree, beyond the interval, at {above.sum()}"
    told += f" of {counted(len(high), 'level')}"
    if above.any():
        level = (agree - right)[above[above].index].idxmax()
        line = {"value": right[level], "low": wide["low", "accuracy"][level], "high": high[level]}
        told += (
            f"\nFarthest apart at {level} % of the statements: agreement {100 * agree[level]:.0f}"
        )
        told += f" %, right {formatted.told(line, scale=100)}"
    return told


def beyond_message(table: pd.DataFrame) -> str:
    """How many answers are right in each set of cases, and how many mean confidences lie above
    that."""
    right = table[table["method"].eq("")].dropna(subset="value").set_index("set")
    sure = table[table["method"].ne("")].dropna(subset="low")
    if right.empty:
        return ""
    each = [f"{name} {formatted.told(line, scale=100)}" for name, line in right.iterrows()]
    told = f"Answers right: {', '.join(each)}"
    sure = sure[sure["set"].isin(right.index)]
    if sure.empty:
        return f"{told}\nNo mean confidence has an interval to hold against that"
    ends = right["high"].fillna(right["value"])  # a share of 0 or 1 has no interval
    over = sure["low"] > ends.loc[sure["set"]].to_numpy()
    n = over.groupby(sure["set"], sort=False).agg(["sum", "count"])
    counts = [f"{name} {line['sum']} of {line['count']}" for name, line in n.iterrows()]
    return f"{told}\nMean confidences whose interval lies above that: {', '.join(counts)}"


STARTERS = ("starter", "starter-dialogue", "starter-report")


def dry_run(cases: Sequence[Case], models: Sequence[Any], setup: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    methods = [*PAPER, "sequence_probability", "medconf_weighted"]
    benchmark(cases, models, methods, setup.levels, setup)
    patient = load_cases("starter-dialogue", n=1)  # about as long as the notebook's own
    benchmark(patient, models, methods, setup.levels, setup)
    unknown = {"dataset": "table", "path": DATA / "starter" / "unknown.jsonl"}
    for more in (*({"dataset": name} for name in STARTERS), unknown):
        some = setup.with_(**more).cases()
        benchmark(some, models, ["sequence_probability", "poc", "ce", "medconf"], [100], setup)
