"""A safety table of five drugs and four tests, small enough to check a plan against it by hand."""

from __future__ import annotations

from trustlab.safety.table import ChartFact, Entry, Regimen, Rule, Safety, Usual

USUAL_DOSE = (Regimen("1 g once a day", "by mouth"),)


def by_id(*things):
    return {thing.id: thing for thing in things}


def drug(name: str, *classes: str, synonyms: tuple[str, ...] = ()) -> Entry:
    return Entry(name, name, synonyms, classes, USUAL_DOSE)


def rule(id: str, items: str, kind: str, looked_for: str | float, verdict: str) -> Rule:
    number = None if isinstance(looked_for, str) else float(looked_for)
    values = frozenset() if number is not None else frozenset(str(looked_for).split())
    return Rule(id, frozenset(items.split()), kind, values, number, verdict, f"why {id}", "made")


CAUTION = "SAFE WITH CAUTION"
MADE = Safety(
    allergies=by_id(
        ChartFact("penicillin", "penicillin", ("Pen V",)), ChartFact("contrast", "X-ray contrast")
    ),
    illnesses=by_id(
        ChartFact("peptic_ulcer", "peptic ulcer"),
        ChartFact("asthma", "asthma"),
        ChartFact("pacemaker", "pacemaker"),
    ),
    pregnancy=by_id(ChartFact("pregnant", "pregnant"), ChartFact("not_pregnant", "not pregnant")),
    drugs=by_id(
        drug("amoxicillin", "penicillin", synonyms=("Amoxil",)),
        drug("cefalexin", "cephalosporin"),
        drug("ibuprofen", "nsaid"),
        drug("diclofenac", "nsaid"),
        drug("warfarin", "anticoagulant"),
    ),
    tests=by_id(
        Entry("ct", "CT of the abdomen", ("abdominal CT",), ("ionising",)),
        Entry("xray", "chest X-ray", (), ("ionising",)),
        Entry("ultrasound", "ultrasound of the abdomen"),
        Entry("troponin", "troponin", serial=True),
    ),
    drug_rules=by_id(
        rule("allergy", "penicillin", "allergy", "penicillin", "UNSAFE"),
        rule("cross", "cephalosporin", "allergy", "penicillin", CAUTION),
        rule("bleeding", "nsaid", "medication", "anticoagulant", "UNSAFE"),
        rule("two_nsaids", "nsaid", "medication", "nsaid", CAUTION),
        rule("ulcer", "nsaid", "condition", "peptic_ulcer", "UNSAFE"),
        rule("airways", "ibuprofen", "condition", "asthma", CAUTION),
        rule("unborn", "nsaid warfarin", "pregnancy", "pregnant", "UNSAFE"),
        rule("child", "cefalexin", "age_below", 12, "UNSAFE"),
        rule("old", "nsaid", "age_from", 75, CAUTION),
        rule("kidneys", "nsaid", "egfr_below", 30, "UNSAFE"),
    ),
    test_rules=by_id(
        rule("radiation", "ionising", "pregnancy", "pregnant", "RISKY"),
        rule("contrast", "ct", "allergy", "contrast", "RISKY"),
        rule("seen", "ultrasound", "also", "ct", "REDUNDANT"),
        rule("seen_before", "ultrasound", "done", "ct", "REDUNDANT"),
        rule("bruise", "ultrasound", "medication", "anticoagulant", "RISKY"),
        rule("women", "xray", "sex", "female", "RISKY"),
    ),
    plans={"influenza": Usual((("ibuprofen",),), ("xray",))},
    sources={"made": "made for the tests"},
)
