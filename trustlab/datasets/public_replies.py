"""Loads recorded replies of large models that come along: four public sets (data/public)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import ascii_uppercase

import numpy as np
import pandas as pd

from trustlab.paths import DATA
from trustlab.records import SEVERAL, normalise

PUBLIC = DATA / "public"
NAMES = ("craft_md", "mmlu_pro_health", "gastro", "medagents")
CONDITIONS = ("vignette", "multiturn", "singleturn", "summarized")
NOT_READ = "the reply as a whole is no bare name, and no sentence that only names the diagnosis"
"""Why a reply whose short form is "none" is not read."""
EMPTY = "the reply is empty"
LONGEST_NAME = 8  # words
UNUSABLE_TOKENS = "deepseek-chat"
"""The model of mmlu_pro_health whose token probabilities are all about 1."""

_CRAFT_MD = PUBLIC / "craft_md" / "craft_md_replies.jsonl.xz"
_NOT_DISEASES = PUBLIC / "craft_md" / "not_diseases.txt"
_MMLU = PUBLIC / "mmlu_pro_health" / "mmlu_pro_health_14models.csv.xz"
_GASTRO = PUBLIC / "gastro" / "merged_confidence_correctness_new.csv.xz"
_MEDAGENTS = PUBLIC / "medagents" / "zero_shot_letters_10models.csv.xz"

_MARKS = re.compile(r"[*_#`]+")
_ANNOUNCED = re.compile(
    r"(?:(?:based on|given) [^.:\n]+, )?(?:the )?(?:(?:final|most likely|likely|probable) )*"
    r"diagnosis(?: (?:in|for) this (?:case|patient))?(?:\s*:| is| would be| appears to be)"
    r"(?: most likely| likely)?(?: to be)?\s*:?\s+(?P<name>.+)",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE_END = re.compile(r"(?<=[\w)]{3})\.(?:\s+|$)|\s*\n+\s*")
_NO_NAME = re.compile(
    r"\b(?:or|versus|vs|possibl[ey]|potential(?:ly)?|probabl[ey]|likely|suspected|such as"
    r"|suggest(?:s|ive)|consistent|differential|no|not|none|nothing|unable|unknown|undetermined"
    r"|insufficient|inconclusive|cannot|pending|further|information|diagnos\w+|i|you|your|is|are"
    r"|was|were|be|been|has|have|had|would|should|could|may|might|will|do|does|did|please)\b|[?!;:]|\s/|/\s",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|none|least|less|unlikely|rather|except)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:an?|the) ", re.IGNORECASE)


def load_replies(name: str, model: str | None = None, condition: str | None = None) -> pd.DataFrame:
    """Recorded replies of large models to medical questions, as a table.

    ``name`` is one of four public sets (data/public/README.md has sources and warnings):

    - "craft_md": a row for each model, case and condition (40,080), in the form that
      :func:`trustlab.score` takes. ``case_id``, ``model``, ``condition``, ``dataset`` ("craft_md"
      and the condition), ``level`` (100), ``truth``, ``answer`` (the first of five), ``samples``
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
    if condition is not None and name != "craft_md":
        raise ValueError(f"condition is {condition!r}; {name} has none")
    if condition not in (None, *CONDITIONS):
        raise ValueError(f"condition is {condition!r}; allowed are {', '.join(CONDITIONS)}")
    if name == "craft_md":
        table = pd.read_json(_CRAFT_MD, lines=True, compression="xz", dtype=False)
    elif name == "mmlu_pro_health":
        table = _mmlu_pro_health()
    elif name == "gastro":
        table = _gastro()
    else:
        table = _medagents()
    models = list(table["model"].unique())
    if model not in (None, *models):
        raise ValueError(f"model is {model!r}; allowed are {', '.join(models)}")
    if model is not None:
        table = table[table["model"] == model]
    if condition is not None:
        table = table[table["condition"] == condition]
    table = table.reset_index(drop=True)
    return _craft_md(table) if name == "craft_md" else table


def not_diseases() -> frozenset[str]:
    """The truths of craft_md that are tests, drugs, findings or the like, and no diseases."""
    return frozenset(_NOT_DISEASES.read_text(encoding="utf-8").splitlines())


def short_form(extracted: str, text: str) -> tuple[str | None, str]:
    """The one diagnosis that a reply names, and '' or why there is none.

    ``extracted``: the short form that the set's authors took from the reply ``text``. Where it is
    "none" or empty, the reply is read instead: as a whole it is a name of at most 8 words, or it
    begins with a sentence such as "The most likely diagnosis is gout.". A name has no word of
    doubt, of a sentence, or between alternatives. "multiple" stays in doubt.
    """
    if extracted == "multiple":
        return None, SEVERAL
    if extracted not in ("", "none"):
        return extracted, ""
    if not text.strip():
        return None, EMPTY
    plain = _MARKS.sub("", text).strip()
    announced = _ANNOUNCED.fullmatch(plain)
    sentences = _SENTENCE_END.split(announced["name"] if announced else plain)
    sentences = [sentence for sentence in sentences if sentence]
    name = sentences[0].strip(' "') if sentences else ""
    alone = announced is not None or len(sentences) == 1
    if not alone or _NO_NAME.search(name) or not 0 < len(name.split()) <= LONGEST_NAME:
        return None, NOT_READ
    return _ARTICLE.sub("", name, count=1) if _ARTICLE.match(name) else name, ""


def option_named(options: Sequence[str], text: str) -> str | None:
    """The one of the options that a reply names: in its first sentence, or, where that names none,
    in all of it. ``None``: none or several, or words that deny ("not", "least likely")."""
    plain = _MARKS.sub("", text).strip()
    for part in (_SENTENCE_END.split(plain)[0], plain):
        words = f" {normalise(part)} "
        named = []
        for option in sorted(options, key=len, reverse=True):
            own = f" {normalise(option)} "
            if own in words:
                named.append(option)
                words = words.replace(own, " | ")  # a shorter option within it is not named
        if named:
            return named[0] if len(named) == 1 and not _DENIAL.search(part) else None
    return None


def _craft_md(rows: pd.DataFrame) -> pd.DataFrame:
    pairs = [
        [short_form(*pair) for pair in zip(extracted, texts, strict=True)]
        for extracted, texts in zip(rows["extracted"], rows["answers"], strict=True)
    ]
    truths = [_stripped(truth) for truth in rows["truth"]]
    options = [[_stripped(option) for option in four] for four in rows["options"]]
    chosen = [
        [option_named(four, text) for text in texts]
        for four, texts in zip(options, rows["chosen"], strict=True)
    ]
    strange = not_diseases()
    return pd.DataFrame(
        {
            "case_id": rows["case_id"],
            "model": rows["model"],
            "condition": rows["condition"],
            "dataset": "craft_md " + rows["condition"],
            "level": 100,
            "truth": truths,
            "answer": [five[0][0] for five in pairs],
            "samples": [[name for name, _ in five] for five in pairs],
            "missing": [five[0][1] for five in pairs],
            "texts": rows["answers"],
            "source": rows["dataset"],
            "category": rows["category"],
            "is_disease": [truth not in strange for truth in truths],
            "unread": [[why for _, why in five] for five in pairs],
            "graded": [[v if v in (0, 1) else None for v in five] for five in rows["graded"]],
            "options": options,
            "option": [_stripped(option) for option in rows["option"]],
            "chosen": chosen,
            "n_questions": rows["questions"],
        }
    )


def _stripped(name: str) -> str:
    """Without the spaces, line ends and lone quotation marks that the file has around some."""
    return name.strip(' \n"')


def _mmlu_pro_health() -> pd.DataFrame:
    rows = pd.read_csv(_MMLU)
    tokens = rows["logit_perplexity_confidence"].where(rows["model"] != UNUSABLE_TOKENS)
    answer = _letters(rows["extracted_answer"], ascii_uppercase[:10])
    return pd.DataFrame(
        {
            "model": rows["model"],
            "question": rows["row"],
            "truth": rows["correct_answer"],
            "answer": answer,
            "correct": _correct(answer, rows["correct_answer"]),
            "stated_confidence": _within(rows["verbal_numerical_confidence"], 1),
            "token_probability": _within(tokens, 1),
            "n_tokens": rows["token_length"],
        }
    )


def _gastro() -> pd.DataFrame:
    wide = pd.read_csv(_GASTRO, dtype=str)
    ending = "_confidence"
    parts = []
    for column in wide.columns:
        if column.endswith(ending):
            model = column.removesuffix(ending)
            part = pd.DataFrame({"model": model, "question": np.arange(1, len(wide) + 1)})
            part["correct"] = pd.to_numeric(wide[f"{model}_correctness"])
            stated = pd.to_numeric(
                wide[column], errors="coerce"
            )  # blank, cell_empty, no_confidence
            part["stated_confidence"] = _within(stated, 10) / 10
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _medagents() -> pd.DataFrame:
    wide = pd.read_csv(_MEDAGENTS, dtype=str).rename(columns={"realidx": "question"})
    keys = ["dataset", "question", "truth"]
    rows = wide.melt(keys, var_name="model", value_name="answer")
    for dataset, own in wide.groupby("dataset"):
        place = rows["dataset"] == dataset
        rows.loc[place, "answer"] = _letters(rows.loc[place, "answer"], own["truth"])
    rows["correct"] = _correct(rows["answer"], rows["truth"])
    return rows[["model", *keys, "answer", "correct"]]


def _letters(answers: pd.Series, options: Iterable[str]) -> pd.Series:
    """The answers, missing where they are no letter of the options."""
    return answers.where(answers.isin(list(options)))


def _correct(answer: pd.Series, truth: pd.Series) -> pd.Series:
    """1 or 0, NaN where there is no answer."""
    return answer.eq(truth).astype(float).where(answer.notna())


def _within(values: pd.Series, most: float) -> pd.Series:
    """The values, missing where they are outside 0 to ``most``."""
    return values.where(values.between(0, most))
