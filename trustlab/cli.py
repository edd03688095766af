"""The command line: ``trustlab run``, ``score``, ``replay``, ``compare``, ``show``, ``plan``,
``init``, ``methods``, ``data``, ``cache``, ``publish``."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trustlab import paths
from trustlab.paths import NOTICE


class _Refusing(TyperGroup):
    """Bad input ends with its message and status 2, not with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ImportError, ValueError, OSError, sqlite3.Error) as error:
            if getattr(error, "errno", None) == errno.EPIPE:  # who read it has gone
                raise
            typer.echo(f"trustlab: {error}", err=True)
            raise typer.Exit(2) from error


def _group(words: str) -> typer.Typer:
    return typer.Typer(help=words, no_args_is_help=True, cls=_Refusing)


app = _group(f"Measure how far a medical language model's confidence can be trusted. {NOTICE}")
cache_app = _group("Carry the replies of finished runs to another machine.")
data_app = _group("The data sets.")
app.add_typer(cache_app, name="cache")
app.add_typer(data_app, name="data")


def _named(words: str) -> Any:
    return typer.Argument(help=f"a notebook's name, such as 01_benchmark{words}")


def _option(words: str, *names: str) -> Any:
    return typer.Option(*names, help=words)


def _out(default: str, what: str = "what comes out") -> Any:
    return _option(f"folder for {what}; {default} by default")


Notebook = Annotated[str, _named("")]
DataName = Annotated[str, typer.Argument(help="a data set or corpus: trustlab data list")]
ParamsFile = Annotated[
    Path | None,
    typer.Option("--params", exists=True, dir_okay=False, help="YAML file, flat or by notebook"),
]
Words = list[str] | None
Pairs = Annotated[Words, _option("name=value, over the file; may be repeated", "-p", "--parameter")]
Rate = Annotated[float | None, _option("your rate: US dollars per million tokens")]
Cache = Annotated[Path, _option("the reply cache", "--path")]
Choices = dict[str, Any]
"""A notebook's parameters, by name."""
SMALL, PUBLISHED = (
    paths.NOTEBOOKS / "parameters" / f"{name}.yml" for name in ("small", "published")
)
REPLIED = paths.DATA / "replies"
TABLE = "a table of replies (.csv, .tsv, .jsonl, .parquet), or a run's folder"
UNREAD = 5
"""The exit code of a run of which too few replies could be read: of some purpose a smaller share
than :data:`trustlab.parsing.counts.LEAST_READ`. The manifest says which, as ``nothing_claimed``."""


@app.command()
def run(
    notebook: Annotated[str, _named("; a file of your own; or all")],
    params: ParamsFile = None,
    parameter: Pairs = None,
    out: Annotated[Path | None, _out("runs/NOTEBOOK")] = None,
    shard: Annotated[
        str | None, _option("i/n: the i-th of n shares of the cases, in runs/shard-i-of-n")
    ] = None,
) -> None:
    """Execute a notebook and keep notebook, HTML, figures, tables and manifest; or all, with
    notebooks/parameters/small.yml where no file of parameters is given.

    Exit codes: 0 done, 1 a cell failed, 2 refused before anything ran, 3 a batch waits, 4 the
    server is gone, 5 done, but less than half of the replies to some purpose could be read.
    """
    from trustlab.run_notebooks import has_cases

    if notebook == "all":
        if parameter or out or shard:
            told = "run all takes a file of parameters alone; give a notebook's name to set others"
            raise typer.BadParameter(told)
        _run_all(partial(_values_of_all, params or SMALL))
        return
    _, values, _ = _asked(notebook, params, parameter)
    if shard and paths.shard_of(shard) and not has_cases(notebook, values, shard):
        typer.echo(f"{notebook}: shard {shard} has no cases; nothing to do")
        return
    folder = _executed(notebook, values, out, shard)
    if _tell(notebook, folder, index=out is None):
        raise typer.Exit(UNREAD)


@app.command()
def replay(
    notebook: Annotated[str, _named("; or all")] = "all",
    params: ParamsFile = None,
    kept: Annotated[Path, _option("folder of the replies")] = REPLIED,
    out: Annotated[Path | None, _out("runs/replay", "the runs")] = None,
    answers: Annotated[bool, _option("pages of all answers, too", "--answers")] = False,
) -> None:
    """Make tables and figures again from kept replies; no model is asked. Without a file of
    parameters, those of notebooks/parameters/published.yml.

    Exit codes: 0 done, 1 a cell failed, 2 refused, 5 done, but less than half of the replies to
    some purpose could be read.
    """
    from trustlab.folder.kept import caches_of
    from trustlab.run_notebooks import notebook_path

    folder = (out or paths.RUNS / "replay").resolve()

    def asked() -> dict[str, Choices]:
        found = _values_of_all(params or PUBLISHED)
        chosen = found if notebook == "all" else [notebook_path(notebook).stem]
        caches_of(kept, folder)
        return {name: found[name] for name in chosen}

    _run_all(asked, folder, {"TRUSTLAB_OFFLINE": "replies"}, answers)


def _asked(
    notebook: str, params: Path | None, pairs: list[str] | None
) -> tuple[Path, Choices, Any]:
    """A notebook, its parameters and its choices, checked."""
    from trustlab.run_notebooks import check_parameters, notebook_path, read_parameters

    path = notebook_path(notebook)
    values = read_parameters(params, pairs or [], str(path))
    return path, values, check_parameters(path, values)


def _values_of_all(params: Path) -> dict[str, Choices]:
    """The checked parameters of every notebook; one that the file leaves out keeps its defaults."""
    from trustlab import run_notebooks as own

    sections = own.read_sections(params)
    found = {name: sections.get(name, {}) for name in own.notebook_names()}
    for name, values in found.items():
        own.check_parameters(own.notebook_path(name), values)
    return found


def _run_all(
    read: Callable[[], dict[str, Choices]],
    runs: Path | None = None,
    more: dict[str, str] | None = None,
    answers: bool = True,
) -> None:
    """Every notebook of what ``read`` gives, two at once where there are two cores, which they
    share; after one that ends badly none begins any more. ``more``: variables of their
    environment."""
    from trustlab.processes import processes, seldom_collected
    from trustlab.run_notebooks import ORDER

    cores = processes(-1)
    at_once = min(2, cores)
    share = {"n_jobs": max(1, cores // at_once)}
    # For all of them, and not by each for itself: they share this process.
    variables = {"TRUSTLAB_RUNS": str(runs or paths.RUNS), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    variables |= more or {}
    if "OMP_NUM_THREADS" not in os.environ:  # the threads of two would collide
        variables["OMP_NUM_THREADS"] = str(share["n_jobs"])
    stopped = threading.Event()

    def one(name: str) -> Path | None:
        if stopped.is_set():
            return None
        values = asked[name] | {k: v for k, v in share.items() if k in asked[name]}
        try:
            return _executed(name, values, runs and runs / name, None, False, answers)
        except BaseException:
            stopped.set()
            raise

    unread = False
    with paths.environment(variables), seldom_collected(), ThreadPoolExecutor(at_once) as pool:
        asked = read()
        order = sorted(asked, key=lambda name: ORDER.find(name[:2]) % 100)
        typer.echo(f"running {', '.join(order)}, {at_once} at once; each says a line when it ends")
        began = time.monotonic()
        begun = {pool.submit(one, name): name for name in order}
        for done, ended in enumerate(as_completed(begun), 1):
            if folder := ended.result():
                minutes, seconds = divmod(round(time.monotonic() - began), 60)
                typer.echo(f"[{done} of {len(order)}, {minutes}:{seconds:02d}] ", nl=False)
                unread |= _tell(begun[ended], folder, index=done == len(order), brief=True)
    if unread:
        raise typer.Exit(UNREAD)


def _executed(
    name: str,
    values: dict[str, Any],
    out: Path | None,
    shard: str | None,
    alone: bool = True,
    answers: bool = True,
) -> Path:
    """Run the notebook; a failing cell ends with what it said and status 1 (the notebook stays as
    far as it came), a batch that waits with status 3, a server that is gone with status 4."""
    from papermill.exceptions import PapermillExecutionError

    from trustlab.models.base import Gone, Stopped, Waiting
    from trustlab.run_notebooks import run_notebook

    try:
        return run_notebook(name, values, out, shard, alone, answers)
    except Stopped as stopped:
        words, (what, status) = " ".join(str(stopped).split()), ("refused", 2)
        if isinstance(stopped, Waiting):
            what, status = "waits", 3
        elif isinstance(stopped, Gone):
            what, status = "stopped", 4
        else:
            words = str(stopped)  # with the replies that could not be read
        typer.echo(f"trustlab: {name} {what}: {words}", err=True)
        if status == 4:
            typer.echo("  the same command goes on where it stopped", err=True)
        raise typer.Exit(status) from stopped
    except PapermillExecutionError as error:
        where = f"{name} stopped in cell {error.exec_count}"
        typer.echo(f"trustlab: {where}: {error.ename}: {error.evalue}", err=True)
        stem = Path(name).name.removesuffix(".ipynb")
        came = (out or paths.runs_of(shard) / stem) / f"{stem}.ipynb"
        typer.echo(f"  the notebook as far as it came: {_short(came)}", err=True)
        raise typer.Exit(1) from error


def _tell(name: str, folder: Path, index: bool = True, brief: bool = False) -> bool:
    """Say what a finished run's manifest says; whether too few of its replies could be read.

    ``index``: its folder stands among others, which are then listed. ``brief``: of the replies by
    purpose nothing, and three of many reasons for what is missing.
    """
    from trustlab.html.index import write_index
    from trustlab.parsing.counts import HEADS, read_line, table_rows
    from trustlab.run_notebooks import MANIFEST

    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    made, cached = manifest.get("calls_made", 0), manifest.get("calls_from_cache", 0)
    typer.echo(f"{name}: replies asked of the model {made}, taken from the cache {cached}")
    counts = manifest.get("replies_read", {})
    lines = [told] if (told := read_line(counts)) else []
    if counts and not brief:
        rows = [
            [str(v) for v in row] for row in (("model", "purpose", *HEADS), *table_rows(counts))
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            left = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)][:2]
            right = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)][2:]
            lines.append("  " + "  ".join(left + right))
    few = manifest.get("nothing_claimed", [])
    lines += [f"nothing is claimed: {line}" for line in few]
    missing = _missing_lines(manifest.get("missing", []))
    if brief and len(missing) > 4:
        missing[3:] = [f"{len(missing) - 3} reasons more in {MANIFEST}"]
    lines += [f"missing: {line}" for line in missing]
    lines += [f"warning: {line}" for line in manifest.get("warnings", [])]
    lines.append(_short(folder / f"{Path(name).name.removesuffix('.ipynb')}.html"))
    if index:
        lines.append(_short(write_index(folder.parent)))
    typer.echo("\n".join([*(f"  {line}" for line in lines), NOTICE]))
    return bool(few)


def _missing_lines(rows: list[dict[str, Any]]) -> list[str]:
    """What is missing, in a line for each reason; of many methods that miss the same, three are
    named."""
    found: dict[str, list[str]] = {}
    for row in rows:
        of = f" of {row['run']}" if row.get("run") else ""
        where = f"{row['n']} rows{of} ({row['reason']})"
        found.setdefault(where, []).append(row["method"])
    for methods in found.values():
        if len(methods) > 4:
            methods[2:] = [f"{methods[2]} and {len(methods) - 3} methods more"]
    return [f"{', '.join(methods)} on {where}" for where, methods in found.items()]


@app.command()
def plan(
    notebook: Notebook,
    params: ParamsFile = None,
    parameter: Pairs = None,
    usd_in: Rate = None,
    usd_out: Rate = None,
) -> None:
    """Count the calls and tokens a run would need, before anything is spent."""
    from trustlab.plan import plan_study, seconds_of
    from trustlab.run_notebooks import is_own

    rates = {name: of for name, of in (("usd_in", usd_in), ("usd_out", usd_out)) if of is not None}
    path, _, setup = _asked(notebook, params, parameter)
    if is_own(path):
        raise ValueError(f"{notebook} is a notebook of your own: what it asks is not known")
    table, told = plan_study(path.stem, setup := setup.with_(**rates))
    typer.echo(table.to_string(index=False))
    if told:
        typer.echo(told)
    n, tokens_in, tokens_out = (
        int(table[c].to_numpy().sum()) for c in ("n_replies", "n_tokens_in", "n_tokens_out")
    )
    typer.echo(
        f"in all {n:,} replies, about {tokens_in:,} tokens in and at most {tokens_out:,} out"
    )
    if seconds := seconds_of(setup, table):
        typer.echo(f"about {seconds / 60:,.0f} minutes or less, by the models' last trials")
    if setup.usd_in is not None:  # then the other, too
        dollars = (tokens_in * setup.usd_in + tokens_out * setup.usd_out) / 1e6
        typer.echo(f"about {dollars:,.2f} US dollars at your rates, at most")


@app.command("try")
def try_command(
    model: Annotated[str, typer.Argument(help="a model's name, such as hf:FOLDER or openai:NAME")],
    params: ParamsFile = None,
    parameter: Pairs = None,
) -> None:
    """Ask a model three views of every purpose, before a run: its replies raw and as they are read.

    Takes the parameters of 01_benchmark. Exit codes: 0 done, 2 refused, 4 the server is gone, 5
    less than half of the replies to some purpose could be read.
    """
    from trustlab.models.base import Gone
    from trustlab.parsing.counts import LEAST_READ
    from trustlab.trial import ADVICE, try_model

    pairs = [*(parameter or []), f"model={model}"]
    _, _, setup = _asked("01_benchmark", params, pairs)
    try:
        table = try_model(model, setup=setup).table()
    except Gone as gone:
        typer.echo(f"trustlab: {gone}", err=True)
        raise typer.Exit(4) from gone
    typer.echo(f"\n{table.round(2).to_string(index=False)}")
    if any(row["read"] < LEAST_READ * row["asked"] for row in table.to_dict("records")):
        typer.echo(f"Of some purpose less than half could be read. {ADVICE}")
        raise typer.Exit(UNREAD)


@app.command()
def score(
    replies: Annotated[Path, typer.Argument(exists=True, help=TABLE)],
    confidence: Annotated[Path | None, _option("a run's confidence.csv or .parquet")] = None,
    parameter: Pairs = None,
    out: Annotated[Path | None, _out("runs/score-NAME")] = None,
) -> None:
    """Score replies that you have already, by every method that they allow; no model is asked.

    Parameters are those of tl.Setup: methods, grader, draws, medical_encoder and so on. What the
    columns are, docs/replies.md says. Exit codes: 0 done, 2 refused.
    """
    from trustlab.run_notebooks import read_parameters
    from trustlab.score_replies import scored

    values = read_parameters(None, parameter or [])
    folder = (out or paths.RUNS / f"score-{replies.stem}").resolve()
    for line in scored(replies, confidence, values, folder):
        typer.echo(line)
    typer.echo(f"  {_short(folder)}\n{NOTICE}")


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="each model is a side, the first the reference")
    ],
    out: Annotated[Path | None, _out("runs/compare")] = None,
    draws: Annotated[int, _option("bootstrap draws of cases")] = 2000,
    seed: Annotated[int, _option("of the draws")] = 0,
) -> None:
    """Put models or settings side by side on the cases that their runs share: differences in pairs,
    Holm-corrected, a figure and a page. No model is asked.

    Exit codes: 0 done, 2 refused.
    """
    from trustlab.compare import compare_runs

    made = compare_runs(*runs, n_draws=draws, seed=seed)
    folder = made.save((out or paths.RUNS / "compare").resolve())
    drawn = folder / "figures" / "compare_auroc.png"
    typer.echo(f"{made}\n  {_short(drawn if drawn.is_file() else folder)}\n{NOTICE}")


@app.command()
def show(
    run: Annotated[Path, typer.Argument(help="a run's folder, such as runs/01_benchmark")],
    case: Annotated[str | None, _option("the case's id")] = None,
    level: Annotated[int | None, _option("how much was shown; a turn")] = None,
    model: Annotated[str | None, _option("the model that answered")] = None,
    method: Annotated[str | None, _option("whose confidence picks the answer")] = None,
    out: Annotated[Path | None, _option("the page's file; of answers.html its folder")] = None,
    every: Annotated[bool, _option("answers.html: a list of all, to filter", "--all")] = False,
) -> None:
    """Write the page of one answer: dialogue, tokens, samples, scores, evidence, confidences, and
    every raw reply with its prompt. By default the wrong answer that was surest.

    It needs the run's folder alone; no model is asked. Exit codes: 0 done, 2 refused.
    """
    from trustlab.html import pages
    from trustlab.run import load_run

    if every:
        if any(of is not None for of in (case, level, model, method)):
            raise typer.BadParameter("--all takes no --case, --level, --model and --method")
        if not (n := pages.write_answers(run, out)):
            raise typer.BadParameter(f"{run} holds no run with answers or replies")
        typer.echo(f"{n:,} answers\n  {_short((out or run) / pages.PAGE)}\n{NOTICE}")
        return
    loaded = load_run(run)
    of, why = pages.choose(loaded, case, level, model, method)
    page = out or run / pages.page_path(of)
    pages.write_page(f"Case {of.case_id}", pages.show(loaded, *of), page)
    typer.echo(f"case {of.case_id}, level {of.level}, {of.model}: {why}")
    typer.echo(f"  {_short(page)}\n{NOTICE}")


@app.command()
def init(folder: Annotated[Path, typer.Argument(help="made where it is not there")]) -> None:
    """Lay out a workbench: notebooks, their parameters, two example tables, and a page that says
    what to do. Nothing that is there is overwritten."""
    from trustlab.run_notebooks import lay_out

    lay_out(folder)
    typer.echo(f"{folder}: begin with {folder / 'README.md'}\n{NOTICE}")


@app.command()
def methods(
    as_json: Annotated[bool, _option("as JSON, with every field", "--json")] = False,
    as_markdown: Annotated[bool, _option("as docs/all_methods.md", "--markdown")] = False,
) -> None:
    """List the registered confidence methods: what they are, need and cost, and the parameters."""
    from trustlab.records import PARAMETERS

    if as_markdown:
        typer.echo(methods_markdown())
        return
    rows = _methods()
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    heads = {"name": 29, "family": 13, "access": 8, "scale": 13, "equation": 18, "calls": 31}
    heads |= {"readers": 17, "cite": 36}
    for row in [{head: head for head in heads} | {"needs": ["needs"]}, *rows]:
        shown = (f"{row[head] or '-':<{width}}" for head, width in heads.items())
        typer.echo("".join(shown) + ", ".join(row["needs"]))
    told = f"\n{len(rows)} methods. K: samples per answer (n_samples). Equations: Ren et al. 2026."
    typer.echo(f"{told} Parameters and defaults:")
    typer.echo("  " + ", ".join(f"{name}={value}" for name, value in asdict(PARAMETERS).items()))


def _methods() -> list[dict[str, Any]]:
    """The registry, family by family: all that a method declares, and what it costs."""
    from trustlab.confidence import METHODS
    from trustlab.confidence.registry import FAMILIES, calls, readers

    rows = [
        {**asdict(m), "access": m.access, "calls": calls(m), "readers": readers(m)}
        for m in sorted(METHODS.values(), key=lambda m: FAMILIES.index(m.family))
    ]
    return [{name: value for name, value in row.items() if name != "function"} for row in rows]


def methods_markdown() -> str:
    """The registry as a Markdown table: what docs/all_methods.md shows."""
    heads = ["method", "family", "access", "scale", "equation", "calls", "other readers"]
    lines = ["| " + " | ".join([*heads, "what it is"]) + " |", "|---" * 8 + "|"]
    for m in _methods():
        told = (m["family"], m["access"], m["scale"], m["equation"] or "–", m["calls"])
        cells = (f"`{m['name']}`", *told, m["readers"] or "–", m["summary"])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


@app.command()
def parameters(notebook: Annotated[str, _named("; all choices without one")] = "") -> None:
    """List every choice: its default, what it may be, and what it means. Those marked * stand in
    the notebook's parameters cell; any of them can be given with -p NAME=VALUE."""
    from trustlab.run_notebooks import parameters_table

    for row in parameters_table(notebook):
        typer.echo(f"{row['shown'] or ' '} {row['name']} = {row['default']}")
        if said := "; ".join(filter(None, (row["range"], row["meaning"]))):
            typer.echo(textwrap.indent(textwrap.fill(said, 90), " " * 6))


@app.command(hidden=True)
def publish(notebook: str, run_dir: Annotated[Path | None, typer.Option()] = None) -> None:
    """Make a run the reference run of the repository (figures/ and the notebook's outputs)."""
    from trustlab.run_notebooks import publish as make_reference

    make_reference(run_dir or paths.RUNS / notebook, notebook)


@data_app.command("list")
def data_list() -> None:
    """What can be loaded, and what can be fetched or is had by hand."""
    from trustlab.datasets import ABOUT
    from trustlab.datasets.fetch import HOMES, size_of

    for name, about in ABOUT.items():
        typer.echo(f"{name:<20} {about}")
    told = "trustlab data fetch NAME --to FOLDER shows the licence before anything is downloaded"
    typer.echo(f"\nOfficial homes ({told}):")
    for name, home in HOMES.items():
        typer.echo(f"{name:<20} {home.what}\n{'':<20} {size_of(home)}; {home.how}")


@data_app.command("fetch")
def data_fetch(
    name: DataName,
    to: Annotated[Path | None, _option("the folder for its files [NAME, here]")] = None,
    accept: Annotated[bool, _option("you keep to the licence: do not ask", "--accept")] = False,
) -> None:
    """Download a data set from its official home, after showing its licence; check it, and unpack
    it."""
    from trustlab.datasets.fetch import HOMES, fetch, licence_notice

    notice, to = licence_notice(name), to or Path(name)
    if any(file.urls for file in HOMES[name].files):  # else fetch says how it is had by hand
        typer.echo(notice)
        if not accept:
            typer.confirm("Do you keep to this licence?", abort=True)
    fetched = fetch(name, to, accept=True)
    checked = {"sha256": "as expected"}
    checked["size"] = "its size is as expected, its sha256 is not known"
    for file, source in fetched.sources.items():
        how = "downloaded" if file in fetched.downloaded else "was there"
        told = f"{to / file}: {how}, {source.size:,} bytes, sha256 {source.sha256}"
        typer.echo(f"{told} ({checked.get(source.checked, source.checked)})")
    for place in fetched.unpacked:
        typer.echo(f"{place}: unpacked")
    for file in fetched.sources:
        if file.endswith(".gguf"):
            typer.echo(f"Try it: trustlab try hf:{to / file}")


@data_app.command("check")
def data_check(
    name: DataName,
    path: Annotated[Path | None, _option("folder or file, where the data set needs one")] = None,
    option: Annotated[Words, _option("name=value, its own; may be repeated", "--option")] = None,
    seed: Annotated[int, _option("decides order and wording, where they are open")] = 0,
) -> None:
    """Read a whole data set and tell what is in it: counts, drops by reason, lengths, labels, two
    example cases."""
    from trustlab.datasets import read_data
    from trustlab.datasets.check import check_text
    from trustlab.run_notebooks import read_parameters

    options = read_parameters(None, option or [], name)
    typer.echo(check_text(name, read_data(name, path=path, seed=seed, **options)))


@cache_app.command("export")
def cache_export(target: Path, path: Cache = paths.REPLIES) -> None:
    """Write all replies to one file that replays anywhere."""
    from trustlab.models.cache import export_cache

    typer.echo(f"{export_cache(path, target)} replies written to {target}")


@cache_app.command("import")
def cache_import(
    sources: Annotated[list[Path], typer.Argument(help="exported files, or caches (.sqlite)")],
    path: Cache = paths.REPLIES,
) -> None:
    """Take the replies of exported files, or of other caches, into the cache; nothing already there
    is overwritten."""
    from trustlab.models.cache import import_cache

    for source in sources:
        counts = import_cache(path, source)
        typer.echo(f"{source}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


@cache_app.command("check")
def cache_check(
    path: Cache = paths.REPLIES,
    mend: Annotated[bool, _option("drop them, save the others", "--mend")] = False,
) -> None:
    """Name the damaged rows of the cache, or a damaged file. Exit codes: 0 none or mended, 1 some,
    2 refused."""
    from trustlab.models.cache import damaged_rows

    found = damaged_rows(path, mend)
    for key, why in found.items():
        typer.echo(f"{key}: {why}")
    typer.echo(f"{path}: {len(found)} damaged rows{', dropped' if mend and found else ''}")
    if found and not mend:
        raise typer.Exit(1)


def _short(path: Path) -> str:
    work = paths.WORK
    return str(path.relative_to(work)) if path.is_relative_to(work) else str(path)


if __name__ == "__main__":
    app()
