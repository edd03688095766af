"""A tiny DDXPlus release with every quirk of the real one, written into a folder for the tests."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from trustlab.datasets import ddxplus

NOWHERE = {"V_123": "nowhere", "V_89": "forehead", "V_108": "cheek(R)", "V_16": "groin(R)"}
COLUMNS: list[str] = [*ddxplus.COLUMNS]


def evidence(
    kind: str = "B", parent: str | None = None, default: Any = 0, values: Any = ()
) -> dict:
    """``values``: of each its words, or numbers alone."""
    named = values if isinstance(values, dict) else {}
    meanings = {v: {"fr": "non", "en": en} for v, en in named.items()}
    return {
        "code_question": parent,
        "data_type": kind,
        "default_value": default,
        "possible-values": list(values),
        "value_meaning": meanings,
    }


CODES = {
    "E_53": evidence(),
    "E_54": evidence("M", "E_53", "V_11", {"V_11": "NA", "V_181": "burning", "V_192": "sharp"}),
    "E_55": evidence("M", "E_53", "V_123", NOWHERE),
    "E_56": evidence("C", "E_53", 0, range(11)),
    "E_57": evidence("M", "E_53", "V_123", NOWHERE),
    "E_59": evidence("C", "E_53", 0, range(11)),
    "E_91": evidence(),
    "E_129": evidence(),
    "E_131": evidence("C", "E_129", "V_10", {"V_10": "N", "V_12": "Y"}),
    "E_135": evidence("C", "E_129", "V_10", {"V_10": "N", "V_12": "Y"}),
    "E_37": evidence(parent="E_36"),
    "E_204": evidence("C", None, "V_10", {"V_10": "N", "V_6": "Asia"}),
    "E_201": evidence(),
    "E_133": evidence("M", "E_201", "V_123", NOWHERE),
    "E_130": evidence("C", "E_201", "V_10", {"V_10": "N", "V_12": "Y"}),
}
QUIRKS = (
    "E_129 E_131_@_V_10 E_135_@_V_12 E_204_@_V_10 E_37 E_53 E_54_@_V_11 E_55_@_V_108 E_55_@_V_123"
    " E_55_@_V_16 E_56_@_7 E_57_@_V_123 E_59_@_0 E_201 E_133_@_V_89 E_133_@_V_16 E_130_@_V_10 E_91"
)
SOME = (
    "E_37 E_53 E_54_@_V_192 E_55_@_V_89 E_56_@_3 E_57_@_V_16 E_59_@_10 E_201 E_91 E_129 E_204_@_V_6"
)
EVERY_QUIRK, ELEVEN = QUIRKS.split(), SOME.split()
ROW = {
    "AGE": "0",
    "DIFFERENTIAL_DIAGNOSIS": str([["Guillain-Barré syndrome", 0.75], ["Made-up disease", 0.25]]),
    "SEX": "F",
    "PATHOLOGY": "Made-up disease",
    "EVIDENCES": str(EVERY_QUIRK),
    "INITIAL_EVIDENCE": "E_91",
}


def patients(n: int) -> list[dict]:
    """``n`` rows, at most 121, which differ in the age alone."""
    return [ROW | {"AGE": str(age)} for age in range(n)]


def write_rows(
    file: Path, rows: list[dict], encoding: str = "utf-8", columns: list[str] = COLUMNS
) -> None:
    with file.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def release(
    folder: Path, rows: list[dict] | None = None, name: str = "release_test_patients.csv"
) -> Path:
    codes = {c: e | {"name": c, "code_question": e["code_question"] or c} for c, e in CODES.items()}
    conditions = {"Made-up disease": {}, "Guillain-Barré syndrome": {}}
    (folder / "release_conditions.json").write_text(json.dumps(conditions))
    (folder / "release_evidences.json").write_text(json.dumps(codes))
    last = {"SEX": "M", "AGE": "120", "PATHOLOGY": "Guillain-Barré syndrome"}
    pain = ROW | {"INITIAL_EVIDENCE": "E_53"}
    short, male = (pain | {"EVIDENCES": str(told)} for told in (ELEVEN[:10], ELEVEN))
    rows = rows or [ROW, short, male | last]
    write_rows(folder / name, rows)
    return folder
