"""Reads MedQA's questions: those whose answer is a diagnosis, or any."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictInt, StrictStr, TypeAdapter, ValidationError

from trustlab.datasets.cases_file import (
    MIN_STATEMENTS,
    Bad,
    Read,
    Row,
    Text,
    allowed,
    checked,
)
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.sentences import sentences
from trustlab.knowledge.words import word_lists
from trustlab.records import Case, Statement, normalise
from trustlab.tables import DataError, json_lines

NEEDED = "a MedQA file (JSON lines, as in jind11/MedQA), or a folder that holds just one"
OTHER = "asks for no diagnosis"
SHORT = f"fewer than {MIN_STATEMENTS} statements before the question"
AGAIN, UNASKED = "the same question as an earlier one", "not among ids"
NO_LETTER = "an answer without a letter, which no reply in brackets can give"
ASKING = "questions that ask for a diagnosis"
CAUSE = "of these, by its cause or an explanation, which a disease answers"
LONG = f"questions with {MIN_STATEMENTS} statements or more before the last sentence"
LONG_ASKING = "of these, for a diagnosis"
LONG_WITH = f"questions with {MIN_STATEMENTS} statements or more, the last sentence counted"
QUESTIONS = ("diagnosis", "any")
Ids = Sequence[str | int] | None
IDS = TypeAdapter(Annotated[list[StrictStr | StrictInt], Field(min_length=1)])

_WORDS = word_lists("medqa")
_DISEASES = frozenset(_WORDS["diseases"].split())
_ENDINGS = re.compile(rf"\w{{2,}}(?:{_WORDS['endings'].replace(' ', '|')})")
_NO_ENDINGS = re.compile(
    rf"{_WORDS['no_diseases'].replace(' ', '|')}|\w*(?:{_WORDS['no_endings'].replace(' ', '|')})"
)
_LONGEST_NAME = 6
_TOLD_OF = re.compile(r" (?:from|due to|secondary to|following) ")
_MECHANISM = re.compile(rf"\b(?:{_WORDS['mechanism'].replace(' ', '|')})\b")
_MERGED = re.compile(
    r"(?<=[^\s,;])\s+(?=(?:Which (?:one )?of the following|What is|What was|What are) )"
)
_ACRONYM = re.compile(r"\s*\([A-Z][A-Z0-9-]*\)")


def _any_of(forms: Sequence[str]) -> re.Pattern[str]:
    """One of the forms, perhaps behind a clause that supposes nothing and asks for no more."""
    parts: dict[str, str] = {}
    for name, part in _WORDS["parts"].items():
        parts[name] = part.format(**parts)
    besides = _WORDS["besides"]
    behind = rf"(?!(?:{_WORDS['supposes']}|{besides}|which|what|how|why)\b"
    behind += rf"|.*\b(?:if|unless|{besides})\b).*[,:] "
    form = "|".join(f"(?:{form.format(**parts)})" for form in forms)
    return re.compile(rf"(?:{behind})?(?:{form}) ?[?:.]?")


_ASKS, _ASKS_WHY = _any_of(_WORDS["asking"]), _any_of(_WORDS["asking_why"])


Id = allowed("a str that is not empty, or a whole number", lambda one: str(one).strip())


class _Asked(Row):
    """What is judged in every row."""

    question: Text
    id: Annotated[int | str, Id] | None = None


class _Answered(Row):
    """What is judged in the rows that become cases."""

    options: Annotated[dict[str, Text], Field(min_length=2)]
    answer: str
    answer_idx: str
    meta_info: str | None = None


@dataclass(frozen=True)
class _Question:
    """One entry of a file: its id and text, its row, and what makes the row's errors."""

    id: str
    text: str
    row: dict
    bad: Bad


def read(path: Path, seed: int = 0, ids: Ids = None, questions: str = "diagnosis") -> Read:
    """The questions of ``path`` that ask for a diagnosis, or any, as cases in file order.

    - ``path``: a file, or a folder with just one inside: JSON lines with ``question``, ``options``
      (letter to text), ``answer_idx`` (a letter), ``answer`` (that option's text), ``meta_info``
      (to ``Case.patient["step"]``), perhaps ``id``, else the row's number from 1.
    - Statements: the sentences (:func:`sentences`) before the final question; more than 10, or the
      case is dropped. A question that is there twice becomes one case.
    - Which questions count: :func:`asks_for_diagnosis`, or ``ids``; "any": all. There the last
      sentence is ``Case.question`` where it asks for no diagnosis, and an answer has a letter.
    - Accepted: the answer, also without an acronym in brackets, and the knowledge table's names.

    Ids and questions are judged in every row; options and answer in those that become cases.
    ``ValueError``: no file, an unknown id, other ``questions``. :class:`DataError`: a bad row.
    ``seed``: not used.
    """
    if questions not in QUESTIONS:
        raise ValueError(f"questions is {questions!r}; allowed are {', '.join(QUESTIONS)}")
    file = _file(path)
    rows = list(_questions(file))
    wanted = None if ids is None else _wanted(ids, {question.id for question in rows}, file)
    dropped: defaultdict[str, list[str]] = defaultdict(list)
    cases: list[Case] = []
    seen: set[str] = set()
    counts = dict.fromkeys((ASKING, CAUSE, LONG, LONG_ASKING, LONG_WITH), 0)
    for question in rows:
        statements, asked = split_question(question.text)
        by_name, answer = asks_for_diagnosis(asked), _answer(question.row)
        by_cause = not by_name and asks_for_diagnosis(asked, answer)
        asks, long = by_name or by_cause, len(statements) >= MIN_STATEMENTS
        counts[ASKING] += asks
        counts[CAUSE] += by_cause
        counts[LONG] += long
        counts[LONG_ASKING] += long and asks
        counts[LONG_WITH] += len(statements) + 1 >= MIN_STATEMENTS
        other = "" if asks or questions == "diagnosis" else asked
        text = normalise(question.text)
        if wanted is not None and question.id not in wanted:
            dropped[UNASKED].append(question.id)
        elif wanted is None and not (asks or other):
            dropped[OTHER].append(question.id)
        elif other and long and not any(map(str.isalpha, answer or "x")):
            dropped[NO_LETTER].append(question.id)
        else:
            case = _case(question, statements, other) if long else None
            if case is None or text in seen:
                dropped[AGAIN if text in seen else SHORT].append(question.id)
            else:
                cases.append(case)
            seen.add(text)
    return Read(cases, len(rows), dict(dropped), counts)


def asks_for_diagnosis(question: str, answer: str | None = "") -> bool:
    """Whether ``question`` asks for the diagnosis itself, so that a disease answers it.

    It is one of the forms in ``words/medqa.yml``, perhaps after an opening clause that supposes no
    other case and asks for no more, and nothing else. Those that ask for a cause (``asking_why``)
    count where ``answer`` names a disease (:func:`names_disease`), or is ``None``: not readable.
    """
    plain = " ".join(question.lower().replace("’", "'").strip(" \"“”'").split())
    if _ASKS.fullmatch(plain):
        return True
    return _ASKS_WHY.fullmatch(plain) is not None and (answer is None or names_disease(answer))


def names_disease(answer: str) -> bool:
    """Whether ``answer`` is the name of a disease, by its words alone, strictly.

    The knowledge table has it; or it has 6 words at most, none of a mechanism ("impaired", "loss"),
    and its last one, before a bracket or "due to", is a disease or kind of disease ("syndrome"), or
    ends as these do (-itis, -oma). Before an "of" only a cancer stands, and a deficiency,
    infection, poisoning or injury is none: it is the reason for a disease as often.
    """
    if load_knowledge().condition_named(answer):
        return True
    told = _TOLD_OF.split(_ACRONYM.sub("", answer).lower())[0]
    if not 0 < len(told.split()) <= _LONGEST_NAME or _MECHANISM.search(told):
        return False
    head, _, rest = told.partition(" of ")
    *_, last = normalise(head).split() or [""]
    if _NO_ENDINGS.fullmatch(last):
        return False
    if rest or " in " in told or " for " in told:
        return last.endswith("oma") or last == "cancer"
    return last in _DISEASES or _ENDINGS.fullmatch(last) is not None


def split_question(text: str) -> tuple[list[str], str]:
    """The statements before the final question, and that question: the last sentence, or, where a
    table without full stops runs into it, what begins at the last "Which of the following" or "What
    is". A quotation mark without a partner at the end is left out."""
    *before, last = sentences(_unquoted(text)) or [""]
    if merged := list(_MERGED.finditer(last)):
        before, last = [*before, last[: merged[-1].start()]], last[merged[-1].end() :]
    return before, last


def _case(question: _Question, statements: Sequence[str], asked: str) -> Case:
    """The case of ``question``, which asks what was ``asked``; :class:`DataError`: a bad row."""
    bad, row = question.bad, checked(_Answered, question.row, question.bad)
    letter = row.answer_idx
    if letter not in row.options:
        raise bad("answer_idx", letter, f"one of the options, {', '.join(row.options)}")
    right = row.options[letter]
    if row.answer != right:
        raise bad("answer", row.answer, f"the text of option {letter}, {right!r}")
    answer = _unquoted(right)
    if not normalise(answer):
        raise bad(f"options.{letter}", right, "a name, with at least one letter or digit")
    short = _ACRONYM.sub("", answer).strip()  # "Lymphoma (HL)" is called so without the bracket
    known = load_knowledge()
    names = [answer, short, *known.names_for(answer), *known.names_for(short)]
    step = {"step": row.meta_info} if row.meta_info else {}
    accepted = tuple(dict.fromkeys(filter(None, names)))
    patient = {"options": tuple(map(_unquoted, row.options.values()))} | step
    told = tuple(map(Statement, statements))
    return Case(f"medqa-{question.id}", "medqa", told, answer, accepted, patient, question=asked)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[:-1].rstrip() if text.endswith('"') and text.count('"') % 2 else text


def _file(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(path.rglob("*.jsonl"))
    if len(found) == 1:
        return found[0]
    names = ", ".join(str(p.relative_to(path)) for p in found[:20]) or "none"
    what = f"the folder {str(path)!r} with {len(found)} files ({names})"
    raise ValueError(f"path is {what}; allowed is {NEEDED}")


def _questions(file: Path) -> Iterator[_Question]:
    """The questions of ``file`` with their ids, all different."""
    seen: set[str] = set()
    for number, (bad, row) in enumerate(json_lines(file), 1):
        asked = checked(_Asked, row, bad)
        own_id = str(number if asked.id is None else asked.id).strip()
        if own_id in seen:
            raise bad("id", own_id, "an id that no earlier row has")
        seen.add(own_id)
        yield _Question(own_id, asked.question, row, bad)
    if not seen:
        raise DataError(file, None, "rows", 0, "at least one question")


def _answer(row: dict) -> str | None:
    """The text of the right option as it stands, ``None`` where the row has no such text."""
    letter, options = row.get("answer_idx"), row.get("options")
    answer = options.get(letter) if isinstance(options, dict) and isinstance(letter, str) else None
    return _unquoted(answer) if isinstance(answer, str) else None


def _wanted(ids: object, known: set[str], file: Path) -> set[str]:
    """The ids asked for, each of which must be ``known``."""
    try:
        listed = IDS.validate_python(ids)
    except ValidationError as error:
        form = "a list of ids or row numbers, such as [32, 'medqa-40']"
        raise ValueError(f"ids is {ids!r}; allowed is {form}") from error
    wanted = {str(one).removeprefix("medqa-") for one in listed}
    if unknown := sorted(wanted - known):
        known_ids = f"which {file} does not; allowed are its ids or row numbers from 1"
        raise ValueError(f"ids has {', '.join(unknown[:10])}, {known_ids}")
    return wanted
