"""The site of the documentation is built without a warning, and works without a network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import serde
from tests.chromium import open_browser

DOCS = Path(__file__).resolve().parents[2] / "docs"
LOADED = re.compile(r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]* href="([^"]+)"')


def build(docs, site):
    """Build a site; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", docs, site]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_site(tmp_path):
    """Every page is on it and in a menu, every public name in its reference; nothing is fetched."""
    pytest.importorskip("furo")
    build(DOCS, tmp_path)
    for page in DOCS.rglob("*.md"):
        assert (tmp_path / page.relative_to(DOCS)).with_suffix(".html").exists(), page
    index = (tmp_path / "index.html").read_text()
    captions = re.findall(r'class="caption-text">([^<]+)<', index)
    assert captions == [
        "Tutorials", "How-to guides", "How to extend serde", "Reference", "Explanation", "Project"
    ]  # fmt: skip
    reference = (tmp_path / "reference" / "python.html").read_text()
    described = set(re.findall(r'<dt class="sig[^>]* id="serde\.(\w+)"', reference))
    assert set(serde.__all__) - {"__version__"} <= described
    for page in tmp_path.rglob("*.html"):
        loaded = [a or b for a, b in LOADED.findall(page.read_text())]
        assert not [link for link in loaded if "//" in link], page


def test_the_search_works_without_a_server(tmp_path):
    pytest.importorskip("furo")
    docs, site = tmp_path / "docs", tmp_path / "site"
    docs.mkdir()
    shutil.copy(DOCS / "conf.py", docs)
    (docs / "index.md").write_text("# Site\n\n## Pages\n\n* [One](one.md)\n* [Two](two.md)\n")
    (docs / "one.md").write_text("# One\n\nMarmalade and butter.\n")
    (docs / "two.md").write_text("# Two\n\nButter.\n")
    build(docs, site)
    with open_browser() as page:
        page.open(site / "search.html")
        page.evaluate("document.location.search = '?q=marmalade'")
        titles = []
        deadline = time.monotonic() + 20
        while not titles and time.monotonic() < deadline:
            time.sleep(0.2)
            titles = page.evaluate(
                "[...document.querySelectorAll('ul.search li a')].map(a => a.text)"
            )
        assert titles == ["One"]
        assert page.errors == []
