"""Tables to read: a run's facts, costs and coverage, and values with intervals as text."""

# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from trustlab.collect import SAMPLE_NEEDS, needs_of
from trustlab.confidence import METHODS
from trustlab.confidence.registry import label
from trustlab.metrics.coverage import NOT_HELD
from trustlab.metrics.estimate import MIN_CASES, groups, most_frequent
from trustlab.metrics.run_tables import KEYS
from trustlab.metrics.significance import cases_shown
from trustlab.parsing.counts import add, not_read

__all__ = ["KEYS", "cases_shown"]  # for notebooks
METRIC_NAMES = {"auroc": "AUROC", "auprc": "AUPRC"}
METRIC_NAMES |= {"cv_group": "CV group", "cv_sample": "CV sample"}


def pivoted(
    table: pd.DataFrame,
    index: Sequence[str],
    columns: str = "metric",
    digits: int = 2,
    counted: bool = False,
) -> pd.DataFrame:
    """``value [low, high]`` as text.

    A row for each of ``index``, a column for each of ``columns``, in the table's order. ``counted``
    adds each value's own ``n``.
    """
    if table.empty:
        return table[list(index)]
    ends = zip(table["value"], table["low"], table["high"], strict=True)
    cells = [with_interval(*each, digits) for each in ends]
    if counted:
        cells = [f"{cell}, n {n:,}" for cell, n in zip(cells, table["n"], strict=True)]
    wide = table.assign(shown=cells).pivot(index=list(index), columns=columns, values="shown")
    rows = table[list(index)].drop_duplicates()
    wide = wide[list(dict.fromkeys(table[columns]))].reset_index().rename_axis(columns=None)
    return rows.merge(wide, on=list(index), validate="one_to_one")


MAIN = {
    ("auroc", "pooled"): "AUROC, pooled",
    ("auroc", "within"): "AUROC, level-stratified",
    ("auprc", "pooled"): "AUPRC, pooled",
    ("pearson", "across"): "Pearson over levels",
    ("spearman", "across"): "Spearman over levels",
    ("brier", "pooled"): "Brier score",
    ("ece", "pooled"): "ECE (15 equal-mass bins)",
}
"""What a main table shows of ``metrics_table``: (metric, level) -> the column's name."""


def main_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """The metrics of a run to read and to print: a row a model, data set and method, with the
    answers behind it (``n``), in columns those of :data:`MAIN`; "–" where a value is withheld."""
    about = ["model", "dataset", "method"]
    kept: Any = metrics[metrics["method"].ne("") & metrics["n"].gt(0)]
    n = kept.groupby(about, sort=False)["n"].max().reset_index()
    named = [MAIN.get(pair, "") for pair in zip(kept["metric"], kept["level"], strict=True)]
    kept = kept.assign(column=named)
    wide = pivoted(kept[kept["column"].ne("")], about, "column")
    wide = wide.merge(n, on=about, validate="one_to_one")
    return wide[[*about, "n", *(c for c in MAIN.values() if c in wide)]].fillna("–")


def to_latex(table: pd.DataFrame, caption: str = "", label: str = "") -> str:
    """A table as LaTeX (``booktabs``): text escaped, numbers with three decimals, "–" for none."""
    how: dict[str, Any] = {"index": False, "escape": True, "na_rep": "–"}
    caption = re.sub(r"([&%$#_{}])", r"\\\1", caption)
    return table.to_latex(**how, float_format="%.3f", caption=caption or None, label=label or None)


def with_interval(value: float, low: float = np.nan, high: float = np.nan, digits: int = 2) -> str:
    """A value with its interval in brackets, where it has one; "–" where it is missing."""
    told, *ends = (f"{round(x, digits) + 0.0:.{digits}f}" for x in (value, low, high))  # no -0.0
    return "–" if pd.isna(value) else told if pd.isna(low) else f"{told} [{', '.join(ends)}]"


JUDGED = {"entailment", "contradiction", "alternative_entailment"}
"""Needs that a judge of entailment meets."""


def about(answers: pd.DataFrame) -> dict[str, Any]:
    """What a caption says of these answers: models and data sets by name, counts, the levels.

    ``n_failed`` of the answers could not be had or graded and count for nothing.
    """
    return {
        "model": list(answers["model"].unique()),
        "dataset": list(answers["dataset"].unique()),
        "n_cases": len(answers[["dataset", "case_id"]].drop_duplicates()),
        "n_rows": len(answers),
        "n_failed": int(answers["correct"].isna().to_numpy().sum()),
        "levels": [int(level) for level in np.unique(answers["level"])],
    }


def interval_words(table: pd.DataFrame, words: str) -> str:
    """What a caption says of the intervals of ``table``: ``words``, or why some or all lack one."""
    if "low" not in table or table["low"].notna().to_numpy().any():
        why = table["missing"].astype(str) if "missing" in table else pd.Series(dtype=str)
        return words + ", where it holds" * bool(why.str.contains(NOT_HELD, regex=False).any())
    return f"no intervals: fewer than {MIN_CASES} cases, values all alike, or none that holds"


def cost_table(calls: pd.DataFrame) -> pd.DataFrame:
    """What was asked, by purpose, each request once, whatever number of methods read it."""
    asked = calls.assign(n_requests=1).rename(columns={"n": "n_replies"})
    amounts = ["n_requests", "n_replies", "n_tokens_in", "n_tokens_out", "n_made", "n_cached"]
    return asked.groupby(["model", "purpose"], sort=False)[amounts].sum().reset_index()


def together(parameters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the parameters of several runs hold against their models: those that any of them names
    in :data:`NAMED`; ``served_by`` and ``replies_read`` summed."""
    parameters, read = list(parameters), {}
    served: dict[str, Counter[str]] = {}
    for one in parameters:
        for model, names in one.get("served_by", {}).items():
            served.setdefault(model, Counter()).update(names)
        add(read, one.get("replies_read", {}))
    named = {w: list(dict.fromkeys(m for p in parameters for m in p.get(w, ()))) for w in NAMED}
    part = [("shard", one["shard"]) for one in parameters if one.get("shard")][:1]
    counts = {model: dict(names) for model, names in served.items()}
    return named | {"served_by": counts, "replies_read": read} | dict(part)


NAMED = {
    "samples_alike": "all samples alike (temperature ignored?)",
    "own_temperature": "asked at its own temperature, since it takes no other: not greedily",
    "nearly_greedy": "asked at temperature 0.01 in place of 0, which it does not take",
    "small_library": "MedConf's library holds the 65 conditions of the starter data alone, other"
    " diagnoses have no passage: corpus=FOLDER takes MedRAG's snippets (docs/scale.md)",
    "unstructured": "its server does not hold replies to a schema: they were asked for in words",
}
"""What a run's parameters may name models for -> what is said of them."""


def remarks(
    parameters: Mapping[str, Any], methods: Iterable[str] | None = None
) -> dict[str, list[str]]:
    """Model -> what must be known of it before its numbers are believed, by a run's ``parameters``.

    - That all its samples are alike is said where one of ``methods`` (``None``: any) reads samples.
    - That it takes no temperature but its own; that its server holds no reply to a schema.
    - Where its server named more than one model, each is named with its number of replies.
    - Where more than 5 % of the replies of a purpose could not be read, how many.
    """
    found: dict[str, list[str]] = {}
    known = None if methods is None else [METHODS[m] for m in methods if m in METHODS]
    sampled = known is None or needs_of(known) & SAMPLE_NEEDS
    for what, words in NAMED.items():
        for model in parameters.get(what, ()) if sampled or what != "samples_alike" else ():
            found.setdefault(model, []).append(words)
    for model, served in parameters.get("served_by", {}).items():
        if len(served) > 1:
            told = ", ".join(f"{name} {n:,}" for name, n in served.items())
            words = f"the server changed its model during the run: {told} replies"
            found.setdefault(model, []).append(words)
    for model, purposes in parameters.get("replies_read", {}).items():
        found.setdefault(model, []).extend(not_read({model: purposes}))
    return {model: words for model, words in found.items() if words}


def remark_lines(
    parameters: Mapping[str, Any],
    methods: Iterable[str] | None = None,
    models: Collection[str] | None = None,
) -> list[str]:
    """A line a model of :func:`remarks`; of the models asked only ``models``, where they are
    given. First, where it is so, that these are a part of the cases."""
    others = () if models is None else set(parameters.get("models", ())) - set(models)
    shard = parameters.get("shard")
    part = [f"shard {shard}: these are a part of the cases"] if shard else []
    found = remarks(parameters, methods).items()
    return part + [f"{model}: {'; '.join(words)}" for model, words in found if model not in others]


def run_notes(
    parameters: Mapping[str, Any],
    methods: Iterable[str] | None = None,
    models: Collection[str] | None = None,
) -> list[str]:
    """What a caption says of a run: a stand-in among its readers, who replied in the model's place,
    and :func:`remark_lines`."""
    shown = [] if methods is None else list(dict.fromkeys(methods))
    notes, roles = [], {"panel": "doctors", "doctor": "asked by"}
    reading = ", ".join(label(m) for m in shown if _is_judged(m))
    if reading and parameters.get("entailment", {}).get("stand_in"):
        notes.append(f"entailment by a rule-based proxy, no NLI model: {reading}")
    if any(m in METHODS and METHODS[m].family == "medconf" for m in shown):
        roles["assessor"] = "MedConf by"
    for role, words in roles.items():
        if who := parameters.get(role):
            notes.append(f"{words} {', '.join(who)}")
    return [*notes, *remark_lines(parameters, shown if methods is not None else None, models)]


def coverage_table(
    confidence: pd.DataFrame, parameters: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """What each model gave of each method: a row a model and method.

    - ``status``: "computed" (every row has its value), "bound" (every row has one, some of them
      only a bound on it), "partly" (some rows have one) or "missing" (none has).
    - ``n`` values, ``n_bound`` bounds among them, of the kind ``bound``: "upper", "lower" or
      "lower, upper"; ``reasons`` of the ``n_missing`` rows without one, most frequent first.
    - ``family`` and ``access`` are '' for a method that is not registered.
    - ``judge``, with a run's ``parameters``: who judged entailment, where a method needs that:
      "rule-based proxy", or the name of an NLI model. ``note``: its :func:`remarks`, where there
      are any.
    """
    lines = []
    for line, part in groups(confidence, ["model", "method"]):
        name, known, had = line["method"], METHODS.get(line["method"]), part["confidence"].notna()
        bounds = part.loc[had, "bound"].astype(object).fillna("")
        bounds = bounds[bounds != ""]
        why = part.loc[~had, "missing"].astype(object).fillna("").replace("", "no reason given")
        some = "partly" if not had.all() else "bound" if len(bounds) else "computed"
        if parameters is not None:
            line["judge"] = parameters["entailment"]["name"] if _is_judged(name) else ""
            line["note"] = "; ".join(remarks(parameters, [name]).get(line["model"], ()))
        lines.append(
            line
            | {"family": known.family if known else "", "access": known.access if known else ""}
            | {"status": some if had.any() else "missing", "n": had.sum(), "n_bound": len(bounds)}
            | {"bound": ", ".join(sorted(bounds.unique())), "n_missing": len(why)}
            | {"reasons": "; ".join(f"{r} ({n})" for r, n in why.value_counts().items())}
        )
    columns = ["model", "method", "family", "access", "judge", "status", "n", "n_bound", "bound"]
    columns += ["n_missing", "reasons", *(["note"] if any(of.get("note") for of in lines) else [])]
    return pd.DataFrame(
        lines, columns=[c for c in columns if c != "judge" or parameters is not None]
    )


def _is_judged(method: str) -> bool:
    """Whether the method asks a judge of entailment."""
    return method in METHODS and bool(JUDGED & set(METHODS[method].needs))


def lacking_words(table: pd.DataFrame, confidence: pd.DataFrame) -> str:
    """Which models of a figure's ``table`` have no value of which of its methods, and why."""
    shown = set(table["method"])
    told: dict[tuple[str, str], list[str]] = {}
    for key, part in groups(confidence[confidence["method"].isin(shown)], ["model", "method"]):
        if part["confidence"].isna().all():
            why = (str(key["model"]), most_frequent(part))
            told.setdefault(why, []).append(label(str(key["method"])))
    words = [f"{who}: {', '.join(names)} ({why})" for (who, why), names in told.items()]
    return f"no value of {'; '.join(words)}" if words else ""


def differences_shown(
    table: pd.DataFrame, names: Sequence[str] = ("model", "method"), digits: int = 2
) -> pd.DataFrame:
    """A table of differences to read: ``names`` first, values, intervals as text, "–" for none.

    Of bests also the share of draws in which this one is best, and who was left out.
    """
    shown: Any = table[list(names)].reset_index(drop=True)
    if "metric" in shown:
        shown["metric"] = shown["metric"].replace(METRIC_NAMES)
    ends = table[["difference", "low", "high"]].itertuples(index=False)
    columns: dict[str, Any] = {
        "value": [with_interval(x, digits=digits) for x in table["value"]],
        str(table["against"].iloc[0]) if len(table) else "reference": [
            with_interval(x, digits=digits) for x in table["reference"]
        ],
        "difference": [with_interval(*each, digits) for each in ends],
        "p": list(map(p_shown, table["p"])),
        "p (Holm)": list(map(p_shown, table["p_holm"])),
    }
    if "chosen_in" in table:
        share = (100 * table["chosen_in"]).tolist()
        columns["best in"] = ["–" if pd.isna(x) else f"{x:.0f} %" for x in share]
        columns["left out"] = table["left_out"].to_numpy()
    columns |= {
        of: table[c].to_numpy() for c, of in (("n", "n"), ("n_cases", "cases")) if c in table
    }
    columns["cases for 80 % power"] = list(map(cases_shown, table["cases_needed"]))
    return shown.assign(**columns, note=table["missing"].to_numpy())


def counted(n: int, one: str) -> str:
    """'1 case', '2 cases'."""
    return f"{n:,} {one}{'s' * (n != 1)}"


def p_shown(p: float) -> str:
    """A p-value to read: three decimals, "< 0.001" below them, "–" where there is none."""
    return "–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
