"""Tables to read: a run's facts, costs and coverage, and values with intervals as text."""

# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from trustlab.collect import SAMPLE_NEEDS, needs_of
from trustlab.confidence import METHODS
from trustlab.confidence.registry import label
from trustlab.metrics import schema
from trustlab.metrics.correlation import pearson_p, spearman
from trustlab.metrics.estimate import MIN_CASES, groups, most_frequent
from trustlab.metrics.significance import (
    ALPHA,
    about_cases,
    cases_shown,
    sample_size_for_power,
)
from trustlab.parsing.counts import Counts, add, not_read
from trustlab.records import Assessment

BRIEF = {
    "brier": "Brier",
    "ece": "ECE",
    "miscalibration": "miscalibration",
    "discrimination": "discrimination",
}
METRIC_NAMES = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "cv_group": "CV group",
    "cv_sample": "CV sample",
}


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
    kept: Any = metrics[metrics["method"].ne("") & metrics["n"].gt(0)]
    named = [MAIN.get(pair, "") for pair in zip(kept["metric"], kept["level"], strict=True)]
    kept = kept.assign(column=named)
    about = ["model", "dataset", "method"]
    n = kept.groupby(about, sort=False)["n"].max().reset_index()
    wide = pivoted(kept[kept["column"].ne("")], about, "column")
    columns = [name for name in MAIN.values() if name in wide]
    wide = wide.merge(n, on=about, validate="one_to_one")
    return wide[[*about, "n", *columns]].fillna("–")


def to_latex(table: pd.DataFrame, caption: str = "", label: str = "") -> str:
    """A table as LaTeX (``booktabs``): text escaped, numbers with three decimals, "–" for none."""
    how: dict[str, Any] = {"index": False, "escape": True, "na_rep": "–"}
    caption = re.sub(r"([&%$#_{}])", r"\\\1", caption)
    return table.to_latex(**how, float_format="%.3f", caption=caption or None, label=label or None)


def with_interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """A value with its interval in brackets, where it has one; "–" where it is missing."""
    if pd.isna(value):
        return "–"
    told = _plain(value, digits)
    return told if pd.isna(low) else f"{told} [{_plain(low, digits)}, {_plain(high, digits)}]"


def told(line: Any, x: str = "value", *, scale: float = 1, sign: str = "") -> str:
    """The value ``x`` of a line with its interval, as a sentence has it, all times ``scale``: in
    percent where that is 100 (whole numbers), and with a ``sign`` where that is "+"."""
    places = 0 if scale == 100 else 2
    known = [scale * line[name] for name in (x, "low", "high")]
    value, low, high = (f"{round(one, places) + 0.0:{sign}.{places}f}" for one in known)
    unit = " %" if scale == 100 else ""
    if np.isnan(known[0]):
        return "–"
    shown = f"{value}{unit}" if np.isnan(known[1:]).any() else f"{value}{unit} [{low}, {high}]"
    return shown.replace("-", "−")


def leading(part: pd.DataFrame, *, lowest: bool = False, scale: float = 1) -> str:
    """The method with the highest (or lowest) ``value`` of ``part``, a line a method, in words.

    They say of how many others it cannot be told apart: those whose 95 % interval overlaps its own,
    or that have none. Without any value they say why.
    """
    known = part.dropna(subset="value").sort_values("value", ascending=lowest, kind="stable")
    if known.empty:
        return f"no value ({most_frequent(part)})"
    first, others = known.iloc[0], known.iloc[1:]
    words = f"{label(first['method'])}, {told(first, scale=scale)}"
    if others.empty:
        return words
    if np.isnan(first["low"]):
        return f"{words}, without an interval: nothing says that it is first"
    apart = others["low"].gt(first["high"]) if lowest else others["high"].lt(first["low"])
    n = len(others) - int(apart.sum())
    if not n:
        who = "the other" if len(others) == 1 else f"all {len(others)} others"
        return f"{words}, apart from {who}"
    return f"{words}; {n} of {len(others)} others cannot be told from it by their intervals"


def _plain(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 turns -0.0 into 0.0


def calibration_shown(
    table: pd.DataFrame, hows: Sequence[str] = ("as given", "isotonic", "platt")
) -> pd.DataFrame:
    """The table of ``calibration_table`` to read.

    A row a method, a column for each measure and each of ``hows``.
    """
    kept: Any = table[table["metric"].isin(list(BRIEF)) & table["how"].isin(list(hows))]
    kept = kept.assign(column=kept["metric"].map(BRIEF) + ", " + kept["how"])
    order = [f"{name}, {how}" for name in BRIEF.values() for how in hows]
    wide = pivoted(kept, ["model", "method"], "column")
    return wide[["model", "method", *[name for name in order if name in wide]]].fillna("–")


def missingness_shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table of ``missingness_table`` to read.

    ``value [worst, best]`` and coverage, a row a method that misses anything.
    """
    lacking = table[table["n_missing"].gt(0) & table["worst"].notna() & table["n"].gt(0)]
    lacking = lacking.rename(columns={"worst": "low", "best": "high"})
    lacking = lacking.assign(
        coverage=[f"{row.n} of {row.n + row.n_missing}" for row in lacking.itertuples()]
    )
    lacking = lacking.assign(method=lacking["method"].replace("", "(the answers)"))
    return pivoted(lacking, ["model", "dataset", "method", "coverage"], "metric").fillna("–")


JUDGED = {"entailment", "contradiction", "alternative_entailment"}
"""Needs that a judge of entailment meets."""
KEYS = ["case_id", "dataset", "level", "model"]


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
    """What a caption says of the intervals of ``table``: ``words``, or why it has none."""
    if "low" not in table or table["low"].notna().to_numpy().any():
        return words
    return f"no intervals: fewer than {MIN_CASES} cases, values all alike, or none"


def rank_correlations(confidence: pd.DataFrame, model: str) -> pd.DataFrame:
    """Spearman's correlation between every two methods over the answers that both judged.

    In the run's order, without intervals. Methods without any value are in no pair.
    """
    mine = confidence[confidence["model"] == model]
    wide: Any = mine.pivot(index=["case_id", "level"], columns="method", values="confidence")
    names = [m for m in confidence["method"].unique() if m in wide and wide[m].notna().any()]
    lines = []
    for first, second in combinations(names, 2):
        both = wide[[first, second]].dropna()
        n = len(both)
        value = spearman(*both.to_numpy().T) if n > 2 else np.nan
        why = "fewer than 3 answers" if n <= 2 else "all alike" if np.isnan(value) else ""
        line = {"model": model, "first": first, "second": second, "metric": "spearman"}
        counts = {"n_missing": len(wide) - n, "n_cases": both.index.unique("case_id").size}
        lines.append(line | counts | {"value": value, "n": n, "missing": why})
    return schema.table(lines, ["model", "first", "second"]).drop(columns=["low", "high"])


def correlation_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Pearson and Spearman between accuracy and mean confidence over the levels, to read.

    A row a model, data set and method, all as text, '' where there is none.

    - ``pearson`` and ``spearman``, with intervals; ``n_levels`` that have a mean confidence.
    - ``p_t_test`` (r and n_levels alone, normal points), ``p_permutation`` and ``p_exact`` (every
      order as likely): a small p speaks against 0 only, and whatever rises is far from 0 by chance.
    - ``..._by_chance``: median and middle 95 % over confidences that merely rise beside the same
      accuracies.
    """
    across, both = metrics["level"].eq("across"), metrics["metric"].isin(["pearson", "spearman"])
    keys = ["model", "dataset", "method"]
    means = metrics[metrics["metric"].eq("mean_confidence") & metrics["value"].notna()]
    n_levels: dict[Any, int] = means.groupby(keys)["level"].nunique().to_dict()
    order = ["pearson", "p_t_test", "p_permutation", "pearson_by_chance"]
    order += ["spearman", "p_exact", "spearman_by_chance"]
    lines = []
    for key, part in groups(pd.DataFrame(metrics[across & both]), keys):
        n = n_levels.get(tuple(key.values()), 0)
        line: dict[str, Any] = key | {"n_levels": n}
        for row in part.itertuples():
            told = with_interval(row.value, row.low, row.high, 3)
            if pd.isna(row.value):
                told = f"missing ({row.missing})" if row.missing else "missing"
            band = "" if pd.isna(row.chance) else f"{row.chance:.3g}"
            if row.chance_low < row.chance_high:
                band = with_interval(row.chance, row.chance_low, row.chance_high)
            line |= {row.metric: told, f"{row.metric}_by_chance": band}
            if row.metric == "pearson":
                line["p_t_test"] = _p_text(pearson_p(row.value, n))
            line["p_permutation" if row.metric == "pearson" else "p_exact"] = _p_text(row.p)
        lines.append(line)
    return pd.DataFrame(lines, columns=[*keys, "n_levels", *order])


def _p_text(p: float) -> str:
    return "" if pd.isna(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def cost_table(calls: pd.DataFrame) -> pd.DataFrame:
    """What was asked, by purpose, each request once, whatever number of methods read it."""
    asked = calls.assign(n_requests=1).rename(columns={"n": "n_replies"})
    amounts = ["n_requests", "n_replies", "n_tokens_in", "n_tokens_out", "n_made", "n_cached"]
    return asked.groupby(["model", "purpose"], sort=False)[amounts].sum().reset_index()


def variants_and_bases(methods: Sequence[str]) -> list[str]:
    """Of the methods, those that vary a formula, behind the ones (by equation) that they vary."""
    own = {m: METHODS[m].equation for m in methods if m in METHODS and METHODS[m].equation}
    base = {m: equation.removesuffix(" (variant)") for m, equation in own.items()}
    varied, order = {base[m] for m in own if base[m] != own[m]}, list(base.values())
    listed = [m for m in own if base[m] in varied]
    return sorted(listed, key=lambda m: (order.index(base[m]), base[m] != own[m]))


def stand_in_note(parameters: Mapping[str, Any], methods: Iterable[str]) -> str:
    """What a caption says where a rule-based proxy for an NLI model judged for ``methods``."""
    reading = [m for m in dict.fromkeys(methods) if _is_judged(m)]
    if not reading or not parameters["entailment"]["stand_in"]:
        return ""
    return f"entailment by a rule-based proxy, no NLI model: {', '.join(map(label, reading))}"


def together(parameters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the parameters of several runs hold against their models: those that any of them names
    in :data:`NAMED`; ``served_by`` and ``replies_read`` summed."""
    named: dict[str, dict[str, None]] = {what: {} for what in NAMED}
    parameters = list(parameters)
    served: dict[str, Counter[str]] = {}
    read: Counts = {}
    for one in parameters:
        for what, models in named.items():
            models |= dict.fromkeys(one.get(what, ()))
        for model, names in one.get("served_by", {}).items():
            served.setdefault(model, Counter()).update(names)
        add(read, one.get("replies_read", {}))
    counts = {model: dict(names) for model, names in served.items()}
    told = {what: list(models) for what, models in named.items()}
    shard = next((one["shard"] for one in parameters if one.get("shard")), None)
    part = {} if shard is None else {"shard": shard}
    return told | {"served_by": counts, "replies_read": read, **part}


NAMED = {
    "samples_alike": "all samples alike (temperature ignored?)",
    "own_temperature": "asked at its own temperature, since it takes no other: not greedily",
    "nearly_greedy": "asked at temperature 0.01 in place of 0, which it does not take",
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
        if lost := not_read({model: purposes}):
            found.setdefault(model, []).extend(lost)
    return found


def remark_lines(
    parameters: Mapping[str, Any],
    methods: Iterable[str] | None = None,
    models: Collection[str] | None = None,
) -> list[str]:
    """A line a model of :func:`remarks`; of the models asked only ``models``, where they are
    given. First, where it is so, that these are a part of the cases."""
    others = () if models is None else set(parameters.get("models", ())) - set(models)
    found = remarks(parameters, methods).items()
    shard = parameters.get("shard")
    part = [f"shard {shard}: these are a part of the cases"] if shard else []
    return part + [f"{model}: {'; '.join(words)}" for model, words in found if model not in others]


def run_notes(
    parameters: Mapping[str, Any],
    methods: Iterable[str] | None = None,
    models: Collection[str] | None = None,
) -> list[str]:
    """What a caption says of a run: a stand-in among its readers, who replied in the model's place,
    and :func:`remark_lines`."""
    shown = [] if methods is None else list(methods)
    judged = stand_in_note(parameters, shown) if "entailment" in parameters else ""
    roles = {"panel": "doctors", "doctor": "asked by"}
    if any(m in METHODS and METHODS[m].family == "medconf" for m in shown):
        roles["assessor"] = "MedConf by"
    others = [
        f"{words} {', '.join(who)}"
        for role, words in roles.items()
        if (who := parameters.get(role))
    ]
    return list(filter(None, [judged, *others, *remark_lines(parameters, methods, models)]))


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
        known = METHODS.get(line["method"])
        line |= {"family": known.family if known else "", "access": known.access if known else ""}
        if parameters is not None:
            line["judge"] = parameters["entailment"]["name"] if _is_judged(line["method"]) else ""
            noted = remarks(parameters, [line["method"]]).get(line["model"], ())
            line["note"] = "; ".join(noted)
        had = part["confidence"].notna()
        bounds = part.loc[had, "bound"].astype(object).fillna("")
        bounds = bounds[bounds != ""]
        some = "partly" if not had.all() else "bound" if len(bounds) else "computed"
        line |= {"status": some if had.any() else "missing", "n": had.sum(), "n_bound": len(bounds)}
        why = part.loc[~had, "missing"].astype(object).fillna("").replace("", "no reason given")
        line |= {"bound": ", ".join(sorted(bounds.unique())), "n_missing": len(why)}
        lines.append(
            line | {"reasons": "; ".join(f"{r} ({n})" for r, n in why.value_counts().items())}
        )
    columns = ["model", "method", "family", "access", "judge", "status"]
    columns += ["n", "n_bound", "bound", "n_missing", "reasons"]
    if parameters is None:
        columns.remove("judge")
    elif any(line["note"] for line in lines):
        columns.append("note")
    return pd.DataFrame(lines, columns=columns)


def _is_judged(method: str) -> bool:
    """Whether the method asks a judge of entailment."""
    return method in METHODS and bool(JUDGED & set(METHODS[method].needs))


def evidence_table(assessment: Assessment) -> pd.DataFrame:
    """MedConf's evidence as a table, a row a criterion."""
    rows = []
    for e in assessment.evidence:
        asked = (e.criterion.id, e.criterion.description, e.criterion.importance)
        rows.append((*asked, e.support_level, e.quote, e.quote_occurs))
    columns = ["id", "criterion", "importance", "support_level", "quotation", "quotation_occurs"]
    return pd.DataFrame(rows, columns=columns)


def differences_shown(
    table: pd.DataFrame, names: Sequence[str] = ("model", "method"), digits: int = 2
) -> pd.DataFrame:
    """A table of differences to read: ``names`` first, values, intervals as text, "–" for none.

    Of bests also the interval of whoever is best, the share of draws in which this one is, and who
    was left out.
    """
    shown: Any = table[list(names)].reset_index(drop=True)
    if "metric" in shown:
        shown["metric"] = shown["metric"].replace(METRIC_NAMES)
    rows = table.to_dict("records")
    against = str(table["against"].iloc[0]) if len(table) else "reference"
    shown["value"] = [with_interval(r["value"], np.nan, np.nan, digits) for r in rows]
    shown[against] = [with_interval(r["reference"], np.nan, np.nan, digits) for r in rows]
    shown["difference"] = [
        with_interval(r["difference"], r["low"], r["high"], digits) for r in rows
    ]
    shown["p"] = [p_shown(r["p"]) for r in rows]
    shown["p (Holm)"] = [p_shown(r["p_holm"]) for r in rows]
    if "low_chosen" in table:
        ends = [(r["low_chosen"], r["high_chosen"]) for r in rows]
        shown["whoever is best"] = [
            "–" if pd.isna(a) else f"[{a:.{digits}f}, {b:.{digits}f}]" for a, b in ends
        ]
        shown["best in"] = [
            "–" if pd.isna(r["chosen_in"]) else f"{100 * r['chosen_in']:.0f} %" for r in rows
        ]
        shown["left out"] = table["left_out"].to_numpy()
    for column, name in (("n", "n"), ("n_cases", "cases")):
        if column in table:
            shown[name] = table[column].to_numpy()
    shown["cases for 80 % power"] = [cases_shown(r["cases_needed"]) for r in rows]
    return shown.assign(note=table["missing"].to_numpy())


def p_shown(p: float) -> str:
    """A p-value to read: three decimals, "< 0.001" below them, "–" where there is none."""
    return "–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


Row = Mapping[str, Any]


def named_method(row: Row) -> str:
    """Which method a row is about, by its label."""
    return label(row["method"])


def counting_tests(table: pd.DataFrame, family: Sequence[str]) -> pd.DataFrame:
    """The table with ``n_tests``, how many p were corrected together with a row's."""
    return table.assign(n_tests=table.groupby(list(family), sort=False)["p"].transform("count"))


def bullets(lines: Iterable[str]) -> str:
    """Each line after a dash, 100 letters wide."""
    how: Any = {"break_on_hyphens": False, "break_long_words": False, "subsequent_indent": "  "}
    return "\n".join(textwrap.fill(line, 100, initial_indent="- ", **how) for line in lines)


def concluded(
    table: pd.DataFrame,
    who: Callable[[Row], str],
    above: str,
    below: str,
    *,
    unit: float = 1.0,
    digits: int = 2,
    most: int = 4,
) -> list[str]:
    """What a table of differences says and what it leaves open: a line a kind, in words.

    - Beyond chance is what has ``p_holm`` below 5 %: ``above`` and ``below`` say what a difference
      above and below 0 is. ``who`` names a row. At most ``most`` rows are named in a line, the
      largest differences first, or of the open ones those that fewest cases would settle.
    - Open is any other ``p_holm``: with how many cases like these there would be 80 % power for the
      difference seen, at 5 % over the tests of its family, as in Holm's first step: those of the
      table, or of its column ``n_tests`` (:func:`counting_tests`).
    - What has no p is named with its reason. A table without rows has no lines.
    - Differences are shown times ``unit``, with ``digits``.
    """
    rows, tested, sure, left = _sorted_out(table)
    n_tests = int(table["n_tests"].max()) if "n_tests" in table and tested else len(tested)
    over = f"Holm over {n_tests}" if n_tests > 1 else "p below 0.05"

    def size(row: Row) -> float:
        level = ALPHA / n_tests
        return sample_size_for_power(
            row["difference"], row["standard_error"], int(row["n_cases"]), alpha=level
        )

    lines = []
    for words, of in _beyond(sure, above, below):
        how = f"beyond chance, {over}, on {_cases(of)}"
        lines.append(
            f"{words} ({how}): {_first([_told(row, who, unit, digits) for row in of], most)}."
        )
    needed = sorted(((size(row), row) for row in left), key=lambda x: (np.isnan(x[0]), x[0]))
    each = [
        f"{_told(row, who, unit, digits)}, would take {about_cases(n, int(row['n_cases']))}"
        for n, row in needed
    ]
    if each:
        none = "" if sure else "None is beyond chance. "
        how = f"for 80 % power, {over}"
        lines.append(f"{none}Cannot be told from {_cases(left)} ({how}): {_first(each, most)}.")
    lost: dict[str, list[str]] = {}
    for row in rows:
        if pd.isna(row["p_holm"]):
            lost.setdefault(str(row["missing"] or "no reason given"), []).append(who(row))
    return lines + [f"Not tested: {_first(names, most)}: {why}." for why, names in lost.items()]


def concluded_by(table: pd.DataFrame, by: Sequence[str], *words: Any, **how: Any) -> str:
    """:func:`concluded` of each group ``by``, which is named where there are several, as text."""
    lines = []
    each = list(groups(table, by)) if len(table) else []
    for key, part in each:
        named = ", ".join(map(str, key.values()))
        lines += [f"{named}:"] if len(each) > 1 else []
        lines.append(bullets(concluded(part, *words, **how)))
    return "\n".join(lines)


def in_short(
    table: pd.DataFrame,
    who: Callable[[Row], str],
    above: str,
    below: str,
    *,
    unit: float = 1.0,
    digits: int = 2,
) -> str:
    """The same as a figure's message: how many rows are what, with the largest of each kind.

    '' where nothing was tested.
    """
    _, tested, sure, left = _sorted_out(table)
    parts = [(words, of) for words, of in _beyond(sure, above, below)]
    left.sort(key=lambda row: -abs(row["difference"]))
    parts += [(f"Not told apart by {_cases(left)}", left)] if left else []
    return " ".join(
        f"{words}: {len(of)} of {len(tested)} ("
        f"{'the largest: ' if len(of) > 1 else ''}{_told(of[0], who, unit, digits)})."
        for words, of in parts
    )


def _sorted_out(table: pd.DataFrame) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """All rows, those that were tested, and of these what is beyond chance and what is not."""
    rows = table.to_dict("records")
    tested = [row for row in rows if pd.notna(row["p_holm"])]
    sure = [[row for row in tested if (row["p_holm"] < ALPHA) == so] for so in (True, False)]
    return rows, tested, *sure


def _beyond(sure: Sequence[Row], above: str, below: str) -> Iterator[tuple[str, list[Row]]]:
    """What is said of the differences above and below 0, and these, the largest first."""
    for words, sign in ((above, 1), (below, -1)):
        of = [row for row in sure if sign * row["difference"] > 0]
        if of:
            yield words, sorted(of, key=lambda row: -abs(row["difference"]))


def _told(row: Row, who: Callable[[Row], str], unit: float, digits: int) -> str:
    ends = (signed(unit * row[end], digits) for end in ("difference", "low", "high"))
    return "{}, {} [{}, {}]".format(who(row), *ends)


def _first(each: Sequence[str], most: int) -> str:
    more = f"; and {len(each) - most:,} more" if len(each) > most else ""
    return "; ".join(each[:most]) + more


def _cases(rows: Sequence[Row]) -> str:
    """How many cases stand behind the rows: "24 cases", "24 to 36 cases"."""
    counts = sorted({int(row["n_cases"]) for row in rows})
    ends = " to ".join(f"{n:,}" for n in dict.fromkeys([counts[0], counts[-1]]))
    return f"{ends} case{'' if counts == [1] else 's'}"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign, "0.00" without; "–" where it is missing."""
    if pd.isna(value):
        return "–"
    rounded = round(value, digits) + 0.0
    return f"{rounded:{'+' if rounded else ''}.{digits}f}"
