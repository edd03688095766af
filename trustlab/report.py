"""A run's methods paragraph, what each of its methods cost, and what that bought."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from trustlab.blocks import block, escaped, html_cell, html_row, html_table, note
from trustlab.confidence import METHODS
from trustlab.experiments import tables
from trustlab.experiments.benchmark import Run
from trustlab.experiments.costs import UNTIMED, method_costs, pareto_table
from trustlab.methods_paragraph import counted, methods_paragraph
from trustlab.metrics import metrics_table
from trustlab.paths import NOTICE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = {
    "purposes": "requests", "n_replies": "replies", "n_tokens_in": "tokens in", "n_tokens_out": "tokens out",
    "seconds": "seconds", "usd": "US dollars", "extra_replies": "replies beyond the answer", "not_counted": "not counted",
    "missing": "remarks",
}  # fmt: skip
"""Columns of the costs that are printed, and their heads; methods that cost the same share a row."""


WIDTHS = {"requests": 6, "US dollars": 5, "replies beyond the answer": 6, "not counted": 6, "remarks": 7, "methods": 13}
"""Least widths of columns of words in a notebook, in em; other numbers take 3.5."""


@dataclass(frozen=True, repr=False)
class Report:
    """A methods paragraph, the table of costs, and AUROC beside them.

    ``costs`` is the table of ``method_costs``, ``pareto`` that of ``pareto_table`` (``None`` where the metrics hold no AUROC
    within level). Printed, or shown in a notebook, it is the paragraph and the costs; :meth:`figure` draws the rest.
    """

    paragraph: str
    costs: pd.DataFrame
    pareto: pd.DataFrame | None
    families: Mapping[str, str]
    answers: pd.DataFrame
    note: str = ""
    cost_words: str = "Cost of one answer with each method alone"

    def figure(self, model: str | None = None, dataset: str | None = None, ax: Axes | None = None) -> Axes:
        """AUROC within level against cost, of one model on one data set (the first ones where ``None``), with its caption.

        Raises ``ValueError`` for a model or data set that the run does not have, and where there is no AUROC within level.
        """
        from trustlab.plots.costs import auroc_by_cost  # here, so that the package is imported without matplotlib
        from trustlab.plots.style import caption

        if self.pareto is None:
            raise ValueError("the metrics hold no AUROC within level, so there is nothing to draw against the costs")
        chosen = {}
        for column, given in (("model", model), ("dataset", dataset)):
            held = list(dict.fromkeys(self.pareto[column]))
            if given is not None and given not in held:
                raise ValueError(f"{column} is {given!r}; this run has {', '.join(map(str, held))}")
            chosen[column] = held[0] if given is None else given
        part, mine = (_where(table, chosen) for table in (self.pareto, self.answers))
        drawn = auroc_by_cost(part, self.families, ax)
        words = tables.interval_words(part, "95 % case-bootstrap interval")
        many = self.answers["dataset"].nunique() > 1
        notes = [self.note, "costs are means over all data sets of the run" if many else ""]
        caption(drawn, **tables.about(mine), interval=words, note="; ".join(filter(None, notes)))
        return drawn

    def __str__(self) -> str:
        """The paragraph in lines of 100 letters, and the costs of one answer, as plain text."""
        table = "\n\n".join(f"{who}\n{_plain_text(part)}" for who, part in self._printed())
        return f"{textwrap.fill(self.paragraph, 100)}\n\n{textwrap.fill(self.cost_words, 100)}\n\n{table}\n\n{NOTICE}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook; every word of a model's or data set's name is escaped."""
        parts = [f"<p style='margin:0 0 10px;max-width:60em'>{escaped(self.paragraph)}</p>", note(self.cost_words)]
        for who, part in self._printed():
            rows = [html_row(*map(_html_cell, row, part.columns)) for row in part.itertuples(index=False)]
            parts += [f"<p style='margin:6px 0 2px'><b>{escaped(who)}</b></p>", html_table(list(part.columns), rows)]
        return str(block("".join([*parts, note(NOTICE)])))

    def _printed(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Model by model, who it is and the costs as words, a row for all methods that cost the same."""
        table = self.costs.assign(missing=self.costs["missing"].str.replace(rf"(; )?{UNTIMED}", "", regex=True))
        kept = [name for name in SHOWN if not (table[name].isna() | table[name].eq("")).all()]
        for name in table[kept].select_dtypes("floating"):
            table[name] = table[name].map(_number)
        groups: Any = table.groupby("model", sort=False)
        for model, part in groups:
            rows = part.groupby(kept, sort=False)["method"].agg(", ".join).reset_index()
            who = f"{model}, {counted(int(part['n_answers'].iloc[0]), 'answer')}"
            yield who, rows.rename(columns={**SHOWN, "method": "methods"})


def _plain_text(table: pd.DataFrame) -> str:
    """The table with all columns starting at the left."""
    padded = table.apply(lambda column: column.str.ljust(int(column.str.len().max())))
    return "\n".join(line.rstrip() for line in padded.to_string(index=False, justify="left").splitlines())


def _html_cell(value: object, head: str) -> str:
    return html_cell(escaped(value), f"min-width:{WIDTHS.get(head, 3.5)}em")


def report(
    run: Run,
    usd_in: float | Mapping[str, float] | None = None,
    usd_out: float | Mapping[str, float] | None = None,
    metrics: pd.DataFrame | None = None,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    cost: str = "tokens",
    prompts: str = "once",
    n_jobs: int = 1,
) -> Report:
    """The methods paragraph of ``run`` and what each of its methods cost.

    ``usd_in``, ``usd_out`` and ``prompts`` are as in ``method_costs``; ``cost`` is what the figure's axis counts: "replies",
    "tokens", "seconds" or "usd". ``metrics`` is the table of ``metrics_table(run)``, made here with ``n_draws`` and ``seed``, in
    ``n_jobs`` processes, where ``None``; where it is given, ``n_draws`` and ``seed`` must be those it was made with, since the
    paragraph names them. The run's generations are not needed. Raises ``ValueError`` as ``method_costs`` and ``pareto_table`` do.
    """
    if metrics is None:
        metrics = metrics_table(run, n_draws=n_draws, seed=seed, n_jobs=n_jobs)
    costs = method_costs(run, usd_in, usd_out, prompts)
    ranked = (metrics["metric"].eq("auroc") & metrics["level"].astype(str).eq("within")).any()
    families = {name: METHODS[name].family for name in run.parameters["methods"] if name in METHODS}
    return Report(
        paragraph=methods_paragraph(run, n_draws, seed),
        costs=costs,
        pareto=pareto_table(costs, metrics, cost=cost) if ranked else None,
        families=families,
        answers=run.answers,
        note=tables.stand_in_note(run.parameters, families),
        cost_words=_cost_words(costs, usd_in, usd_out, prompts),
    )


def _cost_words(costs: pd.DataFrame, usd_in: Any, usd_out: Any, prompts: str) -> str:
    """What stands over the costs: how they were counted, and at what rates."""
    told = ["Cost of one answer with each method alone, the mean over all answers asked for"]
    told.append("a prompt is counted once a request" if prompts == "once" else "a prompt is counted for each of its replies")
    if usd_in is not None:
        rates = [", ".join(f"{m} {v:g}" for m, v in r.items()) if isinstance(r, Mapping) else f"{r:g}" for r in (usd_in, usd_out)]
        told.append(f"US dollars for a million tokens: {rates[0]} in, {rates[1]} out")
    if costs["missing"].str.contains(UNTIMED).any():
        told.append(f"where no seconds are given, they are {UNTIMED.removeprefix('seconds ')}")
    return f"{'; '.join(told)}."


def _where(table: pd.DataFrame, chosen: Mapping[str, str]) -> pd.DataFrame:
    keep = np.logical_and.reduce([table[column].eq(value) for column, value in chosen.items()])
    return table.loc[keep]


def _number(value: float) -> str:
    """A cost with three digits that count, whole numbers as such, and a dash where it is missing."""
    if pd.isna(value):
        return "–"
    whole = value == round(value) or abs(value) >= 1000
    return f"{value:,.0f}" if whole else np.format_float_positional(value, precision=3, fractional=False, trim="-")
