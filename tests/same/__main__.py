"""``python -m same check`` and ``python -m same keep``: see ``--help`` of each."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from same import guard
from trustlab.paths import NOTEBOOKS, RUNS

app = typer.Typer(
    help="Every table of the notebooks, made again without a model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
PARAMETERS = NOTEBOOKS / "parameters" / "published.yml"

Notebooks = Annotated[list[str] | None, typer.Argument(help="all of the parameters by default")]
Parameters = Annotated[Path, typer.Option(exists=True, help="YAML file, a section by notebook")]
Folder = Annotated[Path, typer.Option(help="where replies and tables are kept")]
AtOnce = Annotated[int, typer.Option(min=1, help="notebooks run at once, each in a process")]


@app.command()
def check(
    notebook: Notebooks = None,
    parameters: Parameters = PARAMETERS,
    kept: Folder = guard.KEPT,
    at_once: AtOnce = 2,
    elsewhere: Annotated[bool, typer.Option(help="tolerances as on another machine")] = False,
) -> None:
    """Run the notebooks on the kept replies alone and list whatever is not what it was."""
    if not (kept / guard.ABOUT).is_file():
        typer.echo(f"nothing is kept in {kept}: make same-keep", err=True)
        raise typer.Exit(2)
    with tempfile.TemporaryDirectory(prefix="trustlab-same-") as scratch:
        tolerance = guard.tolerance_for(kept, elsewhere)
        now = guard.recorded(parameters, Path(scratch), kept=kept, names=notebook, at_once=at_once)
        found = guard.found_different(now, kept, Path(scratch), tolerance)
    typer.echo(guard.told(found, tolerance))
    raise typer.Exit(1 if any(found.values()) else 0)


@app.command()
def keep(
    parameters: Parameters = PARAMETERS,
    runs: Annotated[
        Path,
        typer.Option(exists=True, file_okay=False, help="the finished runs, with their caches"),
    ] = RUNS,
    kept: Folder = guard.KEPT,
    at_once: AtOnce = 2,
    tables: Annotated[bool, typer.Option(help="the tables alone: the kept replies stay")] = False,
) -> None:
    """Pack what the finished runs read, make every table from that alone, and keep both."""
    with tempfile.TemporaryDirectory(prefix="trustlab-same-") as scratch:
        if tables:
            typer.echo(f"{guard.keep_tables(parameters, kept, Path(scratch), at_once):,} tables")
            return
        counts = guard.keep(parameters, runs.resolve(), kept, Path(scratch), at_once)
    sizes = {file.name: file.stat().st_size for file in sorted(kept.rglob("*")) if file.is_file()}
    typer.echo(", ".join(f"{n:,} {what}" for what, n in counts.items()))
    typer.echo("\n".join(f"{size:>12,} {name}" for name, size in sizes.items()))
    typer.echo(f"{sum(sizes.values()):>12,} bytes in all")


if __name__ == "__main__":
    app()
