"""Saves a run's tables in its folder, and loads the run again from there."""

from __future__ import annotations

import io
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.models.cache import CALL_COLUMNS
from trustlab.paths import NOTICE, from_spreadsheet, save_json, save_tables
from trustlab.records import Generation
from trustlab.runs.folder.records_file import NAME as RECORDS
from trustlab.runs.folder.records_file import find_records, read_records, save_records
from trustlab.runs.formatted import remark_lines
from trustlab.runs.gate import without_unread
from trustlab.runs.run import ANSWERS, CONFIDENCE, Run
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
}
"""Table -> column -> its type in a Parquet file."""
_KEYS = ("case_id", "dataset", "level", "model")
LEAST = {
    "answers": (*_KEYS, "answer", "correct"),
    "confidence": (*_KEYS, "method", "confidence", "bound", "missing"),
    "calls": (),
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
    for name in COLUMNS:  # of an earlier run
        (folder / f"{name}.{'parquet' if tables else 'csv'}").unlink(missing_ok=True)
    if records and run.generations:
        save_records(run.generations, folder / RECORDS)
    elif records:
        (folder / RECORDS).unlink(missing_ok=True)
    save_json(manifest(run), folder / RUN)


def manifest(run: Run) -> dict[str, Any]:
    """What a reader needs to know to make the run again, and how many calls were made and taken
    from the cache."""
    lost: Any = run.confidence[run.confidence["missing"] != ""]
    lost = sorted(lost.groupby(["method", "missing"]).size().items())
    return {
        "notice": NOTICE,
        "benchmark": run.parameters,
        "calls_made": int(run.calls["n_made"].to_numpy().sum()),
        "calls_from_cache": int(run.calls["n_cached"].to_numpy().sum()),
        "missing": [{"method": m, "reason": r, "n": int(n)} for (m, r), n in lost],
        "warnings": remark_lines(run.parameters),
        "versions": {name: version(name).split("+")[0] for name in (*LIBRARIES, "trustlab")},
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
    if not (file := folder / RUN).is_file():
        raise ValueError(f"{folder} has no {RUN}: {_no_run(folder)}")
    try:
        facts = dict(json.loads(file.read_text(encoding="utf-8"))["benchmark"])
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{file} is not that of a benchmark's run: {error!r}") from error
    tables = {name: _table(folder, name) for name in COLUMNS}
    kept = folder / RECORDS
    wanted = len(tables["answers"]) <= KEPT_UP_TO if records is None else records
    made = read_records(kept) if wanted and kept.is_file() else ()
    return without_unread(Run(**tables, parameters=facts, generations=made, folder=folder))


def of_answer(
    run: Run, model: str, case_id: str, level: int
) -> tuple[pd.DataFrame, pd.DataFrame, Generation | None]:
    """Of one answer: its row of ``answers`` (none where there is no such answer), its rows of
    ``confidence``, and its record from the run or its folder, where it was kept."""
    answers, confidence, records = _places(run)
    key = (model, case_id, level)
    record = records.get(key)
    if not run.generations and run.folder and (kept := run.folder / RECORDS).is_file():
        record = next(find_records(kept, {(case_id, level, model)}), None)
    rows = run.answers.iloc[answers.get(key, [])], run.confidence.iloc[confidence.get(key, [])]
    return *rows, record


def _places(run: Run) -> tuple[dict[Any, Any], ...]:
    """(model, case, level) -> places of rows of answers, of confidences, and the record; looked up
    once a run. ``ValueError`` where a case's id is in two data sets: records do not say which."""
    if "_places" not in vars(run):
        cases: Any = run.answers[["dataset", "case_id"]].drop_duplicates()
        again = cases.loc[cases["case_id"].duplicated(keep=False)]
        if len(again):
            name, sets = again["case_id"].iloc[0], ", ".join(sorted(set(again["dataset"])))
            told = f"the case id {name!r} is in several data sets ({sets})"
            raise ValueError(f"no answer can be shown: {told}; give each case an id of its own")
        keys = ["model", "case_id", "level"]
        tables = (run.answers, run.confidence)
        found = [table.groupby(keys, observed=True).indices for table in tables]
        records = {(g.model, g.case_id, g.level): g for g in run.generations}
        vars(run)["_places"] = (*found, records)
    return vars(run)["_places"]


def table_in(folder: Path, name: str) -> Path:
    """The file of a run's table; ``ValueError`` where the folder has none."""
    if found := find_table(folder, name):
        return found
    raise ValueError(f"{folder} has no {name}.csv or {name}.parquet: {_no_run(folder)}")


def _no_run(folder: Path) -> str:
    runs = sorted(str(file.parent.relative_to(folder)) for file in folder.rglob(RUN))
    return "it is no run's folder" + (f"; below it are those of {', '.join(runs)}" if runs else "")


def find_table(folder: Path, name: str) -> Path | None:
    """The file of a run's table, Parquet before CSV, or ``None``."""
    files = (folder / f"{name}.{kind}" for kind in ("parquet", "csv"))
    return next((file for file in files if file.is_file()), None)


def read_table(file: Path) -> pd.DataFrame:
    """A run's table from its file, as it was before it was saved, text as text: a case may be
    called 007, an answer NA."""
    if file.suffix == ".parquet":
        table = pd.read_parquet(file)
    else:
        kinds = {name: kind for of in COLUMNS.values() for name, kind in of.items()}
        words: Any = {name: "str" for name, kind in kinds.items() if kind == "string"}
        none: Any = {c: ["", "NA", "NaN", "nan"] for c in kinds if c not in words}
        none |= {"answer": [""]}  # other texts are empty, never missing
        how: dict[str, Any] = {"dtype": words, "keep_default_na": False, "na_values": none}
        table: Any = pd.read_csv(io.StringIO(read_text(file)), **how)
        table = table.assign(**{c: table[c].map(from_spreadsheet) for c in words if c in table})
        lost = [c for c in ("answer", "n_samples") if c in table and not table[c].count()]
        table = table.assign(**{c: pd.Series([None] * len(table), dtype=object) for c in lost})
    return table.assign(**{c: table[c].fillna("") for c in ("bound", "missing") if c in table})


def _table(folder: Path, name: str) -> pd.DataFrame:
    if not LEAST[name] and find_table(folder, name) is None:
        return pd.DataFrame(columns=list(COLUMNS[name]))
    table = read_table(table_in(folder, name))
    if lacking := [c for c in LEAST[name] if c not in table]:
        raise ValueError(f"the columns of {name} in {folder} lack {', '.join(lacking)}")
    return table
