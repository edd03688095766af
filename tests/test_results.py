"""What others ran: each file of ``results/`` is small, checked, and without words of a case."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from each import each

from studies.benchmark import contribution
from trustlab.confidence import METHODS
from trustlab.paths import FIGURES, ROOT, save_table
from trustlab.records import LEVELS
from trustlab.runs.run import Run

FILES = sorted((ROOT / "results").glob("*.csv"))
TEXTS = [
    "model", "revision", "dataset", "levels", "prompts_set", "prompts_sha256", "grader",
    "entailment", "encoder", "date", "trustlab",
]  # fmt: skip
COUNTS = ["n_cases", "samples", "seed", "prompts_demonstrations", "n_replies"]
SHARES = ["temperature", "share_read", "accuracy_asked", "accuracy", "accuracy_read"]
ANSWERS = ["n_asked", "n", "n_read"]


def check(file: Path) -> None:
    """Whether a file of results holds names and numbers alone, each in its range."""
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


@each("file", FILES)
def test_a_file_of_results_holds_names_and_numbers_alone(file: Path) -> None:
    check(file)


def test_what_a_run_contributes_passes_whatever_its_names_are(tmp_path: Path) -> None:
    file = FIGURES / "reference" / "01_benchmark" / "metrics.csv"
    metrics = pd.read_csv(file, dtype={"level": str}).fillna({"method": ""})
    names = metrics["model"].unique()
    facts: dict[str, Any] = {"models": dict.fromkeys(names, "C:\\Users\\me\\weights-float32")}
    prompts = {"set": "my\nwords", "demonstrations": 2, "sha256": "0" * 16}
    facts |= {"prompts": dict.fromkeys(names, prompts), "levels": list(LEVELS), "n_samples": 15}
    facts |= {"sample_temperature": 0.5, "seed": 0, "encoder": "~/a b/encoder 12"}
    facts |= {"grader": "judge:hf:/srv/a b/judge", "entailment": {"name": "lab/nli\u202e"}}
    facts["replies_read"] = {name: {"ce": {"asked": 4, "read": 3}} for name in names}
    table = contribution(Run(metrics, metrics, metrics, facts), metrics)
    save_table(table, tmp_path / "x.csv")
    check(tmp_path / "x.csv")
    first = table.iloc[0]
    shown = first[["revision", "prompts_set", "encoder", "grader", "entailment"]].tolist()
    assert shown == ["weights-float32", "my words", "encoder 12", "judge:hf:judge", "lab/nli "]
    assert (first["share_read"], first["n_cases"], first["n"]) == (0.75, 240, 1440)
    assert first["auroc_medconf"] == pytest.approx(0.8369489213) and first["n_medconf"] == 1440
