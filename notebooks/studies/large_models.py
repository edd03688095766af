"""09: what recorded replies of large models show; no model is asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from trustlab.choices import choices
from trustlab.graders import open_grader
from trustlab.metrics import schema, trust
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Metric,
    Rows,
    Statistic,
    at_least,
    estimate,
    grouped,
    mean_between,
    mean_share,
    measure,
    rate,
)
from trustlab.metrics.run_tables import Tables
from trustlab.metrics.schema import column_of, rows_where
from trustlab.metrics.significance import holm
from trustlab.records import Case, normalise
from trustlab.runs.experiment import score
from trustlab.runs.formatted import together
from trustlab.runs.measures import compare_methods
from trustlab.runs.run import Run
from trustlab.runs.workbench import Workbench

SCORED = ["case_id", "dataset", "model", "truth", "answer", "missing", "samples", "texts"]
"""Columns of the replies that are scored."""
GRADERS = ("free", "exact", "theirs", "choice")
"""Who says that an answer is right: the run's grader, one that takes equal names alone, the model
that graded for the authors, and, of the choice among options, the options."""
STATED, TOKENS = "stated confidence", "token probability"
ACCURACY, CONFIDENCE, BEYOND = "accuracy", "mean confidence", "accuracy beyond confidence"


@choices
class Asked(Workbench):
    """The choices of notebook 09."""

    UNUSED = (
        "dataset", "path", "model", "levels", "samples", "temperature", "demonstrations",
        "doctor", "patient", "reviewer", "wording", "assessor", "panel", "n_doctors", "corpus",
        "retriever", "medical_proxy", "taught_form",
    )  # fmt: skip


setup = Asked.of


def picked(replies: pd.DataFrame, n: int | None, seed: int) -> pd.DataFrame:
    """The replies to ``n`` cases picked at random with ``seed``; ``None``: to all."""
    cases = np.unique(replies["case_id"])
    if n is None or n >= len(cases):
        return replies
    chosen = np.random.default_rng(seed).choice(cases, n, replace=False)
    return rows_where(replies, column_of(replies, "case_id").isin(chosen)).reset_index(drop=True)


def scored(replies: pd.DataFrame, setup: Workbench) -> Run:
    """The replies with each way of telling scored by itself, as one run: of a model that could be
    read in less than half of one way's answers, nothing is claimed there. Prints the warnings."""
    runs = []
    for dataset, part in replies.groupby("dataset", sort=False):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            runs.append(score(part.loc[:, SCORED], setup=setup))
        for warning in told:
            print(f"{dataset}: {warning.message}")
    of_models = together(run.parameters for run in runs)
    return replace(
        runs[0],
        answers=with_condition(pd.concat([run.answers for run in runs], ignore_index=True)),
        confidence=with_condition(pd.concat([run.confidence for run in runs], ignore_index=True)),
        parameters=runs[0].parameters | of_models,
        generations=(),
    )


def with_condition(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column ``condition``, the way of telling, from its data set's name."""
    return table.assign(condition=table["dataset"].str.removeprefix("craft_md "))


def graded(replies: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The first answers' keys with a verdict (1, 0 or NaN) of each of :data:`GRADERS`."""
    keys = ["case_id", "dataset", "model"]
    table = replies.merge(answers[[*keys, "correct"]], on=keys, validate="one_to_one")
    cases = [
        Case(case_id, dataset, (), truth, (truth,))
        for case_id, dataset, truth in table[["case_id", "dataset", "truth"]].to_numpy()
    ]
    names = table["answer"].astype(object).where(table["answer"].notna(), None).tolist()
    exact = [grade.correct for grade in open_grader("exact").grade(names, cases)]
    chosen = table["chosen"].str[0]
    return table[[*keys, "condition"]].assign(
        free=table["correct"].astype(float),
        exact=pd.Series(exact, table.index, dtype=float).where(table["answer"].notna()),
        theirs=table["graded"].str[0].astype(float),
        choice=(chosen == table["option"]).astype(float).where(chosen.notna()),
    )


def judged_by_all(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of :func:`graded` on the answers that all graders judge; NaN elsewhere."""
    shared = verdicts[list(GRADERS)].notna().all(axis=1)
    return verdicts.assign(**{name: verdicts[name].where(shared) for name in GRADERS})


def unread_is_wrong(verdicts: pd.DataFrame, replies: pd.DataFrame) -> pd.Series:
    """The verdicts "free" with 0 where the answer could not be read; NaN as it was where it was
    read and not judged, and wherever nothing is claimed of a model's way of telling."""
    keys = ["case_id", "dataset", "model"]
    unread = verdicts[keys].merge(replies[[*keys, "answer"]], on=keys)["answer"].isna()
    n_judged: Any = verdicts.groupby(["model", "condition"])["free"].transform("count")
    claimed = n_judged > 0
    return column_of(verdicts, "free").mask(unread.to_numpy() & claimed, 0.0)


def shares(
    table: pd.DataFrame, columns: Sequence[str], metric: str = "accuracy", none: str = "no verdict"
) -> pd.DataFrame:
    """The share of ones in each of ``columns`` by model and way of telling: a row for each and
    column (``how``)."""
    by = ["model", "condition"]
    lines: list[dict[str, Any]] = []
    for name in columns:
        each = grouped(table.loc[:, ["case_id", *by, name]], by, name, none)
        lines += [line | {"how": name} for line in measure(each, {metric: rate(name)})]
    return schema.table(lines, [*by, "how"])


def falls(verdicts: pd.DataFrame, confidence: pd.DataFrame, method: str) -> pd.DataFrame:
    """How far accuracy by each of :data:`GRADERS` and the mean of ``method`` fall from the vignette
    to each other way of telling, on the cases that have all of them in both.

    A row a model, condition, ``quantity`` and grader (``how``); the mean of ``method`` has no
    grader (""). "accuracy beyond confidence": how much farther accuracy falls, by each grader."""
    own = rows_where(confidence, confidence["method"].eq(method))
    keys = ["case_id", "dataset", "model", "condition"]
    table = verdicts.merge(own[[*keys, "confidence"]], on=keys)
    table = table.dropna(subset=[*GRADERS, "confidence"])
    lines: list[dict[str, Any]] = []
    for model, part in table.groupby("model", sort=False):
        whole = part[part["condition"].eq("vignette")]
        for condition, other in part.groupby("condition", sort=False):
            if condition == "vignette":
                continue
            both = whole.merge(other, on="case_id", suffixes=("", "_other"))
            about = {"model": model, "condition": condition}
            fall = _fall(both, "confidence")
            lines.append({**about, "quantity": CONFIDENCE, "how": "", **_mean_fall(both, fall, 1)})
            for grader in GRADERS:
                right = _fall(both, grader)
                of_right = _mean_fall(both, right, 1)
                beyond = _mean_fall(both, right - fall, 2)
                lines.append({**about, "quantity": ACCURACY, "how": grader, **of_right})
                lines.append({**about, "quantity": BEYOND, "how": grader, **beyond})
    return schema.table(lines, ["model", "condition", "quantity", "how"])


def _fall(both: pd.DataFrame, name: str) -> pd.Series:
    """A column of the vignettes less that of the other way of telling."""
    return column_of(both, name).sub(column_of(both, f"{name}_other"))


def _mean_fall(cases: pd.DataFrame, fall: pd.Series, most: float) -> dict[str, Any]:
    """The mean of a fall between -``most`` and ``most``, with its interval and p."""
    change = pd.DataFrame({"case_id": cases["case_id"], "fall": fall, "least": -most, "most": most})
    mean = mean_between("fall", "least", "most")
    return {"metric": "fall", **estimate(Rows.of(change, "fall"), mean, test=True)}


def as_tables(replies: pd.DataFrame, dataset: str, methods: Sequence[str]) -> Tables:
    """Letters with confidences, one column a method, as the two tables of a run."""
    answers = pd.DataFrame(
        {
            "case_id": replies["question"].astype(str),
            "dataset": dataset,
            "level": 100,
            "model": replies["model"],
            "answer": "a letter",
            "correct": replies["correct"],
            "missing": np.where(replies["correct"].isna(), "no letter could be read", ""),
        }
    )
    answers.loc[answers["correct"].isna(), "answer"] = None
    columns = []
    for method in methods:
        own = answers[["case_id", "dataset", "level", "model"]].assign(method=method)
        own["confidence"], own["bound"] = replies[_COLUMNS[method]].astype(float), ""
        why = "not stated" if method == STATED else "no log-probabilities"
        own["missing"] = np.where(own["confidence"].isna(), why, "")
        columns.append(own)
    return Tables(answers, pd.concat(columns, ignore_index=True))


_COLUMNS = {STATED: "stated_confidence", TOKENS: "token_probability"}


def gaps(tables: Tables) -> pd.DataFrame:
    """The AUROC of token probability less that of stated confidence of each model, on the
    questions that have both; Holm over the models."""
    found = compare_methods(tables.answers, tables.confidence, reference=STATED)
    found = rows_where(found, found["level"].eq("pooled") & found["difference"].notna())
    return found.assign(p_holm=holm(found["p"])).reset_index(drop=True)


def over_models(metrics: pd.DataFrame, method: str, metric: str) -> dict[str, Any]:
    """Kendall's tau of accuracy and a metric of ``method`` over the models that have both, with
    its exact two-sided p (the asymptotic one where models tie)."""
    pooled = rows_where(metrics, metrics["level"].eq("pooled"))
    accuracy = rows_where(pooled, pooled["metric"].eq("accuracy"))
    accuracy = accuracy.drop_duplicates("model").set_index("model")["value"]
    mine = rows_where(pooled, pooled["method"].eq(method) & pooled["metric"].eq(metric))
    mine = mine.set_index("model")["value"].dropna()
    both = pd.concat([accuracy, mine], axis=1, keys=["accuracy", "value"]).dropna()
    ties = both["accuracy"].duplicated().any() or both["value"].duplicated().any()
    tau, p = kendalltau(*both.to_numpy().T, method="asymptotic" if ties else "exact")
    return {"metric": metric, "tau": tau, "p": p, "models": len(both)}


def panel(letters: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """The vote of all models on each question: a row a question with the letter named most (a tie
    is drawn by the question's hash), ``correct``, the share of models that named it and ``cdr``."""
    wide = letters.pivot(index="question", columns="model", values="answer")
    truths = letters.drop_duplicates("question").set_index("question")["truth"]
    rows = []
    for question, votes in wide.iterrows():
        each = [vote if isinstance(vote, str) else None for vote in votes]
        winner, tied = trust.majority(each, str(question))
        apart = trust.cdr(each)
        right = np.nan if winner is None else float(winner == truths[question])
        rows.append((str(question), right, 1 - apart, apart, len(tied) > 0))
    names = ["case_id", "correct", "confidence", "cdr", "tied"]
    found = pd.DataFrame(rows, columns=names)
    return found.assign(dataset=dataset, model=f"vote of {wide.shape[1]} models", level=100)


def panel_lines(votes: pd.DataFrame, letters: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Accuracy of the vote, its AUROC, the CDR of the panel, and the vote's accuracy less that of
    the best model on the same questions (picked on them)."""
    about = {"dataset": votes["dataset"].iloc[0], "model": votes["model"].iloc[0]}
    rows = Rows.of(votes, "correct")
    yield {**about, "metric": "accuracy", **estimate(rows, rate("correct"))}
    yield {**about, "metric": "auroc", **estimate(rows, Metric(RANKING["auroc"], at_least(10)))}
    spread = votes.assign(least=0.0, most=1.0)
    apart = Statistic(lambda of: of.mean(of["cdr"]), "cdr")
    yield {**about, "metric": "cdr", **estimate(Rows.of(spread, "cdr"), apart)}
    of_model = letters.groupby("model").agg(correct=("correct", "mean"))
    best = str(column_of(of_model, "correct").idxmax())
    own = rows_where(letters, letters["model"].eq(best)).set_index("question")
    own = column_of(own, "correct")
    own.index = own.index.astype(str)
    gain = votes["correct"] - column_of(votes, "case_id").map(own)
    both = votes.assign(gain=gain, least=-1.0, most=1.0)
    line = estimate(Rows.of(both, "gain"), mean_between("gain", "least", "most"))
    yield {**about, "metric": f"accuracy less that of {best}", **line}


def copies(replies: pd.DataFrame) -> pd.DataFrame:
    """The share of cases in which all five whole replies are one text, by model and condition."""
    texts = replies["texts"].map(lambda five: len({text for text in five if text}) == 1)
    table = replies.assign(same=texts.astype(float))
    return shares(table, ["same"], "all five replies are one text")


def naive_agreement(replies: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """The mean share of the most frequent short name, copies or not, beside the accuracy of the
    same answers: a row a model, way of telling and metric."""
    table = verdicts[["case_id", "dataset", "model", "condition", "free"]].merge(
        replies[["case_id", "dataset", "model", "samples"]], on=["case_id", "dataset", "model"]
    )
    table["agreement"] = table.pop("samples").map(_share_of_top)
    known = table["free"].notna() & table["agreement"].notna()
    table[["free", "agreement"]] = table[["free", "agreement"]].where(known)
    each = grouped(table, ["model", "condition"], "free", "too few answers read")
    metrics = {"accuracy": rate("free"), "agreement": mean_share("agreement")}
    return schema.table(measure(each, metrics), ["model", "condition"])


def _share_of_top(names: Sequence[str | None]) -> float:
    """The share of the most frequent of the names read; NaN below two."""
    read = [normalise(name) for name in names if name is not None]
    return 1 - trust.cdr(read) if len(read) > 1 else float("nan")
