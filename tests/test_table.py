"""A user's own table: what data/README.md says, rows that become cases, refusals by name."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from pathlib import Path

import pytest
from each import each
from saying import saying, says
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli.commands import app
from trustlab.cli.run_notebooks import check_parameters, notebook_path
from trustlab.datasets import DataError
from trustlab.paths import DATA

TOLD = [f"Sentence number {i}." for i in range(1, 12)]
ROW = {"id": "007", "statements": TOLD, "diagnosis": "Gout"}
ROW |= {"accepted": ["Gouty arthritis"], "age": "58"}


def csv_file(folder: Path, *rows: dict, name: str = "mine.csv") -> Path:
    """The rows as a user would write them: statements on lines, names with ``;`` between."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t" if name.endswith(".tsv") else ",")
    writer.writerow(rows[0])
    between = {"statements": "\n", "accepted": "; "}
    for row in rows:
        lists = {k: v for k, v in row.items() if isinstance(v, list) and k in between}
        writer.writerow((row | {k: between[k].join(v) for k, v in lists.items()}).values())
    return written(folder, stream.getvalue(), name)


def jsonl_file(folder: Path, *rows: object) -> Path:
    told = [json.dumps(row, ensure_ascii=False) for row in rows]
    return written(folder, "\n".join(told), "mine.jsonl")


def written(folder: Path, content: str | bytes, name: str) -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


WRITERS = each("write", [csv_file, jsonl_file])


def texts(case: tl.Case) -> list[str]:
    return [s.text for s in case.statements]


def without(*columns: str, **changes: object) -> dict:
    return {k: v for k, v in (ROW | changes).items() if k not in columns}


def readme_block(language: str) -> str:
    page = (DATA / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
    return block


def test_the_lines_of_the_readme_work_as_written(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text(readme_block("csv"), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (migraine,) = tl.load_cases("table", path="mine.csv")
    assert (migraine.case_id, migraine.dataset, migraine.diagnosis) == ("007", "table", "Migraine")
    assert migraine.accepted == ("Migraine", "Migraine headache", "Migraine disorder")
    assert migraine.patient == {"age": "29"} and len(migraine.statements) == 12
    asked = "Doctor: What brings you here?\nPatient: My head is pounding, on the left side."
    assert texts(migraine)[0] == asked
    assert texts(migraine)[-1] == "I take no medicines, apart from paracetamol."

    program, _, notebook, *options = readme_block("sh").split()
    assert (program, notebook) == ("trustlab", "01_benchmark")
    planned = CliRunner().invoke(app, ["plan", notebook, *options])
    assert planned.exit_code == 0 and "in all" in planned.output, planned.output

    (gout,) = tl.load_cases("table", path=written(tmp_path, readme_block("json"), "mine.jsonl"))
    assert (gout.case_id, gout.accepted, gout.patient) == ("008", ("Gout", "Gouty arthritis"), {})
    assert len(gout.statements) == 11
    assert texts(gout)[4] == "He drinks beer, approx. 2 litres a day."
    assert texts(gout)[9] == "His uric acid is 9.1 mg/dl."


@WRITERS
def test_rows_become_cases_in_file_order(tmp_path: Path, write) -> None:
    rows = [ROW, ROW | {"id": "7", "age": "", "accepted": []}]
    first, second = tl.load_cases("table", path=write(tmp_path, *rows))
    assert (first.case_id, second.case_id) == ("007", "7")
    assert first.accepted == ("Gout", "Gouty arthritis") and second.accepted == ("Gout",)
    assert first.patient == {"age": "58"} and second.patient == {}
    assert texts(first) == TOLD
    assert {(s.finding, s.affirmed) for s in first.statements} == {(None, None)}


def test_tabs_byte_order_mark_and_json_values_are_read(tmp_path: Path) -> None:
    (expected,) = tl.load_cases("table", path=csv_file(tmp_path, ROW))
    assert tl.load_cases("table", path=csv_file(tmp_path, ROW, name="mine.tsv")) == [expected]
    content = (tmp_path / "mine.csv").read_bytes()
    marked = written(tmp_path, b"\xef\xbb\xbf" + content + b"\r\n\r\n", "MARKED.CSV")
    assert tl.load_cases("table", path=marked) == [expected]
    names = ROW | {"id": "b", "accepted": "Gouty arthritis; Podagra;", "age": None}
    rows = jsonl_file(tmp_path, without("accepted", age=58), names)
    first, second = tl.load_cases("table", path=rows)
    assert (first.accepted, first.patient) == (("Gout",), {"age": 58})
    assert (second.accepted, second.patient) == (("Gout", "Gouty arthritis", "Podagra"), {})


TALK = [f"Doctor: Question {i}?\nPatient: Answer {i}. And more." for i in range(11)]


@WRITERS
def test_a_doctors_line_and_the_patients_line_after_it_are_one_statement(tmp_path, write):
    rest = ["Patient: One more thing.", "Doctor: Yes?", "Doctor: Go on.\nPatient: No."]
    exchanges = ["A woman of 30 comes in.", *TALK, *rest]
    turns = "\n".join(exchanges).split("\n")
    (case,) = tl.load_cases("table", path=write(tmp_path, ROW | {"statements": turns}))
    assert texts(case) == exchanges
    whole = [*TOLD, "Doctor: A?\nPatient: B.", "Patient: C.", "Two. Sentences."]  # left as they are
    (case,) = tl.load_cases("table", path=jsonl_file(tmp_path, ROW | {"statements": whole}))
    assert texts(case) == whole


@WRITERS
def test_short_cases_are_left_out_and_counted_in_one_warning(tmp_path, write):
    short, none = {"id": "b", "statements": TOLD[:10]}, {"id": "c", "statements": []}
    rows = [ROW, ROW | short, ROW | none, ROW | {"id": "d"}]
    with pytest.warns(UserWarning) as caught:
        cases = tl.load_cases("table", path=write(tmp_path, *rows))
    (warning,) = caught
    assert warning.filename == __file__ and [c.case_id for c in cases] == ["007", "d"]
    assert says(warning.message, "2 of 4 rows", "fewer than 11", "2, 3")
    with pytest.raises(ValueError, match=saying("no case", "1 entries", "1 (1)")):
        tl.load_cases("table", path=write(tmp_path, ROW | short))
    with pytest.raises(ValueError, match=saying("no case", "0 entries")):
        tl.load_cases("table", path=written(tmp_path, "id,text,diagnosis\n", "mine.csv"))


def refused(file: Path, row: int | None, field: str) -> DataError:
    with pytest.raises(DataError) as caught:
        tl.load_cases("table", path=file)
    error = caught.value
    assert (error.file, error.row, error.field) == (str(file), row, field)
    assert error.allowed and f"received {error.value!r}"[:60] in str(error)
    return error


@WRITERS
@each(
    ("changes", "field"),
    [
        *(({"id": said}, "id") for said in ("", " \t", "007")),
        ({"id": "007", "statements": []}, "id"),
        *(({"diagnosis": d}, "diagnosis") for d in ("", "?", "NaN", "NULL", "None", "n/a")),
        *(({"accepted": ["Gout", name]}, "accepted 2") for name in ("nan", "?")),
        *(({"diagnosis": d}, "diagnosis") for d in ("Gout|Podagra", "Gout\nPodagra", "Gout\x85a")),
        *(({"accepted": [d]}, "accepted 1") for d in ("Gout|Podagra", "Gouty\narthritis", "|")),
        ({"text": "Both are filled."}, "text"),
        (dict.fromkeys(ROW, ""), "id"),
        ({"statements": [], "text": "A woman of 30.\n" + "\n".join(TALK)}, "text"),
    ],
    ids=str,
)
def test_a_bad_row_is_refused(tmp_path: Path, write, changes: dict, field: str) -> None:
    first = {"text": ""} | ROW
    refused(write(tmp_path, first, first | {"id": "b"} | changes), 2, field)


@each(
    ("column", "cell"),
    [
        ("diagnosis", "Crohn&#39;s disease"), ("accepted", ["Crohnâ€™s disease"]),
        ("statements", [*TOLD, "He is \ufffd."]), ("age", "58&nbsp;years"), ("job", "Ã¢"),
    ],
)  # fmt: skip
@WRITERS
def test_text_that_another_program_encoded_is_read_as_it_is(tmp_path, write, column, cell) -> None:
    file = write(tmp_path, {"job": "", **ROW}, {"job": "", **ROW, "id": "b", column: cell})
    with pytest.warns(UserWarning, match=rf"1 cells with .*: row 2, {column}$") as told:
        cases = tl.load_cases("table", path=file)
    assert told[0].filename == __file__ and [c.case_id for c in cases] == ["007", "b"]
    if column == "diagnosis":
        assert cases[1].diagnosis == cell


def lines(*rows: object) -> str:
    return "\n".join(map(json.dumps, rows))


OTHER = ROW | {"id": "a"}
WRONG_TYPES = [
    (ROW | {"id": 7}, "id"),
    (ROW | {"diagnosis": ["Gout"]}, "diagnosis"),
    (ROW | {"accepted": {"Gout": 1}}, "accepted"),
    (ROW | {"accepted": ["Gout", 1]}, "accepted 2"),
    (ROW | {"statements": {"1": "x"}}, "statements"),
    (ROW | {"statements": [*TOLD, 12]}, "statement 12"),
    (ROW | {"statements": [*TOLD, " "]}, "statement 12"),
    (without("statements", text=["x"]), "text"),
    *((without(column), column) for column in ("id", "diagnosis", "statements")),
    ([1], "line"),
]
HALVES = [
    ({"id": "b\ud800"}, "id"),
    ({"diagnosis": "\udfffGout"}, "diagnosis"),
    ({"statements": [*TOLD, "\ud83d"]}, "statements"),
    ({"chart": {"allergies": ["\ud83d"]}}, "chart"),
    ({"age\ud800": "58"}, "key"),
]
HALF = ("UTF-8", "surrogates")
HEADERS = [
    ("statements,diagnosis", "header", "missing: id"),
    ("id,statements", "header", "missing: diagnosis"),
    ("id,diagnosis,age", "header", ("missing", "statements", "text")),
    ("id;text;diagnosis", "header", ("commas", "missing: id, diagnosis")),
    ("id;text,diagnosis", "header", ("commas", "missing: id")),
    ("sep=,\nid,text,diagnosis", "header, column 2", "name"),
    ("", "header", "missing: id, diagnosis"),
    ("id,text,diagnosis,age,age", "header, column 5", ""),
    ("id,text,diagnosis,,age", "header, column 4", ""),
    (",id,text,diagnosis,age", "header, column 1", ("pandas", "index=False")),
]
CELLS = ["a,He coughs, and sweats.,Gout", "a,Gout", 'a,"He coughs,Gout\nb,,', 'a,"He" coughs,Gout']
CELLS += ["a,He coughs.,Gout,", "\na,He coughs.,Gout"]
ZIP, OLE = b"PK\x03\x04\x14\x00\x08\x08\x9d\xc5", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
KINDS = (".csv", ".tsv", ".jsonl", "spreadsheet", "commas", "UTF-8")
BOOKS = ((ZIP, "mine.csv"), (OLE, "mine.tsv"), (ZIP, "mine.jsonl"))
FILES = [(b"{}", f"mine{end}", KINDS) for end in ("", ".parquet", ".json", ".xlsx", ".XLS")]
MENIERE = "id,text,diagnosis\na,Ménière,b\n"
NO_OBJECTS = ("{'id': 'b'}", '{"id": "b"', "id,text", "[" * 100_000, "\n{}")
REFUSED = [
    *((lines(OTHER, row), "mine.jsonl", 2, field, "") for row, field in WRONG_TYPES),
    *((lines(OTHER, ROW | of), "mine.jsonl", 2, field, HALF) for of, field in HALVES),
    *((f"{lines(ROW)}\n{line}\n", "mine.jsonl", 2, "line", "") for line in NO_OBJECTS),
    *((f"{head}\nx,b,c,x,e\n", "mine.csv", None, *rest) for head, *rest in HEADERS),
    *((f"id,text,diagnosis\n{cells}\n", "mine.csv", 1, "row", "") for cells in CELLS),
    *(
        (MENIERE.encode(code), name, None, "encoding", (f"line {line}", "save"))
        for name in ("mine.csv", "mine.tsv", "mine.jsonl")
        for code, line in (("latin-1", 2), ("utf-16", 1))
    ),
    *((content, name, None, "file", words) for content, name, words in FILES),
    *((book, name, None, "encoding", "save") for book, name in BOOKS),
]


@each("content, name, row, field, allowed", REFUSED)
def test_what_cannot_be_read_is_refused_by_place(tmp_path, content, name, row, field, allowed):
    error = refused(written(tmp_path, content, name), row, field)
    assert (
        says(error.allowed, allowed) and str(error).encode()
    )  # the words themselves can be written


@each("content, name, words", FILES)
def test_what_is_no_table_by_its_name_is_refused_before_a_kernel(tmp_path, content, name, words):
    file = written(tmp_path, content, name)
    given = {"dataset": ["starter", "table"], "path": [None, str(file)]}
    with pytest.raises(ValueError) as told:
        check_parameters(notebook_path("01_benchmark"), given)
    assert says(told.value, file, words)
    assert "\n" not in str(told.value)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, None, "file")
