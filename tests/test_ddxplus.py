"""DDXPlus: what a row becomes, which file is read, which rows are refused, and the real rows."""

from __future__ import annotations

import csv
import json
import random
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from each import each
from made_ddxplus import COLUMNS, ELEVEN, EVERY_QUIRK, ROW, patients, release, write_rows
from saying import saying, says

from trustlab.datasets import DataError, ddxplus, load_cases
from trustlab.knowledge.findings import load_knowledge
from trustlab.paths import ROOT
from trustlab.records import Case

REAL = ROOT.parent / "shared" / "datasets" / "ddxplus"


def said(case: Case, finding: str) -> tuple[str, bool | None]:
    (found,) = [s for s in case.statements if s.finding == finding]
    return found.text, found.affirmed


def ours(finding: str, affirmed: bool, value: str = "") -> list[str]:
    f = load_knowledge().findings[finding]
    answers = f.affirm if affirmed else f.deny
    return [f"Doctor: {f.question}\nPatient: {a.replace('{value}', value)}" for a in answers]


def test_rows_become_cases_and_short_or_repeated_ones_are_counted(tmp_path: Path) -> None:
    found = ddxplus.read(release(tmp_path))
    assert (found.n_entries, found.dropped) == (3, {"fewer than 11 statements": ["2"]})
    first, last = found.cases
    told = [(case.case_id, len(case.statements)) for case in (first, last)]
    assert told == [("ddxplus-1", 15), ("ddxplus-3", 11)]
    assert (first.dataset, first.diagnosis) == ("ddxplus", "Made-up disease")
    assert first.accepted == ("Made-up disease",)
    table = (("Guillain-Barré syndrome", 0.75), ("Made-up disease", 0.25))
    assert first.patient == {"age": 0, "sex": "female", "differential": table}
    assert first.posteriors == {15: dict(table)}
    assert (last.patient["age"], last.patient["sex"]) == (120, "male")
    known = load_knowledge().condition_of_ddxplus["Guillain-Barré syndrome"]
    assert last.accepted[0] == last.diagnosis == "Guillain-Barré syndrome"
    assert set(last.accepted) == {*known.names, "Guillain-Barré syndrome"}

    short, older = ROW | {"EVIDENCES": "['E_91']"}, ROW | {"AGE": "1"}
    found = ddxplus.read(release(tmp_path, [ROW, short, older, ROW, short, ROW]))
    assert [case.case_id for case in found.cases] == ["ddxplus-1", "ddxplus-3"]
    again = {"the same row as an earlier one": ["4", "6"]}
    assert found.dropped == {"fewer than 11 statements": ["2", "5"]} | again
    without = [[["Guillain-Barré syndrome", 1.0]], []]
    rows = [ROW, *(ROW | {"DIFFERENTIAL_DIAGNOSIS": str(pairs)} for pairs in without)]
    found = ddxplus.read(release(tmp_path, rows))
    assert len(found.cases) == 3 and found.facts[ddxplus.LACKING] == 2
    with pytest.raises(ValueError, match=saying("no case", 1, "fewer than 11")):
        load_cases("ddxplus", path=release(tmp_path, [short]))


def test_every_kind_of_evidence_is_spoken_as_it_should_be(tmp_path: Path) -> None:
    case = load_cases("ddxplus", path=release(tmp_path))[0]
    expected = {
        "fever": (True, ""),
        "pain": (True, ""),
        "pain_character": (False, ""),  # only the default
        "pain_site": (True, "my right cheek and my right groin"),  # the default left out
        "pain_radiation": (False, ""),
        "pain_intensity": (True, "7"),
        "pain_onset_speed": (False, ""),  # 0, an int default against the text "0"
        "rash_peeling": (False, ""),
        "rash_large_lesion": (True, ""),
        "recent_travel": (False, ""),
        "cough": (True, ""),
        "rash_site": (True, "my forehead and my right groin"),
        "rash_colour": (False, ""),
    }
    for finding, (affirmed, value) in expected.items():
        text, told = said(case, finding)
        assert text in ours(finding, affirmed, value), finding
        assert told is affirmed, finding


def test_initial_first_parents_before_follow_ups_and_orphans_allowed(tmp_path: Path) -> None:
    no_parent = ROW | {"EVIDENCES": str([e for e in EVERY_QUIRK if e != "E_129"])}
    folder = release(tmp_path, [*patients(60), no_parent])
    parents = {"pain": ("pain_site", "pain_character"), "skin_lesion": ("rash_peeling",)}
    parents |= {"cough": ("rash_site", "rash_colour")}
    orders = set()
    *cases, orphan = load_cases("ddxplus", path=folder)
    for case in cases:
        told = [s.finding for s in case.statements]
        assert told[0] == "fever" and len(set(told)) == len(told) == 15
        assert all(told.index(p) < told.index(f) for p, found in parents.items() for f in found)
        orders.add(tuple(told))
    assert len(orders) == 60
    assert "rash_peeling" in [s.finding for s in orphan.statements] and len(orphan.statements) == 14
    assert {said(c, "fever")[0] for c in cases} == set(ours("fever", True))
    assert {said(c, "recent_travel")[0] for c in cases} == set(ours("recent_travel", False))


def test_order_depends_on_seed_and_row_alone(tmp_path: Path) -> None:
    folder = release(tmp_path)
    again = load_cases("ddxplus", path=folder)
    assert again == load_cases("ddxplus", path=folder) != load_cases("ddxplus", path=folder, seed=1)
    assert load_cases("ddxplus", path=folder, n=1)[0] in again
    # every parent here is the initial evidence: nothing waits
    rest = [e.split("_@_")[0] for e in ELEVEN if e != "E_53"]
    random.Random("0:3").shuffle(rest)
    finding = load_knowledge().finding_of_code
    expected = ["pain", *(finding[code].id for code in rest)]
    assert [s.finding for s in again[1].statements] == expected


def test_age_and_sex_come_first_where_they_are_told(tmp_path: Path) -> None:
    folder, asked = release(tmp_path), "Doctor: How old are you, and what is your sex?\nPatient: "
    for name, path in {"ddxplus": folder, "ddxplus-171": None}.items():
        plain, told = (load_cases(name, path=path, demographics=d) for d in (False, True))
        for one, more in zip(plain, told, strict=True):
            (first, *rest), n = more.statements, len(more.statements)
            assert (one.case_id, one.statements) == (more.case_id, tuple(rest))
            assert first.finding is None and one.posteriors[n - 1] == more.posteriors[n]
            assert first.text.startswith(asked) and first.text.endswith(f"{one.patient['sex']}.")
        with pytest.raises(ValueError, match=saying("demographics", "'yes'", True, False)):
            load_cases(name, path=path, demographics="yes")


def zipped(folder: Path, source: Path, *names: str) -> Path:
    with zipfile.ZipFile(folder / "release_test_patients.zip", "w") as archive:
        for name in names:
            archive.write(source, name)
    return folder / "release_test_patients.zip"


def test_the_official_zip_equals_the_csv(tmp_path: Path) -> None:
    source = release(tmp_path) / "release_test_patients.csv"
    from_csv = load_cases("ddxplus", path=tmp_path)
    archive = zipped(tmp_path, source, "release_test_patients")
    assert load_cases("ddxplus", path=archive) == load_cases("ddxplus", path=source) == from_csv
    with pytest.raises(ValueError, match=saying("2 files", source.name, archive.name)):
        load_cases("ddxplus", path=tmp_path)
    source.unlink()
    assert load_cases("ddxplus", path=tmp_path) == from_csv
    archive.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(DataError, match=saying("release_test_patients.zip", "zip file")):
        load_cases("ddxplus", path=archive)
    source = release(tmp_path) / "release_test_patients.csv"
    with pytest.raises(DataError, match="zip of one"):
        load_cases("ddxplus", path=zipped(tmp_path, source, "a", "b"))


def test_the_test_split_is_found_and_others_need_their_own_path(tmp_path: Path) -> None:
    folder = release(tmp_path, name="release_validate_patients.csv")
    with pytest.raises(ValueError, match=saying(folder, "0 files", "release_test_patients*")):
        load_cases("ddxplus", path=folder)
    assert len(load_cases("ddxplus", path=folder / "release_validate_patients.csv")) == 2
    release(folder, name="release_test_patients_sample.csv")
    for other in ("release_train_patients.zip", "notes.csv"):
        (folder / other).write_text("not read")
    plain = load_cases("ddxplus", path=folder)
    for file in folder.glob("*test*"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert load_cases("ddxplus", path=folder) == plain and len(plain) == 2


def changed(code: str, new: str) -> dict[str, str]:
    return {"EVIDENCES": str([new if e == code else e for e in EVERY_QUIRK])}


BAD = [
    ({"AGE": "8.0"}, "0 to 120"),
    ({"AGE": "121"}, "0 to 120"),
    ({"AGE": "\u0661"}, "0 to 120"),  # a digit to str.isdigit and int, not in this format
    ({"SEX": "female"}, "F or M"),
    ({"PATHOLOGY": "Made-up  disease"}, "release_conditions.json"),
    ({"EVIDENCES": "['E_91'"}, "list literal"),
    ({"EVIDENCES": "{'E_91': 1}"}, "list literal"),
    ({"EVIDENCES": "[__import__('os').getcwd()]"}, "list literal"),
    ({"EVIDENCES": "[true]"}, "list literal"),
    ({"EVIDENCES": str([*EVERY_QUIRK, 7])}, "release_evidences.json"),
    (changed("E_37", "E_999"), ("'E_999'", "release_evidences.json")),
    (changed("E_56_@_7", "E_56_@_11"), ("E_56", "0, 1, 2")),
    (changed("E_204_@_V_10", "E_204"), ("E_204_@_value", "binary")),
    (changed("E_37", "E_37_@_1"), ("E_37", "binary")),
    ({"EVIDENCES": str([*EVERY_QUIRK, "E_56_@_8"])}, ("multi-choice", "repeat")),
    ({"INITIAL_EVIDENCE": "E_36"}, "EVIDENCES"),
    ({"DIFFERENTIAL_DIAGNOSIS": "none"}, "list literal"),
    ({"DIFFERENTIAL_DIAGNOSIS": "[['Made-up disease', 1.5]]"}, "0 to 1"),
    ({"DIFFERENTIAL_DIAGNOSIS": "[['Made-up disease', True]]"}, "0 to 1"),
    ({"DIFFERENTIAL_DIAGNOSIS": "[['Made-up disease', NaN]]"}, "list literal"),
    ({"DIFFERENTIAL_DIAGNOSIS": "[['Made-up disease']]"}, "0 to 1"),
    ({"DIFFERENTIAL_DIAGNOSIS": "[['Gout', 0.5]]"}, "release_conditions.json"),
]


@each(("changes", "allowed"), BAD)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, changes: dict, allowed: Any) -> None:
    with pytest.raises(DataError) as caught:
        load_cases("ddxplus", path=release(tmp_path, [ROW, *patients(3)[1:], ROW | changes]), n=1)
    error = caught.value
    assert (Path(error.file).name, error.row) == ("release_test_patients.csv", 4)
    assert error.field in {*changes, "INITIAL_EVIDENCE"} and says(error, allowed)


def test_a_table_that_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=saying("release_test_patients.zip", "figshare", "CC BY")):
        load_cases("ddxplus", path=tmp_path)
    file = release(tmp_path) / "release_test_patients.csv"
    sound = file.read_text(encoding="utf-8")
    double = sound.replace("'", '""')  # quotation marks of either kind
    file.write_text(double, encoding="utf-8")
    assert len(load_cases("ddxplus", path=tmp_path)) == 2
    for line, row, field in (
        ("5,[]\r\n", 4, "SEX"),
        ("5,[],F,Made-up disease,['E_91'],E_91,more\r\n", None, "content"),
    ):
        file.write_text(sound + line, encoding="utf-8")
        with pytest.raises(DataError) as caught:
            load_cases("ddxplus", path=tmp_path)
        assert (caught.value.row, caught.value.field) == (row, field)
    short, twice = [c for c in COLUMNS if c != "SEX"], [*COLUMNS, "PATHOLOGY"]
    for columns, words in ((short, "missing: SEX"), (twice, "twice; repeated: PATHOLOGY")):
        write_rows(file, [ROW], columns=columns)
        with pytest.raises(DataError, match=words):
            load_cases("ddxplus", path=tmp_path)
    for encoding in ("latin-1", "utf-16"):
        write_rows(file, [ROW], encoding=encoding)
        with pytest.raises(DataError, match=saying(file, "encoding", "UTF-8")):
            load_cases("ddxplus", path=tmp_path)
    for name in ("release_conditions.json", "release_evidences.json"):
        (release(tmp_path) / name).write_bytes(b'{"E_53": ')
        with pytest.raises(DataError, match=name):
            load_cases("ddxplus", path=tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(ValueError, match=f"^{name} is not in .*22687585"):
            load_cases("ddxplus", path=tmp_path)
    codes = json.loads((release(tmp_path) / "release_evidences.json").read_text())
    (tmp_path / "release_evidences.json").write_text(json.dumps(codes | {"E_999": codes["E_53"]}))
    with pytest.raises(DataError, match=saying("evidence", "'E_999'", "release_evidences.json")):
        load_cases("ddxplus", path=tmp_path)
    del codes["E_56"]["data_type"]
    (tmp_path / "release_evidences.json").write_text(json.dumps(codes))
    with pytest.raises(DataError, match=r"E_56\.data_type"):
        load_cases("ddxplus", path=tmp_path)


needs_ddxplus = pytest.mark.skipif(
    not REAL.is_dir(), reason="DDXPlus is not at ../shared/datasets/ddxplus beside the repository"
)


@pytest.mark.realdata
@needs_ddxplus
def test_real_rows_deny_every_default_and_nothing_else() -> None:
    read = ddxplus.read(REAL)
    assert read.n_entries == 1611 and [len(rows) for rows in read.dropped.values()] == [273]
    assert read.counts == {ddxplus.LACKING: 0} and len(read.cases) == 1338
    codes = json.loads((REAL / "release_evidences.json").read_text(encoding="utf-8"))
    with (REAL / "release_test_patients_sample.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    finding = load_knowledge().finding_of_code
    for case in read.cases[::4]:
        row = rows[int(case.case_id.removeprefix("ddxplus-")) - 1]
        pairs = re.findall(r"'(E_\d+)(?:_@_(\w+))?'", row["EVIDENCES"])
        told = [n for n, value in pairs if not value or value != str(codes[n]["default_value"])]
        affirmed = {s.finding for s in case.statements if s.affirmed}
        assert affirmed == {finding[name].id for name in told}
        assert {s.finding for s in case.statements} == {finding[name].id for name, _ in pairs}
        assert case.statements[0].finding == finding[row["INITIAL_EVIDENCE"]].id
        assert case.diagnosis == row["PATHOLOGY"] and case.patient["age"] == int(row["AGE"])


@pytest.mark.realdata
@needs_ddxplus
def test_the_cases_that_come_along_are_those_drawn_from_the_real_release() -> None:
    assert load_cases("ddxplus-171") == load_cases("ddxplus", path=REAL, n=171)
