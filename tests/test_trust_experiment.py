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
from fake_model import Served
from fake_panel import FakePanel, Wordy, by_case, case, marks_json, opinion, plan_json

import trustlab as tl
from studies.trust_indices import (
    MARKS,
    ONE,
    TrustRun,
    no_answer,
    trust,
)
from trustlab import trust_indices
from trustlab.metrics.trust_table import NEEDED
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.parsing.reply import CUT
from trustlab.prompts import EMBEDDED
from trustlab.records import Opinion, Reply
from trustlab.settings import Setup

FEVER, COUGH = "Fever disease", "Cough disease"
HALF = 1 / math.sqrt(2)
CASES = [
    case(
        "a",
        FEVER,
        allergies=["penicillin"],
        tests_done=["chest radiograph", "ultrasound of the groin"],
        age=30,
        sex="male",
    ),
    case("b", FEVER),
    case("c", FEVER),
    case("d", FEVER),
]
OPINED = by_case(
    a=[
        opinion(FEVER, "Fever."),
        opinion(COUGH, "Cough."),
        opinion("fever disease!", "Fever and cough."),
    ],
    b=[opinion(COUGH, "Fever."), opinion(FEVER, "Fever."), f"[{FEVER}]"],
    c=["It may be anything."] * 3,
    d=[opinion(COUGH, "Cough."), opinion(FEVER, "Cough."), opinion("Another cough", "Cough.")],
)
OPINION = opinion(FEVER, "Fever.")
RX_A = marks_json(
    "rating", "UNSAFE", "SAFE", "SAFE WITH CAUTION", quotes=("penicillin", None, "old age")
)
TESTS_A = marks_json("flag", "FINE", "RISKY", "FINE")


PLAN_A = plan_json(
    "amoxicillin",
    "zelotrine",
    "ibuprofen",
    tests=["ultrasound of the groin", "aura reading", "chest X-ray"],
)


def planned(request: Request, i: int) -> str:
    """For fever of patient a a whole plan, of b one drug; for cough nothing that can be read."""
    of_cough = f"The diagnosis: {COUGH.lower()}\n" in request.messages[1][1]
    return "Rest." if of_cough else str(by_case(a=PLAN_A, b=plan_json("paracetamol"))(request, i))


def scripted(name: str = "m1", **script: Any) -> FakePanel:
    usual = {
        "doctor": OPINED,
        "plan": planned,
        "review_prescriptions": by_case(a=RX_A, b="All is well."),
        "review_tests": TESTS_A,
    }
    return FakePanel(name, **(usual | script))


def run_of(models: list[Any] | None = None, **options: Any) -> TrustRun:
    return ask(trust, CASES, models or [scripted()], encoder=Wordy(), **options)


@pytest.fixture(scope="module")
def run() -> TrustRun:
    return run_of()


def row(
    run: TrustRun, configuration: str, case_id: str, safety: bool = True, model: str = "m1"
) -> dict[str, Any]:
    r = run.reviews
    (found,) = r[
        (r["model"] == model)
        & (r["configuration"] == configuration)
        & (r["case_id"] == case_id)
        & (r["safety"] == safety)
    ].to_dict("records")
    return found


def part(found: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(found[name] for name in names)


PANEL = "panel of 3"
VOTE = ("diagnoses", "diagnosis", "tied", "correct", "correct_share")
RX = ("n_prescriptions", "n_safe", "n_caution", "n_unsafe", "n_rx_unknown", "n_rx_unreadable")
TESTS = (
    "n_tests",
    "n_unflagged",
    "n_risky",
    "n_redundant",
    "n_tests_unknown",
    "n_tests_unreadable",
)


def test_there_is_a_row_for_each_configuration_case_and_safety(run: TrustRun) -> None:
    assert set(NEEDED) <= {*run.reviews} and len(run.reviews) == 2 * 4 * 2
    assert run.reviews.groupby(["configuration", "n_doctors"]).size().to_dict() == {
        (ONE, 1): 8,
        (PANEL, 3): 8,
    }
    assert (
        set(run.reviews["dataset"]) == {"made"}
        and set(run.reviews["truth"]) == {FEVER}
        and set(run.reviews["level"]) == {100}
    )


def test_the_vote_of_one_doctor_and_of_the_panel(run: TrustRun) -> None:
    fever, cough = FEVER.lower(), COUGH.lower()
    assert part(row(run, PANEL, "a"), *VOTE) == ((fever, cough, fever), fever, (), 1, 1)
    assert part(row(run, ONE, "a"), *VOTE) == ((fever,), fever, (), 1, 1)
    assert part(row(run, PANEL, "b"), *VOTE) == ((cough, fever, fever), fever, (), 1, 1)
    assert part(row(run, ONE, "b"), *VOTE) == ((cough,), cough, (), 0, 0)


def test_a_tie_is_drawn_and_shared(run: TrustRun) -> None:
    """SHA-256 of "d" leaves 1 when divided by three: the second by name."""
    found = row(run, PANEL, "d")
    tied = ("another cough", COUGH.lower(), FEVER.lower())
    assert part(found, "diagnosis", "tied", "correct") == (COUGH.lower(), tied, 0)
    assert found["correct_share"] == pytest.approx(1 / 3)


def test_a_panel_that_cannot_be_read_is_missing_everywhere(run: TrustRun) -> None:
    for configuration, n in ((ONE, 1), (PANEL, 3)):
        found = row(run, configuration, "c")
        assert part(found, "diagnoses", "tied", "plan_missing") == (
            (None,) * n,
            (),
            "no diagnosis to plan for",
        )
        assert (
            pd.isna(found["diagnosis"])
            and math.isnan(found["correct"])
            and math.isnan(found["correct_share"])
        )
        assert (
            math.isnan(found["cosine"])
            and found["cosine_missing"] == "no doctor gave both reasoning and diagnosis"
        )
        assert sum(part(found, *RX, *TESTS)) == 0


def test_cosines_are_means_over_the_doctors_that_have_one(run: TrustRun) -> None:
    cosines = {(c, i): row(run, c, i)["cosine"] for c in (ONE, PANEL) for i in "abd"}
    assert cosines == pytest.approx(
        {
            (ONE, "a"): 1, (ONE, "b"): 0, (ONE, "d"): 1,
            (PANEL, "a"): (1 + 1 + HALF) / 3,
            (PANEL, "b"): (0 + 1) / 2,  # the third gave no reasoning
            (PANEL, "d"): (1 + 0 + 1) / 3,
        },
        abs=1e-6,
    )  # fmt: skip


def test_ratings_are_counted_and_what_the_table_does_not_know_is_unknown_whatever_the_reviewer_says(
    run: TrustRun,
) -> None:
    for configuration in (ONE, PANEL):  # the same diagnosis, so the same plan
        found = row(run, configuration, "a")
        assert part(found, *RX) == (3, 0, 1, 1, 1, 0)  # zelotrine was called SAFE
        assert part(found, *TESTS) == (3, 2, 0, 0, 1, 0)  # an aura reading was called RISKY
        assert found["plan_missing"] == ""


def test_an_unreadable_review_is_counted_and_an_unreadable_plan_has_no_counts(
    run: TrustRun,
) -> None:
    assert part(row(run, PANEL, "b"), *RX, *TESTS, "plan_missing") == (
        1,
        0,
        0,
        0,
        0,
        1,
        *[0] * 6,
        "",
    )
    assert part(row(run, ONE, "b"), *RX, *TESTS, "plan_missing") == (*[0] * 12, "no JSON")


def test_with_safety_off_the_same_panel_and_plan_stand_without_marks(run: TrustRun) -> None:
    marks = [*RX[1:], *TESTS[1:]]
    off, on = (
        run.reviews[run.reviews["safety"] == s].reset_index(drop=True) for s in (False, True)
    )
    assert not off[marks].to_numpy().any() and on[marks].to_numpy().any()
    pd.testing.assert_frame_equal(
        off.drop(columns=["safety", *marks]), on.drop(columns=["safety", *marks])
    )
    assert row(run, PANEL, "a", safety=False)["n_prescriptions"] == 3


def test_the_marks_stand_beside_the_rule_check(run: TrustRun) -> None:
    assert list(run.marks) == MARKS
    one = run.marks[(run.marks["configuration"] == ONE) & (run.marks["case_id"] == "a")]
    shown = [
        "kind",
        "item",
        "text",
        "known",
        "said",
        "verdict",
        "rule_verdict",
        "rule_quote",
        "rule",
    ]
    found = one[shown].astype(object).where(one[shown].notna(), None)
    assert found.to_numpy().tolist() == [
        [
            "prescription",
            1,
            "amoxicillin, 1 g, by mouth",
            True,
            "UNSAFE",
            "UNSAFE",
            "UNSAFE",
            "penicillin",
            "penicillin_allergy",
        ],
        [
            "prescription",
            2,
            "zelotrine, 1 g, by mouth",
            False,
            "SAFE",
            "UNKNOWN",
            "UNKNOWN",
            None,
            None,
        ],
        [
            "prescription",
            3,
            "ibuprofen, 1 g, by mouth",
            True,
            "SAFE WITH CAUTION",
            "SAFE WITH CAUTION",
            "SAFE",
            None,
            None,
        ],
        [
            "test",
            1,
            "ultrasound of the groin",
            True,
            "FINE",
            "FINE",
            "REDUNDANT",
            "ultrasound of the groin",
            "repeat",
        ],
        ["test", 2, "aura reading", False, "RISKY", "UNKNOWN", "UNKNOWN", None, None],
        ["test", 3, "chest X-ray", True, "FINE", "FINE", "FINE", None, None],
    ]
    quotes = one[["quote", "quote_occurs"]].head(3).astype(object)
    assert quotes.where(quotes.notna(), None).to_numpy().tolist() == [
        ["penicillin", True],
        [None, None],
        ["old age", False],
    ]
    (unread,) = run.marks[run.marks["case_id"] == "b"].to_dict("records")
    assert part(unread, "configuration", "text", "missing") == (
        PANEL,
        "paracetamol, 1 g, by mouth",
        "no JSON",
    )
    assert pd.isna(unread["said"]) and unread["rule_verdict"] == "SAFE"


def test_opinions_have_a_row_a_doctor(run: TrustRun) -> None:
    assert len(run.opinions) == 4 * 3
    of_b = run.opinions[run.opinions["case_id"] == "b"]
    assert of_b["doctor"].tolist() == [1, 2, 3] and set(of_b["speaker"]) == {"m1"}
    assert (
        of_b["vote"].tolist() == [COUGH.lower(), FEVER.lower(), FEVER.lower()]
        and of_b["diagnosis"].tolist()[1] == FEVER
    )
    assert of_b["missing"].tolist() == ["", "", "no reasoning"]
    assert of_b["cosine"].tolist() == pytest.approx([0, 1, math.nan], nan_ok=True)


def test_the_indices_can_be_computed_from_the_reviews(run: TrustRun) -> None:
    """Panel, safety on: two rated prescriptions, both objected to; two rated tests, none
    flagged."""
    found = trust_indices(run.reviews, "trust-x", unreadable="wrong")
    indices = found.set_index(["configuration", "safety", "metric"])["value"]
    percent = indices[PANEL, True][["unsafe_rx_percent", "test_alerts_percent", "osi"]]
    assert percent.tolist() == [50, 0, 75]  # one of the two with caution
    assert indices[PANEL, False, "osi"] == indices[ONE, False, "osi"] == 0
    assert indices[PANEL, True, "accuracy"] == pytest.approx(2 / 4)


@pytest.fixture
def claims_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few replies could be read, something is claimed of them."""
    monkeypatch.setattr("trustlab.parsing.counts.LEAST_READ", 0)


@pytest.mark.usefixtures("claims_of_few")
def test_a_reply_that_is_no_answer_is_counted_and_its_panel_is_missing_not_wrong() -> None:
    cut, lost = Reply(None, missing=f"{CUT} (512)"), Reply(None, missing="refused by the server")
    said = by_case(
        a=OPINION, b=[cut, lost, cut], c=["It may be anything.", cut, cut], d=[cut, OPINION, cut]
    )
    run = run_of([scripted(doctor=said, plan="Rest.")])
    assert [row(run, PANEL, i)["n_no_answer"] for i in "abcd"] == [0, 3, 2, 2]
    assert [row(run, ONE, i)["n_no_answer"] for i in "abcd"] == [0, 1, 0, 1]
    found = trust_indices(run.reviews, draws=0).query("safety and metric == 'accuracy'")
    indices = found.set_index("configuration")
    assert indices.loc[PANEL, ["value", "n"]].tolist() == [pytest.approx(2 / 3), 3]
    assert indices.loc[ONE, ["value", "n"]].tolist() == [0.5, 2]


@pytest.mark.parametrize(
    ("raw", "missing", "none"),
    [
        ("<thinking", f"{CUT}: 512", True),
        (None, "all thought", True),
        ("Well.", "no diagnosis", False),
        ("[Flu]", "", False),
    ],
)
def test_what_was_cut_is_no_answer_whatever_it_says(
    raw: str | None, missing: str, none: bool
) -> None:
    assert no_answer(Opinion("m1", 0, None, None, missing, raw)) is none


# What is asked, and kept


def test_each_reply_is_asked_for_once_and_a_second_run_asks_nothing(tmp_path) -> None:
    """Twelve opinions; plans for a, b and d of one doctor and for b of the panel; a's two reviews
    and one of b's plan."""
    first = run_of([model := scripted()], run_dir=tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert (facts["calls_made"], facts["calls_from_cache"]) == (
        12 + 4 + 3,
        4,
    )  # the panel's plans for a and d, a's reviews
    assert [
        len(model.of(p)) for p in ("doctor", "plan", "review_prescriptions", "review_tests")
    ] == [4, 4, 2, 1]
    second = run_of([FakePanel("m1")], run_dir=tmp_path)  # has no script: asked, it would fail
    again = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert (again["calls_made"], again["calls_from_cache"]) == (0, 19 + 4)
    for name in ("reviews", "opinions", "marks"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))


def test_a_run_says_what_made_it(tmp_path) -> None:
    run = run_of(run_dir=tmp_path, n_doctors=2, temperature=0.8, seed=3, levels=(1, 100))
    facts = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert "not for clinical use" in facts["notice"].lower() and facts["trust"] == run.parameters
    expected = {
        "models": {"m1": "r1"}, "reviewer": None, "dataset": ["made"], "cases": 4,
        "levels": [1, 100], "n_doctors": 2, "doctor_temperature": 0.8, "seed": 3, "panel": None,
        "grader": "synonym", "encoder": "wordy r1", "medical_encoder": None,
        "medical_proxy": "proxy: wordy, no biomedical encoder", "served_by": {},
        "budgets": {}, "model_options": {}, "own_temperature": [], "unstructured": [],
        "held_to_a_form": {}, "prompts": {"m1": EMBEDDED.facts},
        "nearly_greedy": [],
        "reading": "chat", "reasoning_from": "section",
    }  # fmt: skip
    told = dict(run.parameters)
    asked = {p: (n["asked"], n["read"]) for p, n in told.pop("replies_read")["m1"].items()}
    assert asked == {
        "doctor": (16, 12), "plan": (12, 6), "review_prescriptions": (6, 4), "review_tests": (4, 4),
    }  # fmt: skip
    assert {k: v for k, v in told.items() if k != "cases_sha256"} == expected
    assert (
        len(pd.read_csv(tmp_path / "reviews.csv")) == 2 * 2 * 4 * 2
        and (tmp_path / "marks.csv").is_file()
    )
    assert run.reviews.groupby("level").size().to_dict() == {1: 16, 100: 16}


def test_a_run_says_where_the_server_of_a_doctor_or_reviewer_changed_its_model(tmp_path) -> None:
    doctor: Any = Served(scripted("m1"), A=9)
    reviewer: Any = Served(scripted("m2"), A=2, B=1)
    changed = "m2: the server changed its model during the run: A 2, B 1 replies"
    with pytest.warns(UserWarning, match=changed):
        run = run_of([doctor], run_dir=tmp_path, reviewer=reviewer)
    assert run.parameters["served_by"] == {"m1": {"A": 9}, "m2": {"A": 2, "B": 1}}
    facts = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert facts["trust"] == run.parameters
    assert [words.startswith(changed) for words in facts["warnings"]] == [True, False]


def test_temperature_and_seed_reach_doctors_and_plans_and_reviewers_are_greedy() -> None:
    run_of([model := scripted()], temperature=0.8, seed=3)
    assert {(r.temperature, r.seed) for p in ("doctor", "plan") for r in model.of(p)} == {(0.8, 3)}
    assert {
        (r.temperature, r.seed)
        for p in ("review_prescriptions", "review_tests")
        for r in model.of(p)
    } == {(0.0, 3)}


def test_a_medical_encoder_gives_its_own_cosines() -> None:
    run = run_of(medical_encoder=Wordy(room=2))
    assert part(row(run, ONE, "a"), "cosine_med", "cosine_med_missing") == (pytest.approx(1), "")
    assert row(run, PANEL, "a")["cosine_med"] == pytest.approx((1 + 1 + HALF) / 3)
    found = row(run, PANEL, "c")
    assert (
        math.isnan(found["cosine_med"])
        and found["cosine_med_missing"] == "no doctor gave both reasoning and diagnosis"
    )
    assert run.parameters["medical_encoder"] == "wordy r1" and run.parameters["medical_proxy"] == ""
    assert set(run.reviews["cosine_med_proxy"]) == {""}


def test_without_a_medical_encoder_the_general_one_stands_in_by_name(run: TrustRun) -> None:
    a, c = row(run, ONE, "a"), row(run, PANEL, "c")
    assert a["cosine_med"] == a["cosine"] == 1 and a["cosine_med_missing"] == ""  # was missing
    assert set(run.reviews["cosine_med_proxy"]) == {"proxy: wordy, no biomedical encoder"}
    assert (
        math.isnan(c["cosine_med"])
        and c["cosine_med_missing"] == "no doctor gave both reasoning and diagnosis"
    )
    found = trust_indices(run.reviews, "medguard-x", draws=0)
    rdc, eti = (found[found["metric"] == name] for name in ("rdc", "eti"))
    assert set(rdc["proxy"]) == {"proxy: wordy, no biomedical encoder"}
    assert rdc["value"].notna().all() and eti.loc[eti["safety"].astype(bool), "value"].notna().all()
    assert set(found["proxy"]) == {"", "proxy: wordy, no biomedical encoder"}


def test_the_proxy_can_be_switched_off() -> None:
    run = run_of(medical_proxy=False)
    found = row(run, ONE, "a")
    assert (
        math.isnan(found["cosine_med"])
        and found["cosine_med_missing"] == "no medical encoder is named"
    )
    assert found["cosine_med_proxy"] == run.parameters["medical_proxy"] == ""
    indices = trust_indices(run.reviews, "medguard-x", draws=0)
    assert indices.loc[indices["metric"] == "rdc", "value"].isna().all()


# Other panels


def test_one_doctor_alone_is_the_only_configuration_where_nobody_else_is_asked_for() -> None:
    run = run_of(n_doctors=1)
    assert set(run.reviews["configuration"]) == {ONE} and len(run.reviews) == 8
    assert run.opinions["doctor"].tolist() == [1] * 4


def test_a_panel_of_others_has_their_doctors_in_turn_beside_the_model() -> None:
    first, other = scripted(), scripted("m2", doctor=opinion(COUGH, "Cough."))
    model = FakePanel("m0")  # has no script: asked, it would fail
    run = run_of([model], panel=[first, other])
    assert set(run.reviews["model"]) == {"m0"}
    assert set(run.reviews["configuration"]) == {ONE, PANEL}
    speakers = run.opinions[run.opinions["case_id"].eq("a")]
    assert speakers["speaker"].tolist() == ["m1", "m2", "m1"]
    assert row(run, PANEL, "a", model="m0")["diagnoses"] == (
        FEVER.lower(),
        COUGH.lower(),
        COUGH.lower(),
    )
    assert row(run, PANEL, "c", model="m0")["diagnoses"] == (None, COUGH.lower(), None)
    assert len(first.of("doctor")) == len(other.of("doctor")) == 4
    assert run.parameters["models"] == {"m0": "r1"}
    assert run.parameters["panel"] == {"m1": "r1", "m2": "r1"}


def test_a_panel_is_as_large_as_its_models_are_many() -> None:
    three = [scripted(f"m{i}") for i in (1, 2, 3)]
    run = run_of([FakePanel("m0")], panel=three, n_doctors=2)
    assert set(run.reviews["configuration"]) == {ONE, "panel of 3"}


def test_a_panel_has_each_model_once_and_stands_beside_one_model() -> None:
    one, other = scripted(), scripted("m2")
    with pytest.raises(ValueError, match="each model must be given once"):
        run_of(panel=[one, one])
    with pytest.raises(ValueError, match="panel is given, and model is .*; one model is needed"):
        tl.opened(Setup(model=[one, other], panel=[one]))


@pytest.mark.usefixtures("claims_of_few")
def test_a_reviewer_of_its_own_marks_all_plans() -> None:
    strict = FakePanel(
        "strict", review_prescriptions=marks_json("rating", "UNSAFE"), review_tests="[]"
    )
    run = run_of([model := scripted()], reviewer=strict)
    assert not model.of("review_prescriptions") and not model.of("review_tests")
    assert part(row(run, PANEL, "b"), *RX) == (1, 0, 0, 1, 0, 0)
    assert part(row(run, PANEL, "a"), *RX) == (
        3,
        0,
        0,
        1,
        1,
        1,
    )  # the second is unknown, the third was not marked
    assert run.parameters["reviewer"] == {"strict": "r1"} and set(run.calls["model"]) == {
        "m1",
        "strict",
    }


@pytest.mark.parametrize("cached", [False, True])
def test_a_doctors_model_that_reviews_for_all_is_counted_once(cached: bool) -> None:
    first, second = scripted(), scripted("m2")
    models = [CachedModel(first, None), CachedModel(second, None)] if cached else [first, second]
    run = run_of(models, reviewer=models[1])
    made = run.calls.groupby("model")["n_made"].sum().to_dict()
    asked = {m.name: sum(r.n for call in m.asked for r in call) for m in (first, second)}
    assert made == asked and not first.of("review_tests")
    if cached:  # what was given open stays open
        models[1].generate(second.of("review_tests"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": [FakePanel("m"), FakePanel("m")]}, "each model may be given once"),
        ({"models": []}, "no models; at least one is needed"),
        ({"cases": [CASES[0], CASES[0]]}, "each case may be given once"),
        ({"cases": []}, "no cases; at least one is needed"),
        ({"levels": (20, 20)}, "each level may be given once"),
        ({"n_doctors": 0}, "n_doctors is 0; it must be a whole number, at least 1"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"cases": CASES, "models": [scripted()], "encoder": Wordy()} | change
    with pytest.raises(ValueError, match=message):
        ask(trust, given.pop("cases"), given.pop("models"), **given)
