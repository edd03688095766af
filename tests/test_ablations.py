"""One procedure with its settings changed: what each variant asks anew, what its steps gave, and
which library it read."""

from __future__ import annotations

import pandas as pd
import pytest
from asking import ask
from fake_model import FakeEncoder, FakeModel, made_cases
from saying import saying

from studies import ablations as study
from trustlab.paths import DATA
from trustlab.reports.published import published_table
from trustlab.retrieval import BM25, Passage
from trustlab.runs.run import Run

CASES, LEVELS = made_cases(4), [20, 100]
NAN = float("nan")


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


def on_hand(values: dict[tuple[str, str], list[float]]) -> study.Ablations:
    """(method, variant) -> a confidence for each of the answers c00, c01, ...; half are right."""
    key = {"model": "m", "dataset": "d", "level": 100}
    n = len(next(iter(values.values())))
    cases = [key | {"case_id": f"c{i:02d}"} for i in range(n)]
    answers = pd.DataFrame([of | {"answer": "a", "correct": i % 2} for i, of in enumerate(cases)])
    rows = [
        of | {"method": method, "variant": variant, "confidence": value}
        for (method, variant), column in values.items()
        for of, value in zip(cases, column, strict=True)
    ]
    table = pd.DataFrame(rows).astype({"confidence": float}).assign(bound="")
    table["missing"] = table["confidence"].isna().map({True: "lost", False: ""})
    medconf = {"medconf": {"n_passages": 15}}
    facts = {name: {"n_samples": int(name), "sample_temperature": 0.5} for _, name in values}
    runs = {
        name: Run(answers, table[:0], pd.DataFrame(), of | medconf) for name, of in facts.items()
    }
    return study.Ablations(pd.DataFrame(), table, pd.DataFrame(), runs)


def without(*lost: int) -> list[float]:
    """A value for each of 40 answers but these."""
    return [NAN if i in lost else i % 7 / 7 for i in range(40)]


def test_variants_stand_on_the_answers_that_they_share_and_others_have_a_mark():
    points = {
        ("poc", "2"): without(1),
        ("poc", "5"): without(3),
        ("ecc", "2"): without(*range(0, 12, 2)),  # too many of the wrong ones
        ("ecc", "5"): without(*range(40)),
    }
    found = study.variants_table(on_hand(points))
    pooled = found[found["metric"].eq("auroc") & found["level"].eq("pooled")]
    shown = ["method", "variant", "n", "own_rows", "n_samples", "temperature", "n_passages"]
    assert pooled[shown].to_numpy().tolist() == [
        ["poc", "2", 38, False, 2, 0.5, 15],
        ["poc", "5", 38, False, 5, 0.5, 15],
        ["ecc", "2", 34, True, 2, 0.5, 15],
        ["ecc", "5", 0, False, 5, 0.5, 15],
    ]
    assert found["method"].isin(["poc", "ecc"]).all()


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
    with pytest.raises(ValueError, match=saying("corpora", "'whole'", "taken")):
        study.libraries(None, {"whole": DATA / "corpus"})
    with pytest.raises(ValueError, match=saying("keywords", "two", "['Gout']")):
        study.WrongPassages(BM25(SHELF), ["Gout", "Gout"])
    for variants in ({}, {"A b": {}, "a-B": {}}):
        with pytest.raises(ValueError, match=saying("one", "folder")):
            made(variants)
