"""How many replies of a model can be read, by purpose: a Markdown table.

    python -m benchmarks.readable hf:smollm2 --structured

40 views of four manners (generated patients, conversations, case reports, DDXPlus in our words),
ten of each at 20 to 100 %, every purpose that any notebook asks, replies kept in ``runs/``.
"""

from __future__ import annotations

import argparse
import time

from trustlab.datasets import load_cases
from trustlab.levels import view
from trustlab.parsing.counts import KINDS
from trustlab.runs.formatted import HEADS
from trustlab.runs.trial import ask_everything
from trustlab.runs.workbench import opened
from trustlab.settings import Setup

MANNERS = ("starter", "starter-dialogue", "starter-report", "ddxplus-171")
LEVELS = (20, 40, 60, 80, 100)


def main() -> None:
    """Ask, and print."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("model")
    given.add_argument("--views", type=int, default=10, help="of each manner")
    given.add_argument("--examples", type=int, default=2)
    given.add_argument("--structured", action="store_true")
    chosen = given.parse_args()
    options = {"structured": True} if chosen.structured else {}
    setup = Setup(
        model_options=options, demonstrations=chosen.examples, samples=3, trial=False
    )
    bench = opened(setup)
    model = bench.cached(*bench.models(chosen.model))
    cases = [load_cases(name, n=chosen.views, seed=0) for name in MANNERS]
    shown = [view(case, LEVELS[i % 5]) for each in cases for i, case in enumerate(each)]
    began = time.monotonic()
    ask_everything(model, shown, bench)
    print("| " + " | ".join(["purpose", *HEADS, "share read"]) + " |")
    print("|---|" + "---|" * (len(HEADS) + 1))
    for purpose, n in model.counts.items():
        share = f"{100 * n['read'] / n['asked']:.0f} %"
        print(
            "| "
            + " | ".join([purpose, *(str(n[kind]) for kind in KINDS), share])
            + " |"
        )
    print(f"{len(shown)} views, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
