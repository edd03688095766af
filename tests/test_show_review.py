"""A chart review to read: chart, words, opinions, vote, plan and marks are all there, and nothing
of a model unescaped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trustlab.agents.panel import Checked, Proposed, Review
from trustlab.html.show import chart_review, worth_reading
from trustlab.records import Case, Mark, Opinion, Panel, Plan, Prescription, Statement, View

HOSTILE = "<img src=x onerror=alert(1)>"
ESCAPED = "&lt;img src=x onerror=alert(1)&gt;"
PLAN = Plan(
    (
        Prescription("amoxicillin", "500 mg", "by mouth"),
        Prescription("zelotrine", "1 g", "by mouth"),
    ),
    ("spirometry",),
)
REVIEW = Review(
    (Mark("UNSAFE", "penicillin", True, "allergic to it"), Mark("SAFE", "a quotation", False)),
    (Mark(None, missing="no JSON list"),),
)
RULES = Review(
    (Mark("UNSAFE", "penicillin", True, "a penicillin", "r1"), Mark("UNKNOWN")), (Mark("FINE"),)
)


def checked(
    diagnoses=("Influenza", "Pneumonia", None),
    plan: Plan | None = PLAN,
    thinking: str = "A fever, so influenza.",
) -> Checked:
    """Doctors who differ; a plan with an allergy in it, a drug that no table knows, and a test
    whose mark is unreadable."""
    patient = {"age": 40, "sex": "female", "allergies": ("penicillin",)}
    told = (Statement("Doctor: Any fever?\nPatient: Yes, since Monday."),)
    opinions = tuple(
        Opinion("m", i, thinking if d else None, d, "" if d else "no diagnosis in square brackets")
        for i, d in enumerate(diagnoses)
    )
    tied = ("Influenza", "Pneumonia") if set(diagnoses) >= {"Influenza", "Pneumonia"} else ()
    panel = Panel(
        opinions, diagnoses, "Influenza", tied, tuple(0.4 if d else float("nan") for d in diagnoses)
    )
    return Checked(
        model="m",
        configuration="one doctor" if len(diagnoses) == 1 else f"panel of {len(diagnoses)}",
        n_doctors=len(diagnoses),
        view=View(Case("case-7", "made", told, "Influenza", ("Influenza",), patient), 100, told),
        panel=panel,
        medical_cosines=None,
        proposed=Proposed(plan, "" if plan else "no JSON object"),
        review=REVIEW if plan else None,
        rules=RULES if plan else None,
        correct=1.0,
    )


def test_a_review_tells_the_whole_story() -> None:
    page = chart_review(checked())
    for said in (
        "case-7: panel of 3, 100 % told", "Age: 40 years", "Allergies: penicillin",
        "Yes, since Monday.", "A fever, so influenza.", "cosine of reasoning and diagnosis 0.40",
        "(no readable diagnosis)", "no diagnosis in square brackets",
        ("Influenza 1, Pneumonia 1, unreadable 1; the diagnosis is Influenza"
         " (a tie, drawn by the case"),
        "✓ right", "amoxicillin, 500 mg, by mouth", "allergic to it", "a penicillin", "spirometry",
        "UNREADABLE", "no JSON list", "What it was: Influenza",
    ):  # fmt: skip
        assert said in page, said


def test_without_a_plan_the_review_says_why() -> None:
    page = chart_review(checked(plan=None))
    assert "There is no plan to review: no JSON object" in page and "Rule check" not in page


def test_every_word_of_a_model_or_patient_is_escaped() -> None:
    plan = Plan((Prescription(HOSTILE, HOSTILE, HOSTILE),), (HOSTILE,))
    mark = Mark("UNSAFE", HOSTILE, False, HOSTILE)
    one = checked((HOSTILE, "Influenza", "Influenza"), plan, HOSTILE)
    case = replace(
        one.view.case, case_id=HOSTILE, diagnosis=HOSTILE, patient={"allergies": (HOSTILE,)}
    )
    view = View(case, 100, (Statement(f"Patient: {HOSTILE}"), Statement(HOSTILE)))
    opinions = tuple(replace(o, model=HOSTILE, missing=HOSTILE) for o in one.panel.opinions)
    panel = replace(one.panel, opinions=opinions, diagnosis=HOSTILE)
    lost = Mark(None, missing=HOSTILE)
    page = chart_review(
        replace(
            one,
            view=view,
            panel=panel,
            review=Review((mark,), (lost,)),
            rules=Review((mark,), (mark,)),
        )
    )
    assert "<img" not in page and page.count(ESCAPED) > 15


def test_the_case_worth_reading_has_doctors_who_differ_and_a_plan_with_objections() -> None:
    best, agreed = checked(), checked(("Influenza",) * 3)
    without, alone = checked(plan=None), checked(("Influenza",))
    calm = replace(best, rules=Review((Mark("SAFE"), Mark("SAFE")), (Mark("FINE"),)))
    for others in ([agreed, without, alone, calm, best], [best, calm, alone, without, agreed]):
        assert worth_reading(others, "m") is best
    assert worth_reading([without], "m") is without
    with pytest.raises(ValueError, match=r"nothing was asked of 'n'; there are \['m'\]"):
        worth_reading([best], "n")
