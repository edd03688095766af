"""What every reader of replies begins with: the reply as it came, or why there is none."""

from __future__ import annotations

from trustlab.parsing.brackets import UNWRITABLE
from trustlab.records import Reply

CUT = "ran out of tokens"
"""Why a reply that was cut off, by the budget or by the window, is no answer, whatever stands in it."""


class Unreadable(ValueError):
    """A reply that does not have the asked-for form; its words say what is wrong."""


def whole(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` where it is missing or was cut off."""
    if reply.text is None:
        raise Unreadable(reply.missing or "no reply")
    if reply.finish == "length":
        raise Unreadable("the reply was cut off")
    return reply.text


def writable(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` also where no file could hold it."""
    if UNWRITABLE.search(text := whole(reply)):
        raise Unreadable("characters that are no text")
    return text
