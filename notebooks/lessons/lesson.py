"""What the lessons share: saved answers, the student's guesses, exercises that check themselves."""

from __future__ import annotations

import io
import json
import math
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import record

import trustlab as tl
from trustlab import paths
from trustlab.reports import plots
from trustlab.runs.folder.records_file import read_records

SAVED = {
    "patient": "walkthrough/patient",
    "patients": "walkthrough/cases",
    "free": "walkthrough/free",
}
"""Name of saved answers -> their folder in ``data``: one patient, whole; 240 patients; MedConf of
the same, whose evidence was asked without the taught form."""
NOTICE = paths.NOTICE
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#BBBBBB"
"""Colours of the figures, which the colour-blind tell apart."""

plots.use_style()
plt.rcParams["figure.figsize"] = (7, 3.5)


def saved_run(name: str = "patient") -> tl.Run:
    """The answers of the embedded model that come along: no model is asked."""
    return tl.load_run(paths.DATA / SAVED[name])


def encoder_with_vectors() -> tl.Encoder:
    """The packaged sentence encoder, with the vectors of lesson 8 in a copy of the student's own:
    it is not loaded for these."""
    copy = paths.RUNS / "lessons" / "vectors.sqlite"
    if not copy.is_file():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths.DATA / "walkthrough" / "panel" / "vectors.sqlite", copy)
    return tl.Encoder(cache_path=copy)


def patient() -> tl.Case:
    """The one patient: the statements that the last of the saved answers is given."""
    run = saved_run("patient")
    lines = run.generations[-1].told.split("\n")
    exchanges = zip(lines[::2], lines[1::2], strict=True)
    statements = [tl.Statement("\n".join(exchange)) for exchange in exchanges]
    first = run.answers.loc[0]
    truth = first["truth"]
    return tl.Case(
        case_id=first["case_id"],
        dataset=first["dataset"],
        statements=tuple(statements),
        diagnosis=truth,
        accepted=tl.load_knowledge().condition_named(truth).names,
    )


def ask(
    cases: tl.Case | Sequence[tl.Case],
    methods: Any = "paper",
    model: str = "embedded",
    **choices: Any,
) -> tl.Run:
    """The answers to any case or cases, asked now: with ``live = True``."""
    setup = tl.Setup(model=model, quiet=True, **choices)
    case_list = [cases] if isinstance(cases, tl.Case) else cases
    return tl.benchmark(case_list, tl.open_model(model), methods, setup=setup)


def assessed() -> list[tuple[str, tl.Assessment]]:
    """What a patient says before and after denials, each with MedConf's evidence for one
    diagnosis."""
    folder = paths.DATA / "walkthrough"
    text = (folder / "held.json").read_text(encoding="utf-8")
    words = json.loads(text)
    assessments = read_records(folder / "held.jsonl.gz", tl.Assessment)
    return list(zip(words["told"], assessments, strict=True))


class Wrong(Exception):
    """An answer of another form than is needed, in one sentence."""


class NotYet(Wrong):
    """No answer yet: the dots or nothing, also as what a function returns."""


# What a student hands over: a form takes an answer, and gives it in one type or says what is wrong.


def described(answer: Any) -> str:
    """An answer in a message: what it is, and how it is written, on one line."""
    kinds = {str: "the text", list: "the list", tuple: "the tuple", dict: "the dict"}
    kind = kinds.get(type(answer), type(answer).__name__)
    if isinstance(answer, list | tuple | dict | str) and not answer:
        return f"{kind} is empty"
    written = " ".join(repr(answer).split())
    if len(written) > 40:
        written = f"{written[:40]}..."
    return f"it is {kind} {written}"


def _refuse_nothing(answer: Any) -> None:
    if answer is ... or answer is None:
        raise NotYet("not answered yet")


def a_value(answer: Any) -> float:
    """A number, nan among them: what a function may return."""
    _refuse_nothing(answer)
    if isinstance(answer, np.generic | np.ndarray) and answer.size == 1:
        answer = answer.item()
    if isinstance(answer, str | tuple) and answer:
        raise Wrong(
            f"a number is needed, with a point and without quotation marks, as 0.7; "
            f"{described(answer)}"
        )
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        raise Wrong(f"a number is needed; {described(answer)}")
    return float(answer)


def a_number(answer: Any) -> float:
    """A finite number."""
    value = a_value(answer)
    if not math.isfinite(value):
        raise Wrong(f"a number is needed; it is {value}")
    return value


def a_value_or_none(answer: Any) -> float | None:
    """What a reader of replies may return: ``None`` is missing."""
    return None if answer is None else a_value(answer)


def true_or_false(answer: Any) -> bool:
    """A verdict; 1 and 0 are taken, too."""
    _refuse_nothing(answer)
    is_truth = isinstance(answer, bool | np.bool_ | int) and answer in (0, 1)
    if not is_truth:
        raise Wrong(f"True or False is needed; {described(answer)}")
    return bool(answer)


def a_function(returns: Callable[[Any], Any] = a_value) -> Callable[[Any], Any]:
    """The form of a function; what it returns has the form ``returns``."""

    def form(answer: Any) -> Callable[..., Any]:
        _refuse_nothing(answer)
        if not callable(answer):
            raise Wrong(
                f"the name of a function is needed, without brackets; {described(answer)}"
            )

        def called(*arguments: Any) -> Any:
            return _returned(answer, returns, arguments)

        return called

    return form


def _returned(
    function: Callable[..., Any], returns: Callable[[Any], Any], arguments: tuple
) -> Any:
    """What a student's function returns for copies of the arguments, in its form."""
    try:
        value = function(*deepcopy(arguments))
    except Exception as error:
        problem = f"{type(error).__name__}: {error} (for {_inputs(arguments)})"
        raise Wrong(f"the function ends in an error: {problem}") from None
    if value is ...:
        raise NotYet("the function returns dots: write its formula")
    try:
        return returns(value)
    except NotYet:
        raise Wrong("the function returns nothing: does it end with return?") from None
    except Wrong as wrong:
        raise Wrong(f"for {_inputs(arguments)} the value: {wrong}") from None


def _inputs(arguments: tuple) -> str:
    """A function's arguments in a message, on one line."""
    written = " ".join(", ".join(map(str, arguments)).split())
    return written if len(written) < 80 else f"{written[:80]}..."


def a_list(form: str) -> Callable[[Any], list[Any]]:
    """A list or tuple of something that ``form`` describes."""

    def checked(answer: Any) -> list[Any]:
        _refuse_nothing(answer)
        if isinstance(answer, np.ndarray):
            answer = answer.tolist()
        if not isinstance(answer, list | tuple) or not answer:
            raise Wrong(f"{form} is needed; {described(answer)}")
        if any(part is ... for part in answer):
            raise NotYet("not answered yet")
        return list(answer)

    return checked


def rows(form: str, gaps: bool = False) -> Callable[[Any], np.ndarray]:
    """Columns of rows that end with "correct, confidence"; with ``gaps`` a confidence may be
    ``None``, which is NaN here."""
    table = table_of(form, gaps)

    def checked(answer: Any) -> np.ndarray:
        columns = table(answer).T
        if not np.isin(columns[-2], (0, 1)).all():
            raise Wrong("correct is 1 (right) or 0 (wrong)")
        if ((columns[-1] < 0) | (columns[-1] > 1)).any():
            raise Wrong("a confidence lies between 0 and 1")
        return columns

    return checked


def table_of(form: str, gaps: bool = False) -> Callable[[Any], np.ndarray]:
    """Rows of numbers that ``form`` names: (rows, columns)."""
    n_columns = form.count(",") + 1
    needed = f"a list of ({form})"

    def checked(answer: Any) -> np.ndarray:
        listed = a_list(needed)(answer)
        for row in listed:
            if not isinstance(row, list | tuple) or len(row) != n_columns:
                raise Wrong(f"{needed} is needed; one row: {described(row)}")
            if not gaps and any(cell is None for cell in row):
                raise Wrong("no number may be missing here")
            for cell in row:
                if cell is not None:
                    a_number(cell)
        return np.array(listed, float)

    return checked


# Exercises


class Exercise(NamedTuple):
    """What an answer must look like, and what is wrong with one that does ("": nothing)."""

    form: Callable[[Any], Any]
    check: Callable[[Any], str]


EXERCISES: dict[str, Exercise] = {}
"""Name of an exercise ("1a") -> its form and check."""


def exercise(
    name: str, form: Callable[[Any], Any]
) -> Callable[[Callable[[Any], str]], None]:
    """Register the check of an exercise."""

    def register(check: Callable[[Any], str]) -> None:
        EXERCISES[name] = Exercise(form, check)

    return register


def check(name: str, *answers: Any) -> None:
    """Say in one sentence whether an answer is right, or what is wrong with it; record it."""
    import checks  # noqa: F401  (registers the exercises)

    if name not in EXERCISES:
        lesson = [other for other in EXERCISES if other[0] == str(name)[:1]]
        names = ", ".join(sorted(lesson or EXERCISES))
        print(f"there is no exercise {name!r}; there are {names}")
        return
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            problem = _problem(EXERCISES[name], answers)
    except NotYet as why:
        print(f"{name}: {why}")
        return
    sentence = " ".join(problem.split())
    print(f"{name}: {sentence or 'right'}")
    record.append(name, sentence)


def _problem(entry: Exercise, answers: tuple) -> str:
    """What is wrong with what stands behind the exercise's name; "" where nothing is."""
    if not answers:
        raise NotYet("not answered yet")
    if len(answers) > 1:
        return f"one answer is needed, and a point in a decimal (0.7); these are {len(answers)}"
    (answer,) = answers
    try:
        return entry.check(entry.form(answer))
    except NotYet:
        raise
    except Wrong as wrong:
        return str(wrong)
    except Exception as error:  # an answer may be any object
        return f"it cannot be read: {type(error).__name__}: {error}"


def number(
    answer: float, right: float, slips: Mapping[float, str] | None = None
) -> str:
    """What is wrong with a number: ``slips`` are known wrong answers with what led to them. Right
    is also what is rounded to two digits or more."""
    if math.isnan(answer):
        return "it is nan"
    if _like(answer, right):
        return ""
    nearest = sorted((slips or {}).items(), key=lambda slip: abs(slip[0] - answer))
    for slip, why in nearest:
        if _like(answer, slip):
            return why
    if right and math.isclose(answer, float(f"{right:.1g}")):
        return "it is rounded too far: give two digits or more"
    if _like(answer, 100 * right):
        return "this is a percentage; give a number between 0 and 1"
    return "too high" if answer > right else "too low"


def _like(answer: float, value: float) -> bool:
    """Whether two numbers are the same, or the first is the second with two to four digits."""
    if math.isclose(answer, value, rel_tol=1e-4, abs_tol=1e-6):
        return True
    for n_digits in (2, 3, 4):
        rounded = float(f"{value:.{n_digits}g}")
        if math.isclose(answer, rounded, rel_tol=1e-9):
            return True
    return False


def function(
    answer: Callable[..., float],
    right: Callable[..., float],
    inputs: Iterable[tuple],
    slips: Callable[..., Mapping[float, str]] = lambda *_: {},
) -> str:
    """What is wrong with a function: the first input at which it differs from ``right``; ``slips``
    of the input as of :func:`number`."""
    for arguments in inputs:
        value = answer(*arguments)
        wrong = number(value, right(*arguments), slips(*arguments))
        if wrong:
            return f"for {_inputs(arguments)} it returns {value:.4g}: {wrong}"
    return ""


def missing(answer: Callable[..., float], arguments: tuple, when: str) -> str:
    """What is wrong with a function ``when`` there is no number: nan without a warning is right."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            value = answer(*arguments)
    except Wrong as wrong:
        return f"{when} return nan, without an error or a warning: {wrong}"
    return "" if math.isnan(value) else f"{when} it returns {value:g}; return nan there"


# Formulas and guesses


def same(function: Callable[..., Any], arguments: tuple, theirs: Any) -> bool:
    """Whether a student's formula computes what trustlab does; while it is not written, this says
    so and is True."""
    ours = function(*deepcopy(arguments))
    name = function.__name__
    if ours is ...:
        print(f"{name}: not written yet")
        return True
    if ours is None:
        print(f"{name}: it returns nothing; does it end with return?")
        return False
    is_same = np.shape(ours) == np.shape(theirs) and np.allclose(ours, theirs)
    print(f"{name}: {'the same as' if is_same else 'not yet what'} trustlab computes")
    return is_same


class Guess(NamedTuple):
    """A range; of a single number both ends are the same."""

    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:g}"
        return f"{self.low:g} to {self.high:g}"


GUESSES: dict[str, Guess] = {}
"""Question -> the guess of this session."""


def predict(question: str, *guess: Any, low: float, high: float) -> None:
    """Keep a guess, a number from ``low`` to ``high`` or a range ``(0.6, 0.8)``, until
    :func:`compare` meets it; ``...`` is none yet."""
    try:
        GUESSES[question] = _guess_of(guess, low, high)
    except NotYet:
        print(f"Write your guess in place of the dots: {question}")
    except Wrong as wrong:
        print(f"No guess yet: {wrong}")
    else:
        print(f"Your guess: {GUESSES[question]}")


def _guess_of(guess: tuple, low: float, high: float) -> Guess:
    if len(guess) > 1:
        raise Wrong(
            "write a point in a decimal (0.7), or a range in brackets (0.6, 0.8)"
        )
    answer: Any = guess[0] if guess else ...
    is_range = isinstance(answer, list | tuple) and len(answer) == 2
    ends = [a_number(end) for end in (answer if is_range else (answer,))]
    if min(ends) < low or max(ends) > high:
        raise Wrong(f"it lies between {low:g} and {high:g}; {described(answer)}")
    return Guess(min(ends), max(ends))


def compare(question: str, value: float) -> None:
    """The guess beside what came out, which is shown to nobody who has not guessed."""
    if question not in GUESSES:
        print(f"Guess first, then run this cell again: {question}")
        return
    guess = GUESSES[question]
    is_inside = guess.low < guess.high and guess.low <= value <= guess.high
    inside = ", inside your range" if is_inside else ""
    print(f"Your guess: {guess}. It is: {value:.3g}{inside}.")
