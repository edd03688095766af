"""The page of one answer: all that a run holds of it, from its tables, its records, its replies.

It is one page, in a notebook (``run.show``, the explorer) and in a file (``trustlab show``), made
by a pure function; no model is asked. The templates escape every word of models and files.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from trustlab.agents.consultation import ENDING
from trustlab.confidence import METHODS
from trustlab.confidence.registry import absence, label
from trustlab.folder.replies_log import NAME as REPLIES
from trustlab.folder.replies_log import replies_in
from trustlab.html import show
from trustlab.html.show import Html, render
from trustlab.levels import view
from trustlab.plots.style import FAMILY_COLOURS, FAMILY_LABELS
from trustlab.records import Case, Generation, Panel
from trustlab.retrieval import BM25, Passage, load_corpus

if TYPE_CHECKING:
    from trustlab.run import Run

STILL = "A still picture: run this notebook to move the level and change the case."
SCALED = (
    "a score: only its order means something; its bar runs from the smallest to the largest value "
    "in this run"
)
VERDICTS = {1: ("✓", "right", "#DDF1EA", "#009E73"), 0: ("✗", "wrong", "#FBE5D8", "#D55E00")}
"""Symbol, word, tint and colour of a right and a wrong answer."""
NEUTRAL = "#F2F2F2", "#8A8A8A"
"""Tint and colour of an answer of which it is not said, or not known, whether it is right."""
UNJUDGED = ("–", "neither right nor wrong", *NEUTRAL)
NO_RECORDS = "The run holds tables only, without the records that the evidence is read from."
NO_REPLIES = f"The run has no folder with {REPLIES}: it was not saved, or by an earlier version."
OTHER_LIBRARY = "not the project's library: their words stand in the prompt of the profile, below"
MEDCONF = ("keyword", "profile", "evidence")
PURPOSES = (
    "ask", "patient", "enough", "diagnosis", "samples", "ce", "cot_ce", "topk_ce", "p_true",
    *MEDCONF, "doctor", "plan", "review_prescriptions", "review_tests", "judge",
)  # fmt: skip
"""What was asked, in the order of a page."""
WORDS = {
    "diagnosis": "answer", "doctor": "doctors' diagnoses", "judge": "the grader's verdict",
    "ask": "the doctor's last question", "patient": "what the patient said to it",
    "ce": "scores (CE)", "cot_ce": "scores (CoT-CE)", "topk_ce": "guesses of scores",
    "p_true": "judgements of true or false", "keyword": "keywords", "profile": "profiles",
    "evidence": "tables of evidence", "plan": "plans",
}  # fmt: skip
SURE = ("method", "confidence", "bound", "missing")
PAGES = {"elicited": "replies"}
"""Part of a page -> its template, where that has another name."""
Truth = Literal["hidden", "folded", "shown"]


@dataclass(frozen=True)
class Choice:
    """What a page shows."""

    model: str
    case_id: str
    level: int


def answer_page(
    run: Run, choice: Choice, case: Case | None = None, truth: Truth = "shown", still: str = STILL
) -> Html:
    """One answer of the run as HTML.

    - Dialogue, answer with its tokens, samples and votes, elicited scores with their words,
      passages, MedConf's evidence, panel, every method's confidence, and all raw replies with their
      prompts, where its folder has them.
    - ``case``: for the dialogue, where the records do not hold the patient's words.
    - ``truth``: "hidden", nothing tells whether the answer is right; "folded", it stands in a fold,
      and ``still`` above says why nothing moves.
    """
    answers, sure, generation = run.of_answer(choice.model, choice.case_id, choice.level)
    told: dict[str, Any] = {"truth": truth, "still": still, "model": choice.model}
    told |= {"answered": len(answers) > 0, "evidence": "", "facts": [choice.case_id]}
    if len(answers):
        rows = zip(*(sure[name] for name in SURE), strict=True)
        told |= values(run, answers.iloc[0].to_dict(), rows, generation, case, truth)
        said = told["dialogue"]
        told["dialogue"] = "" if said is None else render("dialogue", spoken=said)
        told["passages"] = [render("passages", **told["passages"])] if told["passages"] else []
        for part in ("tokens", "votes", "elicited", "evidence", "panel"):
            told[part] = render(PAGES.get(part, part), **told[part]) if told[part] else ""
    return render("answer", **told)


def values(
    run: Run,
    row: Mapping[str, Any],
    sure: Iterable[tuple[Any, ...]],
    generation: Generation | None,
    case: Case | None = None,
    truth: Truth = "shown",
) -> dict[str, Any]:
    """What a page shows of one answer, as JSON can hold it: ``row`` of the answers, ``sure`` its
    rows of confidence (:data:`SURE`), its record where there is one."""
    told = {"facts": _facts(row, generation, case), "diagnosis": row["truth"]}
    told |= _answer(row, generation, truth) | _bars(run, sure) | _records(run, generation)
    told |= {"dialogue": _dialogue(int(row["level"]), generation, case)}
    told |= {"asked": requests(_requests(run, row, truth == "shown"))}
    return told | {"no_replies": "" if replies_in(run.folder) else NO_REPLIES}


def _facts(row: Mapping[str, Any], g: Generation | None, case: Case | None) -> list[str]:
    n, total = row["n_statements"], g.n_total if g else len(case.statements) if case else None
    level = f"{row['level']} % shown"
    if str(row["dataset"]).endswith(ENDING):
        level, total = f"after {row['level']} questions", None
    of = "" if total is None else f" of {total}"
    told = level if pd.isna(n) else f"{level}: {int(n)}{of} statements"
    return [str(row["case_id"]), str(row["dataset"]), f"model {row['model']}", told]


def _dialogue(level: int, g: Generation | None, case: Case | None) -> list[tuple[str, str]] | None:
    if g is not None and g.told is not None:
        return show.turns_of(g.told)
    said = view(case, level).statements if case else ()
    return [turn for s in said for turn in show.turns_of(str(s))] if case else None


def _answer(row: Mapping[str, Any], generation: Generation | None, truth: Truth) -> dict[str, Any]:
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


def _bars(run: Run, rows: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """Every method's confidence in one answer: bars by family, and why the others are missing.

    Probabilities stand on 0 to 1. Scores are scaled from smallest to largest in the whole run, are
    hollow and say so.
    """
    found: dict[str, tuple[float, str]] = {}
    reasons: dict[str, list[str]] = {}
    for name, value, bound, why in rows:
        if pd.isna(value):
            reasons.setdefault(str(why or "no reason given"), []).append(label(name))
        else:
            found[name] = float(value), bound
    scores = [name for name in found if METHODS[name].scale == "score"]
    ranges = {name: run.spans[name] for name in scores}
    families = []
    for family, colour in FAMILY_COLOURS.items():
        members = [name for name, its in run.families.items() if its == family and name in found]
        bars = [_bar(name, *found[name], ranges.get(name)) for name in members]
        families += [(FAMILY_LABELS[family], colour, bars)] if bars else []
    missing = list(reasons.items())
    return {"families": families, "missing": missing, "hollow": bool(scores), "scaled": SCALED}


def _bar(name: str, value: float, bound: str, span: tuple[float, float] | None) -> dict[str, Any]:
    sign = {"lower": "≥ ", "upper": "≤ "}.get(bound, "")
    named, share, number = label(name), value, f"{value:.2f}"
    if span is not None:
        low, high = span
        named, number = f"{named} †", f"{value:.3g}".replace("-", "−")
        share = (value - low) / (high - low) if high > low else 0.5
    width = f"{100 * min(max(share, 0.0), 1.0):.0f}"
    return {"name": named, "number": sign + number, "width": width, "hollow": span is not None}


# What the records hold


def _records(run: Run, g: Generation | None) -> dict[str, Any]:
    """The parts of the page that are read from the answer's record; ``None`` for what is not
    there."""
    parts: dict[str, Any] = dict.fromkeys(("tokens", "votes", "elicited", "evidence", "panel"))
    more = {"passages": None, "others": [], "other_library": OTHER_LIBRARY, "no_evidence": ""}
    if g is None:
        return parts | more | {"no_evidence": NO_RECORDS}
    parts["tokens"] = show.token_boxes(g.answer) if g.answer else None
    parts["votes"] = show.counted_votes(g.samples) if g.samples is not None else None
    parts["elicited"] = {"methods": show.elicited(g)} if g.probes else None
    parts["panel"] = panel(g.panel) if g.panel else None
    if g.assessment is None:
        more["no_evidence"] = f"None: {absence(g, 'assessment')}."
        return parts | more
    parts["evidence"] = show.evidence_rows(g.assessment)
    texts = _library(str(run.parameters.get("retriever"))) if g.assessment.passages else {}
    known = [texts[i] for i in g.assessment.passages if i in texts]
    told = [{"title": p.title, "content": p.content} for p in known]
    more |= {"passages": {"passages": told, "n": len(known)} if known else None}
    more |= {"others": [i for i in g.assessment.passages if i not in texts]}
    return parts | more | {"n_passages": len(g.assessment.passages)}


@lru_cache
def _library(revision: str) -> Mapping[str, Passage]:
    """The passages of the project's library by their ids; none where a run looked into another."""
    passages = load_corpus()
    return {p.id: p for p in passages} if BM25(passages).revision == revision else {}


def panel(panel: Panel) -> dict[str, Any]:
    """What each doctor of a panel thinks, for whom it votes, and what the majority says."""
    cosines = panel.cosines or (float("nan"),) * len(panel.opinions)
    rows = []
    for i, (o, vote, cosine) in enumerate(
        zip(panel.opinions, panel.votes, cosines, strict=True), 1
    ):
        said = {"diagnosis": o.diagnosis, "missing": o.missing, "thinking": o.thinking}
        near = "" if cosine != cosine else f"{cosine:.2f}"
        rows.append({"name": f"{i}, {o.model}", **said, "vote": vote, "cosine": near})
    return {"diagnosis": panel.diagnosis, "tied": panel.tied, "rows": rows}


# What was asked


def _requests(run: Run, row: Mapping[str, Any], judged: bool) -> list[dict[str, Any]]:
    """The requests behind an answer: its own, and those about its diagnosis that others share."""
    kept = replies_in(run.folder)
    if not kept:
        return []
    model, facts = str(row["model"]), run.parameters
    answer = None if pd.isna(row["answer"]) else str(row["answer"])
    level = int(row["level"])
    who = {p: {model, *(facts.get("assessor") or ())} for p in MEDCONF}
    who["doctor"] = {model, *(facts.get("panel") or ())}
    asked = set().union(*who.values())
    found = kept.of(str(row["dataset"]), str(row["case_id"]), level, asked)
    if answer is not None:
        found += kept.about(answer, MEDCONF[:2])
        found += _verdicts(run, row, kept.about(answer, ["judge"])) if judged else []
    mine = [
        r
        for r in found
        if (r["purpose"] == "judge" and judged)
        or (
            r["model"] in who.get(r["purpose"], {model})
            and (r["purpose"] not in MEDCONF or r["diagnosis"] == answer)
        )
    ]
    mine += _talk(run, row)
    once = {(r["purpose"], r["model"], str(r["messages"])): r for r in reversed(mine)}
    return list(reversed(once.values()))


def _talk(run: Run, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of a consultation what led to this turn: the last question and its answer, which the folder
    above keeps; of the answering model's own talk, where it spoke itself."""
    turns = str(row["dataset"]).endswith(ENDING) and run.folder
    above = replies_in(run.folder.parent) if turns and run.folder else None
    if not above or row["level"] < 1:
        return []
    found = above.of(str(row["dataset"]), str(row["case_id"]), int(row["level"]) - 1)
    spoken = [r for r in found if r["purpose"] in ("ask", "patient")]
    own = {r["purpose"] for r in spoken if r["model"] == row["model"]}
    return [r for r in spoken if r["purpose"] not in own or r["model"] == row["model"]]


def _place(purpose: str) -> int:
    return PURPOSES.index(purpose) if purpose in PURPOSES else len(PURPOSES)


def _verdicts(
    run: Run, row: Mapping[str, Any], found: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Those of a judge on this answer held against this truth, whichever case they name."""
    if not found:
        return []
    alike = set(run.answers.loc[run.answers["truth"] == row["truth"], "case_id"])
    return [r for r in found if r["case_id"] in alike]


def requests(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each request in words, with its replies as they came, in the order of a page; equal replies
    are one, with a count."""
    found = []
    for row in sorted(rows, key=lambda r: _place(r["purpose"])):
        counts = Counter(map(str, row["replies"]))
        replies = {str(reply): reply for reply in row["replies"]}
        each = [
            {**reply, "n": counts[key], "read": _short(reply["read"])}
            for key, reply in replies.items()
        ]
        facts = [f"model {row['model']}", f"temperature {row['temperature']:g}"]
        facts.append(f"asked of the model {row['n_made']}, kept before {row['n_cached']}")
        tokens = (sum(r[f"n_tokens_{way}"] for r in row["replies"]) for way in ("in", "out"))
        facts.append("tokens in {:,}, out {:,}".format(*tokens))
        if row["n_views"] > 1:
            facts.append(f"serves {row['n_views']} answers")
        purpose = str(row["purpose"])
        named = WORDS.get(purpose) or purpose.replace("_", " of ")
        told = {"purpose": named, "n": len(row["replies"]), "facts": facts}
        found.append(told | {"replies": each, "messages": row["messages"]})
    return found


def _short(read: Any) -> str:
    """What was read, in a line."""
    if isinstance(read, Mapping):
        return "; ".join(f"{name}: {_short(value)}" for name, value in read.items())
    if isinstance(read, list):
        return ", ".join(map(_short, read))
    return "" if read is None else f"{read:g}" if isinstance(read, float) else str(read)
