"""README and documentation: short, whole, and every link in them leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from latex2mathml.converter import convert

import trustlab as tl
from tests.tree import contract
from trustlab.cli.run_notebooks import notebook_names, notebook_path
from trustlab.paths import NOTICE, ROOT

DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
BESIDE = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "data/LICENSES.md")]
PLOTS = ("intervals", "curves", "grid", "reliability", "winners")
MADE = {
    *(DOCS / "methods" / f"{name}.md" for name in ("index", *tl.METHODS)),
    *(DOCS / "notebooks" / f"{name}.ipynb" for name in notebook_names()),
    *(DOCS / "made" / f"{name}.md" for name in ("api", "sources", "results")),
    *(DOCS / "made" / f"{name}.svg" for name in ("families", "medconf")),
    *(DOCS / "made" / f"{name}.png" for name in PLOTS),
}
"""What docs/pages.py writes when the documentation is built."""


def place_of(page: Path) -> Path:
    """The folder that a page's links begin from: heads are put into a page of their folder."""
    at = {"methods_head.md": DOCS / "methods", "api_head.md": DOCS / "made"}
    return at.get(page.name, page.parent)


def anchors(page: Path) -> set[str]:
    """The names that a link may end with: headings as they are slugged, and targets."""
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=", text, re.M))


def broken(page: Path) -> list[str]:
    """The links and pictures of a page that lead nowhere."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = Path(os.path.normpath(place_of(page) / name)) if name else page
        there = target in MADE or target.exists()
        if not there or (anchor and target.exists() and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_the_readme_lists_every_notebook_by_its_question() -> None:
    lines = re.findall(
        r"^- \[`(\w+)`\]\(notebooks/\1\.ipynb\): \*(.+)\*$", README.read_text("utf-8"), re.M
    )
    cells = {n: nbformat.read(notebook_path(n), as_version=4).cells for n in notebook_names()}
    assert dict(lines) == {n: c[0].source.splitlines()[0][2:] for n, c in cells.items()}


def test_the_layers_of_the_design_are_those_of_the_contract() -> None:
    section = (DOCS / "design.md").read_text("utf-8").partition("\n## The layers\n")[2]
    lines = re.findall(r"^    (.+)$", section.partition("\n## ")[0], re.M)
    written, enforced = (
        [sorted(re.split(r" [|:] ", layer)) for layer in layers]
        for layers in (lines, contract("Layers")["layers"])
    )
    assert written == enforced


def test_every_method_has_a_formula_and_what_breaks_it() -> None:
    told = yaml.safe_load((DOCS / "methods.yml").read_text(encoding="utf-8"))
    assert set(told) == set(tl.METHODS)
    for name, entry in told.items():
        assert {*entry} - {"wording", "convention"} == {"formula", "breaks"}, name
        assert len(entry["breaks"]) > 30, name
        assert "<math" in convert(entry["formula"])


@pytest.mark.slow
def test_the_readme_s_lines_of_python_run() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    names: dict[str, object] = {}
    exec(code.replace("n=20", "n=2"), names)
    assert len(names["run"].answers) == 2 * len(tl.LEVELS)  # pyright: ignore


@pytest.mark.slow
def test_the_page_of_the_figures_draws_each_of_its_examples(tmp_path: Path) -> None:
    sys.path.insert(0, str(DOCS))
    from pages import draw_figures

    draw_figures(tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == set(PLOTS)


@pytest.mark.slow
def test_the_documentation_is_built_without_warnings_and_without_a_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E"]
    done = subprocess.run(
        [*command, "-d", str(tmp_path / "doctrees"), "docs", str(tmp_path / "html")],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    html = tmp_path / "html"
    pages = [page for page in html.rglob("*.html") if "_static" not in page.parts]
    made = {page.relative_to(html).with_suffix("").as_posix() for page in pages}
    assert {f"methods/{name}" for name in tl.METHODS} <= made
    assert {f"notebooks/{name}" for name in notebook_names()} <= made
    fetched = re.compile(r'<(?:script|img|iframe)\b[^>]*\bsrc="https?:|<link\b[^>]*\bhref="https?:')
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert NOTICE in text and not fetched.search(text), page.name
