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
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import yaml

from trustlab import paths
from trustlab.choices import names_of, unknown
from trustlab.models.stops import Gone, Unread, Waiting
from trustlab.reports.html import opening
from trustlab.reports.html.notebook import without_progress, write_html
from trustlab.reports.html.pages import PAGE, write_answers
from trustlab.runs.formatted import remark_lines, together
from trustlab.runs.workbench import check_names
from trustlab.settings import Setup, with_more
from trustlab.tables import read_text

MANIFEST, RUN = "manifest.json", "run.json"
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
        known = f"known are {', '.join(notebook_names())}, and the file of one of your own"
        raise ValueError(f"there is no notebook {name!r}; {known}")
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
        tagged = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no notebook: {type(error).__name__}: {error}") from error
    if not tagged:
        raise ValueError(f"{path} has no cell with the tag 'parameters', such as: n = 20")
    values: dict[str, Any] = {}
    try:
        for line in ast.parse("".join(tagged[0]["source"])).body:
            if isinstance(line, ast.Assign):
                values[ast.unparse(line.targets[0])] = ast.literal_eval(line.value)
            elif isinstance(line, ast.AnnAssign) and line.value is not None:
                values[ast.unparse(line.target)] = ast.literal_eval(line.value)
    except (SyntaxError, ValueError) as error:
        told = f"{path}: its parameters cell may assign literals alone, such as n = 20"
        raise ValueError(told) from error
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
    values, needs = {}, {}
    if file is not None:
        values, sections, needs, _ = _read_file(file)
        name = Path(notebook).name.removesuffix(".ipynb")
        if sections and name not in sections:
            told = f"{file} has no section for {name or 'one notebook'}"
            raise ValueError(f"{told}; it has {', '.join(sections)}")
        values = sections.get(name, values)
    named: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = map(str.strip, pair.partition("="))
        if not equals or not name:
            raise ValueError(f"parameter {pair!r} is not of the form name=value")
        if name in named:
            raise ValueError(f"parameter {name} is given twice: {named[name]!r}, and {value!r}")
        named[name] = _from_shell(name, value)
    given = {need: named.pop(need) for need in needs if need in named}
    values = filled(values | named, given)
    if lines := lacking(values, needs):
        raise ValueError("\n".join(lines))
    return values


def filled(values: Any, given: Mapping[str, Any]) -> Any:
    """``values`` with what is given for each need in place of "$" and its name."""
    if isinstance(values, Mapping):
        return {key: filled(of, given) for key, of in values.items()}
    if isinstance(values, list):
        return [filled(of, given) for of in values]
    return given.get(str(values)[1:], values) if str(values).startswith("$") else values


def lacking(values: Any, needs: Mapping[str, str]) -> list[str]:
    """A line for each need that still stands in ``values``."""
    there, line = json.dumps(values), "{0} is needed: {1}; give it by -p {0}=VALUE"
    return [line.format(*need) for need in needs.items() if f'"${need[0]}"' in there]


def read_sections(file: Path) -> tuple[dict[str, Any], dict[str, str], list[dict[str, str]]]:
    """What a YAML file holds for every notebook that it names: parameters by notebook; needs
    ("$NAME" in a section -> what it is, and where to get it); departures (each ``where``, ``what``,
    ``why``). ``ValueError`` for a file of another form."""
    values, sections, needs, departures = _read_file(file)
    if values and not sections:
        told = f"{file} must hold a section for each notebook"
        raise ValueError(f"{told}; its first key is {next(iter(values))!r}")
    return sections, needs, departures


def _read_file(file: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, str], list[Any]]:
    """What a YAML file holds, then as :func:`read_sections`, empty for a flat file, whose keys are
    names of parameters."""
    values = _mapping(_loaded(read_text(file), str(file)), str(file))
    if not all(re.match(SECTION, str(key)) for key in values.keys() - {"needs", "departures"}):
        return values, {}, {}, []
    needs = _mapping(values.pop("needs", None), str(file), " for needs")
    for name in needs.keys() & names_of(Setup):
        raise ValueError(f"{file} has the need {name!r}; {name} is a parameter")
    departures, parts = values.pop("departures", None) or [], {"where", "what", "why"}
    each = departures if isinstance(departures, list) else [None]
    if any(not isinstance(one, dict) or {*one} != parts for one in each):
        raise ValueError(f"{file}: each of departures must have where, what and why, and no more")
    for name in values:
        notebook_path(name)
    sections = {name: _mapping(of, str(file), f" for {name}") for name, of in values.items()}
    return values, sections, needs, departures


def _mapping(value: Any, where: str, of: str = "") -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        told = f"{where} holds {type(value).__name__}{of}"
        raise ValueError(f"{told}; it must be a mapping of parameter names to values")
    return value or {}


def _from_shell(name: str, value: str) -> Any:
    """What a pair's value means: in brackets or quotes YAML, else one word, without comments and
    blocks."""
    if value.startswith(("[", "{", '"', "'")):
        return _loaded(f"{name}: {value}", f"parameter {name}")[name]
    loader = _Loader("")
    tag = loader.resolve(yaml.ScalarNode, value, (True, False))
    return loader.construct_object(yaml.ScalarNode(tag, value)) if value else value


class _Loader(yaml.SafeLoader):
    """YAML 1.2: ``no`` and a date are text, ``010`` is 10. Each key once. Python's ``None`` is
    null, too."""

    yaml_implicit_resolvers = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := [key for i, key in enumerate(keys) if key in keys[:i]]:
            raise ValueError(f"{twice[0]} is given twice")
        return super().construct_mapping(node, deep)


PLAIN = {
    "null": r"~|null|Null|NULL|None|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?\d+",
    "float": r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,2})?",
}
"""Kind -> plain words that are no text."""
for _kind, _words in PLAIN.items():
    _pattern = re.compile(rf"({_words})\Z", re.ASCII)
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _pattern, None)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))
_Loader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(node.value))


def _loaded(text: str, where: str) -> Any:
    """What YAML holds; ``ValueError`` says ``where`` it is none."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
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
    choices, allowed = choices_of(path.stem), parameters_of(path)
    known = names_of(choices)
    cell = {name: of for name, of in default_parameters(path).items() if name != "run_dir"}
    if study_of(path.stem):
        for name in cell.keys() - {*known, "more"}:
            raise ValueError(f"the parameters cell of {path}: {unknown(name, known)}")
    for name in values:
        if name not in allowed:
            raise ValueError(unknown(name, allowed, f"{path.stem} has"))
    named = cell | dict(values)
    more = named.pop("more", {})
    asked = with_more(named, more, allowed, f"{path.stem} has")
    chosen = choices(**{name: value for name, value in asked.items() if name in known})
    if isinstance(chosen, Setup):
        check_names(chosen)
    return chosen


def parameters_of(path: Path) -> list[str]:
    """The names that a notebook takes: those of its parameters cell and, with ``more`` among them,
    every choice of its study. ``run_dir``, which the runner gives, is none."""
    own = default_parameters(path)
    more = names_of(choices_of(path.stem)) if "more" in own else []
    return [name for name in dict.fromkeys([*own, *more]) if name != "run_dir"]


def parameters_table(name: str = "") -> list[tuple[str, str, str, str]]:
    """Every choice of a notebook (of all runs without one), those of its parameters cell first:
    "*" for these, its name, its default, what it may be and means."""
    choices: Any = choices_of(notebook_path(name).stem) if name else Setup
    shown = default_parameters(notebook_path(name)) if name else {}
    meaning, rows = meanings(choices), []
    fields = {of: field for of, field in choices.__pydantic_fields__.items() if of != "run_dir"}
    for of in sorted(fields, key=lambda name: name not in shown):
        field = fields[of]
        default = repr(shown.get(of, field.get_default(call_default_factory=True)))
        kind = "" if field.annotation is Any else field.annotation  # Any says nothing
        allowed = field.description or str(getattr(kind, "__name__", kind))
        about = "; ".join(filter(None, (allowed, meaning.get(of))))
        rows.append(("*" if of in shown else " ", of, textwrap.shorten(default, 80), about))
    return rows


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


def run_notebook(
    name: str,
    values: Mapping[str, Any],
    run_dir: Path | None = None,
    shared: Mapping[str, str] | None = None,
) -> Path:
    """Execute notebook ``name`` with ``values``; returns the run's folder.

    - With a ``shard`` (:func:`~trustlab.paths.shard_of`) among the values the folder is one of its
      own in ``runs/``.
    - ``shared``: variables for the kernel where other notebooks run beside it; ``None``: none do,
      so that its cells are counted and saved while they run.
    - It runs where the command is given: relative paths, in parameters and cells, are from there.
    - A failing cell leaves the notebook as far as it came, and a manifest that says so, and raises
      papermill's error, or :class:`~trustlab.models.stops.Stopped` where that was the cell's.
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError

    source = notebook_path(name)
    check_parameters(source, values)
    shard, alone = values.get("shard"), shared is None
    runs, named = paths.runs_of(shard), (shared or os.environ).get("TRUSTLAB_RUNS", "")
    folder = (run_dir or runs / source.stem).resolve()
    own_folder = {"run_dir": str(folder)} if "run_dir" in default_parameters(source) else {}
    target = folder / source.name
    folder.mkdir(parents=True, exist_ok=True)
    old = [*folder.rglob(RUN), *(folder / "figures").glob(f"{source.stem[:2]}_*.*"), folder / PAGE]
    for left in old if alone else [*old, target]:  # else papermill writes it at once
        left.unlink(missing_ok=True)
    manifest = {"notebook": source.stem, "notice": paths.NOTICE, "parameters": dict(values)}
    manifest |= {"started": datetime.now(UTC).isoformat(timespec="seconds"), "ok": False}
    variables = {
        **(shared or {}),
        "TRUSTLAB_RUNS": named if Path(named).is_absolute() and not shard else str(runs),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # it warns of frozen modules
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    if alone:
        target.touch(paths.PRIVATE)  # papermill, which saves it meanwhile, keeps its rights
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            papermill.execute_notebook(
                str(source),
                str(target),
                parameters=placed(source, values) | own_folder,
                kernel_name="python3",
                language="python",
                progress_bar=alone,
                request_save_on_cell_execute=alone,  # each saves all cells
                extra_arguments=[*PLAIN_KERNEL, f"--ipython-dir={profile}"],
                kernel_manager_class=own_kernel(variables),
            )
        manifest["ok"] = True
        write_answers(folder)
    except PapermillExecutionError as error:
        for stop in (Gone, Unread, Waiting):
            if error.ename == stop.__name__:
                manifest["stopped"] = error.evalue
                raise stop(error.evalue, []) from error
        raise
    finally:
        manifest["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
        paths.save_json(manifest | _run_facts(folder), folder / MANIFEST)
        if target.is_file() and target.stat().st_size:
            fill_opening(target, folder, manifest["ok"])
            write_html(target)
    return folder


def own_kernel(variables: dict[str, str]) -> type[Any]:
    """Starts kernels of this very Python with these environment variables, whatever kernelspec
    goes by the name python3."""
    from ipykernel.kernelspec import get_kernel_dict  # with papermill: only what runs needs it
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
    shown = default_parameters(path)
    named = {name: value for name, value in values.items() if name in shown}
    rest = {name: value for name, value in values.items() if name not in shown}
    return named | {"more": {**values.get("more", {}), **rest}} if rest else named


def _run_facts(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says; of a notebook with several runs, each below its own folder's name,
    and their calls, what is missing and warnings in all. Of all runs ``replies_read``, and in
    ``nothing_claimed`` that of which less than half could be read."""
    if not (runs := opening.runs_in(folder)):
        return {}
    read = {
        "replies_read": opening.counts_of(runs.values()),
        "nothing_claimed": opening.nothing_claimed(runs),
    }
    if "" in runs:
        return runs[""] | read
    calls = ("calls_made", "calls_from_cache")
    counts = {n: sum(facts.get(n, 0) for facts in runs.values()) for n in calls}
    missing = [{**row, "run": name} for name, of in runs.items() for row in of.get("missing", [])]
    warnings = remark_lines(together(map(opening.parameters_of, runs.values())))
    return {"runs": runs, **counts, "missing": missing, "warnings": warnings, **read}


def fill_opening(notebook: Path, folder: Path, ok: bool = True) -> None:
    """Write what a run's folder says into the opening of a notebook, if it has a place for it
    (:mod:`trustlab.reports.html.opening`), and leave out the progress bars of its cells. Without a
    run the block stays as it is, unless the run stopped."""
    import nbformat

    block = opening.opening(folder) or ("" if ok else opening.STOPPED)
    made = nbformat.read(notebook, 4)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs = without_progress(cell.outputs)
    places = [cell for cell in made.cells[:3] if opening.BLOCK.search(cell.source)]
    for cell in places if block else ():
        cell.source = opening.filled(cell.source, block)
    with paths.whole(notebook) as beside:
        nbformat.write(made, beside)


def lay_out(folder: Path) -> None:
    """Make a workbench: the notebooks and their parameters, two example tables, a page that says
    what to do. ``ValueError`` where one of these is there already; nothing is then written."""
    tables = paths.DATA / "workbench"
    for name in ("notebooks", *sorted(file.name for file in tables.iterdir())):
        if (folder / name).exists():
            raise ValueError(f"{folder / name} is there already; choose another folder")
    unwanted = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
    shutil.copytree(paths.ROOT / "notebooks", folder / "notebooks", ignore=unwanted)
    shutil.copytree(tables, folder, dirs_exist_ok=True)
