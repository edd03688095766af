"""The page of a run and the index over runs: contents, folds, alternative texts, links that lead
somewhere, words that stay words."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest

from trustlab.html.index import write_index
from trustlab.html.notebook import write_html
from trustlab.parsing.counts import KINDS
from trustlab.paths import NOTICE, save_json

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
    return write_html(folder / f"{name}.ipynb")


def test_a_page_has_contents_that_lead_to_its_headings_the_notice_and_its_code_folded(tmp_path):
    html = made(tmp_path / "run").read_text(encoding="utf-8")
    assert faults(tmp_path / "run" / "09_small.html") == []
    listed = re.findall(r'<li class="(h\d)"><a href="#[^"]+">', html)
    assert listed == ["h2", "h3", "h2"]
    assert f'<p class="notice">{NOTICE}</p>' in html and "<title>Is it so?</title>" in html
    assert '<details class="code"><summary>Code</summary>' in html and "<script>alert" not in html
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
    assert seen.text.count("stopped: the notebook as far as it came") == 2
    assert "script" not in seen.tags and seen.alts == [f"a {NASTY}"] and "begun" not in seen.text
    for words in ("2026-11-25", "starter, own", "cases 24", "answers by case", "calls.parquet",
                  "44 % of 9 replies read (5 unread)", f"{NASTY}: only 4 of 9", NOTICE,
                  "<m>, d: level 20: 100 % of 1; level 100: 50 % of 2",
                  "over all levels 50 % of 4 asked, 67 % of 3 not cut"):  # fmt: skip
        assert words in seen.text, words


@pytest.mark.notebook
def test_every_link_heading_and_picture_of_a_run_s_pages(smoke_runs):
    folder = smoke_runs.of("00_walkthrough")
    index = write_index(folder.parent)
    for page in (folder / "00_walkthrough.html", folder / "answers.html", index):
        assert faults(page) == []
    alts = Page((folder / "00_walkthrough.html").read_text(encoding="utf-8")).alts
    assert len(alts) > 2 and all("research only" in alt for alt in alts)
