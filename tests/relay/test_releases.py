"""Every recorded module as each release of TVM with Relay would have written it.

The modules are TVM 0.17's; what the text and the JSON of other releases looked like is known from
their sources. ``test_upgrade.py`` has the operators that changed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.text.parser import parse_text
from testing.relay.compare import SIX_DIGITS, difference
from tests.relay.written import downgrade

DATA = Path(__file__).with_name("data")
RELEASES = [(0, minor) for minor in range(6, 20)]
NAMES = sorted(path.stem for path in DATA.glob("*.json"))
HEADER, METADATA = '#[version = "0.0.5"]', "#[metadata]"
# What the text of releases before one has otherwise: a pattern, and what stands there.
BEFORE = {
    (0, 7): ((re.escape(HEADER), "v0.0.4"),),
    (0, 8): (
        (r"\b(\d[\d.e+-]*)f64\b", r"\1"),
        (r"\bref_read\((%\w+)\)", r"\1^"),
        (r"\bref_write\((%\w+), (%?\w+)\)", r"(\1 := \2)"),
    ),
    (0, 9): ((r"\b(\d[\d.e+-]*)(?:i16|i64|f16)\b", r"\1"), (r" /\* ty=[^*]* span=[^*]*\*/", "")),
}


def aged_text(text: str, release: tuple[int, int]) -> str:
    """Text of TVM 0.17 as ``release`` would have written it, the attributes of operators apart."""
    code, mark, metadata = text.partition(METADATA)
    for since, changes in BEFORE.items():
        for pattern, instead in changes if release < since else ():
            code = re.sub(pattern, instead, code)
    if mark:
        mark = "METADATA:" if release < (0, 7) else METADATA
        code += f"{mark}\n{downgrade(metadata, release)}\n"
    return code


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: f"{r[0]}.{r[1]}")
@pytest.mark.parametrize("name", NAMES)
def test_json(name, release):
    text = (DATA / f"{name}.json").read_text()
    old = parse_json(downgrade(text, release), name)
    assert old.tvm == f"{release[0]}.{release[1]}.0"
    assert difference(parse_json(text), old) is None


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: f"{r[0]}.{r[1]}")
@pytest.mark.parametrize("name", NAMES)
def test_text(name, release):
    text = (DATA / f"{name}.txt").read_text()
    old = parse_text(aged_text(text, release))
    assert difference(parse_text(text), old, SIX_DIGITS) is None


def test_forms_that_changed_are_among_the_modules():
    """Each pattern is in a module, so that none of the tests is without an effect."""
    texts = [(DATA / f"{name}.txt").read_text() for name in NAMES]
    for changes in BEFORE.values():
        assert any(re.search(p, t) for p, _ in changes for t in texts), changes
