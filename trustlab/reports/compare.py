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

from trustlab.confidence.registry import families
from trustlab.metrics import schema
from trustlab.metrics.estimate import groups
from trustlab.metrics.paired import paired_differences
from trustlab.metrics.run_tables import KEYS, Tables, checked_answers, joined
from trustlab.paths import NOTICE, save_json, save_table
from trustlab.reports.families import FAMILY_LABELS
from trustlab.runs import formatted
from trustlab.runs.folder.saved import load_run
from trustlab.runs.measures import metrics_table
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
        from trustlab.reports.plots import Line, by_value, intervals
        from trustlab.reports.plots.style import caption, headline

        table = self._drawn()
        if table.empty:
            raise ValueError(
                "the runs have no confidence method: there is nothing to draw"
            )
        several = len(set(table["dataset"])) > 1
        axes = intervals(
            table,
            series="model",
            panels="dataset" if several else "",
            groups="family",
            order=by_value(table[table["model"].eq(self.sides[0])]),
            lines=[Line(0.5, "chance 0.50")],
            columns={
                "AUROC": "{value:.2f}",
                "n": "{n:,.0f}",
                "difference": "{difference:+.2f}",
            },
            xlabel="level-stratified AUROC, 0 to 1",
        )
        figure: Any = axes[0].figure
        headline(figure, TITLE)
        about = formatted.about(self.answers)
        models = [origin["model"] for origin in self.origins.values()]
        about["model"] = list(dict.fromkeys(models))
        note = OWN_ANSWERS
        if bool(np.any(table["own_rows"].eq(True))):
            note = f"{OWN_ANSWERS}; {formatted.OWN_ROWS}"
        interval = formatted.interval_words(table, "95 % interval over cases")
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
        return table.iloc[family.map(order).argsort(kind="stable")].reset_index(
            drop=True
        )

    def _accuracies(self) -> pd.DataFrame:
        """Accuracy of each side with its interval, to read."""
        rows = _of_metric(self.metrics, "accuracy")
        ends = zip(rows["value"], rows["low"], rows["high"], strict=True)
        return rows[["dataset", "model"]].assign(
            value=[formatted.with_interval(*interval) for interval in ends],
            n=rows["n"],
            cases=rows["n_cases"],
            note=rows["missing"],
        )

    def save(self, folder: str | Path) -> Path:
        """Save tables and figure in ``folder``, and return it.
        ``sides``, ``differences`` and ``left_out`` as CSV, ``compare.json`` (what was compared and
        how), ``figures/compare_auroc`` (.png, .svg, .csv) if there is any value."""
        from matplotlib import pyplot

        from trustlab.reports.plots.style import save_figure, use_style

        folder = Path(folder)
        save_table(self.metrics, folder / "sides.csv")
        save_table(self.differences, folder / "differences.csv")
        save_table(self.left_out, folder / "left_out.csv")
        for old in (folder / "figures").glob("compare_*"):  # of another comparison
            old.unlink()
        table = self._drawn()
        if len(table):
            with pyplot.rc_context():
                use_style()
                figure: Any = self.figure()[0].figure
                save_figure(figure, table, "compare_auroc", folder / "figures")
                pyplot.close(figure)
        facts = {
            "notice": NOTICE,
            "sides": list(self.sides),
            "notes": list(self.notes),
            "origins": self.origins,
        }
        save_json(facts, folder / "compare.json")
        return folder

    def __str__(self) -> str:
        """Accuracy and differences in AUROC as plain tables, then what to know of them."""
        gaps = _of_metric(self.differences, "auroc")
        differences = formatted.differences_shown(gaps, ["dataset", "model", "method"])
        left_out = self.left_out[self.left_out["n_left_out"].gt(0)]
        tables = (self._accuracies(), differences, left_out)
        paragraphs = [table.to_string(index=False) for table in tables if len(table)]
        paragraphs += [f"note: {note}" for note in self.notes]
        return "\n\n".join(paragraphs)

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
    sides = [side for place, run in enumerate(runs, 1) for side in _sides(run, place)]
    where = ", ".join(dict.fromkeys(side.where for side in sides)) or "no run"
    if not 2 <= len(sides) <= MOST:
        raise ValueError(
            f"2 to {MOST} sides can be compared; {where} holds {len(sides)}"
        )
    labels = _labels(sides)
    sides = [
        replace(side, label=name) for side, name in zip(sides, labels, strict=True)
    ]
    tables = [side.part(side.run.answers) for side in sides]
    all_answers = pd.concat(tables, ignore_index=True)
    checked_answers(all_answers)
    _same_truths(all_answers, {side.label: side.where for side in sides})
    n_sides: Any = all_answers.groupby(VIEW)["model"].transform("nunique")
    answers = all_answers[n_sides.eq(len(sides))].reset_index(drop=True)
    if answers.empty:
        raise ValueError(f"no data set, case and level is shared by all of {where}")
    confidence = _confidences(sides, answers)
    return Comparison(
        sides=tuple(labels),
        metrics=_metrics(answers, confidence),
        differences=_differences(answers, confidence, labels[0]),
        origins={
            side.label: {"model": side.model, "run": side.where} for side in sides
        },
        left_out=_left_out(all_answers, answers),
        answers=answers,
        notes=tuple(_cautions(sides, answers, confidence)),
    )


def _sides(run: Run | str | Path, place: int) -> Iterator[_Side]:
    """A side for each model of a run that has answers."""
    where = f"run {place}"
    if not isinstance(run, Run):
        where = str(run)
        run = load_run(run, records=False)
    columns = [*KEYS, "answer", "correct"]
    schema.need(run.answers, columns, f"the answers of {where}")
    models = run.answers["model"].astype(str)
    for model in dict.fromkeys(models):
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


def _same_truths(answers: pd.DataFrame, where: Mapping[str, str]) -> None:
    """``ValueError`` where one case has two truths; ``where``: label -> the run's place."""
    if "truth" not in answers:
        return
    truths = answers.dropna(subset="truth").drop_duplicates([*CASE, "truth"])
    for case, rows in groups(truths, CASE):
        if len(rows) > 1:
            two = rows[:2].itertuples()
            places = [f"{row.truth!r} in {where[str(row.model)]}" for row in two]
            raise ValueError(
                f"case {case['case_id']!r} of {case['dataset']} has the truth"
                f" {' and '.join(places)}: these are not the same cases"
            )


def _confidences(sides: Sequence[_Side], answers: pd.DataFrame) -> pd.DataFrame:
    """Every side's confidences in the shared answers."""
    columns = [*KEYS, "method", "confidence", "bound", "missing"]
    parts = []
    for side in sides:
        table = side.run.confidence
        schema.need(table, columns, f"the confidences of {side.where}")
        parts.append(side.part(table)[columns])
    return pd.concat(parts).merge(answers[KEYS], on=KEYS, validate="many_to_one")


SHOWN = [("accuracy", "pooled"), ("auroc", "within"), ("ece", "pooled")]
"""Metric and level of what is compared of each side."""


def _metrics(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each side; AUROC, and ECE of a probability, of each of its methods."""
    tables = Tables(answers, confidence)
    metrics = metrics_table(tables)
    pairs = zip(metrics["metric"], metrics["level"], strict=True)
    is_shown = [pair in SHOWN for pair in pairs]
    return schema.rows_where(metrics, is_shown).reset_index(drop=True)


def _differences(
    answers: pd.DataFrame, confidence: pd.DataFrame, first: str
) -> pd.DataFrame:
    """Each other side against the ``first``: accuracy, and the AUROC of each method."""
    rows = checked_answers(answers)
    of_first = confidence.loc[confidence["model"].eq(first), "method"]
    of_both = confidence[confidence["method"].isin(of_first)]
    parts = []
    for metric, table in (
        ("accuracy", _judged(rows)),
        ("auroc", joined(rows, of_both)),
    ):
        if len(set(table["model"])) > 1:
            sides = table.assign(variant=table["model"], model="")
            parts.append(paired_differences(sides, first, metrics=[metric]))
    differences = pd.concat(parts)
    is_accuracy = differences["metric"].eq("accuracy")
    is_within = differences["level"].eq("within")
    differences = differences[is_accuracy | is_within]
    differences = differences.assign(model=differences["variant"])
    differences = differences.drop(columns="variant")
    differences.insert(1, "against", first)
    return differences.reset_index(drop=True)


def _judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Checked answers as those of a method that is always sure; what was not graded is missing."""
    is_graded = ~(rows["failed"] | rows["ungraded"])
    correct = rows["correct"].where(is_graded).astype(float)
    return rows.assign(correct=correct, method="", confidence=1.0)


def _left_out(all_answers: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Answers of each side and data set: all, those shared, and those left out."""
    key = ["model", "dataset"]
    n_answers = all_answers.groupby(key, sort=False).size()
    n_shared = answers.groupby(key).size()
    n_shared = n_shared.reindex(n_answers.index, fill_value=0)
    columns = {
        "n_answers": n_answers,
        "n_shared": n_shared,
        "n_left_out": n_answers - n_shared,
    }
    return pd.DataFrame(columns).reset_index()


def _cautions(
    sides: Sequence[_Side], answers: pd.DataFrame, confidence: pd.DataFrame
) -> Iterator[str]:
    """What to know before the numbers are believed."""
    methods = list(dict.fromkeys(confidence["method"]))
    for side in sides:
        own = set(confidence.loc[confidence["model"].eq(side.label), "method"])
        lacking = [method for method in methods if method not in own]
        if lacking:
            yield f"{side.label} has no {', '.join(lacking)}"
    if "n_words" in answers:
        n_lengths = answers.groupby(VIEW)["n_words"].nunique()
        n_differ = int(n_lengths.gt(1).sum())
        if n_differ:
            yield f"{formatted.counted(n_differ, 'shared answer')} on other words"
    for side in sides:
        for line in formatted.remark_lines(side.run.parameters, None, [side.model]):
            yield line if line.startswith(side.label) else f"{side.label}: {line}"


def _of_metric(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    return schema.rows_where(table, table["metric"].eq(metric))
