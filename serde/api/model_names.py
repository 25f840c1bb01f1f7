"""Which files may be models, by their names."""

from __future__ import annotations

from collections.abc import Iterable

from serde.io.sniff import ARCHIVES
from serde.plugins import installed_formats

GZIP = ".gz"  # behind the ending of any model
# Endings that files of many kinds have; their content decides.
AMBIGUOUS = (".json", ".zip", ".model")


def list_suffixes() -> list[str]:
    """The endings of models of all formats that are read, and of archives."""
    return [*(s for f in installed_formats() if f.is_read for s in f.suffixes), *ARCHIVES]


def is_candidate(name: str) -> bool:
    """Whether a name ends like a model."""
    return bool(select_candidates([name]))


def select_candidates(names: Iterable[str]) -> list[str]:
    """The names that end like a model; of many at once, as formats are asked for their suffixes."""
    suffixes = tuple(list_suffixes())
    return [name for name in names if name.lower().removesuffix(GZIP).endswith(suffixes)]


def is_ambiguous(name: str) -> bool:
    """Whether a name ends like a model and like files of other kinds."""
    sure = [s for s in list_suffixes() if s not in AMBIGUOUS]
    return not name.lower().removesuffix(GZIP).endswith(tuple(sure))
