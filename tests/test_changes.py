"""Changed ways of telling: what each adds or moves, and two patients as one."""

from __future__ import annotations

from collections import Counter

import pytest
from each import each
from fake_model import made_case
from saying import saying

from trustlab.agents.changes import (
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
    unrelated,
)
from trustlab.knowledge.findings import load_knowledge
from trustlab.levels import view
from trustlab.records import Case, Statement

TABLE = load_knowledge()


def told(
    name: str, findings: dict, diagnosis: str = "Influenza", sex: str = "female", of: str = "made"
) -> Case:
    """A case in the table's words."""
    said = tuple(TABLE.statement(f, yes) for f, yes in findings.items())
    return Case(name, of, said, diagnosis, (diagnosis,), {"sex": sex})


@each("change", [*named(list(MAKERS)), ORIGINAL])
def test_a_draw_hangs_on_seed_case_and_level_and_what_is_shown_as_told_stays(change) -> None:
    case, level = made_case("a"), 60
    shown, before = change.show(case, level), view(case, level).statements
    assert shown == change.show(made_case("a"), level) and case == made_case("a")
    assert (shown.case, shown.level) == (case, level)
    n = {"small_talk": 2, "other_system": 2, "instruction": 1}.get(change.name.rstrip("_0123"), 0)
    assert len(shown.statements) == len(before) + n == len(set(shown.statements))
    if change.name != "reordered":
        assert shown.statements[: len(before)] == before


def test_another_system_is_denied_in_the_tables_words_and_fits_the_patient() -> None:
    case = told("a", {"fever": True, "cough": True})
    own, other = set(), set()
    for c in TABLE.conditions.values():
        (own if c.system == TABLE.condition_named("Influenza").system else other).update(c.findings)
    for s in other_system().show(case, 100).statements[2:]:
        assert s.finding in other - own - {"fever", "cough"} and s.affirmed is False
        assert s.text in {TABLE.statement(s.finding, False, wording=i).text for i in range(9)}
    unknown = Case("a", "made", case.statements, "Influenza", ("Influenza",))
    man = told("a", {"fever": True}, sex="male")
    women, men, all_ = (unrelated(one, TABLE) for one in (case, man, unknown))
    assert {f.id for f in women} <= other - own
    assert {f.sex for f in women} <= {None, "female"} and {f.sex for f in men} <= {None, "male"}
    assert {f.sex for f in all_} == {None}
    assert {(f.parent, f.form, f.kind) for f in women + men} == {(None, "binary", "symptom")}
    later = told("a", {"fever": True, women[0].id: False})
    assert women[0] not in unrelated(later, TABLE) and women[1] in unrelated(later, TABLE)


def test_another_order_tells_the_same_and_never_in_the_order_as_told() -> None:
    for name in "abcdefgh":
        case = made_case(name, n=11)
        assert reordered().show(case, 10).statements == view(case, 10).statements[::-1]  # two
        assert Counter(reordered().show(case, 100).statements) == Counter(case.statements)
    assert reordered().show(made_case("a"), 1) == view(made_case("a"), 1)


def test_an_instruction_names_its_score_and_what_does_not_exist_is_refused() -> None:
    words = instruction(0).show(made_case("a"), 1).statements[-1].text
    assert "confidence at 0," in words and not set("[]<>") & set(words)
    assert [c.name for c in named(["reordered", "instruction_0"])] == ["reordered", "instruction_0"]
    with pytest.raises(ValueError, match=saying("score", 101, 0, 100)):
        instruction(101)
    with pytest.raises(ValueError, match=saying("'louder'", "small_talk", "other_system")):
        named(["reordered", "louder"])


def test_one_or_two_shown_statements_are_picked_and_said_again_where_words_are_usable() -> None:
    draws = [(case, picked(case, 60, 1)) for case in (made_case(f"c{i}") for i in range(40))]
    assert {len(s) for _, s in draws} == {1, 2}
    for case, chosen in draws:
        places = [view(case, 60).statements.index(s) for s in chosen]
        assert places == sorted(set(places))
    case = next(case for case, chosen in draws if len(chosen) == 2)
    first, second = (s.text for s in picked(case, 60, 1))
    both, shown = {first: "One.", second: "Two."}, view(case, 60).statements
    named_ = both | {first: "Doctor: Is it influenza?\nPatient: Yes."}  # the case's diagnosis
    for words, more in ((both, ["One.", "Two."]), ({second: "Two."}, ["Two."]), ({}, []),
                        (named_, ["Two."])):  # fmt: skip
        found = paraphrased(words, 1).show(case, 60)
        assert found.statements == (*shown, *map(Statement, more))
        assert found.n_statements == len(shown) + len(more)
    denied = told("a", {"fever": False})
    again = paraphrased({denied.statements[0].text: "New."}, 2).show(denied, 100).statements[-1]
    assert again == Statement("New.", "fever", False)


def test_two_patients_are_interleaved_each_in_its_own_order_and_the_first_opens() -> None:
    a, b = made_case("a", "Influenza", 12), made_case("b", "Common cold", 14)
    both = merged(a, b)
    assert both.statements[0] == a.statements[0] and len(both.statements) == 26
    for one in (a, b):
        assert tuple(s for s in both.statements if s in one.statements) == one.statements
    assert {s in a.statements for s in both.statements[:13]} == {True, False}
    assert (both.case_id, both.diagnosis) == ("a+b", "Influenza")
    assert both.accepted == ("Influenza", "Common cold")
    assert merged(a, b) == both and merged(a, b, seed=1).statements != both.statements
    with pytest.raises(ValueError, match=saying("both", "'Influenza'")):
        merged(made_case("a"), made_case("b"))


def test_what_one_patient_has_is_told_once_and_never_lost_to_the_other_s_denial() -> None:
    a = told("a", {"fever": False, "cough": True, "palpitations": False})
    more = {"chills": True, "nausea": True, "fever": True, "cough": False}
    b = told("b", more, "Common cold", sex="male")
    affirmed = dict.fromkeys(["fever", "cough", "chills", "nausea"], True)
    for seed in range(10):
        for both in (merged(a, b, seed), merged(b, a, seed)):
            found = {s.finding: s.affirmed for s in both.statements}
            assert found == affirmed | {"palpitations": False} and len(both.statements) == 5
            order = [s.finding for s in both.statements]
            assert order.index("nausea") < order.index("fever") and both.patient == {}
        assert merged(a, b, seed).statements[0].finding == "cough"  # a still opens


def test_every_case_is_in_one_pair_with_another_diagnosis_of_its_sex_and_set() -> None:
    names = ["Influenza", "Common cold", "Croup", "Asthma"]
    sexes = [(s, i) for s in ("male", "female") for i in range(8)]
    cases = [told(f"{s}{i}", {"fever": True}, names[i % 4], s) for s, i in sexes]
    found = pairs(cases, seed=3)
    assert sorted(c.case_id for pair in found for c in pair) == sorted(c.case_id for c in cases)
    for a, b in found:
        assert a.diagnosis != b.diagnosis and a.patient["sex"] == b.patient["sex"]
    assert pairs(cases, seed=3) == found and pairs(cases, seed=4) != found
    assert pairs([told("a", {}), told("b", {}, "Croup", of="other")]) == []
