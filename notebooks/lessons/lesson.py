"""What the lessons share: kept answers, the student's guesses, exercises that check themselves."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import trustlab as tl
from trustlab import paths
from trustlab.reports import plots
from trustlab.runs.folder.records_file import read_records

GUESSES = paths.RUNS / "lessons" / "guesses.json"
"""What the student wrote before the computation."""
KEPT = {"patient": "walkthrough/patient", "patients": "walkthrough/cases"}
"""Name of kept answers -> their folder in ``data``: one patient, whole; 240 patients."""
NOTICE = paths.NOTICE

plots.use_style()
plt.rcParams["figure.figsize"] = (7, 3.5)


def kept(name: str = "patient") -> tl.Run:
    """The answers of the embedded model that come along: no model is asked."""
    return tl.load_run(paths.DATA / KEPT[name])


def encoder_with_vectors() -> tl.Encoder:
    """The packaged sentence encoder, with the vectors of lesson 8 in a copy of the student's own:
    it is not loaded for these."""
    copy = GUESSES.with_name("vectors.sqlite")
    if not copy.is_file():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths.DATA / "walkthrough" / "panel" / "vectors.sqlite", copy)
    return tl.Encoder(cache_path=copy)


def patient() -> tl.Case:
    """The one patient: the statements that the last of the kept answers is given."""
    run = kept("patient")
    lines = run.generations[-1].told.split("\n")
    statements = []
    for question, reply in zip(lines[::2], lines[1::2], strict=True):
        statements.append(tl.Statement(f"{question}\n{reply}"))
    first = run.answers.loc[0]
    truth = first["truth"]
    return tl.Case(
        case_id=first["case_id"],
        dataset=first["dataset"],
        statements=tuple(statements),
        diagnosis=truth,
        accepted=tl.load_knowledge().condition_named(truth).names,
    )


def asked(
    cases: tl.Case | Sequence[tl.Case],
    methods: Any = "paper",
    model: str = "embedded",
    **choices: Any,
) -> tl.Run:
    """The same for any case or cases, asked now: with ``live = True``."""
    setup = tl.Setup(model=model, quiet=True, **choices)
    several = [cases] if isinstance(cases, tl.Case) else cases
    return tl.benchmark(several, tl.open_model(model), methods, setup=setup)


def assessed(live: bool = False) -> list[tuple[str, tl.Assessment]]:
    """What a patient says before and after denials, each with MedConf's evidence for one
    diagnosis; ``live``: the embedded model is asked for it now."""
    folder = paths.DATA / "walkthrough"
    words = json.loads((folder / "held.json").read_text(encoding="utf-8"))
    patient_texts = words["told"]
    assessments = list(read_records(folder / "held.jsonl.gz", tl.Assessment))
    if live:
        questions = [(text, words["diagnosis"]) for text in patient_texts]
        model = tl.open_model("embedded")
        retriever = tl.BM25(tl.load_corpus())
        assessments = tl.assess(model, questions, retriever)
    return list(zip(patient_texts, assessments, strict=True))


def predict(question: str, guess: Any) -> None:
    """Keep a guess until :func:`compare` meets it; ``...`` is none yet."""
    if guess is ...:
        print(f"Write your guess in place of the dots: {question}")
        return
    if isinstance(guess, bool) or not isinstance(guess, int | float | np.number):
        print(f"A guess is a number; this is {guess!r}")
        return
    guesses = _guesses() | {question: float(guess)}
    GUESSES.parent.mkdir(parents=True, exist_ok=True)
    paths.save_json(guesses, GUESSES)
    print(f"Kept. Your guess: {guess}")


def compare(question: str, value: Any) -> None:
    """The guess beside what came out."""
    shown = f"{value:.3g}" if isinstance(value, float) else value
    print(f"Your guess: {_guesses().get(question, 'none')}. It is: {shown}.")


def _guesses() -> dict[str, Any]:
    return json.loads(GUESSES.read_text(encoding="utf-8")) if GUESSES.is_file() else {}


EXERCISES: dict[str, Callable[[Any], str]] = {}
"""Name of an exercise ("1a") -> what is wrong with an answer, "" where nothing is."""
FUNCTIONS: set[str] = set()
"""Exercises whose answer is a function."""


class Wrong(Exception):
    """An answer that has another form than is needed."""


def exercise(
    name: str, function: bool = False
) -> Callable[[Callable[[Any], str]], None]:
    """Register the check of an exercise; ``function``: its answer is one."""

    def register(check: Callable[[Any], str]) -> None:
        EXERCISES[name] = check
        if function:
            FUNCTIONS.add(name)

    return register


def check(name: str, answer: Any) -> None:
    """Say whether an answer is right, or what is wrong with it; ``...`` is none yet."""
    import checks  # noqa: F401  (registers the exercises)

    if answer is ...:
        print(f"{name}: not answered yet")
        return
    try:
        if name in FUNCTIONS and not callable(answer):
            raise Wrong(f"a function is needed; this is {type(answer).__name__}")
        wrong = EXERCISES[name](answer)
    except Wrong as form:
        wrong = str(form)
    except Exception as error:  # an answer may be any object, or a function that fails
        wrong = f"it ends in an error: {type(error).__name__}: {error}"
    print(f"{name}: {wrong or 'right'}")


def number(answer: Any, right: float, slips: Mapping[float, str] | None = None) -> str:
    """What is wrong with a number: ``slips`` are known wrong answers with what led to them."""
    if answer is None or answer is ...:
        return "there is no number yet"
    if isinstance(answer, np.generic | np.ndarray) and answer.size == 1:
        answer = answer.item()
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return f"a number is needed; this is {type(answer).__name__}"
    if math.isnan(answer):
        return "it is nan"
    if _like(answer, right):
        return ""
    for slip, why in sorted(
        (slips or {}).items(), key=lambda item: abs(item[0] - answer)
    ):
        if _like(answer, slip):
            return why
    if math.isclose(answer, 100 * right, rel_tol=0.01):
        return "this is a percentage; give a number between 0 and 1"
    return "too high" if answer > right else "too low"


def _like(answer: float, value: float) -> bool:
    return math.isclose(answer, value, rel_tol=0.01, abs_tol=5e-4)


def function(
    answer: Any,
    right: Callable[..., float],
    inputs: Iterable[tuple],
    slips: Callable[..., Mapping[float, str]] = lambda *_: {},
) -> str:
    """What is wrong with a function: the first input at which it differs from ``right``; ``slips``
    of the input as of :func:`number`."""
    for arguments in inputs:
        right_value = right(*arguments)
        wrong_values = slips(*arguments)
        wrong = number(answer(*arguments), right_value, wrong_values)
        if wrong:
            return f"for {', '.join(map(str, arguments))}: {wrong}"
    return ""


def missing(answer: Any, arguments: tuple, when: str) -> str:
    """What is wrong with a function ``when`` there is no number: nan is right."""
    try:
        with np.errstate(all="ignore"):
            value = answer(*arguments)
    except ZeroDivisionError:
        return f"{when} it divides by zero; return nan there"
    if value is None or not math.isnan(value):
        return f"{when} it returns {value}; return nan there"
    return ""


def columns(answer: Any, form: str) -> Any:
    """The columns of rows that end with "correct, confidence", ``None`` as NaN; of another
    ``form``: :class:`Wrong`."""
    try:
        rows = np.array(answer, float)
    except (TypeError, ValueError):  # no numbers, or rows of several lengths
        raise Wrong(f"a list of ({form}) is needed") from None
    if rows.ndim != 2 or rows.shape[1] != form.count(",") + 1:
        raise Wrong(f"a list of ({form}) is needed")
    correct, confidence = rows.T[-2:]
    if not np.isin(correct, (0, 1)).all():
        raise Wrong("correct is 1 (right) or 0 (wrong)")
    if ((confidence < 0) | (confidence > 1)).any():
        raise Wrong("a confidence lies between 0 and 1")
    return rows.T
