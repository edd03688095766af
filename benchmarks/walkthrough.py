"""Keep a finished run of notebook 00 with ``live=True`` as the answers of ``data/walkthrough``.

``python -m benchmarks.walkthrough RUN``.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks"))

from studies.walkthrough import CHOICES, HELD, HELD_WORDS, JUDGED, PACK
from trustlab.cli.run_notebooks import MANIFEST, default_parameters, notebook_path
from trustlab.paths import save_json
from trustlab.records import Generation
from trustlab.runs.folder.records_file import NAME as RECORDS
from trustlab.runs.folder.records_file import save_records
from trustlab.runs.folder.saved import COLUMNS, RUN, load_run
from trustlab.settings import Keep, Setup


def keep(run_dir: Path, pack: Path = PACK) -> None:
    """Make the pack from a finished run of the notebook.
    The patient's run is kept whole; of the others the answers and the confidences of
    :data:`JUDGED`, and of the cases' run :func:`lean` records."""
    made = json.loads((run_dir / MANIFEST).read_text(encoding="utf-8"))["parameters"]
    chosen = {**default_parameters(notebook_path("00_walkthrough")), **made}
    chosen |= chosen.pop("more")
    for folder in sorted(file.parent for file in run_dir.rglob(RUN)):
        to = pack / folder.relative_to(run_dir)
        shutil.rmtree(to, ignore_errors=True)
        if folder.name == "patient":
            # its pages
            shutil.copytree(folder, to, ignore=shutil.ignore_patterns("answers"))
            count_as_saved(to)
            continue
        run = load_run(folder, records=True)
        sure = run.confidence[run.confidence["method"].isin(JUDGED)]
        to.mkdir(parents=True)
        shutil.copyfile(folder / RUN, to / RUN)
        for name, rows in {"answers": run.answers, "confidence": sure}.items():
            rows.astype(COLUMNS[name]).to_parquet(
                to / f"{name}.parquet", compression="zstd"
            )
        count_as_saved(to)
        if folder.name == "cases":
            save_records(map(lean, run.generations), to / RECORDS)
    for name in (HELD, HELD_WORDS):
        shutil.copyfile(run_dir / name, pack / name)
    own = {f.name for f in fields(Setup)} - {f.name for f in fields(Keep)}
    save_json({name: chosen[name] for name in chosen if name in own}, pack / CHOICES)


def count_as_saved(folder: Path) -> None:
    """Count the replies of a kept run as saved ones: whoever opens it asks for none."""
    about = json.loads((folder / RUN).read_text(encoding="utf-8"))
    about["calls_from_cache"] += about["calls_made"]
    about["calls_made"] = 0
    save_json(about, folder / RUN)
    calls = folder / "calls.csv"
    if calls.is_file():
        table = pd.read_csv(calls)
        table["n_cached"] += table["n_made"]
        table.assign(n_made=0).to_csv(calls, index=False)


def lean(g: Generation) -> Generation:
    """A record with the answer, its tokens' log-probabilities and MedConf's evidence alone."""
    answer = g.answer
    if answer is not None and answer.trace is not None:
        trace = answer.trace
        trace = replace(trace, **dict.fromkeys((*trace.ARRAYS[1:], "alternatives")))
        answer = replace(answer, trace=replace(trace, bounds={}, lacks={}))
    evidence = g.assessment and replace(g.assessment, profile=(), replies={})
    head = {f.name: getattr(g, f.name) for f in fields(g)[:7]}
    return Generation(**head, answer=answer, assessment=evidence, told=g.told)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
