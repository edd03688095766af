"""The case study of Ren et al. 2026 (arXiv 2601.15645 v1): its printed numbers, and the same computed by our methods."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.paths import DATA
from trustlab.records import Assessment, Criterion, Evidence, Generation, Reply, TokenTrace

SOURCE = "Ren et al. 2026, arXiv 2601.15645 v1, case study"
TABLES = {"correlation": 2, "comparison": 3, "robustness": 4, "consultation": 5, "ablation": 6}
"""Name of a file in ``data/published`` -> number of the table in the paper."""
NOT_SAID = "printed without the number of answers"
CELL = ["model", "dataset", "method"]
MODELS = {"llama-3.1": "Llama-3.1", "gpt-4.1": "GPT-4.1"}
DATASETS = {"ddxplus": "DDXPlus", "meditod": "MediTOD", "medqa": "MedQA"}


@dataclass(frozen=True)
class PublishedCase:
    """What the paper prints of its example.

    ``token_probabilities`` of the answered diagnosis, ``votes`` for each distinct sampled diagnosis, ``cot_ce`` and ``medconf``
    out of 100; ``importance`` and ``support_level`` of the criteria in order. ``printed``: method -> confidence in percent.
    """

    token_probabilities: tuple[float, ...]
    votes: tuple[int, ...]
    cot_ce: float
    medconf: float
    importance: tuple[str, ...]
    support_level: tuple[str, ...]
    printed: dict[str, float]
    source: str = SOURCE

    def generation(self) -> Generation:
        """The record that our methods read. Diagnoses, criteria and amounts shown stand in for what is not carried over."""
        logprobs = np.log(self.token_probabilities)
        tokens = tuple(f"token {i}" for i in range(1, len(logprobs) + 1))
        criteria = [
            Criterion(i, f"criterion {i}", word) for i, word in enumerate(self.importance, start=1)
        ]
        evidence = tuple(
            Evidence(c, level) for c, level in zip(criteria, self.support_level, strict=True)
        )
        sampled = [
            Reply(f"diagnosis {i}") for i, n in enumerate(self.votes, start=1) for _ in range(n)
        ]
        return Generation(
            case_id="published",
            level=100,
            model="published",
            seed=0,
            n_statements=1,
            n_total=1,
            n_words=1,
            answer=Reply("diagnosis 1", TokenTrace(tokens, logprobs=logprobs)),
            samples=tuple(sampled),
            probes={"cot_ce": (Reply(f"[{self.cot_ce:g}]"),)},
            assessment=Assessment(
                "diagnosis 1", profile=tuple(criteria), evidence=evidence, score=self.medconf
            ),
        )


def published_table(name: str, as_text: bool = False) -> pd.DataFrame:
    """A table of the paper as printed: ``data/published/NAME.csv``. Large models on other patients: not to be held against ours.

    ``as_text`` leaves every cell as it stands, so that 0.140 and 0.14 differ. Raises ``ValueError`` for a name that is not in
    :data:`TABLES`.
    """
    if name not in TABLES:
        raise ValueError(f"there is no published table {name!r}; there are {', '.join(TABLES)}")
    return pd.read_csv(DATA / "published" / f"{name}.csv", dtype=str if as_text else None)


def with_printed(ours: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """``ours`` with the rows of ``printed`` under them, for a figure that shows both: ``source`` is "ours" or "printed".

    How many answers stand behind a printed number the paper does not say: ``n`` is missing, and
    ``missing`` says so.
    """
    theirs = printed.assign(source="printed", missing=NOT_SAID)
    return pd.concat([ours.assign(source="ours"), theirs], ignore_index=True)


def published_claims() -> pd.DataFrame:
    """What the paper says in words, in ours, with its figures as text: id place claim claimed relation (= < or >).

    ``claimed`` is '' where no figure is given.
    """
    return pd.read_csv(DATA / "published" / "claims.csv", dtype=str, keep_default_na=False)


def published_case() -> PublishedCase:
    """The case study's numbers as printed."""
    return PublishedCase(
        token_probabilities=(0.3204, 0.9722, 0.9999),
        votes=(10, 3, 2),
        cot_ce=60,
        medconf=30,
        importance=(
            "strong",
            "strong",
            "moderate",
            "strong",
            "moderate",
            "moderate",
            "weak",
            "weak",
        ),
        support_level=("missing", "supported", "supported", *["missing"] * 5),
        printed={"asp": 76.42, "poc": 66.67, "cot_ce": 60, "medconf": 30},
    )


def recomputed() -> pd.DataFrame:
    """The printed confidences beside ours from the same numbers: method printed recomputed how, in percent.

    NaN in ``printed``: not in the paper. NaN in ``recomputed``: the number is a model's own statement, so it is only quoted.
    """
    case = published_case()
    generation = case.generation()
    n, k = sum(case.votes), len(case.importance)
    computed = {
        "asp": f"mean of the {len(case.token_probabilities)} printed token probabilities",
        "poc": f"{max(case.votes)} of {n} samples name the same diagnosis",
        "medconf_weighted": f"fixed formula on the {k} printed criteria; not in the paper",
    }
    quoted = {
        "cot_ce": "the model's own number after reasoning",
        "medconf": "the model's own number after weighing the criteria",
    }
    rows = []
    for method in ("asp", "poc", "cot_ce", "medconf", "medconf_weighted"):
        ours = 100 * METHODS[method].score(generation) if method in computed else nan
        how = computed.get(method) or f"quoted: {quoted[method]}"
        rows.append((method, case.printed.get(method, nan), ours, how))
    return pd.DataFrame(rows, columns=["method", "printed", "recomputed", "how"])
