"""Sizes that what lies behind an input fixes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.verification import make_random_inputs
from testing.onnx_live import ir_of


def zeros(*shape):
    """A constant of that shape, as the parser takes it."""
    return "{" + ",".join(["0.1"] * int(np.prod(shape))) + "}"


class TestFittingSizes:
    """Sizes that what lies behind an input fixes; the body, the constants, the input's shape."""

    CONV = "a = Conv<kernel_shape=[3,3],pads=[1,1,1,1]>(x, w)\n"
    CASES = {
        "dense behind a flattened image": (
            "float[N,3,H,W]", "float[4,3,3,3] w, float[10,784] d", CONV +
            "p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(a)\n f = Flatten(p)\n"
            "y = Gemm<transB=1>(f, d)", (2, 3, 28, 28),
        ),
        "a range of sides": (
            "float[N,3,H,W]", "float[4,3,3,3] w, float[196,10] d", CONV +
            "p = MaxPool<kernel_shape=[32,32],strides=[32,32]>(a)\n f = Flatten(p)\n"
            "y = MatMul(f, d)", (2, 3, 224, 224),
        ),
        "sides that differ": (
            "float[N,1,H,W]", "float[480,3] d", "f = Flatten(x)\n y = MatMul(f, d)",
            (2, 1, 32, 15),
        ),
        "a reshape by a count": (
            "float[N,1,H,W]", "float[784,3] d",
            "s = Constant<value_ints=[-1,784]>()\n f = Reshape(x, s)\n y = MatMul(f, d)",
            (2, 1, 28, 28),
        ),
        "features": ("float[N,F]", "float[30,3] d", "y = MatMul(x, d)", (2, 30)),
        "a weight on the left": ("float[N,F,5]", "float[3,30] d", "y = MatMul(d, x)", (2, 30, 5)),
        "embeddings of places": ("float[N,T,5]", "float[1,17,5] d", "y = Add(x, d)", (2, 17, 5)),
        "one fixed side": ("float[N,1,H,20]", "float[240,3] d",
                           "f = Flatten(x)\n y = MatMul(f, d)", (2, 1, 12, 20)),
        "nothing that fixes them": ("float[N,3,H,W]", "float[4,3,3,3] w",
                                    CONV + "y = GlobalAveragePool(a)", (2, 3, 64, 64)),
        "none that fits": ("float[N,2,H,W]", "float[7,3] d", "f = Flatten(x)\n y = MatMul(f, d)",
                           (2, 2, 64, 64)),
    }  # fmt: skip

    @pytest.mark.parametrize(("x", "constants", "body", "shape"), CASES.values(), ids=CASES)
    def test_sizes(self, x, constants, body, shape):
        parts = [c.strip() for c in constants.replace(", ", ";").split(";")]
        dims = [[int(d) for d in p[p.index("[") + 1 : p.index("]")].split(",")] for p in parts]
        held = ", ".join(f"{p} = {zeros(*d)}" for p, d in zip(parts, dims, strict=True))
        feeds = make_random_inputs(ir_of(f"g ({x} x) => (y) <{held}> {{ {body} }}"))
        assert feeds["x"].shape == shape
