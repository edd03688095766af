"""The loop that really stops asking at a threshold, held against the replay of the whole
recording."""

from __future__ import annotations

import pytest
from asking import ask
from fake_consultation import QUESTIONS, Talker, asked, cases
from fake_model import FakeEncoder

from studies import consultation as tables
from studies.consultation import consult_until
from trustlab.metrics.stopping import stop_turns

NAN = float("nan")


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_asking_until_a_threshold_stops_where_the_replay_does_and_asks_less(
    threshold: float, tmp_path
) -> None:
    recorded, full = Talker(QUESTIONS), asked(8, max_turns=5)
    asked(8, max_turns=5, model=recorded, methods=("ce",), cache=tmp_path / "whole.sqlite")
    at = stop_turns(tables.grid(full, "fake").confidence["ce"], threshold)
    model = Talker(QUESTIONS)
    how = {"samples": 3, "encoder": FakeEncoder(), "cache": tmp_path / "replies.sqlite"}
    made, answers = ask(consult_until, cases(8), model, "ce", threshold, 5, **how)
    for c, whole, level in zip(made, full.consultations["fake"], at, strict=True):
        assert (len(c.turns), c.ended) == (level, "confident" if level < 5 else "turn limit")
        assert c.statements == whole.statements[: level + 1]
    last = answers.groupby("case_id")["level"].max()
    assert last.to_list() == at.tolist() and not answers.duplicated(["case_id", "level"]).any()
    said = [sum(r.purpose == "patient" for r in m.requests) for m in (model, recorded)]
    assert said[0] == at.sum() < said[1] == 8 * 5 and len(set(at)) > 1
    again = Talker(QUESTIONS)
    assert ask(consult_until, cases(8), again, "ce", threshold, 5, **how)[0] == made
    assert not again.asked


@pytest.mark.parametrize(
    "wrong", [{"threshold": NAN}, {"cases": []}, {"method": "guess"}, {"patient": "nobody"}]
)
def test_asking_until_refuses_what_it_cannot_ask(wrong: dict) -> None:
    with pytest.raises(ValueError, match="threshold is|guess|model is"):
        ask(
            consult_until,
            **{
                "cases": cases(1),
                "model": Talker(QUESTIONS),
                "method": "ce",
                "threshold": 0.5,
                **wrong,
            },
        )
