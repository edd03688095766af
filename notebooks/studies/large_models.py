"""09: what recorded replies of large models show; no model is asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from trustlab.choices import Switch, choices
from trustlab.confidence import select
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

SCORED = [
    "case_id",
    "dataset",
    "model",
    "truth",
    "answer",
    "missing",
    "samples",
    "texts",
]
"""Columns of the replies that are scored."""
GRADERS = ("free", "exact", "theirs", "choice")
"""Who says that an answer is right: the run's grader, one that takes equal names alone, the model
that graded for the authors, and, of the choice among options, the options."""
STATED = "stated confidence"
TOKENS = "token probability"
ACCURACY = "accuracy"
CONFIDENCE = "mean confidence"
BEYOND = "accuracy beyond confidence"
N_ANSWERS = 5
"""Answers of a model to a case: a row's samples."""
REPLY_KEYS = ["case_id", "dataset", "model"]


@choices
class Asked(Workbench):
    """The choices of notebook 09."""

    UNUSED = (
        "dataset", "path", "model", "levels", "samples", "temperature", "demonstrations",
        "doctor", "patient", "reviewer", "wording", "assessor", "panel", "n_doctors", "corpus",
        "retriever", "medical_proxy", "taught_form",
    )  # fmt: skip
    later: Switch = False
    """Whether the field's later methods are shown, in a section of their own."""


setup = Asked.of


def picked(replies: pd.DataFrame, n: int | None, seed: int) -> pd.DataFrame:
    """The replies to ``n`` cases picked at random with ``seed``; ``None``: to all."""
    cases = np.unique(replies["case_id"])
    if n is None or n >= len(cases):
        return replies
    chosen = np.random.default_rng(seed).choice(cases, n, replace=False)
    return rows_where(replies, column_of(replies, "case_id").isin(chosen)).reset_index(
        drop=True
    )


def scored(replies: pd.DataFrame, setup: Workbench) -> Run:
    """The replies with each way of telling scored by itself, as one run: of a model that could be
    read in less than half of one way's answers, nothing is claimed there. Prints the warnings."""
    runs = []
    for dataset, part in replies.groupby("dataset", sort=False):
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always", UserWarning)
            runs.append(score(part.loc[:, SCORED], setup=setup))
        for warning in remarks:
            print(f"{dataset}: {warning.message}")
    answers = pd.concat([run.answers for run in runs], ignore_index=True)
    confidence = pd.concat([run.confidence for run in runs], ignore_index=True)
    of_models = together(run.parameters for run in runs)
    return replace(
        runs[0],
        answers=with_condition(answers),
        confidence=with_condition(confidence),
        parameters=runs[0].parameters | of_models,
        generations=(),
    )


def later_run(replies: pd.DataFrame, notebook_setup: Workbench) -> Run:
    """The replies scored by the field's later methods that need text alone."""
    methods = [method.name for method in select("later") if method.access == "black"]
    later_setup = Workbench(
        methods=methods,
        samples=N_ANSWERS,
        parameters=notebook_setup.parameters,
        encoder=notebook_setup.readers.encoder,
        entailment=notebook_setup.readers.entailment,
        grader=notebook_setup.judge,
        cache=notebook_setup.cache,
        seed=notebook_setup.seed,
        n_jobs=notebook_setup.n_jobs,
        quiet=notebook_setup.quiet,
    )
    return scored(replies, later_setup)


def with_condition(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column ``condition``, the way of telling, from its data set's name."""
    return table.assign(condition=table["dataset"].str.removeprefix("craft_md "))


def graded(replies: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The first answers' keys with a verdict (1, 0 or NaN) of each of :data:`GRADERS`."""
    of_answers = answers[[*REPLY_KEYS, "correct"]]
    table = replies.merge(of_answers, on=REPLY_KEYS, validate="one_to_one")
    about = table[["case_id", "dataset", "truth"]].to_numpy()
    cases = [
        Case(case_id, dataset, (), truth, (truth,)) for case_id, dataset, truth in about
    ]
    was_read = table["answer"].notna()
    texts = table["answer"].astype(object)
    names = texts.where(was_read, None).tolist()
    exact_grades = open_grader("exact").grade(names, cases)
    exact = [grade.correct for grade in exact_grades]
    options = table["chosen"].str[0]
    is_right_option = (options == table["option"]).astype(float)
    return table[[*REPLY_KEYS, "condition"]].assign(
        free=table["correct"].astype(float),
        exact=pd.Series(exact, table.index, dtype=float).where(was_read),
        theirs=table["graded"].str[0].astype(float),
        choice=is_right_option.where(options.notna()),
    )


def judged_by_all(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of :func:`graded` on the answers that all graders judge; NaN elsewhere."""
    names = list(GRADERS)
    is_shared = verdicts[names].notna().all(axis=1)
    judged = verdicts.copy()
    judged[names] = verdicts[names].where(is_shared)
    return judged


def unread_is_wrong(verdicts: pd.DataFrame, replies: pd.DataFrame) -> pd.Series:
    """The verdicts "free" with 0 where the answer could not be read; NaN as it was where it was
    read and not judged, and wherever nothing is claimed of a model's way of telling."""
    texts = replies[[*REPLY_KEYS, "answer"]]
    answers = verdicts[REPLY_KEYS].merge(texts, on=REPLY_KEYS)
    is_unread = answers["answer"].isna().to_numpy()
    by_telling = verdicts.groupby(["model", "condition"])
    n_judged: Any = by_telling["free"].transform("count")
    is_wrong = is_unread & (n_judged > 0)
    free = column_of(verdicts, "free")
    return free.mask(is_wrong, 0.0)


def shares(
    table: pd.DataFrame,
    columns: Sequence[str],
    metric: str = "accuracy",
    none: str = "no verdict",
) -> pd.DataFrame:
    """The share of ones in each of ``columns`` by model and way of telling: a row for each and
    column (``how``)."""
    by = ["model", "condition"]
    lines: list[dict[str, Any]] = []
    for name in columns:
        rows = grouped(table.loc[:, ["case_id", *by, name]], by, name, none)
        for line in measure(rows, {metric: rate(name)}):
            lines.append(line | {"how": name})
    return schema.table(lines, [*by, "how"])


def falls(
    verdicts: pd.DataFrame, confidence: pd.DataFrame, method: str
) -> pd.DataFrame:
    """How far accuracy by each of :data:`GRADERS` and the mean of ``method`` fall from the vignette
    to each other way of telling, on the cases that have all of them in both.

    A row a model, condition, ``quantity`` and grader (``how``); the mean of ``method`` has no
    grader (""). "accuracy beyond confidence": how much farther accuracy falls, by each grader."""
    of_method = rows_where(confidence, confidence["method"].eq(method))
    keys = [*REPLY_KEYS, "condition"]
    table = verdicts.merge(of_method[[*keys, "confidence"]], on=keys)
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
            line = _mean_fall(both, fall, 1)
            lines.append({**about, "quantity": CONFIDENCE, "how": "", **line})
            for grader in GRADERS:
                of_right = _fall(both, grader)
                line = _mean_fall(both, of_right, 1)
                lines.append({**about, "quantity": ACCURACY, "how": grader, **line})
                line = _mean_fall(both, of_right - fall, 2)
                lines.append({**about, "quantity": BEYOND, "how": grader, **line})
    return schema.table(lines, ["model", "condition", "quantity", "how"])


def _fall(both: pd.DataFrame, name: str) -> pd.Series:
    """A column of the vignettes less that of the other way of telling."""
    return column_of(both, name).sub(column_of(both, f"{name}_other"))


def _mean_fall(cases: pd.DataFrame, fall: pd.Series, most: float) -> dict[str, Any]:
    """The mean of a fall between -``most`` and ``most``, with its interval and p."""
    case_ids = cases[["case_id"]]
    falls = case_ids.assign(fall=fall, least=-most, most=most)
    rows = Rows.of(falls, "fall")
    mean = mean_between("fall", "least", "most")
    line = estimate(rows, mean, test=True)
    return {"metric": "fall", **line}


def as_tables(replies: pd.DataFrame, dataset: str, methods: Sequence[str]) -> Tables:
    """Letters with confidences, one column a method, as the two tables of a run."""
    is_unread = replies["correct"].isna()
    answers = pd.DataFrame(
        {
            "case_id": replies["question"].astype(str),
            "dataset": dataset,
            "level": 100,
            "model": replies["model"],
            "answer": "a letter",
            "correct": replies["correct"],
            "missing": np.where(is_unread, "no letter could be read", ""),
        }
    )
    answers.loc[is_unread, "answer"] = None
    parts = []
    for method in methods:
        part = answers[["case_id", "dataset", "level", "model"]].assign(
            method=method,
            confidence=replies[_COLUMNS[method]].astype(float),
            bound="",
        )
        why = "not stated" if method == STATED else "no log-probabilities"
        part["missing"] = np.where(part["confidence"].isna(), why, "")
        parts.append(part)
    return Tables(answers, pd.concat(parts, ignore_index=True))


_COLUMNS = {STATED: "stated_confidence", TOKENS: "token_probability"}


def gaps(tables: Tables) -> pd.DataFrame:
    """The AUROC of token probability less that of stated confidence of each model, on the
    questions that have both; Holm over the models."""
    differences = compare_methods(tables.answers, tables.confidence, reference=STATED)
    is_pooled = differences["level"].eq("pooled") & differences["difference"].notna()
    pooled = rows_where(differences, is_pooled)
    p_holm = holm(pooled["p"])
    pooled = pooled.assign(p_holm=p_holm)
    return pooled.reset_index(drop=True)


def over_models(metrics: pd.DataFrame, method: str, metric: str) -> dict[str, Any]:
    """Kendall's tau of accuracy and a metric of ``method`` over the models that have both, with
    its exact two-sided p (the asymptotic one where models tie)."""
    pooled = rows_where(metrics, metrics["level"].eq("pooled"))
    is_accuracy = pooled["metric"].eq("accuracy")
    of_accuracy = rows_where(pooled, is_accuracy)
    of_accuracy = of_accuracy.drop_duplicates("model").set_index("model")
    is_wanted = pooled["method"].eq(method) & pooled["metric"].eq(metric)
    of_metric = rows_where(pooled, is_wanted)
    of_metric = of_metric.set_index("model")
    both = of_accuracy[["value"]].join(of_metric["value"], rsuffix="_of_method")
    both = both.dropna()
    accuracies = both["value"]
    values = both["value_of_method"]
    has_ties = accuracies.duplicated().any() or values.duplicated().any()
    how = "asymptotic" if has_ties else "exact"
    tau, p = kendalltau(accuracies, values, method=how)
    n_models = len(both)
    return {"metric": metric, "tau": tau, "p": p, "models": n_models}


def panel(letters: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """The vote of all models on each question: a row a question with the letter named most (a tie
    is drawn by the question's hash), ``correct``, the share of models that named it and ``cdr``."""
    wide = letters.pivot(index="question", columns="model", values="answer")
    truths = letters.drop_duplicates("question").set_index("question")["truth"]
    rows = []
    for question, letters_of_models in wide.iterrows():
        votes = [
            letter if isinstance(letter, str) else None for letter in letters_of_models
        ]
        winner, tied = trust.majority(votes, str(question))
        cdr = trust.cdr(votes)
        correct = np.nan
        if winner is not None:
            correct = float(winner == truths[question])
        row = {
            "case_id": str(question),
            "correct": correct,
            "confidence": 1 - cdr,
            "cdr": cdr,
            "tied": len(tied) > 0,
        }
        rows.append(row)
    model = f"vote of {wide.shape[1]} models"
    return pd.DataFrame(rows).assign(dataset=dataset, model=model, level=100)


def panel_lines(votes: pd.DataFrame, letters: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Accuracy of the vote, its AUROC, the CDR of the panel, and the vote's accuracy less that of
    the best model on the same questions (picked on them)."""
    about = {"dataset": votes["dataset"].iloc[0], "model": votes["model"].iloc[0]}
    rows = Rows.of(votes, "correct")
    line = estimate(rows, rate("correct"))
    yield {**about, "metric": "accuracy", **line}
    auroc = Metric(RANKING["auroc"], at_least(10))
    line = estimate(rows, auroc)
    yield {**about, "metric": "auroc", **line}
    rows = Rows.of(votes, "cdr")
    mean_cdr = Statistic(lambda of: of.mean(of["cdr"]), "cdr")
    line = estimate(rows, mean_cdr)
    yield {**about, "metric": "cdr", **line}
    by_model = letters.groupby("model")
    of_models = by_model.agg(correct=("correct", "mean"))
    best = str(column_of(of_models, "correct").idxmax())
    of_best = rows_where(letters, letters["model"].eq(best))
    questions = of_best["question"].astype(str)
    correct_of_best = column_of(of_best, "correct").set_axis(questions)
    case_ids = column_of(votes, "case_id")
    gain = votes["correct"] - case_ids.map(correct_of_best)
    gains = votes.assign(gain=gain, least=-1.0, most=1.0)
    rows = Rows.of(gains, "gain")
    line = estimate(rows, mean_between("gain", "least", "most"))
    yield {**about, "metric": f"accuracy less that of {best}", **line}


def chosen_shares(replies: pd.DataFrame) -> pd.DataFrame:
    """The options of each case with their shares of the replies that name one (two or more of the
    five), for :func:`trustlab.conformal_sets`: a row an option."""
    rows = []
    columns = [*REPLY_KEYS, "source", "options", "option", "chosen"]
    table: Any = replies[columns]
    for reply in table.to_dict("records"):
        named = [option for option in reply["chosen"] if option]
        for option in reply["options"]:
            chance = np.nan
            if len(named) > 1:
                chance = named.count(option) / len(named)
            is_right = option == reply["option"]
            rows.append({**reply, "probability": chance, "right": is_right})
    return pd.DataFrame(rows).assign(level=100)


def copies(replies: pd.DataFrame) -> pd.DataFrame:
    """The share of cases in which all five whole replies are one text, by model and condition."""
    is_same = replies["texts"].map(lambda texts: len(set(filter(None, texts))) == 1)
    table = replies.assign(same=is_same.astype(float))
    return shares(table, ["same"], "all five replies are one text")


def naive_agreement(replies: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """The mean share of the most frequent short name, copies or not, beside the accuracy of the
    same answers: a row a model, way of telling and metric."""
    names = replies[[*REPLY_KEYS, "samples"]]
    table = verdicts[[*REPLY_KEYS, "condition", "free"]].merge(names, on=REPLY_KEYS)
    samples = table.pop("samples")
    table["agreement"] = samples.map(_share_of_top)
    columns = ["free", "agreement"]
    has_both = table[columns].notna().all(axis=1)
    table[columns] = table[columns].where(has_both)
    by = ["model", "condition"]
    rows = grouped(table, by, "free", "too few answers read")
    metrics = {"accuracy": rate("free"), "agreement": mean_share("agreement")}
    return schema.table(measure(rows, metrics), by)


def _share_of_top(names: Sequence[str | None]) -> float:
    """The share of the most frequent of the names read; NaN below two."""
    read = [normalise(name) for name in names if name is not None]
    if len(read) < 2:
        return float("nan")
    return 1 - trust.cdr(read)
