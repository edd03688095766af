"""The pages that code makes when the documentation is built: a page for each method, the two
diagrams, the notebooks, the public names, the sources.

They are written into folders that git ignores, so that none of them can go stale.
"""

from __future__ import annotations

import json
import re
import tempfile
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import worked
import yaml
from nbclient import NotebookClient

import trustlab as tl
from tests.tree import sentence
from trustlab.cli import run_notebooks
from trustlab.cli.run_notebooks import notebook_names, notebook_path
from trustlab.confidence.registry import FAMILIES, GIVEN_NEEDS, LATER, Method
from trustlab.confidence.verbalized import shares
from trustlab.paths import ROOT
from trustlab.reports.plots.style import FAMILY_COLOURS
from trustlab.runs.costs import calls, readers
from trustlab.runs.formatted import percent

DOCS = ROOT / "docs"
MADE = ("methods", "notebooks", "lessons", "made")
"""Folders of docs/ that hold nothing but what is made here."""
READ = ["share_read", "n_replies"]
METHOD_LABELS = {"medconf": "MedConf", "asp": "ASP", "poc": "PoC", "ce": "CE"}
RESULTS_ARE = (
    "One small task, `notebooks/parameters/contribute.yml`, run by whoever had a model. AUROC is"
    " level-stratified; *n* counts the answers behind it. A dash: too few right or wrong answers,"
    " or the model gives no probabilities. Rows of different sizes or graders are not to be"
    " ranked against each other. How to add yours: `results/README.md`. **Research only. Not for"
    " clinical use.**"
)
OWN_WORDS = (
    "The prompt is our own: sentences of a paper belong to it. A folder of yours can hold the"
    " printed ones: [MedConf in three steps](../medconf.md#our-own-wording) shows how."
)
METHODS = yaml.safe_load((DOCS / "methods.yml").read_text(encoding="utf-8"))
"""For each method its formula and what breaks it."""

FAMILY = {
    "token": ("Token probabilities", "What probability had the tokens of the answer?"),
    "consistency": (
        "Consistency of samples",
        "Asked again, does the model say the same?",
    ),
    "verbalized": (
        "Self-verbalised confidence",
        "What does the model say when it is asked?",
    ),
    "medconf": ("Evidence (MedConf)", "Do the patient's words fit the disease?"),
    "baseline": (
        "Baselines",
        "What would be said without any knowledge of the answer?",
    ),
    "trust": (
        "Panel of doctors",
        "Do several doctors agree, and does the reasoning fit?",
    ),
    "reference": ("Reference", "What could be known at best?"),
}
"""Family -> its heading, and the question that its methods ask."""

NEEDS = {
    "answer": "the answer",
    "samples": "K sampled answers",
    "similarity": "cosines of the samples",
    "similarity_med": "cosines of the samples by a medical encoder",
    "answer_similarity": "cosines of the answer and each sample",
    "answer_entailment": "entailment between the answer and each sample",
    "answer_contradiction": "contradiction between the answer and each sample",
    "entailment": "entailment between the samples",
    "contradiction": "contradiction between the samples",
    "relevance": "relevance of the answer's tokens",
    "sample_relevance": "relevance of the samples' tokens",
    "alternative_entailment": "whether alternative tokens entail or contradict the answer",
    "assessment": "MedConf's evidence",
    "panel": "a panel of doctors",
    "panel.cosines": "cosines of the doctors' reasoning and diagnosis",
    "shown": "how much was shown",
    "exact": "the exact chance, which the data set knows",
    "answer.logprobs": "log-probabilities of the answer's tokens",
    "answer.entropies": "entropies of the next-token distributions",
    "answer.renyi": "Rényi divergences of the next-token distributions",
    "answer.fisher_rao": "Fisher–Rao distances of the next-token distributions",
    "answer.prior_logprobs": "log-probabilities of the answer without the patient's words",
    "answer.alternatives": "the likeliest tokens at each place",
    "answer.certainty": "self-certainty at each place, from the whole distribution",
    "samples.logprobs": "log-probabilities of the samples' tokens",
    "probes.ce": "the score that the model gives its answer",
    "probes.cot_ce": "the same after reasons",
    "probes.topk_ce": "five guesses of the score",
    "probes.p_true": "K judgements of the answer",
    "probes.ce_expected": "log-probabilities of the replies [0], [5], ... [100] to CE's question",
    "probes.p_true_probability": "log-probabilities of True and False as the judgement",
}
"""What a method may need -> how a reader calls it."""


def make() -> None:
    """Write all pages anew."""
    for folder in MADE:
        (DOCS / folder).mkdir(exist_ok=True)
        for old in (DOCS / folder).iterdir():
            old.unlink()
    record = worked.record()
    pages = {f"methods/{name}.md": page for name, page in method_pages(record).items()}
    pages |= {f"notebooks/{name}.ipynb": notebook(name) for name in notebook_names()}
    with ThreadPoolExecutor(2) as both_cores:
        lessons = sorted((ROOT / "notebooks" / "lessons").glob("*.ipynb"))
        executed = both_cores.map(executed_lesson, lessons)
        pages |= {
            f"lessons/{file.name}": text
            for file, text in zip(lessons, executed, strict=True)
        }
    pages |= {"made/api.md": public_names(), "made/sources.md": sources()}
    pages["made/results.md"] = results()
    pages |= {
        "made/families.svg": families_svg(),
        "made/medconf.svg": medconf_svg(record),
    }
    for name, text in pages.items():
        (DOCS / name).write_text(text, encoding="utf-8")
    draw_figures(DOCS / "made")


def executed_lesson(file: Path) -> str:
    """A lesson as it is after Run All, with its figures; no guess is made and nothing is answered.
    A cell that fails stops the build."""
    notebook = nbformat.read(file, as_version=4)
    folder = {"metadata": {"path": str(file.parent)}}
    client = NotebookClient(
        notebook,
        kernel_manager_class=run_notebooks.own_kernel({}),  # the client ends its kernel
        timeout=600,
        resources=folder,
        extra_arguments=run_notebooks.PLAIN_KERNEL,
    )
    client.execute()
    return nbformat.writes(notebook)


# Figures

EXAMPLE = re.compile(
    r"^```python\n(.*?)^```(?:\n\n!\[.*?\]\(made/(\w+)\.png\))?", re.M | re.S
)
"""A block of code on the page of the figures, and the picture below it that shows its ``axes``."""


def draw_figures(folder: Path) -> None:
    """Run the code on the page of the figures, from the root, and save what it draws."""
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as runs:
        for code, picture in EXAMPLE.findall(
            (DOCS / "figures.md").read_text(encoding="utf-8")
        ):
            exec(
                code.replace('"runs/', f'"{runs}/').replace('"data/', f'"{ROOT}/data/'),
                names,
            )
            if picture:
                figure = names["axes"][0].figure
                figure.savefig(folder / f"{picture}.png", dpi=100, bbox_inches="tight")
                plt.close(figure)


# Methods


def method_pages(record: tl.Generation) -> dict[str, str]:
    """A page for each registered method, and the index of them all by family."""
    workings = worked.workings(record)
    ordered = sorted(tl.METHODS.values(), key=lambda m: FAMILIES.index(m.family))
    pages = {m.name: method_page(m, record, workings.get(m.name)) for m in ordered}
    return pages | {"index": method_index(ordered, record)}


def method_index(ordered: list[Method], record: tl.Generation) -> str:
    """All methods in tables, a table a family, with their value for the patient."""
    lines = [(DOCS / "methods_head.md").read_text(encoding="utf-8"), complaint(record)]
    for family, several in groupby(ordered, key=lambda m: m.family):
        name, question = FAMILY[family]
        lines += [f"\n## {name}\n", f"*{question}*\n"]
        lines += [
            "| method | reads | scale | calls | on the stomach-ache patient |",
            "|---" * 5 + "|",
        ]
        for m in several:
            reads = "probabilities" if m.access == "white" else "text alone"
            link = f"[{m.label}]({m.name}.md)"
            lines.append(
                f"| {link} | {reads} | {m.scale} | {calls(m)} | {found(m, record)} |"
            )
    tree = "\n".join(
        ["", "```{toctree}", ":hidden:", "", *(m.name for m in ordered), "```", ""]
    )
    return "\n".join(lines) + "\n" + tree


def found(method: Method, record: tl.Generation) -> str:
    """The value, or why there is none."""
    value = method.evaluate(record)
    return f"missing: {value.missing}" if value.missing else f"{value.confidence:.3f}"


def method_page(method: Method, record: tl.Generation, working: str | None) -> str:
    """What one method is, from the registry, and its value worked out."""
    entry, (family, question) = METHODS[method.name], FAMILY[method.family]
    needs = "; ".join(NEEDS[need] for need in method.needs)
    scale = {
        "probability": "probability: in [0, 1], a chance: its calibration can be judged",
        "score": "score: only the order counts, until a calibration is fitted on other cases",
    }[method.scale]
    ratio = (
        "; zero is a true zero (coefficients of variation allowed)"
        if method.ratio
        else ""
    )
    rows = {
        "name in code": f"`{method.name}`",
        "family": f"[{family}](index.md): {question[:1].lower()}{question[1:]}",
        "sign": "higher = more confident, as for every method here",
        "scale": scale + ratio,
        "access": "white-box: reads token probabilities"
        if method.access == "white"
        else "text-only (black-box): the model's words are enough",
        "needs": needs,
        "cost": f"model calls for one answer: {calls(method)} (K: samples; shared with the other"
        " methods that need the same)",
        "other readers": readers(method) or "none",
        "equation": f"{method.equation} of Ren et al. 2026" if method.equation else "",
        "asked for": 'by name, or `methods="later"`' if method.name in LATER else "",
        "sources": ", ".join(
            f"[{cited(k)}](../made/sources.md#{k})" for k in method.cite.split()
        ),
    }
    table = [f"| {head} | {text} |" for head, text in rows.items() if text]
    value = method.evaluate(record)
    lines = [
        f"# {method.label}",
        "",
        method.summary,
        "",
        "| what | here |",
        "|---|---|",
        *table,
        "",
    ]
    lines += ["## Formula", "", f"$$\n{entry['formula']}\n$$", ""]
    lines += ["The symbols are explained with [all methods](index.md#symbols).", ""]
    lines += ["## On the stomach-ache patient", "", complaint(record), ""]
    lines += ingredients(method, record)
    if value.missing:
        lines += [
            f"It is **missing** here: {value.missing}. A missing value never becomes a number.",
            "",
        ]
    elif working:
        told = worked.checked(method.name, working, value.confidence)
        lines += ["```text", printed(f"{told} = {value.confidence:.3f}"), "```", ""]
    else:
        lines += [f"Value: {value.confidence:.3f}", ""]
    lines += ["## What breaks it", "", entry["breaks"], ""]
    if convention := entry.get("convention"):
        lines += ["## Which convention", "", convention, ""]
    if wording := entry.get("wording"):
        lines += ["## Our own wording", "", f"{wording} {OWN_WORDS}", ""]
    return "\n".join(lines)


def printed(working: str) -> str:
    """A working with the signs of print."""
    signs = {"**": "^", "*": " × ", "-": "−", "/": " / "}
    for sign, shown in signs.items():
        working = working.replace(sign, shown)
    return re.sub(" +", " ", working)


def complaint(record: tl.Generation) -> str:
    """What was told, what was answered."""
    case = worked.patient()
    words = " ".join(
        statement.text.replace("\n", " ")
        for statement in case.statements[: record.n_statements]
    )
    answer = record.answer and record.answer.text
    return (
        f"Told so far: *{words}* The embedded model answers *{answer}*;"
        f" the patient has *{case.diagnosis}*."
    )


def ingredients(method: Method, record: tl.Generation) -> list[str]:
    """The parts of the record that a method reads, as a table of tokens or of samples."""
    assert record.answer is not None and record.answer.trace is not None
    trace, needs = record.answer.trace, set(method.needs)
    if any(need.startswith("answer.") for need in needs):
        columns = {"token": [f"`{token}`" for token in trace.tokens]}
        columns["log p"] = _digits(trace.logprobs)
        for need, head, values in (
            ("answer.entropies", "entropy", trace.entropies),
            ("answer.prior_logprobs", "log prior", trace.prior_logprobs),
            ("answer.renyi", "Rényi divergence", trace.renyi),
            ("answer.fisher_rao", "Fisher–Rao distance", trace.fisher_rao),
            ("answer.certainty", "self-certainty", trace.certainty),
            ("relevance", "relevance", record.relevance),
        ):
            if need in needs:
                columns[head] = _digits(values)
        return _table(columns)
    if {"samples", "samples.logprobs"} & needs:
        names = [str(sample.text) for sample in record.samples or ()]
        votes = sorted(set(names), key=names.index)
        return _table(
            {
                "sampled diagnosis": votes,
                "samples": [str(names.count(v)) for v in votes],
            }
        )
    for probe, replies in record.probes.items():
        if f"probes.{probe}" in needs & GIVEN_NEEDS:
            by_text = {
                str(r.text): r.trace.logprobs.sum()
                for r in replies
                if r.trace is not None
            }
            logs = _digits(np.array(list(by_text.values())))
            share = [worked.n(x) for x in shares(record, probe).values()]
            return _table({"given text": list(by_text), "log P": logs, "share": share})
        if f"probes.{probe}" in needs:
            words = ", ".join(reply.raw or "(none)" for reply in replies)
            return ["The model's words:", "", "```text", words, "```", ""]
    if "assessment" in needs and record.assessment is not None:
        found = record.assessment.evidence
        columns = {"criterion": [e.criterion.description for e in found]}
        columns["importance"] = [str(e.criterion.importance) for e in found]
        columns["label"] = [e.support_level for e in found]
        columns["the patient's words"] = [e.quote or "–" for e in found]
        return _table(columns)
    return []


def _digits(values: np.ndarray | None) -> list[str]:
    """Numbers as a table has them."""
    return (
        []
        if values is None
        else [worked.n(float(x)).strip("()").replace("-", "−") for x in values]
    )


def _table(columns: dict[str, list[str]]) -> list[str]:
    rows = zip(*columns.values(), strict=True)
    cells = [list(columns), ["---"] * len(columns), *rows]
    return [*("| " + " | ".join(row) + " |" for row in cells), ""]


# Notebooks, names, sources


def notebook(name: str) -> str:
    """A committed notebook with its outputs, its code folded, its figures with words for who
    cannot see them."""
    book, head = json.loads(notebook_path(name).read_text(encoding="utf-8")), ""
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            head = ([head] + re.findall(r"^#+ (.+)$", "".join(cell["source"]), re.M))[
                -1
            ]
            continue
        cell["metadata"] |= {"tags": [*cell["metadata"].get("tags", []), "hide-input"]}
        cell["metadata"] |= {
            "mystnb": {"image": {"alt": f"Figure of “{head}”, explained above it"}}
        }
    return json.dumps(book, ensure_ascii=False)


def public_names() -> str:
    """The public names by the room that holds them, each with its docstring."""
    rooms: dict[str, list[str]] = {}
    for name in tl.__all__:
        thing = getattr(tl, name)
        module = getattr(thing, "__module__", "")
        if callable(thing) and module.startswith("trustlab."):
            rooms.setdefault(module.split(".")[1], []).append(name)
    lines = [(DOCS / "api_head.md").read_text(encoding="utf-8")]
    for room, names in sorted(rooms.items()):
        place = ROOT / "trustlab" / room
        about = sentence(
            place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        )
        lines += [
            f"\n## {room}\n",
            f"{about[:1].upper()}{about[1:]}.\n",
            "```{eval-rst}",
        ]
        for name in names:
            kind = "class" if isinstance(getattr(tl, name), type) else "function"
            lines += [f".. auto{kind}:: trustlab.{name}"]
            lines += ["   :members:", ""] if kind == "class" else [""]
        lines += ["```"]
    return "\n".join(lines) + "\n"


def plain(value: str) -> str:
    """A field of BibTeX as text: accents on their letters, no braces."""
    accents = dict(zip("`'^\"~", "\u0300\u0301\u0302\u0308\u0303", strict=True))
    value = re.sub(r"\\([`'^\"~])\{?(\w)\}?", lambda m: m[2] + accents[m[1]], value)
    return unicodedata.normalize("NFC", re.sub(r"[{}\\]", "", value))


def results() -> str:
    """What others ran, from ``results/``: a row a model and data set. Their names stay words."""
    files = sorted((ROOT / "results").glob("*.csv"))
    texts = [pd.read_csv(file, dtype=str, na_filter=False) for file in files]
    every = pd.concat(texts, ignore_index=True).fillna("")
    columns = {
        "model": every["model"] + " (" + every["revision"].str[:16] + ")",
        "prompts": every["prompts_set"] + ", " + every["prompts_demonstrations"],
        "task": every["dataset"]
        + ": "
        + every["n_cases"]
        + " cases at "
        + every["levels"],
        "read": [
            percent(round(float(s) * int(n)), int(n)) for s, n in every[READ].to_numpy()
        ],
        "accuracy (n)": _with_n(every, "accuracy", "n"),
        "graded by": every["grader"],
    }
    for name, label in METHOD_LABELS.items():
        columns[f"AUROC of {label} (n)"] = _with_n(every, f"auroc_{name}", f"n_{name}")
    columns |= {"date": every["date"], "trustlab": every["trustlab"]}
    table = _table(
        {head: [plain_cell(cell) for cell in of] for head, of in columns.items()}
    )
    return "\n".join(["# Results of models, side by side", "", RESULTS_ARE, "", *table])


def _with_n(table: pd.DataFrame, value: str, n: str) -> list[str]:
    """Each value with its n; a dash where it is missing."""
    pairs = table.reindex(columns=[value, n], fill_value="").to_numpy()
    return [f"{float(v):.2f} ({float(k):,.0f})" if v else "–" for v, k in pairs]


def plain_cell(text: str) -> str:
    """A text of somebody else as one cell: no HTML, no Markdown, no second column or line."""
    signs = re.sub(r"[|\[\]`*_\\$]", lambda m: f"&#{ord(m[0])};", escape(text))
    return " ".join(signs.split())


@cache
def bibliography() -> dict[str, dict[str, str]]:
    """The entries of references.bib by their keys, without braces."""
    text = (ROOT / "references.bib").read_text(encoding="utf-8")
    entries = {}
    for key, body in re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", text, re.M | re.S):
        fields = re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", body, re.M)
        entries[key] = {field: plain(value) for field, value in fields}
    return entries


def cited(key: str) -> str:
    """Author and year, as a text cites them."""
    entry = bibliography()[key]
    names = [author.partition(",")[0] for author in entry["author"].split(" and ")]
    others = {1: "", 2: f" and {names[-1]}"}.get(len(names), " et al.")
    return f"{names[0]}{others} {entry['year']}"


def sources() -> str:
    """The entries of references.bib, each with a target of its key."""
    lines = ["# Sources", "", "`references.bib` has them for LaTeX, by these keys.", ""]
    for key, entry in sorted(bibliography().items(), key=lambda item: cited(item[0])):
        where = (
            entry.get("journal")
            or entry.get("booktitle")
            or entry.get("publisher")
            or ""
        )
        where += f" {entry['volume']}" if "volume" in entry else ""
        link = f"arXiv:{entry['eprint']}" if "eprint" in entry else ""
        parts = [
            entry["author"].replace(" and ", "; "),
            f"*{entry['title']}*",
            where,
            link,
        ]
        parts += [entry.get("note", ""), f"`{key}`"]
        lines += [
            f"({key})=",
            "",
            cited(key),
            f": {'. '.join(p for p in parts if p)}.",
            "",
        ]
    return "\n".join(lines)


# Diagrams: dark text on white, the families in the colours of the figures and named in words


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    """A drawing with a title for who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' font-family="DejaVu Sans, Verdana, sans-serif" font-size="14" fill="#1a1a1a">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def text(x: float, y: float, words: str, **look: object) -> str:
    """Words that begin at x, on the line y."""
    more = "".join(
        f' {name.replace("_", "-")}="{value}"' for name, value in look.items()
    )
    return f'<text x="{x}" y="{y}"{more}>{escape(words)}</text>'


def box(
    x: float, y: float, width: float, height: float, colour: str, fill: str = "white"
) -> str:
    """A box with round corners."""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" fill="{fill}"'
        f' stroke="{colour}" stroke-width="2"/>'
    )


def arrow(x: float, y: float, length: float, down: bool = False) -> str:
    """An arrow from (x, y) to the right, or down."""
    turn = f"translate({x} {y})" + (" rotate(90)" if down else "")
    return (
        f'<g transform="{turn}" stroke="#1a1a1a" stroke-width="2" fill="#1a1a1a">'
        f'<path d="M0 0H{length - 8}"/><path d="M{length - 9} -5L{length} 0L{length - 9} 5Z"/></g>'
    )


def families_svg() -> str:
    """A row for each family: its question, and the methods that the registry holds."""
    parts, y, width = [], 12, 980
    for family in FAMILIES:
        labels = [m.label for m in tl.METHODS.values() if m.family == family]
        rows: list[list[str]] = [[]]
        for label in labels:
            if sum(8.1 * len(one) + 34 for one in [*rows[-1], label]) > width - 350:
                rows.append([])
            rows[-1].append(label)
        height, (name, question) = max(74, 20 + 34 * len(rows)), FAMILY[family]
        colour = FAMILY_COLOURS[family]
        parts += [box(12, y, width - 24, height, colour)]
        parts += [
            f'<rect x="12" y="{y}" width="10" height="{height}" fill="{colour}"/>'
        ]
        parts += [text(34, y + 25, f"{name} ({len(labels)})", font_weight="bold")]
        words, line = question.split(), ""
        lines: list[str] = []
        for word in words:
            if len(line) + len(word) > 36:
                lines, line = [*lines, line], ""
            line = f"{line} {word}".strip()
        parts += [
            text(34, y + 44 + 17 * i, one, font_size="12.5")
            for i, one in enumerate([*lines, line])
        ]
        for i, row in enumerate(rows):
            x = 330.0
            for label in row:
                wide = 8.1 * len(label) + 20
                parts += [box(x, y + 12 + 34 * i, wide, 27, "#8a8a8a", "#f4f4f4")]
                parts += [
                    text(
                        x + wide / 2,
                        y + 30 + 34 * i,
                        label,
                        font_size="13",
                        text_anchor="middle",
                    )
                ]
                x += wide + 14
        y += height + 10
    title = "The families of confidence methods, and the methods of each"
    return svg(width, y + 2, title, parts)


SUPPORT = {
    "supported": ("#0072B2", "✓"),
    "missing": ("#6b6b6b", "?"),
    "contradicted": ("#A84300", "✗"),
}
"""Label -> colour and sign, so that colour alone never tells."""


def medconf_svg(record: tl.Generation) -> str:
    """MedConf's three steps on the stomach-ache patient, with what the embedded model said."""
    found, case = record.assessment, worked.patient()
    assert found is not None and found.evidence and record.answer is not None
    height = 252 + 26 * len(found.evidence)
    parts = [
        box(12, 12, 956, 82, "#1a1a1a"),
        text(26, 36, "What the patient says", font_weight="bold"),
    ]
    told = [
        s.text.rpartition("Patient: ")[2]
        for s in case.statements[: record.n_statements]
    ]
    lines = ["  ·  ".join(told[i : i + 2]) for i in range(0, len(told), 2)]
    parts += [
        text(26, 58 + 21 * i, line, font_size="13") for i, line in enumerate(lines)
    ]
    for x, wide, head in (
        (12, 190, "1  Diagnosis"),
        (234, 362, "2  Symptom profile"),
        (628, 340, "3  Confidence"),
    ):
        parts += [box(x, 126, wide, height - 138, "#1a1a1a", "#fafafa")]
        parts += [text(x + 14, 152, head, font_weight="bold")]
    parts += [arrow(100, 96, 28, down=True), arrow(798, 96, 28, down=True)]
    parts += [arrow(204, 200, 28), arrow(598, 200, 28)]
    parts += [
        text(26, 182, "The model names one:"),
        text(26, 206, str(record.answer.text)),
    ]
    parts += [
        text(
            248,
            182,
            f"Retrieve: keyword “{found.keyword}”, {len(found.passages)} passages",
        )
    ]
    parts += [text(248, 206, "Profile: what such a patient would have")]
    parts += [text(642, 182, "Map each criterion to the patient's words:")]
    for i, (label, (colour, sign)) in enumerate(SUPPORT.items()):
        parts += [text(642 + 104 * i, 206, f"{sign} {label}", fill=colour)]
    for i, held in enumerate(found.evidence):
        y, (colour, sign) = 240 + 26 * i, SUPPORT[held.support_level]
        parts += [text(248, y, held.criterion.description)]
        parts += [
            text(
                582,
                y,
                str(held.criterion.importance),
                text_anchor="end",
                font_size="12",
            )
        ]
        parts += [
            text(
                642, y, f"{sign} {held.support_level}", fill=colour, font_weight="bold"
            )
        ]
    score = "no score" if found.score is None else f"{found.score:.0f} of 100"
    weighted = tl.METHODS["medconf_weighted"].evaluate(record).confidence
    for y, large, small in (
        (256, score, "the model's own score"),
        (330, f"{weighted:.2f}", "by fixed weights"),
    ):
        parts += [text(810, y, large, font_size="22", font_weight="bold")]
        parts += [text(810, y + 22, small, font_size="12")]
    return svg(980, height, "MedConf's three steps on one patient", parts)
