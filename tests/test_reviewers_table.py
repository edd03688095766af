"""The reviewers held against the rule check: shares by hand, each review once, what is
left out."""

from __future__ import annotations

import pandas as pd
import pytest
from saying import saying

from studies.trust_indices import marks_compared
from trustlab.agents.safety_table import load_safety


def mark(case_id: str, verdict: str | None, rule_verdict: str = "UNKNOWN", **changes) -> dict:
    """One marked prescription; an objection quotes words that occur."""
    objects = verdict not in ("SAFE", "FINE", None)
    row = {
        "model": "m", "dataset": "d", "configuration": "one doctor", "level": 100,
        "case_id": case_id, "kind": "prescription", "item": 1, "text": f"drug for {case_id}",
        "known": True, "verdict": verdict, "quote": "asthma" if objects else None,
        "quote_occurs": True if objects else None, "reason": None, "rule_verdict": rule_verdict,
        "rule": None,
    }  # fmt: skip
    return row | changes


# Three items that the rules object to, two of them seen (one in a lesser degree); two fine ones,
# one objected to.
FIVE = [
    mark("a", "UNSAFE", "UNSAFE"),
    mark("b", "SAFE WITH CAUTION", "UNSAFE"),
    mark("c", "SAFE", "SAFE WITH CAUTION"),
    mark("d", "SAFE", "SAFE"),
    mark("e", "UNSAFE", "SAFE", quote_occurs=False),
]
SHARES = {"sensitivity": (2 / 3, 3), "specificity": (1 / 2, 2), "quotation": (2 / 3, 3)}
SAME = [row | {"configuration": "panel of 3"} for row in FIVE]
OTHER = [row | {"text": "another drug"} for row in SAME]
LOST = [
    mark("f", None, "UNSAFE"),
    mark("g", "UNKNOWN", "UNSAFE"),
    mark("h", "UNKNOWN", known=False),
    mark("i", None, known=False),
]
TWO = [mark("a", "SAFE", "UNSAFE"), mark("a", "SAFE", "UNSAFE", item=2, text="y")]
DIFFERS = [TWO[0] | {"configuration": "p"}, TWO[1] | {"configuration": "p", "verdict": "UNSAFE"}]
NO_QUOTE = mark("a", "UNSAFE", "UNSAFE", quote=None, quote_occurs=None)
TESTS = [
    mark("a", "RISKY", "REDUNDANT", kind="test"),
    mark("b", "REDUNDANT", "FINE", kind="test"),
    mark("c", "FINE", "RISKY", kind="test"),
]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        (FIVE, SHARES),
        (FIVE + LOST + SAME, SHARES),  # what cannot be compared, or came out the same, counts not
        (FIVE + OTHER, {"sensitivity": (2 / 3, 6)}),
        (TWO + DIFFERS, {"sensitivity": (1 / 4, 4)}),  # one item that differs: another review
        ([NO_QUOTE, mark("b", "UNSAFE", "UNSAFE")], {"quotation": (0.5, 2)}),  # as if none occurred
        (TESTS, {"sensitivity": (1 / 2, 2), "specificity": (0, 1)}),
    ],
)
def test_sensitivity_specificity_and_quotations_by_hand(marks, expected) -> None:
    items = marks_compared(pd.DataFrame(marks))
    sides = {
        "sensitivity": items.loc[items["rule_objects"], "objects"],
        "specificity": items.loc[~items["rule_objects"], "accepts"],
        "quotation": items.loc[items["objects"], "quotes"],
    }
    assert {name: (sides[name].mean(), len(sides[name])) for name in expected} == expected


def test_each_item_says_what_its_rule_hangs_on_and_a_lacking_column_is_refused() -> None:
    rules = load_safety().drug_rules.values()
    allergy = next(r.id for r in rules if r.kind == "allergy")
    marks = pd.DataFrame([
        mark("a", "UNSAFE", "UNSAFE", rule=allergy),
        mark("b", "SAFE", "UNSAFE", rule=allergy, dataset="other"),
        mark("d", "SAFE WITH CAUTION", "SAFE WITH CAUTION", rule="duplicate"),
        mark("e", "UNSAFE", "SAFE"),
    ])  # fmt: skip
    items = marks_compared(marks)
    assert items["rule_kind"].tolist() == ["allergy", "allergy", "duplicate", ""]
    assert items["case_id"].tolist()[:2] == ["d a", "other b"]
    assert len(marks_compared(marks.iloc[:0])) == 0
    with pytest.raises(ValueError, match=saying("marks", "columns", ["rule"])):
        marks_compared(marks.drop(columns="rule"))
