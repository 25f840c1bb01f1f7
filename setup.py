"""Packaging: the top-level folders become one import package; the rest is in pyproject.toml.

``serde`` has links to the other folders, so that a checkout can be imported as it is. They are
left out here: archives of the sources may not have them.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
FOLDERS = {
    "serde": "serde", "backends": "serde.backends", "formats": "serde.formats",
    "frontends": "serde.frontends", "bridges": "serde.bridges",
}  # fmt: skip
LINKS = [pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")]
RELATIVE_LINK = re.compile(r"\[([^]]+)\]\((?!\w+://)[^)]+\)")


def packages() -> list[str]:
    """Every package, under the name it is imported by."""
    found = []
    for folder, name in FOLDERS.items():
        found.append(name)
        found += [f"{name}.{sub}" for sub in find_packages(str(HERE / folder), exclude=LINKS)]
    return found


def readme() -> str:
    """The README for a package index, where links to files lead nowhere: their texts stay."""
    return RELATIVE_LINK.sub(r"\1", (HERE / "README.md").read_text(encoding="utf-8"))


setup(
    packages=packages(),
    package_dir={name: folder for folder, name in FOLDERS.items()},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
