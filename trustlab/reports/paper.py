"""Lays the paper's tables beside a run's, as text: Ren et al. 2026 (arXiv 2601.15645 v1).

Theirs are of large models on other patients: to be looked at together, not held against ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from trustlab.confidence import METHODS, PAPER
from trustlab.confidence.registry import label
from trustlab.paths import DATA, from_spreadsheet, read_yaml
from trustlab.reports.plots.style import FAMILY_LABELS, GREY
from trustlab.reports.published import DATASETS, MODELS, TABLES, published_table
from trustlab.runs.formatted import OWN_ROWS, p_shown, to_latex, with_interval


class Part(NamedTuple):
    """A table or figure of the paper: what it shows, the notebook and heading that make it here,
    and the files that they leave in the run's folder."""

    about: str
    notebook: str = ""
    heading: str = ""
    files: tuple[str, ...] = ()


PARTS = {name: Part(**of) for name, of in read_yaml(DATA / "published" / "parts.yml").items()}
"""Name, such as "Table 2" -> the part of the paper, in its order."""
METRICS: Any = {
    "pearson": "Pearson", "spearman": "Spearman", "auroc": "AUROC", "auprc": "AUPRC",
    "cv_group": "CV group, percent", "cv_sample": "CV sample, percent",
    "utterances": "utterances, mean", "accuracy_percent": "accuracy, percent",
}  # fmt: skip
FAMILY: Any = {method.name: FAMILY_LABELS[method.family] for method in METHODS.values()}
DIGITS = {"utterances": 2, "accuracy_percent": 0}  # others have three
OURS, THEIRS = "this run", "as printed"
SOURCE = ["source", "model", "dataset"]


@dataclass(frozen=True)
class Table:
    """``cells``: text, methods and metrics down, :data:`SOURCE` across, in ``**`` where
    significant; ``notes``: why values are missing; ``stars``: what a star means, if any."""

    name: str
    cells: pd.DataFrame
    notes: tuple[str, ...] = ()
    stars: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What it shows, and its notes."""
        notes = [f"note {k}: {why}" for k, why in enumerate(self.notes, 1)]
        return "; ".join([f"{self.name}. {PARTS[self.name].about}", *notes, *self.stars])

    def flat(self, marked: bool = False) -> pd.DataFrame:
        """One row of heads and no index; ``marked`` keeps the ``**``."""
        table = self.cells.reset_index()
        table = table if marked else table.replace(r"\*\*", "", regex=True)
        return table.set_axis([", ".join(filter(None, head)) for head in table], axis=1)

    def styled(self) -> Any:
        """For a notebook or page: all text escaped, printed columns grey."""
        bold = self.cells.map(lambda text: "font-weight: bold" * text.startswith("**"))
        style: Any = self.cells.style.format(lambda text: text.strip("*"), escape="html")
        style = style.apply(lambda _: bold, axis=None)
        style = style.format_index(escape="html", axis=0).format_index(escape="html", axis=1)
        style = style.set_uuid(self.name.replace(" ", "-")).set_caption(escape(self.words))
        printed = [head for head in self.cells if head[0] == THEIRS]
        style = style.set_table_styles([{"selector": "td", "props": "white-space: normal"}])
        return style.set_properties(subset=printed, color=GREY)

    def latex(self) -> str:
        """For a document with the package booktabs."""
        text = to_latex(self.flat(), self.words)
        return text.replace("−", "$-$").replace("<=", r"$\le$").replace("<", "$<$")

    def markdown(self) -> str:
        """With the words under it."""
        table = self.flat(marked=True)
        rows = [map(_escaped, table), ["---"] * table.shape[1], *table.to_numpy().tolist()]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([*lines, "", _escaped(self.words)])


def _escaped(words: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|$~&#])", r"\\\1", " ".join(words.split()))


def tables(runs: Path) -> dict[str, Table]:
    """Each table of the paper beside a folder of runs, by name; notes say what was not run."""
    found = {}
    for kind, number in TABLES.items():
        part, ours = PARTS[f"Table {number}"], None
        if (file := runs / part.notebook / part.files[0]).is_file():
            ours = pd.read_csv(file, dtype=str, keep_default_na=False).map(from_spreadsheet)
            numbers = ours.reindex(columns=["value", "low", "high", "p", "n"])
            ours = ours.assign(**numbers.apply(pd.to_numeric))
        found[f"Table {number}"] = beside_printed(kind, ours)
    return found


def beside_printed(kind: str, ours: pd.DataFrame | None) -> Table:
    """The paper's table ``kind`` (of :data:`TABLES`) with ``ours`` before it: the long table that
    :data:`PARTS` names, or ``None``."""
    part = PARTS[name := f"Table {TABLES[kind]}"]
    notes, stars = (f"not run: no line of {part.notebook}/{part.files[0]}",), ()
    theirs, mine = _printed(kind), pd.DataFrame([dict.fromkeys(SOURCE, "")])
    if ours is not None and len(lines := _lines(kind, ours)):
        why = lines["missing"].fillna("").replace("", "no reason given")
        notes = tuple(dict.fromkeys(why[lines["value"].isna()]))
        note = [notes.index(reason) + 1 if reason in notes else 0 for reason in why]
        mine = lines.assign(shown=list(map(_cell, lines.to_dict("records"), note)))
        stars = (OWN_ROWS,) if lines["own_rows"].any() else ()
    mine, theirs = mine.assign(source=OURS), theirs.assign(source=THEIRS)
    heads: Any = pd.concat([mine, theirs])[SOURCE].drop_duplicates()
    every: Any = pd.concat([theirs, mine], ignore_index=True).dropna(subset="shown")
    every = every.assign(family=every["method"].map(FAMILY), metric=every["metric"].map(METRICS))
    every["method"] = every["method"].map(label)
    down = ["family", "method", "metric"] if kind == "correlation" else ["method", "metric"]
    if kind == "comparison":  # the cells name the methods
        named = every["method"] + " " + every["shown"]
        every["shown"] = every["shown"].mask(~every["shown"].str.startswith("–"), named)
        down = ["family", "metric"]
    rows: Any = every[down].drop_duplicates()  # as printed, then ours alone
    rows = rows.sort_values(down, key=lambda column: pd.factorize(column)[0])
    index, columns = pd.MultiIndex.from_frame(rows), pd.MultiIndex.from_frame(heads)
    cells = every.pivot(index=down, columns=SOURCE, values="shown")
    cells = cells.reindex(index).reindex(columns=columns)
    absent = {head: "not run" if head[0] == OURS else "not printed" for head in cells}
    return Table(name, cells.astype(object).fillna(absent), notes, stars)


def _printed(kind: str) -> pd.DataFrame:
    """A row a printed value: model, dataset, method, metric, and the text ``shown``."""
    printed = published_table(kind, as_text=True).replace({"model": MODELS, "dataset": DATASETS})
    names = {"variant": "method", "statistic": "metric", "value": "shown"}
    printed = printed.rename(columns=names)
    if kind == "correlation":
        text = printed["shown"] + " (" + printed["p_printed"] + ")"
        sure = printed["p_printed"].str.removeprefix("<=").astype(float).le(0.05)
        return printed.assign(shown=text.mask(sure, "**" + text + "**"))
    keys = [name for name in ("model", "dataset", "method") if name in printed]
    long = printed.melt(keys, [m for m in printed if m in METRICS], "metric", "shown")
    return long.reindex(columns=[*SOURCE[1:], "method", "metric", "shown"], fill_value="")


def _lines(kind: str, ours: Any) -> Any:
    """The lines of a run's long table that the paper prints: its methods, levels and metrics."""
    printed = _printed(kind)
    methods: Any = printed["method"]
    own = ours["own_rows"].astype(str) if "own_rows" in ours else ""  # of a file: text
    ours = ours.assign(own_rows=own == "True")
    if kind == "consultation":
        metric = ours["metric"].replace("accuracy", "accuracy_percent")
        ours = ours.assign(method=ours["policy"], metric=metric)
        ours.loc[metric.eq("accuracy_percent"), ["value", "low", "high"]] *= 100
    elif kind == "robustness":
        level: Any = pd.to_numeric(ours["level"], errors="coerce")
        ours = ours[level.eq(level.max())]
    else:
        ours = ours[ours["level"].isin(["pooled", "across"])]
    if kind == "ablation":
        ours = ours[ours["method"].eq("medconf")].assign(method=ours["variant"])
    elif kind in ("correlation", "comparison"):
        methods = [name for name in PAPER if METHODS[name].family != "baseline"]
    ours = ours[ours["method"].isin(methods) & ours["metric"].isin(printed["metric"])]
    if kind == "comparison":
        best = ours[ours["metric"].eq("auroc")].assign(family=ours["method"].map(FAMILY))
        best = best.sort_values("value", ascending=False, kind="stable")
        best = best.sort_values("own_rows", kind="stable")
        best = best.drop_duplicates([*SOURCE[1:], "family"])[[*SOURCE[1:], "method"]]
        ours = ours.merge(best)
    return ours.copy() if kind == "correlation" else ours.assign(p=float("nan"))


def _cell(line: Mapping[str, Any], note: int) -> str:
    """A value with its interval, p and n; a dash and the number of its note where it is missing."""
    if pd.isna(line["value"]):
        return f"– (note {note})"
    ends = line["value"], line["low"], line["high"]
    text = with_interval(*ends, digits=DIGITS.get(line["metric"], 3)).replace("-", "−")
    p = "" if pd.isna(line["p"]) else f" ({p_shown(line['p'])})"
    star = " *" * line["own_rows"]
    text = f"{text}{p}, n {line['n']:,.0f}{star}"
    return f"**{text}**" if line["p"] <= 0.05 else text
