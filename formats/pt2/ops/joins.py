"""Tensors joined, cut, turned and put along diagonals: what PyTorch makes of simpler views."""

from __future__ import annotations

import itertools

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import axis_of, swap_axes_perm
from serde.ir.graph import DType
from serde.spec.expressions import END

from ..promotion import as_type, promote, result_type
from ..rules import reads
from .indexing import read_diagonal
from .shape import read_cat, read_flip, read_stack, read_tensor_split

DOWNWARDS = {"hstack": 1, "vstack": 0, "row_stack": 0, "dstack": 2, "column_stack": 1}
LEAST_AXES = {"hstack": 1, "vstack": 2, "row_stack": 2, "dstack": 3, "column_stack": 2}
CUTS = {"hsplit": 1, "vsplit": 0, "dsplit": 2}


def with_axes(g, op, x):
    """A tensor with as many axes as are joined: new ones in front, and behind at the third."""
    if op == "column_stack" and x.rank < 2:
        return g.Reshape(x, [-1, 1])
    least = LEAST_AXES[op]
    if x.rank == 0:
        return g.Reshape(x, [1] * least)
    if x.rank == 1 and least > 1:
        x = g.Unsqueeze(x, [0])
    return g.Unsqueeze(x, [2]) if x.rank == 2 and least == 3 else x


@reads.for_each({op: op for op in DOWNWARDS})
def read_stacked(op, g, xs):
    parts = [with_axes(g, op, x) for x in xs]
    return read_cat(g, parts, min(DOWNWARDS[op], parts[0].rank - 1))


@reads.for_each({"atleast_1d": "hstack", "atleast_2d": "vstack", "atleast_3d": "dstack"})
def read_at_least(op, g, x):
    return g.Identity(with_axes(g, op, x))


@reads.for_each({
    "atleast_1d.Sequence": "hstack", "atleast_2d.Sequence": "vstack",
    "atleast_3d.Sequence": "dstack",
})  # fmt: skip
def read_each_at_least(op, g, xs):
    return tuple(g.Identity(with_axes(g, op, x)) for x in xs)


@reads("tensor_split.indices")
def read_tensor_split_at(g, x, indices, dim):
    """Parts between places, which may lie beyond the end."""
    axis = axis_of(dim, x.rank)
    bounds = [0, *indices, END]
    pairs = itertools.pairwise(bounds)
    return tuple(g.slice_axis(x, axis, start, end) for start, end in pairs)


def cut_axis(op, x) -> int:
    """The axis that is cut: of a vector the only one."""
    return CUTS[op] if x.rank > CUTS[op] else 0


@reads.for_each({f"{op}.int": op for op in CUTS})
def read_split_into(op, g, x, sections):
    return read_tensor_split(g, x, sections, cut_axis(op, x))


@reads.for_each({f"{op}.array": op for op in CUTS})
def read_split_at(op, g, x, indices):
    return read_tensor_split_at(g, x, indices, cut_axis(op, x))


@reads("ravel")
def read_ravel(g, x):
    return g.Reshape(x, [-1])


@reads("broadcast_to")
def read_broadcast_to(g, x, sizes):
    return g.Expand(x, g.shape_from(sizes))


@reads.for_each({"flipud": 0, "fliplr": 1})
def read_mirror(dim, g, x):
    return read_flip(g, x, (dim,))


@reads("rot90")
def read_quarter_turns(g, x, count, dims):
    first, second = (axis_of(d, x.rank) for d in dims)
    turned = {0: (), 1: (second,), 2: (first, second), 3: (first,)}[count % 4]
    y = read_flip(g, x, turned)
    return g.Transpose(y, perm=swap_axes_perm(x.rank, first, second)) if count % 2 else y


@reads("kron")
def read_kronecker(g, a, b):
    """Each element of ``a`` times all of ``b``, in its place."""
    a, b = promote(g, a, b)
    rank = max(a.rank, b.rank)
    if rank == 0:
        return g.Mul(a, b)
    a, b = (g.Unsqueeze(x, list(range(rank - x.rank))) if x.rank < rank else x for x in (a, b))
    sizes = [g.multiply_sizes([g.size_of(x, k) for x in (a, b)]) for k in range(rank)]
    blocks = g.Mul(
        g.Unsqueeze(a, [2 * k + 1 for k in range(rank)]),
        g.Unsqueeze(b, [2 * k for k in range(rank)]),
    )
    return g.reshape(blocks, sizes)


@reads("block_diag")
def read_block_diagonal(g, xs):
    """Matrices beside each other, zeros elsewhere; a vector is one row."""
    dtype = result_type(*xs)
    xs = [as_type(g, with_axes(g, "vstack", x), dtype) for x in xs]
    widths = [g.size_of(x, 1) for x in xs]
    rows = []
    for place, x in enumerate(xs):
        others = widths[:place], widths[place + 1 :]
        before, after = (g.shape_from([total_of(g, part)]) for part in others)
        pads = g.Concat(g.const([0]), before, g.const([0]), after, axis=0)
        rows.append(g.Pad(x, pads, as_type(g, 0, dtype)))
    return g.Concat(*rows, axis=0)


def total_of(g, sizes):
    """The sum of sizes, of which some are computed."""
    total = sum(s for s in sizes if isinstance(s, int))
    for size in sizes:
        total = total if isinstance(size, int) else g.Add(size, total)
    return total


@reads("diag_embed")
def read_embedded_diagonal(g, x, offset, first, second):
    """The last axis along a diagonal of two new ones."""
    size = x.ranked_shape[-1]
    require(isinstance(size, int), "a diagonal of unknown size: fix it")
    count = size + abs(offset)
    arrays.charge_elements(count, count)
    padded = g.Unsqueeze(x, [x.rank])
    pads = [max(-offset, 0), max(offset, 0)]
    ends = [0] * (x.rank - 1)
    padded = g.Pad(padded, g.const([*ends, pads[0], 0, *ends, pads[1], 0]), as_type(g, 0, x.type))
    is_there = g.const(np.eye(count, k=offset, dtype=bool))
    y = g.Where(is_there, padded, as_type(g, 0, x.type))
    order = [a for a in range(y.rank) if a < y.rank - 2]
    places = sorted([(axis_of(first, y.rank), y.rank - 2), (axis_of(second, y.rank), y.rank - 1)])
    for place, axis in places:
        order.insert(place, axis)
    return g.Transpose(y, perm=order)


@reads("diag", "diagflat")
def read_diag(g, x, diagonal):
    """A vector as a diagonal, or the diagonal of a matrix."""
    if x.rank == 2:
        return read_diagonal(g, x, diagonal, 0, 1)
    return read_embedded_diagonal(g, g.Reshape(x, [-1]), diagonal, 0, 1)


@reads("combinations")
def read_combinations(g, x, r, with_replacement):
    """Pairs of a vector, in order."""
    size = x.ranked_shape[0]
    require(r == 2 and isinstance(size, int), "combinations of two, of a vector of fixed size")
    arrays.charge_elements(size, size)
    places = np.stack(np.triu_indices(size, 0 if with_replacement else 1), 1)
    return g.Gather(x, g.const(places.astype(np.int64)), axis=0)


@reads("cartesian_prod")
def read_cartesian_product(g, xs):
    if len(xs) == 1:
        return g.Identity(xs[0])
    shape = g.shape_from([g.size_of(x, 0) for x in xs])
    grids = []
    for place, x in enumerate(xs):
        axes = [-1 if k == place else 1 for k in range(len(xs))]
        grids.append(g.Reshape(g.Expand(g.Reshape(x, axes), shape), [-1]))
    return read_stack(g, grids, 1)


@reads("vander")
def read_vandermonde(g, x, n, increasing):
    """Powers of a vector, the highest first."""
    count = x.ranked_shape[0] if n is None else n
    require(isinstance(count, int), "powers of a vector of unknown size: give N=")
    arrays.charge_elements(count)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    dtype = x.type if x.type.kind == "f" else DType.INT64
    return g.Pow(g.Unsqueeze(g.cast(x, dtype), [1]), g.const(powers.astype(dtype.numpy)))
