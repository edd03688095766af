"""What a doctor calls a diagnosis on saying it, and which words give it away."""

from __future__ import annotations

import pytest

from trustlab.datasets.giveaway import giveaway


@pytest.mark.parametrize(
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
        (["chronic obstructive airway disease"], "It may be COPD, chronic obstructive pulmonary disorder.", "Do you have COPD?"),
        (["chronic obstructive airway disease"], "It may be COPD, chronic obstructive pulmonary disorder.", "My copd is bad."),
        (["irritable bowel syndrome"], "We call this IBS.", "Is it IBS?"),
        (["pulmonary embolism", "PE"], "It may be a clot.", "Did you have a PE before?"),
        (["sinus infection"], "A sinus infection.", "Have you had a sinus infection?"),
        (["Ménière's disease"], "This is Ménière's disease.", "Not MÉNIÈRE’S disease?"),
    ],
)
def test_what_gives_the_diagnosis_away_is_heard(names: list[str], utterance: str, text: str) -> None:
    assert giveaway(names, utterance).heard_in(text)


@pytest.mark.parametrize(
    ("names", "utterance", "text"),
    [
        (["gout"], "It is gout.", "I do not know about that."),
        (["chronic sinusitis"], "It is chronic.", "I had sinusitis once."),  # a word of the name that is not said there
        (["heart failure"], "Your heart is weak, a heart failure.", "Any trouble with your heart?"),
        (["chronic lung disease"], "A chronic lung disease.", "Do you have any chronic disease of the lungs?"),
        (["acute lymphoblastic leukemia"], "This is ALL.", "Is that all?"),
        (["multiple sclerosis", "MS"], "This is MS.", "Ms. Brown asked."),
        (["covid-19 virus disease"], "It is COVID-19.", "I am 19, and it may be a virus."),
        (["influenza", "flu"], "It is the flu.", "Do you drink enough fluids?"),
        (["pneumonia"], "I will take an ECG for the pneumonia.", "Did you have an ECG?"),
    ],
)
def test_words_that_many_diagnoses_share_and_words_not_said_are_not(names: list[str], utterance: str, text: str) -> None:
    assert not giveaway(names, utterance).heard_in(text)
