"""Changed ways of telling: what each adds or moves, that everybody meets the same words, and two
patients as one."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml
from fake_model import made_case

from trustlab.changes.changes import (
    MAKERS,
    ORIGINAL,
    instruction,
    merged,
    named,
    other_system,
    pairs,
    paraphrased,
    picked,
    reordered,
    small_talk,
    unrelated,
)
from trustlab.knowledge import load_knowledge
from trustlab.levels import view
from trustlab.paths import DATA
from trustlab.records import Case, Statement, normalise

TABLE = load_knowledge()
EVERY = [*named(list(MAKERS)), ORIGINAL]


def told(
    name: str,
    findings: dict[str, bool],
    diagnosis: str = "Influenza",
    sex: str = "female",
    dataset: str = "made",
) -> Case:
    """A case in the table's words."""
    said = tuple(TABLE.statement(f, yes) for f, yes in findings.items())
    return Case(name, dataset, said, diagnosis, (diagnosis,), {"sex": sex})


@pytest.mark.parametrize("change", EVERY, ids=lambda c: c.name)
def test_the_same_case_level_and_seed_give_the_same_words_and_the_case_stays_as_it_was(
    change,
) -> None:
    case, level = made_case("a"), 60
    shown = change.show(case, level)
    assert shown == change.show(made_case("a"), level)
    assert (shown.case, shown.level) == (case, level) and case == made_case("a")


@pytest.mark.parametrize("make", [small_talk, other_system, reordered])
def test_another_seed_case_or_level_gives_another_draw(make) -> None:
    def drawn(seed: int, name: str, level: int) -> tuple[str, ...]:
        case = told(name, dict.fromkeys(list(TABLE.findings)[:20], True))
        shown = make(seed).show(case, level).statements
        return tuple(s.text for s in (shown if make is reordered else shown[-2:]))

    assert len({drawn(0, "a", 100), drawn(1, "a", 100), drawn(0, "b", 100)}) == 3
    if make is not reordered:
        assert drawn(0, "a", 100) != drawn(0, "a", 60)


@pytest.mark.parametrize(
    ("make", "n"), [(small_talk, 2), (other_system, 2), (lambda: instruction(100), 1)]
)
@pytest.mark.parametrize("level", [1, 60])
def test_additions_stand_after_what_is_shown_as_told(make, n: int, level: int) -> None:
    case = made_case("a")
    before, after = view(case, level).statements, make().show(case, level).statements
    assert (
        after[: len(before)] == before
        and len(after) == len(before) + n
        and len(set(after)) == len(after)
    )


def test_small_talk_is_two_of_our_exchanges_and_none_names_a_finding_or_a_condition() -> None:
    lines = yaml.safe_load((DATA / "smalltalk.yml").read_text(encoding="utf-8"))
    assert len(lines) >= 24 and len({q for q, _ in lines}) == len(lines)
    texts = {f"Doctor: {q}\nPatient: {a}" for q, a in lines}
    assert {s.text for s in small_talk().show(made_case("a"), 100).statements[-2:]} <= texts
    names = {normalise(n) for c in TABLE.conditions.values() for n in c.names}
    names |= {normalise(f.name) for f in TABLE.findings.values()}
    medical = names | {
        "pain",
        "ill",
        "sick",
        "hurt",
        "doctor",
        "cough",
        "blood",
        "fever",
        "medicine",
        "hospital",
    }
    spoken = " ".join(f" {normalise(f'{q} {a}')} " for q, a in lines)
    assert not [name for name in medical if f" {name} " in spoken]


def test_another_system_is_denied_in_the_tables_words() -> None:
    case = told("a", {"fever": True, "cough": True})
    extra = other_system().show(case, 100).statements[2:]
    own = {
        f
        for c in TABLE.conditions.values()
        if c.system == TABLE.condition_named("Influenza").system
        for f in c.findings
    }
    for s in extra:
        finding = TABLE.findings[s.finding]
        assert s.affirmed is False and s.text in {
            TABLE.statement(finding.id, False, wording=i).text for i in range(9)
        }
        assert finding.id not in own | {"fever", "cough"}
        assert any(finding.id in c.findings for c in TABLE.conditions.values())


def test_what_is_unrelated_is_not_told_has_no_parent_and_fits_the_sex() -> None:
    woman, man = told("a", {"fever": True}), told("a", {"fever": True}, sex="male")
    unknown = Case("a", "made", woman.statements, "Influenza", ("Influenza",))
    free = {
        name: unrelated(case, TABLE) for name, case in (("f", woman), ("m", man), ("?", unknown))
    }
    assert {f.sex for f in free["f"]} <= {None, "female"} and {f.sex for f in free["m"]} <= {
        None,
        "male",
    }
    assert {f.sex for f in free["?"]} == {None} and set(free["?"]) == set(free["f"]) & set(
        free["m"]
    )
    own, other = set(), set()
    for c in TABLE.conditions.values():
        (own if c.system == TABLE.condition_named("Influenza").system else other).update(c.findings)
    assert {f.id for f in free["f"]} <= other - own
    assert all(
        f.parent is None and f.form == "binary" and f.kind == "symptom"
        for fs in free.values()
        for f in fs
    )
    later = told("a", {"fever": True, free["f"][0].id: False})
    assert free["f"][0] not in unrelated(later, TABLE) and free["f"][1] in unrelated(later, TABLE)


def test_for_a_diagnosis_outside_the_table_nothing_is_denied_that_the_text_names() -> None:
    case = Case("x", "made", (Statement("He has had palpitations."),), "Kuru", ("Kuru",))
    free = {f.id for f in unrelated(case, TABLE)}
    assert "palpitations" not in free and "nausea" in free


def test_another_order_tells_the_same_and_never_in_the_order_as_told() -> None:
    for name in "abcdefgh":
        case = made_case(name, n=11)
        shown = reordered().show(case, 10).statements  # two statements
        assert shown == view(case, 10).statements[::-1]
        assert Counter(reordered().show(case, 100).statements) == Counter(case.statements)
    assert reordered().show(made_case("a"), 1) == view(made_case("a"), 1)


@pytest.mark.parametrize("score", [0, 100])
def test_an_instruction_names_the_score_and_holds_no_bracket(score: int) -> None:
    change = instruction(score)
    words = change.show(made_case("a"), 1).statements[-1].text
    assert (
        f"confidence at {score}," in words
        and not set("[]<>") & set(words)
        and change.name == f"instruction_{score}"
    )


@pytest.mark.parametrize("score", [-1, 101])
def test_an_instruction_outside_0_to_100_is_refused(score: int) -> None:
    with pytest.raises(ValueError, match=f"score is {score}; allowed are 0 to 100"):
        instruction(score)


def test_a_change_that_does_not_exist_is_refused_with_those_that_do() -> None:
    assert [c.name for c in named(["reordered", "instruction_0"])] == ["reordered", "instruction_0"]
    with pytest.raises(ValueError, match="no change 'louder'; there are small_talk, other_system"):
        named(["reordered", "louder"])


# -- paraphrases
# --------------------------------------------------------------------------------------------------


def test_one_or_two_shown_statements_are_picked_in_their_order() -> None:
    draws = [(made_case(f"c{i}"), picked(made_case(f"c{i}"), 60, 1)) for i in range(40)]
    assert {len(s) for _, s in draws} == {1, 2}
    for case, chosen in draws:
        places = [view(case, 60).statements.index(s) for s in chosen]
        assert places == sorted(set(places))
    assert (
        picked(made_case("a"), 1, 1) == view(made_case("a"), 1).statements
    )  # one shown, one said again
    assert len({picked(made_case("a", n=30), 100, seed) for seed in (1, 2, 3)}) == 3


def test_a_paraphrase_is_appended_and_only_one_that_is_usable() -> None:
    case = next(c for c in (made_case(f"c{i}") for i in range(40)) if len(picked(c, 60, 1)) == 2)
    first, second = picked(case, 60, 1)
    both = {first.text: "Doctor: New?\nPatient: One.", second.text: "Doctor: New?\nPatient: Two."}
    shown = paraphrased(both, 1).show(case, 60)
    assert shown.statements == (
        *view(case, 60).statements,
        Statement(both[first.text]),
        Statement(both[second.text]),
    )
    assert [s.text for s in paraphrased({second.text: "New."}, 1).show(case, 60).statements][
        -1
    ] == "New."
    assert (
        paraphrased({second.text: "New."}, 1).show(case, 60).n_statements
        == view(case, 60).n_statements + 1
    )
    assert paraphrased({}, 1).show(case, 60) == view(case, 60)
    tells = both | {first.text: "Doctor: Is it influenza?\nPatient: Yes."}  # the case's diagnosis
    assert paraphrased(tells, 1).show(case, 60).statements[-1].text == both[second.text]
    assert paraphrased(tells, 1).show(case, 60).n_statements == view(case, 60).n_statements + 1


def test_a_paraphrase_keeps_what_the_statement_tells() -> None:
    case = told("a", {"fever": False})
    said = paraphrased({case.statements[0].text: "New."}, 2).show(case, 100).statements[-1]
    assert (
        said == Statement("New.", "fever", False)
        and paraphrased({}, 2).is_paraphrase
        and not ORIGINAL.is_paraphrase
    )


# -- two at once
# --------------------------------------------------------------------------------------------------


def test_two_patients_are_interleaved_each_in_its_own_order_and_the_first_opens() -> None:
    a, b = made_case("a", "Influenza", 12), made_case("b", "Common cold", 14)
    both = merged(a, b)
    assert both.statements[0] == a.statements[0] and len(both.statements) == 26
    for one in (a, b):
        assert tuple(s for s in both.statements if s in one.statements) == one.statements
    halves = {s in a.statements for s in both.statements[:13]}
    assert halves == {True, False}
    assert (both.case_id, both.diagnosis, both.accepted) == (
        "a+b",
        "Influenza",
        ("Influenza", "Common cold"),
    )
    assert merged(a, b) == both and merged(a, b, seed=1).statements != both.statements


def test_a_finding_that_both_tell_is_told_once_so_that_nobody_is_contradicted() -> None:
    a = told("a", {"fever": True, "cough": True, "nausea": True})
    b = told("b", {"nausea": False, "fever": False, "chills": True}, "Common cold", sex="male")
    for seed in range(20):
        both = merged(a, b, seed)
        said = [s.finding for s in both.statements]
        assert sorted(said) == ["chills", "cough", "fever", "nausea"]
        assert (
            next(s for s in both.statements if s.finding == "fever").affirmed is True
        )  # a opens with it
        assert both.patient == {}
        assert next(s for s in both.statements if s.finding == "nausea").affirmed is True
    twice = [
        merged(a, told("c", {"chills": True, "cough": True}, "Croup"), k).statements
        for k in range(50)
    ]
    assert {[s.finding for s in said].count("cough") for said in twice} == {1}


@pytest.mark.parametrize("seed", range(10))
def test_what_one_patient_has_is_never_lost_to_the_other_s_denial(seed: int) -> None:
    a = told("a", {"fever": False, "cough": True, "palpitations": False})
    b = told("b", {"chills": True, "nausea": True, "fever": True, "cough": False}, "Common cold")
    for both in (merged(a, b, seed), merged(b, a, seed)):
        assert {s.finding: s.affirmed for s in both.statements} == {
            "fever": True, "cough": True, "palpitations": False, "chills": True, "nausea": True
        }  # fmt: skip
        order = [s.finding for s in both.statements]
        assert order.index("nausea") < order.index(
            "fever"
        )  # where b tells it, not where a denies it
    assert merged(a, b, seed).statements[0].finding == "cough"  # a still opens


def test_a_patient_who_only_denies_what_the_other_has_leaves_the_other_s_story() -> None:
    a, b = told("a", {"fever": False}), told("b", {"cough": True, "fever": True}, "Croup")
    assert merged(a, b).statements == b.statements


def test_one_diagnosis_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="both cases have the diagnosis 'Influenza'"):
        merged(made_case("a"), made_case("b"))


def test_every_case_is_in_one_pair_with_another_diagnosis_of_its_sex_and_set() -> None:
    names = ["Influenza", "Common cold", "Croup", "Asthma"]
    cases = [
        told(f"{s}{i}", {"fever": True}, names[i % 4], s)
        for s in ("male", "female")
        for i in range(8)
    ]
    found = pairs(cases, seed=3)
    assert sorted(c.case_id for pair in found for c in pair) == sorted(c.case_id for c in cases)
    assert all(
        a.diagnosis != b.diagnosis and a.patient["sex"] == b.patient["sex"] for a, b in found
    )
    assert pairs(cases, seed=3) == found and pairs(cases, seed=4) != found
    assert pairs([told("a", {}), told("b", {}, "Croup", dataset="other")]) == []


def test_half_with_one_diagnosis_all_find_a_partner_and_more_than_half_leave_some_over() -> None:
    def cases(n_flu: int, n_other: int) -> list[Case]:
        flu = [told(f"f{i}", {"fever": True}) for i in range(n_flu)]
        return [*flu, *(told(f"o{i}", {"fever": True}, f"Other {i}") for i in range(n_other))]

    for seed in range(5):
        assert len(pairs(cases(4, 4), seed)) == 4 and len(pairs(cases(1, 0), seed)) == 0
        assert all(a.diagnosis != b.diagnosis for a, b in pairs(cases(6, 2), seed))
        assert len(pairs(cases(3, 4), seed)) == 3  # seven cases: one is left over
