"""Tries three views of each purpose first, and stops where too few are read. Where less than half
can be read, the run stops (``trial=False`` goes on)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import KINDS, LEAST_READ, ReadReply
from trustlab.stops import Unread

T = TypeVar("T")
N_VIEWS = 3  # views of each purpose at most
N_REPLIES = 3  # replies to each of them at most
SHOWN = 100  # characters of a reply that a line shows
ADVICE = (
    "Look at the replies. Worked examples help small models (demonstrations=2 to 4), a form helps"
    " with JSON (model_options={structured: true}), more room helps models that think"
    " (budgets={thinking: 2048}); a folder of your own wording is prompts=FOLDER. trial=False goes"
    " on all the same."
)


def spread(items: Sequence[T], n: int = N_VIEWS) -> list[T]:
    """At most ``n`` of the items: the first, the last, and some between."""
    if not items:
        return []
    last = len(items) - 1
    n_steps = max(n - 1, 1)
    places = {round(i * last / n_steps) for i in range(n)}
    return [items[place] for place in sorted(places)]


class TriedReply(NamedTuple):
    """A reply of a trial: ``kind`` of :data:`~trustlab.parsing.counts.KINDS`, or "failed"; whether
    only chat-style reading reads it; ``raw``: the words as they came; what was ``read``, or ``why``
    nothing; the seconds that it took; ``None`` tokens where the server does not count them."""

    model: str
    purpose: str
    kind: str
    chat: bool
    raw: str
    read: Any
    why: str
    seconds: float
    n_tokens_out: int | None


@dataclass
class Trial:
    """The trial of one run, or of several that share it; a :class:`CachedModel`'s ``trial``.
    ``stops``: whether it ends the run where too little is read; ``quiet``: whether nothing is
    printed."""

    stops: bool = True
    quiet: bool = True
    replies: list[TriedReply] = field(default_factory=list)

    def __call__(self, model: CachedModel, requests: Sequence[Request]) -> None:
        """Try the purposes of ``requests`` that this model has not been tried on; :class:`Unread`
        where less than half of one is read."""
        tried = self.purposes()
        requests_by_purpose = {}
        for request in requests:
            purpose = request.purpose
            is_read = request.about is not None and request.about.reads is not None
            if is_read and (model.name, purpose) not in tried:
                requests_by_purpose.setdefault(purpose, []).append(request)
        for purpose, purpose_requests in requests_by_purpose.items():
            if self.stops and len(purpose_requests) < N_VIEWS:
                continue  # of fewer a run would spare nothing
            few = []
            for request in spread(purpose_requests):
                few.append(replace(request, n=min(request.n, N_REPLIES)))
            with self.apart([model]):
                model.trial = None
                model.recorder = self._note
                model.generate(few)
            self._judge(model.name, purpose)

    @contextmanager
    def apart(self, models: Sequence[CachedModel]) -> Iterator[None]:
        """Leave replies out of the models' counts and records, for a run asks for them again; calls
        that made a new reply stay among the models' calls."""
        with ExitStack() as stack:
            for model in models:
                stack.enter_context(_uncounted(model))
            yield

    def _note(
        self,
        name: str,
        request: Request,
        replies: Any,
        readings: Sequence[ReadReply],
        counted: Mapping[str, Any],
    ) -> None:
        for reply, reading in zip(replies, readings, strict=True):
            tried = TriedReply(
                model=name,
                purpose=request.purpose,
                kind=reading.kind or "failed",
                chat=reading.chat,
                raw=reply.raw or reply.text or "",
                read=reading.read,
                why=reading.why,
                seconds=counted["seconds"] / len(replies),
                n_tokens_out=reply.n_tokens_out,
            )
            self.replies.append(tried)

    def _judge(self, model: str, purpose: str) -> None:
        """Show what came of a purpose; stop where too little of it was read."""
        replies = self.purposes()[model, purpose]
        text = "\n".join(
            [f"trial of {model}, {summary(replies)}", *map(line, spread(replies))]
        )
        if not self.quiet:
            print(text, flush=True)
        if self.stops and n_read(replies) < LEAST_READ * len(replies):
            raise Unread(f"{text}\nless than half could be read. {ADVICE}", [])

    def purposes(self) -> dict[tuple[str, str], list[TriedReply]]:
        """(model, purpose) -> its replies."""
        by_purpose = defaultdict(list)
        for reply in self.replies:
            purpose = (reply.model, reply.purpose)
            by_purpose[purpose].append(reply)
        return dict(by_purpose)

    def table(self) -> pd.DataFrame:
        """A row a model and purpose: counts by kind, seconds and tokens of a reply."""
        rows = []
        for (model, purpose), replies in self.purposes().items():
            row: dict[str, Any] = {"model": model, "purpose": purpose}
            for kind in KINDS:
                row[kind] = sum(reply.kind == kind for reply in replies)
            row["asked"] = len(replies)
            row["chat"] = sum(reply.chat for reply in replies)
            costs = pd.DataFrame(replies)[["seconds", "n_tokens_out"]].astype("float64")
            row |= costs.mean(skipna=False).to_dict()
            rows.append(row)
        return pd.DataFrame(
            rows, columns=["model", "purpose", *KINDS, "seconds", "n_tokens_out"]
        )

    def lines(self) -> list[str]:
        """For each purpose a summary and some replies, raw and as they were read."""
        lines = []
        for replies in self.purposes().values():
            lines.append(summary(replies))
            lines += map(line, spread(replies))
        return lines


@contextmanager
def _uncounted(model: CachedModel) -> Iterator[None]:
    """Set a model's counts and recorder aside; afterwards drop calls that made no new reply."""
    counts = model.counts
    recorder = model.recorder
    trial = model.trial
    n_calls = len(model.calls)
    model.counts = {}
    model.recorder = None
    try:
        yield
    finally:
        model.counts = counts
        model.recorder = recorder
        model.trial = trial
        model.calls[n_calls:] = [
            call for call in model.calls[n_calls:] if call["n_made"]
        ]


def n_read(replies: Sequence[TriedReply]) -> int:
    """How many of these replies were read."""
    return sum(reply.kind == "read" for reply in replies)


def summary(replies: Sequence[TriedReply]) -> str:
    """How many replies to a purpose were read, in words."""
    return f"{replies[0].purpose}: {n_read(replies)} of {len(replies)} read"


def line(reply: TriedReply) -> str:
    """A reply as it came, and what was read."""
    raw = reply.raw
    if len(raw) > SHOWN:
        raw = raw[:SHOWN] + "…"
    read = getattr(reply.read, "text", reply.read)
    if reply.kind != "read":
        read = reply.why or reply.kind
    return f"  {raw!r} -> {read}"
