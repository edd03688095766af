"""Shows the prompts of a run."""

from __future__ import annotations

from collections.abc import Iterable

from trustlab.html.pages import PURPOSES
from trustlab.html.show import Html, render
from trustlab.prompts import EMBEDDED, Prompts, names, parts
from trustlab.records import GIVEN
from trustlab.settings import Setup
from trustlab.workbench import Workbench, opened

SAMPLES = {"samples": "diagnosis", **{name: prompt for name, (prompt, _) in GIVEN.items()}}
"""Purpose of a request -> its prompt, where that has another name."""


def prompts_of(purposes: Iterable[str]) -> list[str]:
    """The prompts that requests of these purposes use, each once, in the order of asking;
    ``ValueError`` for a purpose without one."""
    found = {SAMPLES.get(purpose, purpose) for purpose in purposes}
    for name in found:
        template(name)
    order = [name for name in PURPOSES if name not in SAMPLES]
    return [name for name in dict.fromkeys([*order, *names()]) if name in found]


def prompts_shown(purposes: Iterable[str], setup: Setup | Workbench | None = None) -> Html:
    """Every prompt that requests of these ``purposes`` use, folded: what it is for, its system and
    its user text with their slots, in the sets that the models of ``setup`` are asked with."""
    bench = opened(setup)
    sets = {(p := bench.prompts_for(model)).name: p for model in bench.repliers()}
    prompts = [
        (name if len(sets) == 1 else f"{name} ({of.name})", about(name), *template(name, of))
        for name in prompts_of(purposes)
        for of in sets.values()
    ]
    optional = any(line.startswith("@") for *_, user in prompts for line in user.split("\n"))
    return render("prompts", prompts=prompts, optional=optional)


def template(name: str, prompts: Prompts = EMBEDDED) -> tuple[str, str]:
    """The (system, user) texts of prompt ``name``; ``ValueError`` names the known ones."""
    _, system, user = parts(prompts.file(f"{name}.txt"))
    return system, user


def about(name: str) -> str:
    """What prompt ``name`` is for, in a sentence; ``ValueError`` names the known ones."""
    return parts(EMBEDDED.file(f"{name}.txt"))[0]
