"""MedQA (Jin et al. 2021): exam questions whose answer is a diagnosis, told sentence by sentence,
without options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trustlab.choices import utf8
from trustlab.datasets.cases_file import (
    MIN_STATEMENTS,
    DataError,
    Read,
    json_object,
    read_text,
    whole_json,
)
from trustlab.datasets.fetch import SOURCE
from trustlab.datasets.sentences import sentences
from trustlab.knowledge import load_knowledge
from trustlab.records import Case, Statement, normalise
from trustlab.words import word_lists

NEEDED = (
    "a MedQA file (JSON lines, as in jind11/MedQA, or MIRAGE's benchmark.json), or a folder that"
    " holds just one"
)
OTHER, SHORT = (
    "asks for no diagnosis",
    f"fewer than {MIN_STATEMENTS} statements before the question",
)
AGAIN, UNASKED = "the same question as an earlier one", "not among ids"
ASKING = "questions that ask for a diagnosis"
CAUSE = "of these, by its cause or an explanation, which a disease answers"

_ADJECTIVES = (
    r"(?:(?:single|most|likely|probable|accurate|appropriate|best|correct|primary|underlying"
    r"|current) )*"
)
_PATIENT = (
    r"(?:this|the|his|her|their) (?:\w+ )?"
    r"(?:patient|man|woman|boy|girl|child|infant|newborn|neonate|fetus|case|presentation)"
)
_PEOPLE = rf"(?:(?:in|of|for) {_PATIENT}|at this time|{_PATIENT} (?:has|have))"
_KINDS = (
    r"(?:\w+ )?(?:conditions|disorders|diseases|syndromes|diagnoses"
    r"|condition|disorder|disease|syndrome|diagnosis)"
)
_FINDINGS = (
    r"(?:signs and )?(?:symptoms|findings|presentation|condition|clinical presentation|clinical"
    r" picture|clinical findings)"
)
_WHICH = r"(?:which(?: one)? of the following|which|what)"
_WHICHEVER = r"which(?:(?: one)? of the following)?"
_LIKELY = r"(?:most likely|best|most probably|likely)"
FORMS: tuple[str, ...] = (
    (
        rf"{_WHICH} (?:is|was|represents|would be) (?:the|his|her|{_PATIENT}'s)"
        rf" {_ADJECTIVES}diagnosis(?: {_PEOPLE})?"
    ),
    (
        rf"{_WHICH} (?:is|was) (?:{_LIKELY}) (?:the|his|her|{_PATIENT}'s) (?:underlying"
        rf" )?diagnosis(?: {_PEOPLE})?"
    ),
    rf"{_WHICH} {_KINDS} (?:is|was) (?:the )?most likely(?: {_PEOPLE})?",
    rf"{_WHICH} {_KINDS} does {_PATIENT} (?:{_LIKELY}|potentially) (?:have|suffer from)",
    rf"{_WHICH} {_KINDS} is {_PATIENT} (?:{_LIKELY} )?(?:suffering from|affected by)",
    (
        rf"{_WHICH} {_KINDS} (?:would |could )?(?:{_LIKELY} )?(?:explains?|accounts? for)"
        rf" (?:{_PATIENT}'s|his|her|these) {_FINDINGS}"
    ),
    (
        rf"{_PATIENT} (?:{_LIKELY} (?:has|suffers from)|is {_LIKELY} suffering from) {_WHICHEVER}"
        rf" {_KINDS}"
    ),
    (
        rf"(?:these|the|{_PATIENT}'s|his|her) {_FINDINGS} (?:is|are) most (?:consistent|compatible)"
        rf" with {_WHICHEVER} {_KINDS}"
    ),
    rf"(?:these|the|{_PATIENT}'s|his|her) {_FINDINGS} (?:support|suggest) (?:a|the) diagnosis of "
    rf"{_WHICH}",
)
"""The forms of a question that asks for a diagnosis, in lower case and with plain apostrophes."""

_SHOWN = (
    rf"(?:{_PATIENT}'s|these|those|his|her|the|this) "
    r"(?:(?:current|clinical|physical|laboratory|overall|acute) )*(?:(?:signs and )?symptoms"
    r"|findings|presentation|condition|history|illness|complaints|behavior|picture)"
)
_WHY = r"(?:cause|etiology|aetiology|explanation)"
CAUSE_FORMS: tuple[str, ...] = (
    rf"{_WHICH} (?:{_KINDS} )?(?:is|was|would be) the "
    rf"(?:(?:most|likely|probable|best|primary|underlying) )*{_WHY}"
    rf"(?: (?:of|for) {_SHOWN})?(?: {_PEOPLE})?",
    rf"{_WHICH} (?:would |could |can )?(?:{_LIKELY} )?(?:explains?|accounts? for) {_SHOWN}"
    rf"(?: {_PEOPLE})?",
    rf"{_SHOWN} (?:is|are|can be|could be) (?:{_LIKELY} )?(?:explained|caused) by {_WHICH}",
    rf"{_WHICH} (?:{_KINDS} )?is (?:most )?(?:consistent|compatible) with {_SHOWN}",
    rf"{_SHOWN} (?:is|are) (?:most )?(?:consistent|compatible) with {_WHICH}(?: {_KINDS})?",
    rf"{_WHICH} is (?:most )?likely (?:responsible for|to account for|to have produced) {_SHOWN}",
    rf"{_PATIENT} (?:{_LIKELY} has|is {_LIKELY} to have|is {_LIKELY} suffering from) {_WHICH}",
)
"""The forms that a disease may answer, or a mechanism, an organism, a drug: the answer decides."""

_DISEASES = frozenset(word_lists("medqa")["diseases"].split())
_GLANDS = r"(?:thyroid|aldosteron|gonad|pituitar)ism"
_ENDINGS = re.compile(rf"\w{{2,}}(?:itis|iasis|osis|oma|opathy|cele|{_GLANDS})")
_NO_ENDINGS = re.compile(
    r"coma|trauma|stoma|diagnosis|miosis"
    r"|\w*(?:acidosis|alkalosis|apoptosis|biosis|cyanosis|cytosis|fibrosis|ketosis|mitosis"
    r"|necrosis|thrombosis|coagulopathy|adenopathy)"
)
_LONGEST_NAME = 6
_TOLD_OF = re.compile(r" (?:from|due to|secondary to|following) ")
_MECHANISM = re.compile(
    r"\b(?:increased|decreased|impaired|defective|abnormal|absent|absence|excess|excessive|loss"
    r"|history|adverse|effect|complication|mutation|formation|secreting|producing|mediated"
    r"|induced)\b"
)

_SUPPOSES = r"if|unless|supposing|suppose|imagine|assuming|had|were|should|without"
_BESIDES = (
    r"in addition|besides|apart from|aside from|other than|along with|together with|instead"
    r" of|rather than"
)
_OPENING = (
    rf"(?!(?:{_SUPPOSES}|{_BESIDES}|which|what|how|why)\b|.*\b(?:if|unless|{_BESIDES})\b).*[,:] "
)


def _any_of(forms: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?:{_OPENING})?(?:{'|'.join(f'(?:{form})' for form in forms)}) ?[?:.]?")


_ASKS, _ASKS_WHY = _any_of(FORMS), _any_of(CAUSE_FORMS)
_MERGED = re.compile(
    r"(?<=[^\s,;])\s+(?=(?:Which (?:one )?of the following|What is|What was|What are) )"
)
_ACRONYM = re.compile(r"\s*\([A-Z][A-Z0-9-]*\)")


Bad = Callable[[str, object, str], DataError]


@dataclass(frozen=True)
class _Question:
    """One entry of a file: its id and text, and its row, which :func:`_judged` judges."""

    id: str
    text: str
    row: dict
    bad: Bad


def read(
    path: Path | None = None, seed: int = 0, ids: Sequence[str | int] | str | Path | None = None
) -> Read:
    """The questions of ``path`` that ask for a diagnosis, as cases in file order. ``seed`` changes
    nothing.

    ``path`` is a file, or a folder with just one inside. Official rows, one JSON object a line:
    ``question``, ``options`` (an object, letter to text, two or more), ``answer_idx`` (a letter),
    ``answer`` (that option's text), ``meta_info`` (to ``Case.patient["step"]``), perhaps ``id``.
    MIRAGE: one object, ``{"medqa": {id: {"question", "options", "answer": letter}}}``.

    The options and the final question are left out, the rest is cut by :func:`sentences`: a
    statement each, more than 10 or the case is dropped. Which questions count is said by
    :func:`asks_for_diagnosis`, or by ``ids``: a list of ids, or a text file with an id a line
    (blank lines and ``#`` comments aside). The id is the row's own, or its number from 1; the case
    is called ``medqa-ID``. A question that is there twice becomes one case; one that ``ids`` leaves
    out does not count. The diagnosis is the answer's text; accepted too are that text without an
    acronym in brackets, and every name that the knowledge table has for it. A statement may say it
    (a history can): it is kept, and the account counts the case
    (:data:`trustlab.datasets.cases_file.NAMED`).

    Ids and questions are judged in every row; options and answer in those that ask for a diagnosis
    after enough statements. Elsewhere a row may answer "↓ ↑ ↓".

    Raises ``ValueError`` where there is no file or an id is unknown, and :class:`DataError` for
    what breaks the format.
    """
    file = _file(path)
    questions = list(_questions(file))
    wanted = None if ids is None else _wanted(ids, {question.id for question in questions}, file)
    dropped: dict[str, list[str]] = {}
    cases: list[Case] = []
    seen: set[str] = set()
    n_asking = n_cause = 0
    for question in questions:
        told, asked = split_question(question.text)
        by_name, answer = asks_for_diagnosis(asked), _answer(question.row)
        by_cause = not by_name and asks_for_diagnosis(asked, answer)
        n_asking += by_name or by_cause
        n_cause += by_cause
        text = normalise(question.text)
        if wanted is not None and question.id not in wanted:
            dropped.setdefault(UNASKED, []).append(question.id)
        elif wanted is None and not (by_name or by_cause):
            dropped.setdefault(OTHER, []).append(question.id)
        else:
            case = _case(question, told) if len(told) >= MIN_STATEMENTS else None
            if text in seen:
                dropped.setdefault(AGAIN, []).append(question.id)
            elif case is None:
                dropped.setdefault(SHORT, []).append(question.id)
            else:
                cases.append(case)
            seen.add(text)
    return Read(cases, len(questions), dropped, {ASKING: n_asking, CAUSE: n_cause})


def asks_for_diagnosis(question: str, answer: str | None = "") -> bool:
    """Whether ``question`` asks for the diagnosis itself, so that its answer is the name of a
    disease.

    It must be one of :data:`FORMS`, perhaps after an opening clause ("Based on these findings,
    ..."), and hold nothing else; a clause that supposes another case ("If she had fever, ...") or
    asks for more ("In addition to gout, ...") is no such opening. Strict on purpose: "next step in
    diagnosis", "would confirm the diagnosis" and "treatment for the most likely diagnosis" are
    answered by something else always.

    "The most likely cause of the symptoms", "best explains the findings" (:data:`CAUSE_FORMS`) are
    answered by a mechanism, an organism or a drug as often as by a disease: they count where
    ``answer`` is the name of one (:func:`names_disease`), or ``None``, which could not be read.
    """
    plain = " ".join(question.lower().replace("’", "'").strip(" \"“”'").split())
    if _ASKS.fullmatch(plain):
        return True
    return _ASKS_WHY.fullmatch(plain) is not None and (answer is None or names_disease(answer))


def names_disease(answer: str) -> bool:
    """Whether ``answer`` is the name of a disease, by its words alone, strictly.

    The knowledge table has it; or its last word, before a bracket or "due to", is the name of a
    disease or of a kind of disease ("syndrome"), or ends as these do (-itis, -osis, -oma, -opathy),
    and no word tells of a mechanism ("impaired", "loss"). Before an "of" only a cancer stands:
    "infarction of the trabeculae" is none. Neither is a deficiency, infection, poisoning or injury:
    these are the reason for a disease as often as the disease. A name has 6 words at most.
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
    """The statements before the final question, and that question; a quotation mark without a
    partner at the end is left out.

    The final question is the last sentence, whether or not it ends in a question mark; where a
    table without full stops runs into it, it begins at the last "Which of the following" or "What
    is".
    """
    *before, last = sentences(_unquoted(text)) or [""]
    if merged := list(_MERGED.finditer(last)):
        before, last = [*before, last[: merged[-1].start()]], last[merged[-1].end() :]
    return before, last


def _case(question: _Question, told: Sequence[str]) -> Case:
    """The case of ``question``, of which ``told`` is shown, its row judged."""
    answer, step = _judged(question)
    options = tuple(map(_unquoted, question.row["options"].values()))
    short = _ACRONYM.sub("", answer).strip()  # "Lymphoma (HL)" is called so without the bracket
    known = [load_knowledge().condition_named(name) for name in (answer, short)]
    names = [answer, short, *(name for condition in known if condition for name in condition.names)]
    return Case(
        case_id=f"medqa-{question.id}",
        dataset="medqa",
        statements=tuple(map(Statement, told)),
        diagnosis=answer,
        accepted=tuple(dict.fromkeys(filter(None, names))),
        patient={"options": options} | ({} if step is None else {"step": step}),
    )


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[:-1].rstrip() if text.endswith('"') and text.count('"') % 2 else text


# -- files
# --------------------------------------------------------------------------------------------------


def _file(path: Path | None) -> Path:
    if path is None:
        raise ValueError(f"path is None; allowed is {NEEDED}")
    if path.is_dir():
        found = sorted(
            p
            for p in path.rglob("*")
            if p.suffix in (".jsonl", ".json") and p.is_file() and p.name != SOURCE
        )
        if len(found) != 1:
            names = ", ".join(str(p.relative_to(path)) for p in found[:20]) + (
                ", ..." if len(found) > 20 else ""
            )
            raise ValueError(
                f"path is the folder {str(path)!r} with {len(found)} files ({names or 'none'});"
                f" allowed is {NEEDED}"
            )
        return found[0]
    if not path.is_file():
        raise ValueError(f"path is {str(path)!r}, which does not exist; allowed is {NEEDED}")
    return path


def _questions(file: Path) -> Iterator[_Question]:
    """The questions of ``file`` with their ids, all different."""
    seen: set[str] = set()
    n_rows = 0
    for n_rows, (bad, row, own_id) in enumerate(
        _mirage_rows(file) if file.suffix == ".json" else _official_rows(file), 1
    ):
        text = _text(bad, "question", row.get("question"))
        question = _Question(own_id or str(n_rows), text, row, bad)
        if question.id in seen:
            raise bad("id", question.id, "an id that no earlier row has")
        seen.add(question.id)
        yield question
    if not n_rows:
        raise DataError(file, None, "rows", 0, "at least one question")


def _official_rows(file: Path) -> Iterator[tuple[Bad, dict, str | None]]:
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            bad = partial(DataError, file, number)
            row = json_object(bad, line)
            own_id = row.get("id")
            if own_id is not None and (
                not isinstance(own_id, str | int)
                or isinstance(own_id, bool)
                or not str(own_id).strip()
            ):
                raise bad("id", own_id, "a str that is not empty, or a whole number")
            yield bad, row, None if own_id is None else str(own_id).strip()


def _mirage_rows(file: Path) -> Iterator[tuple[Bad, dict, str | None]]:
    value = whole_json(file)
    rows = value.get("medqa", value) if isinstance(value, dict) else value
    if not isinstance(rows, dict):
        raise DataError(
            file,
            None,
            "JSON",
            rows,
            'an object {"medqa": {id: question}}, as in MIRAGE\'s benchmark.json',
        )
    if rows is value and any(_is_section(part) for part in rows.values()):
        raise DataError(
            file,
            None,
            "JSON",
            f"no medqa section; the file holds {', '.join(rows)}"[:200],
            "an object with medqa",
        )
    for own_id, row in rows.items():
        if not isinstance(row, dict):
            raise DataError(
                file, None, f"question {own_id}", row, "an object with question, options and answer"
            )
        yield partial(_mirage_error, file, own_id), row, own_id


def _is_section(part: object) -> bool:
    return isinstance(part, dict) and any(
        isinstance(row, dict) and "question" in row for row in part.values()
    )


def _mirage_error(file: Path, own_id: str, field: str, value: object, allowed: str) -> DataError:
    return DataError(file, None, f"question {own_id}, {field}", value, allowed)


def _judged(question: _Question) -> tuple[str, str | None]:
    """The right answer, and the exam's step where the file knows it.

    Raises :class:`DataError` for a bad row.
    """
    bad, row = question.bad, question.row
    options = row.get("options")
    if not isinstance(options, dict) or len(options) < 2:
        raise bad("options", options, "an object of at least two options, letter to text")
    for letter, option in options.items():
        _text(bad, f"options.{letter}", option)
    letter = row.get("answer_idx", row.get("answer"))  # MIRAGE has the letter alone
    if not isinstance(letter, str) or letter not in options:
        raise bad(
            "answer_idx" if "answer_idx" in row else "answer",
            letter,
            f"one of the options, {', '.join(options)}",
        )
    if "answer_idx" in row and row.get("answer") != options[letter]:
        raise bad("answer", row.get("answer"), f"the text of option {letter}, {options[letter]!r}")
    answer = _unquoted(options[letter])
    if not normalise(answer):
        raise bad(f"options.{letter}", options[letter], "a name, with at least one letter or digit")
    step = row.get("meta_info")
    if step is not None and not isinstance(step, str):
        raise bad("meta_info", step, "a str, such as step1")
    return answer, step or None


def _answer(row: dict) -> str | None:
    """The text of the right option as it stands, ``None`` where the row has no such text."""
    letter, options = row.get("answer_idx", row.get("answer")), row.get("options")
    answer = options.get(letter) if isinstance(options, dict) and isinstance(letter, str) else None
    return _unquoted(answer) if isinstance(answer, str) else None


def _text(bad: Bad, field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not utf8(value):
        raise bad(field, value, "a str that is not empty")
    return value


_IDS = (
    "allowed is a list of ids or row numbers, such as [32, 'medqa-40'], or a text file with an id a"
    " line"
)


def _wanted(ids: Sequence[str | int] | str | Path, known: set[str], file: Path) -> set[str]:
    """The ids asked for, each of which must be ``known``."""
    if isinstance(ids, str | Path):
        source = Path(ids).expanduser()
        if not source.is_file():
            raise ValueError(f"ids is {str(ids)!r}, which is no file; {_IDS}")
        ids = [line.split("#")[0].strip() for line in read_text(source).split("\n")]
        ids = [one for one in ids if one]
    if not isinstance(ids, Sequence | Set) or isinstance(ids, bytes):
        raise ValueError(f"ids is {ids!r}; {_IDS}")
    if wrong := [one for one in ids if not isinstance(one, str | int) or isinstance(one, bool)]:
        raise ValueError(f"ids has {', '.join(map(repr, wrong[:10]))}; {_IDS}")
    wanted = {str(one).removeprefix("medqa-") for one in ids}
    if unknown := sorted(wanted - known):
        raise ValueError(
            f"ids has {', '.join(unknown[:10])}, which {file} does not; allowed are its ids or row"
            " numbers from 1"
        )
    if not wanted:
        raise ValueError("ids is empty; allowed is at least one id")
    return wanted
