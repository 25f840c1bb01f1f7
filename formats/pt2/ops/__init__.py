"""ATen's operator families; importing this package fills the rule table."""

from serde.rewrite.families import import_families

import_families(__name__, __path__)
