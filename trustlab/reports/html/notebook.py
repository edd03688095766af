"""Writes an executed notebook as a page of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

from trustlab.paths import NOTICE, save_text
from trustlab.reports.html.pages import PAGE

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What a page may load: nothing; whatever it shows stands in it."""
BAR = re.compile(r"\[\d+:\d\d(?:<|, )|^(?:\s|\x1b\[A)*$")
"""A line of stderr that is a progress bar, or what is left where one was."""
PLACE = re.compile(
    r"^\S.*?:\d+: (?:User)?(\w*Warning: .*)\n(?:  .*(?:\n|\Z))?", re.MULTILINE
)
"""A warning with its file and line in front, as Python writes it, and the code of that line."""
WIDGET = "application/vnd.jupyter.widget-view+json"


class Heading(NamedTuple):
    """A heading of a page: its tag, such as "h2", the id that a link leads to, and its words."""

    level: str
    place: Any
    words: str


def write_html(notebook: Path) -> Path:
    """An HTML copy beside the notebook that opens without a network (:data:`POLICY`): its images
    inside, formulas as MathML, its first result behind its first cell.
    On paper its long lines are broken, wide tables stand on pages of their own, across, and no row
    is folded."""
    import nbformat
    from bs4 import BeautifulSoup
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    from trustlab.reports.html.formulas import markdown2html

    shown = nbformat.read(notebook, 4)
    shown.metadata.pop("widgets", None)
    text = "\n\n".join(
        cell.source for cell in shown.cells if cell.cell_type == "markdown"
    )
    page = BeautifulSoup(markdown2html({}, text), "html.parser")
    headings = [
        Heading(tag.name, tag.get("id"), tag.get_text().removesuffix("¶"))
        for tag in page.find_all(["h1", "h2", "h3"])
    ]
    titles = [heading.words for heading in headings if heading.level == "h1"]
    facts = {
        "heading": titles[0] if titles else notebook.stem,
        "contents": [head for head in headings if head.place and head.level != "h1"],
        "links": [(PAGE, "Answers by case")]
        if (notebook.parent / PAGE).is_file()
        else [],
        "notice": NOTICE,
        "policy": POLICY,
    }
    with as_file(files("trustlab.reports.html") / "templates") as templates:
        exporter = HTMLExporter(
            extra_template_basedirs=[str(templates)],
            template_name="run",
            embed_images=True,
            exclude_input_prompt=True,
            exclude_output_prompt=True,
            filters={"markdown2html": markdown2html},
            # of enough contrast
            config=Config(CSSHTMLHeaderPreprocessor={"style": "xcode"}),
        )
        body, _ = exporter.from_notebook_node(shown, resources=facts)
    target = notebook.with_suffix(".html")
    save_text(body, target)
    return target


def without_progress(outputs: Iterable[Any]) -> list[Any]:
    """The outputs without progress bars, of text or of widgets, which need a kernel. Other lines of
    stderr stay, a warning without its place in the code."""
    shown = []
    for output in outputs:
        if output.get("name") == "stderr":
            text = PLACE.sub(r"\1\n", output.text)
            lines = [line for line in re.split(r"[\r\n]", text) if not BAR.search(line)]
            output.text = "\n".join([*lines, ""])
        if output.get("text") != "" and WIDGET not in output.get("data", {}):
            shown.append(output)
    return shown
