"""The knowledge table: what is in it, that its words keep apart what must be kept apart, and that
it carries DDXPlus whole."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from trustlab.knowledge import (
    GRADES,
    Finding,
    Knowledge,
    answer_text,
    load_knowledge,
    phrase_list,
    say,
)
from trustlab.paths import DATA, ROOT
from trustlab.records import normalise

DDXPLUS = """
Spontaneous pneumothorax; Cluster headache; Boerhaave; Spontaneous rib fracture; GERD;
HIV (initial infection); Anemia; Viral pharyngitis; Inguinal hernia; Myasthenia gravis;
Whooping cough; Anaphylaxis; Epiglottitis; Guillain-Barré syndrome; Acute laryngitis; Croup; PSVT;
Atrial fibrillation; Bronchiectasis; Allergic sinusitis; Chagas; Scombroid food poisoning;
Myocarditis; Larygospasm; Acute dystonic reactions; Localized edema; SLE; Tuberculosis;
Unstable angina; Stable angina; Ebola; Acute otitis media; Panic attack;
Bronchospasm / acute asthma exacerbation; Bronchitis; Acute COPD exacerbation / infection;
Pulmonary embolism; URTI; Influenza; Pneumonia; Acute rhinosinusitis; Chronic rhinosinusitis;
Bronchiolitis; Pulmonary neoplasm; Possible NSTEMI / STEMI; Sarcoidosis; Pancreatic neoplasm;
Acute pulmonary edema; Pericarditis
"""
FURTHER = [
    "acute_appendicitis",
    "acute_cholecystitis",
    "acute_diverticulitis",
    "acute_hepatitis",
    "acute_pancreatitis",
    "acute_pyelonephritis",
    "abdominal_aortic_aneurysm",
    "bowel_obstruction",
    "coeliac_disease",
    "cystitis",
    "ectopic_pregnancy",
    "irritable_bowel_syndrome",
    "kidney_stone",
    "peptic_ulcer_disease",
    "ulcerative_colitis",
    "viral_gastroenteritis",
]
ABDOMINAL = {"gastrointestinal", "genitourinary"}
HISTORY_OF = {
    "asthma_hospitalisation": "acute_asthma",
    "chronic_sinusitis": "chronic_rhinosinusitis",
    "copd_flare_ups": "copd_exacerbation",
    "croup_self_or_family": "croup",
    "ebola_contact": "ebola_virus_disease",
    "family_allergies": "allergic_rhinosinusitis",
    "family_anaemia": "anaemia",
    "family_cluster_headache": "cluster_headache",
    "family_coeliac": "coeliac_disease",
    "family_early_heart_disease": "myocardial_infarction",
    "family_lung_cancer": "lung_cancer",
    "family_myasthenia": "myasthenia_gravis",
    "family_pancreatic_cancer": "pancreatic_cancer",
    "heart_attack_or_angina": "myocardial_infarction",
    "inflammatory_bowel_disease": "ulcerative_colitis",
    "known_atrial_fibrillation": "atrial_fibrillation",
    "known_kidney_stones": "kidney_stone",
    "known_reflux_disease": "gastro_oesophageal_reflux_disease",
    "past_anaemia": "anaemia",
    "past_pericarditis": "acute_pericarditis",
    "past_pneumonia": "pneumonia",
    "past_pneumothorax": "spontaneous_pneumothorax",
    "pertussis_contact": "whooping_cough",
    "previous_ectopic": "ectopic_pregnancy",
    "recurrent_uti": "cystitis",
    "repeated_asthma_attacks": "acute_asthma",
}
"""The findings whose own words name a condition, because they are a history of it, of a relative's
or of a contact's."""

RELEASE = ROOT.parent / "shared" / "datasets" / "ddxplus"
ICD10 = {
    "Spontaneous rib fracture": "S22.3",
    "SLE": "M32",
    "Panic attack": "F41.0",
    "Influenza": "J11",
    "Pneumonia": "J18",
}
"""Where our ICD-10 code is not the release's: S22.9, M34, f41, j11.1, "j17, j18"."""

realdata = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        not (RELEASE / "release_evidences.json").is_file(),
        reason="no DDXPlus release in ../shared/datasets",
    ),
]


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load_knowledge()


def phrasings(finding: Finding) -> list[str]:
    return [finding.question, *finding.affirm, *finding.deny]


def test_all_conditions_of_ddxplus_and_sixteen_more(knowledge: Knowledge) -> None:
    names = [normalise(n) for n in DDXPLUS.split(";")]
    assert len(set(names)) == 49
    assert sorted(names) == sorted(normalise(n) for n in knowledge.condition_of_ddxplus)
    assert sorted(FURTHER) == sorted(
        c.id for c in knowledge.conditions.values() if c.ddxplus is None
    )
    assert sum(knowledge.conditions[c].system in ABDOMINAL for c in FURTHER) >= 12
    for condition in knowledge.condition_of_ddxplus.values():
        assert (
            condition.ddxplus in condition.names
            or knowledge.condition_named(str(condition.ddxplus)) is condition
        )


def test_every_finding_can_be_asked_affirmed_and_denied_in_several_ways(
    knowledge: Knowledge,
) -> None:
    for f in knowledge.findings.values():
        assert f.question.endswith("?") and len(f.affirm) >= 4 and len(f.deny) >= 3, f.id
        assert all(
            p == p.strip() and p.endswith(".") and "\n" not in p for p in (*f.affirm, *f.deny)
        ), f.id
        slot = f.form not in ("binary", "flag")
        assert all(p.count("{value}") == slot for p in f.affirm), f.id
        assert not any("{" in p for p in (f.question, *f.deny)), f.id


def test_no_phrasing_stands_twice_in_the_table(knowledge: Knowledge) -> None:
    count = Counter(normalise(p) for f in knowledge.findings.values() for p in phrasings(f))
    assert [p for p, n in count.items() if n > 1] == []
    assert len(count) > 2000


def test_no_phrasing_names_a_condition_but_the_one_it_is_a_history_of(knowledge: Knowledge) -> None:
    named = set()
    for f in knowledge.findings.values():
        said = " | ".join(normalise(p) for p in phrasings(f))
        named |= {
            (f.id, c.id)
            for name, c in knowledge.condition_of_name.items()
            if f" {name} " in f" {said} "
        }
    assert named == set(HISTORY_OF.items())
    assert {knowledge.findings[f].kind for f in HISTORY_OF} == {"history"}


def test_no_value_names_a_condition_and_no_two_of_a_kind_sound_alike(knowledge: Knowledge) -> None:
    said = [(v.kind, normalise(v.phrase)) for v in knowledge.values.values()]
    assert len(said) == len(set(said))
    assert not [v for _, v in said for n in knowledge.condition_of_name if f" {n} " in f" {v} "]


def test_no_name_means_two_conditions(knowledge: Knowledge) -> None:
    owners: dict[str, set[str]] = {}
    for c in knowledge.conditions.values():
        for name in c.names:
            owners.setdefault(normalise(name), set()).add(c.id)
    assert [n for n, ids in owners.items() if len(ids) > 1] == []
    assert not [n for n in owners if not n]


def test_names_are_compared_without_case_spacing_and_punctuation(knowledge: Knowledge) -> None:
    for written in (
        "Heart attack",
        " heart-ATTACK. ",
        "Possible NSTEMI / STEMI",
        "myocardial  infarction",
    ):
        found = knowledge.condition_named(written)
        assert found is not None and found.id == "myocardial_infarction"
    assert knowledge.condition_named("heart") is None
    assert knowledge.condition_named("") is None


def test_every_grade_is_known_and_is_the_chance(knowledge: Knowledge) -> None:
    for c in knowledge.conditions.values():
        assert set(c.grades.values()) <= set(GRADES), c.id
        assert dict(c.findings) == {f: GRADES[g] for f, g in c.grades.items()}
    assert list(GRADES.values()) == sorted(GRADES.values(), reverse=True) and all(
        0 < p < 1 for p in GRADES.values()
    )


def test_conditions_refer_to_what_exists_and_fits(knowledge: Knowledge) -> None:
    for c in knowledge.conditions.values():
        assert (
            c.prior > 0 and c.sex in ("any", "female", "male") and 0 <= c.age[0] < c.age[1] <= 120
        )
        assert any(
            knowledge.findings[f].kind == "symptom" and not knowledge.findings[f].parent
            for f in c.findings
        ), c.id
        for f in (knowledge.findings[i] for i in c.findings):
            assert f.form == "binary" and (f.parent is None or f.parent in c.findings), (c.id, f.id)
            assert f.sex is None or c.sex in ("any", f.sex), (c.id, f.id)
        for f in (knowledge.findings[i] for i in c.values):
            assert f.parent is None or f.parent in c.findings, (c.id, f.id)
            allowed = {"scale": {"mean", "sd"}, "flag": {"flag"}}.get(f.form)
            allowed = allowed or {
                "none",
                *(v.id for v in knowledge.values.values() if v.kind == f.values),
            }
            assert c.values[f.id] and set(c.values[f.id]) <= allowed, (c.id, f.id)
            assert f.form == "scale" or all(0 <= p <= 1 for p in c.values[f.id].values()), (
                c.id,
                f.id,
            )


def test_findings_refer_to_what_exists_and_each_belongs_to_a_condition(
    knowledge: Knowledge,
) -> None:
    kinds = {v.kind for v in knowledge.values.values()}
    for f in knowledge.findings.values():
        assert (
            f.kind in ("symptom", "history")
            and 0 < f.background < 1
            and f.sex in (None, "female", "male")
        ), f.id
        assert f.form in ("binary", "several", "choice", "scale", "flag"), f.id
        assert (f.values in kinds) if f.form in ("several", "choice") else (f.values is None), f.id
        assert f.parent is None or knowledge.findings[f.parent].parent is None, f.id
    assert set(knowledge.findings) == {
        f for c in knowledge.conditions.values() for f in (*c.findings, *c.values)
    }


def test_ids_are_unique_in_the_files() -> None:
    for name in ("findings", "conditions"):
        lines = (DATA / "knowledge" / f"{name}.yml").read_text(encoding="utf-8").splitlines()
        ids = [line.removeprefix("- id: ") for line in lines if line.startswith("- id: ")]
        assert len(ids) == len(set(ids)) == len(getattr(load_knowledge(), name))
    lines = (DATA / "knowledge" / "values.yml").read_text(encoding="utf-8").splitlines()
    assert len(load_knowledge().values) == sum(": {" in line for line in lines)


def test_sentences() -> None:
    f = Finding(
        "x",
        "x",
        "symptom",
        "Where?",
        ("In {value}.", "It is in {value}."),
        ("No.", "Nowhere."),
        form="several",
    )
    assert (
        phrase_list(["a"]) == "a"
        and phrase_list(["a", "b"]) == "a and b"
        and phrase_list(["a", "b", "c"]) == "a, b and c"
    )
    assert answer_text(f, True, ["my hand", "my foot"]) == "In my hand and my foot."
    assert answer_text(f, True, ["my hand"], wording=3) == "It is in my hand."
    assert answer_text(f, False, wording=2) == "No."
    assert say(f, "No.") == "Doctor: Where?\nPatient: No."


# -- against the release, where it is present
# ---------------------------------------------------------------------


def release(name: str) -> dict:
    return json.loads((RELEASE / f"release_{name}.json").read_text(encoding="utf-8"))


class TestRelease:
    pytestmark = realdata

    def test_every_code_is_a_finding_and_every_value_but_the_default_a_value(
        self, knowledge: Knowledge
    ) -> None:
        evidences = release("evidences")
        assert set(evidences) == set(knowledge.finding_of_code)
        values = {
            v
            for e in evidences.values()
            for v in e["possible-values"]
            if isinstance(v, str) and v != e["default_value"]
        }
        assert values - {"V_12"} == set(knowledge.value_of_code)
        flags = {code for code, e in evidences.items() if "V_12" in e["possible-values"]}
        assert flags == {f.ddxplus for f in knowledge.findings.values() if f.form == "flag"}

    def test_findings_keep_the_kind_form_and_parent_of_their_code(
        self, knowledge: Knowledge
    ) -> None:
        evidences = release("evidences")
        for code, e in evidences.items():
            f = knowledge.finding_of_code[code]
            assert (f.kind == "history") == e["is_antecedent"], code
            assert (
                f.form
                in {"B": ("binary",), "M": ("several",), "C": ("choice", "scale", "flag")}[
                    e["data_type"]
                ]
            ), code
            parent = (
                e["code_question"]
                if e["code_question"] in evidences and e["code_question"] != code
                else None
            )
            assert (knowledge.findings[f.parent].ddxplus if f.parent else None) == parent, code
            if f.form in ("several", "choice"):
                theirs = {
                    knowledge.value_of_code[v].kind
                    for v in e["possible-values"]
                    if v != e["default_value"]
                }
                assert theirs == {f.values}, code
            assert (f.form == "scale") == (e["possible-values"] == list(range(11))), code

    def test_conditions_have_exactly_the_release_symptoms_and_antecedents(
        self, knowledge: Knowledge
    ) -> None:
        for name, theirs in release("conditions").items():
            c = knowledge.condition_of_ddxplus[name]
            ours = [knowledge.findings[f].ddxplus for f in (*c.findings, *c.values)]
            assert len(ours) == len(set(ours)) and set(ours) == {
                *theirs["symptoms"],
                *theirs["antecedents"],
            }, name

    def test_conditions_keep_the_release_names_and_codes(self, knowledge: Knowledge) -> None:
        conditions = release("conditions")
        assert {normalise(n) for n in DDXPLUS.split(";")} == {normalise(n) for n in conditions}
        for name, theirs in conditions.items():
            assert (
                knowledge.condition_named(theirs["cond-name-eng"])
                is knowledge.condition_of_ddxplus[name]
            )
            expected = ICD10.get(name, theirs["icd10-id"].upper())
            assert knowledge.condition_of_ddxplus[name].icd10 == expected, name

    def test_questions_are_not_the_release_words(self, knowledge: Knowledge) -> None:
        theirs = {normalise(e["question_en"]) for e in release("evidences").values()}
        assert not theirs & {normalise(f.question) for f in knowledge.findings.values()}
