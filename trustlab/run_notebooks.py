"""Runs a notebook with papermill: checks the parameters first, keeps what came out, writes the
manifest.

A run's folder ``runs/<name>`` receives the executed notebook, its HTML copy, ``answers.html`` with
``answers/``, ``figures/``, the tables and ``manifest.json``.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import json
import os
import re
import shutil
import textwrap
import time
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

import yaml

from trustlab.choices import names_of, unknown, with_more
from trustlab.datasets.cases_file import read_text
from trustlab.formatted import remark_lines, together
from trustlab.html.notebook import without_progress, write_html
from trustlab.html.opening import (
    BLOCK,
    STOPPED,
    counts_of,
    filled,
    nothing_claimed,
    opening,
    parameters_of,
    runs_in,
    unread,
)
from trustlab.html.pages import PAGE, write_answers
from trustlab.models.base import Gone, Stopped, Unread, Waiting
from trustlab.paths import (
    DATA,
    FIGURES,
    NOTEBOOKS,
    NOTICE,
    ROOT,
    WORK,
    environment,
    runs_of,
    save_json,
    use_studies,
    whole,
)
from trustlab.run import find_table
from trustlab.settings import ROLES, Setup
from trustlab.workbench import check_names, opened

MANIFEST, RUN = "manifest.json", "run.json"
REFERENCE = ("answers", "confidence", "metrics")
"""Tables of the reference run that the repository keeps, and that a test makes again in part."""

ORDER = "00 01 02 03 07 05 08 04 06"
"""The order in which notebooks begin that run at once, by the first two letters of their names: the
first to look at, then the longest."""
QUIET = ["--IPKernelApp.log_level=50"]
"""For a kernel: no word that it speaks TCP (to this machine alone), or is stopped at its end."""


def notebook_names() -> list[str]:
    """The notebooks that can be run, in order."""
    return sorted(p.stem for p in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def notebook_path(name: str) -> Path:
    """The file of notebook ``name``, or of one of the user's own, whose file ``name`` is;
    ``ValueError`` names the known ones."""
    own = Path(name).expanduser()
    if own.suffix == ".ipynb" and own.is_file():
        return own.resolve()
    path = NOTEBOOKS / f"{name.removesuffix('.ipynb')}.ipynb"
    if path.stem not in notebook_names():
        known = f"known are {', '.join(notebook_names())}, and the file of one of your own"
        raise ValueError(f"there is no notebook {name!r}; {known}")
    return path


def read_parameters(
    file: Path | None, pairs: Sequence[str] = (), notebook: str = ""
) -> dict[str, Any]:
    """Parameters from a YAML file, then ``name=value`` pairs over them (values read as YAML:
    ``n=20``, ``levels=[1, 100]``). What takes text gets the text as it stands, and a name may be
    given once.

    Of a file with a section for each notebook, only that of ``notebook`` counts; ``ValueError``
    where it has none.
    """
    texts, values = _texts(notebook), {}
    if file is not None:
        values = _mapping(file, texts)
        if sections := _sections(values, file):
            name = Path(notebook).name.removesuffix(".ipynb")
            if name not in sections:
                told = f"{file} has no section for {name or 'one notebook'}"
                raise ValueError(f"{told}; it has {', '.join(sections)}")
            values = sections[name]
    named: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = map(str.strip, pair.partition("="))
        if not equals or not name:
            raise ValueError(f"parameter {pair!r} is not of the form name=value")
        if name in named:
            raise ValueError(f"parameter {name} is given twice: {named[name]!r}, and {value!r}")
        try:
            found = _loaded(value, f"parameter {name}")
        except UnicodeError as error:
            raise ValueError(str(error)) from error
        except ValueError:
            if name not in texts:
                raise
            found = None
        # A shell's words are YAML without comments and blocks.
        whole = value[:1] in ("[", "{", '"', "'") and found is not None or found == value
        named[name] = _meant({name: found}, texts)[name] if value and whole else value
    return values | named


def read_sections(file: Path) -> dict[str, dict[str, Any]]:
    """The parameters of every notebook named in a YAML file, by notebook; ``ValueError`` for a file
    of another form."""
    found = _mapping(file, _texts(""))
    sections = _sections(found, file)
    if found and not sections:
        told = f"{file} must hold a section for each notebook"
        raise ValueError(f"{told}; its first key is {next(iter(found))!r}")
    return sections


def _mapping(file: Path, texts: Set[str]) -> dict[str, Any]:
    return _values(_meant(_loaded(read_text(file), str(file)), texts), str(file))


def _values(found: Any, where: str, of: str = "") -> dict[str, Any]:
    if found is not None and not isinstance(found, dict):
        told = f"{where} holds {type(found).__name__}{of}"
        raise ValueError(f"{told}; it must be a mapping of parameter names to values")
    return found or {}


def _sections(found: Mapping[str, Any], file: Path) -> dict[str, dict[str, Any]]:
    """The file's sections; empty for a flat file, whose keys are names of parameters and not of
    notebooks."""
    if not all(re.match(SECTION, str(key)) for key in found):
        return {}
    for name in found:
        notebook_path(name)
    return {name: _values(of, str(file), f" for {name}") for name, of in found.items()}


def _texts(notebook: str) -> set[str]:
    """The parameters of a notebook, of all runs without one, that take text."""
    chosen, own = Setup, {}
    with contextlib.suppress(ValueError):
        path = notebook_path(notebook)
        chosen, own = choices_of(path.stem), default_parameters(path)
    known = {
        n: _is_text(f.annotation, f.default) for n, f in vars(chosen)["__pydantic_fields__"].items()
    }
    known |= {n: isinstance(v, str) for n, v in own.items() if not isinstance(v, list | None)}
    return {name for name, is_text in known.items() if is_text}


def _is_text(kind: Any, default: Any = None) -> bool:
    if get_origin(kind) is Literal or kind is Any:
        return isinstance(default, str | None)
    inner = get_args(kind) if get_origin(kind) is not dict else ()
    return kind in (str, Path) or any(map(_is_text, inner))


SECTION = r"[0-9][0-9]_"
"""How the name of a notebook begins, and no parameter's."""
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,2})?", re.ASCII)


class _Plain(str):
    """A scalar of YAML that stands without quotes."""


class _Loader(yaml.SafeLoader):
    """Leaves plain scalars to :func:`_meant`; each key once."""

    yaml_implicit_resolvers = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := [key for i, key in enumerate(keys) if key in keys[:i]]:
            raise ValueError(f"{twice[0]} is given twice")
        return super().construct_mapping(node, deep)

    def text(self, node: yaml.ScalarNode) -> str:
        """A scalar as it stands."""
        return _Plain(node.value) if node.style is None else node.value


_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.text)


def _loaded(text: str, where: str) -> Any:
    """What YAML holds, plain scalars as they stand; ``ValueError`` says ``where`` it is none."""
    try:
        return yaml.load(text, _Loader)
    except yaml.reader.ReaderError as error:
        raise UnicodeError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _meant(value: Any, texts: Set[str] = frozenset(), as_text: bool = False) -> Any:
    """What it means in YAML 1.2: ``no`` and a date are text, ``010`` is 10, ``1e2`` is 100.

    ``texts`` names what takes text as it stands, also in ``more``; a section has its own.
    """
    if isinstance(value, dict):
        found = {}
        for key, of in value.items():
            own = _texts(key) if re.match(SECTION, str(key)) else texts if key == "more" else ()
            found[_meant(key)] = _meant(of, set(own), key in texts)
        return found
    if isinstance(value, list):
        return [_meant(one, as_text=as_text) for one in value]
    if not isinstance(value, _Plain):
        return value
    if value.lower() in ("", "~", "null"):
        return None
    if not as_text and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if as_text or not _NUMBER.fullmatch(value):
        return str(value)
    number = float(value) if re.search("[.eE]", value) else int(value)
    return int(number) if "." not in value and number == number // 1 else number


def check_parameters(path: Path, values: Mapping[str, Any]) -> Any:
    """The choices of a notebook's study, checked in one line and before its kernel starts: its own
    parameters with ``values`` over them. One that it does not have is refused (papermill would only
    warn).

    A notebook with ``more`` among its parameters takes every choice of its study. Of a notebook of
    the user's own they are the choices of ``Setup`` among its parameters.
    """
    given, choices = default_parameters(path), choices_of(path.stem)
    given.pop("run_dir", None)  # the runner gives it
    known = [name for name in names_of(choices) if name != "run_dir"]
    known = known if is_own(path) or "more" in given else list(given)
    allowed = list(dict.fromkeys([*given, *(known if "more" in given else ())]))
    for name in values:
        if name not in allowed:
            raise ValueError(unknown(name, allowed, f"{path.stem} has"))
    asked = with_more(given | dict(values), allowed, f"{path.stem} has") | dict(values)
    chosen = choices(**{name: value for name, value in asked.items() if name in known})
    if isinstance(chosen, Setup):
        check_names(chosen)
    return chosen


def placed(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` as the notebook's parameters cell takes them: what it does not name, in ``more``.

    A value named beside ``more`` goes before the one within.
    """
    own = default_parameters(path)
    named = {name: value for name, value in values.items() if name in own}
    rest = {name: value for name, value in values.items() if name not in own}
    return named | {"more": {**values.get("more", {}), **rest}} if rest else named


def parameters_table(name: str = "") -> list[dict[str, str]]:
    """Every choice of a notebook (of all runs without one): its name, its default, what it may be
    and means, and whether the notebook's parameters cell shows it."""
    chosen: Any = choices_of(notebook_path(name).stem) if name else Setup
    shown = default_parameters(notebook_path(name)) if name else {}
    meaning, found = meanings(chosen), []
    for of, field in chosen.__pydantic_fields__.items():
        default = repr(shown.get(of, field.get_default(call_default_factory=True)))
        kind = field.annotation  # Any says nothing
        words = "" if kind is Any else str(getattr(kind, "__name__", kind))
        told = {"name": of, "shown": "*" * (of in shown), "meaning": meaning.get(of, "")}
        told |= {"range": field.description or words}
        found.append(told | {"default": textwrap.shorten(default, 80, placeholder=" ...")})
    rows = (row for row in found if row["name"] != "run_dir")
    return sorted(rows, key=lambda row: not row["shown"])


def meanings(chosen: type[Any]) -> dict[str, str]:
    """Field -> the docstring under it, in a class and those that it is made of."""
    found: dict[str, str] = {}
    for base in reversed(chosen.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        for line, below in pairwise(getattr(body, "body", ())):
            match line, below:
                case ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(words))):
                    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", words.replace("``", ""))
                    found[ast.unparse(line.target)] = " ".join(plain.split())
    return found


def is_own(path: Path) -> bool:
    """Whether a notebook is one of the user's own."""
    return path.parent != NOTEBOOKS or path.stem not in notebook_names()


def choices_of(name: str) -> type[Any]:
    """The class of a notebook's choices: the ``Asked`` of its study, else ``Setup``."""
    return getattr(study_of(name), "Asked", Setup)


def study_of(name: str) -> ModuleType | None:
    """The module ``notebooks/studies/NAME.py`` of a notebook; ``None`` where it has none."""
    study = name.partition("_")[2]
    if not (NOTEBOOKS / "studies" / f"{study}.py").is_file():
        return None
    use_studies()
    return importlib.import_module(f"studies.{study}")


def default_parameters(path: Path) -> dict[str, Any]:
    """The literals of the notebook's parameters cell; ``ValueError`` for a file that is no
    notebook, or that has no such cell."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no notebook: {type(error).__name__}: {error}") from error
    if not tagged:
        raise ValueError(f"{path} has no cell with the tag 'parameters', such as: n = 20")
    try:
        lines = ast.parse("".join(tagged[0]["source"])).body
        assigned: Any = [line for line in lines if isinstance(line, ast.Assign | ast.AnnAssign)]
        named = [((getattr(a, "targets", None) or [a.target])[0], a.value) for a in assigned]
        return {ast.unparse(n): ast.literal_eval(v) for n, v in named if v is not None}
    except (SyntaxError, ValueError) as error:
        told = f"{path}: its parameters cell may assign literals alone, such as n = 20"
        raise ValueError(told) from error


def run_notebook(
    name: str,
    values: Mapping[str, Any],
    run_dir: Path | None = None,
    shard: str | None = None,
    alone: bool = True,
    answers: bool = True,
) -> Path:
    """Execute notebook ``name`` with ``values``; returns the run's folder.

    A ``shard`` (:func:`~trustlab.paths.shard_of`) of the cases has a folder of its own in
    ``runs/``, for its replies and for what else its notebook leaves. ``alone``: no other runs
    beside it, so that its cells are counted and saved while they run.

    A relative ``path`` or ``corpus``, or folder in ``model``, is taken from where the command is
    given; the notebook runs in its own folder, one of the package's in the working folder. A
    failing cell leaves the notebook as far as it came, without ``answers.html`` (which ``answers``
    asks for), and raises papermill's error, or :class:`~trustlab.models.base.Gone` where that was
    the cell's; the manifest then says so.
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError

    source = notebook_path(name)
    values = dict(values) | ({} if shard is None else {"shard": shard})
    check_parameters(source, values)
    values = {k: _from_here(k, v) for k, v in values.items()}
    own, named = runs_of(shard), os.environ.get("TRUSTLAB_RUNS", "")
    there = str(own if shard or not Path(named).is_absolute() else named)
    folder = (run_dir or own / source.stem).resolve()
    into = {"run_dir": str(folder)} if "run_dir" in default_parameters(source) else {}
    target = folder / source.name
    folder.mkdir(parents=True, exist_ok=True)
    old = [*folder.rglob(RUN), *(folder / "figures").glob(f"{source.stem[:2]}_*.*"), folder / PAGE]
    for left in old if alone else [*old, target]:  # else papermill writes it at once
        left.unlink(missing_ok=True)
    manifest: dict[str, Any] = {"notebook": source.stem, "notice": NOTICE, "parameters": values}
    manifest |= {"started": _now(), "ok": False}
    began = time.time()
    debugger = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # it warns of frozen modules
    try:
        with environment({"TRUSTLAB_RUNS": there, **debugger}):
            papermill.execute_notebook(
                str(source),
                str(target),
                parameters=placed(source, values) | into,
                cwd=str(WORK if source.is_relative_to(ROOT) else source.parent),
                kernel_name="python3",
                language="python",
                progress_bar=alone,
                request_save_on_cell_execute=alone,  # each saves all cells
                extra_arguments=QUIET,
            )
        manifest["ok"] = True
        if answers:  # a disk may count in steps of two seconds
            write_answers(folder, since=began - 2)
    except PapermillExecutionError as error:
        stops: dict[str, type[Stopped]] = {s.__name__: s for s in (Gone, Unread, Waiting)}
        if error.ename not in stops:
            raise
        manifest["stopped"] = error.evalue
        raise stops[error.ename](error.evalue, []) from error
    finally:
        save_json(manifest | {"finished": _now(), **_run_facts(folder)}, folder / MANIFEST)
        if target.is_file():
            fill_opening(target, folder, manifest["ok"])
            write_html(target)
    return folder


def fill_opening(notebook: Path, folder: Path, ok: bool = True) -> None:
    """Write what a run's folder says into the opening of a notebook: :mod:`trustlab.html.opening`;
    leave out the progress bars of its cells.

    Without a run the block stays as it is, unless the run stopped. A notebook without a place for
    it gets a cell in front where much could not be read.
    """
    import nbformat

    block = opening(folder) or ("" if ok else STOPPED)
    made = nbformat.read(notebook, 4)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs = without_progress(cell.outputs)
    places = [cell for cell in made.cells[:3] if BLOCK.search(cell.source)]
    for cell in places:
        cell.source = filled(cell.source, block) if block else cell.source
    if not places and (told := unread(folder, counts_of(runs_in(folder).values()))):
        made.cells.insert(0, nbformat.v4.new_markdown_cell(told, id="opening"))
    with whole(notebook) as beside:
        nbformat.write(made, beside)


def has_cases(name: str, values: Mapping[str, Any], shard: str) -> bool:
    """Whether a shard of the cases that a notebook would load with ``values`` has any;
    ``ValueError`` for a notebook without cases."""
    if "n" not in default_parameters(path := notebook_path(name)):
        raise ValueError(f"{path.stem} loads no cases that could be shared out")
    return bool(opened(check_parameters(path, {**values, "shard": shard})).cases())


def _from_here(name: str, value: Any) -> Any:
    """The parameter with its paths made absolute, since the notebook runs in its own folder."""
    if isinstance(value, list):
        return [_from_here(name, item) for item in value]
    if isinstance(value, Mapping) and name in ("data_options", "corpora", "more"):
        inner = "corpus" if name == "corpora" else ""
        return {
            of: {k: _from_here(k, v) for k, v in each.items()}
            if name == "data_options"
            else _from_here(inner or of, each)
            for of, each in value.items()
        }
    if not isinstance(value, str | Path) or not value:
        return value
    own = Path(value).expanduser()
    if name in ("path", "corpus") or (
        name in ("medical_encoder", "entailment", "ids") and own.exists()
    ):
        return str(own.resolve())
    before, mark, folder = str(value).rpartition("hf:")
    if name in ("model", *ROLES, "grader") and mark and Path(folder).is_dir():
        return f"{before}hf:{Path(folder).resolve()}"
    return value


def lay_out(folder: Path) -> None:
    """Make a workbench: the notebooks and their parameters, two example tables, a page that says
    what to do. ``ValueError`` where one of the files is there already; none is then written.
    """
    parts = {ROOT / "notebooks": folder / "notebooks", DATA / "workbench": folder}
    copies = {
        source: target / source.relative_to(whole_of)
        for whole_of, target in parts.items()
        for source in sorted(whole_of.rglob("*"))
        if source.is_file() and not {".ipynb_checkpoints", "__pycache__"} & set(source.parts)
    }
    if there := [str(target) for target in copies.values() if target.exists()]:
        more = f" and {len(there) - 1} files more are" if len(there) > 1 else " is"
        raise ValueError(f"{there[0]}{more} there already; choose another folder")
    for source, target in copies.items():
        with whole(target) as beside:
            shutil.copyfile(source, beside)


def reference_tables(run_dir: Path) -> list[Path]:
    """The files of :data:`REFERENCE` in a run's folder, where they are all there."""
    found = [find_table(run_dir, name) for name in REFERENCE]
    return [table for table in found if table] if all(found) else []


def publish(run_dir: Path, name: str) -> None:
    """Make a run the reference: figures to ``figures/``, tables to ``figures/reference/NAME/``,
    outputs into the notebook.

    What this run no longer makes is deleted there. The notebook keeps its own cells and default
    parameters; only outputs are copied, and no path of this machine. The tables in
    :data:`REFERENCE` are kept where the run left them all, in full precision: rounded ones hold
    ties that the run did not have, which moves AUROC.
    """
    import nbformat

    source = notebook_path(name)
    ours, made = nbformat.read(source, 4), nbformat.read(run_dir / source.name, 4)
    code = [c for c in made.cells if c.cell_type == "code"]
    executed = [c for c in code if "injected-parameters" not in c.metadata.get("tags", [])]
    mine = [c for c in ours.cells if c.cell_type == "code"]
    if [c.source for c in executed] != [c.source for c in mine]:
        raise ValueError(f"{run_dir} was made by another version of {source.name}; run it again")
    for cell, done in zip(mine, executed, strict=True):
        shown = without_progress(done.outputs)
        cell.outputs = [o for o in shown if o.get("name") != "stderr"]
        cell.execution_count = None
        for output in cell.outputs:
            output.pop("execution_count", None)
            if output.output_type == "execute_result":
                output["execution_count"] = None
    if block := opening(run_dir):
        ours.cells[0].source = filled(ours.cells[0].source, block)
    with whole(source) as beside:
        nbformat.write(ours, beside)
    files = {file: FIGURES / file.name for file in sorted((run_dir / "figures").glob("*"))}
    reference = FIGURES / "reference" / source.stem
    files |= {table: reference / table.name for table in reference_tables(run_dir)}
    old = {*FIGURES.glob(f"{source.stem[:2]}_*.*"), *reference.glob("*")}
    for file in old - set(files.values()):
        file.unlink()
    for file, target in files.items():
        with whole(target) as beside:
            shutil.copyfile(file, beside)


def _run_facts(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says; of a notebook with several runs, each below its own folder's name,
    and their calls, what is missing and warnings in all. Of all runs ``replies_read``, and in
    ``nothing_claimed`` that of which less than half could be read."""
    if not (runs := runs_in(folder)):
        return {}
    read = {"replies_read": counts_of(runs.values()), "nothing_claimed": nothing_claimed(runs)}
    if "" in runs:
        return runs[""] | read
    calls = ("calls_made", "calls_from_cache")
    counted = {n: sum(facts.get(n, 0) for facts in runs.values()) for n in calls}
    missing = [{**row, "run": name} for name, of in runs.items() for row in of.get("missing", [])]
    told = remark_lines(together(map(parameters_of, runs.values())))
    return {"runs": runs, **counted, "missing": missing, "warnings": told, **read}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
