"""Where running text is cut and what stays whole; which words give a diagnosis away."""

from __future__ import annotations

from each import each
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trustlab.knowledge.giveaway import giveaway
from trustlab.knowledge.sentences import sentences


@each(
    "whole",
    [
        "Dr. Meyer saw her vs. a colleague, approx. 3 days before.",
        "Her temperature is 38.9°C (102.0°F) and the creatinine 1.2 mg/dL.",
        "She was given ceftriaxone i.v. Metronidazole was added to it.",
        "The surgeon, J. Smith, and Dr. K. Brown agree.",
        "He said: 'It hurts.' and left.",
        "He is 5 ft. 4 in. tall.",
        "Her Hct. 30% is low, and T. 38 is not.",
    ],
)
def test_a_full_stop_inside_a_sentence_does_not_cut_it(whole: str) -> None:
    assert sentences(whole) == [whole]


@each(
    ("first", "second"),
    [
        ("He takes aspirin q.d.", "He does not smoke."),
        ("The pain began at 4 p.m.", "She took nothing."),
        ("Her son has hepatitis B.", "Serum is drawn."),
        ("The pulse is 98.", "72 hours later it is 60."),
        ("The pain is sharp (8 of 10).", "It comes and goes."),
        ('She said: "It hurts."', "Then she left!"),
        ("Without a stop", "After a blank line"),
    ],
)
def test_two_sentences_are_cut_in_two(first: str, second: str) -> None:
    found = sentences(f"{first}\n\n{second}" if first == "Without a stop" else f"{first} {second}")
    assert " ".join(found[-1].split()) == " ".join(second.split())
    assert " ".join(found[:-1]) == " ".join(first.split())


TABLE = "Hemoglobin 9.8 g/dL\nSerum\nNa+\n131 mEq/L\nGlucose (fasting) 90 mg/dL (N = 70-100)"
FLAT = "Hemoglobin 9.8 g/dL Serum Na+ 131 mEq/L Glucose (fasting) 90 mg/dL (N = 70-100)"


@each("intro", ["Laboratory studies show:", "His values are as follows:", "Serum:"])
@each("gap", ["\n", "\n\n", " \n"])
def test_a_table_is_one_statement_with_the_words_that_introduce_it(intro: str, gap: str) -> None:
    found = sentences(f"He is pale. {intro}{gap}{TABLE}{gap}An ECG is normal. What is it?")
    assert found == ["He is pale.", f"{intro} {FLAT}", "An ECG is normal.", "What is it?"]


PIECES = "Dr. i.v. q.d. No. 3 9.8 J. Smith hepatitis B. She well. pain show: shows: is min. in. ft."
PIECES += " T. Hct. 1. ... ?! etc. a é ."
ODD = ['"', "(N", "5)", "\n", "\n\n", "\t", " ", "\u2028", "\x1c"]
SOME = st.lists(st.sampled_from([*PIECES.split(), *ODD]), max_size=25)
TEXTS = st.one_of(st.text(max_size=60), SOME.map(" ".join), SOME.map("".join))


@settings(max_examples=200)
@given(TEXTS)
@example("show:\n1.\nX")
@example("Labs show:\n3 i.v.\nThe end")
@example("")
def test_nothing_is_lost_or_doubled_and_a_sentence_cut_again_stays(text: str) -> None:
    found = sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    for sentence in found:
        assert sentence and sentence == " ".join(sentence.split())
        assert sentences(sentence) == [sentence]


COPD = "It may be COPD, chronic obstructive pulmonary disorder."


@each(
    ("names", "utterance", "text"),
    [
        (["gout"], "It is gout.", "My father has Gout, I think."),
        (["chronic sinusitis"], "Most likely sinusitis.", "I had sinusitis once."),
        (["asthma"], "This is asthma.", "Any asthmatics in the family?"),
        (["covid-19 virus disease"], "We test you for Covid.", "I was worried about covid."),
        (["chronic obstructive airway disease"], COPD, "My copd is bad."),
        (["pulmonary embolism", "PE"], "It may be a clot.", "Did you have a PE before?"),
        (["airway disease"], "It may be COPD.", "Do you have copd?"),  # no name spells it out
        (["cerebrovascular accident"], "It was an accident in the brain.", "Was it a Stroke?"),
        (["diabetes mellitus"], "You are diabetic.", "Is there diabetes in the family?"),
        (["covid-19 virus disease"], "It may be covid.", "I was afraid of co-vid."),
        (["Ménière's disease"], "This is Ménière's disease.", "Not MÉNIÈRE’S disease?"),
    ],
)
def test_what_gives_the_diagnosis_away_is_heard(names, utterance, text) -> None:
    assert giveaway(names, utterance).heard_in(text)


@each(
    ("names", "utterance", "text"),
    [
        (["chronic sinusitis"], "It is chronic.", "I had sinusitis once."),  # not said there
        (["heart failure"], "Your heart is weak, a heart failure.", "Any trouble with your heart?"),
        (["acute lymphoblastic leukemia"], "This is ALL.", "Is that all?"),
        (["covid-19 virus disease"], "It is COVID-19.", "I am 19, and it may be a virus."),
        (["influenza", "flu"], "It is the flu.", "Do you drink enough fluids?"),
        (["airway disease"], "I THINK IT IS IN YOUR AIRWAYS.", "I think so."),
        (["airway disease"], "We need an MRI and some PFTs.", "Did you have an MRI or a PFT?"),
        (["airway disease"], "It may be a URI.", "It is a curious thing, purine."),
        (["gastroesophageal reflux disease"], "Your stomach.", "I have heartburn."),
        (["pneumonia"], "This is pneumonia.", "I had a pneumothorax."),  # more than 3 letters apart
        (["pneumonia"], "I will take an ECG for the pneumonia.", "Did you have an ECG?"),
    ],
)
def test_words_that_many_diagnoses_share_and_words_not_said_are_not(names, utterance, text) -> None:
    assert not giveaway(names, utterance).heard_in(text)
