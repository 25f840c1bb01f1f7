"""MXNet's suppression of boxes, from MXNet to the IR and back."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.formats.mxnet import from_ir
from serde.formats.mxnet.writer import live
from tests.mxnet_live import live_mxnet, run_symbol

RANDOM = np.random.default_rng(0)


def rows(batch, count):
    """Class, score and box of each row."""
    low = RANDOM.uniform(0, 0.6, (batch, count, 2))
    corners = np.concatenate([low, low + RANDOM.uniform(0.1, 0.4, low.shape)], 2)
    kinds = RANDOM.integers(0, 3, (batch, count, 1))
    return np.concatenate([kinds, RANDOM.uniform(0, 1, kinds.shape), corners], 2).astype("float32")


def suppressing(path, topk):
    """A file that suppresses boxes class by class."""
    mx = live_mxnet()
    found = mx.sym.contrib.box_nms(
        mx.sym.var("rows"), overlap_thresh=0.3, valid_thresh=0.2, topk=topk, id_index=0
    )
    found.save(str(path))
    return path


@pytest.mark.parametrize("sizes, topk", [((2, 20, 6), 12), (("N", 20, 6), 12), (("N", "K", 6), -1)])
def test_it_comes_back(sizes, topk, tmp_path):
    original = suppressing(tmp_path / "nms-symbol.json", topk)
    symbol = from_ir(serde.load(original, inputs={"rows": sizes}))
    assert "_contrib_box_nms" in {n.op for n in symbol.nodes}
    assert not any(True for n in symbol.nodes for _ in n.graphs())
    text, arrays = live(symbol)
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    nothing = rows(2, 20) * np.float32([1, 0, 1, 1, 1, 1])
    other = [] if sizes[0] == 2 else [rows(3, 20)] if sizes[1] == 20 else [rows(3, 30)]
    for given in (rows(2, 20), nothing, *other):
        (a,), (b,) = (
            run_symbol(t, h, {"rows": given}) for t, h in ((text, held), (original.read_text(), {}))
        )
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert (b[..., 1] > 0).sum() > 10 or other == []
