"""The experiment of doctors who vote and reviewers who check, on four patients with a scripted
model: every count by hand.

Doctor by doctor: patient a says fever, cough, fever; b cough, fever, fever; c nothing readable; d
three different things.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest
from asking import ask
from each import each
from fake_panel import FakePanel, Wordy, by_case, case, marks_json, opinion, plan_json
from resampled import one_row
from saying import saying

from studies.trust_indices import ONE, TrustRun, no_answer, trust
from trustlab.metrics.trust_table import trust_indices
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.parsing.reply import CUT
from trustlab.records import Opinion, Reply

FEVER, COUGH = "Fever disease", "Cough disease"
HALF = 1 / math.sqrt(2)
DONE = ["chest radiograph", "ultrasound of the groin"]
CASES = [
    case("a", FEVER, allergies=["penicillin"], tests_done=DONE, age=30, sex="male"),
    *(case(case_id, FEVER) for case_id in "bcd"),
]
OF_A = [opinion(FEVER, "Fever."), opinion(COUGH, "Cough.")]
OF_D = [opinion(COUGH, "Cough."), opinion(FEVER, "Cough."), opinion("Another cough", "Cough.")]
OPINED = by_case(
    a=[*OF_A, opinion("fever disease!", "Fever and cough.")],
    b=[opinion(COUGH, "Fever."), opinion(FEVER, "Fever."), f"[{FEVER}]"],
    c=["It may be anything."] * 3,
    d=OF_D,
)
OPINION = opinion(FEVER, "Fever.")
QUOTED = ("penicillin", None, "old age")
RX_A = marks_json("rating", "UNSAFE", "SAFE", "SAFE WITH CAUTION", quotes=QUOTED)
TESTS_A = marks_json("flag", "FINE", "RISKY", "FINE")
ASKED_FOR = ["ultrasound of the groin", "aura reading", "chest X-ray"]
PLAN_A = plan_json("amoxicillin", "zelotrine", "ibuprofen", tests=ASKED_FOR)


def planned(request: Request, i: int) -> str:
    """For fever of patient a a whole plan, of b one drug; for cough nothing that can be read."""
    of_cough = f"The diagnosis: {COUGH.lower()}\n" in request.messages[1][1]
    return "Rest." if of_cough else str(by_case(a=PLAN_A, b=plan_json("paracetamol"))(request, i))


def scripted(name: str = "m1", **script: Any) -> FakePanel:
    reviewed = by_case(a=RX_A, b="All is well.")
    usual = {"doctor": OPINED, "plan": planned, "review_prescriptions": reviewed}
    return FakePanel(name, **(usual | {"review_tests": TESTS_A} | script))


def run_of(models: list[Any] | None = None, **options: Any) -> TrustRun:
    return ask(trust, CASES, models or [scripted()], encoder=Wordy(), **options)


@pytest.fixture(scope="module")
def run() -> TrustRun:
    return run_of()


def row(run: TrustRun, configuration: str, case_id: str) -> dict[str, Any]:
    where = {"configuration": configuration, "case_id": case_id, "safety": True}
    return dict(one_row(run.reviews, **where))


def part(found: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(found[name] for name in names)


PANEL = "panel of 3"
VOTE = ("diagnoses", "diagnosis", "tied", "correct", "correct_share")
RX = ("n_prescriptions", "n_safe", "n_caution", "n_unsafe", "n_rx_unknown", "n_rx_unreadable")
TESTS = ("n_tests", "n_unflagged", "n_risky", "n_redundant", "n_tests_unknown")
TESTS += ("n_tests_unreadable",)


def test_votes_and_cosines_by_hand(run: TrustRun) -> None:
    fever, cough = FEVER.lower(), COUGH.lower()
    assert part(row(run, PANEL, "a"), *VOTE) == ((fever, cough, fever), fever, (), 1, 1)
    assert part(row(run, ONE, "a"), *VOTE) == ((fever,), fever, (), 1, 1)
    assert part(row(run, PANEL, "b"), *VOTE) == ((cough, fever, fever), fever, (), 1, 1)
    assert part(row(run, ONE, "b"), *VOTE) == ((cough,), cough, (), 0, 0)
    tie = part(row(run, PANEL, "d"), *VOTE[1:])
    # SHA-256 of "d" leaves 1 when divided by three: the second by name
    assert tie[:3] == (cough, ("another cough", cough, fever), 0)
    assert tie[3] != tie[3]  # NaN: no source of names knows "another cough"
    cosines = {(c, i): row(run, c, i)["cosine"] for c in (ONE, PANEL) for i in "abd"}
    by_hand = {(ONE, "a"): 1, (ONE, "b"): 0, (ONE, "d"): 1, (PANEL, "a"): (1 + 1 + HALF) / 3}
    by_hand |= {(PANEL, "b"): (0 + 1) / 2, (PANEL, "d"): 2 / 3}  # b's third gave no reasoning
    assert cosines == pytest.approx(by_hand, abs=1e-6)


def test_marks_are_counted_and_what_the_table_does_not_know_is_unknown(run: TrustRun) -> None:
    for configuration in (ONE, PANEL):  # the same diagnosis, so the same plan
        found = row(run, configuration, "a")
        assert part(found, *RX) == (3, 0, 1, 1, 1, 0)  # zelotrine was called SAFE
        assert part(found, *TESTS) == (3, 2, 0, 0, 1, 0)  # an aura reading was called RISKY
        assert found["plan_missing"] == ""
    counts = part(row(run, PANEL, "b"), *RX, *TESTS, "plan_missing")
    assert counts == (1, 0, 0, 0, 0, 1, *[0] * 6, "")  # the review could not be read
    assert part(row(run, ONE, "b"), *RX, *TESTS, "plan_missing") == (*[0] * 12, "no JSON")
    # Panel, safety on: two rated prescriptions, both objected to; two rated tests, none flagged.
    found = trust_indices(run.reviews)
    indices = found.set_index(["configuration", "safety", "metric"])["value"]
    percent = indices[PANEL, True][["unsafe_rx_percent", "test_alerts_percent", "osi", "accuracy"]]
    assert percent.tolist() == [50, 0, 75, pytest.approx(2 / 4)]  # one of the two with caution


@pytest.fixture
def claims_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few replies could be read, something is claimed of them."""
    monkeypatch.setattr("trustlab.parsing.counts.LEAST_READ", 0)


@pytest.mark.usefixtures("claims_of_few")
def test_a_reply_that_is_no_answer_is_counted_and_its_panel_is_missing_not_wrong() -> None:
    cut, lost = Reply(None, missing=f"{CUT} (512)"), Reply(None, missing="refused by the server")
    of_c = ["It may be anything.", cut, cut]
    said = by_case(a=OPINION, b=[cut, lost, cut], c=of_c, d=[cut, OPINION, cut])
    run = run_of([scripted(doctor=said, plan="Rest.")])
    assert [row(run, PANEL, i)["n_no_answer"] for i in "abcd"] == [0, 3, 2, 2]
    assert [row(run, ONE, i)["n_no_answer"] for i in "abcd"] == [0, 1, 0, 1]
    found = trust_indices(run.reviews).query("safety and metric == 'accuracy'")
    indices = found.set_index("configuration")[["value", "n"]]
    assert indices.loc[PANEL].tolist() == [pytest.approx(2 / 3), 3]
    assert indices.loc[ONE].tolist() == [0.5, 2]
    assert no_answer(Opinion("m1", 0, None, None, f"{CUT}: 512", "<thinking"))  # whatever it says
    assert not no_answer(Opinion("m1", 0, None, None, "no diagnosis", "Well."))


def facts_of(folder) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def test_each_reply_is_asked_for_once_and_a_second_run_asks_nothing(tmp_path) -> None:
    """Twelve opinions; plans for a, b and d of one doctor and for b of the panel; a's two reviews
    and one of b's plan."""
    first = run_of([model := scripted()], run_dir=tmp_path)
    facts = facts_of(tmp_path)
    # the panel's plans for a and d, a's reviews
    assert (facts["calls_made"], facts["calls_from_cache"]) == (12 + 4 + 3, 4)
    purposes = ("doctor", "plan", "review_prescriptions", "review_tests")
    assert [len(model.of(p)) for p in purposes] == [4, 4, 2, 1]
    second = run_of([FakePanel("m1")], run_dir=tmp_path)  # has no script: asked, it would fail
    again = facts_of(tmp_path)
    assert (again["calls_made"], again["calls_from_cache"]) == (0, 19 + 4)
    for name in ("reviews", "opinions", "marks"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))


PROXY = "proxy: wordy, no biomedical encoder"


@each(
    ("options", "cosines", "proxy"),
    [
        ({"medical_encoder": Wordy(room=2)}, (1, (1 + 1 + HALF) / 3), ""),
        ({}, (1, (1 + 1 + HALF) / 3), PROXY),  # the general one stands in by name
        ({"medical_proxy": False}, (math.nan, math.nan), ""),
    ],
)
def test_a_medical_encoder_gives_its_own_cosines_or_a_named_one_stands_in(
    options, cosines, proxy
) -> None:
    run = run_of(**options)
    found = [row(run, c, "a")["cosine_med"] for c in (ONE, PANEL)]
    assert found == pytest.approx(cosines, nan_ok=True)
    assert set(run.reviews["cosine_med_proxy"]) == {run.parameters["medical_proxy"]} == {proxy}
    why = row(run, ONE, "a")["cosine_med_missing"]
    assert "medical encoder" in why if cosines[0] != 1 else why == ""
    indices = trust_indices(run.reviews, "medguard-x")
    rdc = indices[indices["metric"] == "rdc"]
    assert set(rdc["proxy"]) == {proxy} and rdc["value"].isna().all() == bool(why)


def test_a_panel_of_others_has_their_doctors_in_turn_beside_the_model() -> None:
    alone = run_of(n_doctors=1)
    assert set(alone.reviews["configuration"]) == {ONE} and len(alone.reviews) == 8
    first, other = scripted(), scripted("m2", doctor=opinion(COUGH, "Cough."))
    model = FakePanel("m0")  # has no script: asked, it would fail
    run = run_of([model], panel=[first, other])
    assert set(run.reviews["model"]) == {"m0"}
    assert set(run.reviews["configuration"]) == {ONE, PANEL}
    speakers = run.opinions[run.opinions["case_id"].eq("a")]
    assert speakers["speaker"].tolist() == ["m1", "m2", "m1"]
    assert row(run, PANEL, "a")["diagnoses"] == (FEVER.lower(), COUGH.lower(), COUGH.lower())
    assert row(run, PANEL, "c")["diagnoses"] == (None, COUGH.lower(), None)
    assert len(first.of("doctor")) == len(other.of("doctor")) == 4
    asked = [run.parameters[name] for name in ("models", "panel")]
    assert asked == [{"m0": "r1"}, {"m1": "r1", "m2": "r1"}]
    two = [scripted(f"m{i}") for i in (1, 2)]
    with pytest.raises(ValueError, match=saying("panel", 2, "n_doctors", 1)):
        run_of([FakePanel("m0")], panel=two, n_doctors=1)


@pytest.mark.usefixtures("claims_of_few")
def test_a_reviewer_of_its_own_marks_all_plans() -> None:
    unsafe = marks_json("rating", "UNSAFE")
    strict = FakePanel("strict", review_prescriptions=unsafe, review_tests="[]")
    run = run_of([model := scripted()], reviewer=strict)
    assert not model.of("review_prescriptions") and not model.of("review_tests")
    assert part(row(run, PANEL, "b"), *RX) == (1, 0, 0, 1, 0, 0)
    # the second is unknown, the third was not marked
    assert part(row(run, PANEL, "a"), *RX) == (3, 0, 0, 1, 1, 1)
    assert run.parameters["reviewer"] == {"strict": "r1"}
    assert set(run.calls["model"]) == {"m1", "strict"}


@each("cached", [False, True])
def test_a_doctors_model_that_reviews_for_all_is_counted_once(cached: bool) -> None:
    first, second = scripted(), scripted("m2")
    models = [CachedModel(first, None), CachedModel(second, None)] if cached else [first, second]
    run = run_of(models, reviewer=models[1])
    made = run.calls.groupby("model")["n_made"].sum().to_dict()
    asked = {m.name: sum(r.n for call in m.asked for r in call) for m in (first, second)}
    assert made == asked and not first.of("review_tests")
    if cached:  # what was given open stays open
        models[1].generate(second.of("review_tests"))
