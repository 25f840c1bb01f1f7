"""What Core ML accepts, by the description in ``serde.backends``."""

from __future__ import annotations

from serde.backends.description import get_backend

COREML = get_backend("coreml").target
