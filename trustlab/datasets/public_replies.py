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


def load_replies(
    name: str, model: str | None = None, condition: str | None = None
) -> pd.DataFrame:
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
    table = _read_table(name)
    for column, value in (("model", model), ("condition", condition)):
        if value is not None:
            choices = list(table[column].unique()) if column in table else ["none"]
            if value not in choices:
                raise ValueError(
                    f"{column} is {value!r}; allowed of {name}: {', '.join(choices)}"
                )
            table = table.loc[table[column] == value]
    table = table.reset_index(drop=True)
    if name == "craft_md":
        return _arrange_craft_md(table)
    if name == "gastro":
        table["stated_confidence"] /= 10
        return table
    is_right = (table["answer"] == table["truth"]).astype(float)
    return table.assign(correct=is_right.where(table["answer"].notna()))


def not_diseases() -> list[str]:
    """The truths of craft_md that are tests, drugs, findings or the like, and no diseases."""
    file = PUBLIC / "craft_md" / "not_diseases.txt"
    return file.read_text(encoding="utf-8").splitlines()


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
    announcement = _ANNOUNCED.match(plain)
    unannounced = plain[announcement.end() :] if announcement else plain
    name, *rest = _SENTENCE_END.split(unannounced)
    is_alone = unannounced != plain or not any(rest)
    if not is_alone or _NO_NAME.search(name) or not 0 < len(name.split()) <= 8:
        return None, NOT_READ
    return name, ""


def option_named(options: Sequence[str], text: str) -> str | None:
    """The one of the options that a reply names: in its first sentence, or, where that names none,
    in all of it. ``None``: none or several, or words that deny ("not", "least likely")."""
    plain = text.strip()
    for part in (_SENTENCE_END.split(plain)[0], plain):
        named_options = _options_in(part, options)
        if named_options:
            is_clear = len(named_options) == 1 and not _DENIAL.search(part)
            return named_options[0] if is_clear else None
    return None


def _options_in(text: str, options: Sequence[str]) -> list[str]:
    """The options that a text names, without those that are only part of a longer one."""
    words = f" {normalise(text)} "
    named_options = []
    for option in sorted(options, key=len, reverse=True):
        option_words = f" {normalise(option)} "
        if option_words in words:
            named_options.append(option)
            words = words.replace(option_words, " | ")
    return named_options


def _read_table(name: str) -> pd.DataFrame:
    """A set as its file has it."""
    if name == "craft_md":
        return pd.read_json(PUBLIC / name / "replies.jsonl.xz", lines=True)
    empty = ["cell_empty", "no_confidence"]
    return pd.read_csv(PUBLIC / name / "replies.csv.xz", na_values=empty)


def _arrange_craft_md(table: pd.DataFrame) -> pd.DataFrame:
    """The columns of craft_md as :func:`load_replies` describes them."""
    names = {"dataset": "source", "answers": "texts", "questions": "n_questions"}
    table = table.rename(columns=names)
    table["dataset"] = "craft_md " + table["condition"]
    stray = ' \n"'  # what stands around some names
    for column in ("truth", "option"):
        table[column] = table[column].str.strip(stray)
    table["options"] = [
        [option.strip(stray) for option in options] for options in table["options"]
    ]
    table["is_disease"] = ~table["truth"].isin(not_diseases())
    samples = []
    reasons = []
    for extracted, texts in zip(table.pop("extracted"), table["texts"], strict=True):
        forms = [short_form(*pair) for pair in zip(extracted, texts, strict=True)]
        samples.append([name for name, _ in forms])
        reasons.append([reason for _, reason in forms])
    table["samples"] = samples
    table["unread"] = reasons
    table["answer"] = table["samples"].str[0]
    table["missing"] = table["unread"].str[0]
    verdicts_of_rows = []
    for verdicts in table["graded"]:
        verdicts_of_rows.append(
            [verdict if verdict in (0, 1) else None for verdict in verdicts]
        )
    table["graded"] = verdicts_of_rows
    chosen_options = []
    for options, texts in zip(table["options"], table["chosen"], strict=True):
        chosen_options.append([option_named(options, text) for text in texts])
    table["chosen"] = chosen_options
    return table
