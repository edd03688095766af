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
    entries = f"{read.n_entries:,} {'entry' if read.n_entries == 1 else 'entries'}"
    blocks = [
        f"{name}: {entries} read, {len(cases):,} case{'s' * (len(cases) != 1)}",
        *(_printable(f"dropped, {loss}") for loss in read.losses),
        *(f"{what}: {n}" for what, n in read.facts.items()),
    ]
    if cases:
        blocks += ["", *_lengths(cases), "", *_labels(cases), _covered(cases)]
        blocks += ["", *_example("first", cases[0]), "", *_example("last", cases[-1])]
    return "\n".join([*blocks, "", NOTICE])


def _lengths(cases: Sequence[Case]) -> list[str]:
    counts = {
        "statements a case": [len(case.statements) for case in cases],
        "words a case": [sum(len(str(s).split()) for s in case.statements) for case in cases],
    }
    table = pd.DataFrame(counts).describe().loc[["min", "25%", "50%", "75%", "max", "mean"]]
    table.index = ["smallest", "quarter", "median", "three quarters", "largest", "mean"]
    return table.T.to_string(float_format="{:,.1f}".format).splitlines()


def _labels(cases: Sequence[Case]) -> list[str]:
    counts = Counter(case.diagnosis for case in cases)
    rest = len(counts) - N_LABELS
    lines = [f"diagnoses: {len(counts)} different, the most frequent"]
    lines += [f"  {n:>6,}  {_printable(label)}" for label, n in counts.most_common(N_LABELS)]
    return lines + ([f"  and {rest} more"] if rest > 0 else [])


def _covered(cases: Sequence[Case]) -> str:
    """For how many cases the knowledge table has a condition of an accepted name."""
    named = load_knowledge().condition_named
    known = [c.diagnosis for c in cases if any(map(named, c.accepted))]
    n_labels = len({case.diagnosis for case in cases})
    names = f"the knowledge table has {len(set(known))} of the {n_labels} diagnoses"
    text = f"{names}, the right one in {len(known):,} of {len(cases):,} cases"
    if len(known) == len(cases):
        return text
    only = "elsewhere only the names in the data count as right"
    return f"{text}; {only}, and the embedded models cannot know the disease"


def _example(which: str, case: Case) -> list[str]:
    lines = [_printable(f"the {which} case: {case.case_id}, {case.diagnosis}")]
    for i, statement in enumerate(case.statements[:N_SHOWN], 1):
        lines.append(f"  {i}. " + "\n     ".join(map(_printable, str(statement).split("\n"))))
    return [*lines, f"  asked: {_printable(case.question)}"] if case.question else lines


def _printable(text: str) -> str:
    """The text without characters that could command a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
