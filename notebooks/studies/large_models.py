"""09: what recorded replies of large models show; no model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from trustlab.choices import choices
from trustlab.graders import open_grader
from trustlab.measures import compare_methods
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
    measure,
    rate,
)
from trustlab.metrics.run_tables import Tables
from trustlab.metrics.significance import holm
from trustlab.records import Case, normalise
from trustlab.workbench import Workbench

METHODS = [
    "poc", "lexical_similarity", "semantic_similarity", "num_set", "eigv", "deg", "ecc",
    "semantic_entropy_discrete",
]  # fmt: skip
"""Black-box consistency: they need several answers, and nothing else."""
STATED, TOKENS = "stated confidence", "token probability"


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
    return replies[replies["case_id"].isin(chosen)].reset_index(drop=True)


def choices_right(replies: pd.DataFrame) -> pd.Series:
    """Whether the first choice among the options is the right one; NaN where it names none."""
    first = replies["chosen"].str[0]
    return (first == replies["option"]).astype(float).where(first.notna())


def graded(replies: pd.DataFrame, graders: Sequence[str]) -> pd.DataFrame:
    """The first answers' keys with a verdict (1, 0 or NaN) of each grader, and of "theirs": the
    model that graded for the authors of the replies."""
    cases = [
        Case(case_id, dataset, (), truth, (truth,))
        for case_id, dataset, truth in replies[["case_id", "dataset", "truth"]].to_numpy()
    ]
    found = replies[["case_id", "dataset", "model", "condition"]].copy()
    answers = replies["answer"].astype(object).where(replies["answer"].notna(), None).tolist()
    for name in graders:
        grades = open_grader(name).grade(answers, cases)
        verdicts = pd.Series([g.correct for g in grades], replies.index, dtype=float)
        found[name] = verdicts.where(replies["answer"].notna())
    found["theirs"] = replies["graded"].str[0].astype(float)
    return found


def shares(
    table: pd.DataFrame, columns: Sequence[str], by: Sequence[str], metric: str = "accuracy"
) -> pd.DataFrame:
    """The share of ones in each of ``columns`` by group: a row a group and column (``how``)."""
    lines: list[dict[str, Any]] = []
    for name in columns:
        each = grouped(table[["case_id", *by, name]], by, name, "no verdict")
        lines += [line | {"how": name} for line in measure(each, {metric: rate(name)})]
    return schema.table(lines, [*by, "how"])


def falls(answers: pd.DataFrame, confidence: pd.DataFrame, method: str) -> pd.DataFrame:
    """How far accuracy and the mean of ``method`` fall from the vignette to each other way of
    telling, on the cases that have both in both: a row a model, condition and ``quantity``, and
    their difference (how much farther accuracy falls)."""
    own = confidence[confidence["method"].eq(method)]
    keys = ["case_id", "dataset", "model", "condition"]
    table = answers[[*keys, "correct"]].merge(own[[*keys, "confidence"]], on=keys)
    table = table.dropna(subset=["correct", "confidence"])
    lines: list[dict[str, Any]] = []
    for model, part in table.groupby("model", sort=False):
        told = part[part["condition"].eq("vignette")]
        for condition, other in part.groupby("condition", sort=False):
            if condition == "vignette":
                continue
            both = told.merge(other, on="case_id", suffixes=("", "_other"))
            change = pd.DataFrame(
                {
                    "accuracy": both["correct"] - both["correct_other"],
                    "mean confidence": both["confidence"] - both["confidence_other"],
                    "least": -1.0,
                    "most": 1.0,
                }
            ).assign(case_id=both["case_id"])
            change["accuracy beyond confidence"] = change["accuracy"] - change["mean confidence"]
            change["lowest"], change["highest"] = -2.0, 2.0
            ends = {"accuracy beyond confidence": ("lowest", "highest")}
            for quantity in ("accuracy", "mean confidence", "accuracy beyond confidence"):
                fall = mean_between(quantity, *ends.get(quantity, ("least", "most")))
                line = estimate(Rows.of(change, quantity), fall, test=True)
                about = {"model": model, "condition": condition, "quantity": quantity}
                lines.append({**about, "metric": "fall", **line})
    return schema.table(lines, ["model", "condition", "quantity"])


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
    found = found[found["level"].eq("pooled") & found["difference"].notna()]
    return found.assign(p_holm=holm(found["p"])).reset_index(drop=True)


def over_models(metrics: pd.DataFrame, method: str, metric: str) -> dict[str, Any]:
    """Kendall's tau of accuracy and a metric of ``method`` over the models that have both, with
    its exact two-sided p (the asymptotic one where models tie)."""
    accuracy = metrics[metrics["metric"].eq("accuracy") & metrics["level"].eq("pooled")]
    accuracy = accuracy.drop_duplicates("model").set_index("model")["value"]
    mine = metrics[metrics["method"].eq(method) & metrics["metric"].eq(metric)]
    mine = mine[mine["level"].eq("pooled")].set_index("model")["value"].dropna()
    both = pd.concat([accuracy, mine], axis=1, keys=["accuracy", "value"]).dropna()
    ties = both["accuracy"].duplicated().any() or both["value"].duplicated().any()
    found = kendalltau(*both.to_numpy().T, method="asymptotic" if ties else "exact")
    return {"metric": metric, "tau": found.statistic, "p": found.pvalue, "models": len(both)}


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
    of_model = letters.groupby("model")["correct"].mean()
    best = str(of_model.idxmax())
    own = letters[letters["model"].eq(best)].set_index("question")["correct"]
    own.index = own.index.astype(str)
    gain = votes["correct"] - votes["case_id"].map(own)
    both = votes.assign(gain=gain, least=-1.0, most=1.0)
    line = estimate(Rows.of(both, "gain"), mean_between("gain", "least", "most"))
    yield {**about, "metric": f"accuracy less that of {best}", **line}


def copies(replies: pd.DataFrame) -> pd.DataFrame:
    """The share of cases in which all five whole replies are one text, by model and condition."""
    texts = replies["texts"].map(lambda five: len({text for text in five if text}) == 1)
    table = replies.assign(same=texts.astype(float))
    return shares(table, ["same"], ["model", "condition"], "all five replies are one text")


def naive_agreement(replies: pd.DataFrame) -> pd.DataFrame:
    """The mean share of the most frequent short name among those read, copies or not."""
    shares_of_top = replies["samples"].map(_share_of_top)
    table = replies[["model", "condition"]].assign(agreement=shares_of_top)
    return table.groupby(["model", "condition"], sort=False)["agreement"].mean().reset_index()


def _share_of_top(names: Sequence[str | None]) -> float:
    apart = trust.cdr([None if name is None else normalise(name) for name in names])
    return 1 - apart
