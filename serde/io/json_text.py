"""JSON for readers that know few escapes, as those of MXNet and TVM: no ``\\uXXXX``.

Characters beyond ASCII stand for themselves. Control characters without a short escape that these
readers know have no form at all, nor have halves of a pair of UTF-16: ``_`` stands for them.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Any

UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
ESCAPE = re.compile(r"\\(.)(?:(?<=u)....)?")
KNOWN = '"\\ntr'  # what a reader knows behind a backslash


def make_writable(text: str) -> str:
    """Text without characters that have no form."""
    return UNWRITABLE.sub("_", text)


def quote(text: str) -> str:
    """A string of JSON."""
    return encode_basestring(make_writable(text))


def dump_line(value: Any) -> str:
    """A value as ``json.dumps`` writes it, in these escapes."""
    text = UNWRITABLE.sub("_", json.dumps(value, ensure_ascii=False))
    return ESCAPE.sub(lambda m: m[0] if m[1] in KNOWN else "_", text) if "\\" in text else text
