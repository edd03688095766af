"""The generated world: patients drawn from the knowledge table, and the exact posterior of their
diagnosis.

The law, in full, so that the posterior is exact and not an estimate. A condition c is drawn by its
prior, a sex by the condition's, a talkativeness r and a denial rate d from fixed grids. Then,
independently for each finding f:

- told with probability r w(c, f), where w is the table's grade, or a little noise where c does not
  list f;
- denied with probability r d (1 - w) a(c, f): doctors ask mostly about the body system that is
  involved;
- not spoken of otherwise.

Follow-ups come up only once their parent has been told: a site, a character and the like with
probability r each, others by the law above. Travel comes up with probability 0.7 r, whatever the
answer. A patient who tells no symptom at all is drawn again (within the same c, sex, r, d). The
first statement is one of the told symptoms, the rest follow in random order, parents before
follow-ups. Order and wording carry no information on c.

A patient knows more than they tell: the *record* holds every finding that is so, told or not (each
with probability w, follow-ups where their parent is so). Whoever is asked answers from it, yes or
no, whatever r and d are; which questions are put follows from what was said before, so an answer
counts as w or 1 - w, and for a value as its chance, in place of not having been spoken of.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trustlab.knowledge.findings import Condition, Finding, Knowledge, load_knowledge
from trustlab.records import Statement

TALK = (0.04, 0.10, 0.20, 0.35, 0.50, 0.70, 0.90)
TALK_CHANCE = (0.16, 0.12, 0.12, 0.15, 0.15, 0.15, 0.15)
DENIAL = (0.0, 0.15, 0.4, 0.8)
DENIAL_CHANCE = (0.35, 0.2, 0.2, 0.25)
SEXES = ("female", "male")
NOISE = 0.15
"""An unlisted finding is present with this share of its background: most things that are there
never come up."""
ASKED_NEAR, ASKED_FAR = 0.25, 0.01
"""Chance that a finding is asked about: listed by some condition of the same body system, or
not."""
TRAVEL, TRAVEL_ASKED = "recent_travel", 0.7
"""The one value-finding without a parent, and the chance that it comes up at full talkativeness."""
VALUE_FLOOR = 0.001
SCALE_FLOOR = 0.03
NONE_DEFAULT = 0.03


@dataclass(frozen=True)
class Fact:
    """One spoken finding: affirmed or denied, with its values (ids, or a number from 0 to 10 as
    text)."""

    finding: str
    affirmed: bool
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Patient:
    """A generated patient: the truth, the facts in the order they are told, and all that is so."""

    condition: str
    sex: str
    facts: tuple[Fact, ...]
    record: tuple[Fact, ...] = ()

    def answer(self, finding: str) -> Fact:
        """What the patient says when asked for it: what is not in the record is not so."""
        of_record = (f for f in (*self.facts, *self.record) if f.finding == finding)
        return next(of_record, Fact(finding, False))


class World:
    """Draws patients and computes posteriors. Pure given a ``numpy`` generator."""

    def __init__(self, knowledge: Knowledge | None = None):
        self.knowledge = knowledge or load_knowledge()
        self.conditions: list[Condition] = list(self.knowledge.conditions.values())
        self.index = {c.id: i for i, c in enumerate(self.conditions)}
        self.prior = np.array([c.prior for c in self.conditions], float)
        self.prior /= self.prior.sum()
        self.findings: list[Finding] = [
            f for f in self.knowledge.findings.values() if f.form == "binary"
        ]
        self.column = {f.id: j for j, f in enumerate(self.findings)}
        self.valued = [f for f in self.knowledge.findings.values() if f.form != "binary"]
        self.grid = [(r, d) for r in TALK for d in DENIAL]
        self.grid_chance = np.array([a * b for a in TALK_CHANCE for b in DENIAL_CHANCE])
        self.grid_chance /= self.grid_chance.sum()
        self.top = np.array([f.parent is None for f in self.findings])
        self.symptom = np.array([f.kind == "symptom" and f.parent is None for f in self.findings])
        self.children = {
            p: [f for f in self.knowledge.findings.values() if f.parent == p]
            for p in self._parents()
        }

    def _parents(self) -> list[str]:
        return list(dict.fromkeys(f.parent for f in self.knowledge.findings.values() if f.parent))

    @cached_property
    def presence(self) -> np.ndarray:
        """w, of shape (sex, condition, binary finding)."""
        w = np.array(
            [
                [c.findings.get(f.id, NOISE * f.background) for f in self.findings]
                for c in self.conditions
            ]
        )
        both = np.stack([w, w])
        for j, f in enumerate(self.findings):
            if f.sex:
                both[1 - SEXES.index(f.sex), :, j] = 0.0
        return both

    @cached_property
    def asked(self) -> np.ndarray:
        """a, of shape (sex, condition, binary finding)."""
        by_system: dict[str, set[str]] = {}
        for c in self.conditions:
            by_system.setdefault(c.system, set()).update(c.findings)
        a = np.array(
            [
                [ASKED_NEAR if f.id in by_system[c.system] else ASKED_FAR for f in self.findings]
                for c in self.conditions
            ]
        )
        common = np.array([f.background >= 0.3 for f in self.findings])
        a[:, common] = ASKED_FAR
        both = np.stack([a, a])
        for j, f in enumerate(self.findings):
            if f.sex:
                both[1 - SEXES.index(f.sex), :, j] = 0.0
        return both

    def sex_chance(self, condition: Condition) -> np.ndarray:
        """P(female), P(male)."""
        return {
            "any": np.array([0.5, 0.5]),
            "female": np.array([1.0, 0.0]),
            "male": np.array([0.0, 1.0]),
        }[condition.sex]

    # -- values
    # ----------------------------------------------------------------------------------------------

    def value_ids(self, finding: Finding) -> list[str]:
        """What ``finding`` can be: value ids, or the numbers 1 to 10; its denial is "nothing"."""
        if finding.form == "scale":
            return [str(k) for k in range(1, 11)]
        if finding.form == "flag":
            return ["flag"]
        return [v.id for v in self.knowledge.values.values() if v.kind == finding.values]

    @cached_property
    def value_chance(self) -> dict[str, tuple[np.ndarray, np.ndarray, list[str]]]:
        """By finding: (chances (sex, condition, value), chance of "nothing" (condition,), value
        ids)."""
        table = {}
        for f in self.valued:
            ids = self.value_ids(f)
            rows, none = zip(
                *(self._value_row(f, ids, c.values.get(f.id, {})) for c in self.conditions),
                strict=True,
            )
            both = np.stack([np.array(rows)] * 2)
            for k, v in enumerate(ids):
                sex = self.knowledge.values[v].sex if v in self.knowledge.values else None
                if sex:
                    both[1 - SEXES.index(sex), :, k] = 0.0
            table[f.id] = (both, np.array(none), ids)
        return table

    @staticmethod
    def _value_row(
        finding: Finding, ids: list[str], given: Mapping[str, float]
    ) -> tuple[list[float], float]:
        if finding.form == "scale":
            mean, sd = given.get("mean", 4.0), given.get("sd", 2.5)
            p = np.exp(-0.5 * ((np.arange(11) - mean) / sd) ** 2)
            p = (1 - SCALE_FLOOR) * p / p.sum() + SCALE_FLOOR / 11
            return list(p[1:] / p[1:].sum()), float(p[0])
        if finding.form == "flag":
            return [1.0], 1 - float(np.clip(given.get("flag", 0.2), 0.02, 0.98))
        none = float(np.clip(given.get("none", NONE_DEFAULT), 0.01, 0.99))
        p = np.array([max(float(given.get(v, 0.0)), VALUE_FLOOR) for v in ids])
        return list(np.minimum(p, 0.97) if finding.form == "several" else p / p.sum()), none

    def value_loglik(self, fact: Fact) -> np.ndarray:
        """Log-likelihood log P(values | condition, sex) of a spoken value-finding, shape (sex,
        condition)."""
        p, none, ids = self.value_chance[fact.finding]
        if not fact.affirmed:
            return np.broadcast_to(np.log(none), p.shape[:2])
        chosen = (
            [ids.index(v) for v in fact.values]
            if self.knowledge.findings[fact.finding].form != "flag"
            else [0]
        )
        with np.errstate(divide="ignore"):
            if self.knowledge.findings[fact.finding].form != "several":
                return np.log(1 - none) + np.log(p[..., chosen[0]])
            empty = np.log1p(-p).sum(-1)
            inside = (np.log(p[..., chosen]) - np.log1p(-p[..., chosen])).sum(-1)
            return np.log(1 - none) + empty + inside - np.log1p(-np.exp(empty))

    # -- the posterior
    # ------------------------------------------------------------------------------------------

    @cached_property
    def _log(self) -> dict[str, np.ndarray]:
        """Log-chances (grid, sex, condition, binary finding) of told, denied, silent; and of
        silence overall."""
        r = np.array([g[0] for g in self.grid])[:, None, None, None]
        d = np.array([g[1] for g in self.grid])[:, None, None, None]
        told = r * self.presence[None]
        denied = r * d * (1 - self.presence[None]) * self.asked[None]
        with np.errstate(divide="ignore"):
            silent = np.log1p(-(told + denied))
            accept = np.log(-np.expm1(np.log1p(-told[..., self.symptom]).sum(-1)))
            sexes = np.log(np.array([self.sex_chance(c) for c in self.conditions]).T)
            base = (
                silent[..., self.top].sum(-1)
                - accept
                + sexes[None]
                + np.log(self.prior)
                + np.log(self.grid_chance)[:, None, None]
            )
            if TRAVEL in self.value_chance:
                base = base + np.log1p(-TRAVEL_ASKED * r[..., 0])
            return {"told": np.log(told), "denied": np.log(denied), "silent": silent, "base": base}

    def posterior(
        self,
        facts: tuple[Fact, ...],
        sex: str | None = None,
        answers: tuple[Fact, ...] = (),
    ) -> np.ndarray:
        """P(condition | the facts told, the answers to what was asked, and the sex where it is
        known), exact under the law above (with answers: if nothing more would have been told
        unasked), shape (condition,)."""
        log, told = self._log, {f.finding for f in facts if f.affirmed}
        total = log["base"].copy()
        r = np.log(np.array([g[0] for g in self.grid]))[:, None, None]
        quiet = np.log1p(-np.array([g[0] for g in self.grid]))[:, None, None]
        for parent, children in self.children.items():
            if parent in told:
                for child in children:
                    total += (
                        quiet
                        if child.id in self.value_chance
                        else log["silent"][..., self.column[child.id]]
                    )
        for fact in facts:
            if fact.finding in self.column:
                j = self.column[fact.finding]
                total += log["told" if fact.affirmed else "denied"][..., j] - log["silent"][..., j]
            elif fact.finding == TRAVEL:
                total += (
                    (r + np.log(TRAVEL_ASKED))
                    - np.log1p(-TRAVEL_ASKED * np.exp(r))
                    + self.value_loglik(fact)[None]
                )
            else:
                total += r - quiet + self.value_loglik(fact)[None]
        for fact in answers:
            total += self._of_answer(fact, told)
        if sex is not None:
            total = total[:, [SEXES.index(sex)]]
        flat = np.exp(total - total.max())
        weights = flat.sum((0, 1))
        return weights / weights.sum()

    def _of_answer(self, fact: Fact, told: set[str]) -> np.ndarray:
        """What an answer adds to the log-chances: its own, less that it was not spoken of (where a
        follow-up's parent was told)."""
        f = self.knowledge.findings[fact.finding]
        r = np.array([g[0] for g in self.grid])[:, None, None]
        counted = f.parent is None or f.parent in told
        if fact.finding in self.column:
            j = self.column[fact.finding]
            with np.errstate(divide="ignore"):
                w = self.presence[..., j]
                own = np.log(w if fact.affirmed else 1 - w)[None]
            return own - self._log["silent"][..., j] if counted else own
        silent = np.log1p(-r * (TRAVEL_ASKED if f.parent is None else 1))
        return self.value_loglik(fact)[None] - (silent if counted else 0)

    # -- drawing
    # ----------------------------------------------------------------------------------------------

    def draw(
        self,
        rng: np.random.Generator,
        *,
        talk: float | None = None,
        denial: float | None = None,
        condition: int | None = None,
    ) -> Patient:
        """One patient; ``talk`` and ``denial`` fix r and d, which are drawn from their grids
        otherwise, ``condition`` its place, drawn by the prior."""
        if condition is None:
            condition = int(rng.choice(len(self.conditions), p=self.prior))
        i = condition
        s = int(rng.choice(2, p=self.sex_chance(self.conditions[i])))
        r, d = self.grid[int(rng.choice(len(self.grid), p=self.grid_chance))]
        r, d = talk if talk is not None else r, denial if denial is not None else d
        while True:
            u = rng.random(len(self.findings))
            told = u < r * self.presence[s, i]
            if (told & self.symptom).any():
                break
        denied = ~told & (u > 1 - r * d * (1 - self.presence[s, i]) * self.asked[s, i])
        facts = []
        for j in np.flatnonzero(told | denied):
            f = self.findings[j]
            if f.parent is None or told[self.column[f.parent]]:
                facts.append(Fact(f.id, bool(told[j])))
        for f in self.valued:
            chance = r * TRAVEL_ASKED if f.parent is None else r * told[self.column[f.parent]]
            if rng.random() < chance:
                facts.append(self._draw_values(f, s, i, rng))
        record = self._record(u < self.presence[s, i], facts, s, i, rng.spawn(1)[0])
        return Patient(self.conditions[i].id, SEXES[s], self._order(facts, rng), record)

    def _record(
        self, so: np.ndarray, told: list[Fact], s: int, i: int, rng: np.random.Generator
    ) -> tuple[Fact, ...]:
        """All that is so, in the table's order: the same draw that decides what is told, and the
        values that are not told by a stream of their own."""
        spoken = {f.finding: f for f in told}
        found = []
        for f in self.knowledge.findings.values():
            if f.parent is not None and not so[self.column[f.parent]]:
                continue
            if f.id in self.column:
                fact = Fact(f.id, bool(so[self.column[f.id]]))
            else:
                fact = spoken.get(f.id) or self._draw_values(f, s, i, rng)
            if fact.affirmed:
                found.append(fact)
        return tuple(found)

    def _draw_values(self, f: Finding, s: int, i: int, rng: np.random.Generator) -> Fact:
        p, none, ids = self.value_chance[f.id]
        if rng.random() < none[i]:
            return Fact(f.id, False)
        if f.form == "flag":
            return Fact(f.id, True)
        if f.form != "several":
            return Fact(f.id, True, (ids[int(rng.choice(len(ids), p=p[s, i] / p[s, i].sum()))],))
        while True:
            chosen = np.flatnonzero(rng.random(len(ids)) < p[s, i])
            if len(chosen):
                return Fact(f.id, True, tuple(ids[k] for k in chosen))

    def _order(self, facts: list[Fact], rng: np.random.Generator) -> tuple[Fact, ...]:
        firsts = [
            f
            for f in facts
            if f.affirmed and f.finding in self.column and self.symptom[self.column[f.finding]]
        ]
        first = firsts[int(rng.integers(len(firsts)))]
        rest = [f for f in facts if f is not first]
        rest = [rest[k] for k in rng.permutation(len(rest))]
        order, waiting = [first], []
        for f in rest:
            parent = self.knowledge.findings[f.finding].parent
            if parent and parent not in {g.finding for g in order}:
                waiting.append(f)
                continue
            order.append(f)
            order += [w for w in waiting if self.knowledge.findings[w.finding].parent == f.finding]
            waiting = [w for w in waiting if self.knowledge.findings[w.finding].parent != f.finding]
        return tuple(order)

    def statement(self, fact: Fact, rng: random.Random | np.random.Generator) -> Statement:
        """The fact in words, one of its phrasings picked at random."""
        return self.knowledge.statement(
            fact.finding, fact.affirmed, fact.values, int(rng.random() * 1000003)
        )
