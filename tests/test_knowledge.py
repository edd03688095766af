"""The knowledge table: its parts fit, and its words keep apart what must be apart."""

from __future__ import annotations

from collections import Counter

from trustlab.knowledge.findings import (
    GRADES,
    Finding,
    answer_text,
    load_knowledge,
    phrase_list,
    say,
)
from trustlab.records import normalise

TABLE = load_knowledge()
FINDINGS, CONDITIONS = TABLE.findings, TABLE.conditions


def phrasings(finding: Finding) -> list[str]:
    return [finding.question, *finding.affirm, *finding.deny]


def test_every_finding_can_be_asked_affirmed_and_denied_in_several_ways() -> None:
    for f in FINDINGS.values():
        assert f.question.endswith("?") and len(f.affirm) >= 4 and len(f.deny) >= 3, f.id
        for p in (*f.affirm, *f.deny):
            assert p == p.strip() and p.endswith(".") and "\n" not in p, f.id
        slot = f.form not in ("binary", "flag")
        assert all(p.count("{value}") == slot for p in f.affirm), f.id
        assert not any("{" in p for p in (f.question, *f.deny)), f.id


def test_no_phrasing_name_or_value_stands_twice() -> None:
    count = Counter(normalise(p) for f in FINDINGS.values() for p in phrasings(f))
    assert [p for p, n in count.items() if n > 1] == [] and len(count) > 2000
    owned = {(normalise(n), c.id) for c in CONDITIONS.values() for n in c.names}
    assert [n for n, times in Counter(n for n, _ in owned).items() if times > 1 or not n] == []
    said = [(v.kind, normalise(v.phrase)) for v in TABLE.values.values()]
    assert len(said) == len(set(said))


def test_only_a_history_names_a_condition() -> None:
    """A history of it, of a relative's or of a contact's; no symptom, no value."""
    spoken = [(f.kind, " | ".join(map(normalise, phrasings(f)))) for f in FINDINGS.values()]
    spoken += [("value", normalise(v.phrase)) for v in TABLE.values.values()]
    names = TABLE.condition_of_name
    named = [kind for kind, said in spoken if any(f" {name} " in f" {said} " for name in names)]
    assert set(named) == {"history"} and len(named) == 26


def test_names_are_compared_without_case_spacing_and_punctuation() -> None:
    for written in (" heart-ATTACK. ", "Possible NSTEMI / STEMI", "myocardial  infarction"):
        found = TABLE.condition_named(written)
        assert found is not None and found.id == "myocardial_infarction"
    assert len(TABLE.condition_of_ddxplus) == 49 and len(CONDITIONS) == 65
    assert TABLE.condition_named("heart") is None and TABLE.condition_named("") is None
    assert TABLE.names_for("Possible NSTEMI / STEMI")[1] == "Myocardial infarction"


def test_conditions_refer_to_what_exists_and_fits() -> None:
    kinds: dict[str | None, set[str]] = {None: set()}
    for value in TABLE.values.values():
        kinds.setdefault(value.kind, set()).add(value.id)
    for c in CONDITIONS.values():
        assert dict(c.findings) == {f: GRADES[g] for f, g in c.grades.items()}
        assert c.prior > 0 and c.sex in ("any", "female", "male"), c.id
        assert 0 <= c.age[0] < c.age[1] <= 120, c.id
        own = [FINDINGS[f] for f in c.findings]
        assert any(f.kind == "symptom" and not f.parent for f in own), c.id
        for f in own:
            assert f.form == "binary" and f.sex in (None, c.sex if c.sex != "any" else f.sex), f.id
        for f in (*own, *(FINDINGS[f] for f in c.values)):
            assert f.parent is None or f.parent in c.findings, (c.id, f.id)
        for name, chances in c.values.items():
            f = FINDINGS[name]
            other = {"none", *kinds[f.values]}
            allowed = {"scale": {"mean", "sd"}, "flag": {"flag"}}.get(f.form, other)
            assert chances and set(chances) <= allowed, (c.id, f.id)
            assert f.form == "scale" or all(0 <= p <= 1 for p in chances.values()), (c.id, f.id)
    for f in FINDINGS.values():
        assert f.kind in ("symptom", "history") and 0 < f.background < 1, f.id
        assert (f.values in kinds) if f.form in ("several", "choice") else (f.values is None), f.id
        assert f.parent is None or FINDINGS[f.parent].parent is None, f.id
    assert set(FINDINGS) == {f for c in CONDITIONS.values() for f in (*c.findings, *c.values)}


def test_sentences() -> None:
    affirm, deny = ("In {value}.", "It is in {value}."), ("No.", "Nowhere.")
    f = Finding("x", "x", "symptom", "Where?", affirm, deny, form="several")
    assert [phrase_list([*"abc"][:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert answer_text(f, True, ["my hand", "my foot"]) == "In my hand and my foot."
    assert answer_text(f, True, ["my hand"], wording=3) == "It is in my hand."
    assert [answer_text(f, False, wording=n) for n in (1, 2)] == ["Nowhere.", "No."]
    assert say(f, "No.") == "Doctor: Where?\nPatient: No."
