"""Where the tests of a module are: in the same folder of ``tests``, under its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_architecture import ROOT

HUB, TESTS = ROOT / "serde", ROOT / "tests"


def modules() -> Iterator[str]:
    """The modules of the hub that do something: more than to give names of others."""
    for path in sorted(HUB.rglob("*.py")):
        if path.is_relative_to(HUB) and any(map(does_something, ast.parse(path.read_text()).body)):
            yield str(path.relative_to(HUB))


def does_something(statement: ast.stmt) -> bool:
    """Whether a statement is no docstring, import or ``__all__``."""
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0]) != "__all__"
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not is_docstring and not isinstance(statement, (ast.Import, ast.ImportFrom))


def has_own_tests(module: str) -> bool:
    """Whether there is a file of its name, in the same folder or one above."""
    parts = [*Path(module).with_suffix("").parts]
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    if not parts:
        return (TESTS / "test_api.py").exists()
    stem, around = f"test_{parts[-1].strip('_')}.py", parts[:-1]
    places = [TESTS.joinpath(*parts)]
    for start in range(len(around) + 1):
        places += [
            TESTS.joinpath(*around[:start], *around[end:]) for end in range(start, len(around) + 1)
        ]
    return any((place / stem).exists() for place in places)


def test_every_module_of_the_hub_has_tests_under_its_name():
    assert [m for m in modules() if not has_own_tests(m)] == []
