"""A statement worded anew: the one group in square brackets that a reply may hold."""

from __future__ import annotations

import re

from trustlab.parsing.brackets import groups
from trustlab.parsing.whole import UNWRITABLE, Unreadable, whole
from trustlab.records import Reply

MAX_CHARACTERS = 600
_SPEAKER = re.compile(r"\b(?:doctor|patient)\s*:", re.IGNORECASE)


def read_wording(reply: Reply) -> str:
    """The new wording: the content of the reply's only group in square brackets, white space made single.

    Raises :class:`Unreadable` where there is no group or more than one, where it holds no letter, more than
    :data:`MAX_CHARACTERS` characters or characters that no file takes, where it speaks for somebody ("Doctor:"), and where
    the reply was cut off.
    """
    found = [span.text for span in groups(whole(reply))]
    if len(found) != 1:
        raise Unreadable(f"{len(found) or 'no'} wordings in square brackets, one is needed")
    text = " ".join(found[0].split())
    if not any(c.isalpha() for c in text) or len(text) > MAX_CHARACTERS or UNWRITABLE.search(text):
        raise Unreadable(f"the wording holds no letter, more than {MAX_CHARACTERS} characters, or some that no file takes")
    if _SPEAKER.search(text):
        raise Unreadable("the wording speaks for doctor or patient")
    return text
