"""A model that shows its words and hides its probabilities."""

from __future__ import annotations

from fake_model import EVERYTHING, FakeModel

from trustlab.models.base import Model, Request, TextOnly
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
    assert not hasattr(closed, "asked") and not hasattr(TextOnly(FakeModel()), "window")
