"""The command line: ``trustlab run``, ``score``, ``replay``, ``compare``, ``show``, ``plan``,
``init``, ``methods``, ``data``, ``cache``, ``publish``."""

from __future__ import annotations

import json
import os
import sqlite3
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from trustlab.paths import (
    DATA,
    NOTEBOOKS,
    NOTICE,
    REPLIES,
    RUNS,
    WORK,
    environment,
    runs_of,
    shard_of,
)

app = typer.Typer(
    help=f"Measure how far a medical language model's confidence can be trusted. {NOTICE}",
    no_args_is_help=True,
)
cache_app = typer.Typer(
    help="Carry the replies of finished runs to another machine.", no_args_is_help=True
)
data_app = typer.Typer(help="The data sets.", no_args_is_help=True)
app.add_typer(cache_app, name="cache")
app.add_typer(data_app, name="data")

_CHECKED = {
    "sha256": "as expected",
    "size": "its size is as expected, its sha256 is not known",
    "not verified": "not verified",
}

ParamsFile = Annotated[
    Path | None,
    typer.Option("--params", exists=True, dir_okay=False, help="YAML file, flat or by notebook"),
]
Pairs = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", help="name=value, over the file; may be repeated"),
]


def _values(notebook: str, params: Path | None, pairs: list[str] | None) -> dict[str, Any]:
    """The checked parameters of one notebook."""
    from trustlab.run_notebooks import check_parameters, notebook_path, read_parameters

    path = notebook_path(notebook)
    values = read_parameters(params, pairs or [], str(path))
    check_parameters(path, values)
    return values


SMALL, PUBLISHED = (NOTEBOOKS / "parameters" / f"{name}.yml" for name in ("small", "published"))
REPLIED = DATA / "replies"


def _values_of_all(params: Path) -> dict[str, dict[str, Any]]:
    """The checked parameters of every notebook; one that the file leaves out keeps its defaults."""
    from trustlab.run_notebooks import (
        check_parameters,
        notebook_names,
        notebook_path,
        read_sections,
    )

    sections = read_sections(params)
    found = {name: sections.get(name, {}) for name in notebook_names()}
    for name, values in found.items():
        check_parameters(notebook_path(name), values)
    return found


@app.command()
def run(
    notebook: Annotated[
        str,
        typer.Argument(help="a notebook's name, such as 01_benchmark; a file of your own; or all"),
    ],
    params: ParamsFile = None,
    parameter: Pairs = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for what comes out; runs/NOTEBOOK by default")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(help="i/n: the i-th of n shares of the cases, in runs/shard-i-of-n"),
    ] = None,
) -> None:
    """Execute a notebook and keep notebook, HTML, figures, tables and manifest; or all, with
    notebooks/parameters/small.yml where no file of parameters is given.

    Exit codes: 0 done, 1 a cell failed, 2 refused before anything ran, 3 a batch waits, 4 the
    server is gone, 5 done, but less than half of the replies to some purpose could be read.
    """
    every = notebook == "all"
    if every and (parameter or out or shard):
        raise typer.BadParameter(
            "run all takes a file of parameters alone; give a notebook's name to set others"
        )
    if every:
        _run_all(partial(_values_of_all, params or SMALL))
        return
    values = _refused(lambda: _values(notebook, params, parameter))
    if shard and not _refused(partial(_has_cases, notebook, values, shard)):
        typer.echo(f"{notebook}: shard {shard} has no cases; nothing to do")
        return
    folder = _executed(notebook, values, out, shard)
    if _tell(notebook, folder, index=out is None):
        raise typer.Exit(UNREAD)


@app.command()
def replay(
    notebook: Annotated[
        str, typer.Argument(help="a notebook's name, such as 01_benchmark; or all")
    ] = "all",
    params: ParamsFile = None,
    kept: Annotated[Path, typer.Option(help="folder of the replies")] = REPLIED,
    out: Annotated[
        Path | None, typer.Option(help="folder for the runs; runs/replay by default")
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="pages of all answers, too (answers.html)")
    ] = False,
) -> None:
    """Make tables and figures again from kept replies; no model is asked. Without a file of
    parameters, those of notebooks/parameters/published.yml.

    Exit codes: 0 done, 1 a cell failed, 2 refused, 5 done, but less than half of the replies to
    some purpose could be read.
    """
    folder = (out or RUNS / "replay").resolve()

    def asked() -> dict[str, dict[str, Any]]:
        from trustlab.folder.kept import caches_of
        from trustlab.run_notebooks import notebook_path

        found = _values_of_all(params or PUBLISHED)
        if notebook != "all":
            name = notebook_path(notebook).stem
            found = {name: found[name]}
        caches_of(kept, folder)
        return found

    _run_all(asked, folder, {"TRUSTLAB_OFFLINE": "replies"}, answers)


UNREAD = 5
"""The exit code of a run of which too few replies could be read: of some purpose a smaller share
than :data:`trustlab.parsing.counts.LEAST_READ`. The manifest says which, as ``nothing_claimed``."""


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
    page = f"{Path(name).name.removesuffix('.ipynb')}.html"
    counts = manifest.get("replies_read", {})
    if told := read_line(counts):
        typer.echo(f"  {told}")
    if counts and not brief:
        rows = [("model", "purpose", *HEADS), *table_rows(counts)]
        widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            cells = (f"{v!s:<{w}}" if i < 2 else f"{v!s:>{w}}" for i, (v, w) in
                     enumerate(zip(row, widths, strict=True)))  # fmt: skip
            typer.echo("    " + "  ".join(cells))
    for line in manifest.get("nothing_claimed", []):
        typer.echo(f"  nothing is claimed: {line}")
    missing = _missing_lines(manifest.get("missing", []))
    shown = missing[:3] if brief and len(missing) > 4 else missing
    for line in shown:
        typer.echo(f"  missing: {line}")
    if len(missing) > len(shown):
        typer.echo(f"  missing: {len(missing) - len(shown)} reasons more in {MANIFEST}")
    for line in manifest.get("warnings", []):
        typer.echo(f"  warning: {line}")
    typer.echo(f"  {_short(folder / page)}")
    if index:
        typer.echo(f"  {_short(write_index(folder.parent))}")
    typer.echo(NOTICE)
    return bool(manifest.get("nothing_claimed"))


def _run_all(
    read: Callable[[], dict[str, dict[str, Any]]],
    runs: Path | None = None,
    more: dict[str, str] | None = None,
    answers: bool = True,
) -> None:
    """Every notebook of what ``read`` gives, two at once where there are two cores, which they
    share; after one that ends badly none begins any more. ``more``: variables of their
    environment."""
    # For all of them, and not by each for itself: they share this process.
    variables = {"TRUSTLAB_RUNS": str(runs or runs_of(None)), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    with environment(variables | (more or {})):
        _run_each(_refused(read), runs, answers)


def _run_each(asked: dict[str, dict[str, Any]], runs: Path | None, answers: bool) -> None:
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from trustlab.processes import processes, seldom_collected
    from trustlab.run_notebooks import ORDER

    cores = processes(-1)
    at_once = min(2, cores)
    share = {"n_jobs": max(1, cores // at_once)}
    threads = {"OMP_NUM_THREADS": str(share["n_jobs"])}  # those of two would collide
    own = {name: value for name, value in threads.items() if name not in os.environ}
    order = sorted(asked, key=lambda name: ORDER.find(name[:2]) % 100)
    typer.echo(f"running {', '.join(order)}, {at_once} at once; each says a line when it ends")
    began = time.monotonic()
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

    with environment(own), seldom_collected(), ThreadPoolExecutor(at_once) as pool:
        begun = {pool.submit(one, name): name for name in order}
        unread = False
        for done, ended in enumerate(as_completed(begun), 1):
            if folder := ended.result():
                minutes, seconds = divmod(round(time.monotonic() - began), 60)
                typer.echo(f"[{done} of {len(order)}, {minutes}:{seconds:02d}] ", nl=False)
                unread |= _tell(begun[ended], folder, index=done == len(order), brief=True)
    if unread:
        raise typer.Exit(UNREAD)


def _has_cases(name: str, values: dict[str, Any], shard: str) -> bool:
    from trustlab.run_notebooks import has_cases

    shard_of(shard)
    return has_cases(name, values, shard)


def _missing_lines(rows: list[dict[str, Any]]) -> list[str]:
    """What is missing, in a line for each reason; of many methods that miss the same, three are
    named."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for row in rows:
        found.setdefault((row.get("run", ""), row["n"], row["reason"]), []).append(row["method"])
    lines = []
    for (run, n, reason), methods in found.items():
        more = f" and {len(methods) - 3} methods more" if len(methods) > 4 else ""
        named = ", ".join(methods[:3] if more else methods) + more
        lines.append(f"{named} on {n} rows{f' of {run}' if run else ''} ({reason})")
    return lines


@app.command()
def plan(
    notebook: Annotated[str, typer.Argument(help="a notebook's name, such as 01_benchmark")],
    params: ParamsFile = None,
    parameter: Pairs = None,
    usd_in: Annotated[
        float | None, typer.Option(help="your rate: US dollars per million tokens in")
    ] = None,
    usd_out: Annotated[
        float | None, typer.Option(help="your rate: US dollars per million tokens out")
    ] = None,
) -> None:
    """Count the calls and tokens a run would need, before anything is spent."""
    from trustlab.plan import plan_study, seconds_of

    rates = {name: of for name, of in (("usd_in", usd_in), ("usd_out", usd_out)) if of is not None}
    name, asked = _refused(lambda: _planned(notebook, params, parameter))
    setup = _refused(lambda: asked.with_(**rates))
    table, told = _refused(lambda: plan_study(name, setup))
    typer.echo(table.to_string(index=False))
    if told:
        typer.echo(told)
    n_replies, total_in, total_out = (
        int(table[c].to_numpy().sum()) for c in ("n_replies", "n_tokens_in", "n_tokens_out")
    )
    typer.echo(
        f"in all {n_replies:,} replies, about {total_in:,} tokens in and at most {total_out:,} out"
    )
    if seconds := _refused(partial(seconds_of, setup, table)):
        typer.echo(f"about {seconds / 60:,.0f} minutes or less, by the models' last trials")
    if setup.usd_in is not None and setup.usd_out is not None:
        dollars = (total_in * setup.usd_in + total_out * setup.usd_out) / 1e6
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
    _, setup = _refused(lambda: _planned("01_benchmark", params, pairs))
    try:
        trial = _refused(partial(try_model, model, setup=setup))
    except Gone as gone:
        typer.echo(f"trustlab: {gone}", err=True)
        raise typer.Exit(4) from gone
    table = trial.table()
    typer.echo(f"\n{table.round(2).to_string(index=False)}")
    if any(row["read"] < LEAST_READ * row["asked"] for row in table.to_dict("records")):
        typer.echo(f"Of some purpose less than half could be read. {ADVICE}")
        raise typer.Exit(UNREAD)


def _planned(notebook: str, params: Path | None, pairs: list[str] | None) -> tuple[str, Any]:
    """The name of a notebook, and its choices."""
    from trustlab.run_notebooks import checked_choices, is_own, notebook_path

    path = notebook_path(notebook)
    if is_own(path):
        raise ValueError(f"{notebook} is a notebook of your own: what it asks is not known")
    return path.stem, checked_choices(path, _values(notebook, params, pairs))


@app.command()
def score(
    replies: Annotated[
        Path,
        typer.Argument(
            exists=True, help="a table of replies (.csv, .tsv, .jsonl, .parquet), or a run's folder"
        ),
    ],
    confidence: Annotated[
        Path | None, typer.Option(help="known confidences: a run's confidence.csv or .parquet")
    ] = None,
    parameter: Pairs = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for what comes out; runs/score-NAME by default")
    ] = None,
) -> None:
    """Score replies that you have already, by every method that they allow; no model is asked.

    Parameters are those of tl.Setup: methods, grader, draws, medical_encoder and so on. What the
    columns are, docs/replies.md says. Exit codes: 0 done, 2 refused.
    """
    from trustlab.run_notebooks import read_parameters
    from trustlab.score_replies import scored

    values = _refused(lambda: read_parameters(None, parameter or []))
    folder = (out or RUNS / f"score-{replies.stem}").resolve()
    for line in _refused(lambda: scored(replies, confidence, values, folder)):
        typer.echo(line)
    typer.echo(f"  {_short(folder)}\n{NOTICE}")


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="folders of runs; each model of each is a side, the first the reference"
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="folder for what comes out; runs/compare by default")
    ] = None,
    draws: Annotated[int, typer.Option(help="bootstrap draws of cases")] = 2000,
    seed: Annotated[int, typer.Option(help="of the draws")] = 0,
) -> None:
    """Put models or settings side by side on the cases that their runs share: differences in pairs,
    Holm-corrected, a figure and a page. No model is asked.

    Exit codes: 0 done, 2 refused.
    """
    from trustlab.compare import save_comparison

    folder = (out or RUNS / "compare").resolve()
    for line in _refused(lambda: save_comparison(runs, folder, draws, seed)):
        typer.echo(line)
    drawn = folder / "figures" / "compare_auroc.png"
    typer.echo(f"  {_short(drawn if drawn.is_file() else folder)}")
    typer.echo(NOTICE)


@app.command()
def show(
    run: Annotated[Path, typer.Argument(help="a run's folder, such as runs/01_benchmark")],
    case: Annotated[str | None, typer.Option(help="the case's id")] = None,
    level: Annotated[int | None, typer.Option(help="how much was shown; a turn")] = None,
    model: Annotated[str | None, typer.Option(help="the model that answered")] = None,
    method: Annotated[str | None, typer.Option(help="whose confidence picks the answer")] = None,
    out: Annotated[
        Path | None, typer.Option(help="the page's file; with --all the folder for answers.html")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="answers.html: a list of all, to filter")
    ] = False,
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
        if not (n := _refused(lambda: pages.write_answers(run, out))):
            raise typer.BadParameter(f"{run} holds no run with answers or replies")
        typer.echo(f"{n:,} answers\n  {_short((out or run) / pages.PAGE)}\n{NOTICE}")
        return
    loaded = _refused(lambda: load_run(run))
    of, why = _refused(lambda: pages.choose(loaded, case, level, model, method))
    page = out or run / pages.page_path(of)
    _refused(lambda: pages.write_page(f"Case {of.case_id}", pages.show(loaded, *of), page))
    typer.echo(f"case {of.case_id}, level {of.level}, {of.model}: {why}")
    typer.echo(f"  {_short(page)}\n{NOTICE}")


@app.command()
def init(folder: Annotated[Path, typer.Argument(help="made where it is not there")]) -> None:
    """Lay out a workbench: notebooks, their parameters, two example tables, and a page that says
    what to do. Nothing that is there is overwritten."""
    from trustlab.run_notebooks import lay_out

    _refused(lambda: lay_out(folder))
    typer.echo(f"{folder}: begin with {folder / 'README.md'}\n{NOTICE}")


@app.command()
def methods(
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, with every field")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="as the table of docs/all_methods.md")
    ] = False,
) -> None:
    """List the registered confidence methods: what they are, need and cost, and the parameters."""
    if as_markdown:
        typer.echo(methods_markdown())
        return
    if as_json:
        typer.echo(json.dumps(_methods(), indent=2, ensure_ascii=False))
        return
    from trustlab.records import PARAMETERS

    heads = {"name": 29, "family": 13, "access": 8, "scale": 13, "equation": 18, "calls": 31}
    heads |= {"readers": 17, "cite": 36}
    first = {head: head for head in heads} | {"needs": ["needs"]}
    for row in [first, *_methods()]:
        shown = (f"{row[head] or '-':<{width}}" for head, width in heads.items())
        typer.echo("".join(shown) + ", ".join(row["needs"]))
    typer.echo(
        f"\n{len(_methods())} methods. K: samples per answer (n_samples). Equations: Ren et al."
        " 2026. Parameters and defaults:"
    )
    typer.echo("  " + ", ".join(f"{name}={value}" for name, value in asdict(PARAMETERS).items()))


def _methods() -> list[dict[str, Any]]:
    """The registry, family by family: all that a method declares, and what it costs."""
    from trustlab.confidence import METHODS
    from trustlab.confidence.registry import FAMILIES, calls, readers

    ordered = sorted(METHODS.values(), key=lambda m: FAMILIES.index(m.family))
    rows = [
        {**asdict(m), "access": m.access, "calls": calls(m), "readers": readers(m)} for m in ordered
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
def parameters(
    notebook: Annotated[
        str, typer.Argument(help="a notebook's name, such as 01_benchmark; all choices without one")
    ] = "",
) -> None:
    """List every choice: its default, what it may be, and what it means. Those marked * stand in
    the notebook's parameters cell; any of them can be given with -p NAME=VALUE."""
    from trustlab.run_notebooks import parameters_table

    for row in _refused(lambda: parameters_table(notebook)):
        said = "; ".join(filter(None, (row["range"], row["meaning"])))
        typer.echo(f"{row['shown'] or ' '} {row['name']} = {row['default']}")
        if said:
            typer.echo(textwrap.fill(said, 96, initial_indent="      ", subsequent_indent="      "))


@app.command(hidden=True)
def publish(notebook: str, run_dir: Annotated[Path | None, typer.Option()] = None) -> None:
    """Make a run the reference run of the repository (figures/ and the notebook's outputs)."""
    from trustlab.run_notebooks import publish as make_reference

    _refused(lambda: make_reference(run_dir or RUNS / notebook, notebook))


@data_app.command("list")
def data_list() -> None:
    """What can be loaded, and what can be fetched or is had by hand."""
    from trustlab.datasets import ABOUT
    from trustlab.datasets.fetch import homes_table

    for name, about in ABOUT.items():
        typer.echo(f"{name:<20} {about}")
    typer.echo(
        "\nOfficial homes (trustlab data fetch NAME --to FOLDER shows the licence before anything"
        " is downloaded):"
    )
    for row in homes_table().to_dict("records"):
        typer.echo(f"{row['name']:<20} {row['what']}\n{'':<20} {row['size']}; {row['how']}")


@data_app.command("fetch")
def data_fetch(
    name: Annotated[
        str, typer.Argument(help="a data set or corpus with an official home: trustlab data list")
    ],
    to: Annotated[
        Path | None,
        typer.Option(help="the folder for its files, made where it is not there [NAME, here]"),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="you have read the licence and keep to it: do not ask")
    ] = False,
) -> None:
    """Download a data set from its official home, after showing its licence; check it, and unpack
    it."""
    from trustlab.datasets.fetch import HOMES, fetch, licence_notice

    notice, to = _refused(lambda: licence_notice(name)), to or Path(name)
    if any(
        file.urls for file in HOMES[name].files
    ):  # else fetch tells the same, and that it is had by hand
        typer.echo(notice)
        if not accept:
            typer.confirm("Do you keep to this licence?", abort=True)
    fetched = _refused(lambda: fetch(name, to, accept=True))
    for file, source in fetched.sources.items():
        how = "downloaded" if file in fetched.downloaded else "was there"
        told = f"{to / file}: {how}, {source.size:,} bytes, sha256 {source.sha256}"
        typer.echo(f"{told} ({_CHECKED[source.checked]})")
    for place in fetched.unpacked:
        typer.echo(f"{place}: unpacked")
    for file in fetched.sources:
        if file.endswith(".gguf"):
            typer.echo(f"Try it: trustlab try hf:{to / file}")


@data_app.command("check")
def data_check(
    name: Annotated[str, typer.Argument(help="a data set's name: trustlab data list")],
    path: Annotated[
        Path | None, typer.Option(help="the folder or file, where the data set needs one")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="name=value, the data set's own; may be repeated"),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="decides order and wording, where the data set leaves them open")
    ] = 0,
) -> None:
    """Read a whole data set and tell what is in it: counts, drops by reason, lengths, labels, two
    example cases."""
    from trustlab.datasets import read_data
    from trustlab.datasets.check import check_text
    from trustlab.run_notebooks import read_parameters

    options = _refused(lambda: read_parameters(None, option or [], name))
    typer.echo(_refused(lambda: check_text(name, read_data(name, path=path, seed=seed, **options))))


@cache_app.command("export")
def cache_export(
    target: Path, path: Annotated[Path, typer.Option(help="the reply cache")] = REPLIES
) -> None:
    """Write all replies to one file that replays anywhere."""
    from trustlab.models.cache import export_cache

    typer.echo(f"{_refused(lambda: export_cache(path, target))} replies written to {target}")


@cache_app.command("import")
def cache_import(
    sources: Annotated[list[Path], typer.Argument(help="exported files, or caches (.sqlite)")],
    path: Annotated[Path, typer.Option(help="the reply cache")] = REPLIES,
) -> None:
    """Take the replies of exported files, or of other caches, into the cache; nothing already there
    is overwritten."""
    from trustlab.models.cache import import_cache

    for source in sources:
        counts = _refused(partial(import_cache, path, source))
        typer.echo(f"{source}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


@cache_app.command("check")
def cache_check(
    path: Annotated[Path, typer.Option(help="the reply cache")] = REPLIES,
    mend: Annotated[bool, typer.Option("--mend", help="drop them, save the others")] = False,
) -> None:
    """Name the damaged rows of the cache, or a damaged file. Exit codes: 0 none or mended, 1 some,
    2 refused."""
    from trustlab.models.cache import damaged_rows

    found = _refused(lambda: damaged_rows(path, mend))
    for key, why in found.items():
        typer.echo(f"{key}: {why}")
    typer.echo(f"{path}: {len(found)} damaged rows{', dropped' if mend and found else ''}")
    if found and not mend:
        raise typer.Exit(1)


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

    from trustlab.models.base import Gone, Unread, Waiting
    from trustlab.run_notebooks import run_notebook

    try:
        return _refused(lambda: run_notebook(name, values, out, shard, alone, answers))
    except Waiting as waiting:
        typer.echo(f"trustlab: {name} waits: {' '.join(str(waiting).split())}", err=True)
        raise typer.Exit(3) from waiting
    except Unread as unread:
        typer.echo(f"trustlab: {name} refused: {unread}", err=True)
        raise typer.Exit(2) from unread
    except Gone as gone:
        typer.echo(f"trustlab: {name} stopped: {' '.join(str(gone).split())}", err=True)
        typer.echo("  the same command goes on where it stopped", err=True)
        raise typer.Exit(4) from gone
    except PapermillExecutionError as error:
        where = f"{name} stopped in cell {error.exec_count}"
        typer.echo(f"trustlab: {where}: {error.ename}: {error.evalue}", err=True)
        stem = Path(name).name.removesuffix(".ipynb")
        came = (out or runs_of(shard) / stem) / f"{stem}.ipynb"
        typer.echo(f"  the notebook as far as it came: {_short(came)}", err=True)
        raise typer.Exit(1) from error


def _refused(step):
    """Bad input ends with its message and status 2, not with a traceback."""
    try:
        return step()
    except (ValueError, OSError, sqlite3.Error) as error:
        typer.echo(f"trustlab: {error}", err=True)
        raise typer.Exit(2) from error


def _short(path: Path) -> str:
    return str(path.relative_to(WORK)) if path.is_relative_to(WORK) else str(path)


if __name__ == "__main__":
    app()
