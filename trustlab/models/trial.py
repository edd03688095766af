"""Tries three views of each purpose first, and stops where too few are read. Where less than half
can be read, the run stops (``trial=False`` goes on)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pandas as pd

from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.models.stops import Unread
from trustlab.parsing.counts import KINDS, LEAST_READ, ReadReply

T = TypeVar("T")
N_VIEWS, N_REPLIES = 3, 3  # views of each purpose, and replies of each of them, at most
SHOWN = 100  # characters of a reply that a line shows
ADVICE = (
    "Look at the replies. Worked examples help small models (demonstrations=2 to 4), a form helps"
    " with JSON (model_options={structured: true}), more room helps models that think"
    " (budgets={thinking: 2048}); a folder of your own wording is prompts=FOLDER. trial=False goes"
    " on all the same."
)


def spread(items: Sequence[T], n: int = N_VIEWS) -> list[T]:
    """At most ``n`` of the items: the first, the last, and some between."""
    places = {round(i * (len(items) - 1) / max(n - 1, 1)) for i in range(n)}
    return [items[i] for i in sorted(places)] if items else []


@dataclass
class Trial:
    """The trial of one run, or of several that share it; a :class:`CachedModel`'s ``trial``.
    ``rows``: one a reply, as :meth:`_note` writes them. ``stops``: whether it ends the run where
    too little is read; ``quiet``: whether nothing is printed."""

    stops: bool = True
    quiet: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, model: CachedModel, requests: Sequence[Request]) -> None:
        """Try the purposes of ``requests`` that this model has not been tried on; :class:`Unread`
        where less than half of one is read."""
        known = self.purposes()
        waiting: dict[str, list[Request]] = {}
        for r in requests:
            if r.about is not None and r.about.reads and (model.name, r.purpose) not in known:
                waiting.setdefault(r.purpose, []).append(r)
        for purpose, each in waiting.items():
            if self.stops and len(each) < N_VIEWS:
                continue  # of fewer a run would spare nothing
            with self.apart([model]):
                model.trial, model.recorder = None, self._note
                model.generate([replace(r, n=min(r.n, N_REPLIES)) for r in spread(each)])
            self._judge(model.name, purpose)

    @contextmanager
    def apart(self, models: Sequence[CachedModel]) -> Iterator[None]:
        """What is asked here counts as made by a run, but for no reply twice."""
        before = [(m.counts, m.recorder, len(m.calls), m.trial) for m in models]
        for m in models:
            m.counts, m.recorder = {}, None
        try:
            yield
        finally:
            for m, (counts, recorder, n, trial) in zip(models, before, strict=True):
                m.counts, m.recorder, m.trial = counts, recorder, trial
                m.calls[n:] = [call for call in m.calls[n:] if call["n_made"]]

    def _note(
        self, name: str, request: Request, row: Any, found: Sequence[ReadReply], counted: Any
    ) -> None:
        for reply, one in zip(row, found, strict=True):
            self.rows.append({
                "model": name, "purpose": request.purpose, "kind": one.kind or "failed",
                "chat": one.chat, "raw": reply.raw or reply.text or "", "read": one.read,
                "why": one.why, "seconds": counted["seconds"] / len(row),
                "n_tokens_out": reply.n_tokens_out,
            })  # fmt: skip

    def _judge(self, model: str, purpose: str) -> None:
        """Show what came of a purpose; stop where too little of it was read."""
        rows = self.purposes()[model, purpose]
        text = "\n".join([f"trial of {model}, {summary(rows)}", *map(line, spread(rows))])
        if not self.quiet:
            print(text, flush=True)
        if self.stops and n_read(rows) < LEAST_READ * len(rows):
            raise Unread(f"{text}\nless than half could be read. {ADVICE}", [])

    def purposes(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """(model, purpose) -> its rows."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in self.rows:
            found.setdefault((row["model"], row["purpose"]), []).append(row)
        return found

    def table(self) -> pd.DataFrame:
        """A row a model and purpose: counts by kind, seconds and tokens of a reply."""
        rows = []
        for (model, purpose), of in self.purposes().items():
            n = {kind: sum(r["kind"] == kind for r in of) for kind in KINDS if kind != "chat"}
            n |= {"asked": len(of), "chat": sum(r["chat"] for r in of)}
            mean = (
                pd.DataFrame(of)[["seconds", "n_tokens_out"]].astype("float64").mean(skipna=False)
            )
            rows.append({"model": model, "purpose": purpose, **n, **mean})
        return pd.DataFrame(rows, columns=["model", "purpose", *KINDS, "seconds", "n_tokens_out"])

    def lines(self) -> list[str]:
        """For each purpose a summary and some replies, raw and as they were read."""
        each = self.purposes().values()
        return [text for rows in each for text in (summary(rows), *map(line, spread(rows)))]


def n_read(rows: Sequence[dict[str, Any]]) -> int:
    """How many of these replies were read."""
    return sum(row["kind"] == "read" for row in rows)


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """How many replies to a purpose were read, in words."""
    return f"{rows[0]['purpose']}: {n_read(rows)} of {len(rows)} read"


def line(row: dict[str, Any]) -> str:
    """A reply as it came, and what was read."""
    raw = repr(row["raw"] if len(row["raw"]) <= SHOWN else row["raw"][:SHOWN] + "…")
    read = getattr(row["read"], "text", row["read"])
    return f"  {raw} -> {read if row['kind'] == 'read' else row['why'] or row['kind']}"
