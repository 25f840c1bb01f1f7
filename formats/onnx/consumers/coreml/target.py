"""What Core ML accepts, by the description in ``serde.backends``."""

from __future__ import annotations

from serde.backends.description import read_description

COREML = read_description("coreml").target
