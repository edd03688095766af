"""09 by hand: accuracy, AUROC and ECE of recorded replies, votes of a panel, falls and copies."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

import trustlab as tl
from studies import large_models as study
from tests.each import each
from trustlab.records import normalise

SCALES = {study.STATED: "probability", study.TOKENS: "probability"}
CELLS = [(m, k) for m in ("gpt-4.1", "Qwen3-32B", "gemini-2.0-flash") for k in SCALES]


@pytest.fixture(scope="module")
def health() -> pd.DataFrame:
    return tl.load_replies("mmlu_pro_health")


@pytest.fixture(scope="module")
def metrics(health: pd.DataFrame) -> pd.DataFrame:
    return tl.metrics_table(study.as_tables(health, "health", list(SCALES)), SCALES)


def ece_by_hand(correct: np.ndarray, sure: np.ndarray) -> float:
    """Fifteen groups of equal size; answers of one confidence are in that of their mean rank."""
    groups = np.floor(15 * (rankdata(sure) - 0.5) / len(sure))
    gaps = [abs((correct - sure)[groups == group].sum()) for group in range(15)]
    return float(sum(gaps) / len(sure))


@each("model, method", CELLS)
def test_accuracy_auroc_and_ece_are_those_of_another_program(model, method, health, metrics):
    mine = metrics[metrics["model"].eq(model) & metrics["level"].eq("pooled")]
    of_method = mine[mine["method"].eq(method)].set_index("metric")["value"]
    rows = health[health["model"].eq(model)].dropna(
        subset=["correct", "stated_confidence", "token_probability"]
    )
    sure = rows["stated_confidence" if method == study.STATED else "token_probability"]
    assert of_method["auroc"] == pytest.approx(roc_auc_score(rows["correct"], sure), abs=1e-9)
    by_hand = ece_by_hand(rows["correct"].to_numpy(float), sure.to_numpy(float))
    assert of_method["ece"] == pytest.approx(by_hand, abs=1e-9)
    accuracy = mine[mine["metric"].eq("accuracy")]["value"].iloc[0]
    asked = health[health["model"].eq(model)]["correct"].dropna()
    assert accuracy == pytest.approx(asked.mean(), abs=1e-9)


def test_a_panel_votes_and_its_disagreement_is_the_share_against_the_vote():
    letters = pd.DataFrame(
        [(q, m, a) for q, votes in (("1", "AAB"), ("2", "BBB")) for m, a in enumerate(votes)],
        columns=["question", "model", "answer"],
    ).assign(truth="A")
    votes = study.panel(letters, "two questions").set_index("case_id")
    assert votes["correct"].to_dict() == {"1": 1.0, "2": 0.0}
    assert votes["cdr"].to_list() == pytest.approx([1 / 3, 0.0])
    assert votes["confidence"].to_list() == pytest.approx([2 / 3, 1.0])


def test_falls_are_means_over_the_cases_that_have_all_in_both():
    cell = [("a", 1, 0.8), ("b", 1, 1.0), ("c", 0, 0.6)], [("a", 0, 0.6), ("b", 1, 0.8)]
    told = ("vignette", "multiturn")
    rows = [(*r, name) for name, part in zip(told, cell, strict=True) for r in part]
    names = ["case_id", "free", "confidence", "condition"]
    table = pd.DataFrame(rows, columns=names).assign(model="m", dataset=lambda t: t["condition"])
    verdicts = table.assign(exact=0.0, theirs=table["free"], choice=1.0).drop(columns="confidence")
    falls = study.falls(verdicts, table.assign(method="poc"), "poc")
    found = falls.set_index(["quantity", "how"])["value"]
    assert found[study.ACCURACY, "free"] == pytest.approx(0.5)
    assert found[study.CONFIDENCE, ""] == pytest.approx(0.2)
    assert found[study.BEYOND, "free"] == pytest.approx(0.3)
    assert found[study.BEYOND, "exact"] == found[study.BEYOND, "choice"] == pytest.approx(-0.2)
    assert set(falls["n"]) == {2}


def test_copies_are_counted_from_the_whole_replies():
    replies = tl.load_replies("craft_md", condition="vignette")
    found = study.copies(replies).set_index("model")["value"]
    texts = replies.groupby("model")["texts"]
    by_hand = texts.apply(lambda of: Counter(len({t for t in five if t}) == 1 for five in of))
    assert found["mistral-v2"] > 0.99 and found["gpt4_1106"] < 0.1
    assert found["gpt4_1106"] == pytest.approx(by_hand["gpt4_1106", True] / 2004)


def test_the_pick_of_cases_keeps_whole_cases():
    replies = tl.load_replies("craft_md", model="gpt4_1106")
    some = study.picked(replies, 7, 0)
    assert some["case_id"].nunique() == 7 and len(some) == 28
    assert len(study.picked(replies, None, 0)) == len(replies)


def test_unread_is_wrong_only_where_something_is_claimed():
    keys = {"dataset": "craft_md vignette", "model": ["m", "m", "m", "few", "few"]}
    table = pd.DataFrame({"case_id": list("abcab"), **keys, "condition": "vignette"})
    verdicts = table.assign(free=[1.0, np.nan, np.nan, np.nan, np.nan])
    replies = table.assign(answer=["gout", None, "unheard of", "gout", None])
    found = study.unread_is_wrong(verdicts, replies)
    assert found.fillna(-1).to_list() == [1.0, 0.0, -1.0, -1.0, -1.0]


def test_graders_stand_side_by_side_on_the_answers_that_all_judge():
    row = {"free": 1.0, "exact": 0.0, "theirs": 1.0, "choice": 1.0}
    verdicts = pd.DataFrame([row, row | {"choice": np.nan}, row | {"free": 0.0}])
    shared = study.judged_by_all(verdicts)
    assert shared.notna().all(axis=1).to_list() == [True, False, True]
    assert shared["free"].mean() == 0.5


def test_the_later_methods_that_need_text_alone_by_hand():
    replies = study.picked(tl.pick(tl.load_replies("craft_md"), is_disease=True), 30, 0)
    replies = tl.pick(replies, condition="multiturn")
    run = study.later_run(replies, study.setup(quiet=True))
    table = run.confidence.merge(replies[[*study.REPLY_KEYS, "answer", "samples"]])
    of_method = dict(tuple(table.groupby("method")))
    assert set(of_method) == {
        "answer_agreement", "noncontradiction", "bsdetector", "kernel_language_entropy", "luq",
        "snne",
    }  # fmt: skip
    assert of_method["bsdetector"]["confidence"].isna().all()
    n_values = 0
    for row in of_method["answer_agreement"].itertuples():
        names = [normalise(name) for name in row.samples if name is not None]
        if row.missing:
            continue
        n_values += 1
        assert row.confidence == pytest.approx(names.count(normalise(row.answer)) / len(names))
    assert n_values > 50
    kernel = of_method["kernel_language_entropy"]
    n_read = kernel["samples"].map(lambda names: sum(name is not None for name in names))
    has_value = kernel["confidence"].notna()
    assert has_value.any() and (n_read[has_value] == study.N_ANSWERS).all()
    few = kernel[~has_value & n_read.between(2, 4) & kernel["answer"].notna()]
    assert len(few) and few["missing"].str.contains("for the run's 5").all()
