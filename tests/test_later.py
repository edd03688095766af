"""The field's later methods: METHODS' toy to its digits, what is missing, and that no more is asked
for them than is asked anyway."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from asking import ask
from each import each
from fake_model import TEXT_ONLY, FakeEncoder, FakeModel, made_cases
from generations import FULL, array, generation, meant, said, told
from reference_methods import REFERENCE, TOY, listing
from saying import says

from benchmarks.records import random_records
from studies import benchmark as study
from trustlab.cli.plan import plan_study
from trustlab.confidence import METHODS, select
from trustlab.confidence.registry import BY_NAME, LATER
from trustlab.levels import views
from trustlab.meaning.entailment import StandInEntailment
from trustlab.meaning.parts import Readers
from trustlab.models.cache import CachedModel
from trustlab.models.wrapper import TextOnly
from trustlab.records import PARAMETERS, Generation, Parameters, TokenTrace
from trustlab.runs.collect import NOT_WHOLE, collect
from trustlab.runs.experiment import benchmark

CASES = made_cases(3)
VIEWS = views(CASES, [20, 100])
WINDOW_2 = replace(TOY.parameters, deepconf_window=2)


@each(
    ("name", "printed"),
    [
        ("answer_agreement", 0.600), ("noncontradiction", 0.670), ("bsdetector", 0.6392),
        ("kernel_language_entropy", -1.3581), ("kernel_language_entropy_rescaled", -1.3581),
        ("semantic_density", 0.5275), ("cocoa_msp", -0.2043), ("cocoa_ppl", -0.0681),
        ("luq", 0.4033), ("snne", -0.2526), ("deepconf_lowest", 1.3999),
    ],
)  # fmt: skip
def test_the_toy_has_the_values_of_its_sources(name: str, printed: float) -> None:
    assert METHODS[name].score(TOY) == pytest.approx(printed, abs=5e-5)


def test_a_wider_window_takes_the_mean_of_its_tokens() -> None:
    wide = replace(TOY, parameters=WINDOW_2)
    assert METHODS["deepconf_lowest"].score(wide) == pytest.approx(1.8688, abs=5e-5)
    whole = replace(TOY, parameters=replace(WINDOW_2, deepconf_window=2048))
    every = [0.5 * 0.3 * 0.1, 0.9 * 0.05 * 0.02, 0.8 * 0.1 * 0.05]
    mean = -math.log(math.prod(every)) / 9
    assert METHODS["deepconf_lowest"].score(whole) == pytest.approx(mean)


@each("name", sorted(BY_NAME))
def test_200_random_records_have_the_values_of_the_independent_program(name: str) -> None:
    parameters = Parameters(deepconf_window=2, n_alternatives=5)
    records = [*random_records(150, seed=5), *random_records(50, seed=6, parameters=parameters)]
    ours = [METHODS[name].score(made.generation) for made in records]
    theirs = [REFERENCE[name](made.generation) for made in records]
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)


def with_samples(k: int, **parts: Any) -> Generation:
    """As many samples of one name as K, of a run that asks for 15."""
    ones = np.ones((k, k))
    made: dict[str, Any] = {
        "answer": FULL.answer, "samples": tuple(said("Flu") for _ in range(k)), "similarity": ones,
        "entailment": ones, "contradiction": 0 * ones, "answer_similarity": ones[0],
        "answer_entailment": ones[:2], "answer_contradiction": 0 * ones[:2],
    }  # fmt: skip
    return generation(**{**made, **parts})


@each("k", [2, 5, 15])
def test_unanimous_samples_are_surest_but_for_kernel_language_entropy(k: int) -> None:
    same = with_samples(k)
    wanted = {"answer_agreement": 1, "noncontradiction": 1, "semantic_density": 1, "luq": 1}
    wanted |= {"cocoa_msp": 0, "cocoa_ppl": 0, "snne": 0}
    assert {name: METHODS[name].score(same) for name in wanted} == wanted


def test_kernel_language_entropy_depends_on_k_and_is_missing_below_the_run_s_own() -> None:
    name, all_15 = "kernel_language_entropy", with_samples(15)
    share = METHODS[name].score(all_15) / -math.log(15)
    assert share == pytest.approx(0.006, abs=5e-4)
    five = with_samples(5)
    own = replace(five, parameters=replace(PARAMETERS, n_samples=5))
    assert METHODS[name].score(own) / -math.log(5) == pytest.approx(0.42, abs=5e-3)
    assert says(METHODS[name].evaluate(five).missing, 5, 15)
    rescaled = METHODS[f"{name}_rescaled"]
    assert rescaled.score(five) / -math.log(5) == pytest.approx(share, abs=1e-2)
    assert rescaled.score(all_15) == METHODS[name].score(all_15)


def changed(position: int, p: float) -> Generation:
    """The toy with another probability among those listed at the last token."""
    assert TOY.answer is not None and TOY.answer.trace is not None
    rows = [[0.5, 0.3, 0.1], [0.9, 0.05, 0.02], [0.8, 0.1, 0.05]]
    rows[2][position] = p
    with np.errstate(divide="ignore"):
        listed = tuple(tuple((f"t{i}", float(np.log(q))) for i, q in enumerate(r)) for r in rows)
    trace = replace(TOY.answer.trace, alternatives=listed)
    return replace(TOY, answer=replace(TOY.answer, trace=trace))


READ_SAMPLES = [m.name for m in select(sorted(BY_NAME)) if m.family == "consistency"]


@each(
    ("name", "made", "words"),
    [
        *((name, with_samples(1, probes=FULL.probes), "fewer than 2") for name in READ_SAMPLES),
        ("bsdetector", replace(TOY, probes={"p_true": told("True", None)}), ("2", True)),
        ("bsdetector", replace(TOY, probes={}), "probes.p_true not collected"),
        ("deepconf_lowest", replace(TOY, parameters=PARAMETERS), ("3", "n_alternatives", 10)),
        ("deepconf_lowest", changed(2, 0.0), ("alternative", "probability 0")),
        ("semantic_density", with_samples(3, samples=(said("Flu", ()),) * 3), "no tokens"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_missing_with_its_reason(name: str, made: Generation, words: Any):
    found = METHODS[name].evaluate(made)
    assert math.isnan(found.confidence) and says(found.missing, words)


def test_two_spellings_are_one_name_whatever_the_judge_says_of_them() -> None:
    texts = ("Flu", "flu.", "Croup")
    apart = meant(0, 1, 2, samples=tuple(said(text) for text in texts))
    apart = replace(
        apart,
        answer=said(" FLU "),
        similarity=np.full((3, 3), 0.3),
        answer_similarity=array([0.3, 0.3, 0.3]),
        answer_entailment=np.full((2, 3), 0.05),
        answer_contradiction=np.full((2, 3), 0.9),
        parameters=replace(PARAMETERS, n_samples=3),
    )
    once = replace(apart, samples=(said("Flu"), said("Flu"), said("Croup")), answer=said("Flu"))
    for name in set(READ_SAMPLES) - {"bsdetector"}:
        assert METHODS[name].score(apart) == pytest.approx(METHODS[name].score(once)), name
    assert METHODS["answer_agreement"].score(apart) == pytest.approx(2 / 3)


def test_the_likeliest_spelling_of_a_name_counts_in_semantic_density() -> None:
    samples = (said("Croup", (0.1,)), said("croup", (0.4,)), said("Croup.", (0.2,)))
    made = replace(
        FULL,
        answer=said("Flu", (0.6,)),
        samples=samples,
        answer_entailment=np.zeros((2, 3)),
        answer_contradiction=array([[1, 0.5, 1], [1, 0.3, 1]]),
    )
    near = 1 - (0.5 + 0.5 / 2 + 0.3 + 0.7 / 2) / 2
    assert METHODS["semantic_density"].score(made) == pytest.approx((0.6 + 0.4 * near) / 1.0)


def test_no_entailment_and_no_contradiction_is_a_half() -> None:
    unrelated = replace(
        meant(0, 1, samples=(said("Flu"), said("Croup"))),
        entailment=array([[1, 0], [0, 1]]),
        contradiction=np.zeros((2, 2)),
    )
    assert METHODS["luq"].score(unrelated) == 0.5


# Which way they point


def surer(name: str) -> tuple[Generation, Generation]:
    """Two records, the second one surer in what the method reads."""
    if name == "self_certainty":
        return TOY, replace(TOY, answer=said("A", certainty=[7.0, 8.0, 9.0]))
    if name == "deepconf_lowest":
        assert TOY.answer is not None and TOY.answer.trace is not None
        peaked = listing((0.98, 0.01, 0.001), (0.99, 0.005, 0.001), (0.97, 0.02, 0.001))
        trace = replace(TOY.answer.trace, alternatives=peaked)
        return TOY, replace(TOY, answer=replace(TOY.answer, trace=trace))
    order = [0, 1, 2, 0, 4]  # the fourth sample says A, no longer B
    assert TOY.samples is not None
    parts: dict[str, Any] = {"samples": tuple(TOY.samples[i] for i in order)}
    for part in ("answer_similarity", "answer_entailment", "answer_contradiction"):
        parts[part] = getattr(TOY, part)[..., order]
    for part in ("similarity", "entailment", "contradiction"):
        parts[part] = getattr(TOY, part)[np.ix_(order, order)]
    return TOY, replace(TOY, **parts)


@each("name", sorted(BY_NAME))
def test_a_sample_that_comes_over_to_the_answer_makes_it_surer(name: str) -> None:
    before, after = surer(name)
    assert METHODS[name].score(after) > METHODS[name].score(before)


# What is asked


def asked_by(methods: Any, model: FakeModel, **options: Any) -> list[Generation]:
    readers = Readers.of(FakeEncoder())  # type: ignore[arg-type]
    return collect(model, VIEWS, select(methods), readers=readers, **options)


def test_from_cases_to_values_on_a_scripted_model() -> None:
    model = FakeModel()
    done = ask(benchmark, CASES, [model], "later", [20, 100], encoder=FakeEncoder())
    assert set(done.confidence["method"]) == {*LATER}
    assert done.confidence["confidence"].notna().all()
    assert done.parameters["deepconf_window"] == 1
    of_purpose = Counter(request.purpose for request in model.requests)
    assert of_purpose == dict.fromkeys(("diagnosis", "samples", "p_true"), 6)
    for record in done.generations:
        for name in LATER:
            value = METHODS[name].score(record)
            assert value == pytest.approx(REFERENCE[name](record), abs=1e-9), name


def test_the_answer_s_own_row_is_that_of_a_whole_matrix() -> None:
    """The judge that sees all pairs says the same of the answer and a sample."""
    encoder = FakeEncoder()
    judge = StandInEntailment(encoder)  # type: ignore[arg-type]
    for record in asked_by(["noncontradiction", "cocoa_msp", "luq"], FakeModel()):
        assert record.answer and record.samples and record.answer_similarity is not None
        assert record.answer_entailment is not None and record.answer_contradiction is not None
        for k, sample in enumerate(record.samples):
            pair = (str(record.answer.text), str(sample.text))
            rows = judge.probabilities([pair, pair[::-1]])
            assert record.answer_entailment[:, k] == pytest.approx(rows[:, 0])
            assert record.answer_contradiction[:, k] == pytest.approx(rows[:, 2])
            a, b = encoder.encode(pair)
            cosine = 1.0 if pair[0] == pair[1] else a @ b
            assert record.answer_similarity[k] == pytest.approx(cosine)


def test_nothing_of_theirs_is_asked_or_read_unless_they_are() -> None:
    model = FakeModel()
    for record in asked_by(["asp", "entropy", "poc", "deg", "sar"], model):
        assert record.answer_similarity is record.answer_entailment is None
        assert record.answer_contradiction is None


def test_beside_the_27_nothing_more_is_asked(tmp_path) -> None:
    """A run of the 27's kind, then the later methods beside them."""
    first, then = FakeModel(), FakeModel()
    before = [m.name for m in select("variants") if m.family in ("token", "consistency")]
    before = [name for name in before if name != "semantic_similarity_med"] + ["p_true"]
    old = asked_by(before, CachedModel(first, tmp_path / "r.sqlite"))  # type: ignore[arg-type]
    new = asked_by([*before, "later"], CachedModel(then, tmp_path / "r.sqlite"))  # type: ignore
    assert then.requests == []
    for a, b in zip(old, new, strict=True):
        for method in select(before):
            assert method.evaluate(a) == method.evaluate(b)
        assert not any(METHODS[name].evaluate(b).missing for name in LATER)


def test_replies_that_were_kept_without_self_certainty_lack_it_alone(tmp_path) -> None:
    before = FakeModel()
    before.lists_all = False  # as a version kept them that did not know it
    asked_by("later", CachedModel(before, tmp_path / "r.sqlite"))  # type: ignore[arg-type]
    now = FakeModel()
    for record in asked_by("later", CachedModel(now, tmp_path / "r.sqlite")):  # type: ignore
        reasons = {name: METHODS[name].evaluate(record).missing for name in LATER}
        assert {name: why for name, why in reasons.items() if why} == {"self_certainty": NOT_WHOLE}
    assert now.requests == []


@each(
    ("model", "why"),
    [
        (FakeModel(provides=TEXT_ONLY), "the backend gives no distributions"),
        (TextOnly(FakeModel()), "the backend gives no distributions"),
    ],
)
def test_a_model_that_hides_its_probabilities_has_the_black_box_ones_alone(model, why) -> None:
    for record in asked_by("later", model):
        for method in select("later"):
            missing = method.evaluate(record).missing
            assert bool(missing) == (method.access == "white"), method.name
        assert METHODS["self_certainty"].evaluate(record).missing == why
        assert METHODS["cocoa_msp"].evaluate(record).missing == "the backend gives no logprobs"


def test_a_server_that_lists_some_tokens_gives_none() -> None:
    model = FakeModel()
    model.lists_all = False
    (record, *_) = asked_by(["self_certainty", "deepconf_lowest"], model)
    assert METHODS["self_certainty"].evaluate(record).missing == NOT_WHOLE
    assert not METHODS["deepconf_lowest"].evaluate(record).missing
    assert {request.purpose for request in model.requests} == {"diagnosis"}


def test_a_trace_keeps_its_certainty_with_its_tokens() -> None:
    trace = TokenTrace(("a", "b", "c"), certainty=array([1, 2, 3]))
    assert trace.part(1, 3).certainty is not None
    assert trace.part(1, 3).certainty.tolist() == [2, 3]  # pyright: ignore


def test_01_shows_them_from_the_replies_that_are_kept(tmp_path) -> None:
    model = FakeModel()
    setup = study.setup(
        model=model, encoder=FakeEncoder(), samples=4, levels=[20, 100], quiet=True,
        cache=tmp_path / "r.sqlite",
    )  # fmt: skip
    methods = ["entropy", "pmi", "mc_se", "p_true"]
    whole = benchmark(CASES, [model], methods, setup=setup)
    n_before = len(model.requests)
    shown = study.later_run(CASES, [model], whole, setup)
    assert len(model.requests) == n_before
    assert list(shown.families) == [*LATER] and set(shown.confidence["method"]) == {*LATER}
    pd.testing.assert_frame_equal(shown.answers, whole.answers)
    of_cocoa = shown.confidence[shown.confidence["method"].eq("cocoa_msp")]["confidence"]
    unanimous = [
        g.samples is not None and {s.text for s in g.samples} == {g.answer and g.answer.text}
        for g in whole.generations
    ]
    assert study.tied_at_zero(shown.confidence) == {"fake": pytest.approx(np.mean(unanimous))}
    assert of_cocoa.eq(0).tolist() == unanimous


@each("methods", ["paper", ["poc"]])
def test_a_plan_counts_what_the_27_do_not_ask_for(methods) -> None:
    def replies_planned(**choices: Any) -> dict[str, int]:
        setup = study.setup(dataset="starter", n=2, levels=[20, 100], samples=5, **choices)
        planned, _ = plan_study("01_benchmark", setup)
        return dict(zip(planned["purpose"], planned["n_replies"], strict=True))

    without = replies_planned(methods=methods)
    wanted = {"diagnosis": 4, "samples": 20, "p_true": 20}
    assert replies_planned(methods=methods, later=True) == without | wanted
    assert ("p_true" in without) == (methods == "paper")
