"""Shows what is in a data set: counts, drops, lengths, labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from trustlab.datasets.cases_file import Read
from trustlab.knowledge.findings import load_knowledge
from trustlab.paths import NOTICE
from trustlab.records import Case

N_LABELS, N_SHOWN = 10, 3
"""How many labels are listed, and how many statements of an example are shown."""


def check_text(name: str, read: Read) -> str:
    """The report of ``trustlab data check``, in plain text. Every case is made."""
    read = replace(read, cases=list(read.cases))
    cases = read.cases
    entries = "entry" if read.n_entries == 1 else "entries"
    cases_word = "case" if len(cases) == 1 else "cases"
    lines = [f"{name}: {read.n_entries:,} {entries} read, {len(cases):,} {cases_word}"]
    for loss in read.losses:
        lines.append(_printable(f"dropped, {loss}"))
    for what, count in read.facts.items():
        lines.append(f"{what}: {count}")
    if cases:
        lines += ["", *_length_lines(cases)]
        lines += ["", *_label_lines(cases), _coverage_line(cases)]
        lines += ["", *_example_lines("first", cases[0])]
        lines += ["", *_example_lines("last", cases[-1])]
    lines += ["", NOTICE]
    return "\n".join(lines)


def _length_lines(cases: Sequence[Case]) -> list[str]:
    """A table of how many statements and words a case has: quartiles, extremes and mean."""
    n_words = [
        sum(len(str(statement).split()) for statement in case.statements)
        for case in cases
    ]
    n_statements = [len(case.statements) for case in cases]
    lengths = pd.DataFrame({"statements a case": n_statements, "words a case": n_words})
    table = lengths.describe().loc[["min", "25%", "50%", "75%", "max", "mean"]]
    table.index = ["smallest", "quarter", "median", "three quarters", "largest", "mean"]
    return table.T.to_string(float_format="{:,.1f}".format).splitlines()


def _label_lines(cases: Sequence[Case]) -> list[str]:
    """The most frequent diagnoses, each with its number of cases."""
    counts = Counter(case.diagnosis for case in cases)
    n_more = len(counts) - N_LABELS
    lines = [f"diagnoses: {len(counts)} different, the most frequent"]
    for label, count in counts.most_common(N_LABELS):
        lines.append(f"  {count:>6,}  {_printable(label)}")
    if n_more > 0:
        lines.append(f"  and {n_more} more")
    return lines


def _coverage_line(cases: Sequence[Case]) -> str:
    """For how many cases the knowledge table has a condition of an accepted name."""
    condition_named = load_knowledge().condition_named
    covered = [
        case.diagnosis for case in cases if any(map(condition_named, case.accepted))
    ]
    n_labels = len({case.diagnosis for case in cases})
    names = f"the knowledge table has {len(set(covered))} of the {n_labels} diagnoses"
    text = f"{names}, the right one in {len(covered):,} of {len(cases):,} cases"
    if len(covered) == len(cases):
        return text
    only = "elsewhere only the names in the data count as right"
    return f"{text}; {only}, and the embedded models cannot know the disease"


def _example_lines(which: str, case: Case) -> list[str]:
    """The first statements of a case, numbered, and its own question."""
    lines = [_printable(f"the {which} case: {case.case_id}, {case.diagnosis}")]
    for number, statement in enumerate(case.statements[:N_SHOWN], 1):
        turns = map(_printable, str(statement).split("\n"))
        text = "\n     ".join(turns)
        lines.append(f"  {number}. {text}")
    if case.question:
        lines.append(f"  asked: {_printable(case.question)}")
    return lines


def _printable(text: str) -> str:
    """The text without characters that could command a terminal."""
    shown = ""
    for character in text:
        shown += character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
    return shown
