"""Fourier transforms and sketches, which MXNet computes on GPUs only."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType

from ..rules import reads


@reads("_contrib_fft", ignore=("compute_size",))
def read_fft(g, x):
    """Along the last axis; real and imaginary parts take turns."""
    parts = g.DFT(g.Unsqueeze(x, [x.rank]), None, x.rank - 1, onesided=0)
    return g.Reshape(parts, [0] * (x.rank - 1) + [-1])


@reads("_contrib_ifft", ignore=("compute_size",))
def read_ifft(g, x):
    """The real parts, not divided by their number."""
    pairs = g.Reshape(x, [0] * (x.rank - 1) + [-1, 2])
    y = g.DFT(pairs, None, x.rank - 1, inverse=1, onesided=0)
    count = g.cast_like(g.shape_from([g.size_of(y, x.rank - 1)]), x)
    return g.Mul(g.Gather(y, 0, axis=x.rank), count)


@reads("_contrib_count_sketch", ignore=("processing_batch_size",))
def read_count_sketch(g, x, h, s, *, out_dim: int):
    """Each element is added, with a sign, to the place a hash tells."""
    require(out_dim > 0, f"out_dim={out_dim}")
    place = g.Reshape(g.cast(h, DType.INT64), [-1, 1])
    hot = g.cast_like(g.Equal(place, g.index_range(out_dim)), x)
    return g.MatMul(x, g.Mul(hot, g.Reshape(g.cast_like(s, x), [-1, 1])))
