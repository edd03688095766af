"""DDXPlus: what a row becomes, which file is read, which rows are refused and how, and the real
rows."""

from __future__ import annotations

import csv
import json
import random
import re
import zipfile
from pathlib import Path

import pytest
from each import each
from made_ddxplus import (
    COLUMNS,
    ELEVEN,
    EVERY_QUIRK,
    ROW,
    evidence,
    patients,
    release,
    write_rows,
)

from trustlab.datasets import DataError, ddxplus, load_cases
from trustlab.knowledge import load_knowledge
from trustlab.paths import ROOT
from trustlab.records import Case

REAL = ROOT.parent / "shared" / "datasets" / "ddxplus"


def said(case: Case, finding: str) -> tuple[str, bool | None]:
    (found,) = [s for s in case.statements if s.finding == finding]
    return found.text, found.affirmed


def ours(finding: str, affirmed: bool, value: str = "") -> list[str]:
    f = load_knowledge().findings[finding]
    return [
        f"Doctor: {f.question}\nPatient: {words.replace('{value}', value)}"
        for words in (f.affirm if affirmed else f.deny)
    ]


def test_ddxplus_without_data_says_what_to_download(tmp_path: Path) -> None:
    needed = r"release_evidences.json.*release_test_patients.zip.*figshare article 22687585.*CC BY"
    for path in (None, tmp_path / "absent", tmp_path):
        with pytest.raises(ValueError, match=needed):
            load_cases("ddxplus", path=path)


def test_ddxplus_names_the_json_file_that_is_not_there(tmp_path: Path) -> None:
    (release(tmp_path) / "release_evidences.json").unlink()
    with pytest.raises(ValueError, match=r"^release_evidences.json is not in .*22687585"):
        load_cases("ddxplus", path=tmp_path)


def test_a_file_without_a_long_enough_case_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path, [ROW | {"EVIDENCES": "['E_91']"}])
    with pytest.raises(
        ValueError,
        match=r"no case to use: 1 entries read, dropped fewer than 11 statements: 1 \(1\)",
    ):
        load_cases("ddxplus", path=folder)


# -- what a row becomes
# ---------------------------------------------------------------------------------------------


def test_ten_statements_are_left_out_and_eleven_are_a_case(tmp_path: Path) -> None:
    found = ddxplus.read(release(tmp_path))
    assert (found.n_entries, found.dropped) == (3, {"fewer than 11 statements": ["2"]})
    assert [(c.case_id, len(c.statements)) for c in found.cases] == [
        ("ddxplus-1", 15),
        ("ddxplus-3", 11),
    ]


def test_who_the_patient_is_and_what_counts_as_right(tmp_path: Path) -> None:
    first, last = load_cases("ddxplus", path=release(tmp_path))
    assert (first.dataset, first.diagnosis, first.accepted) == (
        "ddxplus",
        "Made-up disease",
        ("Made-up disease",),
    )
    table = (("Guillain-Barré syndrome", 0.75), ("Made-up disease", 0.25))
    assert first.patient == {"age": 0, "sex": "female", "differential": table}
    assert (last.patient["age"], last.patient["sex"]) == (120, "male")
    known = load_knowledge().condition_of_ddxplus["Guillain-Barré syndrome"]
    assert last.accepted[0] == last.diagnosis == "Guillain-Barré syndrome"
    assert set(last.accepted) == {*known.names, "Guillain-Barré syndrome"} and len(
        set(last.accepted)
    ) == len(last.accepted)


def test_every_kind_of_evidence_is_spoken_as_it_should_be(tmp_path: Path) -> None:
    case = load_cases("ddxplus", path=release(tmp_path))[0]
    expected = {
        "fever": (True, ""),
        "pain": (True, ""),
        "pain_character": (False, ""),  # only the default
        "pain_site": (
            True,
            "my right cheek and my right groin",
        ),  # file order, the default left out
        "pain_radiation": (False, ""),
        "pain_intensity": (True, "7"),
        "pain_onset_speed": (False, ""),  # 0, an int default against the text "0"
        "rash_peeling": (False, ""),
        "rash_large_lesion": (True, ""),
        "recent_travel": (False, ""),
    }
    phrase = {v.ddxplus: v.phrase for v in load_knowledge().values.values()}
    assert (phrase["V_108"], phrase["V_16"]) == ("my right cheek", "my right groin")
    for finding, (affirmed, value) in expected.items():
        text, told = said(case, finding)
        assert text in ours(finding, affirmed, value), finding
        assert told is affirmed, finding


def test_an_evidence_we_do_not_know_speaks_the_release_s_english(tmp_path: Path) -> None:
    case = load_cases("ddxplus", path=release(tmp_path))[0]
    asked = "Doctor: Asked in the release's words?\nPatient: "
    assert said(case, "E_900") == (asked + "Yes.", True)
    assert said(case, "E_901") == (asked + "Forehead and groin(R).", True)
    assert said(case, "E_902") == (asked + "No.", False)


def test_initial_first_parents_before_follow_ups_and_orphans_allowed(tmp_path: Path) -> None:
    no_parent = ROW | {"EVIDENCES": str([e for e in EVERY_QUIRK if e != "E_129"])}
    folder = release(tmp_path, [*patients(60), no_parent])
    parents = {
        "pain": ("pain_site", "pain_character"),
        "skin_lesion": ("rash_peeling",),
        "E_900": ("E_901", "E_902"),
    }
    orders = set()
    *cases, orphan = load_cases("ddxplus", path=folder)
    for case in cases:
        told = [s.finding for s in case.statements]
        assert told[0] == "fever" and len(set(told)) == len(told) == 15
        assert all(told.index(p) < told.index(f) for p, found in parents.items() for f in found)
        orders.add(tuple(told))
    assert len(orders) == 60
    assert "rash_peeling" in [s.finding for s in orphan.statements] and len(orphan.statements) == 14


def test_order_depends_on_seed_and_row_alone(tmp_path: Path) -> None:
    folder = release(tmp_path)
    again = load_cases("ddxplus", path=folder)
    assert again == load_cases("ddxplus", path=folder) != load_cases("ddxplus", path=folder, seed=1)
    assert load_cases("ddxplus", path=folder, n=1)[0] in again
    rest = [
        e.split("_@_")[0] for e in ELEVEN if e != "E_53"
    ]  # every parent here is the initial evidence: nothing waits
    random.Random("0:3").shuffle(rest)
    finding = load_knowledge().finding_of_code
    expected = ["pain", *(finding[code].id if code in finding else code for code in rest)]
    assert [s.finding for s in again[1].statements] == expected


def test_wording_varies_over_rows(tmp_path: Path) -> None:
    cases = load_cases("ddxplus", path=release(tmp_path, patients(60)))
    assert {said(c, "fever")[0] for c in cases} == set(ours("fever", True))
    assert {said(c, "recent_travel")[0] for c in cases} == set(ours("recent_travel", False))


def test_a_chain_or_a_circle_of_follow_ups_loses_no_statement(tmp_path: Path) -> None:
    folder = release(tmp_path, patients(20))
    codes = json.loads((folder / "release_evidences.json").read_text())
    (
        codes["E_902"]["code_question"],
        codes["E_204"]["code_question"],
        codes["E_37"]["code_question"],
    ) = (
        "E_901",
        "E_37",
        "E_204",
    )
    (folder / "release_evidences.json").write_text(json.dumps(codes))
    for case in load_cases("ddxplus", path=folder):
        told = [s.finding for s in case.statements]
        assert len(set(told)) == 15 and told.index("E_900") < told.index("E_901") < told.index(
            "E_902"
        )


def test_a_patient_who_is_there_again_is_counted_and_left_out(tmp_path: Path) -> None:
    short = ROW | {"EVIDENCES": "['E_91']"}
    older = ROW | {"AGE": "1"}
    found = ddxplus.read(release(tmp_path, [ROW, short, older, ROW, short, ROW]))
    assert [case.case_id for case in found.cases] == ["ddxplus-1", "ddxplus-3"]
    assert found.dropped == {
        "fewer than 11 statements": ["2", "5"],
        "the same row as an earlier one": ["4", "6"],
    }


def test_a_differential_without_the_pathology_is_counted_and_kept(tmp_path: Path) -> None:
    without = [[["Guillain-Barré syndrome", 1.0]], []]
    rows = [ROW, *(ROW | {"DIFFERENTIAL_DIAGNOSIS": str(pairs)} for pairs in without)]
    found = ddxplus.read(release(tmp_path, rows))
    assert len(found.cases) == 3
    assert found.facts.get("cases whose differential lacks their pathology") == 2


# -- which file
# --------------------------------------------------------------------------------------------------


def zipped(folder: Path, source: Path, *names: str) -> Path:
    with zipfile.ZipFile(
        folder / "release_test_patients.zip", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        for name in names:
            archive.write(source, name)
    return folder / "release_test_patients.zip"


def test_the_official_zip_equals_the_csv(tmp_path: Path) -> None:
    source = release(tmp_path) / "release_test_patients.csv"
    from_csv = load_cases("ddxplus", path=tmp_path)
    archive = zipped(tmp_path, source, "release_test_patients")
    assert load_cases("ddxplus", path=archive) == load_cases("ddxplus", path=source) == from_csv
    with pytest.raises(
        ValueError,
        match=r"several test files.*release_test_patients.csv, release_test_patients.zip",
    ):
        load_cases("ddxplus", path=tmp_path)
    source.unlink()
    assert load_cases("ddxplus", path=tmp_path) == from_csv


def test_a_zip_with_two_members_or_none_or_broken_is_refused(tmp_path: Path) -> None:
    source = release(tmp_path) / "release_test_patients.csv"
    for names in (("a", "b"), ()):
        with pytest.raises(DataError, match="one file in the zip"):
            load_cases("ddxplus", path=zipped(tmp_path, source, *names))
    (tmp_path / "release_test_patients.zip").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(DataError, match=r"release_test_patients.zip.*a zip file"):
        load_cases("ddxplus", path=tmp_path / "release_test_patients.zip")


@pytest.mark.parametrize(
    "name",
    [
        "release_test_patients",
        "release_test_patients_sample.csv",
        "release_test_patients_mini_version.txt",
    ],
)
def test_other_names_of_the_test_split_are_found_beside_other_splits(
    tmp_path: Path, name: str
) -> None:
    folder = release(tmp_path, name=name)
    for other in (
        "release_validate_patients.csv",
        "release_train_patients.zip",
        "notes.csv",
        "release_test_patients.csv.part",
    ):
        (folder / other).write_text("not read")
    assert len(load_cases("ddxplus", path=folder)) == 2


def test_other_splits_need_their_own_path(tmp_path: Path) -> None:
    folder = release(tmp_path, name="release_validate_patients.csv")
    with pytest.raises(ValueError, match=r"no test file.*release_validate_patients.csv"):
        load_cases("ddxplus", path=folder)
    assert len(load_cases("ddxplus", path=folder / "release_validate_patients.csv")) == 2


def test_a_byte_order_mark_is_tolerated_everywhere(tmp_path: Path) -> None:
    folder = release(tmp_path)
    plain = load_cases("ddxplus", path=folder)
    for file in folder.iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert load_cases("ddxplus", path=folder) == plain


# -- rows that are refused
# ------------------------------------------------------------------------------------------


def changed(code: str, new: str) -> str:
    return str([new if e == code else e for e in EVERY_QUIRK])


BAD = [
    ("AGE", "8.0", "from 0 to 120"),
    ("AGE", "121", "from 0 to 120"),
    ("AGE", "-1", "from 0 to 120"),
    ("AGE", "", "from 0 to 120"),
    ("AGE", "\u0661", "from 0 to 120"),  # a digit to str.isdigit and int, not in this format
    ("SEX", "female", "F or M"),
    ("PATHOLOGY", "Made-up  disease", "a condition of release_conditions.json"),
    ("EVIDENCES", "E_91", "a Python list literal"),
    ("EVIDENCES", "['E_91'", "a Python list literal"),
    ("EVIDENCES", "{'E_91': 1}", "a Python list literal"),
    ("EVIDENCES", "[__import__('os').getcwd()]", "a Python list literal"),
    ("EVIDENCES", str([*EVERY_QUIRK, 7]), "a code of release_evidences.json"),
    ("EVIDENCES", changed("E_37", "E_999"), "a code of release_evidences.json"),
    ("EVIDENCES", changed("E_56_@_7", "E_56_@_11"), "E_56 with a value among 0, 1, 2"),
    ("EVIDENCES", changed("E_56_@_7", "E_56_@_7.0"), "E_56 with a value among 0, 1, 2"),
    ("EVIDENCES", changed("E_204_@_V_10", "E_204_@_V_89"), "E_204 with a value among V_10, V_6"),
    ("EVIDENCES", changed("E_204_@_V_10", "E_204"), "E_204_@_value: it is not binary"),
    ("EVIDENCES", changed("E_37", "E_37_@_1"), "E_37 without a value: it is binary"),
    ("EVIDENCES", str([*EVERY_QUIRK, "E_56_@_8"]), "only multi-choice evidences repeat"),
    ("INITIAL_EVIDENCE", "E_36", "one of the row's EVIDENCES"),
    ("DIFFERENTIAL_DIAGNOSIS", "none", "a Python list literal"),
    ("DIFFERENTIAL_DIAGNOSIS", "[['Made-up disease', 1.5]]", "a probability from 0 to 1"),
    ("DIFFERENTIAL_DIAGNOSIS", "[['Made-up disease']]", "a probability from 0 to 1"),
    ("DIFFERENTIAL_DIAGNOSIS", "[['Gout', 0.5]]", "a condition of release_conditions.json"),
]


@each(("field", "value", "allowed"), BAD)
def test_a_bad_row_is_refused_with_its_place(
    tmp_path: Path, field: str, value: str, allowed: str
) -> None:
    short = ROW | {"EVIDENCES": str(["E_91"])}
    with pytest.raises(DataError) as caught:
        load_cases("ddxplus", path=release(tmp_path, [ROW, short, ROW | {field: value}, ROW]))
    error = caught.value
    assert isinstance(error, ValueError)
    assert (Path(error.file).name, error.row, error.field) == (
        "release_test_patients.csv",
        3,
        field,
    )
    assert "row 3 (counted from 1, header not counted)" in str(error) and allowed in str(error)


def test_the_value_at_fault_is_named_and_long_ones_are_cut(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="received 'E_999'; allowed"):
        load_cases(
            "ddxplus", path=release(tmp_path, [ROW | {"EVIDENCES": changed("E_37", "E_999")}])
        )
    assert len(str(DataError("f.csv", 1, "EVIDENCES", "x" * 10_000, "less"))) < 400


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    release(tmp_path)
    write_rows(
        tmp_path / "release_test_patients.csv", [ROW], columns=[c for c in COLUMNS if c != "SEX"]
    )
    with pytest.raises(DataError, match="missing: SEX") as caught:
        load_cases("ddxplus", path=tmp_path)
    assert caught.value.row is None


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    release(tmp_path)
    write_rows(tmp_path / "release_test_patients.csv", [ROW], columns=[*COLUMNS, "PATHOLOGY"])
    try:
        found = load_cases("ddxplus", path=tmp_path)
    except DataError as error:
        assert (error.row, error.field) == (None, "header")
        assert "no name twice; repeated: 'PATHOLOGY'" in str(error)
    else:
        assert not found, "a column that is there twice was read"


def test_an_empty_file_lacks_its_columns(tmp_path: Path) -> None:
    (release(tmp_path) / "release_test_patients.csv").write_bytes(b"")
    with pytest.raises(DataError, match="missing: AGE"):
        load_cases("ddxplus", path=tmp_path)


@pytest.mark.parametrize(
    ("line", "field"),
    [("5,[]\r\n", "SEX"), ("5,[],F,Made-up disease,['E_91'],E_91,more\r\n", "row")],
)
def test_a_row_of_the_wrong_length_is_refused(tmp_path: Path, line: str, field: str) -> None:
    file = release(tmp_path) / "release_test_patients.csv"
    file.write_text(file.read_text(encoding="utf-8") + line, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_cases("ddxplus", path=tmp_path)
    assert (caught.value.row, caught.value.field) == (4, field)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    write_rows(release(tmp_path) / "release_test_patients.csv", [ROW], encoding=encoding)
    with pytest.raises(DataError, match=r"release_test_patients.csv, encoding: .*allowed: UTF-8"):
        load_cases("ddxplus", path=tmp_path)


@each("name", ["release_conditions.json", "release_evidences.json"])
@each("content", [b'{"E_53": ', b"[1]", b"{}", '{"é": 1}'.encode("latin-1")])
def test_a_broken_json_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (release(tmp_path) / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        load_cases("ddxplus", path=tmp_path)


@pytest.mark.parametrize("field", sorted(evidence()))
def test_an_evidence_without_a_field_is_named(tmp_path: Path, field: str) -> None:
    file = release(tmp_path) / "release_evidences.json"
    codes = json.loads(file.read_text())
    del codes["E_56"][field]
    file.write_text(json.dumps(codes))
    with pytest.raises(DataError, match=rf"E_56\.{field}"):
        load_cases("ddxplus", path=tmp_path)


# -- the real rows
# --------------------------------------------------------------------------------------------------

needs_ddxplus = pytest.mark.skipif(
    not REAL.is_dir(), reason="DDXPlus is not at ../shared/datasets/ddxplus beside the repository"
)


@pytest.mark.realdata
@needs_ddxplus
def test_real_ddxplus_counts_and_wording() -> None:
    found = ddxplus.read(REAL)
    cases = list(found.cases)
    assert found.n_entries == 1611 and [len(rows) for rows in found.dropped.values()] == [273]
    assert list(found.facts.values()) == [0, 200]
    assert len({c.case_id for c in cases}) == len(cases) == 1338
    findings = load_knowledge().findings
    for case in cases:
        told = [s.finding for s in case.statements]
        assert len(told) > 10 and len(set(told)) == len(told)
        assert case.diagnosis in case.accepted and len(case.accepted) > 1
        assert case.statements[0].affirmed
        for i, statement in enumerate(case.statements):
            finding = findings[statement.finding or ""]
            question, answer = statement.text.split("\n")
            assert question == f"Doctor: {finding.question}"
            forms = finding.affirm if statement.affirmed else finding.deny
            patterns = [re.escape(f).replace(re.escape("{value}"), "[^{}_()]+") for f in forms]
            assert any(re.fullmatch("Patient: " + p, answer) for p in patterns), answer
            assert finding.parent not in told[i + 1 :]


@pytest.mark.realdata
@needs_ddxplus
def test_real_ddxplus_denies_every_default_and_nothing_else() -> None:
    codes = json.loads((REAL / "release_evidences.json").read_text(encoding="utf-8"))
    with (REAL / "release_test_patients_sample.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    finding = load_knowledge().finding_of_code
    for case in load_cases("ddxplus", path=REAL):
        row = rows[int(case.case_id.removeprefix("ddxplus-")) - 1]
        pairs = re.findall(r"'(E_\d+)(?:_@_(\w+))?'", row["EVIDENCES"])
        told = {
            name for name, value in pairs if not value or value != str(codes[name]["default_value"])
        }
        assert {s.finding for s in case.statements if s.affirmed} == {
            finding[name].id for name in told
        }
        assert {s.finding for s in case.statements} == {finding[name].id for name, _ in pairs}
        assert case.statements[0].finding == finding[row["INITIAL_EVIDENCE"]].id
        assert case.diagnosis == row["PATHOLOGY"] and case.patient["age"] == int(row["AGE"])


def test_the_cases_that_come_along_are_those_of_the_release() -> None:
    cases = load_cases("ddxplus-171")
    assert len(cases) == 171 and {c.dataset for c in cases} == {"ddxplus"}
    assert all(case.posteriors[len(case.statements)] for case in cases)


@pytest.mark.realdata
@needs_ddxplus
def test_the_cases_that_come_along_are_those_drawn_from_the_real_release() -> None:
    assert load_cases("ddxplus-171") == load_cases("ddxplus", path=REAL, n=171)


@each(
    "name, value, said",
    [
        ("differential", {"Flu": 2}, "a probability from 0 to 1"),
        ("differential", {"Flu": "0.5"}, "a probability from 0 to 1"),
        (
            "statements",
            [{"text": "a", "finding": "fever"}] * 11,
            "statement 1, affirmed: received None",
        ),
        ("patient", {"age": 200, "sex": "male"}, "0 to 120"),
        ("diagnosis", "", "not empty"),
    ],
)
def test_a_kept_case_that_breaks_the_format_is_refused(name, value, said, tmp_path) -> None:
    row = json.loads(ddxplus.KEPT.read_text(encoding="utf-8").splitlines()[0]) | {name: value}
    (tmp_path / "cases.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError, match=f"row 1 .*{said}"):
        load_cases("ddxplus-171", path=tmp_path)
