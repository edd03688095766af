"""Asks whether an answer is the true disease or a kind of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from itertools import permutations

from trustlab.knowledge import icd10
from trustlab.knowledge.disease_names import (
    AFTER_A_COMMA,
    ANATOMY,
    ANOTHER,
    NOT_NOW,
    VOCABULARY,
    Name,
    before_the_cause,
    cause_behind,
    goes_with,
    is_listed,
    kinds_of,
    read_name,
    word_set,
)
from trustlab.knowledge.findings import Knowledge
from trustlab.knowledge.same_diagnosis import (
    CERTAINTY,
    DEGREES,
    EXCLUSIVE,
    bracketed,
    content_words,
    exclude,
    folded,
    is_acronym,
    is_qualifier,
    keys,
    no_diagnosis,
    plain_name,
)
from trustlab.records import normalise

SAME, NARROWER, OTHER = "same", "narrower", "other"
RIGHT = (SAME, NARROWER)
BROADER = "broader"
_IN_BRACKETS = re.compile(r"^([^()]+)\(([^()]+)\)(.*)$")
_SHORT = re.compile(r" ?\([A-Z][A-Za-z]{0,5}\)")
_COMMA = re.compile(r" *,(?![^()]*\)) *")  # outside of brackets
LONG = 8
"""Letters of a word, at least, in which one that is wrong is a slip."""
_LONG_WORD = re.compile(rf"[^\W\d_]{{{LONG},}}")
_SLIP = re.compile(r"^[b-z] |\?")  # a letter of a word that was cut off, a question
_ADJECTIVE = re.compile(r"...(?:[aei]l|ic|ous|[ai]ve|[ai]ry|ed|ing|oid|ar|[ae]nt|an|form)$")
_STAGES = {"acute", "subacute", "chronic", "recurrent", "latent", "late", "congenital", "neonatal"}


def verdict(answer: str, names: Sequence[str], knowledge: Knowledge) -> str:
    """``same``, ``narrower`` (it entails a true name), ``other``, or '' where nothing settles it.
    ``names`` are the true ones, the case's own first. What stands in brackets is another name, or
    says which kind it is. A cause or complication behind the name makes it narrower, and so do
    words that describe the same noun."""
    if is_named(answer, names):
        return SAME
    answer, *names = _without_slips(answer, names)
    names = [*names, *(_SHORT.sub("", name) for name in names if _SHORT.search(name))]
    plain = _without_commas(CERTAINTY.sub(" ", plain_name(answer)))
    if _SLIP.search(answer.strip()) or "%" in plain:
        return OTHER
    listed = _COMMA.split(plain)
    if len(listed) > 1:
        return _of_several(listed, names, knowledge)
    parts = _IN_BRACKETS.match(plain)
    if parts is None:
        return OTHER if no_diagnosis(plain, names) else relation(plain, names, knowledge)
    before, inside, after = (part.strip() for part in parts.groups())
    outside = f"{before} {after}".strip()
    aliases = [one for one in inside.split(",") if normalise(one) and not is_acronym(one, before)]
    if any(no_diagnosis(f"{outside} {one}", names) for one in aliases or [""]):
        return OTHER
    if not aliases:
        return relation(outside, names, knowledge)
    return _of_two(outside, aliases[0], names, knowledge)


def _of_several(parts: Sequence[str], names: Sequence[str], knowledge: Knowledge) -> str:
    """The verdict on "A, B": right where one is right and the others are broader or go with it;
    '' where nothing is known of another."""
    kinds = [verdict(part, names, knowledge) for part in parts]
    if not any(kind in RIGHT for kind in kinds):
        return OTHER
    result = NARROWER
    for part, kind in zip(parts, kinds, strict=True):
        if kind in (*RIGHT, BROADER) or any(goes_with(part, name) for name in names):
            continue
        if no_diagnosis(part) or is_disease(part, knowledge) or is_listed(part):
            return OTHER
        result = ""
    return result


def _of_two(outside: str, inside: str, names: Sequence[str], knowledge: Knowledge) -> str:
    """The verdict on "A (B)"."""
    one, other = (relation(part, names, knowledge) for part in (outside, inside))
    if not is_disease(inside, knowledge):
        whole = relation(f"{inside} {outside}", names, knowledge)
        return whole or (NARROWER if one in RIGHT else one)
    if OTHER in (one, other):
        return OTHER
    kinds = {one, other}
    if other in RIGHT and not one and not is_disease(outside, knowledge):
        return other
    if kinds <= {*RIGHT, BROADER}:
        return NARROWER if NARROWER in kinds else SAME if SAME in kinds else OTHER
    return ""


def _without_slips(answer: str, names: Sequence[str]) -> list[str]:
    """The answer and the names, in small letters, without slips in their long words."""
    texts = [folded(text) for text in (answer, *names)]
    words = {word for text in texts for word in _LONG_WORD.findall(text)}
    for slip, word in permutations(sorted(words), 2):
        if _is_slip(slip, word):
            texts = [text.replace(slip, word) for text in texts]
    return texts


def _is_slip(one: str, word: str) -> bool:
    """Whether one is a word of medicine but for a letter, and is none itself."""
    if _cut(one).isdisjoint(_cut(word)) or exclude({one}, {word}):
        return False
    return _is_medical(word) and not _is_medical(one)


@cache
def _cut(word: str) -> set[str]:
    """The word, and what is left of it without one letter."""
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}


def _is_medical(word: str) -> bool:
    """Whether a word is in a name of our lists or of ICD-10-CM."""
    forms = word_set(word)
    return not (forms.isdisjoint(VOCABULARY) and forms.isdisjoint(icd10.vocabulary()))


def adds_words(answer: str, names: Sequence[str]) -> bool:
    """Whether an answer is a true name and more."""
    said = content_words(answer)
    return any(content_words(name) < said for name in names)


CLOSE = 0.85
"""``difflib``'s ratio of a word and its misspelling, at least: otitis and ottitis have 0.92."""


def comparable(answer: str, names: Sequence[str]) -> list[str]:
    """The true names that no word makes another diagnosis, and that have all words of ``answer``,
    misspelt or not, or none; no name where its words are more or fewer than those of one."""
    words = content_words(answer)
    pairs = [(name, content_words(name)) for name in names]
    if any(words < true or true < words for _, true in pairs):
        return []
    alike = [name for name, true in pairs if _differ_in_spelling(words, true)]
    said = read_name(answer).spoken
    return [name for name in alike if not exclude(said, read_name(name).spoken)]


def _differ_in_spelling(words: frozenset[str], true: frozenset[str]) -> bool:
    """Whether words have the same qualifiers, and are the true ones, misspelt or not, or others."""
    qualified = set(filter(is_qualifier, words))
    if qualified != set(filter(is_qualifier, true)):
        return False
    spelt = sorted(true)
    close = {word: get_close_matches(word, spelt, 1, CLOSE) for word in words - qualified}
    corrected = {(close.get(word) or [word])[0] for word in words}
    return corrected == true or not words & true


def is_disease(name: str, knowledge: Knowledge) -> bool:
    """Whether the table or ICD-10-CM has the name."""
    return in_table(name, knowledge) or icd10.is_known(name)


def is_known_answer(answer: str, knowledge: Knowledge) -> bool:
    """Whether the table or our lists have a name of an answer, or a name of ICD-10-CM its words;
    outside or inside its brackets, with or without its place, kind and cause."""
    if in_table(answer, knowledge) or knowledge.condition_named(answer):
        return True
    for part in re.split(r"[()]", CERTAINTY.sub(" ", plain_name(answer))):
        head = before_the_cause(cause_behind(part))
        core = " ".join(sorted(read_name(head).words - AFTER_A_COMMA - DEGREES))
        for name in filter(str.strip, (head, core)):
            if is_listed(name) or icd10.has_words(read_name(name).words):
                return True
    return False


def in_table(name: str, knowledge: Knowledge) -> bool:
    """Whether the table has the name."""
    return any(knowledge.condition_named(key) is not None for key in keys(name))


def _without_commas(name: str) -> str:
    """The name without its commas, where what follows them describes it: place, kind, cause."""
    parts = name.split(",")
    describes = (
        before_the_cause(f" {part}") == ""
        or content_words(part) <= AFTER_A_COMMA | DEGREES
        or part.strip().endswith((" type", " variant", " form", " subtype"))
        for part in parts[1:]
    )
    return " ".join(parts) if all(describes) else name


def is_named(answer: str, names: Sequence[str]) -> bool:
    """Whether an answer is spelt as one of the names but for certainty and degree, perhaps with its
    acronym or another of them in brackets."""
    if any(_is_spelt_as(answer, name) for name in names):
        return True
    parts = bracketed(plain_name(answer))
    if parts is None:
        return False
    named = [any(_is_spelt_as(part, name) for name in names) for part in parts]
    return all(named) or (any(named) and is_acronym(parts[1], parts[0]))


def _is_spelt_as(answer: str, name: str) -> bool:
    return bool(keys(answer) & keys(name)) and _same_degree(answer, name)


def _same_degree(one: str, other: str) -> bool:
    """Whether two names have the same degree, or one has none."""
    degrees, others = degrees_of(one), degrees_of(other)
    return degrees == others or not degrees or not others


@cache
def degrees_of(name: str) -> frozenset[str]:
    """The words of degree in a name."""
    return DEGREES.intersection(normalise(name).split())


def relation(text: str, names: Sequence[str], knowledge: Knowledge) -> str:
    """How a name without brackets stands to the true ones: a verdict, or ``broader``."""
    whole = _of_one(text, names, knowledge)
    behind = cause_behind(text)
    head = before_the_cause(behind)
    if head == text or whole in RIGHT or (behind != text and whole == OTHER):
        return whole
    of_head = _of_one(head, names, knowledge)
    return NARROWER if of_head in RIGHT else whole or of_head


def _of_one(text: str, names: Sequence[str], knowledge: Knowledge) -> str:
    """By names, listed kinds, words, the table (two of its conditions are two), and ICD-10-CM."""
    if is_named(text, names):
        return SAME
    if any(by_words(text, [kind]) in RIGHT for kind in kinds_of(names)):
        return NARROWER
    if kind := by_words(text, names):
        return kind
    if any(by_words(name, [kind]) in RIGHT for kind in kinds_of([text]) for name in names):
        return BROADER
    if in_table(text, knowledge) and any(in_table(name, knowledge) for name in names):
        return OTHER
    found = icd10.relation(text, names)
    return "" if found == NARROWER and before_the_cause(text) != text else found


def by_words(text: str, names: Sequence[str]) -> str:
    """By the words alone."""
    said, true = read_name(text), [read_name(name) for name in names]
    if not all(_same_degree(text, name) for name in names):
        return OTHER
    if any(are_one(said, name) for name in true):
        return SAME
    if any(said.words == name.words or _another(said, name) for name in true):
        return OTHER
    if any(exclude(said.words, n.words) for n in true if n is true[0] or n.noun == said.noun):
        return OTHER
    if any(name.words < said.words and _is_kind(said, name, true[0]) for name in true):
        return NARROWER
    if any(said.words < name.words for name in true):
        return BROADER
    here, theirs = content_words(text), map(content_words, names)
    differ = (here ^ there for there in theirs if here - there and there - here)
    return OTHER if any(all(map(is_qualifier, words)) for words in differ) else ""


def _is_kind(said: Name, name: Name, own: Name) -> bool:
    """Whether what ``said`` adds to a true name makes it a kind of it, and of the ``own`` one."""
    extra, dropped = said.words - name.words, own.words - name.words
    if said.noun != name.noun or extra & NOT_NOW or name.words <= ANATOMY:
        return False
    if name.words < own.words and (dropped - {"acute"} or extra & _STAGES):
        return False
    if any(extra & group and name.words & group for group in EXCLUSIVE):
        return False
    return all(map(_is_a_word, extra - VOCABULARY))


def _another(said: Name, name: Name) -> bool:
    """Whether what ``said`` adds makes another disease of the name: interstitial cystitis."""
    extra = said.words - name.words
    return any(key <= name.words <= said.words and extra & words for key, words in ANOTHER)


def _is_a_word(word: str) -> bool:
    """Whether a word says something in a name of a disease, and is no slip."""
    return bool(_ADJECTIVE.search(word)) or is_qualifier(word) or word in icd10.vocabulary()


def are_one(said: Name, name: Name) -> bool:
    """Whether two names have the same words, and those name a disease; a disease is no syndrome."""
    if said.spelt == name.spelt or said.words != name.words:
        return said.spelt == name.spelt
    kinds = [set(one.spelt.split()) & {"disease", "syndrome"} for one in (said, name)]
    names_one = len(said.words) > 1 or not said.words <= ANATOMY
    return names_one and (not all(kinds) or kinds[0] == kinds[1])
