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
from trustlab.runs.formatted import HEADS, counted, not_read, percent, read_line, table_rows

BEGIN, END = "<!-- opening -->", "<!-- end -->"
BLOCK = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
STOPPED = "The run stopped before it had a result."
EXAMPLES, LONGEST = 3, 500
"""Unread replies that a page shows, and the characters of each."""
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]")


def runs_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Name ('' for the folder's own) -> what its ``run.json`` says, of all runs in a folder."""
    files = [folder / RUN, *sorted(folder.glob(f"*/**/{RUN}"))]
    there = {f: json.loads(f.read_text(encoding="utf-8")) for f in files if f.is_file()}
    return {str(f.parent.relative_to(folder)).removeprefix("."): of for f, of in there.items()}


def parameters_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a ``run.json`` says of its benchmark, or of its doctors and reviewers."""
    return facts.get("benchmark") or facts.get("trust") or {}


def counts_of(runs: Iterable[Mapping[str, Any]]) -> Counts:
    """What became of the replies of several runs."""
    found: Counts = {}
    for facts in runs:
        add(found, parameters_of(facts).get("replies_read", {}))
    return found


def nothing_claimed(runs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each model and purpose of a run of which less than half could be read."""
    return [
        f"{model}{f', {name}' if name else ''}: {why}"
        for name, of in runs.items()
        for (model, _), why in too_few(parameters_of(of).get("replies_read", {})).items()
    ]


def filled(source: str, block: str) -> str:
    """A cell's Markdown with the block in its place; without a place it stays."""
    return BLOCK.sub(lambda _: f"{BEGIN}\n{block}\n{END}", source, count=1)


def opening(folder: Path) -> str:
    """The block of a run's folder; '' where it holds no run."""
    if not (runs := runs_in(folder)):
        return ""
    counts = counts_of(runs.values())
    parts = [_render("facts", **_facts(folder, runs, counts))]
    if accuracies := accuracies_of(folder):
        parts.append(_render("accuracies", heads=heads_of(accuracies), rows=accuracies))
    if rows := table_rows(counts):
        parts.append(_render("purposes", heads=HEADS, rows=rows))
    parts.insert(0 if much_unread(counts) else len(parts), unread(folder, counts))
    return "\n\n".join(filter(None, parts))


def much_unread(counts: Counts) -> list[str]:
    """A line for each model and purpose of which more than 5 % could not be read."""
    return [f"{_words(m)}: {_words(s)}" for m in counts for s in not_read({m: counts[m]})]


def unread(folder: Path, counts: Counts) -> str:
    """The replies that most often could not be read, folded; under :func:`much_unread`, where that
    is so, in sight: then the page begins with them. '' where all were read."""
    lines = much_unread(counts)
    seen: Counter[tuple[str, str, str]] = Counter()
    for file in sorted(folder.rglob(NAME)):
        with suppress(ValueError):
            for _, line in json_lines(file):
                row = json.loads(line)
                lost = [r for r in row["replies"] if r.get("kind") not in ("", "read", None)]
                seen.update((row["model"], row["purpose"], r["raw"] or "") for r in lost)
    if not lines and not seen:
        return ""
    commonest = seen.most_common(EXAMPLES)
    return _render("unread", lines=lines, n=seen.total(), commonest=commonest)


def _facts(folder: Path, runs: Mapping[str, Mapping[str, Any]], counts: Counts) -> dict[str, Any]:
    """What the table shows: models, data and n, read; and who graded models that were not taught
    our prompts."""
    asked = [parameters_of(of) for of in runs.values()]
    sets: dict[str, int] = {}  # the most cases that a run had of it, or of several
    for of in asked:
        names = of.get("dataset") or ["?"]
        name = names if isinstance(names, str) else ", ".join(names)
        sets[name] = max(sets.get(name, 0), int(of.get("cases", 0)))
    read = [f"nothing is claimed: {_words(line)}" for line in nothing_claimed(runs)]
    read += [f"{_words(m)}: {line}" for m, of in counts.items() if (line := read_line({m: of}))]
    advice = "names and ICD-10-CM decide; grader=judge:MODEL asks a model what they leave open"
    graded = [
        _words(f"{of['grader']}: {of.get('agreement') or advice}")
        for of in asked
        if "grader" in of
        and any(one["set"] != "embedded" for one in of.get("prompts", {}).values())
    ]
    return {
        "models": sorted({name for of in asked for name in of.get("models", ())} | set(counts)),
        "sets": {name: counted(n, "case") for name, n in sets.items()},
        "read": read,
        "graded": list(dict.fromkeys(graded)),
    }


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
    inner = [f.parent for kind in ("csv", "parquet") for f in folder.rglob(f"answers.{kind}")]
    places = sorted({folder, *inner}, key=lambda place: (len(place.parts), place))
    with suppress(ValueError, LookupError):
        if file := next(filter(None, (find_table(place, "answers") for place in places)), None):
            table: Any = read_table(file)
            for change in ("condition", "variant"):
                if change in table and len(table):
                    table = table[table[change].eq(table[change].iloc[0])]
            return list(accuracies(table))
    return []


def accuracies(answers: pd.DataFrame) -> Iterator[Accuracy]:
    """Of each model and data set the right answers at each level, then over all levels among those
    asked, not cut and read."""
    table: Any = checked_answers(answers)
    for (model, dataset), part in table.groupby(["model", "dataset"], sort=False, observed=True):
        graded = part[~part["failed"] & ~part["ungraded"]]
        if graded.empty:
            whys: Any = answers.loc[part.index].get("missing", pd.Series(dtype=object))
            yield Accuracy(model, dataset, {}, str(next(iter(whys.mode()), "no answer")))
            continue
        turns = str(dataset).endswith(ENDING)
        columns = {
            counted(level, "question") if turns else f"level {level}": of
            for level, of in graded.groupby("level")
        }
        columns["all, asked"] = part[part["cut"] | part.index.isin(graded.index)]
        columns["all, not cut"] = graded
        columns["all, read"] = graded[graded["readable"]]
        shares = {name: _share(of) for name, of in columns.items() if len(of)}
        yield Accuracy(model, dataset, shares)


def _share(of: pd.DataFrame) -> str:
    right: Any = of["correct"].sum()
    return f"{percent(int(right), len(of))} of {len(of):,}"


def heads_of(rows: Iterable[Accuracy]) -> list[str]:
    """The columns of several accuracies, those over all levels last."""
    heads = dict.fromkeys(name for row in rows for name in row.shares)
    return sorted(heads, key=lambda name: name.startswith("all, "))


def _render(part: str, **values: Any) -> str:
    made = Environment(
        loader=PackageLoader("trustlab.reports.html"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {"words": _words, "raw": _raw}
    return made.get_template("opening.md").render(part=part, **values).rstrip()


def _words(words: object) -> str:
    """Words that end no cell, no comment and no page."""
    return _spelt(str(words).replace("\n", " "), "|`$\\*_[]~#")


def _raw(reply: str) -> str:
    """A model's words as a page shows them: nothing in them is Markdown, mathematics or HTML."""
    cut = reply if len(reply) <= LONGEST else f"{reply[:LONGEST]}…"
    return _spelt(cut, "`$\\-*_[]\n") or "(nothing)"


def _spelt(words: str, marks: str) -> str:
    """HTML of ``words``, with these ``marks`` as numbers, and without what no page shows."""
    return "".join(
        f"&#{ord(c)};" if c in marks else escape(c, quote=False) for c in _ODD.sub("\ufffd", words)
    )
