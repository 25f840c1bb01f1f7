"""Rule tables are filled as modules are imported: one for each family of operators."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import walk_packages


def import_families(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, those of packages in it too: each fills the tables."""
    for module in walk_packages(path, f"{package}."):
        import_module(module.name)
