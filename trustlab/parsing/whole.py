"""What every reader of replies begins with: the reply as it came, or why there is none."""

from __future__ import annotations

import re

from trustlab.records import Reply

CUT = "ran out of tokens"
"""Why a reply cut off by the budget or the window is no answer, whatever stands in it."""
UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no text file takes: NUL and halves of surrogate pairs."""


class Unreadable(ValueError):
    """A reply that does not have the asked-for form; its words say what is wrong."""


def no_answer(reply: Reply) -> str:
    """Why a reply is no answer, neither right nor wrong: :data:`CUT`, or why it is missing.

    '' where it is one, readable or not.
    """
    if reply.finish == "length":
        return CUT
    return "" if reply.text is not None else reply.missing or "no reply"


def whole(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` where it is missing or was cut off."""
    if why := no_answer(reply):
        raise Unreadable(why)
    return reply.text or ""


def writable(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` also where no file could hold it."""
    if UNWRITABLE.search(text := whole(reply)):
        raise Unreadable("characters that are no text")
    return text
