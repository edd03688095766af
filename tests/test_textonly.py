"""A model that shows its words and hides its probabilities."""

from __future__ import annotations

import pytest
from fake_model import EVERYTHING, FakeModel

import trustlab.models as models
from trustlab.models import EMBEDDED, open_model
from trustlab.models.base import Model, Request, TextOnly
from trustlab.prompts import render

PATIENT = "Doctor: Any fever?\nPatient: Yes, since Monday."
ASKED = render("diagnosis", patient=PATIENT)
PRIOR = render("diagnosis", patient=None)


def requests(want: frozenset[str] = frozenset(), prior_messages=None) -> list[Request]:
    return [
        Request(ASKED, want=want, prior_messages=prior_messages, purpose="diagnosis"),
        Request(
            ASKED,
            n=3,
            temperature=0.5,
            seed=4,
            want=want,
            prior_messages=prior_messages,
            purpose="samples",
        ),
    ]


class Windowed(FakeModel):
    """A fake with what a real model says about its window."""

    window = 1024

    def count_tokens(self, messages) -> int:
        return sum(len(content.split()) for _, content in messages)


def test_it_is_a_model_that_provides_text_and_nothing_else():
    closed = TextOnly(FakeModel())
    assert isinstance(closed, Model)
    assert (closed.name, closed.revision, closed.provides) == (
        "fake",
        "r1-text",
        frozenset({"text"}),
    )
    assert TextOnly(FakeModel(), "closed").name == "closed"


def test_the_words_and_counts_are_the_wrapped_model_s_and_the_traces_are_gone():
    wanted = EVERYTHING - {"text"}
    whole, shown = (
        FakeModel().generate(requests(wanted, PRIOR)),
        TextOnly(FakeModel()).generate(requests(wanted, PRIOR)),
    )
    assert [len(replies) for replies in shown] == [1, 3]
    for ours, theirs in zip(sum(shown, []), sum(whole, []), strict=True):
        assert theirs.trace is not None and theirs.n_tokens_in > 0 and theirs.n_tokens_out > 0
        assert ours.trace is None
        for field in ("text", "raw", "finish", "missing", "n_tokens_in", "n_tokens_out"):
            assert getattr(ours, field) == getattr(theirs, field)


def test_statistics_are_not_asked_of_the_wrapped_model():
    inner = FakeModel()
    TextOnly(inner).generate(requests(frozenset({"logprobs", "prior"}), PRIOR))
    assert inner.requests == requests()


def test_a_trace_that_nobody_asked_for_is_hidden_too():
    class Talkative(FakeModel):
        def generate(self, requests):
            return super().generate(
                [Request(r.messages, n=r.n, want=frozenset({"logprobs"})) for r in requests]
            )

    assert [r.trace for replies in TextOnly(Talkative()).generate(requests()) for r in replies] == [
        None
    ] * 4


def test_window_and_token_count_are_the_wrapped_model_s():
    inner = Windowed()
    closed = TextOnly(inner)
    assert (closed.window, closed.count_tokens(ASKED)) == (1024, inner.count_tokens(ASKED))


@pytest.mark.parametrize("name", ["window", "count_tokens", "asked", "tokenizer"])
def test_nothing_else_shows_through(name):
    assert not hasattr(TextOnly(FakeModel() if name != "asked" else Windowed()), name)


def test_the_closed_model_without_its_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(EMBEDDED, "embedded-closed", tmp_path / "away")
    with pytest.raises(
        FileNotFoundError,
        match=r"there is no model 'embedded-closed': its folder .*away is missing",
    ):
        open_model("embedded-closed")


def test_the_closed_model_opens_as_text_only(monkeypatch):
    monkeypatch.setitem(EMBEDDED, "embedded-closed", EMBEDDED["embedded"])
    closed = open_model("embedded-closed", device="cpu")
    assert (
        isinstance(closed, TextOnly)
        and closed.name == "embedded-closed"
        and closed.provides == {"text"}
    )
    assert closed.revision == f"{closed.model.revision}-text" and closed.model.provides > {"text"}
    (reply,) = closed.generate([Request(ASKED, max_tokens=4, want=frozenset({"logprobs"}))])[0]
    assert reply.text is not None and reply.trace is None and reply.n_tokens_in > 0


def test_an_unknown_name_is_told_both():
    with pytest.raises(
        ValueError,
        match="'closed'; allowed are embedded, embedded-closed, .*hf:NAME_OR_PATH, openai:NAME",
    ):
        open_model("closed")
    assert set(models.CLOSED) < set(EMBEDDED)
