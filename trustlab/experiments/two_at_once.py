"""Two patients told as one: is a model right about either, and does its confidence notice?

No one disease fits them both. The paper's abstract claims stability under several diseases at once
and shows no experiment; this one is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.changes import merged, pairs
from trustlab.correctness import Grader, SynonymGrader, open_grader
from trustlab.differential import STRATA, Strata, differential, flatness, tertiles
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.experiments.robustness_tables import NOT_BOTH, RUN, VIEW, aurocs
from trustlab.experiments.shown import pivoted
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.levels import view
from trustlab.metrics.estimate import NAN, Rows, estimate, grouped, groups, mean
from trustlab.metrics.schema import table
from trustlab.models.base import Model
from trustlab.records import Case

ONE, TWO = "one patient", "two at once"
ABOUT = [*RUN, "method", "metric"]
NO_VIEW = "no view of this kind has a value"


@dataclass(frozen=True)
class TwoAtOnce:
    """The run over the merged ``cases``; ``pairs``: case id -> the two cases that are in it.

    ``answers["correct"]`` is 1 where an answer names either diagnosis; ``names_first`` and
    ``names_second`` say which.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    pairs: Mapping[str, tuple[Case, Case]]
    cases: tuple[Case, ...]
    run: Run


def two_at_once(
    cases: Sequence[Case],
    models: Sequence[Model],
    *asking: Any,
    seed: int = 0,
    run_dir: Path | None = None,
    **more: Any,
) -> TwoAtOnce:
    """Pair the cases, merge each pair, and ask about the merged cases as the benchmark does.

    ``asking``: the benchmark's methods, levels, samples and temperature, ``more`` its keywords. At
    level q, q % of the merged statements are shown: about as much of each patient as alone.
    ``ValueError`` without a pair.
    """
    found = [(a, b, merged(a, b, seed)) for a, b in pairs(cases, seed)]
    if not found:
        raise ValueError(f"no two of {len(cases)} cases have different diagnoses and the same sex")
    both, held = [m for *_, m in found], {m.case_id: (a, b) for a, b, m in found}
    run = benchmark(both, models, *asking, seed=seed, run_dir=run_dir, **more)
    answers = which_named(run.answers, held, open_grader(more.get("grader") or SynonymGrader()))
    return TwoAtOnce(answers, run.confidence, held, tuple(both), run)


def which_named(
    answers: pd.DataFrame, held: Mapping[str, tuple[Case, Case]], grader: Grader
) -> pd.DataFrame:
    """``answers`` with ``names_first`` and ``names_second``, and ``correct``: either of them."""
    said = [a if isinstance(a, str) else None for a in answers["answer"]]
    had = ~(answers["correct"].isna() & answers["answer"].isna())
    named = {}
    for i, column in enumerate(("names_first", "names_second")):
        grades = grader.grade(said, [held[c][i] for c in answers["case_id"]])
        right = pd.Series([g.correct for g in grades], index=answers.index, dtype=float)
        named[column] = right.where(had)
    return answers.assign(**named, correct=pd.DataFrame(named).max(axis=1, skipna=False))


def named_table(answers: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Which diagnosis the answers about merged cases name: who opens the story is told first."""
    columns = {"either": "correct", "told first": "names_first", "told second": "names_second"}
    keys, lines = [*RUN, "level"], []
    for about, part in groups(answers, keys):
        for metric, column in columns.items():
            rows = Rows.of(part, column, n_draws, seed, "no graded answer")
            lines.append(about | {"metric": metric} | estimate(rows, mean(column)))
    return table(lines, keys)


def flatness_table(
    cases: Sequence[Case], levels: Sequence[int], knowledge: Knowledge | None = None
) -> pd.DataFrame:
    """How flat the differential of each view is, in nats, or why it is ``missing``."""
    known, rows = knowledge or load_knowledge(), []
    for case, level in product(cases, levels):
        try:
            flat = flatness(differential(view(case, level).statements, known))
            rows.append((case.case_id, level, flat, ""))
        except ValueError as error:
            rows.append((case.case_id, level, NAN, str(error)))
    return pd.DataFrame(rows, columns=[*VIEW, "flatness", "missing"])


def two_at_once_table(
    singles: tuple[pd.DataFrame, pd.DataFrame], two: TwoAtOnce, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Merged against single, all levels: accuracy (of either), mean_confidence and auroc.

    - ``singles``: answers and confidence as told; only patients that are in a pair.
    - ``told``: "one patient", "two at once" or "difference" (two less one, paired: a merged case
      against the mean of its two patients at the same level; resampled by pair).
    - ``auroc`` is within level and has no difference: it is not paired.
    """
    patients = [c.case_id for pair in two.pairs.values() for c in pair]
    alone: Any = tuple(t[t["case_id"].isin(patients)] for t in singles)
    lines = []
    for told, (answers, confidence) in ((ONE, alone), (TWO, (two.answers, two.confidence))):
        lines += _means(_values(answers, confidence).assign(told=told), n_draws, seed)
        area = aurocs(answers, confidence, "within", n_draws, seed)
        lines += [line | {"told": told} for line in area]
    keys = [*ABOUT, *VIEW]
    change, one = _values(two.answers, two.confidence), _values(*alone).set_index(keys)["value"]
    halves = 0
    for i in (0, 1):
        theirs = change.assign(case_id=[two.pairs[c][i].case_id for c in change["case_id"]])
        halves += one.reindex(pd.MultiIndex.from_frame(theirs[keys])).to_numpy() / 2
    change = change.assign(told="difference", value=change["value"] - halves)
    return table([*lines, *_means(change, n_draws, seed)], [*RUN, "method", "told"], ["n_rarer"])


def strata_table(
    singles: tuple[pd.DataFrame, pd.DataFrame],
    two: TwoAtOnce,
    cases: Sequence[Case],
    level: int,
    knowledge: Knowledge | None = None,
    n_draws: int = 2000,
    seed: int = 0,
) -> tuple[pd.DataFrame, Strata | None]:
    """Accuracy and mean confidence at one level by how flat the differential is; the cut points.

    - One level alone, for the less is told the flatter a differential is: across levels the strata
      would be the levels.
    - The cut points are the thirds of the views of ``cases`` and of the merged cases, taken
      together: a ``stratum`` (clear, middle or flat) holds views that are about as flat.
    - Views without a known finding are in none; with fewer than three views that have one the table
      is empty and the cut points ``None``.
    """
    keys = [*RUN, "method", "told", "stratum"]
    flat = pd.concat([flatness_table(some, [level], knowledge) for some in (cases, two.cases)])
    try:
        cuts = tertiles(list(flat["flatness"]))
    except ValueError:
        return table([], keys), None
    stratum = flat.set_index(VIEW)[["flatness"]].map(cuts.of).set_axis(["stratum"], axis=1)
    one, both = _values(*singles), _values(two.answers, two.confidence)
    values = pd.concat([one.assign(told=ONE), both.assign(told=TWO)])
    placed = values[values["level"] == level].join(stratum, on=VIEW)
    lines = []
    for about, part in groups(placed, [*ABOUT, "told"]):
        for which in STRATA:
            rows = Rows.of(part[part["stratum"] == which], "value", n_draws, seed, NO_VIEW)
            lines.append(about | {"stratum": which} | estimate(rows, mean("value")))
    return table(lines, keys), cuts


def strata_cells(strata: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`strata_table` to read, in percent: a column a stratum, interval and n."""
    ends = strata[["value", "low", "high"]].astype(float) * 100
    named = strata.assign(method=strata["method"].replace("", "accuracy"), **ends)
    keys = [*RUN, "method", "told"]
    found: Any = pivoted(named, keys, "stratum", 0, counted=True)
    return found.sort_values(keys[:3], kind="stable", ignore_index=True)[[*keys, *STRATA]]


def _values(answers: pd.DataFrame, confidence: pd.DataFrame) -> Any:
    """A row a value, case_id level value and :data:`ABOUT`: accuracy, then each confidence."""
    right = answers.assign(method="", metric="accuracy", value=answers["correct"].astype(float))
    sure = confidence.assign(metric="mean_confidence", value=confidence["confidence"])
    return pd.concat([part[[*ABOUT, *VIEW, "value"]] for part in (right, sure)])


def _means(values: pd.DataFrame, n_draws: int, seed: int) -> Iterator[dict[str, Any]]:
    held = grouped(values, [*ABOUT, "told"], "value", n_draws=n_draws, seed=seed, none=NOT_BOTH)
    for about, rows in held:
        yield about | estimate(rows, mean("value"))
