"""What QNN accepts, by the description in ``serde.backends``."""

from __future__ import annotations

from serde.backends.description import read_description

QNN = read_description("qnn").target
