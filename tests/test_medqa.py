"""MedQA: which questions become cases, what is told of them, both formats of the file, and the real
test file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_medqa import ARROWS, ASKED, official, row, vignette
from saying import saying

from trustlab.datasets import DataError, medqa
from trustlab.datasets.medqa import asks_for_diagnosis, names_disease, split_question
from trustlab.knowledge.findings import load_knowledge
from trustlab.paths import ROOT
from trustlab.records import Case

REAL = ROOT.parent / "shared" / "datasets" / "medqa"
NAMED = "cases whose text names their diagnosis"


def case_of(folder: Path, question: str = f"{vignette()} {ASKED}", **changes: object) -> Case:
    (case,) = medqa.read(official(folder, [row(question, **changes)])).cases
    return case


def test_a_row_becomes_a_case_that_tells_neither_options_nor_question(tmp_path: Path) -> None:
    case = case_of(tmp_path)
    assert (case.case_id, case.dataset, case.diagnosis) == ("medqa-1", "medqa", "Gout")
    options = ("Septic joint", "Gout", "Bursitis", "Fracture")
    assert case.patient == {"options": options, "step": "step2&3"}
    assert " ".join(s.text for s in case.statements) == vignette()


@each(
    ("answer", "diagnosis", "accepted"),
    [
        ("Influenza", "Influenza", load_knowledge().conditions["influenza"].names),
        ("Made-up disease (MBD) 2", "Made-up disease (MBD) 2", ("Made-up disease 2",)),
        ('Gout\n"', "Gout", ("Gout",)),
    ],
)
def test_which_answers_count_as_right(tmp_path, answer, diagnosis, accepted) -> None:
    case = case_of(tmp_path, options={"A": "Bursitis", "B": answer}, answer=answer)
    assert case.diagnosis == diagnosis and case.accepted[0] == diagnosis
    assert set(case.accepted) == {diagnosis, *accepted}


def test_what_becomes_no_case_is_named_with_its_reason(tmp_path: Path) -> None:
    again, gout = row(f"{vignette(12)} {ASKED}"), f"{vignette()} His father has gout. {ASKED}"
    rows = [row(f"{vignette(10)} {ASKED}"), row(f"{vignette(20)} What is the best treatment?")]
    read = medqa.read(official(tmp_path, [*rows, again, again, row(), ARROWS, row(gout)]))
    assert [case.case_id for case in read.cases] == ["medqa-3", "medqa-5", "medqa-7"]
    assert read.dropped == {medqa.SHORT: ["1"], medqa.OTHER: ["2", "6"], medqa.AGAIN: ["4"]}
    assert (read.n_entries, read.facts[medqa.ASKING], read.facts[NAMED]) == (7, 5, 1)
    with pytest.raises(DataError) as caught:
        medqa.read(official(tmp_path, [row(), ARROWS]), ids=["2"])
    assert (caught.value.row, caught.value.field) == (2, "options.B")


def test_any_long_question_is_a_case_and_asks_its_own_last_sentence(tmp_path: Path) -> None:
    other = "What is the best treatment?"
    long, short = row(f"{vignette()} {other}"), row(f"{vignette(10)} {other}")
    file = official(tmp_path, [long, row(), short, ARROWS, long])
    read = medqa.read(file, questions="any")
    assert [(c.case_id, c.question) for c in read.cases] == [("medqa-1", other), ("medqa-2", "")]
    assert read.dropped == {medqa.SHORT: ["3"], medqa.NO_LETTER: ["4"], medqa.AGAIN: ["5"]}
    assert list(read.counts.values()) == [1, 0, 4, 1, 5]
    assert medqa.read(file, ids=[1], questions="any").cases == read.cases[:1]
    assert medqa.read(file, ids=[1]).cases[0].question == ""
    with pytest.raises(ValueError, match=saying("questions", "'all'", "diagnosis", "any")):
        medqa.read(file, questions="all")


ENDS = (ASKED, ASKED.replace("?", ":"), "With this in mind, what is the most likely diagnosis?")


@each("end", ENDS)
def test_the_final_question_is_cut_off_however_it_ends(end: str) -> None:
    assert split_question(f'He is ill.\n\n{end}"\n') == (["He is ill."], end)
    for gap in (" ", "\n"):
        table = f"Studies show:{gap}Sodium 140 mEq/L{gap}Glucose 90 mg/dL{gap}"
        told, asked = split_question(f"He is pale. {table}{ASKED}")
        assert told == ["He is pale.", "Studies show: Sodium 140 mEq/L Glucose 90 mg/dL"]
        assert asked == ASKED


FOR_THE_DIAGNOSIS = """
What is the patient’s most likely diagnosis?
Which of the following was the most likely underlying diagnosis:
Given these findings, which of the following is the most likely diagnosis in this boy?
Which of the following diagnoses is most likely in this patient?
This patient is most likely suffering from which of the following disorders?
Which of the following congenital conditions would best explain this patient's symptoms?
The findings are most consistent with which diagnosis?
Which one of the following conditions does this patient most likely have?
Which of the following is most likely this patient's diagnosis?
What disease is the child suffering from?
These findings support a diagnosis of which of the following?
"""
FOR_THE_CAUSE = """
Which of the following is the most likely cause of this patient's symptoms?
Which of the following is the most likely etiology of this fetus’s presentation?
Which of the following is the most likely explanation for these findings?
Which of the following best explains these findings?
Her symptoms can be explained by which of the following?
This patient’s history is most consistent with which of the following conditions?
Which of the following is most likely to have produced this patient’s condition?
This patient most likely has which of the following?
"""
FOR_ANYTHING_ELSE = """
Which of the following is the most appropriate next step in diagnosis?
Which of the following is most likely to confirm the diagnosis?
Which of the following is associated with the most likely diagnosis?
Which of the following diagnoses should be excluded first in this patient?
Which of the following conditions is this patient at greatest risk for?
What is the most likely diagnosis, and how is it treated?
With these findings, if he had a rash, what is the most likely diagnosis?
In addition to gout, which of the following is the most likely diagnosis?
What is the next step, what is the most likely diagnosis?
If she had fever, which of the following best explains these findings?
The most likely cause of her symptoms is associated with which of the following?
Which of the following drugs is the most likely cause of these findings?
Which of the following is the most likely cause of this patient's hypotension?
Which of the following is the most likely inciting factor for this patient's condition?
"""


def test_which_questions_ask_for_the_diagnosis() -> None:
    def asking(questions: str, answer: str) -> list[str]:
        return [q for q in questions.strip().split("\n") if asks_for_diagnosis(q, answer)]

    disease, mechanism = "Alport syndrome", "Impaired bile excretion"
    assert asking(FOR_THE_DIAGNOSIS, mechanism) == FOR_THE_DIAGNOSIS.strip().split("\n")
    assert asking(FOR_THE_CAUSE, disease) == FOR_THE_CAUSE.strip().split("\n")
    assert asking(FOR_THE_CAUSE, mechanism) == asking(FOR_ANYTHING_ELSE, disease) == []
    assert not asks_for_diagnosis("", disease)


DISEASES = """
Influenza; Celiac disease; Avoidant personality disorder; Choledocholithiasis; Plague;
Secondary hyperparathyroidism; Eosinophilic esophagitis; Small cell lung cancer; Duodenal atresia;
Hypertrophic cardiomyopathy; Adenocarcinoma of the lung; Membrano glomerulonephritis (MPGN)
"""
NO_DISEASES = """
Staphylococcus aureus; Escherichia coli infection; Cyclophosphamide; Opioid overdose; Trauma;
Vitamin B12 deficiency; Anti-B antibodies; Osmotic diuresis; Metabolic acidosis; ↓ ↑ ↓; Miosis;
Hepatocyte necrosis; Infarction of the bone trabeculae; Compressive tumor of the pons; Trisomy 13;
Inflammation in the cystic duct; Gastrin-secreting tumor; Drug-induced lupus syndrome;
Complication of asthma; Mutation behind a syndrome; Treatment for bacterial pharyngitis;
Symptoms six months before diagnosis; Some very long words that come before a syndrome;
Abscess formation; Oral contraceptives
"""


def test_a_mechanism_an_organism_or_a_drug_is_no_disease() -> None:
    assert [n for n in DISEASES.split(";") if not names_disease(n.strip())] == []
    assert [n for n in NO_DISEASES.split(";") if names_disease(n.strip())] == []


OTHERS = [row(), row(f"{vignette(12)} What happens next?"), row(vignette(13))]


@each("ids", [["2", "3"], [3, 2], ["medqa-2", "3"]])
def test_ids_choose_just_these_whatever_they_ask(tmp_path: Path, ids: list) -> None:
    read = medqa.read(official(tmp_path, OTHERS), ids=ids)
    assert [case.case_id for case in read.cases] == ["medqa-2", "medqa-3"]
    assert read.dropped == {medqa.UNASKED: ["1"]}
    read = medqa.read(official(tmp_path, [row(), row(), row()]), ids=[2, 3])
    assert [case.case_id for case in read.cases] == ["medqa-2"]
    assert read.dropped == {medqa.UNASKED: ["1"], medqa.AGAIN: ["3"]}


@each(
    ("ids", "message"),
    [
        (["1", "9"], ("ids", 9)),
        ([], ("ids", [], "list")),
        ("2", ("ids", "'2'", "list")),
        (2, ("ids", 2, "list")),
        ([2, None], ("ids", [2, None], "list")),
        ([True, 2.0], ("ids", [True, 2.0], "list")),
        ({"2": 2}, ("ids", {"2": 2}, "list")),
    ],
)
def test_ids_that_choose_nothing_are_refused(tmp_path: Path, ids: object, message: Any) -> None:
    with pytest.raises(ValueError, match=saying(message)):
        medqa.read(official(tmp_path, OTHERS), ids=ids)  # pyright: ignore[reportArgumentType]


def test_a_folder_with_one_file_is_enough_wherever_it_lies(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="jind11/MedQA"):
        medqa.read(tmp_path)
    inner = tmp_path / "questions" / "US"
    inner.mkdir(parents=True)
    for name in ("notes.txt", "SOURCE.json"):
        (tmp_path / name).write_text("{}")
    file = official(inner, OTHERS)
    plain = medqa.read(tmp_path)
    assert plain.n_entries == 3
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n") + b"\n\n")
    assert medqa.read(tmp_path) == plain
    official(inner, name="dev.jsonl")
    with pytest.raises(ValueError, match=saying("2 files", "questions/US/dev.jsonl", "test.jsonl")):
        medqa.read(tmp_path)


SOUND = json.dumps(row())


@each("content", [SOUND.encode("utf-16"), SOUND[:-20].encode(), b"\n\n", b"[" * 10**5])
def test_a_broken_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    file = official(tmp_path)
    file.write_bytes(content)
    with pytest.raises(DataError, match="test.jsonl.*allowed: "):
        medqa.read(file)


BAD = [
    ({"question": f"{vignette(12)} {FOR_THE_CAUSE.strip()}", "options": ["Gout"]}, "options"),
    ({"question": "  "}, "question"),
    ({"question": ["He is ill."]}, "question"),
    ({"question": "\ud800"}, "question"),
    ({"options": None}, "options"),
    ({"options": {"B": "Gout"}}, "options"),
    ({"options": {"A": 1, "B": "Gout"}}, "options.A"),
    ({"options": {"A": "Flu", "B": "?"}, "answer": "?"}, "options.B"),
    ({"answer_idx": "E"}, "answer_idx"),
    ({"answer_idx": None}, "answer_idx"),
    ({"answer": None}, "answer"),
    ({"answer": "Bursitis"}, "answer"),
    ({"meta_info": 2}, "meta_info"),
    ({"id": True}, "id"),
    ({"id": "1"}, "id"),
]


@each(("changes", "field"), BAD)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, changes: dict, field: str) -> None:
    file = tmp_path / "test.jsonl"
    file.write_text(f"{json.dumps(row(id=1))}\n{json.dumps(row(**changes))}\n")
    with pytest.raises(DataError) as caught:
        medqa.read(file)
    assert (caught.value.row, caught.value.field) == (2, field)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda s: st.lists(s) | st.dictionaries(st.text(max_size=3), s),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.sampled_from(["question", "options", "answer", "answer_idx", "meta_info", "id"]), JSON)
def test_a_wrong_type_anywhere_is_a_data_error_or_harmless(tmp_path, field, value) -> None:
    try:
        assert medqa.read(official(tmp_path, [row() | {field: value}])).n_entries == 1
    except DataError as error:
        assert error.row == 1


needs_medqa = pytest.mark.skipif(
    not REAL.is_dir(), reason="MedQA is not at ../shared/datasets/medqa beside the repository"
)


@pytest.mark.realdata
@needs_medqa
def test_every_real_case_tells_its_question_in_order_up_to_what_is_asked() -> None:
    read = medqa.read(REAL)
    assert (read.n_entries, len(read.cases)) == (873, 24)
    n_dropped = {reason: len(ids) for reason, ids in read.dropped.items()}
    assert n_dropped == {medqa.OTHER: 759, medqa.SHORT: 90}
    assert list(read.facts.values()) == [114, 24, 164, 24, 228, 0]
    others = [c.question for c in medqa.read(REAL, questions="any").cases]
    assert (len(others), others.count("")) == (164, 24)
    (file,) = REAL.rglob("*.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for case in read.cases:  # tells its question's words in order, up to the question
        one = rows[int(case.case_id.removeprefix("medqa-")) - 1]
        told = " ".join(s.text for s in case.statements)
        words = " ".join(one["question"].split())
        rest = words[len(told) :].strip()
        assert words.startswith(told) and asks_for_diagnosis(rest, case.diagnosis)
        assert len(rest) < 90 and case.diagnosis == one["answer"].strip()
