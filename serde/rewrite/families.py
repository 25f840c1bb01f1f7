"""Rule tables are filled as modules are imported: one for each family of operators."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from os import listdir
from os.path import isfile, join, splitext


def import_families(package: str, folders: Iterable[str]) -> None:
    """Import every module of a package, those of packages in it too: each fills the tables."""
    for folder in folders:
        for entry in sorted(listdir(folder)):
            name, ending = splitext(entry)
            if ending == ".py" and name != "__init__":
                import_module(f"{package}.{name}")
            elif isfile(join(folder, entry, "__init__.py")):
                import_families(f"{package}.{name}", [join(folder, entry)])
