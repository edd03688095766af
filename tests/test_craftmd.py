"""CRAFT-MD's conversations: a file of its format becomes a case, or is refused or counted."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from each import each
from file_server import FileServer
from saying import saying, says

import trustlab as tl
from trustlab.datasets import DataError, read_data
from trustlab.datasets.craftmd import NO_DISEASE, SHORT, SPOKEN
from trustlab.datasets.fetch import HOMES, File, fetch


def conversation(n: int = 11, question: str = "Does it hurt, point") -> list[dict[str, Any]]:
    """A prompt, ``n`` exchanges, and the doctor's last words."""
    turns = [{"role": "system", "content": "You are an AI doctor."}]
    for i in range(1, n + 1):
        turns.append({"role": "assistant", "content": f"{question} {i}?"})
        turns.append({"role": "user", "content": f"Yes, number {i} does."})
    return [*turns, {"role": "assistant", "content": "**Final Diagnosis:** Gout."}]


def entry(number: int = 1, turns: Any = None, **changes: Any) -> dict[str, Any]:
    trial = {"multiturn_conversation": conversation() if turns is None else turns}
    row = {"case_id": f"case_{number}", "case_vignette": "A baker.", "question": "Which?"}
    return row | {"correct_ans": "gout", "trial_0": trial, "trial_1": trial} | changes


def folder(path: Path, *entries: dict[str, Any]) -> Path:
    for value in entries:
        (path / f"{value['case_id']}.json").write_text(json.dumps(value), encoding="utf-8")
    return path


def test_an_exchange_is_a_statement_and_the_last_words_are_not_shown(tmp_path: Path) -> None:
    (case,) = tl.load_cases("craftmd", path=folder(tmp_path, entry(correct_ans='gout\n"')))
    assert (case.case_id, case.dataset, case.diagnosis) == ("craftmd-case_1", "craftmd", "gout")
    texts = [statement.text for statement in case.statements]
    assert texts[0] == "Doctor: Does it hurt, point 1?\nPatient: Yes, number 1 does."
    assert len(texts) == 11 and "Final" not in "".join(texts)


def test_open_models_have_their_prompt_as_a_user_s_words(tmp_path: Path) -> None:
    prompt = {"role": "user", "content": "You are an AI doctor."}
    cases = tl.load_cases(
        "craftmd", path=folder(tmp_path, entry(turns=[prompt, *conversation()[1:]]))
    )
    assert len(cases[0].statements) == 11


def test_what_becomes_no_case_is_counted(tmp_path: Path) -> None:
    entries = [
        entry(1),
        entry(2, conversation(10)),
        entry(3, correct_ans="lumbar puncture"),
        entry(4, conversation(question="Have you had gout at place")),
    ]
    read = read_data("craftmd", path=folder(tmp_path, *entries))
    assert [case.case_id for case in read.cases] == ["craftmd-case_1"] and read.n_entries == 4
    assert read.dropped == {
        SHORT: ["craftmd-case_2"],
        NO_DISEASE: ["craftmd-case_3"],
        SPOKEN: ["craftmd-case_4"],
    }


@each(
    "changes, words",
    [
        ({"correct_ans": None}, ("correct_ans", None)),
        ({"correct_ans": "  "}, ("correct_ans", "empty")),
        ({"trial_0": {"multiturn_conversation": "Hi"}}, "trial_0.multiturn_conversation"),
        ({"trial_0": {}}, ("trial_0.multiturn_conversation", None)),
        ({"turns": conversation()[1:]}, ("assistant", "user", "in turn")),
        ({"turns": []}, ("assistant", "user", "in turn")),
        ({"turns": [*conversation(), {"role": "system", "content": "x"}]}, "in turn"),
        ({"turns": [*conversation(), {"role": "user"}]}, ("content", None)),
    ],
)
def test_a_file_of_another_form_is_refused(changes, words, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        read_data("craftmd", path=folder(tmp_path, entry(**changes)))
    assert says(refused.value, "case_1.json", words)


def test_a_folder_without_such_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=saying(tmp_path, "case_N.json")):
        read_data("craftmd", path=tmp_path)
    with pytest.raises(ValueError, match="trustlab data fetch craftmd --to FOLDER"):
        read_data("craftmd")


def test_its_home_is_an_archive_of_one_commit() -> None:
    (file,) = HOMES["craftmd"].files
    assert file.unpack == "zip" and file.url.endswith("/3bb2737d4fae5d64694d38456f878c2c5d35576a")
    assert HOMES["craftmd"].licence.startswith("MIT")


def test_the_archive_is_fetched_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    inner = "craft-md-3bb2737d/results/gpt4_1106"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{inner}/case_1.json", json.dumps(entry()))
    with FileServer({"/craft-md.zip": packed.getvalue()}) as server:
        file = File("craft-md.zip", f"{server.url}/craft-md.zip", unpack="zip")
        homes = {"craftmd": replace(HOMES["craftmd"], files=(file,))}
        with pytest.raises(ValueError, match="Licence: MIT"):
            fetch("craftmd", tmp_path, homes=homes)
        fetch("craftmd", tmp_path, accept=True, homes=homes)
    assert len(tl.load_cases("craftmd", path=tmp_path / "craft-md" / inner)) == 1
