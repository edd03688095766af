"""Leads from a number to the raw reply: the page of one answer.

Everything comes from the run's tables, records and replies; no model is asked. The templates escape
every word of models and files.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

import hashlib
import json
import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd

from trustlab.agents.consultation import ENDING
from trustlab.confidence import METHODS
from trustlab.confidence.registry import absence, label
from trustlab.metrics.run_tables import KEYS
from trustlab.parsing.counts import TOO_FEW
from trustlab.paths import save_text, sha256_of
from trustlab.records import GIVEN, Generation
from trustlab.reports.families import FAMILY_COLOURS, FAMILY_LABELS
from trustlab.reports.html.show import (
    GREY,
    Html,
    dialogue,
    evidence,
    render,
    replies,
    tokens,
    votes,
)
from trustlab.runs.costs import ASSESSED
from trustlab.runs.folder.records_file import NAME as RECORDS
from trustlab.runs.folder.records_file import find_records
from trustlab.runs.folder.replies_log import NAME as REPLIES
from trustlab.runs.folder.replies_log import Replies, replies_in
from trustlab.runs.folder.saved import RUN, find_table, load_run, of_answer
from trustlab.runs.run import Run

ANSWERS, PAGE, SOURCES = "answers", "answers.html", "made_from.txt"
PACKAGE = Path(__file__).parents[2]
MOST = 200
"""Answers with a page of their own beside ``answers.html``; its runs share them."""
PREFERRED = ("medconf", "asp", "poc", "ce")
"""Whose confidence says which answer is the surest: the first that the run has."""
VERDICTS = {
    "right": ("✓", "#009E73"), "wrong": ("✗", "#D55E00"), "unread": ("?", GREY),
    "not judged": ("–", GREY),
}  # fmt: skip
"""Verdict -> its symbol and colour."""
BOUNDS = {"lower": "≥ ", "upper": "≤ "}
NO_RECORD = "The run holds no record of it; its words stand in the prompts, below."
NO_REPLIES = f"The run has no folder with {REPLIES}: it was not saved, or by an earlier version."
PURPOSES = (
    "ask", "patient", "enough", "diagnosis", "samples", "ce", "cot_ce", "topk_ce", "p_true",
    *GIVEN, *ASSESSED, "doctor", "plan", "review_prescriptions", "review_tests", "judge",
)  # fmt: skip
"""What was asked, in the order of a page."""
_QUESTION = re.compile("<question>\n(.*?)\n</question>", re.DOTALL)  # not which disease
FILTERS = ("level", "model", "dataset", "run", "verdict")


class Choice(NamedTuple):
    """An answer of a run."""

    case_id: str
    level: int
    model: str


def show(run: Run, case_id: str, level: int, model: str | None = None) -> Html:
    """The page of one answer, of the run's first model if ``model`` is ``None``. The page has
    dialogue, answer, every confidence, evidence and, for a saved run, every prompt with its raw
    replies. ``ValueError`` where there is no such answer."""
    model = model or next(iter(run.parameters["models"]))
    rows, sure, g = of_answer(run, model, case_id, level)
    if rows.empty:
        raise ValueError(f"no answer of {model!r} to case {case_id!r} at level {level!r}")
    row = rows.iloc[0].to_dict()
    kind = verdict(row["answer"], row["correct"], str(row["missing"]))
    missing = g.answer.missing if g and g.answer else row.get("missing") or ""
    turns = row["dataset"].endswith(ENDING)
    shown = f"after {level} questions" if turns else f"{level} % shown"
    requests = _requests(run, row)
    prompts = [r["messages"][-1][1] for r in requests if r["purpose"] == "diagnosis"]
    question = _QUESTION.search("".join(prompts[:1]))
    return render(
        "answer",
        facts=[case_id, row["dataset"], f"model {model}", shown],
        answer=f"none ({missing})" if pd.isna(row["answer"]) else row["answer"],
        verdict=kind,
        look=VERDICTS[kind],
        truth=row["truth"],
        question=question and question[1],
        sure=[_confidence(run.families, of) for of in sure.to_dict("records")],
        parts=_parts(g),
        asked=_in_order(requests),
        no_replies="" if replies_in(run.folder) else NO_REPLIES,
    )


def verdict(answer: Any, correct: Any, missing: str = "") -> str:
    """One of :data:`VERDICTS`: "unread" without a readable diagnosis; "not judged" where backend or
    grader failed, or nothing is claimed of it."""
    if pd.isna(correct) and not (pd.isna(answer) and TOO_FEW in missing):
        return "not judged"
    return "unread" if pd.isna(answer) else "right" if correct == 1 else "wrong"


def _confidence(families: Mapping[str, str], row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a method: its number, or why it is missing; a probability has a bar."""
    name, value, width = row["method"], row["confidence"], 0
    if pd.isna(value):
        number = f"missing: {row['missing'] or 'no reason'}"
    elif METHODS[name].scale == "probability":
        width, number = 100 * value, f"{BOUNDS.get(row['bound'], '')}{value:.2f}"
    else:
        number = f"{BOUNDS.get(row['bound'], '')}{value:.3g} (score)"
    shown = {"method": label(name), "family": FAMILY_LABELS[families[name]]}
    return shown | {"colour": FAMILY_COLOURS[families[name]], "width": width, "number": number}


def _parts(g: Generation | None) -> list[tuple[str, Html | str]]:
    """What the record holds, as (title, HTML or words)."""
    if g is None:
        return [("The dialogue so far", NO_RECORD)]
    none = f"None: {absence(g, 'assessment')}."
    parts = {
        "The dialogue so far": dialogue([g.told]) if g.told else NO_RECORD,
        "The answer, token by token": tokens(g.answer) if g.answer else "",
        "Samples and their votes": "" if g.samples is None else votes(g.samples),
        "Asked how sure it is": replies(g) if g.probes else "",
        "MedConf's evidence": evidence(g.assessment) if g.assessment else none,
    }
    return [(title, shown) for title, shown in parts.items() if shown]


def _requests(run: Run, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requests behind an answer: its own, those about its diagnosis that other answers share,
    a judge's verdicts on it held against the same truth, and a consultation's last question."""
    if not (kept := replies_in(run.folder)):
        return []
    answer = None if pd.isna(row["answer"]) else str(row["answer"])
    who = dict.fromkeys(ASSESSED, {row["model"], *(run.parameters.get("assessor") or ())})
    who["doctor"] = {row["model"], *(run.parameters.get("panel") or ())}
    models = set().union(*who.values())
    found = kept.of(row["dataset"], row["case_id"], int(row["level"]), models)
    if answer is not None:
        alike = set(run.answers.loc[run.answers["truth"] == row["truth"], "case_id"])
        shared = kept.about(answer, [*ASSESSED[:2], "judge"])
        found += [r for r in shared if r["purpose"] != "judge" or r["case_id"] in alike]
    mine = [
        r
        for r in found
        if (r["purpose"] == "judge" or r["model"] in who.get(r["purpose"], {row["model"]}))
        and (r["purpose"] not in (*ASSESSED, "judge") or r["diagnosis"] == answer)
    ]
    if row["dataset"].endswith(ENDING) and run.folder:
        mine += _talk(replies_in(run.folder.parent), row)
    once: dict[Any, dict[str, Any]] = {}
    for r in reversed(mine):  # of equal ones the first stays
        key = (r["purpose"], r["model"], str(r["messages"]))
        if r["purpose"] in GIVEN and key in once:  # the texts of one question, in their order
            r["replies"] += once[key]["replies"]
        once[key] = r
    return list(reversed(once.values()))


def _talk(kept: Replies, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A consultation's last question and what the patient said to it; of the answering model's own
    talk, where it spoke itself."""
    found = kept.of(row["dataset"], row["case_id"], int(row["level"]) - 1)
    spoken = [r for r in found if r["purpose"] in ("ask", "patient")]
    own = {r["purpose"] for r in spoken if r["model"] == row["model"]}
    return [r for r in spoken if r["purpose"] not in own or r["model"] == row["model"]]


def _in_order(requests: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Requests in the order of a page; equal replies are one, with a count."""
    found = []
    for row in requests:
        counts, each = Counter(map(str, row["replies"])), {str(of): of for of in row["replies"]}
        once = [reply | {"n": counts[key]} for key, reply in each.items()]
        found.append({**row, "n": len(row["replies"]), "replies": once})
    place = {purpose: n for n, purpose in enumerate(PURPOSES)}
    return sorted(found, key=lambda r: place.get(r["purpose"], len(place)))


def choose(
    run: Run,
    case: str | None = None,
    level: int | None = None,
    model: str | None = None,
) -> tuple[Choice, str]:
    """Of the answers that fit what is given the surest wrong one (:func:`method_of`), else the
    least sure right one; and what it is. ``ValueError`` where none fits."""
    rows = run.answers
    for column, wanted in (("case_id", case), ("level", level), ("model", model)):
        if wanted is not None:
            known = ", ".join(map(str, rows[column].unique()[:12]))
            rows = rows.loc[rows[column] == wanted]
            if rows.empty:
                raise ValueError(f"no answer with {column} {wanted!r}; there are such as {known}")
    table = _listed(replace(run, answers=rows))
    row = table.loc[_worth_reading(table)[0]]
    return row["choice"], f"{row['verdict']} (confidence {row['by']:.2f}), of {len(rows)} that fit"


def method_of(known: Sequence[str]) -> str:
    """The first of :data:`PREFERRED` that is ``known``, else the first that is."""
    return next((m for m in PREFERRED if m in known), known[0])


def safe_name(text: str) -> str:
    """A name for a file, whatever the text: letters, digits, "-", "_", "." and no more. What had to
    change has a hash of the whole behind it, so that two texts never share a name, also where upper
    and lower case are one."""
    kept = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.")[:60]
    own = kept == text and not re.search(r"-[0-9a-f]{8}$", kept)
    if own and kept not in ("", "con", "prn", "aux", "nul"):
        return kept
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kept or 'x'}-{digest}"


def page_path(of: Choice) -> str:
    """Where the page of an answer is, below its run's folder."""
    return f"{ANSWERS}/{safe_name(of.model)}/{safe_name(of.case_id)}-{int(of.level)}.html"


def write_page(title: str, body: Html, path: Path, script: str = "") -> None:
    """Write a page as a file of its own, which runs ``script`` and nothing else."""
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"; script-src 'sha256-{digest}'" if script else ""
    page = render("document", title=title, body=body, policy=policy)
    save_text(page.encode("utf-8", "replace").decode("utf-8"), path)  # half a character is a "?"


def write_answers(folder: Path, into: Path | None = None) -> int:
    """Write ``answers.html`` into ``folder`` or ``into``: a list of the answers of all runs in it,
    and the pages of :data:`MOST` of them. Returns how many are listed; of none nothing is written.
    ``ValueError`` for a damaged file."""
    rows, into = [], into or folder
    places = sorted(f.parent for f in folder.rglob(RUN) if find_table(f.parent, "answers"))
    for place in places:
        where, most = place.relative_to(folder), max(MOST // len(places), 10)
        run = load_run(place, records=False)
        table = _listed(run)
        chosen = dict.fromkeys(table.loc[_worth_reading(table)[:most], "choice"])
        _write_pages(run, chosen, into / where)
        found = table.fillna({"answer": "", "truth": ""}).to_dict("records")
        for row in found:
            page = (where / page_path(row["choice"])).as_posix()
            row["href"] = quote(page) if row["choice"] in chosen else ""
            row["run"] = where.as_posix() if where.parts else ""
        rows += found
    if not rows:
        return 0
    methods = list(dict.fromkeys(m for row in rows for m in row["sure"]))
    for row in rows:
        numbers = [row["sure"].get(m, math.nan) for m in methods]
        row["sure"] = ["" if math.isnan(value) else f"{value:.3g}" for value in numbers]
        row["verdict"] = f"{VERDICTS[row['verdict']][0]} {row['verdict']}"
    body = render(
        "answers",
        script=(script := render("answers_script")),
        rows=rows,
        held={name: sorted({row[name] for row in rows}) for name in FILTERS},
        methods=list(map(label, methods)),
        first=methods.index(method_of(methods)) if methods else 0,
        n_pages=sum(bool(row["href"]) for row in rows),
    )
    write_page("Answers by case", body, into / PAGE, script)
    return len(rows)


def _write_pages(run: Run, chosen: Collection[Choice], into: Path) -> None:
    """The pages of ``chosen`` below ``into``, in place of those there, unless these were made from
    the same files by the same program."""
    pages = {of: into / page_path(of) for of in chosen}
    made_from, sources = into / ANSWERS / SOURCES, _sources(run)
    same = made_from.is_file() and made_from.read_text(encoding="utf-8") == sources
    if same and {*pages.values()} == {*into.glob(f"{ANSWERS}/*/*.html")}:
        return
    made_from.unlink(missing_ok=True)
    for old in into.glob(f"{ANSWERS}/*/*.html"):
        old.unlink()
    assert run.folder is not None
    kept = run.folder / RECORDS
    generations = tuple(find_records(kept, chosen)) if kept.is_file() else ()
    run = replace(run, generations=generations)
    for of, page in pages.items():
        write_page(f"Case {of.case_id}", show(run, *of), page)
    save_text(sources, made_from)


def _sources(run: Run) -> str:
    """What a run's pages are made from, a line each: this program, the run's parameters, its files,
    and the replies beside its folder (a consultation's)."""
    assert run.folder is not None
    folder = run.folder
    parameters = {name: of for name, of in run.parameters.items() if name != "collect_s"}
    lines = [_program(), json.dumps(parameters, sort_keys=True)]
    tables = [find_table(folder, name) for name in ("answers", "confidence")]
    for file in [*tables, folder / RECORDS, folder / REPLIES, folder.parent / REPLIES]:
        if file is not None and file.is_file():
            lines.append(f"{file.name} {sha256_of(file)}")
    return "\n".join(lines)


@cache
def _program() -> str:
    """A hash of the package's code and templates."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*")):
        if file.suffix in (".py", ".html"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _listed(run: Run) -> pd.DataFrame:
    """The run's answers with their verdicts, confidences (``sure``) and that ``by`` a method."""
    table, keys = run.answers, list(KEYS)
    wide = run.confidence.pivot(index=keys, columns="method", values="confidence")
    wide = wide.reindex(index=pd.MultiIndex.from_frame(table[keys]), columns=run.methods)
    return table.assign(
        verdict=list(map(verdict, table["answer"], table["correct"], table["missing"].astype(str))),
        choice=[Choice(*each) for each in table[[*Choice._fields]].itertuples(index=False)],
        sure=wide.to_dict("records"),
        by=wide[method_of(run.methods)].to_numpy() if run.methods else 0.0,
    )


def _worth_reading(answers: pd.DataFrame) -> list[int]:
    """In turn the surest wrong answer, the least sure right one, one unread, one not judged."""
    kinds = answers["verdict"]
    surprise = answers["by"].where(kinds.eq("wrong"), -answers["by"])
    place = surprise.groupby(kinds).rank(ascending=False, method="first", na_option="bottom")
    return (place - kinds.eq("wrong") / 2).sort_values(kind="stable").index.tolist()
