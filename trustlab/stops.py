"""Says why a run stopped before all was answered."""

from __future__ import annotations

from collections.abc import Sequence

from trustlab.records import Reply


class Stopped(RuntimeError):
    """A backend had to stop before all was answered (a budget is spent, say); its words tell why
    and how to go on. ``replies`` is what :meth:`Model.generate` would have returned: finished
    replies as they are, the others missing with the reason; () where ``keep`` got all of them."""

    def __init__(self, message: str, replies: Sequence[list[Reply]] = ()) -> None:
        super().__init__(message)
        self.replies = list(replies)


class Gone(Stopped):
    """The server does not answer any more, or asks to wait too long; a cluster has no worker."""


class Unlike(Stopped):
    """Two workers of a cluster are not alike; its words say which, and in what."""


class Unread(Stopped):
    """Too few replies of a trial could be read; its words show some of them."""


class Waiting(Stopped):
    """Requests wait in batch files; its words say where, and what to do."""
