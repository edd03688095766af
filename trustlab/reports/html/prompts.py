"""Shows the prompts of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trustlab.prompts import EMBEDDED, names, parts
from trustlab.records import GIVEN
from trustlab.reports.html.pages import PURPOSES
from trustlab.reports.html.show import Html, render
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup

SAMPLES = {
    "samples": "diagnosis",
    **{name: prompt for name, (prompt, _) in GIVEN.items()},
}
"""Purpose of a request -> its prompt, where that has another name."""


def prompts_of(purposes: Iterable[str]) -> list[str]:
    """The prompts that requests of these purposes use, each once, in the order of asking;
    ``ValueError`` for a purpose without one."""
    used = {SAMPLES.get(purpose, purpose) for purpose in purposes}
    for name in used:
        EMBEDDED.file(f"{name}.txt")
    in_order = dict.fromkeys([*PURPOSES, *names()])
    return [name for name in in_order if name in used]


def prompts_shown(
    purposes: Iterable[str], setup: Setup | Workbench | None = None
) -> Html:
    """Every prompt that requests of these ``purposes`` use, folded. Each shows its purpose, its
    system text and its user text with their slots, in the sets that the models of ``setup`` use."""
    bench = opened(setup)
    of_models = map(bench.prompts_for, bench.repliers())
    prompt_sets = {prompt_set.name: prompt_set for prompt_set in of_models}
    prompts = []
    for name in prompts_of(purposes):
        about, *_ = parts(EMBEDDED.file(f"{name}.txt"))
        for prompt_set in prompt_sets.values():
            title = name if len(prompt_sets) == 1 else f"{name} ({prompt_set.name})"
            _, system, user = parts(prompt_set.file(f"{name}.txt"))
            prompts.append((title, about, system, user))
    has_optional_lines = any(
        re.search("^@", user, re.MULTILINE) for *_, user in prompts
    )
    return render("prompts", prompts=prompts, optional=has_optional_lines)
