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


PARTS = {
    name: Part(**of) for name, of in read_yaml(DATA / "published" / "parts.yml").items()
}
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
CELL = ["model", "dataset", "method", "metric"]
"""Columns that say which value of a table it is."""
NUMBERS = ["value", "low", "high", "p", "n"]
DOWN = {
    "correlation": ["family", "method", "metric"],
    "comparison": ["family", "metric"],
}
"""What stands down a table, if not methods and metrics."""


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
        return "; ".join(
            [f"{self.name}. {PARTS[self.name].about}", *notes, *self.stars]
        )

    def flat(self, marked: bool = False) -> pd.DataFrame:
        """One row of heads and no index; ``marked`` keeps the ``**``."""
        table = self.cells.reset_index()
        if not marked:
            table = table.replace(r"\*\*", "", regex=True)
        heads = [", ".join(filter(None, head)) for head in table]
        return table.set_axis(heads, axis=1)

    def styled(self) -> Any:
        """For a notebook or page: all text escaped, printed columns grey."""
        weights = self.cells.map(_weight)
        style: Any = self.cells.style.format(
            lambda text: text.strip("*"), escape="html"
        )
        style = style.apply(lambda _: weights, axis=None)
        style = style.format_index(escape="html", axis=0)
        style = style.format_index(escape="html", axis=1)
        style = style.set_uuid(self.name.replace(" ", "-"))
        style = style.set_caption(escape(self.words))
        printed = [head for head in self.cells if head[0] == THEIRS]
        style = style.set_table_styles(
            [{"selector": "td", "props": "white-space: normal"}]
        )
        return style.set_properties(subset=printed, color=GREY)

    def latex(self) -> str:
        """For a document with the package booktabs."""
        text = to_latex(self.flat(), self.words)
        return text.replace("−", "$-$").replace("<=", r"$\le$").replace("<", "$<$")

    def markdown(self) -> str:
        """With the words under it."""
        table = self.flat(marked=True)
        heads = [_escaped(head) for head in table]
        rules = ["---"] * len(heads)
        lines = []
        for row in (heads, rules, *table.to_numpy().tolist()):
            lines.append(f"| {' | '.join(row)} |")
        return "\n".join([*lines, "", _escaped(self.words)])


def _weight(text: str) -> str:
    """CSS of a cell: bold where it is in ``**``."""
    return "font-weight: bold" if text.startswith("**") else ""


def _escaped(words: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|$~&#])", r"\\\1", " ".join(words.split()))


def tables(runs: Path) -> dict[str, Table]:
    """Each table of the paper beside a folder of runs, by name; notes say what was not run."""
    by_name = {}
    for kind, number in TABLES.items():
        name = f"Table {number}"
        part = PARTS[name]
        ours = _long_table(runs / part.notebook / part.files[0])
        by_name[name] = beside_printed(kind, ours)
    return by_name


def _long_table(file: Path) -> pd.DataFrame | None:
    """A run's long table as text, its values as numbers; ``None`` where there is no file."""
    if not file.is_file():
        return None
    table = pd.read_csv(file, dtype=str, keep_default_na=False).map(from_spreadsheet)
    numbers = table.reindex(columns=NUMBERS)
    return table.assign(**numbers.apply(pd.to_numeric))


def beside_printed(kind: str, ours: pd.DataFrame | None) -> Table:
    """The paper's table ``kind`` (of :data:`TABLES`) with ``ours`` before it: the long table that
    :data:`PARTS` names, or ``None``."""
    run = _run_part(kind, ours)
    own_lines = run.lines.assign(source=OURS)
    printed = _printed(kind).assign(source=THEIRS)
    heads: Any = pd.concat([own_lines, printed])[SOURCE]
    values = pd.concat([printed, own_lines], ignore_index=True)
    values = values.dropna(subset="shown")
    cells = _cells(kind, values, heads.drop_duplicates())
    absent = {}
    for source, *rest in cells:
        absent[source, *rest] = "not run" if source == OURS else "not printed"
    cells = cells.astype(object).fillna(absent)
    name = f"Table {TABLES[kind]}"
    return Table(name, cells, run.notes, run.stars)


class _RunPart(NamedTuple):
    """A run's ``lines`` of a table, with the text ``shown``, and what stands under the table."""

    lines: pd.DataFrame
    notes: tuple[str, ...]
    stars: tuple[str, ...] = ()


def _run_part(kind: str, ours: pd.DataFrame | None) -> _RunPart:
    """A run's part of a table; one line without text, and a note, where nothing was run."""
    lines: Any = pd.DataFrame() if ours is None else _lines(kind, ours)
    if lines.empty:
        part = PARTS[f"Table {TABLES[kind]}"]
        note = f"not run: no line of {part.notebook}/{part.files[0]}"
        empty = dict.fromkeys(SOURCE, "")
        return _RunPart(pd.DataFrame([empty]), (note,))
    reasons = lines["missing"].fillna("")
    reasons = reasons.replace("", "no reason given")
    why_missing = reasons[lines["value"].isna()]
    notes = list(dict.fromkeys(why_missing))
    numbers = {reason: number for number, reason in enumerate(notes, 1)}
    shown = [
        _cell(line, numbers.get(reason, 0))
        for line, reason in zip(lines.to_dict("records"), reasons, strict=True)
    ]
    stars = ()
    if lines["own_rows"].any():
        stars = (OWN_ROWS,)
    return _RunPart(lines.assign(shown=shown), tuple(notes), stars)


def _cells(kind: str, values: Any, heads: pd.DataFrame) -> Any:
    """The text of ``values``, :data:`DOWN` by ``heads``; NaN where there is no value."""
    values = values.assign(
        family=values["method"].map(FAMILY),
        metric=values["metric"].map(METRICS),
        method=values["method"].map(label),
    )
    if kind == "comparison":  # the cells name the methods
        is_missing = values["shown"].str.startswith("–")
        named = values["method"] + " " + values["shown"]
        values = values.assign(shown=values["shown"].mask(~is_missing, named))
    down = DOWN.get(kind, ["method", "metric"])
    rows = values[down].drop_duplicates()  # as printed, then ours alone
    rows = rows.sort_values(down, key=lambda column: pd.factorize(column)[0])
    cells = values.pivot(index=down, columns=SOURCE, values="shown")
    cells = cells.reindex(pd.MultiIndex.from_frame(rows))
    return cells.reindex(columns=pd.MultiIndex.from_frame(heads))


def _printed(kind: str) -> pd.DataFrame:
    """A row a printed value: model, dataset, method, metric, and the text ``shown``."""
    printed = published_table(kind, as_text=True)
    printed = printed.replace({"model": MODELS, "dataset": DATASETS})
    names = {"variant": "method", "statistic": "metric", "value": "shown"}
    printed = printed.rename(columns=names)
    if kind == "correlation":
        text = printed["shown"] + " (" + printed["p_printed"] + ")"
        p = printed["p_printed"].str.removeprefix("<=")
        is_significant = p.astype(float).le(0.05)
        text = text.mask(is_significant, "**" + text + "**")
        return printed.assign(shown=text)
    keys = [name for name in ("model", "dataset", "method") if name in printed]
    metrics = [name for name in printed if name in METRICS]
    long = printed.melt(keys, metrics, "metric", "shown")
    return long.reindex(columns=[*CELL, "shown"], fill_value="")


def _lines(kind: str, ours: Any) -> Any:
    """The lines of a run's long table that the paper prints: its methods, levels and metrics."""
    printed = _printed(kind)
    methods: Any = printed["method"]
    own_rows = False
    if "own_rows" in ours:
        own_rows = ours["own_rows"].astype(str).eq("True")  # of a file: text
    lines = _of_level(kind, ours.assign(own_rows=own_rows))
    if kind == "ablation":
        lines = lines[lines["method"].eq("medconf")]
        lines = lines.assign(method=lines["variant"])
    elif kind in ("correlation", "comparison"):
        methods = [name for name in PAPER if METHODS[name].family != "baseline"]
    is_printed = lines["method"].isin(methods) & lines["metric"].isin(printed["metric"])
    lines = lines[is_printed]
    if kind == "comparison":
        lines = _best_of_families(lines)
    return lines.copy() if kind == "correlation" else lines.assign(p=float("nan"))


def _of_level(kind: str, lines: Any) -> Any:
    """The lines at the level that a table prints; a consultation's are its policies'."""
    if kind == "consultation":
        return _policies(lines)
    if kind == "robustness":
        level: Any = pd.to_numeric(lines["level"], errors="coerce")
        return lines[level.eq(level.max())]
    return lines[lines["level"].isin(["pooled", "across"])]


def _policies(lines: Any) -> Any:
    """A consultation's lines with its policies as methods, and their accuracy in percent."""
    metric = lines["metric"].replace("accuracy", "accuracy_percent")
    lines = lines.assign(method=lines["policy"], metric=metric)
    lines.loc[metric.eq("accuracy_percent"), ["value", "low", "high"]] *= 100
    return lines


def _best_of_families(lines: Any) -> Any:
    """The lines of each family's method with the highest AUROC, of a model and data set; one with
    answers of its own only where no other has a value."""
    best = lines[lines["metric"].eq("auroc")]
    best = best.assign(family=best["method"].map(FAMILY))
    best = best.sort_values("value", ascending=False, kind="stable")
    best = best.sort_values("own_rows", kind="stable")
    best = best.drop_duplicates(["model", "dataset", "family"])
    return lines.merge(best[["model", "dataset", "method"]])


def _cell(line: Mapping[str, Any], note: int) -> str:
    """A value with its interval, p and n; a dash and the number of its note where it is missing."""
    if pd.isna(line["value"]):
        return f"– (note {note})"
    digits = DIGITS.get(line["metric"], 3)
    text = with_interval(line["value"], line["low"], line["high"], digits=digits)
    text = text.replace("-", "−")
    if not pd.isna(line["p"]):
        text = f"{text} ({p_shown(line['p'])})"
    text = f"{text}, n {line['n']:,.0f}"
    if line["own_rows"]:
        text = f"{text} *"
    return f"**{text}**" if line["p"] <= 0.05 else text
