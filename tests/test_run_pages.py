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
PIXEL = "iVBORw0KGgo="


class Page(HTMLParser):
    """Ids, links, alternative texts and levels of headings of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids, self.links, self.alts, self.heads = set(), [], [], []
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.tags.append(tag)
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
    found = [
        f"{file.name}: a picture without words" for alt in page.alts if not (alt or "").strip()
    ]
    steps = zip([0, *page.heads], page.heads, strict=False)
    found += [f"{file.name}: h{a} then h{b}" for a, b in steps if b > a + 1]
    for link in page.links:
        to = urlsplit(link)
        if to.scheme:
            continue
        target = file.parent / unquote(to.path) if to.path else file
        if not target.is_file():
            found.append(f"{file.name}: no file {link}")
        elif to.fragment and target.suffix == ".html" and "=" not in to.fragment:
            ids = Page(target.read_text(encoding="utf-8")).ids
            found += [] if unquote(to.fragment) in ids else [f"{file.name}: no place {link}"]
    return found


def made(folder: Path, *outputs, name: str = "09_small", **facts) -> Path:
    """A run with one code cell with these outputs, and its page."""
    cells = [
        nbformat.v4.new_markdown_cell(
            f"# Is it so?\n\n## What's *told* & {NASTY.replace('<', '&lt;')}?"
        ),
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


def test_the_index_lists_runs_with_first_figure_facts_and_links_and_escapes_all(tmp_path):
    told = [
        {"image/png": {"alt": f"{n} {NASTY}"}, "file": f"figures/{n}.png", "title": f"{n} {NASTY}"}
        for n in ("a", "gone")
    ]
    pictures = [
        nbformat.v4.new_output("display_data", data={"image/png": PIXEL}, metadata=one)
        for one in told
    ]
    facts = {"models": {NASTY: "1"}, "dataset": ["starter", "own"], "cases": 24}
    counts = dict.fromkeys(KINDS, 0) | {"asked": 9, "read": 4, "unread": 5}
    run = tmp_path / f"a {NASTY.replace('/', '')}"
    made(
        run,
        *pictures,
        started="2026-11-25T05:09",
        benchmark=facts,
        replies_read={NASTY: {"ce": counts}},
        nothing_claimed=[f"{NASTY}: only 4 of 9"],
    )
    (run / "figures").mkdir()
    (run / "figures" / "a.png").write_bytes(b"")
    for name in ("answers.csv", "calls.parquet", "answers.html"):
        (run / name).write_text("")
    made(tmp_path / "plain", started="2026-11-26", parameters={"model": "m", "dataset": ["d", "e"]})
    (tmp_path / "other").mkdir()
    save_json({"notebook": "09_small"}, tmp_path / "other" / "manifest.json")
    page = write_index(tmp_path)
    assert faults(page) == []
    html = page.read_text(encoding="utf-8")
    seen = Page(html)
    assert "script" not in seen.tags and NOTICE in seen.text and "other" not in seen.text
    assert seen.alts == [f"a {NASTY}"] and "gone" not in seen.text
    for words in ("2026-11-25", "starter, own", "cases 24", "answers by case", "calls.parquet",
                  "44 % of 9 replies read (5 unread)", f"{NASTY}: only 4 of 9",
                  "models m · data d, e"):  # fmt: skip
        assert words in seen.text, words
    assert seen.text.count("Is it so?") == 2


@pytest.mark.notebook
def test_every_link_heading_and_picture_of_a_run_s_pages(smoke_runs):
    folder = smoke_runs.of("00_walkthrough")
    index = write_index(folder.parent)
    for page in (folder / "00_walkthrough.html", folder / "answers.html", index):
        assert faults(page) == []
