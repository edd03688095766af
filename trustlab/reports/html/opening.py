"""Opens a notebook: what was asked, how much was read and right.

The block between :data:`BEGIN` and :data:`END` in its first cell, as Markdown, from a run's folder.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from trustlab.agents.consultation import ENDING
from trustlab.metrics.run_tables import checked_answers
from trustlab.parsing.counts import Counts, add, too_few
from trustlab.runs.folder.replies_log import NAME, json_lines
from trustlab.runs.folder.saved import RUN, find_table, read_table
from trustlab.runs.formatted import (
    HEADS,
    counted,
    not_read,
    percent,
    read_line,
    table_rows,
)

BEGIN, END = "<!-- opening -->", "<!-- end -->"
BLOCK = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
STOPPED = "The run stopped before it had a result."
EXAMPLES, LONGEST = 3, 500
"""Unread replies that a page shows, and the characters of each."""
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]"
)


def runs_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Name ('' for the folder's own) -> what its ``run.json`` says, of all runs in a folder."""
    files = [folder / RUN, *sorted(folder.glob(f"*/**/{RUN}"))]
    runs = {}
    for file in files:
        if file.is_file():
            name = str(file.parent.relative_to(folder)).removeprefix(".")
            runs[name] = json.loads(file.read_text(encoding="utf-8"))
    return runs


def parameters_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a ``run.json`` says of its benchmark, or of its doctors and reviewers."""
    return facts.get("benchmark") or facts.get("trust") or {}


def counts_of(runs: Iterable[Mapping[str, Any]]) -> Counts:
    """What became of the replies of several runs."""
    counts: Counts = {}
    for facts in runs:
        add(counts, parameters_of(facts).get("replies_read", {}))
    return counts


def nothing_claimed(runs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each model and purpose of a run of which less than half could be read."""
    lines = []
    for name, facts in runs.items():
        counts = parameters_of(facts).get("replies_read", {})
        for (model, _), reason in too_few(counts).items():
            who = f"{model}, {name}" if name else model
            lines.append(f"{who}: {reason}")
    return lines


def filled(source: str, block: str) -> str:
    """A cell's Markdown with the block in its place; without a place it stays."""
    return BLOCK.sub(lambda _: f"{BEGIN}\n{block}\n{END}", source, count=1)


def opening(folder: Path) -> str:
    """The block of a run's folder; '' where it holds no run."""
    runs = runs_in(folder)
    if not runs:
        return ""
    counts = counts_of(runs.values())
    parts = [_render("facts", **_facts(folder, runs, counts))]
    shares = accuracies_of(folder)
    if shares:
        parts.append(_render("accuracies", heads=heads_of(shares), rows=shares))
    purposes = table_rows(counts)
    if purposes:
        parts.append(_render("purposes", heads=HEADS, rows=purposes))
    parts.insert(0 if much_unread(counts) else len(parts), unread(folder, counts))
    return "\n\n".join(filter(None, parts))


def much_unread(counts: Counts) -> list[str]:
    """A line for each model and purpose of which more than 5 % could not be read."""
    return [
        f"{_words(model)}: {_words(share)}"
        for model, by_purpose in counts.items()
        for share in not_read({model: by_purpose})
    ]


def unread(folder: Path, counts: Counts) -> str:
    """The replies that most often could not be read, folded; under :func:`much_unread`, where that
    is so, in sight: then the page begins with them. '' where all were read."""
    lines = much_unread(counts)
    replies: Counter[UnreadReply] = Counter()
    for file in sorted(folder.rglob(NAME)):
        with suppress(ValueError):
            for _, line in json_lines(file):
                replies.update(_unread_of(json.loads(line)))
    if not lines and not replies:
        return ""
    commonest = replies.most_common(EXAMPLES)
    return _render("unread", lines=lines, n=replies.total(), commonest=commonest)


class UnreadReply(NamedTuple):
    """A model's words that could not be read, and what they were asked for."""

    model: str
    purpose: str
    raw: str


def _unread_of(request: Mapping[str, Any]) -> list[UnreadReply]:
    """The replies to a request that could not be read."""
    return [
        UnreadReply(request["model"], request["purpose"], reply["raw"] or "")
        for reply in request["replies"]
        if reply.get("kind") not in ("", "read", None)
    ]


def _facts(
    folder: Path, runs: Mapping[str, Mapping[str, Any]], counts: Counts
) -> dict[str, Any]:
    """What the table shows: models, data and n, read; who graded models that were not taught our
    prompts; and the hosts of a cluster that saw patients' words."""
    runs_parameters = [parameters_of(facts) for facts in runs.values()]
    models = set(counts)
    # the most cases that a run had of a data set, or of several
    sizes: dict[str, int] = {}
    for parameters in runs_parameters:
        models.update(parameters.get("models", ()))
        name = parameters.get("dataset") or "?"
        if not isinstance(name, str):
            name = ", ".join(name)
        n_cases = int(parameters.get("cases", 0))
        sizes[name] = max(sizes.get(name, 0), n_cases)
    hosts = {
        host
        for parameters in runs_parameters
        for host in parameters.get("cluster_hosts", ())
    }
    read = [f"nothing is claimed: {_words(line)}" for line in nothing_claimed(runs)]
    for model, by_purpose in counts.items():
        line = read_line({model: by_purpose})
        if line:
            read.append(f"{_words(model)}: {line}")
    return {
        "models": sorted(models),
        "sets": {name: counted(n_cases, "case") for name, n_cases in sizes.items()},
        "read": read,
        "graded": _graders(runs_parameters),
        "hosts": sorted(hosts),
    }


def _graders(runs_parameters: Iterable[Mapping[str, Any]]) -> list[str]:
    """Who graded in the runs whose models were not taught our prompts, each once."""
    advice = "names and ICD-10-CM decide; grader=judge:MODEL asks a model what they leave open"
    lines = []
    for parameters in runs_parameters:
        if "grader" not in parameters:
            continue
        prompts = parameters.get("prompts", {}).values()
        sets = {prompt["set"] for prompt in prompts}
        if sets - {"embedded"}:
            agreement = parameters.get("agreement") or advice
            lines.append(_words(f"{parameters['grader']}: {agreement}"))
    return list(dict.fromkeys(lines))


class Accuracy(NamedTuple):
    """The right answers of a model on a data set: column -> how many of how many; or why there are
    none."""

    model: str
    dataset: str
    shares: dict[str, str]
    missing: str = ""


def accuracies_of(folder: Path) -> list[Accuracy]:
    """The :func:`accuracies` of a folder's first run, of the inputs as they are; none where it
    holds no such answers."""
    with suppress(ValueError, LookupError):
        file = _first_answers(folder)
        if file is not None:
            table: Any = read_table(file)
            for change in ("condition", "variant"):
                if change in table and len(table):
                    table = table[table[change].eq(table[change].iloc[0])]
            return list(accuracies(table))
    return []


def _first_answers(folder: Path) -> Path | None:
    """The file of answers in the folder, else in the nearest folder below it."""
    places = {folder}
    for kind in ("csv", "parquet"):
        places.update(file.parent for file in folder.rglob(f"answers.{kind}"))
    for place in sorted(places, key=lambda place: (len(place.parts), place)):
        file = find_table(place, "answers")
        if file:
            return file
    return None


def accuracies(answers: pd.DataFrame) -> Iterator[Accuracy]:
    """Of each model and data set the right answers at each level, then over all levels among those
    asked, not cut and read."""
    table: Any = checked_answers(answers)
    for (model, dataset), part in table.groupby(
        ["model", "dataset"], sort=False, observed=True
    ):
        graded = part[~part["failed"] & ~part["ungraded"]]
        if graded.empty:
            reasons: Any = answers.loc[part.index].get(
                "missing", pd.Series(dtype=object)
            )
            commonest = next(iter(reasons.mode()), "no answer")
            yield Accuracy(model, dataset, {}, str(commonest))
            continue
        is_turn = str(dataset).endswith(ENDING)
        columns = {}
        for level, rows in graded.groupby("level"):
            head = counted(level, "question") if is_turn else f"level {level}"
            columns[head] = rows
        columns |= {
            "all, asked": part[part["cut"] | part.index.isin(graded.index)],
            "all, not cut": graded,
            "all, read": graded[graded["readable"]],
        }
        shares = {head: _share(rows) for head, rows in columns.items() if len(rows)}
        yield Accuracy(model, dataset, shares)


def _share(rows: pd.DataFrame) -> str:
    n_right: Any = rows["correct"].sum()
    return f"{percent(int(n_right), len(rows))} of {len(rows):,}"


def heads_of(rows: Iterable[Accuracy]) -> list[str]:
    """The columns of several accuracies, those over all levels last."""
    heads: dict[str, str] = {}
    for row in rows:
        heads |= row.shares
    return sorted(heads, key=lambda name: name.startswith("all, "))


def _render(part: str, **values: Any) -> str:
    templates = Environment(
        loader=PackageLoader("trustlab.reports.html"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.filters |= {"words": _words, "raw": _raw}
    template = templates.get_template("opening.md")
    return template.render(part=part, **values).rstrip()


def _words(words: object) -> str:
    """Words that end no cell, no comment and no page."""
    return _spelt(str(words).replace("\n", " "), "|`$\\*_[]~#")


def _raw(reply: str) -> str:
    """A model's words as a page shows them: nothing in them is Markdown, mathematics or HTML."""
    cut = reply if len(reply) <= LONGEST else f"{reply[:LONGEST]}…"
    return _spelt(cut, "`$\\-*_[]\n") or "(nothing)"


def _spelt(words: str, marks: str) -> str:
    """HTML of ``words``, with these ``marks`` as numbers, and without what no page shows."""
    html = ""
    for character in _ODD.sub("\ufffd", words):
        if character in marks:
            html += f"&#{ord(character)};"
        else:
            html += escape(character, quote=False)
    return html
