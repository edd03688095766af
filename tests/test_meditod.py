"""MediTOD: what a dialogue becomes, that nothing shown gives its diagnosis away, and the real
dialogues."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_meditod import asked, canonical, doctor, entries, patient, raw, told, write

from trustlab.datasets import meditod
from trustlab.paths import ROOT
from trustlab.records import Case, normalise

REAL = ROOT.parent / "shared" / "datasets" / "meditod"
ELEVEN = [f"Doctor: Question {i}?\nPatient: Answer {i}." for i in range(1, 12)]
FORMS = pytest.mark.parametrize("write_as", [canonical, raw])


def shown(case: Case) -> list[str]:
    return [s.text for s in case.statements]


# -- cases
# --------------------------------------------------------------------------------------------------


@FORMS
def test_a_dialogue_becomes_its_exchanges_up_to_the_diagnosis(tmp_path: Path, write_as) -> None:
    (case,) = meditod.read(write_as(tmp_path, {"12": told()})).cases
    assert (case.case_id, case.dataset, case.diagnosis, case.patient) == (
        "meditod-12",
        "meditod",
        "gout",
        {},
    )
    assert shown(case) == ELEVEN


@FORMS
def test_only_what_informs_inquires_or_diagnoses_is_shown(tmp_path: Path, write_as) -> None:
    more = [
        doctor("Hello.", "nod_prompt_salutations"),
        doctor("And   the\nfever?", "chit-chat", "inquire"),
        patient("Hm.", "chit-chat"),
        patient("Since Monday."),
        doctor("Nice weather.", "chit-chat"),
        patient("I also sleep badly."),
        doctor("I see.", "other"),
        patient("Yes.", "nod_prompt_salutations"),
    ]
    (case,) = meditod.read(write_as(tmp_path, {"1": told(*more)})).cases
    assert shown(case)[11:] == [
        "Doctor: And the fever?\nPatient: Since Monday.",
        "Patient: I also sleep badly.",
    ]


@FORMS
def test_utterances_in_a_row_are_told_together(tmp_path: Path, write_as) -> None:
    more = [
        doctor("First?", "inquire"),
        doctor("Second?", "inquire"),
        patient("Yes."),
        patient("No."),
    ]
    (case,) = meditod.read(write_as(tmp_path, {"1": told(*more)})).cases
    assert shown(case)[11:] == ["Doctor: First? Second?\nPatient: Yes. No."]


@FORMS
def test_a_dialogue_that_the_patient_opens_begins_with_the_patient_alone(
    tmp_path: Path, write_as
) -> None:
    (case,) = meditod.read(write_as(tmp_path, {"1": [patient("My toe hurts."), *told()]})).cases
    assert shown(case) == ["Patient: My toe hurts.", *ELEVEN]


@FORMS
def test_what_the_doctor_says_just_before_the_diagnosis_is_shown_alone(
    tmp_path: Path, write_as
) -> None:
    (case,) = meditod.read(
        write_as(tmp_path, {"1": told(doctor("Let me think.", "inquire"))})
    ).cases
    assert shown(case) == [*ELEVEN, "Doctor: Let me think."]


@FORMS
def test_the_last_diagnosis_counts_and_an_earlier_one_is_told(tmp_path: Path, write_as) -> None:
    mole = doctor("That mole is harmless.", disease=["nevus"])
    (case,) = meditod.read(write_as(tmp_path, {"1": told(mole, patient("Good."))})).cases
    assert case.diagnosis == "gout"
    assert shown(case)[-1] == "Doctor: That mole is harmless.\nPatient: Good."


@FORMS
def test_diseases_named_beside_the_first_are_not_accepted(tmp_path: Path, write_as) -> None:
    both = doctor("Gout, or pseudogout.", disease=["gout", "pseudogout", "headache, cluster"])
    read = meditod.read(write_as(tmp_path, {"1": told(end=both)}))
    (case,) = read.cases
    assert (case.diagnosis, case.accepted) == ("gout", ("gout",))
    assert case.patient["also_named"] == ("pseudogout", "headache, cluster")
    assert read.facts[meditod.SEVERAL] == 1


def test_of_two_diagnoses_in_one_utterance_the_last_counts(tmp_path: Path) -> None:
    both = doctor("Not a sprain, gout.", disease=["sprain"])
    both["actions"].append({"action": "diagnosis", "disease": [{"value": "gout"}]})
    (case,) = meditod.read(canonical(tmp_path, {"1": told(end=both)})).cases
    assert (case.diagnosis, case.patient["also_named"]) == ("gout", ("sprain",))


@FORMS
def test_every_name_the_knowledge_table_has_is_accepted(tmp_path: Path, write_as) -> None:
    (case,) = meditod.read(
        write_as(tmp_path, {"1": told(end=doctor("The flu.", disease=["influenza"]))})
    ).cases
    assert case.accepted[0] == "influenza" and {"Influenza", "Flu"} <= set(case.accepted)


def test_a_diagnosis_with_the_status_no_rules_out_and_is_none(tmp_path: Path) -> None:
    read = meditod.read(raw(tmp_path, {"1": told()}, status="No"))
    assert (list(read.cases), read.dropped) == ([], {meditod.NO_DIAGNOSIS: ["1"]})


def test_a_raw_dialogue_without_annotations_is_dropped(tmp_path: Path) -> None:
    file = raw(tmp_path, {"1": told(), "2": told()})
    write(
        tmp_path / "annotations.json",
        {"1": [*entries(told()), {"intent": "differential", "uid": "99"}]},
    )
    read = meditod.read(file)
    assert ([case.case_id for case in read.cases], read.dropped) == (
        ["meditod-1"],
        {meditod.NO_DIAGNOSIS: ["2"]},
    )


@FORMS
def test_a_dialogue_without_a_diagnosis_or_too_short_is_dropped_with_its_reason(
    tmp_path: Path, write_as
) -> None:
    read = meditod.read(write_as(tmp_path, {"a": asked(20), "b": told(n=10), "c": told()}))
    assert [case.case_id for case in read.cases] == ["meditod-c"]
    assert read.dropped == {meditod.NO_DIAGNOSIS: ["a"], meditod.SHORT: ["b"]}
    assert read.n_entries == 3


@FORMS
def test_a_diagnosis_that_names_nothing_is_none(tmp_path: Path, write_as) -> None:
    read = meditod.read(
        write_as(tmp_path, {"1": told(end=doctor("Something else.", disease=["other"]))})
    )
    assert read.dropped == {meditod.NO_DIAGNOSIS: ["1"]}


def test_an_unknown_intent_is_counted_and_not_shown(tmp_path: Path) -> None:
    read = meditod.read(
        canonical(
            tmp_path, {"1": told(doctor("I nod.", "nods", "salutations"), patient("Oh.", "sighs"))}
        )
    )
    assert (shown(read.cases[0]), read.facts[meditod.UNKNOWN]) == (ELEVEN, 2)


# -- nothing gives the diagnosis away
# -------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize(
    "text", ["Was it ever called GOUT?", "Your brother's gout, is it bad?", "Not gouty, is it?"]
)
def test_an_exchange_that_speaks_the_diagnosis_is_left_out_and_counted(
    tmp_path: Path, write_as, text: str
) -> None:
    more = [
        doctor(text, "inquire"),
        patient("No."),
        doctor("Do you smoke?", "inquire"),
        patient("I worry about gout."),
    ]
    read = meditod.read(write_as(tmp_path, {"1": told(*more)}))
    assert shown(read.cases[0]) == ELEVEN
    assert read.facts[meditod.SPOKEN] == 2


@FORMS
@pytest.mark.parametrize("name", ["gout", "Gout", "GOUT "])
def test_an_exchange_annotated_with_the_same_diagnosis_is_left_out_whatever_its_words(
    tmp_path: Path, write_as, name: str
) -> None:
    more = [
        doctor("I know what that toe has.", disease=[name]),
        patient("Tell me."),
        doctor("A mole.", disease=["nevus"]),
    ]
    read = meditod.read(write_as(tmp_path, {"1": told(*more)}))
    assert shown(read.cases[0]) == [*ELEVEN, "Doctor: A mole."]
    assert read.facts[meditod.SPOKEN] == 1


def test_an_exchange_annotated_with_another_name_of_the_diagnosis_is_left_out(
    tmp_path: Path,
) -> None:
    more = [doctor("I know what you have.", disease=["flu"]), patient("Tell me.")]
    end = doctor("A virus.", disease=["influenza"])
    assert shown(meditod.read(canonical(tmp_path, {"1": told(*more, end=end)})).cases[0]) == ELEVEN


@pytest.mark.parametrize("at", ["action", "disease"])
def test_an_exchange_annotated_as_ruling_the_diagnosis_out_is_left_out(
    tmp_path: Path, at: str
) -> None:
    no = doctor("Not what your brother has.", disease=["gout"])
    action = no["actions"][0]
    (action if at == "action" else action["disease"][0])["status"] = "No"
    read = meditod.read(canonical(tmp_path, {"1": told(no, patient("Good."))}))
    assert (shown(read.cases[0]), read.facts[meditod.SPOKEN]) == (ELEVEN, 1)


def test_a_raw_exchange_annotated_as_ruling_the_diagnosis_out_is_left_out(tmp_path: Path) -> None:
    dialogue = told(doctor("Not what your brother has.", disease=["gout"]), patient("Good."))
    file = raw(tmp_path, {"1": dialogue})
    found = entries(dialogue)
    next(entry for entry in found if entry["intent"] == "diagnosis")["status"] = "No"
    write(tmp_path / "annotations.json", {"1": found})
    assert shown(meditod.read(file).cases[0]) == ELEVEN


TERMS = st.sampled_from(
    ["gout", "Gout!", "the gout", "toe", "Hm.", "a cough", "GOUT?", "goutte", ""]
)
INTENTS = st.lists(
    st.sampled_from(["inform", "inquire", "chit-chat", "diagnosis", "nods"]), max_size=2
)
SAID = st.tuples(st.booleans(), TERMS, INTENTS).map(
    lambda t: doctor(t[1], *t[2]) if t[0] else patient(t[1], *t[2])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(SAID, max_size=20))
def test_no_statement_ever_says_the_diagnosis_or_what_comes_after_it(
    tmp_path: Path, said: list[dict]
) -> None:
    (case,) = meditod.read(canonical(tmp_path, {"1": told(doctor("Hm.", "other"), *said)})).cases
    assert shown(case)[:11] == ELEVEN
    assert not any(
        re.search("gout|thank you|take care", text, re.IGNORECASE) for text in shown(case)
    )
    assert all(text and text == text.strip() for text in shown(case))


# -- the real dialogues
# ---------------------------------------------------------------------------------------------

needs_meditod = pytest.mark.skipif(
    not REAL.is_dir(), reason="MediTOD is not at ../shared/datasets/meditod beside the repository"
)
CALLED = {
    "meditod-115": ("chronic bronchitis", ["chronic bronchitis", "bronchitis"]),
    "meditod-317": ("covid-19 virus disease", ["covid"]),
    "meditod-407": (
        "chronic obstructive airway disease",
        ["COPD", "chronic obstructive pulmonary disorder", "obstructive"],
    ),
    "meditod-RES0001": ("pulmonary embolism", ["pulmonary embolism", "embolism"]),
}
"""Case -> its diagnosis, and what the doctor calls it where the diagnosis is spoken, read by
eye."""


def real() -> dict[str, Case]:
    sample = REAL / "labeling_interface" / "data" / "dialogs" / "sample.json"
    return {case.case_id: case for path in (REAL, sample) for case in meditod.read(path).cases}


@pytest.mark.realdata
@needs_meditod
def test_the_real_dialogues_are_four_cases_with_these_diagnoses_and_lengths() -> None:
    cases = real()
    assert {key: case.diagnosis for key, case in cases.items()} == {
        key: name for key, (name, _) in CALLED.items()
    }
    assert [len(case.statements) for case in cases.values()] == [48, 51, 61, 50]
    assert [cases[f"meditod-{i}"].patient for i in (115, 317, 407)] == [
        {"split": s} for s in ("train", "valid", "test")
    ]


@pytest.mark.realdata
@needs_meditod
@pytest.mark.parametrize("case_id", CALLED)
def test_nothing_shown_says_what_the_doctor_calls_the_diagnosis(case_id: str) -> None:
    text = "\n".join(shown(real()[case_id]))
    for name in CALLED[case_id][1]:
        assert name.lower() not in text.lower()
        assert not set(normalise(name).split()) <= set(normalise(text).split())


@pytest.mark.realdata
@needs_meditod
def test_the_real_exchange_that_asks_for_the_diagnosis_is_left_out() -> None:
    assert [meditod.read(REAL, split=s).facts[meditod.SPOKEN] for s in meditod.SPLITS] == [0, 0, 1]


@pytest.mark.realdata
@needs_meditod
def test_what_is_shown_of_a_real_dialogue_is_what_was_said_in_its_order() -> None:
    dialogues = json.loads((REAL / "data" / "dialogs.json").read_text(encoding="utf-8"))
    for key, dialogue in dialogues.items():
        said = " ".join(" ".join(u["text"].split()) for u in dialogue["utterances"])
        at = 0
        for statement in shown(real()[f"meditod-{key}"]):
            for line in statement.split("\n"):
                words = line.split(": ", 1)[1].split()
                for word in words:
                    at = said.index(word, at) + len(word)
