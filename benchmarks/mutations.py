"""Would a test notice? Small changes of the code, each against its room's tests alone.

``python -m benchmarks.mutations draw --seed N`` adds sixty to the list, ``mutations.csv``;
``python -m benchmarks.mutations run --column sixth [--room metrics]`` fills a column of it;
``python -m benchmarks.mutations try NUMBER [TEST FILE ...]`` makes one change and shows what pytest
says. The rooms, their tests and what nothing is drawn from stand in ``mutations.yml``.

A change is one of an operator, a number or a condition. It is known by file, function and text: the
expression or simple statement around it as ``ast.unparse`` writes it, the nth of that text in the
function, from 0. So it is found again where lines have moved; failing that, in a function of that
name in another file, or where a text of 15 characters or more stands once in the package. The code
is changed in a copy of the tree only, from which the tests import it.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "benchmarks/mutations.csv"
ROOMS = yaml.safe_load((ROOT / "benchmarks/mutations.yml").read_text())
WIDEST = 110  # characters of a text that is drawn
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Mod: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip
RUNS = ["first", "second", "third", "fourth", "fifth", "sixth"]
COLUMNS = ["room", "file", "function", "nth", "before", "after", *RUNS, "note"]
OWNERS = (ast.expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
PASSED_BY = (
    ast.JoinedStr,
    ast.Raise,
    ast.Assert,
    ast.pattern,
    ast.Import,
    ast.ImportFrom,
)
SAYING = ("warn", "print", "debug", "info", "warning", "getLogger", "TypeVar")


class Place(NamedTuple):
    """A node, its function, and the expression or simple statement that names it."""

    function: str
    owner: ast.expr | ast.stmt
    node: ast.AST
    is_test: bool

    @property
    def name(self) -> tuple[str, str]:
        return self.function, ast.unparse(self.owner)


def places(node: ast.AST, function: str = "", owner: Any = None) -> Iterator[Place]:
    """All nodes that have an owner; annotations, defaults, decorators and messages are left out."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list") or isinstance(
            value, ast.arguments
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if (
                not isinstance(child, ast.AST)
                or isinstance(child, PASSED_BY)
                or is_words(child)
            ):
                continue
            inner, own = function, owner
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner, own = f"{function}.{child.name}".lstrip("."), None
            elif isinstance(child, OWNERS) and not is_part(child, node):
                own = child
            if own is not None:
                yield Place(
                    inner, own, child, field == "test" and isinstance(node, ast.If)
                )
            yield from places(child, inner, own)


def is_words(node: ast.AST) -> bool:
    """Is this a docstring, or a call whose words are for people?"""
    if isinstance(node, ast.Call):
        name = str(getattr(node.func, "attr", getattr(node.func, "id", "")))
        return name in SAYING or name.endswith(("Error", "Warning"))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_part(node: ast.AST, of: ast.AST) -> bool:
    """Is a node too small to be known by its own text: a number, its sign, an index?"""
    sign = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    index = isinstance(node, ast.Tuple) and isinstance(of, ast.Subscript)
    return sign or index or isinstance(node, ast.Constant | ast.Slice | ast.Starred)


def is_path(node: ast.AST) -> bool:
    """Is this ``folder / "name"`` or ``folder / NAME``? Any change of it ends at once."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return False
    right = ast.unparse(node.right)
    return right.isupper() or right[0] in "'\""


def changed(place: Place, chance: random.Random) -> str | None:
    """The owner's text with its node changed; None where there is nothing to change."""
    index = next(
        i for i, node in enumerate(ast.walk(place.owner)) if node is place.node
    )
    new = copy.deepcopy(place.owner)
    node = list(ast.walk(new))[index]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        step = chance.choice([1, -1])
        if isinstance(node.value, bool):
            node.value = not node.value
        else:
            node.value = node.value + (
                step if isinstance(node.value, int) else 0.1 * step
            )
    elif is_path(node):
        return None
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    elif isinstance(node, ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and type(node.ops[0]) in SWAPPED
    ):
        node.ops = [SWAPPED[type(node.ops[0])]()]
    elif (
        isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign)
        and type(node.op) in SWAPPED
    ):
        node.op = SWAPPED[type(node.op)]()
    elif place.is_test and isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        return f"not {ast.unparse(node)}"
    else:
        return None
    return ast.unparse(new)


def owners(file: Path) -> dict[tuple[str, str], list[Any]]:
    """A file's expressions and simple statements by function and text, in the file's order."""
    result: dict[tuple[str, str], list[Any]] = {}
    for place in places(ast.parse(file.read_text())):
        if place.node is place.owner:
            result.setdefault(place.name, []).append(place.owner)
    return result


def drawable(
    file: Path, skip: Sequence[str], chance: random.Random
) -> list[tuple[Place, str]]:
    """A file's places with a text for each, but what is skipped or long."""
    return [
        (place, after)
        for place in places(ast.parse(file.read_text()))
        if len(place.name[1]) <= WIDEST
        and not any(fnmatch(f"{file.name}:{place.function}", s) for s in skip)
        and (after := changed(place, chance))
    ]


def draw(seed: int, each: int = 10) -> pd.DataFrame:
    """``each`` changes a room: over its files by their lines, one a function where that goes."""
    chance = random.Random(seed)
    rows = []
    for room, of in ROOMS.items():
        files = sorted((ROOT / "trustlab" / room).rglob("*.py"))
        files = [file for file in files if file.name not in of["skip"]]
        able = {file: drawable(file, of["skip"], chance) for file in files}
        lines = [
            file for file in files if able[file] for _ in file.read_text().splitlines()
        ]
        start, taken = chance.random(), []
        for k in range(each):
            file = lines[int((k + start) * len(lines) / each)]
            fresh = [one for one in able[file] if (file, one[0].function) not in taken]
            place, after = chance.choice(fresh or able[file])
            taken.append((file, place.function))
            at = [(node.lineno, node.col_offset) for node in owners(file)[place.name]]
            nth = at.index((place.owner.lineno, place.owner.col_offset))
            rows.append(
                [room, str(file.relative_to(ROOT)), place.function, nth, place.name[1]]
            )
            rows[-1] += [after, *[""] * len(RUNS), ""]
    return pd.DataFrame(rows, columns=COLUMNS)


def found(row: Mapping[str, Any], root: Path) -> tuple[Path, Any] | None:
    """The file and node that a row names, in the tree below ``root``; None where it has left."""
    files = sorted((root / "trustlab").rglob("*.py"))
    files.sort(key=lambda file: str(file.relative_to(root)) != row["file"])
    anywhere = []
    for file in files:
        of_file = owners(file)
        if alike := of_file.get((row["function"], row["before"])):
            return file, alike[min(int(row["nth"]), len(alike) - 1)]
        for (_, text), nodes in of_file.items():
            anywhere += [(file, node) for node in nodes if text == row["before"]]
    return anywhere[0] if len(anywhere) == 1 and len(row["before"]) >= 15 else None


def write_changed(file: Path, node: Any, after: str) -> None:
    """Writes ``after`` in a node's place (columns are bytes, as ast counts)."""
    lines = file.read_bytes().splitlines(keepends=True)
    before = (
        b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    )
    behind = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(
        lines[node.end_lineno :]
    )
    after = after if isinstance(node, ast.stmt) else f"({after})"
    file.write_bytes(before + after.encode() + behind)


def copy_tree(root: Path) -> None:
    """Code and tests are copied, folders of data linked."""
    for path in ROOT.iterdir():
        if path.name in ("trustlab", "tests", "benchmarks", "notebooks", "training"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, root / path.name, ignore=ignored)
        elif path.is_file():
            shutil.copy2(path, root)
        elif path.name not in ("runs", ".git", ".venv", ".hypothesis"):
            (root / path.name).symlink_to(path)


def pytest(root: Path, tests: Sequence[str], limit: float = 600) -> tuple[str, float]:
    """``survived``, ``caught`` or ``caught by time`` and the seconds that it took."""
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root), str(root / "notebooks")])
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    command += ["--hypothesis-seed=0", "-m", "not slow and not notebook"]
    # no example of another change
    shutil.rmtree(root / ".hypothesis", ignore_errors=True)
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=root, env=env, start_new_session=True)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    result = {None: "caught by time", 0: "survived"}.get(code, "caught")
    return result, time.monotonic() - start


def tried(
    row: Mapping[str, Any], root: Path, tests: Sequence[str], limit: float = 600
) -> str:
    """What became of one change, with seconds; the copy is whole again afterwards."""
    place = found(row, root)
    if place is None:
        return "left"
    file, node = place
    if str(file.relative_to(root)) != row["file"]:
        print(f"{row['file']} {row['function']}: found in {file.relative_to(root)}")
    whole = file.read_bytes()
    compiled = Path(cache_from_source(str(file)))
    try:
        write_changed(file, node, row["after"])
        compiled.unlink(missing_ok=True)  # it may be as long and as old as the next
        result, seconds = pytest(root, tests, limit)
    finally:
        file.write_bytes(whole)
        compiled.unlink(missing_ok=True)
    return f"{result} {seconds:.0f} s"


def tests_of(room: str, file: str = "") -> list[str]:
    """The room's test files that are not gone, those first that name the module ``file``."""
    tests = [ROOT / f"tests/test_{name}.py" for name in ROOMS[room]["tests"]]
    for path in tests:
        if not path.exists() and not file:
            print(f"{room}: {path.name} is gone")
    tests = [path for path in tests if path.exists()]
    name = Path(file).stem
    tests.sort(
        key=lambda p: (p.stem != f"test_{name}", f"{room}.{name} " not in p.read_text())
    )
    return [str(path.relative_to(ROOT)) for path in tests]


def run(table: pd.DataFrame, column: str, room: str | None, root: Path) -> None:
    """Fills the empty cells of a column, kept after each; every room must pass unchanged first."""
    for name in [room] if room else ROOMS:
        rows = table.loc[(table["room"] == name) & (table[column] == "")]
        if rows.empty:
            continue
        result, seconds = pytest(root, tests_of(name), 1800)
        if result != "survived":
            raise SystemExit(f"{name}: its tests fail on the code as it is")
        print(f"{name}: {seconds:.0f} s unchanged", flush=True)
        for number, row in rows.to_dict("index").items():
            result = tried(row, root, tests_of(name, row["file"]), 30 + 3 * seconds)
            table.loc[number, column] = result
            print(
                number,
                row["function"],
                row["before"],
                "->",
                row["after"],
                result,
                flush=True,
            )
            table.to_csv(TABLE, index_label="number")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["draw", "run", "try"])
    parser.add_argument("rest", nargs="*", help="try: a row's number, test files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--column", choices=RUNS, default=RUNS[-1])
    parser.add_argument("--room", choices=list(ROOMS))
    asked = parser.parse_args()
    table = pd.read_csv(TABLE, index_col="number", dtype=str, keep_default_na=False)
    if asked.what == "draw":
        more = pd.concat([table, draw(asked.seed)], ignore_index=True)
        more.to_csv(TABLE, index_label="number")
        return
    with tempfile.TemporaryDirectory(prefix="trustlab-mutations-") as folder:
        copy_tree(Path(folder))
        if asked.what == "run":
            run(table, asked.column, asked.room, Path(folder))
            return
        row = table.to_dict("index")[asked.rest[0]]
        print(
            tried(
                row, Path(folder), asked.rest[1:] or tests_of(row["room"], row["file"])
            )
        )


if __name__ == "__main__":
    main()
