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
from collections.abc import Collection, Mapping, Sequence
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
NO_REPLIES = (
    f"The run has no folder with {REPLIES}: it was not saved, or by an earlier version."
)
PURPOSES = (
    "ask", "patient", "enough", "diagnosis", "samples", "ce", "cot_ce", "topk_ce", "p_true",
    *GIVEN, *ASSESSED, "doctor", "plan", "review_prescriptions", "review_tests", "judge",
)  # fmt: skip
"""What was asked, in the order of a page."""
_QUESTION = re.compile("<question>\n(.*?)\n</question>", re.DOTALL)  # not which disease
FILTERS = ("level", "model", "dataset", "run", "verdict")
Rows = list[dict[str, Any]]
"""Requests as a run's replies are saved, or rows of ``answers.html``."""


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
    rows, confidences, generation = of_answer(run, model, case_id, level)
    if rows.empty:
        raise ValueError(
            f"no answer of {model!r} to case {case_id!r} at level {level!r}"
        )
    row = rows.iloc[0].to_dict()
    kind = verdict(row["answer"], row["correct"], str(row["missing"]))
    is_turn = row["dataset"].endswith(ENDING)
    amount = f"after {level} questions" if is_turn else f"{level} % shown"
    requests = _requests(run, row)
    shared = _shared_reasons(confidences)
    is_folded = confidences["missing"].isin(list(shared))
    lines = confidences[~is_folded].to_dict("records")
    return render(
        "answer",
        facts=[case_id, row["dataset"], f"model {model}", amount],
        answer=_answer_words(row, generation),
        verdict=kind,
        look=VERDICTS[kind],
        truth=row["truth"],
        question=_question(requests),
        confidences=[_confidence(run.families, line) for line in lines],
        shared=shared,
        parts=_parts(generation),
        requests=_in_order(requests),
        no_replies="" if replies_in(run.folder) else NO_REPLIES,
    )


def _answer_words(row: Mapping[str, Any], generation: Generation | None) -> str:
    """The answer, or why there is none."""
    if not pd.isna(row["answer"]):
        return row["answer"]
    missing = row["missing"] or ""
    if generation and generation.answer:
        missing = generation.answer.missing
    return f"none ({missing})"


def _question(requests: Rows) -> str:
    """The question of a case that the first prompt for a diagnosis states; '' without one."""
    for request in requests:
        if request["purpose"] == "diagnosis":
            _, prompt = request["messages"][-1]
            question_match = _QUESTION.search(prompt)
            return question_match[1] if question_match else ""
    return ""


def verdict(answer: Any, correct: Any, missing: str = "") -> str:
    """One of :data:`VERDICTS`: "unread" without a readable diagnosis; "not judged" where backend or
    grader failed, or nothing is claimed of it."""
    if pd.isna(correct) and not (pd.isna(answer) and TOO_FEW in missing):
        return "not judged"
    if pd.isna(answer):
        return "unread"
    return "right" if correct == 1 else "wrong"


def _shared_reasons(confidences: pd.DataFrame) -> dict[str, list[str]]:
    """A reason that the values of several methods are missing for -> labels of these methods."""
    lacking = confidences[confidences["confidence"].isna()]
    shared = {}
    for reason, rows in lacking.groupby("missing"):
        if reason and len(rows) > 1:
            shared[reason] = [label(name) for name in rows["method"]]
    return shared


def _confidence(families: Mapping[str, str], row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a method: its number, or why it is missing; a probability has a bar."""
    name = row["method"]
    value = row["confidence"]
    bound = BOUNDS.get(row["bound"], "")
    family = families[name]
    width = 0
    if pd.isna(value):
        number = f"missing: {row['missing'] or 'no reason'}"
    elif METHODS[name].scale == "probability":
        number = f"{bound}{value:.2f}"
        width = 100 * value
    else:
        number = f"{bound}{value:.3g} (score)"
    return {
        "method": label(name),
        "family": FAMILY_LABELS[family],
        "colour": FAMILY_COLOURS[family],
        "width": width,
        "number": number,
    }


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


def _requests(run: Run, row: Mapping[str, Any]) -> Rows:
    """The requests behind an answer: its own, those about its diagnosis that other answers share,
    a judge's verdicts on it held against the same truth, and a consultation's last question."""
    log = replies_in(run.folder)
    if not log:
        return []
    model = row["model"]
    models_of = dict.fromkeys(
        ASSESSED, {model, *(run.parameters.get("assessor") or ())}
    )
    models_of["doctor"] = {model, *(run.parameters.get("panel") or ())}
    models = set().union(*models_of.values())
    requests = log.of(row["dataset"], row["case_id"], int(row["level"]), models)
    answer = None
    if not pd.isna(row["answer"]):
        answer = str(row["answer"])
        requests += _about_answer(run, log, answer, row["truth"])
    behind = []
    for request in requests:
        purpose = request["purpose"]
        is_judged = purpose == "judge"
        has_model = is_judged or request["model"] in models_of.get(purpose, {model})
        has_answer = request["diagnosis"] == answer
        if has_model and (has_answer or not (is_judged or purpose in ASSESSED)):
            behind.append(request)
    if row["dataset"].endswith(ENDING) and run.folder:
        behind += _talk(replies_in(run.folder.parent), row)
    return _merged(behind)


def _about_answer(run: Run, log: Replies, answer: str, truth: str) -> Rows:
    """Requests about an answer, whoever gave it; a judge's where the truth is the same."""
    has_truth = run.answers["truth"] == truth
    alike = set(run.answers.loc[has_truth, "case_id"])
    return [
        request
        for request in log.about(answer, [*ASSESSED[:2], "judge"])
        if request["purpose"] != "judge" or request["case_id"] in alike
    ]


def _merged(requests: Rows) -> Rows:
    """Each request once. Texts of one question that are scored are one request, in their order."""
    by_prompt = {}
    for request in reversed(requests):  # of equal ones the first stays
        key = (request["purpose"], request["model"], str(request["messages"]))
        if request["purpose"] in GIVEN and key in by_prompt:
            request["replies"] += by_prompt[key]["replies"]
        by_prompt[key] = request
    return list(reversed(by_prompt.values()))


def _talk(log: Replies, row: Mapping[str, Any]) -> Rows:
    """A consultation's last question and what the patient said to it; of the answering model's own
    talk, where it spoke itself."""
    model = row["model"]
    last_turn = int(row["level"]) - 1
    requests = log.of(row["dataset"], row["case_id"], last_turn)
    spoken = [
        request for request in requests if request["purpose"] in ("ask", "patient")
    ]
    own_purposes = {
        request["purpose"] for request in spoken if request["model"] == model
    }
    return [
        request
        for request in spoken
        if request["model"] == model or request["purpose"] not in own_purposes
    ]


def _in_order(requests: Rows) -> Rows:
    """Requests in the order of a page; equal replies are one, with a count."""
    shown = []
    for request in requests:
        texts = [str(reply) for reply in request["replies"]]
        counts = Counter(texts)
        distinct = dict(zip(texts, request["replies"], strict=True))
        counted = [{**reply, "n": counts[text]} for text, reply in distinct.items()]
        shown.append({**request, "n": len(texts), "replies": counted})
    places = {purpose: place for place, purpose in enumerate(PURPOSES)}
    last = len(places)
    return sorted(shown, key=lambda request: places.get(request["purpose"], last))


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
            first = rows[column].unique()[:12]
            values = ", ".join(map(str, first))
            rows = rows.loc[rows[column] == wanted]
            if rows.empty:
                raise ValueError(
                    f"no answer with {column} {wanted!r}; there are such as {values}"
                )
    table = _listed(replace(run, answers=rows))
    row = table.loc[_worth_reading(table)[0]]
    return row[
        "choice"
    ], f"{row['verdict']} (confidence {row['by']:.2f}), of {len(rows)} that fit"


def method_of(methods: Sequence[str]) -> str:
    """The first of :data:`PREFERRED` that is among ``methods``, else the first of these."""
    for name in PREFERRED:
        if name in methods:
            return name
    return methods[0]


def safe_name(text: str) -> str:
    """A name for a file, whatever the text: letters, digits, "-", "_", "." and no more. What had to
    change has a hash of the whole behind it, so that two texts never share a name, also where upper
    and lower case are one."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    plain = plain.strip("-.")[:60]
    has_hash = re.search(r"-[0-9a-f]{8}$", plain)
    is_reserved = plain in ("", "con", "prn", "aux", "nul")
    if plain == text and not has_hash and not is_reserved:
        return plain
    whole = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(whole).hexdigest()[:8]
    return f"{plain or 'x'}-{digest}"


def page_path(of: Choice) -> str:
    """Where the page of an answer is, below its run's folder."""
    return (
        f"{ANSWERS}/{safe_name(of.model)}/{safe_name(of.case_id)}-{int(of.level)}.html"
    )


def write_page(title: str, body: Html, path: Path, script: str = "") -> None:
    """Write a page as a file of its own, which runs ``script`` and nothing else."""
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"; script-src 'sha256-{digest}'" if script else ""
    page = render("document", title=title, body=body, policy=policy)
    page_bytes = page.encode("utf-8", "replace")  # half a character is a "?"
    save_text(page_bytes.decode("utf-8"), path)


def write_answers(folder: Path, into: Path | None = None) -> int:
    """Write ``answers.html`` into ``folder`` or ``into``: a list of the answers of all runs in it,
    and the pages of :data:`MOST` of them. Returns how many are listed; of none nothing is written.
    ``ValueError`` for a damaged file."""
    rows = []
    places = sorted(
        f.parent for f in folder.rglob(RUN) if find_table(f.parent, "answers")
    )
    for place in places:
        run = load_run(place, records=False)
        n_pages = max(MOST // len(places), 10)
        rows += _rows_of(run, place.relative_to(folder), into or folder, n_pages)
    if not rows:
        return 0
    methods = list(dict.fromkeys(name for row in rows for name in row["sure"]))
    for row in rows:
        numbers = [row["sure"].get(name, math.nan) for name in methods]
        row["sure"] = ["" if math.isnan(value) else f"{value:.3g}" for value in numbers]
        symbol, _ = VERDICTS[row["verdict"]]
        row["verdict"] = f"{symbol} {row['verdict']}"
    filters = {name: sorted({row[name] for row in rows}) for name in FILTERS}
    script = render("answers_script")
    body = render(
        "answers",
        script=script,
        rows=rows,
        filters=filters,
        methods=list(map(label, methods)),
        first=methods.index(method_of(methods)) if methods else 0,
        n_pages=sum(bool(row["href"]) for row in rows),
    )
    write_page("Answers by case", body, (into or folder) / PAGE, script)
    return len(rows)


def _rows_of(run: Run, where: Path, into: Path, n_pages: int) -> Rows:
    """A run's rows of ``answers.html``; ``n_pages`` of them get a page, below ``into / where``."""
    table = _listed(run)
    best = _worth_reading(table)[:n_pages]
    chosen = dict.fromkeys(table.loc[best, "choice"])
    _write_pages(run, chosen, into / where)
    rows = table.fillna({"answer": "", "truth": ""}).to_dict("records")
    for row in rows:
        row["href"] = ""
        if row["choice"] in chosen:
            page = where / page_path(row["choice"])
            row["href"] = quote(page.as_posix())
        row["run"] = where.as_posix() if where.parts else ""
    return rows


def _write_pages(run: Run, chosen: Collection[Choice], into: Path) -> None:
    """The pages of ``chosen`` below ``into``, in place of those there, unless these were made from
    the same files by the same program."""
    pages = {choice: into / page_path(choice) for choice in chosen}
    pattern = f"{ANSWERS}/*/*.html"
    old_pages = set(into.glob(pattern))
    sources_file = into / ANSWERS / SOURCES
    sources = _sources(run)
    same = (
        sources_file.is_file() and sources_file.read_text(encoding="utf-8") == sources
    )
    if same and old_pages == set(pages.values()):
        return
    sources_file.unlink(missing_ok=True)
    for page in old_pages:
        page.unlink()
    assert run.folder is not None
    records_file = run.folder / RECORDS
    generations = ()
    if records_file.is_file():
        generations = tuple(find_records(records_file, chosen))
    run = replace(run, generations=generations)
    for choice, page in pages.items():
        write_page(f"Case {choice.case_id}", show(run, *choice), page)
    save_text(sources, sources_file)


def _sources(run: Run) -> str:
    """What a run's pages are made from, a line each: this program, the run's parameters, its files,
    and the replies beside its folder (a consultation's)."""
    assert run.folder is not None
    folder = run.folder
    parameters = {
        name: of for name, of in run.parameters.items() if name != "collect_s"
    }
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
    wide = wide.reindex(
        index=pd.MultiIndex.from_frame(table[keys]), columns=run.methods
    )
    return table.assign(
        verdict=list(
            map(
                verdict, table["answer"], table["correct"], table["missing"].astype(str)
            )
        ),
        choice=[
            Choice(*each) for each in table[[*Choice._fields]].itertuples(index=False)
        ],
        sure=wide.to_dict("records"),
        by=wide[method_of(run.methods)].to_numpy() if run.methods else 0.0,
    )


def _worth_reading(answers: pd.DataFrame) -> list[int]:
    """In turn the surest wrong answer, the least sure right one, one unread, one not judged."""
    kinds = answers["verdict"]
    surprise = answers["by"].where(kinds.eq("wrong"), -answers["by"])
    place = surprise.groupby(kinds).rank(
        ascending=False, method="first", na_option="bottom"
    )
    return (place - kinds.eq("wrong") / 2).sort_values(kind="stable").index.tolist()
