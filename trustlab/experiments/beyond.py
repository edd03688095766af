"""What becomes of accuracy and confidence where a model is out of the world it was taught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from trustlab.metrics.estimate import Rows, mean, measure
from trustlab.metrics.schema import table

if TYPE_CHECKING:
    from trustlab.experiments.benchmark import Run


def beyond_table(
    runs: Mapping[str, Run], methods: Sequence[str], n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """By ``set`` of cases: accuracy (``method`` ''), and each method's mean confidence, 0 to 1.

    One model and one level a run; each value counts the answers behind itself.
    """
    lines = []
    for name, run in runs.items():
        right = run.answers.assign(method="", confidence=run.answers["correct"].astype(float))
        columns = ["case_id", "method", "confidence", "missing"]
        values = pd.concat([right.assign(missing="no answer")[columns], run.confidence[columns]])
        for method in ("", *methods):
            held: Any = values[values["method"] == method]
            metric = {"mean_confidence" if method else "accuracy": mean("confidence")}
            about = {"set": name, "method": method}
            lines += measure([(about, Rows.of(held, "confidence", n_draws, seed))], metric)
    return table(lines, ["set", "method"])
