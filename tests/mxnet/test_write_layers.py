"""Layers of every rank, element type and frame: what is written loads and runs in MXNet."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from onnx import helper, numpy_helper

from serde.errors import Unconvertible
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet_live import live_mxnet, run_symbol
from testing.onnx_live import run_model

SIZES = (7, 6, 5)
TOLERANCE = {"float16": 5e-3, "float32": 1e-5, "float64": 1e-5}
HOW = ("constants", "inputs", "computed")  # what the operands behind the first are


def normal(dtype, *shape, positive=False):
    """Seeded numbers; positive ones are no less than 0.1."""
    array = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (np.abs(array) + 0.1 if positive else array).astype(dtype)


def model(op, operands, how, attrs):
    """A model of one operator; computed operands are inputs made twice as large."""
    names = [f"x{i}" for i in range(len(operands))]
    held = [numpy_helper.from_array(a, n) for a, n in zip(operands[1:], names[1:], strict=True)]
    kinds = [(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in zip(names, operands, strict=True)]  # fmt: skip
    inputs = [helper.make_tensor_value_info(*k) for k in kinds]
    nodes, read = [], names
    if how == "computed":
        read = [names[0], *(f"{n}_twice" for n in names[1:])]
        nodes = [helper.make_node("Add", [n, n], [f"{n}_twice"]) for n in names[1:]]
    graph = helper.make_graph(
        [*nodes, helper.make_node(op, read, ["y"], "op", **attrs)], "g",
        inputs[:1] if how == "constants" else inputs,
        [helper.make_empty_tensor_value_info("y")], held if how == "constants" else [],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def frames(axes):
    """Strides, dilations, pads and groups, each of the usual ones."""
    pads = {
        "none": (0,) * 2 * axes,
        "alike": (1,) * 2 * axes,
        "first": (1,) + (0,) * (2 * axes - 1),
    }
    for stride, gap, pad, group in product((1, 2), (1, 2), pads, (1, 2)):
        windows = {"strides": [stride] * axes, "dilations": [gap] * axes}
        yield {**windows, "pads": pads[pad], "group": group}


def run_in_mxnet(proto, feeds):
    """What MXNet computes with the symbol that a model becomes."""
    text, arrays = encode_live(from_ir(raise_to_ir(decode(proto))))
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    return run_symbol(text, held, feeds)[0]


def agree(op, operands, how="constants", expected=None, **attrs):
    """Compare MXNet with ONNX Runtime, which computes in float32: it lacks other kernels."""
    live_mxnet()
    proto = model(op, operands, how, attrs)
    feeds = {f"x{i}": a for i, a in enumerate(operands[: 1 if how == "constants" else None])}
    if expected is None:
        there = {n: a.astype("float32") for n, a in feeds.items()}
        (expected,) = run_model(
            model(op, [a.astype("float32") for a in operands], how, attrs), there
        )
    got = run_in_mxnet(proto, feeds)
    kind = operands[0].dtype.name
    assert got.dtype == kind and got.shape == expected.shape
    limit = TOLERANCE[kind] * max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(got, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions(axes, dtype, how):
    x = normal(dtype, 2, 4, *SIZES[:axes])
    for frame in frames(axes):
        w = normal(dtype, 6, 4 // frame["group"], *(3, 2, 2)[:axes])
        agree("Conv", [x, w, normal(dtype, 6)], how, **frame)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("axes", "dtype"), [p for p in product((1, 2, 3), TOLERANCE) if p != (3, "float64")]
)
def test_transposed_convolutions(axes, dtype, how):
    x = normal(dtype, 2, 4, *SIZES[:axes])
    for frame in frames(axes):
        w = normal(dtype, 4, 6 // frame["group"], *(3, 2, 2)[:axes])
        more = [int(s > 1) for s in frame["strides"]]
        agree("ConvTranspose", [x, w, normal(dtype, 6)], how, output_padding=more, **frame)


def test_transposed_convolutions_of_volumes_of_doubles_are_refused():
    operands = [normal("float64", 1, 2, 3, 3, 3), normal("float64", 2, 2, 2, 2, 2)]
    proto = model("ConvTranspose", operands, "constants", {})
    with pytest.raises(Unconvertible, match="of volumes in float64, for which MXNet has no kernel"):
        from_ir(raise_to_ir(decode(proto)))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_batch_normalization(rank, dtype, how):
    shape = (3, 4, 2, 3, 2)[:rank]
    count = shape[1] if rank > 1 else 1
    for kinds in {(dtype,) * 4, ("float32",) * 4, (dtype, dtype, "float32", "float32")}:
        operands = [normal(kind, count, positive=i == 3) for i, kind in enumerate(kinds)]
        agree("BatchNormalization", [normal(dtype, *shape), *operands], how, epsilon=1e-3,
              expected=normalize(normal(dtype, *shape), operands, how, 1e-3))  # fmt: skip


def normalize(x, operands, how, epsilon):
    """A BatchNormalization by NumPy: ONNX Runtime takes no mixture of types everywhere."""
    behind = (1,) * (x.ndim - 2)
    wide = [a.astype("float64") * (2 if how == "computed" else 1) for a in operands]
    scale, bias, mean, var = (a.reshape(-1, *behind) for a in wide)
    return ((x - mean) / np.sqrt(var + epsilon) * scale + bias).reshape(x.shape)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_instance_normalization(rank, dtype, how):
    x = normal(dtype, *(3, 4, 2, 3, 2)[:rank])
    wide, axes = x.astype("float64"), tuple(range(2, rank))
    scale, bias = normal(dtype, 4), normal(dtype, 4, positive=True)
    factor = 2 if how == "computed" else 1
    y = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    columns = (4, *(1,) * (rank - 2))
    expected = y * (factor * scale).reshape(columns) + (factor * bias).reshape(columns)
    agree("InstanceNormalization", [x, scale, bias], how, expected)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_local_response_normalization(rank, dtype, size):
    x = normal(dtype, *(2, 4, 3, 2, 2)[:rank])
    squares = x.astype("float64") ** 2
    spans = [(max(0, c - (size - 1) // 2), c + size // 2 + 1) for c in range(4)]
    sums = np.stack([squares[:, low:high].sum(1) for low, high in spans], 1)
    expected = x / (1.3 + 0.7 / size * sums) ** 0.6
    agree("LRN", [x], expected=expected, size=size, alpha=0.7, beta=0.6, bias=1.3)


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_max_pools_with_other_pads_at_the_ends(axes, ceil_mode):
    x = normal("float32", 2, 4, *SIZES[:axes])
    for first, stride in product((True, False), (1, 2, 3)):
        pads = [1, *(0,) * (2 * axes - 1)] if first else [*(0,) * (2 * axes - 1), 1]
        agree("MaxPool", [x], kernel_shape=(3, 2, 2)[:axes], strides=[stride] * axes, pads=pads,
              ceil_mode=ceil_mode)  # fmt: skip
