"""Follow sizes by name through shape arithmetic: what is known of a computed shape's elements.

ONNX's inference sees one node, so ``Shape → Gather → Concat → Reshape`` on a named batch
loses its dimensions. Here every small integer tensor may carry ``Value.shape_data``, in which a
size is a number, a name, an expression of names, or None. Equal text means equal size.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from serde.ir.graph import Dim, DType, Tensor, Value

LIMIT = 64  # elements worth following: shapes, not index tables
LONGEST = 80  # letters of an expression
INT64 = range(-(1 << 63), 1 << 63)  # sizes beyond are not followed
SIZES = (DType.INT64, DType.INT32)
Elements = tuple[Dim, ...]
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/"}


def is_number(text: str) -> bool:
    """Whether a text is a number of decimal digits that int64 holds."""
    return text.isascii() and text.isdigit() and len(text) < 19


def shape_data_of(value: Value | None) -> Elements | None:
    """What is known of the elements of ``value``: of a constant, all."""
    if value is None or value.container:
        return None
    if value.shape_data is not None:
        return value.shape_data
    tensor = value.tensor
    if tensor is None or tensor.dtype not in SIZES or tensor.size > LIMIT:
        return None
    return _elements(tensor)


@lru_cache(4096)
def _elements(tensor: Tensor) -> Elements:
    return tuple(tensor.load().ravel().tolist())


def infer_shape_data(
    op: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any]
) -> Elements | None:
    """Elements of the single output of ``op``, None where nothing is known."""
    rule = RULES.get(op)
    if rule is None or not inputs or inputs[0] is None:
        return None
    elements = rule(inputs, attrs)
    return None if elements is None or (elements and all(e is None for e in elements)) else elements


def _shape(inputs: Any, attrs: Any) -> Elements | None:
    shape = inputs[0].shape
    if shape is None or inputs[0].container:
        return None
    return shape[slice(attrs.get("start", 0), attrs.get("end"))]  # type: ignore[no-any-return]


def _gather(inputs: Any, attrs: Any) -> Elements | None:
    data, at = shape_data_of(inputs[0]), shape_data_of(inputs[1])
    if data is None or at is None or inputs[0].shape is None or len(inputs[0].shape) != 1:
        return None
    if any(not isinstance(i, int) or not -len(data) <= i < len(data) for i in at):
        return None
    return tuple(data[i] for i in at)  # type: ignore[index]


def _slice(inputs: Any, attrs: Any) -> Elements | None:
    data = shape_data_of(inputs[0])
    bounds = [shape_data_of(v) for v in inputs[1:3]]
    step = shape_data_of(inputs[4]) if len(inputs) > 4 and inputs[4] is not None else (1,)
    if data is None or inputs[0].shape is None or len(inputs[0].shape) != 1 or len(bounds) < 2:
        return None
    if step is None or any(b is None or len(b) != 1 for b in bounds):
        return None
    if not isinstance(step[0], int) or step[0] == 0:
        return None
    start, end = (b[0] for b in bounds if b is not None)
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    return data[max(start, -len(data)) : _end(end, step[0], len(data)) : step[0]]


def _end(end: int, step: int, size: int) -> int | None:
    return None if step < 0 and end < -size else end


def _concat(inputs: Any, attrs: Any) -> Elements | None:
    parts: list[Dim] = []
    for value in inputs:
        if value is None or value.shape is None or len(value.shape) != 1:
            return None  # elements are followed in one row
        known = shape_data_of(value)
        if known is None:
            size = value.shape[0]
            if not isinstance(size, int) or size > LIMIT:
                return None
            known = (None,) * size
        parts += known
    return tuple(parts) if len(parts) <= LIMIT else None


def _same(inputs: Any, attrs: Any) -> Elements | None:
    return shape_data_of(inputs[0])


def _cast(inputs: Any, attrs: Any) -> Elements | None:
    return shape_data_of(inputs[0]) if attrs.get("to") in (6, 7) else None  # INT32, INT64


def _pairs(inputs: Any) -> list[tuple[Dim, Dim]] | None:
    """What is known of the elements of two operands that broadcast."""
    a, b = shape_data_of(inputs[0]), shape_data_of(inputs[1])
    if a is None or b is None:
        return None
    if 1 not in (len(a), len(b)) and inputs[0].shape != inputs[1].shape:
        return None  # broadcast in several axes
    size = len(b) if len(a) == 1 else len(a)
    a, b = (e * size if len(e) == 1 else e for e in (a, b))
    return list(zip(a, b, strict=True))


def _arithmetic(sign: str) -> Callable[[Any, Any], Elements | None]:
    def rule(inputs: Any, attrs: Any) -> Elements | None:
        pairs = _pairs(inputs)
        return None if pairs is None else tuple(combine(sign, x, y) for x, y in pairs)

    return rule


def _comparison(compare: Callable[[int, int], bool]) -> Callable[[Any, Any], Elements | None]:
    """Whether sizes compare so, where that is known: of numbers, of one name and itself.

    A size by name is compared with numbers below 0 too.
    """

    def rule(inputs: Any, attrs: Any) -> Elements | None:
        pairs = _pairs(inputs)
        return None if pairs is None else tuple(_compare(compare, x, y) for x, y in pairs)

    return rule


def _compare(compare: Callable[[int, int], bool], a: Dim, b: Dim) -> Dim:
    if a is None or b is None:
        return None
    if a == b:
        return int(compare(0, 0))
    if isinstance(a, str) and a.isidentifier() and isinstance(b, int) and b < 0:
        a = 0
    if isinstance(b, str) and b.isidentifier() and isinstance(a, int) and a < 0:
        b = 0
    return int(compare(a, b)) if isinstance(a, int) and isinstance(b, int) else None


def _where(inputs: Any, attrs: Any) -> Elements | None:
    """Of each element that is chosen, where it is known which or both are the same."""
    condition, pairs = inputs[0], _pairs(inputs[1:])
    choice = shape_data_of(condition)
    if condition.tensor is not None and condition.tensor.size <= LIMIT:
        choice = _elements(condition.tensor)
    if choice is None or pairs is None or condition.rank > 1:
        return None
    size = max(len(choice), len(pairs))
    if {len(choice), len(pairs)} - {1, size}:
        return None
    choice = choice * size if len(choice) == 1 else choice
    pairs = pairs * size if len(pairs) == 1 else pairs
    return tuple(
        x if x == y else None if c is None else x if c else y
        for c, (x, y) in zip(choice, pairs, strict=True)
    )


def combine(sign: str, a: Dim, b: Dim) -> Dim:
    """``a sign b`` for sizes; names give an expression, kept in one spelling."""
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        if sign == "/":
            return a // b if b > 0 and a >= 0 else None
        size = {"+": a + b, "-": a - b, "*": a * b}[sign]
        return size if size in INT64 else None
    if sign in "*/":
        return _multiply(a, b) if sign == "*" else _divide(a, b)
    if b == 0:
        return a
    if sign == "+" and a == 0:
        return b
    if sign == "-" and a == b:
        return 0
    if sign == "+" and not isinstance(b, int) and (isinstance(a, int) or str(a) > str(b)):
        a, b = b, a
    return _limit_length(f"{_parenthesize(a)}{sign}{_parenthesize(b)}")


def add(dim: Dim, number: int) -> Dim:
    """A size and a number, which may be less than 0."""
    return combine("-", dim, -number) if number < 0 else combine("+", dim, number)


def split_coefficient(dim: int | str) -> tuple[str, int]:
    """A size as names times a number: ``("N", 12)`` for ``N*12``, ``("", 12)`` for 12."""
    if isinstance(dim, int):
        return "", dim
    names, star, number = dim.rpartition("*")
    if not star or not is_number(number) or _parenthesize(names) != names:
        return dim, 1  # a file may call a dimension anything
    return (names[1:-1] if names[0] == "(" else names), int(number)


def _multiply(a: int | str, b: int | str) -> Dim:
    (x, m), (y, n) = split_coefficient(a), split_coefficient(b)
    names = "*".join(sorted(map(_parenthesize, (x, y)))) if x and y else x or y
    return _format_product(names, m * n)


def _divide(a: int | str, b: int | str) -> Dim:
    """A quotient: exact where names and numbers cancel, otherwise rounded down."""
    (x, m), (y, n) = split_coefficient(a), split_coefficient(b)
    if n <= 0:
        return None
    if x == y and m % n == 0:
        return m // n
    if not y and m % n == 0:
        return _format_product(x, m // n)
    return _limit_length(f"{_parenthesize(a)}/{_parenthesize(b)}")


def _format_product(names: str, number: int) -> Dim:
    if number not in INT64:
        return None
    if not names or number == 0:
        return number
    return _limit_length(names if number == 1 else f"{_parenthesize(names)}*{number}")


def evaluate(dim: str, sizes: Mapping[str, int]) -> Dim:
    """A size with numbers for names in it, as in ``past + 1``; as it is where it has none of them.

    A file may spell it with spaces, and has its own order of operators.
    """
    if dim in sizes:
        return sizes[dim]
    if dim.isidentifier():
        return dim
    try:
        tree: Any = ast.parse(dim, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return dim  # a file may call a dimension anything
    nodes = list(ast.walk(tree.body))
    has_sizes = any(isinstance(n, ast.Name) and n.id in sizes for n in nodes)
    size = _evaluate(tree.body, sizes) if has_sizes else dim
    return dim if size is None else size


def _evaluate(tree: ast.expr, sizes: Mapping[str, int]) -> Dim:
    if isinstance(tree, ast.Name):
        return sizes.get(tree.id, tree.id)
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.BinOp) and type(tree.op) in SIGNS:
        a, b = _evaluate(tree.left, sizes), _evaluate(tree.right, sizes)
        return combine(SIGNS[type(tree.op)], a, b)
    return None


def split_operands(dim: str) -> tuple[str, Dim, Dim] | None:
    """The sign and operands of a size that ``combine`` made; None for a name."""
    depth = 0
    for at, letter in enumerate(dim):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter in "+-*/" and at:
            parts = dim[:at], dim[at + 1 :]
            if all(_parenthesize(p) == p for p in parts):
                left, right = map(_strip_parentheses, parts)
                return letter, left, right
    return None


def _strip_parentheses(text: str) -> Dim:
    if is_number(text):
        return int(text)
    return text[1:-1] if _is_enclosed(text) else text


def _limit_length(text: str) -> str | None:
    return text if len(text) <= LONGEST else None


def _parenthesize(dim: Dim) -> str:
    text = str(dim)
    return text if text.isidentifier() or text.isdigit() or _is_enclosed(text) else f"({text})"


def _is_enclosed(text: str) -> bool:
    """Whether a pair of parentheses encloses all of ``text``."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return letter == ")" and at == len(text) - 1
    return False


def product(dims: Elements) -> Dim:
    """The number of elements of a shape, None if it is unknown."""
    total: Dim = 1
    for dim in dims:
        total = combine("*", total, dim)
    return total


def _product(inputs: Any, attrs: Any) -> Elements | None:
    known, shape = shape_data_of(inputs[0]), inputs[0].shape
    if known is None or shape is None or len(shape) != 1 or attrs.get("noop_with_empty_axes"):
        return None
    return (product(known),)


RULES: dict[str, Callable[[Any, Any], Elements | None]] = {
    "Shape": _shape,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Identity": _same,
    "Reshape": _same,
    "Cast": _cast,
    "Add": _arithmetic("+"),
    "Sub": _arithmetic("-"),
    "Mul": _arithmetic("*"),
    "Div": _arithmetic("/"),
    "Equal": _comparison(operator.eq),
    "Greater": _comparison(operator.gt),
    "GreaterOrEqual": _comparison(operator.ge),
    "Less": _comparison(operator.lt),
    "LessOrEqual": _comparison(operator.le),
    "Size": lambda inputs, attrs: None if inputs[0].shape is None else (product(inputs[0].shape),),
    "ReduceProd": _product,
    "Where": _where,
}
