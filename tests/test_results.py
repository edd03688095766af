"""What others ran: each file of ``results/`` is small, checked, and without words of a case."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from trustlab.confidence import METHODS
from trustlab.paths import ROOT

FILES = sorted((ROOT / "results").glob("*.csv"))
TEXTS = [
    "model", "revision", "dataset", "levels", "prompts_set", "prompts_sha256", "grader",
    "entailment", "encoder", "date", "trustlab",
]  # fmt: skip
COUNTS = ["n_cases", "samples", "seed", "prompts_demonstrations", "n_replies"]
SHARES = ["temperature", "share_read", "accuracy_asked", "accuracy", "accuracy_read"]
ANSWERS = ["n_asked", "n", "n_read"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_results_holds_names_and_numbers_alone(file) -> None:
    table = pd.read_csv(file)
    ranks = [name for name in table if name.startswith("auroc_")]
    methods = [name.removeprefix("auroc_") for name in ranks]
    n_of = [f"n_{method}" for method in methods]
    assert set(table) == {*TEXTS, *COUNTS, *SHARES, *ANSWERS, *ranks, *n_of}
    assert len(table) and methods and set(methods) <= set(METHODS)
    for name in TEXTS:
        words = table[name].astype(str)
        assert words.str.len().max() <= 120 and not words.str.contains(r"[\x00-\x1f<>]|://").any()
        assert not words.str.count(r"\s").gt(12).any(), f"{name} reads like a text"
    assert table["date"].map(lambda day: bool(re.fullmatch(r"20\d\d-\d\d-\d\d", day))).all()
    assert table[SHARES + ranks].stack().dropna().between(0, 1).all()
    n_views = table["n_cases"] * table["levels"].astype(str).str.split().str.len()
    assert (table[[*ANSWERS, *n_of]].le(n_views, axis=0)).all(axis=None)
    assert (table["n_read"] <= table["n_asked"]).all() and (table["n_replies"] > 0).all()


def test_ours_are_among_them() -> None:
    assert "embedded" in [file.stem for file in FILES]
