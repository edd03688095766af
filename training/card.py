"""The card of an embedded model, written from what is known of it: ``python -m training.card --name
NAME``.

Reads ``sittings.json``, ``evaluation.json`` (``training.evaluate``) and ``config.json`` beside the
weights, and in ``training/cards`` the words of all cards and, in ``NAME.txt``, what the model
cannot do. Writes ``data/models/NAME/README.md``.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

import yaml
from safetensors import safe_open

from trustlab.confidence import METHODS
from trustlab.knowledge.findings import load_knowledge
from trustlab.levels import LEVELS
from trustlab.models.by_name import EMBEDDED
from trustlab.paths import ROOT
from trustlab.records import SUPPORT_LEVELS

from .clinic import CARELESS
from .replies import SCORED
from .talk import ENOUGH

CARDS = ROOT / "training" / "cards"
SETS = {"generated": "generated", "ddxplus": "DDXPlus"}
NOTICE = """**Research only. Not for clinical use. What is measured on it says nothing about large
models.**"""
WORDS: dict[str, Any] = yaml.safe_load((CARDS / "words.yml").read_text(encoding="utf-8"))
ABOUT, TASKS, STEPS = WORDS["about"], WORDS["tasks"], WORDS["steps"]
TAUGHT: dict[str, str] = {
    skill: text.format(enough=f"{100 * ENOUGH:g}", careless=f"{100 * CARELESS:g}")
    for skill, text in WORDS["taught"].items()
}
WHOLE = 0.95
"""Below that share of its time a sitting was cut short: its rate did not fall to nothing."""


def card(
    name: str, evaluation: Mapping[str, Any], sittings: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any], size: int, cannot: str,
) -> str:  # fmt: skip
    """The card as Markdown: ``config`` is the model's own, ``size`` its number of parameters.

    ``ValueError`` for an unknown name, no sittings, or a skill that nothing is said of.
    """
    if name not in ABOUT:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(ABOUT)}")
    skills = {skill for sitting in sittings for skill in sitting["mixture"]}
    if not skills or skills - set(TAUGHT):
        raise ValueError(f"{name} was taught {sorted(skills)}; known are {', '.join(TAUGHT)}")
    title, about = ABOUT[name]
    shape = (
        f"{config['num_hidden_layers']} layers, width {config['hidden_size']},"
        f" {config['num_attention_heads']} heads"
    )
    first = f"""A causal language model of {size / 1e6:.1f} million parameters (Llama architecture:
        {shape}; half-precision safetensors, opened in single precision). {about} {NOTICE}"""
    parts = [
        f"# {title}",
        _fill(first),
        "## What it was taught",
        *_taught(sittings),
        "## How it was made",
        *_made(sittings, config),
        "## What it can do",
        *_measured(name, evaluation),
        "## What it cannot do",
        f"{cannot.strip()}\n{_always(skills)}",
    ]
    return "\n\n".join(parts) + "\n"


def _fill(text: str, first: str = "", later: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()), 130, initial_indent=first, subsequent_indent=later,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _taught(sittings: Sequence[Mapping[str, Any]]) -> list[str]:
    columns: dict[str, Mapping[str, float]] = {}
    numbered = enumerate(sittings, 1)
    for mixture, group in groupby(numbered, key=lambda each: each[1]["mixture"]):
        of = [number for number, _ in group]
        columns[f"{of[0]} to {of[-1]}" if len(of) > 1 else str(of[0])] = mixture
    skills = [skill for skill in TAUGHT if any(skill in mixture for mixture in columns.values())]
    if len(columns) > 1:
        pools = sum(s["pools"] for s in sittings)
        columns["all"] = {
            k: sum(s["pools"] * s["mixture"].get(k, 0) for s in sittings) / pools for k in skills
        }
    text = """Only text that this repository makes: the package's own prompts (`trustlab/prompts/`),
        rendered for patients drawn from `data/knowledge/` (`training/world.py`), with the reply an
        informed clinician would give (`training/replies.py`). Patients speak in the table's words
        or in others that only training uses (`training/wordings/`); where a diagnosis, a score or
        evidence is asked for, some are told as a conversation or as a case report."""
    if set(SCORED) & set(skills):
        text += """ What is to be judged is mostly the model's own answer as it last was, or that of
            a hasty reader, so that a wrong one is plausible."""
    rows = ([f"*{k}*", *(_percent(mix.get(k, 0)) for mix in columns.values())] for k in skills)
    return [
        _fill(text),
        "\n".join(_fill(f"*{skill}*: {TAUGHT[skill]}", "- ", "  ") for skill in skills),
        "Share of each skill, percent, by sitting:",
        _table(["skill", *columns], rows),
    ]


def _made(sittings: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> list[str]:
    begun = """It began with the weights of an earlier model of this repository, the one up to
        commit be5fcee, trained by the recipe that can be read there."""
    if sittings[0].get("scratch"):
        begun = """It began with random weights, but for embeddings that know what their phrases
            mean (`training/begin.py`) and heads that can look things up (`training/heads.py`)."""
    minutes, tokens, steps = (sum(s[k] for s in sittings) for k in ("minutes", "tokens", "steps"))
    text = f"""{begun} Then came {len(sittings)} sittings (`training/train.py`): together
        {minutes:g} minutes on one thread, {tokens / 1e6:.1f} million tokens, {steps:,} steps of
        AdamW, each example new. In a sitting the rate rises, stays, and falls to nothing at its
        end."""
    if any("ce" in sitting["mixture"] for sitting in sittings):
        text += """ Scores are exact posteriors: of the score token the mean of its distribution is
            held against them."""
    vocabulary = f"""The vocabulary ({config["vocab_size"]:,}) holds whole phrases as tokens: an
        answer, a question, a passage's sentence, a line of a prompt; names of conditions stand in
        pieces of four letters. Nothing was chosen or tuned on a DDXPlus patient."""
    rows = [
        [f"{i}{' (cut short)' if s.get('done', 1) < WHOLE else ''}", s["name"],
         f"{s['minutes']:g}", f"{s['steps']:,}", f"{s['tokens'] / 1e6:.1f}",
         str(s["seed"]), f"{s['loss']:.3f}"]
        for i, s in enumerate(sittings, 1)
    ]  # fmt: skip
    head = ["sitting", "as", "minutes", "steps", "million tokens", "seed", "last loss"]
    return [_fill(text), _table(head, rows), _fill(vocabulary)]


def _measured(name: str, evaluation: Mapping[str, Any]) -> list[str]:
    found = {key: evaluation[key] for key in SETS if key in evaluation}
    parts = _diagnosed(found) if found else []
    if "labels" in evaluation:
        rows = [
            [level, str(its["n"]), _percent(its["labelled"]), _percent(its["quoted"])]
            for level, its in evaluation["labels"].items()
        ]
        text = "Criteria of lists in which contradictions are frequent, percent, by true label:"
        parts += [text, _table(["", "n", "labelled right", "quoted right"], rows)]
    for part in [part for part in TASKS if part in evaluation]:
        (told, skills), its = TASKS[part], evaluation[part]
        rows = [[t, _percent(its[k][m])] for k, rows in skills.items() for m, t in rows.items()]
        n = its["examples_of_each"]
        parts += [f"{told}: {n} generated prompts of each kind, percent:"]
        parts += [_table(["", "replies"], rows)]
    unread = ", ".join(f"{r['unreadable_answers']} {SETS[key]}" for key, r in found.items())
    unread = f"Answers without a diagnosis in square brackets: {unread}. " if found else ""
    folder = " --ddxplus FOLDER" if "ddxplus" in found else ""
    last = f"""{unread}The numbers are of revision `{evaluation["revision"]}`, come from
        `python -m training.evaluate --name {name}{folder}` and stand in full in
        `evaluation.json`."""
    return [*parts, _fill(last)]


def _diagnosed(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    levels = [str(level) for level in LEVELS]

    def by_level(label: str, values: Mapping[str, float]) -> list[str]:
        return [label, *(_percent(values.get(level)) for level in levels)]

    accuracy = []
    for key, report in found.items():
        accuracy += [by_level(f"{SETS[key]} patients, n = {report['cases']}", report["accuracy"])]
        if best := report.get("best_possible_accuracy"):
            accuracy += [by_level("the same, best possible (exact posterior)", best)]
    parts = [
        "Accuracy of the greedy answer, percent, by information level (percent of statements"
        " shown):",
        _table(["", *levels], accuracy),
    ]
    sure = [
        by_level(SETS[key], report["sequence_probability"]["mean_by_level"])
        for key, report in found.items()
        if "sequence_probability" in report
    ]
    if sure:
        parts += [
            "Mean sequence probability of the answer, percent (near the accuracy = calibrated):",
            _table(["", *levels], sure),
        ]
    for key, report in reversed([*found.items()]):
        n = len(report["accuracy"]) * report["cases"]
        text = f"""Confidence on the {SETS[key]} patients, all levels together ({n:,} answers; ECE
            with 15 equal-mass bins; parse: percent of answers with a value; – where it has no
            meaning, or too few values):"""
        head = ["", "AUROC pooled", "AUROC within level", "ECE", "Brier", "parse"]
        parts += [_fill(text), _table(head, _confidences(report))]
    steps = _steps([report["medconf_steps"] for report in found.values()])
    return [*parts, "MedConf's steps, percent:", _table(["", *(SETS[k] for k in found)], steps)]


def _confidences(report: Mapping[str, Any]) -> Iterable[list[str]]:
    for method, parsed in report["replies_that_parse"].items():
        found, calibrated = report.get(method, {}), METHODS[method].scale == "probability"
        names = ["auroc", "auroc_within_level", *(("ece", "brier") if calibrated else ("", ""))]
        values = (found.get(k) for k in names)
        cells = ("–" if value is None else f"{value:.3f}" for value in values)
        yield [f"`{method}`", *cells, _percent(parsed)]


def _steps(found: Sequence[Mapping[str, Any]]) -> Iterable[list[str]]:
    for step, label in STEPS.items():
        yield [label, *(_percent(steps[step]) for steps in found)]
        if step == "criteria_labelled_right":
            for level in SUPPORT_LEVELS:
                values = (steps["labelled_right_by_true_label"].get(level) for steps in found)
                yield [f"... that are truly {level}", *map(_percent, values)]


def _always(skills: Iterable[str]) -> str:
    told = [
        f"""It knows {len(load_knowledge().conditions)} conditions and answers with one of their
        names, whatever it is shown. Other diseases, other languages, the free text of others: its
        answers there are guesses.""",
        "It does no other task than those above, and follows no other instruction.",
        """It knows nothing of severity or course beyond what a statement says, and of age and sex
        only where a chart or a report says them.""",
    ]
    if "plan" in skills:
        told.append("""What it knows of drugs and tests is the safety table's rules, which no
            clinician has reviewed; doses it never weighs.""")
    return "\n".join(_fill(text, "- ", "  ") for text in told)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("|  |", "| |")


def n_parameters(weights: Path) -> int:
    """How many numbers a safetensors file holds; tied weights stand in it once."""
    with safe_open(weights, "np") as held:
        return sum(prod(held.get_slice(key).get_shape()) for key in held.keys())  # noqa: SIM118 (no mapping)


def made_of(name: str, folder: Path) -> str:
    """The card of the model that lies in a folder."""
    evaluation, sittings, config = (
        json.loads((folder / f"{file}.json").read_text(encoding="utf-8"))
        for file in ("evaluation", "sittings", "config")
    )
    cannot = (CARDS / f"{name}.txt").read_text(encoding="utf-8")
    size = n_parameters(folder / "model.safetensors")
    return card(name, evaluation, sittings, config, size, cannot)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", choices=list(ABOUT), default="embedded")
    name = parser.parse_args(argv).name
    text = made_of(name, EMBEDDED[name])
    (EMBEDDED[name] / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
