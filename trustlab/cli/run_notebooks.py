"""Runs a notebook with papermill and writes down what came out.

A run's folder ``runs/<name>`` receives the executed notebook, its HTML copy, ``answers.html`` with
``answers/``, ``figures/``, the tables and ``manifest.json``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import yaml

from trustlab import paths
from trustlab.choices import names_of, unknown
from trustlab.reports.html import opening
from trustlab.reports.html.notebook import without_progress, write_html
from trustlab.reports.html.pages import PAGE, write_answers
from trustlab.runs.formatted import remark_lines, together
from trustlab.runs.workbench import check_names
from trustlab.settings import Setup, with_more
from trustlab.stops import Gone, Unlike, Unread, Waiting
from trustlab.tables import read_text

MANIFEST = "manifest.json"
RUN = "run.json"
ORDER = "00 01 02 03 07 05 08 04 06"
"""The order in which notebooks begin that run at once, by the first two letters of their names: the
first to look at, then the longest."""
PLAIN_KERNEL = [
    "--IPKernelApp.log_level=50",
    "--InteractiveShellApp.exec_PYTHONSTARTUP=False",
    "--InteractiveShell.cache_size=0",
]
"""For a kernel: no word that it speaks TCP (to this machine alone), or is stopped at its end;
nothing of the user's is executed first; no output is kept a second time."""
UP = "\x1b[A"  # moves a terminal's cursor a line up
SECTION = r"[0-9][0-9]_"  # how the name of a notebook begins, and no parameter's


def notebook_names() -> list[str]:
    """The notebooks that can be run, in order."""
    return sorted(p.stem for p in paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def notebook_path(name: str) -> Path:
    """The file of notebook ``name``, or of one of the user's own, whose file ``name`` is;
    ``ValueError`` names the known ones."""
    own = Path(name).expanduser()
    if own.suffix == ".ipynb" and own.is_file():
        return own.resolve()
    path = paths.NOTEBOOKS / f"{name.removesuffix('.ipynb')}.ipynb"
    if path.stem not in notebook_names():
        allowed = (
            f"known are {', '.join(notebook_names())}, and the file of one of your own"
        )
        raise ValueError(f"there is no notebook {name!r}; {allowed}")
    return path


def is_own(path: Path) -> bool:
    """Whether a notebook is one of the user's own."""
    return path.parent != paths.NOTEBOOKS or path.stem not in notebook_names()


def study_of(name: str) -> ModuleType | None:
    """The module ``notebooks/studies/NAME.py`` of a notebook; ``None`` where it has none."""
    study = name.partition("_")[2]
    if not (paths.NOTEBOOKS / "studies" / f"{study}.py").is_file():
        return None
    paths.use_studies()
    return importlib.import_module(f"studies.{study}")


def choices_of(name: str) -> type[Any]:
    """The class of a notebook's choices: the ``Asked`` of its study, else ``Setup``."""
    return getattr(study_of(name), "Asked", Setup)


def default_parameters(path: Path) -> dict[str, Any]:
    """The literals of the notebook's parameters cell; ``ValueError`` for a file that is no
    notebook, or that has no such cell."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [
            cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no notebook: {type(error).__name__}: {error}"
        ) from error
    if not tagged:
        raise ValueError(
            f"{path} has no cell with the tag 'parameters', such as: n = 20"
        )
    source = "".join(tagged[0]["source"])
    values: dict[str, Any] = {}
    try:
        for statement in ast.parse(source).body:
            match statement:
                case (
                    ast.Assign(targets=[target, *_], value=value)
                    | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    values[ast.unparse(target)] = ast.literal_eval(value)
    except (SyntaxError, ValueError) as error:
        rule = "its parameters cell may assign literals alone, such as n = 20"
        raise ValueError(f"{path}: {rule}") from error
    return values


# Parameters, from a file and from a shell


def read_parameters(
    file: Path | None, pairs: Sequence[str] = (), notebook: str = ""
) -> dict[str, Any]:
    """Parameters from a YAML file, then ``name=value`` pairs over them (values read as YAML:
    ``n=20``, ``levels=[1, 100]``, ``path="2026"``); a name may be given once.

    Of a file with a section for each notebook, only that of ``notebook`` counts; ``ValueError``
    where it has none, and for a need of that section that no pair gives.
    """
    values = {}
    needs = {}
    if file is not None:
        contents = _read_file(file)
        values = contents.values
        needs = contents.needs
        sections = contents.sections
        name = Path(notebook).name.removesuffix(".ipynb")
        if sections and name not in sections:
            lack = f"{file} has no section for {name or 'one notebook'}"
            raise ValueError(f"{lack}; it has {', '.join(sections)}")
        values = sections.get(name, values)
    pair_values = _read_pairs(pairs)
    need_values = {need: pair_values.pop(need) for need in needs if need in pair_values}
    values = filled(values | pair_values, need_values)
    lines = lacking(values, needs)
    if lines:
        raise ValueError("\n".join(lines))
    return values


def _read_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """The values of ``name=value`` pairs, by name."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = map(str.strip, pair.partition("="))
        if not equals or not name:
            raise ValueError(f"parameter {pair!r} is not of the form name=value")
        if name in values:
            raise ValueError(
                f"parameter {name} is given twice: {values[name]!r}, and {value!r}"
            )
        values[name] = _from_shell(name, value)
    return values


def filled(values: Any, need_values: Mapping[str, Any]) -> Any:
    """``values`` with what is given for each need in place of "$" and its name."""
    if isinstance(values, Mapping):
        return {name: filled(value, need_values) for name, value in values.items()}
    if isinstance(values, list):
        return [filled(value, need_values) for value in values]
    text = str(values)
    if text.startswith("$"):
        return need_values.get(text[1:], values)
    return values


def lacking(values: Any, needs: Mapping[str, str]) -> list[str]:
    """A line for each need that still stands in ``values``."""
    text = json.dumps(values)
    lines = []
    for name, what in needs.items():
        if f'"${name}"' in text:
            lines.append(f"{name} is needed: {what}; give it by -p {name}=VALUE")
    return lines


class ParametersFile(NamedTuple):
    """A file of parameters: a flat one has ``values``, one for several notebooks ``sections``."""

    values: dict[str, Any]
    sections: dict[str, dict[str, Any]]
    needs: dict[str, str]
    departures: list[dict[str, str]]


def read_sections(
    file: Path,
) -> tuple[dict[str, Any], dict[str, str], list[dict[str, str]]]:
    """The sections of a YAML file for several notebooks: parameters by notebook; needs
    ("$NAME" in a section -> what it is, and where to get it); departures (each ``where``, ``what``,
    ``why``). ``ValueError`` for a file of another form."""
    contents = _read_file(file)
    if contents.values and not contents.sections:
        first = next(iter(contents.values))
        rule = f"{file} must hold a section for each notebook"
        raise ValueError(f"{rule}; its first key is {first!r}")
    return contents.sections, contents.needs, contents.departures


def _read_file(file: Path) -> ParametersFile:
    """The contents of a YAML file, whose keys are names of parameters or of notebooks."""
    values = _mapping(_loaded(read_text(file), str(file)), str(file))
    for name in values.keys() - {"needs", "departures"}:
        if not re.match(SECTION, str(name)):
            return ParametersFile(values, {}, {}, [])
    needs = _mapping(values.pop("needs", None), str(file), " for needs")
    for name in needs.keys() & names_of(Setup):
        raise ValueError(f"{file} has the need {name!r}; {name} is a parameter")
    departures = values.pop("departures", None) or []
    if not _are_departures(departures):
        raise ValueError(
            f"{file}: each of departures must have where, what and why, and no more"
        )
    for name in values:
        notebook_path(name)
    sections = {}
    for name, section in values.items():
        sections[name] = _mapping(section, str(file), f" for {name}")
    return ParametersFile(values, sections, needs, departures)


def _are_departures(departures: Any) -> bool:
    """Whether this is a list of mappings, each with where, what and why alone."""
    if not isinstance(departures, list):
        return False
    for departure in departures:
        if not isinstance(departure, dict) or {*departure} != {"where", "what", "why"}:
            return False
    return True


def _mapping(value: Any, where: str, of: str = "") -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        received = f"{where} holds {type(value).__name__}{of}"
        raise ValueError(
            f"{received}; it must be a mapping of parameter names to values"
        )
    return value or {}


def _from_shell(name: str, value: str) -> Any:
    """The value of a ``name=value`` pair: in brackets or quotes YAML, else one word, without
    comments and blocks."""
    if value.startswith(("[", "{", '"', "'")):
        return _loaded(f"{name}: {value}", f"parameter {name}")[name]
    if not value:
        return value
    loader = _Loader("")
    tag = loader.resolve(yaml.ScalarNode, value, (True, False))
    node = yaml.ScalarNode(tag, value)
    return loader.construct_object(node)


class _Loader(yaml.SafeLoader):
    """YAML 1.2: ``no`` and a date are text, ``010`` is 10. Each key once. Python's ``None`` is
    null, too."""

    yaml_implicit_resolvers = {}

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        names = []
        for key, _ in node.value:
            if key.value in names:
                raise ValueError(f"{key.value} is given twice")
            names.append(key.value)
        return super().construct_mapping(node, deep)


PLAIN = {
    "null": r"~|null|Null|NULL|None|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?\d+",
    "float": r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,2})?",
}
"""Kind -> plain words that are no text."""
for _kind, _alternatives in PLAIN.items():
    _pattern = re.compile(rf"({_alternatives})\Z", re.ASCII)
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _pattern, None)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))
_Loader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(node.value))


def _loaded(text: str, where: str) -> Any:
    """Load a text as YAML; ``ValueError`` says ``where`` it is none."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(
            f"{where} is not YAML: {' '.join(str(error).split())}"
        ) from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def check_parameters(path: Path, values: Mapping[str, Any]) -> Any:
    """The choices of a notebook's study: its own parameters with ``values`` over them, checked
    before its kernel starts.

    - A notebook with ``more`` among its parameters takes every choice of its study. Of a notebook
      of the user's own they are the choices of ``Setup`` among its parameters.
    - ``ValueError`` for one that it does not have (papermill would only warn), also in the cell of
      a notebook with a study, and for one that is given twice.
    """
    choices = choices_of(path.stem)
    choice_names = names_of(choices)
    allowed = parameters_of(path)
    cell = default_parameters(path)
    cell.pop("run_dir", None)
    if study_of(path.stem):
        for name in cell.keys() - {*choice_names, "more"}:
            raise ValueError(
                f"the parameters cell of {path}: {unknown(name, choice_names)}"
            )
    notebook = f"{path.stem} has"
    for name in values:
        if name not in allowed:
            raise ValueError(unknown(name, allowed, notebook))
    named = cell | dict(values)
    more = named.pop("more", {})
    chosen_values = {}
    for name, value in with_more(named, more, allowed, notebook).items():
        if name in choice_names:
            chosen_values[name] = value
    chosen = choices(**chosen_values)
    if isinstance(chosen, Setup):
        check_names(chosen)
    return chosen


def parameters_of(path: Path) -> list[str]:
    """The names that a notebook takes: those of its parameters cell and, with ``more`` among them,
    every choice of its study. ``run_dir``, which the runner gives, is none."""
    names = list(default_parameters(path))
    if "more" in names:
        names += names_of(choices_of(path.stem))
    return [name for name in dict.fromkeys(names) if name != "run_dir"]


def parameters_table(name: str = "") -> list[tuple[str, str, str, str]]:
    """Every choice of a notebook (of all runs without one), those of its parameters cell first:
    "*" for these, its name, its default, what it may be and means."""
    choices: Any = Setup
    cell = {}
    if name:
        path = notebook_path(name)
        choices = choices_of(path.stem)
        cell = default_parameters(path)
    docstrings = meanings(choices)
    fields = dict(choices.__pydantic_fields__)
    fields.pop("run_dir", None)
    rows = []
    for choice in sorted(fields, key=lambda choice: choice not in cell):
        field = fields[choice]
        default = cell.get(choice, field.get_default(call_default_factory=True))
        words = [_allowed(field)]
        if choice in docstrings:
            words.append(docstrings[choice])
        mark = "*" if choice in cell else " "
        shown = textwrap.shorten(repr(default), 80)
        rows.append((mark, choice, shown, "; ".join(filter(None, words))))
    return rows


def _allowed(field: Any) -> str:
    """What a choice may be: its description, else its type; '' where it may be anything."""
    if field.description:
        return field.description
    if field.annotation is Any:
        return ""
    return str(getattr(field.annotation, "__name__", field.annotation))


def meanings(choices: type[Any]) -> dict[str, str]:
    """Field -> the docstring under it, in a class and its bases."""
    docstrings: dict[str, str] = {}
    for base in reversed(choices.__mro__[:-1]):
        source = textwrap.dedent(inspect.getsource(base))
        (class_statement,) = ast.parse(source).body
        for line, below in pairwise(getattr(class_statement, "body", ())):
            match line, below:
                case ast.AnnAssign(), ast.Expr(
                    value=ast.Constant(value=str(docstring))
                ):
                    field = ast.unparse(line.target)
                    docstrings[field] = _without_roles(docstring)
    return docstrings


def _without_roles(docstring: str) -> str:
    """Words without Sphinx's marks, in a line."""
    plain = docstring.replace("``", "")
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", plain)
    return " ".join(plain.split())


def run_notebook(
    name: str,
    values: Mapping[str, Any],
    run_dir: Path | None = None,
    shared: Mapping[str, str] | None = None,
) -> Path:
    """Execute notebook ``name`` with ``values``; returns the run's folder.

    - ``shared``: variables for the kernel where other notebooks run beside it; ``None``: none do,
      so that its cells are counted and saved while they run.
    - It runs where the command is given: relative paths, in parameters and cells, are from there.
    - A failing cell leaves the notebook as far as it came, and a manifest that says so, and raises
      papermill's error, or :class:`~trustlab.stops.Stopped` where that was the cell's.
    """
    from papermill.exceptions import PapermillExecutionError

    source = notebook_path(name)
    check_parameters(source, values)
    folder = (run_dir or paths.RUNS / source.stem).resolve()
    target = folder / source.name
    folder.mkdir(parents=True, exist_ok=True)
    figures = (folder / "figures").glob(f"{source.stem[:2]}_*.*")
    for file in [*folder.rglob(RUN), *figures, folder / PAGE]:  # of an earlier run
        file.unlink(missing_ok=True)
    if shared is None:
        # papermill, which saves it meanwhile, keeps its rights
        target.touch(paths.PRIVATE)
    else:
        target.unlink(missing_ok=True)
    manifest: dict[str, Any] = {
        "notebook": source.stem,
        "notice": paths.NOTICE,
        "parameters": dict(values),
        "started": _now(),
        "ok": False,
    }
    parameters = placed(source, values)
    if "run_dir" in default_parameters(source):
        parameters["run_dir"] = str(folder)
    try:
        _execute(source, target, parameters, shared)
        manifest["ok"] = True
        write_answers(folder)
    except PapermillExecutionError as error:
        for stop in (Gone, Unlike, Unread, Waiting):
            if error.ename == stop.__name__:
                manifest["stopped"] = error.evalue
                raise stop(error.evalue, []) from error
        raise
    finally:
        manifest["finished"] = _now()
        paths.save_json(manifest | _run_facts(folder), folder / MANIFEST)
        if target.is_file() and target.stat().st_size:
            fill_opening(target, folder, manifest["ok"])
            write_html(target)
    return folder


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _execute(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any],
    shared: Mapping[str, str] | None,
) -> None:
    """Execute a notebook by papermill, with the ``shared`` variables, the folder of runs and its
    own; alone (``None``) it shows bars and is saved cell by cell."""
    import papermill

    is_alone = shared is None
    runs_folder = (shared or os.environ).get("TRUSTLAB_RUNS", "")
    if not Path(runs_folder).is_absolute():
        runs_folder = str(paths.RUNS)
    variables = {
        **(shared or {}),
        "TRUSTLAB_RUNS": runs_folder,
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # it warns of frozen modules
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }

    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        papermill.execute_notebook(
            str(source),
            str(target),
            parameters=parameters,
            kernel_name="python3",
            language="python",
            progress_bar=is_alone,
            stderr_file=BarsOfCells() if is_alone else None,
            request_save_on_cell_execute=is_alone,  # each saves all cells
            extra_arguments=[*PLAIN_KERNEL, f"--ipython-dir={profile}"],
            kernel_manager_class=own_kernel(variables),
        )


class BarsOfCells:
    """Takes what cells write to stderr: a terminal shows the bars, and what moves or wipes them."""

    def write(self, text: str) -> None:
        """Show a text that is no more than bars; others stand in the notebook."""
        is_bar = "%|" in text or not text.replace(UP, "").strip()
        if is_bar and sys.stderr.isatty():
            sys.stderr.write(text)

    def flush(self) -> None:
        """Show at once what was written."""
        sys.stderr.flush()


def own_kernel(variables: dict[str, str]) -> type[Any]:
    """Starts kernels of this very Python with these environment variables, whatever kernelspec
    goes by the name python3."""
    # with papermill: only what runs needs it
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    literal = {name: value.replace("$", "$$") for name, value in variables.items()}
    spec = KernelSpec(**get_kernel_dict(), env=literal)

    class OwnKernel(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return spec

    return OwnKernel


def placed(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Checked ``values`` as the notebook's parameters cell takes them: what it does not name, in
    ``more``."""
    cell = default_parameters(path)
    named = {}
    further = {}
    for name, value in values.items():
        if name in cell:
            named[name] = value
        else:
            further[name] = value
    if further:
        named["more"] = {**values.get("more", {}), **further}
    return named


def _run_facts(folder: Path) -> dict[str, Any]:
    """The contents of ``run.json``; of a notebook with several runs, each below its folder's name,
    and their calls, what is missing and warnings in all. Of all runs ``replies_read``, and in
    ``nothing_claimed`` that of which less than half could be read."""
    runs = opening.runs_in(folder)
    if not runs:
        return {}
    read = {
        "replies_read": opening.counts_of(runs.values()),
        "nothing_claimed": opening.nothing_claimed(runs),
    }
    if "" in runs:
        return runs[""] | read
    n_calls = dict.fromkeys(("calls_made", "calls_from_cache"), 0)
    missing = []
    for name, facts in runs.items():
        for count in n_calls:
            n_calls[count] += facts.get(count, 0)
        for row in facts.get("missing", []):
            missing.append({**row, "run": name})
    parameters = map(opening.parameters_of, runs.values())
    warnings = remark_lines(together(parameters))
    return {"runs": runs, **n_calls, "missing": missing, "warnings": warnings, **read}


def fill_opening(notebook: Path, folder: Path, ok: bool = True) -> None:
    """Write the summary of a run's folder into the opening of a notebook, if it has a place for it
    (:mod:`trustlab.reports.html.opening`), and leave out the progress bars of its cells. Without a
    run the block stays as it is, unless the run stopped."""
    import nbformat

    block = opening.opening(folder)
    if not block and not ok:
        block = opening.STOPPED
    executed = nbformat.read(notebook, 4)
    for cell in executed.cells:
        if cell.cell_type == "code":
            cell.outputs = without_progress(cell.outputs)
    if block:
        for cell in executed.cells[:3]:
            if opening.BLOCK.search(cell.source):
                cell.source = opening.filled(cell.source, block)
    with paths.whole(notebook) as beside:
        nbformat.write(executed, beside)


def lay_out(folder: Path) -> None:
    """Make a workbench: the notebooks and their parameters, two example tables, a page that says
    what to do. ``ValueError`` where one of these is there already; nothing is then written."""
    tables = paths.DATA / "workbench"
    names = sorted(file.name for file in tables.iterdir())
    for name in ("notebooks", *names):
        if (folder / name).exists():
            raise ValueError(f"{folder / name} is there already; choose another folder")
    unwanted = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
    shutil.copytree(paths.ROOT / "notebooks", folder / "notebooks", ignore=unwanted)
    shutil.copytree(tables, folder, dirs_exist_ok=True)
