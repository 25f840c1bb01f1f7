"""Weights of two and four bits, in every format, beside ONNX Runtime on the model itself."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.errors import Unconvertible
from serde.formats.relay.encode import encode
from serde.formats.relay.from_ir import from_ir
from testing.onnx_live import PLAIN, run_at
from testing.relay import tvm_live
from tests.tflite.litert_live import why_not as why_no_litert
from tests.torch.torch_live import why_not as why_no_torch

OPSET, ROWS, COLUMNS, BLOCK = 21, 8, 4, 4
KINDS = {"tensor": ((), {}), "filter": ((COLUMNS,), {"axis": 1}),
         "block": ((ROWS // BLOCK, COLUMNS), {"axis": 0, "block_size": BLOCK})}  # fmt: skip
CASES = [*itertools.product(("INT4", "UINT4"), KINDS, (False, True))]
X = np.random.default_rng(3).standard_normal((3, ROWS)).astype(np.float32)


def make_model(code: str, kind: str, is_transposed: bool) -> onnx.ModelProto:
    """A product with weights of four bits, with scales and zero points."""
    random, element = np.random.default_rng(0), getattr(TensorProto, code)
    low = -8 if code == "INT4" else 0
    shape, attrs = KINDS[kind]
    rows = random.integers(low, low + 16, (ROWS, COLUMNS))
    stored = rows.T if is_transposed else rows
    zero = random.integers(low, low + 16, shape)
    arrays = [
        helper.make_tensor("w", element, stored.shape, stored.reshape(-1).tolist()),
        helper.make_tensor("z", element, shape, np.reshape(zero, -1).tolist()),
        numpy_helper.from_array(random.random(shape).astype(np.float32) + 0.1, "s"),
    ]
    turn = [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0])] if is_transposed else []
    weights = "t" if is_transposed else "w"
    nodes = [
        *turn, helper.make_node("DequantizeLinear", [weights, "s", "z"], ["d"], **attrs),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]  # fmt: skip
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, size))
        for name, size in (("x", ROWS), ("y", COLUMNS))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], arrays)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("name", [
    "old.onnx",
    pytest.param("m.tflite", marks=pytest.mark.skipif(bool(why_no_litert()), reason="no LiteRT")),
    pytest.param("m.py", marks=pytest.mark.skipif(bool(why_no_torch()), reason="no PyTorch")),
])  # fmt: skip
def test_weights_of_four_bits(name: str, case: tuple[str, str, bool], tmp_path: Path) -> None:
    model = make_model(*case)
    onnx.save(model, tmp_path / "m.onnx")
    is_onnx = name == "old.onnx"
    options = {"opset": 13} if is_onnx else {}
    serde.convert(tmp_path / "m.onnx", tmp_path / name, verify=False, **options)
    (got,) = (
        run_at(PLAIN, tmp_path / name, {"x": X}) if is_onnx
        else serde.run(tmp_path / name, X).values()
    )  # fmt: skip
    (expected,) = run_at(PLAIN, model, {"x": X})  # optimized, it rounds X to eight bits
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_weights_of_four_bits_in_relay(case: tuple[str, str, bool], tmp_path: Path) -> None:
    model = make_model(*case)
    onnx.save(model, tmp_path / "m.onnx")
    path, *params = encode(from_ir(serde.load(tmp_path / "m.onnx")), tmp_path / "m.json")
    (got,) = tvm_live.run_network(Path(path), Path(*params), {"x": X})
    (expected,) = run_at(PLAIN, model, {"x": X})  # optimized, it rounds X to eight bits
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["m.py", "m.relay"])
def test_outputs_of_four_bits_are_refused(target: str, tmp_path: Path) -> None:
    """They are stored in eight, and whoever reads them could not tell."""
    text = f"""<ir_version: 10, opset_import: ["": {OPSET}]>
        g (float[4] x) => (int4[4] y) {{ y = Cast<to = 22>(x) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(Unconvertible, match=r"int4.*(does not have|does not compute with)"):
        serde.convert(tmp_path / "m.onnx", tmp_path / target)
