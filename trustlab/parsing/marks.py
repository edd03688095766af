"""Takes off a reply what is not its words: a chat template's marks, other turns, sources.

Blanks stand in their place, so that what is found in the rest stands at the same place in the reply.
"""

from __future__ import annotations

import re
from pathlib import Path

from trustlab.files import read_yaml

_PATTERNS: dict[str, str] = read_yaml(Path(__file__).with_name("marks.yml"))


def _pattern(name: str) -> re.Pattern[str]:
    """A pattern of marks.yml, with those whose names stand in braces."""
    form = _PATTERNS[name]
    while (filled := re.sub(r"\{([a-z_]+)\}", lambda inner: _PATTERNS[inner[1]], form)) != form:
        form = filled
    return re.compile(form, re.VERBOSE)


_MARK, _LEAD, _END = _pattern("mark"), _pattern("lead"), _pattern("end")
_CITED = _pattern("cited")


def _blanks(found: re.Match[str]) -> str:
    return " " * len(found[0])


def own_turn(text: str) -> str:
    """The reply without marks, up to the first one that ends its turn or begins another: a turn
    behind that is the model's invention."""
    if not _MARK.search(text):  # of most replies
        return text
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    end = _END.search(text, start)
    own = text[start : end.start()] if end else text[start:]
    return " " * start + _MARK.sub(_blanks, own)


def own_words(text: str) -> str:
    """:func:`own_turn` without brackets that name where something was read, or how sure it is."""
    return _CITED.sub(_blanks, own_turn(text))
