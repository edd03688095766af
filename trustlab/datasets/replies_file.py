"""Reads replies that somebody has already, from a table."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.models.ranges import MOST_NATS, ROUNDING, are_alternatives, is_untold
from trustlab.models.thought import apart
from trustlab.parsing.marks import own_words, without_footnotes
from trustlab.parsing.medconf import read_evidence, read_profile
from trustlab.parsing.scores import probes_read
from trustlab.paths import read_yaml
from trustlab.records import (
    NO_DIAGNOSIS,
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
    NO_NAMES,
    Bad,
    DataError,
    check_columns,
    is_name,
    on_one_line,
    table_rows,
    warn_of_encoded,
)

KINDS = "a .csv, .tsv, .jsonl or .parquet one"


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


def _text(value: Any) -> str:
    if isinstance(value, float) and value == int(value):
        value = int(value)  # what pandas makes of a number where another is missing
    if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
        return str(value).strip()
    raise ValueError


def _name(value: Any) -> str:
    name = _text(value)
    if not is_name(name):
        raise ValueError
    return name


def _answer(value: Any) -> str:
    """What a model names, without thought, marks of a template and citations: on one line, any
    character in it."""
    return _named_in(_text(value))


@lru_cache(maxsize=65536)
def _named_in(reply: str) -> str:
    answer = _text(without_footnotes(own_words(apart(Reply(reply)).text or "")))
    if not on_one_line(answer):
        raise ValueError
    return answer


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    number = float(value)
    if isinstance(value, bool | np.bool_) or not low <= number <= high or number == math.inf:
        raise ValueError
    return number


def _whole(value: Any, low: int = 0, high: float = math.inf) -> int:
    number = _number(value, low, high)
    if number != int(number):
        raise ValueError
    return int(number)


FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def _flag(value: Any) -> bool:
    return FLAGS[str(value).strip().lower()]


def _each(
    read: Callable[[Any], Any], gaps: bool = False, semicolons: bool = True
) -> Callable[[Any], list[Any]]:
    """A list, or as text JSON, or (``semicolons``) items with these between; with ``gaps`` some may
    be null."""

    def every(value: Any) -> list[Any]:
        if isinstance(value, str):
            shown = value.strip()
            if shown[:1] == "[":
                value = json.loads(shown)
            elif semicolons and "|" not in shown and on_one_line(shown):
                value = [item.strip() for item in shown.split(";")]
        if not isinstance(value, list | tuple | np.ndarray) or len(value) == 0:
            raise ValueError
        return [None if gaps and _empty(item) else read(item) for item in _plain(value)]

    return every


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _token(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _logprob(value: Any) -> float:
    if _missing(value) or is_untold(float(value)):
        raise Untold
    return min(_number(value, high=ROUNDING), 0.0)


def _pair(value: Any) -> tuple[str, float]:
    token, logprob = _plain(value)
    return _token(token), _logprob(logprob)


def _alternatives(value: Any) -> list[tuple[str, float]]:
    listed = _each(_pair)(value)
    if not are_alternatives(listed):
        raise ValueError
    return listed


def _score(value: Any) -> str:
    """A stated score as the words of a reply: a number stands in brackets, text stays."""
    try:
        float(value)
    except ValueError:
        return _text(value)
    return f"[{_number(value, 0, 100):.12g}]"


def _guesses(value: Any) -> str:
    if isinstance(value, str) and value.strip()[:1] != "[" and ";" not in value:
        return _text(value)
    scores = _each(partial(_number, low=0, high=100))(value)
    if len(scores) != 5:
        raise ValueError
    return " ".join(f"G{i}: [{score:.12g}]" for i, score in enumerate(scores, 1))


def _verdict(value: Any) -> str:
    return str(_flag(value)) if str(value).strip().lower() in FLAGS else _text(value)


def _evidence(value: Any) -> tuple[Evidence, ...]:
    rows = json.loads(value) if isinstance(value, str) else _plain(value)
    known = [{k: v for k, v in row.items() if v is not None} for row in rows]
    rows = [{"id": i, "description": f"criterion {i}"} | row for i, row in enumerate(known, 1)]
    return read_evidence(json.dumps({"criteria": rows}), read_profile(json.dumps(rows)), "")[0]


def _bounds(value: Any) -> dict[str, str]:
    found = json.loads(value) if isinstance(value, str) else dict(value)
    if not found.keys() <= set(TokenTrace.ARRAYS) or set(found.values()) - {"lower", "upper"}:
        raise ValueError
    return found


READERS: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "answer": _answer,
    "name": _name,
    "names": _each(_name),
    "answers": _each(_answer, gaps=True),
    "texts": _each(_text, gaps=True, semicolons=False),  # sentences contain them
    "flag": _flag,
    "verdicts": _each(_verdict, gaps=True),
    "level": partial(_whole, low=1, high=100),
    "whole": _whole,
    "percent": partial(_number, low=0, high=100),
    "score": _score,
    "guesses": _guesses,
    "tokens": _each(_token),
    "token_lists": _each(_each(_token), gaps=True),
    "logprobs": _each(_logprob),
    "logprob_lists": _each(_each(_logprob), gaps=True),
    "nats": _each(partial(_number, low=-ROUNDING, high=MOST_NATS)),
    "distances": _each(partial(_number, low=-ROUNDING, high=math.nextafter(1, 0))),
    "alternatives": _each(_alternatives),
    "bounds": _bounds,
    "evidence": _evidence,
}
COLUMNS = {
    name: Column(**column)
    for name, column in read_yaml(Path(__file__).with_name("columns.yml")).items()
}
"""Column -> what it may hold. A row an answer; only ``case_id``, ``answer``, and ``truth`` or
``correct`` are needed."""
NEEDED_BY = {need: name for name, column in COLUMNS.items() for need in column.needed_by.split()}
"""What methods read -> the column that it comes from."""
COPIED_ROWS, COPIED_SHARE = 20, 0.95
"""From so many rows with several whole replies on, and where in so large a share of them these are
one text, the replies of a model are copies."""
OF_TOKENS = (*TokenTrace.ARRAYS, "alternatives")
OF_SAMPLES = [need for need, name in NEEDED_BY.items() if name.startswith("sample")]
NOT_HERE = dict.fromkeys(["panel", "panel.cosines"], "a table of replies has no panel of doctors")
NOT_HERE["exact"] = "a table of replies has no exact posterior"


@dataclass(frozen=True)
class Kept:
    """Replies of a table, in its order: ``views``, ``generations``, and of each row ``correct``
    (``None``: to be graded), why there is no verdict, how many samples it counts, and whether
    its whole replies are one text (``None``: fewer than two)."""

    views: list[View]
    generations: list[Generation]
    correct: list[bool | None]
    missing: list[str]
    n_samples: list[int | None]
    alike: list[bool | None]


def read_replies(table: pd.DataFrame | str | Path, parameters: Parameters, seed: int = 0) -> Kept:
    """The replies of a table or of a file (``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``).
    Columns: :data:`COLUMNS`; a warning names others. ``TypeError``: neither table nor path.
    :class:`~trustlab.datasets.DataError`: a column that lacks, a row that breaks the format, and a
    case, level and model that come twice in a data set."""
    file, rows = _rows(table)
    if not rows:
        raise DataError(file, None, "rows", "none", "a row an answer")
    _check_names(file, list(dict.fromkeys(name for row in rows for name in row)))
    there = {name for row in rows for name, value in row.items() if value is not None}
    reasons = NOT_HERE | {
        need: f"{name} is empty in this row" if name in there else f"the table has no {name}"
        for need, name in NEEDED_BY.items()
    }
    kept, seen = Kept([], [], [], [], [], []), {}
    for number, row in enumerate(rows, 1):
        bad = partial(DataError, file, number)
        found = {name: _cell(bad, name, value) for name, value in row.items() if name in COLUMNS}
        found = {name: value for name, value in found.items() if value is not None}
        untold = {
            need: f"{name} lacks a token in this row: -9999, -inf or nothing stands there"
            for need, name in NEEDED_BY.items()
            if name not in found and not _missing(row.get(name))
        }
        if "answer.logprobs" in untold:
            found.pop("alternatives", None)  # which are read beside them
        _take(kept, bad, found, parameters, seed, reasons | untold)
        view = kept.views[-1]
        key = (view.case.dataset, view.case.case_id, view.level, kept.generations[-1].model)
        if key in seen:
            once = f"a data set, case, level and model once (row {seen[key]} has it)"
            raise bad("case_id", view.case.case_id, once)
        seen[key] = number
    for model in {g.model for g in kept.generations}:
        _check_percent(file, model, kept.generations)
    _refuse_copies(kept)
    warn_of_encoded(file, rows, stacklevel=4)
    return kept


def _rows(table: pd.DataFrame | str | Path) -> tuple[Path | str, list[dict[str, Any]]]:
    """How errors name the table, and its rows."""
    if isinstance(table, pd.DataFrame):
        return "table", _frame_rows("table", table)
    if not isinstance(table, str | Path):
        raise TypeError(f"replies are {type(table).__name__}; they must be a DataFrame or a path")
    file = Path(table).expanduser()
    if not file.is_file():
        raise DataError(file, None, "file", file.name, f"a file that exists, {KINDS}")
    if file.suffix.lower() != ".parquet":
        return file, table_rows(file)
    try:
        frame = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise DataError(file, None, "file", str(error), "a whole Parquet file") from error
    return file, _frame_rows(file, frame)


def _check_percent(file: Path | str, model: str, generations: Sequence[Generation]) -> None:
    """Refuse a model's column of scores of which half or more are shares of one: read as percent
    they would all be near 0."""
    for name in ("ce", "cot_ce", "topk_ce", "medconf"):
        own = (g for g in generations if g.model == model)
        every = [100 * METHODS[name].evaluate(g).confidence for g in own]
        scores = [score for score in every if score > 0]  # not those that are missing
        n_shares = sum(score < 1 for score in scores)
        if scores and (max(scores) <= 1 or 2 * n_shares >= len(scores)):
            allowed = "percent, 0 to 100; most of this column are at most 1, as shares of one are:"
            raise DataError(file, None, name, scores[0], f"{allowed} multiply shares by 100")


def _frame_rows(file: Path | str, table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, what is empty as ``None``."""
    table = table.rename(columns=str)
    check_columns(file, list(table.columns))
    rows: list[dict[str, Any]] = table.to_dict("records")  # type: ignore
    return [{name: None if _empty(value) else value for name, value in r.items()} for r in rows]


def _empty(value: Any) -> bool:
    if isinstance(value, list | tuple | dict | np.ndarray):
        return len(value) == 0
    return bool(pd.isna(value)) or value == ""


def _missing(value: Any) -> bool:
    """Whether a cell is empty, or holds what another program writes for that."""
    named = isinstance(value, str) and len(value) < 10 and normalise(value) in NO_NAMES[1:]
    return named or _empty(value)


def _check_names(file: Path | str, names: Sequence[str]) -> None:
    """Refuse what lacks a column; warn of what is not read."""
    bad = partial(DataError, file, None)
    if lacking := [name for name in ("case_id", "answer") if name not in names]:
        raise bad("columns", names, f"{', '.join(lacking)} among them")
    if not {"truth", "correct"} & set(names):
        raise bad("columns", names, "truth or correct among them")
    if strange := [name for name in names if name not in COLUMNS]:
        warnings.warn(f"columns that are not read: {', '.join(strange)}", stacklevel=5)


def _cell(bad: Bad, name: str, value: Any) -> Any:
    if _empty(value) or (_missing(value) and name not in ("case_id", "answer")):
        return None  # a case may be called NA, and a model may say so
    column = COLUMNS[name]
    try:
        return READERS[column.read](value)
    except Untold:
        return None
    except UNREADABLE as error:
        raise bad(name, _plain(value), column.allowed) from error


def _take(
    kept: Kept,
    bad: Bad,
    row: Mapping[str, Any],
    parameters: Parameters,
    seed: int,
    reasons: Mapping[str, str],
) -> None:
    """Add one row's records."""
    if "case_id" not in row:
        raise bad("case_id", None, COLUMNS["case_id"].allowed)
    answer, why = row.get("answer"), row.get("missing", "")
    if not {"truth", "correct"} & set(row) and not why:
        words = "a name, or correct, in every row, or in missing why there is none"
        raise bad("truth", None, words)
    if answer is None and row.get("correct"):
        raise bad("correct", 1, "0, or nothing, where there is no answer")
    patient, truth = row.get("patient"), row.get("truth", "")
    shown = () if patient is None else (Statement(patient),)
    accepted = tuple(dict.fromkeys((truth, *row.get("accepted", ()))))
    case = Case(row["case_id"], row.get("dataset", "table"), shown, truth, accepted)
    view = View(case, row.get("level", 100), shown)
    samples = None
    if "samples" in row:
        samples = tuple(_samples(bad, row))
    elif {"sample_tokens", "sample_logprobs"} & set(row):
        raise bad("samples", None, "the samples themselves, beside their tokens")
    probes: dict[str, Any] = {
        n: (apart(Reply(row[n])),) for n in ("ce", "cot_ce", "topk_ce") if n in row
    }
    if "p_true" in row:
        probes["p_true"] = tuple(apart(Reply(v)) for v in row["p_true"])
    assessment = None
    if {"medconf", "evidence"} & set(row):
        evidence, score = row.get("evidence", ()), row.get("medconf")
        lacks = reasons["assessment"] if score is None else "the table has no evidence"
        profile = tuple(e.criterion for e in evidence)
        assessment = Assessment(
            str(answer), profile=profile, evidence=evidence, score=score, missing=lacks
        )
    if answer is None:
        reply = Reply(None, missing=why or NO_DIAGNOSIS)
    else:
        reply = Reply(answer, _trace(bad, row, "tokens", OF_TOKENS))
    spoken = [s.text for s in samples or ()]
    made = Generation(
        case_id=case.case_id, level=view.level, model=row.get("model", "model"),
        seed=seed, n_statements=row.get("n_statements", 0), n_total=row.get("n_total", 0),
        n_words=row.get("n_words", view.n_words), answer=reply, samples=samples,
        n_wordings=len(set(spoken)) if len(spoken) > 1 else None, probes=probes,
        assessment=assessment, parameters=parameters, told=patient,
        reasons={"answer": "the table has no log-probabilities", **reasons},
    )  # fmt: skip
    kept.views.append(view)
    kept.generations.append(probes_read(made))
    kept.correct.append(row.get("correct"))
    kept.missing.append(why)
    kept.n_samples.append(row.get("n_samples") if samples is None else len(samples))
    texts = list(filter(None, row.get("texts", ())))
    kept.alike.append(len(set(texts)) == 1 if len(texts) > 1 else None)


def _refuse_copies(kept: Kept) -> None:
    """Take the samples of a model from a data set where its replies are copies, and say why."""
    owners = [
        f"{v.case.dataset}\n{g.model}" for v, g in zip(kept.views, kept.generations, strict=True)
    ]
    counts = pd.Series(kept.alike, dtype=float).groupby(owners).agg(["mean", "count"])
    for place, made in enumerate(kept.generations):
        share, n = counts.loc[owners[place]]
        if n >= COPIED_ROWS and share >= COPIED_SHARE:
            alike = f"the whole replies are one text in {share:.1%} of {n:,.0f} rows"
            why = f"copies are not samples: {alike}, as a greedy decoder's are"
            reasons = {**made.reasons, **dict.fromkeys(OF_SAMPLES, why)}
            kept.generations[place] = replace(made, samples=None, n_wordings=None, reasons=reasons)


def _samples(bad: Bad, row: Mapping[str, Any]) -> Iterator[Reply]:
    """The readable samples, with what is known of their tokens."""
    texts = row["samples"]
    beside = {n: row[f"sample_{n}"] for n in ("tokens", "logprobs") if f"sample_{n}" in row}
    for name, lists in beside.items():
        if len(lists) != len(texts):
            words = f"one for each of the {len(texts)} samples"
            raise bad(f"sample_{name}", f"{len(lists)} lists", words)
    for i, text in enumerate(texts):
        own = {name: lists[i] for name, lists in beside.items() if lists[i] is not None}
        if text is not None:
            yield Reply(text, _trace(bad, own, f"sample {i + 1}, tokens", ("logprobs",)))


def _trace(bad: Bad, row: Mapping[str, Any], where: str, names: Iterable[str]) -> TokenTrace | None:
    """Token statistics of equal lengths; ``None`` where there are none."""
    given = {name: row[name] for name in (*names, "tokens") if name in row}
    if "alternatives" in given and not {"tokens", "logprobs"} <= set(row):
        raise bad("alternatives", "alone", "tokens and logprobs beside them")
    if len(set(map(len, given.values()))) > 1:
        counts = ", ".join(f"{len(value)} {name}" for name, value in given.items())
        raise bad(where, counts, "as many of each, one for each token")
    if not given:
        return None
    listed = given.pop("alternatives", None)
    tokens = tuple(given.pop("tokens", ()))
    arrays: dict[str, Any] = {n: np.array(v, dtype=float) for n, v in given.items()}
    alternatives = None if listed is None else tuple(tuple(each) for each in listed)
    return TokenTrace(tokens, **arrays, alternatives=alternatives, bounds=row.get("bounds", {}))
