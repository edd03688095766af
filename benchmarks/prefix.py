"""What a server's prefix cache saves, by the order of the questions: ``python -m benchmarks.prefix
--url http://127.0.0.1:8000/v1 --model NAME``.

The starter benchmark is asked of a vLLM server again and again, in parts of so many views; of the
server's own counters (``/metrics``) it tells which share of the prompts' tokens was in its cache.
Each round has a seed of its own, so that it finds nothing of the last one's in the server's cache.
"""

from __future__ import annotations

import argparse
import re
import time
import urllib.request

import trustlab as tl
from trustlab.runs import experiment

COUNTERS = ("prefix_cache_queries", "prefix_cache_hits")


def counters(url: str) -> list[float]:
    """Tokens of prompts that were looked up in the prefix cache, and found there, so far."""
    with urllib.request.urlopen(
        url.removesuffix("/v1") + "/metrics", timeout=60
    ) as answer:
        text = answer.read().decode()
    return [
        sum(
            float(n)
            for n in re.findall(
                rf"^vllm:{name}(?:_total)?{{[^}}]*}} (\S+)$", text, re.M
            )
        )
        for name in COUNTERS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--parts", type=int, nargs="+", default=[10**9, 600, 60, 6])
    parser.add_argument("--methods", default="paper")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=32)
    options = parser.parse_args()
    cases = tl.load_cases("starter", n=options.cases)
    how = {"base_url": options.url, "concurrency": options.concurrency}
    model = tl.open_model(f"openai:{options.model}", **how)
    print(
        "| views a part | prompt tokens | found in the cache | share | seconds |\n"
        + "|---" * 5
        + "|"
    )
    for size in options.parts:
        experiment.PART = size
        before, began = counters(options.url), time.perf_counter()
        # A patient of another name: no round begins with what another left.
        again = [
            tl.Case(
                c.case_id, c.dataset,
                (tl.Statement(f"Patient: I am patient {size}-{k}."), *c.statements),
                c.diagnosis, c.accepted,
            )
            for k, c in enumerate(cases)
        ]  # fmt: skip
        setup = tl.Setup(cache=":memory:", quiet=True, samples=options.samples)
        tl.benchmark(again, [model], options.methods, setup=setup)
        seconds = time.perf_counter() - began
        asked, found = (
            b - a for a, b in zip(before, counters(options.url), strict=True)
        )
        share = found / asked if asked else float("nan")
        shown = "all" if size >= 10**9 else f"{size:,}"
        print(
            f"| {shown} | {asked:,.0f} | {found:,.0f} | {share:.0%} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
