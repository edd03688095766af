"""Asks whether an answer is the true disease or a kind of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from itertools import permutations, product

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
from trustlab.knowledge.substances import (
    drug_names,
    is_substance,
    with_whole_genus,
)
from trustlab.records import normalise

SAME, NARROWER, OTHER = "same", "narrower", "other"
RIGHT = (SAME, NARROWER)
BROADER = "broader"
_IN_BRACKETS = re.compile(r"^([^()]+)\(([^()]+)\)(.*)$")
_SHORT = re.compile(r" ?\([A-Z][A-Za-z]{0,5}\)")
_COMMA = re.compile(r" *,(?![^()]*\)) *")  # outside of brackets
LONG = 8
"""Letters of a word, at least, in which a single wrong letter is a slip."""
_LONG_WORD = re.compile(rf"[^\W\d_]{{{LONG},}}")
_SLIP = re.compile(
    r"^[b-z] (?!\d)|\?"
)  # a letter of a word that was cut off, a question
_ADJECTIVE = re.compile(
    r"...(?:[aei]l|ic|ous|[ai]ve|[ai]ry|ed|ing|oid|ar|[ae]nt|an|form)$"
)
_STAGES = {
    "acute",
    "subacute",
    "chronic",
    "recurrent",
    "latent",
    "late",
    "congenital",
    "neonatal",
}


def verdict(answer: str, names: Sequence[str], knowledge: Knowledge) -> str:
    """``same``, ``narrower`` (it entails a true name), ``other``, or '' where nothing settles it.
    ``names`` are the true ones, the case's own first. What stands in brackets is another name, or
    says which kind it is. A cause or complication behind the name makes it narrower, and so do
    words that describe the same noun. "S. aureus" is Staphylococcus aureus."""
    answer = with_whole_genus(answer)
    names = [with_whole_genus(name) for name in names]
    if is_named(answer, names):
        return SAME
    own_drug = drug_names(answer)
    true_drugs = [drug_names(name) for name in names if drug_names(name)]
    if own_drug and true_drugs:
        return SAME if own_drug in true_drugs else OTHER
    answer, *names = _without_slips(answer, names)
    names += [_SHORT.sub("", name) for name in names if _SHORT.search(name)]
    plain = _without_commas(CERTAINTY.sub(" ", plain_name(answer)))
    if _SLIP.search(answer.strip()) or "%" in plain:
        return OTHER
    listed = _COMMA.split(plain)
    if len(listed) > 1:
        return _of_several(listed, names, knowledge)
    parts = _IN_BRACKETS.match(plain)
    if parts:
        return _of_bracketed(parts, names, knowledge)
    if no_diagnosis(plain, names):
        return OTHER
    return relation(plain, names, knowledge)


def _of_bracketed(
    parts: re.Match[str], names: Sequence[str], knowledge: Knowledge
) -> str:
    """The verdict on "A (B) C", of which B may be several names, or an acronym of A."""
    before, inside, after = (part.strip() for part in parts.groups())
    outside = f"{before} {after}".strip()
    aliases = [
        alias
        for alias in inside.split(",")
        if normalise(alias) and not is_acronym(alias, before)
    ]
    for alias in aliases or [""]:
        if no_diagnosis(f"{outside} {alias}", names):
            return OTHER
    if not aliases:
        return relation(outside, names, knowledge)
    return _of_two(outside, aliases[0], names, knowledge)


def _of_several(
    parts: Sequence[str], names: Sequence[str], knowledge: Knowledge
) -> str:
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


def _of_two(
    outside: str, inside: str, names: Sequence[str], knowledge: Knowledge
) -> str:
    """The verdict on "A (B)"."""
    of_outside = relation(outside, names, knowledge)
    of_inside = relation(inside, names, knowledge)
    if not is_disease(inside, knowledge):
        whole = relation(f"{inside} {outside}", names, knowledge)
        if whole:
            return whole
        return NARROWER if of_outside in RIGHT else of_outside
    kinds = {of_outside, of_inside}
    if OTHER in kinds:
        return OTHER
    if of_inside in RIGHT and not of_outside and not is_disease(outside, knowledge):
        return of_inside
    if "" in kinds:
        return ""
    if NARROWER in kinds:
        return NARROWER
    return SAME if SAME in kinds else OTHER


def _without_slips(answer: str, names: Sequence[str]) -> list[str]:
    """The answer and the names, in small letters, without slips in their long words."""
    texts = [folded(answer)]
    texts += map(folded, names)
    long_words = set(_LONG_WORD.findall("\n".join(texts)))
    for slip, word in permutations(sorted(long_words), 2):
        if not _is_slip(slip, word):
            continue
        texts = [text.replace(slip, word) for text in texts]
    return texts


def _is_slip(slip: str, word: str) -> bool:
    """Whether ``slip`` is a word of medicine but for a letter, and is none itself."""
    if _shortened(slip).isdisjoint(_shortened(word)) or exclude({slip}, {word}):
        return False
    return _is_medical(word) and not _is_medical(slip)


@cache
def _shortened(word: str) -> set[str]:
    """The word, and what is left of it without any single letter."""
    texts = {word}
    for i in range(len(word)):
        texts.add(word[:i] + word[i + 1 :])
    return texts


def _is_medical(word: str) -> bool:
    """Whether a word is in a name of our lists or of ICD-10-CM."""
    forms = word_set(word)
    if not forms.isdisjoint(VOCABULARY):
        return True
    return not forms.isdisjoint(icd10.vocabulary())


def adds_words(answer: str, names: Sequence[str]) -> bool:
    """Whether an answer is a true name and more."""
    words = content_words(answer)
    return any(content_words(name) < words for name in names)


CLOSE = 0.85
"""``difflib``'s ratio of a word and its misspelling, at least: otitis and ottitis have 0.92."""


def comparable(answer: str, names: Sequence[str]) -> list[str]:
    """The true names that no word makes another diagnosis, and that have all words of ``answer``,
    misspelt or not, or none; no name where its words are more or fewer than those of one."""
    words = content_words(answer)
    answer_words = read_name(answer).spoken
    alike = []
    for name in names:
        true_words = content_words(name)
        if words < true_words or true_words < words:
            return []
        if _differ_in_spelling(words, true_words):
            alike.append(name)
    return [name for name in alike if not exclude(answer_words, read_name(name).spoken)]


def _differ_in_spelling(words: frozenset[str], true_words: frozenset[str]) -> bool:
    """Whether words have the same qualifiers, and are the true ones, misspelt or not, or others."""
    qualifiers = set(filter(is_qualifier, words))
    if qualifiers != set(filter(is_qualifier, true_words)):
        return False
    if words.isdisjoint(true_words):
        return True
    corrected = set(qualifiers)
    for word in words - qualifiers:
        close = get_close_matches(word, sorted(true_words), 1, CLOSE)
        corrected.add(close[0] if close else word)
    return corrected == true_words


def is_disease(name: str, knowledge: Knowledge) -> bool:
    """Whether the table or ICD-10-CM has the name."""
    return in_table(name, knowledge) or icd10.has_name(name)


def has_listed_name(answer: str, knowledge: Knowledge) -> bool:
    """Whether the table or our lists have a name of an answer, or a name of ICD-10-CM its words;
    outside or inside its brackets, with or without its place, kind and cause."""
    if in_table(answer, knowledge) or knowledge.condition_named(answer):
        return True
    for part in re.split(r"[()]", CERTAINTY.sub(" ", plain_name(answer))):
        head = before_the_cause(cause_behind(part))
        core_words = read_name(head).words - AFTER_A_COMMA - DEGREES
        core = " ".join(sorted(core_words))
        for name in (head, core):
            if name.strip() and (
                is_listed(name) or icd10.has_words(read_name(name).words)
            ):
                return True
    return False


def in_table(name: str, knowledge: Knowledge) -> bool:
    """Whether the table has the name."""
    return any(knowledge.condition_named(key) is not None for key in keys(name))


def _without_commas(name: str) -> str:
    """The name without its commas, where what follows them describes it: place, kind, cause."""
    parts = name.split(",")
    if all(map(_is_description, parts[1:])):
        return " ".join(parts)
    return name


def _is_description(part: str) -> bool:
    """Whether what follows a comma describes the name before it."""
    if before_the_cause(f" {part}") == "":
        return True
    if content_words(part) <= AFTER_A_COMMA | DEGREES:
        return True
    return part.strip().endswith((" type", " variant", " form", " subtype"))


def is_named(answer: str, names: Sequence[str]) -> bool:
    """Whether an answer is spelt as one of the names but for certainty and degree, perhaps with its
    acronym or another of them in brackets."""
    if _is_spelt_as_any(answer, names):
        return True
    parts = bracketed(plain_name(answer))
    if parts is None:
        return False
    are_named = [_is_spelt_as_any(part, names) for part in parts]
    return all(are_named) or (any(are_named) and is_acronym(parts[1], parts[0]))


def _is_spelt_as_any(answer: str, names: Sequence[str]) -> bool:
    """Whether an answer has the spelling and the degree of one of the names."""
    own_keys = keys(answer)
    for name in names:
        if not own_keys.isdisjoint(keys(name)) and _has_same_degree(answer, name):
            return True
    return False


def _has_same_degree(name: str, other: str) -> bool:
    """Whether two names have the same degree, or either has none."""
    degrees = degrees_of(name)
    other_degrees = degrees_of(other)
    return degrees == other_degrees or not degrees or not other_degrees


@cache
def degrees_of(name: str) -> frozenset[str]:
    """The words of degree in a name."""
    return DEGREES.intersection(normalise(name).split())


def relation(text: str, names: Sequence[str], knowledge: Knowledge) -> str:
    """How a name without brackets stands to the true ones: a verdict, or ``broader``."""
    whole = _of_name(text, names, knowledge)
    behind = cause_behind(text)
    head = before_the_cause(behind)
    if head == text or whole in RIGHT or (behind != text and whole == OTHER):
        return whole
    of_head = _of_name(head, names, knowledge)
    if of_head in RIGHT:
        return NARROWER
    return whole or of_head


def _of_name(text: str, names: Sequence[str], knowledge: Knowledge) -> str:
    """By names, listed kinds, words, the table (two of its conditions are two, as are two listed
    organisms), and ICD-10-CM."""
    if is_named(text, names):
        return SAME
    if any(by_words(text, [kind]) in RIGHT for kind in kinds_of(names)):
        return NARROWER
    by_own_words = by_words(text, names)
    if by_own_words:
        return by_own_words
    for kind, name in product(kinds_of([text]), names):
        if by_words(name, [kind]) in RIGHT:
            return BROADER
    if in_table(text, knowledge) and any(in_table(name, knowledge) for name in names):
        return OTHER
    if is_substance(text) and any(map(is_substance, names)):
        return OTHER
    in_icd10 = icd10.relation(text, names)
    if in_icd10 == NARROWER and before_the_cause(text) != text:
        return ""
    return in_icd10


def by_words(text: str, names: Sequence[str]) -> str:
    """By the words alone."""
    own = read_name(text)
    true_names = [read_name(name) for name in names]
    if not all(_has_same_degree(text, name) for name in names):
        return OTHER
    if any(is_same_disease(own, name) for name in true_names):
        return SAME
    if any(own.words == name.words or _is_another(own, name) for name in true_names):
        return OTHER
    for name in true_names:
        is_comparable = name is true_names[0] or name.noun == own.noun
        if is_comparable and exclude(own.words, name.words):
            return OTHER
    if any(_is_kind(own, name, true_names[0]) for name in true_names):
        return NARROWER
    if any(own.words < name.words for name in true_names):
        return BROADER
    return OTHER if any(_differ_in_qualifiers(text, name) for name in names) else ""


def _is_kind(answer: Name, name: Name, first: Name) -> bool:
    """Whether what an answer adds to a true name makes it a kind of it, and of the first one."""
    extra = answer.words - name.words
    dropped = first.words - name.words
    if not name.words < answer.words or answer.noun != name.noun:
        return False
    if extra & NOT_NOW or name.words <= ANATOMY:
        return False
    if name.words < first.words and (dropped - {"acute"} or extra & _STAGES):
        return False
    for group in EXCLUSIVE:
        added = extra & group
        own = name.words & group
        if added and own and not (added == {"acute"} and own == {"chronic"}):
            return False  # an acute course of a chronic disease is a kind of it
    return all(map(_is_a_word, extra - VOCABULARY))


def _is_another(answer: Name, name: Name) -> bool:
    """Whether what an answer adds makes another disease of the name: interstitial cystitis."""
    extra = answer.words - name.words
    return any(
        key <= name.words <= answer.words and extra & words for key, words in ANOTHER
    )


def _is_a_word(word: str) -> bool:
    """Whether a word says something in a name of a disease, and is no slip."""
    if _ADJECTIVE.search(word) or is_qualifier(word):
        return True
    return word in icd10.vocabulary()


def _differ_in_qualifiers(text: str, name: str) -> bool:
    """Whether each of two names has a word of its own, and all of those are qualifiers."""
    words = content_words(text)
    true_words = content_words(name)
    if words <= true_words or true_words <= words:
        return False
    return all(map(is_qualifier, words ^ true_words))


def is_same_disease(name: Name, other: Name) -> bool:
    """Whether two names have the same words, and those name a disease; a disease is no syndrome."""
    if name.spelt == other.spelt:
        return True
    if name.words != other.words:
        return False
    if len(name.words) < 2 and name.words <= ANATOMY:
        return False
    kinds = {"disease", "syndrome"}.intersection(name.spelt.split())
    other_kinds = {"disease", "syndrome"}.intersection(other.spelt.split())
    return not kinds or not other_kinds or kinds == other_kinds
