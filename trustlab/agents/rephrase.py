"""A model words statements anew: the doctor's question and the patient's answer, by a prompt each.

A data set that is spoken by templates (DDXPlus) gets a second voice this way, beside the templates.
Each distinct text is asked about once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pandas as pd

from trustlab.datasets.giveaway import Giveaway, giveaway
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_wording
from trustlab.parsing.counts import both
from trustlab.parsing.reply import Unreadable
from trustlab.prompts import Prompts, prompts_of
from trustlab.records import Case, Reading, Reply, normalise

ENDING = "-reworded"
"""What is added to the names of the data set and of each case."""
MAX_TOKENS = 160
_EXCHANGE = re.compile(r"Doctor: (.+)\nPatient: (.+)", re.DOTALL)
_ALONE = re.compile(r"(Doctor|Patient): (.+)", re.DOTALL)
_WHAT = {"Doctor": "question", "Patient": "reply"}


@dataclass(frozen=True)
class Rephrased:
    """The cases in a model's words, and what it made of each distinct statement.

    ``wordings`` has a row a statement: ``text`` (as it was), ``wording`` (as it is now, the same
    where nothing usable came back), ``n`` (how often the cases hold it), ``reworded`` (whether) and
    ``missing`` (why not). ``n_named`` counts the statements that keep their old words in a case
    because the new ones name its diagnosis, which the old ones do not.
    """

    cases: tuple[Case, ...]
    wordings: pd.DataFrame
    n_named: int = 0

    @property
    def told(self) -> str:
        """How many distinct statements got new words, and why the others did not."""
        why = self.wordings.loc[~self.wordings["reworded"].astype(bool), "missing"].value_counts()
        parts = [
            f"{len(self.wordings) - int(why.sum()):,} of {len(self.wordings):,} distinct statements"
            " have new words"
        ]
        parts += [f"{n:,} kept theirs ({reason})" for reason, n in why.items()]
        if self.n_named:
            parts.append(
                f"{self.n_named:,} times the old words stayed because the new ones name the case's"
                " diagnosis"
            )
        return "; ".join(parts)


def rephrase(cases: Sequence[Case], model: Model, reading: Reading = "chat") -> Rephrased:
    """``cases`` as ``model`` words them, ``-reworded`` added to their data set and ids; which
    finding a statement tells stays.

    A statement of the form ``Doctor: ...`` / ``Patient: ...`` takes two prompts (question, then
    reply), any other one; who speaks stays. Where either reply cannot be read, the whole statement
    keeps its words, counted with the reason. ``model`` may be a
    :class:`~trustlab.models.cache.CachedModel`, which asks nothing twice. That the new words mean
    the same is not checked here. Raises ``ValueError`` where no statement at all got new words:
    what is not reworded is not called so.
    """
    counts = Counter(s.text for case in cases for s in case.statements)
    about = {
        s.text: About(case.dataset, case.case_id, None, counts[s.text])
        for case in reversed(cases)
        for s in case.statements
    }
    found = reword(counts, model, about=about, reading=reading)
    rows = [(text, wording, counts[text], not why, why) for text, (wording, why) in found.items()]
    if rows and not any(reworded for *_, reworded, _ in rows):
        reasons = "; ".join(
            f"{n:,} ({why})" for why, n in Counter(why for *_, why in rows).most_common(3)
        )
        raise ValueError(f"{model.name} gave none of {len(rows):,} statements new words: {reasons}")
    made = [_case(case, {text: wording for text, (wording, _) in found.items()}) for case in cases]
    return Rephrased(
        cases=tuple(case for case, _ in made),
        wordings=pd.DataFrame(rows, columns=["text", "wording", "n", "reworded", "missing"]),
        n_named=sum(n for _, n in made),
    )


def reword(
    texts: Iterable[str],
    model: Model,
    *,
    keep_question: bool = False,
    about: Mapping[str, About] | None = None,
    reading: Reading = "chat",
) -> dict[str, tuple[str, str]]:
    """Each distinct text -> its new words and ``""``, or its old ones and why it has no others;
    asked for all at once.

    With ``keep_question``, an exchange whose question got no usable words keeps the old question
    beside the new reply. ``about``: each text's first view.
    """
    whose = about or {}
    prompts = prompts_of(model)
    asked = {
        text: _requests(text, prompts, whose.get(text), reading) for text in dict.fromkeys(texts)
    }
    requests = list(dict.fromkeys(r for rs in asked.values() for r in rs))
    replies = {
        r: row[0]
        for r, row in zip(requests, model.generate(requests) if requests else [], strict=True)
    }
    return {
        text: _worded(text, [replies[r] for r in rs], keep_question, reading)
        for text, rs in asked.items()
    }


def rephrase_requests(cases: Sequence[Case], prompts: Prompts) -> dict[str, list[Request]]:
    """What :func:`rephrase` asks: each distinct statement and its one or two requests."""
    texts = dict.fromkeys(s.text for case in cases for s in case.statements)
    return {text: _requests(text, prompts) for text in texts}


def _requests(
    text: str, prompts: Prompts, about: About | None = None, reading: Reading = "chat"
) -> list[Request]:
    about = about and about._replace(**both(read_wording, reading))
    parts = _parts(text)
    question = parts.get("Doctor")
    asked = {}
    if question is not None:
        asked["rephrase_question"] = prompts.render("rephrase_question", question=question)
    if "Patient" in parts and question is not None:
        asked["rephrase_reply"] = prompts.render(
            "rephrase_reply", question=question, reply=parts["Patient"]
        )
    elif question is None:
        statement = parts.get("Patient", text)
        asked["rephrase_statement"] = prompts.render("rephrase_statement", reply=statement)
    return [
        Request(messages, max_tokens=MAX_TOKENS, purpose=purpose, about=about)
        for purpose, messages in asked.items()
    ]


def _parts(text: str) -> dict[str, str]:
    """Speaker -> words of a statement that is an exchange or half of one; empty for running
    text."""
    if exchange := _EXCHANGE.fullmatch(text):
        return {"Doctor": exchange[1], "Patient": exchange[2]}
    alone = _ALONE.fullmatch(text)
    return {alone[1]: alone[2]} if alone else {}


def _worded(
    text: str, replies: Sequence[Reply], keep_question: bool, reading: Reading
) -> tuple[str, str]:
    """The new text and ``""``, or the old one and why."""
    speakers, words = list(_parts(text)), []
    for what, reply in zip(
        [_WHAT[speaker] for speaker in speakers] or ["statement"], replies, strict=True
    ):
        try:
            words.append(read_wording(reply, reading))
        except Unreadable as error:
            if not (keep_question and what == "question" and len(speakers) == 2):
                return text, f"{what}: {error}"
            words.append(_parts(text)["Doctor"])
    return (
        "\n".join(f"{speaker}: {new}" for speaker, new in zip(speakers, words, strict=True))
        if speakers
        else words[0]
    ), ""


def _case(case: Case, wordings: Mapping[str, str]) -> tuple[Case, int]:
    """The case in new words, and how many statements keep the old ones because the new ones name
    the diagnosis."""
    told, n_named = [], 0
    for statement in case.statements:
        new = wordings[statement.text]
        if newly_names(case, statement.text, new):
            new, n_named = statement.text, n_named + 1
        told.append(replace(statement, text=new))
    named = {"case_id": f"{case.case_id}{ENDING}", "dataset": f"{case.dataset}{ENDING}"}
    return replace(case, statements=tuple(told), posteriors={}, **named), n_named


def newly_names(case: Case, old: str, new: str) -> bool:
    """Whether ``new`` gives the case's diagnosis away by a name for which ``old`` gives nothing
    away.

    A full name, or what :func:`trustlab.datasets.giveaway.giveaway` knows of it: its distinctive
    words, also with another ending ("appendicitis" of "Acute appendicitis"), its acronyms and
    everyday names.
    """
    names = {normalise(name) for name in (case.diagnosis, *case.accepted)} - {""}
    if _says(new, names) and not _says(old, names):
        return True
    return any(
        g.heard_in(new) and not g.heard_in(old)
        for g in _giveaways((case.diagnosis, *case.accepted))
    )


@lru_cache(maxsize=4096)
def _giveaways(names: tuple[str, ...]) -> tuple[Giveaway, ...]:
    """What gives away each name by itself, the name spoken."""
    return tuple(giveaway([name], name) for name in dict.fromkeys(names) if normalise(name))


def _says(text: str, names: set[str]) -> bool:
    words = f" {normalise(text)} "
    return any(f" {name} " in words for name in names)
