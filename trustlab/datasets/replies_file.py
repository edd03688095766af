"""Reads a user's table of replies that exist already."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable
from uuid import UUID

import numpy as np
import pandas as pd
from scipy.special import softmax

from trustlab.confidence import METHODS
from trustlab.confidence.registry import is_own
from trustlab.datasets.foreign_logs import KINDS as LOGS
from trustlab.datasets.foreign_logs import Log, kind_of, read_log
from trustlab.models.ranges import (
    MOST_NATS,
    ROUNDING,
    SENTINEL,
    are_alternatives,
    is_untold,
)
from trustlab.models.thought import apart
from trustlab.parsing.marks import own_words, without_footnotes
from trustlab.parsing.medconf import read_evidence, read_profile
from trustlab.parsing.scores import probes_read
from trustlab.paths import read_yaml
from trustlab.records import (
    GROUP,
    NO_DIAGNOSIS,
    PARAMETERS,
    Assessment,
    Case,
    Evidence,
    Generation,
    Parameters,
    Reply,
    Statement,
    TokenTrace,
    View,
    normalise,
)
from trustlab.tables import (
    DELIMITERS,
    NO_NAMES,
    Bad,
    DataError,
    check_columns,
    is_name,
    on_one_line,
    table_rows,
    warn_of_encoded,
)

KINDS = f"a .csv, .tsv, .jsonl or .parquet one, or {LOGS}"


class Column(NamedTuple):
    """A column of replies: its reader, in words what it may hold and what it is, and what methods
    read that comes from it."""

    read: str
    allowed: str
    meaning: str
    needed_by: str = ""


# A reader raises one of these of what its column does not take.
UNREADABLE = (
    ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError,
)  # fmt: skip


class Untold(Exception):
    """A cell with a log-probability that is not told."""


def _read_text(value: Any) -> str:
    """Text that is not empty; a whole number as its digits, a date and the like as its text."""
    if isinstance(value, date | UUID | Decimal):
        value = str(value).removesuffix(" 00:00:00")
    if isinstance(value, float) and value == int(value):
        value = int(value)  # what pandas makes of a number where another is missing
    if (
        isinstance(value, str | int)
        and not isinstance(value, bool)
        and str(value).strip()
    ):
        return str(value).strip()
    raise ValueError


def _read_name(value: Any) -> str:
    name = _read_text(value)
    if not is_name(name):
        raise ValueError
    return name


def _read_answer(value: Any) -> str:
    """What a model names, without thought, marks of a template and citations: on one line, any
    character in it."""
    return _answer_in(_read_text(value))


@lru_cache(maxsize=65536)
def _answer_in(reply_text: str) -> str:
    reply = apart(Reply(reply_text))
    answer = without_footnotes(own_words(reply.text or ""))
    answer = _read_text(answer)
    if not on_one_line(answer):
        raise ValueError
    return answer


def _read_number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    number = float(value)
    if (
        isinstance(value, bool | np.bool_)
        or not low <= number <= high
        or number == math.inf
    ):
        raise ValueError
    return number


def _read_whole(value: Any, low: int = 0, high: float = math.inf) -> int:
    number = _read_number(value, low, high)
    if number != int(number):
        raise ValueError
    return int(number)


FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def _read_flag(value: Any) -> bool:
    return FLAGS[str(value).strip().lower()]


def _list_of(
    read: Callable[[Any], Any], gaps: bool = False, semicolons: bool = True
) -> Callable[[Any], list[Any]]:
    """A reader of lists, or of their text: JSON, or (``semicolons``) items with these between; with
    ``gaps`` some may be null."""

    def read_list(value: Any) -> list[Any]:
        if isinstance(value, str):
            text = value.strip()
            if text.startswith("["):
                value = json.loads(text)
            elif semicolons and "|" not in text and on_one_line(text):
                value = [item.strip() for item in text.split(";")]
        if not isinstance(value, list | tuple | np.ndarray) or len(value) == 0:
            raise ValueError
        return [
            None if gaps and _is_empty(item) else read(item)
            for item in _without_arrays(value)
        ]

    return read_list


def _without_arrays(value: Any) -> Any:
    """Arrays and tuples, also inside each other, as lists; any other value as it is."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_without_arrays(item) for item in value]
    return value


def _read_token(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _read_logprob(value: Any) -> float:
    if _is_missing(value) or is_untold(float(value)):
        raise Untold
    logprob = _read_number(value, high=ROUNDING)
    return min(logprob, 0.0)


def _read_alternative(value: Any) -> tuple[str, float]:
    token, logprob = _without_arrays(value)
    return _read_token(token), _read_logprob(logprob)


def _read_alternatives(value: Any) -> tuple[tuple[str, float], ...]:
    alternatives = _list_of(_read_alternative)(value)
    if not are_alternatives(alternatives):
        raise ValueError
    return tuple(alternatives)


def _read_score(value: Any) -> str:
    """A stated score as the words of a reply: a number stands in brackets, text stays."""
    try:
        float(value)
    except ValueError:
        return _read_text(value)
    score = _read_number(value, 0, 100)
    return f"[{score:.12g}]"


def _read_guesses(value: Any) -> str:
    """The chances of five guesses as the words of a reply; text stays."""
    if isinstance(value, str):
        is_list = value.strip().startswith("[") or ";" in value
        if not is_list:
            return _read_text(value)
    scores = _list_of(partial(_read_number, low=0, high=100))(value)
    if len(scores) != 5:
        raise ValueError
    words = [f"G{number}: [{score:.12g}]" for number, score in enumerate(scores, 1)]
    return " ".join(words)


def _read_verdict(value: Any) -> str:
    """A verdict as the words of a reply: True, False or text."""
    if str(value).strip().lower() in FLAGS:
        return str(_read_flag(value))
    return _read_text(value)


def _read_criteria(value: Any) -> tuple[Evidence, ...]:
    """MedConf's criteria; those without an id or a description are numbered."""
    rows = json.loads(value) if isinstance(value, str) else _without_arrays(value)
    criteria: list[dict[str, Any]] = []
    for number, row in enumerate(rows, 1):
        criterion = {"id": number, "description": f"criterion {number}"}
        for name, entry in row.items():
            if entry is not None:
                criterion[name] = entry
        criteria.append(criterion)
    profile = read_profile(json.dumps(criteria))
    evidence, _ = read_evidence(json.dumps({"criteria": criteria}), profile, "")
    return evidence


def _read_bounds(value: Any) -> dict[str, str]:
    bounds = json.loads(value) if isinstance(value, str) else dict(value)
    if not bounds.keys() <= set(TokenTrace.ARRAYS) or set(bounds.values()) - {
        "lower",
        "upper",
    }:
        raise ValueError
    return bounds


READERS: dict[str, Callable[[Any], Any]] = {
    "text": _read_text,
    "answer": _read_answer,
    "name": _read_name,
    "names": _list_of(_read_name),
    "answers": _list_of(_read_answer, gaps=True),
    # sentences contain them
    "texts": _list_of(_read_text, gaps=True, semicolons=False),
    "flag": _read_flag,
    "verdicts": _list_of(_read_verdict, gaps=True),
    "level": partial(_read_whole, low=1, high=100),
    "whole": _read_whole,
    "percent": partial(_read_number, low=0, high=100),
    "share": partial(_read_number, low=0, high=1),
    "number": partial(_read_number, low=-1e308),
    "score": _read_score,
    "guesses": _read_guesses,
    "tokens": _list_of(_read_token),
    "token_lists": _list_of(_list_of(_read_token), gaps=True),
    "logprobs": _list_of(_read_logprob),
    "logprob_lists": _list_of(_list_of(_read_logprob), gaps=True),
    "nats": _list_of(partial(_read_number, low=-ROUNDING, high=MOST_NATS)),
    "certainties": _list_of(partial(_read_number, low=-ROUNDING, high=-SENTINEL)),
    "distances": _list_of(
        partial(_read_number, low=-ROUNDING, high=math.nextafter(1, 0))
    ),
    "alternatives": _list_of(_read_alternatives),
    "bounds": _read_bounds,
    "evidence": _read_criteria,
}
COLUMNS = {
    name: Column(**column)
    for name, column in read_yaml(Path(__file__).with_name("columns.yml")).items()
}
"""Column -> what it may hold. A row an answer; only ``case_id``, ``answer``, and ``truth`` or
``correct`` are needed."""
NEEDED_BY = {
    need: name for name, column in COLUMNS.items() for need in column.needed_by.split()
}
"""What methods read -> the column that it comes from."""
COPIED_ROWS, COPIED_SHARE = 20, 0.95
"""From so many rows with several whole replies on, and where in so large a share of them these are
one text, the replies of a model are copies."""
OF_TOKENS = (*TokenTrace.ARRAYS, "alternatives")
NOT_SPELT = (
    "the tokens do not spell the answer: no log-probability here is the answer's"
)
OPTION, MARGIN = "probability:option", "confidence:option_margin"
"""Own scores that options with their log-likelihoods give."""
OF_SAMPLES = [need for need, name in NEEDED_BY.items() if name.startswith("sample")]
NOT_HERE = dict.fromkeys(
    ["panel", "panel.cosines"], "a table of replies has no panel of doctors"
)
NOT_HERE["exact"] = "a table of replies has no exact posterior"


@dataclass(frozen=True)
class RecordedReplies:
    """Replies of a table, in its order: ``views``, ``generations``, and of each row ``correct``
    (``None``: to be graded), why there is no verdict, how many samples it counts, and whether
    its whole replies are one text (``None``: fewer than two). ``own``: methods of the table's own;
    ``log``: what a manifest says of another tool's log, as "log"; ``shares``: of each row, option
    -> its share of the options' likelihood."""

    file: Path | str
    views: list[View]
    generations: list[Generation]
    correct: list[bool | None]
    missing: list[str]
    n_samples: list[int | None]
    alike: list[bool | None]
    own: list[str]
    log: Mapping[str, Any]
    shares: list[Mapping[str, float]]


@runtime_checkable
class ArrowStream(Protocol):
    """A frame of another library (polars, pyarrow)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Its rows, for whoever reads Arrow."""
        ...


Table = pd.DataFrame | ArrowStream | Log | str | Path


def read_replies(
    table: Table, parameters: Parameters, seed: int = 0
) -> RecordedReplies:
    """The replies of a frame, of a file (``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``) or of
    another tool's log (:mod:`trustlab.datasets.foreign_logs`).
    Columns: :data:`COLUMNS`; a warning names others. ``TypeError``: none of these.
    :class:`~trustlab.datasets.DataError`: a column that lacks, a row that breaks the format, and a
    case, level and model that come twice in a data set."""
    if isinstance(table, str | Path):
        table = Path(table).expanduser()
        if table.is_file() and kind_of(table):
            table = read_log(table)
    file, rows = _read_rows(table)
    if not rows:
        raise DataError(file, None, "rows", "none", "a row an answer")
    names = dict.fromkeys(name for row in rows for name in row)
    _check_names(file, list(names))
    own = list(filter(is_own, names))
    if "option_logprobs" in names:
        own += [OPTION, MARGIN]
    reasons = _reasons_by_need(rows, own)
    log = {"log": table.facts} if isinstance(table, Log) else {}
    replies = RecordedReplies(file, [], [], [], [], [], [], own, log, [])
    row_of_answer: dict[tuple[str, str, int, str], int] = {}
    for number, row in enumerate(rows, 1):
        bad = partial(DataError, file, number)
        values, untold_reasons = _read_cells(bad, row)
        if "answer.logprobs" in untold_reasons:
            values.pop("alternatives", None)  # which are read beside them
        replies.shares.append(_add_option_scores(bad, values))
        _add_row(replies, bad, values, parameters, seed, reasons | untold_reasons)
        view = replies.views[-1]
        model = replies.generations[-1].model
        answer_key = (view.case.dataset, view.case.case_id, view.level, model)
        if answer_key in row_of_answer:
            first_row = row_of_answer[answer_key]
            words = f"a data set, case, level and model once (row {first_row} has it)"
            raise bad("case_id", view.case.case_id, words)
        row_of_answer[answer_key] = number
    _check_percent(file, replies.generations)
    _refuse_copies(replies)
    warn_of_encoded(file, rows, stacklevel=4)
    return replies


def _read_rows(table: Table) -> tuple[Path | str, list[dict[str, Any]]]:
    """How errors name the table, and its rows."""
    if isinstance(table, Log):
        return table.file, table.rows
    if isinstance(table, pd.DataFrame):
        return "a table", _frame_rows("a table", table)
    if isinstance(table, ArrowStream):
        import pyarrow

        rows = pyarrow.table(table).to_pylist()
        return "a table", _frame_rows("a table", pd.DataFrame(rows))
    if not isinstance(table, Path):
        kind = type(table).__name__
        raise TypeError(f"replies are {kind}; they must be a DataFrame or a path")
    suffix = table.suffix.lower()
    if not table.is_file() or suffix not in (*DELIMITERS, ".jsonl", ".parquet"):
        words = f"a file that exists, {KINDS}"
        raise DataError(table, None, "file", table.name, words)
    if suffix != ".parquet":
        return table, table_rows(table)
    try:
        frame = pd.read_parquet(table)
    except (OSError, ValueError) as error:
        words = "a whole Parquet file"
        raise DataError(table, None, "file", str(error), words) from error
    return table, _frame_rows(table, frame)


def _frame_rows(file: Path | str, table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, what is empty as ``None``; ``case_id`` and the like may be its index."""
    if any(name in COLUMNS for name in table.index.names):
        table = table.reset_index()
    table = table.rename(columns=str)
    check_columns(file, list(table.columns))
    rows: list[dict[str, Any]] = table.to_dict("records")  # type: ignore
    for number, row in enumerate(rows, 1):
        for name, value in row.items():
            try:
                if _is_empty(value):
                    row[name] = None
            except (TypeError, ValueError) as error:
                kind = type(value).__name__
                raise DataError(
                    file, number, name, kind, "a text, a number or a list"
                ) from error
    return rows


def _is_empty(value: Any) -> bool:
    if isinstance(value, list | tuple | dict | np.ndarray):
        return len(value) == 0
    return bool(pd.isna(value)) or value == ""


def _is_missing(value: Any) -> bool:
    """Whether a cell is empty, or holds what another program writes for that."""
    if isinstance(value, str) and len(value) < 10 and normalise(value) in NO_NAMES[1:]:
        return True
    return _is_empty(value)


def _check_names(file: Path | str, names: Sequence[str]) -> None:
    """Refuse what lacks a column; warn of what is not read."""
    bad = partial(DataError, file, None)
    lacking = [name for name in ("case_id", "answer") if name not in names]
    if {"options", "option_logprobs"} <= set(names) and "case_id" in names:
        lacking = []  # the likeliest is the answer
    if lacking:
        raise bad("columns", names, f"{', '.join(lacking)} among them")
    if {"truth", "correct", "missing"}.isdisjoint(names):
        words = "truth or correct among them; or missing, which says in each row why neither is"
        raise bad("columns", names, words)
    strange = [name for name in names if not _column_of(name)]
    if strange:
        warnings.warn(f"columns that are not read: {', '.join(strange)}", stacklevel=5)


def _column_of(name: str) -> Column | None:
    """The column that a name stands for; ``None`` where there is none."""
    if is_own(name) or name.startswith(GROUP):
        name = f"{name.partition(':')[0]}:NAME"
    return COLUMNS.get(name)


def _reasons_by_need(
    rows: Sequence[Mapping[str, Any]], own: Iterable[str]
) -> dict[str, str]:
    """What methods read, and own scores -> why a row of the table has none of it."""
    filled = {name for row in rows for name, value in row.items() if value is not None}
    reasons = dict(NOT_HERE)
    for need, name in NEEDED_BY.items():
        reasons[need] = f"the table has no {name}"
        if name in filled:
            reasons[need] = f"{name} is empty in this row"
    reasons |= {name: f"{name} is empty in this row" for name in own}
    reasons |= dict.fromkeys(
        (OPTION, MARGIN), "no likelihood of the answer among options"
    )
    return reasons


def _read_cells(
    bad: Bad, row: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Column -> its value in a row, of the columns that are read and hold one; what methods read ->
    why it lacks where a cell leaves out a token."""
    values = {}
    untold_reasons: dict[str, str] = {}
    for name, cell in row.items():
        column = _column_of(name)
        # a case may be called NA, and a model may say so
        is_blank = _is_empty if name in ("case_id", "answer") else _is_missing
        if column is None or is_blank(cell):
            continue
        try:
            values[name] = READERS[column.read](cell)
        except Untold:
            lack = "lacks a token in this row: -9999, -inf or nothing stands there"
            needs = column.needed_by.split()
            untold_reasons |= dict.fromkeys(needs, f"{name} {lack}")
        except UNREADABLE as error:
            raise bad(name, _without_arrays(cell), column.allowed) from error
    return values, untold_reasons


def _add_option_scores(bad: Bad, values: dict[str, Any]) -> dict[str, float]:
    """Add to a row's values what options with log-likelihoods say of its answer: its probability
    among them, and by how much that is above the largest other one. Without an answer the likeliest
    option is it. Returns the options' shares."""
    if "options" not in values or "option_logprobs" not in values:
        return {}
    options = values["options"]
    chances = softmax(values["option_logprobs"])
    names = [normalise(str(option)) for option in options]
    if not len(set(names)) == len(options) == len(chances) >= 2:
        count = f"{len(options)} options, {len(chances)} option_logprobs"
        raise bad(
            "options", count, "as many of each, two or more, and each option once"
        )
    if "missing" not in values:
        values.setdefault("answer", options[int(chances.argmax())])
    answer = normalise(values.get("answer", ""))
    if answer in names:
        place = names.index(answer)
        others = np.delete(chances, place)
        values[OPTION] = float(chances[place])
        values[MARGIN] = float(chances[place] - others.max())
    return dict(zip(names, chances.tolist(), strict=True))


def option_shares(table: Table) -> pd.DataFrame:
    """The options of a table of replies with their shares of the likelihood, a row an option: for
    :func:`trustlab.conformal_sets`. The right one is named by ``truth`` or ``accepted``; a row
    without options is left out. As :func:`read_replies`."""
    replies = read_replies(table, PARAMETERS)
    rows = []
    for view, record, shares in zip(
        replies.views, replies.generations, replies.shares, strict=True
    ):
        case = view.case
        right_names = [normalise(name) for name in case.accepted]
        for option, share in shares.items():
            keys = (record.case_id, case.dataset, record.level, record.model)
            rows.append((*keys, option, share, option in right_names))
    columns = ["case_id", "dataset", "level", "model", "option", "probability", "right"]
    return pd.DataFrame(rows, columns=columns)


def spells(tokens: Iterable[str], text: str) -> bool:
    """Whether tokens are those of a text, but for blanks, signs and marks of a template. Where they
    are a tokenizer's own ("Ġthe") or parts of characters, letters from a to z and digits tell."""
    spelt = own_words("".join(tokens)).casefold()
    for signs in (r"[\W_]", "[^a-z0-9]"):
        letters = re.sub(signs, "", text.casefold())
        if letters and letters == re.sub(signs, "", spelt):
            return True
    return False


def _unspelt(values: Mapping[str, Any]) -> dict[str, str]:
    """What methods read of tokens that do not spell the answer, or a sample -> why it lacks."""
    columns: set[str] = set()
    tokens = values.get("tokens")
    answer = values.get("answer")
    if tokens and answer and not spells(tokens, answer):
        columns |= {"tokens", *OF_TOKENS}
    token_lists = values.get("sample_tokens", ())
    for text, tokens in zip(values.get("samples", ()), token_lists, strict=False):
        if text and tokens and not spells(tokens, text):
            columns |= {"sample_tokens", "sample_logprobs"}
    columns &= values.keys()
    return {need: NOT_SPELT for need, name in NEEDED_BY.items() if name in columns}


def _check_percent(file: Path | str, generations: Sequence[Generation]) -> None:
    """Refuse a model's column of scores of which half or more are shares of one: read as percent
    they would all be near 0."""
    for name in ("ce", "cot_ce", "topk_ce", "medconf"):
        scores_by_model: dict[str, list[float]] = {}
        for generation in generations:
            percent = 100 * METHODS[name].evaluate(generation).confidence
            if percent > 0:  # not one that is missing
                scores_by_model.setdefault(generation.model, []).append(percent)
        for scores in scores_by_model.values():
            n_shares = sum(score < 1 for score in scores)
            if max(scores) <= 1 or 2 * n_shares >= len(scores):
                words = "percent, 0 to 100; most of this column are at most 1, as shares of one"
                words += " are: multiply shares by 100"
                raise DataError(file, None, name, scores[0], words)


def _add_row(
    replies: RecordedReplies,
    bad: Bad,
    row: Mapping[str, Any],
    parameters: Parameters,
    seed: int,
    reasons: Mapping[str, str],
) -> None:
    """Add what the values of one row say: a view, a generation and its verdict."""
    _check_verdict(bad, row)
    answer = row.get("answer")
    why_missing = row.get("missing", "")
    patient = row.get("patient")
    statements = () if patient is None else (Statement(patient),)
    truth = row.get("truth", "")
    accepted = tuple(dict.fromkeys((truth, *row.get("accepted", ()))))
    groups = {name: value for name, value in row.items() if name.startswith(GROUP)}
    case = Case(
        row["case_id"],
        row.get("dataset", "table"),
        statements,
        truth,
        accepted,
        groups,
    )
    view = View(case, row.get("level", 100), statements)
    samples = _read_samples(bad, row)
    sample_texts = [sample.text for sample in samples or ()]
    assessment = _make_assessment(row, reasons)
    if answer is None:
        reply = Reply(None, missing=why_missing or NO_DIAGNOSIS)
    else:
        reply = Reply(answer, _make_trace(bad, row, "tokens", OF_TOKENS))
    unspelt = _unspelt(row)
    if "relevance" in unspelt:
        reply = replace(reply, trace=None)
    if samples and "sample_relevance" in unspelt:
        samples = tuple(replace(sample, trace=None) for sample in samples)
    generation = Generation(
        case_id=case.case_id,
        level=view.level,
        model=row.get("model", "model"),
        seed=seed,
        n_statements=row.get("n_statements", 0),
        n_total=row.get("n_total", 0),
        n_words=row.get("n_words", view.n_words),
        answer=reply,
        samples=samples,
        n_wordings=len(set(sample_texts)) if len(sample_texts) > 1 else None,
        probes=_make_probes(row),
        assessment=assessment,
        parameters=parameters,
        told=patient,
        reasons={
            "answer": "the table has no log-probabilities",
            **reasons,
            **unspelt,
        },
        own={name: value for name, value in row.items() if is_own(name)},
    )
    replies.views.append(view)
    replies.generations.append(probes_read(generation))
    replies.correct.append(row.get("correct"))
    replies.missing.append(why_missing)
    n_samples = row.get("n_samples") if samples is None else len(samples)
    replies.n_samples.append(n_samples)
    whole_texts = list(filter(None, row.get("texts", ())))
    replies.alike.append(len(set(whole_texts)) == 1 if len(whole_texts) > 1 else None)


def _check_verdict(bad: Bad, row: Mapping[str, Any]) -> None:
    """Refuse a row of no case, without a way to a verdict, or with one on no answer."""
    if "case_id" not in row:
        raise bad("case_id", None, COLUMNS["case_id"].allowed)
    has_verdict = "truth" in row or "correct" in row
    if not has_verdict and not row.get("missing", ""):
        words = "a name, or correct, in every row, or in missing why there is none"
        raise bad("truth", None, words)
    if row.get("answer") is None and row.get("correct"):
        raise bad("correct", 1, "0, or nothing, where there is no answer")


def _make_probes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Question -> the replies to it, as a model would have worded them."""
    probes: dict[str, Any] = {}
    for name in ("ce", "cot_ce", "topk_ce"):
        if name in row:
            probes[name] = (apart(Reply(row[name])),)
    if "p_true" in row:
        probes["p_true"] = tuple(apart(Reply(verdict)) for verdict in row["p_true"])
    return probes


def _make_assessment(
    row: Mapping[str, Any], reasons: Mapping[str, str]
) -> Assessment | None:
    """MedConf's score and evidence of a row; ``None`` where it has neither."""
    if "medconf" not in row and "evidence" not in row:
        return None
    evidence = row.get("evidence", ())
    score = row.get("medconf")
    return Assessment(
        str(row.get("answer")),
        profile=tuple(item.criterion for item in evidence),
        evidence=evidence,
        score=score,
        missing=reasons["assessment"] if score is None else "the table has no evidence",
    )


def _refuse_copies(replies: RecordedReplies) -> None:
    """Take the samples of a model from a data set where its replies are copies, and say why."""
    pairs = zip(replies.views, replies.generations, strict=True)
    groups = [f"{view.case.dataset}\n{record.model}" for view, record in pairs]
    alike = pd.Series(replies.alike, dtype=float)
    share_and_count = alike.groupby(groups).agg(["mean", "count"])
    for place, generation in enumerate(replies.generations):
        share, n_rows = share_and_count.loc[groups[place]]
        if n_rows >= COPIED_ROWS and share >= COPIED_SHARE:
            finding = (
                f"the whole replies are one text in {share:.1%} of {n_rows:,.0f} rows"
            )
            reason = f"copies are not samples: {finding}, as a greedy decoder's are"
            reasons = {**generation.reasons, **dict.fromkeys(OF_SAMPLES, reason)}
            replies.generations[place] = replace(
                generation, samples=None, n_wordings=None, reasons=reasons
            )


def _read_samples(bad: Bad, row: Mapping[str, Any]) -> tuple[Reply, ...] | None:
    """The readable samples, with what is known of their tokens; ``None`` without their column."""
    if "samples" not in row:
        if "sample_tokens" in row or "sample_logprobs" in row:
            raise bad("samples", None, "the samples themselves, beside their tokens")
        return None
    texts = row["samples"]
    lists_by_name: dict[str, Any] = {}
    for name in ("tokens", "logprobs"):
        column = f"sample_{name}"
        if column in row:
            lists_by_name[name] = row[column]
            if len(row[column]) != len(texts):
                words = f"one for each of the {len(texts)} samples"
                raise bad(column, f"{len(row[column])} lists", words)
    samples = []
    for place, text in enumerate(texts):
        if text is None:
            continue
        own_lists = {
            name: lists[place]
            for name, lists in lists_by_name.items()
            if lists[place] is not None
        }
        trace = _make_trace(
            bad, own_lists, f"sample {place + 1}, tokens", ("logprobs",)
        )
        samples.append(Reply(text, trace))
    return tuple(samples)


def _make_trace(
    bad: Bad, row: Mapping[str, Any], where: str, names: Iterable[str]
) -> TokenTrace | None:
    """Token statistics of equal lengths; ``None`` where there are none."""
    lists = {name: row[name] for name in (*names, "tokens") if name in row}
    if "alternatives" in lists and not {"tokens", "logprobs"} <= set(row):
        raise bad("alternatives", "alone", "tokens and logprobs beside them")
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise bad(where, counts, "as many of each, one for each token")
    if not lists:
        return None
    return TokenTrace(
        tokens=tuple(lists.get("tokens", ())),
        logprobs=_float_array(lists.get("logprobs")),
        entropies=_float_array(lists.get("entropies")),
        renyi=_float_array(lists.get("renyi")),
        fisher_rao=_float_array(lists.get("fisher_rao")),
        prior_logprobs=_float_array(lists.get("prior_logprobs")),
        certainty=_float_array(lists.get("certainty")),
        alternatives=lists.get("alternatives"),
        bounds=row.get("bounds", {}),
    )


def _float_array(numbers: list[float] | None) -> np.ndarray | None:
    return None if numbers is None else np.array(numbers, dtype=float)
