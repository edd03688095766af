"""What a run did, as a methods paragraph to paste, and what each method cost and bought."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from trustlab.collect import SAMPLE_NEEDS
from trustlab.confidence import METHODS, Method
from trustlab.confidence.registry import FAMILIES, readers
from trustlab.html.show import render
from trustlab.metrics import formatted, metrics_table
from trustlab.metrics.costs import UNTIMED, method_costs, pareto_table
from trustlab.metrics.estimate import MIN_CASES, most_frequent
from trustlab.paths import NOTICE
from trustlab.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOICES: dict[str, frozenset[str]] = {
    "renyi_alpha": frozenset({"answer.renyi"}),
    "pmi_weight": frozenset({"conditional_pmi", "conditional_pmi_original"}),
    "pmi_threshold": frozenset({"conditional_pmi", "conditional_pmi_original"}),
    "n_alternatives": frozenset({"alternative_entailment"}),
    "sar_temperature": frozenset({"sentence_sar", "sentence_sar_printed", "sar"}),
    "eigenvalue_cut": frozenset({"ecc"}),
    "topk_combination": frozenset({"topk_ce"}),
    "relevance_context": frozenset({"relevance", "sample_relevance"}),
    "entailment_context": frozenset({"entailment", "contradiction", "alternative_entailment"}),
}
"""Open choices of the methods, and the methods or needs, by name, that read each."""
FAMILY_WORDS = {"verbalized": "self-verbalised", "medconf": "MedConf"}
"""How the paragraph calls a family where its own name will not do."""


def methods_paragraph(run: Run, n_draws: int, seed: int) -> str:
    """What was asked of whom, and how it was computed; the intervals are those of ``n_draws`` draws
    with ``seed``.

    The run's generations are not needed.
    """
    methods = [METHODS[name] for name in run.parameters["methods"] if name in METHODS]
    return " ".join(filter(None, _sentences(run, methods, n_draws, seed)))


def _sentences(run: Run, methods: Sequence[Method], n_draws: int, seed: int) -> Iterator[str]:
    p, manifest = run.parameters, run.manifest()
    needs = frozenset(need for m in methods for need in m.needs)
    yield _asked(run.answers, p)
    yield _small(list(p["models"]))
    yield _answered(run.answers)
    yield _decoded(p, needs)
    yield _computed(p, methods, needs)
    yield from _read(p, methods, needs)
    yield f"Whether an answer is correct was decided by the grader {p['grader']!r}."
    yield _measured(run.answers, n_draws, seed)
    yield _missing(run.confidence, list(p["models"]))
    yield from (f"A caution on {line}." for line in formatted.remark_lines(p))
    made, cached = manifest["calls_made"], manifest["calls_from_cache"]
    yield (
        f"{counted(made + cached, 'model reply', 'model replies')} {_was(made + cached)} used:"
        f" {made:,} made in this run and {cached:,} taken from a cache."
    )
    versions = dict(manifest["versions"])
    yield (
        f"Computed with trustlab {versions.pop('trustlab')}"
        f" ({', '.join(f'{name} {v}' for name, v in versions.items())})."
    )
    yield NOTICE


def _asked(answers: pd.DataFrame, p: Mapping[str, Any]) -> str:
    models = [f"{name} (revision {revision})" for name, revision in p["models"].items()]
    who = f"the language {plural(len(models), 'model')} {_listed(models)}"
    cases = answers[["dataset", "case_id"]].drop_duplicates()["dataset"].value_counts(sort=False)
    of = _listed(f"{counted(int(n), 'case')} of the data set {name}" for name, n in cases.items())
    percents = f"{_listed(map(str, p['levels']))} % of a case's statements"
    shown = f"{counted(len(p['levels']), 'information level')} ({percents}, at least one)"
    each = "each at" if int(cases.sum()) > 1 else "at"
    return (
        f"We asked {who} for a diagnosis in {of}, {each} {shown}; the fingerprint of the cases is"
        f" {p['cases_sha256']}."
    )


def _small(models: Sequence[str]) -> str:
    small = [name for name in models if name.startswith("embedded")]
    if not small:
        return ""
    one = len(small) == 1
    what = (
        "is a very small model of the project's own, which knows"
        if one
        else "are very small models of the project's own, which know"
    )
    return (
        f"{_listed(small)} {what} one small world: results with {'it' if one else 'them'} say"
        " nothing about large models."
    )


def _answered(answers: pd.DataFrame) -> str:
    lost = answers["correct"].isna()
    n_lost, n_unread = int(lost.sum()), int((answers["answer"].isna() & ~lost).sum())
    parts = [f"{counted(len(answers), 'answer')} {_was(len(answers))} asked for"]
    if n_lost:
        parts.append(
            f"{n_lost:,} could not be had or graded and {'counts' if n_lost == 1 else 'count'} for"
            " nothing"
        )
    if n_unread:
        parts.append(
            f"{n_unread:,} could not be read as a diagnosis and"
            f" {'counts' if n_unread == 1 else 'count'} as wrong"
        )
    return f"{'; '.join(parts)}."


def _decoded(p: Mapping[str, Any], needs: frozenset[str]) -> str:
    k = p["n_samples"]
    own = p.get("own_temperature", ())
    but = ","
    if own:
        whose = "its" if len(own) == 1 else "their"
        but = f" (by {_listed(own)} at {whose} own default temperature, as all that follows),"
    told = [
        f"Answers were decoded greedily{but} with at most"
        f" {counted(p['max_tokens_answer'], 'token')} (seed {p['seed']})"
    ]
    if needs & SAMPLE_NEEDS:
        told.append(
            f"beside each, K = {k} {plural(k, 'sample')} came from the same prompt at temperature"
            f" {p['sample_temperature']:g}"
        )
    if "probes.p_true" in needs:
        told.append(
            f"P(True) reads {counted(k, 'reply', 'replies')} at temperature"
            f" {p['p_true_temperature']:g}"
        )
    if "panel" in needs:
        told.append(
            f"a panel of {counted(p['n_doctors'], 'doctor')} replied at temperature"
            f" {p['doctor_temperature']:g}"
        )
    return f"{'; '.join(told)}."


def _computed(p: Mapping[str, Any], methods: Sequence[Method], needs: frozenset[str]) -> str:
    names = {family: [m.name for m in methods if m.family == family] for family in FAMILIES}
    by_family = "; ".join(
        f"{FAMILY_WORDS.get(f, f)}, {len(held)}: {', '.join(held)}"
        for f, held in names.items()
        if held
    )
    n = len(methods)
    told = (
        f"On each answer, {counted(n, 'confidence method')} {_was(n)} computed, higher meaning more"
        f" confident ({by_family})"
    )
    reading = needs | {m.name for m in methods}
    chosen = [f"{name} = {p[name]}" for name, read_by in CHOICES.items() if read_by & reading]
    return f"{told}, with {', '.join(chosen)}." if chosen else f"{told}."


def _read(p: Mapping[str, Any], methods: Sequence[Method], needs: frozenset[str]) -> Iterator[str]:
    """How replies were read, and who else read: encoders, the judge of entailment, and MedConf's
    library and assessor."""
    if p["reading"] == "strict":
        yield "Replies were read in the form that was asked for alone."
    if p["reasoning_from"] == "thought" and "panel" in needs:
        yield "A doctor's thought stood in where its reply had no section of reasoning."
    reading = {reader for m in methods for reader in readers(m).split(", ")}
    if "encoder" in reading:
        yield f"Sentences were compared by the encoder {p['encoder']}."
    if "medical encoder" in reading and p["medical_encoder"]:
        yield f"Medical similarity was read by the encoder {p['medical_encoder']}."
    if "entailment" in reading:
        judge = p["entailment"]
        if judge["stand_in"]:
            yield (
                "Entailment was judged by a rule-based proxy, not by a model of natural language"
                f" inference: {judge['revision']}."
            )
        else:
            yield f"Entailment was judged by {judge['revision']}."
    if "assessment" in needs:
        m = p["medconf"]
        library = (
            f"at most {counted(m['n_passages'], 'passage')} of the library ({p['retriever']})"
            if m["retrieval"]
            else "no library"
        )
        off = [part for part in ("profile", "structure", "importance") if not m[part]]
        who = (
            _listed(f"{name} (revision {r})" for name, r in p["assessor"].items())
            if p["assessor"]
            else "the model itself"
        )
        without = f", with {_listed(off)} switched off" if off else ""
        yield f"MedConf's evidence was assessed by {who} from {library}{without}."


def _measured(answers: pd.DataFrame, n_draws: int, seed: int) -> str:
    first = (
        "AUROC takes correct answers as positive and is given over all levels together (pooled) and"
        " as the mean over the levels that hold both right and wrong answers (level-stratified)"
    )
    n_cases: Any = answers.groupby("dataset")["case_id"].nunique()
    if (n_cases < MIN_CASES).all():
        return f"{first}; with fewer than {MIN_CASES} cases in a data set, no intervals are given."
    less = (
        f" and data sets with fewer than {MIN_CASES} cases have none"
        if (n_cases < MIN_CASES).any()
        else ""
    )
    drawn = f"{counted(n_draws, 'draw')} of cases with all their levels, seed {seed}"
    return f"{first}; intervals are 95 % percentile bootstrap intervals ({drawn}){less}."


def _missing(confidence: pd.DataFrame, models: Sequence[str]) -> str:
    """How many values are missing, what a model has no value of and why, and which methods lack one
    in ten values or more."""
    gone = confidence["confidence"].isna()
    n = int(gone.sum())
    if not n:
        return "No confidence is missing."
    told = [
        f"Of {counted(len(confidence), 'confidence', 'confidences')}, {n:,}"
        f" {'is' if n == 1 else 'are'} missing"
    ]
    for model in models:
        mine = confidence[confidence["model"] == model]
        none: dict[str, list[str]] = {}
        some = []
        for method, part in mine.groupby("method", sort=False):
            share = float(part["confidence"].notna().mean())
            if not share:
                none.setdefault(most_frequent(part), []).append(str(method))
            elif share <= 0.9:
                some.append(f"{method} ({100 * share:.0f} %)")
        of = f" of {model}" if len(models) > 1 else ""
        told += [f"no value{of} for {_listed(names)}: {reason}" for reason, names in none.items()]
        if some:
            told.append(f"values{of} for only some answers: {_listed(some)}")
    return f"{'; '.join(told)}."


def plural(n: int, one: str, several: str = "") -> str:
    """The word for ``n`` of something."""
    return one if n == 1 else several or f"{one}s"


def counted(n: int, one: str, several: str = "") -> str:
    """'1 case', '2 cases'."""
    return f"{n:,} {plural(n, one, several)}"


def _was(n: int) -> str:
    return "was" if n == 1 else "were"


def _listed(words: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *first, last = list(words) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


SHOWN = {
    "purposes": "requests", "n_replies": "replies", "n_tokens_in": "tokens in",
    "n_tokens_out": "tokens out", "seconds": "seconds", "usd": "US dollars",
    "extra_replies": "replies beyond the answer", "not_counted": "not counted",
    "missing": "remarks",
}  # fmt: skip
"""Columns of the costs that are printed, and their heads; methods that cost the same share a
row."""


WIDTHS = {
    "requests": 6,
    "US dollars": 5,
    "replies beyond the answer": 6,
    "not counted": 6,
    "remarks": 7,
    "methods": 13,
}
"""Least widths of columns of words in a notebook, in em; other numbers take 3.5."""


@dataclass(frozen=True, repr=False)
class Report:
    """A methods paragraph, the table of costs, and AUROC beside them.

    ``costs`` is the table of ``method_costs``, ``pareto`` that of ``pareto_table`` (``None`` where
    the metrics hold no level-stratified AUROC). Printed, or shown in a notebook, it is the
    paragraph and the costs; :meth:`figure` draws the rest.
    """

    paragraph: str
    costs: pd.DataFrame
    pareto: pd.DataFrame | None
    families: Mapping[str, str]
    answers: pd.DataFrame
    note: str = ""
    cost_words: str = "Cost of one answer with each method alone"

    def figure(
        self, model: str | None = None, dataset: str | None = None, message: str = ""
    ) -> Axes:
        """Level-stratified AUROC of each method, by what has to be asked for it, with its caption.

        Of one model on one data set, the first ones where ``None``, under its ``message``. The
        dotted line is the best of the cheapest class. ``ValueError`` for a model or data set that
        the run does not have, and where there is no level-stratified AUROC.
        """
        # here, so that the package is imported without matplotlib
        from trustlab.plots.rows import Line, by_value, rows
        from trustlab.plots.style import caption, headline

        if self.pareto is None:
            raise ValueError("the metrics hold no level-stratified AUROC to draw by cost")
        chosen = {}
        for column, given in (("model", model), ("dataset", dataset)):
            held = list(dict.fromkeys(self.pareto[column]))
            if given is not None and given not in held:
                raise ValueError(f"{column} is {given!r}; this run has {', '.join(map(str, held))}")
            chosen[column] = held[0] if given is None else given
        part, mine = (_where(table, chosen) for table in (self.pareto, self.answers))
        part = part.sort_values("cost", kind="stable")
        bought = part[part["method"].map(self.families).ne("reference")]
        cheap = bought.loc[bought["asked"].eq(part["asked"].iloc[0]), "value"].dropna()
        lines = [Line(best, "best of the cheapest", dotted=True) for best in cheap.nlargest(1)]
        numbers = {"value": "{value:.2f}", "n": "{n:,.0f}"}
        axes = rows(
            part,
            self.families,
            groups="asked",
            order=by_value(part),
            lines=[Line(0.5, "chance 0.50"), *lines],
            columns={**numbers, part["unit"].iloc[0]: lambda line: _number(line["cost"])},
            xlabel="level-stratified AUROC, 0 to 1",
        )
        words = formatted.interval_words(part, "95 % case-bootstrap interval")
        many = self.answers["dataset"].nunique() > 1
        notes = [self.note, "costs are means over all data sets of the run" if many else ""]
        note = "; ".join(filter(None, notes))
        if message:
            headline(axes[0].figure, message)
        caption(axes[0].figure, **formatted.about(mine), interval=words, note=note)
        return axes[0]

    def __str__(self) -> str:
        """The paragraph in lines of 100 letters, and the costs of one answer, as plain text."""
        table = "\n\n".join(f"{who}\n{_plain_text(part)}" for who, part in self._printed())
        paragraph, costs = (textwrap.fill(t, 100) for t in (self.paragraph, self.cost_words))
        return "\n\n".join([paragraph, costs, table, NOTICE])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook; every word of a model's or data set's name is escaped."""
        costs = [
            (who, list(part.columns), part.itertuples(index=False)) for who, part in self._printed()
        ]
        words = {"paragraph": self.paragraph, "cost_words": self.cost_words}
        return str(render("report", **words, costs=costs, widths=WIDTHS))

    def _printed(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Model by model, who it is and the costs as words, a row for all methods that cost the
        same."""
        table = self.costs.assign(
            missing=self.costs["missing"].str.replace(rf"(; )?{UNTIMED}", "", regex=True)
        )
        kept = [name for name in SHOWN if not (table[name].isna() | table[name].eq("")).all()]
        for name in table[kept].select_dtypes("floating"):
            table[name] = table[name].map(_number)
        groups: Any = table.groupby("model", sort=False)
        for model, part in groups:
            rows = part.groupby(kept, sort=False)["method"].agg(", ".join).reset_index()
            who = f"{model}, {counted(int(part['n_answers'].iloc[0]), 'answer')}"
            yield who, rows.rename(columns={**SHOWN, "method": "methods"})


def _plain_text(table: pd.DataFrame) -> str:
    """The table with all columns starting at the left."""
    padded = table.apply(lambda column: column.str.ljust(int(column.str.len().max())))
    return "\n".join(
        line.rstrip() for line in padded.to_string(index=False, justify="left").splitlines()
    )


def report(
    run: Run,
    usd_in: float | Mapping[str, float] | None = None,
    usd_out: float | Mapping[str, float] | None = None,
    metrics: pd.DataFrame | None = None,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    cost: str = "tokens",
    prompts: str = "once",
    n_jobs: int = 1,
) -> Report:
    """The methods paragraph of ``run`` and what each of its methods cost.

    ``usd_in``, ``usd_out`` and ``prompts`` are as in ``method_costs``; ``cost`` is what the
    figure's axis counts: "replies", "tokens", "seconds" or "usd". ``metrics`` is the table of
    ``metrics_table(run)``, made here with ``n_draws`` and ``seed``, in ``n_jobs`` processes, where
    ``None``; where it is given, ``n_draws`` and ``seed`` must be those it was made with, since the
    paragraph names them. The run's generations are not needed. Raises ``ValueError`` as
    ``method_costs`` and ``pareto_table`` do.
    """
    if metrics is None:
        metrics = metrics_table(run, n_draws=n_draws, seed=seed, n_jobs=n_jobs)
    costs = method_costs(run, usd_in, usd_out, prompts)
    ranked = (metrics["metric"].eq("auroc") & metrics["level"].astype(str).eq("within")).any()
    families = {name: METHODS[name].family for name in run.parameters["methods"] if name in METHODS}
    bought = costs[costs["method"].map(families).ne("reference")]
    return Report(
        paragraph=methods_paragraph(run, n_draws, seed),
        costs=costs,
        pareto=pareto_table(bought, metrics, cost=cost) if ranked else None,
        families=families,
        answers=run.answers,
        note="; ".join(formatted.run_notes(run.parameters, families)),
        cost_words=_cost_words(costs, usd_in, usd_out, prompts),
    )


def _cost_words(costs: pd.DataFrame, usd_in: Any, usd_out: Any, prompts: str) -> str:
    """What stands over the costs: how they were counted, and at what rates."""
    told = ["Cost of one answer with each method alone, the mean over all answers asked for"]
    told.append(
        "a prompt is counted once a request"
        if prompts == "once"
        else "a prompt is counted for each of its replies"
    )
    if usd_in is not None:
        rates = [
            ", ".join(f"{m} {v:g}" for m, v in r.items()) if isinstance(r, Mapping) else f"{r:g}"
            for r in (usd_in, usd_out)
        ]
        told.append(f"US dollars for a million tokens: {rates[0]} in, {rates[1]} out")
    if costs["missing"].str.contains(UNTIMED).any():
        told.append(f"where no seconds are given, they are {UNTIMED.removeprefix('seconds ')}")
    return f"{'; '.join(told)}."


def _where(table: pd.DataFrame, chosen: Mapping[str, str]) -> pd.DataFrame:
    keep = np.logical_and.reduce([table[column].eq(value) for column, value in chosen.items()])
    return table.loc[keep]


def _number(value: float) -> str:
    """A cost with three digits that count, whole numbers as such, and a dash where it is
    missing."""
    if pd.isna(value):
        return "–"
    whole = value == round(value) or abs(value) >= 1000
    return (
        f"{value:,.0f}"
        if whole
        else np.format_float_positional(value, precision=3, fractional=False, trim="-")
    )


LONGEST_TITLE = 70


class Figures:
    """Captions and saves the figures of one notebook: ``show = tl.Figures("01", setup, run)``.

    - ``run``: whose answers captions count and whose ``parameters`` name a stand-in; ``answers`` in
      place of its own. ``models``: their order, the first has no ending in its files' names.
    - ``by_table``: a figure is of the one data set in its table, and of its model if it is one.
    - ``notes``, ``interval`` and ``facts``: what all captions say.
    - Where ``trustlab run`` executes the notebook, a link under a figure leads to its answers.
    """

    def __init__(
        self,
        number: str,
        setup: Any,
        run: Any = None,
        *,
        answers: pd.DataFrame | None = None,
        models: Sequence[str] = (),
        by_table: bool = False,
        notes: Sequence[str] = (),
        interval: str = "95 % case-bootstrap interval",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.number, self.folder, self.run = number, setup.run_dir / "figures", run
        self.answers = getattr(run, "answers", None) if answers is None else answers
        self.models, self.by_table, self.interval = models, by_table, interval
        grader = setup.judge.name if hasattr(setup, "judge") else "synonym"
        self.graded = f"graded by {grader}" if grader != "synonym" else ""
        self.notes, self.facts = list(notes), dict(facts or {})

    def __call__(
        self,
        axes: Any,
        table: pd.DataFrame,
        name: str,
        *about: Any,
        title: str = "",
        note: str = "",
        interval: str | None = None,
        answers: pd.DataFrame | None = None,
        facts: Mapping[str, Any] | None = None,
        **words: Any,
    ) -> None:
        """Caption and save a figure beside the table that it draws, under a fixed ``title``;
        ``ValueError`` above :data:`LONGEST_TITLE` characters.

        - ``about``: a model (on its first data set), a (model, data set), answers, or a run;
          without any it is about all answers. Where there are no answers, words in place of counts.
        - ``facts`` and ``words`` go to the caption.
        """
        from trustlab import plots

        run, who, where = self.run, None, None
        for one in about:
            if isinstance(one, str):
                who = one
            elif isinstance(one, tuple):
                who, where = one
            elif isinstance(one, pd.DataFrame):
                answers = one
            elif one is not None:
                run = one
        if self.by_table:
            who = table["model"].iloc[0] if table["model"].nunique() == 1 else None
            where = table["dataset"].iloc[0]
        every = run.answers if run is not self.run else self.answers
        told, ending = {"counts": who} if every is None else {}, ""
        if every is not None:
            sets, shown = (
                list(dict.fromkeys(every["dataset"])),
                every if answers is None else answers,
            )
            if who is not None:
                where = where or sets[0]
                shown, ending = shown[shown["model"].eq(who)], plots.file_ending(who, self.models)
            if where is not None:
                shown = shown[shown["dataset"].eq(where)]
                ending += plots.file_ending(where, sets)
            told = formatted.about(shown)
        parameters = getattr(run, "parameters", {})
        about_run = formatted.run_notes(parameters, table.get("method"), told.get("model"))
        notes = [note, *about_run, *self.notes]
        notes.append("*: on rows of its own" if any(table.get("own_rows", ())) else "")
        said = self.interval if interval is None else interval
        figure = (axes[0] if isinstance(axes, list | tuple) else axes).figure
        if len(title) > LONGEST_TITLE:
            raise ValueError(f"title is {title!r}; it may have at most {LONGEST_TITLE} characters")
        if title:
            plots.headline(figure, title)
        plots.caption(
            figure,
            **(told | self.facts | dict(facts or {}) | words),
            note="; ".join(filter(None, [*notes, self.graded])),
            interval=said and formatted.interval_words(table, said),
        )
        self.save(figure, table, f"{name}{ending}")

    def save(self, figure: Figure, table: pd.DataFrame, name: str) -> None:
        """Save a figure that has its caption already."""
        from trustlab import plots

        saved = plots.save_figure(figure, table, f"{self.number}_{name}", self.folder)
        if saved:
            _display(figure, saved[0])


def _display(figure: Figure, image: Path) -> None:
    """In a notebook the saved image, now, in place of the figure that the end of the cell would
    show.

    The image's metadata say its file, title and caption, and both in one (``alt``).
    """
    import matplotlib.pyplot as plt
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.display import display

    from trustlab.plots.style import words_in

    if InteractiveShell.initialized():
        title, caption = words_in(figure)
        alt = "\n".join(filter(None, [title, caption]))
        told = {"file": f"figures/{image.name}", "title": title, "caption": caption}
        pixels = b64encode(image.read_bytes()).decode("ascii")
        display({"image/png": pixels}, raw=True, metadata={"image/png": {"alt": alt}, **told})
        plt.close(figure)
