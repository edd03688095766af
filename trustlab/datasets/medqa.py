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
    parse_row,
)
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.sentences import sentences
from trustlab.knowledge.words import word_lists
from trustlab.records import Case, Statement, normalise
from trustlab.tables import DataError, json_lines

NEEDED = (
    "a MedQA file (JSON lines, as in jind11/MedQA), or a folder that holds just one"
)
OTHER = "asks for no diagnosis"
SHORT = f"fewer than {MIN_STATEMENTS} statements before the question"
AGAIN, UNASKED = "the same question as an earlier one", "not among ids"
NO_LETTER = "an answer without a letter, which no reply in brackets can give"
ASKING = "questions that ask for a diagnosis"
CAUSE = "of these, by its cause or an explanation, which a disease answers"
LONG = f"questions with {MIN_STATEMENTS} statements or more before the last sentence"
LONG_ASKING = "of these, for a diagnosis"
LONG_WITH = (
    f"questions with {MIN_STATEMENTS} statements or more, the last sentence counted"
)
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
_BEFORE_CAUSE = re.compile(r" (?:from|due to|secondary to|following) ")
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
    clause = rf"(?!(?:{_WORDS['supposes']}|{besides}|which|what|how|why)\b"
    clause += rf"|.*\b(?:if|unless|{besides})\b).*[,:] "
    patterns = [form.format(**parts) for form in forms]
    alternatives = [f"(?:{pattern})" for pattern in patterns]
    whole = "|".join(alternatives)
    return re.compile(rf"(?:{clause})?(?:{whole}) ?[?:.]?")


_ASKS = _any_of(_WORDS["asking"])
_ASKS_WHY = _any_of(_WORDS["asking_why"])


Id = allowed(
    "a str that is not empty, or a whole number", lambda value: str(value).strip()
)


class _QuestionRow(Row):
    """What is judged in every row."""

    question: Text
    id: Annotated[int | str, Id] | None = None


class _AnswerRow(Row):
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


def read(
    path: Path, seed: int = 0, ids: Ids = None, questions: str = "diagnosis"
) -> Read:
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
        raise ValueError(
            f"questions is {questions!r}; allowed are {', '.join(QUESTIONS)}"
        )
    file = _questions_file(path)
    all_questions = list(_read_questions(file))
    wanted = None
    if ids is not None:
        wanted = _wanted_ids(ids, {question.id for question in all_questions}, file)
    dropped: defaultdict[str, list[str]] = defaultdict(list)
    cases: list[Case] = []
    earlier_texts: set[str] = set()
    counts = dict.fromkeys((ASKING, CAUSE, LONG, LONG_ASKING, LONG_WITH), 0)
    for question in all_questions:
        split = _split(question, questions)
        _count(split, counts)
        reason = _reason_to_drop(split, question.id, wanted)
        if not reason:
            text = normalise(question.text)
            case = None
            if split.is_long:
                case = _make_case(question, split)
            if text in earlier_texts:
                reason = AGAIN
            elif case is None:
                reason = SHORT
            else:
                cases.append(case)
            earlier_texts.add(text)
        if reason:
            dropped[reason].append(question.id)
    return Read(cases, len(all_questions), dict(dropped), counts)


@dataclass(frozen=True)
class _Split:
    """A question in its parts. ``by_name`` and ``by_cause``: how it asks for a diagnosis;
    ``answer``: the right option's text; ``case_question``: the last sentence, where it becomes the
    case's own."""

    statements: Sequence[str]
    by_name: bool
    by_cause: bool
    answer: str | None
    case_question: str

    @property
    def asks_for_diagnosis(self) -> bool:
        """Whether a disease answers it."""
        return self.by_name or self.by_cause

    @property
    def is_long(self) -> bool:
        """Whether it has statements enough for a case."""
        return len(self.statements) >= MIN_STATEMENTS


def _split(question: _Question, questions: str) -> _Split:
    statements, last_sentence = split_question(question.text)
    by_name = asks_for_diagnosis(last_sentence)
    answer = _right_option(question.row)
    by_cause = not by_name and asks_for_diagnosis(last_sentence, answer)
    becomes_own = not (by_name or by_cause) and questions != "diagnosis"
    case_question = last_sentence if becomes_own else ""
    return _Split(statements, by_name, by_cause, answer, case_question)


def _count(split: _Split, counts: dict[str, int]) -> None:
    """Count a question among those of its kinds."""
    if split.asks_for_diagnosis:
        counts[ASKING] += 1
    if split.by_cause:
        counts[CAUSE] += 1
    if split.is_long:
        counts[LONG] += 1
        counts[LONG_ASKING] += split.asks_for_diagnosis
    if len(split.statements) + 1 >= MIN_STATEMENTS:
        counts[LONG_WITH] += 1


def _reason_to_drop(split: _Split, question_id: str, wanted: set[str] | None) -> str:
    """Why a question, whatever its length, becomes no case; '' where it may."""
    if wanted is not None and question_id not in wanted:
        return UNASKED
    if wanted is None and not (split.asks_for_diagnosis or split.case_question):
        return OTHER
    has_letter = any(map(str.isalpha, split.answer or "x"))
    if split.case_question and split.is_long and not has_letter:
        return NO_LETTER
    return ""


def asks_for_diagnosis(question: str, answer: str | None = "") -> bool:
    """Whether ``question`` asks for the diagnosis itself, so that a disease answers it.

    It is one of the forms in ``words/medqa.yml``, perhaps after an opening clause that supposes no
    other case and asks for no more, and nothing else. Those that ask for a cause (``asking_why``)
    count where ``answer`` names a disease (:func:`names_disease`), or is ``None``: not readable.
    """
    plain = question.lower().replace("’", "'").strip(" \"“”'")
    plain = " ".join(plain.split())
    if _ASKS.fullmatch(plain):
        return True
    if not _ASKS_WHY.fullmatch(plain):
        return False
    return answer is None or names_disease(answer)


def names_disease(answer: str) -> bool:
    """Whether ``answer`` is the name of a disease, by its words alone, strictly.

    The knowledge table has it; or it has 6 words at most, none of a mechanism ("impaired", "loss"),
    and its last one, before a bracket or "due to", is a disease or kind of disease ("syndrome"), or
    ends as these do (-itis, -oma). Before an "of" only a cancer stands, and a deficiency,
    infection, poisoning or injury is none: it is the reason for a disease as often.
    """
    if load_knowledge().condition_named(answer):
        return True
    without_acronym = _ACRONYM.sub("", answer).lower()
    name = _BEFORE_CAUSE.split(without_acronym)[0]
    if not 0 < len(name.split()) <= _LONGEST_NAME or _MECHANISM.search(name):
        return False
    head, _, rest = name.partition(" of ")
    *_, last = normalise(head).split() or [""]
    if _NO_ENDINGS.fullmatch(last):
        return False
    if rest or " in " in name or " for " in name:
        return last.endswith("oma") or last == "cancer"
    return last in _DISEASES or _ENDINGS.fullmatch(last) is not None


def split_question(text: str) -> tuple[list[str], str]:
    """The statements before the final question, and that question: the last sentence, or, where a
    table without full stops runs into it, what begins at the last "Which of the following" or "What
    is". A quotation mark without a partner at the end is left out."""
    *statements, last = sentences(_unquoted(text)) or [""]
    merges = list(_MERGED.finditer(last))
    if not merges:
        return statements, last
    last_merge = merges[-1]
    statements.append(last[: last_merge.start()])
    return statements, last[last_merge.end() :]


def _make_case(question: _Question, split: _Split) -> Case:
    """The case of a question in its parts; :class:`DataError`: a bad row."""
    data_error = question.bad
    row = parse_row(_AnswerRow, question.row, data_error)
    letter = row.answer_idx
    if letter not in row.options:
        raise data_error(
            "answer_idx", letter, f"one of the options, {', '.join(row.options)}"
        )
    option = row.options[letter]
    if row.answer != option:
        raise data_error(
            "answer", row.answer, f"the text of option {letter}, {option!r}"
        )
    answer = _unquoted(option)
    if not normalise(answer):
        raise data_error(
            f"options.{letter}", option, "a name, with at least one letter or digit"
        )
    # "Lymphoma (HL)" is called so without the bracket
    short = _ACRONYM.sub("", answer).strip()
    names_for = load_knowledge().names_for
    names = [answer, short, *names_for(answer), *names_for(short)]
    patient: dict[str, object] = {
        "options": tuple(map(_unquoted, row.options.values()))
    }
    if row.meta_info:
        patient["step"] = row.meta_info
    return Case(
        f"medqa-{question.id}",
        "medqa",
        tuple(map(Statement, split.statements)),
        answer,
        tuple(dict.fromkeys(filter(None, names))),
        patient,
        question=split.case_question,
    )


def _unquoted(text: str) -> str:
    """The text without a quotation mark at its end that has no partner."""
    text = text.strip()
    if text.endswith('"') and text.count('"') % 2:
        return text[:-1].rstrip()
    return text


def _questions_file(path: Path) -> Path:
    """The file of questions that ``path`` means."""
    if path.is_file():
        return path
    files = sorted(path.rglob("*.jsonl"))
    if len(files) == 1:
        return files[0]
    names = ", ".join(str(file.relative_to(path)) for file in files[:20]) or "none"
    folder = f"the folder {str(path)!r} with {len(files)} files ({names})"
    raise ValueError(f"path is {folder}; allowed is {NEEDED}")


def _read_questions(file: Path) -> Iterator[_Question]:
    """The questions of ``file`` with their ids, all different."""
    earlier_ids: set[str] = set()
    for number, (bad, row) in enumerate(json_lines(file), 1):
        question = parse_row(_QuestionRow, row, bad)
        own_id = str(number if question.id is None else question.id).strip()
        if own_id in earlier_ids:
            raise bad("id", own_id, "an id that no earlier row has")
        earlier_ids.add(own_id)
        yield _Question(own_id, question.question, row, bad)
    if not earlier_ids:
        raise DataError(file, None, "rows", 0, "at least one question")


def _right_option(row: dict) -> str | None:
    """The text of the right option as it stands, ``None`` where the row has no such text."""
    letter = row.get("answer_idx")
    options = row.get("options")
    if not isinstance(options, dict) or not isinstance(letter, str):
        return None
    text = options.get(letter)
    return _unquoted(text) if isinstance(text, str) else None


def _wanted_ids(ids: object, file_ids: set[str], file: Path) -> set[str]:
    """The ids that a user names, each of which the file must have."""
    try:
        listed = IDS.validate_python(ids)
    except ValidationError as error:
        form = "a list of ids or row numbers, such as [32, 'medqa-40']"
        raise ValueError(f"ids is {ids!r}; allowed is {form}") from error
    wanted = {str(own_id).removeprefix("medqa-") for own_id in listed}
    unknown = sorted(wanted - file_ids)
    if unknown:
        allowed_ids = (
            f"which {file} does not; allowed are its ids or row numbers from 1"
        )
        raise ValueError(f"ids has {', '.join(unknown[:10])}, {allowed_ids}")
    return wanted
