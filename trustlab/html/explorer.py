"""A run to look into: choose model, case and level; see dialogue, answer, confidences, evidence.

Everything comes from the run in memory; no model is asked. Pages are made by pure functions, so
they can be read without a browser; the widgets only choose among them.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trustlab.html.answer import STILL, Choice, answer_page
from trustlab.html.show import Html
from trustlab.records import Case
from trustlab.run import Run

__all__ = ["STILL", "Choice", "Explorer", "case_options", "explore", "page", "still"]
ABOUT_FIRST_WORDS = 60


def explore(run: Run, cases: Sequence[Case]) -> Explorer:
    """Look into ``run``, made on ``cases``: a page with controls in a notebook, else a still page.

    ``ValueError`` where the run holds none of the cases.
    """
    return Explorer(run, cases)


class Explorer:
    """Controls (``model``, ``dataset``, ``case``, ``level``, ``truth``) and their page (``html``).

    Without ipywidgets ``widget`` is ``None`` and only the still page is given. ``default`` is what
    is shown first: the first model and case, at a level in the middle.
    """

    def __init__(self, run: Run, cases: Sequence[Case]) -> None:
        answered = set(run.answers["case_id"])
        self.run = run
        self.cases = tuple(case for case in cases if case.case_id in answered)
        if not self.cases:
            raise ValueError(
                f"the run's answers are about none of the {len(cases)} cases given; "
                "give the cases it was made on"
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
    """(id and how the case begins, never its diagnosis; id) of the cases of ``dataset``."""
    return [
        (f"{case.case_id}: {_beginning(case)}", case.case_id)
        for case in cases
        if case.dataset == dataset
    ]


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
