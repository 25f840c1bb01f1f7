"""Convolutions over blocks, as TensorFlow wrote dilated ones, beside LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.formats.tflite.decode import decode
from serde.formats.tflite.io.schema import enums
from serde.formats.tflite.io.write_flatbuffer import union_number
from serde.ir.graph import Tensor
from testing.onnx_live import run as run_graph
from testing.tflite.cases import c, f, q, r
from testing.tflite.models import Operand, describe_tensor, name_options, write
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
ONCE = {"padding": 1, "stride_h": 1, "stride_w": 1}
BLOCK, PADS, CROPS = c([2, 3]), c([[2, 3], [3, 5]]), c([[0, 1], [0, 2]])
KERNEL = Operand(np.random.default_rng(2).standard_normal((4, 3, 3, 2)).astype("f"), True)
EACH = Operand(np.random.default_rng(2).standard_normal((1, 3, 3, 2)).astype("f"), True)


def build_chain(x: Operand, result, layer="CONV_2D", kernel=KERNEL, pads=PADS, crops=CROPS,
                block=BLOCK, joined=BLOCK, reads=1, **options):  # fmt: skip
    """The bytes of a model: a layer over the blocks of an image; ``reads`` outputs of it."""
    sizes = kernel.array.shape[3 if layer[0] == "D" else 0]
    bias = c(np.linspace(-1, 1, sizes), "float32")
    if x.array.dtype == np.int8:
        unit = np.asarray(x.scale) * kernel.scale
        bias = Operand(np.arange(-40, 40, 80 // sizes, np.int32), True, unit, [0])
    operands = [x, block, pads, kernel, bias, joined, crops]
    tensors, buffers = [], [{}]
    for k, v in enumerate(operands):
        entry = describe_tensor(f"x{k}", v.array.dtype, v)
        if v.is_constant:
            entry["buffer"] = len(buffers)
            buffers.append({"data": Tensor.of(v.array)})
        tensors.append(entry)
    moved = r(x.array.dtype.name, *(v[0] for v in (x.scale, x.zero) if len(v)))
    tensors += [describe_tensor(f"y{k}", v.dtype, v) for k, v in enumerate((moved, result, result))]
    names = ["SPACE_TO_BATCH_ND", layer, "BATCH_TO_SPACE_ND"]
    codes = [enums()["BuiltinOperator"][n] for n in names]
    options = ONCE | ({"depth_multiplier": 1} if layer[0] == "D" else {}) | options
    operators = []
    for k, (name, inputs) in enumerate(zip(names, ([0, 1, 2], [7, 3, 4], [8, 5, 6]), strict=True)):
        table = name_options(name)
        operators.append({
            "opcode_index": k, "inputs": inputs, "outputs": [7 + k],
            "builtin_options": (table, options if k == 1 else {}),
            "builtin_options_type": union_number("BuiltinOptions", table),
        })  # fmt: skip
    return write({
        "version": 3, "buffers": buffers,
        "operator_codes": [{"deprecated_builtin_code": n, "builtin_code": n, "version": 3}
                           for n in codes],
        "subgraphs": [{"tensors": tensors, "operators": operators, "inputs": [0],
                       "outputs": [9, 8][:reads]}],
    })  # fmt: skip


FLOATS = f(2, 7, 10, 2)
INTEGERS = q(2, 7, 10, 2, scale=0.05, zero=-7)
STEPS = q(4, 3, 3, 2, scale=0.02, zero=0, constant=True)
DILATED = {
    "padded": (FLOATS, r(), {}),
    "an activation": (FLOATS, r(), {"fused_activation_function": 1}),
    "by channel": (FLOATS, r(), {"layer": "DEPTHWISE_CONV_2D", "kernel": EACH}),
    "all pads cropped": (f(2, 7, 10, 2), r(), {"pads": c([[0, 1], [0, 2]])}),
    "both ends cropped": (FLOATS, r(), {"crops": c([[2, 1], [1, 5]])}),
    "integers": (INTEGERS, r("int8", 0.1, 4), {"kernel": STEPS}),
}  # fmt: skip
OTHER = {
    "more cropped than padded": {"crops": c([[3, 1], [0, 2]])},
    "other blocks behind": {"joined": c([3, 2])},
    "strides": {"stride_h": 2},
    "an output": {"reads": 2},
}


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("name", DILATED)
def test_a_layer_over_blocks_is_a_dilated_one(name, worker, tmp_path: Path) -> None:
    x, result, changes = DILATED[name]
    path = tmp_path / "a.tflite"
    path.write_bytes(build_chain(x, result, **changes))
    graph = serde.load(path)
    (layer,) = [n for n in graph.nodes if n.op == "Conv"]
    assert layer.attrs["dilations"] == (2, 3)
    assert not graph.operators() & {"Reshape", "SpaceToDepth", "Slice"}
    serde.save(graph, tmp_path / "b.tflite")
    ops = [n.op for n in decode(tmp_path / "b.tflite").nodes]
    assert ops[-1] == changes.get("layer", "CONV_2D")
    assert {*ops[:-1]} <= {"PAD"}
    (got,) = run_graph(graph, {"x0": x.array})
    step = 1 if got.dtype == np.int8 else 1e-5
    expected = run_both(worker, path, [x.array])
    again = run_both(worker, tmp_path / "b.tflite", [x.array])
    for (one,), (two,) in zip(expected, again, strict=True):
        np.testing.assert_allclose(got, one, 1e-5, step)
        np.testing.assert_allclose(two, one, 1e-5, step)


@needs_litert
@pytest.mark.parametrize("name", OTHER)
def test_others_stay(name, worker, tmp_path: Path) -> None:
    path = tmp_path / "a.tflite"
    path.write_bytes(build_chain(FLOATS, r(), **OTHER[name]))
    graph = serde.load(path)
    assert next(n for n in graph.nodes if n.op == "Conv").attrs["dilations"] == (1, 1)
    got = run_graph(graph, {"x0": FLOATS.array})
    for expected in run_both(worker, path, [FLOATS.array]):
        for one, two in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, two, 1e-5, 1e-5)
