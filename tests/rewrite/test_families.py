"""Modules that fill tables as they are imported."""

from __future__ import annotations

import sys

import pytest

from serde.legalize import routes
from serde.rewrite.families import import_families
from serde.version_converter import adapters

MODULES = {
    "pools.py": "TABLE.append('pools')", "__init__.py": "TABLE = []", "notes.txt": "no module",
    "layers/__init__.py": "", "layers/dense.py": "from fam_toy import TABLE; TABLE.append('dense')",
    "data/dense.py": "raise AssertionError('of no package')",
}  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        path = tmp_path / "fam_toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = "from fam_toy import TABLE\n" if name == "pools.py" else ""
        path.write_text(head + text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "fam_toy"
    for name in [name for name in sys.modules if name.split(".")[0] == "fam_toy"]:
        del sys.modules[name]


def test_modules_of_a_package_and_of_those_in_it_are_imported_once(package):
    for _ in range(2):
        import_families("fam_toy", [str(package)])
    assert sys.modules["fam_toy"].TABLE == ["dense", "pools"]


def test_a_mistake_in_a_module_is_not_hidden(package):
    (package / "broken.py").write_text("1 / 0")
    with pytest.raises(ZeroDivisionError):
        import_families("fam_toy", [str(package)])


def test_the_families_of_adapters_fill_the_tables():
    """Whoever asks for a step of an operator has them all."""
    assert routes.downgrades is adapters.downgrades
    assert all(table.rules for v, table in adapters.downgrades.items() if v in (9, 11, 13, 18, 24))
