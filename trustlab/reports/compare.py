"""Sets several runs side by side on the cases that they share."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from trustlab.metrics import schema
from trustlab.metrics.estimate import groups
from trustlab.metrics.paired import paired_differences
from trustlab.metrics.run_tables import KEYS, Tables, checked_answers, joined
from trustlab.paths import NOTICE, save_json, save_table
from trustlab.reports.families import FAMILY_LABELS
from trustlab.runs import formatted
from trustlab.runs.folder.saved import load_run
from trustlab.runs.measures import families, metrics_table
from trustlab.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CASE = ["dataset", "case_id"]
VIEW = [*CASE, "level"]
MOST = 7  # sides that a figure has looks for
TITLE = "AUROC of each method, level-stratified: a mark for each side"
OWN_ANSWERS = (
    "each side ranks its own answers: models differ in what they get right, so a difference"
    " compares how well each tells its own right answers from its own wrong ones"
)


@dataclass(frozen=True)
class _Side:
    """One model of one run; ``where`` is its folder as it was given, or "run 2" of the second,
    ``label`` what tables call the side."""

    run: Run
    model: str
    where: str
    label: str = ""

    def part(self, table: pd.DataFrame) -> pd.DataFrame:
        """The side's rows of a table of its run, under its label."""
        mine = pd.DataFrame(table[table["model"].astype(str).eq(self.model)])
        return mine.assign(model=self.label).astype({"level": int})


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Two or more sides on the answers that they share; the first side is the reference.

    - ``metrics``: the accuracy of each side (``model``), and the level-stratified AUROC of each
      method on the answers that the side's methods share, or ``own_rows``; also its ECE if it gives
      a probability.
    - ``differences``: each other side minus the first, in accuracy and level-stratified AUROC of
      the methods that both have.
    - ``origins``: each side's model and run. ``left_out``: counts of answers by side and data set.
      ``answers``: the shared ones. ``notes``: what to know before you believe the numbers.
    """

    sides: tuple[str, ...]
    metrics: pd.DataFrame
    differences: pd.DataFrame
    origins: dict[str, dict[str, str]]
    left_out: pd.DataFrame
    answers: pd.DataFrame
    notes: tuple[str, ...]

    def figure(self) -> list[Axes]:
        """Level-stratified AUROC, with a caption: one panel for each data set, one row for each
        method, one mark for each side. ``ValueError`` if no method was compared."""
        from trustlab.reports.plots.rows import Line, by_value, rows
        from trustlab.reports.plots.style import caption, headline

        table = self._drawn()
        if table.empty:
            raise ValueError("the runs have no confidence method: there is nothing to draw")
        several = len(set(table["dataset"])) > 1
        axes = rows(
            table,
            series="model",
            panels="dataset" if several else "",
            groups="family",
            order=by_value(table[table["model"].eq(self.sides[0])]),
            names={name: name.replace("$", r"\$") for name in self.sides},  # no formula
            lines=[Line(0.5, "chance 0.50")],
            columns={"AUROC": "{value:.2f}", "n": "{n:,.0f}", "difference": "{difference:+.2f}"},
            xlabel="level-stratified AUROC, 0 to 1",
        )
        figure: Any = axes[0].figure
        headline(figure, TITLE)
        about = formatted.about(self.answers)
        about["model"] = list(dict.fromkeys(of["model"] for of in self.origins.values()))
        interval = formatted.interval_words(table, "95 % interval over cases")
        own = bool(np.any(table["own_rows"].eq(True)))
        note = f"{OWN_ANSWERS}; {formatted.OWN_ROWS}" if own else OWN_ANSWERS
        caption(figure, **about, note=note, interval=interval)
        return axes

    def _drawn(self) -> pd.DataFrame:
        """The figure's lines by family: each side's AUROC, the others' differences beside it."""
        key = ["model", "dataset", "method"]
        gaps = _of_metric(self.differences, "auroc")[[*key, "difference", "p_holm"]]
        table = _of_metric(self.metrics, "auroc")
        table = table.merge(gaps, on=key, how="left", validate="one_to_one")
        methods = table["method"]
        family = methods.map(families(methods)).fillna("other")
        order = {name: i for i, name in enumerate([*FAMILY_LABELS, "other"])}
        table = table.assign(family=family.map(FAMILY_LABELS).fillna(family))
        return table.iloc[family.map(order).argsort(kind="stable")].reset_index(drop=True)

    def save(self, folder: str | Path) -> Path:
        """Save tables and figure in ``folder``, and return it.
        ``sides``, ``differences`` and ``left_out`` as CSV, ``compare.json`` (what was compared and
        how), ``figures/compare_auroc`` (.png, .svg, .csv) if there is any value."""
        from matplotlib import pyplot

        from trustlab.reports.plots.style import save_figure, use_style

        folder = Path(folder)
        tables = {"sides": self.metrics, "differences": self.differences, "left_out": self.left_out}
        for name, table in tables.items():
            save_table(table, folder / f"{name}.csv")
        for old in (folder / "figures").glob("compare_*"):  # of another comparison
            old.unlink()
        if len(table := self._drawn()):
            with pyplot.rc_context():
                use_style()
                figure: Any = self.figure()[0].figure
                save_figure(figure, table, "compare_auroc", folder / "figures")
                pyplot.close(figure)
        facts = {"notice": NOTICE, "sides": list(self.sides), "notes": list(self.notes)}
        facts |= {"origins": self.origins}
        save_json(facts, folder / "compare.json")
        return folder

    def __str__(self) -> str:
        """Accuracy and differences in AUROC as plain tables, then what to know of them."""
        right = _of_metric(self.metrics, "accuracy")
        ends = zip(right["value"], right["low"], right["high"], strict=True)
        values = [formatted.with_interval(*each) for each in ends]
        more = {"n": right["n"], "cases": right["n_cases"], "note": right["missing"]}
        accuracy = right[["dataset", "model"]].assign(value=values, **more)
        gaps = _of_metric(self.differences, "auroc")
        shown = formatted.differences_shown(gaps, ["dataset", "model", "method"])
        lost = self.left_out[self.left_out["n_left_out"].gt(0)]
        tables = [table.to_string(index=False) for table in (accuracy, shown, lost) if len(table)]
        return "\n\n".join([*tables, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__


def compare_runs(*runs: Run | str | Path) -> Comparison:
    """Compare models or settings: the answers of several runs on the cases that they share.

    - ``runs``: runs, or their folders. docs/replies.md, *Side by side*, says which sides there are
      and what is compared. ``p_holm`` is over all methods and sides of a data set, accuracies
      apart. ``cases_needed`` assumes that the observed difference is true: it is only a guide.
    - AUPRC is not compared: it depends on how many answers are right, which differs by side.
    - ``ValueError``: fewer than two sides or more than :data:`MOST`, nothing shared, one case with
      two truths, a path that is no run's folder.
    """
    sides = [side for k, run in enumerate(runs, 1) for side in _sides(run, k)]
    where = ", ".join(dict.fromkeys(side.where for side in sides)) or "no run"
    if not 2 <= len(sides) <= MOST:
        raise ValueError(f"2 to {MOST} sides can be compared; {where} holds {len(sides)}")
    sides = [replace(side, label=name) for side, name in zip(sides, _labels(sides), strict=True)]
    every = pd.concat([side.part(side.run.answers) for side in sides], ignore_index=True)
    checked_answers(every)
    _same_truths(every, {side.label: side.where for side in sides})
    n_sides: Any = every.groupby(VIEW)["model"].transform("nunique")
    answers = every[n_sides.eq(len(sides))].reset_index(drop=True)
    if answers.empty:
        raise ValueError(f"no data set, case and level is shared by all of {where}")
    confidence = _confidences(sides, answers)
    labels = tuple(side.label for side in sides)
    differences = _differences(answers, confidence, labels)
    return Comparison(
        sides=labels,
        metrics=_metrics(answers, confidence),
        differences=differences,
        origins={side.label: {"model": side.model, "run": side.where} for side in sides},
        left_out=_left_out(every, answers),
        answers=answers,
        notes=tuple(_cautions(sides, answers, confidence)),
    )


def _sides(run: Run | str | Path, place: int) -> Iterator[_Side]:
    """A side for each model of a run that has answers."""
    where = f"run {place}"
    if not isinstance(run, Run):
        where, run = str(run), load_run(run, records=False)
    schema.need(run.answers, [*KEYS, "answer", "correct"], f"the answers of {where}")
    for model in dict.fromkeys(run.answers["model"].astype(str)):
        yield _Side(run, model, where)


def _labels(sides: Sequence[_Side]) -> list[str]:
    """The models' names, where these tell the sides apart, else each with its run's place.
    ``ValueError`` for a run that is given twice."""
    models = [side.model for side in sides]
    if len(set(models)) == len(sides):
        return models
    labels = [f"{side.model}, {side.where}" for side in sides]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"{label} is given twice; each side must be another")
    return labels


def _same_truths(every: pd.DataFrame, where: Mapping[str, str]) -> None:
    """``ValueError`` where one case has two truths; ``where``: label -> the run's place."""
    if "truth" not in every:
        return
    known = every.dropna(subset="truth").drop_duplicates([*CASE, "truth"])
    for of, part in groups(known, CASE):
        if len(part) > 1:
            told = [f"{r.truth!r} in {where[str(r.model)]}" for r in part[:2].itertuples()]
            truths = f"has the truth {' and '.join(told)}: these are not the same cases"
            raise ValueError(f"case {of['case_id']!r} of {of['dataset']} {truths}")


def _confidences(sides: Sequence[_Side], answers: pd.DataFrame) -> pd.DataFrame:
    """Every side's confidences in the shared answers."""
    columns = [*KEYS, "method", "confidence", "bound", "missing"]
    for side in sides:
        schema.need(side.run.confidence, columns, f"the confidences of {side.where}")
    every = pd.concat([side.part(side.run.confidence)[columns] for side in sides])
    return every.merge(answers[KEYS], on=KEYS, validate="many_to_one")


SHOWN = [("accuracy", "pooled"), ("auroc", "within"), ("ece", "pooled")]
"""Metric and level of what is compared of each side."""


def _metrics(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each side; AUROC, and ECE of a probability, of each of its methods."""
    found = metrics_table(Tables(answers, confidence))
    pairs = pd.Series(zip(found["metric"], found["level"], strict=True), found.index)
    return pd.DataFrame(found[pairs.isin(SHOWN)]).reset_index(drop=True)


def _differences(
    answers: pd.DataFrame, confidence: pd.DataFrame, labels: Sequence[str]
) -> pd.DataFrame:
    """Each other side against the first: accuracy, and the AUROC of each method."""
    read = checked_answers(answers)
    graded = ~(read["failed"] | read["ungraded"])
    correct = read["correct"].where(graded).astype(float)
    accuracies = read.assign(correct=correct, method="", confidence=1.0)
    of_first = confidence.loc[confidence["model"].eq(labels[0]), "method"]
    of_both = joined(read, confidence[confidence["method"].isin(of_first)])
    parts = []
    for metric, table in (("accuracy", accuracies), ("auroc", of_both)):
        if len(set(table["model"])) > 1:
            sides = table.assign(variant=table["model"], model="")
            parts.append(paired_differences(sides, labels[0], metrics=[metric]))
    whole = pd.concat(parts)
    whole = whole[whole["metric"].eq("accuracy") | whole["level"].eq("within")]
    whole = whole.assign(model=whole["variant"]).drop(columns="variant")
    whole.insert(1, "against", labels[0])
    return whole.reset_index(drop=True)


def _left_out(every: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Answers of each side and data set: all, those shared, and those left out."""
    key = ["model", "dataset"]
    n_answers = every.groupby(key, sort=False).size()
    n_shared = answers.groupby(key).size().reindex(n_answers.index, fill_value=0)
    counts = pd.DataFrame({"n_answers": n_answers, "n_shared": n_shared}).reset_index()
    return counts.assign(n_left_out=counts["n_answers"] - counts["n_shared"])


def _cautions(
    sides: Sequence[_Side], answers: pd.DataFrame, confidence: pd.DataFrame
) -> Iterator[str]:
    """What to know before the numbers are believed."""
    methods = list(dict.fromkeys(confidence["method"]))
    for side in sides:
        has = set(confidence.loc[confidence["model"].eq(side.label), "method"])
        if lacking := [method for method in methods if method not in has]:
            yield f"{side.label} has no {', '.join(lacking)}"
    words = answers.groupby(VIEW)["n_words"].nunique() if "n_words" in answers else pd.Series()
    if n := int(words.gt(1).sum()):
        yield f"{formatted.counted(n, 'shared answer')} on other words"
    for side in sides:
        for line in formatted.remark_lines(side.run.parameters, None, [side.model]):
            yield line if line.startswith(side.label) else f"{side.label}: {line}"


def _of_metric(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    return pd.DataFrame(table[table["metric"].eq(metric)])
