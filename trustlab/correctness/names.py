"""Reading an answer as the name of a diagnosis: how names are compared, and what is no diagnosis at all.

Everything here is a rule about words; none asks a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from trustlab.knowledge import Knowledge, normalise
from trustlab.records import Case

ARTICLES = ("a ", "an ", "the ")
DEGREES = frozenset({"mild", "moderate", "severe"})
NEUTRAL = frozenset({"disease", "syndrome", "disorder", "condition", "illness", "of", "the", "a", "an", "in"})
"""Words that a longer name may have more without being another kind."""
_CAUSES = """viral bacterial fungal parasitic tuberculous septic aseptic aspiration atypical allergic infectious infective
drug alcoholic autoimmune idiopathic traumatic ischemic hemorrhagic thrombotic embolic obstructive restrictive congenital
hereditary familial acquired functional community hospital"""
_SITES = """upper lower left right bilateral unilateral anterior posterior inferior superior proximal distal central peripheral
internal external arterial venous systolic diastolic supraventricular ventricular extrauterine"""
_STAGES = """acute subacute chronic recurrent relapsing paroxysmal persistent permanent intermittent early late latent primary
secondary tertiary metastatic advanced terminal"""
_KINDS = """stable unstable benign malignant simple complicated open closed small large neonatal infantile juvenile adult
gestational type stage grade class with without"""
QUALIFIERS = frozenset(" ".join((_CAUSES, _SITES, _STAGES, _KINDS)).split())
"""Words that make a name another diagnosis; so do numbers, single letters and :data:`PREFIXES`. Spelt without ae and oe."""
ROMAN = {numeral: str(n) for n, numeral in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"), 1)}
PREFIXES = ("hyper", "hypo", "tachy", "brady", "non")

_CERTAINTY = re.compile(
    r"\b(?:(?:most |very |highly )?likely|probabl[ey]|possibl[ey]|suspected|suspicion of|suspicious for|presum(?:ed|ptive|ably)"
    r"|definite(?:ly)?|confirmed|consistent with|suggestive of|not otherwise specified|not elsewhere classified"
    r"|unspecified|nos)\b"
)
_DENIAL = re.compile(
    r"\b(?:no|not|never|cannot|(?:isn|doesn|can|won) t|denie[sd]|den(?:y|ying)|exclud(?:e|es|ed|ing)|exclusion of|unlikely"
    r"|improbable|doubtful|rul(?:e|es|ed|ing) out|r o|absence of|negative for|free (?:of|from)|no evidence|rather than"
    r"|instead of)\b|^without\b|\babsent$"
)
_ALTERNATIVES = re.compile(r"\b(?:or|vs|versus|either|differential(?:s)?)\b|[;/|\n]|(?:\b[1-9][.)].*){2}", re.DOTALL)
_ADDITION = re.compile(r"\b(?:and|plus|as well as)\b|[&+]")
_NOTHING = re.compile(
    r"(?:yes|no|none|nil|nothing|true|false|maybe|perhaps|other|n a|(?:i )?(?:do not|don t) know|not sure|unsure"
    r"|(?:the )?(?:diagnosis|cause|disease|condition)?(?: is)? ?(?:unknown|unclear|uncertain|undetermined|indeterminate)"
    r"(?: diagnosis| cause| disease| condition)?|(?:the |no )?diagnosis|(?:insufficient|not enough|more) information(?: needed)?)"
)
_BRACKETED = re.compile(r"([^()]+)\(([^()]+)\)\s*\.?")


def spellings(name: str) -> set[str]:
    """The normalised name, and it without a leading article; both, since "A fib" begins with none."""
    plain = unicodedata.normalize("NFKC", name).strip()
    article = next((a for a in ARTICLES if plain.casefold().startswith(a)), "")
    return {normalise(plain), normalise(plain[len(article) :])} - {""}


def readings(name: str) -> set[tuple[str, frozenset[str]]]:
    """The spellings as they are and without words of certainty and degree, each with the degrees taken out of it."""
    plain = unicodedata.normalize("NFKC", name).casefold().strip()
    found = {(key, frozenset()) for key in spellings(plain)}
    for key in spellings(_CERTAINTY.sub(" ", plain).strip(" ,")):
        words = key.split()
        rest = " ".join(word for word in words if word not in DEGREES)
        found.add((rest, frozenset(words) & DEGREES))
    return {(key, degrees) for key, degrees in found if key}


def same_name(one: str, other: str) -> bool:
    """Whether two names are spelt alike but for words of certainty and degree; "mild x" and "severe x" are not."""
    theirs = readings(other)
    return any(key == k and (a == b or not a or not b) for key, a in readings(one) for k, b in theirs)


def is_named(answer: str, names: Iterable[str]) -> bool:
    """Whether ``answer`` is, whole, one of ``names``, or such a name with its abbreviation or another name in brackets."""
    listed = list(names)
    if any(same_name(answer, name) for name in listed):
        return True
    parts = _BRACKETED.fullmatch(unicodedata.normalize("NFKC", answer).strip())
    if parts is None:
        return False
    outside, inside = (any(same_name(part, name) for name in listed) for part in parts.groups())
    return (outside and inside) or ((outside or inside) and _is_acronym(parts[2], parts[1]))


def _is_acronym(short: str, long: str) -> bool:
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
    own = (case.diagnosis, *case.accepted)
    found = [knowledge.condition_named(spelt) for name in own for spelt in sorted(spellings(name))]
    return tuple(dict.fromkeys((*own, *(n for condition in found if condition is not None for n in condition.names))))


def no_diagnosis(answer: str | None, names: Iterable[str] = ()) -> str:
    """Why the answer, taken as it stands, is not one diagnosis; '' where it may be. ``names`` are the true ones.

    A true name may itself hold "and", so that "and" joins no list there. Ask :func:`is_named` first: a name that matches
    whole is right whatever signs it holds.
    """
    plain = unicodedata.normalize("NFKC", answer or "").casefold().strip()
    words = normalise(plain)
    if not re.search(r"[^\W\d_]{2}", plain) or _NOTHING.fullmatch(words):
        return "no diagnosis"
    if _DENIAL.search(normalise(_CERTAINTY.sub(" ", plain))):
        return "a denial"
    if _ALTERNATIVES.search(plain):
        return "several diagnoses"
    if _ADDITION.search(plain) and not any(_ADDITION.search(name.casefold()) for name in names):
        return "several diagnoses"
    turned = (content_words(part) for part in plain.split(",")[1:])
    return "several diagnoses" if any(words - qualifiers(" ".join(words)) for words in turned) else ""


def bare_name(name: str) -> str:
    """The normalised name without words of certainty and degree."""
    words = normalise(_CERTAINTY.sub(" ", unicodedata.normalize("NFKC", name).casefold())).split()
    return " ".join(word for word in words if word not in DEGREES)


def content_words(name: str) -> frozenset[str]:
    """The words that say what it is: without certainty, degree and :data:`NEUTRAL` words, ae and oe written e, II written 2."""
    bare = re.sub(r"[’']s\b", "", _CERTAINTY.sub(" ", unicodedata.normalize("NFKC", name).casefold()))
    words = normalise(bare).split()
    kept = [word for i, word in enumerate(words) if word not in NEUTRAL | DEGREES or (word == "a" and 0 < i == len(words) - 1)]
    return frozenset(ROMAN.get(word, word).replace("ae", "e").replace("oe", "e") for word in kept)


def qualifiers(name: str) -> frozenset[str]:
    """What in a name sets cause, site, side, stage, course or kind: words, numbers, single letters and prefixes."""
    words = content_words(name)
    prefixes = {prefix for prefix in PREFIXES for word in words if word.startswith(prefix)}
    return frozenset(w for w in words if w in QUALIFIERS or w.isdigit() or len(w) == 1) | prefixes


def may_mean_the_same(one: str, other: str) -> bool:
    """Whether nothing in the words makes them two diagnoses: no other qualifier or degree, and neither adds words."""
    a, b = content_words(one), content_words(other)
    degrees, others = (DEGREES.intersection(normalise(name).split()) for name in (one, other))
    same_degree = degrees == others or not degrees or not others
    return same_degree and qualifiers(one) == qualifiers(other) and not (a < b or b < a)
