"""Products of matrices."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import swap_axes_perm

from ..rules import reads
from .windows import arrange

IGNORED = ("asymmetric_quantize_inputs", "quantized_bias_type")


@reads("FULLY_CONNECTED", ignore=IGNORED)
def read_fully_connected(g, x, w, b=None, *, weights_format: int = 0, keep_num_dims: bool = False):
    """Rows of data, of weights; without ``keep_num_dims`` all axes but the last become one."""
    require(weights_format == 0, "weights in the order of shuffled blocks. Convert without them")
    require(x.rank > 0 and w.rank == 2, "weights that are no matrix, or data of no axes. "
            "Reshape them")  # fmt: skip
    width = w.ranked_shape[1]
    if keep_num_dims and x.rank != 2:
        rows = as_rows(g, x, width)
        if rows is not None:
            sizes = [*g.sizes_of(x)[:-1], w.ranked_shape[0]]
            return g.reshape(g.Gemm(rows, w, b, transB=1), sizes)
        y = g.MatMul(x, arrange(g, w, (1, 0)))
        return y if b is None else g.Add(y, b)
    if x.rank != 2 or (x.ranked_shape[1] != width and width is not None):
        x = g.Reshape(x, [-1, w.static_shape[1]])
    return g.Gemm(x, w, b, transB=1)


def as_rows(g, x, width):
    """Integers as rows of real numbers: ONNX Runtime fuses no MatMul and Add of more axes right."""
    node = g.maker(x, "DequantizeLinear")
    if node is None:
        return None
    integers, scale, zero = node.inputs
    return g.DequantizeLinear(g.Reshape(integers, [-1, width]), scale, zero)


@reads("BATCH_MATMUL", ignore=IGNORED)
def read_batch_matmul(g, x, y, *, adj_x: bool = False, adj_y: bool = False):
    for v, is_turned in ((x, adj_x), (y, adj_y)):
        require(v.rank > 1 or not is_turned, "a matrix of less than two axes. Reshape it")
    x, y = (arrange(g, v, swap_axes_perm(v.rank, -1, -2)) if t else v
            for v, t in ((x, adj_x), (y, adj_y)))  # fmt: skip
    return g.MatMul(x, y)
