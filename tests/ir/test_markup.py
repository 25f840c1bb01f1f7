"""Text in HTML and SVG: neither markup, nor what XML cannot hold."""

from __future__ import annotations

from html import unescape
from xml.etree import ElementTree

import pytest

from serde.ir.markup import escape

CODES = (0xAD, 0x200B, 0x2028, 0x202E, 0x2066, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF)
CHARACTERS = [chr(n) for n in (*range(0xA0), *CODES)]


@pytest.mark.parametrize("character", CHARACTERS, ids=lambda c: f"{ord(c):04x}")
def test_every_character_is_text_of_xml(character):
    text = escape(f"a{character}b")
    text.encode()
    ElementTree.fromstring(f"<a b='{text}'>{text}</a>")
    if character.isprintable() or character == "\n":
        assert unescape(text) == f"a{character}b"
    else:
        assert character not in text


def test_markup_and_quotes_are_escaped():
    assert escape("<a href=\"x\" b='y'>&") == "&lt;a href=&quot;x&quot; b=&#x27;y&#x27;&gt;&amp;"
