"""What the first cell of each notebook says of the reference run: three bullets, every number from
the committed tables.

Words stand here, numbers do not: each is put in from ``figures/`` (or from what the committed
notebook printed), so that a test can hold the cells to them. ``make same-keep`` writes the bullets
into the notebooks after a publication, and a sentence of each into the README.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from trustlab.paths import DATA, FIGURES, ROOT
from trustlab.run_notebooks import notebook_path

BRACKETS = "; brackets are 95 % intervals over cases"
HEADING = f"**The finding** (of the reference run{BRACKETS})."
Bullets = list[str]


def table(name: str) -> pd.DataFrame:
    """A committed table, by its place in ``figures/``."""
    return pd.read_csv(FIGURES / f"{name}.csv", keep_default_na=False, na_values=["", "nan", "NaN"])


def rows(found: pd.DataFrame, **where: object) -> pd.DataFrame:
    """The rows that hold these values; ``AssertionError`` where there is none."""
    for column, value in where.items():
        found = found[found[column].isin(value if isinstance(value, list) else [value])]
    assert len(found), f"no row with {where}"
    return found


def row(found: pd.DataFrame, **where: object) -> pd.Series:
    """The only row that holds these values."""
    chosen = rows(found, **where)
    assert len(chosen) == 1, f"{len(chosen)} rows with {where}"
    return chosen.iloc[0]


def printed(name: str, cell_id: str) -> str:
    """What a cell of the committed notebook printed as text."""
    cells = json.loads(notebook_path(name).read_text(encoding="utf-8"))["cells"]
    (outputs,) = [cell["outputs"] for cell in cells if cell.get("id") == cell_id]
    return "".join("".join(o["text"]) for o in outputs if o.get("name") == "stdout")


def shown(name: str, cell_id: str, n: int = 1) -> pd.DataFrame:
    """The ``n``-th thing that a cell of the reference run showed, in full precision, as ``make
    same`` keeps it."""
    with lzma.open(
        DATA / "replies" / "tables" / f"{name}.json.xz", "rt", encoding="utf-8"
    ) as lines:
        (columns,) = [kept for of, kept in map(json.loads, lines) if of == f"cell {cell_id} #{n}"]
    return pd.DataFrame(dict(columns))


def of_first(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first data set in a table of several."""
    return found[found["dataset"].eq(found["dataset"].iloc[0])]


def number(text: str) -> float:
    """The first number of a table's text, such as "-0.03 [-0.10, 0.00]" or "< 0.001"; NaN for
    "–"."""
    found = re.search(r"[-+]?\d+(?:\.\d+)?", text.replace("−", "-"))
    return float(found[0]) if found else float("nan")


def pct(share: float) -> str:
    """A share in whole percent."""
    return f"{100 * share:.0f}"


def span(values: pd.Series, form: Callable[[float], str]) -> str:
    """The smallest to the largest of the values, or the one that all are."""
    low, high = form(values.min()), form(values.max())
    return low if low == high else f"{low} to {high}"


def value(found: pd.Series, name: str = "value", scale: float = 1, sign: str = "") -> str:
    """A value with its interval in brackets; without one, just the value."""
    places = 0 if scale == 100 else 2
    numbers = [scale * found[c] for c in (name, "low", "high")]
    text = [f"{round(n, places) + 0.0:{sign}.{places}f}" for n in numbers]
    return text[0] if np.isnan(numbers[1:]).any() else f"{text[0]} [{text[1]}, {text[2]}]"


def named(words: list[str]) -> str:
    """Several names as a sentence has them."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(n: int, one: str, several: str) -> str:
    """'No' or a number, with the noun."""
    return f"{n or 'none'} {one if n == 1 or not n else several}"


def benchmark() -> Bullets:
    """Accuracy, the pooled trap and the level correlations; the order of the methods; what being
    too sure does to it."""
    metrics = table("reference/01_benchmark/metrics")
    sets = list(dict.fromkeys(metrics["dataset"]))
    accuracy = metrics[metrics["metric"].eq("accuracy") & metrics["level"].str.isdigit()]
    mine = rows(accuracy, model="embedded", dataset=sets[0]).sort_values(
        "level", key=lambda s: s.astype(int)
    )
    ceiling = rows(table("01_confidence_and_accuracy"), metric="bayes_optimal_accuracy")
    ceiling = ceiling.sort_values("level", key=lambda s: s.astype(int))["value"]
    auroc = rows(metrics, metric="auroc", dataset=sets[0], model="embedded")
    level = auroc.set_index(["method", "level"]).sort_index()

    def within(method: str) -> str:
        return value(level.loc[(method, "within")])

    best = rows(shown("01_benchmark", "1219a1f9"), model="embedded")
    ahead = [
        f"{signed(one['difference'].split()[0])} {signed(one['whoever is best'])}"
        f" ({plots_label(one['method'])})"
        for _, one in best.iterrows()
        if number(one["whoever is best"]) > 0
    ]
    compared = rows(table("01_compared"), level="within")
    n_hold = int((compared["p_holm"] < 0.05).sum())
    found = table("01_level_correlations")
    found = found[
        found["metric"].eq("pearson") & found["value"].notna() & found["chance_low"].notna()
    ]
    inside = int(found["value"].between(found["chance_low"], found["chance_high"]).sum())
    above = int((found["value"] > found["chance_high"]).sum())
    band, told = found.iloc[0], rows(found, method="information_level").iloc[0]
    elsewhere = accuracy[
        accuracy["dataset"].isin(sets[1:]) & accuracy["level"].eq(mine["level"].iloc[-1])
    ]
    return [
        (
            f"On {mine['n_cases'].iloc[0]} generated patients the accuracy of `embedded` rises from"
            f" {pct(mine['value'].iloc[0])} % at one statement to {pct(mine['value'].iloc[-1])} %"
            f" when all is told; the best possible answer would be right for {pct(ceiling.iloc[0])}"
            f" and {pct(ceiling.iloc[-1])} %. Pooled over levels, merely knowing *how much was"
            f" told* already reaches an AUROC of"
            f" {value(level.loc[('information_level', 'pooled')])}; compared within a level it"
            f" falls to {within('information_level')}. Of {len(found)} Pearson correlations of"
            f" accuracy and mean confidence over the levels, {inside} lie within what an unrelated"
            f" rising confidence gives beside these accuracies ({band['chance']:.2f}"
            f" [{band['chance_low']:.2f}, {band['chance_high']:.2f}]), {above} above it;"
            f' "information level" has {told["value"]:.2f}.'
        ),
        "Level-stratified (mean AUROC over levels): the exact chance of its answers"
        f" {within('exact_posterior')}, the probability of the whole diagnosis"
        f" {within('sequence_probability')}, mean token probability (ASP)"
        f" {within('asp')}, agreement of samples (PoC) {within('poc')}, MedConf"
        f" {within('medconf')}, P(True) {within('p_true')}, an elicited score (CE) {within('ce')}."
        " Against MedConf on the same answers, with the best re-selected in each draw, "
        + (
            f"ahead are the best of {counted(len(ahead), 'family', 'families')}: {named(ahead)}"
            if ahead
            else "no family's best is ahead"
        )
        + f"; of {len(compared)} single comparisons {counted(n_hold, 'holds', 'hold')} after Holm's"
        " correction.",
        _too_sure(sets) + " On what was not generated the three models are right for"
        f" {span(elsewhere['value'], pct)} % of {span(elsewhere['n'], '{:.0f}'.format)} cases when"
        " all is told.",
    ]


SETS = {
    "starter": "generated patients", "starter-dialogue": "conversations",
    "starter-report": "reports", "ddxplus": "DDXPlus patients",
}  # fmt: skip


def _too_sure(sets: list[str]) -> str:
    """What became of the probability of the diagnosis, and of its place beside MedConf, when the
    same model was made too sure."""
    off = shown("01_benchmark", "turn-code").set_index(["model", "dataset"])
    off = off[f"ECE, {plots_label('sequence_probability')}"]
    turned = table("01_turned").set_index(["model", "method", "dataset"]).sort_index()
    held = [name for name in sets if name in turned.index.get_level_values("dataset")]
    before, after = (
        turned.loc[(who, "sequence_probability")].reindex(held)
        for who in ("embedded", "embedded-overconfident")
    )
    both = before["difference"].notna() & after["difference"].notna()
    n_turned = int((both & (before["difference"] > 0) & (after["difference"] < 0)).sum())
    n_sure = int((both & (before["low"] > 0) & (after["high"] < 0)).sum())

    def errors(who: str) -> str:
        return named([f"{number(off[who, d]):.2f}" for d in sets])

    def gaps(part: pd.DataFrame) -> str:
        return named([value(one, "difference", sign="+") for _, one in part[both].iterrows()])

    return (
        "Made too sure, the same model's probability of its diagnosis is off by an ECE of"
        f" {errors('embedded-overconfident')} on"
        f" {named([SETS.get(name, name) for name in sets])} (`embedded`:"
        f" {errors('embedded')}). Its AUROC less MedConf's is then"
        f" {gaps(after)}, and before it was"
        f" {gaps(before)}: the order of the two turns on"
        f" {n_turned or 'none'} of {int(both.sum())} sets of cases"
        + (f", {n_sure or 'none'} of them beyond chance." if n_turned else ".")
    )


def signed(text: str) -> str:
    """A text with the sign of each of its decimal numbers."""
    return re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):+.2f}", text)


def plots_label(method: str) -> str:
    """A method's short name, as figures have it."""
    from trustlab.plots import label

    return label(method)


CHANGES = {
    "small_talk": "small talk", "other_system": "denials about another part of the body",
    "reordered": "another order", "instruction_100": "the sentence that orders a confidence of 100",
}  # fmt: skip
"""What 02 calls its changes, paraphrases apart."""


LARGE_SHIFT = 0.03


def held(shifts: pd.DataFrame) -> str:
    """The shifts that hold after Holm's correction, in percentage points, change by change: the
    large ones, and how many are smaller; 'none' without any."""
    found = rows(shifts, level="all")
    found = found[(found["p_holm"] < 0.05)].sort_values("value", ascending=False)
    large = found[found["value"].abs() >= LARGE_SHIFT]
    change = large["condition"].map(CHANGES).fillna("a paraphrase")
    said = []
    for name, part in large.groupby(change, sort=False):
        by_method = part.groupby("method", sort=False)["value"]
        shown = [f"{plots_label(m)} {span(100 * v, '{:+.0f}'.format)}" for m, v in by_method]
        said.append(f"{name}: {named(shown)}")
    n_small = len(found) - len(large)
    more = f"{n_small} smaller than {100 * LARGE_SHIFT:.0f} points" if n_small else ""
    return "; ".join(filter(None, [*said, more])) or "none"


def robustness() -> Bullets:
    """The answer, how far one patient's confidence moves, and what moves it."""
    accuracy = table("02_accuracy")
    accuracy = rows(accuracy, level="all")
    changed = rows(accuracy, metric="other_answer")
    shift = rows(accuracy, metric="difference")
    variation = rows(table("02_variation"), metric="cv_sample").set_index("method")
    compared = rows(of_first(shown("02_robustness", "more-stable-code")), metric="CV sample")
    n_apart = int((compared["p (Holm)"].map(number) < 0.05).sum())
    two = table("02_two_at_once")
    both = {
        m: row(two, metric="mean_confidence", told="difference", method=m)
        for m in ("ce", "p_true", "medconf", "sequence_probability", "poc")
    }
    return [
        (
            f"On {accuracy['n_cases'].max()} generated patients, perturbed in"
            f" {accuracy['condition'].nunique() - 1} other ways, the accuracy of `embedded` changes"
            f" by at most {100 * shift['value'].abs().max():.0f} percentage points, but"
            f" {span(changed['value'], pct)} % of its answers become another diagnosis."
        ),
        (
            "When everything is told and only paraphrased, one patient's confidence varies by"
            f" {variation.at['asp', 'value']:.1f} % of itself (ASP),"
            f" {variation.at['poc', 'value']:.1f} % (PoC),"
            f" {variation.at['sequence_probability', 'value']:.1f} % (the probability of the"
            f" diagnosis), {variation.at['medconf', 'value']:.1f} % (MedConf,"
            f" {variation.at['medconf', 'n']:.0f} patients; the others"
            f" {variation.at['asp', 'n']:.0f}, whose versions differ);"
            f" {counted(n_apart, 'of the others differs', 'of the others differ')} from MedConf"
            f" after Holm's correction, on the {span(compared['n'], '{:.0f}'.format)} patients that"
            " both have."
        ),
        (
            "After correction for all comparisons these shifts of the mean confidence hold"
            f" (percentage points): {held(table('02_shifts'))}. Among answers that stayed the same:"
            f" {held(shown('02_robustness', 'same-code'))}. Told as one with a second patient, CE"
            f" says {value(both['ce'], scale=100, sign='+')} points, P(True)"
            f" {value(both['p_true'], scale=100, sign='+')}, MedConf"
            f" {value(both['medconf'], scale=100, sign='+')}, the probability of the answer"
            f" {value(both['sequence_probability'], scale=100, sign='+')}, agreement"
            f" {value(both['poc'], scale=100, sign='+')}."
        ),
    ]


def ablations() -> Bullets:
    """MedConf's parts; what it reads; the order of the methods."""
    drawn = rows(table("03_parts"), method="medconf")
    parts = rows(drawn, against="MedConf without a part").set_index("variant")
    libraries = rows(drawn, against="MedConf with another library")
    control = libraries[libraries["variant"].str.contains("another")].iloc[0]
    ranks = rows(table("03_ranks"), metric="rank").dropna(subset="value").set_index("method")
    first = ranks.index[0]
    widest = (ranks["highest"] - ranks["lowest"]).idxmax()
    best = of_first(shown("03_ablations", "15a8676a")).set_index("family")

    n_hold = int((parts["p_holm"] < 0.05).sum())

    def lost(variant: str) -> str:
        return value(parts.loc[variant], "difference", sign="+")

    return [
        (
            f"MedConf's level-stratified AUROC is {parts['reference'].iloc[0]:.2f} on"
            f" {parts['n'].max()} answers of `embedded`. Without the structured format it changes"
            f" by {lost('without_structured_format')}, without the symptom profile by"
            f" {lost('without_symptom_profile')}, without retrieval by {lost('without_retrieval')},"
            f" without importance by {lost('without_importance')}; after Holm's correction"
            f" {counted(n_hold, 'of them holds', 'of them hold')}, on"
            f" {span(parts['n_cases'], '{:.0f}'.format)} patients."
        ),
        (
            "Passages about *another* disease change it by"
            f" {value(control, 'difference', sign='+')}"
            + (
                ": as if this model filled the profile from memory, so that what retrieval brings"
                " cannot be measured on it."
                if control["low"] < 0 < control["high"]
                else ": what it reads counts."
            )
        ),
        (
            f"The order of the methods is soft: {plots_label(first)} stands first, but only in"
            f" {pct(ranks.at[first, 'chosen_in'])} % of the draws of other patients, and"
            f" {plots_label(widest)} takes ranks {ranks.at[widest, 'lowest']:.0f} to"
            f" {ranks.at[widest, 'highest']:.0f} with the formula that one takes its name to mean."
            f" The best token method stands {signed(best.at['token', 'difference'])} from MedConf,"
            f" the best of the samples {signed(best.at['consistency', 'difference'])}."
        ),
    ]


def consultation() -> Bullets:
    """What asking brings; which rule stops best; doctor and patient."""
    picked = rows(table("04_frontier"), drawn="picked elsewhere").set_index("method")
    picked = picked[~picked.index.str.contains("fixed|decides itself|oracle")]
    right, utterances = (rows(picked, metric=metric) for metric in ("accuracy", "utterances"))
    chosen = shown("04_consultation", "chosen-table").set_index("stops by")["accuracy, %"]
    gaps = shown("04_consultation", "rules-table")
    asked, said = (shown("04_consultation", cell) for cell in ("tries-table", "patient-table"))
    reply = said.set_index("metric")["n_hits"]
    end = rows(shown("04_consultation", "ended"), metric="share").set_index("ended")["value"]
    outcome = reply[
        [
            "answered",
            "does not know",
            "volunteered",
            "invented",
            "leaked",
            "out of place",
            "unreadable",
        ]
    ]
    last = max(int(stop.split()[1]) for stop in chosen.index if stop.startswith("fixed "))
    fixed = {n: chosen.loc[f"fixed {n}"] for n in (0, last)}
    n_asked_for, n_inventive = reply["found"] + reply["missed"], int(reply["spoke though not told"])
    better = gaps[gaps["metric"].eq("accuracy") & gaps["p (Holm)"].map(number).lt(0.05)]
    return [
        (
            f"Asking brings `embedded` from {fixed[0]} % right diagnoses after the opening to"
            f" {fixed[last]} % after {last} questions ({right['n_cases'].iloc[0]:.0f} generated"
            f" patients, asked by `embedded-clinic`);"
            f" {pct(reply['rightly not known'] / outcome.sum())} % of its questions are about"
            " something of which the case says nothing. An oracle that stopped at the right"
            f" moments would reach {chosen['oracle']} %."
        ),
        "With thresholds picked on other patients: "
        + "; ".join(
            f"{plots_label(m)} {utterances.at[m, 'value']:.1f} utterances and"
            f" {value(one, scale=100)} % right"
            for m, one in right.iterrows()
        )
        + f". In accuracy {counted(len(better), 'other way', 'other ways')} to stop"
        f" {'differs' if len(better) == 1 else 'differ'} from MedConf's after Holm's correction"
        + (
            ": so few patients cannot settle it."
            if better.empty
            else f": {named([plots_label(p) for p in better['policy']])}"
            " (fixed: the same number of questions to all)."
        ),
        (
            f"Of the doctor's questions {pct(1 - row(asked, tries=1)['value'])} % were its second"
            f" or a later try, and {pct(end['repeats itself'])} % of the consultations ended"
            f" because it repeated itself. The patient spoke {reply['found']} of {n_asked_for}"
            f" facts that were asked for, {counted(n_inventive, 'that was', 'that were')} not, and"
            f" {reply['invented']} attempts to say what is in no fact were caught."
        ),
    ]


def trust_indices() -> Bullets:
    """What the indices say where doctors are right and wrong; one doctor and three; the
    reviewers."""
    on = rows(shown("05_trust_indices", "come-table"), safety="on", formulation="trust-x")
    first = on["dataset"].iloc[0]
    for name in ("Accuracy", "CDR", "RDC", "ETI", "FTI"):
        on[name] = on[name].map(number)
    known, unknown = on[on["dataset"].eq(first)], on[on["dataset"].ne(first)]
    of_first = rows(table("05_indices"), metric="accuracy").iloc[0]
    n_patients = of_first["n"] + of_first["n_missing"]
    panels = unknown.loc[unknown["configuration"].ne("one doctor"), "CDR"]
    gaps = shown("05_trust_indices", "panel-table")
    eti = gaps[gaps["metric"].eq("ETI")]
    n_higher, n_hold = (
        eti["difference"].map(number).lt(0).sum(),
        eti["p (Holm)"].map(number).lt(0.05).sum(),
    )
    seen = rows(table("05_reviewers"), dataset=first, kind="prescription")

    def seen_by(model: str) -> str:
        hit, passed = (row(seen, model=model, metric=m) for m in ("sensitivity", "specificity"))
        return (
            f"{hit['value'] * hit['n']:.0f} of the {hit['n']} prescriptions that the rules object"
            f" to, and let {value(passed, scale=100)} % of the others pass (`embedded-clinic`)"
        )

    return [
        (
            f"On {n_patients} generated patients, fully told, the doctors are right for"
            f" {span(known['Accuracy'], '{:.0f}'.format)} % and ETI is"
            f" {span(known['ETI'], '{:.0f}'.format)} %; on conversations and reports, right for"
            f" {span(unknown['Accuracy'], '{:.0f}'.format)} %, ETI is still"
            f" {span(unknown['ETI'], '{:.0f}'.format)} % and FTI"
            f" {span(unknown['FTI'].dropna(), '{:.0f}'.format)}: a panel's CDR rises to no more"
            f" than {span(panels, '{:.0f}'.format)} %, and an RDC of"
            f" {span(unknown['RDC'], '{:.0f}'.format)} % stays, since reasoning that names the"
            " diagnosis lies near it."
        ),
        (
            f"One doctor has the higher ETI than a panel of three in {n_higher} of {len(eti)}"
            f" comparisons (paired by case; {n_hold} hold after Holm's correction), for a CDR of 0"
            " that nobody earned. Safety off is 0 by definition in `trust-x`, missing in"
            " `medguard-x`."
        ),
        (
            f"The reviewers find {seen_by('embedded')}. Reviewers who never object would make OSI"
            " 100 by definition."
        ),
    ]


def calibration() -> Bullets:
    """Groups of answers that are too sure; the error as given and recalibrated; abstention."""
    bins = table("07_reliability").dropna(subset=["bin", "low"])
    over = bins["confidence"].gt(bins["high"]).groupby(bins["model"], sort=False)
    under = bins["confidence"].lt(bins["low"])
    errors = shown("07_calibration", "numbers").set_index(["model", "method"])
    given, mended = (errors[f"ECE, {how}"].map(number).dropna() for how in ("as given", "isotonic"))
    curve = table("07_risk_coverage")
    whole = rows(curve, model="embedded", coverage=1.0).iloc[0]
    half = rows(curve, model="embedded", coverage=0.5).set_index("method")

    def off(model: str) -> str:
        return named(
            [
                f"{given[model, m]:.2f} ({plots_label(m)})"
                for m in ("asp", "sequence_probability", "poc", "ce", "medconf")
                if (model, m) in given
            ]
        )

    return [
        (
            "In groups of answers with like confidence, the confidence lies above the interval of"
            " the accuracy in "
            + named([f"{part.sum()} of {len(part)} groups (`{who}`)" for who, part in over])
            + f", and below it in {under.sum()} of all {len(bins)}."
        ),
        (
            f"The ECE of `embedded` is {off('embedded')}; made too sure it is"
            f" {off('embedded-overconfident')}. A rising curve fitted on other patients brings"
            f" every method, scores too, to {span(mended, '{:.2f}'.format)}: the scale can be"
            " mended, the order cannot."
        ),
        (
            f"Of the answers of `embedded` {value(whole, scale=100)} % are wrong. Of the surest"
            " half it is "
            + named(
                [
                    f"{value(half.loc[m], scale=100)} % ({plots_label(m)})"
                    for m in ("sequence_probability", "poc", "p_true", "medconf")
                ]
            )
            + f", by merely knowing how much was told"
            f" {value(half.loc['information_level'], scale=100)} %."
        ),
    ]


def graders() -> Bullets:
    """How far graders agree; what that does to accuracy and AUROC; label noise."""
    pairs = shown("08_graders", "grading-table")
    agree, kappa = (rows(pairs, metric=metric) for metric in ("agreement", "kappa"))
    awkward = shown("08_graders", "grading-awkward-table").set_index("answer")
    verdicts = awkward[["exact", "synonym", "encoder"]].astype(float)
    found = table("08_accuracy").groupby(["dataset", "model"])["value"].agg(["min", "max"])
    gap = 100 * (found["max"] - found["min"])
    ranking = shown("08_graders", "grading-auroc-table").set_index(["model", "method"])
    ranking = ranking.map(number).dropna()
    apart = ranking.max(axis=1) - ranking.min(axis=1)
    noise = shown("08_graders", "grading-noise-table").set_index(["model", "method"])
    noise = noise.map(number).loc["embedded"]
    first, last = noise.columns[0], noise.columns[-1]
    best = noise[first].idxmax()
    return [
        (
            f"On {agree['n'].max():,} answers of the embedded models any two of {len(verdicts.T)}"
            f" graders agree on {span(agree['value'], lambda x: f'{100 * x:.1f}')} % (kappa"
            f" {span(kappa['value'], '{:.2f}'.format)}): these models write the table's own"
            " names, which are not always a data set's."
            f" Of {len(awkward)} awkward answers made up for them they differ on"
            f" {verdicts.nunique(axis=1).gt(1).sum()}, and all refuse"
            f" {verdicts.sum(axis=1).eq(0).sum()}."
        ),
        (
            f"The accuracy of a model on a data set changes by at most {gap.max():.1f} percentage"
            f" points with the grader, and a method's level-stratified AUROC by at most"
            f" {apart.max():.2f}."
        ),
        (
            f"With {pct(float(last))} % of all verdicts flipped at random the highest AUROC of"
            f" `embedded` ({plots_label(str(best))}) falls from {noise.at[best, first]:.2f} to"
            f" {noise.at[best, last]:.2f}, that of knowing how much was told from"
            f" {noise.at['information_level', first]:.2f} to"
            f" {noise.at['information_level', last]:.2f}: methods look more alike than they are."
        ),
    ]


BULLETS: dict[str, Callable[[], Bullets]] = {
    "01_benchmark": benchmark,
    "02_robustness": robustness,
    "03_ablations": ablations,
    "04_consultation": consultation,
    "05_trust_indices": trust_indices,
    "07_calibration": calibration,
    "08_graders": graders,
}


def finding(name: str) -> str:
    """The finding of a notebook as its first cell has it: the heading and three bullets."""
    bullets = BULLETS[name]()
    assert len(bullets) == 3, name
    heading = (
        HEADING if any(" [" in bullet for bullet in bullets) else HEADING.replace(BRACKETS, "")
    )
    return "\n".join([heading, "", *(f"- {bullet}" for bullet in bullets)])


def write(name: str) -> None:
    """Put the finding into the notebook's first cell, between its title and the caveat."""
    path = notebook_path(name)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cell = notebook["cells"][0]
    title, caveat = ("".join(cell["source"]).split("\n\n")[i] for i in (0, -1))
    text = "\n\n".join([title, finding(name), caveat.strip()])
    cell["source"] = text.splitlines(keepends=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


README = ROOT / "README.md"
FIRST, LAST = "<!-- findings: python -m tests.findings writes them -->\n", "<!-- end -->\n"
"""The lines of README between which a line for each notebook stands."""
CHOSEN = {"03_ablations": 2}
"""Whose sentence in README is not of its first bullet."""


def sentence(name: str) -> str:
    """The first sentence with a number of a notebook's bullet, as far as its first pause after
    one."""
    bullet = BULLETS[name]()[CHOSEN.get(name, 0)]
    told = next(s for s in re.split(r"(?<!et al)\. ", bullet) if re.search(r"\d", s))
    for pause in re.finditer(r"[;:] ", told):
        before = told[: pause.start()]
        if re.search(r"\d", before) and before.count("(") == before.count(")"):
            return before + "."
    return told.removesuffix(".") + "."


def readme_lines() -> str:
    """A line for each notebook: its question, and what the reference run found."""
    lines = []
    for name in BULLETS:
        cells = json.loads(notebook_path(name).read_text(encoding="utf-8"))["cells"]
        title = "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ")
        lines.append(f"- [`{name}`](notebooks/{name}.ipynb): *{title}* {sentence(name)}\n")
    return "".join(lines)


def write_readme() -> None:
    """Put the lines into README."""
    before, rest = README.read_text(encoding="utf-8").split(FIRST)
    README.write_text(before + FIRST + readme_lines() + LAST + rest.split(LAST, 1)[1], "utf-8")


if __name__ == "__main__":
    for one in BULLETS:
        write(one)
    write_readme()
