"""The recorded replies of large models that come along: counts, refusals, what is missing."""

from __future__ import annotations

import functools

import pandas as pd
import pytest
from each import each
from saying import says

import trustlab as tl
from trustlab.datasets.public_replies import (
    NOT_READ,
    PUBLIC,
    not_diseases,
    option_named,
    short_form,
)
from trustlab.graders import UNKNOWN
from trustlab.records import SEVERAL

load = functools.cache(tl.load_replies)


def test_craft_md_has_every_model_case_and_condition() -> None:
    rows = load("craft_md")
    assert len(rows) == 5 * 2004 * 4 == 40_080
    assert rows["case_id"].nunique() == 2004 and rows["model"].nunique() == 5
    assert set(rows["condition"]) == {"vignette", "multiturn", "singleturn", "summarized"}
    assert not rows.duplicated(["model", "case_id", "condition"]).any()
    for column in ("samples", "texts", "unread", "graded", "chosen"):
        assert rows[column].map(len).sum() == 200_400
    assert (rows["answer"].isna() == (rows["missing"] != "")).all()
    firsts = rows["samples"].str[0]
    assert (firsts.isna() == rows["answer"].isna()).all()
    assert (firsts.dropna() == rows["answer"].dropna()).all()


def test_craft_md_tells_what_is_missing() -> None:
    rows = load("craft_md")
    reasons = rows["unread"].explode()
    assert set(reasons) == {"", SEVERAL, NOT_READ}
    assert ((reasons != "") == rows["samples"].explode().isna()).all()
    verdicts = rows["graded"].explode()
    assert verdicts.isna().sum() == 62 and set(verdicts.dropna()) == {0, 1}
    talks = rows["condition"] == "multiturn"
    assert rows.loc[talks, "n_questions"].map(len).eq(5).all()
    assert rows.loc[~talks, "n_questions"].isna().all()
    named = rows["chosen"].explode()
    strange = [o not in four for o, four in zip(rows["option"], rows["options"], strict=True)]
    assert set(rows.loc[strange, "case_id"]) == {"case_112"}  # as in the source
    assert 0.05 < named.isna().mean() < 0.1
    assert all(
        set(five) <= {*four, None}
        for five, four in zip(rows["chosen"], rows["options"], strict=True)
    )


def test_truths_that_are_no_diseases_are_marked() -> None:
    cases = load("craft_md").drop_duplicates("case_id").set_index("truth")
    assert set(not_diseases()) < set(cases.index)
    assert (~cases["is_disease"]).sum() == 438
    for truth in ("lumbar puncture", "0.25", "borrelia burgdorferi", "furosemide"):
        assert not cases.loc[[truth], "is_disease"].any()
    for truth in ("lyme disease", "child abuse", "hepatitis c virus infection", "normal grief"):
        assert truth not in not_diseases()


def test_a_model_and_a_condition_are_kept_alone() -> None:
    rows = tl.load_replies("craft_md", model="gpt4_1106", condition="multiturn")
    assert len(rows) == 2004 and rows.index.equals(pd.RangeIndex(2004))
    assert set(rows["dataset"]) == {"craft_md multiturn"}
    assert len(tl.load_replies("gastro", model="gpt-4-0613")) == 300


@pytest.mark.filterwarnings("ignore:columns that are not read")
def test_craft_md_is_scored_as_it_is() -> None:
    rows = tl.load_replies("craft_md", "gpt4_1106", "vignette").head(40)
    run = tl.score(rows, ["poc"], tl.Setup(cache=":memory:", quiet=True))
    unread, unknown = rows["missing"] != "", run.answers["missing"] == UNKNOWN
    assert (run.answers["correct"].isna() == (unread | unknown)).all()
    assert 0 < unknown.mean() <= 0.1
    assert (
        run.answers["n_samples"].to_list()
        == rows["samples"].map(lambda s: len(s) - s.count(None)).to_list()
    )


def test_mmlu_pro_health() -> None:
    rows = load("mmlu_pro_health")
    assert len(rows) == 14 * 818 and rows.groupby("model")["question"].nunique().eq(818).all()
    assert rows["answer"].isna().sum() == rows["correct"].isna().sum() == 84
    assert rows["stated_confidence"].between(0, 1).sum() == 14 * 818 - 158
    qwen = rows[rows["model"].str.startswith("Qwen3-235B")]
    assert qwen["stated_confidence"].notna().sum() == 665
    without = rows.groupby("model")["token_probability"].apply(lambda own: own.isna().all())
    assert without.sum() == 5 and without["deepseek-chat"] and without["o4-mini-2025-04-16"]
    assert rows["token_probability"].dropna().between(0, 1).all()


def test_gastro() -> None:
    rows = load("gastro")
    assert len(rows) == 48 * 300 and rows.groupby("model")["question"].nunique().eq(300).all()
    assert set(rows["correct"].dropna()) == {0, 1} and rows["correct"].isna().sum() == 1
    assert rows["stated_confidence"].dropna().between(0, 1).all()
    assert rows["stated_confidence"].isna().sum() == 1652 + 252 + 22


def test_medagents() -> None:
    rows = load("medagents")
    assert len(rows) == 10 * 6978 and rows["dataset"].nunique() == 7
    assert rows["answer"].isna().sum() == rows["correct"].isna().sum() == 2
    for dataset, letters in (("pubmedqa", "ABC"), ("medmcqa", "ABCD"), ("mmlu-pro", "ABCDEFGHIJ")):
        assert set(rows.loc[rows["dataset"] == dataset, "answer"].dropna()) == set(letters)


@each(
    ("name", "model", "condition", "words"),
    [
        ("craftmd", None, None, ("name", "'craftmd'", "craft_md", "mmlu_pro_health")),
        ("craft_md", "gpt4", None, ("model", "'gpt4'", "craft_md", "gpt4_1106, gpt3_1106")),
        ("craft_md", None, "dialogue", ("'dialogue'", "craft_md", "vignette", "multiturn")),
        ("gastro", None, "vignette", ("condition", "'vignette'", "gastro", "none")),
        ("medagents", "gpt-5", None, ("model", "'gpt-5'", "medagents", "DeepSeek-R1")),
        ("mmlu_pro_health", "o4", None, ("model", "'o4'", "mmlu_pro_health", "gpt-4.1")),
    ],
)
def test_what_there_is_not_is_refused(name, model, condition, words) -> None:
    with pytest.raises(ValueError) as refused:
        tl.load_replies(name, model=model, condition=condition)
    assert says(refused.value, words)


@each(
    ("extracted", "text", "name", "reason"),
    [
        ("gout, cellulitis", "Gout with cellulitis.", "gout, cellulitis", ""),
        ("none", "**Final Diagnosis:** Kleptomania.", "Kleptomania", ""),
        ("none", "Congestive Heart Failure (CHF)", "Congestive Heart Failure (CHF)", ""),
        (
            "none",
            "Attention-deficit/hyperactivity disorder",
            "Attention-deficit/hyperactivity disorder",
            "",
        ),
        ("", " The most likely diagnosis is a kidney stone.", "kidney stone", ""),
        (
            "none",
            "Based on age and sex, the final diagnosis is likely to be: Gout",
            "Gout",
            "",
        ),
        (
            "none",
            "The most likely diagnosis in this patient is:\n\nGout.\n\nIt is common.",
            "Gout",
            "",
        ),
        (
            "none",
            "Final Diagnosis: C. difficile colitis. It needs care.",
            "C. difficile colitis",
            "",
        ),
        ("none", "Is the rash itchy?", None, NOT_READ),
        ("none", "Gout or cellulitis", None, NOT_READ),
        ("none", "**Final Diagnosis:** Possible gout", None, NOT_READ),
        ("none", "Final Diagnosis: None.", None, NOT_READ),
        ("none", "Jaundice. This suggests a disease of the liver.", None, NOT_READ),
        ("none", "Insufficient data for a diagnosis", None, NOT_READ),
        ("none", "one two three four five six seven eight nine", None, NOT_READ),
        ("none", "**", None, NOT_READ),
        ("none", " \n", None, NOT_READ),
        ("multiple", "Gout", None, SEVERAL),
    ],
)
def test_a_short_form_is_theirs_or_read_from_the_whole_reply(extracted, text, name, reason) -> None:
    assert short_form(extracted, text) == (name, reason)


@each(
    ("text", "option"),
    [
        ("**Final Diagnosis:** Lupus.", "Lupus"),
        ("The answer is discoid lupus. Lupus itself and gout are less likely.", "Discoid lupus"),
        ("The most likely diagnosis is:\n\nGout", "Gout"),
        ("Gout or lupus", None),
        ("The least likely diagnosis is gout. It is lupus.", None),
        ("It is not gout.", None),
        ("Goutweed poisoning", None),
        ("", None),
    ],
)
def test_an_option_is_named_alone_or_not_at_all(text, option) -> None:
    assert option_named(["Lupus", "Discoid lupus", "Gout"], text) == option


def test_the_files_are_small_and_have_their_licences() -> None:
    files = [file for file in PUBLIC.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 5e6
    folders = {file.parent for file in files} - {PUBLIC}
    assert len(folders) == 4 and all((folder / "LICENSE").is_file() for folder in folders)
