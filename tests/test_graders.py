"""Right and wrong answers: the rules that every grader keeps, what each adds, and a run graded
anew."""

from __future__ import annotations

import csv
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from each import each
from made_graders import (
    BY_WORDS,
    COPD,
    EVERY,
    EXACT,
    NO_TABLE,
    PNEUMONIA,
    TABLE,
    SaysTrue,
    case,
    condition,
)
from saying import saying, says

from studies.graders import agreement_table, grade, verdicts
from trustlab.datasets.public_replies import PUBLIC
from trustlab.graders import (
    GRADERS,
    UNKNOWN,
    EncoderGrader,
    ExactGrader,
    Grade,
    Grader,
    JudgeGrader,
    SynonymGrader,
    open_grader,
    unknown_truths_warning,
)
from trustlab.knowledge.findings import Knowledge, load_knowledge
from trustlab.knowledge.same_diagnosis import exclude
from trustlab.knowledge.same_or_narrower import RIGHT
from trustlab.models.cache import CachedModel
from trustlab.records import Case

WRONG = [
    "Unknown diagnosis", "I don't know", "37.5", "", "pneumonia or bronchitis",
    "1. pneumonia 2. bronchitis", "pneumonia/bronchitis", "Differential: pneumonia",
    "No evidence of pneumonia", "Pneumonia (ruled out)", "unlikely pneumonia", "Option C",
]  # fmt: skip
TRAPS = [
    ("MEN2B", "MEN2A"),
    ("Vitamin B1 deficiency", "Vitamin B12 deficiency"),
    ("Cushing's disease", "Cushing's syndrome"),
    ("Central retinal vein occlusion", "Central retinal artery occlusion"),
    ("Pneumonia", "Viral pneumonia"),
    ("mild asthma", "Severe asthma"),
]


def verdict(grader: Grader, answer: str, truth: Case) -> int | None:
    return grader.grade([answer], [truth])[0].correct


@EVERY
@each(("answer", "truth"), [*((answer, "Pneumonia") for answer in WRONG), *TRAPS])
def test_no_diagnosis_several_a_denial_or_another_one_is_wrong_to_every_grader(
    grader: Grader, answer: str, truth: str
) -> None:
    assert verdict(grader, answer, case(truth)) == 0


@EVERY
def test_an_unreadable_answer_is_wrong_and_signs_in_a_true_name_do_not_count(grader) -> None:
    assert [g.correct for g in grader.grade([None], [PNEUMONIA])] == [0]
    for name in ("Acute COPD exacerbation / infection", "Foot, hand and mouth disease"):
        assert verdict(grader, name.lower(), case(name)) == 1, name
    with pytest.raises(ValueError, match="2 answers and 1 cases"):
        grader.grade(["flu", "croup"], [PNEUMONIA])


OTHER_KINDS = [
    ("Acute pancreatitis", "Chronic pancreatitis"),
    ("hypothyroidism", "Hyperthyroidism"),
    ("Type 1 diabetes", "Type 2 diabetes"),
    ("unstable angina", "Stable angina"),
    ("Migraine without aura", "Migraine with aura"),
    # labels, codes, shares and brackets hide no list, denial or other name
    ("Diagnosis: not pneumonia", "Pneumonia"),
    ("Pneumonia (0%)", "Pneumonia"),
    ("Chronic obstructive pulmonary disease (CHF)", "Chronic obstructive pulmonary disease"),
]
CERTAIN = [
    "Most likely pneumonia.", "a severe pneumonia", "Diagnosis: pneumonia",
    "Pneumonia (J18.9)", "Pneumonia (ICD-10: J18)", "Pneumonia (80%)", "Pneu\u00admon\u200bia",
]  # fmt: skip
SAME = [
    *((answer, "Pneumonia") for answer in CERTAIN),
    *((f"Crohn{mark}s disease", "Crohn disease") for mark in "'’`´′ʹ＇"),
    ("viral pneumonia", "Pneumonia"),  # a kind of it
    ("Bronchitis, acute", "Acute bronchitis"),
    ("Sjogren syndrome", "Sjögren's syndrome"),
    ("CLL", "Chronic lymphocytic leukemia (CLL)"),
]


@BY_WORDS
@each(("answer", "truth", "right"), [(*p, 0) for p in OTHER_KINDS] + [(*p, 1) for p in SAME])
def test_another_kind_is_wrong_and_another_way_to_write_the_name_is_right(
    grader: Grader, answer: str, truth: str, right: int
) -> None:
    assert verdict(grader, answer, case(truth)) == right
    assert verdict(EXACT, answer, case(truth)) == 0  # which is strict about both
    assert verdict(grader, "Smoker's lung (chronic obstructive pulmonary disease)", COPD) == 1


def test_opposite_prefixes_alone_rule_a_word_out() -> None:
    assert exclude({"preeclampsia"}, {"eclampsia"}) and exclude({"eclampsia"}, {"preeclampsia"})
    assert not exclude({"bronchitis"}, {"arthritis"})  # no prefixes make one the other
    assert not exclude({"hyperthyroidism"}, {"hyperparathyroidism"})


# The exact and the synonym grader

FLU, NFD = case("Influenza", "Seasonal fever"), unicodedata.normalize("NFD", "Ménière disease")
RIPPLES = condition("Ripples", "Wavelets")
WAVES = Knowledge({}, {}, {}, condition_of_name={n: RIPPLES for n in ("ripples", "wavelets")})


@each(
    ("grader", "truth", "right", "wrong", "unknown"),
    [
        (SynonymGrader(TABLE), FLU,
         ["  influenza. ", "The Grippe", "a seasonal fever", "Influenza (flu)", "acute influenza"],
         ["Croup", "Influenza or croup", "the"], ["Unheard-of disease"]),
        # an initial "a" is not always an article
        (SynonymGrader(TABLE), case("A-fib"), ["A fib", "Atrial fibrillation"], [], ["fib"]),
        (SynonymGrader(TABLE), case("Ménière disease"), [NFD], [], []),
        (EXACT, case("Influenza", "Flu"), ["The influenza"], ["Flu", "Influenza (flu)"], []),
        # the table joins names that the case does not list
        (SynonymGrader(WAVES), case("Ripples"), ["Wavelets"], [], []),
        (SynonymGrader(WAVES), case("Spindrift"), [], ["Wavelets"], ["Foam"]),
        (SynonymGrader(NO_TABLE), case("Ripples"), [], [], ["Wavelets"]),
    ],
)  # fmt: skip
def test_names_by_hand(grader: Grader, truth, right, wrong, unknown) -> None:
    for answers, correct in ((right, 1), (wrong, 0), (unknown, None)):
        grades = grader.grade(answers, [truth] * len(answers))
        assert [grade.correct for grade in grades] == [correct] * len(answers)
        assert all(grade.missing == UNKNOWN for grade in grades if grade.correct is None)


def test_every_name_of_the_shipped_table_is_right_for_its_own_condition_only() -> None:
    grader, conditions = SynonymGrader(), list(load_knowledge().conditions.values())
    for this, other in zip(conditions, conditions[1:] + conditions[:1], strict=True):
        for truth, right in ((this, 1), (other, 0)):
            assert {verdict(grader, name, case(truth.name)) for name in this.names} == {right}


DATA = Path(__file__).parent / "data"
with (DATA / "diagnosis_pairs.csv").open(encoding="utf-8") as file:
    PAIRS = list(csv.DictReader(file))


def called_right(rows: list[dict[str, str]]) -> list[bool]:
    """Whether the default grader calls each answer right; an unknown one is not."""
    cases = [case(row["truth"]) for row in rows]
    grades = SynonymGrader().grade([row["answer"] for row in rows], cases)
    return [grade.correct == 1 for grade in grades]


def test_nearly_every_pair_is_graded_as_a_person_does() -> None:
    called = called_right(PAIRS)
    right = [row["expected"] in RIGHT for row in PAIRS]
    wrong = [row for row, c, r in zip(PAIRS, called, right, strict=True) if c != r]
    assert [row for row in wrong if not row["open"]] == []
    both = sum(c and r for c, r in zip(called, right, strict=True))
    assert len(PAIRS) > 700 and both / sum(called) >= 0.99 and both / sum(right) >= 0.97


@each("part", ["mended on", "kept back"])
def test_precision_and_recall_on_ruled_pairs_are_those_of_the_docs(part: str) -> None:
    with (PUBLIC / "craft_md" / "ruled_pairs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == part]
    rows = [row for row in rows if row["ruling"] in ("right", "wrong")]
    called = called_right(rows)
    right = [row["ruling"] == "right" for row in rows]
    hits = sum(c and r for c, r in zip(called, right, strict=True))
    docs = (Path(__file__).parents[1] / "docs/python.md").read_text(encoding="utf-8")
    numbers = f"{hits} of {sum(called)} are right, and it finds {hits} of {sum(right)}"
    assert f"*{part}* {numbers}" in docs
    assert hits / sum(called) >= 0.95 and hits / sum(right) >= 0.84


ONE_DISEASE = [
    ("Primary CNS lymphoma", "Primary central nervous system lymphoma"),
    ("Empyema", "Pleural empyema"),
    ("Renal calculus", "Nephrolithiasis"),
    ("Ureteral calculus", "Ureterolithiasis"),
    ("Ureteric stone", "Urolithiasis"),
    ("Lisinopril-induced angioedema", "Drug-induced angioedema"),
    ("Angioedema due to enalapril", "Drug-induced angioedema"),
    ("Ibuprofen-associated gastritis", "Gastritis"),
    ("Sjoegren's syndrome", "Sjögren syndrome"),
    ("Guillain Barré syndrome", "Guillain-Barre syndrome"),
    ("Behçets disease", "Behcet's disease"),
    ("Ménière's disease", "Meniere disease"),
    ("Henoch-Schoenlein purpura", "Henoch-Schönlein purpura"),
    ("Coal workers' pneumoconiosis", "Coal worker' s pneumoconiosis"),
    ("Premature ovarian failure", "Premature ovarian insufficiency"),
    ("Adenocarcinoma of the pancreas", "Pancreatic cancer"),
    ("Testicular tumor", "Testicular cancer"),
    ("β-thalassemia major", "Beta thalassemia major"),
    ("Seborrheic keratoses", "Seborrheic keratosis"),
    ("Acute gout attack", "Acute gout"),
    # one letter too few, too many, another, two that changed places; on either side
    ("Pyoderma gangrenosm", "Pyoderma gangrenosum"),
    ("Dacryocystitis", "Dacryocystittis"),
    ("Dermatomyositis", "Dermatomyocitis"),
    ("Central retinal artery occlusion", "Central retinal artery occulsion"),
]
TWO_DISEASES = [
    ("Subdural empyema", "Pleural empyema"),
    ("Ureteral stone", "Kidney stone"),
    ("Drug-induced lupus", "Lupus"),
    ("Drug-induced angioedema", "Lisinopril-induced angioedema"),  # a broader name
    ("Pancreatic neuroendocrine tumor", "Pancreatic cancer"),
    ("Lung adenocarcinoma", "Pancreatic adenocarcinoma"),
    # a letter makes another word of medicine, or the opposite
    ("Ureteral stricture", "Urethral stricture"),
    ("Dysphagia", "Dysphasia"),
    ("Hypercalcemia", "Hypocalcemia"),
    ("Arteritis", "Arthritis"),
]
BESIDE = [
    ("Systemic vasculitis, polyarteritis nodosa", "Polyarteritis nodosa"),  # a broader name
    ("Churg-Strauss syndrome, EGPA", "Eosinophilic granulomatosis with polyangiitis"),
    ("Deep vein thrombosis, pulmonary embolism", "Deep vein thrombosis"),
    ("Pleural effusion, pneumonia", "Pneumonia"),
    ("Alzheimer disease, early stage of the illness", "Alzheimer disease"),
    ("Delusional disorder, erotomanic type", "Delusional disorder"),
]
LISTS_OF_TWO = [
    ("Pneumonia, acute gastritis", "Pneumonia"),
    ("Lung cancer, tuberculosis", "Tuberculosis"),
    ("Asthma, cardiac", "Asthma"),
    ("Deep vein thrombosis, superficial thrombophlebitis", "Superficial thrombophlebitis"),
    ("Pneumonia, not asthma", "Pneumonia"),
    ("Pneumonia, bronchitis or asthma", "Pneumonia"),
]


@each(
    ("answer", "truth", "right"),
    [(*pair, 1) for pair in ONE_DISEASE + BESIDE] + [(*p, 0) for p in TWO_DISEASES + LISTS_OF_TWO],
)
def test_other_spellings_and_names_are_the_same_and_a_second_disease_is_not(
    answer: str, truth: str, right: int
) -> None:
    assert verdict(SynonymGrader(), answer, case(truth)) == right


@each("answer", ["Blorptic zoonitis", "Acute blorptitis", "Blorptitis due to quux (BQ)"])
def test_an_answer_that_nothing_knows_is_unknown_and_left_to_other_graders(answer: str) -> None:
    for truth in ("Pneumonia", "Quuxosis"):
        assert SynonymGrader().grade([answer], [case(truth)]) == [Grade(None, UNKNOWN)]
    assert verdict(JudgeGrader(SaysTrue("False")), answer, PNEUMONIA) == 0


@each("answer", [*WRONG, "Gout", "Left knee gout", "Gout (podagra)", "Blorptitis or zoonitis"])
def test_a_known_disease_a_list_a_denial_and_nothing_stay_wrong(answer: str) -> None:
    assert verdict(SynonymGrader(), answer, case("Quuxosis")) == 0


@each(
    ("answer", "truth", "kind"),
    [
        ("Heart attack", "Myocardial infarction", "same"),
        ("Migraine without aura", "Migraine", "narrower"),
        ("Migraine", "Migraine without aura", "other"),
    ],
)
def test_a_grade_says_which_kind_of_right_it_is(answer: str, truth: str, kind: str) -> None:
    found = SynonymGrader().grade([answer], [case(truth)])
    assert found == [Grade(int(kind != "other"), kind=kind)]


# The encoder


@each(
    ("answer", "truth", "right"),
    [
        ("Acute inflammation of the gallbladder", "Acute gallbladder inflammation", 1),
        ("Acute ottitis media", "Acute otitis media", 1),
        ("Viral pneumonia", "Bacterial pneumonia", 0),
    ],
)
def test_the_encoder_forgives_wordings_and_keeps_diseases_apart(answer, truth, right: int) -> None:
    grader = EncoderGrader(knowledge=NO_TABLE)
    assert verdict(grader, answer, case(truth)) == right


# The judge


@each(
    ("text", "right"),
    [("True", 1), ("false.", 0), ("**True**", 1), ("", None), ("True, as both are", None),
     ("not true", None), ("True False", None), ("yes", None), (None, None)],
)  # fmt: skip
def test_the_judges_one_word_is_the_verdict_and_another_leaves_the_answer_ungraded(
    text: str | None, right: int | None
) -> None:
    model = SaysTrue(text, None if text is not None else "the server is gone")
    judge = JudgeGrader(model, knowledge=NO_TABLE)
    (found,) = judge.grade(["Lung inflammation"], [PNEUMONIA])
    assert found.correct == right
    if right is None:
        why = (True, False, text) if text is not None else "the server is gone"
        assert says(found.missing, why)


def test_the_judge_sees_every_true_name_and_answer_delimited_and_nothing_of_the_patient() -> None:
    model = SaysTrue()
    truth = case("Influenza", "Seasonal fever")
    JudgeGrader(model, knowledge=TABLE).grade(["Winter <proposed> fever"], [truth])
    (request,) = model.asked
    user = dict(request.messages)["user"]
    assert "<truth>\nInfluenza\nSeasonal fever\nFlu\nGrippe\n</truth>" in user
    assert "<proposed>\nWinter ‹proposed> fever\n</proposed>" in user and "Cough" not in user
    assert (request.temperature, request.purpose) == (0, "judge")


def test_the_judge_is_asked_once_a_pair_not_for_what_rules_settle_and_its_replies_are_kept(
    tmp_path: Path,
) -> None:
    model, lung = SaysTrue("False"), "Lung inflammation"
    judge = JudgeGrader(CachedModel(model, tmp_path / "replies.sqlite"), knowledge=NO_TABLE)
    settled = ["Pneumonia", "not pneumonia", None, "Option C", "Pneumonia or croup"]
    answers, truths = [lung, lung, *settled, lung], [PNEUMONIA] * 7 + [case("Croup")]
    grades = judge.grade(answers, truths)
    assert [g.correct for g in grades] == [0, 0, 1, 0, 0, 0, 0, 0] and len(model.asked) == 2
    again = SaysTrue("True")
    kept = JudgeGrader(CachedModel(again, tmp_path / "replies.sqlite"), knowledge=NO_TABLE)
    assert verdict(kept, lung, PNEUMONIA) == 0 and not again.asked


# All graders


def test_graders_have_names_and_an_unknown_one_is_refused_with_the_known_ones() -> None:
    names = {name: make().name for name, make in GRADERS.items()}
    assert names == {name: name for name in ("synonym", "exact", "encoder")}
    for name, message in [
        ("judge", ("grader", "'judge'", "synonym", "exact", "encoder", "judge:MODEL")),
        ("judge:nobody", ("model", "'nobody'")),
    ]:
        with pytest.raises(ValueError, match=saying(message)):
            open_grader(name)
    for threshold in (0, 1.01, float("nan")):
        with pytest.raises(ValueError, match=saying("threshold", "above 0", "above 1")):
            EncoderGrader(threshold=threshold)


# A run graded anew

KEY = {"dataset": "toy", "level": 100, "model": "m"}
SAID = [
    # case, answer, truth, correct as it was
    ("a", "Flu", "Influenza", 0),
    ("b", "influenza", "Influenza", 1),
    ("c", "Acute ottitis media", "Acute otitis media", 0),
    ("d", "Croup", "Influenza", 0),
    ("e", None, "Influenza", 0),
    ("f", None, "Influenza", np.nan),
]


def answers() -> pd.DataFrame:
    rows = pd.DataFrame(SAID, columns=["case_id", "answer", "truth", "correct"])
    return rows.assign(n_words=7, missing=[*[""] * 5, "the server is gone"], **KEY)


def cases(**accepted: tuple[str, ...]) -> list[Case]:
    return [Case(i, "toy", (), truth, (truth, *accepted.get(i, ()))) for i, _, truth, _ in SAID]


class Doubtful(ExactGrader):
    """Cannot tell what it has not heard of."""

    name = "doubtful"

    def grade(self, answers, cases):
        pairs, unheard = zip(answers, super().grade(answers, cases), strict=True), "never heard of"
        return [Grade(None, unheard) if a == "Croup" else g for a, g in pairs]


@each(
    ("grader", "accepted", "correct"),
    [
        ("exact", {}, [0, 1, 0, 0, 0, np.nan]),  # a failed answer stays failed
        # cases bring accepted names; "ottitis" is too short for a slip, and unknown
        ("synonym", {"d": ("Croup",)}, [1, 1, np.nan, 1, 0, np.nan]),
        ("encoder", {}, [1, 1, 1, 0, 0, np.nan]),
        (Doubtful(), {}, [0, 1, 0, np.nan, 0, np.nan]),
    ],
)
def test_each_grader_gives_its_own_verdicts_and_leaves_the_rest(grader, accepted, correct) -> None:
    given = answers()
    graded = grade(given, grader, cases(**accepted))
    assert graded["correct"].to_list() == pytest.approx(correct, nan_ok=True)
    assert set(graded["grader"]) == {open_grader(grader).name}
    rest = ["correct", "missing"]
    kept = [t.drop(columns=rest) for t in (graded[given.columns], given)]
    pd.testing.assert_frame_equal(*kept)
    pd.testing.assert_frame_equal(given, answers())


@each(
    ("table", "given", "message"),
    [
        (answers(), cases()[:-1], "lacks case 'f' of data set 'toy'"),
        (answers().assign(truth="Croup"), cases(), "has the diagnosis 'Influenza', but.*'Croup"),
        (answers().drop(columns="truth"), cases(), r"lacks the columns \['truth'\]"),
    ],
)
def test_a_case_that_is_lacking_or_has_another_truth_is_refused(table, given, message) -> None:
    with pytest.raises(ValueError, match=message):
        grade(table, "exact", given)


def test_graders_are_compared_in_pairs_on_what_both_graded() -> None:
    graded = verdicts(answers(), ["exact", "synonym", Doubtful()], cases())
    long = agreement_table(*graded)
    assert list(dict.fromkeys(long["metric"])) == ["kappa", "agreement"]
    table = long[long["metric"] == "kappa"].set_index(["first", "second"])
    pairs = [("exact", "synonym"), ("exact", "doubtful"), ("synonym", "doubtful")]
    assert list(table.index) == pairs
    counts = ["n", "both_right", "only_first", "only_second", "both_wrong", "n_missing"]
    # a failed answer is missing, and an unknown one
    assert table.loc[pairs[0], counts].to_list() == [4, 1, 0, 1, 2, 2]
    assert table.loc[pairs[2], counts].to_list() == [3, 1, 1, 0, 1, 3]
    assert table.loc[pairs[1], "value"] == 1
    for graders in (["exact"], ["exact", ExactGrader()]):
        with pytest.raises(ValueError, match="two or more"):
            verdicts(answers(), graders, cases())


UNSETTLED = [
    ("Prednisone", "Prednisolone"),  # the table's synonym, since the same speaks against both
    ("Insulin glargine", "Insulin"),
    ("Hydrochlorothiazide", "Chlorothiazide"),  # not in the table
    ("Salmonella enterica", "Pyelonephritis"),  # an organism where a disease is asked for
    ("Chlamydia testing", "Chlamydia screening"),  # no organisms
]


@each("answer, truth", UNSETTLED)
def test_a_drug_or_organism_that_the_names_do_not_settle_is_ungraded(
    answer: str, truth: str
) -> None:
    (grade,) = SynonymGrader().grade([answer], [case(truth)])
    assert (grade.correct, grade.missing) == (None, UNKNOWN)


def test_another_drug_is_wrong_and_the_warning_counts_drugs_as_known() -> None:
    (grade,) = SynonymGrader().grade(["Azithromycin"], [case("Ceftriaxone")])
    assert grade.correct == 0
    assert not unknown_truths_warning(SynonymGrader(), [case("Ceftriaxone")])
