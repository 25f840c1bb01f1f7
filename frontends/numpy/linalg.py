"""Products of matrices, norms, and what elimination solves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serde.ir.geometry import may_be_same

from .array import TracedArray, as_array, as_arrays, cast
from .core import (
    axis_index,
    axis_tuple,
    emit,
    expand_dims,
    implements,
    promote,
    reshape,
    squeeze,
    transpose,
)  # fmt: skip
from .recorder import refuse
from .ufuncs import CORE_UFUNCS, broadcast_dims, finish

MOST_COLUMNS = 64  # of a matrix that elimination is unrolled for


def _operands(*xs: Any) -> list[TracedArray]:
    arrays = as_arrays(xs)
    kind = np.result_type(*(a.dtype for a in arrays))
    return [cast(a, kind) for a in arrays]


def _multiply(a: TracedArray, b: TracedArray) -> TracedArray:
    """MatMul; booleans are counted and float16 is summed in float32."""
    dtype = a.dtype
    if dtype.kind == "b":
        return as_array(_multiply(cast(a, np.int32), cast(b, np.int32)) > 0)
    product_dtype = np.float32 if dtype == np.float16 else dtype
    return cast(emit(cast(a, product_dtype), "MatMul", cast(b, product_dtype)), dtype)


@implements(np.linalg.matmul)
def _matmul(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Any:
    a, b = _operands(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul: Input operand does not have enough dimensions (has 0, gufunc "
                         "core with signature (n?,k),(k,m?)->(n?,m?) requires 1)")  # fmt: skip
    inner = a.dims[-1], b.dims[-2 if b.ndim > 1 else 0]
    if not may_be_same(*inner):
        raise ValueError(f"matmul: Input operand 1 has a mismatch in its core dimension 0 (size "
                         f"{inner[1]} is different from {inner[0]})")  # fmt: skip
    broadcast_dims(a.dims[:-2], b.dims[:-2])
    return finish(_multiply(a, b), out[0] if isinstance(out, tuple) else out)


@implements(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = _operands(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return np.multiply(x, y)
    if y.ndim <= 2:
        return np.linalg.matmul(x, y)
    return np.tensordot(x, y, axes=([-1], [-2]))


implements(np.vdot)(lambda a, b, /: np.dot(np.ravel(a), np.ravel(b)))


@implements(np.inner)
def _inner(a: Any, b: Any, /) -> Any:
    x, y = _operands(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return np.multiply(x, y)
    return np.tensordot(x, y, axes=([-1], [-1]))


@implements(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = _operands(a, b)
    return np.multiply(reshape(x, [-1, 1]), reshape(y, [1, -1]))


@implements(np.linalg.outer)
def _linalg_outer(x1: Any, x2: Any, /) -> Any:
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError("Input arrays must be one-dimensional")
    return np.outer(x1, x2)


@implements(np.linalg.vecdot)
def _vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    a, b = _operands(x1, x2)
    sizes = a.size_of(axis_index(axis, a.ndim)), b.size_of(axis_index(axis, b.ndim))
    if all(isinstance(s, int) for s in sizes) and sizes[0] != sizes[1]:
        raise ValueError("vecdot: the sizes of the core dimension differ")
    a, b = (as_array(np.moveaxis(v, axis, -1)) for v in (a, b))
    return squeeze_last(_multiply(expand_dims(a, [a.ndim - 1]), expand_dims(b, [b.ndim])), 2)


def squeeze_last(x: TracedArray, count: int) -> TracedArray:
    """``x`` without its last axes, of size 1."""
    return squeeze(x, range(x.ndim - count, x.ndim))


CORE_UFUNCS["vecdot"] = lambda a, b, /, axis=-1, **o: np.linalg.vecdot(a, b, axis=axis)
CORE_UFUNCS["matvec"] = lambda a, b, /, **o: squeeze_last(
    as_array(np.linalg.matmul(a, b[..., None])), 1
)
CORE_UFUNCS["vecmat"] = lambda a, b, /, **o: np.squeeze(np.linalg.matmul(a[..., None, :], b), -2)


@implements(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = _operands(a, b)
    if isinstance(axes, (int, np.integer)):
        pairs: Any = (list(range(x.ndim - axes, x.ndim)), list(range(axes)))
    else:
        pairs = [list(v) if isinstance(v, (list, tuple)) else [v] for v in axes]
    left = [axis_index(i, x.ndim) for i in pairs[0]]
    right = [axis_index(i, y.ndim) for i in pairs[1]]
    pairs = zip(left, right, strict=False)
    same = all(may_be_same(x.dims[i], y.dims[j]) for i, j in pairs)
    if len(left) != len(right) or not same:
        raise ValueError("shape-mismatch for sum")
    keep_x = [i for i in range(x.ndim) if i not in left]
    keep_y = [i for i in range(y.ndim) if i not in right]
    shape = [x.size_of(i) for i in keep_x] + [y.size_of(i) for i in keep_y]
    inner: Any = 1
    for i in left:
        inner = inner * x.size_of(i)
    rows = reshape(transpose(x, [*keep_x, *left]), [-1, inner])
    columns = reshape(transpose(y, [*right, *keep_y]), [inner, -1])
    return reshape(_multiply(rows, columns), shape)


implements(np.linalg.tensordot)(lambda x1, x2, /, *, axes=2: np.tensordot(x1, x2, axes))


@implements(np.einsum)
def _einsum(*operands: Any, out: Any = None, dtype: Any = None, optimize: Any = False,
            **options: Any) -> Any:  # fmt: skip
    if not isinstance(operands[0], str):
        refuse("np.einsum", "subscripts as lists are not traced", "Write them as a string")
    arrays = _operands(*operands[1:])
    if dtype is not None:
        arrays = [cast(a, dtype) for a in arrays]
    equation = operands[0].replace(" ", "")
    if "->" not in equation:
        letters = equation.replace(",", "").replace("...", "")
        once = "".join(sorted({c for c in letters if letters.count(c) == 1}))
        equation += "->" + ("..." if "..." in equation else "") + once
    arrays = _align_ellipses(arrays, equation.partition("->")[0].split(","))
    sum_dtype = arrays[0].dtype
    if sum_dtype.kind == "b":
        refuse("np.einsum", "booleans are not traced", "Cast them to integers")
    return cast(emit(arrays[0], "Einsum", *arrays[1:], equation=equation), sum_dtype)


def _align_ellipses(arrays: Sequence[TracedArray], terms: Sequence[str]) -> list[TracedArray]:
    """As many axes for the ellipsis of each term."""
    counts = [a.ndim - len(t.replace("...", "")) if "..." in t else None
              for a, t in zip(arrays, terms, strict=True)]  # fmt: skip
    most = max((c for c in counts if c is not None), default=0)
    return [a if c is None else expand_dims(a, range(t.index("..."), t.index("...") + most - c))
            for a, t, c in zip(arrays, terms, counts, strict=True)]  # fmt: skip


@implements(np.kron)
def _kron(a: Any, b: Any) -> Any:
    x, y = _operands(a, b)
    rank = max(x.ndim, y.ndim)
    x, y = (expand_dims(v, range(rank - v.ndim)) for v in (x, y))
    sizes = [m * n for m, n in zip(x.shape, y.shape, strict=True)]
    product = np.multiply(
        expand_dims(x, range(1, 2 * rank, 2)), expand_dims(y, range(0, 2 * rank, 2))
    )
    return reshape(as_array(product), sizes)


@implements(np.cross, np.linalg.cross)
def _cross(a: Any, b: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1,
           axis: Any = None) -> Any:  # fmt: skip
    x, y = promote([a, b])
    first, second, third = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x, y = as_array(np.moveaxis(x, first, -1)), as_array(np.moveaxis(y, second, -1))
    if x.dims[-1] != 3 or y.dims[-1] != 3:
        refuse("np.cross", "the vectors have to have 3 elements")
    a1, a2, a3 = (x[..., i] for i in range(3))
    b1, b2, b3 = (y[..., i] for i in range(3))
    parts = [a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1]
    return np.moveaxis(np.stack(parts, -1), -1, third)


# Norms


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    array = as_array(x)
    array = array if array.dtype.kind == "f" else cast(array, np.float64)
    if axis is None and ord is None:
        total = np.sqrt(np.sum(np.square(np.ravel(array))))
        return reshape(as_array(total), [1] * array.ndim) if keepdims else total
    axes = axis_tuple(axis, array.ndim)
    if len(axes) == 1:
        return _vector_norm(array, axes, 2 if ord is None else ord, keepdims)
    if len(axes) == 2:
        return _matrix_norm(array, axes, ord, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _vector_norm(x: Any, axes: Any, ord: Any, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    size = np.abs(x)
    if ord == np.inf:
        return np.max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return np.sum(cast(as_array(x != 0), x.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axes, keepdims=keepdims)
    if ord == 2:
        return np.sqrt(np.sum(np.square(x), axes, keepdims=keepdims))
    power = x.dtype.type(ord)
    return np.power(np.sum(np.power(size, power), axes, keepdims=keepdims), x.dtype.type(1 / ord))


def _matrix_norm(x: Any, axes: Any, ord: Any, keepdims: bool) -> Any:
    if ord not in (None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2):
        raise ValueError("Invalid norm order for matrices.")
    if ord in (None, "fro"):
        return np.sqrt(np.sum(np.square(x), axes, keepdims=keepdims))
    row, column = axes
    if ord in (2, -2, "nuc"):
        refuse("np.linalg.norm", f"ord={ord!r} needs singular values, which ONNX has not")
    along, over = (row, column) if ord in (1, -1) else (column, row)
    sums = np.sum(np.abs(x), along, keepdims=True)
    result = (np.max if ord > 0 else np.min)(sums, over, keepdims=True)
    return result if keepdims else np.squeeze(result, axes)


@implements(np.linalg.vector_norm)
def _vector_norm_function(x: Any, /, *, axis: Any = None, keepdims: bool = False,
                          ord: Any = 2) -> Any:  # fmt: skip
    array = as_array(x)
    array = array if array.dtype.kind == "f" else cast(array, np.float64)
    return _vector_norm(array, axis_tuple(axis, array.ndim), ord, keepdims)


@implements(np.linalg.matrix_norm)
def _matrix_norm_function(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    array = as_array(x)
    array = array if array.dtype.kind == "f" else cast(array, np.float64)
    return _matrix_norm(array, (array.ndim - 2, array.ndim - 1), ord, keepdims)


# Elimination, unrolled: the matrix is small and its size a number


def _square_size(x: TracedArray, function: str) -> int:
    if x.ndim < 2:
        raise np.linalg.LinAlgError(f"{x.ndim}-dimensional array given. Array must be at least "
                                    "two-dimensional")  # fmt: skip
    rows, columns = x.dims[-2:]
    if not may_be_same(rows, columns):
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    size = rows if isinstance(rows, int) else columns
    if not isinstance(size, int) or size > MOST_COLUMNS:
        refuse(f"np.linalg.{function}", f"matrices of {rows} rows cannot be traced",
               f"Give a number up to {MOST_COLUMNS}")  # fmt: skip
    return size


def _eliminate(matrix: TracedArray, size: int, forward: bool) -> tuple[TracedArray, Any]:
    """Gauss-Jordan elimination with pivots; the matrix, and the determinant of its columns.

    ``forward`` clears what is below the diagonal only.
    """
    sign: Any = None
    rows = np.arange(size)
    for at in range(size):
        column = matrix[..., at]
        candidates = np.where(rows >= at, np.abs(column), np.asarray(-1, matrix.dtype))
        pivot = np.argmax(candidates, -1, keepdims=True)
        order = np.where(rows == at, pivot, np.where(rows == pivot, at, rows))
        matrix = as_array(np.take_along_axis(matrix, order[..., None], -2))
        value = matrix[..., at : at + 1, at : at + 1]
        flip = np.where(pivot[..., 0] == at, value[..., 0, 0], -value[..., 0, 0])
        sign = flip if sign is None else sign * flip
        if forward and at == size - 1:
            break
        row = matrix[..., at : at + 1, :]
        factors = matrix[..., at : at + 1] / value
        wrong = rows > at if forward else rows != at
        matrix = as_array(matrix - np.where(wrong[:, None], factors, 0) * row)
        if not forward:
            scaled = matrix[..., at : at + 1, :] / value
            matrix = as_array(np.where((rows == at)[:, None], scaled, matrix))
    return matrix, sign


def _as_inexact(*xs: Any) -> list[TracedArray]:
    arrays = promote(list(xs))
    if arrays[0].dtype == np.float16:
        raise TypeError("array type float16 is unsupported in linalg")
    return [a if a.dtype.kind == "f" else cast(a, np.float64) for a in arrays]


@implements(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    x, y = _as_inexact(a, b)
    size = _square_size(x, "solve")
    vector = y.ndim == 1
    y = expand_dims(y, [1]) if vector else y
    kind = x.dtype
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2]) if all(
        isinstance(d, int) for d in (*x.dims[:-2], *y.dims[:-2])
    ) else (x.shape[:-2] if x.ndim >= y.ndim else y.shape[:-2])  # fmt: skip
    x = as_array(np.broadcast_to(x, (*batch, *x.shape[-2:])))
    y = as_array(np.broadcast_to(y, (*batch, *y.shape[-2:])))
    both = np.concatenate([cast(x, np.float64), cast(y, np.float64)], -1)
    solution = _eliminate(as_array(both), size, False)[0][..., size:]
    solution = solution[..., 0] if vector else solution
    return cast(as_array(solution), kind)


@implements(np.linalg.inv)
def _inv(a: Any) -> Any:
    (x,) = _as_inexact(a)
    size = _square_size(x, "inv")
    return np.linalg.solve(x, np.broadcast_to(np.eye(size, dtype=x.dtype), (size, size)))


@implements(np.linalg.det)
def _det(a: Any) -> Any:
    (x,) = _as_inexact(a)
    size = _square_size(x, "det")
    if size == 0:
        return np.ones(x.shape[:-2], x.dtype)
    return cast(as_array(_eliminate(cast(x, np.float64), size, True)[1]), x.dtype)


@implements(np.linalg.slogdet)
def _slogdet(a: Any) -> Any:
    (x,) = _as_inexact(a)
    det = _eliminate(cast(x, np.float64), _square_size(x, "slogdet"), True)[1]
    kind = type(np.linalg.slogdet(np.eye(1)))
    return kind(cast(as_array(np.sign(det)), x.dtype), cast(as_array(np.log(np.abs(det))), x.dtype))


@implements(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    (x,) = _as_inexact(a)
    size, dtype = _square_size(x, "cholesky"), x.dtype
    rest, columns = cast(x, np.float64), []
    for at in range(size):
        root = np.sqrt(rest[..., at, at])
        column = np.where(np.arange(size) >= at, rest[..., at] / root[..., None], 0.0)
        columns.append(column)
        rest = as_array(rest - column[..., :, None] * column[..., None, :])
    if not columns:
        return x
    factor = np.stack(columns, -2 if upper else -1)
    return cast(as_array(factor), dtype)


@implements(np.linalg.matrix_power)
def _matrix_power(a: Any, n: int) -> Any:
    x = as_array(a)
    if n < 0:
        x, n = as_array(np.linalg.inv(x)), -n
    elif x.ndim < 2 or n == 0 or all(isinstance(d, int) for d in x.dims[-2:]):
        size = _square_size(x, "matrix_power")
    if n == 0:
        return np.broadcast_to(np.eye(size, dtype=x.dtype), x.shape)
    result, square = None, x
    while n:
        if n & 1:
            result = square if result is None else as_array(result @ square)
        n >>= 1
        square = as_array(square @ square) if n else square
    return result
