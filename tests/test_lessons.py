"""The lessons run from saved answers, and their exercises know right answers from wrong ones."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks" / "lessons"
TEACHING = ROOT / "docs" / "teaching"
LESSONS = [file.stem for file in sorted(FOLDER.glob("*.ipynb"))]
DATA = Path(__file__).parent / "data"
ANSWERS = yaml.safe_load((DATA / "lessons.yml").read_text(encoding="utf-8"))
"""Exercise -> right answers and wrong ones, as a student writes them into the notebook."""
NUMBERS = yaml.safe_load((DATA / "lesson_numbers.yml").read_text(encoding="utf-8"))
"""Lesson -> f-strings of its variables, which stand in its prose word for word."""
SOLUTIONS = (TEACHING / "solutions.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<summary>(\w+)</summary>.*?```python\n(.*?)```", SOLUTIONS, re.DOTALL))
"""Exercise, or the lesson for its formulas -> code of the solution."""
CARELESS = (
    "", "...", "None", "[]", "()", "{}", "''", "'0,7'", "0, 7", "(0, 7)", "True", "object()",
    "float('nan')", "print", "len", "lambda *_: ...", "lambda *_: None", "lambda *_: '0,7'",
    "lambda *_: []", "lambda *_: 1 / 0", "lambda: 1", "[...]", "[None]", "[[]]", "[('a', 'b')]",
    "[(1, 0, 0), 'x']", "{'model': ...}", "np.zeros((2, 2))", "np.array([])", "pd.Series([0.7])",
)  # fmt: skip
"""What no exercise takes for right."""


def cells_of(stem: str) -> list[Any]:
    return nbformat.read(FOLDER / f"{stem}.ipynb", as_version=4).cells


def prose_of(stem: str) -> str:
    return "\n\n".join(cell.source for cell in cells_of(stem) if cell.cell_type == "markdown")


def executed(stem: str, formulas: str = "") -> dict[str, Any]:
    """The variables after all code cells; ``formulas`` follow on each cell of skeletons."""
    variables: dict[str, Any] = {}
    with matplotlib.rc_context():
        for cell in cells_of(stem):
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{stem}, {cell.id}", "exec"), variables)
                if "return ..." in cell.source and "check(" not in cell.source:
                    exec(formulas, variables)
        matplotlib.pyplot.close("all")
    return variables


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """Lesson -> its variables, with the formulas of the solutions; in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.chdir(tmp_path_factory.mktemp("student"))
        yield {stem: executed(stem, BLOCKS[stem]) for stem in LESSONS}


def exercises_of(stem: str) -> list[str]:
    code = "\n".join(cell.source for cell in cells_of(stem) if cell.cell_type == "code")
    return re.findall(r"^check\(\"(\w+)\"", code, re.M)


def printed(capsys: pytest.CaptureFixture[str], variables: dict[str, Any], code: str) -> str:
    capsys.readouterr()
    exec(code, {"np": np, "pd": pd} | variables)
    return capsys.readouterr().out


def test_every_exercise_has_answers_and_a_solution() -> None:
    exercises = [name for stem in LESSONS for name in exercises_of(stem)]
    assert sorted(exercises) == sorted(ANSWERS) and len(set(exercises)) == len(exercises)
    assert set(BLOCKS) == {*exercises, *LESSONS}


def test_an_untouched_lesson_runs_says_what_is_not_written_and_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.chdir(tmp_path)
    for stem in LESSONS:
        capsys.readouterr()
        executed(stem)
        words = capsys.readouterr().out
        n_formulas = len(re.findall("^def ", BLOCKS[stem], re.M))
        assert len(set(re.findall("^(.*): not written yet$", words, re.M))) == n_formulas
        for name in exercises_of(stem):
            (line,) = re.findall(f"^{name}: (.*)$", words, re.M)
            assert line in ("not answered yet", "the function returns dots: write its formula")
        assert "Guess first" in words and "Your guess" not in words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stem", LESSONS)
def test_the_formulas_of_the_solutions_are_those_of_trustlab_and_others_are_not(
    stem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.chdir(tmp_path)
    names = re.findall(r"^def (\w+)", BLOCKS[stem], re.M)
    capsys.readouterr()
    executed(stem, BLOCKS[stem])
    words = capsys.readouterr().out
    assert "not written" not in words and "not yet what" not in words
    for name in names:
        assert f"{name}: the same as trustlab" in words
    with pytest.raises(AssertionError):
        executed(stem, f"{BLOCKS[stem]}\n{names[-1]} = lambda *_, **__: 0.1234\n")
    with pytest.raises(AssertionError):
        executed(stem, f"{BLOCKS[stem]}\n{names[0]} = lambda *_, **__: 0.1234\n")


def test_exercises_tell_right_from_wrong(
    ran: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    for stem in LESSONS:
        for name in exercises_of(stem):
            for kind in ("right", "wrong"):
                for answer in ANSWERS[name][kind]:
                    words = printed(capsys, ran[stem], f"check({name!r}, {answer})")
                    assert (words == f"{name}: right\n") == (kind == "right"), (answer, words)
                    assert words.startswith(f"{name}: ") and words.count("\n") == 1, words
            solved = printed(capsys, ran[stem], BLOCKS[name])
            assert solved == f"{name}: right\n", (name, solved)


def test_careless_answers_get_one_sentence(
    ran: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    for stem in LESSONS:
        for name in exercises_of(stem):
            for answer in CARELESS:
                words = printed(capsys, ran[stem], f"check({name!r}, {answer})")
                assert words.startswith(f"{name}: ") and words.count("\n") == 1, (answer, words)
                assert words != f"{name}: right\n" and len(words) < 260, (answer, words)
                assert "Traceback" not in words and "ambiguous" not in words, (answer, words)
    words = printed(capsys, ran[LESSONS[0]], "check('1z', 1)")
    assert words.startswith("there is no exercise '1z'") and words.count("\n") == 1


def messages_of(file: Path) -> Iterator[str]:
    """The parts of a check's sentences, as they stand in its code."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docstrings = {
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }  # fmt: skip
    data: set[ast.AST] = set()
    for node in tree.body:
        is_named = isinstance(node, ast.Assign | ast.AnnAssign)
        if is_named and isinstance(node.value, ast.Tuple | ast.Constant | ast.List):
            data.update(ast.walk(node))
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and node not in docstrings | data and " " in node.value.strip():  # pyright: ignore
            yield node.value.strip(" :;")  # pyright: ignore


NO_MESSAGES = ("I ", "I'", "No, ", "Yes, ", "The ", "chills", "repeated ", "pain in", "abdominal",
               "hoarse", "cigarette", "a list of", "a pair ", "two levels", "a third", "a large",
               "levels in any", "Confidence", "level, ", "correct, ", "first, ", "sign ",
               "as quoted", "an invented", "no invented", "more against", "not known")  # fmt: skip
"""How the texts begin that an exercise works on."""


@pytest.mark.parametrize("lesson", range(1, 10))
def test_each_hint_can_be_reached(
    lesson: int, ran: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ""
    for stem in LESSONS:
        if stem.startswith(str(lesson)):
            for name in exercises_of(stem):
                for answer in [*ANSWERS[name]["wrong"], *CARELESS[:12]]:
                    words += printed(capsys, ran[stem], f"check({name!r}, {answer})")
    hints = [
        text for text in messages_of(FOLDER / "checks" / f"lesson_{lesson}.py")
        if not text.startswith(NO_MESSAGES)
    ]  # fmt: skip
    assert [text for text in hints if text not in words] == []


def test_the_numbers_of_the_prose_are_those_of_the_lesson(ran: dict[str, dict[str, Any]]) -> None:
    assert set(NUMBERS) == set(LESSONS)
    for stem, sentences in NUMBERS.items():
        prose = prose_of(stem)
        for sentence in sentences:
            text = eval(f"f{sentence!r}", dict(ran[stem]))
            assert text in prose, (stem, text)


def test_lessons_have_goals_points_to_keep_and_true_prerequisites() -> None:
    table = (ROOT / "docs" / "lecturers.md").read_text(encoding="utf-8")
    for stem in LESSONS:
        first, prose = cells_of(stem)[0].source, prose_of(stem)
        assert first.startswith(f"# Lesson {stem[0]}") and "$$" in prose
        goals = first.partition("After this lesson you can\n\n")[2].partition("\n\n")[0]
        assert len(re.findall("^- ", goals, re.M)) == 3
        points = prose.partition("## Three points to keep\n\n")[2].partition("\n\n")[0]
        assert len(re.findall(r"^\d\. ", points, re.M)) == 3
        needs = re.search(r"You need: (.*?) Research only. Not for clinical use.", first)
        assert needs
        needed = re.search(r"[Ll]essons? ([\d, and]+)", needs[1].partition("Lessons 1 to 4")[0])
        lessons = set(re.findall(r"\d", needed[1])) if needed else set()
        body = prose.removeprefix(first)
        used = {n for n in re.findall(r"[Ll]essons? (\d)", body) if n < stem[0]}
        assert used <= lessons, (stem, used - lessons)
        row = re.search(rf"^\|.*lessons/{stem}\.ipynb\).*\| ([^|]*) \|$", table, re.M)
        assert row and set(re.findall(r"\d", row[1])) == lessons, stem


def test_plots_and_live_lines_are_folded() -> None:
    for stem in LESSONS:
        for cell in cells_of(stem):
            if cell.cell_type != "code":
                continue
            is_folded = "hide-input" in cell.metadata.get("tags", [])
            assert is_folded == cell.metadata.get("jupyter", {}).get("source_hidden", False)
            if "plt." in cell.source or "ax." in cell.source or "live" in cell.source:
                is_reader = cell.id == "code-6b" and stem == "3_asking"  # one word in an assertion
                assert is_folded or is_reader, (stem, cell.id)
            if "return ..." in cell.source or "change me" in cell.source:
                assert not is_folded or "your own table" in cell.source, (stem, cell.id)


def test_how_to_read_it_takes_two_sentences_at_most() -> None:
    for file in [*FOLDER.glob("*.ipynb"), *FOLDER.parent.glob("*.ipynb")]:
        words = "\n\n".join(cell.source for cell in nbformat.read(file, as_version=4).cells)
        for reading in re.findall(r"\*How to read it\*: (.*?)(?:\n\n|$)", words, re.DOTALL):
            assert len(re.findall(r"[.!?](?=\s|$)", reading)) <= 2, (file.name, reading)


def test_a_guess_is_a_number_or_a_range_in_its_bounds_and_of_this_session(
    ran: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    def said(code: str) -> str:
        return printed(capsys, ran["1_tokens"], code)

    assert said("compare('q', 0.76)") == "Guess first, then run this cell again: q\n"
    for guess in ("...", "None", ""):
        words = said(f"predict('q', {guess}{',' if guess else ''} low=0, high=1)")
        assert words == "Write your guess in place of the dots: q\n"
    for guess in ("76", "-1", "'0,7'", "0, 7", "(0.6, 7)", "True", "[]", "float('nan')", "'x'"):
        words = said(f"predict('q', {guess}, low=0, high=1)")
        assert words.startswith("No guess yet: ") and words.count("\n") == 1, words
    assert said("compare('q', 0.76)").startswith("Guess first")
    assert said("predict('q', 0.5, low=0, high=1)") == "Your guess: 0.5\n"
    assert said("compare('q', 0.764)") == "Your guess: 0.5. It is: 0.764.\n"
    said("predict('q', (0.7, 0.8), low=0, high=1)")
    assert (
        said("compare('q', 0.764)") == "Your guess: 0.7 to 0.8. It is: 0.764, inside your range.\n"
    )


LINE = {
    "time": "2026-11-30T08:00:00Z",
    "exercise": "1a",
    "verdict": "wrong",
    "sentence": "too high",
}


def test_a_class_hands_in_its_records_and_what_is_not_one_is_left_out(
    ran: dict[str, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.path.append(str(TEACHING))
    import class_record  # pyright: ignore
    import record  # pyright: ignore

    own = Path(record.NAME)
    own.unlink(missing_ok=True)
    for answer in ("...", "0.3", "'<b>0,7</b>'", "88.3", "5.3 / 6", "[\n1]"):
        exec(f"check('1a', {answer})", dict(ran["1_tokens"]))
    assert own.stat().st_mode & 0o077 == 0
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "Åsa B.jsonl").write_bytes(own.read_bytes())
    wrong = {
        "extra": {**LINE, "name": "x"}, "exercise": {**LINE, "exercise": "1a; rm"},
        "formula": {**LINE, "sentence": "=HYPERLINK(1)"}, "verdict": {**LINE, "verdict": "RIGHT"},
        "time": {**LINE, "time": "yesterday"}, "long": {**LINE, "sentence": "x" * 400},
        "type": {**LINE, "sentence": 7},
    }  # fmt: skip
    for name, line in wrong.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(LINE) + "\n" + json.dumps(line) + "\n")
    (folder / "text.jsonl").write_text("right\n")
    (folder / "bytes.jsonl").write_bytes(b"\xff\xfe")
    (folder / "empty.jsonl").write_text("")
    (folder / "large.jsonl").write_bytes(b" " * 2_000_001)
    (folder / "=cmd.jsonl").write_text(json.dumps(LINE))
    (folder / "link.jsonl").symlink_to(own.resolve())
    capsys.readouterr()
    checks = class_record.read_class(folder)
    words = capsys.readouterr().out
    assert words.count("left out: ") == len(wrong) + 6 and "verdict.jsonl, line 2, verdict" in words
    assert set(checks["student"]) == {"Åsa B"}
    assert list(checks["verdict"]) == ["wrong", "wrong", "wrong", "right", "wrong"]
    (folder / "Bo.jsonl").write_text(json.dumps(LINE) + "\n")
    table = class_record.summary(class_record.read_class(folder))
    row = table.loc["1a"]
    assert (row["students"], row["right"], row["checks until right"]) == (2, 1, 4)
    assert row["commonest mistake"] in set(checks["sentence"]) | {"too high"}
    assert "<b>" not in table.to_html()
    with pytest.raises(ValueError, match="no readable file"):
        class_record.read_class(tmp_path / "nowhere")


def test_homework_is_answered_elsewhere_and_its_answers_run(tmp_path: Path) -> None:
    sets = (ROOT / "docs" / "homework.md").read_text(encoding="utf-8")
    answers = (TEACHING / "homework_answers.md").read_text(encoding="utf-8")
    questions = re.findall(r"^\*\*(H\d\.\d)\*\*", sets, re.M)
    assert len(re.findall("^## Set ", sets, re.M)) == 3 and len(questions) >= 9
    assert re.findall(r"^\*\*(H\d\.\d)\*\*", answers, re.M) == questions
    variables: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", answers, re.M | re.DOTALL):
        exec(code, variables)
