"""The command line: run, try, plan, score, replay, compare, show, init, methods, data, cache."""

from __future__ import annotations

import json
import os
import sqlite3
import textwrap
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import trustlab as tl
from trustlab import paths
from trustlab.paths import NOTICE

REFUSALS = (ImportError, ValueError, OSError, sqlite3.Error)  # their words are for the user


class Afterwards(Exception):
    """An error after a run: something was spent, so that it is no refusal."""


class _Refusing(TyperGroup):
    """Bad input ends with its message and status 2; with ``--traceback`` the error is raised."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (*REFUSALS, Afterwards) as error:
            unread = isinstance(error, BrokenPipeError)  # who read the output is gone
            if unread or ctx.params["traceback"]:
                raise
            typer.echo(f"trustlab: {error}", err=True)
            raise typer.Exit(1 if isinstance(error, Afterwards) else 2) from error


def _option(words: str, *names: str) -> Any:
    return typer.Option(*names, help=words)


def _argument(words: str) -> Any:
    return typer.Argument(help=words)


app = typer.Typer(no_args_is_help=True, cls=_Refusing)
cache_app, data_app = typer.Typer(no_args_is_help=True), typer.Typer(no_args_is_help=True)
app.add_typer(
    cache_app, name="cache", help="Carry the replies of finished runs to another machine."
)
app.add_typer(data_app, name="data", help="The data sets.")

NAME = "a notebook's name, such as 01_benchmark"
DataName = Annotated[str, _argument("a data set or corpus: trustlab data list")]
ParamsFile = Annotated[
    Path | None,
    typer.Option("--params", exists=True, dir_okay=False, help="YAML file, flat or by notebook"),
]
Words = list[str] | None
Pairs = Annotated[Words, _option("name=value, over the file; may be repeated", "-p", "--parameter")]
Out = Annotated[Path | None, _option("folder for what comes out; by default one in runs/")]
Rate = Annotated[float | None, _option("your rate: US dollars per million tokens")]
Cache = Annotated[Path, _option("the reply cache", "--path")]
Shard = Annotated[str | None, _option("i/n: the i-th of n shares, in runs/shard-i-of-n")]
Values = dict[str, Any]  # a notebook's parameters, by name
SETS = paths.NOTEBOOKS / "parameters"
UNREAD = 5
"""The exit code of a run of which too few replies could be read: of some purpose a smaller share
than :data:`trustlab.parsing.counts.LEAST_READ`. The manifest says which, as ``nothing_claimed``."""


@app.callback(
    help=f"Measure how far a medical language model's confidence can be trusted. {NOTICE}"
)
def main(
    traceback: Annotated[bool, _option("show where an error was raised", "--traceback")] = False,
) -> None:
    """The options of all commands. Their figures are files: no display of the user's counts."""
    os.environ["MPLBACKEND"] = "agg"


@app.command()
def run(
    notebook: Annotated[str, _argument(f"{NAME}; a file of your own; or all")],
    params: ParamsFile = None,
    parameter: Pairs = None,
    out: Out = None,
    shard: Shard = None,
) -> None:
    """Execute a notebook and keep notebook, HTML, figures, tables and manifest; or all, with
    notebooks/parameters/small.yml where no file of parameters is given. Of all, a parameter goes to
    every notebook that has it.

    Exit codes: 0 done, 1 a cell failed, 2 refused before anything ran, 3 a batch waits, 4 the
    server is gone, 5 done, but less than half of the replies to some purpose could be read.
    """
    if notebook == "all":
        if out or shard:
            told = "run all takes no --out and no --shard; give a notebook's name"
            raise typer.BadParameter(told)
        _run_several(_values_of_all(params or SETS / "small.yml", parameter))
        return
    if shard is not None:
        parameter = [*(parameter or []), f"shard={json.dumps(shard)}"]
    _, values, _ = _checked(notebook, params, parameter)
    folder = _executed(notebook, values, out)
    if _tell(notebook, folder, index=out is None):
        raise typer.Exit(UNREAD)


@app.command()
def replay(
    notebook: Annotated[str, _argument(f"{NAME}; or all")] = "all",
    params: ParamsFile = None,
    kept: Annotated[Path, _option("folder of the replies")] = paths.DATA / "replies",
    out: Annotated[Path | None, _option("folder for the runs; runs/replay by default")] = None,
) -> None:
    """Make tables and figures again from kept replies; no model is asked. Without a file of
    parameters, those of notebooks/parameters/published.yml.

    Exit codes: those of run.
    """
    from trustlab.cli.run_notebooks import notebook_path
    from trustlab.runs.folder.kept import caches_of

    folder = (out or paths.RUNS / "replay").resolve()
    values = _values_of_all(params or SETS / "published.yml")
    if notebook != "all":
        name = notebook_path(notebook).stem
        values = {name: values[name]}
    caches_of(kept, folder)
    _run_several(values, folder, {"TRUSTLAB_OFFLINE": "replies"})


def _checked(notebook: str, params: Path | None, pairs: Words) -> tuple[Path, Values, Any]:
    """A notebook, its parameters and its choices, checked."""
    from trustlab.cli.run_notebooks import check_parameters, notebook_path, read_parameters

    path = notebook_path(notebook)
    values = read_parameters(params, pairs or [], str(path))
    return path, values, check_parameters(path, values)


def _values_of_all(params: Path, pairs: Words = None) -> dict[str, Values]:
    """The checked parameters of every notebook; one that the file leaves out keeps its defaults."""
    from trustlab.cli import run_notebooks

    values, needs, _ = _sections(params, pairs)
    if lines := run_notebooks.lacking(values, needs):
        raise ValueError("\n".join(lines))
    for name, of in values.items():
        run_notebooks.check_parameters(run_notebooks.notebook_path(name), of)
    return values


def _sections(params: Path, pairs: Words) -> tuple[dict[str, Values], dict[str, str], list[Values]]:
    """The parameters of every notebook with what ``pairs`` give; the file's needs and departures.
    ``ValueError`` for a name that is no need, and that no notebook has."""
    from trustlab.choices import unknown
    from trustlab.cli import run_notebooks as notebooks

    sections, needs, departures = notebooks.read_sections(params)
    given, known, values = notebooks.read_parameters(None, pairs or []), dict(needs), {}
    for name in notebooks.notebook_names():
        taken = notebooks.parameters_of(notebooks.notebook_path(name))
        values[name] = sections.get(name, {}) | {k: given[k] for k in given if k in taken}
        known |= dict.fromkeys(taken, "")
    for name in given.keys() - known.keys():
        raise ValueError(unknown(name, list(known), "the notebooks have"))
    return notebooks.filled(values, given), needs, departures


def _run_several(
    values: Mapping[str, Values],
    runs: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Notebooks, two at once where there are two cores, which they share. After one that failed,
    waits or lost its server none begins; after one with another error the others go on.

    ``runs``: the folder of their folders. ``variables``: of their kernels' environment.
    """
    from trustlab.cli.run_notebooks import ORDER
    from trustlab.processes import processes, seldom_collected

    at_once = min(2, cores := processes(-1))
    share = max(1, cores // at_once)
    shared = {"TRUSTLAB_RUNS": str(runs or paths.RUNS), **(variables or {})}
    if "OMP_NUM_THREADS" not in os.environ:  # the threads of two would collide
        shared["OMP_NUM_THREADS"] = str(share)
    stopped = threading.Event()

    def one(name: str) -> Path | None:
        if stopped.is_set():
            return None
        given = dict(values[name])
        if "n_jobs" in given:
            given["n_jobs"] = share
        try:
            return _executed(name, given, runs and runs / name, shared)
        except REFUSALS:
            raise
        except BaseException:
            stopped.set()
            raise

    unread = False
    errors: dict[str, Exception] = {}
    order = sorted(values, key=lambda name: ORDER.find(name[:2]) % 100)
    typer.echo(f"running {', '.join(order)}, {at_once} at once; each says a line when it ends")
    with seldom_collected(), ThreadPoolExecutor(at_once) as pool:
        begun = {pool.submit(one, name): name for name in order}
        for done, ended in enumerate(as_completed(begun), 1):
            name, last = begun[ended], done == len(order)
            try:
                if folder := ended.result():
                    typer.echo(f"[{done} of {len(order)}] ", nl=False)
                    unread |= _tell(name, folder, index=last or bool(errors))
            except (*REFUSALS, Afterwards) as error:
                typer.echo(f"trustlab: {name}: {error}", err=True)
                errors[name] = error
    if errors:
        spent = any(isinstance(error, Afterwards) for error in errors.values())
        words = f"with errors: {', '.join(errors)}"
        raise (Afterwards if spent else ValueError)(words) from errors.popitem()[1]
    if unread:
        raise typer.Exit(UNREAD)


def _executed(
    name: str, values: Values, out: Path | None, shared: Mapping[str, str] | None = None
) -> Path:
    """Run the notebook; a bad end is said here, and has the exit code that :func:`run` names."""
    from papermill.exceptions import PapermillExecutionError

    from trustlab.cli.run_notebooks import run_notebook
    from trustlab.models.stops import Gone, Stopped, Waiting

    try:
        return run_notebook(name, values, out, shared)
    except Waiting as error:
        end, words, status = "waits", " ".join(str(error).split()), 3
    except Gone as error:
        end, words, status = "stopped", " ".join(str(error).split()), 4
        words += "\n  the same command goes on where it stopped"
    except Stopped as error:
        end, words, status = "refused", str(error), 2
    except PapermillExecutionError as error:
        end, words, status = f"stopped in cell {error.exec_count}", error.evalue, 1
        stem = Path(name).name.removesuffix(".ipynb")
        came = (out or paths.runs_of(values.get("shard")) / stem) / f"{stem}.ipynb"
        words = f"{error.ename}: {words}\n  the notebook as far as it came: {_short(came)}"
    typer.echo(f"trustlab: {name} {end}: {words}", err=True)
    raise typer.Exit(status)


def _tell(name: str, folder: Path, index: bool = True) -> bool:
    """Say what a finished run's manifest says; whether too few of its replies could be read.

    ``index``: its folder stands among others, which are then listed. An error ends with status 1:
    the run itself is done.
    """
    from trustlab.runs.formatted import read_line

    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        lines = [line] if (line := read_line(manifest.get("replies_read", {}))) else []
        lines += [f"nothing is claimed: {line}" for line in manifest.get("nothing_claimed", [])]
        lines += [f"warning: {line}" for line in manifest.get("warnings", [])]
        if n_missing := sum(row["n"] for row in manifest.get("missing", [])):
            lines.append(f"missing: {n_missing:,} confidences; manifest.json says why")
        lines.append(_short(folder / f"{Path(name).name.removesuffix('.ipynb')}.html"))
        if index:
            from trustlab.reports.html.index import write_index

            lines.append(_short(write_index(folder.parent)))
    except REFUSALS as error:
        raise Afterwards(f"it ran, and what follows a run failed: {error}") from error
    made, cached = manifest.get("calls_made", 0), manifest.get("calls_from_cache", 0)
    typer.echo(f"{name}: replies asked of the model {made}, taken from the cache {cached}")
    typer.echo("\n".join([*(f"  {line}" for line in lines), NOTICE]))
    return bool(manifest.get("nothing_claimed"))


@app.command()
def plan(
    notebook: Annotated[str | None, _argument(f"{NAME}; without one all are planned")] = None,
    params: ParamsFile = None,
    parameter: Pairs = None,
    usd_in: Rate = None,
    usd_out: Rate = None,
) -> None:
    """Count the calls and tokens a run would need, before anything is spent. Of all notebooks, also
    list what the file of parameters needs and lacks, and how it departs from what it repeats."""
    from trustlab.cli.plan import plan_all, plan_study
    from trustlab.cli.run_notebooks import is_own, lacking

    rates = {"usd_in": usd_in, "usd_out": usd_out}
    rates = {name: rate for name, rate in rates.items() if rate is not None}
    if notebook is None:
        values, needs, departures = _sections(params or SETS / "small.yml", parameter)
        for line in (*lacking(values, needs), *plan_all(values, needs, rates)):
            typer.echo(line)
        for of in departures:
            typer.echo(f"departure, {of['where']}: {of['what']}. Why: {of['why']}.")
        return
    path, _, setup = _checked(notebook, params, parameter)
    if is_own(path):
        raise ValueError(f"{notebook} is a notebook of your own: what it asks is not known")
    setup = setup.with_(**rates)
    table, how = plan_study(path.stem, setup)
    typer.echo(table.to_string(index=False))
    if how:
        typer.echo(how)
    counts = table[["n_replies", "n_tokens_in", "n_tokens_out"]].sum()
    n, tokens_in, tokens_out = (int(count) for count in counts)
    typer.echo(
        f"in all {n:,} replies, about {tokens_in:,} tokens in and at most {tokens_out:,} out"
    )
    if setup.usd_in is not None:  # then the other, too
        dollars = (tokens_in * setup.usd_in + tokens_out * setup.usd_out) / 1e6
        typer.echo(f"about {dollars:,.2f} US dollars at your rates, at most")


@app.command("try")
def try_command(
    model: Annotated[str, _argument("a model's name, such as hf:FOLDER or openai:NAME")],
    params: ParamsFile = None,
    parameter: Pairs = None,
) -> None:
    """Ask a model three views of every purpose, before a run: its replies raw and as they are read.

    Takes the parameters of 01_benchmark. Exit codes: 0 done, 2 refused, 4 the server is gone, 5
    less than half of the replies to some purpose could be read.
    """
    from trustlab.models.stops import Gone
    from trustlab.parsing.counts import LEAST_READ
    from trustlab.runs.trial import ADVICE

    _, _, setup = _checked("01_benchmark", params, [*(parameter or []), f"model={model}"])
    try:
        table = tl.try_model(model, setup=setup).table()
    except Gone as gone:
        typer.echo(f"trustlab: {gone}", err=True)
        raise typer.Exit(4) from gone
    typer.echo(f"\n{table.round(2).to_string(index=False)}")
    if any(row["read"] < LEAST_READ * row["asked"] for row in table.to_dict("records")):
        typer.echo(f"Of some purpose less than half could be read. {ADVICE}")
        raise typer.Exit(UNREAD)


@app.command()
def score(
    replies: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="a table of replies (.csv, .tsv, .jsonl, .parquet), or a run's folder",
        ),
    ],
    parameter: Pairs = None,
    out: Out = None,
) -> None:
    """Score replies that you have already, by every method that they allow; no model is asked.

    Parameters are those of tl.Setup: methods, grader, seed, medical_encoder and so on. What the
    columns are, docs/replies.md says. Exit codes: 0 done, 2 refused.
    """
    from trustlab.cli.run_notebooks import read_parameters
    from trustlab.reports.score_replies import scored

    values = read_parameters(None, parameter or [])
    folder = (out or paths.RUNS / f"score-{replies.stem}").resolve()
    for line in scored(replies, values, folder):
        typer.echo(line)
    typer.echo(f"  {_short(folder)}\n{NOTICE}")


@app.command()
def compare(
    runs: Annotated[list[Path], _argument("each model is a side, the first the reference")],
    out: Out = None,
) -> None:
    """Put models or settings side by side on the cases that their runs share: differences in pairs,
    Holm-corrected, tables and a figure. No model is asked.

    Exit codes: 0 done, 2 refused.
    """
    made = tl.compare_runs(*runs)
    folder = made.save((out or paths.RUNS / "compare").resolve())
    drawn = folder / "figures" / "compare_auroc.png"
    typer.echo(f"{made}\n  {_short(drawn if drawn.is_file() else folder)}\n{NOTICE}")


@app.command()
def show(
    run: Annotated[Path, _argument("a run's folder, such as runs/01_benchmark")],
    case: Annotated[str | None, _option("the case's id")] = None,
    level: Annotated[int | None, _option("how much was shown; a turn")] = None,
    model: Annotated[str | None, _option("the model that answered")] = None,
    out: Annotated[Path | None, _option("the page's file; of answers.html its folder")] = None,
    every: Annotated[bool, _option("answers.html: a list of all, to filter", "--all")] = False,
) -> None:
    """Write the page of one answer: dialogue, tokens, samples, scores, evidence, confidences, and
    every raw reply with its prompt. By default the wrong answer that was surest.

    It needs the run's folder alone; no model is asked. Exit codes: 0 done, 2 refused.
    """
    from trustlab.reports.html import pages

    if every:
        if any(of is not None for of in (case, level, model)):
            raise typer.BadParameter("--all takes no --case, --level and --model")
        if not (n := pages.write_answers(run, out)):
            raise typer.BadParameter(f"{run} holds no run with answers or replies")
        told, page = f"{n:,} answers", (out or run) / pages.PAGE
    else:
        loaded = tl.load_run(run)
        of, why = pages.choose(loaded, case, level, model)
        page = out or run / pages.page_path(of)
        pages.write_page(f"Case {of.case_id}", pages.show(loaded, *of), page)
        told = f"case {of.case_id}, level {of.level}, {of.model}: {why}"
    typer.echo(f"{told}\n  {_short(page)}\n{NOTICE}")


@app.command()
def init(folder: Annotated[Path, _argument("made where it is not there")]) -> None:
    """Lay out a workbench: notebooks, their parameters, two example tables, and a page that says
    what to do. Nothing that is there is overwritten."""
    from trustlab.cli.run_notebooks import lay_out

    lay_out(folder)
    typer.echo(f"{folder}: begin with {folder / 'README.md'}\n{NOTICE}")


@app.command()
def methods() -> None:
    """List the registered confidence methods: what they are, need and cost, and the parameters."""
    import pandas as pd

    from trustlab.confidence.registry import FAMILIES
    from trustlab.records import PARAMETERS
    from trustlab.runs.costs import calls, readers

    rows = []
    for m in sorted(tl.METHODS.values(), key=lambda m: FAMILIES.index(m.family)):
        row = asdict(m) | {"access": m.access, "calls": calls(m), "readers": readers(m)}
        rows.append(row | {"needs": ", ".join(m.needs)})
    heads = ["name", "family", "access", "scale", "equation", "calls", "readers", "cite", "needs"]
    table: Any = pd.DataFrame(rows)[heads]
    typer.echo(table.to_string(index=False, justify="left"))
    told = f"\n{len(rows)} methods. K: samples per answer (n_samples). Equations: Ren et al. 2026."
    typer.echo(f"{told} Parameters and defaults:")
    typer.echo("  " + ", ".join(f"{name}={value}" for name, value in asdict(PARAMETERS).items()))


@app.command()
def parameters(
    notebook: Annotated[str, _argument(f"{NAME}; all choices without one")] = "",
) -> None:
    """List every choice: its default, what it may be, and what it means. Those marked * stand in
    the notebook's parameters cell; any of them can be given with -p NAME=VALUE."""
    from trustlab.cli.run_notebooks import parameters_table

    for shown, name, default, about in parameters_table(notebook):
        typer.echo(f"{shown} {name} = {default}")
        typer.echo(textwrap.indent(textwrap.fill(about, 90), " " * 6))


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
    if any(file.url for file in HOMES[name].files):  # else fetch says how it is had by hand
        typer.echo(notice)
        if not accept:
            typer.confirm("Do you keep to this licence?", abort=True)
    fetched = fetch(name, to, accept=True)
    for file, source in fetched.sources.items():
        how = "downloaded" if file in fetched.downloaded else "was there"
        told = f"{to / file}: {how}, {source.size:,} bytes, sha256 {source.sha256}"
        typer.echo(f"{told} (checked: {source.checked})")
    for place in fetched.unpacked:
        typer.echo(f"{place}: unpacked")


@data_app.command("check")
def data_check(
    name: DataName,
    path: Annotated[Path | None, _option("folder or file, where the data set needs one")] = None,
    option: Annotated[Words, _option("name=value, its own; may be repeated", "--option")] = None,
    seed: Annotated[int, _option("decides order and wording, where they are open")] = 0,
) -> None:
    """Read a whole data set and tell what is in it: counts, drops by reason, lengths, labels, two
    example cases."""
    from trustlab.cli.run_notebooks import read_parameters
    from trustlab.datasets.check import check_text

    options = read_parameters(None, option or [], name)
    typer.echo(check_text(name, tl.read_data(name, path=path, seed=seed, **options)))


@cache_app.command("export")
def cache_export(target: Path, path: Cache = paths.REPLIES) -> None:
    """Write all replies to one file that replays anywhere."""
    from trustlab.models.cache import export_cache

    typer.echo(f"{export_cache(path, target)} replies written to {target}")


@cache_app.command("import")
def cache_import(
    sources: Annotated[list[Path], _argument("exported files, or caches (.sqlite)")],
    path: Cache = paths.REPLIES,
) -> None:
    """Take the replies of exported files, or of other caches, into the cache; nothing already there
    is overwritten."""
    from trustlab.models.cache import import_cache

    for source in sources:
        counts = import_cache(path, source)
        typer.echo(f"{source}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


@cache_app.command("check")
def cache_check(path: Cache = paths.REPLIES) -> None:
    """Name the damaged rows of the cache, which a run asks for again, or a damaged file. Exit
    codes: 0 none, 1 some, 2 refused."""
    from trustlab.models.cache import damaged_rows

    damaged = damaged_rows(path)
    for key, why in damaged.items():
        typer.echo(f"{key}: {why}")
    typer.echo(f"{path}: {len(damaged)} damaged rows")
    if damaged:
        raise typer.Exit(1)


def _short(path: Path) -> str:
    work = paths.WORK
    return str(path.relative_to(work)) if path.is_relative_to(work) else str(path)
