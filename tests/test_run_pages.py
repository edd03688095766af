"""The page of a run and the index over runs: contents, folds, alternative texts, links that lead
somewhere, words that stay words."""

from __future__ import annotations

import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup

from trustlab.cli.run_notebooks import fill_opening, notebook_names, notebook_path
from trustlab.parsing.counts import KINDS
from trustlab.paths import NOTEBOOKS, NOTICE, save_json
from trustlab.reports.html.formulas import mathml
from trustlab.reports.html.index import write_index
from trustlab.reports.html.notebook import write_html
from trustlab.reports.html.opening import opening
from trustlab.runs.folder.replies_log import NAME as REPLIES

NASTY = "<script>alert('x')</script> & \"pain\""
BARS = (
    "embedded: part 1 of 6, keywords:   0%|          | 0/54 [00:00<?, ?request/s]",
    "\rencoding: 100%|██████████| 3755/3755 [00:13<00:00, 160.66text/s]",
    "\r          \r",
    "12text [00:01, 3.10text/s]\n",
)
PIXEL = "iVBORw0KGgo="


class Page(HTMLParser):
    """Ids, links, alternative texts and levels of headings of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids, self.links, self.alts, self.heads = set(), [], [], []
        self.tags, self.text = set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.tags.add(tag)
        self.ids.add(told.get("id"))
        if told.get("class") != "anchor-link":  # nbconvert's own, which no one sees
            self.links += [told[name] for name in ("href", "src") if name in told]
        self.alts += [told.get("alt")] if tag == "img" else []
        self.heads += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []

    def handle_data(self, data):
        self.text += data


def faults(file: Path) -> list[str]:
    """Links that lead nowhere, pictures without words, headings that skip a level."""
    page = Page(file.read_text(encoding="utf-8"))
    found = ["a picture without words" for alt in page.alts if not (alt or "").strip()]
    steps = zip([0, *page.heads], page.heads, strict=False)
    found += [f"h{a} then h{b}" for a, b in steps if b > a + 1]
    for link in page.links:
        to = urlsplit(link)
        if to.scheme:
            continue
        target = file.parent / unquote(to.path) if to.path else file
        if not target.is_file():
            found.append(f"no file {link}")
        elif to.fragment and target.suffix == ".html" and "=" not in to.fragment:
            ids = Page(target.read_text(encoding="utf-8")).ids
            found += [] if unquote(to.fragment) in ids else [f"no place {link}"]
    return [f"{file.name}: {fault}" for fault in found]


def stderr(text: str):
    return nbformat.v4.new_output("stream", name="stderr", text=text)


def made(folder: Path, *outputs, **facts) -> Path:
    """A run with one code cell with these outputs, and its page."""
    name, nasty = "09_small", NASTY.replace("<", "&lt;")
    cells = [
        nbformat.v4.new_markdown_cell(f"# Is it so?\n\n## What's *told* & {nasty}?"),
        nbformat.v4.new_markdown_cell("### A part\n\ntext\n\n## Another"),
        nbformat.v4.new_code_cell("x = 1  # said", outputs=list(outputs)),
    ]
    folder.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"{name}.ipynb")
    save_json({"notebook": name, "ok": True, **facts}, folder / "manifest.json")
    fill_opening(folder / f"{name}.ipynb", folder)
    return write_html(folder / f"{name}.ipynb")


def test_links_of_a_page_lead_somewhere_and_it_has_the_notice_and_loads_nothing(tmp_path):
    html = made(tmp_path / "run").read_text(encoding="utf-8")
    assert faults(tmp_path / "run" / "09_small.html") == []
    assert NOTICE in html and "<script>alert" not in html
    assert "default-src 'none'" in html


def test_progress_bars_are_left_out_and_warnings_and_errors_stay(tmp_path):
    told = {"ename": "ValueError", "evalue": "no", "traceback": [f"ValueError: {NASTY}"]}
    error = nbformat.v4.new_output("error", **told)
    page = made(tmp_path / "run", *map(stderr, BARS), stderr("UserWarning: few cases\n"), error)
    html = page.read_text(encoding="utf-8")
    assert "it/s" not in html and "text/s]" not in html and "request/s" not in html
    text = Page(html).text
    assert "UserWarning: few cases" in text and f"ValueError: {NASTY}" in text
    assert html.count("application/vnd.jupyter.stderr") == 2


def test_the_index_lists_runs_with_first_figure_facts_and_links_and_escapes_all(tmp_path):
    pictures = []
    for name in ("a", "b", "gone"):
        alt = f"{name} {NASTY}"
        about = {"image/png": {"alt": alt}, "file": f"figures/{name}.png", "title": alt}
        shown = {"data": {"image/png": PIXEL}, "metadata": about}
        pictures.append(nbformat.v4.new_output("display_data", **shown))
    counts = dict.fromkeys(KINDS, 0) | {"asked": 9, "read": 4, "unread": 5}
    run = tmp_path / f"a {NASTY.replace('/', '')}"
    made(
        run,
        *pictures,
        started="2026-11-25T05:09",
        benchmark={"models": {NASTY: "1"}, "dataset": ["starter", "own"], "cases": 24},
        replies_read={NASTY: {"ce": counts}},
        nothing_claimed=[f"{NASTY}: only 4 of 9"],
    )
    (run / "figures").mkdir()
    for name in ("figures/a.png", "figures/b.png", "calls.parquet", "answers.html"):
        (run / name).write_text("")
    rows = ["case_id,dataset,level,model,answer,correct,missing", "a,d,20,<m>,Flu,1,"]
    rows += ["a,d,100,<m>,,0,", "b,d,20,<m>,,,ran out of tokens", "b,d,100,<m>,Flu,1,"]
    (run / "answers.csv").write_text("\n".join(rows), encoding="utf-8")
    for name in ("cut", "lost"):
        made(tmp_path / name, ok=False)
    (tmp_path / "begun").mkdir()  # beside the one that has ended
    save_json({"notebook": "09_small"}, tmp_path / "begun" / "manifest.json")
    page = write_index(tmp_path)
    assert faults(page) == []
    seen = Page(page.read_text(encoding="utf-8"))
    assert seen.text.count("stopped") == 2
    assert "script" not in seen.tags and seen.alts == [f"a {NASTY}"] and "begun" not in seen.text
    for words in ("2026-11-25", "answers by case", "calls.parquet",
                  "44 % of 9 replies", "5 unread", f"{NASTY}: only 4 of 9", NOTICE,
                  "1 tokens", "9 your model"):  # fmt: skip
        assert words in seen.text, words
    rows = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").find_all("tr")
    assert [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in rows] == [
        ["right answers", "", "level 20", "level 100", "all, asked", "all, not cut", "all, read"],
        ["<m>", "d", "100 % of 1", "50 % of 2", "50 % of 4", "67 % of 3", "100 % of 2"],
    ]


@pytest.mark.notebook
def test_every_link_heading_and_picture_of_a_run_s_pages(smoke_runs):
    folder = smoke_runs.of("00_walkthrough")
    index = write_index(folder.parent)
    for page in (folder / "00_walkthrough.html", folder / "answers.html", index):
        assert faults(page) == []
    alts = Page((folder / "00_walkthrough.html").read_text(encoding="utf-8")).alts
    assert len(alts) > 2 and all("research only" in alt for alt in alts)


def page_of(folder: Path, *cells) -> BeautifulSoup:
    """The page of a notebook of these cells."""
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), folder / "a.ipynb")
    fill_opening(folder / "a.ipynb", folder)
    return BeautifulSoup(write_html(folder / "a.ipynb").read_text("utf-8"), "html.parser")


def markdown(text: str):
    return nbformat.v4.new_markdown_cell(text)


@pytest.mark.parametrize(
    ("text", "n_formulas", "words"),
    [
        ("so $p_1 < 0.5$ holds", 1, ["so ", " holds"]),
        ("$$\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}$$", 1, []),
        ("\\begin{align*} a &= b \\end{align*}", 1, []),
        ("$$x = \\begin{cases} 1 & y > 0 \\\\ 0 & \\text{else} \\end{cases}$$", 1, ["else"]),
        ("## Is $x$ it?", 1, ["Is ", " it?"]),
        ("it costs $5 and $10", 0, ["it costs $5 and $10"]),
        ("US$5-US$10, \\$3 and $x$", 1, ["US$5-US$10, $3 and "]),
        ("`$HOME` and $ 5 $", 0, ["$HOME", "$ 5 $"]),
        ("$\\unknown{x}$", 0, ["\\unknown{x}"]),
        ("$\\text{a <script>alert(1)</script> & b}$", 1, ["alert(1)"]),
    ],
)
def test_formulas_are_mathml_money_stays_money_and_what_is_not_known_its_source(
    tmp_path, text, n_formulas, words
):
    main = page_of(tmp_path, markdown(f"# Title\n\n{text}")).find("main")
    assert len(main.find_all("math")) == n_formulas
    assert all(some in main.get_text() for some in words)
    assert not main.find_all("script", string=lambda s: "alert(1)" in (s or ""))
    assert "&" not in {part.get_text() for part in main.select("math mi, math mo")}


def formulas(file: Path) -> list[str]:
    cells = nbformat.read(file, 4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    return ["".join(pair) for pair in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, re.DOTALL)]


def test_every_formula_of_the_notebooks_and_lessons_is_mathml():
    files = [*map(notebook_path, notebook_names()), *(NOTEBOOKS / "lessons").glob("*.ipynb")]
    every = {tex for file in files for tex in formulas(file)}
    assert len(every) > 60 and [tex for tex in every if not mathml(tex).startswith("<math")] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/a b/c.py:3: UserWarning: few cases\n  warn('few')\n", "Warning: few cases\n"),
        ("C:\\x\\y.py:12: FutureWarning: soon\n", "FutureWarning: soon\n"),
        ("<stdin>:1: RuntimeWarning: divide: by 0\n", "RuntimeWarning: divide: by 0\n"),
        ("sys:1: UserWarning: a\n/a.py:2: UserWarning: b\n  f()\n", "Warning: a\nWarning: b\n"),
        ("Warning: few cases\n", "Warning: few cases\n"),
        ("at 10:30: no\n  as it is\n", "at 10:30: no\n  as it is\n"),
    ],
)  # fmt: skip
def test_a_warning_on_a_page_is_a_line_without_a_path(tmp_path, text, shown):
    code = nbformat.v4.new_code_cell("f()", outputs=[stderr(text)])
    page = page_of(tmp_path, markdown("# Title"), code)
    (words,) = page.find_all(attrs={"data-mime-type": "application/vnd.jupyter.stderr"})
    assert words.get_text().strip() == shown.strip()


def test_every_notebook_names_the_cell_of_its_first_result():
    for name in notebook_names():
        cells = nbformat.read(notebook_path(name), 4).cells
        (cell,) = [c for c in cells if "result" in c.metadata.get("tags", ())]
        assert any("data" in output for output in cell.outputs), name


@pytest.mark.parametrize("percent", [0, 5, 6])
def test_unread_replies_are_shown_as_text_and_a_page_begins_with_them_above_5_percent(
    tmp_path, percent
):
    counts = dict.fromkeys(KINDS, 0) | {"asked": 100, "read": 100 - percent, "unread": percent}
    run = {
        "models": {"m": "1"},
        "dataset": "d",
        "cases": 100,
        "replies_read": {"m": {"ce": counts}},
    }
    save_json({"benchmark": run}, tmp_path / "run.json")
    lost = [{"kind": "unread", "raw": f"[5\n\n{NASTY} $x$ **b**"}] * percent
    row = {"model": "m", "purpose": "ce", "replies": [*lost, {"kind": "read", "raw": "[5]"}]}
    with gzip.open(tmp_path / REPLIES, "wt") as file:
        file.write(json.dumps(row) + "\n")
    block = opening(tmp_path)
    page = page_of(tmp_path, markdown(f"# Title\n\n{block}"))
    assert block.startswith("- **m: ") == (percent > 5) and page.find("math") is None
    shown = [pre.get_text() for pre in page.find_all("pre")]
    assert shown == ([lost[0]["raw"]] if percent else [])
