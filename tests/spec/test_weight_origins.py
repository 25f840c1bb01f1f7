"""What a constant is made of is told as weights are rearranged, if it is to be trained."""

import numpy as np
import pytest

from serde.ir.graph import Tensor, Value
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.weight_origins import names_in, origins_of


def weight(name: str, *shape: int) -> Value:
    tensor = Tensor.of(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    return Value(name, tensor.dtype, tensor.shape, tensor, name_is_original=True)


def build(for_training: bool = True) -> OnnxBuilder:
    g = OnnxBuilder("g")
    g.for_training = for_training
    return g


A, B = weight("a", 2, 3), weight("b", 4, 3)
CASES = {
    "reshape": (lambda g: g.Reshape(A, [3, 2]), ((("a",), 6),)),
    "transpose": (lambda g: g.Transpose(A, perm=(1, 0)), ((("a",), 6),)),
    "concat": (lambda g: g.Concat(A, B, axis=0), ((("a",), 6), (("b",), 12))),
    "concat, inner": (lambda g: g.Concat(A, A, axis=1), ((("a",), 12),)),
    "slice": (lambda g: g.Slice(g.Concat(A, B, axis=0), [-3], [9], [0]), ((("b",), 9),)),
    "slice, both": (
        lambda g: g.Slice(g.Concat(A, B, axis=-2), [1], [4], [0]), ((("a",), 3), (("b",), 6)),
    ),
    "slice, inner": (lambda g: g.Slice(g.Concat(A, B, axis=0), [0], [1], [1]), ((("a", "b"), 6),)),
    "split": (
        lambda g: g.Split(g.Concat(A, B, axis=0), axis=0, num_outputs=3, outputs=3)[1],
        ((("b",), 6),),
    ),
    "repeated": (lambda g: g.Expand(A, [2, 2, 3]), ((("a",), 12),)),
    "repeated by indices": (lambda g: g.Gather(A, [0, 1, 0], axis=0), ((("a",), 9),)),
    "chosen": (lambda g: g.Gather(A, [1, 0], axis=0), ((("a",), 6),)),
    "computed": (lambda g: g.Mul(A, 2.0), ()),
    "integers": (lambda g: g.Shape(A), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_origins_follow_the_elements(name: str) -> None:
    make, expected = CASES[name]
    assert origins_of(make(build())) == expected


def test_inference_needs_none() -> None:
    assert origins_of(build(False).Reshape(A, [3, 2])) == ()


def test_names_of_a_part() -> None:
    origins = ((("a",), 6), ((), 2), (("b", "c"), 4))
    assert names_in(origins, 0, 6) == ("a",)
    assert names_in(origins, 5, 9) == ("a", "b", "c")
    assert names_in(origins, 6, 8) == ()
