"""What a constant is made of is told as weights are rearranged, if it is to be trained."""

import numpy as np
import pytest

from serde.ir.graph import Run, Tensor, Value
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
    assert tuple(run[:2] for run in origins_of(make(build()))) == expected


PLACES = {
    "whole": (lambda g: g.Reshape(B, [2, 6]), (0, (4, 3), True)),
    "split": (lambda g: g.Split(B, axis=0, num_outputs=2, outputs=2)[1], (6, (4, 3), True)),
    "part of a part": (lambda g: g.Slice(g.Slice(B, [1], [4], [0]), [1], [2], [0]),
                       (6, (4, 3), True)),
    "part in another order": (lambda g: g.Transpose(g.Slice(B, [1], [4], [0]), perm=(1, 0)),
                              (3, (4, 3), False)),
    "part of another order": (lambda g: g.Slice(g.Transpose(B, perm=(1, 0)), [1], [2], [0]),
                              (None, (), True)),
    "not neighbours": (lambda g: g.Slice(B, [0], [1], [1]), (None, (), True)),
    "repeated": (lambda g: g.Expand(A, [2, 2, 3]), (None, (), True)),
    "row": (lambda g: g.Gather(B, 2, axis=0), (6, (4, 3), True)),
    "last row": (lambda g: g.Unsqueeze(g.Gather(B, -1, axis=0), [0]),
                                      (9, (4, 3), True)),
    "column": (lambda g: g.Gather(B, 1, axis=1), (None, (), True)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_neighbours_in_a_weight_tell_their_place(name: str) -> None:
    make, expected = PLACES[name]
    (run,) = origins_of(make(build()))
    assert run[2:5] == expected


def test_a_weight_that_is_repeated_is_computed() -> None:
    g = build()
    g.keeps_weights = True
    assert g.Expand(A, [2, 2, 3]).tensor is None and g.Tile(A, [1, 2]).tensor is None
    assert g.Expand(A, [1, 2, 3]).tensor is not None


def test_a_column_of_a_weight_is_computed() -> None:
    g = build()
    g.keeps_weights = True
    assert g.Gather(B, 1, axis=1).tensor is None and g.Gather(B, 1, axis=0).tensor is not None


def test_inference_needs_none() -> None:
    assert origins_of(build(False).Reshape(A, [3, 2])) == ()


def test_names_of_a_part() -> None:
    origins = (Run(("a",), 6), Run((), 2), Run(("b", "c"), 4))
    assert names_in(origins, 0, 6) == ("a",)
    assert names_in(origins, 5, 9) == ("a", "b", "c")
    assert names_in(origins, 6, 8) == ()
