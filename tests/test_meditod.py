"""MediTOD: what a dialogue becomes, that nothing shown gives its diagnosis away, its files, and the
real dialogues."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_meditod import asked, canonical, doctor, numbered, patient, told, write
from saying import saying

from trustlab.datasets import DataError, meditod
from trustlab.paths import ROOT
from trustlab.records import Case, normalise

REAL = ROOT.parent / "shared" / "datasets" / "meditod"
ELEVEN = [f"Doctor: Question {i}?\nPatient: Answer {i}." for i in range(1, 12)]


def shown(case: Case) -> list[str]:
    return [s.text for s in case.statements]


CHAT = [
    doctor("Hello.", "nod_prompt_salutations"),
    doctor("And   the\nfever?", "chit-chat", "inquire"),
    patient("Hm.", "chit-chat"),
    patient("Since Monday."),
    doctor("Nice weather.", "chit-chat"),
    patient("I also sleep badly."),
    doctor("I see.", "other"),
    patient("Yes.", "nod_prompt_salutations"),
]
SHOWN = {
    "only what informs, inquires or diagnoses": (
        told(*CHAT),
        [*ELEVEN, "Doctor: And the fever?\nPatient: Since Monday.", "Patient: I also sleep badly."],
    ),
    "what is said just before the diagnosis": (
        told(doctor("Let me think.", "inquire")),
        [*ELEVEN, "Doctor: Let me think."],
    ),
    "an earlier diagnosis": (
        told(doctor("That mole is harmless.", disease=["nevus"]), patient("Good.")),
        [*ELEVEN, "Doctor: That mole is harmless.\nPatient: Good."],
    ),
}


@each("name", SHOWN)
def test_a_dialogue_becomes_its_exchanges_up_to_the_diagnosis(tmp_path, name) -> None:
    dialogue, wanted = SHOWN[name]
    (case,) = meditod.read(canonical(tmp_path, {"12": dialogue})).cases
    assert (case.case_id, case.dataset, case.diagnosis) == ("meditod-12", "meditod", "gout")
    assert (shown(case), case.patient) == (wanted, {})


def test_which_disease_is_the_diagnosis(tmp_path: Path) -> None:
    both = doctor("Gout, or pseudogout.", disease=["gout", "pseudogout", "headache, cluster"])
    read = meditod.read(canonical(tmp_path, {"1": told(end=both)}))
    (case,) = read.cases
    assert (case.diagnosis, case.accepted) == ("gout", ("gout",))
    assert case.patient["also_named"] == ("pseudogout", "headache, cluster")
    assert read.facts[meditod.SEVERAL] == 1
    flu = told(end=doctor("The flu.", disease=["influenza"]))
    (case,) = meditod.read(canonical(tmp_path, {"1": flu})).cases
    assert case.accepted[0] == "influenza" and {"Influenza", "Flu"} <= set(case.accepted)
    other = told(end=doctor("Something else.", disease=["other"]))
    read = meditod.read(
        canonical(tmp_path, {"a": asked(20), "b": told(n=10), "c": told(), "d": other})
    )
    assert [case.case_id for case in read.cases] == ["meditod-c"]
    assert read.dropped == {meditod.NO_DIAGNOSIS: ["a", "d"], meditod.SHORT: ["b"]}
    assert read.n_entries == 4


GOUT = [doctor("I know what that toe has.", disease=["GOUT "]), patient("Tell me.")]
LEFT_OUT = [
    [doctor("Was it ever called GOUT?", "inquire"), patient("No.")],
    [doctor("Do you smoke?", "inquire"), patient("I worry about gout.")],
    GOUT,
]


@each("more", LEFT_OUT)
def test_an_exchange_that_speaks_the_diagnosis_is_left_out_and_counted(tmp_path, more):
    read = meditod.read(canonical(tmp_path, {"1": told(*more)}))
    assert shown(read.cases[0]) == ELEVEN and read.facts[meditod.SPOKEN] == 1


@each("at", ["action", "disease"])
def test_an_exchange_annotated_as_the_diagnosis_or_ruling_it_out_is_left_out(tmp_path, at) -> None:
    no = doctor("Not what your brother has.", disease=["gout"])
    action = no["actions"][0]
    (action if at == "action" else action["disease"][0])["status"] = "No"
    file = canonical(tmp_path, {"1": told(no, patient("Good."))})
    assert shown(meditod.read(file).cases[0]) == ELEVEN


TERMS = st.sampled_from(["gout", "Gout!", "the gout", "Hm.", "a cough", "goutte", ""])
INTENTS = st.lists(st.sampled_from(["inform", "inquire", "chit-chat", "diagnosis"]), max_size=2)
SAID = st.tuples(st.sampled_from([doctor, patient]), TERMS, INTENTS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(SAID.map(lambda t: t[0](t[1], *t[2])), max_size=20))
def test_no_statement_ever_says_the_diagnosis_or_what_comes_after_it(tmp_path, said) -> None:
    (case,) = meditod.read(canonical(tmp_path, {"1": told(doctor("Hm.", "other"), *said)})).cases
    assert shown(case)[:11] == ELEVEN
    words = re.compile("gout|thank you|take care", re.IGNORECASE)
    assert not any(words.search(text) for text in shown(case))
    assert all(text and text == text.strip() for text in shown(case))


def test_folders_and_splits(tmp_path: Path) -> None:
    folder = tmp_path / "b" / "data"
    canonical(folder, {"1": told(), "2": told(), "3": told()}, train=["2", "1"], test=["3"])
    read = meditod.read(tmp_path / "b", split="train")
    assert [(c.case_id, c.patient["split"]) for c in read.cases] == [
        ("meditod-1", "train"),
        ("meditod-2", "train"),
    ]
    assert [c.patient["split"] for c in meditod.read(folder).cases] == ["train", "train", "test"]
    with pytest.raises(ValueError, match="valid_ids.json"):
        meditod.read(folder, split="valid")


@each("ids", [["1", "9"], {"1": 1}])
def test_a_bad_list_of_ids_is_refused(tmp_path: Path, ids: object) -> None:
    canonical(tmp_path, {"1": told()}, test=ids)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="test_ids.json"):
        meditod.read(tmp_path)


@each("change", [lambda b: b.decode().encode("utf-16"), lambda b: b[:-9]])
def test_a_broken_file_is_one_clear_error(tmp_path: Path, change) -> None:
    with pytest.raises(ValueError, match="MediTOD"):
        meditod.read(tmp_path)
    file = canonical(tmp_path, {"1": told()})
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(DataError, match="dialogs.json.*allowed: "):
        meditod.read(tmp_path)


def test_dialogues_before_they_were_canonicalised_are_refused(tmp_path: Path) -> None:
    bare = [{"speaker": u["speaker"], "text": u["text"]} for u in told()]
    write(tmp_path / "dialogs.json", {"1": {"utterances": bare}})
    with pytest.raises(DataError, match=saying("actions", "nlu")):
        meditod.read(tmp_path)


@each("content", ["7", "{}", '{"1": {"utterances": [7]}}'])
def test_a_file_that_holds_no_dialogues_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "dialogs.json").write_text(content)
    with pytest.raises(DataError, match="dialogs.json"):
        meditod.read(tmp_path)


@each(
    ("changes", "field"),
    [
        ({"speaker": "nurse"}, "speaker"),
        ({"text": None}, "text"),
        ({"actions": ["inquire"]}, "action 1"),
        ({"actions": [{}]}, "action 1, action"),
        ({"actions": [{"action": "diagnosis", "disease": [{}]}]}, "action 1, disease 1, value"),
    ],
)
def test_a_bad_utterance_is_refused_with_its_place(tmp_path, changes, field) -> None:
    utterances = numbered(told())
    utterances[4] |= changes
    write(tmp_path / "dialogs.json", {"12": {"utterances": utterances}})
    with pytest.raises(DataError) as caught:
        meditod.read(tmp_path)
    assert re.fullmatch(rf"dialogue 12, utterance \d+, {re.escape(field)}", caught.value.field)


needs_meditod = pytest.mark.skipif(
    not REAL.is_dir(), reason="MediTOD is not at ../shared/datasets/meditod beside the repository"
)
CALLED = {
    "meditod-115": ("chronic bronchitis", 48, ["bronchitis"]),
    "meditod-317": ("covid-19 virus disease", 51, ["covid"]),
    "meditod-407": ("chronic obstructive airway disease", 61, ["copd", "obstructive"]),
}
"""Case -> its diagnosis, statements, and what the doctor calls it where it is spoken, by eye."""


@pytest.mark.realdata
@needs_meditod
def test_the_real_dialogues_are_three_cases_and_nothing_shown_says_the_diagnosis() -> None:
    cases = {c.case_id: c for c in meditod.read(REAL).cases}
    assert list(cases) == list(CALLED)
    for case, (diagnosis, n, names) in zip(cases.values(), CALLED.values(), strict=True):
        assert (case.diagnosis, len(case.statements)) == (diagnosis, n)
        text = "\n".join(shown(case))
        assert not set(names) & set(normalise(text).split())
        assert not any(name in text.lower() for name in names)
    dialogues = json.loads((REAL / "data" / "dialogs.json").read_text(encoding="utf-8"))
    for key, dialogue in dialogues.items():  # what was said, in its order
        said = " ".join(" ".join(u["text"].split()) for u in dialogue["utterances"])
        at = 0
        for statement in shown(cases[f"meditod-{key}"]):
            for line in statement.split("\n"):
                for word in line.split(": ", 1)[1].split():
                    at = said.index(word, at) + len(word)
    assert [meditod.read(REAL, split=s).facts[meditod.SPOKEN] for s in meditod.SPLITS] == [0, 0, 1]
