"""Saves a run's tables in its folder, and loads the run again from there."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from trustlab.models.cache import CALL_COLUMNS
from trustlab.paths import NOTICE, from_spreadsheet, save_json, save_tables
from trustlab.records import Generation
from trustlab.runs.folder.records_file import NAME as RECORDS
from trustlab.runs.folder.records_file import find_records, read_records, save_records
from trustlab.runs.formatted import remark_lines
from trustlab.runs.gate import without_unread
from trustlab.runs.run import ANSWERS, CONFIDENCE, FACTS, KEY_TYPES, Run
from trustlab.tables import read_text

LIBRARIES = (
    "numpy", "pandas", "scipy", "scikit-learn", "torch", "transformers", "sentence-transformers",
    "papermill",
)  # fmt: skip
RUN = "run.json"
COLUMNS = {
    "answers": ANSWERS,
    "confidence": CONFIDENCE,
    "calls": dict.fromkeys(CALL_COLUMNS, "int64")
    | {"purpose": "string", "seconds": "float64", "model": "string"},
    "facts": FACTS,
}
"""Table -> column -> its type in a Parquet file."""
LEAST = {
    "answers": (*KEY_TYPES, "answer", "correct"),
    "confidence": (*KEY_TYPES, "method", "confidence", "bound", "missing"),
    "calls": (),
    "facts": (),
}
"""Columns without which a saved table is none."""
KEPT_UP_TO = 5_000
"""Views of a run up to which its generations are kept, where ``keep_generations`` is ``None``."""


def save_run(run: Run, folder: Path, tables: bool = True, records: bool = True) -> None:
    """Write the tables (CSV, full precision), the records that the run holds, and ``run.json``
    (parameters, versions, hashes, calls); without ``tables`` and ``records`` where these are
    written already."""
    if tables:
        save_tables(run, COLUMNS, folder)
    other_kind = "parquet" if tables else "csv"
    for name in COLUMNS:  # of an earlier run
        (folder / f"{name}.{other_kind}").unlink(missing_ok=True)
    if records and run.generations:
        save_records(run.generations, folder / RECORDS)
    elif records:
        (folder / RECORDS).unlink(missing_ok=True)
    save_json(manifest(run), folder / RUN)


def manifest(run: Run) -> dict[str, Any]:
    """A run's parameters and versions, and its numbers of calls, missing values and warnings."""
    without_value: Any = run.confidence[run.confidence["missing"] != ""]
    by_reason = without_value.groupby(["method", "missing"], as_index=False).size()
    missing = by_reason.set_axis(["method", "reason", "n"], axis=1).to_dict("records")
    versions = {}
    for library in (*LIBRARIES, "trustlab"):
        with suppress(PackageNotFoundError):  # torch and what needs it are an extra
            versions[library] = version(library).split("+")[0]
    return {
        "notice": NOTICE,
        "benchmark": run.parameters,
        "calls_made": int(run.calls["n_made"].to_numpy().sum()),
        "calls_from_cache": int(run.calls["n_cached"].to_numpy().sum()),
        "missing": missing,
        "warnings": remark_lines(run.parameters),
        "versions": versions,
    }


def load_run(folder: str | Path, records: bool | None = None) -> Run:
    """A saved run, from its folder alone: no model, no encoder, no download.
    It has the tables, the parameters and, if they were saved and ``records`` is true, the
    generations; ``None``: only if the run has at most :data:`KEPT_UP_TO` answers. ``ValueError``: a
    folder that is no run's, with what is missing, or a damaged file, with its line.
    ``FileNotFoundError``: there is no such folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    file = folder / RUN
    if not file.is_file():
        raise ValueError(f"{folder} has no {RUN}: {_runs_below(folder)}")
    try:
        facts = dict(json.loads(file.read_text(encoding="utf-8"))["benchmark"])
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(
            f"{file} is not that of a benchmark's run: {error!r}"
        ) from error
    tables = {name: _load_table(folder, name) for name in COLUMNS}
    if records is None:
        records = len(tables["answers"]) <= KEPT_UP_TO
    generations = ()
    if records and (folder / RECORDS).is_file():
        generations = read_records(folder / RECORDS)
    run = Run(**tables, parameters=facts, generations=generations, folder=folder)
    return without_unread(run)


def of_answer(
    run: Run, model: str, case_id: str, level: int
) -> tuple[pd.DataFrame, pd.DataFrame, Generation | None]:
    """Of one answer: its row of ``answers`` (none where there is no such answer), its rows of
    ``confidence``, and its record from the run or its folder, where it was kept."""
    places = _places_in(run)
    key = (model, case_id, level)
    answers = run.answers.iloc[places.answers.get(key, [])]
    confidence = run.confidence.iloc[places.confidence.get(key, [])]
    record = places.records.get(key)
    if not run.generations and run.folder:
        file = run.folder / RECORDS
        if file.is_file():
            record = next(find_records(file, {(case_id, level, model)}), None)
    return answers, confidence, record


class Places(NamedTuple):
    """(model, case, level) -> places of rows of answers, of confidences, and the record."""

    answers: dict[Any, Any]
    confidence: dict[Any, Any]
    records: dict[Any, Generation]


def _places_in(run: Run) -> Places:
    """The places in a run, looked up once. ``ValueError`` where a case's id is in two data sets:
    records do not say which."""
    if "_places" not in vars(run):
        cases: Any = run.answers[["dataset", "case_id"]].drop_duplicates()
        repeated = cases.loc[cases["case_id"].duplicated(keep=False)]
        if len(repeated):
            name = repeated["case_id"].iloc[0]
            sets = ", ".join(sorted(set(repeated["dataset"])))
            doubt = f"the case id {name!r} is in several data sets ({sets})"
            raise ValueError(
                f"no answer can be shown: {doubt}; give each case an id of its own"
            )
        keys = ["model", "case_id", "level"]
        answers = run.answers.groupby(keys, observed=True).indices
        confidence = run.confidence.groupby(keys, observed=True).indices
        records = {}
        for record in run.generations:
            records[record.model, record.case_id, record.level] = record
        vars(run)["_places"] = Places(answers, confidence, records)
    return vars(run)["_places"]


def table_in(folder: Path, name: str) -> Path:
    """The file of a run's table; ``ValueError`` where the folder has none."""
    file = find_table(folder, name)
    if file is None:
        raise ValueError(
            f"{folder} has no {name}.csv or {name}.parquet: {_runs_below(folder)}"
        )
    return file


def _runs_below(folder: Path) -> str:
    """Why a folder is no run's, with the runs that are below it."""
    runs = sorted(str(file.parent.relative_to(folder)) for file in folder.rglob(RUN))
    if not runs:
        return "it is no run's folder"
    return f"it is no run's folder; below it are those of {', '.join(runs)}"


def find_table(folder: Path, name: str) -> Path | None:
    """The file of a run's table, Parquet before CSV, or ``None``."""
    for kind in ("parquet", "csv"):
        file = folder / f"{name}.{kind}"
        if file.is_file():
            return file
    return None


def read_table(file: Path) -> pd.DataFrame:
    """A run's table from its file, as it was before it was saved, text as text: a case may be
    called 007, an answer NA."""
    table: Any = pd.read_parquet(file) if file.suffix == ".parquet" else _read_csv(file)
    for column in ("bound", "missing"):
        if column in table:
            table[column] = table[column].fillna("")
    return table


def _read_csv(file: Path) -> pd.DataFrame:
    kinds: dict[str, str] = {}
    for columns in COLUMNS.values():
        kinds |= columns
    text_columns: Any = {
        name: "str" for name, kind in kinds.items() if kind == "string"
    }
    missing_words: Any = {}
    for name in kinds:
        if name not in text_columns:
            missing_words[name] = ["", "NA", "NaN", "nan"]
    missing_words["answer"] = [""]  # other texts are empty, never missing
    table: Any = pd.read_csv(
        io.StringIO(read_text(file)),
        dtype=text_columns,
        keep_default_na=False,
        na_values=missing_words,
    )
    for name in text_columns:
        if name in table:
            table[name] = table[name].map(from_spreadsheet)
    for name in ("answer", "n_samples"):
        if name in table and not table[name].count():
            table[name] = pd.Series([None] * len(table), dtype=object)
    return table


def _load_table(folder: Path, name: str) -> pd.DataFrame:
    if not LEAST[name] and find_table(folder, name) is None:
        return pd.DataFrame(columns=list(COLUMNS[name]))
    table = read_table(table_in(folder, name))
    lacking = [column for column in LEAST[name] if column not in table]
    if lacking:
        raise ValueError(f"the columns of {name} in {folder} lack {', '.join(lacking)}")
    return table
