"""Sphinx's settings: everything is read from this checkout, and nothing from a network."""

import pkgutil
import re
import sys
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from pygments.lexers.special import TextLexer

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import pages  # noqa: E402

import trustlab  # noqa: E402
from trustlab.paths import NOTICE  # noqa: E402

project, version, release = "trustlab", trustlab.__version__, trustlab.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "*_head.md", "teaching"]
nitpicky = True
# No page is fetched, so that other projects' names have no page to link to.
nitpick_ignore_regex = [(r"py:.*", r"(?!trustlab).*")]

myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_output_stderr = "remove"
nb_ipywidgets_js = {}
autodoc_typehints = "none"
autodoc_member_order = "bysource"

highlight_language = "text"
html_theme = "pydata_sphinx_theme"
html_title = "trustlab"
html_sidebars = {"*": [], "made/*": []}
html_static_path = ["_static"]
html_css_files = ["trustlab.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_theme_options = {
    "announcement": NOTICE,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = "trustlab contributors, MIT licence. Research only, not for clinical use"


def inline(self, node):
    """Formulas as MathML, which browsers draw by themselves."""
    self.body.append(convert(node.astext()))
    raise SkipNode


def display(self, node):
    """A formula on a line of its own."""
    self.body.append(
        f'<div class="formula">{convert(node.astext(), display="block")}</div>'
    )
    raise SkipNode


def known(app, env, node, contnode):
    """A docstring may name what has no page: public names are linked wherever they come from, inner
    ones stay words; what does not exist is a warning."""
    target = node.get("reftarget", "")
    name = target.rpartition(".")[2]
    if not target.startswith("trustlab."):
        return None
    if name in trustlab.__all__ and target != f"trustlab.{name}":
        python = env.get_domain("py")
        more = (app.builder, "obj", f"trustlab.{name}", node, contnode)
        return python.resolve_xref(env, node["refdoc"], *more)
    try:
        pkgutil.resolve_name(target)
    except (ImportError, AttributeError):
        return None
    return contnode


def own_notebooks(app, page, source):
    """Notebooks beside docs/ are built from their copies in docs/notebooks/ and docs/lessons/."""
    if page == "paper":
        source[0] = source[0].replace("](../notebooks/", "](notebooks/")
    if page == "all_methods":
        source[0] = re.sub(
            r"^\| `(\w+)` \|", r"| [`\1`](methods/\1.md) |", source[0], flags=re.M
        )
    if page == "lecturers":
        source[0] = source[0].replace("](../notebooks/lessons/", "](lessons/")
        source[0] = re.sub(
            r"\[([^]]*)\]\((teaching/[^)]*)\)", r"\1 (`docs/\2`)", source[0]
        )
    if page.startswith("lessons/"):
        source[0] = source[0].replace("](../../docs/", "](../")


def setup(app):
    """Make the pages that code makes before any is read."""
    app.connect("builder-inited", lambda app: pages.make())
    app.connect("missing-reference", known)
    app.connect("source-read", own_notebooks)
    app.add_lexer("csv", TextLexer)
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
