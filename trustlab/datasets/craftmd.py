"""Reads CRAFT-MD's conversations of a model with a simulated patient."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from trustlab.datasets.cases_file import (
    MIN_STATEMENTS,
    Read,
    Row,
    Text,
    names_its_diagnosis,
    parse_row,
)
from trustlab.datasets.public_replies import not_diseases
from trustlab.knowledge.findings import load_knowledge
from trustlab.records import Case, Statement
from trustlab.tables import whole_json, within

NO_DISEASE = "the right answer is no disease"
SHORT = f"fewer than {MIN_STATEMENTS} exchanges"
SPOKEN = "a conversation that names the diagnosis"


class _Turn(Row):
    role: Text
    content: str


class _Trial(Row):
    multiturn_conversation: list[_Turn]


class _Entry(Row):
    case_id: Text
    correct_ans: Text
    trial_0: _Trial


def read(path: Path, seed: int = 0) -> Read:
    """The first conversation about each case, as cases in the order of the files' names.

    ``path``: a folder of the files case_N.json of one model, such as the repository's
    results/gpt4_1106. A statement is the doctor's question and the patient's answer; what the
    doctor says last is not shown. Dropped: cases whose answer is no disease, with 10 statements or
    fewer, or whose conversation names the diagnosis. ``ValueError``: a folder without such files.
    :class:`DataError`: a bad file. ``seed``: not used.
    """
    files = sorted(path.glob("case_*.json"))
    if not files:
        raise ValueError(
            f"path is {str(path)!r}, without a case_N.json; allowed is a folder of files"
            " case_N.json, such as results/gpt4_1106"
        )
    dropped: defaultdict[str, list[str]] = defaultdict(list)
    cases: list[Case] = []
    other_truths = not_diseases()
    for case in map(_read_case, files):
        if case.diagnosis in other_truths:
            dropped[NO_DISEASE].append(case.case_id)
        elif len(case.statements) < MIN_STATEMENTS:
            dropped[SHORT].append(case.case_id)
        elif names_its_diagnosis(case):
            dropped[SPOKEN].append(case.case_id)
        else:
            cases.append(case)
    return Read(cases, len(files), dict(dropped))


def _read_case(file: Path) -> Case:
    """The case of a file, whatever its length and diagnosis."""
    bad = within(file, "", "")
    entry = parse_row(_Entry, whole_json(file), bad)
    turns = entry.trial_0.multiturn_conversation[1:]  # after the prompt
    roles = [turn.role for turn in turns]
    if set(roles[::2]) != {"assistant"} or set(roles[1::2]) - {"user"}:
        raise bad("trial_0, roles after the first", roles, "assistant and user in turn")
    exchanges = zip(turns[::2], turns[1::2], strict=False)  # the doctor speaks last
    statements = [
        Statement(f"Doctor: {question.content}\nPatient: {answer.content}")
        for question, answer in exchanges
    ]
    name = entry.correct_ans.strip(' \n"')
    names = load_knowledge().names_for(name)
    return Case(f"craftmd-{entry.case_id}", "craftmd", tuple(statements), name, names)
