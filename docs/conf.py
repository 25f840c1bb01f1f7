"""The site of the documentation: ``python -m sphinx -W docs docs/_build``.

The pages are Markdown that reads well as it is. The menus of the site are the lists of links in the
files called ``index.md``; links to files that are no pages are shown as paths.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import serde

HERE = Path(__file__).resolve().parent

project = "serde"
release = version = serde.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"serde {release}"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it would fetch pages, which files may not
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_preserve_defaults = False

LINK = re.compile(r"\[([^]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def add_menus(text: str) -> str:
    """A menu for each section that lists pages, or for a page without sections: its links."""
    menus = []
    parts = [re.split(rf"^{mark} ", text, flags=re.MULTILINE)[1:] for mark in ("##", "#")]
    for section in parts[0] or parts[1]:
        title, _, rest = section.partition("\n")
        pages = [f"{name} <{page}>" for name, page, _ in LINK.findall(rest) if is_inside(page)]
        if pages:
            head = ["```{toctree}", ":hidden:", f":caption: {title}", ""]
            menus.append("\n".join([*head, *pages, "```", ""]))
    return "\n".join([text, *menus])


def is_inside(target: str) -> bool:
    """Whether a link of an index leads to a page of the site."""
    return target.endswith(".md") and not target.startswith("..")


def show_paths(page: Path, text: str) -> str:
    """The text with the paths of files that are no pages in place of links to them."""

    def show(match: re.Match[str]) -> str:
        target = (page.parent / match[2]).resolve()
        if "://" in match[2] or HERE in target.parents:
            return match[0]
        return f"{match[1]} (`{target.relative_to(HERE.parent)}`)"

    return LINK.sub(show, text)


def read_page(app: Any, name: str, source: list[str]) -> None:
    """Change what the site shows otherwise than a reader of the file sees."""
    text = show_paths(Path(app.env.doc2path(name)), source[0])
    source[0] = add_menus(text) if name.endswith("index") else text


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", read_page)
