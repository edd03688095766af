"""The card of an embedded model, written from what is known of it: ``python -m training.card --name
NAME``.

Reads ``evaluation.json`` (``training.evaluate``) and ``config.json`` beside the weights, what
training left in ``training/checkpoints/NAME.json``, and ``training/cards/NAME.txt``, the only part
that is written by hand: what the model cannot do. Writes ``data/models/NAME/README.md``.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open

from trustlab.confidence import METHODS
from trustlab.knowledge import load_knowledge
from trustlab.levels import LEVELS
from trustlab.paths import DATA, ROOT

from .clinic import CARELESS
from .replies import STRETCH
from .talk import ENOUGH
from .train import BRANCHES, shares

CHECKPOINTS, CARDS = ROOT / "training" / "checkpoints", ROOT / "training" / "cards"
SETS = {"generated": "generated", "ddxplus": "DDXPlus"}
TITLES = {
    "embedded": "The embedded model",
    "embedded-closed": "embedded-closed: the embedded model's longer-trained sibling, text only",
}
ABOUT = {
    "embedded": (
        """
It exists so that trustlab runs anywhere with a real model: real next-token distributions, real samples, real mistakes.
"""
    ),
    "embedded-closed": (
        """
It has the architecture and the world of [`embedded`](../embedded/README.md) and was trained on for longer: both come off
one trunk. trustlab opens it behind a wrapper (`trustlab/models/base.py`) that shows words and no probabilities, as
most services do: **a stand-in for a model behind an API, not one.** Methods that need probabilities are missing for it,
with that reason.
"""
    ),
}
TAUGHT = {
    "diagnosis": (
        """
the patient's condition in square brackets. It is trained on the exact posterior of the conditions instead of on the one
that was drawn: the same law with less noise.
"""
    ),
    "p_true": "whether a proposed diagnosis is right, by its exact posterior.",
    "ce": (
        f"the exact posterior of the proposed diagnosis, its log-odds stretched by {STRETCH},"
        " rounded to 5."
    ),
    "cot_ce": "the same after reasons.",
    "topk_ce": "the same with four neighbouring guesses.",
    "prior": (
        """
the patient is left out, and any condition is the answer, by its prior: that is what the prior of an answer is scored on.
"""
    ),
    "keyword": "the words to look a diagnosis up by.",
    "profile": (
        "MedConf's symptom profile, from passages in changing subsets and orders; a quarter with an"
        " ablation."
    ),
    "evidence": "MedConf's list of evidence, a quarter with one of its ablations.",
    "lookup": (
        """
the evidence prompt for a patient who has told little and a profile of one to three criteria, with the reply up to the end
of its list.
"""
    ),
    "ask": (
        """
the question whose answer would tell most of the condition on average, of those not asked yet; any of the five best will do,
the better the likelier.
"""
    ),
    "enough": (
        f"whether the exact posterior of the likeliest condition has reached {100 * ENOUGH:g} %."
    ),
    "patient": (
        """
the words of the one fact that a question asks for, as they stand among all the patient's facts, or that the patient does
not know.
"""
    ),
    "rephrase_reply": (
        "another of the table's phrasings of the same finding, affirmed or denied as it was, with"
        " the same values."
    ),
    "rephrase_question": "a loose wording of the same question; of a loose one the table's.",
    "doctor": (
        """
what was told, what was denied, the three likeliest conditions, and then the condition, on the exact posterior given words, age
and sex.
"""
    ),
    "plan": (
        f"""
what the safety table gives for a diagnosis: {100 * CARELESS:.0f} % of the doctors it learned from do not look at the chart, the
others avoid what a rule speaks against.
"""
    ),
    "review_prescriptions": (
        "the rule check's rating of each drug, the words of the chart behind it, and the rule's"
        " reason."
    ),
    "review_tests": (
        "the rule check's flag of each test, the words behind it, and the rule's reason."
    ),
}
"""What each skill of ``training.replies`` asks for."""
TALKED = {
    ("ask", "right"): "a question among the five that would tell most",
    ("ask", "best"): "the very best question",
    ("ask", "asked_before"): "a question that was asked before (none is best)",
    ("enough", "right"): "whether enough is known, judged right",
    ("patient", "right_where_known"): "as a patient: the right fact, where one answers",
    ("patient", "right_where_unknown"): 'as a patient: "I don\'t know", where none does',
    ("rephrase_reply", "right"): "a reply in other words that mean the same",
    ("rephrase_question", "right"): "a question in other words that mean the same",
}
"""(skill, measure) of ``training.evaluate_talk`` -> its row in the card."""
PANEL = {
    ("doctor", "readable"): "as a doctor: reasoning and diagnosis that can be read",
    ("doctor", "diagnosis_right"): "the right diagnosis, from words, age and sex",
    ("doctor", "best_possible"): "(the best anyone could do on these patients)",
    ("doctor", "what_was_told_right"): "reasoning that repeats just what was told and denied",
    ("plan", "readable"): "plans that can be read",
    ("plan", "known_names"): "drugs and tests in them that the table knows",
    ("plan", "drugs_that_are_usual"): "drugs in them that are usual for the diagnosis",
    ("review_prescriptions", "right"): "prescriptions rated as the rules rate them",
    (
        "review_prescriptions",
        "sensitivity",
    ): "sensitivity: objects where a rule speaks against a drug",
    ("review_prescriptions", "specificity"): "specificity: rates SAFE where none does",
    ("review_prescriptions", "unknown_seen"): "made-up drugs called UNKNOWN",
    ("review_tests", "right"): "tests flagged as the rules flag them",
    ("review_tests", "sensitivity"): "sensitivity: objects where a rule speaks against a test",
    ("review_tests", "specificity"): "specificity: calls FINE where none does",
}
"""(skill, measure) of ``training.evaluate_clinic`` -> its row in the card."""
STEPS = {
    "keywords_that_find": "keywords that find passages (of distinct diagnoses)",
    "profile_entries_the_passages_state": "profile entries that the passages shown state",
    "criteria_of_the_passages_in_the_profile": (
        "criteria that the passages state, found in the profile"
    ),
    "criteria_labelled_right": "criteria labelled right",
    "quotations_that_occur": "quotations that occur in the patient's words",
    "summaries_that_agree": "summaries that agree with their list",
    "with_a_score": "assessments with a score",
}


class Stage(NamedTuple):
    """So many examples in a row, and the chance of each skill among them."""

    examples: int
    mixture: Mapping[str, float]


def stages(recipe: dict[str, Any], branch: Sequence[int]) -> list[Stage]:
    """The mixtures that a model met, in order: those of the trunk's pools up to its branch, then
    those of the branch."""
    at, length = branch
    met = [shares(recipe, n) for n in range(at)] + [
        shares(recipe, n, at) for n in range(at, at + length)
    ]
    found: list[Stage] = []
    for mixture in met:
        before = found.pop() if found and found[-1].mixture == mixture else Stage(0, mixture)
        found.append(Stage(before.examples + recipe["pool"], mixture))
    return found


def overall(listed: Sequence[Stage]) -> dict[str, float]:
    """The expected share of each skill among all examples, in the order of :data:`TAUGHT`."""
    whole = sum(stage.examples for stage in listed)
    return {
        skill: sum(stage.examples * stage.mixture.get(skill, 0) for stage in listed) / whole
        for skill in TAUGHT
    }


def card(
    name: str,
    evaluation: dict[str, Any],
    state: dict[str, Any],
    config: dict[str, Any],
    size: int,
    cannot: str,
) -> str:
    """The card as Markdown.

    ``state`` is what training left, ``config`` the model's own, ``size`` its number of parameters.
    ``ValueError`` for an unknown name, an unfinished training, or one whose examples are not those
    of its recipe and branch.
    """
    if name not in TITLES:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(TITLES)}")
    met, pools = stages(state["recipe"], state["branch"]), sum(state["branch"])
    if state["pools"] != pools:
        raise ValueError(f"the training of {name} is not over: {state['pools']} of {pools} pools")
    if state["examples"] != sum(stage.examples for stage in met):
        raise ValueError(
            f"{name} met {state['examples']} examples; its recipe and branch make"
            f" {[s.examples for s in met]}"
        )
    notice = (
        "**Research only. Not for clinical use. What is measured on it says nothing about large"
        " models.**"
    )
    parts = [
        f"# {TITLES[name]}",
        _fill(f"{_architecture(config, size)} {ABOUT[name]} {notice}"),
        "## What it was taught",
        *_taught(met),
        "## How it was made",
        *_made(state, config),
        "## What it can do",
        *_measured(name, evaluation),
        "## What it cannot do",
        f"{cannot.strip()}\n{_always()}",
    ]
    return "\n\n".join(parts) + "\n"


def _fill(text: str, first: str = "", later: str = "") -> str:
    words = " ".join(text.split())
    return textwrap.fill(
        words,
        130,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _architecture(config: dict[str, Any], size: int) -> str:
    shape = (
        f"{config['num_hidden_layers']} layers, width {config['hidden_size']},"
        f" {config['num_attention_heads']} heads"
    )
    return f"""
A causal language model of {size / 1e6:.1f} million parameters (Llama architecture: {shape}; half-precision safetensors,
opened in single precision).
"""


def _taught(met: Sequence[Stage]) -> list[str]:
    whole = overall(met)
    heads, begun = [], 0
    for stage in met:
        heads.append(f"{begun + 1:,} to {begun + stage.examples:,}")
        begun += stage.examples
    columns = [stage.mixture for stage in met] + ([whole] if len(met) > 1 else [])
    heads += ["all"] if len(met) > 1 else []
    rows = [
        [f"*{skill}*", *(_percent(column.get(skill, 0)) for column in columns)] for skill in TAUGHT
    ]
    return [
        _fill("""
Only text that this repository makes: the package's own prompts (`trustlab/prompts/`), rendered for patients drawn from
`data/knowledge/` (`training/world.py`), with the reply an informed clinician would give (`training/replies.py`,
`training/evidence.py`), fixed before any real patient was met. One patient in five speaks in loose wordings that only
training uses (`training/wordings/`).
"""),
        "\n".join(_fill(f"*{skill}*: {TAUGHT[skill]}", "- ", "  ") for skill in TAUGHT),
        "Chance of each skill, percent, by which examples, counted from the first:",
        _table(["skill", *heads], rows),
    ]


def _made(state: dict[str, Any], config: dict[str, Any]) -> list[str]:
    recipe, (at, length) = state["recipe"], state["branch"]
    return [
        _fill(f"""
`make train`: {state["examples"]:,} examples, {state["tokens"] / 1e6:.1f} million tokens, {state["steps"]:,} steps of
AdamW in single precision, {state["seconds"] / 60:.0f} minutes on two cores that did other work besides. The rate warms up
over the first {recipe["warmup"]:,} examples to {recipe["lr"]:.1e} and stays there on the trunk ({at * recipe["pool"]:,}
examples), then falls to 2 % of it over the {length * recipe["pool"]:,} examples of the branch. Last training loss
{state["loss"]:.3f}.
"""),
        _fill("""
The weights do not begin all at random. The embedding of a phrase begins with its meaning to the packaged sentence
encoder, and a wording of a finding in the table with that of the finding's name too; and some attention heads begin as
ones that look one token back, find what followed a token before, and find the patient's words that mean the same
(`training/heads.py`). So it can look things up before it has learned anything; without, it did not learn to in as many
examples as were tried (`LOG.md`).
"""),
        *_grown(state.get("grown")),
        _fill(f"""
The vocabulary ({config["vocab_size"]:,}) holds whole phrases as tokens: an answer, a question, a passage's sentence, a
line of a prompt; names of conditions stand in pieces of four letters. Nothing was chosen or tuned on a DDXPlus patient.
"""),
    ]


def _grown(grown: dict[str, Any] | None) -> list[str]:
    """What is said of a training that went on under a larger vocabulary."""
    if grown is None:
        return []
    return [
        _fill(f"""
The prompts of the last skills came later than the others: after {grown["examples"]:,} examples the trunk was taken up under a
vocabulary that had grown from {grown["tokens_before"]:,} tokens (`training/grow.py`). `make train` begins with the whole
vocabulary; its models will differ a little from these.
""")
    ]


def _measured(name: str, evaluation: dict[str, Any]) -> list[str]:
    found = {key: evaluation[key] for key in SETS if key in evaluation}
    levels = [str(level) for level in LEVELS]

    def by_level(label: str, values: Mapping[str, float]) -> list[str]:
        return [label, *(_percent(values.get(level)) for level in levels)]

    accuracy = []
    for key, report in found.items():
        accuracy.append(
            by_level(f"{SETS[key]} patients, n = {report['cases']}", report["accuracy"])
        )
        if "best_possible_accuracy" in report:
            accuracy.append(
                by_level(
                    "the same, best possible (exact posterior)", report["best_possible_accuracy"]
                )
            )
    parts = [
        "Accuracy of the greedy answer, percent, by information level (percent of statements"
        " shown):"
    ]
    parts.append(_table(["", *levels], accuracy))
    sure = {
        key: report["sequence_probability"]
        for key, report in found.items()
        if "sequence_probability" in report
    }
    if sure:
        parts.append(
            "Mean sequence probability of the answer, percent (near the accuracy = calibrated):"
        )
        parts.append(
            _table(
                ["", *levels], [by_level(SETS[key], v["mean_by_level"]) for key, v in sure.items()]
            )
        )
    for key, report in reversed(found.items()):
        n = len(report["accuracy"]) * report["cases"]
        parts.append(
            _fill(f"""
Confidence on the {SETS[key]} patients, all levels together ({n:,} answers; ECE with 15 equal-mass bins; parse: percent of
answers with a value; – where it has no meaning, or too few values):
""")
        )
        parts.append(
            _table(
                ["", "AUROC pooled", "AUROC within level", "ECE", "Brier", "parse"],
                _confidences(report),
            )
        )
    parts += [
        "MedConf's steps, percent:",
        _table(["", *(SETS[key] for key in found)], _steps(list(found.values()))),
    ]
    if "talk" in evaluation:
        talk = evaluation["talk"]
        parts.append(
            f"To ask, to answer, to word anew: {talk['examples_of_each']} generated prompts of each"
            " kind, percent:"
        )
        parts.append(
            _table(
                ["", "replies"], [[told, _percent(talk[a][b])] for (a, b), told in TALKED.items()]
            )
        )
    if "clinic" in evaluation:
        clinic = evaluation["clinic"]
        n = clinic["examples_of_each"]
        parts.append(
            f"To diagnose with a chart, to plan, to review: {n} generated prompts of each kind,"
            " percent:"
        )
        parts.append(
            _table(
                ["", "replies"], [[told, _percent(clinic[a][b])] for (a, b), told in PANEL.items()]
            )
        )
    unreadable = ", ".join(
        f"{report['unreadable_answers']} {SETS[key]}" for key, report in found.items()
    )
    folder = " --ddxplus FOLDER" if "ddxplus" in found else ""
    parts.append(
        _fill(f"""
Answers without a diagnosis in square brackets: {unreadable}. The numbers are of revision `{evaluation["revision"]}`, come
from `python -m training.evaluate --name {name}{folder}` and stand in full in `evaluation.json`.
""")
    )
    return parts


def _confidences(report: dict[str, Any]) -> list[list[str]]:
    rows = []
    for method, parsed in report["replies_that_parse"].items():
        found, calibrated = report.get(method, {}), METHODS[method].scale == "probability"
        names = ["auroc", "auroc_within_level", *(("ece", "brier") if calibrated else ("", ""))]
        rows.append(
            [
                f"`{method}`",
                *(f"{found[k]:.3f}" if found.get(k) is not None else "–" for k in names),
                _percent(parsed),
            ]
        )
    return rows


def _steps(reports: Sequence[dict[str, Any]]) -> list[list[str]]:
    steps, rows = [report["medconf_steps"] for report in reports], []
    for step, label in STEPS.items():
        rows.append([label, *(_percent(found[step]) for found in steps)])
        if step == "criteria_labelled_right":
            for level in ("supported", "missing", "contradicted"):
                values = (found["labelled_right_by_true_label"].get(level) for found in steps)
                rows.append([f"... that are truly {level}", *map(_percent, values)])
    return rows


def _always() -> str:
    told = [
        f"""
It knows {len(load_knowledge().conditions)} conditions and answers with one of their names, whatever it is shown. Free
text, other diseases, other languages: its answers there are guesses (the last figure of `notebooks/00_walkthrough.ipynb`
shows how poor they are).
""",
        "It does no other task than those above, and follows no other instruction.",
        (
            "It knows nothing of severity or course beyond what a statement says, and of age and"
            " sex only where a chart is shown."
        ),
        (
            "What it knows of drugs and tests is the safety table's rules, which no clinician has"
            " reviewed; doses it never weighs."
        ),
    ]
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


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", choices=list(BRANCHES), default="embedded")
    name = parser.parse_args(argv).name
    folder = DATA / "models" / name
    evaluation, state, config = (
        json.loads(file.read_text(encoding="utf-8"))
        for file in (
            folder / "evaluation.json",
            CHECKPOINTS / f"{name}.json",
            folder / "config.json",
        )
    )
    cannot = (CARDS / f"{name}.txt").read_text(encoding="utf-8")
    text = card(name, evaluation, state, config, n_parameters(folder / "model.safetensors"), cannot)
    (folder / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
