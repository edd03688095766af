"""Answers as files: a page each below a run's folder, a list of them all, and links from tables."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import label
from trustlab.html.answer import VERDICTS, Choice, answer_page
from trustlab.html.show import Html, render
from trustlab.paths import save_text
from trustlab.run import Run

ANSWERS, INDEX = "answers", "index.html"
LONGEST = 60
"""Characters of an id that stay in the name of a file."""
PREFERRED = ("medconf", "asp", "poc", "ce")
"""Whose confidence picks a wrong answer, where no method is named and the run has it."""


def safe_name(text: str) -> str:
    """A name for a file or folder, whatever the text: letters, digits, "-", "_", "." and no more.

    What had to change has eight hex digits of a hash of the whole behind it, so that two texts
    never share a name, also where upper and lower case are one.
    """
    kept = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.")[:LONGEST]
    own = kept == text and not re.search(r"-[0-9a-f]{8}$", kept)
    if own and kept not in RESERVED:
        return kept
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kept or 'x'}-{digest}"


RESERVED = ("", "con", "prn", "aux", "nul", INDEX)
"""Names that are no file's, or another's."""


def page_path(case_id: str, level: int, model: str) -> str:
    """The page of an answer, relative to its run's folder: ``answers/<model>/<case>-<level>.html``,
    with "/" everywhere."""
    name = f"{safe_name(case_id)}-{int(level)}.html"
    return str(PurePosixPath(ANSWERS, safe_name(model), name))


def page_links(table: pd.DataFrame, below: str = "") -> pd.Series:
    """For each row that names an answer (case_id, level, model) the link to its page, '' for the
    others; ``below`` stands in front, such as "../" from a folder below the run's.

    ``ValueError`` where a column is missing.
    """
    if lacks := {"case_id", "level", "model"} - set(table):
        raise ValueError(f"the table has no column {', '.join(sorted(lacks))}")
    each = zip(table["case_id"], table["level"], table["model"], strict=True)
    links = [below + page_path(str(c), int(n), str(m)) if _is_level(n) else "" for c, n, m in each]
    return pd.Series(links, index=table.index, name="page", dtype="str")


def _is_level(value: Any) -> bool:
    """Whether a level is one answer's, and not "pooled"."""
    return not pd.isna(value) and re.fullmatch(r"-?\d+(\.0)?", str(value)) is not None


def choose(
    run: Run,
    case: str | None = None,
    level: int | None = None,
    model: str | None = None,
    method: str | None = None,
) -> tuple[Choice, str]:
    """The answer to show, and why it: of those that fit what is given, the wrong one of highest
    confidence, the first of several; where none is wrong, the first.

    ``method``: whose confidence; of :data:`PREFERRED`, or the run's first, where ``None``.
    ``ValueError`` where no answer fits, or the run has no such method.
    """
    rows = run.answers
    for column, wanted in (("case_id", case), ("level", level), ("model", model)):
        if wanted is not None:
            known = ", ".join(map(str, rows[column].unique()[:12]))
            rows = rows.loc[rows[column] == wanted]
            if rows.empty:
                raise ValueError(f"no answer with {column} {wanted!r}; there are such as {known}")
    wrong = rows.loc[rows["correct"] == 0]
    if wrong.empty or len(rows) == 1:
        only = len(rows) == 1
        return _choice(rows.iloc[0]), "the only one that fits" if only else "the first: none wrong"
    name = method_of(run, method)
    keys = ["case_id", "dataset", "level", "model"]
    mine = run.confidence.loc[run.confidence["method"] == name, [*keys, "confidence"]]
    sure = wrong.reset_index(drop=True).merge(mine, on=keys, how="left", validate="one_to_one")
    if sure["confidence"].isna().all():
        return _choice(sure.iloc[0]), f"the first of {len(sure)} wrong; {label(name)} has no value"
    top = sure.loc[sure["confidence"].idxmax()]
    why = f"of {len(sure)} wrong answers the one of highest {label(name)}, {top['confidence']:.2f}"
    return _choice(top), why


def method_of(run: Run, method: str | None) -> str:
    """The method that is named, else the first of :data:`PREFERRED` that the run has."""
    known = run.methods
    if not known:
        raise ValueError("the run has no confidence method")
    if method is not None and method not in known:
        raise ValueError(f"the run has no method {method!r}; it has {', '.join(known)}")
    return method or next((m for m in PREFERRED if m in known), known[0])


def _choice(row: pd.Series) -> Choice:
    return Choice(str(row["model"]), str(row["case_id"]), int(row["level"]))


def write_page(run: Run, choice: Choice, path: Path, up: str = "") -> None:
    """Write the page of an answer as a file of its own; ``up`` links to the list of all."""
    title = f"{choice.case_id}, level {choice.level}, {choice.model}"
    _save(answer_page(run, choice), title, path, up)


def write_pages(run: Run, folder: Path, method: str | None = None) -> Path:
    """Write the pages of all answers below ``folder`` and the list of them, which is returned.

    The list has the confidence of ``method``, :func:`method_of` where ``None``.
    """
    choices = [_choice(row) for _, row in run.answers.iterrows()]
    for choice in choices:
        write_page(run, choice, folder / _path(choice), f"../{INDEX}")
    index = folder / ANSWERS / INDEX
    _save(_index(run, choices, method_of(run, method)), "All answers", index)
    return index


def _path(choice: Choice) -> str:
    return page_path(choice.case_id, choice.level, choice.model)


def _index(run: Run, choices: Iterable[Choice], name: str) -> Html:
    """The list: of each case its answers, whether they are right, and how sure one method is."""
    mine = run.confidence.loc[run.confidence["method"] == name]
    each = zip(mine["model"], mine["case_id"], mine["level"], mine["confidence"], strict=True)
    sure = {Choice(str(m), str(c), int(n)): value for m, c, n, value in each}
    cases: dict[str, dict[str, Any]] = {}
    for choice, row in zip(choices, run.answers.to_dict("records"), strict=True):
        known = not pd.isna(row["correct"])
        symbol, word, *_ = VERDICTS[int(row["correct"])] if known else ("–", "not judged")
        value = sure.get(choice)
        line = {
            "link": _path(choice).removeprefix(f"{ANSWERS}/"),
            "level": choice.level,
            "model": choice.model,
            "answer": "no answer" if pd.isna(row["answer"]) else row["answer"],
            "verdict": f"{symbol} {word}",
            "confidence": "missing" if value is None or pd.isna(value) else f"{value:.2f}",
        }
        case = {"dataset": row["dataset"], "truth": row["truth"], "rows": []}
        cases.setdefault(choice.case_id, case)["rows"].append(line)
    scale = METHODS[name].scale
    return render("index", cases=cases, method=label(name), scale=scale, n=len(run.answers))


def _save(body: Html, title: str, path: Path, up: str = "") -> None:
    page = render("document", title=title, body=body, up=up)
    save_text(page.encode("utf-8", "replace").decode("utf-8"), path)
