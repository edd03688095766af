"""Has a model say a statement in other words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pandas as pd

from trustlab.agents.asking import put, read_by, request
from trustlab.agents.patient import parts_of
from trustlab.knowledge.giveaway import Giveaway, giveaway
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_wording
from trustlab.parsing.reply import Unreadable
from trustlab.prompts import Prompts, prompts_of
from trustlab.records import Case, Reading, Reply, Statement, normalise

ENDING = "-reworded"
"""What is added to the names of the data set and of each case."""
MAX_TOKENS = 160
_WHAT = {"Doctor": "question", "Patient": "reply"}


@dataclass(frozen=True)
class Rephrased:
    """The cases in a model's words, and what the model made of each distinct statement.
    ``wordings``: one row for each statement: ``text``, ``wording`` (the same text if no usable one
    came back), ``n`` (times it occurs in the cases), ``reworded`` and ``missing`` (why not).
    ``n_named``: statements that keep the old words in a case because the new name its diagnosis."""

    cases: tuple[Case, ...]
    wordings: pd.DataFrame
    n_named: int = 0


def rephrase(cases: Sequence[Case], model: Model, reading: Reading = "chat") -> Rephrased:
    """``cases`` in the words of ``model``; ``-reworded`` is added to their data set and ids. Each
    statement keeps its finding.

    - A statement of the form ``Doctor: ...`` / ``Patient: ...`` needs two prompts (question, then
      reply), any other statement one. The speaker stays the same.
    - If either reply cannot be read, the whole statement keeps its words and is counted with the
      reason. ``rephrase`` does not check that the new words mean the same.
    - ``ValueError`` if no statement at all got new words.
    """
    statements = [(case, s.text) for case in cases for s in case.statements]
    counts = Counter(text for _, text in statements)
    about = {
        text: About(case.dataset, case.case_id, None, counts[text])
        for case, text in reversed(statements)
    }
    found = reword(counts, model, about=about, reading=reading)
    if found and all(why for _, why in found.values()):
        reasons = Counter(why for _, why in found.values()).most_common(3)
        told = "; ".join(f"{n:,} ({why})" for why, n in reasons)
        raise ValueError(f"{model.name} gave none of {len(found):,} statements new words: {told}")
    rows = [(text, new, counts[text], not why, why) for text, (new, why) in found.items()]
    made = [_case(case, {text: wording for text, (wording, _) in found.items()}) for case in cases]
    wordings = pd.DataFrame(rows, columns=["text", "wording", "n", "reworded", "missing"])
    return Rephrased(tuple(case for case, _ in made), wordings, sum(n for _, n in made))


def reword(
    texts: Iterable[str],
    model: Model,
    *,
    keep_question: bool = False,
    about: Mapping[str, About] | None = None,
    reading: Reading = "chat",
) -> dict[str, tuple[str, str]]:
    """Each distinct text -> its new words and ``""``, or its old ones and why it has no others.
    ``keep_question``: an old question may stand beside a new reply. ``about``: the first views."""
    whose, prompts = about or {}, prompts_of(model)
    asked = {t: _requests(t, prompts, whose.get(t), reading) for t in dict.fromkeys(texts)}
    requests = list(dict.fromkeys(r for rs in asked.values() for r in rs))
    replies = dict(zip(requests, put(model, requests), strict=True))
    return {
        text: _worded(text, [replies[r] for r in rs], keep_question, reading)
        for text, rs in asked.items()
    }


def _requests(text: str, prompts: Prompts, about: About | None, reading: Reading) -> list[Request]:
    about = read_by(about, read_wording, reading)
    question, reply = parts_of(Statement(text))
    asked = {}
    if question:
        asked["rephrase_question"] = {"question": question}
    if question and reply:
        asked["rephrase_reply"] = {"question": question, "reply": reply}
    if not question:
        asked["rephrase_statement"] = {"reply": reply}
    return [request(n, prompts, MAX_TOKENS, about=about, **fill) for n, fill in asked.items()]


def _worded(
    text: str, replies: Sequence[Reply], keep_question: bool, reading: Reading
) -> tuple[str, str]:
    """The new text and ``""``, or the old one and why."""
    question, answer = parts_of(Statement(text))
    both = (("Doctor", question), ("Patient", answer))
    speakers = [speaker for speaker, said in both if said] or ["Patient"]
    words = []
    for speaker, reply in zip(speakers, replies, strict=True):
        try:
            words.append(read_wording(reply, reading))
        except Unreadable as error:
            if not (keep_question and speaker == "Doctor" and answer):
                what = "statement" if answer == text else _WHAT[speaker]
                return text, f"{what}: {error}"
            words.append(question)
    if answer == text:
        return words[0], ""
    spoken = (f"{speaker}: {new}" for speaker, new in zip(speakers, words, strict=True))
    return "\n".join(spoken), ""


def _case(case: Case, wordings: Mapping[str, str]) -> tuple[Case, int]:
    """The case in new words, and how many statements keep the old: the new name its diagnosis."""
    told, n_named = [], 0
    for statement in case.statements:
        new = wordings[statement.text]
        if newly_names(case, statement.text, new):
            new, n_named = statement.text, n_named + 1
        told.append(replace(statement, text=new))
    named = {"case_id": f"{case.case_id}{ENDING}", "dataset": f"{case.dataset}{ENDING}"}
    return replace(case, statements=tuple(told), posteriors={}, **named), n_named


def newly_names(case: Case, old: str, new: str) -> bool:
    """Whether ``new`` gives the case's diagnosis away by a name for which ``old`` does not
    (:func:`~trustlab.knowledge.giveaway.giveaway`)."""
    every = (case.diagnosis, *case.accepted)
    names = {normalise(name) for name in every} - {""}
    if _says(new, names) and not _says(old, names):
        return True
    return any(g.heard_in(new) and not g.heard_in(old) for g in _giveaways(every))


@lru_cache(maxsize=4096)
def _giveaways(names: tuple[str, ...]) -> tuple[Giveaway, ...]:
    """What gives away each name by itself, the name spoken."""
    return tuple(giveaway([name], name) for name in dict.fromkeys(names) if normalise(name))


def _says(text: str, names: set[str]) -> bool:
    words = f" {normalise(text)} "
    return any(f" {name} " in words for name in names)
