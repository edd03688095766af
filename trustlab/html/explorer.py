"""A run to look into: choose model, case and level, and see dialogue, answer, every method's confidence and the evidence.

Everything comes from the run in memory; no model is asked. Pages are made by pure functions, so they can be read without
a browser; the widgets only choose among them.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import absence
from trustlab.html import show
from trustlab.levels import view
from trustlab.paths import NOTICE
from trustlab.plots.style import FAMILY_COLOURS, FAMILY_LABELS, label
from trustlab.records import Case, Generation, View
from trustlab.run import Run

STILL = "A still picture: run this notebook to move the level and change the case."
SCALED = "a score: only its order means something; its bar runs from the smallest to the largest value in this run"
CARD = (
    "background:#FFFFFF;color:#222222;font-family:sans-serif;font-size:14px;line-height:1.45;text-align:left;max-width:900px;"
    "box-sizing:border-box;padding:12px 14px;border:1px solid #CCCCCC;border-radius:6px;overflow-wrap:anywhere;"
    "-webkit-print-color-adjust:exact;print-color-adjust:exact"
)
CELL = "background:#FFFFFF;color:#222222;border:none;padding:2px 4px;font-size:13px;vertical-align:middle;"
HEADING = "font-weight:bold;font-size:14px;margin:14px 0 4px;color:#222222"
SMALL = "font-size:12px;color:#555555;margin:4px 0"
SCROLLED = "max-height:640px;overflow-y:auto;display:flex;flex-direction:column-reverse"
"""A long dialogue stays in its place and shows its end: reversed columns are scrolled to the bottom at first."""
VERDICTS = {1: ("✓", "right", "#DDF1EA", "#009E73"), 0: ("✗", "wrong", "#FBE5D8", "#D55E00")}
"""Symbol, word, tint and colour of a right and a wrong answer."""
NEUTRAL = "#F2F2F2", "#8A8A8A"
"""Tint and colour of an answer of which it is not said, or not known, whether it is right."""
UNJUDGED = ("–", "neither right nor wrong", *NEUTRAL)
ABOUT_FIRST_WORDS = 60
Truth = Literal["hidden", "folded", "shown"]


@dataclass(frozen=True)
class Choice:
    """What a page shows."""

    model: str
    case_id: str
    level: int


def explore(run: Run, cases: Sequence[Case]) -> Explorer:
    """Look into ``run``, made on ``cases``: controls and page in a notebook, a still page elsewhere.

    ``ValueError`` where the run holds none of the cases.
    """
    return Explorer(run, cases)


class Explorer:
    """The controls (``model``, ``dataset``, ``case``, ``level``, ``truth``) and the page (``html``) they change.

    Without ipywidgets ``widget`` is ``None`` and only the still page is given. ``default`` is what is shown first: the first
    model and case, at a level in the middle.
    """

    def __init__(self, run: Run, cases: Sequence[Case]) -> None:
        answered = set(run.answers["case_id"])
        self.run = run
        self.cases = tuple(case for case in cases if case.case_id in answered)
        if not self.cases:
            raise ValueError(
                f"the run's answers are about none of the {len(cases)} cases given; give the cases it was made on"
            )
        self.models = [str(name) for name in run.answers["model"].unique()]
        self.levels = sorted(int(level) for level in run.answers["level"].unique())
        self.default = Choice(
            self.models[0], self.cases[0].case_id, self.levels[len(self.levels) // 2]
        )
        self.widget: Any = None
        if (widgets := _ipywidgets()) is not None:
            self._build(widgets)

    def page(self) -> str:
        """The page of what is chosen now."""
        if self.widget is None:
            return still(self.run, self.cases, self.default)
        return page(
            self.run,
            self.cases,
            self.model.value,
            self.case.value,
            self.level.value,
            self.truth.value,
        )

    def _build(self, widgets: Any) -> None:
        datasets = list(dict.fromkeys(case.dataset for case in self.cases))
        wide: dict[str, Any] = {"layout": {"width": "auto", "max_width": "900px"}}
        look: dict[str, Any] = {"style": {"description_width": "70px"}, **wide}
        levels = [(f"{level} %", level) for level in self.levels]
        self.model: Any = widgets.Dropdown(
            options=self.models, value=self.default.model, description="Model", **look
        )
        self.dataset: Any = widgets.Dropdown(
            options=datasets, value=datasets[0], description="Data set", **look
        )
        self.case: Any = widgets.Dropdown(
            options=case_options(self.cases, datasets[0]), description="Case", **look
        )
        self.level: Any = widgets.SelectionSlider(
            options=levels, value=self.default.level, description="Shown", **look
        )
        self.truth: Any = widgets.Checkbox(
            value=False, description="show the truth", indent=False, **wide
        )
        self.html: Any = widgets.HTML()
        self.dataset.observe(self._offer_cases, "value")
        several = ((self.model, self.models), (self.dataset, datasets))
        shown = [control for control, choices in several if len(choices) > 1]
        for control in (self.model, self.dataset, self.case, self.level, self.truth):
            control.observe(self._refresh, "value")
        self.widget = widgets.VBox([*shown, self.case, self.level, self.truth, self.html])
        self._refresh()

    def _offer_cases(self, _: object = None) -> None:
        self.case.options = case_options(self.cases, self.dataset.value)

    def _refresh(self, _: object = None) -> None:
        if self.case.value is not None:
            self.html.value = self.page()

    def __repr__(self) -> str:
        return f"Explorer(cases={len(self.cases)}, models={self.models}, levels={self.levels})"

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """The widget, and the still page for whatever shows no widgets."""
        bundle: dict[str, Any] = {
            "text/plain": repr(self),
            "text/html": still(self.run, self.cases, self.default),
        }
        if self.widget is not None:
            shown = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = shown
        return bundle


def case_options(cases: Iterable[Case], dataset: str) -> list[tuple[str, str]]:
    """(what the reader sees, case id) of the cases of ``dataset``: the id and how the case begins, never its diagnosis."""
    return [
        (f"{case.case_id}: {_beginning(case)}", case.case_id)
        for case in cases
        if case.dataset == dataset
    ]


def still(run: Run, cases: Sequence[Case], choice: Choice) -> str:
    """The page of ``choice`` for where nothing moves: it says so, and the truth is folded away, right or wrong with it."""
    note = f"<p style='{SMALL};font-style:italic'>{STILL}</p>"
    return _card(note + _body(run, _case(cases, choice.case_id), choice, "folded"))


def page(
    run: Run, cases: Sequence[Case], model: str, case_id: str, level: int, truth: bool = False
) -> str:
    """One answer of the run as HTML: dialogue so far, answer, every method's confidence, evidence.

    Only with ``truth`` is the right diagnosis on it, and whether the answer is right. ``ValueError`` for a case that is not
    among ``cases``.
    """
    choice = Choice(model, case_id, level)
    return _card(
        _body(run, _case(cases, case_id), choice, "shown" if truth else "hidden", SCROLLED)
    )


def _body(run: Run, case: Case, choice: Choice, truth: Truth, look: str = "") -> str:
    answers = _rows(run.answers, choice)
    shown = view(case, choice.level)
    if not len(answers):
        return (
            _head(shown, choice)
            + f"<p>This run holds no answer of {escape(choice.model)} to this case at this level.</p>"
        )
    generation = _generation(run, choice)
    column = "flex:1 1 380px;min-width:0;max-width:100%"
    return (
        _head(shown, choice)
        + _answer(answers.iloc[0], generation, case.diagnosis, truth)
        + "<div style='display:flex;flex-wrap:wrap;gap:0 20px'>"
        + f"<div style='{column}'><div style='{HEADING}'>The dialogue so far</div>"
        + f"<div style='{look}'><div style='flex:none'>{show.dialogue(shown.statements)}</div></div></div>"
        + f"<div style='{column}'>{bars(run, choice)}</div>"
        + "</div>"
        + _evidence(generation)
    )


def _head(shown: View, choice: Choice) -> str:
    told = f"{shown.n_statements} of {shown.n_total} statements"
    facts = [
        choice.case_id,
        shown.case.dataset,
        f"model {choice.model}",
        f"{choice.level} % shown: {told}",
    ]
    return f"<div style='{SMALL}'>{' · '.join(escape(fact) for fact in facts)}</div>"


def _answer(row: pd.Series, generation: Generation | None, diagnosis: str, truth: Truth) -> str:
    symbol, word, tint, colour = (
        UNJUDGED if pd.isna(row["correct"]) else VERDICTS[int(row["correct"])]
    )
    answer = f"<b>{escape(str(row['answer']))}</b>"
    if pd.isna(row["answer"]):
        why = generation.answer.missing if generation and generation.answer else row.get("missing")
        words = "no answer" if pd.isna(row["correct"]) else "no readable answer"
        answer = f"<b>{words}</b>{escape(f' ({why})' if why and pd.notna(why) else '')}"
    told = f"Truth: <b>{escape(diagnosis)}</b>"
    if truth == "shown":
        answer += f" &nbsp;{symbol} {word}<div>{told}</div>"
    else:  # neither word nor colour may give it away
        tint, colour = NEUTRAL
    if truth == "folded":
        answer += f"<details><summary>Show the truth</summary>{symbol} {word}. {told}</details>"
    box = f"background:{tint};color:#222222;border-left:6px solid {colour};padding:6px 10px;margin:6px 0;font-size:16px"
    return f"<div style='{box}'>Answer: {answer}</div>"


def bars(run: Run, choice: Choice) -> str:
    """Every method's confidence in one answer: a bar by family, and what is missing with its reason.

    Probabilities stand on 0 to 1. Scores are scaled from smallest to largest in the whole run, are hollow and say so.
    """
    rows = _rows(run.confidence, choice)
    values: dict[str, Any] = rows.set_index("method")[["confidence", "bound", "missing"]].to_dict(
        "index"
    )
    found = {name: row for name, row in values.items() if pd.notna(row["confidence"])}
    scores = [name for name in found if METHODS[name].scale == "score"]
    ranges = _ranges(run.confidence, scores)
    body = ""
    for family, colour in FAMILY_COLOURS.items():
        members = [name for name, its in run.families.items() if its == family and name in found]
        if members:
            body += f"<tr>{_cell(f'<b>{escape(FAMILY_LABELS[family])}</b>', 'padding-top:8px;text-align:left', 3)}</tr>"
        body += "".join(_bar(name, found[name], ranges.get(name), colour) for name in members)
    title = f"<div style='{HEADING}'>How sure, method by method</div>"
    if not values:
        return title + f"<p style='{SMALL}'>No method was asked for in this run.</p>"
    table = "<table style='width:100%;margin:0;border-collapse:collapse;border:none;table-layout:fixed'>"
    table += (
        "<colgroup><col style='width:46%'><col style='width:34%'><col style='width:20%'></colgroup>"
    )
    notes = f"<p style='{SMALL}'>Full bars: probabilities, from 0 to 1.</p>"
    notes += f"<p style='{SMALL}'>† hollow bars: {SCALED}.</p>" if scores else ""
    return title + f"{table}<tbody>{body}</tbody></table>" + notes + _missing(values)


def _bar(name: str, row: Mapping[str, Any], span: tuple[float, float] | None, colour: str) -> str:
    value, sign = float(row["confidence"]), {"lower": "≥ ", "upper": "≤ "}.get(row["bound"], "")
    if span is None:
        name_of, share, number, look = label(name), value, f"{value:.2f}", f"background:{colour}"
    else:
        low, high = span
        share = (value - low) / (high - low) if high > low else 0.5
        name_of, number, look = (
            f"{label(name)} †",
            f"{value:.3g}".replace("-", "−"),
            f"background:#FFFFFF;border:2px solid {colour}",
        )
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    inner = f"<div style='width:{width};height:10px;box-sizing:border-box;{look}'></div>"
    track = f"<div style='width:100%;height:10px;background:#E8E8E8'>{inner}</div>"
    cells = (
        _cell(escape(name_of), "text-align:left")
        + _cell(track)
        + _cell(sign + number, "text-align:right;white-space:nowrap")
    )
    return f"<tr style='background:#FFFFFF'>{cells}</tr>"


def _cell(words: str, look: str = "", columns: int = 1) -> str:
    span = f" colspan='{columns}'" if columns > 1 else ""
    return f"<td{span} style='{CELL}{look}'>{words}</td>"


def _missing(values: Mapping[str, Mapping[str, Any]]) -> str:
    """The methods without a value, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for name, row in values.items():
        if pd.isna(row["confidence"]):
            reasons.setdefault(str(row["missing"] or "no reason given"), []).append(label(name))
    items = "".join(
        f"<li>{escape(', '.join(names))}: {escape(reason)}</li>"
        for reason, names in reasons.items()
    )
    return (
        f"<div style='{SMALL}'><b>Missing</b><ul style='margin:2px 0;padding-left:20px'>{items}</ul></div>"
        if items
        else ""
    )


def _evidence(generation: Generation | None) -> str:
    title = f"<div style='{HEADING}'>MedConf's evidence</div>"
    if generation is None:
        return (
            title
            + f"<p style='{SMALL}'>The run holds tables only, without the records that the evidence is read from.</p>"
        )
    if generation.assessment is None:
        return title + f"<p style='{SMALL}'>None: {escape(absence(generation, 'assessment'))}.</p>"
    return title + f"<div style='overflow-x:auto'>{show.evidence(generation.assessment)}</div>"


def _card(body: str) -> str:
    notice = "" if NOTICE in body else f"<p style='{SMALL}'>{NOTICE}</p>"
    # the classes keep MathJax from reading dollar signs as formulas
    return f"<div class='tex2jax_ignore mathjax_ignore' style='{CARD}'>{body}{notice}</div>"


def _ranges(confidence: pd.DataFrame, methods: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Smallest and largest confidence of each method in the whole run."""
    mine = confidence.loc[confidence["method"].isin(methods)]
    spans = mine.groupby("method")["confidence"].agg(["min", "max"])
    return {str(name): (float(low), float(high)) for name, low, high in spans.itertuples()}


def _rows(table: pd.DataFrame, choice: Choice) -> pd.DataFrame:
    mine = table.loc[table["case_id"] == choice.case_id]
    return mine.loc[(mine["model"] == choice.model) & (mine["level"] == choice.level)]


def _generation(run: Run, choice: Choice) -> Generation | None:
    return next((g for g in run.generations if Choice(g.model, g.case_id, g.level) == choice), None)


def _case(cases: Sequence[Case], case_id: str) -> Case:
    for case in cases:
        if case.case_id == case_id:
            return case
    raise ValueError(f"there is no case {case_id!r} among the {len(cases)} given")


def _beginning(case: Case) -> str:
    """How the patient begins, on one line."""
    words = " ".join(case.statements[0].text.rpartition("Patient:")[2].split())
    return (
        words
        if len(words) <= ABOUT_FIRST_WORDS
        else words[:ABOUT_FIRST_WORDS].rpartition(" ")[0] + " …"
    )


def _ipywidgets() -> Any:
    """The package, ``None`` where it cannot be imported."""
    try:
        import ipywidgets
    except ImportError:
        return None
    return ipywidgets
