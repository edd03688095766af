"""Can published numbers belong together? And the printed numbers that notebooks show beside ours.

Correlations with their p-values, means with the number they are of; the tables of Ren et al. 2026
(arXiv 2601.15645 v1), from ``data/published``, and its case study computed by our methods.
"""

# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy.stats import t as student

from trustlab.confidence import METHODS
from trustlab.metrics.correlation import (
    MAX_EXACT,
    MAX_TIED,
    pearson_p,
    spearman_exact_p,
    spearman_values,
)
from trustlab.metrics.significance import benjamini_hochberg, holm
from trustlab.paths import DATA
from trustlab.records import Assessment, Criterion, Evidence, Generation, Reply, TokenTrace

NEEDED = ("value", "statistic", "p_printed", "n")
STATISTICS = ("pearson", "spearman")
FOUND = (
    "p_t", "p_low", "p_high", "p_exact", "fits", "apart", "value_of_p", "fits_n", "p_holm", "p_bh",
    "attainable", "nearest", "sign", "reason",
)  # fmt: skip
"""Columns that the audit adds."""
WORDS = ("fits", "fits_n", "attainable", "nearest", "sign", "reason")
"""Those that hold words; the others hold numbers."""
ALLOWED_P = (
    "a number from 0 to 1, text such as '0.04', '<0.001', '<=0.05' or '>0.05', 'n.s.' (above"
    " alpha), or missing"
)
SIGNS = {"": "=", "=": "=", "<": "<", "<=": "<=", "≤": "<=", ">": ">", ">=": ">=", "≥": ">="}
NEAR = 1e-9
"""Closer than this is equal up to the computer's own rounding."""


@dataclass(frozen=True)
class Printed:
    """A number as printed: ``half`` is half a unit of its last digit, ``sign`` one of = < <= > >=,
    ``text`` what stands there."""

    number: float
    half: float
    sign: str = "="
    text: str = ""

    @property
    def missing(self) -> bool:
        """Whether no number stands there."""
        return math.isnan(self.number)


GONE = Printed(math.nan, math.nan)


def audit_correlations(
    table: pd.DataFrame,
    alpha: float = 0.05,
    rounding: float = 0.0005,
    family: str | Sequence[str] | None = None,
) -> pd.DataFrame:
    """Each printed correlation with its p-value recomputed: do value, p and number of points fit
    each other?

    ``table`` has the columns ``value`` (-1 to 1), ``statistic`` ("pearson" or "spearman"),
    ``p_printed`` (a number, text such as "<=0.05" or "n.s.", or missing) and ``n`` (points); others
    are kept as labels. Give numbers as text ("0.140") where the zeros at their end count: the
    digits that stand there say how far a number was rounded, of a float its shortest form. No value
    is taken to be more exact than ``rounding``. Returns the rows of ``table`` in their order and
    with their index, and

    - ``p_t``: two-sided p of the t-test with n - 2 degrees of freedom (for Spearman the usual
      approximation); ``p_low`` and ``p_high``: the smallest and largest that a value rounded so can
      have;
    - ``p_exact``: Spearman up to 8 points, the share of all orders without ties that are as far
      from 0. Pearson's needs the data;
    - ``fits``: the test that the printed p fits within rounding of both: "t", "exact", "t and
      exact", else "one-sided t" (half of it), else "neither"; '' where there is nothing to compare.
      ``apart``: how far the printed p lies outside of what the nearer two-sided test allows, 0
      where it fits;
    - where it does not fit and is a number: ``value_of_p``, the absolute value that would have the
      printed p at this n by the t-test, and ``fits_n``, the numbers of points at which the printed
      p would fit the value ('' where there is none);
    - ``p_holm`` and ``p_bh``: ``p_t`` corrected over all rows, or over those alike in the columns
      ``family`` (Holm 1979; Benjamini & Hochberg 1995);
    - ``attainable``, Spearman only: can n points have this value after rounding? "yes", "only with
      ties", "no", or "not without ties" above 7 points, where ties are not tried. ``nearest``: the
      attainable values below and above, without ties, where not;
    - ``sign``: "negative" below 0; ``reason``: why something could not be computed.

    Raises ``ValueError`` for a lacking column or a cell that is not allowed, with its row, column
    and value.

    >>> import pandas as pd, trustlab as tl
    >>> rows = [("A", "pearson", "0.90", "0.04", 6), ("B", "spearman", "0.75", "<0.05", 6)]
    >>> mine = pd.DataFrame(rows, columns=["method", "statistic", "value", "p_printed", "n"])
    >>> seen = ["method", "p_t", "p_exact", "fits_n", "attainable", "fits"]
    >>> tl.audit_correlations(mine)[seen].round(3)
      method    p_t  p_exact fits_n      attainable         fits
    0      A  0.014      NaN      5                      neither
    1      B  0.086    0.103         only with ties  one-sided t
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1; received {alpha}")
    if not 0 <= rounding < 1:
        raise ValueError(f"rounding must lie from 0 to below 1; received {rounding}")
    if lacking := [name for name in NEEDED if name not in table.columns]:
        raise ValueError(
            f"the table has the columns {list(table.columns)}; it lacks {lacking}, of"
            f" {list(NEEDED)}"
        )
    if taken := [name for name in FOUND if name in table.columns]:
        raise ValueError(f"the audit makes the columns {taken} itself; rename yours")
    groups = [family] if isinstance(family, str) else list(family or [])
    if unknown := [name for name in groups if name not in table.columns]:
        raise ValueError(f"family names {unknown}; the table has the columns {list(table.columns)}")
    cells = zip(table.index, *(table[name] for name in NEEDED), strict=True)
    rows = [_audited(*_read(*row, alpha=alpha, rounding=rounding)) for row in cells]
    found = pd.DataFrame(rows, index=table.index, columns=list(FOUND)).astype(
        dict.fromkeys(("p_t", "apart"), float)
    )
    together = pd.concat([table, found], axis=1)
    each = (
        together.groupby(groups, dropna=False)["p_t"]
        if groups
        else together.groupby(np.zeros(len(together), int))["p_t"]
    )
    return together.assign(p_holm=each.transform(holm), p_bh=each.transform(benjamini_hochberg))


def fitting_points(
    value: str | float, p_printed: str | float, points: Sequence[int], rounding: float = 0.0005
) -> list[int]:
    """Those numbers of points, each at least 3, over which a printed p fits a printed correlation
    by the two-sided t-test.

    Cells and rounding as in :func:`audit_correlations`, whose errors it raises; none where either
    is missing.
    """
    number, _, p, _ = _read(0, value, "pearson", p_printed, None, alpha=0.05, rounding=rounding)
    return [] if number.missing or p.missing else _fitting(number, p, points)


def attainable_n(
    means: Sequence[str | float],
    max_n: int = 200,
    decimals: int | None = None,
    step: int = 1,
    exactly: bool = False,
) -> list[int]:
    """Every n up to ``max_n`` over which all the printed ``means`` of whole numbers can be taken at
    once. Brown & Heathers 2017.

    A mean over n is a total by n, the total a whole number and a multiple of ``step`` (2 where
    things are counted in pairs). ``decimals`` were printed; None counts them in each mean, of text
    with its zeros. ``exactly``: as if nothing had been rounded. Percentages go in as shares ("0.36"
    of 36 %). Raises ``ValueError`` for no means, a mean that is not a finite number, ``max_n`` or
    ``step`` below 1 or negative ``decimals``.
    """
    if not len(means) or max_n < 1 or step < 1 or (decimals is not None and decimals < 0):
        given = f"{len(means)} means, max_n {max_n}, decimals {decimals}, step {step}"
        raise ValueError(
            "at least one mean, max_n and step of at least 1, decimals of at least 0 are needed;"
            f" received {given}"
        )
    printed = [_number(mean) for mean in means]
    for mean, one in zip(means, printed, strict=True):
        if one is None or not math.isfinite(one.number):
            raise ValueError(f"means must be finite numbers; received {mean!r}")
    halves = [
        0.0 if exactly else 0.5 * 10.0**-decimals if decimals is not None else one.half
        for one in printed
        if one
    ]
    values = np.array([one.number for one in printed if one])
    n = np.arange(1, max_n + 1)[:, None]
    nearest = step * np.round(values * n / step) / n
    return [int(k) for k in n[(np.abs(nearest - values) <= np.array(halves) + NEAR).all(axis=1), 0]]


def _audited(value: Printed, statistic: str, p: Printed, n: int | None) -> dict[str, Any]:
    """One row's findings, but for what is corrected over the family."""
    found: dict[str, Any] = {name: "" if name in WORDS else math.nan for name in FOUND}
    found["sign"] = "negative" if value.number < 0 else ""
    if value.missing or n is None or n < 3:
        why = (
            "no value"
            if value.missing
            else "no number of points"
            if n is None
            else "fewer than 3 points"
        )
        return found | {"reason": why}
    low, high = map(float, _p_range(value, n))
    found |= {"p_t": pearson_p(value.number, n), "p_low": low, "p_high": high}
    allowed, reasons = {"t": (low, high)}, []
    if statistic == "spearman":
        found["attainable"], found["nearest"] = _attainable(value, n)
        if n <= MAX_EXACT:
            found["p_exact"] = exact = spearman_exact_p(value.number, n, value.half)
            allowed["exact"] = (exact, exact)
        else:
            reasons.append(f"no exact p above {MAX_EXACT} points")
    if p.missing:
        return found | {"reason": "; ".join([*reasons, "no printed p"])}
    gaps = {test: _gap(p, *limits) for test, limits in allowed.items()}
    fitting = [test for test, gap in gaps.items() if gap <= NEAR]
    halved = _gap(p, low / 2, high / 2) <= NEAR
    found["fits"] = " and ".join(fitting) or ("one-sided t" if halved else "neither")
    found["apart"] = 0.0 if fitting else min(gaps.values())
    if not fitting and p.sign == "=":
        found |= {"value_of_p": _value_of(p.number, n), "fits_n": _fitting_n(value, p, n)}
    return found | {"reason": "; ".join(reasons)}


def _p_range(value: Printed, n: Any) -> tuple[Any, Any]:
    """Smallest and largest two-sided p of the t-test over ``n`` points (one or many) that a value
    rounded so can have."""
    size = abs(value.number)
    return _p_t(min(size + value.half, 1.0), n), _p_t(max(size - value.half, 0.0), n)


def _p_t(size: float, n: Any) -> Any:
    """As :func:`~trustlab.metrics.correlation.pearson_p`, of one value for many numbers of
    points."""
    free = np.asarray(n) - 2
    return (
        2 * student.sf(size * np.sqrt(free / (1 - size * size)), free)
        if size < 1
        else np.zeros(free.shape)
    )


def _gap(p: Printed, low: float, high: float) -> float:
    """How far the printed p lies from the range ``low`` to ``high``; 0 inside."""
    if p.sign in ("<", "<="):
        outside = low - p.number
        return max(outside, 2 * NEAR) if outside > 0 or (p.sign == "<" and outside == 0) else 0.0
    if p.sign in (">", ">="):
        outside = p.number - high
        return max(outside, 2 * NEAR) if outside > 0 or (p.sign == ">" and outside == 0) else 0.0
    return max(low - p.number - p.half, p.number - p.half - high, 0.0)


def _attainable(value: Printed, n: int) -> tuple[str, str]:
    """Whether a rank correlation of ``n`` points can be rounded to ``value``, and its neighbours
    where not."""
    plain = spearman_values(n)
    if np.min(np.abs(plain - value.number)) <= value.half + NEAR:
        return "yes", ""
    beside = [*plain[plain < value.number][-1:], *plain[plain > value.number][:1]]
    nearest = ", ".join(f"{one + 0.0:.3f}" for one in beside)
    if n > MAX_TIED:
        return "not without ties", nearest
    tied = np.min(np.abs(spearman_values(n, ties=True) - value.number)) <= value.half + NEAR
    return ("only with ties" if tied else "no"), nearest


def _value_of(p: float, n: int) -> float:
    """The absolute correlation of ``n`` points whose two-sided t-test gives ``p``."""
    if p == 0:
        return 1.0
    t = float(student.isf(p / 2, n - 2))
    return t / math.sqrt(n - 2 + t * t)


def _fitting_n(value: Printed, p: Printed, n: int) -> str:
    """The numbers of points up to 30 or twice n at which the printed p fits: one, a span or ''."""
    fitting = _fitting(value, p, range(3, max(2 * n, 30) + 1))
    if not fitting:
        return ""
    return (
        f"{fitting[0]}" if len(fitting) == 1 else f"{fitting[0]} to {fitting[-1]}"
    )  # p falls with n, so they are consecutive


def _fitting(value: Printed, p: Printed, points: Sequence[int]) -> list[int]:
    """Those of ``points`` over which the printed p fits the value by the t-test."""
    limits = zip(*_p_range(value, points), strict=True)
    return [
        int(k) for k, (low, high) in zip(points, limits, strict=True) if _gap(p, low, high) <= NEAR
    ]


def _read(
    row: Any, value: Any, statistic: Any, p_printed: Any, n: Any, *, alpha: float, rounding: float
) -> tuple[Printed, str, Printed, int | None]:
    """The cells of one row, checked."""
    number = GONE if _absent(value) else _number(value)
    if number is None or (not _absent(value) and not -1 <= number.number <= 1):
        raise _refused(row, "value", value, "a number from -1 to 1, as text or not, or missing")
    name = str(statistic).strip().lower()
    if name not in STATISTICS:
        raise _refused(row, "statistic", statistic, " or ".join(map(repr, STATISTICS)))
    p = _read_p(p_printed, alpha)
    if p is None:
        raise _refused(row, "p_printed", p_printed, ALLOWED_P)
    count = GONE if _absent(n) else _number(n)
    if count is None or not (count.missing or (count.number >= 1 and count.number.is_integer())):
        raise _refused(row, "n", n, "a whole number of points, at least 1, or missing")
    least = (
        Printed(number.number, max(number.half, rounding), text=number.text)
        if not number.missing
        else GONE
    )
    return least, name, p, None if count.missing else int(count.number)


def _read_p(cell: Any, alpha: float) -> Printed | None:
    """A printed p; None where the cell is not allowed."""
    if _absent(cell):
        return GONE
    text = str(cell).strip().lower().replace(" ", "")
    if text in ("ns", "n.s."):
        return Printed(alpha, 0.0, ">", text)
    parts = re.fullmatch(r"p?(<=|>=|[=<>≤≥]?)(.+)", text)
    number = _number(parts[2]) if parts else None
    if parts is None or number is None or not 0 <= number.number <= 1:
        return None
    return Printed(number.number, number.half, SIGNS[parts[1]], text)


def _number(cell: Any) -> Printed | None:
    """A number with half a unit of its last digit (a whole one with that of a third decimal); None
    for anything else."""
    if isinstance(cell, (bool, np.bool_)):
        return None
    text = (
        (repr(float(cell)) if isinstance(cell, (float, np.floating)) else str(cell))
        .strip()
        .replace("−", "-")
    )
    if isinstance(cell, (float, np.floating)) and text.endswith(".0"):
        text = text[:-2]  # a float's own zero says nothing of what was printed
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return None
    if not exact.is_finite():
        return None
    last = min(int(exact.as_tuple().exponent), 0)
    return Printed(float(exact), 0.5 * 10.0**last if last else 0.0005, text=text)


def _absent(cell: Any) -> bool:
    return (
        cell is None
        or cell is pd.NA
        or (isinstance(cell, (float, np.floating)) and math.isnan(cell))
        or str(cell).strip() == ""
    )


def _refused(row: Any, column: str, value: Any, allowed: str) -> ValueError:
    return ValueError(f"row {row!r}, column {column!r}: received {value!r}; allowed is {allowed}")


TABLES = {"correlation": 2, "comparison": 3, "robustness": 4, "consultation": 5, "ablation": 6}
"""Name of a file in ``data/published`` -> number of the table in the paper."""
NOT_SAID = "printed without the number of answers"
CELL = ["model", "dataset", "method"]
MODELS = {"llama-3.1": "Llama-3.1", "gpt-4.1": "GPT-4.1"}
DATASETS = {"ddxplus": "DDXPlus", "meditod": "MediTOD", "medqa": "MedQA"}


@dataclass(frozen=True)
class PublishedCase:
    """What the paper prints of its example.

    ``token_probabilities`` of the answered diagnosis, ``votes`` for each distinct sampled
    diagnosis, ``cot_ce`` and ``medconf`` out of 100; ``importance`` and ``support_level`` of the
    criteria in order. ``printed``: method -> confidence in percent.
    """

    token_probabilities: tuple[float, ...]
    votes: tuple[int, ...]
    cot_ce: float
    medconf: float
    importance: tuple[str, ...]
    support_level: tuple[str, ...]
    printed: dict[str, float]
    source: str

    def generation(self) -> Generation:
        """The record that our methods read. Diagnoses and amounts shown stand in for what is not
        carried over; what the criteria say is ''."""
        logprobs = np.log(self.token_probabilities)
        tokens = tuple(f"token {i}" for i in range(1, len(logprobs) + 1))
        criteria = [Criterion(i, "", word) for i, word in enumerate(self.importance, start=1)]
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
    """A table of the paper as printed: ``data/published/NAME.csv``. Large models on other patients:
    not to be held against ours.

    ``as_text`` leaves every cell as it stands, so that 0.140 and 0.14 differ. Raises ``ValueError``
    for a name that is not in :data:`TABLES`.
    """
    if name not in TABLES:
        raise ValueError(f"there is no published table {name!r}; there are {', '.join(TABLES)}")
    return pd.read_csv(DATA / "published" / f"{name}.csv", dtype=str if as_text else None)


def with_printed(ours: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """``ours`` with the rows of ``printed`` under them, for a figure that shows both: ``source`` is
    "ours" or "printed".

    How many answers stand behind a printed number the paper does not say: ``n`` is missing, and
    ``missing`` says so.
    """
    theirs = printed.assign(source="printed", missing=NOT_SAID)
    return pd.concat([ours.assign(source="ours"), theirs], ignore_index=True)


def published_claims() -> pd.DataFrame:
    """What the paper says in words, in ours, with its figures as text, and how each is had again.

    Columns id place claim claimed relation (= < or >) expression slack source; ``claimed`` is ''
    where no figure is given.
    """
    return pd.read_csv(DATA / "published" / "claims.csv", dtype=str, keep_default_na=False)


def published_case() -> PublishedCase:
    """The case study's numbers as printed: ``data/published/case.yml``."""
    kept = yaml.safe_load((DATA / "published" / "case.yml").read_text(encoding="utf-8"))
    importance, support_level = zip(*kept.pop("criteria"), strict=True)
    lists = {name: tuple(kept.pop(name)) for name in ("token_probabilities", "votes")}
    return PublishedCase(**lists, **kept, importance=importance, support_level=support_level)


def recomputed() -> pd.DataFrame:
    """The printed confidences beside ours from the same numbers: method printed recomputed how, in
    percent.

    NaN in ``printed``: not in the paper. NaN in ``recomputed``: the number is a model's own
    statement, so it is only quoted.
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
