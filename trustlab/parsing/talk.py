"""What doctor and patient say in a consultation: one question, enough or more, and the groups of a patient's reply.

As everywhere in :mod:`trustlab.parsing`, words beside the brackets are no part of what was said, and of two questions none is
chosen.
"""

from __future__ import annotations

import re
from itertools import islice

from trustlab.parsing.brackets import groups
from trustlab.parsing.whole import UNWRITABLE, Unreadable, whole
from trustlab.records import Reply

MAX_QUESTION = 300
"""Characters of the longest question."""
MAX_GROUPS = 20
"""Groups that a patient's reply may have."""
_SPEAKER = re.compile(r"\b(?:doctor|patient)\s*:", re.IGNORECASE)


def read_question(reply: Reply) -> str:
    """The doctor's question: the reply's only group in square brackets, white space made single.

    Raises :class:`Unreadable` where there is none or more than one, where it holds no letter, more than
    :data:`MAX_QUESTION` characters or some that no file takes, where it speaks for somebody ("Patient:"), and where the reply
    was cut off or is missing. A question mark is not asked for.
    """
    text = _only(reply, "question")
    if not any(c.isalpha() for c in text) or len(text) > MAX_QUESTION or UNWRITABLE.search(text):
        raise Unreadable(f"the question holds no letter, more than {MAX_QUESTION} characters, or some that no file takes")
    if _SPEAKER.search(text):
        raise Unreadable("the question speaks for doctor or patient")
    return text


def read_enough(reply: Reply) -> bool:
    """Whether the doctor has heard enough: the only group is ``enough`` or ``more``; :class:`Unreadable` otherwise."""
    said = _only(reply, "decision").casefold().rstrip(".!")
    if said not in ("enough", "more"):
        raise Unreadable(f"the decision is neither enough nor more: {said[:40]!r}")
    return said == "enough"


def read_replies(reply: Reply) -> list[str]:
    """What the patient says: every group in square brackets, white space made single.

    Raises :class:`Unreadable` where none is whole, and where there are more than :data:`MAX_GROUPS`.
    """
    found = [" ".join(span.text.split()) for span in islice(groups(whole(reply)), MAX_GROUPS + 1)]
    if len(found) > MAX_GROUPS:
        raise Unreadable(f"more than {MAX_GROUPS} groups in square brackets")
    if not found:
        raise Unreadable("no words in square brackets")
    return found


def _only(reply: Reply, what: str) -> str:
    found = [span.text for span in groups(whole(reply))]
    if len(found) != 1:
        raise Unreadable(f"{len(found) or 'no'} {what}{'' if not found else 's'} in square brackets, one is needed")
    return " ".join(found[0].split())
