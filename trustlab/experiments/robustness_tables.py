"""What the changes did, as tables: coefficients of variation, accuracy, shifts of the confidence.

``answers`` and ``confidence`` are those of :class:`trustlab.experiments.robustness.Robustness`.
Rows in which a condition changed nothing are no test of it: they are left out of that condition.
``level`` is one of the run, or "all".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from scipy.stats import ttest_1samp

from trustlab.changes import AS_TOLD, PARAPHRASES
from trustlab.experiments.shown import pivoted
from trustlab.knowledge import normalise
from trustlab.metrics.estimate import NAN, Rows, estimate, groups, mean, measure
from trustlab.metrics.run_tables import Tables
from trustlab.metrics.schema import table
from trustlab.metrics.significance import holm
from trustlab.metrics.stability import NO_SPREAD, RATIO, cv_group, cv_group_by_chance, cv_sample
from trustlab.metrics.table import metrics_table

RUN = ["model", "dataset"]
VIEW = ["case_id", "level"]
ROW = [*RUN, *VIEW]
METHOD = [*RUN, "method"]
LEAST_SHARE = 0.5
"""A method with a value on a smaller share of the rows would take too many from the others."""
SAME = "the paraphrased conditions show the same text"
NOT_SHARED = "no row has a value of every compared method"
NOT_BOTH = "no value in both conditions"
MOVED = ("accuracy", "difference", "other_answer")


def variation_table(confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """CV group and CV sample (percent) of each method on a ratio scale over the paraphrases.

    - Left out are views where two paraphrased conditions show the same text (``n_same``), and those
      where a condition changed nothing or has no value, as told included (``n_missing``).
    - Methods stand on the rows that they share; one that has fewer than half on its own
      (``own_rows``). ``chance``: :func:`~trustlab.metrics.stability.cv_group_by_chance`.
    - Empty where there are fewer than two paraphrased conditions.
    """
    lines = []
    for about, part in groups(compared_views(confidence), [*RUN, "level", "method"]):
        apart = part[~part["same"]]
        values = apart[conditions(apart)].where(apart["used"])
        lost = (apart["whole"] & apart["possible"]).any() and not apart["used"].any()
        alike = part["same"].any() and not part["possible"].any()
        why = NOT_SHARED if lost else SAME if alike else ""
        about |= {"own_rows": part["own"].any(), "n_same": part["same"].sum()}
        group, each = (cv(values, apart["case_id"], n_draws, seed) for cv in (cv_group, cv_sample))
        group["chance"] = cv_group_by_chance(values, n_draws, seed)
        for metric, line in (("cv_group", group), ("cv_sample", each)):
            lines.append(about | line | {"metric": metric, "missing": why or line["missing"]})
    return table(lines, [*RUN, "method", "level"], ["n_same", "n_zero", "chance", "own_rows"])


def variation_cells(variation: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`variation_table` to read: a column a level, with interval and n."""
    return pivoted(variation, [*RUN, "method", "metric"], "level", 1, counted=True)


def compared_views(confidence: pd.DataFrame) -> pd.DataFrame:
    """What variation is taken over: a row for each method on a ratio scale, view and level.

    Columns model dataset method case_id percent level; a value for each condition, as told
    included; ``same``: two paraphrased conditions show one text; ``possible``: they do not, and
    each changed something; ``whole``: every condition has a value; and those of
    :func:`compared_rows`.
    """
    again = conditions(confidence["condition"].unique())
    ours = confidence["condition"].isin([AS_TOLD.name, *again]) & confidence["method"].isin(RATIO)
    asked: Any = confidence[ours & (len(again) > 1)]
    texts = asked.drop_duplicates([*ROW, "condition"]).set_index([*ROW, "condition"])
    shown, changed = (texts[name].unstack("condition") for name in ("shown", "changed"))
    moved = changed[conditions(changed)].astype(bool).all(axis=1)
    same = moved & (shown[conditions(shown)].nunique(axis=1) < len(again))
    views = pd.DataFrame({"same": same, "possible": moved & ~same}).reset_index()
    values = asked.pivot(index=[*ROW, "method"], columns="condition", values="confidence")
    found = asked[[*RUN, "method"]].drop_duplicates().merge(views, on=RUN)
    found = found.join(values, on=[*ROW, "method"])
    found["whole"] = found[values.columns].notna().all(axis=1)
    return compared_rows(by_level(found, RUN), [*RUN, "level"])


def conditions(names: Any) -> list[str]:
    """The paraphrased conditions among these names."""
    return [name for name in names if name.startswith(PARAPHRASES)]


def compared_rows(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """``used``: which rows of each method are compared; ``own``: whether it stands on its own.

    Methods that are ``whole`` on at least half of the ``possible`` rows are compared on those where
    all of them are; the others keep their own.
    """
    had = rows.assign(used=rows["whole"] & rows["possible"])
    of_method: Any = had.groupby([*by, "method"])[["used", "possible"]].transform("sum")
    own = of_method["used"] < LEAST_SHARE * of_method["possible"]
    own |= of_method["possible"].eq(0)
    free = had.assign(used=had["used"] | own)
    shared = free.groupby([*by, "case_id", "percent"])["used"].transform("all")
    return had.assign(used=had["used"] & (shared | own), own=own & (of_method["used"] > 0))


def by_level(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The rows at each ``level`` (now ``percent``), ascending, then at "all"; ``by`` in order."""
    rows = rows.rename(columns={"level": "percent"})
    each = [rows[rows["percent"] == q].assign(level=str(q)) for q in sorted(set(rows["percent"]))]
    found = pd.concat([*each, rows.assign(level="all")])
    return found.sort_values(by, key=lambda column: pd.factorize(column)[0], kind="stable")


def accuracy_table(answers: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What each condition does to the answers, over the rows that it changed and that both have.

    ``metric``: "accuracy" under the condition, "difference" (less that as told on the same rows) or
    "other_answer" (share of answers in other words than as told; case and punctuation aside).
    """
    is_told = answers["condition"] == AS_TOLD.name
    both = _with_told(answers, ROW, "correct")
    both = both.assign(accuracy=both["correct"].astype(float), other_answer=~_same_answer(both))
    both["difference"] = both["accuracy"] - both["correct_told"]
    both["possible"] = is_told | both["changed"].astype(bool)
    keys = [*RUN, "condition", "level"]
    rows = by_level(both, keys[:-1])
    how: Any = "difference", n_draws, seed, NOT_BOTH
    held = ((key, Rows.of(part[part["possible"]], *how)) for key, part in groups(rows, keys))
    found: Any = table(measure(held, {name: mean(name) for name in MOVED}), keys)
    plain = found["condition"].eq(AS_TOLD.name) & found["metric"].ne("accuracy")
    return found[~plain].reset_index(drop=True)


def shift_table(
    answers: pd.DataFrame, confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How far each condition moves each method's mean confidence, in the method's own units.

    - Less as told, paired by case and level, over the rows that the condition changed and that have
      a value in both: the same for all methods of a condition but those with ``own_rows``.
    - ``among``: "all answers" or "same answer", since where the answer changed, the confidence may
      rightly change with it.
    - ``p``: two-sided paired t over cases, a case's shift its mean over levels, where there is an
      interval (a bootstrap's share could not be small enough for so many cells); ``p_holm`` over
      all conditions and methods of a run, level and ``among``.
    """
    said = answers[[*ROW, "condition", "answer"]]
    asked = confidence.merge(said, on=[*ROW, "condition"], how="left", validate="many_to_one")
    both = _with_told(asked, [*ROW, "method"], "confidence")
    both = both[both["condition"].ne(AS_TOLD.name) & both["changed"].astype(bool)]
    shift = both["confidence"] - both["confidence_told"]
    both = both.assign(shift=shift, whole=shift.notna())
    among = {"all answers": True, "same answer": _same_answer(both)}
    both = pd.concat([both.assign(among=name, possible=some) for name, some in among.items()])
    keys = [*RUN, "condition", "level", "among", "method"]
    rows = compared_rows(by_level(both, [*RUN, "condition"]), keys[:-1])
    rows["shift"] = rows["shift"].where(rows["used"])
    lines = []
    for about, part in groups(rows, keys):
        held: Any = Rows.of(part[part["possible"]], "shift", n_draws, seed, NOT_BOTH)
        about |= {"metric": "shift", "own_rows": held.asked["own"].any(), "p": NAN}
        line = about | estimate(held, mean("shift"))
        each = held.table.groupby("case_id")["shift"].mean().to_numpy()
        if pd.notna(line["low"]) and each.std() >= NO_SPREAD:
            line["p"] = ttest_1samp(each, 0)[1]
        lines.append(line)
    keys = [*RUN, "condition", "method", "level", "among"]
    found = table(lines, keys, ["own_rows", "p", "p_holm"])
    return found.assign(p_holm=found.groupby([*RUN, "level", "among"])["p"].transform(holm))


def _with_told(rows: pd.DataFrame, index: list[str], column: str) -> Any:
    """The rows with what the same ones have as told beside them: ``column`` and the answer."""
    told = rows[rows["condition"] == AS_TOLD.name].set_index(index)[[column, "answer"]]
    return rows.join(told.add_suffix("_told"), on=index)


def scatter_table(
    variation: pd.DataFrame,
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    level: int | str = "all",
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Stability beside discrimination on the same views at a level, three rows a method.

    ``metric``: cv_group and cv_sample of ``variation``, which :func:`variation_table` made of
    ``confidence``; auroc as told, of "all" levels the mean within levels.
    """
    views: Any = compared_views(confidence)
    views = views[views["used"] & views["level"].eq(str(level))]
    views = views.drop(columns="level").rename(columns={"percent": "level"})
    said, sure = (pd.DataFrame(t[t["condition"] == AS_TOLD.name]) for t in (answers, confidence))
    areas: dict[Any, dict[str, Any]] = {}
    for _, part in views.groupby([*RUN, views["method"].where(views["own"], "")]):
        rows = part[ROW].drop_duplicates()
        mine = sure[sure["method"].isin(part["method"])].merge(rows, on=ROW)
        which = "within" if level == "all" else str(level)
        made = aurocs(said.merge(rows, on=ROW), mine, which, n_draws, seed)
        areas |= {tuple(line[name] for name in METHOD): line for line in made}
    lines, none = [], {"metric": "auroc", "n": 0, "n_cases": 0, "n_missing": 0}
    at_level = pd.DataFrame(variation[variation["level"] == str(level)])
    for key, part in groups(at_level, METHOD):
        of_cv: Any = part.to_dict("records")
        about = {name: of_cv[-1][name] for name in ("own_rows", "missing")}
        lines += [*of_cv, key | about | areas.get(tuple(key.values()), none)]
    return table(lines, METHOD, ["n_rarer", "own_rows"])


def aurocs(
    answers: pd.DataFrame, confidence: pd.DataFrame, level: str, n_draws: int, seed: int
) -> list[dict[str, Any]]:
    """Each method's AUROC at a level, as lines of :func:`~trustlab.metrics.table.metrics_table`."""
    found: Any = metrics_table(Tables(answers, confidence), n_draws=n_draws, seed=seed)
    return found[found["metric"].eq("auroc") & found["level"].eq(level)].to_dict("records")


def _same_answer(both: pd.DataFrame) -> Any:
    """Whether ``answer`` and ``answer_told`` are the same words, case and punctuation aside."""
    words = both[["answer", "answer_told"]]
    words = words.map(lambda a: normalise(a) if isinstance(a, str) else " ")
    return words["answer"] == words["answer_told"]
