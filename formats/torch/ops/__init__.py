"""Operators by family; importing this package fills the rule tables."""

from serde.rewrite.families import import_families

import_families(__name__, __path__)
