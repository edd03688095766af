"""Cases, knowledge tables, a judge and an encoder made for the tests of the graders."""

from __future__ import annotations

import numpy as np
from each import each

from trustlab.graders import EncoderGrader, ExactGrader, JudgeGrader, SynonymGrader
from trustlab.knowledge.findings import Condition, Knowledge
from trustlab.meaning.encoder import Encoder
from trustlab.models.base import Model, Request
from trustlab.records import Case, Reply, Statement, normalise


def case(diagnosis: str, *accepted: str) -> Case:
    return Case("c1", "made", (Statement("Cough."),), diagnosis, (diagnosis, *accepted))


def condition(name: str, *synonyms: str) -> Condition:
    return Condition(normalise(name), name, synonyms, 1.0, "any", (0, 99), "made", {}, {}, {})


CONDITIONS = (
    condition("Influenza", "Flu", "Grippe"),
    condition("Croup"),
    condition("Atrial fibrillation", "A-fib"),
)
TABLE = Knowledge(
    {}, {}, {}, condition_of_name={normalise(n): c for c in CONDITIONS for n in c.names}
)
NO_TABLE = Knowledge({}, {}, {})
PNEUMONIA = case("Pneumonia")
COPD = case("Chronic obstructive pulmonary disease", "Smoker's lung")


class SaysTrue(Model):
    """A judge that finds everything the same."""

    name, revision, provides = "agreeable", "r1", frozenset({"text"})

    taught = {"set": "embedded"}

    def __init__(self, text: str | None = "True", missing: str | None = None) -> None:
        self.reply, self.asked = Reply(text, missing=missing), []

    def generate(self, requests: list[Request]) -> list[list[Reply]]:
        self.asked += requests
        return [[self.reply] for _ in requests]


class EverythingAlike(Encoder):
    """An encoder to which all names are the same: what comes out wrong, a rule made wrong."""

    def encode(self, texts):
        return np.ones((len(texts), 1), dtype=np.float32)


EXACT, SYNONYM = ExactGrader(), SynonymGrader(NO_TABLE)
ALIKE = EncoderGrader(EverythingAlike(), knowledge=NO_TABLE)
AGREEABLE = JudgeGrader(SaysTrue(), knowledge=NO_TABLE)
GRADERS = {"exact": EXACT, "synonym": SYNONYM, "encoder": ALIKE, "judge": AGREEABLE}
EVERY = each("grader", GRADERS.values(), ids=GRADERS)
BY_WORDS = each("grader", [SYNONYM, ALIKE], ids=["synonym", "encoder"])
