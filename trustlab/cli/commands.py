"""The command line: run, try, plan, score, replay, compare, show, init, methods, data, cache."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import textwrap
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

import trustlab as tl
from trustlab import paths
from trustlab.paths import NOTICE

# their words are for the user
REFUSALS = (ImportError, ValueError, OSError, sqlite3.Error)


class Afterwards(Exception):
    """An error after a run: something was spent, so that it is no refusal."""


class _Refusing(TyperGroup):
    """Bad input ends with its message and status 2; with ``--traceback`` the error is raised."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (*REFUSALS, Afterwards) as error:
            nobody_reads = isinstance(error, BrokenPipeError)
            if nobody_reads or ctx.params["traceback"]:
                raise
            typer.echo(f"trustlab: {error}", err=True)
            status = 1 if isinstance(error, Afterwards) else 2
            raise typer.Exit(status) from error


def _option(words: str, *names: str) -> Any:
    return typer.Option(*names, help=words)


def _argument(words: str) -> Any:
    return typer.Argument(help=words)


app = typer.Typer(no_args_is_help=True, cls=_Refusing)
cache_app = typer.Typer(no_args_is_help=True)
data_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    cache_app,
    name="cache",
    help="Carry the replies of finished runs to another machine.",
)
app.add_typer(data_app, name="data", help="The data sets.")

NAME = "a notebook's name, such as 01_benchmark"
DataName = Annotated[str, _argument("a data set or corpus: trustlab data list")]
ParamsFile = Annotated[
    Path | None,
    typer.Option(
        "--params", exists=True, dir_okay=False, help="YAML file, flat or by notebook"
    ),
]
Words = list[str] | None
Pairs = Annotated[
    Words, _option("name=value, over the file; may be repeated", "-p", "--parameter")
]
Out = Annotated[
    Path | None, _option("folder for what comes out; by default one in runs/")
]
Rate = Annotated[float | None, _option("your rate: US dollars per million tokens")]
Cache = Annotated[Path, _option("the reply cache", "--path")]
Cluster = Annotated[
    str | None, _option("Dask's scheduler, such as tcp://HOST:8786; local:4 starts one")
]
Values = dict[str, Any]  # a notebook's parameters, by name
SETS = paths.NOTEBOOKS / "parameters"
UNREAD = 5
"""The exit code of a run of which too few replies could be read: of some purpose a smaller share
than :data:`trustlab.parsing.counts.LEAST_READ`. The manifest says which, as ``nothing_claimed``."""


@app.callback(
    help=f"Measure how far a medical language model's confidence can be trusted. {NOTICE}"
)
def main(
    traceback: Annotated[
        bool, _option("show where an error was raised", "--traceback")
    ] = False,
) -> None:
    """The options of all commands. Their figures are files: no display of the user's counts."""
    os.environ["MPLBACKEND"] = "agg"


@app.command()
def run(
    notebook: Annotated[str, _argument(f"{NAME}; a file of your own; or all")],
    params: ParamsFile = None,
    parameter: Pairs = None,
    out: Out = None,
    cluster: Cluster = None,
) -> None:
    """Execute a notebook and keep notebook, HTML, figures, tables and manifest; or all, with
    notebooks/parameters/small.yml where no file of parameters is given. Of all, a parameter goes to
    every notebook that has it.

    Exit codes: 0 done, 1 a cell failed, 2 refused before anything ran, 3 a batch waits, 4 the
    server is gone, 5 done, but less than half of the replies to some purpose could be read.
    """
    pairs = list(parameter or [])
    if cluster is not None:
        pairs.append(f"cluster={json.dumps(cluster)}")
    if notebook == "all":
        if out:
            raise typer.BadParameter("run all takes no --out; give a notebook's name")
        values_of_all = _values_of_all(params or SETS / "small.yml", pairs)
        _run_several(values_of_all)
        return
    values = _check_notebook(notebook, params, pairs).parameters
    folder = _executed(notebook, values, out)
    if _report(notebook, folder, index=out is None):
        raise typer.Exit(UNREAD)


@app.command()
def replay(
    notebook: Annotated[str, _argument(f"{NAME}; or all")] = "all",
    params: ParamsFile = None,
    replies: Annotated[Path, _option("folder of the replies", "--kept")] = paths.DATA
    / "replies",
    out: Annotated[
        Path | None, _option("folder for the runs; runs/replay by default")
    ] = None,
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
    caches_of(replies, folder)
    _run_several(values, folder, {"TRUSTLAB_OFFLINE": "replies"})


class CheckedNotebook(NamedTuple):
    """A notebook's file, its parameters and its choices."""

    path: Path
    parameters: Values
    choices: Any


def _check_notebook(
    notebook: str, params: Path | None, pairs: Words
) -> CheckedNotebook:
    """A notebook with its checked parameters, from a file and from pairs."""
    from trustlab.cli.run_notebooks import (
        check_parameters,
        notebook_path,
        read_parameters,
    )

    path = notebook_path(notebook)
    values = read_parameters(params, pairs or [], str(path))
    return CheckedNotebook(path, values, check_parameters(path, values))


def _values_of_all(params: Path, pairs: Words = None) -> dict[str, Values]:
    """The checked parameters of every notebook; one that the file leaves out keeps its defaults."""
    from trustlab.cli import run_notebooks

    values, needs, _ = _sections(params, pairs)
    lines = run_notebooks.lacking(values, needs)
    if lines:
        raise ValueError("\n".join(lines))
    for name, section in values.items():
        run_notebooks.check_parameters(run_notebooks.notebook_path(name), section)
    return values


def _sections(
    params: Path, pairs: Words
) -> tuple[dict[str, Values], dict[str, str], list[Values]]:
    """The parameters of every notebook with what ``pairs`` give; the file's needs and departures.
    ``ValueError`` for a name that is no need, and that no notebook has."""
    from trustlab.choices import unknown
    from trustlab.cli import run_notebooks as notebooks

    sections, needs, departures = notebooks.read_sections(params)
    pair_values = notebooks.read_parameters(None, pairs or [])
    allowed = dict(needs)
    values = {}
    for name in notebooks.notebook_names():
        parameters = notebooks.parameters_of(notebooks.notebook_path(name))
        allowed |= dict.fromkeys(parameters, "")
        values[name] = dict(sections.get(name, {}))
        for parameter, value in pair_values.items():
            if parameter in parameters:
                values[name][parameter] = value
    for parameter in pair_values:
        if parameter not in allowed:
            raise ValueError(unknown(parameter, list(allowed), "the notebooks have"))
    return notebooks.filled(values, pair_values), needs, departures


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

    n_cores = processes(-1)
    at_once = min(2, n_cores)
    n_cores_each = max(1, n_cores // at_once)
    shared = {"TRUSTLAB_RUNS": str(runs or paths.RUNS), **(variables or {})}
    if "OMP_NUM_THREADS" not in os.environ:  # the threads of two would collide
        shared["OMP_NUM_THREADS"] = str(n_cores_each)
    stopped = threading.Event()

    def execute(name: str) -> Path | None:
        if stopped.is_set():
            return None
        parameters = dict(values[name])
        if "n_jobs" in parameters:
            parameters["n_jobs"] = n_cores_each
        try:
            return _executed(name, parameters, runs and runs / name, shared)
        except REFUSALS:
            raise
        except BaseException:
            stopped.set()
            raise

    order = sorted(values, key=lambda name: ORDER.find(name[:2]) % 100)
    typer.echo(
        f"running {', '.join(order)}, {at_once} at once; each says a line when it ends"
    )
    with seldom_collected(), ThreadPoolExecutor(at_once) as pool:
        names = {pool.submit(execute, name): name for name in order}
        _report_all(names)


def _report_all(names: Mapping[Future[Path | None], str]) -> None:
    """Report each notebook when it ends; then raise the last error, or exit where too little was
    read."""
    n_notebooks = len(names)
    too_few_read = False
    errors: dict[str, Exception] = {}
    for n_ended, future in enumerate(as_completed(names), 1):
        name = names[future]
        try:
            folder = future.result()
            if folder:
                typer.echo(f"[{n_ended} of {n_notebooks}] ", nl=False)
                is_last = n_ended == n_notebooks
                too_few_read |= _report(name, folder, index=is_last or bool(errors))
        except (*REFUSALS, Afterwards) as error:
            typer.echo(f"trustlab: {name}: {error}", err=True)
            errors[name] = error
    if errors:
        words = f"with errors: {', '.join(errors)}"
        spent = any(isinstance(error, Afterwards) for error in errors.values())
        kind = Afterwards if spent else ValueError
        raise kind(words) from list(errors.values())[-1]
    if too_few_read:
        raise typer.Exit(UNREAD)


def _executed(
    name: str, values: Values, out: Path | None, shared: Mapping[str, str] | None = None
) -> Path:
    """Run the notebook; a bad end gives a message and the exit code that :func:`run` names."""
    from papermill.exceptions import PapermillExecutionError

    from trustlab.cli.run_notebooks import run_notebook
    from trustlab.stops import Gone, Stopped, Waiting

    try:
        return run_notebook(name, values, out, shared)
    except Waiting as error:
        end = f"waits: {_in_a_line(error)}"
        status = 3
    except Gone as error:
        again = "the same command goes on where it stopped"
        end = f"stopped: {_in_a_line(error)}\n  {again}"
        status = 4
    except Stopped as error:
        end = f"refused: {error}"
        status = 2
    except PapermillExecutionError as error:
        stem = Path(name).name.removesuffix(".ipynb")
        folder = out or paths.RUNS / stem
        stopped = _short(folder / f"{stem}.ipynb")
        end = f"stopped in cell {error.exec_count}: {error.ename}: {error.evalue}"
        end += f"\n  the notebook as far as it came: {stopped}"
        status = 1
    typer.echo(f"trustlab: {name} {end}", err=True)
    raise typer.Exit(status)


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _report(name: str, folder: Path, index: bool = True) -> bool:
    """Print the summary of a finished run; whether too few of its replies could be read.

    ``index``: its folder stands among others, which are then listed. An error ends with status 1:
    the run itself is done.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        lines = _manifest_lines(manifest)
        page = f"{Path(name).name.removesuffix('.ipynb')}.html"
        lines.append(_short(folder / page))
        if index:
            from trustlab.reports.html.index import write_index

            lines.append(_short(write_index(folder.parent)))
    except REFUSALS as error:
        raise Afterwards(f"it ran, and what follows a run failed: {error}") from error
    n_calls = manifest.get("calls_made", 0)
    n_cached = manifest.get("calls_from_cache", 0)
    typer.echo(
        f"{name}: replies asked of the model {n_calls}, taken from the cache {n_cached}"
    )
    for line in lines:
        typer.echo(f"  {line}")
    typer.echo(NOTICE)
    return bool(manifest.get("nothing_claimed"))


def _manifest_lines(manifest: Values) -> list[str]:
    """A manifest in lines: replies read, nothing claimed, warnings, missing values."""
    from trustlab.runs.formatted import read_line

    lines = []
    share_read = read_line(manifest.get("replies_read", {}))
    if share_read:
        lines.append(share_read)
    for line in manifest.get("nothing_claimed", []):
        lines.append(f"nothing is claimed: {line}")
    for line in manifest.get("warnings", []):
        lines.append(f"warning: {line}")
    n_missing = sum(row["n"] for row in manifest.get("missing", []))
    if n_missing:
        lines.append(f"missing: {n_missing:,} confidences; manifest.json says why")
    return lines


@app.command()
def plan(
    notebook: Annotated[
        str | None, _argument(f"{NAME}; without one all are planned")
    ] = None,
    params: ParamsFile = None,
    parameter: Pairs = None,
    usd_in: Rate = None,
    usd_out: Rate = None,
) -> None:
    """Count the calls and tokens a run would need, before anything is spent. Of all notebooks, also
    list what the file of parameters needs and lacks, and how it departs from what it repeats."""
    from trustlab.cli.plan import plan_all, plan_study, totals_of
    from trustlab.cli.run_notebooks import is_own, lacking

    rates: dict[str, float] = {}
    for name, rate in (("usd_in", usd_in), ("usd_out", usd_out)):
        if rate is not None:
            rates[name] = rate
    if notebook is None:
        values, needs, departures = _sections(params or SETS / "small.yml", parameter)
        for line in (*lacking(values, needs), *plan_all(values, needs, rates)):
            typer.echo(line)
        for departure in departures:
            what = f"departure, {departure['where']}: {departure['what']}."
            typer.echo(f"{what} Why: {departure['why']}.")
        return
    path, _, choices = _check_notebook(notebook, params, parameter)
    if is_own(path):
        raise ValueError(
            f"{notebook} is a notebook of your own: what it asks is not known"
        )
    setup = choices.with_(**rates)
    table, how = plan_study(path.stem, setup)
    typer.echo(table.to_string(index=False))
    if how:
        typer.echo(how)
    totals = totals_of(table, setup)
    typer.echo(
        f"in all {totals['n_replies']:,} replies, about {totals['n_tokens_in']:,} tokens in"
        f" and at most {totals['n_tokens_out']:,} out"
    )
    if setup.usd_in is not None:  # then the other, too
        typer.echo(f"about {totals['dollars']:,.2f} US dollars at your rates, at most")


@app.command("try")
def try_command(
    model: Annotated[
        str, _argument("a model's name, such as hf:FOLDER or openai:NAME")
    ],
    params: ParamsFile = None,
    parameter: Pairs = None,
) -> None:
    """Ask a model three views of every purpose, before a run: its replies raw and as they are read.

    Takes the parameters of 01_benchmark. Exit codes: 0 done, 2 refused, 4 the server is gone, 5
    less than half of the replies to some purpose could be read.
    """
    from trustlab.parsing.counts import LEAST_READ
    from trustlab.runs.trial import ADVICE
    from trustlab.stops import Gone

    pairs = [*(parameter or []), f"model={model}"]
    setup = _check_notebook("01_benchmark", params, pairs).choices
    try:
        table = tl.try_model(model, setup=setup).table()
    except Gone as gone:
        typer.echo(f"trustlab: {gone}", err=True)
        raise typer.Exit(4) from gone
    typer.echo(f"\n{table.round(2).to_string(index=False)}")
    for counts in table.to_dict("records"):
        if counts["read"] < LEAST_READ * counts["asked"]:
            typer.echo(f"Of some purpose less than half could be read. {ADVICE}")
            raise typer.Exit(UNREAD)


@app.command()
def score(  # noqa: PLR0913
    replies: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="a table of replies (.csv, .tsv, .jsonl, .parquet), another tool's log, or a run's"
            " folder",
        ),
    ],
    parameter: Pairs = None,
    out: Out = None,
    verdict: Annotated[
        str | None, _option("of a log: the scorer or metric that counts")
    ] = None,
    requests: Annotated[
        Path | None, _option("of an OpenAI batch's output: its input")
    ] = None,
    truth: Annotated[
        Path | None, _option("of a log without truths: a table of them")
    ] = None,
    calibrator: Annotated[
        Path | None, _option("a file of trustlab calibrate, applied to the answers")
    ] = None,
    anyway: Annotated[
        bool, _option("a calibrator fitted for others, too: marked", "--anyway")
    ] = False,
) -> None:
    """Score replies that you have already, by every method that they allow; no model is asked.

    A log of inspect_ai, lm-evaluation-harness, an OpenAI batch or uqlm is told by its content.

    Parameters are those of tl.Setup: methods, grader, seed, medical_encoder and so on. What the
    columns are, docs/replies.md says. Exit codes: 0 done, 2 refused.
    """
    from trustlab.cli.run_notebooks import read_parameters
    from trustlab.reports.score_replies import scored

    values = read_parameters(None, parameter or [])
    folder = (out or paths.RUNS / f"score-{replies.stem}").resolve()
    table: Any = replies
    if verdict or requests or truth:
        table = tl.read_log(replies, verdict=verdict, requests=requests, truth=truth)
    for line in scored(table, values, folder, calibrator, anyway):
        typer.echo(line)
    typer.echo(f"  {_short(folder)}\n{NOTICE}")


@app.command()
def calibrate(
    run: Annotated[Path, _argument("a run's folder, such as runs/01_benchmark")],
    method: Annotated[str, _option("whose confidences: trustlab methods")],
    out: Annotated[Path, _option("the calibrator's file (JSON)")],
    risk: Annotated[float, _option("most wrong answers, of those given")] = 0.2,
    sure: Annotated[float, _option("probability that the promise is kept")] = 0.95,
    model: Annotated[str | None, _option("where the run has several")] = None,
    dataset: Annotated[str | None, _option("where the run has several")] = None,
) -> None:
    """Fit what a method's confidences are worth as chances, and from which one on to give an answer
    so that few of those given are wrong; trustlab score --calibrator applies it to other answers.

    No model is asked. Exit codes: 0 done, also where the answer is to abstain from all; 2 refused.
    """
    fitted = tl.calibrate(
        tl.load_run(run, records=False),
        method,
        risk=risk,
        sure=sure,
        model=model,
        dataset=dataset,
    )
    fitted.save(out)
    typer.echo(fitted.model_dump_json(indent=1, exclude={"facts", "knots"}))
    if fitted.threshold is None:
        typer.echo("no threshold keeps this promise: abstain from all")
    typer.echo(f"  {_short(out)}\n{NOTICE}")


@app.command()
def compare(
    runs: Annotated[
        list[Path], _argument("each model is a side, the first the reference")
    ],
    out: Out = None,
) -> None:
    """Put models or settings side by side on the cases that their runs share: differences in pairs,
    Holm-corrected, tables and a figure. No model is asked.

    Exit codes: 0 done, 2 refused.
    """
    comparison = tl.compare_runs(*runs)
    folder = comparison.save((out or paths.RUNS / "compare").resolve())
    figure = folder / "figures" / "compare_auroc.png"
    place = figure if figure.is_file() else folder
    typer.echo(f"{comparison}\n  {_short(place)}\n{NOTICE}")


@app.command()
def show(
    run: Annotated[Path, _argument("a run's folder, such as runs/01_benchmark")],
    case: Annotated[str | None, _option("the case's id")] = None,
    level: Annotated[int | None, _option("how much was shown; a turn")] = None,
    model: Annotated[str | None, _option("the model that answered")] = None,
    out: Annotated[
        Path | None, _option("the page's file; of answers.html its folder")
    ] = None,
    every: Annotated[
        bool, _option("answers.html: a list of all, to filter", "--all")
    ] = False,
) -> None:
    """Write the page of one answer: dialogue, tokens, samples, scores, evidence, confidences, and
    every raw reply with its prompt. By default the wrong answer that was surest.

    It needs the run's folder alone; no model is asked. Exit codes: 0 done, 2 refused.
    """
    from trustlab.reports.html import pages

    if every:
        if not (case is None and level is None and model is None):
            raise typer.BadParameter("--all takes no --case, --level and --model")
        n_answers = pages.write_answers(run, out)
        if not n_answers:
            raise typer.BadParameter(f"{run} holds no run with answers or replies")
        what = f"{n_answers:,} answers"
        page = (out or run) / pages.PAGE
    else:
        loaded = tl.load_run(run)
        answer, why = pages.choose(loaded, case, level, model)
        page = out or run / pages.page_path(answer)
        html = pages.show(loaded, *answer)
        pages.write_page(f"Case {answer.case_id}", html, page)
        what = f"case {answer.case_id}, level {answer.level}, {answer.model}: {why}"
    typer.echo(f"{what}\n  {_short(page)}\n{NOTICE}")


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
    for method in sorted(
        tl.METHODS.values(), key=lambda each: FAMILIES.index(each.family)
    ):
        row = asdict(method) | {
            "access": method.access,
            "calls": calls(method),
            "readers": readers(method),
            "needs": ", ".join(method.needs),
        }
        rows.append(row)
    heads = [
        "name",
        "family",
        "access",
        "scale",
        "equation",
        "calls",
        "readers",
        "cite",
        "needs",
    ]
    table: Any = pd.DataFrame(rows)[heads]
    typer.echo(table.to_string(index=False, justify="left"))
    typer.echo(
        f"\n{len(rows)} methods. K: samples per answer (n_samples). Equations: Ren et al. 2026."
        " Parameters and defaults:"
    )
    defaults = [f"{name}={value}" for name, value in asdict(PARAMETERS).items()]
    typer.echo(f"  {', '.join(defaults)}")


@app.command()
def parameters(
    notebook: Annotated[str, _argument(f"{NAME}; all choices without one")] = "",
) -> None:
    """List every choice: its default, what it may be, and what it means. Those marked * stand in
    the notebook's parameters cell; any of them can be given with -p NAME=VALUE."""
    from trustlab.cli.run_notebooks import parameters_table

    for mark, name, default, about in parameters_table(notebook):
        typer.echo(f"{mark} {name} = {default}")
        paragraph = textwrap.fill(about, 90)
        typer.echo(textwrap.indent(paragraph, " " * 6))


@data_app.command("list")
def data_list() -> None:
    """What can be loaded, and what can be fetched or is had by hand."""
    from trustlab.datasets import ABOUT
    from trustlab.datasets.fetch import HOMES, size_of

    for name, about in ABOUT.items():
        typer.echo(f"{name:<20} {about}")
    hint = "trustlab data fetch NAME --to FOLDER shows the licence before anything is downloaded"
    typer.echo(f"\nOfficial homes ({hint}):")
    for name, home in HOMES.items():
        typer.echo(f"{name:<20} {home.what}\n{'':<20} {size_of(home)}; {home.how}")


@data_app.command("fetch")
def data_fetch(
    name: DataName,
    to: Annotated[Path | None, _option("the folder for its files [NAME, here]")] = None,
    accept: Annotated[
        bool, _option("you keep to the licence: do not ask (in a script)", "--accept")
    ] = False,
) -> None:
    """Download a data set from its official home, after showing its licence; check it, and unpack
    it."""
    from trustlab.datasets.fetch import HOMES, fetch, licence_notice

    notice = licence_notice(name)
    to = to or Path(name)
    # else fetch says how it is had by hand
    if any(file.url for file in HOMES[name].files):
        typer.echo(notice)
        if not accept and not sys.stdin.isatty():
            raise ValueError(
                "there is no terminal to ask in whether you keep to this licence; if you"
                " do, add --accept"
            )
        if not accept:
            typer.confirm("Do you keep to this licence?", abort=True)
    fetched = fetch(name, to, accept=True)
    for file, source in fetched.sources.items():
        how = "downloaded" if file in fetched.downloaded else "was there"
        size = f"{source.size:,} bytes"
        digest = f"sha256 {source.sha256} (checked: {source.checked})"
        typer.echo(f"{to / file}: {how}, {size}, {digest}")
    for place in fetched.unpacked:
        typer.echo(f"{place}: unpacked")


@data_app.command("check")
def data_check(
    name: DataName,
    path: Annotated[
        Path | None, _option("folder or file, where the data set needs one")
    ] = None,
    option: Annotated[
        Words, _option("name=value, its own; may be repeated", "--option")
    ] = None,
    seed: Annotated[int, _option("decides order and wording, where they are open")] = 0,
) -> None:
    """Read a whole data set and tell what is in it: counts, drops by reason, lengths, labels, two
    example cases."""
    from trustlab.cli.run_notebooks import read_parameters
    from trustlab.datasets.check import check_text

    options = read_parameters(None, option or [], name)
    data = tl.read_data(name, path=path, seed=seed, **options)
    typer.echo(check_text(name, data))


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
        words = [f"{n} {what}" for what, n in counts.items()]
        typer.echo(f"{source}: {', '.join(words)}")


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
    if path.is_relative_to(paths.WORK):
        return str(path.relative_to(paths.WORK))
    return str(path)
