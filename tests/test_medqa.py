"""MedQA: which questions become cases, what is told of them, both formats of the file, and the real
test file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_medqa import ARROWS, ASKED, mirage, official, row, vignette

from trustlab.datasets import DataError, medqa
from trustlab.datasets.medqa import asks_for_diagnosis, split_question
from trustlab.paths import ROOT

REAL = ROOT.parent / "shared" / "datasets" / "medqa"
NAMED = "cases whose text names their diagnosis"


# -- cases
# --------------------------------------------------------------------------------------------------


def test_a_row_becomes_a_case_that_tells_neither_options_nor_question(tmp_path: Path) -> None:
    (case,) = medqa.read(official(tmp_path)).cases
    assert (case.case_id, case.dataset, case.diagnosis, case.patient) == (
        "medqa-1",
        "medqa",
        "Gout",
        {"options": ("Septic joint", "Gout", "Bursitis", "Fracture"), "step": "step2&3"},
    )
    assert [s.text for s in case.statements] == [
        f"The baker tells fact number {i}." for i in range(1, 12)
    ]


def test_every_name_the_knowledge_table_has_is_accepted(tmp_path: Path) -> None:
    options = {"A": "Gout", "B": "Influenza"}
    (case,) = medqa.read(official(tmp_path, [row(answer="Influenza", options=options)])).cases
    assert case.accepted[0] == "Influenza" and "Flu" in case.accepted


def test_an_answer_with_its_acronym_in_brackets_is_accepted_without(tmp_path: Path) -> None:
    options = {"A": "Gout", "B": "Made-up bone disease (MBD) 2"}
    (case,) = medqa.read(official(tmp_path, [row(answer=options["B"], options=options)])).cases
    assert (case.diagnosis, case.accepted) == (
        options["B"],
        (options["B"], "Made-up bone disease 2"),
    )


def test_a_stray_quotation_mark_is_no_part_of_the_answer(tmp_path: Path) -> None:
    options = {"A": "Bursitis", "B": 'Gout\n"'}
    (case,) = medqa.read(official(tmp_path, [row(answer=options["B"], options=options)])).cases
    assert case.diagnosis == "Gout"


@pytest.mark.parametrize("n_options", [2, 5])
def test_any_number_of_options_from_two_is_read(tmp_path: Path, n_options: int) -> None:
    options = {letter: f"Disease {letter}" for letter in "ABCDE"[:n_options]}
    (case,) = medqa.read(
        official(tmp_path, [row(options=options, answer="Disease B", metamap_phrases=["x"])])
    ).cases
    assert case.diagnosis == "Disease B"


def test_what_becomes_no_case_is_named_with_its_reason(tmp_path: Path) -> None:
    again = row(f"{vignette(12)} {ASKED}")
    rows = [
        row(f"{vignette(10)} {ASKED}"),
        row(f"{vignette(20)} What is the best treatment?"),
        again,
        again,
        row(),
    ]
    read = medqa.read(official(tmp_path, rows))
    assert [case.case_id for case in read.cases] == ["medqa-3", "medqa-5"]
    assert read.dropped == {medqa.SHORT: ["1"], medqa.OTHER: ["2"], medqa.AGAIN: ["4"]}
    assert (read.n_entries, read.facts[medqa.ASKING]) == (5, 4)


def test_a_statement_that_says_the_diagnosis_is_kept_and_its_case_counted(tmp_path: Path) -> None:
    read = medqa.read(official(tmp_path, [row(f"{vignette()} His father has gout. {ASKED}")]))
    assert read.facts.get(NAMED) == 1
    assert read.cases[0].statements[-1].text == "His father has gout."


def test_a_row_that_becomes_no_case_may_answer_in_arrows(tmp_path: Path) -> None:
    read = refused = None
    try:
        read = medqa.read(official(tmp_path, [ARROWS, row()]))
    except DataError as error:
        refused = str(error)
    assert read is not None and refused is None
    assert [case.case_id for case in read.cases] == ["medqa-2"]
    assert read.dropped == {medqa.OTHER: ["1"]}


def test_a_case_may_not_answer_in_arrows(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        medqa.read(official(tmp_path, [row(), ARROWS]), ids=["2"])
    assert (caught.value.row, caught.value.field) == (2, "options.B")


@pytest.mark.parametrize("options", [None, ["Gout"], {"A": "Gout"}])
def test_a_question_for_the_cause_needs_an_answer_to_read(tmp_path: Path, options) -> None:
    asked = f"{vignette()} Which of the following best explains these findings?"
    with pytest.raises(DataError) as caught:
        medqa.read(official(tmp_path, [row(asked, options=options)]))
    assert (caught.value.row, caught.value.field) == (1, "options")


# -- the final question
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (f'He is ill. {ASKED}"', ASKED),
        (
            "He is ill. Which of the following is the most likely diagnosis:",
            ASKED.replace("?", ":"),
        ),
        (f"He is ill.\n\n{ASKED}\n", ASKED),
        (
            "He is ill. With this in mind, what is the most likely diagnosis?",
            "With this in mind, what is the most likely diagnosis?",
        ),
    ],
)
def test_the_final_question_is_cut_off_however_it_ends(text: str, asked: str) -> None:
    assert split_question(text) == (["He is ill."], asked)


@pytest.mark.parametrize("gap", [" ", "\n"])
@pytest.mark.parametrize("question", [ASKED, ASKED.replace("Which", "Which one")])
def test_a_table_that_runs_into_the_question_is_told_without_it(gap: str, question: str) -> None:
    told, asked = split_question(
        f"He is pale. Studies show:{gap}Sodium 140 mEq/L{gap}Glucose 90 mg/dL{gap}{question}"
    )
    assert told == ["He is pale.", "Studies show: Sodium 140 mEq/L Glucose 90 mg/dL"]
    assert asked == question


@each(
    "question",
    [
        ASKED,
        "What is the most likely diagnosis in this patient?",
        "What is the patient’s most likely diagnosis?",
        "Which of the following was the most likely underlying diagnosis:",
        "Given these findings, which of the following is the most likely diagnosis in this boy?",
        "Which of the following diagnoses is most likely in this patient?",
        "Which of the following conditions does this patient most likely have?",
        "This patient is most likely suffering from which of the following disorders?",
        "Which of the following congenital conditions would best explain this patient's symptoms?",
        "The findings are most consistent with which diagnosis?",
        "Which one of the following is the most likely diagnosis?",
        "Which one of the following conditions does this patient most likely have?",
        "Which of the following is most likely the diagnosis?",
        "What is most likely the diagnosis in this patient?",
        "Which of the following is most likely this patient's diagnosis?",
        "What disease is the child suffering from?",
        "Which of the following disorders does this patient potentially suffer from?",
        "These findings support a diagnosis of which of the following?",
    ],
)
def test_a_question_for_the_diagnosis_is_known_as_one(question: str) -> None:
    assert asks_for_diagnosis(question)


@each(
    "question",
    [
        "Which of the following is the most appropriate next step in diagnosis?",
        "Which of the following is most likely to confirm the diagnosis?",
        "Which of the following is the best treatment for this patient's most likely diagnosis?",
        "Which of the following is the most likely cause of this patient's symptoms?",
        "Which of the following is associated with the most likely diagnosis?",
        "Which of the following diagnoses should be excluded first in this patient?",
        "Which of the following conditions is this patient at greatest risk for?",
        (
            "Which of the following diseases is also associated with this patient's most likely"
            " diagnosis?"
        ),
        "Which of the following best explains these findings?",
        "What is the most likely diagnosis, and how is it treated?",
        "What is the likely cause of this patient's condition?",
        "Which of the following is most likely responsible for her condition?",
        "If the patient had a rash, which of the following is the most likely diagnosis?",
        "Had he a rash, what is the most likely diagnosis?",
        "With these findings, if he had a rash, what is the most likely diagnosis?",
        "In addition to gout, which of the following is the most likely diagnosis?",
        "Besides gout, what is the most likely diagnosis?",
        "What is the next step, what is the most likely diagnosis?",
        "",
    ],
)
def test_a_question_for_anything_else_is_not(question: str) -> None:
    assert not asks_for_diagnosis(question)


WHY = [
    "Which of the following is the most likely cause of this patient's symptoms?",
    "What is the most likely underlying cause?",
    "Which of the following is the most likely etiology of this fetus’s presentation?",
    "Which of the following is the most likely explanation for these findings?",
    "Which of the following best explains these findings?",
    "Her symptoms can be explained by which of the following?",
    "Which of the following is most consistent with her behavior?",
    "Which of the following disorders is most consistent with this patient's presentation?",
    "This patient’s history is most consistent with which of the following conditions?",
    "Which of the following is the primary underlying cause of this patient’s presentation?",
    "Which of the following is most likely responsible for her condition?",
    "Which of the following is most likely to have produced this patient’s condition?",
    "This patient most likely has which of the following?",
]


def by_cause(folder: Path, question: str, answer: str) -> int:
    options = {"A": "Fracture", "B": answer}
    made = row(f"{vignette()} {question}", options=options, answer=answer)
    return len(medqa.read(official(folder, [made])).cases)


@each("question", WHY)
def test_a_question_for_the_cause_counts_by_its_answer(tmp_path: Path, question: str) -> None:
    assert by_cause(tmp_path, question, "Alport syndrome") == 1
    assert by_cause(tmp_path, question, "Impaired bile excretion") == 0


@each(
    "answer",
    [
        *("Influenza", "Celiac disease", "Avoidant personality disorder", "Choledocholithiasis"),
        *("Secondary hyperparathyroidism", "Eosinophilic esophagitis", "Small cell lung cancer"),
        *("Hypertrophic cardiomyopathy", "Adenocarcinoma of the lung", "Duodenal atresia"),
        *("Membranoproliferative glomerulonephritis (MPGN)", "Plague", "Diabetic retinopathy\n"),
    ],
)
def test_the_name_of_a_disease_is_known_as_one(tmp_path: Path, answer: str) -> None:
    assert by_cause(tmp_path, WHY[0], answer) == 1


@each(
    "answer",
    [
        *("Staphylococcus aureus", "Escherichia coli infection", "Cyclophosphamide"),
        *("Opioid overdose", "Vitamin B12 deficiency", "Adenosine deaminase deficiency"),
        *("Anti-B antibodies", "Osmotic diuresis", "Metabolic acidosis", "Hepatocyte necrosis"),
        *("Infarction of the bone trabeculae", "Compressive tumor of the pons"),
        *("Trauma of the testis", "Inflammation in the cystic duct", "Gastrin-secreting tumor"),
        *("Drug-induced lupus syndrome", "Complication of asthma", "Mutation behind a syndrome"),
        *("Treatment for bacterial pharyngitis", "Miosis", "Symptoms six months before diagnosis"),
        "Some very long words that come before a syndrome",
        *("Abscess formation", "Trauma", "Trisomy 13", "Oral contraceptives", "↓ ↑ ↓"),
    ],
)
def test_a_mechanism_an_organism_or_a_drug_is_no_disease(tmp_path: Path, answer: str) -> None:
    assert by_cause(tmp_path, WHY[0], answer) == 0


@pytest.mark.parametrize(
    "question",
    [
        "If she had fever, which of the following best explains these findings?",
        "The most likely cause of her symptoms is associated with which of the following?",
        "Which of the following drugs is the most likely cause of these findings?",
        "Which of the following is the most likely cause of this patient's hypotension?",
        "Which of the following is the most likely inciting factor for this patient's condition?",
    ],
)
def test_a_question_beside_the_cause_does_not_count(tmp_path: Path, question: str) -> None:
    assert by_cause(tmp_path, question, "Alport syndrome") == 0


# -- ids
# --------------------------------------------------------------------------------------------------

OTHERS = [row(), row(f"{vignette(12)} What happens next?"), row(vignette(13))]


@pytest.mark.parametrize("ids", [["2", "3"], [3, 2], ["medqa-2", "3"]])
def test_ids_choose_just_these_whatever_they_ask(tmp_path: Path, ids: list) -> None:
    read = medqa.read(official(tmp_path, OTHERS), ids=ids)
    assert [case.case_id for case in read.cases] == ["medqa-2", "medqa-3"]
    assert read.dropped == {medqa.UNASKED: ["1"]}


def test_a_question_that_was_not_asked_for_does_not_count_as_an_earlier_one(tmp_path: Path) -> None:
    read = medqa.read(official(tmp_path, [row(), row(), row()]), ids=[2, 3])
    assert [case.case_id for case in read.cases] == ["medqa-2"]
    assert read.dropped == {medqa.UNASKED: ["1"], medqa.AGAIN: ["3"]}


@pytest.mark.parametrize("kind", [str, Path])
def test_ids_may_be_a_text_file_with_comments_and_blank_lines(tmp_path: Path, kind: type) -> None:
    (tmp_path / "ids.txt").write_bytes(b"\xef\xbb\xbf# ours\r\n\r\n2  # the baker\r\n")
    read = medqa.read(official(tmp_path, OTHERS), ids=kind(tmp_path / "ids.txt"))
    assert [case.case_id for case in read.cases] == ["medqa-2"]


@each(
    ("ids", "message"),
    [
        (["1", "9"], "ids has 9, which"),
        ([], "ids is empty"),
        ("none.txt", "which is no file; allowed is a list of ids"),
        ("2", "'2', which is no file; allowed is a list of ids"),
        (2, "ids is 2; allowed is a list of ids"),
        ([2, None], "ids has None; allowed is a list of ids"),
        ([True, 2.0], "ids has True, 2.0; allowed is a list of ids"),
        (b"2", "ids is b'2'; allowed"),
        ({"2": 2}, "allowed is a list of ids"),
    ],
)
def test_ids_that_choose_nothing_are_refused(tmp_path: Path, ids: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        medqa.read(official(tmp_path, OTHERS), ids=ids)  # pyright: ignore[reportArgumentType]


# -- formats
# --------------------------------------------------------------------------------------------------


def test_mirage_tells_the_same_as_the_official_file(tmp_path: Path) -> None:
    rows = {"0000": row(meta_info=None), "0007": row(f"{vignette(12)} {ASKED}", meta_info=None)}
    from_mirage = medqa.read(mirage(tmp_path, rows)).cases
    from_rows = medqa.read(
        official(tmp_path, [one | {"id": key} for key, one in rows.items()])
    ).cases
    assert list(from_mirage) == list(from_rows)
    assert [case.case_id for case in from_mirage] == ["medqa-0000", "medqa-0007"]


def test_a_folder_with_one_file_is_enough_wherever_it_lies(tmp_path: Path) -> None:
    inner = tmp_path / "questions" / "US"
    inner.mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("not read")
    official(inner)
    assert medqa.read(tmp_path).n_entries == 1


def test_a_fetched_folder_s_note_of_its_source_is_not_taken_for_questions(tmp_path: Path) -> None:
    official(tmp_path)
    (tmp_path / "SOURCE.json").write_text("{}")
    assert len(medqa.read(tmp_path).cases) == 1


def test_a_folder_with_several_files_lists_them(tmp_path: Path) -> None:
    for name in ("dev.jsonl", "test.jsonl"):
        official(tmp_path, name=name)
    with pytest.raises(ValueError, match=r"2 files \(dev.jsonl, test.jsonl\)"):
        medqa.read(tmp_path)


@pytest.mark.parametrize("name", [None, "absent", ""])
def test_no_file_says_what_is_needed(tmp_path: Path, name: str | None) -> None:
    with pytest.raises(ValueError, match=r"jind11/MedQA.*MIRAGE"):
        medqa.read(None if name is None else tmp_path / name)


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b"\xef\xbb\xbf" + b,
        lambda b: b.replace(b"\n", b"\r\n"),
        lambda b: b.rstrip(),
        lambda b: b + b"\n\n",
    ],
)
def test_other_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path, change) -> None:
    file = official(tmp_path, OTHERS)
    plain = medqa.read(file)
    file.write_bytes(change(file.read_bytes()))
    assert medqa.read(file) == plain


@each(
    "change",
    [
        lambda b: b.decode().encode("utf-16"),
        lambda b: b[:-20],
        lambda b: b"",
        lambda b: b"\n\n",
        lambda b: b"[" * 10**5,
    ],
)
@each("name", ["test.jsonl", "benchmark.json"])
def test_a_broken_file_is_one_clear_error(tmp_path: Path, name: str, change) -> None:
    file = official(tmp_path) if name == "test.jsonl" else mirage(tmp_path, {"1": row()})
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(DataError, match=f"{name}.*allowed: "):
        medqa.read(file)


BAD = [
    ({"question": None}, "question"),
    ({"question": "  "}, "question"),
    ({"question": ["He is ill."]}, "question"),
    ({"question": "\ud800"}, "question"),
    ({"options": None}, "options"),
    ({"options": ["Gout", "Flu"]}, "options"),
    ({"options": {"B": "Gout"}}, "options"),
    ({"options": {"A": 1, "B": "Gout"}}, "options.A"),
    ({"options": {"A": "", "B": "Gout"}}, "options.A"),
    ({"options": {"A": "Flu", "B": "?"}, "answer": "?"}, "options.B"),
    ({"answer_idx": "E"}, "answer_idx"),
    ({"answer_idx": ["B"]}, "answer_idx"),
    ({"answer_idx": None}, "answer"),
    ({"answer": None}, "answer"),
    ({"answer": "Bursitis"}, "answer"),
    ({"meta_info": 2}, "meta_info"),
    ({"id": ""}, "id"),
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


@pytest.mark.parametrize(
    "content",
    [
        '{"medqa": []}',
        "[]",
        '{"medqa": {"1": 7}}',
        '{"medqa": {"1": {}, "1": {}}}',
        '{"medqa": {}}',
        "7",
    ],
)
def test_a_bad_mirage_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "benchmark.json").write_text(content)
    with pytest.raises(DataError, match="benchmark.json"):
        medqa.read(tmp_path / "benchmark.json")


def test_a_mirage_file_without_medqa_says_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "benchmark.json"
    file.write_text(json.dumps({"mmlu": {"x-1": row()}, "pubmedqa": {"7": row()}}))
    with pytest.raises(DataError, match="no medqa section; the file holds mmlu, pubmedqa"):
        medqa.read(file)


def test_a_mirage_section_alone_is_read(tmp_path: Path) -> None:
    (tmp_path / "medqa.json").write_text(json.dumps({"0001": row()}))
    assert [case.case_id for case in medqa.read(tmp_path).cases] == ["medqa-0001"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda s: st.lists(s) | st.dictionaries(st.text(max_size=3), s),
    max_leaves=5,
)
TOLD = st.lists(
    st.sampled_from(
        ["She is well.", "He is ill.", "It is 9.8 mg.", "Labs show:\nNa 5\nK 4\n", "Dr. Who came."]
    ),
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    field=st.sampled_from(["question", "options", "answer", "answer_idx", "meta_info", "id"]),
    value=JSON,
)
def test_a_wrong_type_anywhere_is_a_data_error_or_harmless(
    tmp_path: Path, field: str, value: object
) -> None:
    try:
        assert medqa.read(official(tmp_path, [row() | {field: value}])).n_entries == 1
    except DataError as error:
        assert error.row == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TOLD, min_size=1, max_size=6))
def test_every_question_is_a_case_or_dropped_just_once(
    tmp_path: Path, told: list[list[str]]
) -> None:
    read = medqa.read(official(tmp_path, [row(f"{' '.join(facts)} {ASKED}") for facts in told]))
    named = [case.case_id.removeprefix("medqa-") for case in read.cases] + [
        one for ids in read.dropped.values() for one in ids
    ]
    assert sorted(named, key=int) == [str(i) for i in range(1, len(told) + 1)]
    assert all(len(case.statements) > 10 for case in read.cases)
    assert not any(
        "most likely diagnosis" in s.text for case in read.cases for s in case.statements
    )


# -- the real test file
# ---------------------------------------------------------------------------------------------

BY_CAUSE = [
    *("Acute inferior myocardial infarction", "Alport syndrome", "Asthma attack"),
    *("Avoidant personality disorder", "Cardiac tamponade", "Celiac disease"),
    *("Choledocholithiasis", "Chronic obstructive bronchitis", "Cystocele", "Delirium"),
    *("Duodenal atresia", "Eosinophilic esophagitis", "Factitious disorder", "Heat stroke"),
    *("Hyperparathyroidism", "Hypertrophic cardiomyopathy", "Kwashiorkor", "Leydig cell tumor"),
    "Membrano proliferative glomerulonephritis (MPGN)",
    "Paraneoplastic syndrome from small cell carcinoma of the lung",
    *("Plague", "Primary hyperparathyroidism", "Secondary hyperparathyroidism"),
    "Sickle cell disease",
]
needs_medqa = pytest.mark.skipif(
    not REAL.is_dir(), reason="MedQA is not at ../shared/datasets/medqa beside the repository"
)


@pytest.mark.realdata
@needs_medqa
def test_the_real_file_gives_the_counts_told_in_the_documentation() -> None:
    read = medqa.read(REAL)
    assert (read.n_entries, len(read.cases)) == (873, 24)
    n_dropped = {reason: len(ids) for reason, ids in read.dropped.items()}
    assert n_dropped == {medqa.OTHER: 759, medqa.SHORT: 90}
    assert read.facts == {medqa.ASKING: 114, medqa.CAUSE: 24, NAMED: 0}


@pytest.mark.realdata
@needs_medqa
def test_every_real_question_let_in_by_its_cause_has_a_disease_for_an_answer() -> None:
    """Each of the 24 was read: the answer is a disease. Five are told at length."""
    (file,) = REAL.rglob("*.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = {}
    for one in rows:
        _, asked = split_question(one["question"])
        if not asks_for_diagnosis(asked) and asks_for_diagnosis(asked, one["answer"]):
            found[one["answer"]] = asked
    assert sorted(found) == BY_CAUSE
    told = {case.diagnosis for case in medqa.read(REAL).cases}
    assert told & set(found) == {
        "Avoidant personality disorder",
        "Choledocholithiasis",
        "Duodenal atresia",
        "Plague",
        "Secondary hyperparathyroidism",
    }


@pytest.mark.realdata
@needs_medqa
def test_every_real_case_tells_its_question_s_words_in_order_up_to_the_question() -> None:
    (file,) = REAL.rglob("*.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for case in medqa.read(REAL).cases:
        row = rows[int(case.case_id.removeprefix("medqa-")) - 1]
        told = " ".join(s.text for s in case.statements)
        words = " ".join(row["question"].split())
        asked = words[len(told) :].strip()
        assert words.startswith(told) and asks_for_diagnosis(asked, case.diagnosis)
        assert len(asked) < 90
        assert case.diagnosis == row["answer"].strip()
