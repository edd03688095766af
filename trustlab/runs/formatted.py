"""Makes tables for readers: values with intervals as text, facts of a run."""

# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import label
from trustlab.metrics.coverage import PAGE
from trustlab.metrics.estimate import MIN_CASES, groups, most_frequent
from trustlab.metrics.run_tables import KEYS
from trustlab.metrics.significance import cases_shown
from trustlab.parsing.counts import KINDS, Tally, add, each_count, too_few, totals
from trustlab.runs.collect import SAMPLE_NEEDS, needs_of
from trustlab.runs.gate import few_known

__all__ = ["KEYS", "cases_shown"]  # for notebooks
for_latex = partial(re.sub, r"([&%$#_{}])", r"\\\1")
"""Words -> the same with LaTeX's own characters escaped."""
METRIC_NAMES = {"auroc": "AUROC", "auprc": "AUPRC"}
METRIC_NAMES |= {"cv_group": "CV group", "cv_sample": "CV sample"}
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
COVERAGE = ["model", "method", "family", "access", "judge", "status", "n", "n_bound", "bound"]
COVERAGE += ["n_missing", "accuracy_with", "accuracy_without", "reasons", "note"]
JUDGED = {"entailment", "contradiction", "alternative_entailment"}
"""Needs that a judge of entailment meets."""
NAMED = {
    "samples_alike": "all samples alike (temperature ignored?)",
    "own_temperature": "asked at its own temperature, since it takes no other: not greedily",
    "cut_prompts": "counts as many tokens for a prompt as for a longer one that contains it: its"
    " server may cut prompts, or does not count them",
    "small_library": "MedConf's library holds the 65 conditions of the starter data alone, other"
    " diagnoses have no passage: corpus=FOLDER takes MedRAG's snippets (docs/scale.md)",
    "unstructured": "its server does not hold replies to a schema: they were asked for in words",
}
"""What a run's parameters may name models for -> what is said of them."""


HEADS = ("asked", "cut", "read", "read only as chat", "as an example", "placeholder", "unread")
MOST_UNREAD = 0.05  # where a larger share of a purpose is not read, the page begins with that


def with_interval(value: Any, low: Any = np.nan, high: Any = np.nan, digits: int = 2) -> str:
    """A value with its interval in brackets, where it has one; "–" where it is missing."""
    if pd.isna(value):
        return "–"
    known = (x for x in (value, low, high) if pd.notna(x))
    shown, *ends = (f"{round(x, digits) + 0.0:.{digits}f}" for x in known)  # no -0.0
    return f"{shown} [{', '.join(ends)}]" if ends else shown


def counted(n: int, one: str) -> str:
    """'1 case', '2 cases'."""
    return f"{n:,} {one}{'s' * (n != 1)}"


def p_shown(p: float) -> str:
    """A p-value to read: three decimals, "< 0.001" below them, "–" where there is none."""
    return "–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


# Tables


OWN_ROWS = "*: on answers of its own, not on those that the others share"


def pivoted(
    table: pd.DataFrame,
    index: Sequence[str],
    columns: str = "metric",
    digits: int = 2,
    counted: bool = False,
) -> pd.DataFrame:
    """``value [low, high]`` as text: a row for each of ``index``, a column for each of ``columns``,
    in the table's order; ``counted`` adds each value's own ``n``. A star (:data:`OWN_ROWS`) is at a
    value of ``own_rows``."""
    rows = table[list(index)].drop_duplicates()
    if table.empty:
        return rows
    cells = _intervals(table, ["value", "low", "high"], digits)
    if counted:
        cells = [f"{cell}, n {n:,}" for cell, n in zip(cells, table["n"], strict=True)]
    if "own_rows" in table:
        own = table["own_rows"].fillna(False).astype(bool)
        cells = [f"{cell} *" if star else cell for cell, star in zip(cells, own, strict=True)]
    wide = table.assign(shown=cells).pivot(index=list(index), columns=columns, values="shown")
    wide = wide[list(dict.fromkeys(table[columns]))].reset_index().rename_axis(columns=None)
    return rows.merge(wide, on=list(index), validate="one_to_one")


def _intervals(table: pd.DataFrame, columns: list[str], digits: int) -> list[str]:
    rows = table[columns].itertuples(index=False)
    return [with_interval(*row, digits=digits) for row in rows]


def main_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """A run's metrics as a readable table: one row for each model, data set and method, with its
    number of answers (``n``) and the columns of :data:`MAIN`; "–" if a value is withheld."""
    about = ["model", "dataset", "method"]
    kept: Any = metrics[metrics["method"].ne("") & metrics["n"].gt(0)]
    n = kept.groupby(about, sort=False)["n"].max().reset_index()
    named = [MAIN.get(pair, "") for pair in zip(kept["metric"], kept["level"], strict=True)]
    kept = kept.assign(column=named)
    wide = pivoted(kept[kept["column"].ne("")], about, "column")
    wide = wide.merge(n, on=about, validate="one_to_one")
    return wide[[*about, "n", *(c for c in MAIN.values() if c in wide)]].fillna("–")


def to_latex(table: pd.DataFrame, caption: str = "", label: str = "") -> str:
    """A table as LaTeX (``booktabs``): text escaped, numbers with 3 decimals, "–" if missing."""
    return table.to_latex(
        index=False,
        escape=True,
        na_rep="–",
        float_format="%.3f",
        caption=for_latex(caption) or None,
        label=label or None,
    )


def cost_table(calls: pd.DataFrame) -> pd.DataFrame:
    """What was asked, by purpose, each request once, whatever number of methods read it; tokens are
    "not counted" where the server does not count those of every request."""
    asked = calls.assign(n_requests=1).rename(columns={"n": "n_replies"})
    amounts = ["n_requests", "n_replies", "n_tokens_in", "n_tokens_out", "n_made", "n_cached"]
    spent = asked.groupby(["model", "purpose"], sort=False)[amounts].sum(skipna=False)
    return spent.astype(object).fillna("not counted").infer_objects().reset_index()


def coverage_table(
    confidence: pd.DataFrame,
    parameters: Mapping[str, Any] | None = None,
    answers: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """What each model gave of each method: a row a model and method.

    - ``status``: "computed" (every row has its value), "bound" (every row has one, some of them
      only a bound on it), "partly" (some rows have one) or "missing" (none has).
    - ``n`` values, ``n_bound`` bounds among them, of the kind ``bound``: "upper", "lower" or
      "lower, upper"; ``reasons`` of the ``n_missing`` rows without one, most frequent first.
    - ``family`` and ``access``: '' for a method that is not registered.
    - With a run's ``answers`` also their accuracy where the method has a value, and where not: what
      is missing is rarely so at random.
    - With a run's ``parameters`` also the ``judge`` of entailment, where a method needs one, and
      ``note``, its :func:`remarks`, where there are any.
    """
    rows = []
    correct: Any = None if answers is None else answers.set_index(KEYS)["correct"]
    for row, part in groups(confidence, ["model", "method"]):
        known, has = METHODS.get(row["method"]), part["confidence"].notna()
        bounds = part.loc[has, "bound"].astype(object).fillna("")
        bounds = bounds[bounds != ""]
        why = part.loc[~has, "missing"].astype(object).fillna("").replace("", "no reason given")
        row |= {"family": known.family if known else "", "access": known.access if known else ""}
        if parameters is not None:
            row["judge"] = parameters["entailment"]["name"] if _is_judged(row["method"]) else ""
            row["note"] = "; ".join(remarks(parameters, [row["method"]]).get(row["model"], ()))
        status = "partly" if not has.all() else "bound" if len(bounds) else "computed"
        row |= {"status": status if has.any() else "missing", "n": has.sum()}
        row |= {"n_bound": len(bounds), "bound": ", ".join(sorted(bounds.unique()))}
        row |= {"n_missing": len(why)}
        if correct is not None:
            right = correct.reindex(pd.MultiIndex.from_frame(part[KEYS])).set_axis(part.index)
            row |= {"accuracy_with": right[has].mean(), "accuracy_without": right[~has].mean()}
        row["reasons"] = "; ".join(f"{r} ({n})" for r, n in why.value_counts().items())
        rows.append(row)
    unused = {"judge"} if parameters is None else set()
    unused |= {"accuracy_with", "accuracy_without"} if answers is None else set()
    unused |= set() if any(row.get("note") for row in rows) else {"note"}
    return pd.DataFrame(rows, columns=[name for name in COVERAGE if name not in unused])


def _is_judged(method: str) -> bool:
    return method in METHODS and bool(JUDGED & set(METHODS[method].needs))


def differences_shown(
    table: pd.DataFrame, names: Sequence[str] = ("model", "method"), digits: int = 2
) -> pd.DataFrame:
    """A table of differences to read: ``names`` first, values, intervals as text, "–" for none.

    Of bests also who was left out.
    """
    shown: Any = table[list(names)].reset_index(drop=True)
    if "metric" in shown:
        shown["metric"] = shown["metric"].replace(METRIC_NAMES)
    against = str(table["against"].iloc[0]) if len(table) else "reference"
    columns: dict[str, Any] = {
        "value": _intervals(table, ["value"], digits),
        against: _intervals(table, ["reference"], digits),
        "difference": _intervals(table, ["difference", "low", "high"], digits),
        "p": list(map(p_shown, table["p"])),
        "p (Holm)": list(map(p_shown, table["p_holm"])),
    }
    if "left_out" in table:
        columns["left out"] = table["left_out"].to_numpy()
    for column, head in (("n", "n"), ("n_cases", "cases")):
        if column in table:
            columns[head] = table[column].to_numpy()
    columns["cases for 80 % power"] = list(map(cases_shown, table["cases_needed"]))
    return shown.assign(**columns, note=table["missing"].to_numpy())


# What captions and reports say of a run


def about(answers: pd.DataFrame) -> dict[str, Any]:
    """What a caption says of these answers: models, data sets, counts, levels; ``n_failed`` of them
    could not be had or graded and count for nothing."""
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
        return words + ", where it holds" * bool(why.str.contains(PAGE, regex=False).any())
    return f"no intervals: fewer than {MIN_CASES} cases, or none that holds"


def lacking_words(table: pd.DataFrame, confidence: pd.DataFrame) -> str:
    """Which models of a figure's ``table`` have no value of which of its methods, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    mine = confidence[confidence["method"].isin(set(table["method"]))]
    for key, part in groups(mine, ["model", "method"]):
        if part["confidence"].isna().all():
            who = (key["model"], most_frequent(part))
            found.setdefault(who, []).append(label(key["method"]))
    words = [f"{model}: {', '.join(names)} ({why})" for (model, why), names in found.items()]
    return f"no value of {'; '.join(words)}" if words else ""


def together(parameters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the parameters of several runs say of their models: those that any of them names in
    :data:`NAMED`; ``served_by``, ``replies_read`` and ``unknown_answers`` summed; the first
    ``shard``."""
    parameters, read = list(parameters), {}
    unknown: defaultdict[str, Counter[str]] = defaultdict(Counter)
    served: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in parameters:
        for model, names in one.get("served_by", {}).items():
            served[model].update(names)
        add(read, one.get("replies_read", {}))
        for model, n in one.get("unknown_answers", {}).items():
            unknown[model].update(n)
    found = {w: list(dict.fromkeys(m for p in parameters for m in p.get(w, ()))) for w in NAMED}
    found |= {"served_by": {m: dict(names) for m, names in served.items()}, "replies_read": read}
    found["unknown_answers"] = {model: dict(n) for model, n in unknown.items()}
    shards = [one["shard"] for one in parameters if one.get("shard")]
    return found | ({"shard": shards[0]} if shards else {})


def remarks(
    parameters: Mapping[str, Any], methods: Iterable[str] | None = None
) -> dict[str, list[str]]:
    """Model -> what must be known of it before its numbers are believed, by a run's ``parameters``:

    - what :data:`NAMED` says, alike samples only if one of ``methods`` (``None``: all) reads any;
    - several models behind one name, with their numbers of replies;
    - how many replies of a purpose could not be read, above 5 %;
    - how many answers the grader does not know, above 5 %.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    known = None if methods is None else [METHODS[m] for m in methods if m in METHODS]
    sampled = known is None or needs_of(known) & SAMPLE_NEEDS
    for what, words in NAMED.items():
        for model in parameters.get(what, ()) if sampled or what != "samples_alike" else ():
            found[model].append(words)
    for model, served in parameters.get("served_by", {}).items():
        if len(served) > 1:
            counts = ", ".join(f"{name} {n:,}" for name, n in served.items())
            found[model].append(f"the server changed its model during the run: {counts} replies")
    for model, purposes in parameters.get("replies_read", {}).items():
        found[model] += not_read({model: purposes})
    for model, n in parameters.get("unknown_answers", {}).items():
        if n["unknown"] > MOST_UNREAD * n["answers"]:
            share = f"{percent(n['unknown'], n['answers'])} of {n['answers']:,} answers"
            nothing = "; nothing is claimed of them" * bool(few_known(parameters, model))
            found[model].append(f"{share} are names that the grader does not know{nothing}")
    return {model: words for model, words in found.items() if words}


def remark_lines(
    parameters: Mapping[str, Any],
    methods: Iterable[str] | None = None,
    models: Collection[str] | None = None,
) -> list[str]:
    """A line a model of :func:`remarks`; of the models asked only ``models``, where they are given.
    First, where it is so, that these are a part of the cases."""
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
    shown = None if methods is None else list(dict.fromkeys(methods))
    notes, roles = [], {"panel": "doctors", "doctor": "asked by"}
    judged = ", ".join(label(m) for m in shown or () if _is_judged(m))
    if judged and parameters.get("entailment", {}).get("stand_in"):
        notes.append(f"entailment by a rule-based proxy, no NLI model: {judged}")
    if any(m in METHODS and METHODS[m].family == "medconf" for m in shown or ()):
        roles["assessor"] = "MedConf by"
    for role, words in roles.items():
        if who := parameters.get(role):
            notes.append(f"{words} {', '.join(who)}")
    return [*notes, *remark_lines(parameters, shown, models)]


def read_line(counts: Tally) -> str:
    """Such as "98 % of 1,080 replies read (5 cut, 17 unread)"; '' where nothing was asked."""
    n = totals(counts)
    if not n["asked"]:
        return ""
    lost = ", ".join(f"{n[kind]:,} {kind}" for kind in ("cut", "placeholder", "unread") if n[kind])
    share = percent(n["read"], n["asked"])
    return f"{share} of {n['asked']:,} replies read" + (f" ({lost})" if lost else "")


def percent(part: int, whole: int) -> str:
    """A share in percent, 100 and 0 for all and none alone."""
    share = 100 * part / whole
    shown = round(share)
    if (shown == 100) == (part == whole) and (shown == 0) == (part == 0):
        return f"{shown} %"
    return f"{min(max(share, 0.1), 99.9):.1f} %"


def not_read(counts: Tally) -> list[str]:
    """A sentence for each model and purpose of which more than 5 % could not be read."""
    few, lines = too_few(counts), []
    for model, purpose, n in each_count(counts):
        lost, asked = n.get("asked", 0) - n["read"], n.get("asked", 0)
        if lost > MOST_UNREAD * asked:
            told = f"{percent(lost, asked)} of {asked:,} replies to {purpose!r} could not be read"
            nothing = "; nothing is claimed from them" * ((model, purpose) in few)
            lines.append(told + nothing)
    return lines


def table_rows(counts: Tally) -> list[tuple[str | int, ...]]:
    """(model, purpose, :data:`KINDS`) of each."""
    return [(m, purpose, *(n.get(k, 0) for k in KINDS)) for m, purpose, n in each_count(counts)]
