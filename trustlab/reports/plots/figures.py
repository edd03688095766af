"""Saves a notebook's figures, each beside its table."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from trustlab.metrics.schema import rows_where
from trustlab.reports.plots import style
from trustlab.runs import formatted
from trustlab.runs.workbench import Workbench
from trustlab.settings import Flat

LONGEST_TITLE = 70


class Figures:
    """Captions and saves the figures of one notebook: ``show = tl.Figures("01", setup, run)``.
    Captions count the answers of ``run`` (or ``answers``); its ``parameters`` name a stand-in.
    ``models``: the order of models; the first has no ending in its files' names. ``notes``,
    ``interval`` and ``facts`` are in all captions."""

    def __init__(  # noqa: PLR0913
        self,
        number: str,
        setup: Flat,
        run: Any = None,
        *,
        answers: pd.DataFrame | None = None,
        models: Sequence[str] = (),
        notes: Sequence[str] = (),
        interval: str = "95 % interval over cases",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        assert setup.run_dir, "study.setup names a folder"
        self.number = number
        self.folder = setup.run_dir / "figures"
        self.run = run
        self.answers = getattr(run, "answers", None) if answers is None else answers
        self.models = models
        self.interval = interval
        grader = setup.judge.name if isinstance(setup, Workbench) else "synonym"
        self.graded = f"graded by {grader}" if grader != "synonym" else ""
        self.notes = list(notes)
        self.facts = dict(facts or {})

    def __call__(  # noqa: PLR0913
        self,
        axes: Any,
        table: pd.DataFrame,
        name: str,
        who: str = "",
        *,
        where: str = "",
        answers: pd.DataFrame | None = None,
        run: Any = None,
        title: str = "",
        note: str = "",
        interval: str | None = None,
        dataset: str = "",
        n_cases: int | None = None,
        counts: str = "",
    ) -> None:
        """Caption a figure and save it beside the table that it draws, under a fixed ``title``;
        ``ValueError`` above :data:`LONGEST_TITLE` characters.
        The caption counts ``answers`` (default: all of ``run``); of a model ``who`` only those on
        the data set ``where``, by default the first. ``dataset``, ``n_cases`` and ``counts`` stand
        in the place of the data sets' names, their number of cases, and all counts."""
        if len(title) > LONGEST_TITLE:
            raise ValueError(
                f"title is {title!r}; it may have at most {LONGEST_TITLE} characters"
            )
        run = self.run if run is None else run
        every = self.answers if run is self.run else run.answers
        facts = {}
        ending = ""
        if every is not None:
            shown = every if answers is None else answers
            if who:
                sets = list(dict.fromkeys(every["dataset"]))
                where = where or sets[0]
                shown = rows_where(
                    shown, shown["model"].eq(who) & shown["dataset"].eq(where)
                )
                ending = style.file_ending(who, self.models) + style.file_ending(
                    where, sets
                )
            facts = formatted.about(shown)
        figure = (axes[0] if isinstance(axes, list | tuple) else axes).figure
        if title:
            style.headline(figure, title)
        parameters = getattr(run, "parameters", {})
        remarks = formatted.run_notes(
            parameters, table.get("method"), facts.get("model")
        )
        has_own_rows = (
            "own_rows" in table and table["own_rows"].eq(True).to_numpy().any()
        )
        own_rows = formatted.OWN_ROWS if has_own_rows else ""
        notes = [note, *remarks, *self.notes, own_rows, self.graded]
        interval = self.interval if interval is None else interval
        facts |= self.facts
        caption = style.caption(
            figure,
            model=facts["model"],
            dataset=dataset or facts["dataset"],
            n_cases=facts.get("n_cases") if n_cases is None else n_cases,
            n_rows=facts.get("n_rows"),
            n_failed=facts.get("n_failed", 0),
            counts=counts,
            levels=facts.get("levels", ()),
            note="; ".join(filter(None, notes)),
            interval=interval and formatted.interval_words(table, interval),
        )
        saved = style.save_figure(
            figure, table, f"{self.number}_{name}{ending}", self.folder
        )
        if saved:
            _display(figure, saved[0], title, caption.get_text())


def _display(figure: Figure, image: Path, title: str, caption: str) -> None:
    """In a notebook the saved image, now, in place of the figure at the end of the cell; its
    metadata say its file, title and caption, and both in one (``alt``)."""
    # no notebook; the import would slow the command line
    if "IPython" not in sys.modules:
        return
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.display import display

    if InteractiveShell.initialized():
        alt = "\n".join(filter(None, [title, caption]))
        metadata: dict[str, Any] = {"image/png": {"alt": alt}}
        metadata |= {
            "file": f"figures/{image.name}",
            "title": title,
            "caption": caption,
        }
        pixels = b64encode(image.read_bytes()).decode("ascii")
        display({"image/png": pixels}, raw=True, metadata=metadata)
        plt.close(figure)
