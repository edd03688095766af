"""Writes Markdown as HTML with its formulas as MathML, which browsers draw by themselves."""

from __future__ import annotations

from functools import partial
from html import escape, unescape
from typing import Any
from xml.etree.ElementTree import tostring

from jinja2 import pass_context
from latex2mathml.converter import convert_to_element
from nbconvert.filters.markdown_mistune import (
    IPythonRenderer,
    MarkdownWithMath,
    MathInlineParser,
)

DOLLARS = r"(?<![$\\])\$(?P<math_inline_tex>[^\s$](?:[^$]*?[^\s$\\])?)\$(?!\d)"
"""An inline formula: no space stands inside next to its dollars, and no digit behind them, so that
"$5 and $10" is money."""


def mathml(tex: str, display: str = "inline") -> str:
    """A formula as MathML; as its source, in ``<code>``, where a part of it is not known."""
    source = f"<code>{escape(tex)}</code>"
    try:
        root = convert_to_element(tex.replace("{aligned}", "{align*}"), display=display)
    except Exception:  # the library raises whatever its parser meets
        return source
    # HTML needs none, and headings are written anew with what it names
    root.attrib.pop("xmlns")
    for part in root.iter():
        part.text = unescape(part.text or "")  # the library writes characters by number
    html = tostring(root, encoding="unicode")
    return source if "\\" in html or "<mi>&amp;" in html else html


@pass_context
def markdown2html(context: Any, source: str) -> str:
    """Markdown of a cell or an output as HTML; ``context`` may hold the cell."""
    attachments = context.get("cell", {}).get("attachments", {})
    renderer: Any = IPythonRenderer(
        escape=False, attachments=attachments, embed_images=True
    )
    renderer.inline_math = mathml
    renderer.block_math = partial(mathml, display="block")
    renderer.latex_environment = _environment
    parser = MathInlineParser(hard_wrap=False)
    parser.specification["inline_math_tex"] = DOLLARS
    return MarkdownWithMath(renderer, inline=parser).render(source)


def _environment(name: str, body: str) -> str:
    return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")
