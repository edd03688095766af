"""How training's patients tell a case: every fact stays with the statement that tells it, and no
wording is one of the starter's own conversations and reports."""

from __future__ import annotations

import re

import numpy as np
import pytest
from each import each

from training.charts import posterior as with_chart
from training.manner import MANNERS, tell, texts
from training.world import World
from trustlab.datasets import load_cases
from trustlab.knowledge.chart import Chart
from trustlab.records import normalise


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@each("manner", MANNERS)
def test_each_fact_stands_in_the_text_with_its_finding(manner: str, world: World) -> None:
    for seed in range(12):
        patient = world.draw(rng(seed), talk=0.7, denial=0.4)
        statements, text, chances = tell(world, patient, manner, rng(seed))
        told = [(s.finding, s.affirmed) for s in statements]
        assert told == [(f.finding, f.affirmed) for f in patient.facts]
        assert all(s.text in text for s in statements) and not re.search(r"[{}]", text)
        assert chances.sum() == pytest.approx(1)
        if manner == "report":
            age = int(re.findall(r"\b\d+\b", text.split("\n")[0])[0])
            chart = Chart(age, patient.sex)
            assert chances == pytest.approx(with_chart(world, patient, chart))
            other = {"female": r"\b(He|his|him)\b", "male": r"\b(She|she|her)\b"}[patient.sex]
            assert not re.search(other, text.replace("her husband", "").replace("his wife", ""))
        else:
            assert chances == pytest.approx(world.posterior(patient.facts))
            assert text.count("Doctor: ") == text.count("Patient: ") > 0


def test_no_wording_of_training_stands_in_the_starter_s_conversations_and_reports() -> None:
    """Held out: eight words in a row that both have."""

    def runs(text: str) -> set[tuple[str, ...]]:
        words = normalise(re.sub(r"\{\w+\}", "", text)).split()
        return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}

    taught = set().union(*map(runs, texts()))
    for name in ("starter-dialogue", "starter-report"):
        for case in load_cases(name):
            for statement in case.statements:
                assert not runs(statement.text) & taught, (case.case_id, statement.text)
