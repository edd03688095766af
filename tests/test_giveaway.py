"""What a doctor calls a diagnosis on saying it, and which words give it away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from trustlab.agents.giveaway import LAY_NAMES, giveaway, lay_names
from trustlab.datasets import read_data
from trustlab.datasets.check import check_text
from trustlab.records import normalise


@each(
    ("names", "utterance", "text"),
    [
        (["gout"], "It is gout.", "My father has Gout, I think."),
        (["gout"], "It is the thing you feared.", "Is it gout?"),
        (["chronic sinusitis"], "Most likely sinusitis.", "I had sinusitis once."),
        (["hay fever", "allergic rhinitis"], "You have rhinitis.", "They called it a rhinitis."),
        (["asthma"], "This is asthma.", "Any asthmatics in the family?"),
        (["gout"], "It is gout.", "Gouty, they said."),
        (["migraine disorder"], "These are migraines.", "Is it a migraine?"),
        (["reflux disease"], "This is reflux.", "I had re-flux, reflux I mean."),
        (["covid-19 virus disease"], "We test you for Covid.", "I was worried about covid."),
        (
            ["chronic obstructive airway disease"],
            "It may be COPD, chronic obstructive pulmonary disorder.",
            "Do you have COPD?",
        ),
        (
            ["chronic obstructive airway disease"],
            "It may be COPD, chronic obstructive pulmonary disorder.",
            "My copd is bad.",
        ),
        (["irritable bowel syndrome"], "We call this IBS.", "Is it IBS?"),
        (["pulmonary embolism", "PE"], "It may be a clot.", "Did you have a PE before?"),
        (["sinus infection"], "A sinus infection.", "Have you had a sinus infection?"),
        (
            ["airway disease"],
            "It may be COPD.",
            "Do you have copd?",
        ),  # an acronym that no name spells out
        (["airway disease"], "It may be a URI.", "Those uris again?"),
        (
            ["positron fever", "PET"],
            "Your PET is bad.",
            "Is it a PET?",
        ),  # a name, although a test is called so too
        (["urinary infection", "UTI"], "An infection.", "Is it a uti?"),
        (["cerebrovascular accident"], "It was an accident in the brain.", "Was it a Stroke?"),
        (["Herpes Zoster"], "You have zoster.", "My mother had shingles."),
        (["diabetes mellitus"], "You have diabetes.", "Is your father diabetic?"),
        (["diabetes mellitus"], "You are diabetic.", "Is there diabetes in the family?"),
        (["covid-19 virus disease"], "It may be covid.", "I was afraid of co-vid."),
        (["covid-19 virus disease"], "It may be Co-vid.", "I was afraid of covid."),
        (["Ménière's disease"], "This is Ménière's disease.", "Not MÉNIÈRE’S disease?"),
    ],
)
def test_what_gives_the_diagnosis_away_is_heard(
    names: list[str], utterance: str, text: str
) -> None:
    assert giveaway(names, utterance).heard_in(text)


@each(
    ("names", "utterance", "text"),
    [
        (["gout"], "It is gout.", "I do not know about that."),
        (
            ["chronic sinusitis"],
            "It is chronic.",
            "I had sinusitis once.",
        ),  # a word of the name that is not said there
        (["heart failure"], "Your heart is weak, a heart failure.", "Any trouble with your heart?"),
        (
            ["chronic lung disease"],
            "A chronic lung disease.",
            "Do you have any chronic disease of the lungs?",
        ),
        (["acute lymphoblastic leukemia"], "This is ALL.", "Is that all?"),
        (["multiple sclerosis", "MS"], "This is MS.", "Ms. Brown asked."),
        (["covid-19 virus disease"], "It is COVID-19.", "I am 19, and it may be a virus."),
        (["influenza", "flu"], "It is the flu.", "Do you drink enough fluids?"),
        (["airway disease"], "It is NOT my first thought.", "Do you smoke or not?"),
        (["airway disease"], "I THINK IT IS IN YOUR AIRWAYS.", "I think so."),
        (["airway disease"], "We need an MRI and some PFTs.", "Did you have an MRI or a PFT?"),
        (["airway disease"], "It may be a URI.", "It is a curious thing, purine."),
        (["infectious mononucleosis"], "A virus.", "I am monogamous."),
        (["upper respiratory infection"], "A virus.", "My hands are cold."),
        (["gastroesophageal reflux disease"], "Your stomach.", "I have heartburn."),
        (
            ["infective endocarditis"],
            "This is infective.",
            "Did you have an infection?",
        ),  # a word that many share
        (["pneumonia"], "This is pneumonia.", "I had a pneumothorax."),  # more than 3 letters apart
        (["asthma"], "This is asthma.", "The assistant called."),
        (["upper respiratory infection", "URTI"], "", "It has been hurting."),
        (["pneumonia"], "I will take an ECG for the pneumonia.", "Did you have an ECG?"),
    ],
)
def test_words_that_many_diagnoses_share_and_words_not_said_are_not(
    names: list[str], utterance: str, text: str
) -> None:
    assert not giveaway(names, utterance).heard_in(text)


def test_everyday_names_are_whole_words_of_the_disease_s_own_name() -> None:
    assert lay_names(["cerebrovascular accident", "gout"]) == {"stroke", "brain attack"}
    assert all(name == normalise(name) and lay and all(lay) for name, lay in LAY_NAMES.items())


@given(st.sampled_from(sorted(LAY_NAMES)), st.text(max_size=20), st.text(max_size=20))
def test_an_everyday_name_is_heard_between_any_words(name: str, before: str, after: str) -> None:
    for lay in LAY_NAMES[name]:
        assert giveaway([name], "It is that.").heard_in(f"{before} . {lay} . {after}")


SAYS = {"id": "1", "diagnosis": "Gout", "accepted": "Podagra", "text": "He is well."}


@pytest.mark.parametrize(
    ("told", "n"),
    [
        ("His toe hurts.", 0),
        ("His father had gout.", 1),
        ("A doctor once said podagra.", 1),
        ("Patient: No gouty joints.", 1),
    ],
)
def test_an_account_counts_the_cases_that_name_their_diagnosis(
    tmp_path: Path, told: str, n: int
) -> None:
    text = " ".join(f"Sentence number {i}." for i in range(11))
    rows = [SAYS | {"text": f"{text} {told}"}, SAYS | {"id": "2", "text": text}]
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    read = read_data("table", path=file)
    assert read.facts.get("cases whose text names their diagnosis") == n
    assert f"cases whose text names their diagnosis: {n}\n" in check_text("table", read)


def test_every_data_set_of_the_project_has_the_count() -> None:
    counts = {
        name: read_data(name).facts.get("cases whose text names their diagnosis")
        for name in ("starter", "starter-dialogue", "starter-report")
    }
    assert counts == {"starter": 5, "starter-dialogue": 0, "starter-report": 0}
