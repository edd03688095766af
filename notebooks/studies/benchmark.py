"""01: ranking, level and length alone, the published tables, what is missing."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from trustlab.collect import NOT_KNOWN
from trustlab.confidence import METHODS
from trustlab.confidence.registry import label as named
from trustlab.levels import views
from trustlab.metrics import formatted, missing_bounds, schema
from trustlab.metrics.calibration import CALIBRATION
from trustlab.metrics.correlation import OVER_LEVELS, partial_spearman_of
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    across,
    at_least,
    estimate,
    grouped,
    groups,
    mean,
    measure,
    most_frequent,
)
from trustlab.metrics.missing_bounds import Bounds
from trustlab.metrics.paired import family_name
from trustlab.metrics.run_tables import KEYS, RunTables, metrics_table, rows_of_methods
from trustlab.plots.rows import stratum
from trustlab.published import DATASETS, MODELS, published_table, with_printed
from trustlab.records import LEVELS, Case

CHANCE, ALPHA = 0.5, 0.05
YARDSTICKS = ("baseline", "reference")
"""Families that methods are held against: no message ranks them."""


def ranked(table: pd.DataFrame) -> Any:
    """The lines of confidence methods, without yardsticks and answers."""
    families = table["method"].map(family_name)
    return table[table["method"].ne("") & ~families.isin(YARDSTICKS)]


def by_model(table: pd.DataFrame, say: Callable[[Any], str]) -> str:
    """A line for each model, which it names where there are several; '' where nothing is said."""
    told = [(key["model"], say(part)) for key, part in groups(table, ["model"])]
    alone = len(told) == 1
    return "\n".join(words if alone else f"{who}: {words}" for who, words in told if words)


def listed(words: Sequence[str], most: int = 4) -> str:
    """Up to ``most`` of the words, and how many more there are."""
    more = [f"{len(words) - most} more"] if len(words) > most else []
    return ", ".join([*words[:most], *more])


def auroc_message(table: pd.DataFrame) -> str:
    """Of what :func:`auroc_rows` draws, for each model: the highest AUROC, how many methods are
    above chance, and what knowing the level alone is worth."""
    last = stratum(table)
    where = "Highest AUROC within a level" if last == "within" else "Highest AUROC of all answers"

    def of_model(part: Any) -> str:
        mine = ranked(part[part["level"].eq(last)])
        known = mine.dropna(subset="value")
        if mine.empty:
            return ""
        n_above = int(known["low"].gt(CHANCE).sum())
        above = f"; {n_above} of {len(known)} intervals lie above chance"
        return formatted.leading(mine) + (above if known["low"].notna().any() else "")

    told = by_model(table, of_model)
    share = table[table["method"].eq(SHARE)].drop_duplicates("level")  # the first model's
    share = share.set_index("level").reindex(["pooled", "within"])
    if share["value"].notna().all() and last == "within":
        ends = [formatted.told(share.loc[at]) for at in ("pooled", "within")]
        told += f"\nInformation level alone: {ends[0]} pooled, {ends[1]} within a level"
    gap = "\n" if table["model"].nunique() > 1 else " "
    return f"{where}:{gap}{told}" if told else ""


def bayes_optimal_table(
    cases: Sequence[Case], levels: Sequence[int] = LEVELS, *, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How often the likeliest diagnosis is right where the chance of each is known: the accuracy
    that nobody can surpass but by luck.

    A line a data set and level, metric "bayes_optimal_accuracy", of the cases whose ``posteriors``
    tell it; the others are counted as missing. Near-ties (1e-6) go to the first by name.
    """
    rows = []
    for one in views(cases, levels):
        known, right = one.posterior, np.nan
        if known:
            best = max(known.values())
            first = min(name for name, chance in known.items() if chance > best - 1e-6)
            right = float(first in one.case.accepted)
        key = {"dataset": one.case.dataset, "case_id": one.case.case_id, "level": one.level}
        rows.append(key | {"right": right})
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "none": NOT_KNOWN}
    labelled = grouped(pd.DataFrame(rows), ["dataset", "level"], "right", **how)
    lines = measure(labelled, {"bayes_optimal_accuracy": mean("right")})
    return schema.table(list(lines), ["dataset", "level"])


RUN = ["model", "dataset"]
AREAS = {"auroc pooled": "pooled", "auroc within": "within"}
GIVEN: dict[str, tuple[str, ...]] = {
    "spearman per answer": (),
    "partial given level": ("level",),
    "partial given level and words": ("level", "n_words"),
    "partial given level, words and share": ("level", "n_words", "share"),
}
"""Of each rank correlation over answers, what is taken out of it."""
MEASURES = (*AREAS, *GIVEN)
SHARE = "information_level"
"""The method whose value is the share of the statements shown: cases differ in length."""
LACKING = {"n_words": "answers have no n_words", "share": f"{SHARE} has no value for every answer"}
LEFT = "nothing of the confidence or of correctness is left"


def information_adjusted_table(
    run: RunTables,
    metrics: pd.DataFrame | None = None,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """How each method tells right answers from wrong, and how much remains beyond level and length.

    - A row a model, data set, method and metric: "auroc pooled" and "auroc within", those of
      ``metrics`` (the run's ``metrics_table``, made here where it is not given); "spearman per
      answer" (rank correlation of confidence and correctness over answers, -1 to 1), and the same
      "partial given level", "... and words" (the words shown, ``answers``' column ``n_words``) and
      "... and share" (of the statements shown): :mod:`trustlab.metrics.correlation`.
    - Withheld below ``min_per_class`` right or wrong answers. The draws are those of
      ``metrics_table`` with that seed.
    - ``ValueError`` as ``metrics_table``, and for ``metrics`` of another run.
    """
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed}
    if metrics is None:
        metrics = metrics_table(run, min_per_class=min_per_class, scales={}, **how)
    areas = metrics[metrics["metric"] == "auroc"].set_index([*RUN, "method", "level"])
    areas = {key: found.to_dict() for key, found in areas.iterrows()}
    share = run.confidence.loc[run.confidence["method"] == SHARE, [*KEYS, "confidence"]]
    told = run.answers.assign(n_words=run.answers.get("n_words", np.nan))
    told = told.merge(share.rename(columns={"confidence": "share"}), on=KEYS, how="left")
    few = at_least(min_per_class)
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(told, run.confidence, **how):
        for metric in MEASURES if label["method"] else ():
            if metric in AREAS:
                key = (*label.values(), AREAS[metric])
                if key not in areas:
                    raise ValueError(f"metrics lacks the AUROC of {key}: it is of another run")
                found = areas[key]
            else:
                given = GIVEN[metric]
                alike = LEFT if given else "all confidences are alike"
                why = partial(_withheld, given=given, few=few)
                found = estimate(rows, Metric(partial(_partial, given=given), why, alike))
            lines.append({**found, **label, "metric": metric})
    return schema.table(lines, [*RUN, "method"])


def _withheld(rows: Rows, given: tuple[str, ...], few: Any) -> str:
    lacking = [LACKING[name] for name in given if pd.isna(rows[name]).any()]
    return few(rows) or (lacking[0] if lacking else "")


def _partial(rows: Rows, given: tuple[str, ...]) -> np.ndarray:
    """The rank correlation of confidence and correctness given these columns, (1 + draws,)."""
    level = rows["level"] if given else np.zeros(len(rows))
    others = rows.table[list(given[1:])].to_numpy(dtype=float)
    answers = rows["correct"], rows["confidence"], level, others
    return partial_spearman_of(*answers, rows.totals)


NOT_OURS = (
    "Grey: as Ren et al. 2026 print it, of large models on other patients, without intervals: not"
    " to be held against ours."
)
THEIRS = "as printed"


def correlations_as_published(metrics: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Ren et al. 2026's Table 2 with this run's values before the printed ones, as text.

    Accuracy and mean confidence over the levels by ``statistic`` ("pearson" or "spearman"): a row a
    method under its family, a column a model and data set; of ours with interval and ``n`` answers,
    "–" where there is none.
    """
    across = metrics[metrics["metric"].eq(statistic) & metrics["level"].eq("across")]
    printed = published_table("correlation", as_text=True)
    printed = printed[printed["statistic"].eq(statistic)].rename(columns={"value": "shown"})
    return _as_published(_shown_counted(ranked(across)), printed)


def comparison_as_published(metrics: pd.DataFrame) -> pd.DataFrame:
    """Ren et al. 2026's Table 3 with this run's values before the printed ones, as text.

    The highest AUROC of each family, pooled over levels as theirs presumably is, with its method,
    and this method's Pearson over the levels; the highest is chosen on the answers shown. Rows are
    families and what is measured, columns as in :func:`correlations_as_published`.
    """
    auroc = metrics[metrics["metric"].eq("auroc") & metrics["level"].eq("pooled")]
    mine = ranked(auroc)
    mine = mine.assign(family=mine["method"].map(family_name))
    keys = ["model", "dataset", "family"]
    best = mine.sort_values("value", ascending=False, kind="stable").drop_duplicates(keys)
    best = best.sort_index(kind="stable")  # the run's order of models and data sets
    pearson = metrics[metrics["metric"].eq("pearson") & metrics["level"].eq("across")]
    same = best[[*RUN, "method"]]
    ours = [_shown_counted(best), _shown_counted(same.merge(pearson, on=[*RUN, "method"]))]
    wide = published_table("comparison", as_text=True)
    parts = []
    for what, mine, column in zip(("AUROC", "Pearson"), ours, ("auroc", "pearson"), strict=True):
        theirs = wide.rename(columns={column: "shown"})
        for source in (mine, theirs):
            source["shown"] = [
                v if v == "–" else f"{named(m)} {v}"
                for m, v in zip(source["method"], source["shown"], strict=True)
            ]
        parts.append(_as_published(mine, theirs, what))
    return pd.concat(parts).fillna("–")


def _shown_counted(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines with their value, interval and n as text in ``shown``."""
    ends = lines[["value", "low", "high", "n"]].itertuples(index=False)
    return lines.assign(
        shown=[
            formatted.with_interval(*each[:3])
            + (f", n {each[3]:,.0f}" if pd.notna(each[0]) else "")
            for each in ends
        ]
    )


def _as_published(ours: pd.DataFrame, printed: pd.DataFrame, what: str = "") -> pd.DataFrame:
    """``shown`` by family and method (or ``what``) down, by source, model and data set across."""
    from trustlab.plots.style import FAMILY_LABELS

    theirs = printed.replace({"model": MODELS, "dataset": DATASETS})
    both = with_printed(ours, theirs)
    both["source"] = both["source"].map({"ours": "this run", "printed": THEIRS})
    words = both["method"].map(family_name).map(FAMILY_LABELS).fillna("other")
    both = both.assign(family=words, row=what or both["method"].map(named))
    order = {name: place for place, name in enumerate(FAMILY_LABELS.values())}
    across, down = ["source", "model", "dataset"], ["family", "row"]
    wide = both.pivot(index=down, columns=across, values="shown")
    rows = (
        both[down]
        .drop_duplicates()
        .sort_values("family", key=lambda f: f.map(order), kind="stable")
    )
    columns = both[across].drop_duplicates()
    wide = wide.reindex(index=pd.MultiIndex.from_frame(rows))
    return wide[list(columns.itertuples(index=False, name=None))].fillna("–")


def printed_in_grey(table: pd.DataFrame, name: str) -> Any:
    """The table for a notebook, all text escaped: printed columns grey, and what they are of."""
    from trustlab.plots.style import GREY

    theirs = [column for column in table.columns if column[0] == THEIRS]
    style = table.style.format(escape="html").format_index(escape="html", axis=0)
    style = style.format_index(escape="html", axis=1).set_uuid(name).set_caption(NOT_OURS)
    return style.set_properties(subset=theirs, color=GREY).set_properties(
        **{"white-space": "normal"}
    )


NO_ENDS = "a score has no ends, so no worst and best"
ONLY_RANGE = "no sharp bound is computed: only the metric's range"
FLAT = "fewer than 3 levels, or one side is the same at every level"
RANGES = {"ece": (1.0, 0.0), "pearson": (-1.0, 1.0), "spearman": (-1.0, 1.0)}
"""Metrics without a sharp bound -> worst and best they can be."""


def missingness_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Each metric on what there is, beside its worst and best were the missing had.

    - A row a model, data set, method and metric, all levels together; method '' for the accuracy of
      the answers themselves. ``n_missing`` of the answers asked for have no value (no grade).
    - ``worst`` and ``best`` are the ends (of a mean confidence the lowest and highest) over every
      way of filling in the others: sharp, but for ECE and the correlations over levels, where only
      the metric's range is given, and for scores that are no probabilities (``scales``, method ->
      scale), whose mean has no ends. No end is an interval's.
    - An unreadable answer is wrong, with a missing confidence; a failed or ungraded one may be
      either. AUROC and AUPRC are withheld below ``min_per_class`` right or wrong answers.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`.
    """
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence, n_draws=0):
        is_probability = scales.get(label["method"]) == "probability"
        for line in (
            _of_method(rows, is_probability, min_per_class) if label["method"] else _accuracy(rows)
        ):
            lines.append(label | line)
    found = schema.table(lines, ["model", "dataset", "method"], ["worst", "best"])
    return found.drop(columns=["low", "high"])  # nothing is drawn here


def _accuracy(rows: Rows) -> Iterator[dict[str, Any]]:
    correct = rows.asked["correct"].where(rows.known).to_numpy(dtype=float)
    lost = {
        "missing": int(np.sum(rows.asked["failed"])),
        "ungraded": int(np.sum(rows.asked["ungraded"])),
    }
    why = ", ".join(f"{n} {what}" for what, n in lost.items() if n)
    yield _line(
        "accuracy", rows, Metric(mean("correct")), missing_bounds.accuracy_bounds(correct), why
    )


def _of_method(rows: Rows, is_probability: bool, least: int) -> Iterator[dict[str, Any]]:
    asked, lost = rows.asked, len(rows.asked) - len(rows)
    why = f"{lost} missing, most often: {most_frequent(asked[~rows.known])}" if lost else ""
    why = why if len(rows) else rows.why
    graded = ~(asked["failed"] | asked["ungraded"])
    correct = asked["correct"].where(graded).to_numpy(dtype=float)
    sure = asked["confidence"].to_numpy(dtype=float)
    ends: dict[str, Bounds] = {
        "auroc": missing_bounds.auroc_bounds(correct, sure),
        "auprc": missing_bounds.auprc_bounds(correct, sure),
    }
    metrics = {"mean_confidence": Metric(mean("confidence"))}
    metrics |= {name: Metric(of, at_least(least)) for name, (of, _) in RANKING.items()}
    if is_probability:
        metrics |= {name: CALIBRATION[name] for name in ("brier", "ece")}
        ends["mean_confidence"] = missing_bounds.mean_confidence_bounds(sure)
        ends["brier"] = missing_bounds.brier_bounds(correct, sure)
    metrics |= {name: Metric(across(of), undefined=FLAT) for name, of in OVER_LEVELS.items()}
    for name, metric in metrics.items():
        note = ""
        if lost and name in RANGES:
            ends[name], note = Bounds(*RANGES[name]), ONLY_RANGE
        elif lost and name not in ends:
            ends[name], note = missing_bounds.NONE, NO_ENDS
        yield _line(name, rows, metric, ends.get(name), why, note)


def _line(
    name: str, rows: Rows, metric: Metric, ends: Bounds | None, why: str, note: str = ""
) -> dict[str, Any]:
    """``ends`` are the value itself where nothing is missing."""
    value = (
        float(rows.drawn(metric.statistic)[0]) if len(rows) and not metric.withheld(rows) else NAN
    )
    found = estimate(rows, metric)
    alone = metric.withheld(rows) or (metric.undefined if np.isnan(value) else "")
    told = [note or (alone if len(rows) else ""), why]
    ends = ends or Bounds(value, value)
    more = {"worst": ends.worst, "best": ends.best, "missing": "; ".join(filter(None, told))}
    return {"metric": name, **found, **more}


def compared_message(table: pd.DataFrame) -> str:
    """Which methods the paired differences of ``compare_methods``, level-stratified and of one
    model, tell from the reference after Holm's correction."""
    part = table[table["level"].eq("within")]
    known = part.dropna(subset="p_holm")
    if part.empty:
        return ""
    reference = named(str(part["against"].iloc[0]))
    if known.empty:
        return f"No method can be told from {reference}: {most_frequent(part)}"
    by_size: Any = known.iloc[known["difference"].abs().argsort(kind="stable")[::-1]]
    sure = by_size[by_size["p_holm"].lt(ALPHA)]
    if sure.empty:
        most = by_size.iloc[0]
        shown = formatted.told(most, "difference", sign="+")
        return (
            f"On the same answers no method can be told from {reference}: none of {len(known)}"
            f" differences is beyond chance (Holm), the largest is that of"
            f" {named(most['method'])}, {shown}"
        )
    sides = {"better": sure[sure["difference"].gt(0)], "worse": sure[sure["difference"].lt(0)]}
    told = []
    for word, side in sides.items():
        ends = [formatted.told(line, "difference", sign="+") for _, line in side.iterrows()]
        names = [f"{named(m)} {shown}" for m, shown in zip(side["method"], ends, strict=True)]
        told += [f"{len(names)} {word}: {listed(names, 3)}"] if names else []
    return (
        f"Different from {reference} on the same answers beyond chance (Holm): {len(sure)} of"
        f" {len(known)} methods and baselines\n{'; '.join(told)}"
    )


def rising_message(table: pd.DataFrame) -> str:
    """How far accuracy rises over the levels of one model, and which confidences that are meant as
    a chance lie outside its interval."""
    single: Any = table[table["level"].astype(str).str.isdigit()].astype({"level": int})
    accuracy = single[single["metric"].eq("accuracy")].dropna(subset="value").sort_values("level")
    if accuracy.empty:
        return ""
    first, last = accuracy.iloc[0], accuracy.iloc[-1]
    ends = [f"{formatted.told(line, scale=100)} at {line['level']} %" for line in (first, last)]
    told = f"The accuracy is {ends[0]} of the statements"
    told += f" and {ends[1]}" if len(accuracy) > 1 else ""
    held = accuracy.dropna(subset="low").set_index("level")
    if held.empty:
        return f"{told}; without intervals, no confidence can be held against it"
    scale = {name: method.scale for name, method in METHODS.items()}
    sure = single[single["metric"].eq("mean_confidence") & single["level"].isin(held.index)]
    sure = sure[sure["method"].map(scale).eq("probability")].dropna(subset="value")
    above = sure["value"] > held["high"].loc[sure["level"]].to_numpy()
    below = sure["value"] < held["low"].loc[sure["level"]].to_numpy()
    sides = {"Above": above, "Below": below}
    for word, side in sides.items():
        n = side.groupby(sure["method"], sort=False).sum().sort_values(ascending=False)
        names = [f"{named(str(m))} ({k} of {len(held)} levels)" for m, k in n.items() if k]
        told += f"\n{word} its interval: {listed(names) if names else 'none'}" if len(sure) else ""
    return told


def level_correlations_message(table: pd.DataFrame) -> str:
    """How many Pearson correlations over the levels, of one model, are more than what a confidence
    that merely rises has beside the same accuracies."""
    found = table[table["metric"].eq("pearson")].dropna(subset=["value", "chance_low"])
    if found.empty:
        return ""
    mine = ranked(found)
    n_above = int((mine["value"] > mine["chance_high"] + 1e-6).sum())
    n_below = int((mine["value"] < mine["chance_low"] - 1e-6).sum())
    ends = found[["chance", "chance_low", "chance_high"]].iloc[0].to_list()
    band = formatted.told(dict(zip(["value", "low", "high"], ends, strict=True)))
    told = (
        f"A confidence that merely rises has a Pearson of {band} (95 %); of {len(mine)} methods:"
        f" {n_above} above, {len(mine) - n_above - n_below} within, {n_below} below"
    )
    level = found[found["method"].eq(SHARE)]
    alone = f"; information level alone has {formatted.told(level.iloc[0])}" if len(level) else ""
    return told + alone


def turned_message(table: pd.DataFrame) -> str:
    """How often two models stand on either side of the reference, for a method and a data set."""
    known = table.dropna(subset="difference")
    if known.empty:
        return ""
    reference = named(str(known["against"].iloc[0]))
    n_sure = int((known["low"].gt(0) | known["high"].lt(0)).sum())
    if known["model"].nunique() < 2:
        return f"{n_sure} of {len(known)} differences from {reference} have an interval without 0"
    each = [part for _, part in groups(known, ["method", "dataset"]) if len(part) > 1]
    sides = [(part["difference"].max() > 1e-6, part["difference"].min() < -1e-6) for part in each]
    sure = [(part["low"].gt(0).any(), part["high"].lt(0).any()) for part in each]
    n_turned, n_beyond = sum(map(all, sides)), sum(map(all, sure))
    return (
        f"The order of a method and {reference} turns from one model to another in {n_turned} of"
        f" {len(each)} comparisons, in {n_beyond} of them with intervals that leave out 0 on both"
        " sides"
    )


def cost_message(table: pd.DataFrame) -> str:
    """Whether a method that asks more ranks better than the best of the cheapest, of one model."""
    known = ranked(table).dropna(subset="value").sort_values("cost", kind="stable")
    if known.empty:
        return ""
    cheap = known["asked"].eq(known["asked"].iloc[0])
    kind = str(known["asked"].iloc[0])
    best = known[cheap].sort_values("value", ascending=False, kind="stable").iloc[0]
    told = f"{kind}: the highest AUROC is that of {named(best['method'])}, {formatted.told(best)}"
    dearer = known[~cheap]
    if dearer.empty or np.isnan(best["low"]):
        return told
    n = int(dearer["low"].gt(best["high"]).sum())
    most = dearer.sort_values("value", ascending=False, kind="stable").iloc[0]
    return (
        f"{told}\nBeyond its interval: {n} of {len(dearer)} methods that ask more; the highest is"
        f" {named(most['method'])}, {formatted.told(most)}"
    )


def lacking_words(table: pd.DataFrame, confidence: pd.DataFrame) -> str:
    """Which models of a figure's ``table`` have no value of which of its methods, and why."""
    shown = set(table["method"])
    told: dict[tuple[str, str], list[str]] = {}
    for key, part in groups(confidence[confidence["method"].isin(shown)], ["model", "method"]):
        if part["confidence"].isna().all():
            why = (str(key["model"]), most_frequent(part))
            told.setdefault(why, []).append(named(str(key["method"])))
    words = [f"{who}: {', '.join(names)} ({why})" for (who, why), names in told.items()]
    return f"no value of {'; '.join(words)}" if words else ""
