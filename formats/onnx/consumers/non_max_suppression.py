"""NonMaxSuppression for runtimes that drop a box that overlaps by just as much as it may."""

from __future__ import annotations

import numpy as np

FLOAT32 = np.finfo(np.float32)


def raise_overlap_limit(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """The next larger limit: ONNX drops boxes that overlap by more than the limit."""
    limit = g.const(np.zeros(1, np.float32)) if overlap is None else overlap
    above = g.Max(g.Mul(limit, 1 + FLOAT32.eps), FLOAT32.tiny)
    form = {"center_point_box": center_point_box}
    return g.as_is("NonMaxSuppression", (boxes, scores, most, above, least), form)
