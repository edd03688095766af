"""A model without weights: every reply is read off a hash of what was asked. And an encoder of the
same kind."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from trustlab.agents.medconf import SWITCHES
from trustlab.models.base import STATISTICS, Model, Request
from trustlab.prompts import names, render
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Case, Reply, Statement, TokenTrace

EVERYTHING = frozenset({"text", *STATISTICS})
TEXT_ONLY = frozenset({"text"})
NAMES = ("Influenza", "Common cold", "Acute laryngitis", "Pulmonary embolism")
OPTIONS = [chosen for n in range(5) for chosen in combinations(SWITCHES, n)]
PROMPT_OF = {render(n, options=o)[-1][1].splitlines()[-1]: n for n in names() for o in OPTIONS}
"""Last line of a prompt -> its name: what is asked is read off the messages, as by a model."""


class FakeModel(Model):
    """Reply i depends on name, messages, temperature, seed and i, not on ``n`` and ``purpose``.
    ``unreadable(request, i)`` says which diagnoses come without brackets, as a question. ``asked``
    keeps the requests of each call. ``lists_all``: its distributions are of all tokens."""

    revision, taught = "r1", {"set": "embedded"}

    def __init__(
        self,
        name: str = "fake",
        provides: frozenset[str] = EVERYTHING,
        unreadable: Callable[[Request, int], bool] = lambda request, i: False,
    ) -> None:
        self.name, self.provides, self.unreadable = name, provides, unreadable
        self.lists_all = True
        self.asked: list[list[Request]] = []

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked.append(list(requests))
        return [[self.reply(r, r.first + i) for i in range(r.n)] for r in requests]

    def reply(self, request: Request, i: int) -> Reply:
        if bad := (request.want - self.provides):
            raise AssertionError(f"asked for {sorted(bad)}, which this backend does not provide")
        rng = self.rng(request, i if request.temperature else 0)
        kind = prompt_of(request)
        text = {"ce": f"[{rng.integers(101)}]", "p_true": str(rng.random() < 0.6)}.get(kind)
        if kind == "cot_ce":
            text = f"It fits. [{rng.integers(101)}]"
        elif kind == "topk_ce":
            scores = enumerate(rng.integers(101, size=5), 1)
            text = " ".join(f"G{k}: [{score}]" for k, score in scores)
        elif kind in ("keyword", "profile", "evidence"):
            text = medconf_reply(kind, request.messages[-1][1], rng)
        elif text is None:
            name = NAMES[rng.integers(len(NAMES))]
            text = f"{name}?" if self.unreadable(request, i) else f"[{name}]"
            if kind == "doctor":
                text = f"<thinking_process>It may be {name}.</thinking_process>\n{text}"
        n_out, trace = len(text.split()) + 2, self.trace(text, request, rng)
        return Reply(text, trace, n_tokens_in=40, n_tokens_out=n_out)

    def rng(self, request: Request, i: int) -> np.random.Generator:
        content = (self.name, request.messages, request.temperature, request.seed, i)
        digest = hashlib.sha256(repr(content).encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def trace(self, text: str, request: Request, rng: np.random.Generator) -> TokenTrace | None:
        """Tokens "[", each word, "]", with what the request wants and nothing else."""
        if not request.want:
            return None
        first, *rest = text.strip("[]").split(" ")
        tokens = ["["] if text.startswith("[") else []
        tokens += [first, *(f" {word}" for word in rest)]
        tokens += ["]"] if text.endswith("]") else []
        logprobs, entropies, renyi, fisher_rao, prior = rng.random((5, len(tokens)))
        found: dict[str, Any] = {}
        if "logprobs" in request.want:
            found["logprobs"] = -logprobs
        if "prior" in request.want:
            found["prior_logprobs"] = -2 * prior
        if "distributions" in request.want:
            found |= {"entropies": 2 * entropies, "renyi": renyi, "fisher_rao": fisher_rao}
            found |= {"certainty": 3 * renyi} if self.lists_all else {}
            others = range(1, request.n_alternatives)
            rests = np.log1p(-np.exp(-logprobs))  # each takes half of what those before it leave
            found["alternatives"] = tuple(
                ((token, float(-p)), *((f"x{i}", float(rest - i * np.log(2))) for i in others))
                for token, p, rest in zip(tokens, logprobs, rests, strict=True)
            )
        return TokenTrace(tuple(tokens), **found)

    @property
    def requests(self) -> list[Request]:
        """Everything asked so far, in order."""
        return [request for call in self.asked for request in call]

    def of(self, purpose: str) -> list[Request]:
        """What was asked for one purpose, in order."""
        return [request for request in self.requests if request.purpose == purpose]

    @property
    def n_replies(self) -> Counter[str]:
        """Replies asked for, by purpose."""
        counts: Counter[str] = Counter()
        for request in self.requests:
            counts[request.purpose] += request.n
        return counts


class Cold(FakeModel):
    """Ignores the temperature."""

    def reply(self, request: Request, i: int) -> Reply:
        return super().reply(replace(request, temperature=0.0), i)


class FakeEncoder:
    """Texts are alike by the letters that they share; ``groups`` keeps what was asked."""

    name, revision = "letters", "letters r1"

    def __init__(self) -> None:
        self.groups: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of the letters that occur."""
        occur = [[float(chr(i) in text.lower()) for i in range(32, 127)] for text in texts]
        rows = np.array(occur).reshape(len(texts), 95)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def windows(self, text: str) -> list[str]:
        return [text]

    def similarities(self, groups: Sequence[Sequence[str]]) -> list[np.ndarray]:
        self.groups += [list(group) for group in groups]
        return [self.similarity(group) for group in groups]

    def similarity(self, texts: Sequence[str]) -> np.ndarray:
        n, letters = len(texts), [set(text.lower()) for text in texts]
        return np.array([[len(a & b) / len(a | b) for b in letters] for a in letters]).reshape(n, n)


def prompt_of(request: Request) -> str:
    """The name of the prompt that a request's messages were made from."""
    return PROMPT_OF[request.messages[-1][1].splitlines()[-1]]


def medconf_reply(kind: str, user: str, rng: np.random.Generator) -> str:
    """The diagnosis as its keyword, a profile of three criteria, or an assessment of such."""
    last = user.splitlines()[-1]
    if kind == "keyword":
        return f"[{user.partition('Diagnosis: ')[2].partition(chr(10))[0]}]"
    if kind == "profile" and "JSON list" not in last:
        return "Look for fever and a cough."
    if kind == "profile":
        rows = [{"id": i, "description": f"criterion {rng.integers(99)}"} for i in (1, 2, 3)]
        for row in rows if "importance" in last else ():
            row["importance"] = str(rng.choice(IMPORTANCES))
        return json.dumps(rows)
    sure = {"reasoning": "It fits.", "confidence_score": f"<<{rng.integers(101)}>>"}
    made: dict[str, object] = {"confidence": sure}
    if '"criteria"' in last:
        listed = json.loads(user.partition("<profile>\n")[2].partition("\n</profile>")[0])
        for row in listed:
            row |= {"support_level": str(rng.choice(SUPPORT_LEVELS)), "evidence": None}
        made["criteria"] = listed
    return json.dumps(made)


def made_case(case_id: str, diagnosis: str = "Influenza", n: int = 11) -> Case:
    """A case of ``n`` statements that no other case has."""
    statements = tuple(
        Statement(f"Doctor: Question {i} for {case_id}?\nPatient: Answer {i}.") for i in range(n)
    )
    return Case(case_id, "made", statements, diagnosis, (diagnosis,))


def made_cases(n: int) -> list[Case]:
    """Cases ``a``, ``b``, ... whose diagnoses go round :data:`NAMES`."""
    return [made_case(chr(ord("a") + i), NAMES[i % len(NAMES)], 11 + i) for i in range(n)]
