"""What QNN accepts, by the description in ``serde.backends``."""

from __future__ import annotations

from serde.backends.description import get_backend

QNN = get_backend("qnn").target
