"""Scores replies that the user has already, from the command line."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.datasets.foreign_logs import Log
from trustlab.paths import save_table, save_text
from trustlab.runs.calibrator import Applied, Calibrator, load_calibrator
from trustlab.runs.experiment import score
from trustlab.runs.folder.saved import load_run, read_table, save_run, table_in
from trustlab.runs.formatted import (
    MAIN,
    coverage_table,
    main_table,
    to_latex,
    with_interval,
)
from trustlab.runs.measures import metrics_table
from trustlab.runs.run import Run
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup

AUROC = MAIN["auroc", "pooled"]


def scored(
    replies: Path | Log,
    values: Mapping[str, Any],
    folder: Path,
    calibrator: Path | None = None,
    anyway: bool = False,
) -> list[str]:
    """Score a table of replies, a log, or the tables of a run's folder, and leave in ``folder``:

    - ``answers``, ``confidence``, ``metrics`` as CSV; ``main.csv`` and ``main.tex``: the metrics
      to read and to print; ``run.json``: how they were made; and the rest of a run's folder
      (:func:`~trustlab.runs.folder.saved.load_run`).
    - ``figures/score_auroc.png`` (.svg, .csv), and further ones for further models and data sets.
    - With the file of a ``calibrator``: ``calibrated.csv`` (each answer) and
      ``calibrated.html``. ``anyway``: also of one that was not fitted for these answers, marked.

    Returns the summary, a line each. ``ValueError`` for a parameter that ``Setup`` does not have or
    refuses, and as :func:`~trustlab.runs.experiment.score`.
    """
    setup = opened(Setup(**values))
    loaded = load_calibrator(calibrator) if calibrator else None
    confidence = None
    earlier = None
    if isinstance(replies, Path) and replies.is_dir():
        earlier = replies
        confidence = read_table(table_in(replies, "confidence"))
        replies = table_in(replies, "answers")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        run = score(replies, setup=setup, confidence=confidence)
    calibrated: list[str] = []
    if loaded:
        run_with_facts = load_run(earlier, records=False) if earlier else run
        applied = loaded.apply(run_with_facts, anyway=anyway)
        calibrated = _save_calibrated(loaded, applied, folder)
    metrics = metrics_table(run, n_jobs=setup.n_jobs)
    save_run(run, folder)
    save_table(metrics, folder / "metrics.csv")
    main = main_table(metrics)
    save_table(main, folder / "main.csv")
    save_text(
        to_latex(main, "Confidence methods on the replies given."), folder / "main.tex"
    )
    figures = _draw(run, metrics, setup.with_(run_dir=folder), folder)
    lines = _summary(run, metrics, main)
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            lines.append(f"note: {warning.message}")
    return [*calibrated, *lines, *figures]


def _save_calibrated(
    calibrator: Calibrator, applied: Applied, folder: Path
) -> list[str]:
    """Save what a calibrator makes of the answers; marks and its report, in words."""
    # Imported here: pages take their time, and a table without a calibrator has none.
    from trustlab.reports.html.pages import write_page
    from trustlab.reports.html.show import Html, render

    save_table(applied.table, folder / "calibrated.csv")
    shown = applied.report.dropna(axis="columns", how="all").round(3)
    report = Html(shown.to_html(index=False))
    untold = ", ".join(name for name, fact in calibrator.facts.items() if fact is None)
    body = render(
        "calibrated",
        calibrator=calibrator,
        applied=applied,
        report=report,
        untold=untold,
    )
    write_page("Which answers to give", body, folder / "calibrated.html")
    lines = [f"NOT FITTED FOR THIS: {reason}" for reason in applied.differences]
    return [*lines, shown.to_string(index=False)]


def _draw(run: Run, metrics: pd.DataFrame, setup: Workbench, folder: Path) -> list[str]:
    """AUROC of each model on each data set, where there is any; where each figure is, in words."""
    for old in (folder / "figures").glob("score_*"):  # of another table
        old.unlink()
    models = list(dict.fromkeys(run.answers["model"]))
    sets = list(dict.fromkeys(run.answers["dataset"]))
    auroc: Any = metrics[metrics["metric"] == "auroc"]
    lines = []
    for (who, where), part in auroc.groupby(["model", "dataset"], sort=False):
        about = f"AUROC for {who} on {where}"
        if part["value"].isna().all():
            lines.append(f"no figure of {about}: {_why_no_auroc(part)}")
            continue
        # Imported here: matplotlib takes its time, and a small table has nothing to draw.
        from trustlab.reports import plots
        from trustlab.reports.plots.figures import Figures

        plots.use_style()
        axes = plots.auroc_rows(part, run.families)
        show = Figures("score", setup, run, models=models)
        show(axes, part, "auroc", who, where=where, title="AUROC by method")
        ending = plots.file_ending(who, models) + plots.file_ending(where, sets)
        lines.append(f"figures/score_auroc{ending}.png: {about}")
    return lines


def _why_no_auroc(part: pd.DataFrame) -> str:
    """Why no method has an AUROC: that of the one with the most answers, which is named."""
    with_reason: Any = part[part["missing"] != ""]
    rows = with_reason.sort_values("n", ascending=False, kind="stable")
    for row in rows.to_dict("records"):
        return f"{row['method']}: {row['missing']}"
    return "no values"


def _summary(run: Run, metrics: pd.DataFrame, main: pd.DataFrame) -> list[str]:
    """Accuracy, the methods with their AUROC, and why others have no value."""
    lines = []
    is_accuracy = metrics["metric"].eq("accuracy") & metrics["level"].eq("pooled")
    accuracies: Any = metrics[is_accuracy]
    for row in accuracies.to_dict("records"):
        value = with_interval(row["value"], row["low"], row["high"])
        lines.append(
            f"{row['model']} on {row['dataset']}: accuracy {value}, n {row['n']:,}"
        )
    columns = ("model", "dataset", "method", "n", AUROC)
    shown = main[[name for name in columns if name in main]]
    if len(shown):
        lines += shown.to_string(index=False).splitlines()
    return [*lines, *_lacking(run.confidence)]


def _lacking(confidence: pd.DataFrame) -> list[str]:
    """A line for each reason why methods have no value."""
    coverage: Any = coverage_table(confidence)
    without_value = coverage[coverage["n"] == 0]
    by_reason = without_value.groupby("reasons", sort=False)["method"]
    return [
        f"  missing: {', '.join(methods.unique())}: {reason}"
        for reason, methods in by_reason
    ]
