"""Lists of operators in the product: facts about operators are traits, in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).parents[2]
# Tables of facts: of operators, with tests beside them, and of what runtimes were measured to do.
TABLES = ("spec/traits.py", "spec/number_traits.py", "support_table.py", "_support.py",
          "documented_operators.py")  # fmt: skip
OPERATORS = frozenset(s.name for s in onnx.defs.get_all_schemas())
NAMED = 5  # operators that make a list
# How many such lists there are; a trait, or the table of a target, can take the place of one. Those
# of formats say what runtimes do.
MOST = {"serde": 14, "formats": 27, "bridges": 0, "backends": 0}


def find_lists(part: str) -> Iterator[str]:
    """Constants of a module that list operators, and say nothing of each."""
    for path in sorted((ROOT / part).rglob("*.py")):
        if str(path).endswith(TABLES):
            continue
        for statement in ast.parse(path.read_text()).body:
            value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
            if value is not None and is_list(value):
                yield f"{path.relative_to(ROOT)}:{statement.lineno}"


def is_list(value: ast.expr) -> bool:
    nodes = list(ast.walk(value))
    if any(isinstance(n, ast.Dict | ast.DictComp | ast.Lambda) for n in nodes):
        return False
    texts = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    words = [word for text in texts for word in text.split()]
    return sum(w in OPERATORS for w in words) >= max(NAMED, len(words) / 2)


@pytest.mark.parametrize("part", MOST)
def test_few_lists_of_operators_are_left(part: str) -> None:
    found = list(find_lists(part))
    assert len(found) <= MOST[part], "\n".join(found)
