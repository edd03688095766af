"""Asks whether two names mean the same diagnosis."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set
from functools import lru_cache

from trustlab.knowledge.findings import Knowledge
from trustlab.knowledge.words import word_lists
from trustlab.records import Case, normalise

_WORDS = word_lists("diagnoses")
DEGREES = frozenset(_WORDS["degrees"].split())
NEUTRAL = frozenset(_WORDS["neutral"].split())
"""Words that a longer name may have more without being another kind; but a disease is not a
syndrome."""
_LITTLE = (NEUTRAL | {"and"}) - {"disease", "syndrome"}
QUALIFIERS = frozenset(" ".join(_WORDS["qualifiers"].values()).casefold().split())
"""Words that make a name another diagnosis; so do numbers and single letters."""
LOOKALIKES = tuple(frozenset(group.split()) for group in _WORDS["lookalikes"])
"""Names that look alike; two of one group are two diagnoses."""
EXCLUSIVE = tuple(frozenset(group.split()) for group in _WORDS["exclusive"])
"""Words of one group rule each other out; a name with one of them is a kind of the name without."""
OPPOSITE_PREFIXES = tuple(
    (one, other) for one, others in _WORDS["opposite_prefixes"].items() for other in others.split()
)
"""Words that differ by such a pair alone rule each other out: eclampsia and preeclampsia."""
ROMAN = {numeral: str(n) for n, numeral in enumerate(_WORDS["roman"].split(), 1)}
SAME_WORD = {word: one for one, words in _WORDS["same_word"].items() for word in words.split()}
"""Words taken for one: English and Latin names of an organ, noun and adjective."""
CERTAINTY = re.compile(rf"\b(?:{'|'.join(_WORDS['certainty'])})\b")
_APOSTROPHES = dict.fromkeys(map(ord, "’‘`´′‵ʹʼʽˈ＇"), "'")
"""Primes and accents that stand as apostrophes."""
_POSSESSIVE = re.compile(r"' ?s\b")
_UNSEEN = {"Cf", "Mn", "Me"}
"""Categories of characters without a place of their own: soft hyphens, joiners, accents."""


def folded(name: str) -> str:
    """In small letters, without accents, invisible characters and possessive 's."""
    if name.isascii():
        return _POSSESSIVE.sub("", name.replace("`", "'").casefold()).strip()
    letters = unicodedata.normalize("NFKD", name.translate(_APOSTROPHES))
    seen = "".join(c for c in letters if unicodedata.category(c) not in _UNSEEN)
    return _POSSESSIVE.sub("", unicodedata.normalize("NFKC", seen).casefold()).strip()


def bare_name(name: str) -> str:
    """The normalised name without words of certainty and degree."""
    words = normalise(CERTAINTY.sub(" ", unicodedata.normalize("NFKC", name).casefold())).split()
    return " ".join(word for word in words if word not in DEGREES)


@lru_cache(maxsize=4096)
def content_words(name: str) -> frozenset[str]:
    """The words of :func:`words_in_order`, each once."""
    return frozenset(words_in_order(name))


def words_in_order(name: str) -> list[str]:
    """The words that say what it is, without certainty, degree and neutral words; ``SAME_WORD`` as
    one, ae and oe as e, II as 2, "type 2 B" as "2b". A leading "a" is an article."""
    words = normalise(CERTAINTY.sub(" ", folded(re.sub(r"^\s*a\s+", "", name)))).split()
    parts = [part for word in words for part in re.findall(r"\d+|[^\W\d]+", ROMAN.get(word, word))]
    kept: list[str] = []
    for part in parts:
        short = part.isdigit() or len(part) == 1
        if short and kept and _is_code(kept[-1]):
            kept[-1] += part
        elif short and kept and kept[-1] == "type":
            kept[-1] = part
        elif part not in NEUTRAL | DEGREES:
            kept.append(part)
    plain = (word.replace("ae", "e").replace("oe", "e") for word in kept)
    return [SAME_WORD.get(word, word) for word in plain]


def _is_code(word: str) -> bool:
    return len(word) == 1 or any(c.isdigit() for c in word)


def is_qualifier(word: str) -> bool:
    """Whether a content word sets cause, site, side, stage, course or kind by itself."""
    return word in QUALIFIERS or _is_code(word)


def exclude(one: Set[str], other: Set[str]) -> bool:
    """Whether words of two names rule each other out: left and right, type 1 and type 2. Each has
    one that the other lacks: "acute on chronic" does not rule "chronic" out."""
    here, there = one - other, other - one
    return (
        any(there & group for word in here for group in _RULED_OUT.get(word, ()))
        or (any(map(_is_code, here)) and any(map(_is_code, there)))
        or any(_opposite(a, b) or _opposite(b, a) for a in here for b in there if a[-3:] == b[-3:])
    )


_GROUPS = (*EXCLUSIVE, *LOOKALIKES)
_RULED_OUT = {word: [g for g in _GROUPS if word in g] for group in _GROUPS for word in group}


def _opposite(one: str, other: str) -> bool:
    """Whether two words differ by opposite prefixes alone; four letters or fewer say nothing."""
    pairs = ((a, b) for a, b in OPPOSITE_PREFIXES if one.startswith(a))
    return len(other) > 4 and any(b + one[len(a) :] == other for a, b in pairs)


ARTICLES = ("a ", "an ", "the ")
MAX_LENGTH = 200  # characters; a longer answer is a report

_DENIAL = re.compile(rf"\b(?:{'|'.join(_WORDS['denial'])})\b|^without\b|\babsent$")
ALTERNATIVES = re.compile(
    r"\b(?:or|vs|versus|either|differential(?:s)?)\b"  # between names
    r"|[;/|\n]|(?:\b[1-9][.)].*){2}",  # a list
    re.DOTALL,
)
_ADDITION = re.compile(r"\b(?:and|plus|as well as)\b|[&+]")
_NOTHING = re.compile("|".join(_WORDS["nothing"]))
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
    article = next((a for a in ARTICLES if plain.casefold().startswith(a)), "")
    return {normalise(plain), normalise(plain[len(article) :])} - {""}


@lru_cache(maxsize=65536)
def keys(name: str) -> frozenset[str]:
    """The spellings of :func:`plain_name`, and it without words of certainty and degree."""
    plain = plain_name(name)
    return frozenset(spellings(plain) | {bare_name(plain)}) - {""}


def plain_name(name: str) -> str:
    """The name :func:`folded`, without a leading "Diagnosis:", and an ICD-10 code or a share of 1
    to 100 % in brackets at the end; "Bronchitis, acute" is turned round."""
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
    """As "acute bronchitis" what is "Bronchitis, acute": after the comma only ``QUALIFIERS``."""
    head, comma, tail = name.partition(",")
    words = tail.strip(" .").split()
    turns = comma and normalise(head) and words and all(word in QUALIFIERS for word in words)
    return f"{' '.join(words)} {head.strip()}" if turns else name


def is_acronym(short: str, long: str) -> bool:
    """Whether ``short`` is the first letters of ``long``, with or without its small words."""
    letters = normalise(short).replace(" ", "")
    words = normalise(CERTAINTY.sub(" ", plain_name(long))).split()
    firsts = ["".join(word[0] for word in words)]
    firsts.append("".join(word[0] for word in words if word not in _LITTLE))
    return len(letters) > 1 and letters in firsts


def names_of(case: Case, knowledge: Knowledge) -> tuple[str, ...]:
    """Every name of the case's diagnosis: its own, accepted ones, both in "Chronic lymphocytic
    leukemia (CLL)", and the table's."""
    own: list[str] = []
    for name in (case.diagnosis, *case.accepted):
        parts = bracketed(name)
        own += [name, *(parts if parts and is_acronym(parts[1], parts[0]) else ())]
    found = [knowledge.condition_named(spelt) for name in own for spelt in sorted(spellings(name))]
    return tuple(dict.fromkeys([*own, *(n for c in found if c is not None for n in c.names)]))


def no_diagnosis(answer: str | None, names: Iterable[str] = ()) -> str:
    """Why the answer is not one diagnosis; '' where it may be. Where a true name of ``names`` holds
    "and", this joins no list. Ask whether it is one of them first."""
    plain = _unlabelled(folded(answer or ""))
    words = normalise(plain)
    letters = re.search(r"[^\W\d_]{2}", plain)
    nothing = not letters or _OPTION.fullmatch(words) or _NOTHING.fullmatch(words)
    if nothing or len(plain) > MAX_LENGTH:
        return "no diagnosis"
    if undenied(answer or "") is not None:
        return "a denial"
    if ALTERNATIVES.search(plain):
        return "several diagnoses"
    if _ADDITION.search(plain) and not any(_ADDITION.search(name.casefold()) for name in names):
        return "several diagnoses"
    described = (content_words(part) for part in plain.split(",")[1:])
    several = any(not is_qualifier(word) for words in described for word in words)
    return "several diagnoses" if several else ""
