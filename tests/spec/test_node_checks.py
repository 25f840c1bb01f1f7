"""Operands that contradict each other are refused, in numbers and with the way on."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.errors import ConversionError, Unconvertible, UsageError
from serde.ir.graph import DType
from serde.spec import inference
from serde.spec.node_checks import CHECKS, HINT, RULES
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import DIGITS

F32, I64, U8 = DType.FLOAT32, DType.INT64, DType.UINT8
IMAGE, SCALAR, BYTE = (2, 4, 8, 8), (), ((), U8)
# An operator, its operands (shapes, of float32 where nothing else is said), attributes, the number
# of outputs; then operands by position that contradict the others, and what the message says.
SOUND = {
    "Conv": ([IMAGE, (6, 4, 3, 3), (6,)], {}, 1),
    "Conv in groups": ([IMAGE, (6, 2, 3, 3)], {"group": 2}, 1),
    "ConvInteger": ([(IMAGE, U8), ((6, 4, 3, 3), U8)], {}, 1),
    "QLinearConv": (
        [(IMAGE, U8), SCALAR, BYTE, ((6, 4, 3, 3), U8), SCALAR, BYTE, SCALAR, BYTE], {}, 1),
    "ConvTranspose": ([IMAGE, (4, 5, 3, 3), (10,)], {"group": 2}, 1),
    "DeformConv": ([IMAGE, (6, 4, 3, 3), (2, 18, 6, 6), (6,), (2, 9, 6, 6)], {}, 1),
    "BatchNormalization": ([IMAGE, (4,), (4,), (4,), (4,)], {}, 1),
    "BatchNormalization of a row": ([(3,), (1,), (1,), (1,), (1,)], {}, 1),
    "InstanceNormalization": ([(2, 4, 8), (4,), (4,)], {}, 1),
    "GroupNormalization": ([IMAGE, (4,), (4,)], {"num_groups": 2}, 1),
    "LayerNormalization": ([(2, 3, 4), (4,), (3, 4)], {}, 1),
    "RMSNormalization": ([(2, 3, 4), (4,)], {}, 1),
    "PRelu": ([IMAGE, (4, 1, 1)], {}, 1),
    "Gemm": ([(2, 3), (5, 3), (2, 1)], {"transB": 1}, 1),
    "Gemm turned": ([(3, 2), (3, 5), (5,)], {"transA": 1}, 1),
    "MatMul": ([(7, 2, 3), (3, 5)], {}, 1),
    "MatMul by a row": ([(3,), (2, 3, 5)], {}, 1),
    "MatMulInteger": ([((2, 3), U8), ((3, 5), U8)], {}, 1),
    "LSTM": (
        [(5, 2, 3), (1, 16, 3), (1, 16, 4), (1, 32), None, (1, 2, 4), (1, 2, 4), (1, 12)],
        {"hidden_size": 4}, 1),
    "GRU": (
        [(5, 2, 3), (2, 12, 3), (2, 12, 4), (2, 24), None, (2, 2, 4)],
        {"hidden_size": 4, "direction": "bidirectional"}, 1),
    "RNN": ([(2, 5, 3), (1, 4, 3), (1, 4, 4), None, None, (2, 1, 4)],
            {"hidden_size": 4, "layout": 1}, 1),
    "Attention": ([(1, 4, 5, 8), (1, 2, 6, 8), (1, 2, 6, 7)], {}, 1),
    "Attention of rows": (
        [(1, 5, 32), (1, 6, 16), (1, 6, 14)], {"q_num_heads": 4, "kv_num_heads": 2}, 1),
    "QuantizeLinear": ([(2, 3), (3,), ((3,), U8)], {"axis": 1}, 1),
    "QuantizeLinear by one": ([(2, 3), (1,), ((1,), U8)], {"axis": 1}, 1),
    "DequantizeLinear": ([((2, 3), U8), (2,)], {"axis": 0}, 1),
    "Reshape": ([(2, 6), np.array([3, 4])], {}, 1),
    "Reshape of a size as it is": ([(2, 6), np.array([0, 3, 2])], {}, 1),
    "ScatterND": ([(4, 5), ((2, 1), I64), (2, 5)], {}, 1),
    "ScatterElements": ([(4, 5), ((2, 2), I64), (2, 2)], {"axis": 0}, 1),
    "GatherElements": ([(4, 5), ((2, 2), I64)], {"axis": 0}, 1),
    "MaxUnpool": ([(1, 1, 2, 2), ((1, 1, 2, 2), I64)], {"kernel_shape": (2, 2)}, 1),
    "NonMaxSuppression": ([(1, 5, 4), (1, 2, 5)], {}, 1),
    "ReverseSequence": ([(4, 3), ((3,), I64)], {}, 1),
    "SoftmaxCrossEntropyLoss": ([(2, 3), ((2,), I64), (3,)], {}, 1),
    "DepthToSpace": ([IMAGE], {"blocksize": 2}, 1),
    "SpaceToDepth": ([IMAGE], {"blocksize": 2}, 1),
}  # fmt: skip
CONTRADICTORY = [
    ("Conv", 0, (1, 3, 8, 8), "has 3 channels, but W 'x1' of shape (6, 4, 3, 3) takes 4"),
    ("Conv", 2, (5,), "has 6 output channels, but B 'x2' of shape (5) has 5"),
    ("Conv in groups", 0, (1, 3, 8, 8), "takes 4"),
    ("Conv in groups", 1, (5, 2, 3, 3), "5 output channels, which group=2 does not divide"),
    ("ConvInteger", 0, ((1, 3, 8, 8), U8), "3 channels"),
    ("QLinearConv", 3, ((6, 3, 3, 3), U8), "takes 3"),
    ("ConvTranspose", 0, (1, 6, 8, 8), "6 channels, but W 'x1' of shape (4, 5, 3, 3) has 4"),
    ("ConvTranspose", 2, (5,), "has 10 output channels, but B 'x2' of shape (5) has 5"),
    ("DeformConv", 2, (2, 17, 6, 6), "an axis of 17, no multiple of 18"),
    ("DeformConv", 4, (2, 18, 6, 6), "has 2"),
    ("BatchNormalization", 1, (3,), "4 channels, but scale 'x1' of shape (3) has 3"),
    ("BatchNormalization", 0, (1, 3, 8), "3 channels"),
    ("InstanceNormalization", 2, (3,), "4 channels, but B 'x2' of shape (3) has 3"),
    ("GroupNormalization", 1, (2,), "has 2"),
    ("GroupNormalization", 0, (1, 3, 8), "3 channels"),
    ("LayerNormalization", 1, (5,), "does not broadcast to X 'x0' of shape (2, 3, 4)"),
    ("RMSNormalization", 1, (3,), "does not broadcast"),
    ("PRelu", 1, (3, 1, 1), "does not broadcast to X 'x0' of shape (2, 4, 8, 8)"),
    ("Gemm", 1, (5, 4), "has 3 features, but B 'x1' of shape (5, 4) takes 4"),
    ("Gemm", 2, (3, 1), "does not broadcast to the product of shape (2, 5)"),
    ("Gemm", 2, (1, 2, 1), "does not broadcast to the product of shape (2, 5)"),
    ("Gemm turned", 0, (4, 2), "has 4 features"),
    ("MatMul", 1, (4, 5), "has 3 features, but B 'x1' of shape (4, 5) takes 4"),
    ("MatMul by a row", 0, (4,), "takes 3"),
    ("MatMulInteger", 1, ((4, 5), U8), "takes 4"),
    ("LSTM", 0, (5, 2, 7), "7 input features"),
    ("LSTM", 2, (1, 16, 5), "ask for 4 hidden units, but R 'x2' of shape (1, 16, 5) has 5"),
    ("LSTM", 3, (1, 24), "has 3"),
    ("LSTM", 5, (1, 3, 4), "2 samples, but initial_h 'x5' of shape (1, 3, 4) has 3"),
    ("GRU", 1, (1, 12, 3), "2 directions"),
    ("RNN", 5, (5, 1, 4), "2 samples"),
    ("Attention", 0, (1, 3, 5, 8), "3 query heads, which kv_num_heads=2 does not divide"),
    ("Attention", 1, (1, 2, 6, 7), "8 elements for each head"),
    ("Attention", 2, (1, 2, 5, 7), "6 positions, but V 'x2' of shape (1, 2, 5, 7) has 5"),
    ("Attention of rows", 0, (1, 5, 30), "an axis of 30, no multiple of 4"),
    ("Attention of rows", 1, (1, 6, 12), "has 6"),
    ("QuantizeLinear", 1, (2,), "has 3 slices along axis 1, but y_scale 'x1' of shape (2) is"),
    ("DequantizeLinear", 1, (3,), "2 slices"),
    ("ScatterND", 2, (2, 4), "is not of shape (2, 5)"),
    ("ScatterND", 1, ((2, 3), I64), "indexes more axes"),
    ("ScatterElements", 2, (2, 3), "is not of the shape of indices"),
    ("GatherElements", 1, ((2,), I64), "has not the rank of data"),
    ("MaxUnpool", 1, ((1, 1, 2, 3), I64), "is not of the shape of X"),
    ("NonMaxSuppression", 1, (1, 2, 6), "5 boxes"),
    ("Reshape", 0, (2, 5), "has not as many elements as (3, 4)"),
    ("ReverseSequence", 1, ((4,), I64), "the 3 sequences"),
    ("SoftmaxCrossEntropyLoss", 1, ((3,), I64), "2 samples"),
    ("SoftmaxCrossEntropyLoss", 2, (4,), "3 classes"),
    ("DepthToSpace", 0, (1, 6, 2, 2), "6 channels, which blocksize²=4 does not divide"),
    ("SpaceToDepth", 0, (1, 6, 3, 2), "3 rows, which blocksize=2 does not divide"),
]  # fmt: skip


def emit(name: str, replaced: dict[int, object] | None = None, named: bool = False) -> None:
    """Make a node of ``SOUND``, some of its operands replaced, or all of sizes by name."""
    operands, attrs, outputs = SOUND[name]
    g = OnnxBuilder("g")
    read = []
    for at, operand in enumerate(operands):
        operand = (replaced or {}).get(at, operand)
        if operand is None or isinstance(operand, np.ndarray):
            read.append(None if operand is None else g.const(operand))
            continue
        typed = bool(operand) and isinstance(operand[-1], DType)
        shape, dtype = operand if typed else (operand, F32)
        shape = tuple(f"x{at}.{axis}" for axis, _ in enumerate(shape)) if named else shape
        read.append(g.input(f"x{at}", dtype, shape))
    g[name.split()[0]](*read, outputs=outputs, **attrs)


@pytest.mark.parametrize("name", SOUND)
def test_what_fits_is_taken(name):
    emit(name)
    emit(name, named=True)


@pytest.mark.parametrize(("name", "at", "operand", "reason"), CONTRADICTORY)
def test_contradictions_are_refused(name, at, operand, reason):
    with pytest.raises(ConversionError, match=re.escape(reason)):
        emit(name, {at: operand})


def test_every_check_is_tried():
    checked = {*CHECKS, *RULES}
    assert checked == {name.split()[0] for name in SOUND}
    assert checked == {name.split()[0] for name, *_ in CONTRADICTORY}


def test_a_layer_that_repeats_is_checked_once(monkeypatch):
    calls = []
    check = inference.check_operands
    monkeypatch.setattr(inference, "check_operands", lambda *a: (calls.append(a), check(*a)))
    g = OnnxBuilder("g")
    x, w = g.input("x", F32, (1, 7, 31, 31)), g.input("w", F32, (7, 7, 1, 1))
    for _ in range(5):
        x = g.Conv(x, w)
    assert len(calls) <= 1


def test_parameters_for_each_element_at_opset_7():
    g = OnnxBuilder("g", 7)
    x = g.input("x", F32, (2, 3, 4))
    held = [g.input(n, F32, (3, 4)) for n in "sbmv"]
    g.BatchNormalization(x, *held, spatial=0)


# A shape given for an input, where the file leaves it open.


def onnx_file(path):
    weight = np.zeros((8, 3, 3, 3), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["data", "w"], ["y"], name="stem")], "g",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", "C", "H", "W"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    return path


@pytest.mark.parametrize("target", ["m.onnx", "m-symbol.json", "m.relay"])
def test_a_wrong_number_of_channels_given_for_an_onnx_model(target, tmp_path):
    source = onnx_file(tmp_path / "source.onnx")
    with pytest.raises(Unconvertible) as caught:
        serde.convert(source, tmp_path / target, inputs={"data": (1, 4, 224, 224)})
    shown = str(caught.value)
    assert "Conv ×1 ('stem'): X 'data' of shape (1, 4, 224, 224) has 4 channels" in shown
    assert (
        "W 'w' of shape (8, 3, 3, 3) takes 3" in shown
        and HINT.replace("--input", "inputs=") in shown
    )
    serde.convert(source, tmp_path / target, inputs={"data": (1, 3, 224, 224)})


def test_a_wrong_number_of_channels_given_for_an_mxnet_model(tmp_path):
    message = r"conv1 \(Convolution\): the weight has 1 input channels, and the data have 3: "
    with pytest.raises(UsageError, match=rf"{message}inputs={{'data': \(1, 1, 8, 8\)}}"):
        serde.convert(
            DIGITS / "digits-symbol.json", tmp_path / "m.onnx", inputs={"data": (1, 3, 8, 8)}
        )
