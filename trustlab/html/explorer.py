"""A run to look into: choose model, case and level; see dialogue, answer, confidences, evidence.

Everything comes from the run in memory; no model is asked. Pages are made by pure functions, so
they can be read without a browser; the widgets only choose among them.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from trustlab.agents.consultation import ENDING
from trustlab.confidence.registry import label
from trustlab.html.answer import STILL, Choice, answer_page
from trustlab.html.show import Html, render
from trustlab.records import Case
from trustlab.run import Run

__all__ = ["STILL", "Choice", "Explorer", "case_options", "explore", "page", "passing", "still"]
ABOUT_FIRST_WORDS = 60
Verdict = Literal["all", "right", "wrong", "not judged"]
VERDICTS: dict[Verdict, str] = {
    "all": "right or wrong", "right": "right", "wrong": "wrong", "not judged": "not judged",
}  # fmt: skip
NONE_PASSES = "No answer of this model and data set passes these filters."


class Listed(NamedTuple):
    """A case that can be chosen, and how it begins."""

    case_id: str
    dataset: str
    beginning: str


def explore(run: Run, cases: Sequence[Case] | None = None) -> Explorer:
    """Look into any run: a page with controls in a notebook, else a still page.

    ``cases``, those it was made on, are needed only where its records do not hold the patient's
    words. ``ValueError`` where the run holds none of them.
    """
    return Explorer(run, cases)


class Explorer:
    """Controls (``model``, ``dataset``, ``case``, ``level``, ``truth``) and their page (``html``).

    ``verdict``, ``method`` and ``sure`` (a range of its confidence) filter which cases and levels
    are offered. Without ipywidgets ``widget`` is ``None`` and only the still page is given.
    ``default`` is what is shown first: the first model and case, at a level in the middle.
    """

    def __init__(self, run: Run, cases: Sequence[Case] | None = None) -> None:
        answered = set(run.answers["case_id"])
        self.run = run
        self.cases = tuple(case for case in cases or () if case.case_id in answered)
        if cases is not None and not self.cases:
            raise ValueError(
                f"the run's answers are about none of the {len(cases)} cases given; "
                "give the cases it was made on"
            )
        self.listed = _listed(run) if cases is None else [_of_case(case) for case in self.cases]
        if not self.listed:
            raise ValueError("the run holds no answer")
        self.models = [str(name) for name in run.answers["model"].unique()]
        self.levels = sorted(int(level) for level in run.answers["level"].unique())
        self.methods = [name for name, (low, _) in run.spans.items() if low == low]
        self.default = Choice(
            self.models[0], self.listed[0].case_id, self.levels[len(self.levels) // 2]
        )
        self.widget: Any = None
        self._offering = False
        if (widgets := _ipywidgets()) is not None:
            self._build(widgets)

    def page(self) -> str:
        """The page of what is chosen now."""
        if self.widget is None:
            return still(self.run, self.cases, self.default)
        if self.case.value is None:
            return render("none", words=NONE_PASSES)
        chosen = self.model.value, self.case.value, self.level.value
        return page(self.run, self.cases, *chosen, self.truth.value)

    def _build(self, widgets: Any) -> None:
        datasets = list(dict.fromkeys(case.dataset for case in self.listed))
        wide: dict[str, Any] = {"layout": {"width": "auto", "max_width": "900px"}}
        look: dict[str, Any] = {"style": {"description_width": "70px"}, **wide}
        self.model: Any = widgets.Dropdown(
            options=self.models, value=self.default.model, description="Model", **look
        )
        self.dataset: Any = widgets.Dropdown(
            options=datasets, value=datasets[0], description="Data set", **look
        )
        self.case: Any = widgets.Dropdown(
            options=_options(self.listed, datasets[0]), description="Case", **look
        )
        self.level: Any = widgets.SelectionSlider(
            options=_levels(self.levels, datasets[0]),
            value=self.default.level,
            description="Shown",
            **look,
        )
        self.truth: Any = widgets.Checkbox(
            value=False, description="show the truth", indent=False, **wide
        )
        self.html: Any = widgets.HTML()
        self._build_filters(widgets, look)
        several = ((self.model, self.models), (self.dataset, datasets))
        shown = [control for control, choices in several if len(choices) > 1]
        for control in (self.model, self.dataset, self.verdict, self.sure, self.case):
            control.observe(self._offer, "value")
        self.method.observe(self._offer_range, "value")
        for control in (self.level, self.truth):
            control.observe(self._refresh, "value")
        below = (self.filters, self.case, self.level, self.truth, self.html)
        self.widget = widgets.VBox([*shown, *below])
        self._offer()

    def _build_filters(self, widgets: Any, look: dict[str, Any]) -> None:
        self.verdict: Any = widgets.Dropdown(
            options=[(words, name) for name, words in VERDICTS.items()], description="Only", **look
        )
        methods = [(label(name), name) for name in self.methods]
        self.method: Any = widgets.Dropdown(options=methods, description="Method", **look)
        self.sure: Any = widgets.FloatRangeSlider(
            value=(0, 1), min=0, max=1, step=0.01, description="Confidence", **look
        )
        parts = [self.verdict, self.method, self.sure] if methods else [self.verdict]
        self.filters: Any = widgets.VBox(parts)
        if methods:
            self._set_range()

    def _set_range(self) -> None:
        low, high = self.run.spans[self.method.value]
        names = ("max", "min") if high >= self.sure.min else ("min", "max")
        for name in names:  # its smallest is never above its largest
            setattr(self.sure, name, {"min": low, "max": high}[name])
        self.sure.step = (high - low) / 100 or 0.01
        self.sure.value = (low, high)

    def _offer_range(self, _: object = None) -> None:
        self._offering = True
        self._set_range()
        self._offering = False
        self._offer()

    def _between(self) -> tuple[float, float] | None:
        """The range chosen; ``None`` where it is the whole, so that a missing value passes."""
        low, high = self.sure.value
        whole = low <= self.sure.min and high >= self.sure.max
        return None if whole or not self.methods else (low, high)

    def _offer(self, _: object = None) -> None:
        """Offer the cases and levels that pass, keep what was chosen where it does, and show it."""
        if self._offering:
            return
        self._offering = True
        chosen = self.verdict.value, self.method.value, self._between()
        rows = passing(self.run, self.model.value, *chosen)
        ids, before = set(rows["case_id"]), self.case.value
        options = [o for o in _options(self.listed, self.dataset.value) if o[1] in ids]
        if options != list(self.case.options):
            self.case.options = options
            known = [case_id for _, case_id in options]
            self.case.value = before if before in known else next(iter(known), None)
        mine = rows.loc[rows["case_id"] == self.case.value, "level"]
        if levels := _levels(sorted(map(int, mine)), self.dataset.value):
            self._keep_level(levels)
        self._offering = False
        self._refresh()

    def _keep_level(self, levels: list[tuple[str, int]]) -> None:
        before = self.level.value
        if levels != list(self.level.options):
            self.level.options = levels
            known = [level for _, level in levels]
            self.level.value = before if before in known else known[len(known) // 2]

    def _refresh(self, _: object = None) -> None:
        if not self._offering:
            self.html.value = self.page()

    def __repr__(self) -> str:
        return f"Explorer(cases={len(self.listed)}, models={self.models}, levels={self.levels})"

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


def passing(
    run: Run,
    model: str,
    verdict: Verdict = "all",
    method: str | None = None,
    between: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """The rows of ``answers`` of a model that are right or wrong as ``verdict`` says and whose
    confidence by ``method`` lies ``between`` two values; a missing one lies nowhere."""
    rows = run.answers.loc[run.answers["model"] == model]
    if verdict != "all":
        correct = rows["correct"]
        is_so = {"right": correct == 1, "wrong": correct == 0, "not judged": correct.isna()}
        rows = rows.loc[is_so[verdict]]
    if between is None or method is None:
        return rows
    sure = run.confidence.loc[run.confidence["method"] == method]
    sure = sure.loc[(sure["model"] == model) & sure["confidence"].between(*between)]
    known = set(zip(sure["case_id"], sure["level"], strict=True))
    return rows.loc[[key in known for key in zip(rows["case_id"], rows["level"], strict=True)]]


def case_options(cases: Iterable[Case], dataset: str) -> list[tuple[str, str]]:
    """(id and how the case begins, never its diagnosis; id) of the cases of ``dataset``."""
    return _options(map(_of_case, cases), dataset)


def _options(listed: Iterable[Listed], dataset: str) -> list[tuple[str, str]]:
    mine = (case for case in listed if case.dataset == dataset)
    return [(": ".join(filter(None, (c.case_id, c.beginning))), c.case_id) for c in mine]


def _levels(levels: Iterable[int], dataset: str) -> list[tuple[str, int]]:
    turns = dataset.endswith(ENDING)
    return [(f"{level} questions" if turns else f"{level} %", level) for level in levels]


def still(run: Run, cases: Sequence[Case], choice: Choice) -> Html:
    """The page of ``choice`` where nothing moves: it says so; truth and verdict are folded away."""
    return answer_page(run, choice, _case(cases, choice.case_id), "folded")


def page(
    run: Run, cases: Sequence[Case], model: str, case_id: str, level: int, truth: bool = False
) -> Html:
    """One answer of the run as HTML: dialogue so far, answer, every method's confidence, evidence.

    Only with ``truth`` is the right diagnosis on it, and whether the answer is right.
    ``ValueError`` for a case that is not among ``cases``.
    """
    choice, case = Choice(model, case_id, level), _case(cases, case_id)
    return answer_page(run, choice, case, "shown" if truth else "hidden")


def _case(cases: Sequence[Case], case_id: str) -> Case | None:
    for case in cases:
        if case.case_id == case_id:
            return case
    if cases:
        raise ValueError(f"there is no case {case_id!r} among the {len(cases)} given")
    return None


def _listed(run: Run) -> list[Listed]:
    """The run's cases, in order, each as its first record begins."""
    told = {g.case_id: g.told for g in reversed(run.generations) if g.told}
    cases = run.answers[["case_id", "dataset"]].drop_duplicates("case_id")
    rows = zip(cases["case_id"], cases["dataset"], strict=True)
    return [Listed(str(i), str(d), _beginning(_first(told.get(i, "")))) for i, d in rows]


def _of_case(case: Case) -> Listed:
    return Listed(case.case_id, case.dataset, _beginning(case.statements[0].text))


def _first(told: str) -> str:
    """The first statement of what was told: to the first answer, or the first line."""
    lines = told.splitlines()
    return "\n".join(lines[: 2 if told.startswith("Doctor:") else 1])


def _beginning(statement: str) -> str:
    """How the patient begins, on one line."""
    words = " ".join(statement.rpartition("Patient:")[2].split())
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
