"""One consultation to read: everything said, the diagnosis and the confidences after each turn,
nothing of a model unescaped."""

from __future__ import annotations

from fake_consultation import QUESTIONS, Talker, asked

from trustlab.html.show import transcript

NAN = float("nan")


def rows_of(run):
    """A row a level that the consultation reached."""
    told, sure = (t[t["case_id"].eq("c00")] for t in (run.answers, run.confidence))
    wide = sure.pivot(index="level", columns="method", values="confidence")
    length = len(run.consultations["fake"][0].turns)
    return told.set_index("level")[["answer", "correct"]].join(wide).loc[:length].reset_index()


def test_a_transcript_shows_every_turn_with_its_diagnosis_and_confidence() -> None:
    run = asked(2)
    c = run.consultations["fake"][0]
    rows = rows_of(run)
    assert list(rows["level"]) == [0, 1, 2, 3] and {"answer", "correct", "ce", "poc"} <= set(rows)
    page = transcript(c, rows, ["ce", "poc"])
    for turn in c.turns:
        assert turn.question in page
    for answer, sure in zip(rows["answer"], rows["ce"], strict=True):
        assert answer in page and f"CE {sure:.2f}" in page
    assert page.count("✓ right") == int(rows["correct"].sum())
    assert "the turn limit" in page and "What it was: Influenza" in page


def test_a_transcript_is_shorter_where_the_consultation_was_and_says_why() -> None:
    run = asked(
        1,
        model=Talker(QUESTIONS, replies={"ask": "[Do you swim?]", "patient": "[It is influenza]"}),
    )
    rows = rows_of(run)
    page = transcript(run.consultations["fake"][0], rows, ["ce"])
    assert len(rows) == 2 and "asked again what had been asked (Do you swim?)" in page
    assert "the patient named the diagnosis: not spoken" in page and "It is influenza" not in page


def test_a_model_s_words_are_escaped_in_the_transcript() -> None:
    run = asked(1, model=Talker(QUESTIONS, replies={"ask": "[Do you <b>swim</b>?]"}), max_turns=1)
    page = transcript(run.consultations["fake"][0], rows_of(run), ["ce"])
    assert "&lt;b&gt;swim" in page and "<b>swim" not in page


def test_an_answer_that_could_not_be_had_is_neither_right_nor_wrong_in_the_transcript() -> None:
    run = asked(1)
    rows = rows_of(run).assign(correct=NAN, answer=None, ce=NAN)
    page = transcript(run.consultations["fake"][0], rows, ["ce"])
    assert (
        page.count("? not judged") == 4
        and "(no readable diagnosis)" in page
        and "CE missing" in page
    )
