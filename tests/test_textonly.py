"""A model that shows its words and hides its probabilities."""

from __future__ import annotations

import math

import pytest
from each import each
from fake_model import EVERYTHING, FakeModel

from trustlab.models import by_name as models
from trustlab.models.base import Model, Request
from trustlab.models.by_name import EMBEDDED, open_model
from trustlab.models.wrapper import TextOnly
from trustlab.prompts import render

ASKED = render("diagnosis", patient="Doctor: Any fever?\nPatient: Yes, since Monday.")
PRIOR = render("diagnosis", patient=None)


def requests(want: frozenset[str] = frozenset(), prior_messages=None) -> list[Request]:
    told = {"want": want, "prior_messages": prior_messages}
    samples = Request(ASKED, n=3, temperature=0.5, seed=4, purpose="samples", **told)
    return [Request(ASKED, purpose="diagnosis", **told), samples]


class Windowed(FakeModel):
    """A fake with what a real model says about its window."""

    window = 1024

    def count_tokens(self, messages) -> int:
        return sum(len(content.split()) for _, content in messages)


def test_it_gives_the_wrapped_model_s_words_and_counts_and_asks_for_no_statistics():
    inner, wanted = FakeModel(), EVERYTHING - {"text"}
    whole, shown = (
        model.generate(requests(wanted, PRIOR)) for model in (FakeModel(), TextOnly(inner))
    )
    assert [len(replies) for replies in shown] == [1, 3] and inner.requests == requests()
    for ours, theirs in zip(sum(shown, []), sum(whole, []), strict=True):
        assert theirs.trace is not None and theirs.n_tokens_in > 0 and ours.trace is None
        for field in ("text", "raw", "finish", "missing", "n_tokens_in", "n_tokens_out"):
            assert getattr(ours, field) == getattr(theirs, field)


def test_what_it_says_of_itself_is_the_wrapped_model_s_and_nothing_else_shows_through():
    inner = Windowed()
    closed = TextOnly(inner)
    assert isinstance(closed, Model) and closed.provides == {"text"}
    assert (closed.name, closed.revision) == ("fake", "r1-text")
    assert (closed.window, closed.count_tokens(ASKED)) == (1024, inner.count_tokens(ASKED))
    assert not hasattr(closed, "asked") and math.isinf(TextOnly(FakeModel()).window)
    assert (closed.lacks, closed.scores_text, closed.innermost) == ({}, False, inner)


def test_the_closed_model_opens_as_text_only(monkeypatch):
    monkeypatch.setitem(EMBEDDED, "embedded-closed", EMBEDDED["embedded"])
    closed = open_model("embedded-closed", device="cpu")
    assert isinstance(closed, TextOnly) and closed.name == "embedded-closed"
    assert closed.revision == f"{closed.model.revision}-text" and closed.model.provides > {"text"}
    (reply,) = closed.generate([Request(ASKED, max_tokens=4, want=frozenset({"logprobs"}))])[0]
    assert reply.text is not None and reply.trace is None and reply.n_tokens_in > 0


@each(
    ("name", "error", "match"),
    [
        ("embedded-closed", FileNotFoundError, "'embedded-closed': its folder .*away is missing"),
        ("closed", ValueError, "'closed'; allowed are embedded, embedded-closed, .*openai:NAME"),
    ],
)
def test_a_model_that_is_not_there_is_named(name, error, match, monkeypatch, tmp_path):
    monkeypatch.setitem(EMBEDDED, "embedded-closed", tmp_path / "away")
    with pytest.raises(error, match=match):
        open_model(name)
    assert set(models.CLOSED) < set(EMBEDDED)
