"""A run to look into: choose model, case and level, and see dialogue, answer.

Every method's confidence and the evidence.

Everything comes from the run in memory; no model is asked. Pages are made by pure functions, so
they can be read without a browser; the widgets only choose among them.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import absence, label
from trustlab.html import show
from trustlab.html.show import Html, render
from trustlab.levels import view
from trustlab.plots.style import FAMILY_COLOURS, FAMILY_LABELS
from trustlab.records import Case, Generation
from trustlab.run import Run

STILL = "A still picture: run this notebook to move the level and change the case."
SCALED = "a score: only its order means something; its bar runs from the smallest to the largest value in this run"
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
    """Look into ``run``, made on ``cases``: controls and page in a notebook.

    A still page elsewhere.

    ``ValueError`` where the run holds none of the cases.
    """
    return Explorer(run, cases)


class Explorer:
    """The controls (``model``, ``dataset``, ``case``, ``level``.

    ``truth``) and the page (``html``) they change.

    Without ipywidgets ``widget`` is ``None`` and only the still page is given. ``default`` is what
    is shown first: the first model and case, at a level in the middle.
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
    """(what the reader sees, case id) of the cases of ``dataset``: the id and how the case begins.

    Never its diagnosis.
    """
    return [
        (f"{case.case_id}: {_beginning(case)}", case.case_id)
        for case in cases
        if case.dataset == dataset
    ]


def still(run: Run, cases: Sequence[Case], choice: Choice) -> Html:
    """The page of ``choice`` for where nothing moves: it says so.

    Truth and verdict are folded away.
    """
    return _page(run, cases, choice, "folded")


def page(
    run: Run, cases: Sequence[Case], model: str, case_id: str, level: int, truth: bool = False
) -> Html:
    """One answer of the run as HTML: dialogue so far, answer, every method's confidence, evidence.

    Only with ``truth`` is the right diagnosis on it, and whether the answer is right.
    ``ValueError`` for a case that is not among ``cases``.
    """
    return _page(run, cases, Choice(model, case_id, level), "shown" if truth else "hidden")


def _page(run: Run, cases: Sequence[Case], choice: Choice, truth: Truth) -> Html:
    case, answers = _case(cases, choice.case_id), _rows(run.answers, choice)
    shown, generation = view(case, choice.level), _generation(run, choice)
    told = f"{choice.level} % shown: {shown.n_statements} of {shown.n_total} statements"
    values: dict[str, Any] = {
        "truth": truth,
        "still": STILL,
        "facts": [choice.case_id, case.dataset, f"model {choice.model}", told],
        "model": choice.model,
        "answered": len(answers) > 0,
        "evidence": "",
    }
    if len(answers):
        values |= _answer(answers.iloc[0], generation, truth) | _bars(run, choice)
        values |= _evidence(generation)
        values |= {"diagnosis": case.diagnosis, "dialogue": show.dialogue(shown.statements)}
    return render("explorer", **values)


def _answer(row: pd.Series, generation: Generation | None, truth: Truth) -> dict[str, Any]:
    known = not pd.isna(row["correct"])
    symbol, word, back, colour = VERDICTS[int(row["correct"])] if known else UNJUDGED
    answer, why = str(row["answer"]), ""
    if pd.isna(row["answer"]):
        why = generation.answer.missing if generation and generation.answer else row.get("missing")
        why = f" ({why})" if why and pd.notna(why) else ""
        answer = "no readable answer" if known else "no answer"
    if truth != "shown":  # neither word nor colour may give it away
        back, colour = NEUTRAL
    look = {"symbol": symbol, "word": word, "back": back, "colour": colour}
    return {"answer": answer, "why": why, **look}


def _bars(run: Run, choice: Choice) -> dict[str, Any]:
    """Every method's confidence in one answer: a bar by family.

    And what is missing with its reason.

    Probabilities stand on 0 to 1. Scores are scaled from smallest to largest in the whole run, are
    hollow and say so.
    """
    rows = _rows(run.confidence, choice)
    rows = rows.set_index("method")[["confidence", "bound", "missing"]]
    values: dict[str, Any] = rows.to_dict("index")
    reasons: dict[str, list[str]] = {}
    for name, row in values.items():
        if pd.isna(row["confidence"]):
            reasons.setdefault(str(row["missing"] or "no reason given"), []).append(label(name))
    found = {name: row for name, row in values.items() if pd.notna(row["confidence"])}
    scores = [name for name in found if METHODS[name].scale == "score"]
    ranges = _ranges(run.confidence, scores)
    families = []
    for family, colour in FAMILY_COLOURS.items():
        members = [name for name, its in run.families.items() if its == family and name in found]
        bars = [_bar(name, found[name], ranges.get(name)) for name in members]
        families += [(FAMILY_LABELS[family], colour, bars)] if bars else []
    missing = list(reasons.items())
    return {"families": families, "missing": missing, "hollow": bool(scores), "scaled": SCALED}


def _bar(name: str, row: Mapping[str, Any], span: tuple[float, float] | None) -> dict[str, Any]:
    value, sign = float(row["confidence"]), {"lower": "≥ ", "upper": "≤ "}.get(row["bound"], "")
    named, share, number = label(name), value, f"{value:.2f}"
    if span is not None:
        low, high = span
        named, number = f"{named} †", f"{value:.3g}".replace("-", "−")
        share = (value - low) / (high - low) if high > low else 0.5
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}"
    return {"name": named, "number": sign + number, "width": width, "hollow": span is not None}


def _evidence(generation: Generation | None) -> dict[str, str]:
    if generation is None:
        why = "The run holds tables only, without the records that the evidence is read from."
    elif generation.assessment is None:
        why = f"None: {absence(generation, 'assessment')}."
    else:
        return {"evidence": show.evidence(generation.assessment)}
    return {"no_evidence": why}


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
