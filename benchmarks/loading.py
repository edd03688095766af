"""Times reading DDXPlus at the size of its test split: ``python -m benchmarks.loading --path
FOLDER``.

The patients of the given release are repeated until there are ``--rows`` (134,529, the size of the
official test split), in a temporary file. Two ways of loading, each in a process of its own: all
cases as objects, and ``--n`` of them picked at random, which makes objects of those alone. Every
row is read and checked in both. Aims: 60 s and 2 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from trustlab.datasets.ddxplus import CONDITIONS, EVIDENCES, patients_file

ROWS = 134_529
PROBE = """
import json, resource, sys, time
from trustlab.datasets import load_cases
began = time.perf_counter()
cases = load_cases("ddxplus", path=sys.argv[1], n=int(sys.argv[2]) or None)
unit = 1 if sys.platform == "darwin" else 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
print(json.dumps({"cases": len(cases), "seconds": time.perf_counter() - began, "peak_mib": peak}))
"""


def repeated(source: Path, folder: Path, n_rows: int) -> None:
    """A release in ``folder``: ``n_rows`` patients of ``source``, a year older each time.

    A row that is there twice would be left out.
    """
    for name in (CONDITIONS, EVIDENCES):
        shutil.copy(source.parent / name, folder)
    head, *rows = source.read_text(encoding="utf-8-sig").splitlines()
    with (folder / "release_test_patients.csv").open("w", encoding="utf-8") as out:
        out.write(f"{head}\n")
        for i in range(n_rows):
            age, _, rest = rows[i % len(rows)].partition(",")
            out.write(f"{(int(age) + i // len(rows)) % 121},{rest}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--path",
        type=Path,
        required=True,
        help="the release's folder, or its patients as CSV",
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--n", type=int, default=171)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repeated(patients_file(asked.path), folder, asked.rows)
        size = (folder / "release_test_patients.csv").stat().st_size / 2**20
        print(
            f"{asked.rows:,} rows, {size:,.0f}"
            f" MiB\n{'':<24}{'cases':>10}{'seconds':>10}{'peak MiB':>10}"
        )
        for what, n in {"all cases": 0, f"{asked.n} picked at random": asked.n}.items():
            done = subprocess.run(
                [sys.executable, "-c", PROBE, str(folder), str(n)],
                capture_output=True,
                text=True,
                check=True,
            )
            row = json.loads(done.stdout)
            print(
                f"{what:<24}{row['cases']:>10,}{row['seconds']:>10.1f}{row['peak_mib']:>10,.0f}"
            )
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, load"
        f" {os.getloadavg()[0]:.2f}"
    )


if __name__ == "__main__":
    main()
