"""Sweeps and benchmarks, which no test runs whole, import names that exist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.test_architecture import PACKAGES, ROOT

FOLDERS = ("benchmarks", "conformance", "testing")
OURS = ("benchmarks", "conformance", "examples", "serde", "testing", "tests")


def find_source(module: str) -> Path | None:
    """The file or folder of a module of the checkout."""
    for folder, package in PACKAGES.items():
        if f"{module}.".startswith(f"{package}."):
            module = folder + module.removeprefix(package)
    path = ROOT.joinpath(*module.split("."))
    places = (path / "__init__.py", path.with_suffix(".py"), path)
    return next((p for p in places if p.exists()), None)


@cache
def list_names(path: Path) -> frozenset[str]:
    """What a module defines or imports, at its top level or under an ``if``."""
    if path.is_dir():
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return frozenset(names)


def missing_names(path: Path) -> Iterator[str]:
    """The names that a file imports from modules of the checkout that do not have them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
            continue
        if node.module.split(".")[0] not in OURS:
            continue
        source = find_source(node.module)
        known = list_names(source) if source else frozenset()
        if "__getattr__" in known:  # imports names when they are used
            continue
        for alias in node.names:
            if alias.name not in known and find_source(f"{node.module}.{alias.name}") is None:
                yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_imported_names_exist(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    missing = {str(p.relative_to(ROOT)): names for p in files if (names := [*missing_names(p)])}
    assert not missing


# Tests that are of a sweep, or compare with what one recorded. Others are in tests/conformance.
OF_SWEEPS = {
    "tests/consumers/checks.py", "tests/consumers/test_onnxruntime.py",
    "tests/consumers/test_opsets.py", "tests/frontends/test_array_api.py",
    "tests/fuzz/test_grammar.py", "tests/mxnet/test_kernels.py", "tests/onnx/test_wheel_models.py",
    "tests/relax/test_relax.py", "tests/verification/test_tolerated.py",
    "tests/version_converter/test_page.py",
}  # fmt: skip


def import_folders(path: Path) -> set[str]:
    """The top-level folders that a file imports from."""
    found = [
        n
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    modules = [a.name for n in found if isinstance(n, ast.Import) for a in n.names]
    modules += [n.module or "" for n in found if isinstance(n, ast.ImportFrom) and not n.level]
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("folder", ["benchmarks", "conformance", "examples", "testing"])
def test_sweeps_import_no_test(folder):
    """What they share with tests is in ``testing``, which imports neither."""
    banned = {"tests", "conformance"} if folder == "testing" else {"tests"}
    wrong = [p for p in (ROOT / folder).rglob("*.py") if import_folders(p) & banned]
    assert [str(p.relative_to(ROOT)) for p in wrong] == []


def test_tests_import_no_sweep():
    importing = {
        str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("*.py")
        if "conformance" in import_folders(p) and p.parent.name != "conformance"
    }  # fmt: skip
    assert importing == OF_SWEEPS
