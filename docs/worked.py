"""Each method's value on the patient of the walkthrough, worked out in numbers that a reader can
follow with a calculator.

The record is made when the pages are built, by the embedded model. A working is text that Python
can read; :func:`checked` evaluates it, so that what a page shows comes to the value it shows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

import trustlab as tl
from trustlab.confidence.consistency import readable, sample_logprobs
from trustlab.confidence.meaning_sets import laplacian, meanings, similarity_graph
from trustlab.confidence.others import SIGNS, WEIGHTS
from trustlab.confidence.registry import BY_NAME
from trustlab.confidence.sar import weighed
from trustlab.confidence.token import token_shares
from trustlab.confidence.verbalized import shares as shares_of
from trustlab.paths import ROOT
from trustlab.records import GIVEN, Case, Generation

LEVEL = 20
"""Percent of the statements: the complaint alone."""
NAMES = {"log": math.log, "exp": math.exp, "sqrt": math.sqrt, "max": max, "min": min}


def patient() -> Case:
    """The patient of the walkthrough, as the notebook's own cell makes it."""
    text = (ROOT / "notebooks" / "00_walkthrough.ipynb").read_text(encoding="utf-8")
    sources = ("".join(cell["source"]) for cell in json.loads(text)["cells"])
    (source,) = [s for s in sources if 'tl.Case("stomach-ache"' in s]
    names = {"tl": tl, "knowledge": tl.load_knowledge()}
    exec("\n".join(s for s in source.splitlines() if not s.startswith("show.")), names)
    return names["patient"]


def record() -> Generation:
    """All that the embedded model says of the patient's complaint, nothing kept on disk."""
    setup = tl.Setup(cache=":memory:", quiet=True)
    asked = ["all", *BY_NAME, "exact_posterior", *GIVEN]
    run = tl.benchmark([patient()], [tl.open_model("embedded")], asked, [LEVEL], setup)
    (generation,) = run.generations
    return generation


def n(value: float, places: int = 3) -> str:
    """A number as a working has it; what rounds to 0 or 1 keeps the digits that tell it apart."""
    text = f"{value:.{places}f}"
    if float(text) != value and float(text) in (0, 1):
        text = f"{value:.6f}" if abs(value) < 0.5 else f"{value:.5f}"
    return f"({text})" if text.startswith("-") else text


def total(values: Iterable[float], by: str = " + ") -> str:
    """Numbers with a sign of calculation between them."""
    return by.join(map(n, values))


def workings(g: Generation) -> dict[str, str]:  # noqa: PLR0915 (a working for each method)
    """For each method its formula with the record's numbers put in."""
    assert g.answer and g.answer.trace and g.assessment and g.panel and g.panel.cosines
    trace, options = g.answer.trace, g.parameters
    logs, prior, entropies = trace.logprobs, trace.prior_logprobs, trace.entropies
    assert logs is not None and prior is not None and entropies is not None
    assert (
        trace.renyi is not None
        and trace.fisher_rao is not None
        and g.relevance is not None
    )
    probs, length = np.exp(logs), len(logs)
    unsure = prior[entropies >= options.pmi_threshold]
    mean_log = f"({total(logs)})/{length}"
    uncertain = f"{options.pmi_weight}/{length} * ({total(unsure) or 0})"
    raised = " + ".join(f"({n(a)} - {n(b)})" for a, b in zip(logs, prior, strict=True))
    shares, weights = token_shares(g), g.relevance / g.relevance.sum()

    samples = [str(sample.text) for sample in readable(g)]
    k, votes = len(samples), Counter(samples)
    first = {name: samples.index(name) for name in votes}
    of_samples, sets = np.array([x.sum() for x in sample_logprobs(g)]), meanings(g)
    sizes = [int((sets == s).sum()) for s in np.unique(sets)]
    chances = [np.exp(of_samples[sets == s]).sum() for s in np.unique(sets)]
    distinct = np.array([np.exp(of_samples[first[name]]) for name in votes])
    own = np.exp(of_samples)
    alike = np.clip(g.similarity if g.similarity is not None else np.eye(k), 0, 1)
    support = (alike - np.diag(np.diag(alike))) @ own
    assert g.sample_relevance is not None
    own_sar = np.exp(
        [weighed(*p) for p in zip(sample_logprobs(g), g.sample_relevance, strict=True)]
    )
    support_sar = (alike - np.diag(np.diag(alike))) @ own_sar

    def by_name(parts: Iterable[float]) -> list[tuple[int, float]]:
        values = list(parts)
        return [(votes[name], values[place]) for name, place in first.items()]

    def over_names(parts: Iterable[float]) -> str:
        return f"({' + '.join(f'{m}*{n(v)}' for m, v in by_name(parts))})/{k}"

    def two(own: np.ndarray, more: np.ndarray, form: str) -> str:
        t = options.sar_temperature
        pairs = zip(by_name(own), by_name(more), strict=True)
        terms = [f"{m}*" + form.format(n(a), n(b), t) for (m, a), (_, b) in pairs]
        return f"({' + '.join(terms)})/{k}"

    def pairs(same: float, matrix: np.ndarray) -> str:
        """Ordered pairs of different samples: those of one name, then each two names."""
        names = list(votes)
        told = [f"{same * votes[a] * (votes[a] - 1):g}" for a in names]
        told += [
            f"2*{votes[a]}*{votes[b]}*{n(matrix[first[a], first[b]])}"
            for i, a in enumerate(names)
            for b in names[:i]
        ]
        return f"({' + '.join(told)})/({k}*{k - 1})"

    from trustlab.confidence.consistency import _rouge_l

    rouge = np.array([[_rouge_l(a, b) for b in samples] for a in samples])
    values, vectors = np.linalg.eigh(laplacian(g))
    chosen = vectors[:, values < options.eigenvalue_cut - 1e-6]
    graph, panel = similarity_graph(g), g.panel
    doctors = Counter(vote for vote in panel.votes if vote is not None)
    evidence = [
        (WEIGHTS[e.criterion.importance], SIGNS[e.support_level])
        for e in g.assessment.evidence
    ]
    judged = [reply.text for reply in g.probes["p_true"]]
    said = {
        name: tl.METHODS[name].evaluate(g).confidence
        for name in ("ce", "cot_ce", "medconf")
    }
    scores = shares_of(g, "ce_expected")
    given = [reply.trace for reply in g.probes["p_true_probability"]]
    true, false = (n(trace.logprobs.sum()).strip("()") for trace in given)
    guesses = [float(x) for x in str(g.probes["topk_ce"][0].text).split()]
    return {
        "asp": f"({total(probs)})/{length}",
        "msp": f"max({total(probs, ', ')})",
        "sequence_probability": total(probs, " * "),
        "min_token_probability": f"min({total(probs, ', ')})",
        "perplexity": f"-exp(-{mean_log})",
        "entropy": f"-({total(entropies)})/{length}",
        "pmi": f"({raised})/{length}",
        "conditional_pmi": f"{mean_log} + {uncertain}",
        "conditional_pmi_original": f"{mean_log} - {uncertain}",
        "renyi_divergence": f"({total(trace.renyi)})/{length}",
        "fisher_rao": f"({total(trace.fisher_rao)})/{length}",
        "token_sar": " + ".join(
            f"{n(w)}*{n(x)}" for w, x in zip(weights, logs, strict=True)
        ),
        "ccp": total(shares, " * "),
        "ccp_min": f"min({total(shares, ', ')})",
        "ccp_mean": f"({total(shares)})/{length}",
        "poc": f"{max(votes.values())}/{k}",
        "semantic_poc": f"{max(sizes)}/{k}",
        "lexical_similarity": pairs(1, rouge),
        "semantic_similarity": pairs(1, alike),
        "num_set": f"1 - {len(sizes)}/{k}",
        "eigv": f"1 - ({total(v for v in np.maximum(0, 1 - values) if v > 1e-6)})",
        "deg": f"{n(graph.sum())}/{k}**2",
        "ecc": f"1 - sqrt({total(((chosen - chosen.mean(axis=0)) ** 2).sum(axis=0))})",
        "mc_se": over_names(of_samples),
        "mc_nse": over_names(x.mean() for x in sample_logprobs(g)),
        "semantic_entropy": " + ".join(
            f"{m}/{k}*log({n(c)})" for m, c in zip(sizes, chances, strict=True)
        ),
        "semantic_entropy_normalised": " + ".join(
            f"{n(p)}*log({n(p)})"
            for p in _by_set(distinct, [sets[i] for i in first.values()])
        ),
        "semantic_entropy_discrete": " + ".join(f"{m}/{k}*log({m}/{k})" for m in sizes),
        "sentence_sar": two(own, support, "log({0} + {1}/{2})"),
        "sentence_sar_printed": two(own, support, "(log({0}) + {1}/{2})"),
        "sar": two(own_sar, support_sar, "log({0} + {1}/{2})"),
        "ce": f"{100 * said['ce']:g}/100",
        "cot_ce": f"{100 * said['cot_ce']:g}/100",
        "topk_ce": f"({' + '.join(f'{x:g}' for x in guesses)})/5/100",
        "ce_expected": "({})/100".format(
            " + ".join(
                f"{x[1:-1]}*{n(share)}" for x, share in scores.items() if share >= 5e-4
            )
        ),
        "p_true_probability": f"exp({true})/(exp({true}) + exp({false}))",
        "p_true": f"{judged.count('True')}/{len(judged)}",
        "medconf": f"{100 * said['medconf']:g}/100",
        "medconf_weighted": "({})/({})".format(
            " + ".join(f"{w}*({s})" if s < 0 else f"{w}*{s}" for w, s in evidence),
            " + ".join(str(w) for w, _ in evidence),
        ),
        **later_workings(g),
        "information_level": f"{g.n_statements}/{g.n_total}",
        "word_count": f"{g.n_words}",
        "agreement": f"{max(doctors.values())}/{doctors.total()}",
        "rdc": f"({total(c for c in panel.cosines if c is not None)})/{len(panel.cosines)}",
    }


def later_workings(g: Generation) -> dict[str, str]:
    """The same for the later methods, a term a sampled name."""
    answer, samples = g.answer, readable(g)
    assert answer and answer.trace and answer.trace.logprobs is not None
    assert answer.trace.alternatives and answer.trace.certainty is not None
    assert g.answer_similarity is not None and g.similarity is not None
    assert g.answer_contradiction is not None and g.answer_entailment is not None
    assert g.entailment is not None and g.contradiction is not None
    names = [str(sample.text) for sample in samples]
    k, votes, logs = len(names), Counter(names), answer.trace.logprobs
    first = {name: names.index(name) for name in votes}
    own = votes[str(answer.text)]
    agreed = f"{own}/{k}"
    con = g.answer_contradiction

    def over_names(term: Callable[[int], str]) -> str:
        return " + ".join(f"{votes[name]}*{term(i)}" for name, i in first.items())

    not_contradicted = over_names(
        lambda i: f"(1 - ({n(con[0, i])} + {n(con[1, i])})/2)"
    )
    judged = [reply.text for reply in g.probes["p_true"]]
    cosines = np.clip(g.answer_similarity, 0, 1)
    distance = f"(1 - ({over_names(lambda i: n(cosines[i]))})/{k})"
    alike = np.clip(g.similarity, 0, 1)
    near = over_names(lambda i: f"log({n(np.exp(alike[i]).sum())})")
    ent, against = g.entailment, g.contradiction
    pairs = [
        f"{votes[a] * (votes[b] - (a == b))}*{n(ent[i, j])}/"
        f"({n(ent[i, j])} + {n(against[i, j])})"
        for a, i in first.items()
        for b, j in first.items()
        if votes[b] > (a == b)
    ]
    likely = [float(np.exp(logprobs.mean())) for logprobs in sample_logprobs(g)]
    weights = {str(answer.text): (float(np.exp(logs.mean())), 1.0)}
    for name, i in first.items():
        neutral = 1 - con[:, i] - g.answer_entailment[:, i]
        nearness = float(1 - (con[:, i] + neutral / 2).mean())
        chance = max(p for p, text in zip(likely, names, strict=True) if text == name)
        weights[name] = max(weights.get(name, (0.0, 0.0)), (chance, nearness))
    top = " + ".join(f"{n(p)}*{n(near)}" for p, near in weights.values())
    below = total(p for p, _ in weights.values())
    peaks = [
        -np.mean([p for _, p in listed[: g.parameters.n_alternatives]])
        for listed in answer.trace.alternatives
    ]
    length = len(logs)
    return {
        "answer_agreement": agreed,
        "noncontradiction": f"({not_contradicted})/{k}",
        "bsdetector": f"0.7*(0.8*({not_contradicted})/{k} + 0.2*{agreed})"
        f" + 0.3*{judged.count('True')}/{len(judged)}",
        "semantic_density": f"({top})/({below})",
        "cocoa_msp": f"({total(logs)})*{distance}",
        "cocoa_ppl": f"({total(logs)})/{length}*{distance}",
        "luq": f"({' + '.join(pairs)})/({k}*{k - 1})",
        "snne": f"({near})/{k} - 1 - log({k})",
        "deepconf_lowest": f"min({total(peaks, ', ')})",
        "self_certainty": f"({total(answer.trace.certainty)})/{length}",
    }


def _by_set(chances: np.ndarray, sets: list[int]) -> list[float]:
    """The share of each set in the probability of the distinct names."""
    return [
        chances[np.array(sets) == s].sum() / chances.sum() for s in sorted(set(sets))
    ]


def checked(name: str, working: str, value: float) -> str:
    """The working; ``ValueError`` where it does not come to the value, but for its rounding."""
    found = eval(working, {"__builtins__": {}}, NAMES)
    if not math.isclose(found, value, rel_tol=5e-3, abs_tol=5e-3):
        raise ValueError(f"{name}: {working} is {found}, and the method says {value}")
    return working
