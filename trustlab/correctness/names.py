"""Reading an answer as the name of a diagnosis: how names are compared, and what is no diagnosis at all.

Everything here is a rule about words; none asks a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from trustlab.correctness.kinds import CERTAINTY, content_words, folded, is_qualifier
from trustlab.correctness.words import DEGREES, NEUTRAL, QUALIFIERS
from trustlab.knowledge import Knowledge, normalise
from trustlab.records import Case

ARTICLES = ("a ", "an ", "the ")
MAX_LENGTH = 200
"""Characters; a longer answer is a report and no name, unless it is a true name."""

_DENIAL = re.compile(
    r"\b(?:(?:no|not any) (?:signs?|evidence|history) of|absence of"
    r"|no|not|never|cannot|(?:isn|don|doesn|can|won) t|denie[sd]|den(?:y|ying)"
    r"|exclud(?:e|es|ed|ing)|exclusion of|unlikely|improbable|doubtful"
    r"|(?:been )?rul(?:e|es|ed|ing) out|r o|negative for|free (?:of|from)|rather than|instead of)\b"
    r"|^without\b|\babsent$"
)
ALTERNATIVES = re.compile(
    r"\b(?:or|vs|versus|either|differential(?:s)?)\b"  # between names
    r"|[;/|\n]|(?:\b[1-9][.)].*){2}",  # a list
    re.DOTALL,
)
_ADDITION = re.compile(r"\b(?:and|plus|as well as)\b|[&+]")
_NOTHING = re.compile(
    r"(?:yes|no|none|nil|nothing|true|false|maybe|perhaps|other|n a|(?:i )?(?:do not|don t) know|not sure|unsure"
    r"|(?:the )?(?:diagnosis|cause|disease|condition)?(?: is)? ?(?:unknown|unclear|uncertain|undetermined|indeterminate)"
    r"(?: diagnosis| cause| disease| condition)?|(?:the |no )?diagnosis|(?:insufficient|not enough|more) information(?: needed)?)"
)
_OPTION = re.compile(r"(?:(?:the )?(?:option|choice|answer|letter|number)(?: is)? )?(?:[a-z]|\d+|[ivx]+)")
_LABEL = re.compile(r"(?:the |my )?(?:(?:most likely|likely|probable|final|main|working) )?diagnosis *(?:is\b *:?|:|-) *")
_CODE = re.compile(
    r" *[(\[] *(?:icd[- ]?10(?:-cm)?:? *[a-z]\d[\da-z](?:\.[\da-z]{1,4})?|[a-z]\d[\da-z]\.[\da-z]{1,4}) *[)\]]\.?$"
)
_PERCENT = re.compile(r" *[(\[] *(?:100|[1-9]\d?)(?:\.\d+)? ?% *[)\]]\.?$")
_BRACKETED = re.compile(r"([^()]+)\(([^()]+)\)\s*\.?")


def spellings(name: str) -> set[str]:
    """The normalised name, and it without a leading article; both, since "A fib" begins with none."""
    plain = unicodedata.normalize("NFKC", name).strip()
    article = next((a for a in ARTICLES if plain.casefold().startswith(a)), "")
    return {normalise(plain), normalise(plain[len(article) :])} - {""}


def readings(name: str) -> set[tuple[str, frozenset[str]]]:
    """The spellings as they are and without words of certainty and degree, each with the degrees taken out of it.

    Taken off before: accents, invisible characters, possessive 's, a leading "Diagnosis:", an ICD-10 code or a share of
    1 to 100 % in brackets at the end. "Bronchitis, acute" is turned round. The code itself is not looked up.
    """
    plain = plain_name(name)
    found = {(key, frozenset()) for key in spellings(plain)}
    for key in spellings(CERTAINTY.sub(" ", plain).strip(" ,")):
        words = key.split()
        rest = " ".join(word for word in words if word not in DEGREES)
        found.add((rest, frozenset(words) & DEGREES))
    return {(key, degrees) for key, degrees in found if key}


def plain_name(name: str) -> str:
    """The name :func:`folded`, turned round, without label, code and share (:func:`readings`)."""
    return _turned(_PERCENT.sub("", _CODE.sub("", _unlabelled(folded(name)))))


def undenied(name: str) -> str | None:
    """The X of "no X", "X ruled out", "unlikely X", normalised; ``None`` if nothing is denied."""
    words = normalise(CERTAINTY.sub(" ", _unlabelled(folded(name))))
    return " ".join(_DENIAL.sub(" ", words).split()) if _DENIAL.search(words) else None


def bracketed(name: str) -> tuple[str, str] | None:
    """The two parts of "A (B)"; ``None`` for anything else."""
    parts = _BRACKETED.fullmatch(name.strip())
    return (parts[1].strip(), parts[2].strip()) if parts else None


def _unlabelled(name: str) -> str:
    label = _LABEL.match(name)
    return name[label.end() :] if label else name


def _turned(name: str) -> str:
    """As "acute bronchitis" what is "Bronchitis, acute": one comma, and after it nothing but words of ``QUALIFIERS``."""
    head, comma, tail = name.partition(",")
    words = tail.strip(" .").split()
    turns = comma and normalise(head) and words and all(word in QUALIFIERS for word in words)
    return f"{' '.join(words)} {head.strip()}" if turns else name


def same_name(one: str, other: str) -> bool:
    """Whether two names are spelt alike but for words of certainty and degree; "mild x" and "severe x" are not."""
    theirs = readings(other)
    return any(key == k and (a == b or not a or not b) for key, a in readings(one) for k, b in theirs)


def is_named(answer: str, names: Iterable[str]) -> bool:
    """Whether ``answer`` is, whole, one of ``names``, or such a name with its abbreviation or another name in brackets."""
    listed = list(names)
    if any(same_name(answer, name) for name in listed):
        return True
    parts = bracketed(_unlabelled(folded(answer)))
    if parts is None:
        return False
    outside, inside = (any(same_name(part, name) for name in listed) for part in parts)
    return (outside and inside) or ((outside or inside) and is_acronym(parts[1], parts[0]))


def is_acronym(short: str, long: str) -> bool:
    """Whether ``short`` is made of the first letters of ``long``, with or without its small words."""
    letters = normalise(short).replace(" ", "")
    for key, _ in readings(long):
        words = key.split()
        for kept in (words, [word for word in words if word not in NEUTRAL | {"and"} or word in ("disease", "syndrome")]):
            if len(letters) > 1 and letters == "".join(word[0] for word in kept):
                return True
    return False


def names_of(case: Case, knowledge: Knowledge) -> tuple[str, ...]:
    """Every name of the case's diagnosis: its own, the accepted ones, and the table's for the conditions that they name."""
    own = tuple(name for given in (case.diagnosis, *case.accepted) for name in (given, *_with_acronym(given)))
    found = [knowledge.condition_named(spelt) for name in own for spelt in sorted(spellings(name))]
    return tuple(dict.fromkeys((*own, *(n for condition in found if condition is not None for n in condition.names))))


def _with_acronym(name: str) -> tuple[str, ...]:
    """The two names in "Chronic lymphocytic leukemia (CLL)"; none where the bracket is not the acronym of the rest."""
    parts = bracketed(name)
    return parts if parts and is_acronym(parts[1], parts[0]) else ()


def no_diagnosis(answer: str | None, names: Iterable[str] = ()) -> str:
    """Why the answer, taken as it stands, is not one diagnosis; '' where it may be. ``names`` are the true ones.

    A true name may itself hold "and", so that "and" joins no list there. Ask :func:`is_named` first: a name that matches
    whole is right whatever signs it holds.
    """
    plain = _unlabelled(folded(answer or ""))
    words = normalise(plain)
    if len(plain) > MAX_LENGTH or _OPTION.fullmatch(words):
        return "no diagnosis"
    if not re.search(r"[^\W\d_]{2}", plain) or _NOTHING.fullmatch(words):
        return "no diagnosis"
    if undenied(answer or "") is not None:
        return "a denial"
    if ALTERNATIVES.search(plain):
        return "several diagnoses"
    if _ADDITION.search(plain) and not any(_ADDITION.search(name.casefold()) for name in names):
        return "several diagnoses"
    turned = (content_words(part) for part in plain.split(",")[1:])
    return "several diagnoses" if any(not is_qualifier(word) for words in turned for word in words) else ""
