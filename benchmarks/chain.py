"""Times the whole chain, from reading cases to intervals: ``python -m benchmarks.chain --path
FOLDER``.

Every phase runs in a process of its own, so that its imports are timed and its peak memory is its
own. What each column means, and how to read the numbers: ``README.md`` beside this file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Nothing heavy is imported up here: on Linux a new process starts with the peak memory of the one
# that started it.

CASES, SAMPLES = 583, 15
MIB = 2**20
AIM_S = {"cold": 360, "warm": 20}
AIM_BYTES = 2e9
TABLES = ("answers", "confidence")
LIBRARIES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "numpy",
    "pandas",
    "scikit-learn",
)


class Watch:
    """Seconds since the last mark, by name."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self._since = time.perf_counter()

    def mark(self, name: str) -> None:
        now = time.perf_counter()
        self.steps[name], self._since = now - self._since, now


def peak_bytes() -> int:
    """Most memory this process has held."""
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def ask_and_score(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Cold in a fresh folder, warm in one that has been through it: cases, model, replies,
    similarities, tables."""
    watch = Watch()
    import trustlab as tl

    watch.mark("import trustlab")
    cases = tl.load_cases(options.dataset, path=options.path, n=options.cases)
    watch.mark("read the cases")
    model = tl.open_model(options.model, n_jobs=options.jobs)
    watch.mark("import torch, open the model")
    encoder, judge = timed_readers(folder, options.jobs)
    how = {
        "encoder": encoder,
        "entailment": judge,
        "run_dir": folder / "run",
        "quiet": True,
    }
    setup = tl.Setup(samples=options.samples, n_jobs=options.jobs, **how)
    run = tl.benchmark(cases, [model], options.methods, setup=setup)
    watch.mark("benchmark")
    asking = sum(run.parameters["collect_s"].values())
    scoring = watch.steps.pop("benchmark") - asking
    replies, by_purpose = (
        float(run.calls["seconds"].sum()),
        run.calls.groupby("purpose", sort=False)["seconds"].sum(),
    )
    rest = asking - replies - encoder.seconds - judge.seconds
    from trustlab.runs.folder.saved import manifest

    found = manifest(run)
    # there where the model was asked, and else of no use
    torch: Any = sys.modules.get("torch")
    return {
        "steps": (
            watch.steps
            | {
                f"model: {purpose}": float(s)
                for purpose, s in by_purpose.items()
                if s >= 0.05
            }
            | {
                "sentence encoder": encoder.seconds,
                "entailment (stand-in)": judge.seconds,
            }
            | {
                "prompts, cache, reading, retrieval": rest,
                "grade, score, write": scoring,
            }
        ),
        "asking": asking,
        "asked": found["calls_made"],
        "cached": found["calls_from_cache"],
        "n_answers": len(run.answers),
        "n_methods": run.confidence["method"].nunique(),
        "device": "cuda" if torch and torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads() if torch else None,
    }


def timed_readers(folder: Path, n_jobs: int) -> Any:
    """The default readers of meaning, each with the ``seconds`` it took; the judge's are without
    the encoder's."""
    import trustlab as tl
    from trustlab.meaning.entailment import StandInEntailment

    class TimedEncoder(tl.Encoder):
        seconds = 0.0

        def _learn(self, texts: Any, keep: bool = True) -> Any:
            began = time.perf_counter()
            learnt = super()._learn(texts, keep)
            self.seconds += time.perf_counter() - began
            return learnt

    class TimedJudge(StandInEntailment):
        seconds = 0.0

        def probabilities(self, pairs: Any) -> Any:
            began, encoding = time.perf_counter(), encoder.seconds
            found = super().probabilities(pairs)
            self.seconds += time.perf_counter() - began - (encoder.seconds - encoding)
            return found

    encoder = TimedEncoder(cache_path=folder / "encoder.sqlite", n_jobs=n_jobs)
    return encoder, TimedJudge(encoder)


def intervals(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Every metric with its interval, from the tables that the run wrote."""
    watch = Watch()
    import pandas as pd

    import trustlab as tl

    watch.mark("import trustlab")
    text: Any = {"case_id": str, "answer": str, "missing": str, "bound": str}
    files = (folder / "run" / f"{name}.csv" for name in TABLES)
    answers, confidence = (
        pd.read_csv(file, dtype=text, keep_default_na=False, na_values=[""])
        for file in files
    )
    run = tl.Run(answers, confidence, calls=pd.DataFrame(), parameters={})
    watch.mark("read the tables")
    tl.metrics_table(run)
    watch.mark("metrics with their intervals")
    return {"steps": watch.steps, "asked": 0, "cached": 0}


PHASES = {"cold": ask_and_score, "warm": ask_and_score, "intervals": intervals}


def in_fresh_process(phase: str, folder: Path) -> dict[str, Any]:
    """Run one phase of this very command, and what it reports with the ``seconds`` from start to
    end of its process."""
    began = time.perf_counter()
    # As a module: run as a file, this folder's openai.py would stand before the library of that
    # name.
    command = [
        sys.executable,
        "-m",
        "benchmarks.chain",
        *sys.argv[1:],
        "--phase",
        phase,
        "--folder",
        str(folder),
    ]
    done = subprocess.run(command, check=False, cwd=Path(__file__).resolve().parents[1])
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"the phase {phase} ended with status {done.returncode}")
    return json.loads((folder / f"{phase}.json").read_text(encoding="utf-8")) | {
        "seconds": seconds
    }


def tables_sha256(folder: Path) -> str:
    """A fingerprint of the run's answers and confidences."""
    return hashlib.sha256(
        b"".join((folder / "run" / f"{name}.csv").read_bytes() for name in TABLES)
    ).hexdigest()


def processor() -> str:
    """The processor's name, as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = (
        cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        if cpuinfo.is_file()
        else []
    )
    names = [
        line.partition(":")[2].strip()
        for line in lines
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def report(
    options: argparse.Namespace,
    phases: dict[str, dict[str, Any]],
    same: bool,
    load: float | None,
) -> str:
    """The whole report as text."""
    cold, warm = phases["cold"], phases["warm"]
    lines = [
        (
            f"{options.cases} cases of {options.dataset}, {options.samples} samples, model"
            f" {options.model}: {cold['n_answers']:,} answers, {cold['n_methods']} methods"
        ),
        "",
        (
            f"{'phase':<34}{'seconds':>9}{'aim':>6}{'peak MiB':>11}{'aim':>7}"
            f"{'replies asked':>16}{'from cache':>13}"
        ),
    ]
    for name, phase in phases.items():
        aim = AIM_S.get(name, "")
        peak, most = phase["peak_bytes"] / MIB, AIM_BYTES / MIB
        counts = f"{phase['asked']:>16,}{phase['cached']:>13,}"
        lines.append(
            f"{name:<34}{phase['seconds']:>9.1f}{aim:>6}{peak:>11,.0f}{most:>7,.0f}{counts}"
        )
        steps = phase["steps"] | {
            "start and end of the process": phase["seconds"]
            - sum(phase["steps"].values())
        }
        lines += [f"  {step:<32}{seconds:>9.1f}" for step, seconds in steps.items()]
    steps = [p["asking"] for p in (cold, warm)]
    libraries = ", ".join(f"{name} {version(name).split('+')[0]}" for name in LIBRARIES)
    busy = "" if load is None else f"; load before the start {load:.1f}"
    return "\n".join(
        [
            *lines,
            "",
            f"cold / warm, whole process            {cold['seconds'] / warm['seconds']:.1f}",
            f"cold / warm, collecting               {steps[0] / steps[1]:.1f}",
            f"warm tables the same bytes as cold    {'yes' if same else 'NO'}",
            (
                f"aims                                  {CASES} cases of ddxplus, {SAMPLES}"
                " samples, the embedded model"
            ),
            (
                f"machine                               {cores()} cores, {processor()};"
                f" {platform.system()}{busy}"
            ),
            (
                f"model on                              {cold['device']}, torch with"
                f" {cold['threads']} threads"
            ),
            (
                f"versions                              Python {platform.python_version()},"
                f" {libraries}"
            ),
        ]
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.chain",
        description="Time the whole chain: cold, warm, intervals.",
    )
    parser.add_argument(
        "--path",
        help="folder of the data set; DDXPlus needs one, the starter cases do not",
    )
    parser.add_argument(
        "--dataset",
        default="ddxplus",
        help="name of the data set (default: %(default)s)",
    )
    parser.add_argument(
        "--cases", type=int, default=CASES, help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=SAMPLES,
        help="replies sampled per answer (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        default="embedded",
        help="embedded or hf:NAME_OR_PATH (default: %(default)s)",
    )
    parser.add_argument(
        "--methods",
        default="all",
        help="all, paper or one method (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes (default: %(default)s)"
    )
    parser.add_argument("--phase", choices=PHASES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dataset == "ddxplus" and not options.path:
        parser.error("give the folder of the DDXPlus English release as --path")
    if options.path:
        options.path = Path(options.path).expanduser().resolve()
    return options


def main() -> None:
    options = parse()
    if options.phase:
        done = PHASES[options.phase](options, options.folder)
        done["peak_bytes"] = peak_bytes()
        (options.folder / f"{options.phase}.json").write_text(
            json.dumps(done), encoding="utf-8"
        )
        return
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    phases, hashes = {}, {}
    with tempfile.TemporaryDirectory(prefix="trustlab-chain-") as name:
        for phase in PHASES:
            phases[phase] = in_fresh_process(phase, Path(name))
            hashes[phase] = tables_sha256(Path(name))
    print(report(options, phases, hashes["cold"] == hashes["warm"], load))


if __name__ == "__main__":
    main()
