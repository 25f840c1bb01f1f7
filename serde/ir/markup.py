"""Text in HTML and SVG."""

from __future__ import annotations

import html
import re

from serde.errors import CONTROL, escape_controls

IN_MARKUP = re.compile(f"[{CONTROL}\ufffe\uffff]")  # lines are white space there


def escape(text: str) -> str:
    """Text as HTML and XML take it: no markup, and no character that XML cannot hold."""
    return html.escape(escape_controls(text, IN_MARKUP))
