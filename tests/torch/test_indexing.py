"""Places that may be less than 0 are counted from the front where PyTorch's layers do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import serde
from serde.bridges.torch import TorchWorker
from testing.onnx_live import run_model
from tests.torch.torch_live import why_not

RANDOM = np.random.default_rng(0)
CONSTANTS = {
    "table": RANDOM.standard_normal((7, 3), np.float32), "seven": np.array(7), "one": np.array(1),
    "zero": np.array(0), "minus": np.array([-1, 2, -7]), "first": np.array([-1]),
    "last": np.array([-100]), "axis": np.array([1]), "back": np.array([-2]),
}  # fmt: skip
ROWS = {"i": np.array([[0, 1, 2, 3], [6, 5, 4, 3]]), "j": np.array([[3, 1, 0, 4], [1, 5, 6, 3]])}
LOOKS = {  # of rows of a table: how they are computed, and whether they are brought to the front
    "a difference": ("d = Sub(i, j)", "d", True),
    "a negative number": ("d = Neg(i)", "d", True),
    "constants": ("n = Identity(minus)", "n", False),
    "an input": ("n = Identity(i)", "i", False),
    "a cast input": ("a = Cast<to = 6>(i) b = Unsqueeze(a, axis)", "b", False),
    "a remainder": ("a = Sub(i, j) d = Mod(a, seven)", "d", False),
    "a magnitude": ("a = Sub(i, j) d = Abs(a)", "d", False),
    "a clipped difference": ("a = Sub(i, j) d = Clip(a, zero, seven)", "d", False),
    "the larger": ("a = Sub(i, j) d = Max(a, zero)", "d", False),
    "places of the largest": ("d = ArgMax<axis = 1>(i)", "d", False),
    "counted places": (
        "h = Shape(i) k = Gather(h, zero) d = Range(zero, k, one)", "d", False,
    ),
    "positions that a mask tells": (
        "a = Equal(i, j) b = Not(a) c = Cast<to = 7>(b) e = CumSum(c, one) f = Mul(e, c)"
        "d = Add(f, one)", "d", False,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    if reason := why_not():
        pytest.skip(reason)
    return TorchWorker()


def compare(
    text: str, feeds: Mapping[str, np.ndarray], worker: TorchWorker, folder: Path
) -> str:  # fmt: skip
    """The source of a model, once it has computed what ONNX Runtime does."""
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]>\n{text}')
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in CONSTANTS.items() if name in read
    )
    onnx.save(model, folder / "m.onnx")
    serde.convert(folder / "m.onnx", folder / "net.py")
    results = worker.run(str(folder / "net.py"), [*feeds.values()])
    for got, expected in zip(results, run_model(model, feeds), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)
    return (folder / "net.py").read_text()


@pytest.mark.parametrize("case", LOOKS)
def test_rows_of_a_table_are_counted_from_the_front(
    case: str, worker: TorchWorker, tmp_path: Path
) -> None:
    steps, rows, is_wrapped = LOOKS[case]
    text = f"""g (int64[N, 4] i, int64[N, 4] j) => (float y) {{
        {steps} z = Gather(table, {rows}) s = Add(i, j) t = ReduceSum<keepdims = 0>(s)
        u = Cast<to = 1>(t) y = Add(z, u) }}"""
    source = compare(text, ROWS, worker, tmp_path)
    assert "nn.Embedding(7, 3)" in source
    assert source.count("torch.remainder(") == is_wrapped + (case == "a remainder")


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("type_", ["int64", "int32"])
def test_places_along_an_axis_are_counted_from_the_front(
    type_: str, reduction: str, worker: TorchWorker, tmp_path: Path
) -> None:
    text = f"""g (float[N, M] x, {type_}[N, K] i) => (float y, float z, float w) {{
        y = GatherElements<axis = 1>(x, i) a = Abs(i) w = GatherElements<axis = 1>(x, a)
        z = ScatterElements<axis = 1, reduction = "{reduction}">(x, i, y) }}"""
    x = RANDOM.standard_normal((2, 5), np.float32)
    source = compare(
        text, {"x": x, "i": np.array([[0, -1, 2], [1, -2, 3]], type_)}, worker, tmp_path
    )
    assert "torch.remainder(" in source and "x.shape[1])" in source


@pytest.mark.parametrize("type_", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers_are_turned_around(
    type_: str, worker: TorchWorker, tmp_path: Path
) -> None:
    text = f"""g ({type_}[N, 5] x) => ({type_} y) {{ y = Slice(x, first, last, axis, back) }}"""
    x = RANDOM.integers(0, np.iinfo(type_).max, (2, 5), type_, endpoint=True)
    compare(text, {"x": x}, worker, tmp_path)
