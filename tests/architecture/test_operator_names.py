"""Lists of operators in the product: facts about operators are traits, in one place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).parents[2]
# Tables of facts: of operators, with tests beside them, and of what runtimes were measured to do.
TABLES = ("spec/traits.py", "spec/number_traits.py", "support_table.py", "_support.py",
          "documented_operators.py")  # fmt: skip
OPERATORS = frozenset(s.name for s in onnx.defs.get_all_schemas())
NAMED = 5  # operators that make a list
# How many such lists there are, and how many that say a number, or places, of each operator; a
# trait, or the table of a target, can take the place of one. Those of formats say what runtimes do.
MOST = {"serde": (2, 13), "formats": (11, 12), "bridges": (0, 0), "backends": (0, 1)}


def find_tables(part: str, is_table: Callable[[ast.expr], bool]) -> Iterator[str]:
    """Constants of a module that are such tables."""
    for path in sorted((ROOT / part).rglob("*.py")):
        if str(path).endswith(TABLES):
            continue
        for statement in ast.parse(path.read_text()).body:
            value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
            if value is not None and is_table(value):
                yield f"{path.relative_to(ROOT)}:{statement.lineno}"


def is_list(value: ast.expr) -> bool:
    """Whether an expression lists operators, and says nothing of each."""
    nodes = list(ast.walk(value))
    if any(isinstance(n, ast.Dict | ast.DictComp | ast.Lambda) for n in nodes):
        return False
    texts = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    words = [word for text in texts for word in text.split()]
    return sum(w in OPERATORS for w in words) >= max(NAMED, len(words) / 2)


def is_map(value: ast.expr) -> bool:
    """Whether an expression says numbers of operators by name: no functions, forms or names."""
    if not isinstance(value, ast.Dict):
        return False
    nodes = [n for part in value.values for n in ast.walk(part)]
    if any(isinstance(n, ast.Call | ast.Name | ast.Lambda) for n in nodes):
        return False
    if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in value.values):
        return False
    keys = [k.value for k in value.keys if isinstance(k, ast.Constant)]
    return sum(k in OPERATORS for k in keys) >= max(3, len(keys) / 2)


@pytest.mark.parametrize("part", MOST)
def test_few_lists_of_operators_are_left(part: str) -> None:
    for is_table, most in zip((is_list, is_map), MOST[part], strict=True):
        found = list(find_tables(part, is_table))
        assert len(found) <= most, "\n".join(found)
