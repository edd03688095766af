"""One procedure with its settings changed: what each variant asks anew, what its steps gave, and
which library it read."""

from __future__ import annotations

import pandas as pd
import pytest
from asking import ask
from fake_model import FakeEncoder, FakeModel, made_cases

from studies import ablations as study
from trustlab.paths import DATA
from trustlab.published import published_table
from trustlab.retrieval import BM25, Passage

CASES, LEVELS = made_cases(4), [20, 100]


def made(variants=study.PARTS) -> study.Ablations:
    """The variants over four made cases at two levels, with all that could be slow replaced."""
    how = {"samples": 5, "encoder": FakeEncoder()}
    return ask(study.ablations, CASES, [FakeModel()], variants, LEVELS, **how)


@pytest.fixture(scope="module")
def whole() -> study.Ablations:
    return made()


def test_every_variant_switches_one_part_off_and_has_a_row_for_each_answer_and_method(whole):
    assert list(dict.fromkeys(whole.confidence["variant"])) == list(study.PARTS) == list(whole.runs)
    assert len(whole.answers) == 5 * 8 and len(whole.confidence) == 5 * 8 * len(study.MEDCONF)
    assert set(whole.confidence["method"]) == set(study.MEDCONF)
    assert list(study.PARTS) == list(published_table("ablation")["variant"])
    parts = [run.parameters["medconf"] for run in whole.runs.values()]
    off = [{k for k, on in medconf.items() if on is False} for medconf in parts]
    assert off == [set(), {"profile"}, {"retrieval"}, {"structure"}, {"importance"}]
    # variants share their replies without a file
    assert whole.calls.set_index("variant").loc["without_importance", "n_cached"] > 0


def on_hand(values: dict[tuple[str, str], list[float | None]]) -> study.Ablations:
    """(method, variant) -> a confidence for each of the answers c0, c1, ..."""
    key = {"model": "m", "dataset": "d", "level": 100}
    rows = [
        key | {"case_id": f"c{i}", "method": m, "variant": v, "confidence": c}
        for (m, v), column in values.items()
        for i, c in enumerate(column)
    ]
    table = pd.DataFrame(rows).astype({"confidence": float})
    table["missing"] = table["confidence"].isna().map({True: "lost", False: ""})
    return study.Ablations(pd.DataFrame(), table, pd.DataFrame(), {})


def kept(made: study.Ablations) -> dict[tuple[str, str], str]:
    """(method, variant) -> the digits of the answers that have a value."""
    known = made.confidence.dropna(subset="confidence").groupby(["method", "variant"])
    return {key: "".join(part["case_id"].str[1:]) for key, part in known}


POINTS = {
    ("a", "1"): [1, 2, 3, 4, None, None],
    ("a", "2"): [1, 2, 3, None, 5, None],
    ("b", "1"): [1, None, 3, 4, 5, None],
    ("b", "2"): [None, 2, None, None, None, None],
    ("b", "3"): [None] * 6,
}


def test_points_of_a_line_are_compared_on_the_answers_that_all_of_them_have():
    shared = study.on_shared_rows(on_hand(POINTS))
    assert kept(shared) == {("a", "1"): "02", ("a", "2"): "02", ("b", "1"): "02"}
    why = shared.confidence.set_index(["method", "variant", "case_id"])["missing"]
    assert why["b", "2", "c1"] == "a value for only 1 of 5 answers"
    assert why["b", "3", "c0"] == why["a", "2", "c3"] == "lost"
    assert (why["a", "1", "c1"], why["a", "1", "c0"]) == (study.UNSHARED, "")
    assert len(shared.confidence) == 30


def passage(number: int, title: str, content: str) -> Passage:
    return Passage(f"p{number}", title, content, f"{title}. {content}")


SHELF = [
    passage(1, "Influenza: signs", "Influenza begins with fever."),
    passage(2, "Influenza: tests", "A swab shows influenza; a common cold needs none."),
    passage(3, "Common cold: signs", "A cold begins with sneezing."),
    passage(4, "Gout: signs", "Gout hurts in the big toe."),
]


def test_the_control_never_finds_a_right_passage_and_goes_on_where_a_keyword_finds_only_those():
    assert [*study.kinds(SHELF)] == ["signs", "tests"] and study.kinds(SHELF[2:]) == {}
    for seed in range(10):
        control = study.WrongPassages(BM25(SHELF), ["Influenza", "Common cold", "Gout"], seed)
        found = [p.id for p in control.search("influenza", 2)]
        assert found and not {"p1", "p2"} & set(found)
    control = study.WrongPassages(BM25(SHELF), ["swab", "Gout"])
    assert [p.id for p in control.search("Influenza", 2)] == ["p4"]
    assert study.WrongPassages(BM25(SHELF), ["swab", "fever"]).search("Influenza", 2) == []


def test_a_name_that_is_taken_too_few_keywords_and_variants_of_one_folder_are_refused():
    with pytest.raises(ValueError, match="corpora has 'whole', which is taken"):
        study.libraries(None, {"whole": DATA / "corpus"})
    with pytest.raises(ValueError, match="keywords must be two or more; received \\['Gout'\\]"):
        study.WrongPassages(BM25(SHELF), ["Gout", "Gout"])
    for variants in ({}, {"A b": {}, "a-B": {}}):
        with pytest.raises(ValueError, match="one or more, each with a folder name of its own"):
            made(variants)
