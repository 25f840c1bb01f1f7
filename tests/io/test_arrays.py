"""Parameters of a model's file that the caller holds in memory."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import to_array

import serde
from serde.errors import SerdeError, UsageError
from serde.formats.mxnet.io.params import read_params
from serde.io.arrays import write_npz

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
RELAY = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  nn.dense(%x, %w, units=None)
}
"""


class FrameworkArray:
    """An array of a framework: its numbers are behind a method."""

    def __init__(self, array, method):
        setattr(self, method, lambda: array)


@pytest.fixture
def arrays():
    params = read_params(DIGITS / "digits-0010.params")
    return dict(zip(params.names, (t.load() for t in params.tensors), strict=True))


@pytest.fixture
def symbol(tmp_path):
    path = tmp_path / "net-symbol.json"
    path.write_bytes((DIGITS / "digits-symbol.json").read_bytes())
    return path


FORMS = {
    "with prefixes": dict,
    "plain": lambda a: {n.partition(":")[2]: x for n, x in a.items()},
    "two mappings": lambda a: tuple(
        {n.partition(":")[2]: x for n, x in a.items() if n.startswith(kind)}
        for kind in ("arg:", "aux:")
    ),
    "asnumpy": lambda a: {n: FrameworkArray(x, "asnumpy") for n, x in a.items()},
    "numpy": lambda a: {n: FrameworkArray(x, "numpy") for n, x in a.items()},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_symbol_file_with_arrays(form, symbol, arrays, tmp_path):
    serde.convert(symbol, tmp_path / "held.onnx", params=FORMS[form](arrays))
    serde.convert(DIGITS, tmp_path / "file.onnx")
    held, file = (onnx.load(tmp_path / f"{n}.onnx").graph for n in ("held", "file"))
    assert list(held.node) == list(file.node)
    for a, b in zip(held.initializer, file.initializer, strict=True):
        assert a.name == b.name
        np.testing.assert_array_equal(to_array(a), to_array(b))


def test_arrays_come_before_files_beside_the_symbol(arrays, tmp_path):
    changed = {n: x + 1 if n == "arg:fc2_bias" else x for n, x in arrays.items()}
    serde.convert(DIGITS / "digits-symbol.json", tmp_path / "m.onnx", params=changed)
    tensors = {i.name: i for i in onnx.load(tmp_path / "m.onnx").graph.initializer}
    np.testing.assert_array_equal(to_array(tensors["fc2_bias"]), changed["arg:fc2_bias"])


def test_a_missing_array_is_named(symbol, arrays):
    del arrays["arg:fc1_weight"]
    with pytest.raises(SerdeError, match="fc1_weight"):
        serde.load(symbol, params=arrays)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (3, "the path of a file, or a mapping of names to arrays, not int"),
        (["a"], "the path of a file, or a mapping of names to arrays, not str"),
        ({"fc1_weight": "x"}, "'fc1_weight' is no array of numbers"),
        ({"fc1_weight": object()}, "'fc1_weight' is no array of numbers"),
        ({"fc1_weight": [[1], [2, 3]]}, "'fc1_weight' is no array of numbers"),
    ],
)
@pytest.mark.parametrize("kind", ["mxnet", "relay"])
def test_what_is_no_array_is_refused(kind, params, message, symbol, tmp_path):
    (tmp_path / "m.relay").write_text(RELAY)
    with pytest.raises(UsageError, match=message):
        serde.load(symbol if kind == "mxnet" else tmp_path / "m.relay", params=params)


@pytest.mark.parametrize("dtype", [np.float32, ">f4"])
def test_a_relay_file_with_arrays(dtype, tmp_path):
    (tmp_path / "m.relay").write_text(RELAY)
    w = np.arange(12).reshape(4, 3).astype(dtype)
    graph = serde.load(tmp_path / "m.relay", params={"w": w.T.copy().T})
    assert [v.name for v in graph.inputs] == ["x"]
    (held,) = graph.constants()
    np.testing.assert_array_equal(held.array(), w.T)
    assert held.array().dtype == np.float32  # in the machine's order of bytes


def test_arrays_of_a_relay_file_that_it_lacks_are_refused(tmp_path):
    (tmp_path / "m.relay").write_text(RELAY)
    with pytest.raises(SerdeError, match="params"):
        serde.load(tmp_path / "m.relay", params={"v": np.zeros((4, 3), np.float32)})


def test_they_are_verified_with(symbol, arrays, tmp_path):
    report = serde.convert(symbol, tmp_path / "m.onnx", params=arrays, verify=True)
    assert report.verification.ok


def test_npz_files_have_any_names_and_the_same_bytes():
    arrays = {"file": np.arange(3), "a/b": np.array(2.5), "allow_pickle": np.array([[True]])}
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        write_npz(file, arrays)
    assert files[0].getvalue() == files[1].getvalue()
    with np.load(io.BytesIO(files[0].getvalue())) as read:
        assert {n: read[n].tolist() for n in read} == {n: a.tolist() for n, a in arrays.items()}
    with pytest.raises(ValueError, match="Object arrays"):
        write_npz(io.BytesIO(), {"x": np.array([None])})
