"""Has a model say a statement in other words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

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
_PART_OF_SPEAKER = {"Doctor": "question", "Patient": "reply"}


@dataclass(frozen=True)
class Rephrased:
    """The cases in a model's words, and a table of its words for each distinct statement.

    ``wordings``: one row for each statement: ``text``, ``wording`` (the same text if no usable one
    came back), ``n`` (times it occurs in the cases), ``reworded`` and ``missing`` (why not).
    ``n_named``: statements that keep the old words in a case because the new name its diagnosis."""

    cases: tuple[Case, ...]
    wordings: pd.DataFrame
    n_named: int = 0


def rephrase(
    cases: Sequence[Case], model: Model, reading: Reading = "chat"
) -> Rephrased:
    """``cases`` in the words of ``model``; ``-reworded`` is added to their data set and ids. Each
    statement keeps its finding.

    - A statement of the form ``Doctor: ...`` / ``Patient: ...`` needs two prompts (question, then
      reply), any other statement one. The speaker stays the same.
    - If either reply cannot be read, the whole statement keeps its words and is counted with the
      reason. ``rephrase`` does not check that the new words mean the same.
    - ``ValueError`` if no statement at all got new words.
    """
    counts: Counter[str] = Counter()
    first_view: dict[str, About] = {}
    for case in cases:
        for statement in case.statements:
            counts[statement.text] += 1
            first_view.setdefault(
                statement.text, About(case.dataset, case.case_id, None)
            )
    about = {
        text: view._replace(n_views=counts[text]) for text, view in first_view.items()
    }
    wordings = reword(counts, model, about=about, reading=reading)
    reasons = Counter(
        wording.missing for wording in wordings.values() if wording.missing
    )
    if wordings and reasons.total() == len(wordings):
        most_frequent = "; ".join(f"{n:,} ({why})" for why, n in reasons.most_common(3))
        none = f"{model.name} gave none of {len(wordings):,} statements new words"
        raise ValueError(f"{none}: {most_frequent}")
    rows = []
    for text, (new_text, missing) in wordings.items():
        rows.append((text, new_text, counts[text], not missing, missing))
    table = pd.DataFrame(rows, columns=["text", "wording", "n", "reworded", "missing"])
    new_cases = []
    n_named = 0
    for case in cases:
        new_case, n_named_here = _reworded_case(case, wordings)
        new_cases.append(new_case)
        n_named += n_named_here
    return Rephrased(tuple(new_cases), table, n_named)


class Wording(NamedTuple):
    """The new words of a statement; or its old ones and why it has no others."""

    text: str
    missing: str = ""


def reword(
    texts: Iterable[str],
    model: Model,
    *,
    keep_question: bool = False,
    about: Mapping[str, About] | None = None,
    reading: Reading = "chat",
) -> dict[str, Wording]:
    """Each distinct text -> its new words and ``""``, or its old ones and why it has no others.
    ``keep_question``: an old question may stand beside a new reply. ``about``: the first views."""
    first_views = about or {}
    prompts = prompts_of(model)
    requests_of: dict[str, list[Request]] = {}
    distinct: dict[Request, None] = {}
    for text in texts:
        if text not in requests_of:
            about_text = read_by(first_views.get(text), read_wording, reading)
            requests_of[text] = _requests(text, prompts, about_text)
            distinct.update(dict.fromkeys(requests_of[text]))
    replies = dict(zip(distinct, put(model, list(distinct)), strict=True))
    wordings = {}
    for text, requests in requests_of.items():
        own_replies = [replies[each] for each in requests]
        wordings[text] = _wording(text, own_replies, keep_question, reading)
    return wordings


def _requests(text: str, prompts: Prompts, about: About | None) -> list[Request]:
    """What is asked for a statement's new words: its question, then its reply; or all at once."""
    ask = partial(request, to=prompts, max_tokens=MAX_TOKENS, about=about)
    question, reply = parts_of(Statement(text))
    if not question:
        return [ask("rephrase_statement", reply=reply)]
    requests = [ask("rephrase_question", question=question)]
    if reply:
        requests.append(ask("rephrase_reply", question=question, reply=reply))
    return requests


def _wording(
    text: str, replies: Sequence[Reply], keep_question: bool, reading: Reading
) -> Wording:
    """The statement in the words of the replies, one for each of its speakers."""
    question, answer = parts_of(Statement(text))
    speakers = []
    if question:
        speakers.append("Doctor")
    if answer or not question:
        speakers.append("Patient")
    new_parts = []
    for speaker, reply in zip(speakers, replies, strict=True):
        try:
            new_parts.append(read_wording(reply, reading))
        except Unreadable as error:
            is_left_as_it_is = keep_question and speaker == "Doctor" and answer
            if not is_left_as_it_is:
                part = "statement" if answer == text else _PART_OF_SPEAKER[speaker]
                return Wording(text, f"{part}: {error}")
            new_parts.append(question)
    if answer == text:
        return Wording(new_parts[0])
    lines = []
    for speaker, new_part in zip(speakers, new_parts, strict=True):
        lines.append(f"{speaker}: {new_part}")
    return Wording("\n".join(lines))


def _reworded_case(case: Case, wordings: Mapping[str, Wording]) -> tuple[Case, int]:
    """The case in new words, and how many statements keep the old: the new name its diagnosis."""
    statements = []
    n_named = 0
    for statement in case.statements:
        new_text = wordings[statement.text].text
        if newly_names(case, statement.text, new_text):
            n_named += 1
            statements.append(statement)
        else:
            statements.append(replace(statement, text=new_text))
    new_case = replace(
        case,
        case_id=f"{case.case_id}{ENDING}",
        dataset=f"{case.dataset}{ENDING}",
        statements=tuple(statements),
        posteriors={},
    )
    return new_case, n_named


def newly_names(case: Case, old: str, new: str) -> bool:
    """Whether ``new`` gives the case's diagnosis away by a name for which ``old`` does not
    (:func:`~trustlab.knowledge.giveaway.giveaway`)."""
    names = (case.diagnosis, *case.accepted)
    plain_names = {normalise(name) for name in names} - {""}
    is_in_new = _says(new, plain_names)
    is_in_old = _says(old, plain_names)
    if is_in_new and not is_in_old:
        return True
    heard = [words for words in _giveaways(names) if words.heard_in(new)]
    return not all(words.heard_in(old) for words in heard)


@lru_cache(maxsize=4096)
def _giveaways(names: tuple[str, ...]) -> tuple[Giveaway, ...]:
    """What gives away each name by itself, the name spoken."""
    distinct = dict.fromkeys(name for name in names if normalise(name))
    return tuple(giveaway([name], name) for name in distinct)


def _says(text: str, plain_names: set[str]) -> bool:
    """Whether a text has one of these normalised names."""
    words = f" {normalise(text)} "
    return any(f" {name} " in words for name in plain_names)
