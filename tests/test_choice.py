"""A text that is given is scored as a reply; a choice among candidates is made from such scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from each import each
from generations import generation
from saying import saying, says
from tiny_models import TEMPLATE, byte_tokenizer, save_tiny

import trustlab as tl
from trustlab.confidence import METHODS, select
from trustlab.knowledge.findings import load_knowledge
from trustlab.levels import views
from trustlab.models.base import Model, Request
from trustlab.models.cache import CachedModel, request_keys
from trustlab.models.local.huggingface import IN_THOUGHT, HuggingFaceModel, prompt_text
from trustlab.models.wrapper import TextOnly
from trustlab.prompts import prompts_of
from trustlab.records import GIVEN, Case, Reply, Statement, TokenTrace
from trustlab.runs.candidates import ALONE, NO_SCORES, SCORINGS, candidates_of
from trustlab.runs.collect import NO_TEXT, collect

torch = pytest.importorskip("torch")

TEXTS = ("[gout]", "[go]", "", "[Ménière's disease]")
SHORT = Request((("user", "Which?"),), max_tokens=3)
LONG = replace(SHORT, messages=(("system", "S"), ("user", "A cough.\nNo fever.")), n=2)


def tiny(folder: Path, kind: str = "llama", template: str = TEMPLATE, **more: Any) -> Any:
    save_tiny(folder, kind, tokenizer=byte_tokenizer(template), **more)
    return HuggingFaceModel(folder, device="cpu")


def plain_pass(model: Any, messages: Any, text: str) -> tuple[int, list[float]]:
    """How many tokens the prompt has, and the log-probability of each token of the text."""
    both = [prompt_text(model._tokenizer, messages), text]
    prompt, ids = model._tokenizer(both, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        values = model._model(torch.tensor([prompt + ids])).logits[0].log_softmax(-1)
    return len(prompt), [values[len(prompt) + k - 1, t].item() for k, t in enumerate(ids)]


@each("kind", ["llama", "mamba"])  # with a tree of prefixes, with a state
def test_a_given_text_has_the_probabilities_of_a_plain_pass(kind: str, tmp_path: Path) -> None:
    model = tiny(tmp_path, kind)
    asked = [replace(q, continuation=text) for q in (SHORT, LONG) for text in TEXTS[1:]]
    rows = model.generate([*asked[:3], SHORT, *asked[3:]])
    assert rows.pop(3)[0].text == model.generate([SHORT])[0][0].text
    for request, replies in zip(asked, rows, strict=True):
        reply, text = replies[-1], str(request.continuation)
        n_prompt, by_hand = plain_pass(model, request.messages, text)
        assert len(replies) == request.n and (reply.text, reply.finish) == (text, "stop")
        assert "".join(reply.trace.tokens) == text and reply.n_tokens_in == n_prompt
        assert reply.trace.logprobs == pytest.approx(by_hand, abs=1e-4)


class Answers(HuggingFaceModel):
    """Gives one answer to all that it is asked, and scores texts as the model does."""

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        scored = iter(super().generate([q for q in requests if q.continuation is not None]))
        return [next(scored) if q.continuation else [Reply("[Gout]")] * q.n for q in requests]


def test_given_scores_and_verdicts_are_weighed_by_a_plain_pass_or_missing(tmp_path: Path) -> None:
    save_tiny(tmp_path, tokenizer=byte_tokenizer(), max_position_embeddings=4096)
    model, shown = Answers(tmp_path, device="cpu"), views([case("Gout")], [100])
    both, scores = select(GIVEN), (range(0, 101, 5), (100, 0))
    (g,), (kept,) = (collect(m, shown, both) for m in (model, CachedModel(model, None)))
    for m, score, (prompt, texts) in zip(both, scores, GIVEN.values(), strict=True):
        messages = prompts_of(model).render(prompt, patient=shown[0].text, answer="Gout")
        likely = np.exp([sum(plain_pass(model, messages, text)[1]) for text in texts])
        value = float(likely @ score / likely.sum() / 100)
        assert m.score(g) == m.score(kept) == pytest.approx(value, rel=1e-3)
        assert tuple(r.text for r in g.probes[m.name]) == texts and likely.std() > 0
    for words_alone in (CachedModel(TextOnly(model), None), TextOnly(model)):
        (g,) = collect(words_alone, shown, both)
        assert {m.evaluate(g).missing for m in both} == {NO_TEXT} and not g.probes
    bare = Reply("True"), "log-probabilities"
    for reply, why in (bare, (Reply(None, missing="too long"), "too long")):
        g = generation(probes={"p_true_probability": (reply,)})
        assert says(METHODS["p_true_probability"].evaluate(g).missing, why)


def test_a_text_beyond_the_window_or_in_a_thought_is_missing_and_moves_a_key(
    tmp_path: Path,
) -> None:
    asked = [replace(SHORT, continuation=text) for text in ("x" * 40, "x")]
    short = tiny(tmp_path / "short", max_position_embeddings=24)
    ((long,), (fits,)) = short.generate(asked)
    assert "window" in str(long.missing) and fits.missing is None
    thinks = tiny(tmp_path / "t", template=TEMPLATE.replace("%}>{%", "%}><think>\n{%"))
    assert thinks.generate(asked)[1][0].missing == IN_THOUGHT
    assert len({request_keys(q, "m", "r")[0] for q in (SHORT, *asked)}) == 3


def case(name: str, **patient: Any) -> Case:
    known = load_knowledge().condition_named(name)
    accepted = known.names if known else (name,)
    told = tuple(Statement(f"It is {i}.") for i in range(11))
    return Case(f"c-{name}", "made", told, accepted[0], accepted, patient)


TABLE = yaml.safe_load((Path(__file__).parent / "data" / "candidates.yml").read_text())


@each(("name", "patient", "n", "expected"), TABLE)
def test_candidates_are_the_truth_and_what_it_could_be_taken_for(
    name: str, patient: dict[str, Any], n: int, expected: list[str]
) -> None:
    drawn = [candidates_of(case(name, **patient), 5, seed) for seed in range(9)]
    assert all(set(expected) == set(names) and len(names) == n for names in drawn)
    assert (n > 1) == (len({*drawn}) > 1) and candidates_of(case(name, **patient)) == drawn[0]


class Scores(Model):
    """Gives every letter 1/2, and the first some nats more where a patient is told."""

    provides, name, revision, scores_text = frozenset({"text", "logprobs"}), "made", "1", True

    def __init__(self, first: dict[str, float]) -> None:
        self.first, self.asked = first, 0

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked += len(requests)
        return [[self._scored(q, str(q.continuation))] for q in requests]

    def _scored(self, request: Request, text: str) -> Reply:
        values = np.full(len(text), np.log(0.5))
        values[0] += self.first[text] * ("nothing is known" not in request.messages[-1][1])
        return Reply(text, TokenTrace(tuple(text), values), 9, len(text))


SETUP: Any = tl.Setup(**{"cache": ":memory:", "quiet": True})


def test_a_choice_is_what_its_formula_says() -> None:
    first, names = {"[aa]": 0.0, "[b]": -0.5, "[cccccc]": 1.0}, ("aa", "b", "cccccc")
    model, one = Scores(first), case("cccccc", options=names)
    made = tl.choice([one], [model], [20, 100], SETUP)
    assert model.asked == 9 and len(made.scores) == 6  # without the patient once for both levels
    sums = np.array([4, 3, 8]) * np.log(0.5) + np.array([0, -0.5, 1])
    by = dict(zip(SCORINGS, (sums, sums / [4, 3, 8], np.array([0, -0.5, 1])), strict=True))
    for row in made.answers.to_dict("records"):
        chances = np.exp(by[row["scoring"]]) / np.exp(by[row["scoring"]]).sum()
        second, best = np.sort(chances)[-2:]
        assert row["answer"] == names[int(chances.argmax())] and row["n_candidates"] == 3
        assert (row["probability"], row["margin"]) == pytest.approx((best, best - second))
        assert row["correct"] == (row["answer"] == "cccccc")
    assert {*made.answers["answer"]} == {"b", "cccccc"}
    other = tl.choice([one], [model], [20, 100], SETUP, listed=False)
    assert model.asked == 18 and other.answers.equals(made.answers)  # it reads no list


def test_what_cannot_be_chosen_is_missing_and_chance_is_each_case_s_own() -> None:
    known = [case(c.name) for c in load_knowledge().conditions.values()][:12]
    cases = [*known, case("x", options=("x", "y")), case("z")]
    first = {f"[{name}]": 0.0 for c in cases for name in candidates_of(c)}
    mute = type("Mute", (Scores,), {"scores_text": False, "name": "mute"})
    made = tl.choice(cases, [Scores(first), mute(first)], [100], SETUP)
    why = made.answers.groupby(["model", "scoring"])["missing"].agg(lambda m: sorted({*m}))
    assert why["mute"].tolist() == [[NO_SCORES.format("mute")]] * 3
    assert why["made"].tolist() == [["", ALONE]] * 3
    lines = made.metrics()
    right = lines[lines["metric"].eq("accuracy") & lines["model"].eq("made")]
    assert right["n"].eq(13).all() and right["n_missing"].eq(1).all()
    assert right["chance"].tolist() == pytest.approx([(12 / 5 + 1 / 2) / 13] * len(right))
    kinds = lines.groupby("method")["metric"].agg(lambda m: sorted({*m}))
    both = {"probability": ["auroc", "brier", "ece"], "margin": ["auroc"]}
    assert kinds.to_dict() == {"": ["accuracy"], **both}
    assert lines.loc[lines["model"].eq("mute"), "value"].isna().all()
    with pytest.raises(ValueError, match=saying("n", 1, 2)):
        tl.choice(cases, [Scores(first)], [100], SETUP, n=1)
