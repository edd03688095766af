"""Answers as files: one page, or ``answers.html`` with all of a folder, and the links to it."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import base64
import hashlib
import math
import pickle
import re
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from html import escape, unescape
from importlib.resources import files
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import label
from trustlab.folder.records_file import NAME as RECORDS
from trustlab.folder.records_file import each_record, encoded
from trustlab.folder.replies_log import NAME as REPLIES
from trustlab.folder.replies_log import json_line, replies_in
from trustlab.html.answer import SURE, Choice, answer_page, requests, values
from trustlab.html.show import render
from trustlab.paths import NOTICE, save_text
from trustlab.run import RUN, Run, find_table, load_run

ANSWERS, PAGE = "answers", "answers.html"
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


RESERVED = ("", "con", "prn", "aux", "nul")
"""Names that are no file's, or another's."""


def page_path(case_id: str, level: int, model: str) -> str:
    """Where ``trustlab show`` puts the page of an answer, below its run's folder:
    ``answers/<model>/<case>-<level>.html``, with "/" everywhere."""
    name = f"{safe_name(case_id)}-{int(level)}.html"
    return str(PurePosixPath(ANSWERS, safe_name(model), name))


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
    if not run.methods:
        raise ValueError("the run has no confidence method")
    return _method(run.methods, method)


def _method(known: Sequence[str], method: str | None) -> str:
    if method is not None and method not in known:
        raise ValueError(f"the run has no method {method!r}; it has {', '.join(known) or 'none'}")
    return method or next((m for m in PREFERRED if m in known), known[0])


def _choice(row: pd.Series) -> Choice:
    return Choice(str(row["model"]), str(row["case_id"]), int(row["level"]))


def write_page(run: Run, choice: Choice, path: Path) -> None:
    """Write the page of an answer as a file of its own."""
    title = f"{choice.case_id}, level {choice.level}, {choice.model}"
    page = render("document", title=title, body=answer_page(run, choice))
    save_text(page.encode("utf-8", "replace").decode("utf-8"), path)


# All answers of a folder


Known = dict[str, set[tuple[str, str]]]
"""Which answers ``answers.html`` has: case -> (level, model) of each."""


def write_answers(
    folder: Path, into: Path | None = None, method: str | None = None, since: float = 0
) -> Known:
    """Write ``answers.html`` into ``folder``, or another: a list of the answers of all runs in it,
    and each of them with all that its run holds of it, a script a case in ``answers/``. Opened from
    the disk it needs no network.

    - ``method``: whose confidence the list shows first, as :func:`method_of` where ``None``.
    - Of a folder with replies and without a run's tables, the replies alone are shown.
    - ``since``: replies written before this time, in seconds, are those of an earlier run.
    - Where there is nothing to show, nothing is written. ``ValueError`` for a file that is damaged,
      and where no run has ``method``.
    """
    into, book = into or folder, _Book()
    with closing(book.parts):
        for place in _folders(folder, since):
            where = place.relative_to(folder).as_posix()
            if (place / RUN).is_file() and find_table(place, "answers"):
                book.add_run(load_run(place, records=False), where)
            else:
                book.add_replies(place, where)
        if book.known:
            notebook = next((f.name for f in sorted(into.glob("[0-9][0-9]_*.html"))), "")
            book.write(into, method, notebook)
    return book.known


def _folders(folder: Path, since: float) -> list[Path]:
    """The folders that hold a run or replies, ``folder`` among them; of replies alone last."""
    fresh = (f for f in folder.rglob(REPLIES) if f.stat().st_mtime >= since)
    runs = {f.parent for f in folder.rglob(RUN)}
    return [*sorted(runs), *sorted({f.parent for f in fresh} - runs)]


class _Book:
    """The list and the parts of ``answers.html``, as they come, run by run."""

    def __init__(self) -> None:
        self.parts = sqlite3.connect("")  # it spills to the disk
        self.parts.execute("CREATE TABLE parts (n INTEGER PRIMARY KEY, case_id, told)")
        self.rows: list[list[Any]] = []
        self.runs: dict[str, list[str]] = {}
        self.known: Known = {}

    def add_run(self, run: Run, name: str) -> None:
        """The answers of a run, each with its confidences and its record."""
        first, self.runs[name] = len(self.rows), run.methods
        answers = run.answers.to_dict("records")
        sure = _by_answer(run.confidence)
        at: dict[tuple[str, str, int], list[int]] = {}
        for n, row in enumerate(answers):
            at.setdefault((row["model"], row["case_id"], row["level"]), []).append(n)
            found = {method: value for method, value, *_ in sure.get(_key(row), ())}
            told = [_none(row["truth"]), _none(row["answer"]), _none(row["correct"])]
            self._list(name, *_key(row), *told, [_short(found.get(m)) for m in run.methods])
        left = dict(enumerate(answers))
        path = run.folder / RECORDS if run.folder else None
        for g in each_record(path, change=_lean) if path and path.is_file() else ():
            mine = at.get((g.model, g.case_id, g.level), [])
            if len(mine) == 1 and (row := left.pop(mine[0], None)):
                self._tell(first + mine[0], row, values(run, row, sure.get(_key(row), ()), g))
        for n, row in left.items():
            self._tell(first + n, row, values(run, row, sure.get(_key(row), ()), None))

    def add_replies(self, folder: Path, name: str) -> None:
        """The replies in a folder without a run's tables, by case, level and model."""
        kept, self.runs[name] = replies_in(folder), []
        for dataset, case_id, level in kept.views():
            rows = kept.of(dataset, case_id, level)
            for model in dict.fromkeys(row["model"] for row in rows):
                facts = [case_id, dataset, f"model {model}", "replies alone"]
                told = {"facts": facts, "asked": requests(r for r in rows if r["model"] == model)}
                self._tell(len(self.rows), {"case_id": case_id}, told)
                self._list(name, dataset, case_id, level, model, None, None, None, None)

    def _list(self, *row: Any) -> None:
        self.rows.append(list(row))
        _, _, case_id, level, model, *_ = row
        self.known.setdefault(case_id, set()).add((str(level), model))

    def _tell(self, n: int, row: Mapping[str, Any], told: Any) -> None:
        part = [n, row["case_id"], pickle.dumps(told)]  # read back by this object alone
        self.parts.execute("INSERT INTO parts VALUES (?, ?, ?)", part)

    def write(self, into: Path, method: str | None, notebook: str) -> None:
        """Write the scripts, then the page."""
        methods = list(dict.fromkeys(chain.from_iterable(self.runs.values())))
        named = {m: [label(m), METHODS[m].scale if m in METHODS else "score"] for m in methods}
        facts = {"method": _method(methods, method) if methods or method else None}
        facts |= {"methods": named, "runs": self.runs, "rows": self.rows, "notebook": notebook}
        facts["cases"] = {case_id: safe_name(case_id) for case_id in self.known}
        for old in (into / ANSWERS).glob("*.js"):
            old.unlink()
        self.parts.execute("CREATE INDEX cases ON parts (case_id)")
        for case_id, name in facts["cases"].items():
            found = self.parts.execute(
                "SELECT told FROM parts WHERE case_id = ? ORDER BY n", [case_id]
            )
            lines: dict[str, int] = {}
            told = [_with_lines(pickle.loads(part), lines) for (part,) in found]
            script = f'take("{name}", "{_packed(_json([list(lines), told]))}")\n'
            save_text(script, into / ANSWERS / f"{name}.js")
        page = files("trustlab.html").joinpath("templates", PAGE).read_text(encoding="utf-8")
        page = page.replace("NOTICE", NOTICE).replace("LIST", _packed(_json(facts)))
        save_text(page, into / PAGE)


UNSEEN = (
    "similarity", "similarity_med", "entailment", "contradiction", "relevance", "sample_relevance",
    "alternative_entailment",
)  # fmt: skip
"""Parts of a record that no page shows; nor do they the tokens of samples and scores."""


def _lean(row: dict[str, Any]) -> dict[str, Any]:
    """A record without them, much the faster to read."""
    row |= dict.fromkeys(UNSEEN)
    for reply in chain(row["samples"] or (), *row["probes"].values()):
        reply["trace"] = None
    return row


def _with_lines(told: dict[str, Any], lines: dict[str, int]) -> dict[str, Any]:
    """An answer with its prompts and passages as numbers of their ``lines``, which the answers to a
    case share."""

    def numbers(text: str) -> list[int]:
        return [lines.setdefault(line, len(lines)) for line in text.split("\n")]

    for request in told["asked"]:
        request["messages"] = [(role, numbers(text)) for role, text in request["messages"]]
    for passage in (told.get("passages") or {}).get("passages", ()):
        passage["content"] = numbers(passage["content"])
    return told


def _by_answer(confidence: pd.DataFrame) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Answer -> its rows of the table of confidences (:data:`~trustlab.html.answer.SURE`)."""
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    columns = ["dataset", "case_id", "level", "model", *SURE]
    for row in zip(*(confidence[name] for name in columns), strict=True):
        found.setdefault(row[:4], []).append(row[4:])
    return found


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], row["case_id"], row["level"], row["model"]


def _none(value: Any) -> Any:
    return None if pd.isna(value) else value


def _short(value: float | None) -> float | None:
    """A confidence as a list shows it, in four digits."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def _json(value: Any) -> bytes:
    try:
        return json_line(value)
    except ValueError:  # a number is not finite
        return json_line(encoded(value))


def _packed(text: bytes) -> str:
    """Letters and digits that the page makes the text from: none of its own can be a script."""
    return base64.b64encode(zlib.compress(text, 9)).decode("ascii")


# Links to it


def answers_link(words: str, **state: Any) -> str:
    """A link to ``answers.html``, beside the page that has it, in a state: of a ``case``,
    ``level``, ``model`` or ``dataset``; what is ``None`` is left out."""
    told = {name: str(value) for name, value in state.items() if value is not None}
    where = urlencode(told, quote_via=quote, errors="replace")
    return f'<a href="{PAGE}#{escape(where)}">{words}</a>'


def figure_link(answers: pd.DataFrame) -> str:
    """The line under a figure that leads to the answers behind it."""
    names = {"dataset": "dataset", "case_id": "case", "level": "level", "model": "model"}
    only = {to: answers[name].iloc[0] for name, to in names.items() if answers[name].nunique() == 1}
    return f"{FIGURE_LINE}{answers_link('its answers by case', **only)}</p>"


FIGURE_LINE = '<p class="answers-by-case" style="margin:0 0 12px;font-size:12px">'
_LINK = re.compile(rf'<a href="{re.escape(PAGE)}#[^"]*">(.*?)</a>', re.DOTALL)
_TABLE = re.compile(r'<table[^>]*class="dataframe">.*?</table>', re.DOTALL)
_CELL = re.compile(r"<t([hd])[^>]*>(.*?)</t\1>", re.DOTALL)


def linked(html: str, known: Known) -> str:
    """The page with each case id of a table's column ``case_id`` a link to its answer, by the row's
    ``level`` and ``model`` where it has them. Without any ``known``, links are taken out, and a
    line that is nothing else."""
    if not known:
        return "" if html.startswith(FIGURE_LINE) else _LINK.sub(r"\1", html)
    return _TABLE.sub(lambda table: _linked_table(table[0], known), html)


def _linked_table(table: str, known: Known) -> str:
    head, body, rest = table.partition("<tbody>")
    heads = [unescape(cell[2]) for cell in _CELL.finditer(head)]
    if heads.count("case_id") != 1:
        return table

    def row(found: re.Match[str]) -> str:
        cells = list(_CELL.finditer(found[0]))
        if len(cells) != len(heads):
            return found[0]
        told = {name: unescape(cell[2]) for name, cell in zip(heads, cells, strict=True)}
        case_id, level, model = (told.get(name) for name in ("case_id", "level", "model"))
        held = known.get(case_id or "", ())
        if not any(level in (None, n) and model in (None, m) for n, m in held):
            return found[0]
        at = cells[heads.index("case_id")]
        link = answers_link(at[2], case=case_id, level=level, model=model)
        return found[0][: at.start(2)] + link + found[0][at.end(2) :]

    return head + body + re.sub(r"<tr.*?</tr>", row, rest, flags=re.DOTALL)
