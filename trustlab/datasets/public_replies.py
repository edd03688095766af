"""Loads recorded replies of large models that come along: four public sets."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from trustlab.paths import DATA
from trustlab.records import SEVERAL, normalise

PUBLIC = DATA / "public"
NAMES = ("craft_md", "mmlu_pro_health", "gastro", "medagents")
NOT_READ = "the reply as a whole is no bare name, and no sentence that only names the diagnosis"
"""Why a reply whose short form is "none" is not read; one that is empty, too."""

_MARKS = re.compile(r"[*_#`]+")
_ANNOUNCED = re.compile(
    r"(?i)(?:(?:based on|given) [^.:\n]+, )?(?:the )?(?:(?:final|most likely|likely|probable) )*"
    r"diagnosis(?: (?:in|for) this (?:case|patient))?(?:\s*:| is| would be| appears to be)"
    r"(?: most likely| likely)?(?: to be)?\s*:?\s+(?:an? )?"
)
_SENTENCE_END = re.compile(r"(?<=[\w)]{3})\.(?:\s+|$)|\s*\n+\s*")
_NO_NAME = re.compile(
    r"(?i)\b(?:or|vs|possibl[ey]|potential|probabl[ey]|likely|suspected|such|suggest\w+"
    r"|no|not|none|unable|un\w+ed|insufficient|cannot|pending|further"
    r"|diagnos\w+|i|you|your|is|are|has|have|should|could|may|please)\b|[?!;:]|\s/|/\s"
)
_DENIAL = re.compile(r"(?i)\b(?:not|none|least|unlikely)\b")


def load_replies(name: str, model: str | None = None, condition: str | None = None) -> pd.DataFrame:
    """Recorded replies of large models to medical questions, as a table.

    ``name`` is one of four public sets (data/public/README.md has sources and warnings):

    - "craft_md": a row for each model, case and condition (40,080), in the form that
      :func:`trustlab.score` takes. ``case_id``, ``model``, ``condition``, ``dataset`` ("craft_md"
      and the condition), ``truth``, ``answer`` (the first of five), ``samples``
      (5 short forms, ``None``: not read), ``missing`` (why there is no answer), ``texts`` (5 whole
      replies); besides ``source`` (their data set), ``category``, ``is_disease`` (False: the truth
      is a test, a drug or the like), ``unread`` (5 reasons, "" where read), ``graded`` (5 verdicts
      of their grader: 0, 1 or ``None``), ``options`` (4), ``option`` (the right one), ``chosen``
      (5 options, ``None`` where a reply names none or several), ``n_questions`` (5, of multiturn).
    - "mmlu_pro_health": a row for each model and question (14 x 818). ``question``, ``truth``,
      ``answer`` (letters), ``correct``, ``stated_confidence`` and ``token_probability`` (the
      exponential of the mean log-probability), both in [0, 1], ``n_tokens``.
    - "gastro": a row for each model and question (48 x 300). ``question`` (the row of their table,
      from 1), ``correct``, ``stated_confidence`` in [0, 1].
    - "medagents": a row for each model and question (10 x 6,978). ``dataset``, ``question``,
      ``truth``, ``answer`` (letters), ``correct``.

    What a set does not tell is missing (NaN). ``model`` and ``condition`` (of craft_md: "vignette",
    "multiturn", "singleturn" or "summarized") keep their rows alone. ``ValueError``: a name, model
    or condition that there is not.
    """
    if name not in NAMES:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(NAMES)}")
    table = _recorded(name)
    for column, value in (("model", model), ("condition", condition)):
        if value is not None:
            choices = list(table[column].unique()) if column in table else ["none"]
            if value not in choices:
                raise ValueError(f"{column} is {value!r}; allowed of {name}: {', '.join(choices)}")
            table = table.loc[table[column] == value]
    table = table.reset_index(drop=True)
    return _craft_md(table) if name == "craft_md" else _letters_and_numbers(table, name)


def not_diseases() -> list[str]:
    """The truths of craft_md that are tests, drugs, findings or the like, and no diseases."""
    return (PUBLIC / "craft_md" / "not_diseases.txt").read_text(encoding="utf-8").splitlines()


def short_form(extracted: str, text: str) -> tuple[str | None, str]:
    """The one diagnosis that a reply names, and '' or why there is none.

    ``extracted``: the short form that the set's authors took from the reply ``text``. Where it is
    "none" or empty, the reply is read instead: as a whole it is a name of at most 8 words, or it
    begins with a sentence such as "The most likely diagnosis is gout.". A name has no word of
    doubt, of a sentence, or between alternatives. "multiple", or a name a line, stays in doubt.
    """
    if extracted == "multiple" or "\n" in extracted:
        return None, SEVERAL
    if extracted not in ("", "none"):
        return extracted, ""
    plain = _MARKS.sub("", text).strip()
    name = _ANNOUNCED.sub("", plain, count=1) if _ANNOUNCED.match(plain) else plain
    first, *rest = _SENTENCE_END.split(name)
    alone = name != plain or not any(rest)
    if not alone or _NO_NAME.search(first) or not 0 < len(first.split()) <= 8:
        return None, NOT_READ
    return first, ""


def option_named(options: Sequence[str], text: str) -> str | None:
    """The one of the options that a reply names: in its first sentence, or, where that names none,
    in all of it. ``None``: none or several, or words that deny ("not", "least likely")."""
    plain = text.strip()
    for part in (_SENTENCE_END.split(plain)[0], plain):
        words, named = f" {normalise(part)} ", []
        for option in sorted(options, key=len, reverse=True):
            own = f" {normalise(option)} "
            if own in words:
                named.append(option)
                words = words.replace(own, " | ")  # a shorter option within it is not named
        if named:
            return named[0] if len(named) == 1 and not _DENIAL.search(part) else None
    return None


def _recorded(name: str) -> pd.DataFrame:
    """A set as its file has it."""
    if name == "craft_md":
        return pd.read_json(PUBLIC / name / "replies.jsonl.xz", lines=True)
    empty = ["cell_empty", "no_confidence"]
    return pd.read_csv(PUBLIC / name / "replies.csv.xz", na_values=empty)


def _craft_md(table: pd.DataFrame) -> pd.DataFrame:
    names = {"dataset": "source", "answers": "texts", "questions": "n_questions"}
    table = table.rename(columns=names)
    table["dataset"] = "craft_md " + table["condition"]
    stray = ' \n"'  # what stands around some names
    for column in ("truth", "option"):
        table[column] = table[column].str.strip(stray)
    table["options"] = [[name.strip(stray) for name in four] for four in table["options"]]
    table["is_disease"] = ~table["truth"].isin(not_diseases())
    pairs = [
        [short_form(*each) for each in zip(*five, strict=True)]
        for five in zip(table.pop("extracted"), table["texts"], strict=True)
    ]
    table["samples"] = [[name for name, _ in five] for five in pairs]
    table["unread"] = [[why for _, why in five] for five in pairs]
    table["answer"], table["missing"] = table["samples"].str[0], table["unread"].str[0]
    table["graded"] = [[v if v in (0, 1) else None for v in five] for five in table["graded"]]
    table["chosen"] = [
        [option_named(options, text) for text in five]
        for options, five in zip(table["options"], table["chosen"], strict=True)
    ]
    return table


def _letters_and_numbers(table: pd.DataFrame, name: str) -> pd.DataFrame:
    if name == "gastro":
        table["stated_confidence"] /= 10
        return table
    right = (table["answer"] == table["truth"]).astype(float)
    return table.assign(correct=right.where(table["answer"].notna()))
