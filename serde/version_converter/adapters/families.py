"""Every family of rules: importing this fills the tables."""

from serde.rewrite.families import import_families
from serde.version_converter import adapters

import_families(adapters.__name__, adapters.__path__)
