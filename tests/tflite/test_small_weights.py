"""Weights of few bits stay so in the file, and stand for the same numbers."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import serde
from serde.bridges.litert import LitertWorker
from serde.formats.onnx.from_ir import from_ir as onnx_from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.formats.tflite.decode import decode as decode_tflite
from serde.formats.tflite.from_ir import from_ir
from serde.legalize.convert import raise_to_ir
from testing.onnx_live import PLAIN, run_at
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
ROWS, COLUMNS = 128, 64
NUMBERS = {
    "INT8": np.int8, "UINT8": np.uint8, "INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4,
}  # fmt: skip


def product(kind: str, axis: int | None, block: int, has_zero: bool, op: str = "MatMul"):
    """A model of a product by a dequantized weight."""
    rng = np.random.default_rng(block)
    bits = 4 if kind.endswith("4") else 8
    low = 0 if kind.startswith("U") else -(1 << (bits - 1))
    weights = rng.integers(low, low + (1 << bits), (ROWS, COLUMNS))
    sizes = [ROWS, COLUMNS]
    if axis is None:
        sizes = []
    elif block:
        sizes[axis] //= block
    else:
        sizes = [sizes[axis]]
    scales = (rng.random(sizes) / 50 + 0.01).astype(np.float32)
    zeros = rng.integers(low, low + 3, sizes)
    element = getattr(TensorProto, kind)
    held = [
        helper.make_tensor("w", element, weights.shape, weights.ravel().tolist()),
        helper.make_tensor("s", TensorProto.FLOAT, sizes, scales.ravel().tolist()),
        helper.make_tensor("z", element, sizes, np.ravel(zeros).tolist()),
    ]
    attrs = ({} if axis is None else {"axis": axis}) | ({"block_size": block} if block else {})
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", *["z"] * has_zero], ["d"], **attrs),
        helper.make_node(op, ["x", "d"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, size])
            for n, size in (("x", ROWS), ("y", COLUMNS))]  # fmt: skip
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held[: 2 + has_zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return raise_to_ir(decode(model)), ROWS * COLUMNS * bits // 8


def run_onnx(graph, feeds):
    """What ONNX Runtime computes without its optimizers, which round products by 4 bits."""
    return run_at(PLAIN, to_proto(onnx_from_ir(graph, 21)), feeds)


CASES = [
    (kind, axis, block, has_zero)
    for kind in NUMBERS
    for axis, block in ((None, 0), (1, 0), (0, 0), (0, 32), (1, 16))
    for has_zero in (True, False)
]


@needs_litert
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_products_by_weights_of_few_bits(case, tmp_path: Path) -> None:
    graph, size = product(*case)
    path = tmp_path / "m.tflite"
    serde.save(graph, path)
    x = np.random.default_rng(1).standard_normal((2, ROWS)).astype(np.float32)
    expected = run_onnx(graph, {"x": x})
    scales = 4 * ROWS * COLUMNS // (case[2] or ROWS)
    assert path.stat().st_size < size + 8 * 2 * scales + 4096  # scales, and zeros of 64 bits
    assert "FULLY_CONNECTED" in from_ir(graph).operators()
    for got in (*run_both(LitertWorker(), path, [x]), run_onnx(serde.load(path), {"x": x})):
        np.testing.assert_allclose(got[0], expected[0], rtol=0, atol=1e-5 * np.abs(expected).max())


def test_a_layer_keeps_its_bias() -> None:
    graph, _ = product("INT4", 0, 32, False, "Gemm")
    assert [node.op for node in from_ir(graph).nodes] == [
        "DEQUANTIZE",
        "RESHAPE",
        "FULLY_CONNECTED",
    ]


def layers(path: Path) -> np.ndarray:
    """Write a model of a convolution, recurrent layers and a product; return its input."""
    rng = np.random.default_rng(5)
    shapes = {
        "k": (64, 8, 3, 3), "w": (2, 384, 64), "r": (2, 384, 96), "b": (2, 768),
        "gw": (1, 144, 192), "gr": (1, 144, 48), "gb": (1, 288), "m": (48, 96),
    }  # fmt: skip
    held = [
        helper.make_tensor(n, TensorProto.FLOAT, s, rng.standard_normal(s).astype("f4").ravel() / 8)
        for n, s in shapes.items()
    ]
    shape = helper.make_tensor("shape", TensorProto.INT64, [3], [9, 2, 64])
    rows = helper.make_tensor("rows", TensorProto.INT64, [3], [9, 2, 192])
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"]),
        helper.make_node("Transpose", ["c"], ["t"], perm=[2, 0, 3, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["s"]),
        helper.make_node("LSTM", ["s", "w", "r", "b"], ["l"], hidden_size=96, direction="bidirectional"),
        helper.make_node("Transpose", ["l"], ["lt"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["lt", "rows"], ["lr"]),
        helper.make_node("GRU", ["lr", "gw", "gr", "gb"], ["", "g"], hidden_size=48, linear_before_reset=1),
        helper.make_node("MatMul", ["g", "m"], ["y"]),
    ]  # fmt: skip
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, size)
            for n, size in (("x", [2, 8, 11, 3]), ("y", [1, 2, 96]))]  # fmt: skip
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [*held, shape, rows])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return rng.standard_normal((2, 8, 11, 3)).astype(np.float32)


# Options, the share of the file of float32, and of the largest number that what ONNX Runtime makes
# of the same may differ by: it computes with float16 where ``fp16`` is given.
FEWER_BITS = {
    "weights": ({"weights": "fp16"}, 0.56, 1e-5), "arithmetic": ({"fp16": True}, 0.56, 5e-3),
    "ends": ({"fp16": True, "fp16_io": True}, 0.56, 5e-3), "int8": ({"weights": "int8"}, 0.36, 1e-5),
}  # fmt: skip


@needs_litert
@pytest.mark.parametrize("name", FEWER_BITS)
def test_layers_with_weights_of_fewer_bits(name: str, tmp_path: Path) -> None:
    """LiteRT computes with float32, of weights that the file has in fewer bits."""
    options, share, bound = FEWER_BITS[name]
    x = layers(tmp_path / "m.onnx")
    paths = [tmp_path / n for n in ("plain.tflite", "m.tflite", "few.onnx")]
    serde.convert(tmp_path / "m.onnx", paths[0], verify=False)
    for path in paths[1:]:
        serde.convert(tmp_path / "m.onnx", path, verify=False, **options)
    assert paths[1].stat().st_size < share * paths[0].stat().st_size
    graph, has_half_ends = decode_tflite(paths[1]), "fp16_io" in options
    codes = [node.op for node in graph.nodes]
    assert codes.count("UNIDIRECTIONAL_SEQUENCE_LSTM") == 2
    assert codes.count("CAST") == 2 * has_half_ends
    x = x.astype(np.float16) if has_half_ends else x
    (expected,) = run_at(PLAIN, to_proto(onnx_from_ir(serde.load(paths[2]), 21)), {"x": x})
    for (got,) in run_both(LitertWorker(), paths[1], [x]):
        assert got.dtype == expected.dtype
        error = np.abs(got.astype(np.float32) - expected.astype(np.float32)).max()
        assert error < bound * np.abs(expected.astype(np.float32)).max()
