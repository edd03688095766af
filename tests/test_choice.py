"""A text that is given is scored as a reply; a choice among candidates is made from such scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from tiny_models import TEMPLATE, byte_tokenizer, save_tiny

import trustlab as tl
from trustlab.candidates import ALONE, NO_SCORES, SCORINGS, candidates_of, look_alikes
from trustlab.knowledge import load_knowledge
from trustlab.models.base import Request
from trustlab.models.cache import request_keys
from trustlab.models.huggingface import IN_THOUGHT, HuggingFaceModel, prompt_text
from trustlab.records import Case, Reply, Statement, TokenTrace

torch = pytest.importorskip("torch")

GIVEN = ("[gout]", "[go]", "", "[Ménière's disease]")
SHORT = (("user", "Which?"),)
TALKS = (SHORT, (("system", "S"), ("user", "A cough.\nNo fever.")))


def opened(folder: Path, kind: str = "llama", template: str = TEMPLATE, **more: Any) -> Any:
    save_tiny(folder, kind, tokenizer=byte_tokenizer(template), **more)
    return HuggingFaceModel(folder, device="cpu")


@each("kind", ["llama", "gpt2", "mistral", "mamba"])  # with trees, a window that slides, a state
def test_a_given_text_has_the_probabilities_of_a_plain_pass(kind: str, tmp_path: Path) -> None:
    model = opened(tmp_path, kind)
    asked = [Request(m, continuation=text, n=2) for m in TALKS for text in GIVEN]
    free = Request(SHORT, max_tokens=3, want=frozenset({"logprobs"}))
    alone = model.generate([free])
    rows = model.generate([*asked[:3], free, *asked[3:]])
    assert rows.pop(3)[0].text == alone[0][0].text
    for request, (first, second) in zip(asked, rows, strict=True):
        tokenizer, text = model._tokenizer, str(request.continuation)
        prompt = tokenizer(prompt_text(tokenizer, request.messages), add_special_tokens=False)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        whole = torch.tensor([prompt["input_ids"] + ids])
        with torch.inference_mode():
            values = model._model(whole).logits[0].double().log_softmax(-1)
        start = len(prompt["input_ids"])
        by_hand = [values[start + k - 1, token].item() for k, token in enumerate(ids)]
        assert first is second and (first.text, first.missing, first.finish) == (text, None, "stop")
        assert "".join(first.trace.tokens) == text and first.n_tokens_in == start
        assert first.trace.logprobs == pytest.approx(by_hand, abs=1e-4)


def test_a_text_beyond_the_window_or_within_a_thought_is_not_scored(tmp_path: Path) -> None:
    thinks = TEMPLATE.replace("%}>{%", "%}><think>\n{%")
    short = opened(tmp_path / "short", max_position_embeddings=24)
    ((long,), (fits,)) = short.generate(
        [Request(SHORT, continuation=text) for text in ("x" * 40, "x")]
    )
    assert "window" in str(long.missing) and fits.missing is None
    ((reply,),) = opened(tmp_path / "t", template=thinks).generate(
        [Request(SHORT, continuation="x")]
    )
    assert reply.missing == IN_THOUGHT


def test_only_a_continuation_moves_a_key() -> None:
    plain = Request(SHORT)
    keys = [request_keys(replace(plain, continuation=c), "m", "r") for c in (None, "a", "b")]
    assert request_keys(plain, "m", "r") == keys[0] and len({k for (k,) in keys}) == 3


def case(name: str = "gout", **patient: Any) -> Case:
    known = load_knowledge().condition_named(name)
    accepted = known.names if known else (name,)
    told = tuple(Statement(f"It is {i}.") for i in range(11))
    return Case(f"c-{name}", "made", told, accepted[0], accepted, patient)


PNEUMONIA, FLU = (load_knowledge().condition_named(n).name for n in ("pneumonia", "influenza"))  # type: ignore
OTHERS = (("a", 0.1), ("b", 0.4), (PNEUMONIA, 0.3), ("c", 0.1), ("d", 0.05), ("e", 0.4))


@each(
    ("name", "patient", "expected"),
    [
        ("pneumonia", {"differential": OTHERS}, {PNEUMONIA, "b", "e", "a", "c"}),
        ("pneumonia", {"differential": OTHERS[:3]}, {PNEUMONIA, "a", "b"}),
        ("pneumonia", {}, {PNEUMONIA, *look_alikes(PNEUMONIA)[:4]}),
        ("x", {"options": ("x", "y", "z", "w")}, {"x", "y", "z", "w"}),
        ("x", {"options": "y; z"}, {"x", "y", "z"}),
        ("x", {}, {"x"}),
    ],
)
def test_candidates_are_the_truth_and_what_it_could_be_taken_for(
    name: str, patient: dict[str, Any], expected: set[str]
) -> None:
    drawn = [candidates_of(case(name, **patient), 5, seed) for seed in range(9)]
    assert all(expected <= set(names) for names in drawn) and len({*map(len, drawn)}) == 1
    assert len(drawn[0]) == (5 if name != "x" else len(expected)) == len(set(drawn[0]))
    assert len(expected) < 2 or len({*drawn}) > 1 and candidates_of(case(name, **patient)) in drawn


def test_look_alikes_are_alike() -> None:
    near = look_alikes(FLU)
    assert FLU not in near and len(near) == len(load_knowledge().conditions) - 1
    assert near.index("Common cold" if "Common cold" in near else near[0]) < 10


class Scores:
    """Gives every token of a name 1/2, and -0.5 nats more for each letter ``dear`` where told of a
    patient."""

    provides, name, revision, scores_text = frozenset({"text", "logprobs"}), "made", "1", True

    def __init__(self, first: dict[str, float]) -> None:
        self.first, self.asked = first, 0

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked += len(requests)
        rows = []
        for q in requests:
            told, text = "nothing is known" not in q.messages[1][1], str(q.continuation)
            values = np.full(len(text), np.log(0.5))
            values[0] += self.first[text] * told
            rows.append([Reply(text, TokenTrace(tuple(text), values), 9, len(text))])
        return rows


def test_a_choice_is_what_its_formula_says() -> None:
    first = {"[aa]": 0.0, "[b]": -0.5, "[cccccc]": 1.0}
    model, one = Scores(first), case("x", options=("aa", "b", "cccccc"))
    one = replace(one, diagnosis="cccccc", accepted=("cccccc",))
    setup = tl.Setup(cache=":memory:", quiet=True)  # type: ignore[arg-type]
    made = tl.choice([one], [model], [20, 100], setup)
    assert model.asked == 9 and len(made.scores) == 6  # without the patient once for both levels
    sums = np.array([4, 3, 8]) * np.log(0.5) + np.array(list(first.values()))
    by = dict(zip(SCORINGS, (sums, sums / [4, 3, 8], np.array(list(first.values()))), strict=True))
    for row in made.answers.to_dict("records"):
        chances = np.exp(by[row["scoring"]]) / np.exp(by[row["scoring"]]).sum()
        second, best = np.sort(chances)[-2:]
        assert row["answer"] == list(("aa", "b", "cccccc"))[int(chances.argmax())]
        assert (row["probability"], row["margin"]) == pytest.approx((best, best - second))
        assert row["correct"] == (row["answer"] == "cccccc") and row["n_candidates"] == 3
    assert {*made.answers["answer"]} == {"b", "cccccc"}
    other = tl.choice([one], [model], [20, 100], setup, listed=False)
    assert model.asked == 18 and other.answers.equals(made.answers)  # it reads no list


def test_what_cannot_be_chosen_is_missing_and_chance_is_each_case_s_own() -> None:
    names = sorted(c.name for c in load_knowledge().conditions.values())[:12]
    cases = [case(name) for name in names] + [case("x", options=("x", "y")), case("z")]
    first = {f"[{name}]": 0.0 for c in cases for name in candidates_of(c)}
    mute = type("Mute", (Scores,), {"scores_text": False, "name": "mute"})
    setup = tl.Setup(cache=":memory:", quiet=True)  # type: ignore[arg-type]
    made = tl.choice(cases, [Scores(first), mute(first)], [100], setup)
    why = made.answers.groupby(["model", "scoring"])["missing"].agg(lambda m: sorted({*m}))
    assert why["mute"].tolist() == [[NO_SCORES.format("mute")]] * 3
    assert why["made"].tolist() == [["", ALONE]] * 3
    lines = made.metrics(n_draws=50)
    right = lines[lines["metric"].eq("accuracy") & lines["model"].eq("made")]
    assert right["n"].eq(13).all() and right["n_missing"].eq(1).all()
    assert right["chance"].tolist() == pytest.approx([(12 / 5 + 1 / 2) / 13] * len(right))
    kinds = lines.groupby("method")["metric"].agg(lambda m: sorted({*m}))
    both = {"probability": ["auroc", "brier", "ece"], "margin": ["auroc"]}
    assert kinds.to_dict() == {"": ["accuracy"], **both}
    assert pd.isna(lines.loc[lines["model"].eq("mute"), "value"]).all()
    with pytest.raises(ValueError, match="n is 1; it must be a whole number, at least 2"):
        tl.choice(cases, [Scores(first)], [100], setup, n=1)
