"""Asks whether two names mean the same diagnosis."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set
from functools import lru_cache
from itertools import product

from trustlab.knowledge.findings import Knowledge
from trustlab.knowledge.substances import drug_names
from trustlab.knowledge.words import word_lists
from trustlab.records import Case, normalise

_LISTS = word_lists("diagnoses")
DEGREES = frozenset(_LISTS["degrees"].split())
NEUTRAL = frozenset(_LISTS["neutral"].split())
"""Words that a longer name may have more without being another kind; but a disease is not a
syndrome."""
_LITTLE = (NEUTRAL | {"and"}) - {"disease", "syndrome"}
QUALIFIERS = frozenset(" ".join(_LISTS["qualifiers"].values()).casefold().split())
"""Words that make a name another diagnosis; so do numbers and single letters."""
LOOKALIKES = tuple(frozenset(group.split()) for group in _LISTS["lookalikes"])
"""Names that look alike; two of one group are two diagnoses."""
EXCLUSIVE = tuple(frozenset(group.split()) for group in _LISTS["exclusive"])
"""Words of one group rule each other out; a name with one of them is a kind of the name without."""
OPPOSITE_PREFIXES = tuple(
    (prefix, opposite)
    for prefix, opposites in _LISTS["opposite_prefixes"].items()
    for opposite in opposites.split()
)
"""Words that differ by such a pair alone rule each other out: eclampsia and preeclampsia."""
ROMAN = {numeral: str(n) for n, numeral in enumerate(_LISTS["roman"].split(), 1)}
SAME_WORD = {
    other: word
    for word, others in _LISTS["same_word"].items()
    for other in others.split()
}
"""Words taken for one: English and Latin names of an organ, noun and adjective."""
CERTAINTY = re.compile(rf"\b(?:{'|'.join(_LISTS['certainty'])})\b")
_APOSTROPHES = dict.fromkeys(map(ord, "’‘`´′‵ʹʼʽˈ＇"), "'")
"""Primes and accents that stand as apostrophes."""
_POSSESSIVE = re.compile(r"' ?s\b")
_UNSEEN = {"Cf", "Mn", "Me"}
"""Categories of characters without a place of their own: soft hyphens, joiners, accents."""


def folded(name: str) -> str:
    """In small letters, without accents, invisible characters and possessive 's."""
    if name.isascii():
        text = name.replace("`", "'")
    else:
        letters = unicodedata.normalize("NFKD", name.translate(_APOSTROPHES))
        visible = [c for c in letters if unicodedata.category(c) not in _UNSEEN]
        text = unicodedata.normalize("NFKC", "".join(visible))
    return _POSSESSIVE.sub("", text.casefold()).strip()


def bare_name(name: str) -> str:
    """The normalised name without words of certainty and degree."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    words = [word for word in _certain_words(plain) if word not in DEGREES]
    return " ".join(words)


def _certain_words(name: str) -> list[str]:
    """The normalised words of a name in small letters, without those of certainty."""
    return normalise(CERTAINTY.sub(" ", name)).split()


@lru_cache(maxsize=4096)
def content_words(name: str) -> frozenset[str]:
    """The words of :func:`words_in_order`, each once."""
    return frozenset(words_in_order(name))


def words_in_order(name: str) -> list[str]:
    """The words that say what it is, without certainty, degree and neutral words; ``SAME_WORD`` as
    one, ae and oe as e, II as 2, "type 2 B" as "2b". A leading "a" is an article."""
    without_article = re.sub(r"^\s*a\s+", "", name)
    parts = []
    for word in _certain_words(folded(without_article)):
        parts += re.findall(r"\d+|[^\W\d]+", ROMAN.get(word, word))
    words: list[str] = []
    for part in parts:
        last = words[-1] if words else ""
        is_short = part.isdigit() or len(part) == 1
        if is_short and last and _is_code(last):
            words[-1] += part
        elif is_short and last == "type":
            words[-1] = part
        elif part not in NEUTRAL | DEGREES:
            words.append(part)
    plain = [word.replace("ae", "e").replace("oe", "e") for word in words]
    return [SAME_WORD.get(word, word) for word in plain]


def _is_code(word: str) -> bool:
    """Whether a word is a single character or has a digit: a type's number or letter."""
    return len(word) == 1 or any(map(str.isdigit, word))


def is_qualifier(word: str) -> bool:
    """Whether a content word sets cause, site, side, stage, course or kind by itself."""
    return word in QUALIFIERS or _is_code(word)


def exclude(words: Set[str], others: Set[str]) -> bool:
    """Whether words of two names rule each other out: left and right, type 1 and type 2. Each has
    one that the other lacks: "acute on chronic" does not rule "chronic" out."""
    here = words - others
    there = others - words
    for word in here:
        for group in _GROUPS_OF_WORD.get(word, ()):
            if there & group:
                return True
    if any(map(_is_code, here)) and any(map(_is_code, there)):
        return True
    for a, b in product(here, there):
        if a[-3:] != b[-3:]:
            continue
        if _has_opposite(a, b) or _has_opposite(b, a):
            return True
    return False


_GROUPS = (*EXCLUSIVE, *LOOKALIKES)
_GROUPS_OF_WORD = {
    word: [g for g in _GROUPS if word in g] for group in _GROUPS for word in group
}


def _has_opposite(word: str, other: str) -> bool:
    """Whether two words differ by opposite prefixes alone; four letters or fewer say nothing."""
    if len(other) <= 4:
        return False
    for prefix, opposite in OPPOSITE_PREFIXES:
        if word.startswith(prefix) and opposite + word[len(prefix) :] == other:
            return True
    return False


ARTICLES = ("a ", "an ", "the ")
MAX_LENGTH = 200  # characters; a longer answer is a report

_DENIAL = re.compile(rf"\b(?:{'|'.join(_LISTS['denial'])})\b|^without\b|\babsent$")
ALTERNATIVES = re.compile(
    r"\b(?:or|vs|versus|either|differential(?:s)?)\b"  # between names
    r"|[;/|\n]|(?:\b[1-9][.)].*){2}",  # a list
    re.DOTALL,
)
_ADDITION = re.compile(r"\b(?:and|plus|as well as)\b|[&+]")
_NOTHING = re.compile("|".join(_LISTS["nothing"]))
_OPTION = re.compile(
    r"(?:(?:the )?(?:option|choice|answer|letter|number)(?: is)? )?(?:[a-z]|\d+|[ivx]+)"
)
_LABEL = re.compile(
    r"(?:the |my )?(?:(?:most likely|likely|probable|final|main|working) )?diagnosis *(?:is\b"
    r" *:?|:|-) *"
)
_CODE = re.compile(
    r" *[(\[] *(?:icd[- ]?10(?:-cm)?:?"
    r" *[a-z]\d[\da-z](?:\.[\da-z]{1,4})?|[a-z]\d[\da-z]\.[\da-z]{1,4}) *[)\]]\.?$"
)
_PERCENT = re.compile(r" *[(\[] *(?:100|[1-9]\d?)(?:\.\d+)? ?% *[)\]]\.?$")
_BRACKETED = re.compile(r"([^()]+)\(([^()]+)\)\s*\.?")


def spellings(name: str) -> set[str]:
    """The normalised name, and it without what may be an article: "A fib" has none."""
    plain = unicodedata.normalize("NFKC", name).strip()
    names = {normalise(plain)}
    for article in ARTICLES:
        if plain.casefold().startswith(article):
            names.add(normalise(plain[len(article) :]))
    return names - {""}


@lru_cache(maxsize=65536)
def keys(name: str) -> frozenset[str]:
    """The spellings of :func:`plain_name`, and it without words of certainty and degree."""
    plain = plain_name(name)
    return frozenset(spellings(plain) | {bare_name(plain)}) - {""}


def plain_name(name: str) -> str:
    """The name :func:`folded`, without a leading "Diagnosis:", and an ICD-10 code or a share of 1
    to 100 % in brackets at the end; "Bronchitis, acute" is turned round."""
    unlabelled = _without_label(folded(name))
    uncoded = _CODE.sub("", unlabelled)
    return _turned(_PERCENT.sub("", uncoded))


def undenied(name: str) -> str | None:
    """The X of "no X", "X ruled out", "unlikely X", normalised; ``None`` if nothing is denied."""
    words = " ".join(_certain_words(_without_label(folded(name))))
    if not _DENIAL.search(words):
        return None
    return " ".join(_DENIAL.sub(" ", words).split())


def bracketed(name: str) -> tuple[str, str] | None:
    """The two parts of "A (B)"; ``None`` for anything else."""
    parts = _BRACKETED.fullmatch(name.strip())
    if parts is None:
        return None
    return parts[1].strip(), parts[2].strip()


def _without_label(name: str) -> str:
    """The name behind "Diagnosis:" and the like."""
    label = _LABEL.match(name)
    if label is None:
        return name
    return name[label.end() :]


def _turned(name: str) -> str:
    """As "acute bronchitis" what is "Bronchitis, acute": after the comma only ``QUALIFIERS``."""
    head, comma, tail = name.partition(",")
    words = tail.strip(" .").split()
    if (
        not comma
        or not words
        or not normalise(head)
        or not QUALIFIERS.issuperset(words)
    ):
        return name
    return f"{' '.join(words)} {head.strip()}"


def is_acronym(short: str, long: str) -> bool:
    """Whether ``short`` is the first letters of ``long``, with or without its small words."""
    letters = normalise(short).replace(" ", "")
    if len(letters) < 2:
        return False
    words = _certain_words(plain_name(long))
    great_words = [word for word in words if word not in _LITTLE]
    return letters in (_first_letters(words), _first_letters(great_words))


def _first_letters(words: list[str]) -> str:
    """The first letter of each word, joined."""
    return "".join(word[0] for word in words)


def names_of(case: Case, knowledge: Knowledge) -> tuple[str, ...]:
    """Every name of the case's diagnosis: its own, accepted ones, both in "Chronic lymphocytic
    leukemia (CLL)", the table's, and those of a drug."""
    own: list[str] = []
    for name in (case.diagnosis, *case.accepted):
        own.append(name)
        parts = bracketed(name)
        if parts and is_acronym(parts[1], parts[0]):
            own += parts
    names = [*own]
    for name in own:
        names += drug_names(name)
        for spelling in sorted(spellings(name)):
            condition = knowledge.condition_named(spelling)
            if condition is not None:
                names += condition.names
    return tuple(dict.fromkeys(names))


def no_diagnosis(answer: str | None, names: Iterable[str] = ()) -> str:
    """Why the answer is not one diagnosis; '' where it may be. Where a true name of ``names`` holds
    "and", this joins no list. Ask whether it is one of them first."""
    plain = _without_label(folded(answer or ""))
    words = normalise(plain)
    letters = re.search(r"[^\W\d_]{2}", plain)
    nothing = not letters or _OPTION.fullmatch(words) or _NOTHING.fullmatch(words)
    if nothing or len(plain) > MAX_LENGTH:
        return "no diagnosis"
    if undenied(answer or "") is not None:
        return "a denial"
    is_list = ALTERNATIVES.search(plain)
    if _ADDITION.search(plain):
        is_list = is_list or not any(
            _ADDITION.search(name.casefold()) for name in names
        )
    for part in plain.split(",")[1:]:
        is_list = is_list or not all(map(is_qualifier, content_words(part)))
    return "several diagnoses" if is_list else ""
