"""Makes tables for readers: values with intervals as text, facts of a run."""

# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import BY_JUDGE, label
from trustlab.metrics.coverage import PAGE
from trustlab.metrics.estimate import MIN_CASES, groups, most_frequent
from trustlab.metrics.run_tables import KEYS
from trustlab.metrics.significance import cases_shown
from trustlab.parsing.counts import (
    KINDS,
    Counts,
    Tally,
    add,
    each_count,
    too_few,
    totals,
)
from trustlab.runs.collect import SAMPLE_NEEDS, needs_of
from trustlab.runs.gate import why_unknown

__all__ = ["KEYS", "cases_shown"]  # for notebooks
for_latex = partial(re.sub, r"([&%$#_{}])", r"\\\1")
"""Words -> the same with LaTeX's own characters escaped."""
METRIC_NAMES = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "cv_group": "CV group",
    "cv_sample": "CV sample",
}
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
COVERAGE = [
    "model", "method", "family", "access", "judge", "status", "n", "n_bound", "bound", "n_missing",
    "accuracy_with", "accuracy_without", "reasons", "note",
]  # fmt: skip
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


HEADS = (
    "asked",
    "cut",
    "read",
    "read only as chat",
    "as an example",
    "placeholder",
    "unread",
)
# where a larger share of a purpose is not read, the page begins with that
MOST_UNREAD = 0.05


def with_interval(
    value: Any, low: Any = np.nan, high: Any = np.nan, digits: int = 2
) -> str:
    """A value with its interval in brackets, where it has one; "–" where it is missing."""
    if pd.isna(value):
        return "–"
    shown = _rounded(value, digits)
    ends = [_rounded(end, digits) for end in (low, high) if pd.notna(end)]
    if not ends:
        return shown
    return f"{shown} [{', '.join(ends)}]"


def _rounded(number: Any, digits: int) -> str:
    """A number with so many decimals, never "-0.0"."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def counted(n: int, noun: str) -> str:
    """'1 case', '2 cases'."""
    plural = "" if n == 1 else "s"
    return f"{n:,} {noun}{plural}"


def p_shown(p: float) -> str:
    """A p-value to read: three decimals, "< 0.001" below them, "–" where there is none."""
    if pd.isna(p):
        return "–"
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}"


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
    keys = list(index)
    rows = table[keys].drop_duplicates()
    if table.empty:
        return rows
    cells = _intervals(table, ["value", "low", "high"], digits)
    if counted:
        cells = [f"{cell}, n {n:,}" for cell, n in zip(cells, table["n"], strict=True)]
    if "own_rows" in table:
        stars = table["own_rows"].fillna(False).astype(bool)
        cells = [
            f"{cell} *" if star else cell
            for cell, star in zip(cells, stars, strict=True)
        ]
    wide = table.assign(shown=cells).pivot(index=keys, columns=columns, values="shown")
    in_order = list(dict.fromkeys(table[columns]))
    wide = wide[in_order].reset_index().rename_axis(columns=None)
    return rows.merge(wide, on=keys, validate="one_to_one")


def _intervals(table: pd.DataFrame, columns: list[str], digits: int) -> list[str]:
    cells = []
    for numbers in table[columns].itertuples(index=False):
        cells.append(with_interval(*numbers, digits=digits))
    return cells


def main_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """A run's metrics as a readable table: one row for each model, data set and method, with its
    number of answers (``n``) and the columns of :data:`MAIN`; "–" if a value is withheld."""
    keys = ["model", "dataset", "method"]
    of_methods: Any = metrics[metrics["method"].ne("")]
    measured = of_methods[of_methods["n"].gt(0)]
    by_method = measured.groupby(keys, sort=False)
    n_answers = by_method["n"].max().reset_index()
    columns = []
    for metric_and_level in zip(measured["metric"], measured["level"], strict=True):
        columns.append(MAIN.get(metric_and_level, ""))
    measured = measured.assign(column=columns)
    in_main = measured["column"].ne("")
    wide = pivoted(measured[in_main], keys, "column")
    wide = wide.merge(n_answers, on=keys, validate="one_to_one")
    shown = [name for name in MAIN.values() if name in wide]
    return wide[[*keys, "n", *shown]].fillna("–")


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
    """Requests, replies and tokens by model and purpose, each request once, whatever number of
    methods read it; tokens are "not counted" where the server does not count those of every
    request."""
    requests = calls.assign(n_requests=1).rename(columns={"n": "n_replies"})
    amounts = [
        "n_requests",
        "n_replies",
        "n_tokens_in",
        "n_tokens_out",
        "n_made",
        "n_cached",
    ]
    spent = requests.groupby(["model", "purpose"], sort=False)[amounts].sum(
        skipna=False
    )
    return spent.astype(object).fillna("not counted").infer_objects().reset_index()


def coverage_table(
    confidence: pd.DataFrame,
    parameters: Mapping[str, Any] | None = None,
    answers: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """How many confidences are computed, bounds or missing: a row a model and method.

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
    correct: Any = None if answers is None else answers.set_index(KEYS)["correct"]
    rows = []
    for labels, part in groups(confidence, ["model", "method"]):
        model = labels["model"]
        method = labels["method"]
        row = labels | _coverage_of(method, part)
        if parameters is not None:
            row["judge"] = (
                parameters["entailment"]["name"] if _is_judged(method) else ""
            )
            row["note"] = "; ".join(remarks(parameters, [method]).get(model, ()))
        if correct is not None:
            row |= _accuracies(correct, part)
        rows.append(row)
    unused = set()
    if parameters is None:
        unused.add("judge")
    if correct is None:
        unused |= {"accuracy_with", "accuracy_without"}
    if not any(row.get("note") for row in rows):
        unused.add("note")
    return pd.DataFrame(rows, columns=[name for name in COVERAGE if name not in unused])


def _coverage_of(method: str, part: pd.DataFrame) -> dict[str, Any]:
    """Status, counts and reasons of one method's confidences."""
    is_method = method in METHODS
    has_value = part["confidence"].notna()
    bounds = part.loc[has_value, "bound"].astype(object)
    bounds = bounds[bounds.fillna("") != ""]
    reasons = part.loc[~has_value, "missing"].astype(object)
    reasons = reasons.fillna("").replace("", "no reason given")
    if not has_value.any():
        status = "missing"
    elif not has_value.all():
        status = "partly"
    else:
        status = "bound" if len(bounds) else "computed"
    counts = reasons.value_counts().items()
    shown = [f"{reason} ({n})" for reason, n in counts]
    return {
        "family": METHODS[method].family if is_method else "",
        "access": METHODS[method].access if is_method else "",
        "status": status,
        "n": has_value.sum(),
        "n_bound": len(bounds),
        "bound": ", ".join(sorted(bounds.unique())),
        "n_missing": len(reasons),
        "reasons": "; ".join(shown),
    }


def _accuracies(correct: Any, part: pd.DataFrame) -> dict[str, float]:
    """Accuracy of the answers with a confidence, and of those without."""
    has_value = part["confidence"].notna()
    answers = pd.MultiIndex.from_frame(part[KEYS])
    right = correct.reindex(answers).set_axis(part.index)
    return {
        "accuracy_with": right[has_value].mean(),
        "accuracy_without": right[~has_value].mean(),
    }


def _is_judged(method: str) -> bool:
    if method not in METHODS:
        return False
    return not BY_JUDGE.isdisjoint(METHODS[method].needs)


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
        "p": [p_shown(p) for p in table["p"]],
        "p (Holm)": [p_shown(p) for p in table["p_holm"]],
    }
    heads = {"left_out": "left out", "n": "n", "n_cases": "cases"}
    for name, head in heads.items():
        if name in table:
            columns[head] = table[name].to_numpy()
    columns["cases for 80 % power"] = [cases_shown(n) for n in table["cases_needed"]]
    return shown.assign(**columns, note=table["missing"].to_numpy())


# What captions and reports say of a run


def about(answers: pd.DataFrame) -> dict[str, Any]:
    """Facts of answers for a caption: models, data sets, counts, levels; ``n_failed`` of them are
    missing or not graded and count for nothing."""
    cases = answers[["dataset", "case_id"]].drop_duplicates()
    failed = answers["correct"].isna()
    return {
        "model": list(answers["model"].unique()),
        "dataset": list(answers["dataset"].unique()),
        "n_cases": len(cases),
        "n_rows": len(answers),
        "n_failed": int(failed.to_numpy().sum()),
        "levels": [int(level) for level in np.unique(answers["level"])],
    }


def interval_words(table: pd.DataFrame, words: str) -> str:
    """The words for a caption on the intervals of ``table``: ``words``, or why some or all lack
    one."""
    if "low" in table and table["low"].isna().to_numpy().all():
        return f"no intervals: fewer than {MIN_CASES} cases, or none that holds"
    if "missing" not in table:
        return words
    reasons = table["missing"].astype(str)
    if reasons.str.contains(PAGE, regex=False).any():
        return f"{words}, where it holds"
    return words


def lacking_words(table: pd.DataFrame, confidence: pd.DataFrame) -> str:
    """Which models of a figure's ``table`` have no value of which of its methods, and why."""
    methods: dict[tuple[str, str], list[str]] = {}
    shown = confidence[confidence["method"].isin(set(table["method"]))]
    for labels, part in groups(shown, ["model", "method"]):
        if part["confidence"].isna().all():
            model_and_reason = (labels["model"], most_frequent(part))
            names = methods.setdefault(model_and_reason, [])
            names.append(label(labels["method"]))
    if not methods:
        return ""
    parts = []
    for (model, why), names in methods.items():
        parts.append(f"{model}: {', '.join(names)} ({why})")
    return f"no value of {'; '.join(parts)}"


def together(parameters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the facts about models in the parameters of several runs: the models that any of them
    names in :data:`NAMED`; ``served_by``, ``replies_read`` and ``unknown_answers`` summed."""
    parameters = list(parameters)
    merged: dict[str, Any] = {}
    for fact in NAMED:
        models = chain.from_iterable(facts.get(fact, ()) for facts in parameters)
        merged[fact] = list(dict.fromkeys(models))
    for fact in ("served_by", "unknown_answers"):
        counts_by_model: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for facts in parameters:
            for model, counts in facts.get(fact, {}).items():
                counts_by_model[model].update(counts)
        merged[fact] = {model: dict(n) for model, n in counts_by_model.items()}
    replies_read: Counts = {}
    for facts in parameters:
        add(replies_read, facts.get("replies_read", {}))
    merged["replies_read"] = replies_read
    return merged


def remarks(
    parameters: Mapping[str, Any], methods: Iterable[str] | None = None
) -> dict[str, list[str]]:
    """Model -> sentences to read before its numbers are believed, by a run's ``parameters``:

    - what :data:`NAMED` says, alike samples only if one of ``methods`` (``None``: all) reads any;
    - several models behind one name, with their numbers of replies;
    - how many replies of a purpose could not be read, above 5 %;
    - how many answers the grader does not know, above 5 %.
    """
    sentences: defaultdict[str, list[str]] = defaultdict(list)
    for fact, words in NAMED.items():
        if fact == "samples_alike" and not _read_samples(methods):
            continue
        for model in parameters.get(fact, ()):
            sentences[model].append(words)
    for model, served in parameters.get("served_by", {}).items():
        if len(served) > 1:
            counts = ", ".join(f"{name} {n:,}" for name, n in served.items())
            sentence = f"the server changed its model during the run: {counts} replies"
            sentences[model].append(sentence)
    for model, purposes in parameters.get("replies_read", {}).items():
        sentences[model] += not_read({model: purposes})
    for model, counts in parameters.get("unknown_answers", {}).items():
        n_unknown = counts["unknown"]
        n_answers = counts["answers"]
        if n_unknown > MOST_UNREAD * n_answers:
            share = percent(n_unknown, n_answers)
            sentence = f"{share} of {n_answers:,} answers are names that the grader does not know"
            if why_unknown(parameters, model):
                sentence += "; nothing is claimed of them"
            sentences[model].append(sentence)
    return {model: each for model, each in sentences.items() if each}


def _read_samples(methods: Iterable[str] | None) -> bool:
    """Whether any of these methods (``None``: all) reads samples."""
    if methods is None:
        return True
    registered = [METHODS[name] for name in methods if name in METHODS]
    return bool(needs_of(registered) & SAMPLE_NEEDS)


def remark_lines(
    parameters: Mapping[str, Any],
    methods: Iterable[str] | None = None,
    models: Collection[str] | None = None,
) -> list[str]:
    """A line of :func:`remarks` for each model, or for ``models`` alone."""
    others = set()
    if models is not None:
        others = set(parameters.get("models", ())).difference(models)
    lines = []
    for model, sentences in remarks(parameters, methods).items():
        if model not in others:
            lines.append(f"{model}: {'; '.join(sentences)}")
    return lines


def run_notes(
    parameters: Mapping[str, Any],
    methods: Iterable[str] | None = None,
    models: Collection[str] | None = None,
) -> list[str]:
    """Notes on a run for a caption: a stand-in among its readers, other models that replied for the
    model, and :func:`remark_lines`."""
    shown = None if methods is None else list(dict.fromkeys(methods))
    notes = []
    judged = [label(name) for name in shown or () if _is_judged(name)]
    if judged and parameters.get("entailment", {}).get("stand_in"):
        notes.append(
            f"entailment by a rule-based proxy, no NLI model: {', '.join(judged)}"
        )
    roles = {"panel": "doctors", "doctor": "asked by"}
    families = {METHODS[name].family for name in shown or () if name in METHODS}
    if "medconf" in families:
        roles["assessor"] = "MedConf by"
    for role, words in roles.items():
        models_of_role = parameters.get(role)
        if models_of_role:
            notes.append(f"{words} {', '.join(models_of_role)}")
    return [*notes, *remark_lines(parameters, shown, models)]


def read_line(counts: Tally) -> str:
    """Such as "98 % of 1,080 replies read (5 cut, 17 unread)"; '' where nothing was asked."""
    n = totals(counts)
    if not n["asked"]:
        return ""
    share = percent(n["read"], n["asked"])
    line = f"{share} of {n['asked']:,} replies read"
    lost = []
    for kind in ("cut", "placeholder", "unread"):
        if n[kind]:
            lost.append(f"{n[kind]:,} {kind}")
    if not lost:
        return line
    return f"{line} ({', '.join(lost)})"


def percent(part: int, whole: int) -> str:
    """A share in percent, 100 and 0 for all and none alone."""
    share = 100 * part / whole
    shown = round(share)
    says_all = shown == 100
    says_none = shown == 0
    if says_all == (part == whole) and says_none == (part == 0):
        return f"{shown} %"
    share = min(max(share, 0.1), 99.9)
    return f"{share:.1f} %"


def not_read(counts: Tally) -> list[str]:
    """A sentence for each model and purpose of which more than 5 % could not be read."""
    few = too_few(counts)
    lines = []
    for model, purpose, n in each_count(counts):
        n_replies = n.get("asked", 0)
        n_lost = n_replies - n["read"]
        if n_lost > MOST_UNREAD * n_replies:
            share = f"{percent(n_lost, n_replies)} of {n_replies:,} replies"
            line = f"{share} to {purpose!r} could not be read"
            if (model, purpose) in few:
                line += "; nothing is claimed from them"
            lines.append(line)
    return lines


def table_rows(counts: Tally) -> list[tuple[str | int, ...]]:
    """(model, purpose, :data:`KINDS`) of each."""
    rows = []
    for model, purpose, n in each_count(counts):
        n_replies = [n.get(kind, 0) for kind in KINDS]
        rows.append((model, purpose, *n_replies))
    return rows
